//! What single lines say that only together with others, which may stand anywhere, make a fact.

use super::link_message::Logged;
use crate::{Fact, Load, Quote, Totals};
use std::collections::{BTreeMap, BTreeSet};

/// What waits for other lines.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// Ticks of each CPU as its first line in `/proc/stat` had them.
    pub ticks: BTreeMap<u32, Ticks>,
    /// First and latest uptime, seconds.
    pub uptimes: Option<(f64, f64)>,
    /// Devices that `lspci` shows, by address with its domain (`0000:03:00.0`).
    pub pci: BTreeMap<String, PciDevice>,
    /// The device below an interface where the kernel's name for it is no bus address (`virtio0`), by interface.
    pub devices: BTreeMap<String, String>,
    pub vendors: BTreeMap<String, u16>,
    /// The interface of each vector that its device lists; `None` where two do.
    pub vectors: BTreeMap<String, Option<String>>,
    /// Totals that the kernel counts for an interface, and the tool that they are read from.
    pub totals: BTreeMap<String, (&'static str, Totals)>,
    /// Places among the snapshot's processes whose share is of all CPUs together.
    pub of_all_cpus: BTreeSet<usize>,
    /// The load of all CPUs together, which is that of a CPU where there is one.
    pub load: Option<Fact<Load>>,
    /// The driver's statistics of the interface without a name.
    pub statistics: Option<super::statistics::Observation>,
    /// What the kernel log says of each interface's link.
    pub links: BTreeMap<String, Logged>,
    /// Whether output without a name is of one of several interfaces.
    pub is_of_several: bool,
}

/// Time of one CPU, in ticks: user and nice, system, interrupt, softirq, idle and I/O wait, stolen.
pub(super) type Ticks = [u64; 6];

/// A device of `lspci`.
#[derive(Debug)]
pub(super) struct PciDevice {
    /// `vendor:device`, where `-nn` or `-n` shows it.
    pub id: Option<String>,
    pub model: String,
    pub quote: Quote,
}

impl Kept {
    /// Entries of each map that are kept.
    pub const MOST: usize = 4096;

    /// Where totals of the interface go that `tool` prints: `None` where another tool printed them first, since
    /// its reading of the same counter is no second sample.
    pub(crate) fn totals_of(&mut self, interface: &str, tool: &'static str) -> Option<&mut Totals> {
        if !self.totals.contains_key(interface) {
            if self.totals.len() >= Kept::MOST {
                return None;
            }
            self.totals.insert(interface.to_owned(), (tool, Totals::default()));
        }
        let (first, totals) = self.totals.get_mut(interface)?;
        (*first == tool).then_some(totals)
    }
}
