//! Threads bound to CPUs.

use kernel::cpu::{self, CpuSet};
use std::io;

/// A thread could not be bound to the CPU: it is not there, or not allowed. The cause names those that are.
#[derive(Debug, thiserror::Error)]
#[error("CPU {cpu} cannot be chosen: {cause}")]
pub struct CpuError {
    cpu: u16,
    pub cause: io::Error,
}

/// Binds the calling thread to a CPU, where one is given.
pub fn pin(cpu: Option<u16>) -> Result<(), CpuError> {
    let Some(cpu) = cpu else { return Ok(()) };
    cpu::pin(&CpuSet::new([cpu.into()]).unwrap_or_default()).map_err(|_| {
        let allowed = cpu::allowed().map_or_else(|_| "others".to_owned(), |cpus| cpus.list());
        let cause = io::Error::new(io::ErrorKind::InvalidInput, format!("this process may use {allowed}"));
        CpuError { cpu, cause }
    })
}

/// The CPU of a thread, where threads are bound to these in turn.
pub(crate) fn cpu_of(cpus: &[u16], thread: usize) -> Option<u16> {
    cpus.get(thread % cpus.len().max(1)).copied()
}

/// CPUs that the calling thread may use; the first, where the kernel does not say.
pub fn allowed() -> Vec<u16> {
    let Ok(cpus) = cpu::allowed() else { return vec![0] };
    cpus.iter().filter_map(|cpu| u16::try_from(cpu).ok()).collect()
}
