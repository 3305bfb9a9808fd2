//! `one-flow`: the load is one flow, which no spreading can divide.

use crate::heat;
use crate::report::{Evidence, Severity};
use crate::rule::{Judge, Judgement, Page, Rule};
use crate::strain::{self, Strain};
use crate::{Case, steering};
use explain::report::FlowRow;
use format::thousands;
use host::Interface;

/// The rule.
pub(super) static RULE: Rule = Rule {
    id: "one-flow",
    stage: "queue",
    page: Page {
        title: "The load is one flow",
        means: "A flow's packets must stay in order, and so every kind of spreading, in the device or in software, \
                keeps them on one queue and one CPU. With one flow that carries nearly everything there is nothing \
                to spread: one CPU's speed is the limit.",
        shows: "A traffic sample in which one pair of addresses and ports has nearly all frames (`rxlane explain`, or \
                `rxlane doctor --traffic CAPTURE`).",
        fix: "Measure with several connections (`iperf3 -P 8`), or make the work per packet cheaper: GRO on, longer \
              batches, decapsulation and firewall on different CPUs. RPS takes the protocol work of the flow off the \
              CPU that takes the interrupt, which is two CPUs instead of one and no more.",
        costs: "RPS for one flow adds an interrupt between two CPUs and its latency.",
    },
    judge: Judge::Device(judge),
};

/// Part of the frames that one flow must have: whatever the others do, the busiest CPU has at least this much.
const DOMINANT: f64 = 0.8;

/// Frames of a sample below which it says nothing.
const ENOUGH: u64 = 1000;

/// The flow that is the load, with its part of the sample.
fn dominant<'a>(case: &'a Case<'_>, interface: &Interface) -> Option<(&'a FlowRow, f64)> {
    let mix = case.mix(interface)?;
    let all: u64 = mix.stacks.iter().map(|row| row.frames).sum();
    let flow = mix.top_flows.iter().max_by_key(|flow| flow.frames)?;
    let share = flow.frames as f64 / all.max(1) as f64;
    (all >= ENOUGH && share >= DOMINANT).then_some((flow, share))
}

/// Whether software that deals by flow has nothing to deal: one flow has nearly all of the sample's frames, or the few
/// there are fall on one CPU.
pub(super) fn is_undivided(case: &Case<'_>, interface: &Interface) -> bool {
    is_proven(case, interface) || steering::is_undivided(case, interface)
}

/// What a rule says that offers no spreading for that reason, with a blank before it.
pub(super) const UNDIVIDED: &str = " The traffic sample's load is one flow: no software divides it.";

/// Whether a traffic sample shows it.
pub(super) fn is_proven(case: &Case<'_>, interface: &Interface) -> bool {
    dominant(case, interface).is_some()
}

fn judge(case: &Case<'_>, interface: &Interface) -> Judgement {
    let heat = heat::of(case, interface);
    let Some(mix) = case.mix(interface) else {
        // Only where one queue is hot does it matter how many flows there are.
        return match heat.hot() {
            Some(_) => Judgement::lacks(format!(
                "tcpdump -i {} -c 100000 -s 128 -w sample.pcap (for --traffic)",
                steering::name(interface)
            )),
            None => Judgement::DoesNotApply,
        };
    };
    let Some((flow, share)) = dominant(case, interface) else {
        let all: u64 = mix.stacks.iter().map(|row| row.frames).sum();
        return if all < ENOUGH { Judgement::lacks("a longer traffic sample") } else { Judgement::Clear };
    };
    let queue = heat.hot().map_or(flow.queue.map(u32::from), |hot| Some(hot.queue));
    let strained = strain::of(case, queue.and_then(|queue| steering::cpu_of_queue(case, interface, queue)));
    // The sample says what the load is made of, and only the CPU whether it is a limit.
    let severity = if strained.strain == Strain::Full { Severity::Critical } else { Severity::Info };
    let explanation = format!(
        "One flow, {} ({}), has {:.0} % of the traffic sample's frames. It stays on one queue and one CPU however \
         the others are spread.{}",
        flow.flow,
        flow.protocol,
        share * 100.0,
        strained.sentence
    );
    let mut finding = RULE.finding(Some(&interface.name), severity, [], explanation).and(&strained.quote);
    finding.evidence.insert(
        0,
        Evidence {
            from: format!("traffic sample ({})", mix.source.files.join(", ")),
            text: format!("{} {}: {} frames", flow.flow, flow.protocol, thousands(flow.frames)),
        },
    );
    finding.into()
}
