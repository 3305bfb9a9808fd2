//! A device of a case, with the questions that several rules put to it.

use crate::Case;
use crate::load::{self, Load};
use format::quoted;
use host::{Interface, Interrupt, Quote};
use std::collections::BTreeSet;
use std::ops::Deref;

/// Part of a vector's interrupts that one CPU must have served to be the CPU of the vector.
pub(crate) const SERVES: f64 = 0.8;

/// An interface whose receive path is judged.
#[derive(Clone, Copy)]
pub(crate) struct Device<'c> {
    pub case: &'c Case<'c>,
    pub interface: &'c Interface,
}

impl Deref for Device<'_> {
    type Target = Interface;

    fn deref(&self) -> &Interface {
        self.interface
    }
}

impl<'c> Device<'c> {
    /// Its name as a word of a command, `IFACE` where the text names none.
    pub fn word(&self) -> String {
        if self.name.is_empty() { "IFACE".to_owned() } else { quoted(&self.name) }
    }

    pub fn file(&self, path: &str) -> String {
        let name = if self.name.is_empty() { "IFACE" } else { &self.name };
        quoted(&format!("/sys/class/net/{name}/{path}"))
    }

    pub fn rps_file(&self, queue: u32) -> String {
        self.file(&format!("queues/rx-{queue}/rps_cpus"))
    }

    /// The driver's name, where known.
    pub fn driver_name(&self) -> Option<&'c str> {
        self.interface.driver.as_ref().map(|driver| driver.value.as_str())
    }

    /// The command that shows the counters of its receive queues.
    pub fn counters(&self) -> String {
        let name = self.word();
        let freebsd = || format!("sysctl {}", freebsd_node(&name));
        self.case.by_system(format!("ethtool -S {name}"), freebsd(), "vmstat -i".to_owned())
    }

    /// The vector of a receive queue: the one whose name says so, or the only one of the device.
    pub fn vector_of(&self, queue: u32) -> Option<&'c Interrupt> {
        let vectors = self.case.receive_interrupts(self);
        let named = vectors.iter().copied().find(|vector| vector.queue == Some(queue));
        named.or(match vectors[..] {
            [only] if only.queue.is_none() => Some(only),
            _ => None,
        })
    }

    pub fn cpu_of(&self, queue: u32) -> Option<u32> {
        cpu_of(self.case, self.vector_of(queue)?)
    }

    pub fn load_of(&self, queue: u32) -> Load {
        load::of(self.case, self.cpu_of(queue))
    }

    pub fn full_cpu(&self, cpus: impl IntoIterator<Item = u32>) -> Option<Load> {
        cpus.into_iter().map(|cpu| load::of(self.case, Some(cpu))).find(Load::is_full)
    }

    pub fn identity(&self) -> Option<&'c Quote> {
        let Interface { pci, model, driver, .. } = self.interface;
        [pci, model, driver].into_iter().flatten().map(|fact| &fact.quote).next()
    }

    /// What the device is called in a sentence: by its profile where one fits, else by its driver.
    pub fn title(&self) -> String {
        match (&self.case.profiles(self)[..], self.driver_name()) {
            ([profile], _) => profile.title.clone(),
            (_, Some(driver)) => format!("a device of the driver {driver}"),
            _ => "this device".to_owned(),
        }
    }
}

/// The sysctls under which FreeBSD's drivers count what they lost: `dev.igb.0` of `igb0`.
pub(crate) fn freebsd_node(name: &str) -> String {
    let driver = name.trim_end_matches(|c: char| c.is_ascii_digit());
    match name.strip_prefix(driver) {
        Some(unit) if !unit.is_empty() => format!("dev.{driver}.{unit}"),
        _ => format!("dev.{name}"),
    }
}

/// CPUs by number, as far as the snapshot names or counts them, in ascending order; empty where it does not.
pub(crate) fn online(case: &Case<'_>) -> Vec<u32> {
    let cpus = &case.snapshot().cpus;
    let numbered: BTreeSet<u32> = cpus.nodes.values().flatten().copied().collect();
    if !numbered.is_empty() {
        return numbered.into_iter().collect();
    }
    (0..case.snapshot().cpu_count().unwrap_or(0)).collect()
}

/// The CPU that serves a vector: the one that took nearly all of its interrupts, else the only one that its
/// affinity allows.
pub(crate) fn cpu_of(case: &Case<'_>, interrupt: &Interrupt) -> Option<u32> {
    let largest = case.shares(interrupt.counts.values()).and_then(|shares| shares.largest());
    let by_counts = largest
        .filter(|(_, share)| *share >= SERVES)
        .and_then(|(place, _)| *interrupt.counts.keys().nth(place)?);
    by_counts.or_else(|| match interrupt.affinity.as_ref()?.get()[..] {
        [cpu] => Some(cpu),
        _ => None,
    })
}
