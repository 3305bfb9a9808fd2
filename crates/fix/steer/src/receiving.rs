//! Which CPUs receive the frames of an interface, and how much of them.

use crate::weights::Receiving;
use doctor::Case;
use host::{Basis, Delta, Interface, Interrupt, Shares};
use std::collections::BTreeMap;

/// CPUs that receive, with their parts of the frames, the busiest first. Empty where it is unknown.
///
/// A receive queue's frames are those of its vector's CPU. Without counters of queues the interrupts count; without
/// vectors (veth) the frames that each CPU took up, provided that most of them are this interface's; without anything
/// that moved, the CPUs to which the vectors may go.
pub fn receiving(case: &Case<'_>, interface: &Interface) -> Vec<Receiving> {
    let vectors = case.receive_interrupts(interface);
    let found = by_queue(case, interface, &vectors)
        .or_else(|| by_interrupt(case, &vectors))
        .or_else(|| by_softnet(case, interface))
        .unwrap_or_else(|| by_affinity(&vectors));
    let total: f64 = found.values().sum();
    let mut shares: Vec<Receiving> = found
        .into_iter()
        .filter(|(_, part)| *part > 0.0 && total > 0.0)
        .map(|(cpu, part)| Receiving { cpu, share: part / total })
        .collect();
    shares.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.cpu.cmp(&b.cpu)));
    shares
}

/// Frames that arrived between the samples; `None` where they were not counted twice.
pub fn frames(interface: &Interface, case: &Case<'_>) -> Option<u64> {
    let counted = |delta| match delta {
        Delta::Counted(frames) | Delta::Wrapped(frames) => Some(frames),
        Delta::Reset | Delta::OneSample => None,
    };
    let total = interface.totals.packets.as_ref().and_then(|packets| counted(packets.delta()));
    let by_queue = || {
        let spread = case.spread(interface)?;
        matches!(spread.shares.basis, Basis::Between(_)).then(|| spread.shares.total())
    };
    total.or_else(by_queue)
}

type Parts = BTreeMap<u32, f64>;

/// How a vector's interrupts fell on CPUs between the samples, as parts of 1.
fn parts(case: &Case<'_>, vector: &Interrupt) -> Option<(Parts, u64)> {
    let shares = Shares::of(vector.counts.values(), case.snapshot().interval)?;
    let (Basis::Between(_), total) = (shares.basis, shares.total()) else { return None };
    if total == 0 {
        return None;
    }
    let parts = vector.counts.keys().zip(&shares.counts);
    let parts = parts.filter_map(|(cpu, count)| Some(((*cpu)?, *count as f64 / total as f64)));
    Some((parts.collect(), total))
}

fn by_queue(case: &Case<'_>, interface: &Interface, vectors: &[&Interrupt]) -> Option<Parts> {
    let spread = case.spread(interface).filter(|spread| matches!(spread.shares.basis, Basis::Between(_)))?;
    let mut by_cpu = Parts::new();
    for (queue, frames) in spread.queues.iter().zip(&spread.shares.counts).filter(|(_, frames)| **frames > 0)
    {
        let vector = vectors.iter().find(|vector| vector.queue == Some(*queue))?;
        for (cpu, part) in parts(case, vector)?.0 {
            *by_cpu.entry(cpu).or_default() += part * *frames as f64;
        }
    }
    (!by_cpu.is_empty()).then_some(by_cpu)
}

fn by_interrupt(case: &Case<'_>, vectors: &[&Interrupt]) -> Option<Parts> {
    let mut by_cpu = Parts::new();
    for (parts, total) in vectors.iter().filter_map(|vector| parts(case, vector)) {
        for (cpu, part) in parts {
            *by_cpu.entry(cpu).or_default() += part * total as f64;
        }
    }
    (!by_cpu.is_empty()).then_some(by_cpu)
}

/// Frames that each CPU took up between the samples, of the whole machine: `softnet_stat` is not per network namespace.
fn taken_up(case: &Case<'_>) -> Parts {
    let counted =
        case.snapshot().softnet.iter().filter_map(|(&cpu, softnet)| match softnet.processed.delta() {
            Delta::Counted(processed) => Some((cpu, processed as f64)),
            _ => None,
        });
    counted.collect()
}

/// Whether most frames that CPUs took up are of no interface that is seen from here.
pub fn is_elsewhere(case: &Case<'_>) -> bool {
    let seen: u64 = case
        .snapshot()
        .interfaces
        .iter()
        .filter_map(|interface| frames(interface, case))
        .fold(0, u64::saturating_add);
    let all: f64 = taken_up(case).values().sum();
    all > 0.0 && (seen as f64) < all / 2.0
}

fn by_softnet(case: &Case<'_>, interface: &Interface) -> Option<Parts> {
    let frames = frames(interface, case)?;
    let by_cpu = taken_up(case);
    let all: f64 = by_cpu.values().sum();
    (all > 0.0 && frames as f64 >= all / 2.0).then_some(by_cpu)
}

fn by_affinity(vectors: &[&Interrupt]) -> Parts {
    let mut by_cpu = Parts::new();
    for vector in vectors {
        let cpus = vector.affinity.as_ref().map_or(&[][..], |affinity| affinity.get());
        // Where it may go anywhere, it goes somewhere: that is not known.
        if let [cpu] = cpus {
            *by_cpu.entry(*cpu).or_default() += 1.0;
        }
    }
    by_cpu
}
