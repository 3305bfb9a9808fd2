//! The eBPF programs and their loader.
