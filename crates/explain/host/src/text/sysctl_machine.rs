//! What sysctls say about the machine as a whole: the system, its CPUs, FreeBSD's netisr.
//!
//! Names: FreeBSD sysctl(3), netisr(9) and `sys/net/netisr.c`; NetBSD sysctl(7).

use crate::{Fact, Observed, Quote, Snapshot, System};

/// Notes what the setting tells besides its value.
pub(super) fn note(name: &str, value: &str, quote: &Quote, snapshot: &mut Snapshot) {
    let root = |prefix| str::starts_with(name, prefix);
    if root("net.isr.") {
        infer(snapshot, System::FreeBsd, quote);
        netisr(name, value, quote, snapshot);
    } else if root("net.inet.ip.ifq.") {
        infer(snapshot, System::NetBsd, quote);
    } else if root("net.core.") || root("net.ipv4.") {
        infer(snapshot, System::Linux, quote);
    } else {
        machine(name, value, quote, snapshot);
    }
}

/// The system that only this output belongs to, unless something said which it is.
pub(super) fn infer(snapshot: &mut Snapshot, system: System, quote: &Quote) {
    if snapshot.system.is_none() {
        snapshot.system = Some(Fact::new(system, quote.clone()));
    }
}

fn machine(name: &str, value: &str, quote: &Quote, snapshot: &mut Snapshot) {
    let text = || Some(Fact::new(value.to_owned(), quote.clone())).filter(|_| !value.is_empty());
    match name {
        "kern.ostype" | "kernel.ostype" => {
            let system = [System::Linux, System::FreeBsd, System::NetBsd]
                .into_iter()
                .find(|system| system.name().eq_ignore_ascii_case(value));
            if let Some(system) = system {
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
    match name {
        "net.isr.dispatch" => {
            let fact = Fact::new(value.to_owned(), quote.clone());
            Observed::note(&mut snapshot.netisr.get_or_insert_default().dispatch, fact);
        }
        "net.isr.numthreads" => {
            let Ok(threads) = value.parse() else { return };
            let fact = Fact::new(threads, quote.clone());
            Observed::note(&mut snapshot.netisr.get_or_insert_default().threads, fact);
        }
        "net.isr.bindthreads" if matches!(value, "0" | "1") => {
            let fact = Fact::new(value == "1", quote.clone());
            Observed::note(&mut snapshot.netisr.get_or_insert_default().bound, fact);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use crate::System;
    use crate::text::read;

    #[test]
    fn system_and_cpus() {
        let snapshot =
            read("kern.ostype: FreeBSD\nkern.osrelease: 14.1-RELEASE\nhw.ncpu: 4\nhw.model: A CPU\n");
        assert_eq!(snapshot.system.map(|system| system.value), Some(System::FreeBsd));
        assert_eq!(snapshot.kernel.map(|kernel| kernel.value).as_deref(), Some("14.1-RELEASE"));
        assert_eq!(snapshot.cpus.online.map(|count| count.value), Some(4));
        assert_eq!(snapshot.cpus.model.map(|model| model.value).as_deref(), Some("A CPU"));
        let netbsd = read("hw.ncpuonline = 2\nhw.ncpu = 4\nnet.inet.ip.ifq.drops = 17\n");
        assert_eq!(netbsd.cpus.online.map(|count| count.value), Some(2));
        assert_eq!(netbsd.system.map(|system| system.value), Some(System::NetBsd));
        assert_eq!(read("hw.ncpu: many\n").cpus.online, None);
    }

    #[test]
    fn netisr_by_sysctl() {
        let netisr = read("net.isr.numthreads: 4\nnet.isr.bindthreads: 0\nnet.isr.dispatch: direct\n").netisr;
        let netisr = netisr.expect("netisr");
        assert_eq!(netisr.threads.map(|n| *n.get()), Some(4));
        assert_eq!(netisr.bound.map(|bound| *bound.get()), Some(false));
        assert_eq!(netisr.dispatch.map(|policy| policy.get().clone()).as_deref(), Some("direct"));
    }
}
