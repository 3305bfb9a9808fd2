//! What rxlane's own XDP program does with a device's frames, as `rxlane steer status` counted it.

use crate::case::{enough, since};
use crate::device::Device;
use crate::distribution::NEARLY_ALL;
use crate::facts::{self, DropCounter};
use crate::loss::{self, Lost};
use crate::{Case, ENOUGH_BETWEEN};
use host::{Counter, Delta, Load, Quote, Shares, Steering, Xdp};

/// What the program counts as steered (`Reason::Steered` of crate `xdp`).
const STEERED: &str = "steered";

/// Part of a device's frames that must be steered for its load to be spread.
const MOST: f64 = 0.5;

/// The same where the program says that it steers the class of frames that is in question: others may arrive
/// besides, which the device spreads.
const SOME: f64 = 0.1;

/// Idle time below which a CPU has nothing left, and part of its time that must be the kernel's, per cent.
const FULL: f64 = 10.0;
const KERNEL: f64 = 50.0;

/// A program that is attached.
pub(crate) struct Steered<'c> {
    pub steering: &'c Steering,
    name: &'c str,
    counted: Option<Counted<'c>>,
    targets: Option<(Vec<u32>, Shares)>,
}

/// Frames that the program saw.
struct Counted<'c> {
    steered: u64,
    shares: Shares,
    /// Why it passed most of those that it did not steer, and their number.
    passed: Option<(&'c str, u64)>,
}

/// Whether the program steers the frames that a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handover<'c> {
    On,
    /// It is attached for other classes, these.
    OtherClasses(&'c [String]),
    /// It leaves most of them where they arrive.
    Little,
}

/// What is known of the program on a device; `None` where none is attached, or nobody looked.
pub(crate) fn of<'c>(device: &Device<'c>) -> Option<Steered<'c>> {
    let steering = device.interface.steering.as_ref().filter(|steering| *steering.mode.get() != Xdp::Off)?;
    let shares = |counters| device.case.shares(counters).filter(|s| s.total() >= enough(s.basis));
    let counted = || {
        let reasons = steering.reasons.iter().map(|(name, counter)| (name.as_str(), counter));
        let (names, counters) = on_one_basis(reasons);
        let shares = shares(counters)?;
        let by_name = || names.iter().zip(&shares.counts);
        let steered = by_name().find(|(name, _)| **name == STEERED).map_or(0, |(_, count)| *count);
        let passed = by_name().filter(|(name, count)| **name != STEERED && **count > 0);
        let passed = passed.max_by_key(|(_, count)| **count).map(|(name, count)| (*name, *count));
        Some(Counted { steered, passed, shares })
    };
    let targets = || {
        let known = steering.cpus.iter().filter_map(|(cpu, target)| Some((*cpu, target.frames.as_ref()?)));
        let (cpus, counters) = on_one_basis(known);
        Some((cpus, shares(counters)?))
    };
    Some(Steered { steering, name: &device.interface.name, counted: counted(), targets: targets() })
}

/// The first device whose frames are steered.
pub(crate) fn any<'c>(case: &'c Case<'c>) -> Option<Steered<'c>> {
    case.devices().filter_map(|device| of(&device)).find(|steered| steered.handover(None) == Handover::On)
}

/// Whether two samples show next to no frames of a device that is steered.
pub(crate) fn is_idle(case: &Case<'_>) -> bool {
    case.devices()
        .filter(|device| of(device).is_some_and(|steered| steered.handover(None) == Handover::On))
        .any(|device| {
            let packets = device.interface.totals.packets.as_ref();
            packets.and_then(Counter::counted).is_some_and(|frames| frames < ENOUGH_BETWEEN)
        })
}

/// What appeared in the second sample alone was not there before, and is no reason to compare what has two with
/// totals.
fn on_one_basis<'c, K>(counters: impl Iterator<Item = (K, &'c Counter)>) -> (Vec<K>, Vec<&'c Counter>) {
    let all: Vec<(K, &Counter)> = counters.collect();
    let has_two = |counter: &Counter| counter.delta() != Delta::OneSample;
    let is_sampled = all.iter().any(|(_, counter)| has_two(counter));
    all.into_iter().filter(|(_, counter)| !is_sampled || has_two(counter)).unzip()
}

impl<'c> Steered<'c> {
    /// Part of the frames that it steers, 0 to 1; `None` where too few were counted.
    pub fn share(&self) -> Option<f64> {
        self.counted.as_ref().map(|counted| counted.steered as f64 / counted.shares.total().max(1) as f64)
    }

    /// What it does with frames of `class`, or with the device's load.
    pub fn handover(&self, class: Option<&str>) -> Handover<'c> {
        let classes = self.steering.classes.as_ref().map(|seen| seen.get());
        let is_named = match (class, classes) {
            (Some(class), Some(classes)) if !classes.iter().any(|known| known == class) => {
                return Handover::OtherClasses(classes);
            }
            (Some(_), Some(_)) => true,
            _ => false,
        };
        let least = if is_named { SOME } else { MOST };
        if self.share().is_none_or(|share| share >= least) { Handover::On } else { Handover::Little }
    }

    pub fn cpus(&self) -> Vec<u32> {
        self.steering.cpus.keys().copied().collect()
    }

    pub fn fact(&self) -> facts::Steering {
        let basis = self.counted.as_ref().map(|counted| since(counted.shares.basis));
        facts::Steering {
            cpus: self.cpus(),
            generic: *self.steering.mode.get() == Xdp::Generic,
            share: self.share().zip(basis),
        }
    }

    /// Why it passed most of those frames that it did not steer, and their part of all.
    pub fn passed(&self) -> Option<(f64, String)> {
        let counted = self.counted.as_ref()?;
        let (reason, frames) = counted.passed?;
        Some((frames as f64 / counted.shares.total().max(1) as f64, reason.to_owned()))
    }

    /// The busiest target, with its share.
    fn busiest(&self) -> Option<(u32, f64)> {
        let (cpus, shares) = self.targets.as_ref()?;
        let (place, share) = shares.largest()?;
        Some((*cpus.get(place)?, share))
    }

    /// The target that has nearly all of the frames although there are others, with its share.
    pub fn uneven(&self) -> Option<(u32, f64)> {
        let several = self.targets.as_ref().is_some_and(|(cpus, _)| cpus.len() > 1);
        self.busiest().filter(|(_, share)| several && *share >= NEARLY_ALL)
    }

    /// The busiest target and its idle time, where it has none left. What a target does for a frame counts as system
    /// time: the thread of a cpumap is a process that disables soft interrupts and serves none
    /// (`cpu_map_kthread_run()` in kernel/bpf/cpumap.c, `account_system_index_time()` and its callers in
    /// kernel/sched/cputime.c).
    pub fn full_target(&self, case: &Case<'c>) -> Option<(u32, f64, &'c Quote)> {
        let (cpu, _) = self.busiest()?;
        let load = case.snapshot().cpus.load.get(&cpu)?;
        is_full(&load.value).then_some((cpu, load.value.idle, &load.quote))
    }

    pub fn losses(&self, case: &Case<'_>) -> Vec<Lost<'c>> {
        let lost = self.steering.cpus.iter().filter_map(|(&cpu, target)| {
            let counter = DropCounter::Target { interface: self.name.to_owned(), cpu };
            loss::of(case, counter, target.drops.as_ref()?, target.frames.as_ref())
        });
        lost.collect()
    }

    /// Lines of evidence: the mode, what was steered, and the busiest target.
    pub fn quotes(&self) -> impl Iterator<Item = &'c Quote> + use<'c> {
        let counter = |name: &str| self.steering.reasons.get(name).map(Counter::quote);
        let passed = self.counted.as_ref().and_then(|counted| counted.passed);
        let passed =
            passed.filter(|_| self.handover(None) != Handover::On).and_then(|(name, _)| counter(name));
        let busiest = self.busiest().and_then(|(cpu, _)| self.steering.cpus.get(&cpu)?.frames.as_ref());
        let quotes =
            [Some(self.steering.mode.quote()), counter(STEERED), passed, busiest.map(Counter::quote)];
        quotes.into_iter().flatten()
    }

    /// Whether a living process moves flows between its targets.
    pub fn rebalances(&self) -> bool {
        self.steering.rebalances.as_ref().is_some_and(|seen| *seen.get())
    }
}

fn is_full(load: &Load) -> bool {
    load.idle < FULL && load.interrupt + load.softirq.unwrap_or(0.0) + load.system >= KERNEL
}
