//! `ksoftirqd/N` in a list of processes: a CPU whose soft interrupts have outgrown what their own context may take
//! is pinned down by its thread.

use crate::Case;
use host::Process;

/// Per cent of one CPU from which its thread leaves nothing.
const FULL: f64 = 90.0;

/// Per cent from which another CPU's thread is at work, too.
const BUSY: f64 = 30.0;

/// The CPU that a thread belongs to, and its share in per cent of that CPU.
pub(crate) fn of(process: &Process) -> Option<(u32, f64)> {
    let cpu = process.name.strip_prefix("ksoftirqd/")?.parse().ok()?;
    Some((cpu, process.cpu?))
}

/// The thread that fills this CPU, if one does.
pub(crate) fn filling<'a>(case: &Case<'a>, cpu: u32) -> Option<(&'a Process, f64)> {
    let mut threads = case.snapshot().processes.iter().filter_map(|process| Some((process, of(process)?)));
    threads.find_map(|(process, (owner, share))| (owner == cpu && share >= FULL).then_some((process, share)))
}

/// The only CPU whose thread is at work, where that thread fills it.
pub(crate) fn only_full<'a>(case: &Case<'a>) -> Option<(u32, &'a Process, f64)> {
    let threads = case.snapshot().processes.iter().filter_map(|process| Some((process, of(process)?)));
    let mut busy = threads.filter(|(_, (_, share))| *share >= BUSY);
    let (process, (cpu, share)) = busy.next()?;
    (busy.next().is_none() && share >= FULL).then_some((cpu, process, share))
}
