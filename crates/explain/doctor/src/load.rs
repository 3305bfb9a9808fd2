//! Whether a CPU is the limit: what a rule's severity hangs on where the load is known. A CPU whose soft interrupts
//! have outgrown what their own context may take shows by its thread `ksoftirqd/N`, too.

use crate::Case;
use crate::facts::CpuLoad;
use crate::finding::Severity;
use host::{Process, Quote};

/// Idle time below which a CPU has nothing left, per cent: a sample of a few seconds smooths a CPU that is full
/// most of the time to about this.
const FULL: f64 = 10.0;
/// Idle time above which a CPU is not the limit, per cent.
const ROOM: f64 = 30.0;
/// Part of its time that a full CPU must spend on interrupts, soft ones included, for receive work to be what fills
/// it, per cent.
const RECEIVING: f64 = 50.0;
/// Per cent of one CPU from which its ksoftirqd leaves nothing.
const THREAD_FULL: f64 = 90.0;
/// Per cent from which another CPU's ksoftirqd is at work, too.
const THREAD_BUSY: f64 = 30.0;

/// A CPU's load, with the line that shows it.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub state: CpuLoad,
    pub quote: Option<Quote>,
}

pub(crate) fn of(case: &Case<'_>, cpu: Option<u32>) -> Load {
    let known = cpu.and_then(|cpu| {
        if let Some(load) = case.snapshot().cpus.load.get(&cpu) {
            return Some((state(cpu, &load.value), &load.quote));
        }
        let mut threads = threads(case).filter(|(owner, _, share)| *owner == cpu && *share >= THREAD_FULL);
        threads.next().map(|(_, process, share)| (CpuLoad::Ksoftirqd { cpu, share }, &process.quote))
    });
    Load { state: known.map_or(CpuLoad::Unknown, |known| known.0), quote: known.map(|known| known.1.clone()) }
}

/// Threads that serve soft interrupts, with their CPU and its share that they take, per cent.
fn threads<'a>(case: &Case<'a>) -> impl Iterator<Item = (u32, &'a Process, f64)> {
    case.snapshot().processes.iter().filter_map(|process| {
        let cpu = process.name.strip_prefix("ksoftirqd/")?.parse().ok()?;
        Some((cpu, process, process.cpu?))
    })
}

/// The only CPU whose thread is at work, where that thread fills it.
pub(crate) fn only_full_thread<'a>(case: &Case<'a>) -> Option<(u32, &'a Process, f64)> {
    let mut busy = threads(case).filter(|(.., share)| *share >= THREAD_BUSY);
    let first = busy.next()?;
    (busy.next().is_none() && first.2 >= THREAD_FULL).then_some(first)
}

/// Time that may be receive work, per cent. Where soft interrupts are not counted separately, as on the BSDs, it hides in
/// system and interrupt time; where they are, system time is the processes' own, and ksoftirqd's counts as softirq
/// (`irqtime_account_process_tick()` in kernel/sched/cputime.c).
fn receiving(load: &host::Load) -> f64 {
    load.interrupt + load.softirq.unwrap_or(load.system)
}

/// Time in interrupts, soft ones included, per cent; `None` where soft interrupts are not counted separately.
pub(crate) fn receiving_in_softirq(load: &host::Load) -> Option<f64> {
    Some(load.interrupt + load.softirq?)
}

fn state(cpu: u32, load: &host::Load) -> CpuLoad {
    match load.idle {
        idle if idle < FULL && receiving(load) >= RECEIVING => CpuLoad::Full { cpu, idle },
        idle if idle < FULL => CpuLoad::OtherWork { cpu, idle, receiving: receiving(load) },
        idle if idle >= ROOM => CpuLoad::Room { cpu, idle },
        idle => CpuLoad::Between { cpu, idle },
    }
}

impl Load {
    /// Whether receive work fills the CPU.
    pub fn is_full(&self) -> bool {
        matches!(self.state, CpuLoad::Full { .. } | CpuLoad::Ksoftirqd { .. })
    }

    /// Whether the load says that receive work is not the limit: spreading it would only cost.
    pub fn is_no_limit(&self) -> bool {
        matches!(self.state, CpuLoad::Room { .. } | CpuLoad::OtherWork { .. })
    }

    /// How grave a bottleneck at this CPU is: `unless` where the load does not say.
    pub fn severity(&self, unless: Severity) -> Severity {
        match self.state {
            _ if self.is_full() => Severity::Critical,
            _ if self.is_no_limit() => Severity::Info,
            _ => unless,
        }
    }
}

/// All CPUs, where receive work leaves none of them time.
pub(crate) struct AllFull<'c> {
    /// How many they are, where the text says so.
    pub cpus: Option<usize>,
    /// Mean idle time and mean receive work, per cent.
    pub idle: f64,
    pub work: f64,
    pub quotes: Vec<&'c Quote>,
}

pub(crate) fn all_full<'c>(case: &Case<'c>) -> Option<AllFull<'c>> {
    full_by_each(case).or_else(|| full_together(case))
}

/// Lines of evidence.
const MOST_QUOTES: usize = 4;

fn full_by_each<'c>(case: &Case<'c>) -> Option<AllFull<'c>> {
    let loads = &case.snapshot().cpus.load;
    let is_all = case.snapshot().cpu_count().is_none_or(|count| loads.len() == count as usize);
    let count = loads.len() as f64;
    let mean = |of: fn(&host::Load) -> f64| loads.values().map(|load| of(&load.value)).sum::<f64>() / count;
    let (idle, work) = (mean(|load| load.idle), mean(receiving));
    let is_full = loads.len() > 1 && is_all && loads.values().all(|load| load.value.idle < ROOM);
    let quotes = loads.values().map(|load| &load.quote).take(MOST_QUOTES).collect();
    (is_full && idle < FULL && work >= RECEIVING).then_some(AllFull {
        cpus: Some(loads.len()),
        idle,
        work,
        quotes,
    })
}

/// CPUs that a machine is taken to have at most where nothing says how many.
const MANY: u32 = 16;
/// Per cent of all CPUs together that no thread takes of two or more.
const OF_ONE: f64 = 60.0;
/// Per cent from which a thread's line is evidence of a full machine.
const PART: f64 = 10.0;

/// By the line of all CPUs together, as BusyBox's top has it, where so little of their time is idle that one alone has none left
/// even if all of it is that CPU's.
fn full_together<'c>(case: &Case<'c>) -> Option<AllFull<'c>> {
    let snapshot = case.snapshot();
    let all = snapshot.cpus.all.as_ref().filter(|_| snapshot.cpus.load.len() < 2)?;
    let (idle, work) = (all.value.idle, receiving(&all.value));
    let count = snapshot.cpu_count();
    let threads = snapshot.processes.iter().filter(|process| process.name.starts_with("ksoftirqd/"));
    let has_one = threads.clone().any(|thread| thread.of_all.is_some_and(|share| share >= OF_ONE));
    let is_full = idle < FULL && idle * f64::from(count.unwrap_or(MANY)) < ROOM && work >= RECEIVING;
    let busy = threads.filter(|thread| thread.of_all.or(thread.cpu).is_some_and(|share| share >= PART));
    let quotes = std::iter::once(&all.quote).chain(busy.map(|thread| &thread.quote));
    (is_full && !has_one && count != Some(1)).then(|| AllFull {
        cpus: count.map(|count| count as usize),
        idle,
        work,
        quotes: quotes.take(MOST_QUOTES).collect(),
    })
}

/// Whether the text shows that a CPU has time left, or other work than that of reception.
pub(crate) fn not_all_full(case: &Case<'_>) -> bool {
    let cpus = &case.snapshot().cpus;
    let has_time = |all: &host::Load| all.idle >= FULL || receiving(all) < RECEIVING;
    cpus.load.len() > 1 || cpus.all.as_ref().is_some_and(|all| has_time(&all.value))
}

/// The command whose output shows the load of each CPU. BusyBox's top has it only where somebody presses a key, and procps' prints
/// it only where the user's own settings say so.
pub(crate) fn command(case: &Case<'_>) -> &'static str {
    let snapshot = case.snapshot();
    let is_busybox = snapshot.is_openwrt() || snapshot.processes.iter().any(|one| one.of_all.is_some());
    let linux = match is_busybox {
        true if snapshot.read.contains_key("top") => "cat /proc/stat, twice under load",
        true => "top -b -n 1",
        false => "mpstat -P ALL 1 1",
    };
    case.by_system(linux, "top -aSP", "top -b -1")
}

/// The only CPU that interrupts fill, soft ones where the system counts these apart, while all others have time left.
pub(crate) struct OneFull<'c> {
    pub cpu: u32,
    /// Part of its time that they take, and that is idle, per cent.
    pub share: f64,
    pub idle: f64,
    /// Other CPUs whose load is known.
    pub others: usize,
    pub quote: &'c Quote,
}

pub(crate) fn one_full<'c>(case: &Case<'c>) -> Option<OneFull<'c>> {
    let loads = &case.snapshot().cpus.load;
    let has_time = |load: &host::Load| load.idle >= ROOM;
    let mut busy = loads.iter().filter(|(_, load)| !has_time(&load.value));
    let (&cpu, load) = busy.next().filter(|_| loads.len() > 1)?;
    let share = load.value.interrupt + load.value.softirq.unwrap_or(0.0);
    let is_full = load.value.idle < FULL && share >= RECEIVING;
    (is_full && busy.next().is_none()).then_some(OneFull {
        cpu,
        share,
        idle: load.value.idle,
        others: loads.len() - 1,
        quote: &load.quote,
    })
}

/// Per cent of a CPU from which a thread that polls is full.
const POLLS: f64 = 90.0;

/// Whether a CPU is the limit.
pub(crate) enum Limit {
    Reached(Vec<Quote>),
    NotReached,
    Unknown,
}

impl Limit {
    pub fn of(case: &Case<'_>) -> Limit {
        let loads = &case.snapshot().cpus.load;
        let full = loads.keys().map(|cpu| of(case, Some(*cpu))).find(Load::is_full);
        let thread = || only_full_thread(case).map(|(_, process, _)| process.quote.clone());
        let polls = || {
            let mut threads = case.snapshot().processes.iter().filter(|one| one.name.starts_with("napi/"));
            threads.find(|one| one.cpu.is_some_and(|share| share >= POLLS)).map(|one| one.quote.clone())
        };
        let one = full.and_then(|load| load.quote).or_else(thread).or_else(polls);
        match (one, all_full(case)) {
            (Some(quote), _) => Limit::Reached(vec![quote]),
            (None, Some(all)) => Limit::Reached(all.quotes.into_iter().cloned().collect()),
            (None, None) if loads.is_empty() => Limit::Unknown,
            (None, None) => Limit::NotReached,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_that_a_user_process_fills_is_no_receive_limit() {
        let of = |user, system, interrupt, softirq, idle| {
            let load = host::Load { user, system, interrupt, softirq, idle };
            let load = Load { state: state(0, &load), quote: None };
            (load.is_full(), load.is_no_limit())
        };
        for (user, softirq, idle, expected) in [
            (0.0, 98.0, 2.0, (true, false)),
            (97.0, 1.0, 2.0, (false, true)),
            (48.0, 49.0, 3.0, (false, true)),
            (25.0, 68.3, 6.7, (true, false)),
            (1.0, 60.0, 39.0, (false, true)),
            (1.0, 80.0, 19.0, (false, false)),
        ] {
            assert_eq!(of(user, 0.0, 0.0, Some(softirq), idle), expected, "{user} {softirq} {idle}");
        }
        assert_eq!(of(0.0, 90.0, 0.0, Some(8.0), 2.0), (false, true), "system time is the processes' own");
        assert_eq!(
            of(0.0, 20.0, 75.0, None, 2.0),
            (true, false),
            "soft interrupts are not counted separately"
        );
    }
}
