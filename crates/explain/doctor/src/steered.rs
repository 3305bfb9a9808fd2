//! What rxlane's own XDP program does with a device's frames, as `rxlane steer status` counted it.

use crate::case::enough;
use crate::heat::HOT;
use crate::{Case, loss};
use format::Share;
use host::{Basis, Counter, Delta, Interface, Load, Quote, Shares, Steering, Xdp};

/// What the program counts as handed on (`Reason::Steered` of crate `xdp`).
const STEERED: &str = "steered";

/// Part of a device's frames that must be handed on for its load to be dealt.
const MOST: f64 = 0.5;

/// The same where the program says that it hands on the class of frames that is asked about: others may come in
/// besides, which the device spreads.
const SOME: f64 = 0.1;

/// Idle time below which a CPU has nothing left, and part of its time that must be the kernel's, per cent.
const FULL: f64 = 10.0;
const KERNEL: f64 = 50.0;

/// A program that is attached.
pub(crate) struct Steered<'a> {
    /// What was read of it.
    pub steering: &'a Steering,
    /// The interface's name.
    name: &'a str,
    counted: Option<Counted>,
    targets: Option<Targets>,
}

/// Frames that the program saw.
struct Counted {
    steered: u64,
    total: u64,
    basis: Basis,
    /// Why most of those were left that it did not hand on, and their number.
    left: Option<(String, u64)>,
}

/// Frames by target.
pub(crate) struct Targets {
    /// CPUs, in the order of the shares.
    pub cpus: Vec<u32>,
    /// Frames.
    pub shares: Shares,
}

/// Whether the program deals the frames that a rule is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Hands {
    /// It does, as far as was counted.
    On,
    /// It is attached for other classes, these.
    OtherClasses(Vec<String>),
    /// It leaves most of them where they arrive.
    Little,
}

/// What is known of the program on a device; `None` where none is attached, or nobody looked.
pub(crate) fn of<'a>(case: &Case<'_>, interface: &'a Interface) -> Option<Steered<'a>> {
    let steering = interface.steering.as_ref()?;
    if *steering.mode.get() == Xdp::Off {
        return None;
    }
    let interval = case.snapshot().interval;
    let counted = || {
        let (names, counters) = on_one_basis(steering.reasons.iter());
        let shares = Shares::of(counters, interval).filter(is_enough)?;
        let by_name = || names.iter().zip(&shares.counts);
        let steered = by_name().find(|(name, _)| **name == STEERED).map_or(0, |(_, count)| *count);
        let left = by_name().filter(|(name, count)| **name != STEERED && **count > 0);
        let left = left.max_by_key(|(_, count)| **count).map(|(name, count)| ((*name).clone(), *count));
        Some(Counted { steered, total: shares.total(), basis: shares.basis, left })
    };
    let targets = || {
        let known = steering.cpus.iter().filter_map(|(cpu, target)| Some((*cpu, target.frames.as_ref()?)));
        let (cpus, counters) = on_one_basis(known);
        let shares = Shares::of(counters, interval).filter(is_enough)?;
        Some(Targets { cpus, shares })
    };
    Some(Steered { steering, name: &interface.name, counted: counted(), targets: targets() })
}

/// The first device whose frames are handed on.
pub(crate) fn any<'a>(case: &Case<'a>) -> Option<Steered<'a>> {
    case.devices().filter_map(|device| of(case, device)).find(|steered| steered.hands(None) == Hands::On)
}

/// What appeared in the second sample alone was not there before, and is no reason to compare what has two with
/// totals.
fn on_one_basis<'c, K>(counters: impl Iterator<Item = (K, &'c Counter)>) -> (Vec<K>, Vec<&'c Counter>) {
    let all: Vec<(K, &Counter)> = counters.collect();
    let has_two = |counter: &Counter| counter.delta() != Delta::OneSample;
    let is_sampled = all.iter().any(|(_, counter)| has_two(counter));
    all.into_iter().filter(|(_, counter)| !is_sampled || has_two(counter)).unzip()
}

fn is_enough(shares: &Shares) -> bool {
    shares.total() >= enough(shares.basis)
}

impl Steered<'_> {
    /// Whether the kernel runs it after it made the socket buffer.
    pub fn is_generic(&self) -> bool {
        *self.steering.mode.get() == Xdp::Generic
    }

    /// Part of the frames that it hands on, 0 to 1; `None` where too few were counted.
    pub fn share(&self) -> Option<f64> {
        self.counted.as_ref().map(|counted| counted.steered as f64 / counted.total.max(1) as f64)
    }

    /// What it does with frames of `class`, or with the device's load.
    pub fn hands(&self, class: Option<&str>) -> Hands {
        let classes = self.steering.classes.as_ref().map(|seen| seen.get());
        let is_named = match (class, classes) {
            (Some(class), Some(classes)) if !classes.iter().any(|known| known == class) => {
                return Hands::OtherClasses(classes.clone());
            }
            (Some(_), Some(_)) => true,
            _ => false,
        };
        let least = if is_named { SOME } else { MOST };
        if self.share().is_none_or(|share| share >= least) { Hands::On } else { Hands::Little }
    }

    /// Its targets with their frames; `None` where too few were counted.
    pub fn targets(&self) -> Option<&Targets> {
        self.targets.as_ref()
    }

    /// CPUs that it may hand frames to.
    pub fn cpus(&self) -> Vec<u32> {
        self.steering.cpus.keys().copied().collect()
    }

    /// What it does, as a clause: `rxlane steers 97.2 % of the frames to CPUs 1-3 (counted between the samples)`.
    pub fn clause(&self) -> String {
        let cpus = self.cpus();
        let to = match cpus.len() {
            0 => "other CPUs".to_owned(),
            1 => format!("CPU {}", crate::steering::words(&cpus)),
            _ => format!("CPUs {}", crate::steering::words(&cpus)),
        };
        let generic = if self.is_generic() { ", in generic mode (`xdp-generic-only`)" } else { "" };
        match (&self.counted, self.share()) {
            (Some(counted), Some(share)) => {
                let basis = match counted.basis {
                    Basis::Between(_) => "between the samples",
                    Basis::SinceStart => "since it was attached",
                };
                format!(
                    "rxlane steers {} of the frames to {to}{generic} (counted {basis})",
                    Share::fraction(share).small()
                )
            }
            _ => format!("rxlane steers frames to {to}{generic}; too few were counted to say how many"),
        }
    }

    /// Why it left most of those that it did not hand on, in words.
    pub fn left(&self) -> Option<String> {
        let counted = self.counted.as_ref()?;
        let (reason, frames) = counted.left.as_ref()?;
        let share = *frames as f64 / counted.total.max(1) as f64;
        Some(format!("{} are counted as {reason}", Share::fraction(share).small()))
    }

    /// The target that has nearly all of the frames although there are others, with its share.
    pub fn lopsided(&self) -> Option<(u32, f64)> {
        let targets = self.targets()?;
        let (place, share) = targets.shares.largest()?;
        let cpu = *targets.cpus.get(place)?;
        (targets.cpus.len() > 1 && share >= HOT).then_some((cpu, share))
    }

    /// The busiest target, where it has no time left. What a target does for a frame counts as system time: the
    /// thread of a cpumap is a process that disables soft interrupts and serves none (`cpu_map_kthread_run()` in
    /// kernel/bpf/cpumap.c, `account_system_index_time()` and its callers in kernel/sched/cputime.c).
    pub fn full_target(&self, case: &Case<'_>) -> Option<(u32, f64, Quote)> {
        let targets = self.targets()?;
        let (place, _) = targets.shares.largest()?;
        let cpu = *targets.cpus.get(place)?;
        let load = case.snapshot().cpus.load.get(&cpu)?;
        is_full(&load.value).then(|| (cpu, load.value.idle, load.quote.clone()))
    }

    /// Targets whose queue was full, by their drop counters.
    pub fn losses(&self, case: &Case<'_>) -> Vec<(u32, loss::Loss)> {
        let lost = self.steering.cpus.iter().filter_map(|(&cpu, target)| {
            let name = format!("the drop counter of the cpumap queue from {} to CPU {cpu}", self.name);
            let loss = loss::of(case, &name, target.drops.as_ref()?, target.frames.as_ref())?;
            Some((cpu, loss))
        });
        lost.collect()
    }

    /// Lines of evidence: the mode, what was handed on, and the busiest target.
    pub fn quotes(&self) -> Vec<Quote> {
        let counter = |name: &str| self.steering.reasons.get(name).map(Counter::quote);
        let left = self.counted.as_ref().and_then(|counted| counted.left.as_ref());
        let left = left.filter(|_| self.hands(None) != Hands::On).and_then(|(reason, _)| counter(reason));
        let busiest = self.targets().and_then(|targets| {
            let cpu = targets.cpus.get(targets.shares.largest()?.0)?;
            self.steering.cpus.get(cpu)?.frames.as_ref()
        });
        [Some(self.steering.mode.quote()), counter(STEERED), left, busiest.map(Counter::quote)]
            .into_iter()
            .flatten()
            .cloned()
            .collect()
    }

    /// Whether a living process moves flows between its targets.
    pub fn rebalances(&self) -> bool {
        self.steering.rebalances.as_ref().is_some_and(|seen| *seen.get())
    }
}

fn is_full(load: &Load) -> bool {
    load.idle < FULL && load.interrupt + load.softirq.unwrap_or(0.0) + load.system >= KERNEL
}
