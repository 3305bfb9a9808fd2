//! `irq-floating`: a receive vector is served by several CPUs in turn.

use crate::report::Severity;
use crate::rule::{Judge, Judgement, Page, Rule};
use crate::vectors::{self, Busy, Vector};
use crate::{Case, steering};
use host::{Basis, Interface};

/// The rule.
pub(super) static RULE: Rule = Rule {
    id: "irq-floating",
    stage: "poll",
    page: Page {
        title: "A receive interrupt moves between CPUs",
        means: "The counts of a receive vector are spread over several CPUs: irqbalance moved it, somebody changed its \
                affinity, or the platform delivers it to any of them. Each move leaves the caches behind and, with RPS \
                masks or pinned programs that were chosen for one CPU, undoes the choice. Often harmless.",
        shows: "`/proc/interrupts`: one line with large counts in several columns; in two samples, counts that grow in \
                another column than before.",
        fix: "Only if measurements vary from minute to minute: stop irqbalance, or exclude the vector \
              (`IRQBALANCE_ARGS=--banirq=V`), and set `/proc/irq/V/smp_affinity_list` to one CPU.",
        costs: "A fixed vector no longer makes way when its CPU is busy with other work.",
    },
    judge: Judge::Device(judge),
};

/// Part of a vector's interrupts that a second CPU must have.
const SECOND: f64 = 0.1;

fn judge(case: &Case<'_>, interface: &Interface) -> Judgement {
    if !vectors::are_shown(case, interface) || case.snapshot().cpu_count() == Some(1) {
        return Judgement::DoesNotApply;
    }
    let busy = match vectors::busy(case, interface) {
        Busy::Vectors(busy) => busy,
        Busy::Negligible => return Judgement::Clear,
        busy => return Judgement::Lacks(vectors::wanted(case, &busy)),
    };
    let floating: Vec<(&Vector<'_>, Vec<u32>)> = busy
        .iter()
        .map(|vector| {
            let counts = |(_, count): &(&u32, &u64)| **count as f64 >= SECOND * vector.total as f64;
            let cpus: Vec<u32> = vector.by_cpu.iter().filter(counts).map(|(cpu, _)| *cpu).collect();
            (vector, cpus)
        })
        .filter(|(_, cpus)| cpus.len() > 1)
        .collect();
    let Some((first, cpus)) = floating.first() else { return Judgement::Clear };
    let when = match first.basis {
        Basis::Between(_) => "between the samples",
        Basis::SinceStart => "since boot",
    };
    let explanation = format!(
        "{} of {} busy receive vectors of {} moved between CPUs {when}: {} was served by CPUs {}. irqbalance does \
         that; by itself it is no fault.",
        floating.len(),
        busy.len(),
        steering::name(interface),
        first.interrupt.action,
        steering::words(cpus)
    );
    let quotes = floating.iter().map(|(vector, _)| &vector.interrupt.quote);
    RULE.finding(Some(&interface.name), Severity::Info, quotes, explanation).into()
}
