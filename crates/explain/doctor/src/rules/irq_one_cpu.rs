//! `irq-one-cpu`: several busy receive vectors of a device, all served by one CPU.

use crate::report::{Remedy, Severity};
use crate::rule::{Judge, Judgement, Page, Rule};
use crate::strain;
use crate::vectors::{self, Busy, IRQBALANCE, Vector};
use crate::{Case, modelled, steering};
use host::{Basis, Interface};
use std::collections::BTreeSet;

/// The rule.
pub(super) static RULE: Rule = Rule {
    id: "irq-one-cpu",
    stage: "poll",
    page: Page {
        title: "All receive interrupts of a device go to one CPU",
        means: "RSS spreads the frames over several queues, each with an interrupt of its own, and all these interrupts \
                are served by the same CPU. That undoes RSS: one CPU works all queues off. The fault is the interrupt \
                affinity, not the device: where nobody sets it, the platform often chooses the lowest CPU.",
        shows: "`/proc/interrupts`: the lines of the interface's queues count in one column only.",
        fix: "Give each vector a CPU of its own: `echo N > /proc/irq/V/smp_affinity_list`, or let irqbalance do it.",
        costs: "Nothing to speak of. The setting is lost with a reboot or when the interface is created anew.",
    },
    judge: Judge::Device(judge),
};

/// Part of a device's receive interrupts that one CPU must have served: what is left are those from before
/// affinities were set.
const ALL: f64 = 0.95;

/// Lines of evidence.
const MOST_QUOTES: usize = 8;

/// The CPU that serves all busy receive vectors of the device, where there are several and other CPUs.
pub(super) fn only_cpu(case: &Case<'_>, vectors: &[Vector<'_>]) -> Option<u32> {
    let total: u64 = vectors.iter().map(|vector| vector.total).fold(0, u64::saturating_add);
    let of = |cpu: u32| -> u64 {
        vectors
            .iter()
            .map(|vector| vector.by_cpu.get(&cpu).copied().unwrap_or(0))
            .fold(0, u64::saturating_add)
    };
    let cpus = case.machine().cpus();
    let &busiest = cpus.iter().max_by_key(|cpu| of(**cpu))?;
    let is_all = of(busiest) as f64 >= ALL * total as f64;
    (vectors.len() >= 2 && cpus.len() >= 2 && is_all).then_some(busiest)
}

/// Whether affinities that were read say that each vector has another CPU by now: the counts are then history.
fn is_mended(vectors: &[Vector<'_>], cpu: u32) -> bool {
    let elsewhere = |vector: &Vector<'_>| {
        let affinity = vector.interrupt.affinity.as_ref().map(|seen| seen.get());
        affinity.is_some_and(|cpus| !cpus.is_empty() && !cpus.contains(&cpu))
    };
    vectors.iter().filter(|vector| vector.basis == Basis::SinceStart && elsewhere(vector)).count()
        >= vectors.len().saturating_sub(1).max(1)
}

fn judge(case: &Case<'_>, interface: &Interface) -> Judgement {
    if !vectors::are_shown(case, interface) || case.queue_count(interface) == Some(1) {
        return Judgement::DoesNotApply;
    }
    match vectors::busy(case, interface) {
        Busy::Vectors(busy) => match only_cpu(case, &busy) {
            Some(cpu) if is_mended(&busy, cpu) => Judgement::lacks("cat /proc/interrupts, twice under load"),
            Some(cpu) => found(case, interface, &busy, cpu),
            None => Judgement::Clear,
        },
        Busy::Negligible => Judgement::Clear,
        busy => Judgement::Lacks(vectors::wanted(case, &busy)),
    }
}

/// Interrupts since boot that are a few minutes of a busy line, at some thousand a second.
const LITTLE: u64 = 1_000_000;

/// Interrupts a second that any CPU serves by the way.
const LITTLE_RATE: f64 = 500.0;

fn is_little(busy: &[Vector<'_>]) -> bool {
    let total: u64 = busy.iter().map(|vector| vector.total).fold(0, u64::saturating_add);
    match busy.first().map(|vector| vector.basis) {
        Some(Basis::Between(Some(time))) if !time.is_zero() => {
            (total as f64) < LITTLE_RATE * time.as_secs_f64()
        }
        Some(Basis::Between(_)) => false,
        Some(Basis::SinceStart) | None => total < LITTLE,
    }
}

fn found(case: &Case<'_>, interface: &Interface, busy: &[Vector<'_>], cpu: u32) -> Judgement {
    let strained = strain::of(case, Some(cpu));
    let all = case.machine().cpus();
    let basis = match busy.first().map(|vector| vector.basis) {
        Some(Basis::Between(_)) => "between the samples",
        _ => "since boot",
    };
    let is_little = is_little(busy);
    let unless = if is_little { Severity::Info } else { Severity::Warning };
    let little = if is_little { " So few interrupts limit nothing." } else { "" };
    let explanation = format!(
        "{} busy receive vectors of {} share CPU {cpu}, which took all of their interrupts {basis}; the other {} CPUs \
         took none. Frames do spread over the queues: it is the affinity of the interrupts that brings them together \
         again, not RSS.{little}{}",
        busy.len(),
        steering::name(interface),
        all.len() - 1,
        strained.sentence
    );
    let quotes = busy.iter().map(|vector| &vector.interrupt.quote).take(MOST_QUOTES);
    let finding = RULE
        .finding(Some(&interface.name), strained.severity(unless), quotes, explanation)
        .and(&strained.quote);
    let commands = vectors::one_each(&busy.iter().collect::<Vec<_>>(), &in_order(case, interface, cpu));
    if commands.is_empty() {
        return finding.into();
    }
    let share = busy.iter().map(|vector| vector.total).max().unwrap_or(0) as f64
        / busy.iter().map(|vector| vector.total).fold(0, u64::saturating_add).max(1) as f64;
    let expected = match busy.len() <= all.len() {
        true => format!(
            "Each vector has a CPU of its own: by these counts the busiest would take {:.0} % of the interrupts instead \
             of all. {IRQBALANCE}",
            share * 100.0
        ),
        false => format!("The vectors are dealt to all CPUs in turn. {IRQBALANCE}"),
    };
    let remedy = Remedy {
        os: "linux",
        what: "a CPU for each receive vector".to_owned(),
        commands,
        expected,
        modelled: None,
    };
    let frames: Vec<u64> = busy.iter().map(|vector| vector.total).collect();
    finding.with(modelled::with_a_cpu_each(remedy, case, all.len(), &frames)).into()
}

/// All CPUs: those of the serving CPU's NUMA node first, and among them those that serve no busy vector of another
/// device.
fn in_order(case: &Case<'_>, interface: &Interface, cpu: u32) -> Vec<u32> {
    let nodes = &case.snapshot().cpus.nodes;
    let local = nodes.values().find(|node| node.contains(&cpu));
    let taken: BTreeSet<u32> = case.machine().serving(Some(&interface.name)).collect();
    let mut cpus: Vec<u32> = case.machine().cpus().iter().copied().collect();
    cpus.sort_by_key(|cpu| (local.is_some_and(|local| !local.contains(cpu)), taken.contains(cpu), *cpu));
    cpus
}
