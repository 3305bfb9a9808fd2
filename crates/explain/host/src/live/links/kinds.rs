//! What `ip -d link` says of an interface by its kind (`ip/iplink_*.c` of iproute2), without addresses.

use crate::live::bundle::printable;
use kernel::netlink::Attributes;
use linux_raw_sys::if_arp as nl;
use std::fmt::{Display, Write as _};

/// The words for a kind: `vlan protocol 802.1Q id 35 <REORDER_HDR> `. `name` gives the name of an index.
pub(super) fn words(info: Attributes<'_>, name: &dyn Fn(u32) -> String) -> Option<String> {
    let kind = info.string(nl::IFLA_INFO_KIND as u16)?;
    let data = info.nest(nl::IFLA_INFO_DATA as u16).unwrap_or(Attributes::new(&[]));
    let details = match kind {
        b"vlan" => vlan(data),
        b"bridge" => bridge(data),
        b"bond" => bond(data, name),
        b"macvlan" | b"macvtap" => macvlan(data),
        b"tun" => tun(data),
        b"vxlan" => data.u32(nl::IFLA_VXLAN_ID as u16).map(|id| format!("id {id} ")),
        _ => None,
    };
    Some(format!("{} {}", printable(kind), details.unwrap_or_default()))
}

/// The words for a member of a bridge or bond: `bridge_slave state forwarding `.
pub(super) fn member_words(info: Attributes<'_>) -> Option<String> {
    const STATES: [&str; 5] = ["disabled", "listening", "learning", "forwarding", "blocking"];
    let kind = info.string(nl::IFLA_INFO_SLAVE_KIND as u16)?;
    let data = info.nest(nl::IFLA_INFO_SLAVE_DATA as u16).unwrap_or(Attributes::new(&[]));
    let state = match kind {
        b"bridge" => data.u8(nl::IFLA_BRPORT_STATE as u16),
        _ => None,
    };
    let mut text = format!("{}_slave ", printable(kind));
    push(&mut text, "state", state.and_then(|state| STATES.get(usize::from(state))));
    Some(text)
}

/// Adds a word and its value, if there is one.
pub(super) fn push(text: &mut String, word: &str, value: Option<impl Display>) {
    if let Some(value) = value {
        let _ = write!(text, "{word} {value} ");
    }
}

/// The name of that number; `unknown` where it has none.
fn named(names: &[&'static str], number: u8) -> &'static str {
    names.get(usize::from(number)).copied().unwrap_or("unknown")
}

/// A TPID as iproute2 names it.
pub(super) fn tpid(tpid: u16) -> String {
    match tpid {
        0x8100 => "802.1Q".to_owned(),
        0x88a8 => "802.1ad".to_owned(),
        other => format!("[{other}]"),
    }
}

fn vlan(data: Attributes<'_>) -> Option<String> {
    const FLAGS: [&str; 5] = ["REORDER_HDR", "GVRP", "MVRP", "LOOSE_BINDING", "BRIDGE_BINDING"];
    let id = data.u16(nl::IFLA_VLAN_ID as u16)?;
    let protocol = data.be16(nl::IFLA_VLAN_PROTOCOL as u16).map_or_else(|| "802.1q".to_owned(), tpid);
    let mut text = format!("protocol {protocol} id {id} ");
    if let Some(flags) = data.u32(nl::IFLA_VLAN_FLAGS as u16) {
        let names = FLAGS.iter().enumerate().filter(|(bit, _)| flags >> bit & 1 != 0).map(|(_, &name)| name);
        let _ = write!(text, "<{}> ", names.collect::<Vec<_>>().join(","));
    }
    Some(text)
}

fn bridge(data: Attributes<'_>) -> Option<String> {
    let mut text = String::new();
    push(&mut text, "stp_state", data.u32(nl::IFLA_BR_STP_STATE as u16));
    push(&mut text, "vlan_filtering", data.u8(nl::IFLA_BR_VLAN_FILTERING as u16));
    push(&mut text, "vlan_protocol", data.be16(nl::IFLA_BR_VLAN_PROTOCOL as u16).map(tpid));
    push(&mut text, "vlan_default_pvid", data.u16(nl::IFLA_BR_VLAN_DEFAULT_PVID as u16));
    Some(text)
}

fn bond(data: Attributes<'_>, name: &dyn Fn(u32) -> String) -> Option<String> {
    const MODES: [&str; 7] =
        ["balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad", "balance-tlb", "balance-alb"];
    const POLICIES: [&str; 6] = ["layer2", "layer3+4", "layer2+3", "encap2+3", "encap3+4", "vlan+srcmac"];
    let mut text = format!("mode {} ", named(&MODES, data.u8(nl::IFLA_BOND_MODE as u16)?));
    let active = data.u32(nl::IFLA_BOND_ACTIVE_SLAVE as u16).filter(|&active| active > 0);
    push(&mut text, "active_slave", active.map(name));
    let policy = data.u8(nl::IFLA_BOND_XMIT_HASH_POLICY as u16);
    push(&mut text, "xmit_hash_policy", policy.map(|policy| named(&POLICIES, policy)));
    Some(text)
}

fn macvlan(data: Attributes<'_>) -> Option<String> {
    // MACVLAN_MODE_*, one bit each.
    let mode = match data.u32(nl::IFLA_MACVLAN_MODE as u16)? {
        1 => "private",
        2 => "vepa",
        4 => "bridge",
        8 => "passthru",
        16 => "source",
        _ => "unknown",
    };
    Some(format!("mode {mode} "))
}

fn tun(data: Attributes<'_>) -> Option<String> {
    // IFLA_TUN_TYPE holds IFF_TUN or IFF_TAP.
    let kind = data.u8(nl::IFLA_TUN_TYPE as u16)?;
    let mut text = format!("type {} ", named(&["unknown", "tun", "tap"], kind));
    if data.u8(nl::IFLA_TUN_MULTI_QUEUE as u16).is_some_and(|several| several != 0) {
        text.push_str("multi_queue ");
        push(&mut text, "numqueues", data.u32(nl::IFLA_TUN_NUM_QUEUES as u16));
        push(&mut text, "numdisabled", data.u32(nl::IFLA_TUN_NUM_DISABLED_QUEUES as u16));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::attributes::{attribute, nest};

    fn info(kind: &[u8], data: &[Vec<u8>]) -> String {
        let kind = attribute(nl::IFLA_INFO_KIND as u16, kind);
        let sent = [kind, nest(nl::IFLA_INFO_DATA as u16, data)].concat();
        words(Attributes::new(&sent), &|index| format!("if{index}")).expect("a kind")
    }

    #[test]
    fn a_vlan_has_protocol_and_id() {
        let data = |tpid: u16| {
            [
                attribute(nl::IFLA_VLAN_PROTOCOL as u16, &tpid.to_be_bytes()),
                attribute(nl::IFLA_VLAN_ID as u16, &35u16.to_ne_bytes()),
                attribute(nl::IFLA_VLAN_FLAGS as u16, &[1u32.to_ne_bytes(), u32::MAX.to_ne_bytes()].concat()),
            ]
        };
        assert_eq!(info(b"vlan\0", &data(0x8100)), "vlan protocol 802.1Q id 35 <REORDER_HDR> ");
        assert_eq!(info(b"vlan\0", &data(0x88a8)), "vlan protocol 802.1ad id 35 <REORDER_HDR> ");
        assert_eq!(info(b"vlan\0", &[]), "vlan ");
    }

    #[test]
    fn other_kinds_show_what_steers_traffic() {
        let bridge = [
            attribute(nl::IFLA_BR_VLAN_FILTERING as u16, &[1]),
            attribute(nl::IFLA_BR_VLAN_PROTOCOL as u16, &0x88a8u16.to_be_bytes()),
        ];
        assert_eq!(info(b"bridge\0", &bridge), "bridge vlan_filtering 1 vlan_protocol 802.1ad ");
        let bond = [
            attribute(nl::IFLA_BOND_MODE as u16, &[4]),
            attribute(nl::IFLA_BOND_ACTIVE_SLAVE as u16, &3u32.to_ne_bytes()),
            attribute(nl::IFLA_BOND_XMIT_HASH_POLICY as u16, &[1]),
        ];
        assert_eq!(info(b"bond\0", &bond), "bond mode 802.3ad active_slave if3 xmit_hash_policy layer3+4 ");
        let tun = [
            attribute(nl::IFLA_TUN_TYPE as u16, &[2]),
            attribute(nl::IFLA_TUN_MULTI_QUEUE as u16, &[1]),
            attribute(nl::IFLA_TUN_NUM_QUEUES as u16, &4u32.to_ne_bytes()),
        ];
        assert_eq!(info(b"tun\0", &tun), "tun type tap multi_queue numqueues 4 ");
        assert_eq!(info(b"ppp\0", &[]), "ppp ");
    }
}
