//! `mtu-below-1500`: a VLAN or PPPoE interface carries less than an Ethernet packet.

use crate::Case;
use crate::report::{Finding, Remedy, Severity};
use crate::rule::{Judge, Judgement, Page, Rule};
use crate::stacked::{self, FullPppoe, Stack};
use host::System;
use std::collections::BTreeMap;

/// The rule.
pub(super) static RULE: Rule = Rule {
    id: "mtu-below-1500",
    stage: "decap",
    page: Page {
        title: "The interface carries packets of less than 1500 bytes",
        means: "PPPoE takes 8 of Ethernet's 1500 bytes, which leaves an MTU of 1492. Every TCP connection then needs a \
                smaller segment size (MSS clamping on the router, or path MTU discovery that works), and what is sent at \
                1500 by mistake is fragmented or lost. It is how PPPoE usually runs and no fault. RFC 4638 lets both ends \
                agree on 1500 with the tag PPP-Max-Payload, if everything between them carries 1508. A VLAN device with a \
                lowered MTU does not make the frames that it receives any shorter.",
        shows: "`mtu 1492` in `ip link` for a PPP interface.",
        fix: "If the provider knows RFC 4638: MTU 1508 for the interfaces below PPPoE, and 1500 for PPP at both ends. Linux: \
              `ip link set dev IFACE mtu 1508`, pppd options `mtu 1500 mru 1500`. FreeBSD mpd5: `set pppoe max-payload 1500`, \
              `set link mtu 1500`, `set link mru 1500`; ppp: `set mtu max 1500`, `set mru max 1500`.",
        costs: "Each interface below has to carry frames of 1522 bytes and 4 for each tag, without FCS. MTU 1508 on the device \
                also lets untagged frames of 1522 bytes in, and makes IP on the device itself send packets of 1508, unless \
                its routes say `mtu 1500`.",
    },
    judge: Judge::Machine(judge),
};

/// What PPPoE leaves of 1500 bytes (RFC 2516 section 7).
const USUAL: u32 = 1492;

/// Interfaces that differ in nothing but their name: what is below, and the MTU. An access concentrator has
/// thousands.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Alike<'a> {
    below: Option<&'a str>,
    is_ppp: bool,
    mtu: u32,
}

fn judge(case: &Case<'_>) -> Judgement {
    let stacks: Vec<Stack<'_>> = case.stacked().filter_map(|top| Stack::of(case, top)).collect();
    let mut groups: BTreeMap<Alike<'_>, Vec<&Stack<'_>>> = BTreeMap::new();
    let mut lacking: Vec<String> = Vec::new();
    for stack in &stacks {
        match stacked::mtu(stack.top) {
            Some(mtu) if mtu < stacked::USUAL_MTU => {
                let below = stack.below.first().map(|(name, _)| *name);
                groups
                    .entry(Alike { below, is_ppp: stacked::is_ppp(stack.top), mtu })
                    .or_default()
                    .push(stack);
            }
            Some(_) => {}
            None => lacking.push(match case.system() {
                Some(System::FreeBsd | System::NetBsd) => format!("ifconfig {}", stack.top.name),
                Some(System::Linux) | None => format!("ip -d link show dev {}", stack.top.name),
            }),
        }
    }
    let found: Vec<Finding> =
        groups.iter().filter_map(|(alike, stacks)| below_1500(case, alike.mtu, stacks)).collect();
    match (stacks.is_empty(), found.is_empty(), lacking.is_empty()) {
        (true, _, _) => Judgement::DoesNotApply,
        (_, false, _) => Judgement::Found(found),
        (_, _, false) => Judgement::Lacks(lacking),
        _ => Judgement::Clear,
    }
}

fn below_1500(case: &Case<'_>, mtu: u32, stacks: &[&Stack<'_>]) -> Option<Finding> {
    let stack = *stacks.first()?;
    let interface = stack.top;
    let others: Vec<&str> = stacks.iter().skip(1).map(|stack| stack.top.name.as_str()).collect();
    let others = match others.is_empty() {
        true => String::new(),
        false => format!(" The same holds for {}.", stacked::named(&others)),
    };
    let quotes = stack.quotes();
    let finding = |text: String| RULE.finding(Some(&interface.name), Severity::Info, &quotes, text + &others);
    if !stacked::is_ppp(interface) {
        return Some(finding(format!(
            "{} has an MTU of {mtu}. That shortens what is sent; what the other side sends stays as long as its own MTU \
             makes it.",
            interface.name
        )));
    }
    let full = stacked::full_pppoe(case, stack);
    let finding = finding(explanation(stack, mtu, &full));
    Some(if full.works == Some(false) { finding } else { remedies(case, stack, &full, finding) })
}

fn explanation(stack: &Stack<'_>, mtu: u32, full: &FullPppoe) -> String {
    let name = &stack.top.name;
    let mut text = match mtu {
        USUAL => format!(
            "{name} has an MTU of 1492, the usual one of PPPoE: TCP needs a smaller segment size on its way."
        ),
        less if less < USUAL => {
            format!(
                "{name} has an MTU of {less}, less than the 1492 that PPPoE leaves; the provider, or a setting, asks for it."
            )
        }
        more => format!("{name} has an MTU of {more}."),
    };
    let Some(frame) = full.frame else {
        text.push_str(" For 1500 (RFC 4638) the interface below it, which the text does not tell, needs an MTU of 1508.");
        return text;
    };
    let way = stack.below.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" on ");
    text.push_str(&format!(
        " 1500 (RFC 4638) takes an MTU of 1508 of {way}, and frames of {frame} bytes ({} with FCS): ",
        frame.saturating_add(stacked::FCS)
    ));
    text.push_str(match full.works {
        Some(true) => {
            "this device accepts them. Whether the provider does, its answer to PPP-Max-Payload tells."
        }
        Some(false) => "this device, or its driver, does not accept them.",
        None => "whether this device accepts them is not known.",
    });
    text
}

fn remedies(case: &Case<'_>, stack: &Stack<'_>, full: &FullPppoe, finding: Finding) -> Finding {
    let system = case.system();
    let is = |os| system.is_none() || system == Some(os);
    let mut finding = finding;
    if is(System::Linux) {
        finding = finding.with(linux(case, stack, full));
    }
    if is(System::FreeBsd) {
        finding = finding.with(Remedy {
            os: "freebsd",
            what: "1500-byte PPPoE: MTU 1508 below, then for mpd5 `set pppoe max-payload 1500`, `set link mtu 1500`, \
                   `set link mru 1500`; for ppp `set mtu max 1500` and `set mru max 1500`"
                .to_owned(),
            commands: full.to_raise.iter().map(|name| format!("ifconfig {name} mtu 1508")).collect(),
            expected: EXPECTED.to_owned(), modelled: None,
});
    }
    if is(System::NetBsd) && !full.to_raise.is_empty() {
        finding = finding.with(Remedy {
            os: "netbsd",
            what: "1500-byte PPPoE: MTU 1508 below, then 1500 for the pppoe interface".to_owned(),
            commands: full
                .to_raise
                .iter()
                .map(|name| format!("ifconfig {name} mtu 1508"))
                .chain([format!("ifconfig {} mtu 1500", stack.top.name)])
                .collect(),
            expected: EXPECTED.to_owned(),
            modelled: None,
        });
    }
    finding
}

const EXPECTED: &str = "After the next dial-in an MTU of 1500, if the provider answers with PPP-Max-Payload 1500 or more: no \
                        MSS clamping, no fragments. If it does not, the MTU stays at 1492 and nothing is lost.";

fn linux(case: &Case<'_>, stack: &Stack<'_>, full: &FullPppoe) -> Remedy {
    let device = stack.device();
    let untagged = device.map_or(String::new(), |device| {
        let name = &device.name;
        let frame = full.mtu_needed.saturating_add(stacked::ETHERNET);
        if !full.to_raise.contains(name) {
            return String::new();
        }
        let already = case
            .agreed(device, |profile| profile.int(nic::schema::FRAME_UNTAGGED))
            .is_some_and(|limit| limit >= u64::from(frame));
        let admitted = if already {
            format!(" {name} takes untagged frames of {frame} bytes at MTU 1500 already, so no longer ones get in than before.")
        } else {
            format!(
                " MTU 1508 on {name} also lets untagged frames of {frame} bytes in; there is no setting that admits only \
                 the tagged ones (Linux refuses a VLAN device an MTU above its parent's). An XDP program can drop the \
                 others."
            )
        };
        let follows = stacked::follows(case, device).map_or(String::new(), |what| format!(" What sets its limit: {what}."));
        format!("{admitted}{follows} IP on {name} itself keeps to 1500 if its routes say `mtu 1500`.")
    });
    Remedy {
        os: "linux",
        what: "1500-byte PPPoE (RFC 4638): MTU 1508 below, then pppd with `mtu 1500 mru 1500`, and a new dial-in".to_owned(),
        commands: full.to_raise.iter().map(|name| format!("ip link set dev {name} mtu {}", full.mtu_needed)).collect(),
        expected: format!("{EXPECTED}{untagged}"), modelled: None,
}
}
