//! Threads bound to CPUs.

use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io;

/// Binds the calling thread to a CPU.
///
/// # Errors
///
/// `EINVAL` for a CPU that is not there or not allowed.
pub fn pin(cpu: u16) -> io::Result<()> {
    if usize::from(cpu) >= CpuSet::MAX_CPU {
        return Err(Errno::INVAL.into());
    }
    let mut cpus = CpuSet::new();
    cpus.set(cpu.into());
    Ok(sched_setaffinity(None, &cpus)?)
}

/// CPUs that the calling thread may use; the first, where the kernel does not tell.
pub fn allowed() -> Vec<u16> {
    let Ok(cpus) = sched_getaffinity(None) else { return vec![0] };
    (0..CpuSet::MAX_CPU).filter(|cpu| cpus.is_set(*cpu)).map(|cpu| cpu as u16).collect()
}
