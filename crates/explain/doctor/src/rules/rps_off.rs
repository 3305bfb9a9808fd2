//! `rps-off`: the device cannot spread its frames, and software does not either.

use super::single_queue::{self, Queues};
use super::{one_flow, pppoe_unhashed, qinq_unhashed, reta_uneven};
use crate::dealt::{self, State};
use crate::heat::{self, Heat};
use crate::report::Severity;
use crate::rule::{Judge, Judgement, Page, Rule};
use crate::strain;
use crate::{Case, steering};
use host::{Interface, Observed, Quote, System};

/// The rule.
pub(super) static RULE: Rule = Rule {
    id: "rps-off",
    stage: "steer",
    page: Page {
        title: "The device cannot spread its frames, and RPS is off",
        means: "Receive packet steering (RPS) hashes the inner header in software and hands packets to other CPUs. Where \
                the device spreads frames by itself it is not needed and only costs. Where the device has one queue, \
                or cannot hash what comes in, it is what is left, and its masks are all zero by default.",
        shows: "`/sys/class/net/IFACE/queues/rx-N/rps_cpus` is 0 on a device with one queue or on a queue that takes \
                nearly all frames.",
        fix: "Write a mask of the other CPUs into that file, if the CPU of the queue is the limit; or steer in XDP \
              (`rxlane steer`), which is cheaper.",
        costs: "An interrupt between CPUs and cache misses for each batch; latency; and no gain where one CPU is fast \
                enough.",
    },
    judge: Judge::Device(judge),
};

/// Why the device cannot spread: which queues carry the frames, in words, with the lines that say so.
pub(super) struct Need {
    /// Queues.
    pub queues: Vec<u32>,
    /// Why, to stand after "since".
    pub why: String,
    /// The lines.
    pub quotes: Vec<Quote>,
    /// Whether it limits, or will.
    pub severity: Severity,
}

/// Whether spreading is missing: `Ok(None)` where the device spreads, `Err` where the text does not tell.
pub(super) fn need(case: &Case<'_>, interface: &Interface) -> Result<Option<Need>, Vec<String>> {
    if one_flow::is_undivided(case, interface) || reta_uneven::only_queue(interface).is_some() {
        return Ok(None);
    }
    if let Queues::One(quotes) = single_queue::queues(case, interface) {
        let strained = strain::of(case, steering::cpu_of_queue(case, interface, 0));
        let why = "it has one queue".to_owned();
        return Ok(Some(Need { queues: vec![0], why, quotes, severity: strained.severity(Severity::Info) }));
    }
    let heat = heat::of(case, interface);
    if let Heat::Hot(hot) = &heat {
        let strained = strain::of(case, steering::cpu_of_queue(case, interface, hot.queue));
        return Ok(Some(Need {
            queues: vec![hot.queue],
            why: format!("queue {} takes {:.0} % of its frames", hot.queue, hot.share * 100.0),
            quotes: hot.quotes.clone(),
            severity: hot.severity(&strained),
        }));
    }
    let pppoe = case.carries_pppoe(interface).filter(|_| pppoe_unhashed::is_proven(case, interface));
    let qinq = case.carries_qinq(interface).filter(|_| qinq_unhashed::is_proven(case, interface));
    match (pppoe.or(qinq), heat) {
        (Some(carries), heat) => {
            let strained = strain::of(case, steering::cpu_of_queue(case, interface, 0));
            Ok(Some(Need {
                queues: vec![0],
                why: "it cannot hash the frames that come in".to_owned(),
                quotes: carries.quotes,
                severity: heat.unhashed(&strained),
            }))
        }
        (None, Heat::Spread { .. }) => Ok(None),
        (None, heat) => Err(heat::wanted(case, interface, &heat)),
    }
}

/// The RPS masks of these queues, all that the text shows.
pub(super) fn masks<'a>(interface: &'a Interface, queues: &[u32]) -> Vec<(u32, &'a Observed<Vec<u32>>)> {
    queues.iter().filter_map(|queue| Some((*queue, interface.queues.get(queue)?.rps.as_ref()?))).collect()
}

/// The file that shows a queue's mask.
pub(super) fn file(interface: &Interface, queue: u32) -> String {
    format!("cat /sys/class/net/{}/queues/rx-{queue}/rps_cpus", steering::name(interface))
}

fn judge(case: &Case<'_>, interface: &Interface) -> Judgement {
    let is_bsd = matches!(case.system(), Some(System::FreeBsd | System::NetBsd));
    if is_bsd || case.snapshot().cpu_count() == Some(1) {
        return Judgement::DoesNotApply;
    }
    let need = match need(case, interface) {
        Ok(Some(need)) => need,
        Ok(None) => return Judgement::Clear,
        Err(commands) => return Judgement::Lacks(commands),
    };
    let first = need.queues.first().copied().unwrap_or(0);
    let dealt = dealt::of(case, interface, first, None);
    match dealt.as_ref().map(|dealt| dealt.state) {
        // Steering does what RPS would, or RPS is on.
        Some(State::Deals) => return Judgement::Clear,
        Some(State::Unread) => {
            return Judgement::lacks(format!("rxlane steer status {} (as root)", steering::name(interface)));
        }
        Some(State::Leaves) | None => {}
    }
    let masks = masks(interface, &need.queues);
    if masks.is_empty() {
        return Judgement::Lacks(need.queues.iter().map(|queue| file(interface, *queue)).collect());
    }
    let off: Vec<(u32, &Observed<Vec<u32>>)> =
        masks.into_iter().filter(|(_, mask)| mask.get().is_empty()).collect();
    let queues: Vec<u32> = off.iter().map(|(queue, _)| *queue).collect();
    let Some(&first) = queues.first() else { return Judgement::Clear };
    let strained = strain::of(case, steering::cpu_of_queue(case, interface, first));
    // RPS would only cost.
    if strained.is_no_limit() {
        return Judgement::Clear;
    }
    let explanation = format!(
        "RPS is off for queue {} of {}, and the device does not spread its frames, since {}.{}",
        first,
        steering::name(interface),
        need.why,
        strained.sentence
    );
    let quotes = off.iter().map(|(_, mask)| mask.quote());
    let finding = RULE
        .finding(Some(&interface.name), need.severity, quotes, explanation)
        .and(&need.quotes)
        .and(&strained.quote);
    match dealt {
        Some(dealt) => dealt.into_finding(finding).into(),
        None => finding.with(steering::rps(case, interface, &queues)).into(),
    }
}
