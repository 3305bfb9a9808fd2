//! `gro-off`: received segments are not coalesced.

use crate::report::{Remedy, Severity};
use crate::rule::{Judge, Judgement, Page, Rule};
use crate::strain::{self, Strain};
use crate::{Case, steering};
use host::{Interface, Quote, System};

/// The rule.
pub(super) static RULE: Rule = Rule {
    id: "gro-off",
    stage: "coalesce",
    page: Page {
        title: "Generic receive offload is off",
        means: "GRO joins the segments of a TCP flow that arrive together into one large packet, so that everything after \
                it (VLAN, firewall, routing, socket) runs once for many segments. Without it each segment pays for all \
                of that.",
        shows: "`generic-receive-offload: off` in `ethtool -k`.",
        fix: "`ethtool -K IFACE gro on`. It works behind any number of VLAN tags. It does not see TCP inside PPPoE: Linux \
              6.12 has no GRO for PPPoE, so a device that carries nothing else gains nothing.",
        costs: "Some microseconds of delay at low rates. A device without receive checksums makes GRO verify them in \
                software, which may cost more than it saves when forwarding.",
    },
    judge: Judge::Device(judge),
};

/// Part of the traffic in PPPoE above which GRO has nothing to do.
const NEARLY_ALL: f64 = 0.9;

const FEATURE: &str = "generic-receive-offload";

fn judge(case: &Case<'_>, interface: &Interface) -> Judgement {
    if matches!(case.system(), Some(System::FreeBsd | System::NetBsd)) {
        return Judgement::DoesNotApply;
    }
    let Some((gro, quote)) = case.feature(interface, FEATURE) else {
        return Judgement::lacks(format!("ethtool -k {}", steering::name(interface)));
    };
    let coalesces = |name| case.feature(interface, name).is_some_and(|(feature, _)| feature.on);
    if gro.on || coalesces("large-receive-offload") || coalesces("rx-gro-hw") {
        return Judgement::Clear;
    }
    let pppoe = case.carries_pppoe(interface);
    if pppoe.as_ref().and_then(|carries| carries.share).is_some_and(|share| share >= NEARLY_ALL) {
        return Judgement::Clear;
    }
    let full = full_cpu(case, interface);
    let mut explanation =
        "GRO is off: every received TCP segment runs through VLAN, firewall, routing and socket by itself."
            .to_owned();
    if pppoe.is_some() {
        explanation.push_str(
            " What comes in PPPoE is not coalesced either way (Linux 6.12); it is the other traffic that would gain.",
        );
    }
    let severity = if full.is_some() && pppoe.is_none() { Severity::Warning } else { Severity::Info };
    let (sentence, load) = full.unwrap_or_default();
    explanation.push_str(&sentence);
    let mut finding = RULE.finding(Some(&interface.name), severity, [quote], explanation).and(load.as_ref());
    if let Some(pppoe) = &pppoe {
        finding = finding.and(&pppoe.quotes);
    }
    if gro.fixed {
        return finding.into();
    }
    finding
        .with(Remedy {
            os: "linux",
            what: "segments of one TCP flow joined on receipt".to_owned(),
            commands: vec![format!("ethtool -K {} gro on", steering::name(interface))],
            expected: "Less work for each received TCP segment, the more the larger the flows. How much cannot be told \
                       from the text. Segments inside PPPoE stay as they are."
                .to_owned(), modelled: None,
})
        .into()
}

/// The sentence and line of a CPU that serves the device and has no time left.
fn full_cpu(case: &Case<'_>, interface: &Interface) -> Option<(String, Option<Quote>)> {
    let device = case.snapshot().interface(&interface.name)?;
    case.receive_interrupts(device).into_iter().find_map(|vector| {
        let strained = strain::of(case, steering::cpu_of(case, vector));
        (strained.strain == Strain::Full).then_some((strained.sentence, strained.quote))
    })
}
