//! `frame-oversize`: frames are longer than the device or the interfaces below accept.

use crate::loss::{self, Loss, When, freebsd_node};
use crate::report::{Finding, Remedy, Severity};
use crate::rule::{Judge, Judgement, Page, Rule};
use crate::stacked::{self, Stack};
use crate::{Case, ENOUGH_SINCE_START, steering};
use host::{Counter, Interface, Quote, System};

/// The rule.
pub(super) static RULE: Rule = Rule {
    id: "frame-oversize",
    stage: "admit",
    page: Page {
        title: "Frames are too long for the device",
        means: "A tag makes a frame 4 bytes longer, PPPoE 8. Full frames of MTU 1500 have 1518 bytes with FCS, 1522 with one \
                tag (802.1Q), 1526 with two (802.1ad), and 8 more where PPPoE carries 1500 bytes (RFC 4638). What a driver \
                lets in at MTU 1500 differs: e1000e up to 1522 bytes with FCS; ixgbe and bnx2x 1522 with a tag of TPID \
                0x8100 outside and 1518 otherwise; mlx4 and sfc 1526 and a little more; igb 1536. What is longer is \
                dropped in the device: small packets pass, full ones vanish.",
        shows: "`rx_long_length_errors`, `rx_length_errors`, `rx_oversize…` or `rx_over_size…` rise; or the arithmetic says \
                that full frames of a VLAN or PPPoE interface are longer than the profile of the device allows. \
                `rx_long_byte_count` is a count of bytes, not an error.",
        fix: "Raise the MTU of the device by what is missing, or lower the MTU at both ends of the VLAN. Lowering it here \
              alone does not shorten what the other side sends.",
        costs: "A larger MTU of the device lets untagged frames of that size in, too, and IP on the device itself sends \
                packets of it; its routes can be kept at `mtu 1500`. A filter by length at ingress sees packets that GRO \
                has joined, so it is right only with GRO off; XDP sees each frame by itself.",
    },
    judge: Judge::Device(judge),
};

/// Stacked interfaces that are named with their arithmetic; a concentrator has thousands.
const NAMED: usize = 3;

fn judge(case: &Case<'_>, interface: &Interface) -> Judgement {
    let stacks = Stack::over(case, interface);
    let counters = &interface.totals.too_long;
    let received = loss::received(interface);
    let losses: Vec<Loss> =
        counters.iter().filter_map(|(name, counter)| loss::of(case, name, counter, received)).collect();
    let fits: Vec<Option<bool>> = stacks.iter().map(|stack| fits(case, stack)).collect();
    let long: Vec<&Stack<'_>> =
        stacks.iter().zip(&fits).filter(|(_, fits)| **fits == Some(false)).map(|(stack, _)| stack).collect();
    let mut found: Vec<Finding> = too_small_below(case, &stacks).into_iter().collect();
    match (loss::gravest(&losses), long.is_empty()) {
        (Some(gravest), _) => found.push(dropped(case, interface, gravest, &losses, &long)),
        (None, false) => found.push(by_arithmetic(case, interface, &long)),
        (None, true) => {}
    }
    if !found.is_empty() {
        return Judgement::Found(found);
    }
    if stacks.is_empty() && counters.is_empty() {
        return Judgement::DoesNotApply;
    }
    if counters.is_empty() && fits.contains(&None) {
        return lacks(case, interface, &stacks);
    }
    Judgement::Clear
}

fn lacks(case: &Case<'_>, interface: &Interface, stacks: &[Stack<'_>]) -> Judgement {
    let name = steering::name(interface);
    match case.system() {
        Some(System::FreeBsd) => return Judgement::lacks(format!("sysctl {}", freebsd_node(name))),
        // Neither a counter of long frames nor a profile of the driver.
        Some(System::NetBsd) => return Judgement::DoesNotApply,
        Some(System::Linux) | None => {}
    }
    let mtu = stacks.iter().any(|stack| stack.frame().is_none()).then(|| "ip -d link".to_owned());
    let driver = interface.driver.is_none().then(|| format!("ethtool -i {name}"));
    Judgement::Lacks([Some(format!("ethtool -S {name}")), driver, mtu].into_iter().flatten().collect())
}

/// Whether the device lets full frames of the stack in.
fn fits(case: &Case<'_>, stack: &Stack<'_>) -> Option<bool> {
    let mtu = stack.device().and_then(stacked::mtu);
    stack.limit(case, mtu, stack.packet()?)?.accepts(stack.frame()?)
}

/// Frames are being dropped, or were.
fn dropped(
    case: &Case<'_>,
    interface: &Interface,
    gravest: &Loss,
    losses: &[Loss],
    long: &[&Stack<'_>],
) -> Finding {
    let severity = match (gravest.when, long.is_empty()) {
        // It explains what was counted, and will go on.
        (When::SinceStart, false) => Severity::Warning,
        _ => gravest.severity(),
    };
    let mut explanation =
        format!("{}: frames longer than the device accepts were dropped.", gravest.sentence());
    match long {
        [] => explanation.push_str(
            " Which they are the text does not tell: full frames with one tag more than expected, PPPoE with packets of \
             1500 bytes, or jumbo frames of others on the wire.",
        ),
        stacks => stacks.iter().take(NAMED).for_each(|stack| explanation.push_str(&format!(" {}", arithmetic(case, stack)))),
    }
    let quotes: Vec<Quote> = long.iter().take(NAMED).flat_map(|stack| stack.quotes()).collect();
    let finding = RULE
        .finding(Some(&interface.name), severity, [&gravest.quote], explanation)
        .and(losses.iter().map(|loss| &loss.quote))
        .and(&quotes);
    if severity == Severity::Info {
        finding
    } else {
        longest(long).into_iter().fold(finding, |finding, stack| raised(case, finding, interface, stack))
    }
}

/// Nothing was counted, but full frames will not fit.
fn by_arithmetic(case: &Case<'_>, interface: &Interface, long: &[&Stack<'_>]) -> Finding {
    let counters = &interface.totals.too_long;
    let received = loss::received(interface).map_or(0, Counter::value);
    let none_came = !counters.is_empty() && received >= ENOUGH_SINCE_START;
    let mut explanation: Vec<String> = long.iter().take(NAMED).map(|stack| arithmetic(case, stack)).collect();
    if none_came {
        explanation.push(format!("None such came among {received} frames so far."));
    }
    let quotes: Vec<Quote> = long.iter().take(NAMED).flat_map(|stack| stack.quotes()).collect();
    let severity = if none_came { Severity::Info } else { Severity::Warning };
    let finding = RULE
        .finding(Some(&interface.name), severity, &quotes, explanation.join(" "))
        .and(interface.driver.as_ref().map(|driver| &driver.quote))
        .and(counters.values().map(Counter::quote))
        .possible();
    if none_came {
        finding
    } else {
        longest(long).into_iter().fold(finding, |finding, stack| raised(case, finding, interface, stack))
    }
}

fn longest<'a, 'b>(long: &[&'b Stack<'a>]) -> Option<&'b Stack<'a>> {
    long.iter().copied().max_by_key(|stack| stack.frame())
}

fn arithmetic(case: &Case<'_>, stack: &Stack<'_>) -> String {
    let frame = stack.frame().unwrap_or_default();
    let tags = stack.tags().unwrap_or_default();
    let limit = stack
        .device()
        .and_then(|device| stack.limit(case, stacked::mtu(device), stack.packet()?)?.at_most)
        .map_or(String::new(), |limit| {
            format!("; the device accepts {limit} ({} with FCS)", limit.saturating_add(stacked::FCS))
        });
    format!(
        "Full frames of {} have {frame} bytes with {tags} {} ({} with FCS){limit}.",
        stack.way(),
        if tags == 1 { "tag" } else { "tags" },
        frame.saturating_add(stacked::FCS),
    )
}

/// The largest MTU of a Linux Ethernet device (`ETH_MAX_MTU`), which a text may exceed.
const LARGEST_MTU: u32 = 65_535;

/// The MTU of the device at which a full frame is let in, as far as the profile tells.
fn sufficient_mtu(case: &Case<'_>, stack: &Stack<'_>) -> Option<u32> {
    let frame = stack.frame()?;
    let now = stacked::mtu(stack.device()?)?;
    let most = frame.saturating_sub(stacked::ETHERNET).min(LARGEST_MTU);
    (now..=most).find(|&mtu| {
        mtu > now && stack.limit(case, Some(mtu), mtu).and_then(|limit| limit.accepts(frame)) == Some(true)
    })
}

fn raised(case: &Case<'_>, finding: Finding, interface: &Interface, stack: &Stack<'_>) -> Finding {
    if matches!(case.system(), Some(System::FreeBsd | System::NetBsd)) {
        return finding;
    }
    let Some(mtu) = sufficient_mtu(case, stack) else { return finding };
    if interface.mtu_most.as_ref().is_some_and(|most| most.value < mtu) {
        return finding;
    }
    let follows = stacked::follows(case, interface)
        .map_or(String::new(), |what| format!(" What sets the limit: {what}."));
    finding.with(Remedy {
        os: "linux",
        what: format!("an MTU of {mtu} for {}, so that full frames of {} fit", interface.name, stack.top.name),
        commands: vec![format!("ip link set dev {} mtu {mtu}", steering::name(interface))],
        expected: format!(
            "Full frames of {} get in. So do untagged ones of {} bytes, and IP on {} itself would send packets of {mtu} \
             unless its routes say `mtu 1500`.{follows} Without that side effect: MTU {} for the VLAN at both ends; \
             or an XDP program that drops longer untagged frames (a filter by length after it would take packets that \
             GRO joined for such).",
            stack.top.name,
            mtu.saturating_add(stacked::ETHERNET),
            interface.name,
            stacked::mtu(stack.top).unwrap_or_default().saturating_sub(mtu.saturating_sub(stacked::USUAL_MTU)),
        ), modelled: None,
})
}

/// PPP packets that the interface below does not carry: an MTU set by hand, since pppd would not.
fn too_small_below(case: &Case<'_>, stacks: &[Stack<'_>]) -> Option<Finding> {
    let mut large = stacks.iter().filter_map(|stack| {
        let packet = stack.packet()?;
        let (name, below) = stack.below.iter().find_map(|(name, interface)| {
            let mtu = (*interface)?.mtu.as_ref()?;
            (*mtu.get() < packet).then_some((*name, mtu))
        })?;
        Some((stack, packet, name, below))
    });
    let (stack, packet, name, below) = large.next()?;
    let others: Vec<&str> = large.map(|(stack, ..)| stack.top.name.as_str()).collect();
    let others = match others.is_empty() {
        true => String::new(),
        false => format!(" It is alike with {}.", stacked::named(&others)),
    };
    let explanation = format!(
        "A full packet of {} takes {packet} bytes below it, and {name} carries {}: what is longer is lost or refused there.{others}",
        stack.top.name,
        below.get()
    );
    let quotes = stack.quotes();
    let finding = RULE.finding(Some(&stack.top.name), Severity::Warning, &quotes, explanation);
    let fits = below.get().saturating_sub(packet.saturating_sub(stacked::mtu(stack.top)?));
    let (os, command) = match case.system() {
        Some(system @ (System::FreeBsd | System::NetBsd)) => {
            (system.name(), format!("ifconfig {} mtu {fits}", stack.top.name))
        }
        Some(System::Linux) | None => ("linux", format!("ip link set dev {} mtu {fits}", stack.top.name)),
    };
    Some(finding.with(Remedy {
        os,
        what: "an MTU that the interfaces below carry".to_owned(),
        commands: vec![command],
        expected: "Full packets fit the frames below. Until the other end uses that MTU as well, what it sends may stay \
                   longer."
            .to_owned(), modelled: None,
}))
}
