//! Threads bound to CPUs.

use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io;

/// Binds the calling thread to a CPU.
///
/// # Errors
///
/// The CPU is not there or not allowed; those that are.
pub fn pin(cpu: u16) -> io::Result<()> {
    let none = || {
        let allowed = kernel::cpu::CpuSet::new(allowed().into_iter().map(u32::from));
        let allowed = allowed.map_or_else(|_| "others".to_owned(), |cpus| cpus.list());
        io::Error::new(io::ErrorKind::InvalidInput, format!("this process may use {allowed}"))
    };
    if usize::from(cpu) >= CpuSet::MAX_CPU {
        return Err(none());
    }
    let mut cpus = CpuSet::new();
    cpus.set(cpu.into());
    match sched_setaffinity(None, &cpus) {
        Err(Errno::INVAL) => Err(none()),
        done => Ok(done?),
    }
}

/// CPUs that the calling thread may use; the first, where the kernel does not tell.
pub fn allowed() -> Vec<u16> {
    let Ok(cpus) = sched_getaffinity(None) else { return vec![0] };
    (0..CpuSet::MAX_CPU).filter(|cpu| cpus.is_set(*cpu)).map(|cpu| cpu as u16).collect()
}
