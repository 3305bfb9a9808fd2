//! The state of a machine, from whatever was read.

#![expect(missing_docs, reason = "what its name does not say has a comment")]

use crate::{
    Architecture, Cpus, Distribution, Fact, FastPath, FunctionShare, Interface, Interrupt, LogLine, Mbufs,
    Netfilter, Netisr, Observed, Process, Quote, Softnet, System, interface,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// A PPPoE session of the kernel (`/proc/net/pppoe`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    pub id: u16,
    /// The Ethernet interface below.
    pub interface: String,
    pub quote: Quote,
}

/// Where the names of a driver's functions are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symbols {
    /// `/proc/kallsyms`.
    Kallsyms,
    /// The kernel's type information, `/sys/kernel/btf`.
    Btf,
}

/// What the functions of the kernel's PPPoE driver say of it (`drivers/net/ppp/pppoe.c`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PppoeDriver {
    /// Whether it coalesces received segments (`pppoe_gro_receive`, Linux 7.2 and backports).
    pub coalesces: bool,
    pub symbols: Symbols,
}

/// Something that could not be read, and why.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Unread {
    pub what: String,
    /// The reason, as the system gave it.
    pub why: String,
}

/// A machine's receive path at one time, or at two.
///
/// Bounded whatever the input: [`Snapshot::INTERFACES`], [`Snapshot::INTERRUPTS`] and so on are the most that
/// is kept of each kind; more is counted in [`Snapshot::omitted`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// The operating system, where something names it.
    pub system: Option<Fact<System>>,
    /// Kernel release (`6.12.9`).
    pub kernel: Option<Fact<String>>,
    pub architecture: Option<Fact<Architecture>>,
    pub distribution: Option<Fact<Distribution>>,
    /// Model of the machine, or what it was built for (`GL.iNet GL-MT6000`, `ramips/mt7621`).
    pub board: Option<Fact<String>>,
    /// Time between the samples.
    pub interval: Option<Duration>,
    /// Interfaces in the order in which the text names them; the unnamed one has an empty name.
    pub interfaces: Vec<Interface>,
    pub cpus: Cpus,
    /// Interrupts in the order of the text.
    pub interrupts: Vec<Interrupt>,
    /// Softirqs by name (`NET_RX`) and CPU.
    pub softirqs: BTreeMap<String, BTreeMap<u32, crate::Counter>>,
    /// `/proc/net/softnet_stat` by CPU.
    pub softnet: BTreeMap<u32, Softnet>,
    pub netisr: Option<Netisr>,
    pub sessions: Vec<Session>,
    /// The kernel's PPPoE driver, where its functions were listed.
    pub pppoe_driver: Option<Fact<PppoeDriver>>,
    /// Processes that matter.
    pub processes: Vec<Process>,
    /// Whether a listing of processes shows the threads of FreeBSD's kernel one by one (`top -H`).
    pub lists_threads: bool,
    /// Where CPU time goes, in the order of the text.
    pub functions: Vec<Fact<FunctionShare>>,
    /// Buffers of FreeBSD's network stack.
    pub mbufs: Mbufs,
    /// Log lines that matter, one a topic and interface.
    pub log: Vec<LogLine>,
    /// Sysctls by name, dots between the parts.
    pub sysctls: BTreeMap<String, Observed<String>>,
    /// OpenWrt's settings that matter, by configuration, type of the section and option (`firewall.defaults.flow_offloading`);
    /// a name without an option says that such a section was printed.
    pub uci: BTreeMap<String, Observed<String>>,
    pub netfilter: Netfilter,
    /// What `rxlane fastpath` forwards, where it is up.
    pub fast_path: Option<FastPath>,
    /// What could not be read.
    pub unread: Vec<Unread>,
    /// Tools whose output was recognised (`ethtool -S`), with the first line of each: the evidence of what was
    /// looked at.
    pub read: BTreeMap<String, Quote>,
    /// Facts beyond the bounds.
    pub omitted: u64,
}

impl Snapshot {
    /// Interfaces that are kept.
    pub const INTERFACES: usize = 1024;
    /// Receive queues of one interface that are kept.
    pub const QUEUES: usize = 1024;
    pub const INTERRUPTS: usize = 16_384;
    pub const CPUS: usize = 4096;
    /// Processes, log lines, sessions and unread places that are kept, of each.
    pub const LINES: usize = 1024;
    /// Sysctls and statistics names that are kept, of each.
    pub const NAMES: usize = 16_384;

    pub fn interface(&self, name: &str) -> Option<&Interface> {
        self.interfaces.iter().find(|interface| interface.name == name)
    }

    /// The interface of that name, made where there is none yet. `None` beyond the bound, and for a name that a
    /// shell would not take for one word: names go into commands that people paste.
    pub(crate) fn interface_mut(&mut self, name: &str, seen: &Quote) -> Option<&mut Interface> {
        let place = match self.interfaces.iter().position(|interface| interface.name == name) {
            Some(place) => place,
            None if name == interface::NOBODY => return None,
            None if !name.is_empty() && !interface::is_plain_name(name) => {
                let what = format!("interface {}", name.escape_debug());
                self.note_unread(&what, "a shell would not take its name for a word");
                return None;
            }
            None if self.interfaces.len() >= Snapshot::INTERFACES => {
                self.omitted += 1;
                return None;
            }
            None => {
                self.interfaces.push(Interface::named(name, seen.clone()));
                self.interfaces.len() - 1
            }
        };
        self.interfaces.get_mut(place)
    }

    /// Records that `what` could not be read.
    pub(crate) fn note_unread(&mut self, what: &str, why: &str) {
        let unread = Unread { what: what.to_owned(), why: why.trim().to_owned() };
        if self.unread.contains(&unread) {
            return;
        }
        if self.unread.len() < Snapshot::LINES {
            self.unread.push(unread);
        } else {
            self.omitted += 1;
        }
    }

    /// The device that `name`'s frames come in by: the interface itself, or its parent's parent and so on.
    /// Loops and missing parents end the walk at the last name known.
    pub fn physical<'a>(&'a self, name: &'a str) -> &'a str {
        let mut name = name;
        for _ in 0..16 {
            match self.interface(name).and_then(|interface| interface.parent.as_ref()) {
                Some(parent) if parent.value != name => name = &parent.value,
                _ => break,
            }
        }
        name
    }

    /// Whether it is OpenWrt, whose settings are those of uci and whose firewall is fw4.
    pub fn is_openwrt(&self) -> bool {
        let has_firewall = || self.netfilter.flowtables.iter().any(|one| one.table == "inet fw4");
        let has_settings = || !self.uci.is_empty() || has_firewall();
        self.distribution.as_ref().map_or_else(has_settings, |known| known.value.is_openwrt)
    }

    /// CPUs online, from whatever says so.
    pub fn cpu_count(&self) -> Option<u32> {
        self.cpus.online.as_ref().map(|fact| fact.value)
    }

    /// The receive interrupts of an interface, by its name.
    pub fn interrupts_of<'a>(&'a self, interface: &'a str) -> impl Iterator<Item = &'a Interrupt> {
        self.interrupts.iter().filter(move |interrupt| interrupt.interface.as_deref() == Some(interface))
    }
}
