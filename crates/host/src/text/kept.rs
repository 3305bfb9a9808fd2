//! What single lines say that only together with others, which may stand anywhere, make a fact.

use crate::Quote;
use std::collections::BTreeMap;

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
    /// PCI vendor by interface.
    pub vendors: BTreeMap<String, u16>,
    /// The interface of each vector that its device lists; `None` where two do.
    pub vectors: BTreeMap<String, Option<String>>,
    /// The tool that an interface's totals are read from.
    totals: BTreeMap<String, &'static str>,
}

/// Time of one CPU, in ticks: user and nice, system, interrupt, softirq, idle and I/O wait, stolen.
pub(super) type Ticks = [u64; 6];

/// A device of `lspci`.
#[derive(Debug)]
pub(super) struct PciDevice {
    /// `vendor:device`, where `-nn` or `-n` shows it.
    pub id: Option<String>,
    /// Its name.
    pub model: String,
    /// The line.
    pub quote: Quote,
}

impl Kept {
    /// Entries of each map that are kept.
    pub const MOST: usize = 4096;

    /// Whether `tool` is the one whose totals of the interface are read: the first that has them. What another
    /// tool prints of the same counter at nearly the same time is no second sample.
    pub fn is_totals_of(&mut self, interface: &str, tool: &'static str) -> bool {
        match self.totals.get(interface) {
            Some(first) => *first == tool,
            None if self.totals.len() < Kept::MOST => {
                self.totals.insert(interface.to_owned(), tool);
                true
            }
            None => false,
        }
    }
}
