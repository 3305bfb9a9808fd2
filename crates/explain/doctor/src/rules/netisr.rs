//! What the two rules on FreeBSD's netisr both ask: its settings, by `netstat -Q` or by sysctl, and whether there
//! is PPPoE for it to carry.

use crate::Case;
use host::{Observed, Process, Quote, Snapshot, System};

/// The dispatch policy with its line.
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

/// Whether the text may come from FreeBSD.
pub(super) fn is_possible(case: &Case<'_>) -> bool {
    case.system() == Some(System::FreeBsd)
}

/// The lines that say that the machine carries PPPoE.
pub(super) fn pppoe(case: &Case<'_>) -> Vec<Quote> {
    let snapshot = case.snapshot();
    let protocol = snapshot.netisr.iter().filter_map(|netisr| netisr.protocols.get("pppoe"));
    let carriers = snapshot.processes.iter().filter(|process| is_client(process));
    case.devices()
        .filter_map(|device| case.carries_pppoe(device))
        .flat_map(|carries| carries.quotes)
        .chain(protocol.map(|protocol| protocol.quote.clone()))
        .chain(carriers.map(|process| process.quote.clone()))
        .collect()
}

fn is_client(process: &Process) -> bool {
    matches!(process.name.as_str(), "mpd5" | "mpd" | "ppp" | "pppoed")
}
