//! Threads bound to CPUs.

use kernel::cpu::{self, CpuSet};
use std::io;

/// Binds the calling thread to a CPU. Error: the CPU is not there or not allowed; those that are.
pub fn pin(cpu: u16) -> io::Result<()> {
    let none = |_| {
        let allowed = cpu::allowed().map_or_else(|_| "others".to_owned(), |cpus| cpus.list());
        io::Error::new(io::ErrorKind::InvalidInput, format!("this process may use {allowed}"))
    };
    cpu::pin(&CpuSet::new([cpu.into()]).unwrap_or_default()).map_err(none)
}

/// CPUs that the calling thread may use; the first, where the kernel does not say.
pub fn allowed() -> Vec<u16> {
    let Ok(cpus) = cpu::allowed() else { return vec![0] };
    cpus.iter().filter_map(|cpu| u16::try_from(cpu).ok()).collect()
}
