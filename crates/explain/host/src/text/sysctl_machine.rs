//! What sysctls say about the machine as a whole: the system, its CPUs, FreeBSD's netisr.
//!
//! Names: FreeBSD sysctl(3), netisr(9) and `sys/net/netisr.c`; NetBSD sysctl(7).

use crate::{Fact, Observed, Quote, Snapshot, System};

/// Notes what the setting says besides its value.
pub(super) fn note(name: &str, value: &str, quote: &Quote, snapshot: &mut Snapshot) {
    let root = |prefix| str::starts_with(name, prefix);
    if root("net.isr.") {
        infer(snapshot, System::FreeBsd, quote);
        netisr(name, value, quote, snapshot);
    } else if root("net.inet.ip.ifq.") {
        infer(snapshot, System::NetBsd, quote);
    } else if ["net.core.", "net.ipv4.", "net.ipv6.", "net.netfilter.", "net.bridge."].into_iter().any(root) {
        infer(snapshot, System::Linux, quote);
    } else {
        machine(name, value, quote, snapshot);
    }
}

/// The system that only this output belongs to, unless something said which it is.
pub(super) fn infer(snapshot: &mut Snapshot, system: System, quote: &Quote) {
    snapshot.system.get_or_insert_with(|| Fact::new(system, quote.clone()));
}

fn machine(name: &str, value: &str, quote: &Quote, snapshot: &mut Snapshot) {
    let text = || Some(Fact::new(value.to_owned(), quote.clone())).filter(|_| !value.is_empty());
    match name {
        "kern.ostype" | "kernel.ostype" => {
            if let Some(system) = System::named(value) {
                snapshot.system = Some(Fact::new(system, quote.clone()));
            }
        }
        "kern.osrelease" | "kernel.osrelease" => snapshot.kernel = text(),
        // NetBSD counts those online apart from those there are.
        "hw.ncpuonline" => online(value, quote, snapshot),
        "hw.ncpu" | "kern.smp.cpus" if !snapshot.sysctls.contains_key("hw.ncpuonline") => {
            online(value, quote, snapshot);
        }
        "hw.model" => snapshot.cpus.model = text(),
        _ => {}
    }
}

fn online(value: &str, quote: &Quote, snapshot: &mut Snapshot) {
    if let Ok(count) = value.parse::<u32>()
        && count > 0
    {
        snapshot.cpus.online = Some(Fact::new(count, quote.clone()));
    }
}

fn netisr(name: &str, value: &str, quote: &Quote, snapshot: &mut Snapshot) {
    let netisr = super::netstat_q::netisr;
    match (name, value) {
        ("net.isr.dispatch", _) => Observed::note(&mut netisr(snapshot).dispatch, value.to_owned(), quote),
        ("net.isr.numthreads", _) => {
            let Ok(threads) = value.parse::<u32>() else { return };
            Observed::note(&mut netisr(snapshot).threads, threads, quote);
        }
        ("net.isr.bindthreads", "0" | "1") => {
            Observed::note(&mut netisr(snapshot).bound, value == "1", quote);
        }
        _ => {}
    }
}
