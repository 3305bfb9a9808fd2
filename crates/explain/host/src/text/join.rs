//! Facts that only lines of several outputs make together: whose interrupt a bus address names, what `lspci` says
//! of the device below an interface, which system it must be.

use super::kept::Kept;
use super::{ps, vector_name};
use crate::{Counter, Fact, Interface, Interrupt, Kind, Quote, Snapshot, System};
use std::collections::{BTreeMap, BTreeSet};

/// The least share of an interface's frames that its queues have counted where they were polled all the time. Both are read one
/// after the other, while frames come.
const POLLED: f64 = 0.9;

pub(super) fn join(snapshot: &mut Snapshot, kept: &Kept) {
    links(snapshot, kept);
    models(snapshot, kept);
    interrupts(snapshot, kept);
    on_chip(snapshot);
    named(snapshot);
    totals(snapshot, kept);
    polled(snapshot);
    ps::shares(snapshot, kept);
    only_cpu(snapshot, kept);
    system(snapshot);
}

/// The kernel log's links, of the interfaces that the text shows, or of all where it shows none: a log has names that no interface
/// has any more.
fn links(snapshot: &mut Snapshot, kept: &Kept) {
    let of_vectors: BTreeSet<String> =
        snapshot.interrupts.iter().filter_map(|interrupt| interrupt.interface.clone()).collect();
    let is_open = snapshot.interfaces.is_empty() && of_vectors.is_empty();
    for (name, logged) in &kept.links {
        if is_open || of_vectors.contains(name) || snapshot.interface(name).is_some() {
            logged.give(name, snapshot);
        }
    }
}

/// `lspci` names the device that has the bus address which `ethtool -i` shows for the interface.
fn models(snapshot: &mut Snapshot, kept: &Kept) {
    for interface in &mut snapshot.interfaces {
        let Some(device) = interface.bus.as_ref().and_then(|bus| kept.pci.get(&bus.value)) else { continue };
        if let Some(id) = &device.id {
            interface.pci.get_or_insert_with(|| Fact::new(id.clone(), device.quote.clone()));
        }
        interface.model.get_or_insert_with(|| Fact::new(device.model.clone(), device.quote.clone()));
    }
}

/// The kernel's totals stand in for what the driver's statistics do not count: both count the same frames, and one
/// loss is not to be counted twice under two names.
fn totals(snapshot: &mut Snapshot, kept: &Kept) {
    for interface in &mut snapshot.interfaces {
        let Some((_, from)) = kept.totals.get(&interface.name) else { continue };
        let to = &mut interface.totals;
        to.packets = to.packets.take().or_else(|| from.packets.clone());
        to.bytes = to.bytes.take().or_else(|| from.bytes.clone());
        for (name, counter) in &from.overflow {
            // `over` for ip's `overrun` and the drivers' `rx_over_errors`.
            let word = name.strip_suffix("run").unwrap_or(name);
            if !to.overflow.keys().any(|known| known.contains(word)) {
                to.overflow.insert(name.clone(), counter.clone());
            }
        }
    }
}

/// Queues that were not polled all the time have counted some of the frames, of which nothing follows for the others.
fn polled(snapshot: &mut Snapshot) {
    for interface in &mut snapshot.interfaces {
        let counted = || interface.queues.values().filter_map(|queue| queue.packets.as_ref());
        if !counted().any(|counter| counter.is_while_polled) {
            continue;
        }
        let Some(all) = &interface.totals.packets else { continue };
        let between = counted().map(Counter::counted).sum::<Option<u64>>().zip(all.counted());
        let (counted, all) = between
            .filter(|(_, all)| *all > 0)
            .unwrap_or_else(|| (counted().map(Counter::value).fold(0, u64::saturating_add), all.value()));
        if (counted as f64) < POLLED * all as f64 {
            interface.queues.values_mut().for_each(|queue| queue.packets = None);
        }
    }
}

/// The load of all CPUs together is that of the only one.
fn only_cpu(snapshot: &mut Snapshot, kept: &Kept) {
    snapshot.cpus.all = kept.load.clone();
    if snapshot.cpu_count() == Some(1) && snapshot.cpus.load.is_empty() {
        snapshot.cpus.load.extend(kept.load.clone().map(|load| (0, load)));
    }
}

/// An interrupt whose name has a bus address, a device's name or an interface's plain name belongs to the one
/// interface of that address or name. Two interfaces on one address (mlx4 has both ports there) leave it open.
fn interrupts(snapshot: &mut Snapshot, kept: &Kept) {
    let mut owners: BTreeMap<String, Option<String>> = BTreeMap::new();
    let mut own = |device: &str, interface: &str| {
        let owner = owners.entry(device.to_owned()).or_insert_with(|| Some(interface.to_owned()));
        if owner.as_deref() != Some(interface) {
            *owner = None;
        }
    };
    for interface in &snapshot.interfaces {
        own(&interface.name, &interface.name);
        if let Some(bus) = &interface.bus {
            own(&bus.value, &interface.name);
        }
        if let Some(device) = kept.devices.get(&interface.name) {
            own(device, &interface.name);
        }
    }
    for interrupt in snapshot.interrupts.iter_mut().filter(|interrupt| interrupt.interface.is_none()) {
        interrupt.interface =
            owner(interrupt, &owners).or_else(|| kept.vectors.get(&interrupt.vector).cloned().flatten());
    }
}

/// The vectors of a network device that name no interface (`1e100000.ethernet`) belong to the only Ethernet interface
/// where the text shows one device and one interface, and to the unnamed interface where it shows no interface. An
/// interface with vectors of its own name is another device.
fn on_chip(snapshot: &mut Snapshot) {
    let device = Interrupt::network_device;
    let open = snapshot.interrupts.iter().filter(|interrupt| interrupt.interface.is_none());
    let devices: BTreeSet<String> = open.filter_map(device).collect();
    if devices.len() != 1 {
        return;
    }
    let of_interfaces = snapshot.interfaces.iter().filter(|one| may_be_a_device(one)).map(|one| &one.name);
    let is_other = |name: &String| snapshot.interrupts_of(name).next().is_some();
    let names: BTreeSet<&String> = of_interfaces.filter(|name| !is_other(name)).collect();
    let only = match (names.len(), names.first()) {
        (0, _) if snapshot.interrupts.iter().all(|interrupt| interrupt.interface.is_none()) => String::new(),
        (1, Some(name)) => String::clone(name),
        _ => return,
    };
    for interrupt in snapshot.interrupts.iter_mut().filter(|interrupt| interrupt.interface.is_none()) {
        if device(interrupt).is_some() {
            interrupt.interface = Some(only.clone());
        }
    }
}

/// Whether an interface may stand on an Ethernet device of its own: one that a tool calls a device, or whose name
/// is an Ethernet interface's or a switch port's (`wan`, `lan1`), unless something stands below it.
fn may_be_a_device(interface: &Interface) -> bool {
    if interface.parent.is_some() {
        return false;
    }
    // dsa_port_get_drvinfo: net/dsa/user.c. Wi-Fi drivers call themselves devices, too.
    let is_port = interface.driver.as_ref().is_some_and(|driver| driver.value == "dsa");
    let name = interface.name.as_str();
    let is_wireless =
        ["wl", "ath", "phy", "ra"].iter().any(|prefix| name.starts_with(prefix)) && !name.contains('.');
    match interface.kind.as_ref().map(|kind| &kind.value) {
        Some(Kind::Device) => !is_port && !is_wireless,
        Some(_) => false,
        None => {
            name.is_empty() || vector_name::looks_like_interface(name) && !name.contains('.') || name == "wan"
        }
    }
}

/// An interface that nothing but its interrupts name is one all the same.
fn named(snapshot: &mut Snapshot) {
    let owners = snapshot.interrupts.iter().filter_map(|interrupt| {
        let name = interrupt.interface.clone()?;
        snapshot.interface(&name).is_none().then(|| (name, interrupt.quote.clone()))
    });
    let missing: BTreeMap<String, Quote> = owners.rev().collect();
    for (name, seen) in missing {
        snapshot.interface_mut(&name, &seen);
    }
}

fn owner(interrupt: &Interrupt, owners: &BTreeMap<String, Option<String>>) -> Option<String> {
    let by_name = interrupt.action.split(',').map(str::trim).find_map(|name| {
        let device = vector_name::device(name)?;
        owners.get(device).cloned().flatten()
    });
    by_name.or_else(|| {
        // The chip's column names the device since Linux 6.1: `IR-PCI-MSIX-0000:01:00.0`.
        let chip = interrupt.quote.text.split_whitespace().find_map(vector_name::bus_of_chip)?;
        owners.get(chip).cloned().flatten()
    })
}

/// Tools that exist on Linux alone give away the system where nothing says it.
fn system(snapshot: &mut Snapshot) {
    if snapshot.system.is_none() {
        let is_linux =
            |tool: &str| ["ethtool", "/proc/", "/sys/", "ip link"].iter().any(|word| tool.starts_with(word));
        snapshot.system = snapshot
            .read
            .iter()
            .find(|(tool, _)| is_linux(tool))
            .map(|(_, quote)| Fact::new(System::Linux, quote.clone()));
    }
}
