//! `rps-same-cpu`: RPS hands packets to the CPU that has them already.

use super::rps_off;
use crate::report::Severity;
use crate::rule::{Judge, Judgement, Page, Rule};
use crate::steered::{self, Hands};
use crate::strain;
use crate::{Case, steering};
use host::{Interface, Observed, System};

/// The rule.
pub(super) static RULE: Rule = Rule {
    id: "rps-same-cpu",
    stage: "steer",
    page: Page {
        title: "RPS names only the CPU that takes the interrupt",
        means: "A mask with nothing but the CPU that serves the queue's interrupt spreads nothing: each packet goes \
                through RPS and its backlog, back to the same CPU.",
        shows: "`/sys/class/net/IFACE/queues/rx-N/rps_cpus` has one bit, that of the column in which `/proc/interrupts` \
                counts the queue's vector.",
        fix: "Name the other CPUs, or write 0 if RPS is not needed.",
        costs: "As for RPS anywhere: an interrupt between CPUs and cache misses. Writing 0 costs nothing.",
    },
    judge: Judge::Device(judge),
};

fn judge(case: &Case<'_>, interface: &Interface) -> Judgement {
    let is_bsd = matches!(case.system(), Some(System::FreeBsd | System::NetBsd));
    if is_bsd || case.snapshot().cpu_count() == Some(1) {
        return Judgement::DoesNotApply;
    }
    let queues: Vec<u32> = interface.queues.keys().copied().collect();
    let masks = rps_off::masks(interface, &queues);
    if masks.is_empty() {
        return Judgement::lacks(rps_off::file(interface, 0));
    }
    let set: Vec<(u32, &Observed<Vec<u32>>)> =
        masks.into_iter().filter(|(_, mask)| !mask.get().is_empty()).collect();
    // Masks of one CPU, with the CPU that serves the queue.
    let single = || {
        set.iter().filter_map(|(queue, mask)| match mask.get()[..] {
            [cpu] => Some((*queue, *mask, cpu, steering::cpu_of_queue(case, interface, *queue))),
            _ => None,
        })
    };
    let same = single().find(|(_, _, cpu, serving)| Some(*cpu) == *serving);
    let Some((queue, mask, cpu, _)) = same else {
        let is_unknown = single().any(|(_, _, _, serving)| serving.is_none());
        return if is_unknown { Judgement::lacks("cat /proc/interrupts") } else { Judgement::Clear };
    };
    let strained = strain::of(case, Some(cpu));
    let is_steered = steered::of(case, interface).is_some_and(|steered| steered.hands(None) == Hands::On);
    let need = rps_off::need(case, interface).ok().flatten().filter(|_| !is_steered);
    let unless = need.as_ref().map_or(Severity::Info, |need| need.severity);
    let explanation = format!(
        "RPS of queue {queue} of {} names CPU {cpu} alone, which also serves the queue's interrupt: it spreads nothing \
         and costs a detour.{}",
        steering::name(interface),
        strained.sentence
    );
    let vector = steering::vector_of(case, interface, queue).map(|vector| &vector.quote);
    let mut finding = RULE
        .finding(Some(&interface.name), strained.severity(unless), [mask.quote()], explanation)
        .and(vector)
        .and(&strained.quote);
    match need {
        Some(_) => finding.remedies.push(steering::rps(case, interface, &[queue])),
        // The device spreads, or it is not known that it does not: RPS over more CPUs might only cost.
        None => finding.remedies.push(crate::report::Remedy {
            os: "linux",
            what: "RPS off, as it spreads nothing".to_owned(),
            commands: vec![format!(
                "echo 0 > /sys/class/net/{}/queues/rx-{queue}/rps_cpus",
                steering::name(interface)
            )],
            expected: "A little less work a packet on that CPU.".to_owned(),
            modelled: None,
        }),
    }
    finding.into()
}
