//! The eBPF programs and their loader.

mod loader;
mod programs;
