//! FreeBSD's netisr and the IP input queue of the BSDs: `netisr-direct`, `netisr-unbound`, `input-queue-shallow`.

use crate::Case;
use crate::facts::{Effect, Fact};
use crate::finding::{Finding, Remedy, Severity, found};
use crate::remedies::{BOUND, DEFERRED, THREADS};
use crate::rule::Judgement;
use host::{Observed, Process, Quote, Snapshot, System};

pub(crate) fn dispatch(snapshot: &Snapshot) -> Option<(&str, &Quote)> {
    let by_netstat = snapshot.netisr.as_ref().and_then(|netisr| netisr.dispatch.as_ref());
    let seen = by_netstat.or_else(|| snapshot.sysctls.get("net.isr.dispatch"))?;
    Some((seen.get().as_str(), seen.quote()))
}

/// Number of threads with its line.
pub(super) fn threads(snapshot: &Snapshot) -> Option<(u32, &Quote)> {
    if let Some(seen) = snapshot.netisr.as_ref().and_then(|netisr| netisr.threads.as_ref()) {
        return Some((*seen.get(), seen.quote()));
    }
    let seen = snapshot.sysctls.get("net.isr.numthreads")?;
    Some((seen.get().parse().ok()?, seen.quote()))
}

/// Whether threads are bound, with the line.
pub(crate) fn bound(snapshot: &Snapshot) -> Option<(bool, &Quote)> {
    if let Some(seen) = snapshot.netisr.as_ref().and_then(|netisr| netisr.bound.as_ref()) {
        return Some((*seen.get(), seen.quote()));
    }
    let seen: &Observed<String> = snapshot.sysctls.get("net.isr.bindthreads")?;
    Some((seen.get() != "0", seen.quote()))
}

/// The rule lacks netisr's settings where the text comes from FreeBSD, and does not apply elsewhere.
fn unread(case: &Case<'_>) -> Judgement {
    let is_freebsd = case.system() == Some(System::FreeBsd);
    if is_freebsd { Judgement::lacks("netstat -Q") } else { Judgement::DoesNotApply }
}

/// The lines that say that the machine carries PPPoE.
fn pppoe(case: &Case<'_>) -> Vec<Quote> {
    let is_client = |process: &&Process| matches!(process.name.as_str(), "mpd5" | "mpd" | "ppp" | "pppoed");
    let snapshot = case.snapshot();
    let protocol = snapshot.netisr.iter().filter_map(|netisr| netisr.protocols.get("pppoe"));
    let clients = snapshot.processes.iter().filter(is_client);
    case.devices()
        .filter_map(|device| case.carries_pppoe(&device))
        .flat_map(|carries| carries.quotes)
        .chain(protocol.map(|protocol| protocol.quote.clone()))
        .chain(clients.map(|process| process.quote.clone()))
        .collect()
}

/// `netisr-direct`: FreeBSD processes each packet on the CPU that took it from the ring.
pub(super) fn direct(case: &Case<'_>) -> Judgement {
    let Some((policy, quote)) = dispatch(case.snapshot()) else { return unread(case) };
    let own = case.snapshot().netisr.as_ref().and_then(|netisr| netisr.protocols.get("pppoe"));
    if policy != "direct" || own.is_some_and(|pppoe| matches!(&*pppoe.dispatch, "hybrid" | "deferred")) {
        return Judgement::Clear;
    }
    let quotes = pppoe(case);
    let pppoe = !quotes.is_empty();
    let severity = if pppoe { Severity::Warning } else { Severity::Info };
    let remedy = || Remedy::new(System::FreeBsd, Effect::NetisrDispatch, DEFERRED);
    found(severity, Fact::NetisrDirect { pppoe })
        .quotes([quote])
        .quotes(&quotes)
        .fix(pppoe.then(remedy))
        .into()
}

/// `netisr-unbound`: FreeBSD has one netisr thread, or threads that are not bound to CPUs.
pub(super) fn unbound(case: &Case<'_>) -> Judgement {
    let snapshot = case.snapshot();
    let (threads, bound) = (threads(snapshot), bound(snapshot));
    if threads.is_none() && bound.is_none() {
        return unread(case);
    }
    let few = threads.filter(|(count, _)| *count == 1 && snapshot.cpu_count() != Some(1));
    let loose = bound.filter(|(bound, _)| !bound);
    let fact = match (few, loose) {
        (None, None) => return Judgement::Clear,
        (Some(_), _) => Fact::NetisrOneThread,
        (None, Some(_)) => Fact::NetisrUnbound,
    };
    let pppoe = pppoe(case);
    let limits = few.is_some() && !pppoe.is_empty();
    let remedy = || Remedy::new(System::FreeBsd, Effect::NetisrThreads, [THREADS, BOUND]);
    found(if limits { Severity::Warning } else { Severity::Info }, fact)
        .quotes(few.map(|(_, quote)| quote))
        .quotes(loose.map(|(_, quote)| quote))
        .quotes(&pppoe)
        .fix(limits.then(remedy))
        .into()
}

/// Depth that was found enough for one interface at high mitigation, J. Stone, tech-net, December 2006.
const AN_INTERFACE: u64 = 512;

/// Depth beyond which waiting takes longer than it helps.
const DEEPEST: u64 = 8192;

/// The sysctls of an IP input queue.
struct Sysctls {
    os: System,
    drops: &'static str,
    depth: &'static str,
}

const NETBSD: Sysctls =
    Sysctls { os: System::NetBsd, drops: "net.inet.ip.ifq.drops", depth: "net.inet.ip.ifq.maxlen" };
const FREEBSD: Sysctls = Sysctls {
    os: System::FreeBsd,
    drops: "net.inet.ip.intr_queue_drops",
    depth: "net.inet.ip.intr_queue_maxlen",
};

/// `input-queue-shallow`: the IP input queue is shorter than the bursts that reach it.
pub(super) fn input_queue(case: &Case<'_>) -> Judgement {
    let snapshot = case.snapshot();
    match case.system() {
        Some(System::NetBsd) => by_sysctl(case, &NETBSD),
        Some(System::FreeBsd) => freebsd(case),
        None if snapshot.sysctls.contains_key(NETBSD.drops) => by_sysctl(case, &NETBSD),
        None if snapshot.netisr.is_some() => freebsd(case),
        Some(System::Linux) | None => Judgement::DoesNotApply,
    }
}

fn freebsd(case: &Case<'_>) -> Judgement {
    let streams = case.snapshot().netisr.iter().flat_map(|netisr| &netisr.workstreams);
    let streams = streams.filter(|((_, name), _)| matches!(name.as_str(), "ip" | "ip6" | "ether" | "pppoe"));
    let dropped = streams.map(|(_, stream)| &stream.dropped).filter(|dropped| dropped.value() > 0);
    let drops = dropped.clone().fold(0, |sum: u64, dropped| sum.saturating_add(dropped.value()));
    if drops > 0 {
        return too_short(case, &FREEBSD, drops, None).quotes(dropped.map(host::Counter::quote)).into();
    }
    match by_sysctl(case, &FREEBSD) {
        // netstat -Q without a drop has answered.
        Judgement::Lacks(_) if case.snapshot().netisr.is_some() => Judgement::Clear,
        judgement => judgement,
    }
}

fn by_sysctl(case: &Case<'_>, names: &Sysctls) -> Judgement {
    let sysctls = &case.snapshot().sysctls;
    let Some(seen) = sysctls.get(names.drops) else {
        let is_netbsd = names.os == System::NetBsd;
        return Judgement::lacks(if is_netbsd { "sysctl net.inet.ip.ifq" } else { "netstat -Q" });
    };
    let Some((drops, quote)) = case.sysctl(names.drops) else {
        return Judgement::lacks(format!("sysctl {}", names.drops));
    };
    if drops == 0 {
        return Judgement::Clear;
    }
    let former = seen.former().and_then(|former| former.value.trim().parse::<u64>().ok());
    let new = former.map(|former| drops.saturating_sub(former)).filter(|new| *new > 0);
    let depth = sysctls.get(names.depth).map(Observed::quote);
    too_short(case, names, drops, new).quotes([quote]).quotes(depth).into()
}

fn too_short(case: &Case<'_>, names: &Sysctls, drops: u64, new: Option<u64>) -> Finding {
    let severity = if new.is_some() { Severity::Critical } else { Severity::Warning };
    let devices = (case.devices().count() as u64).max(1);
    let depth = case.sysctl(names.depth).map(|(depth, _)| depth);
    let deeper = (AN_INTERFACE * devices).max(depth.unwrap_or(0).saturating_mul(2)).min(DEEPEST);
    let set = if names.os == System::NetBsd { "sysctl -w" } else { "sysctl" };
    let command = format!("{set} {}={deeper}", names.depth);
    let remedy = || Remedy::new(names.os, Effect::InputQueue, [command]);
    let is_deep = depth.is_some_and(|depth| depth >= deeper);
    found(severity, Fact::InputQueue { depth, drops, new }).fix((!is_deep).then(remedy))
}
