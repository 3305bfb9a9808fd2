//! Threads bound to CPUs.

use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_setaffinity};
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
