//! Offloads: `gro-off`, `checksum-double-tag`, `offload-lost`.

use super::frames::same_for;
use crate::Case;
use crate::device::{self, Device};
use crate::facts::{Effect, Fact};
use crate::finding::{Finding, Remedy, Severity, found};
use crate::rule::Judgement;
use crate::stacked::{self, NAMED, OFFLOADS, Offload, Stack};
use format::quoted;
use host::{Feature, Interface, LogLine, LogTopic, Quote};

/// Part of the traffic in PPPoE above which GRO has nothing to do, where the kernel does not coalesce PPPoE.
const NEARLY_ALL: f64 = 0.9;

/// First release that looks behind any number of tags (`vlan_get_protocol`).
const FIXED: (u32, u32) = (3, 19);

/// `gro-off`: received segments are not coalesced.
pub(super) fn gro_off(device: &Device<'_>) -> Judgement {
    let case = device.case;
    let Some((gro, quote)) = case.feature(device.interface, "generic-receive-offload") else {
        return Judgement::lacks(format!("ethtool -k {}", device.word()));
    };
    let is_on = |name| case.feature(device.interface, name).is_some_and(|(feature, _)| feature.on);
    if gro.on || is_on("large-receive-offload") || is_on("rx-gro-hw") {
        return Judgement::Clear;
    }
    let pppoe = case.carries_pppoe(device);
    let kernel = case.pppoe_gro();
    let coalesces = kernel.map(|(kernel, _)| kernel.coalesces);
    if coalesces != Some(true)
        && pppoe.as_ref().and_then(|carries| carries.share).is_some_and(|share| share >= NEARLY_ALL)
    {
        return if coalesces.is_some() { Judgement::Clear } else { Judgement::lacks("uname -r") };
    }
    let vectors = case.receive_interrupts(device);
    let full = device.full_cpu(vectors.iter().filter_map(|vector| device::cpu_of(case, vector)));
    let gains = pppoe.is_none() || coalesces == Some(true);
    let severity = if full.is_some() && gains { Severity::Warning } else { Severity::Info };
    let (kernel, kernel_quote) = kernel.unzip();
    let kernel_fact = pppoe.as_ref().map(|_| Fact::PppoeGro(kernel));
    let finding = found(severity, Fact::GroOff)
        .says((pppoe.is_some() && coalesces == Some(false)).then_some(Fact::GroPppoe))
        .says(kernel_fact)
        .quotes([quote])
        .quotes(kernel_quote.filter(|_| pppoe.is_some()));
    full.iter()
        .fold(finding, |finding, load| finding.load(load))
        .quotes(pppoe.iter().flat_map(|pppoe| &pppoe.quotes))
        .fix((!gro.fixed).then(|| gro_on(device, pppoe.is_some() && coalesces == Some(true))))
        .into()
}

/// GRO on, by which what PPPoE carries is coalesced, or is not.
pub(super) fn gro_on(device: &Device<'_>, pppoe: bool) -> Remedy {
    Remedy::linux(Effect::Gro { pppoe }, [format!("ethtool -K {} gro on", device.word())])
}

/// `checksum-double-tag`: checksums of frames with two tags are written in the wrong place, or not at all.
pub(super) fn checksum(case: &Case<'_>) -> Judgement {
    let snapshot = case.snapshot();
    let logged = snapshot.log.iter().filter(|line| line.topic == LogTopic::PartialChecksum);
    let logged: Vec<Finding> = logged.map(|line| checksum_logged(case, line)).collect();
    if !logged.is_empty() {
        return Judgement::Found(logged);
    }
    let double = double_tagged(case);
    if double.is_empty() {
        return Judgement::DoesNotApply;
    }
    let kernel = snapshot.kernel.as_ref().zip(case.release());
    let Some((kernel, release)) = kernel else { return Judgement::lacks("uname -r") };
    let risky: Vec<Stack<'_>> = double.into_iter().filter(|stack| is_at_risk(case, stack)).collect();
    let Some(stack) = risky.first().filter(|_| release < FIXED) else { return Judgement::Clear };
    let fact = Fact::OldKernel { chain: stack.way(), others: risky.len() - 1, kernel: kernel.value.clone() };
    found(Severity::Warning, fact)
        .about(&stack.top.name)
        .quotes([&kernel.quote])
        .quotes(&stack.quotes())
        .possible_if(true)
        .fix([in_software(case, &risky)])
        .into()
}

fn double_tagged<'c>(case: &Case<'c>) -> Vec<Stack<'c>> {
    let stacks = case.stacked().filter_map(|interface| Stack::of(case, interface));
    stacks.filter(|stack| stacked::is_vlan(stack.top) && stack.tags().is_some_and(|tags| tags >= 2)).collect()
}

/// The kernel says that it happened.
fn checksum_logged(case: &Case<'_>, line: &LogLine) -> Finding {
    let mut inner = double_tagged(case);
    if let Some(name) = &line.interface {
        let is_below = |stack: &Stack<'_>| stack.below.iter().any(|(below, _)| below == name);
        inner.retain(|stack| stack.top.name == *name || is_below(stack));
    }
    let quotes: Vec<Quote> = inner.iter().take(NAMED).flat_map(Stack::quotes).collect();
    // What the log shows happened; with two tags it happens to every frame that is sent.
    let severity = if inner.is_empty() { Severity::Warning } else { Severity::Critical };
    let mut finding = found(severity, Fact::PartialChecksum { times: line.times })
        .says(inner.first().map(|stack| Fact::TwoTags { chain: stack.way() }))
        .quotes([&line.quote])
        .quotes(&quotes)
        .quotes(case.snapshot().kernel.as_ref().map(|kernel| &kernel.quote))
        .fix([in_software(case, &inner)]);
    finding.interface = line.interface.clone();
    finding
}

/// Not where checksums are computed in software already, or the device is given the place of the checksum.
fn is_at_risk(case: &Case<'_>, stack: &Stack<'_>) -> bool {
    let is_on =
        |interface: &Interface, name: &str| case.feature(interface, name).map(|(feature, _)| feature.on);
    is_on(stack.top, "tx-checksumming") != Some(false)
        && stack.device().and_then(|device| is_on(device, "tx-checksum-ip-generic")) != Some(true)
}

fn in_software(case: &Case<'_>, inner: &[Stack<'_>]) -> Remedy {
    let can_set = |stack: &&Stack<'_>| {
        case.feature(stack.top, "tx-checksumming").is_none_or(|(feature, _)| feature.on && !feature.fixed)
    };
    let commands = inner.iter().filter(can_set).take(NAMED);
    let commands: Vec<String> =
        commands.map(|stack| format!("ethtool -K {} tx off", quoted(&stack.top.name))).collect();
    Remedy::linux(Effect::SoftwareChecksums { known: !commands.is_empty() }, commands)
}

struct LostOffload<'c> {
    offload: &'static Offload,
    here: Feature,
    quotes: [&'c Quote; 2],
    device_can: Option<bool>,
}

/// A VLAN device without what it might have.
struct Lacking<'c> {
    stack: Stack<'c>,
    lost: Vec<LostOffload<'c>>,
}

impl Lacking<'_> {
    /// Whether the same can be said of both: thousands of subscribers' VLANs are one finding.
    fn is_like(&self, other: &Lacking<'_>) -> bool {
        let kinds = |lacking: &Lacking<'_>| -> Vec<(&str, bool, Option<bool>)> {
            lacking.lost.iter().map(|lost| (lost.offload.feature, lost.here.fixed, lost.device_can)).collect()
        };
        self.stack.below.last().map(|(name, _)| *name) == other.stack.below.last().map(|(name, _)| *name)
            && self.stack.tags() == other.stack.tags()
            && kinds(self) == kinds(other)
    }
}

/// `offload-lost`: a VLAN device lacks an offload that the device below has.
pub(super) fn lost(case: &Case<'_>) -> Judgement {
    let mut groups: Vec<Vec<Lacking<'_>>> = Vec::new();
    let mut missing: Vec<String> = Vec::new();
    let mut any = false;
    for stack in case.stacked().filter(|top| stacked::is_vlan(top)).filter_map(|top| Stack::of(case, top)) {
        any = true;
        match compared(case, &stack) {
            Err(command) => missing.push(command),
            Ok(lost) if lost.is_empty() => {}
            Ok(lost) => {
                let lacking = Lacking { stack, lost };
                match groups
                    .iter_mut()
                    .find(|group| group.iter().take(1).any(|first| first.is_like(&lacking)))
                {
                    Some(group) => group.push(lacking),
                    None => groups.push(vec![lacking]),
                }
            }
        }
    }
    match any {
        true => Judgement::of(groups.iter().filter_map(|group| offloads_lost(group)).collect(), missing),
        false => Judgement::DoesNotApply,
    }
}

/// What it lost; the command whose output is missing, where that is not known.
fn compared<'c>(case: &Case<'c>, stack: &Stack<'c>) -> Result<Vec<LostOffload<'c>>, String> {
    let known = |interface: &Interface| !interface.features.is_empty();
    if !known(stack.top) {
        return Err(format!("ethtool -k {}", quoted(&stack.top.name)));
    }
    let Some((parent, _)) = stack.below.first() else { return Err("ip -d link".to_owned()) };
    if !stack.below.iter().any(|(_, interface)| interface.is_some_and(known)) {
        return Err(format!("ethtool -k {}", quoted(parent)));
    }
    let lost = |offload: &'static Offload| {
        let (here, line) = case.feature(stack.top, offload.feature)?;
        let (below, line_below) = stacked::feature_below(case, stack, offload.feature)?;
        let device_can = offload.device_can(case, stack);
        // What the device cannot do for such frames is not lost.
        (below && !here.on && device_can != Some(false)).then_some(LostOffload {
            offload,
            here,
            quotes: [line, line_below],
            device_can,
        })
    };
    Ok(OFFLOADS.iter().filter(|offload| !offload.is_below).filter_map(lost).collect())
}

fn offloads_lost(group: &[Lacking<'_>]) -> Option<Finding> {
    let Lacking { stack, lost } = group.first()?;
    let name = stack.top.name.clone();
    let others = group.iter().skip(1).map(|lacking| lacking.stack.top.name.clone()).collect();
    let all = lost.iter().map(|lost| lost.offload.feature).collect();
    let can = lost.iter().filter(|lost| lost.device_can == Some(true));
    let can: Vec<&str> = can.map(|lost| lost.offload.feature).collect();
    let severity = if can.is_empty() { Severity::Info } else { Severity::Warning };
    let settable = group
        .iter()
        .take(NAMED)
        .flat_map(|lacking| lacking.lost.iter().map(|lost| (quoted(&lacking.stack.top.name), lost)))
        .filter(|(_, lost)| !lost.here.fixed);
    let commands: Vec<String> =
        settable.map(|(name, lost)| format!("ethtool -K {name} {} on", lost.offload.set)).collect();
    let remedy = Remedy::linux(Effect::Offloads { fixed: commands.is_empty() }, commands);
    let remedy = (!can.is_empty()).then_some(remedy);
    let fact = Fact::OffloadsLost { name: name.clone(), lost: all, can, tags: stack.tags() };
    let finding = found(severity, fact).about(&name).says(same_for(others));
    Some(finding.quotes(lost.iter().flat_map(|lost| lost.quotes)).fix(remedy))
}
