//! `offload-lost`: a VLAN device lacks an offload that the device below has.

use crate::Case;
use crate::report::{Finding, Remedy, Severity};
use crate::rule::{Judge, Judgement, Page, Rule};
use crate::stacked::{self, OFFLOADS, Offload, Stack};
use host::{Feature, Interface, Quote, System};

/// The rule.
pub(super) static RULE: Rule = Rule {
    id: "offload-lost",
    stage: "segment",
    page: Page {
        title: "A VLAN device lost an offload that the device below has",
        means: "Checksum, scatter-gather and segmentation offloads of a VLAN device are what the driver declares for tagged \
                frames (`vlan_features`). Linux before 4.x gave a VLAN on a VLAN none of them, and drivers that are not asked \
                lose TSO behind a second tag. What is sent then is cut into segments and summed up by the CPU. Receive \
                checksums and hashing are off on every VLAN device: the device below does them, nothing is lost.",
        shows: "`ethtool -k` of the VLAN device shows `off` where that of the parent shows `on`, for `tx-checksumming`, \
                `scatter-gather`, `tcp-segmentation-offload` or `generic-segmentation-offload`.",
        fix: "If somebody turned it off: `ethtool -K VLAN tx on sg on tso on gso on`, one by one. If it is `[fixed]`: a newer \
              kernel, if the driver can do it for so many tags.",
        costs: "None where the driver can do it. With kernels before 3.19 and two tags checksums may go wrong \
                (`checksum-double-tag`).",
    },
    judge: Judge::Machine(judge),
};

struct Lost<'a> {
    offload: &'static Offload,
    here: Feature,
    quotes: [&'a Quote; 2],
    device_can: Option<bool>,
}

/// A VLAN device without what it might have.
struct Lacking<'a> {
    stack: Stack<'a>,
    lost: Vec<Lost<'a>>,
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

fn judge(case: &Case<'_>) -> Judgement {
    if matches!(case.system(), Some(System::FreeBsd | System::NetBsd)) {
        return Judgement::DoesNotApply;
    }
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
                    .find(|group| group.first().is_some_and(|first| first.is_like(&lacking)))
                {
                    Some(group) => group.push(lacking),
                    None => groups.push(vec![lacking]),
                }
            }
        }
    }
    let found: Vec<Finding> = groups.iter().filter_map(|group| found(group)).collect();
    match (any, found.is_empty(), missing.is_empty()) {
        (false, _, _) => Judgement::DoesNotApply,
        (_, false, _) => Judgement::Found(found),
        (_, _, false) => Judgement::Lacks(missing),
        _ => Judgement::Clear,
    }
}

/// What it lost; the command whose output is missing, where that is not known.
fn compared<'a>(case: &Case<'a>, stack: &Stack<'a>) -> Result<Vec<Lost<'a>>, String> {
    let known = |interface: &Interface| !interface.features.is_empty();
    if !known(stack.top) {
        return Err(format!("ethtool -k {}", stack.top.name));
    }
    let Some((parent, _)) = stack.below.first() else { return Err("ip -d link".to_owned()) };
    if !stack.below.iter().any(|(_, interface)| interface.is_some_and(known)) {
        return Err(format!("ethtool -k {parent}"));
    }
    let all = OFFLOADS.iter().filter(|offload| !offload.is_below);
    // What the device cannot do for such frames is not lost.
    Ok(all
        .filter_map(|offload| lost(case, stack, offload))
        .filter(|lost| lost.device_can != Some(false))
        .collect())
}

fn lost<'a>(case: &Case<'a>, stack: &Stack<'a>, offload: &'static Offload) -> Option<Lost<'a>> {
    let (here, line) = case.feature(stack.top, offload.feature)?;
    let (below, line_below) = stacked::feature_below(case, stack, offload.feature)?;
    (below && !here.on).then(|| Lost {
        offload,
        here,
        quotes: [line, line_below],
        device_can: offload.device_can(case, stack),
    })
}

fn found(group: &[Lacking<'_>]) -> Option<Finding> {
    let Lacking { stack, lost } = group.first()?;
    let name = &stack.top.name;
    let others: Vec<&str> = group.iter().skip(1).map(|lacking| lacking.stack.top.name.as_str()).collect();
    let others = match others.is_empty() {
        true => String::new(),
        false => format!(" The same holds for {}.", stacked::named(&others)),
    };
    let can: Vec<&str> =
        lost.iter().filter(|lost| lost.device_can == Some(true)).map(|lost| lost.offload.feature).collect();
    let all: Vec<&str> = lost.iter().map(|lost| lost.offload.feature).collect();
    let tags = match stack.tags() {
        Some(1) => "frames with one tag".to_owned(),
        Some(tags) => format!("frames with {tags} tags"),
        None => "its frames".to_owned(),
    };
    let explanation = match can.is_empty() {
        true => format!(
            "{name} lacks {}, which the device below has. Whether its driver can do it for {tags} is not known.",
            all.join(", ")
        ),
        false => format!(
            "{name} lacks {}, which the device below has; its driver can do {} for {tags}. What this machine sends there \
             the CPU cuts into segments and sums up itself.",
            all.join(", "),
            can.join(", ")
        ),
    };
    let severity = if can.is_empty() { Severity::Info } else { Severity::Warning };
    let quotes = lost.iter().flat_map(|lost| lost.quotes);
    let finding = RULE.finding(Some(name), severity, quotes, explanation + &others);
    if can.is_empty() {
        return Some(finding);
    }
    let commands: Vec<String> = group
        .iter()
        .take(stacked::NAMED)
        .flat_map(|lacking| lacking.lost.iter().map(|lost| (&lacking.stack.top.name, lost)))
        .filter(|(_, lost)| !lost.here.fixed)
        .map(|(name, lost)| format!("ethtool -K {name} {} on", lost.offload.set))
        .collect();
    let what = if commands.is_empty() {
        "a newer kernel: these offloads are fixed here, and kernels before 4.x give a VLAN on a VLAN none"
            .to_owned()
    } else {
        "the offloads that the device below has".to_owned()
    };
    Some(finding.with(Remedy {
        os: "linux",
        what,
        commands,
        expected: "Less work for what is sent there, TCP of this machine and packets that GRO joined before they were \
                   forwarded. How much cannot be told from the text."
            .to_owned(), modelled: None,
}))
}
