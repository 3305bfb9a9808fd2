//! `qinq-unhashed`: stacked VLAN tags come in by a device whose parser stops before the IP header behind them.

use super::{one_flow, unhashed};
use crate::heat::{self, Heat};
use crate::report::{Finding, Remedy, Severity};
use crate::rule::{Judge, Judgement, Page, Rule};
use crate::strain;
use crate::{Carries, Case, dealt, steering};
use host::{Interface, Kind, System};
use std::collections::BTreeSet;

/// The rule.
pub(super) static RULE: Rule = Rule {
    id: "qinq-unhashed",
    stage: "parse",
    page: Page {
        title: "The device cannot hash double-tagged frames, so that they come in on one queue",
        means: "Many devices skip one VLAN tag of TPID 0x8100 on the way to the IP header, and no more. Frames with two \
                tags (QinQ, 802.1ad), or with a TPID that the device does not know, match no hash type and go to the \
                default queue.",
        shows: "A VLAN device on a VLAN device (`ip -d link`), or a capture with two tags; a profile that says which \
                tags its parser passes (`rxlane nics NAME`); and one queue's counter that grows.",
        fix: "Spread in software: RPS on that queue, or steering in XDP (`rxlane steer`). Some devices have \
              a double-VLAN mode (`rxlane nics --can qinq`).",
        costs: "As with any spreading in software: an interrupt between CPUs and cache misses. A double-VLAN mode stops \
                hashing frames that have fewer tags.",
    },
    judge: Judge::Device(judge),
};

/// Whether stacked tags come in by the device and its profile says that they are not hashed.
pub(super) fn is_proven(case: &Case<'_>, interface: &Interface) -> bool {
    let is_some = |carries: &Carries| !unhashed::is_minor(carries);
    case.carries_qinq(interface).as_ref().is_some_and(is_some) && is_hashed(case, interface) == Some(false)
}

/// The stacks that come in, as far as VLAN devices say; both usual ones where they do not.
fn stacks(case: &Case<'_>, interface: &Interface) -> BTreeSet<String> {
    let snapshot = case.snapshot();
    let tag = |name: &str| match snapshot.interface(name)?.kind.as_ref()?.value {
        Kind::Vlan { tpid, .. } => Some(tpid),
        _ => None,
    };
    let mut stacks = BTreeSet::new();
    for inner in &snapshot.interfaces {
        if case.physical(&inner.name) != interface.name {
            continue;
        }
        let Some(parent) = inner.parent.as_ref() else { continue };
        let (Some(inner), Some(outer)) = (tag(&inner.name), tag(&parent.value)) else { continue };
        match (outer, inner) {
            (Some(outer), Some(inner)) => {
                stacks.insert(format!("{outer:x}.{inner:x}"));
            }
            _ => stacks.extend(USUAL.map(str::to_owned)),
        }
    }
    if stacks.is_empty() { USUAL.map(str::to_owned).into() } else { stacks }
}

/// 802.1ad, and two tags of 802.1Q.
const USUAL: [&str; 2] = ["88a8.8100", "8100.8100"];

/// Whether all stacks that come in are hashed, or none is; `None` where the profile does not tell, or they differ.
fn is_hashed(case: &Case<'_>, interface: &Interface) -> Option<bool> {
    let mut answers =
        stacks(case, interface).into_iter().map(|stack| unhashed::is_hashed(case, interface, &stack));
    let first = answers.next()??;
    answers.all(|answer| answer == Some(first)).then_some(first)
}

fn judge(case: &Case<'_>, interface: &Interface) -> Judgement {
    let Some(carries) = case.carries_qinq(interface) else { return Judgement::DoesNotApply };
    if case.queue_count(interface) == Some(1) {
        return Judgement::DoesNotApply;
    }
    if unhashed::is_minor(&carries) {
        return Judgement::Clear;
    }
    let heat = heat::of(case, interface);
    match (is_hashed(case, interface), &heat) {
        (Some(true), _) => Judgement::Clear,
        (Some(false), _) => found(case, interface, &carries, &heat).into(),
        (None, Heat::Hot(_)) => found(case, interface, &carries, &heat).possible().into(),
        // A device that spreads such frames needs no profile to say so.
        (None, Heat::Spread { .. }) => Judgement::Clear,
        (None, _) => Judgement::Lacks(unhashed::who(case, interface)),
    }
}

fn found(case: &Case<'_>, interface: &Interface, carries: &Carries, heat: &Heat) -> Finding {
    let queue = heat.hot().map_or(0, |hot| hot.queue);
    let strained = strain::of(case, steering::cpu_of_queue(case, interface, queue));
    let dealt = dealt::of(case, interface, queue, Some("qinq"));
    let severity = heat.unhashed(&strained);
    let severity = dealt.as_ref().map_or(severity, |dealt| dealt.severity(&strained, severity));
    let cannot = match is_hashed(case, interface) {
        Some(_) => format!(
            "{} cannot hash them: its parser stops before the IP header, so that they all go to one queue",
            unhashed::device(case, interface)
        ),
        None => format!(
            "whether {} looks behind two tags is not known; many devices do not",
            unhashed::device(case, interface)
        ),
    };
    let seen = heat.hot().map_or(String::new(), |hot| {
        format!(" Queue {} took {:.1} % of all frames.", hot.queue, hot.share * 100.0)
    });
    let share = match carries.share {
        Some(share) if share > 0.0 => {
            format!(" In the traffic sample {:.0} % of the frames have two tags or more.", share * 100.0)
        }
        Some(_) => " The traffic sample holds no frames with two tags: perhaps it was taken on another interface, or \
                    above the tags."
            .to_owned(),
        None => String::new(),
    };
    let is_undivided = unhashed::is_undivided(case, interface, carries);
    let undivided = if is_undivided { one_flow::UNDIVIDED } else { "" };
    let explanation = format!(
        "Frames with two VLAN tags come in by {}, and {cannot}.{seen}{share}{}{undivided}",
        interface.name, strained.sentence
    );
    let mut finding = RULE
        .finding(Some(&interface.name), severity, &carries.quotes, explanation)
        .and(&unhashed::identity(interface))
        .and(heat.hot().map_or(&[][..], |hot| &hot.quotes))
        .and(&strained.quote);
    finding.evidence.extend(unhashed::sampled(case, interface, "two tags or more", carries.share));
    if let Some(dealt) = dealt {
        return dealt.into_finding(finding);
    }
    if is_undivided {
        return finding;
    }
    if matches!(case.system(), Some(System::Linux) | None) && severity != Severity::Info {
        finding = finding.with(unhashed::rps(case, interface, queue, carries));
        finding.remedies.extend(unhashed::xdp(case, interface, queue, carries));
    }
    for stack in stacks(case, interface) {
        for mode in unhashed::modes(case, interface, &stack) {
            finding = finding.with(Remedy {
                os: "linux",
                what: format!("or let the device look behind the tags {stack}: {mode}"),
                commands: Vec::new(),
                expected: unhashed::expected(case, interface, carries),
                modelled: None,
            });
        }
    }
    finding
}
