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
    totals(snapshot, kept);
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

/// The kernel's totals stand in for what the driver's statistics do not tell: both count the same frames, and one
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

#[cfg(test)]
mod tests {
    use crate::Delta;
    use crate::text::Reader;

    #[test]
    fn the_drivers_counters_go_before_the_kernels_and_are_no_samples_of_them() {
        let text = "2: eth0: <BROADCAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP\n    RX: bytes packets errors dropped missed mcast\n    \
                    1100 11 0 0 3 0\n$ ethtool -S eth0\nNIC statistics:\n     rx_packets: 12\n     rx_missed_errors: 4\n";
        let mut reader = Reader::new();
        reader.read("paste", text.as_bytes()).expect("memory");
        let snapshot = reader.finish();
        let totals = &snapshot.interface("eth0").expect("eth0").totals;
        let packets = totals.packets.as_ref().expect("packets");
        assert_eq!((packets.value(), packets.delta()), (12, Delta::OneSample));
        assert_eq!(totals.bytes.as_ref().map(|bytes| bytes.value()), Some(1100));
        let overflow: Vec<(&str, u64)> =
            totals.overflow.iter().map(|(name, counter)| (name.as_str(), counter.value())).collect();
        assert_eq!(overflow, [("rx_missed_errors", 4)]);
    }
}
