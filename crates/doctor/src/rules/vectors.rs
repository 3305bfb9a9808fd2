//! What the rules on interrupts all ask: the receive vectors of a device that carry load, and who serves them.

use crate::case::Busiest;
use crate::{Case, ENOUGH_BETWEEN, ENOUGH_SINCE_START, steering};
use host::{Basis, Interface, Interrupt, Shares};
use std::collections::{BTreeMap, BTreeSet};

/// A receive vector with what it counted.
pub(super) struct Vector<'a> {
    /// The line.
    pub interrupt: &'a Interrupt,
    /// Interrupts by CPU, between the samples where there are two and it moved.
    pub by_cpu: BTreeMap<u32, u64>,
    /// Their sum.
    pub total: u64,
    /// What they rest on.
    pub basis: Basis,
}

/// The receive vectors of a device that carry load.
pub(super) enum Busy<'a> {
    /// These.
    Vectors(Vec<Vector<'a>>),
    /// Too few interrupts were counted to tell.
    TooFew,
    /// Beside the busiest interface of the machine this one has no load.
    Negligible,
    /// The text does not show them, or does not tell CPUs apart.
    Unknown,
}

/// Part of an even share below which a vector of a device carries no load.
const IDLE_VECTOR: f64 = 0.1;

/// Part of the busiest interface's interrupts below which a device carries no load: drivers such as igb interrupt
/// on every queue each two seconds even without traffic (`igb_watchdog_task()`).
const IDLE_DEVICE: f64 = 0.001;

impl Vector<'_> {
    /// The CPU that took nearly all.
    pub(super) fn cpu(&self) -> Option<u32> {
        let (&cpu, &most) = self.by_cpu.iter().max_by_key(|(_, count)| **count)?;
        (most as f64 >= steering::SERVES * self.total as f64).then_some(cpu)
    }
}

fn vector<'a>(case: &Case<'_>, interrupt: &'a Interrupt) -> Option<Vector<'a>> {
    let shares = Shares::of(interrupt.counts.values(), case.snapshot().interval)?;
    let cpus: Option<Vec<u32>> = interrupt.counts.keys().copied().collect();
    let by_cpu: BTreeMap<u32, u64> = cpus?.into_iter().zip(shares.counts.iter().copied()).collect();
    Some(Vector { interrupt, by_cpu, total: shares.total(), basis: shares.basis })
}

fn all<'a>(case: &Case<'a>, interface: &Interface) -> Option<Vec<Vector<'a>>> {
    let found: Option<Vec<Vector<'a>>> =
        case.receive_interrupts(interface).into_iter().map(|interrupt| vector(case, interrupt)).collect();
    found.filter(|vectors| !vectors.is_empty())
}

fn busiest(case: &Case<'_>) -> Busiest {
    let mut busiest = Busiest::default();
    for vectors in case.devices().filter_map(|device| all(case, device)) {
        let (between, since_start): (Vec<_>, Vec<_>) =
            vectors.iter().partition(|vector| vector.basis != Basis::SinceStart);
        let sum = |vectors: &[&Vector<'_>]| vectors.iter().map(|vector| vector.total).sum::<u64>();
        busiest.between = busiest.between.max(sum(&between));
        busiest.since_start = busiest.since_start.max(sum(&since_start));
    }
    busiest
}

/// The receive vectors of the device that carry load.
pub(super) fn busy<'a>(case: &Case<'a>, interface: &Interface) -> Busy<'a> {
    let Some(mut vectors) = all(case, interface) else { return Busy::Unknown };
    // Where only some moved between the samples, the others are idle: totals do not compare with differences.
    if vectors.iter().any(|vector| vector.basis != Basis::SinceStart) {
        vectors.retain(|vector| vector.basis != Basis::SinceStart);
    }
    let total: u64 = vectors.iter().map(|vector| vector.total).sum();
    let is_between = vectors.iter().any(|vector| vector.basis != Basis::SinceStart);
    let busiest = case.busiest(|| busiest(case));
    let most = if is_between { busiest.between } else { busiest.since_start };
    if (total as f64) < IDLE_DEVICE * most as f64 {
        return Busy::Negligible;
    }
    if total < if is_between { ENOUGH_BETWEEN } else { ENOUGH_SINCE_START } {
        return Busy::TooFew;
    }
    let even = total as f64 / vectors.len().max(1) as f64;
    vectors.retain(|vector| vector.total as f64 >= IDLE_VECTOR * even);
    Busy::Vectors(vectors)
}

/// CPUs that the machine has, by number: as counted by the interrupts' columns too.
pub(super) fn cpus(case: &Case<'_>) -> BTreeSet<u32> {
    let columns = case.snapshot().interrupts.iter().flat_map(|interrupt| interrupt.counts.keys().flatten());
    columns.copied().chain(steering::online(case)).collect()
}

/// What would show it.
pub(super) fn wanted(case: &Case<'_>, busy: &Busy<'_>) -> Vec<String> {
    let command = match case.system() {
        Some(host::System::FreeBsd | host::System::NetBsd) => "vmstat -i",
        _ => "cat /proc/interrupts",
    };
    vec![match busy {
        Busy::TooFew => format!("{command}, twice under load"),
        _ => command.to_owned(),
    }]
}

/// Whether the system shows interrupts by CPU at all.
pub(super) fn is_told_apart(case: &Case<'_>) -> bool {
    !matches!(case.system(), Some(host::System::FreeBsd | host::System::NetBsd))
}

/// Commands that give each vector a CPU of its own, in turn over `cpus`.
pub(super) fn one_each(vectors: &[&Vector<'_>], cpus: &[u32]) -> Vec<String> {
    vectors
        .iter()
        .filter(|vector| vector.interrupt.vector.bytes().all(|digit| digit.is_ascii_digit()))
        .zip(cpus.iter().cycle())
        .map(|(vector, cpu)| format!("echo {cpu} > /proc/irq/{}/smp_affinity_list", vector.interrupt.vector))
        .collect()
}

/// What goes against fixed affinities.
pub(super) const IRQBALANCE: &str = "Where irqbalance runs it moves vectors again: stop it first, or let it do the \
                                     spreading alone (systemctl status irqbalance).";
