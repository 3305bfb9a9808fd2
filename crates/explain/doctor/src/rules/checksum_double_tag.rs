//! `checksum-double-tag`: checksums of frames with two tags are written in the wrong place, or not at all.

use crate::Case;
use crate::report::{Finding, Remedy, Severity};
use crate::rule::{Judge, Judgement, Page, Rule};
use crate::stacked::Stack;
use host::{Interface, LogLine, LogTopic, Quote, System};

/// The rule.
pub(super) static RULE: Rule = Rule {
    id: "checksum-double-tag",
    stage: "segment",
    page: Page {
        title: "Checksums go wrong behind a second tag",
        means: "A device that computes TCP and UDP checksums has to find them. Drivers with per-protocol checksums \
                (`tx-checksum-ipv4`) took the EtherType behind one tag of TPID 0x8100; behind a second tag they found no IP, \
                logged `partial checksum but proto=…`, and sent the frame with a wrong checksum, which the receiver drops. \
                Linux looks behind any number of tags since 3.19.",
        shows: "`partial checksum but proto=8100` (or 88a8) in the kernel log; TCP over QinQ that hangs while ping works.",
        fix: "A kernel of 3.19 or later. Until then the checksums of the inner device in software: `ethtool -K INNER tx off`.",
        costs: "Software checksums also end scatter-gather and segmentation offload of that device: more work for each byte \
                sent.",
    },
    judge: Judge::Machine(judge),
};

/// First release that looks behind any number of tags (`vlan_get_protocol`).
const MENDED: (u32, u32) = (3, 19);

fn judge(case: &Case<'_>) -> Judgement {
    if matches!(case.system(), Some(System::FreeBsd | System::NetBsd)) {
        return Judgement::DoesNotApply;
    }
    let snapshot = case.snapshot();
    let lines: Vec<&LogLine> =
        snapshot.log.iter().filter(|line| line.topic == LogTopic::PartialChecksum).collect();
    if !lines.is_empty() {
        return Judgement::Found(lines.into_iter().map(|line| logged(case, line)).collect());
    }
    let double: Vec<Stack<'_>> =
        case.stacked().filter_map(|interface| double_tagged(case, interface)).collect();
    if double.is_empty() {
        return Judgement::DoesNotApply;
    }
    let Some(kernel) = &snapshot.kernel else { return Judgement::lacks("uname -r") };
    match release(&kernel.value) {
        None => Judgement::lacks("uname -r"),
        Some(release) if release >= MENDED => Judgement::Clear,
        Some(_) => {
            let risky: Vec<Stack<'_>> = double.into_iter().filter(|stack| is_at_risk(case, stack)).collect();
            old(case, &risky, &kernel.value, &kernel.quote).map_or(Judgement::Clear, Judgement::from)
        }
    }
}

fn double_tagged<'a>(case: &Case<'a>, interface: &'a Interface) -> Option<Stack<'a>> {
    Stack::of(case, interface)
        .filter(|stack| crate::stacked::is_vlan(stack.top) && stack.tags().is_some_and(|tags| tags >= 2))
}

/// The kernel says that it happened.
fn logged(case: &Case<'_>, line: &LogLine) -> Finding {
    let interface = line.interface.as_deref();
    let is_below = |stack: &Stack<'_>| {
        interface
            .is_none_or(|name| stack.top.name == name || stack.below.iter().any(|(below, _)| *below == name))
    };
    let inner: Vec<Stack<'_>> =
        case.stacked().filter_map(|top| double_tagged(case, top)).filter(is_below).collect();
    let quotes: Vec<Quote> = inner.iter().take(crate::stacked::NAMED).flat_map(Stack::quotes).collect();
    let times = if line.times > 1 { format!("{} times ", line.times) } else { String::new() };
    let mut explanation = format!(
        "The kernel logged {times}that it could not place a checksum: the frame went out with a wrong one, and its receiver \
         drops it."
    );
    // What the log shows happened; with two tags it happens to every frame that is sent.
    let severity = if inner.is_empty() { Severity::Warning } else { Severity::Critical };
    if let Some(stack) = inner.first() {
        explanation.push_str(&format!(
            " {} sends frames with two tags, behind which old drivers find no IP.",
            stack.way()
        ));
    }
    let finding = RULE.finding(interface, severity, [&line.quote], explanation).and(&quotes);
    let finding = finding.and(case.snapshot().kernel.as_ref().map(|kernel| &kernel.quote));
    finding.with(remedy(case, &inner))
}

/// Not where checksums are computed in software already, or the device is told where the checksum goes.
fn is_at_risk(case: &Case<'_>, stack: &Stack<'_>) -> bool {
    let feature =
        |interface: &Interface, name: &str| case.feature(interface, name).map(|(feature, _)| feature.on);
    feature(stack.top, "tx-checksumming") != Some(false)
        && stack.device().and_then(|device| feature(device, "tx-checksum-ip-generic")) != Some(true)
}

/// An old kernel and a device with per-protocol checksums.
fn old(case: &Case<'_>, stacks: &[Stack<'_>], kernel: &str, quote: &Quote) -> Option<Finding> {
    let stack = stacks.first()?;
    let others = match stacks.len() {
        1 => String::new(),
        all => format!(", as do {} others", all - 1),
    };
    let explanation = format!(
        "{} sends frames with two tags{others}, and Linux {kernel} is older than 3.19, which looks behind any number of \
         tags: drivers with per-protocol checksums send them with a wrong one. The kernel log would show `partial checksum \
         but proto=`. A distribution's kernel may carry the correction.",
        stack.way()
    );
    let quotes = stack.quotes();
    let finding =
        RULE.finding(Some(&stack.top.name), Severity::Warning, [quote], explanation).and(&quotes).possible();
    Some(finding.with(remedy(case, stacks)))
}

fn remedy(case: &Case<'_>, inner: &[Stack<'_>]) -> Remedy {
    let can_set = |stack: &&Stack<'_>| {
        case.feature(stack.top, "tx-checksumming").is_none_or(|(feature, _)| feature.on && !feature.fixed)
    };
    let commands: Vec<String> = inner
        .iter()
        .filter(can_set)
        .take(crate::stacked::NAMED)
        .map(|stack| format!("ethtool -K {} tx off", stack.top.name))
        .collect();
    Remedy {
        os: "linux",
        what: if commands.is_empty() {
            "a kernel of 3.19 or later; until then `ethtool -K` with `tx off` for the innermost VLAN device".to_owned()
        } else {
            "checksums in software for the inner VLAN device, until a kernel of 3.19 or later runs".to_owned()
        },
        commands,
        expected: "Frames go out with right checksums. Scatter-gather and segmentation offload of that device end with \
                   it, so that sending costs more CPU time a byte; frames that are only forwarded are not affected."
            .to_owned(), modelled: None,
}
}

/// 3 and 10 of `3.10.0-1160.el7.x86_64`.
fn release(kernel: &str) -> Option<(u32, u32)> {
    let mut numbers = kernel.trim().split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::release;

    #[test]
    fn releases() {
        assert_eq!(release("3.10.0-1160.el7.x86_64"), Some((3, 10)));
        assert_eq!(release("6.12.9"), Some((6, 12)));
        assert_eq!(release("generic"), None);
    }
}
