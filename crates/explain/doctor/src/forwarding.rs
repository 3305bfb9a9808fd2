//! Whether the machine forwards, which of its devices a flowtable has to name, and how this kernel finds them.

use crate::Case;
use crate::case::kind;
use crate::stacked::{self, is_ppp};
use format::quoted;
use host::{Interface, Kind};
use std::collections::{BTreeMap, BTreeSet};

/// Whether packets are forwarded; `None` where nothing says.
pub(crate) fn forwards(case: &Case<'_>) -> Option<bool> {
    let sysctl = |name| case.sysctl(name).map(|(value, _)| value > 0);
    let (four, six) = (sysctl("net.ipv4.ip_forward"), sysctl("net.ipv6.conf.all.forwarding"));
    let snapshot = case.snapshot();
    let is_router = snapshot.is_openwrt() || !snapshot.netfilter.routed.is_empty();
    if four == Some(true) || six == Some(true) || is_router {
        return Some(true);
    }
    four.filter(|forwards| !forwards)
}

/// Where the kernel matches packets of VLAN devices and PPPoE sessions in a flowtable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// At the interface that routes name: Linux before 5.13 (`nft_dev_path_info()` in net/netfilter/nft_flow_offload.c came
    /// with 72efd585f714).
    Top,
    /// At the physical device, but it misses PPPoE there: before 6db5dc7b351b, "netfilter: flowtable: incorrect pppoe tuple", of
    /// 6.9, 6.8.8, 6.6.29, 6.1.88 and 5.15.157.
    MissesPppoe,
    /// At the physical device, a switch's port among these.
    Physical,
}

impl Lookup {
    /// That of the case's kernel; `None` where its release is not known.
    pub fn of(case: &Case<'_>) -> Option<Lookup> {
        let release = case.stable_release()?;
        // OpenWrt carries the lookup at the physical device back to 5.10 (its target/linux/generic/backport-5.10).
        let first = if case.snapshot().is_openwrt() { (5, 10, 0) } else { (5, 13, 0) };
        let is_fixed = match (release.0, release.1) {
            (5, 15) => release.2 >= 157,
            (6, 1) => release.2 >= 88,
            (6, 6) => release.2 >= 29,
            (6, 8) => release.2 >= 8,
            series => series >= (6, 9),
        };
        Some(match release {
            release if release < first => Lookup::Top,
            _ if is_fixed => Lookup::Physical,
            _ => Lookup::MissesPppoe,
        })
    }
}

/// The device at which the kernel matches packets of an interface from 5.13 on: below VLANs and PPPoE, and at the port of a
/// switch, not at the device behind the switch (`DEV_PATH_DSA` ends the way).
pub fn lookup_device<'a>(case: &Case<'a>, name: &'a str) -> &'a str {
    let mut name = name;
    for _ in 0..16 {
        let interface = case.snapshot().interface(name).filter(|one| !is_switch_port(one));
        match interface.and_then(|one| stacked::parent_of(case, one)) {
            Some(below) if below != name => name = below,
            _ => break,
        }
    }
    name
}

/// The commands that make a flowtable of this machine's devices in a table of its own, and whether these are known. `otherwise`: what
/// stands for them, as nft writes a list.
pub fn flowtable_commands(case: &Case<'_>, otherwise: &str) -> ([String; 4], bool) {
    let devices = devices(case);
    let known = devices.len() > 1;
    let devices = if known { list(&devices) } else { otherwise.to_owned() };
    let commands = [
        "add table inet rxlane".to_owned(),
        format!(
            "add flowtable inet rxlane fast {{ hook ingress priority filter; devices = {{ {devices} }}; }}"
        ),
        format!("add chain inet rxlane forward {{ type filter hook forward priority {}; }}", last(case)),
        "add rule inet rxlane forward meta l4proto { tcp, udp } flow add @fast".to_owned(),
    ];
    (commands.map(|words| format!("nft {}", quoted(&words))), known)
}

/// A priority behind the firewall's own chains at the hook `forward`, so that what these drop never gets there.
pub(crate) fn last(case: &Case<'_>) -> String {
    let last = case.snapshot().netfilter.last_forward.unwrap_or(0).max(0);
    format!("filter + {}", last.saturating_add(1))
}

/// Names as nft takes them. In quotes is what it might take for one of its own words, which have no digits as a rule (`counter`), and
/// what begins with no letter or has other characters than they; nothing else, since versions before 1.0.2 know no quotes here.
pub(crate) fn list(devices: &[String]) -> String {
    let is_word = |name: &str| {
        let is_letter = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(is_letter)
            && (name.contains(|c: char| c.is_ascii_digit()) || matches!(name, "lan" | "wan"))
            && !matches!(name, "ip6" | "icmpv6")
    };
    let word = |name: &String| if is_word(name) { name.clone() } else { format!("\"{name}\"") };
    devices.iter().map(word).collect::<Vec<_>>().join(", ")
}

/// Whether OpenWrt's firewall takes a value of its configuration for true (`parse_bool()` of firewall4's fw4.uc).
pub(crate) fn is_true(value: &str) -> bool {
    matches!(value.to_ascii_lowercase().as_str(), "1" | "on" | "true" | "yes")
}

/// Whether an interface is the port of a switch that the kernel drives (DSA): `lan1@eth0`.
fn is_switch_port(interface: &Interface) -> bool {
    match kind(interface) {
        Some(Kind::Other(word)) => word == "dsa",
        // `ip link` of BusyBox shows no kind: a VLAN device has its id in the name as a rule.
        None => interface.parent.is_some() && !interface.name.contains('.') && !is_ppp(interface),
        _ => false,
    }
}

/// Whether it is up and has a carrier, as far as is known.
pub(crate) fn may_work(interface: &Interface) -> bool {
    interface.up.as_ref().is_none_or(|up| *up.get()) && interface.link.up.as_ref().is_none_or(|up| *up.get())
}

/// Whether it is a device on which nothing of this machine's own stands: a physical one, or a switch's port.
pub(crate) fn is_port(case: &Case<'_>, interface: &Interface) -> bool {
    const NOT_PORTS: [&str; 12] =
        ["lo", "ifb", "dummy", "tun", "tap", "docker", "sit", "wg", "gre", "teql", "erspan", "ip6tnl"];
    let digits = interface.name.trim_end_matches(|c: char| c.is_ascii_digit());
    let has_switch_ports = || {
        let below =
            |one: &Interface| one.parent.as_ref().is_some_and(|parent| parent.value == interface.name);
        case.snapshot().interfaces.iter().any(|one| is_switch_port(one) && below(one))
    };
    let is_such = is_switch_port(interface)
        || match kind(interface) {
            Some(Kind::Device | Kind::Veth) => true,
            None => interface.parent.is_none() && !is_ppp(interface) && !interface.name.starts_with("br"),
            Some(_) => false,
        };
    is_such && !interface.name.is_empty() && !NOT_PORTS.contains(&digits) && !has_switch_ports()
}

/// The devices and switch ports between which this machine forwards, as far as the text shows them.
pub(crate) fn ports(case: &Case<'_>) -> Vec<String> {
    let forwarding = may_forward(case);
    let is_one =
        |one: &&Interface| is_port(case, one) && may_work(one) && forwarding.contains(one.name.as_str());
    let names: BTreeSet<String> =
        case.snapshot().interfaces.iter().filter(is_one).map(|one| one.name.clone()).collect();
    names.into_iter().collect()
}

/// The interfaces by which packets may be forwarded, as far as the text shows: those with an address, or that carry PPPoE, and what is
/// below them (VLANs, the ports of a bridge). The ends of containers are none: they come and go, and no flowtable follows them.
fn may_forward<'c>(case: &Case<'c>) -> BTreeSet<&'c str> {
    let snapshot = case.snapshot();
    let mut ports: BTreeMap<&str, Vec<&Interface>> = BTreeMap::new();
    for port in &snapshot.interfaces {
        if let Some(master) = &port.master {
            ports.entry(master.value.as_str()).or_default().push(port);
        }
    }
    let of_containers: BTreeSet<&str> =
        ports.keys().copied().filter(|bridge| has_containers_only(case, bridge)).collect();
    let is_of_container = |one: &Interface| {
        let master = one.master.as_ref().map_or("", |master| master.value.as_str());
        of_containers.contains(master) || of_containers.contains(one.name.as_str())
    };
    // A session of which nobody knows where it runs may run anywhere.
    let has_stray =
        snapshot.interfaces.iter().any(|one| is_ppp(one) && stacked::parent_of(case, one).is_none());
    let may =
        |one: &&Interface| has_stray || is_ppp(one) || one.addressed.as_ref().is_none_or(|known| known.value);
    let mut open: Vec<&Interface> = snapshot.interfaces.iter().filter(may).collect();
    let mut names: BTreeSet<&str> = BTreeSet::new();
    while let Some(one) = open.pop() {
        if !is_of_container(one) && names.insert(&one.name) {
            open.extend(stacked::parent_of(case, one).and_then(|below| snapshot.interface(below)));
            open.extend(ports.get(one.name.as_str()).into_iter().flatten());
        }
    }
    names
}

/// Whether it is a bridge of containers (`docker0`): every port is the end of a veth pair.
pub(crate) fn has_containers_only(case: &Case<'_>, bridge: &str) -> bool {
    let is_of = |one: &&Interface| one.master.as_ref().is_some_and(|master| master.value == bridge);
    let mut ports = case.snapshot().interfaces.iter().filter(is_of).peekable();
    // As Docker, Kubernetes' networks, LXC and libvirt name them; `ip link` without `-d` shows no kind.
    let is_named = |one: &Interface| {
        ["veth", "cali", "cni", "lxc", "vnet", "tap"].iter().any(|begin| one.name.starts_with(begin))
    };
    let is_end = |one: &Interface| is_named(one) && kind(one).is_none_or(|kind| *kind == Kind::Veth);
    ports.peek().is_some() && ports.all(is_end)
}

/// The devices that a flowtable has to name on this machine, as far as the text shows them.
pub(crate) fn devices(case: &Case<'_>) -> Vec<String> {
    let interfaces = &case.snapshot().interfaces;
    let forwarding = may_forward(case);
    let lookup = Lookup::of(case).unwrap_or(Lookup::Physical);
    if lookup == Lookup::Top {
        let stands_on = |name: &str| {
            interfaces.iter().any(|one| one.parent.as_ref().is_some_and(|parent| parent.value == name))
        };
        let is_top = |one: &&Interface| {
            let is_routable = is_port(case, one)
                || is_ppp(one)
                || matches!(kind(one), Some(Kind::Vlan { .. } | Kind::Bridge { .. }));
            is_routable
                && one.master.is_none()
                && !stands_on(&one.name)
                && may_work(one)
                && forwarding.contains(one.name.as_str())
        };
        return interfaces.iter().filter(is_top).map(|one| one.name.clone()).collect();
    }
    let mut names: BTreeSet<String> = ports(case).into_iter().collect();
    if lookup == Lookup::MissesPppoe {
        for session in interfaces.iter().filter(|one| is_ppp(one)) {
            names.remove(lookup_device(case, &session.name));
            names.insert(session.name.clone());
        }
    }
    names.into_iter().collect()
}
