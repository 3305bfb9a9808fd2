//! `irq-collision`: busy receive vectors share a CPU while others serve none.

use super::irq_one_cpu;
use crate::report::{Remedy, Severity};
use crate::rule::{Judge, Judgement, Page, Rule};
use crate::strain;
use crate::vectors::{self, Busy, IRQBALANCE, Vector};
use crate::{Case, steering};
use host::{Basis, Interface};
use std::collections::{BTreeMap, BTreeSet};

/// The rule.
pub(super) static RULE: Rule = Rule {
    id: "irq-collision",
    stage: "poll",
    page: Page {
        title: "Busy receive vectors share a CPU while other CPUs serve none",
        means: "Two or more queues of a device are worked off by the same CPU, although the machine has CPUs that serve \
                no busy queue of any device. The queues then get half a CPU each, or less.",
        shows: "`/proc/interrupts`: two busy lines of the interface count in the same column, and some column has no \
                busy line.",
        fix: "Move one of them to a free CPU: `echo N > /proc/irq/V/smp_affinity_list`.",
        costs: "Nothing to speak of. A CPU of another NUMA node reaches the device's memory more slowly.",
    },
    judge: Judge::Device(judge),
};

fn judge(case: &Case<'_>, interface: &Interface) -> Judgement {
    if !vectors::are_shown(case, interface) || case.queue_count(interface) == Some(1) {
        return Judgement::DoesNotApply;
    }
    let busy = match vectors::busy(case, interface) {
        Busy::Vectors(busy) => busy,
        Busy::Negligible => return Judgement::Clear,
        busy => return Judgement::Lacks(vectors::wanted(case, &busy)),
    };
    // All on one CPU is `irq-one-cpu`.
    if irq_one_cpu::only_cpu(case, &busy).is_some() {
        return Judgement::Clear;
    }
    let mut by_cpu: BTreeMap<u32, Vec<&Vector<'_>>> = BTreeMap::new();
    for vector in &busy {
        if let Some(cpu) = vector.cpu() {
            by_cpu.entry(cpu).or_default().push(vector);
        }
    }
    let shared =
        by_cpu.iter().filter(|(_, vectors)| vectors.len() > 1).max_by_key(|(_, vectors)| vectors.len());
    let Some((&cpu, together)) = shared else { return Judgement::Clear };
    let free = free(case, cpu);
    if free.is_empty() { Judgement::Clear } else { found(case, interface, cpu, together, &free) }
}

/// CPUs of the same NUMA node, or of the machine where nodes are not known, that serve no busy vector of any
/// device.
fn free(case: &Case<'_>, cpu: u32) -> Vec<u32> {
    let node = case.snapshot().cpus.nodes.values().find(|node| node.contains(&cpu));
    let taken: BTreeSet<u32> = case.machine().serving(None).collect();
    let mut free: BTreeSet<u32> = case.machine().cpus().difference(&taken).copied().collect();
    free.retain(|cpu| node.is_none_or(|node| node.contains(cpu)));
    free.into_iter().collect()
}

fn found(
    case: &Case<'_>,
    interface: &Interface,
    cpu: u32,
    together: &[&Vector<'_>],
    free: &[u32],
) -> Judgement {
    let strained = strain::of(case, Some(cpu));
    // Totals since boot may be of affinities that are long gone.
    let is_now = together.iter().all(|vector| vector.basis != Basis::SinceStart);
    let severity = strained.severity(if is_now { Severity::Warning } else { Severity::Info });
    let names: Vec<&str> = together.iter().map(|vector| vector.interrupt.action.as_str()).collect();
    let explanation = format!(
        "CPU {cpu} serves {} busy receive vectors of {} ({}), while CPU{} {} serve{} none.{}",
        together.len(),
        steering::name(interface),
        names.join(", "),
        if free.len() == 1 { "" } else { "s" },
        steering::words(free),
        if free.len() == 1 { "s" } else { "" },
        strained.sentence
    );
    let quotes = together.iter().map(|vector| &vector.interrupt.quote);
    let finding = RULE.finding(Some(&interface.name), severity, quotes, explanation).and(&strained.quote);
    let moved: Vec<&Vector<'_>> = together.iter().skip(1).take(free.len()).copied().collect();
    let commands = vectors::one_each(&moved, free);
    if commands.is_empty() {
        return finding.into();
    }
    finding
        .with(Remedy {
            os: "linux",
            what: "a free CPU for each vector but the first".to_owned(),
            commands,
            expected: format!("Their work moves to CPUs that serve no other busy queue. {IRQBALANCE}"),
            modelled: None,
        })
        .into()
}
