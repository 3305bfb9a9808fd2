//! `user-space-pppoe`: each frame passes a user process; `napi-thread`: a thread that polls a device is full.

use crate::facts::{Effect, Fact};
use crate::finding::{Finding, Remedy, Severity, found};
use crate::rule::Judgement;
use crate::{Case, load, remedies};
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
    Judgement::of(found.collect(), lacks_processes(case))
}

fn lacks_processes(case: &Case<'_>) -> Vec<String> {
    let read = &case.snapshot().read;
    let looked = read.keys().any(|tool| tool.starts_with("top") || tool.starts_with("ps"));
    if looked { Vec::new() } else { vec!["top -b -n 1".to_owned()] }
}

/// Per cent of a CPU from which a thread that polls is full.
const FULL: f64 = 90.0;
/// Per cent of all CPUs that one full thread takes of 2, 4 and 8 CPUs, as BusyBox rounds it.
const OF_ALL: [(u32, [f64; 2]); 3] = [(2, [49.0, 50.0]), (4, [24.0, 25.0]), (8, [12.0, 13.0])];

/// `napi-thread`: threaded NAPI (`/sys/class/net/IFACE/threaded`), and the thread takes a whole CPU.
pub(super) fn napi_thread(case: &Case<'_>) -> Judgement {
    let threads = case.snapshot().processes.iter().filter(|process| process.name.starts_with("napi/"));
    let judged = threads.filter_map(|process| {
        let cpus = match (process.cpu, process.of_all) {
            (Some(share), _) => (share >= FULL).then_some(None)?,
            (None, Some(share)) => Some(OF_ALL.iter().find(|(_, full)| full.contains(&share))?.0),
            (None, None) => return None,
        };
        let fact = Fact::NapiThread { thread: process.name.clone(), share: process.cpu, if_cpus: cpus };
        let severity = if cpus.is_none() { Severity::Critical } else { Severity::Warning };
        let remedy = remedies::packet_steering(case);
        let remedy = remedy.unwrap_or_else(|| Remedy::linux(Effect::SpreadPolled, [""; 0]));
        Some(found(severity, fact).quotes([&process.quote]).fix([remedy]).possible_if(cpus.is_some()))
    });
    Judgement::of(judged.collect(), lacks_processes(case))
}

/// What FreeBSD calls threads that carry packets: those of iflib's task groups (`iflib_module_init()`, sys/net/iflib.c:
/// `if_io_tqg_0`), of an interrupt, and of netisr (`swi1: netisr 0`, sys/net/netisr.c).
fn is_queue_thread(name: &str) -> bool {
    let name = name.trim_start_matches("kernel{").trim_start_matches("intr{");
    let is_interrupt =
        || name.starts_with("irq") && [":que", ":rxq", ":rx", ":q"].iter().any(|queue| name.contains(queue));
    name.starts_with("if_io_tqg_") || name.starts_with("swi1: netisr") || is_interrupt()
}

/// What shows the threads of FreeBSD's kernel.
const THREADS: &str = "top -aSHP";

/// A CPU that interrupts fill while others have time, of which a listing without threads does not say which thread it is.
fn full_of_interrupts(case: &Case<'_>) -> Option<Finding> {
    let full = load::one_full(case).filter(|_| case.system() == Some(System::FreeBsd))?;
    let process = case.snapshot().processes.iter().find(|process| process.name == "intr");
    let fact =
        Fact::InterruptsFull { cpu: full.cpu, share: full.share, idle: full.idle, others: full.others };
    let finding = found(Severity::Critical, fact).quotes([full.quote]);
    let finding = finding.quotes(process.map(|process| &process.quote));
    Some(finding.fix([Remedy::new(System::FreeBsd, Effect::FindThread, [THREADS])]))
}

/// What has to be pasted next where a CPU is full of interrupts.
pub(super) fn follow_up(case: &Case<'_>) -> Option<&'static str> {
    let is_open = !case.snapshot().lists_threads && full_of_interrupts(case).is_some();
    is_open.then_some(THREADS)
}

/// `queue-thread`: a thread of FreeBSD's kernel that carries packets takes a whole CPU, and others have time.
pub(super) fn queue_thread(case: &Case<'_>) -> Judgement {
    if !case.may_be(System::FreeBsd) || case.snapshot().cpu_count() == Some(1) {
        return Judgement::DoesNotApply;
    }
    if load::all_full(case).is_some() {
        return Judgement::Clear;
    }
    let processes = case.snapshot().processes.iter();
    let full: Vec<(&Process, f64)> = processes
        .filter(|process| is_queue_thread(&process.name))
        .filter_map(|process| Some((process, process.cpu.filter(|share| *share >= FULL)?)))
        .collect();
    if full.is_empty() && case.snapshot().lists_threads {
        return Judgement::Clear;
    }
    if full.is_empty() {
        return full_of_interrupts(case).map_or(Judgement::lacks(THREADS), Judgement::from);
    }
    let judged = full.iter().map(|(process, share)| {
        let fact = Fact::QueueThread { thread: process.name.clone(), share: *share, full: full.len() };
        found(Severity::Critical, fact).quotes([&process.quote]).fix(remedies::netisr(case))
    });
    Judgement::Found(judged.collect())
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
