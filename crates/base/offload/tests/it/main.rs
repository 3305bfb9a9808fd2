//! Segments, checksums and coalescing, compared with references and the kernel.

mod allocation;
mod checksum;
mod coalesce;
mod coalesce_rules;
mod found_by_fuzzing;
mod kernel;
mod packets;
mod segment;
mod verify;
