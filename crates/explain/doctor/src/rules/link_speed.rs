//! `link-speed`: the link itself is slower than the device, or half duplex.

use crate::Case;
use crate::report::{Finding, Remedy, Severity};
use crate::rule::{Judge, Judgement, Page, Rule};
use crate::steering;
use host::{Fact, Interface, Observed, Quote, System};

/// The rule.
pub(super) static RULE: Rule = Rule {
    id: "link-speed",
    stage: "admit",
    page: Page {
        title: "The link was negotiated slower than the device can",
        means: "No queue, CPU or offload can bring more than the wire carries. A gigabit card on a damaged cable, or \
                one with two pairs, negotiates 100 Mbit/s; a port forced to a speed on one end and negotiating on the \
                other falls back to half duplex and loses frames to late collisions. Some 8,000 full-size frames a \
                second are all that 100 Mbit/s can carry, which one queue of any card takes easily.",
        shows: "`ethtool IFACE` shows a `Speed:` below the fastest of `Supported link modes`, or `Duplex: Half`. On \
                FreeBSD and NetBSD `ifconfig` shows the media in brackets: `(100baseTX <full-duplex>)`. Where the \
                partner's advertised modes are slower too, the other end is the limit.",
        fix: "Another cable (all four pairs, category 5e or better) and port first; then see that both ends negotiate \
              (`ethtool -s IFACE autoneg on`). Where the modem or ONT offers no more, nothing on this machine helps.",
        costs: "Negotiation takes the link down for some seconds.",
    },
    judge: Judge::Device(judge),
};

/// Mbit/s from which a slower link than the card's best is likely what was bought.
const USUAL: u32 = 1000;

fn judge(case: &Case<'_>, interface: &Interface) -> Judgement {
    let link = &interface.link;
    let Some(speed) = &link.speed else {
        return Judgement::lacks(match case.system() {
            Some(System::FreeBsd | System::NetBsd) => format!("ifconfig {}", steering::name(interface)),
            _ => format!("ethtool {}", steering::name(interface)),
        });
    };
    // What a link had before it went down, or what the driver shows without one, limits nothing.
    if link.up.as_ref().is_some_and(|up| !*up.get()) {
        return Judgement::DoesNotApply;
    }
    let mut found = Vec::new();
    if let Some(duplex) = link.full_duplex.as_ref().filter(|full| !*full.get()) {
        found.push(half_duplex(case.system(), interface, speed, duplex.quote()));
    }
    let faster = link.supported.as_ref().filter(|most| most.value > *speed.get());
    if let Some(most) = faster {
        found.extend(slower(case.system(), interface, speed, most, link.partner.as_ref()));
    }
    if found.is_empty() { Judgement::Clear } else { Judgement::Found(found) }
}

fn half_duplex(
    system: Option<System>,
    interface: &Interface,
    speed: &Observed<u32>,
    quote: &Quote,
) -> Finding {
    let explanation = format!(
        "The link of {} runs at {} Mbit/s half duplex: both directions share it, and frames are lost to collisions. \
         Usually one end has a forced speed and the other negotiates.",
        interface.name,
        speed.get()
    );
    RULE.finding(Some(&interface.name), Severity::Warning, [quote, speed.quote()], explanation)
        .with(negotiate(system, interface))
}

fn slower(
    system: Option<System>,
    interface: &Interface,
    speed: &Observed<u32>,
    most: &Fact<u32>,
    partner: Option<&Fact<u32>>,
) -> Option<Finding> {
    let now = *speed.get();
    let by_partner = partner.is_some_and(|partner| partner.value <= now);
    if by_partner && now >= USUAL {
        return None;
    }
    let (severity, why) = match partner {
        Some(_) if by_partner => (Severity::Info, "The other end offers no more."),
        Some(_) => {
            (Severity::Warning, "Both ends can do more, so the cable or a forced setting is the cause.")
        }
        None if now >= USUAL => (Severity::Info, "What the other end offers is not known."),
        None => (Severity::Warning, "The cable, a forced setting, or the other end is the cause."),
    };
    let explanation = format!(
        "The link of {} runs at {now} Mbit/s; the device can do {} Mbit/s. Nothing after the wire can be faster. {why}",
        interface.name, most.value
    );
    let finding = RULE
        .finding(Some(&interface.name), severity, [speed.quote(), &most.quote], explanation)
        .and(partner.map(|partner| &partner.quote));
    Some(if severity == Severity::Warning { finding.with(negotiate(system, interface)) } else { finding })
}

fn negotiate(system: Option<System>, interface: &Interface) -> Remedy {
    let name = steering::name(interface);
    let (os, command) = match system {
        Some(system @ (System::FreeBsd | System::NetBsd)) => {
            (system.name(), format!("ifconfig {name} media autoselect"))
        }
        Some(System::Linux) | None => ("linux", format!("ethtool -s {name} autoneg on")),
    };
    Remedy {
        os,
        what: "another cable and port, and negotiation on both ends".to_owned(),
        commands: vec![command],
        expected: "The link comes back at the fastest speed that both ends and the cable can do.".to_owned(),
        modelled: None,
    }
}
