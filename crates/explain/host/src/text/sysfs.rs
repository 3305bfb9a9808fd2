//! Files of one value in `/sys/class/net` and `/proc/irq`: RPS, PCI ids, link, MTU, SR-IOV, interrupt affinity.
//!
//! Read as `cat FILE…`, as `grep . FILE…` and `tail FILE…` print several, or as a loop prints names and values.
//!
//! Of an interrupt's affinity, `effective_affinity` (the CPUs that the interrupt controller delivers to, since
//! Linux 4.13) goes before `smp_affinity` (the CPUs that are allowed): it says where the work is done.

use super::kept::Kept;
use super::line::{is_word_of, one_of_two};
use super::proc_interrupts::bare;
use super::{Context, Line, Outcome, Section, Tool, command, cpu_list};
use crate::{Fact, Interface, Kind, Observed, Quote, Snapshot};
use std::collections::VecDeque;

pub(super) static TOOL: Tool = Tool {
    name: "/sys/class/net",
    command: |command| {
        matches!(command.program, "cat" | "grep" | "head" | "tail" | "ls")
            && command.path.is_some_and(|path| ROOTS.iter().any(|root| path.starts_with(root)))
    },
    heading: |line| line.starts_with(['/', '=']) && named(line).is_some_and(|(path, _)| file(path).is_some()),
    open: |context| Box::new(Files::new(context)),
};

const ROOTS: [&str; 2] = ["/sys/class/net/", "/proc/irq/"];

/// Interrupts of which only the affinity is known.
const BARE: usize = 4096;

struct Files {
    context: Context,
    /// The files that the command names and whose values were not read yet.
    waiting: VecDeque<String>,
    /// The file of the next value.
    current: Option<String>,
}

/// What a file is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum File<'a> {
    Interface(&'a str, &'a str),
    Vector(&'a str, &'a str),
}

impl Section for Files {
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
        let text = line.trimmed();
        if let Some((path, value)) = named(text) {
            return match value {
                Some(value) => self.value(path, value, line, snapshot),
                None => {
                    self.current = Some(path.to_owned());
                    Outcome::Taken
                }
            };
        }
        if text.is_empty() {
            return Outcome::Skipped;
        }
        if self.current.is_none() {
            self.current = self.waiting.pop_front();
        }
        let Some(path) = self.current.take() else { return Outcome::Over };
        let outcome = self.value(&path, text, line, snapshot);
        // `uevent` and a folder's listing have several lines.
        if path.ends_with("/uevent") || path.ends_with("/msi_irqs") {
            self.current = Some(path);
        }
        outcome
    }

    fn resume(&mut self, context: &Context) -> bool {
        *self = Files::new(context);
        true
    }

    fn name(&self) -> Option<&'static str> {
        let path = self.context.path.as_deref().unwrap_or_default();
        path.starts_with("/proc/irq/").then_some("/proc/irq")
    }
}

impl Files {
    fn new(context: &Context) -> Files {
        let command = context.command.as_deref().unwrap_or_default();
        let paths = || command.split_whitespace().filter(|word| file(word).is_some());
        // The shell's patterns stand for an unknown number of files.
        let is_known = !command.contains(['*', '?', '[', '{', '|']) || paths().count() == 0;
        let waiting = if is_known { paths().map(str::to_owned).collect() } else { VecDeque::new() };
        Files { context: context.clone(), waiting, current: None }
    }

    fn value(&self, path: &str, value: &str, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
        // An error in the place of the value.
        if value.starts_with("cat: ") || value.starts_with("grep: ") {
            return Outcome::Skipped;
        }
        match file(path) {
            Some(File::Vector(vector, name)) => affinity(vector, name, value, line, snapshot),
            Some(File::Interface(interface, "device/msi_irqs" | "device/../msi_irqs")) => {
                self.vectors(interface, value);
                Outcome::Taken
            }
            Some(File::Interface(interface, name)) => self.interface(interface, name, value, line, snapshot),
            None => Outcome::Over,
        }
    }

    /// `ls` of the folder of the device's vectors.
    fn vectors(&self, interface: &str, numbers: &str) {
        let mut kept = self.context.kept();
        for number in numbers.split_whitespace().filter(|word| word.bytes().all(|c| c.is_ascii_digit())) {
            if kept.vectors.len() >= Snapshot::INTERRUPTS {
                return;
            }
            let owner = kept.vectors.entry(number.to_owned()).or_insert_with(|| Some(interface.to_owned()));
            if owner.as_deref() != Some(interface) {
                *owner = None;
            }
        }
    }

    fn interface(
        &self,
        name: &str,
        file: &str,
        value: &str,
        line: &Line<'_>,
        snapshot: &mut Snapshot,
    ) -> Outcome {
        let quote = line.quote();
        if let Some(queue) = file.strip_prefix("queues/rx-").and_then(|rest| rest.strip_suffix("/rps_cpus")) {
            return rps(name, queue, value, quote, snapshot);
        }
        if !is_word_of(FILES, file) {
            return Outcome::Skipped;
        }
        let Some(interface) = snapshot.interface_mut(name, &quote) else { return Outcome::Taken };
        match file {
            "mtu" => Observed::note(&mut interface.mtu, value.parse().ok(), &quote),
            // -1 without a link.
            "speed" => {
                let speed = value.parse().ok().filter(|&speed| speed > 0);
                if speed.is_none() {
                    interface.link.no_speed.get_or_insert_with(|| quote.clone());
                }
                Observed::note(&mut interface.link.speed, speed, &quote);
            }
            "duplex" => {
                Observed::note(&mut interface.link.full_duplex, one_of_two(value, "full", "half"), &quote);
            }
            "carrier" => Observed::note(&mut interface.link.up, one_of_two(value, "1", "0"), &quote),
            "device/sriov_numvfs" => {
                interface.virtual_functions = value.parse().ok().map(|number| Fact::new(number, quote));
            }
            "device/vendor" => {
                if let Some(vendor) = pci_word(value) {
                    let mut kept = self.context.kept();
                    if kept.vendors.len() < Snapshot::INTERFACES {
                        kept.vendors.insert(name.to_owned(), vendor);
                    }
                }
            }
            "device/device" => {
                let vendor = self.context.kept().vendors.get(name).copied();
                if let Some((vendor, device)) = vendor.zip(pci_word(value)) {
                    interface.pci = Some(Fact::new(format!("{vendor:04x}:{device:04x}"), quote));
                }
            }
            "device/uevent" => {
                if let Some(device) = platform_device(value) {
                    let mut kept = self.context.kept();
                    if kept.devices.len() < Kept::MOST {
                        kept.devices.insert(name.to_owned(), device);
                    }
                }
                uevent(interface, value, quote);
            }
            _ => {}
        }
        Outcome::Taken
    }
}

/// Files of an interface that are read or known to say nothing here.
const FILES: &str = "mtu speed duplex carrier operstate device/sriov_numvfs device/vendor device/device \
                     device/uevent";

/// `OF_FULLNAME=/ethernet@1e100000` is the device tree's node of the platform device `1e100000.ethernet`, where no
/// bus above it moves the address (`of_device_make_bus_id`, drivers/of/platform.c).
fn platform_device(value: &str) -> Option<String> {
    let (node, address) = value.strip_prefix("OF_FULLNAME=")?.rsplit('/').next()?.split_once('@')?;
    Some(format!("{address}.{node}"))
}

/// `DRIVER=igb`, `PCI_ID=8086:1533`, `PCI_SLOT_NAME=0000:03:00.0`.
fn uevent(interface: &mut Interface, value: &str, quote: Quote) {
    let Some((name, value)) = value.split_once('=') else { return };
    match name {
        "DRIVER" => {
            interface.kind.get_or_insert_with(|| Fact::new(Kind::Device, quote.clone()));
            interface.driver.get_or_insert_with(|| Fact::new(value.to_owned(), quote));
        }
        "PCI_ID" => interface.pci = Some(Fact::new(value.to_ascii_lowercase(), quote)),
        "PCI_SLOT_NAME" => {
            interface.bus.get_or_insert_with(|| Fact::new(value.to_owned(), quote));
        }
        _ => {}
    }
}

fn rps(name: &str, queue: &str, mask: &str, quote: Quote, snapshot: &mut Snapshot) -> Outcome {
    let (Ok(queue), Some(cpus)) = (queue.parse::<u32>(), cpu_list::mask(mask)) else {
        return Outcome::Skipped;
    };
    match snapshot.interface_mut(name, &quote).and_then(|interface| interface.queue_mut(queue)) {
        Some(queue) => Observed::note(&mut queue.rps, cpus, &quote),
        None => snapshot.omitted += 1,
    }
    Outcome::Taken
}

fn affinity(vector: &str, file: &str, value: &str, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
    let cpus = if file.ends_with("_list") { cpu_list::list(value) } else { cpu_list::mask(value) };
    let Some(cpus) = cpus.filter(|cpus| !cpus.is_empty()) else { return Outcome::Skipped };
    note_affinity(vector, &Fact::new(cpus, line.quote()), file.starts_with("effective"), snapshot);
    Outcome::Taken
}

/// Puts the CPUs of a vector's affinity into the snapshot, whether or not the vector is there yet.
pub(super) fn note_affinity(
    vector: &str,
    cpus: &Fact<Vec<u32>>,
    is_effective: bool,
    snapshot: &mut Snapshot,
) {
    let mut found = false;
    for interrupt in snapshot.interrupts.iter_mut().filter(|interrupt| interrupt.vector == vector) {
        found = true;
        match &mut interrupt.affinity {
            Some(known) if speaks_of_effect(known.quote()) == is_effective => known.again(cpus.clone()),
            Some(_) if !is_effective => {}
            affinity => *affinity = Some(Observed::once(cpus.clone())),
        }
    }
    if found {
        return;
    }
    if snapshot.interrupts.len() >= BARE {
        snapshot.omitted += 1;
        return;
    }
    let mut interrupt = bare(vector, cpus.quote.clone());
    interrupt.affinity = Some(Observed::once(cpus.clone()));
    snapshot.interrupts.push(interrupt);
}

fn speaks_of_effect(quote: &Quote) -> bool {
    let is_there = |text: &str| text.contains("/effective_affinity");
    is_there(&quote.text) || quote.command.as_deref().is_some_and(is_there)
}

/// `0x8086`.
fn pci_word(text: &str) -> Option<u16> {
    u16::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// A path with its value (`grep .`), or alone (`==> path <==` of tail and head, a name before the value).
fn named(line: &str) -> Option<(&str, Option<&str>)> {
    if let Some(path) = line.strip_prefix("==> ") {
        return path.strip_suffix(" <==").map(|path| (path, None));
    }
    if !ROOTS.iter().any(|root| line.starts_with(root)) {
        return None;
    }
    // Names of interfaces have no colon but for old aliases, which have no such files.
    match line.split_once(':') {
        Some((path, value)) if !path.contains(' ') => {
            let value = value.trim();
            Some((path, (!value.is_empty()).then_some(value)))
        }
        Some(_) => None,
        None => (!line.contains(' ')).then_some((line, None)),
    }
}

fn file(path: &str) -> Option<File<'_>> {
    if let Some(rest) = path.strip_prefix("/sys/class/net/") {
        let (interface, file) = rest.split_once('/')?;
        return command::is_interface(interface)
            .then_some(File::Interface(interface, file.trim_end_matches('/')));
    }
    let (vector, file) = path.strip_prefix("/proc/irq/")?.split_once('/')?;
    let is_affinity = matches!(
        file,
        "smp_affinity" | "smp_affinity_list" | "effective_affinity" | "effective_affinity_list"
    );
    let is_vector = (1..10).contains(&vector.len()) && vector.bytes().all(|c| c.is_ascii_digit());
    (is_affinity && is_vector).then_some(File::Vector(vector, file))
}
