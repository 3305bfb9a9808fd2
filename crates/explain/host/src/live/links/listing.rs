//! `ip -d -s link`, in iproute2's layout. Addresses, aliases and other names are left out: they are the owner's.

use super::kinds::{member_words, push, tpid, words};
use super::{Link, nl_flag, statistics};
use crate::live::bundle::printable;
use crate::redact;
use kernel::netlink::Attributes;
use linux_raw_sys::if_arp as nl;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Those of `links` that `is_listed` names; the others may be named as parents and masters.
pub(crate) fn render(links: &[Link], is_listed: &dyn Fn(&Link) -> bool) -> String {
    let names: BTreeMap<u32, &Link> = links.iter().map(|link| (link.index, link)).collect();
    links.iter().filter(|&link| is_listed(link)).map(|link| one(link, &names)).collect()
}

fn one(link: &Link, names: &BTreeMap<u32, &Link>) -> String {
    let attributes = link.attributes();
    // iproute2 shows an index without a name so.
    let name =
        |index: u32| names.get(&index).map_or_else(|| format!("if{index}"), |link| link.display_name());
    let mut text = first_line(link, names, &name);
    text.push('\n');
    details(&mut text, link, &name);
    text.push('\n');
    xdp_programs(&mut text, attributes);
    text.push_str(&statistics::render(attributes));
    functions(&mut text, link);
    text.lines().flat_map(|line| [line.trim_end(), "\n"]).collect()
}

fn first_line(link: &Link, names: &BTreeMap<u32, &Link>, name: &dyn Fn(u32) -> String) -> String {
    let attributes = link.attributes();
    let mut text = format!("{}: {}", link.index, link.display_name());
    let mut lower_is_down = false;
    match link.below {
        None => {}
        Some(0) => text.push_str("@NONE"),
        Some(below) if link.elsewhere => {
            let _ = write!(text, "@if{below}");
        }
        Some(below) => {
            let _ = write!(text, "@{}", name(below));
            let up = nl_flag(nl::net_device_flags::IFF_UP);
            lower_is_down = names.get(&below).is_none_or(|below| below.flags & up == 0);
        }
    }
    let _ = write!(text, ": <{}{}> ", flags(link.flags), if lower_is_down { ",M-DOWN" } else { "" });
    push(&mut text, "mtu", attributes.u32(nl::IFLA_MTU as u16));
    let xdp = attributes.nest(nl::IFLA_XDP as u16).and_then(|xdp| xdp.u8(nl::IFLA_XDP_ATTACHED as u16));
    text.push_str(&xdp.map(xdp_mode).unwrap_or_default());
    push(&mut text, "qdisc", attributes.string(nl::IFLA_QDISC as u16).map(printable));
    push(&mut text, "master", link.master.map(name));
    let state = |state: u8| known(&STATES, state).unwrap_or_else(|| format!("{state:#x}"));
    push(&mut text, "state", attributes.u8(nl::IFLA_OPERSTATE as u16).map(state));
    let mode = |mode: u8| known(&["DEFAULT", "DORMANT"], mode).unwrap_or_else(|| mode.to_string());
    push(&mut text, "mode", attributes.u8(nl::IFLA_LINKMODE as u16).map(mode));
    let group = |group: u32| if group == 0 { "default".to_owned() } else { group.to_string() };
    push(&mut text, "group", attributes.u32(nl::IFLA_GROUP as u16).map(group));
    push(&mut text, "qlen", attributes.u32(nl::IFLA_TXQLEN as u16).filter(|&length| length > 0));
    text
}

/// `IF_OPER_*` of linux/if.h.
const STATES: [&str; 7] = ["UNKNOWN", "NOTPRESENT", "DOWN", "LOWERLAYERDOWN", "TESTING", "DORMANT", "UP"];

fn known(names: &[&str], number: u8) -> Option<String> {
    names.get(usize::from(number)).map(|&name| name.to_owned())
}

/// `IFF_*` in iproute2's order.
fn flags(flags: u32) -> String {
    use nl::net_device_flags as f;
    const RUNNING: u32 = f::IFF_RUNNING as u32;
    const UP: u32 = f::IFF_UP as u32;
    const NAMES: [(f, &str); 18] = [
        (f::IFF_LOOPBACK, "LOOPBACK"),
        (f::IFF_BROADCAST, "BROADCAST"),
        (f::IFF_POINTOPOINT, "POINTOPOINT"),
        (f::IFF_MULTICAST, "MULTICAST"),
        (f::IFF_NOARP, "NOARP"),
        (f::IFF_ALLMULTI, "ALLMULTI"),
        (f::IFF_PROMISC, "PROMISC"),
        (f::IFF_MASTER, "MASTER"),
        (f::IFF_SLAVE, "SLAVE"),
        (f::IFF_DEBUG, "DEBUG"),
        (f::IFF_DYNAMIC, "DYNAMIC"),
        (f::IFF_AUTOMEDIA, "AUTOMEDIA"),
        (f::IFF_PORTSEL, "PORTSEL"),
        (f::IFF_NOTRAILERS, "NOTRAILERS"),
        (f::IFF_UP, "UP"),
        (f::IFF_LOWER_UP, "LOWER_UP"),
        (f::IFF_DORMANT, "DORMANT"),
        (f::IFF_ECHO, "ECHO"),
    ];
    let mut words = Vec::new();
    if flags & UP != 0 && flags & RUNNING == 0 {
        words.push("NO-CARRIER");
    }
    words.extend(NAMES.iter().filter(|&&(flag, _)| flags & flag as u32 != 0).map(|&(_, name)| name));
    words.join(",")
}

/// `XDP_ATTACHED_*` (`include/uapi/linux/if_link.h`).
fn xdp_mode(mode: u8) -> String {
    match mode {
        0 => String::new(),
        1 => "xdp ".to_owned(),
        2 => "xdpgeneric ".to_owned(),
        3 => "xdpoffload ".to_owned(),
        4 => "xdpmulti ".to_owned(),
        mode => format!("xdp[{mode}] "),
    }
}

/// Programs by id; their names and tags are a matter of bpf(2) and its privileges.
fn xdp_programs(text: &mut String, attributes: Attributes<'_>) {
    let Some(xdp) = attributes.nest(nl::IFLA_XDP as u16) else { return };
    let several = xdp.u8(nl::IFLA_XDP_ATTACHED as u16) == Some(4);
    let kinds = [
        (nl::IFLA_XDP_PROG_ID, ""),
        (nl::IFLA_XDP_SKB_PROG_ID, "generic"),
        (nl::IFLA_XDP_DRV_PROG_ID, "drv"),
        (nl::IFLA_XDP_HW_PROG_ID, "offload"),
    ];
    for (kind, suffix) in kinds.into_iter().take(if several { 4 } else { 1 }) {
        if let Some(id) = xdp.u32(kind as u16).filter(|&id| id > 0) {
            let _ = writeln!(text, "    prog/xdp{suffix} id {id}");
        }
    }
}

fn details(text: &mut String, link: &Link, name: &dyn Fn(u32) -> String) {
    let attributes = link.attributes();
    let _ = write!(text, "    link/{}", hardware(link.hardware));
    if attributes.has(nl::IFLA_ADDRESS as u16) {
        let _ = write!(text, " {}", redact::MAC);
    }
    if let Some(namespace) = attributes.u32(nl::IFLA_LINK_NETNSID as u16) {
        let id = i32::from_ne_bytes(namespace.to_ne_bytes());
        let _ = write!(text, " link-netnsid {}", if id >= 0 { id.to_string() } else { "unknown".to_owned() });
    }
    let first = [
        (nl::IFLA_PROMISCUITY, "promiscuity"),
        (nl::IFLA_ALLMULTI, "allmulti"),
        (nl::IFLA_MIN_MTU, "minmtu"),
        (nl::IFLA_MAX_MTU, "maxmtu"),
    ];
    text.push(' ');
    for (kind, word) in first {
        push(text, word, attributes.u32(kind as u16));
    }
    if let Some(info) = attributes.nest(nl::IFLA_LINKINFO as u16) {
        for words in [words(info, name), member_words(info)].into_iter().flatten() {
            let _ = write!(text, "\n    {words}");
        }
    }
    let second = [
        (nl::IFLA_NUM_TX_QUEUES, "numtxqueues"),
        (nl::IFLA_NUM_RX_QUEUES, "numrxqueues"),
        (nl::IFLA_GSO_MAX_SIZE, "gso_max_size"),
        (nl::IFLA_GSO_MAX_SEGS, "gso_max_segs"),
        (nl::IFLA_TSO_MAX_SIZE, "tso_max_size"),
        (nl::IFLA_TSO_MAX_SEGS, "tso_max_segs"),
        (nl::IFLA_GRO_MAX_SIZE, "gro_max_size"),
        (nl::IFLA_GSO_IPV4_MAX_SIZE, "gso_ipv4_max_size"),
        (nl::IFLA_GRO_IPV4_MAX_SIZE, "gro_ipv4_max_size"),
    ];
    for (kind, word) in second {
        push(text, word, attributes.u32(kind as u16));
    }
    let parents = [(nl::IFLA_PARENT_DEV_BUS_NAME, "parentbus"), (nl::IFLA_PARENT_DEV_NAME, "parentdev")];
    for (kind, word) in parents {
        push(text, word, attributes.string(kind as u16).map(printable));
    }
}

/// `ARPHRD_*` as iproute2 names those that a router has.
fn hardware(hardware: u16) -> String {
    let known = match u32::from(hardware) {
        nl::ARPHRD_ETHER => "ether",
        nl::ARPHRD_PPP => "ppp",
        nl::ARPHRD_LOOPBACK => "loopback",
        nl::ARPHRD_TUNNEL => "ipip",
        nl::ARPHRD_TUNNEL6 => "tunnel6",
        nl::ARPHRD_SIT => "sit",
        nl::ARPHRD_IPGRE => "gre",
        nl::ARPHRD_IP6GRE => "gre6",
        nl::ARPHRD_INFINIBAND => "infiniband",
        nl::ARPHRD_IEEE80211 => "ieee802.11",
        nl::ARPHRD_NETLINK => "netlink",
        nl::ARPHRD_NONE => "none",
        other => return format!("[{other}]"),
    };
    known.to_owned()
}

/// A line for every virtual function (`struct ifla_vf_*`: its number first).
fn functions(text: &mut String, link: &Link) {
    let list = link.attributes().nest(nl::IFLA_VFINFO_LIST as u16);
    for (_, function) in list.into_iter().flat_map(Attributes::iter) {
        let function = Attributes::new(function);
        let word = |kind: u16, place: usize| {
            Some(u32::from_ne_bytes(*function.get(kind)?.get(place.checked_mul(4)?..)?.first_chunk()?))
        };
        let Some(number) = word(nl::IFLA_VF_MAC as u16, 0) else { continue };
        let _ = write!(text, "    vf {number}     link/{} {}", hardware(link.hardware), redact::MAC);
        push_function_vlan(text, function, &word);
        let switch = |kind, on: &'static str, off: &'static str| {
            // All bits set: the driver does not say.
            word(kind, 1)
                .filter(|&setting| setting != u32::MAX)
                .map(|setting| if setting > 0 { on } else { off })
        };
        let state = word(nl::IFLA_VF_LINK_STATE as u16, 1).map(|state| match state {
            0 => ", link-state auto",
            1 => ", link-state enable",
            _ => ", link-state disable",
        });
        let words = [
            switch(nl::IFLA_VF_SPOOFCHK as u16, ", spoof checking on", ", spoof checking off"),
            state,
            switch(nl::IFLA_VF_TRUST as u16, ", trust on", ", trust off"),
        ];
        words.into_iter().flatten().for_each(|word| text.push_str(word));
        text.push('\n');
    }
}

fn push_function_vlan(text: &mut String, function: Attributes<'_>, word: &dyn Fn(u16, usize) -> Option<u32>) {
    // struct ifla_vf_vlan_info: vf, vlan, qos, protocol (16 bits, network byte order). Old kernels have
    // struct ifla_vf_vlan, which ends before the protocol.
    let listed = function.nest(nl::IFLA_VF_VLAN_LIST as u16).and_then(|list| list.iter().next());
    let (vlan, qos, protocol) = match listed {
        Some((_, info)) => {
            let number = |at: usize| Some(u32::from_ne_bytes(*info.get(at..)?.first_chunk()?));
            let protocol = info.get(12..).and_then(|protocol| protocol.first_chunk());
            (number(4), number(8), protocol.map(|protocol| u16::from_be_bytes(*protocol)))
        }
        None => (word(nl::IFLA_VF_VLAN as u16, 1), word(nl::IFLA_VF_VLAN as u16, 2), None),
    };
    if let Some(vlan) = vlan.filter(|&vlan| vlan > 0) {
        let _ = write!(text, ", vlan {vlan}");
    }
    if let Some(qos) = qos.filter(|&qos| qos > 0) {
        let _ = write!(text, ", qos {qos}");
    }
    if let Some(protocol) = protocol.filter(|&protocol| protocol != 0 && protocol != 0x8100) {
        let _ = write!(text, ", vlan protocol {}", tpid(protocol));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::attributes::{attribute, nest};

    fn link(index: u32, name: &str, below: Option<u32>, attributes: &[Vec<u8>]) -> Link {
        let (name, attributes) = (name.into(), attributes.concat());
        Link { index, name, flags: 0x1003, hardware: 1, below, attributes, ..Link::default() }
    }

    fn number(kind: u16, number: u32) -> Vec<u8> {
        attribute(kind, &number.to_ne_bytes())
    }

    #[test]
    fn a_vlan_names_its_parent_and_leaves_its_address_out() {
        let vlan = [
            attribute(nl::IFLA_ADDRESS as u16, &[2, 0, 0, 0, 0, 1]),
            number(nl::IFLA_MTU as u16, 1500),
            attribute(nl::IFLA_OPERSTATE as u16, &[6]),
            nest(
                nl::IFLA_LINKINFO as u16,
                &[
                    attribute(nl::IFLA_INFO_KIND as u16, b"vlan\0"),
                    nest(
                        nl::IFLA_INFO_DATA as u16,
                        &[attribute(nl::IFLA_VLAN_ID as u16, &35u16.to_ne_bytes())],
                    ),
                ],
            ),
            number(nl::IFLA_NUM_RX_QUEUES as u16, 1),
        ];
        let text = render(&[link(2, "eth0", None, &[]), link(5, "eth0.35", Some(2), &vlan)], &|_| true);
        let expected = "5: eth0.35@eth0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 1500 state UP
    link/ether (mac)
    vlan protocol 802.1q id 35 numrxqueues 1
";
        assert!(text.ends_with(expected), "{text}");
    }

    #[test]
    fn a_program_shows_its_mode_and_id() {
        let xdp = nest(
            nl::IFLA_XDP as u16,
            &[attribute(nl::IFLA_XDP_ATTACHED as u16, &[2]), number(nl::IFLA_XDP_PROG_ID as u16, 7)],
        );
        let text = render(&[link(2, "eth0", None, &[number(nl::IFLA_MTU as u16, 1500), xdp])], &|_| true);
        assert!(text.contains(" mtu 1500 xdpgeneric\n") && text.contains("\n    prog/xdp id 7\n"), "{text}");
    }

    #[test]
    fn functions_are_listed_without_addresses() {
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
        let function = |number: u32, vlan: u32| {
            let vlan_info =
                [words(&[number, vlan, 0]), 0x88a8u16.to_be_bytes().to_vec(), vec![0, 0]].concat();
            nest(
                nl::IFLA_VF_INFO as u16,
                &[
                    attribute(nl::IFLA_VF_MAC as u16, &[words(&[number]), vec![0xaa; 32]].concat()),
                    nest(
                        nl::IFLA_VF_VLAN_LIST as u16,
                        &[attribute(nl::IFLA_VF_VLAN_INFO as u16, &vlan_info)],
                    ),
                    attribute(nl::IFLA_VF_SPOOFCHK as u16, &words(&[number, 1])),
                    attribute(nl::IFLA_VF_TRUST as u16, &words(&[number, u32::MAX])),
                ],
            )
        };
        let list = nest(nl::IFLA_VFINFO_LIST as u16, &[function(0, 5), function(1, 0)]);
        let text = render(&[link(2, "eth0", None, &[list])], &|_| true);
        let expected = "    vf 0     link/ether (mac), vlan 5, vlan protocol 802.1ad, spoof checking on
    vf 1     link/ether (mac), vlan protocol 802.1ad, spoof checking on
";
        assert!(text.ends_with(expected), "{text}");
    }
}
