//! Facts that only lines of several outputs make together: whose interrupt a bus address names, what `lspci` says
//! of the device below an interface, which system it must be.

use super::kept::Kept;
use super::vector_name;
use crate::{Fact, Interrupt, Quote, Snapshot, System};
use std::collections::BTreeMap;

/// Joins what was read.
pub(super) fn join(snapshot: &mut Snapshot, kept: &Kept) {
    models(snapshot, kept);
    interrupts(snapshot, kept);
    named(snapshot);
    system(snapshot);
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

/// Tools that exist on Linux alone tell the system where nothing says it.
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
