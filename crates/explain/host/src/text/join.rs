//! Facts that only lines of several outputs make together: whose interrupt a bus address names, what `lspci` says
//! of the device below an interface, which system it must be.

use super::kept::Kept;
use super::{ps, vector_name};
use crate::{Fact, Interface, Interrupt, Kind, Quote, Snapshot, System};
use std::collections::{BTreeMap, BTreeSet};

/// Joins what was read.
pub(super) fn join(snapshot: &mut Snapshot, kept: &Kept) {
    models(snapshot, kept);
    interrupts(snapshot, kept);
    on_chip(snapshot);
    named(snapshot);
    totals(snapshot, kept);
    ps::shares(snapshot, kept);
    only_cpu(snapshot, kept);
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

/// The load of all CPUs together is that of the only one.
fn only_cpu(snapshot: &mut Snapshot, kept: &Kept) {
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

/// The vectors of a system on a chip's Ethernet device (`1e100000.ethernet`) belong to the only Ethernet interface
/// where the text shows one device and one interface, and to the unnamed interface where it shows no interface.
fn on_chip(snapshot: &mut Snapshot) {
    let device = |interrupt: &Interrupt| vector_name::platform_device(&interrupt.action, &interrupt.vector);
    let devices: BTreeSet<String> = snapshot.interrupts.iter().filter_map(device).collect();
    if devices.len() != 1 {
        return;
    }
    let of_interfaces = snapshot.interfaces.iter().filter(|one| may_be_a_device(one)).map(|one| &one.name);
    let of_interrupts = snapshot.interrupts.iter().filter_map(|interrupt| interrupt.interface.as_ref());
    let names: BTreeSet<&String> = of_interfaces.chain(of_interrupts).collect();
    let only = match (names.len(), names.first()) {
        (0, _) => String::new(),
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
    use crate::text::read;

    #[test]
    fn the_drivers_counters_go_before_the_kernels_and_are_no_samples_of_them() {
        let text = "2: eth0: <BROADCAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP\n    RX: bytes packets errors dropped missed mcast\n    \
                    1100 11 0 0 3 0\n$ ethtool -S eth0\nNIC statistics:\n     rx_packets: 12\n     rx_missed_errors: 4\n";
        let snapshot = read(text);
        let totals = &snapshot.interface("eth0").expect("eth0").totals;
        let packets = totals.packets.as_ref().expect("packets");
        assert_eq!((packets.value(), packets.delta()), (12, Delta::OneSample));
        assert_eq!(totals.bytes.as_ref().map(|bytes| bytes.value()), Some(1100));
        let overflow: Vec<(&str, u64)> =
            totals.overflow.iter().map(|(name, counter)| (name.as_str(), counter.value())).collect();
        assert_eq!(overflow, [("rx_missed_errors", 4)]);
    }

    // MT7621, the rows as in github.com/openwrt/mt76 issue 135; `wan@eth0` and so on are written for this test.
    const MT7621: &str = "           CPU0       CPU1       CPU2       CPU3\n  8:     102413     102392     102390     102381  MIPS GIC Local   1  timer\n \
                          10:     480327          0          0          0  MIPS GIC  10  1e100000.ethernet\n \
                          11:     995212          0          0          0  MIPS GIC  11  mt7603e\n";
    const PORTS: &str = "2: eth0: <BROADCAST,UP,LOWER_UP> mtu 1504 qdisc mq state UP qlen 1000\n\
                         3: wan@eth0: <BROADCAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP qlen 1000\n\
                         4: lan1@eth0: <BROADCAST,UP> mtu 1500 qdisc noqueue master br-lan state DOWN qlen 1000\n\
                         8: br-lan: <BROADCAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP qlen 1000\n\
                         9: wan.7@wan: <BROADCAST,UP> mtu 1500 qdisc noqueue state UP qlen 1000\n";

    /// The interface of vector 10.
    fn owner(text: &str) -> Option<String> {
        let interrupts = read(text).interrupts;
        interrupts.into_iter().find(|one| one.vector == "10").expect("vector 10").interface
    }

    #[test]
    fn the_only_ethernet_device_of_a_chip_is_the_only_interface() {
        let ports = format!("$ ip link\n{PORTS}");
        assert_eq!(owner(&format!("{MT7621}{ports}")).as_deref(), Some("eth0"));
        assert_eq!(owner(&format!("{ports}$ cat /proc/interrupts\n{MT7621}")).as_deref(), Some("eth0"));
        let snapshot = read(&format!("{MT7621}{ports}"));
        assert_eq!((snapshot.physical("wan"), snapshot.physical("wan.7")), ("eth0", "eth0"));
        // The other way into the WAN is a device of its own, whose vectors nothing tells.
        let second = format!("{MT7621}{ports}10: eth1: <BROADCAST,UP,LOWER_UP> mtu 1500 state UP\n");
        assert_eq!(owner(&second), None);
        let two = format!("{MT7621} 12: 5 0 0 0  MIPS GIC  12  1e110000.ethernet\n{ports}");
        assert_eq!(owner(&two), None);
        // Linksys WRT1900AC, as in github.com/kaloz/mwlwifi issue 34: two devices, one name.
        let mvneta = "           CPU0       CPU1\n 10:        111          0  armada_370_xp_irq   8  mvneta\n \
                      27:     150549          0  armada_370_xp_irq  10  mvneta\n";
        assert_eq!(owner(&format!("{mvneta}{ports}")), None);
    }

    #[test]
    fn a_platform_device_is_known_by_its_name() {
        let second = "$ ethtool -i eth1\ndriver: igb\nbus-info: 0000:01:00.0\n";
        for said in [
            "$ ethtool -i eth0\ndriver: mtk_soc_eth\nversion: 6.6.86\nbus-info: 1e100000.ethernet\n",
            "$ ip -d link\n2: eth0: <BROADCAST,UP> mtu 1504 qdisc mq state UP\n    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff \
             promiscuity 0 minmtu 68 maxmtu 2026 parentbus platform parentdev 1e100000.ethernet\n",
            "$ cat /sys/class/net/eth0/device/uevent\nDRIVER=mtk_soc_eth\nOF_NAME=ethernet\nOF_FULLNAME=/ethernet@1e100000\n",
        ] {
            assert_eq!(owner(&format!("{MT7621}{said}{second}")).as_deref(), Some("eth0"), "{said}");
        }
        // Both ports of the chip's frame engine.
        let shared = "$ ethtool -i eth0\ndriver: mtk_soc_eth\nbus-info: 1e100000.ethernet\n\
                      $ ethtool -i eth1\ndriver: mtk_soc_eth\nbus-info: 1e100000.ethernet\n";
        assert_eq!(owner(&format!("{MT7621}{shared}")), None);
    }

    #[test]
    fn without_any_interface_it_is_the_unnamed_one() {
        assert_eq!(owner(MT7621).as_deref(), Some(""));
        let snapshot = read(MT7621);
        assert_eq!((snapshot.interfaces.len(), snapshot.interrupts_of("").count()), (1, 1));
        // ipq40xx names its rings, as in github.com/openwrt/openwrt issue 16818.
        let rings = "           CPU0       CPU1\n 10:  100 0  GICv2 97 Edge  c080000.ethernet:rxq0\n 11:  7 0  GICv2 98 Edge  c080000.ethernet:rxq1\n";
        let queues: Vec<Option<u32>> = read(rings).interrupts_of("").map(|one| one.queue).collect();
        assert_eq!(queues, [Some(0), Some(1)]);
        assert!(read("           CPU0\n  8:  102413  MIPS  1  timer\n").interfaces.is_empty());
    }
}
