//! `user-space-pppoe`: each frame passes a user process.

use crate::Case;
use crate::report::{Finding, Remedy, Severity};
use crate::rule::{Judge, Judgement, Page, Rule};
use host::{Process, System};

/// The rule.
pub(super) static RULE: Rule = Rule {
    id: "user-space-pppoe",
    stage: "decap",
    page: Page {
        title: "PPPoE is carried by a process in user space",
        means: "`pppoe` (rp-pppoe without its kernel plugin) and FreeBSD's `ppp` take every frame out of the kernel, \
                strip or add a header, and give it back: two system calls and two copies a frame, on one CPU. In 2002 \
                that took half to all of a Pentium 90 at 10 Mbit/s where the kernel's PPPoE took a quarter; today it \
                ends at some hundred Mbit/s where the kernel carries a gigabit.",
        shows: "A process `pppoe` (Linux, OpenBSD) or `ppp` (FreeBSD) that takes CPU with the traffic, up to 100 % of one.",
        fix: "Let the kernel do it. Linux: `plugin rp-pppoe.so IFACE` in the peer's file instead of `pty \"pppoe …\"`. \
              FreeBSD: mpd5, which uses netgraph. NetBSD and OpenBSD: the pppoe(4) interface.",
        costs: "A change of configuration and a reconnect. The session's options (MTU, authentication) move to the other \
                program's files.",
    },
    judge: Judge::Machine(judge),
};

/// Per cent of a CPU from which the process is the limit, and from which it may become it.
const LIMIT: f64 = 80.0;
const HEAVY: f64 = 30.0;

fn judge(case: &Case<'_>) -> Judgement {
    let snapshot = case.snapshot();
    let found: Vec<Finding> = snapshot
        .processes
        .iter()
        .filter(|p| carries_frames(p, case.system()))
        .map(|p| finding(case, p))
        .collect();
    if !found.is_empty() {
        return Judgement::Found(found);
    }
    let looked = snapshot.read.keys().any(|tool| tool.starts_with("top") || tool.starts_with("ps"));
    if looked { Judgement::Clear } else { Judgement::lacks("top -b -n 1") }
}

/// `pppd` and `mpd5` negotiate; frames pass `pppoe` and FreeBSD's `ppp`.
fn carries_frames(process: &Process, system: Option<System>) -> bool {
    process.name == "pppoe" || (process.name == "ppp" && system != Some(System::Linux))
}

fn finding(case: &Case<'_>, process: &Process) -> Finding {
    let (severity, how) = match process.cpu {
        Some(cpu) if cpu >= LIMIT => {
            (Severity::Critical, format!("It takes {cpu:.0} % of a CPU: it is the limit."))
        }
        Some(cpu) if cpu >= HEAVY => (Severity::Warning, format!("It takes {cpu:.0} % of a CPU.")),
        Some(cpu) => (Severity::Info, format!("It takes {cpu:.0} % of a CPU now; watch it under load.")),
        None => (Severity::Info, "How much CPU it takes is not known; watch it under load.".to_owned()),
    };
    let explanation = format!(
        "Every PPPoE frame passes the user process `{}`, one at a time, on one CPU. {how}",
        process.name
    );
    let finding = RULE.finding(None, severity, [&process.quote], explanation);
    if severity == Severity::Info { finding } else { with_remedies(finding, process, case.system()) }
}

fn with_remedies(mut finding: Finding, process: &Process, system: Option<System>) -> Finding {
    let expected = match process.cpu {
        Some(cpu) if cpu >= LIMIT => {
            "The process no longer limits; the next limit is the CPU that takes the interrupts."
        }
        _ => "Less CPU for the same traffic; how much cannot be told before.",
    };
    let known = [
        (
            System::Linux,
            "the kernel's PPPoE through pppd's plugin",
            "# in /etc/ppp/peers/PROVIDER: `plugin rp-pppoe.so` and `nic-IFACE` instead of the line `pty \"pppoe …\"`",
        ),
        (System::FreeBsd, "netgraph's PPPoE through mpd5", "pkg install mpd5"),
        (System::NetBsd, "the kernel's pppoe(4)", "ifconfig pppoe0 create"),
    ];
    for (os, what, command) in known {
        if system.is_none_or(|system| system == os) {
            finding = finding.with(Remedy {
                os: os.name(),
                what: what.to_owned(),
                commands: vec![command.to_owned()],
                expected: expected.to_owned(),
                modelled: None,
            });
        }
    }
    finding
}
