//! What belongs to the machine and not to one interface: CPUs, interrupts, softirqs, processes, the log.

#![expect(missing_docs, reason = "what its name does not say has a comment")]

use crate::{Counter, Fact, Observed, Quote};
use std::collections::BTreeMap;

/// The operating system that the text comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum System {
    Linux,
    FreeBsd,
    NetBsd,
}

impl System {
    pub const fn name(self) -> &'static str {
        match self {
            System::Linux => "linux",
            System::FreeBsd => "freebsd",
            System::NetBsd => "netbsd",
        }
    }

    /// The system of that name in any case, as `uname` prints it.
    pub(crate) fn named(name: &str) -> Option<System> {
        let all = [System::Linux, System::FreeBsd, System::NetBsd];
        all.into_iter().find(|system| system.name().eq_ignore_ascii_case(name))
    }
}

/// A distribution of Linux.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    /// `OpenWrt`, `Debian GNU/Linux`.
    pub name: String,
    /// `24.10.0`, `SNAPSHOT`; `None` where nothing says it.
    pub release: Option<String>,
    /// Whether it is OpenWrt or made of it, so that settings are those of uci.
    pub is_openwrt: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cpus {
    /// CPUs online. A heading of `/proc/interrupts` counts.
    pub online: Option<Fact<u32>>,
    pub model: Option<Fact<String>>,
    /// CPUs of each NUMA node, by node.
    pub nodes: BTreeMap<u32, Vec<u32>>,
    /// What each CPU can do compared with the fastest of the machine, which has 1024 (`cpu_capacity`).
    pub capacity: BTreeMap<u32, Fact<u32>>,
    /// Highest frequency of each CPU, kHz.
    pub frequency: BTreeMap<u32, Fact<u32>>,
    /// Part numbers of Arm's CPUs (`CPU part` of `/proc/cpuinfo`).
    pub parts: BTreeMap<u32, Fact<u32>>,
    /// Busy time by CPU, per cent of the interval.
    pub load: BTreeMap<u32, Fact<Load>>,
    /// The same of all CPUs together, per cent of the time of all.
    pub all: Option<Fact<Load>>,
}

/// How one CPU spent its time, per cent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    pub user: f64,
    pub system: f64,
    pub interrupt: f64,
    /// Soft interrupts; `None` where the system does not count them apart.
    pub softirq: Option<f64>,
    pub idle: f64,
}

impl Eq for Load {}

/// A line of `/proc/interrupts` or `vmstat -i`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// The vector's number or name before the colon (`128`, `irq135`).
    pub vector: String,
    /// The controller that delivers it, where the text shows it.
    pub chip: Option<Chip>,
    /// What it is for (`eth0-rx-0`, `igc1:rxq0`).
    pub action: String,
    /// The interface it serves, where the name says.
    pub interface: Option<String>,
    /// The queue it serves, where the name says.
    pub queue: Option<u32>,
    /// Whether it serves receive traffic (alone or with transmit); a transmit or link vector does not. `None`
    /// where the name does not say (one vector for everything).
    pub receives: Option<bool>,
    /// Counts by CPU number; for a system that does not count by CPU, one entry under `None`.
    pub counts: BTreeMap<Option<u32>, Counter>,
    /// CPUs that it is delivered to (`effective_affinity`) where the text says so, else those that are allowed
    /// (`smp_affinity`).
    pub affinity: Option<Observed<Vec<u32>>>,
    /// Interrupts per second since boot, as `vmstat -i` prints it.
    pub rate: Option<Fact<u64>>,
    pub quote: Quote,
}

/// An interrupt controller (`GICv3`, `SiFive PLIC`, `PCI-MSI`) with the number that it gives the interrupt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chip {
    pub name: String,
    pub number: u64,
}

/// A line of `/proc/net/softnet_stat`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Softnet {
    pub processed: Counter,
    /// Frames dropped since the backlog was full.
    pub dropped: Counter,
    /// Times that budget or time ran out with work left.
    pub time_squeeze: Counter,
    pub received_rps: Option<Counter>,
}

/// `netstat -Q`: FreeBSD's netisr.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Netisr {
    pub threads: Option<Observed<u32>>,
    /// Dispatch policy (`direct`, `hybrid`, `deferred`).
    pub dispatch: Option<Observed<String>>,
    /// Whether threads are bound to CPUs.
    pub bound: Option<Observed<bool>>,
    pub protocols: BTreeMap<String, NetisrProtocol>,
    pub workstreams: BTreeMap<(u32, String), Workstream>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetisrProtocol {
    /// `flow`, `source` or `cpu`.
    pub policy: String,
    /// `default`, `direct`, `hybrid` or `deferred`.
    pub dispatch: String,
    pub quote: Quote,
}

/// What one CPU did for one protocol, packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workstream {
    /// Handled in all.
    pub handled: Counter,
    /// Dropped since the queue was full.
    pub dropped: Counter,
}

/// A process that carries PPPoE in user space, or takes a CPU.
#[derive(Clone, Debug, PartialEq)]
pub struct Process {
    /// Its command name, without arguments.
    pub name: String,
    pub pid: Option<u32>,
    /// Per cent of one CPU.
    pub cpu: Option<f64>,
    /// Per cent of all CPUs together, where that was printed (BusyBox).
    pub of_all: Option<f64>,
    pub quote: Quote,
}

/// A function in which CPU time was sampled.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionShare {
    /// Its symbol (`native_queued_spin_lock_slowpath`).
    pub function: String,
    /// Part of all samples that are in it, what it calls not counted.
    pub share: f64,
    /// Functions on the way to it, where the text shows them.
    pub callers: Vec<String>,
}

/// FreeBSD's buffers of the network stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mbufs {
    /// Requests that failed, by kind: `mbufs`, `clusters`, `mbuf+clusters`, `4k`, `9k`, `16k`.
    pub denied: BTreeMap<String, Counter>,
    /// In all, free ones among them, and the greatest number, by kind (`clusters`, `4k`, `9k`, `16k`).
    pub used: BTreeMap<String, Fact<(u64, u64)>>,
}

/// What a line of the kernel log is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LogTopic {
    /// `partial checksum but proto=…`: a checksum that the driver cannot place behind the tags.
    PartialChecksum,
    /// `failed on len …`.
    FailedLength,
    /// The transmit watchdog, a hang on transmit.
    TransmitHang,
    /// A reset that says nothing of why.
    Reset,
    /// The link came up, with its speed where the line says.
    LinkUp,
    LinkDown,
}

/// A line of the kernel log that matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    pub topic: LogTopic,
    pub interface: Option<String>,
    /// How often it was logged, `last message repeated N times` included.
    pub times: u64,
    pub quote: Quote,
}
