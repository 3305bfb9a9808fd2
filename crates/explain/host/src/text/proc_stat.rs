//! `/proc/stat`: what each CPU did between two samples (proc_stat(5), fs/proc/stat.c).
//!
//! Columns in ticks: user, nice, system, idle, iowait, irq, softirq, steal, guest, guest_nice; guests are counted
//! in user and nice, too. One sample is the time since boot, which is no load: only two make one.

use super::kept::Ticks;
use super::{Line, Outcome, Tool, note_load};
use crate::{Load, Snapshot};
use std::collections::btree_map::Entry;

pub(super) static TOOL: Tool = Tool {
    name: "/proc/stat",
    command: |command| command.reads("/proc/stat"),
    heading: |line| line.starts_with("cpu") && ticks(line).is_some(),
    open: |_| Box::new(cpu),
};

fn cpu(line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
    let text = line.trimmed();
    let Some((cpu, ticks)) = ticks(text) else {
        let others = ["intr ", "ctxt ", "btime ", "processes ", "procs_", "softirq ", "page ", "swap "];
        let is_other = others.iter().any(|other| text.starts_with(other));
        return if is_other { Outcome::Taken } else { Outcome::Over };
    };
    // The line of all CPUs together.
    let Some(cpu) = cpu else { return Outcome::Taken };
    if cpu as usize >= Snapshot::CPUS {
        snapshot.omitted += 1;
        return Outcome::Taken;
    }
    let mut kept = line.kept();
    match kept.ticks.entry(cpu) {
        Entry::Vacant(entry) => {
            entry.insert(ticks);
        }
        Entry::Occupied(first) => {
            if let Some(load) = load(first.get(), &ticks) {
                note_load(cpu, line.fact(load), snapshot);
            }
        }
    }
    Outcome::Taken
}

/// Shares of the ticks between two samples; `None` where none passed, or a counter fell.
fn load(first: &Ticks, latest: &Ticks) -> Option<Load> {
    let mut passed = [0_u64; 6];
    for ((passed, first), latest) in passed.iter_mut().zip(first).zip(latest) {
        *passed = latest.checked_sub(*first)?;
    }
    let total = passed.iter().fold(0, |sum: u64, ticks| sum.saturating_add(*ticks));
    if total == 0 {
        return None;
    }
    let [user, system, interrupt, softirq, idle, _stolen] =
        passed.map(|ticks| 100.0 * ticks as f64 / total as f64);
    Some(Load { user, system, interrupt, softirq: Some(softirq), idle })
}

/// CPU (`None` for all together) and its ticks. Linux 2.6 and later have at least seven columns.
fn ticks(line: &str) -> Option<(Option<u32>, Ticks)> {
    let mut words = line.strip_prefix("cpu")?.split(' ');
    let cpu = match words.next()? {
        "" => None,
        number => Some(number.parse().ok()?),
    };
    let mut column = [0_u64; 8];
    let mut columns = 0;
    for word in words.filter(|word| !word.is_empty()) {
        let ticks: u64 = word.parse().ok()?;
        if let Some(place) = column.get_mut(columns) {
            // Ticks since boot fit 48 bits for millions of years; what does not is none, and sums stay sums.
            *place = Some(ticks).filter(|ticks| ticks >> 48 == 0)?;
        }
        columns += 1;
    }
    let [user, nice, system, idle, iowait, irq, softirq, steal] = column;
    (columns >= 7).then_some((cpu, [user + nice, system, irq, softirq, idle + iowait, steal]))
}
