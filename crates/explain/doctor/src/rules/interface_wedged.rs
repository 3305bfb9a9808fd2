//! `interface-wedged`: a driver that hangs, resets, or takes no more frames.

use crate::Case;
use crate::report::{Finding, Remedy, Severity};
use crate::rule::{Judge, Judgement, Page, Rule};
use host::{Counter, Delta, Interface, LogLine, LogTopic, System};

/// The rule.
pub(super) static RULE: Rule = Rule {
    id: "interface-wedged",
    stage: "queue",
    page: Page {
        title: "The interface hung or was reset",
        means: "A driver that logs watchdog timeouts, transmit hangs or resets loses everything that was in its rings \
                each time, and is down for seconds. One that logs the same complaint thousands of times, or whose \
                losses rise while nothing is received, is stuck until it is taken down and up.",
        shows: "`NETDEV WATCHDOG`, `Detected … Unit Hang`, `Reset adapter`, `watchdog timeout` or `failed on len` in \
                the kernel log; or two samples in which received frames stand still and missed ones rise.",
        fix: "Take the interface down and up to get it back. Then find the cause: a newer driver or firmware; power \
              saving of the PCIe link off; segmentation offload off, where the log speaks of transmit hangs.",
        costs: "Down and up drops the link for seconds, and PPPoE sessions on it with it.",
    },
    judge: Judge::Machine(judge),
};

fn judge(case: &Case<'_>) -> Judgement {
    let snapshot = case.snapshot();
    let logged = snapshot
        .log
        .iter()
        .filter(|line| matches!(line.topic, LogTopic::FailedLength | LogTopic::Reset))
        .map(|line| logged(case, line));
    let stuck = case.devices().filter_map(|device| stuck(case, device));
    let found: Vec<Finding> = logged.chain(stuck).collect();
    if !found.is_empty() {
        return Judgement::Found(found);
    }
    let looked = snapshot.read.contains_key("dmesg") || !snapshot.log.is_empty();
    if looked { Judgement::Clear } else { Judgement::lacks("dmesg") }
}

fn logged(case: &Case<'_>, line: &LogLine) -> Finding {
    let what = match line.topic {
        LogTopic::FailedLength => "could not hand over a frame",
        _ => "was reset after a hang",
    };
    let whose =
        line.interface.as_deref().map_or("A driver".to_owned(), |name| format!("The driver of {name}"));
    let times = if line.times == 1 { "once".to_owned() } else { format!("{} times", line.times) };
    let explanation = format!("{whose} {what}, {times} by the log. What was in its rings is lost each time.");
    let finding = RULE.finding(line.interface.as_deref(), Severity::Warning, [&line.quote], explanation);
    with_restart(finding, line.interface.as_deref(), case.system())
}

/// Received frames stand still while losses rise.
fn stuck(case: &Case<'_>, device: &Interface) -> Option<Finding> {
    let received = device.totals.packets.as_ref().filter(|counter| counter.delta() == Delta::Counted(0))?;
    let (name, lost) =
        device.totals.overflow.iter().find(|(_, counter)| matches!(counter.delta(), Delta::Counted(1..)))?;
    let explanation = format!(
        "{} received nothing between the samples while `{name}` rose by {}: it is stuck, or its queue is no longer \
         served.",
        device.name,
        lost.value().saturating_sub(lost.first()),
    );
    let quotes = [received, lost].map(Counter::quote);
    let finding = RULE.finding(Some(&device.name), Severity::Critical, quotes, explanation);
    Some(with_restart(finding, Some(&device.name), case.system()))
}

fn with_restart(finding: Finding, interface: Option<&str>, system: Option<System>) -> Finding {
    let Some(name) = interface.filter(|name| !name.is_empty()) else { return finding };
    let (os, commands) = match system {
        Some(System::FreeBsd) => {
            ("freebsd", [format!("ifconfig {name} down"), format!("ifconfig {name} up")])
        }
        Some(System::NetBsd) => ("netbsd", [format!("ifconfig {name} down"), format!("ifconfig {name} up")]),
        Some(System::Linux) | None => {
            ("linux", [format!("ip link set dev {name} down"), format!("ip link set dev {name} up")])
        }
    };
    finding.with(Remedy {
        os,
        what: "take the interface down and up".to_owned(),
        commands: commands.to_vec(),
        expected: "It receives again, until it hangs the next time. Run this from a console, not over that interface."
            .to_owned(), modelled: None,
})
}
