//! Whose interrupts a CPU serves: `cpu-shared`.

use crate::Case;
use crate::case::{enough, since};
use crate::cores::Cores;
use crate::facts::Fact;
use crate::finding::{Finding, Severity, found};
use crate::placement::Placement;
use crate::rule::Judgement;
use crate::vectors::{self, Vector};
use crate::{fixed, load, remedies};
use host::Basis;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Part of the busiest network device's interrupts from which a source takes part of a CPU that counts.
pub(crate) const BUSY: f64 = 0.05;
/// The same from which a network device is named beside busier ones.
const SEEN: f64 = 0.001;
/// An interrupt that one CPU serves.
pub(crate) struct Source<'c> {
    /// The network interface, or the handler's name: a disk, a USB controller, a radio.
    owner: String,
    pub is_network: bool,
    pub cpu: u32,
    pub vector: Vector<'c>,
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
}

/// `cpu-shared`: one CPU serves the interrupts of several busy devices, a network card among them, while others serve none.
pub(super) fn shared(case: &Case<'_>) -> Judgement {
    if case.snapshot().cpu_count() == Some(1) {
        return Judgement::DoesNotApply;
    }
    let sources = sources(case);
    let Some(most) = busiest(&sources) else { return Judgement::lacks("cat /proc/interrupts") };
    let busy: Vec<&Source<'_>> = sources.iter().filter(|source| source.is_part(BUSY, most)).collect();
    let free = free(case, &busy);
    let Some(cpu) = shared_cpu(&busy).filter(|_| !free.is_empty()) else { return Judgement::Clear };
    finding(case, cpu, &together(&sources, most, cpu), free).into()
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
    let total = |together: &[&Source<'_>]| together.iter().map(|source| source.vector.total).sum::<u64>();
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
    let since = since(together.first().map_or(Basis::SinceStart, |source| source.vector.basis));
    let vectors = together.iter().map(|source| &source.vector);
    let fixed: Vec<&Vector<'_>> = vectors.filter(|vector| vector.is_fixed(case)).collect();
    let placement = Placement::of(case);
    let is_first = placement.is_from_little();
    let (before, after) = if is_first { (placement.remedy(), None) } else { (None, placement.remedy()) };
    found(severity, Fact::CpuShared { cpu, owners, free, since })
        .says(is_little.then_some(Fact::SoFewInterrupts))
        .quotes(together.iter().map(|source| &source.vector.interrupt.quote).take(vectors::MOST_QUOTES))
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
        Some(Source { owner: owner.unwrap_or_else(other), is_network, cpu, vector })
    };
    let mut sources: Vec<Source<'c>> = case.snapshot().interrupts.iter().filter_map(source).collect();
    // Where only some moved between the samples, the others are idle.
    if sources.iter().any(|source| source.vector.basis != Basis::SinceStart) {
        sources.retain(|source| source.vector.basis != Basis::SinceStart);
    }
    sources
}
