//! How long frames are: `frame-oversize`, `mtu-below-1500`.

use crate::device::{Device, freebsd_node};
use crate::facts::{DropCounter, Effect, Fact, RaisedDevice, When};
use crate::finding::{Finding, Remedy, Severity, found};
use crate::loss::{self, Lost};
use crate::rule::Judgement;
use crate::stacked::{self, FullPppoe, Stack};
use crate::{Case, ENOUGH_SINCE_START};
use format::quoted;
use host::{Counter, Quote, System};
use std::collections::BTreeMap;

/// Stacked interfaces that are named with their arithmetic; a concentrator has thousands.
const NAMED: usize = 3;

/// `frame-oversize`: frames are longer than the device or the interfaces below accept.
pub(super) fn oversize(device: &Device<'_>) -> Judgement {
    let stacks = Stack::over(device.case, device);
    let counters = &device.totals.too_long;
    let received = loss::received(device);
    let losses: Vec<Lost<'_>> = counters
        .iter()
        .filter_map(|(name, drops)| loss::of(device.case, DropCounter::Named(name.clone()), drops, received))
        .collect();
    let fits: Vec<Option<bool>> = stacks.iter().map(|stack| fits(device.case, stack)).collect();
    let long = stacks.iter().zip(&fits).filter(|(_, fits)| **fits == Some(false));
    let long: Vec<&Stack<'_>> = long.map(|(stack, _)| stack).collect();
    let mut findings: Vec<Finding> = too_small_below(device.case, &stacks).into_iter().collect();
    match loss::gravest(&losses) {
        Some(gravest) => findings.push(dropped(device, gravest, &losses, &long)),
        None if !long.is_empty() => findings.push(by_arithmetic(device, &long)),
        None => {}
    }
    match findings.is_empty() {
        false => Judgement::Found(findings),
        true if stacks.is_empty() && counters.is_empty() => Judgement::DoesNotApply,
        true if counters.is_empty() && fits.contains(&None) => lacks(device, &stacks),
        true => Judgement::Clear,
    }
}

fn lacks(device: &Device<'_>, stacks: &[Stack<'_>]) -> Judgement {
    let name = device.word();
    match device.case.system() {
        Some(System::FreeBsd) => Judgement::lacks(format!("sysctl {}", freebsd_node(&name))),
        // Neither a counter of long frames nor a profile of the driver.
        Some(System::NetBsd) => Judgement::DoesNotApply,
        Some(System::Linux) | None => {
            let mtu = stacks.iter().any(|stack| stack.frame().is_none()).then(|| "ip -d link".to_owned());
            let driver = device.driver.is_none().then(|| format!("ethtool -i {name}"));
            Judgement::Lacks(
                [Some(format!("ethtool -S {name}")), driver, mtu].into_iter().flatten().collect(),
            )
        }
    }
}

/// Whether the device lets full frames of the stack in.
fn fits(case: &Case<'_>, stack: &Stack<'_>) -> Option<bool> {
    let mtu = stack.device().and_then(stacked::mtu);
    stack.limit(case, mtu, stack.packet()?)?.accepts(stack.frame()?)
}

/// Frames are being dropped, or were.
fn dropped(device: &Device<'_>, gravest: &Lost<'_>, all: &[Lost<'_>], long: &[&Stack<'_>]) -> Finding {
    let severity = match (gravest.loss.when, long.is_empty()) {
        // It explains what was counted, and will go on.
        (When::SinceStart, false) => Severity::Warning,
        _ => gravest.severity(),
    };
    let finding = gravest.found(severity, all, Fact::TooLong);
    let finding = match long {
        [] => finding.says([Fact::TooLongUnknown]),
        long => finding.says(arithmetic(device.case, long)),
    };
    let finding = finding.quotes(&quotes(long));
    if severity == Severity::Info { finding } else { raised(device, finding, long) }
}

/// Nothing was counted, but full frames will not fit.
fn by_arithmetic(device: &Device<'_>, long: &[&Stack<'_>]) -> Finding {
    let counters = &device.totals.too_long;
    let frames = loss::received(device).map_or(0, Counter::value);
    let none_came = !counters.is_empty() && frames >= ENOUGH_SINCE_START;
    let severity = if none_came { Severity::Info } else { Severity::Warning };
    let mut facts = arithmetic(device.case, long);
    let first = facts.remove(0);
    let finding = found(severity, first)
        .says(facts)
        .says(none_came.then_some(Fact::NoneAmong { frames }))
        .quotes(&quotes(long))
        .quotes(device.driver.as_ref().map(|driver| &driver.quote))
        .quotes(counters.values().map(Counter::quote))
        .possible_if(true);
    if none_came { finding } else { raised(device, finding, long) }
}

fn quotes(long: &[&Stack<'_>]) -> Vec<Quote> {
    long.iter().take(NAMED).flat_map(|stack| stack.quotes()).collect()
}

fn arithmetic(case: &Case<'_>, long: &[&Stack<'_>]) -> Vec<Fact> {
    let facts = long.iter().take(NAMED).map(|stack| {
        let limit = stack
            .device()
            .and_then(|device| stack.limit(case, stacked::mtu(device), stack.packet()?)?.at_most);
        let (frame, tags) = (stack.frame().unwrap_or_default(), stack.tags().unwrap_or_default());
        Fact::FullFrame { chain: stack.way(), frame, tags, limit }
    });
    facts.collect()
}

/// The largest MTU of a Linux Ethernet device (`ETH_MAX_MTU`), which a text may exceed.
const LARGEST_MTU: u32 = 65_535;

/// The MTU of the device at which a full frame is let in, as far as the profile says.
fn sufficient_mtu(case: &Case<'_>, stack: &Stack<'_>) -> Option<u32> {
    let frame = stack.frame()?;
    let now = stacked::mtu(stack.device()?)?;
    let most = frame.saturating_sub(stacked::ETHERNET).min(LARGEST_MTU);
    (now..=most).find(|&mtu| {
        mtu > now && stack.limit(case, Some(mtu), mtu).and_then(|limit| limit.accepts(frame)) == Some(true)
    })
}

/// With an MTU of the device that lets the longest frames in.
fn raised(device: &Device<'_>, finding: Finding, long: &[&Stack<'_>]) -> Finding {
    let longest = long.iter().copied().max_by_key(|stack| stack.frame()).filter(|_| !device.case.is_bsd());
    let Some((stack, mtu)) = longest.and_then(|stack| Some((stack, sufficient_mtu(device.case, stack)?)))
    else {
        return finding;
    };
    if device.mtu_most.as_ref().is_some_and(|most| most.value < mtu) {
        return finding;
    }
    let more = mtu.saturating_sub(stacked::USUAL_MTU);
    let effect = Effect::RaiseMtu {
        top: stack.top.name.clone(),
        mtu,
        vlan_mtu: stacked::mtu(stack.top).unwrap_or_default().saturating_sub(more),
        follows: stacked::follows(device.case, device),
    };
    finding.fix([Remedy::linux(effect, [format!("ip link set dev {} mtu {mtu}", device.word())])])
}

/// PPP packets that the interface below does not carry: an MTU set by hand, since pppd would not.
fn too_small_below(case: &Case<'_>, stacks: &[Stack<'_>]) -> Option<Finding> {
    let mut large = stacks.iter().filter_map(|stack| {
        let packet = stack.packet()?;
        let (name, below) = stack.below.iter().find_map(|(name, interface)| {
            let mtu = (*interface)?.mtu.as_ref()?;
            (*mtu.get() < packet).then_some((*name, *mtu.get()))
        })?;
        Some((stack, packet, name, below))
    });
    let (stack, packet, below, mtu) = large.next()?;
    let names: Vec<String> = large.map(|(stack, ..)| stack.top.name.clone()).collect();
    let name = stack.top.name.clone();
    let fits = mtu.saturating_sub(packet.saturating_sub(stacked::mtu(stack.top)?));
    let word = quoted(&name);
    let bsd = format!("ifconfig {word} mtu {fits}");
    let command = case.by_system(format!("ip link set dev {word} mtu {fits}"), bsd.clone(), bsd);
    let fact = Fact::BelowTooSmall { name: name.clone(), packet, below: below.to_owned(), mtu };
    let remedy = Remedy::new(case.system().unwrap_or(System::Linux), Effect::LowerMtu, [command]);
    let finding = found(Severity::Warning, fact).about(&name).says(same_for(names)).quotes(&stack.quotes());
    Some(finding.fix([remedy]))
}

/// That the same holds for others, where there are any.
pub(super) fn same_for(names: Vec<String>) -> Option<Fact> {
    (!names.is_empty()).then_some(Fact::SameFor { names })
}

/// `mtu-below-1500`: a VLAN or PPPoE interface carries less than an Ethernet packet. Interfaces that differ in nothing
/// but their name are one finding: an access concentrator has thousands.
pub(super) fn mtu_below_1500(case: &Case<'_>) -> Judgement {
    let stacks: Vec<Stack<'_>> = case.stacked().filter_map(|top| Stack::of(case, top)).collect();
    if stacks.is_empty() {
        return Judgement::DoesNotApply;
    }
    let mut groups: BTreeMap<(Option<&str>, bool, u32), Vec<&Stack<'_>>> = BTreeMap::new();
    let mut lacking: Vec<String> = Vec::new();
    for stack in &stacks {
        let below = stack.below.first().map(|(name, _)| *name);
        match stacked::mtu(stack.top) {
            Some(mtu) if mtu < stacked::USUAL_MTU => {
                groups.entry((below, stacked::is_ppp(stack.top), mtu)).or_default().push(stack);
            }
            Some(_) => {}
            None => {
                let (name, linux) = (quoted(&stack.top.name), "ip -d link show dev");
                lacking.push(format!("{} {name}", case.by_system(linux, "ifconfig", "ifconfig")));
            }
        }
    }
    let groups = groups.into_iter().filter_map(|((_, _, mtu), stacks)| below_1500(case, mtu, &stacks));
    Judgement::of(groups.collect(), lacking)
}

fn below_1500(case: &Case<'_>, mtu: u32, stacks: &[&Stack<'_>]) -> Option<Finding> {
    let stack = *stacks.first()?;
    let name = stack.top.name.clone();
    let others = same_for(stacks.iter().skip(1).map(|stack| stack.top.name.clone()).collect());
    let (about, quotes) = (name.clone(), stack.quotes());
    let finding = |fact: Fact| found(Severity::Info, fact).about(&about).quotes(&quotes);
    if !stacked::is_ppp(stack.top) {
        return Some(finding(Fact::VlanMtu { name, mtu }).says(others));
    }
    let full = stacked::full_pppoe(case, stack);
    let way = stack.below.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" on ");
    let below = full.frame.map(|frame| (way, frame));
    let finding =
        finding(Fact::PppMtu { name, mtu }).says([Fact::FullPppoe { below, works: full.works }]).says(others);
    Some(if full.works == Some(false) { finding } else { finding.fix(to_1500(case, stack, &full)) })
}

fn to_1500(case: &Case<'_>, stack: &Stack<'_>, full: &FullPppoe) -> Vec<Remedy> {
    let names: Vec<String> = full.to_raise.iter().map(|name| quoted(name)).collect();
    let ifconfig = || names.iter().map(|name| format!("ifconfig {name} mtu 1508"));
    let plain = Effect::Pppoe1500 { raised: None };
    let mut remedies = Vec::new();
    if case.may_be(System::Linux) {
        let commands = names.iter().map(|name| format!("ip link set dev {name} mtu {}", full.mtu_needed));
        remedies
            .push(Remedy::linux(Effect::Pppoe1500 { raised: raised_device(case, stack, full) }, commands));
    }
    if case.may_be(System::FreeBsd) {
        remedies.push(Remedy::new(System::FreeBsd, plain.clone(), ifconfig()));
    }
    if case.may_be(System::NetBsd) && !names.is_empty() {
        let own = format!("ifconfig {} mtu 1500", quoted(&stack.top.name));
        remedies.push(Remedy::new(System::NetBsd, plain, ifconfig().chain([own])));
    }
    remedies
}

/// What else a device lets in whose MTU rises to 1508.
fn raised_device(case: &Case<'_>, stack: &Stack<'_>, full: &FullPppoe) -> Option<RaisedDevice> {
    let device = stack.device().filter(|device| full.to_raise.contains(&device.name))?;
    let frame = full.mtu_needed.saturating_add(stacked::ETHERNET);
    let limit = case.agreed(device, |profile| profile.int(nic::schema::FRAME_UNTAGGED));
    Some(RaisedDevice {
        name: device.name.clone(),
        frame,
        already: limit.is_some_and(|limit| limit >= u64::from(frame)),
        follows: stacked::follows(case, device),
    })
}
