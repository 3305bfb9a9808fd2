//! Whose interrupts a CPU serves: `cpu-shared`.

use crate::Case;
use crate::case::{enough, since};
use crate::cores::Cores;
use crate::facts::{CpuShared, Effect, Fact};
use crate::finding::{Finding, Severity, found};
use crate::placement::Placement;
use crate::rule::Judgement;
use crate::rules::interrupts;
use crate::vectors::{self, Vector};
use crate::{fixed, load, remedies};
use host::Basis;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Part of the busiest network device's interrupts from which a source takes part of a CPU that counts.
pub(crate) const BUSY: f64 = 0.05;
/// The same from which a network device is named along with busier ones.
pub(crate) const SEEN: f64 = 0.001;
/// An interrupt that one CPU serves.
pub(crate) struct Source<'c> {
    /// The network interface, or the handler's name: a disk, a USB controller, a radio.
    owner: String,
    pub is_network: bool,
    pub cpu: u32,
    pub vector: Vector<'c>,
    /// Interrupts of all vectors of the owner that the CPU serves.
    of_owner: u64,
}

impl Source<'_> {
    /// Whether an affinity that was set since says that another CPU serves it by now.
    pub fn is_elsewhere(&self) -> bool {
        self.vector.is_elsewhere(self.cpu)
    }

    /// Whether it took such a part of the interrupts of the busiest network device.
    pub fn is_part(&self, part: f64, most: u64) -> bool {
        self.vector.total as f64 >= part * most as f64
    }

    /// Whether its owner takes part of the CPU that counts, with this vector or several.
    pub fn is_busy(&self, most: u64) -> bool {
        self.of_owner as f64 >= BUSY * most as f64 && self.is_part(SEEN, most)
    }
}

/// The network device that takes nearly all interrupts of a CPU.
pub(crate) struct Dominant<'s, 'c> {
    pub owner: &'s str,
    /// Part of the interrupts of devices that the CPU serves.
    pub share: f64,
    /// Its vectors there.
    vectors: Vec<&'s Source<'c>>,
    /// Whether it has others elsewhere that count.
    is_elsewhere_too: bool,
}

/// The network device next to which so many interrupts of another one on the same CPU are a minor part.
pub(crate) fn dominant<'s, 'c>(
    sources: &'s [Source<'c>],
    cpu: u32,
    interrupts: u64,
) -> Option<Dominant<'s, 'c>> {
    let here = || sources.iter().filter(|source| source.cpu == cpu && !source.is_elsewhere());
    let first = here().filter(|source| source.is_network).max_by_key(|source| source.of_owner)?;
    let all: u64 = here().map(|source| source.vector.total).fold(0, u64::saturating_add);
    let elsewhere = sources.iter().filter(|source| source.owner == first.owner && source.cpu != cpu);
    let elsewhere: u64 = elsewhere.map(|source| source.vector.total).fold(0, u64::saturating_add);
    ((interrupts as f64) < BUSY * first.of_owner as f64).then(|| Dominant {
        owner: &first.owner,
        share: first.of_owner as f64 / all.max(1) as f64,
        vectors: here().filter(|source| source.owner == first.owner).collect(),
        is_elsewhere_too: elsewhere as f64 >= BUSY * first.of_owner as f64,
    })
}

/// Interrupts of devices other than this that a CPU serves.
pub(crate) fn of_others(sources: &[Source<'_>], cpu: u32, owner: &str) -> u64 {
    let others = sources.iter().filter(|source| source.cpu == cpu && source.owner != owner);
    others.map(|source| source.vector.total).fold(0, u64::saturating_add)
}

/// `cpu-shared`: one CPU serves the interrupts of several busy devices, a network card among them, while others serve none.
pub(super) fn shared(case: &Case<'_>) -> Judgement {
    if case.snapshot().cpu_count() == Some(1) {
        return Judgement::DoesNotApply;
    }
    let sources = sources(case);
    let Some(most) = busiest(&sources) else { return Judgement::lacks("cat /proc/interrupts") };
    let busy: Vec<&Source<'_>> = sources.iter().filter(|source| source.is_busy(most)).collect();
    let free = free(case, &busy);
    if free.is_empty() {
        return Judgement::Clear;
    }
    match shared_cpu(&busy) {
        Some(cpu) => finding(case, cpu, &together(&sources, most, cpu), free).into(),
        None => dominated(case, &sources, most, free).map_or(Judgement::Clear, Judgement::from),
    }
}

/// A CPU that serves all vectors of a device that are enough to limit it, and a single one of another device that counts so
/// many more that those are a minor part of its work: what helps there is to spread the other's.
fn dominated(case: &Case<'_>, sources: &[Source<'_>], most: u64, free: Vec<u32>) -> Option<Finding> {
    let mut limited = case.devices().filter_map(|device| interrupts::limiting_cpu(&device));
    let (cpu, dominant) = limited.find_map(|(cpu, total)| Some((cpu, dominant(sources, cpu, total)?)))?;
    let [only] = &dominant.vectors[..] else { return None };
    if dominant.is_elsewhere_too {
        return None;
    }
    let load = load::of(case, Some(cpu));
    let together = together(sources, most, cpu);
    let spread = case.devices().find(|device| device.word() == dominant.owner).map(|device| {
        let queue = only.vector.interrupt.queue.unwrap_or(0);
        let mut rps = device.rps(&[queue]);
        if let Effect::Rps { conditional, .. } = &mut rps.effect {
            *conditional = !load.is_full();
        }
        [rps].into_iter().chain(device.steer_queue(queue)).collect::<Vec<_>>()
    });
    let owner = dominant.owner.to_owned();
    let finding = stated(case, cpu, &together, free, load.severity(Severity::Warning));
    let finding = finding.says([Fact::MostlyOne { owner }]).load(&load).fix(spread.into_iter().flatten());
    Some(match only.vector.interrupt.interface.as_deref() {
        Some(name) => finding.about(name),
        None => finding,
    })
}

/// The sources that share a CPU, the busiest first, as a finding.
fn stated(
    case: &Case<'_>,
    cpu: u32,
    together: &[&Source<'_>],
    free: Vec<u32>,
    severity: Severity,
) -> Finding {
    let basis = together.first().map_or(Basis::SinceStart, |source| source.vector.basis);
    let sum = |counted: &dyn Fn(&Source<'_>) -> u64| -> f64 {
        together.iter().map(|source| counted(source)).fold(0, u64::saturating_add) as f64
    };
    let all = sum(&|source| source.vector.total).max(1.0);
    let of = |owner: &String| sum(&|source| if source.owner == *owner { source.vector.total } else { 0 });
    let with_share = |owner: String| (of(&owner) / all, owner);
    let mut owners: Vec<(f64, String)> = owners(together).into_iter().map(with_share).collect();
    owners.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let (shares, owners) = owners.into_iter().unzip();
    let on = |source: &Source<'_>, cpu: &u32| source.vector.by_cpu.get(cpu).copied().unwrap_or(0);
    let by_free = sum(&|source| free.iter().map(|cpu| on(source, cpu)).fold(0, u64::saturating_add)) / all;
    let is_moved = basis == Basis::SinceStart && by_free >= SEEN;
    let fact = Fact::CpuShared(CpuShared { cpu, owners, shares, free, by_free, since: since(basis) });
    found(severity, fact)
        .says((is_moved && case.snapshot().interval.is_none()).then_some(Fact::MovedSince))
        .quotes(together.iter().map(|source| &source.vector.interrupt.quote).take(vectors::MOST_QUOTES))
}

/// CPUs that serve none of these, big ones first.
pub(crate) fn free(case: &Case<'_>, busy: &[&Source<'_>]) -> Vec<u32> {
    let taken: BTreeSet<u32> = busy.iter().map(|source| source.cpu).collect();
    let mut free: Vec<u32> = case.machine().cpus().difference(&taken).copied().collect();
    if let Some(cores) = Cores::of(case) {
        free.sort_by_key(|cpu| cores.little.contains(cpu));
    }
    free
}

/// What a CPU serves, the busiest first.
pub(crate) fn together<'s, 'c>(sources: &'s [Source<'c>], most: u64, cpu: u32) -> Vec<&'s Source<'c>> {
    let least = |source: &Source<'_>| if source.is_network { SEEN } else { BUSY };
    let is_here = |source: &&Source<'_>| {
        source.cpu == cpu && !source.is_elsewhere() && source.is_part(least(source), most)
    };
    let mut together: Vec<&Source<'_>> = sources.iter().filter(is_here).collect();
    together.sort_by_key(|source| Reverse(source.vector.total));
    together
}

/// The CPU that serves several of these devices, a network card among them, and of several the one with the most interrupts.
pub(crate) fn shared_cpu(busy: &[&Source<'_>]) -> Option<u32> {
    let mut by_cpu: BTreeMap<u32, Vec<&Source<'_>>> = BTreeMap::new();
    for source in busy.iter().filter(|source| !source.is_elsewhere()) {
        by_cpu.entry(source.cpu).or_default().push(source);
    }
    let is_shared = |together: &[&Source<'_>]| {
        let owners: BTreeSet<&str> = together.iter().map(|source| source.owner.as_str()).collect();
        owners.len() > 1 && together.iter().any(|source| source.is_network)
    };
    let total = |together: &[&Source<'_>]| {
        together.iter().map(|source| source.vector.total).fold(0, u64::saturating_add)
    };
    let shared = by_cpu.into_iter().filter(|(_, together)| is_shared(together));
    shared.max_by_key(|(_, together)| total(together)).map(|(cpu, _)| cpu)
}

/// The names of these devices, each once.
pub(super) fn owners(together: &[&Source<'_>]) -> Vec<String> {
    let mut owners: Vec<String> = Vec::new();
    for source in together {
        if !owners.contains(&source.owner) {
            owners.push(source.owner.clone());
        }
    }
    owners
}

/// What is said of the sources that share a CPU, the busiest first.
fn finding(case: &Case<'_>, cpu: u32, together: &[&Source<'_>], free: Vec<u32>) -> Finding {
    let owners = owners(together);
    let second = together.iter().find(|source| owners.first() != Some(&source.owner));
    let is_little = second.is_none_or(|second| vectors::is_little(second.vector.basis, second.vector.total));
    let load = load::of(case, Some(cpu));
    let severity = load.severity(if is_little { Severity::Info } else { Severity::Warning });
    let vectors = together.iter().map(|source| &source.vector);
    let fixed: Vec<&Vector<'_>> = vectors.filter(|vector| vector.is_fixed(case)).collect();
    let placement = Placement::of(case);
    let is_first = placement.is_from_little();
    let (before, after) = if is_first { (placement.remedy(), None) } else { (None, placement.remedy()) };
    stated(case, cpu, together, free, severity)
        .says(is_little.then_some(Fact::SoFewInterrupts))
        .load(&load)
        .fix(before)
        .fix(remedies::packet_steering(case).filter(|_| fixed.len() < 2))
        .fix(after)
        .fix(fixed::instead_of_affinity(case, fixed.get(1..).unwrap_or_default()))
}

/// Most interrupts of a network device; `None`: there is none.
pub(crate) fn busiest(sources: &[Source<'_>]) -> Option<u64> {
    sources.iter().filter(|source| source.is_network).map(|source| source.vector.total).max()
}

/// CPUs that serve a busy device, whatever it is.
pub(crate) fn busy_cpus(case: &Case<'_>) -> BTreeSet<u32> {
    let sources = sources(case);
    let least = busiest(&sources).map_or(f64::INFINITY, |most| BUSY * most as f64);
    let busy = sources.iter().filter(|source| source.vector.total as f64 >= least && !source.is_elsewhere());
    busy.map(|source| source.cpu).collect()
}

/// Interrupts of devices that one CPU each serves. Those between processors and of timers are no device's.
pub(crate) fn sources<'c>(case: &Case<'c>) -> Vec<Source<'c>> {
    let devices: BTreeMap<&str, String> =
        case.devices().map(|device| (device.interface.name.as_str(), device.word())).collect();
    let source = |interrupt: &'c host::Interrupt| {
        let is_numbered = interrupt.vector.bytes().all(|digit| digit.is_ascii_digit());
        let action = interrupt.action.as_str();
        if !is_numbered || action.is_empty() || action.starts_with("IPI") || action.contains("timer") {
            return None;
        }
        let vector = Vector::of(case, interrupt)?;
        let cpu = vector.cpu().filter(|_| vector.total >= enough(vector.basis))?;
        let owner = interrupt.interface.as_deref().and_then(|name| devices.get(name).cloned());
        let owner = owner.or_else(|| interrupt.network_device());
        let is_network = owner.is_some();
        // iwlwifi has a vector for each queue: `iwlwifi:queue_1`.
        let other =
            || action.split(':').next().filter(|name| *name == "iwlwifi").unwrap_or(action).to_owned();
        Some(Source { owner: owner.unwrap_or_else(other), is_network, cpu, vector, of_owner: 0 })
    };
    let mut sources: Vec<Source<'c>> = case.snapshot().interrupts.iter().filter_map(source).collect();
    // Where only some moved between the samples, the others are idle.
    if sources.iter().any(|source| source.vector.basis != Basis::SinceStart) {
        sources.retain(|source| source.vector.basis != Basis::SinceStart);
    }
    let mut of_owners: BTreeMap<(String, u32), u64> = BTreeMap::new();
    for source in &sources {
        let sum = of_owners.entry((source.owner.clone(), source.cpu)).or_default();
        *sum = sum.saturating_add(source.vector.total);
    }
    for source in &mut sources {
        source.of_owner = of_owners.get(&(source.owner.clone(), source.cpu)).copied().unwrap_or(0);
    }
    sources
}
