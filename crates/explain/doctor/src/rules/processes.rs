//! `user-space-pppoe`: each frame passes a user process.

use crate::Case;
use crate::facts::{Effect, Fact};
use crate::finding::{Finding, Remedy, Severity, found};
use crate::rule::Judgement;
use host::{Process, System};

/// Per cent of a CPU from which the process is the limit, and from which it may become it.
const LIMIT: f64 = 80.0;
const HEAVY: f64 = 30.0;

/// What carries PPPoE in the kernel instead.
const IN_KERNEL: [(System, &str); 3] = [
    (
        System::Linux,
        "# in /etc/ppp/peers/PROVIDER: `plugin rp-pppoe.so` and `nic-IFACE` instead of the line `pty \"pppoe …\"`",
    ),
    (System::FreeBsd, "pkg install mpd5"),
    (System::NetBsd, "ifconfig pppoe0 create"),
];

pub(super) fn pppoe(case: &Case<'_>) -> Judgement {
    let snapshot = case.snapshot();
    // `pppd` and `mpd5` negotiate; frames pass `pppoe` and FreeBSD's `ppp`.
    let carries_frames = |process: &&Process| {
        process.name == "pppoe" || (process.name == "ppp" && case.system() != Some(System::Linux))
    };
    let found = snapshot.processes.iter().filter(carries_frames).map(|process| finding(case, process));
    let looked = snapshot.read.keys().any(|tool| tool.starts_with("top") || tool.starts_with("ps"));
    Judgement::of(found.collect(), if looked { Vec::new() } else { vec!["top -b -n 1".to_owned()] })
}

fn finding(case: &Case<'_>, process: &Process) -> Finding {
    let limit = process.cpu.is_some_and(|cpu| cpu >= LIMIT);
    let severity = match process.cpu {
        _ if limit => Severity::Critical,
        Some(cpu) if cpu >= HEAVY => Severity::Warning,
        _ => Severity::Info,
    };
    let fact = Fact::UserSpacePppoe { process: process.name.clone(), cpu: process.cpu };
    let known = IN_KERNEL.iter().filter(|(os, _)| severity != Severity::Info && case.may_be(*os));
    let remedy = |(os, command): &(System, &str)| Remedy::new(*os, Effect::KernelPppoe { limit }, [*command]);
    found(severity, fact).quotes([&process.quote]).fix(known.map(remedy))
}
