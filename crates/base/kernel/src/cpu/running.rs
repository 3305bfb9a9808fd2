//! Which CPUs there are, and on which a thread runs.

use super::CpuSet;
use rustix::thread::{CpuSet as Affinity, sched_getaffinity, sched_setaffinity};
use std::fs;
use std::io;
use std::sync::OnceLock;

/// The CPUs that run.
pub fn online() -> io::Result<CpuSet> {
    listed("online")
}

/// The CPUs that can ever run, as the kernel fixed them at boot: per-CPU maps have a value for each.
pub fn possible() -> io::Result<&'static CpuSet> {
    static POSSIBLE: OnceLock<CpuSet> = OnceLock::new();
    match POSSIBLE.get() {
        Some(possible) => Ok(possible),
        None => listed("possible").map(|possible| POSSIBLE.get_or_init(|| possible)),
    }
}

fn listed(which: &str) -> io::Result<CpuSet> {
    let path = format!("/sys/devices/system/cpu/{which}");
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{path}: {error}"));
    let list = fs::read_to_string(&path).map_err(named)?;
    match CpuSet::parse_list(&list) {
        Ok(cpus) if cpus.is_empty() => Err(named(io::Error::other("it names no CPU"))),
        cpus => cpus.map_err(|error| named(io::Error::other(error))),
    }
}

/// The CPUs on which the calling thread may run.
pub fn allowed() -> io::Result<CpuSet> {
    let allowed = sched_getaffinity(None)?;
    let cpus = (0..Affinity::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).map(|cpu| cpu as u32);
    CpuSet::new(cpus).map_err(io::Error::other)
}

/// Keeps the calling thread on these CPUs. Error: none of them runs, or the thread may not run on any of them.
pub fn pin(cpus: &CpuSet) -> io::Result<()> {
    let mut affinity = Affinity::new();
    cpus.iter()
        .map(|cpu| cpu as usize)
        .filter(|cpu| *cpu < Affinity::MAX_CPU)
        .for_each(|cpu| affinity.set(cpu));
    Ok(sched_setaffinity(None, &affinity)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stays_where_it_is_pinned() {
        let allowed = allowed().expect("a set");
        let online = online().expect("a list");
        assert!(!allowed.is_empty() && online.len() <= possible().expect("a list").len());
        let last = CpuSet::new(allowed.iter().last()).expect("a CPU");
        pin(&last).expect("pinned");
        assert_eq!(super::allowed().expect("a set"), last);
        assert!(pin(&CpuSet::default()).is_err());
        pin(&allowed).expect("free again");
    }
}
