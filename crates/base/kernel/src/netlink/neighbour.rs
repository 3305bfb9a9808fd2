//! Neighbours, and the addresses that bridges have learned (`include/uapi/linux/neighbour.h`).

use super::address::{address_bytes, family, read_address};
use super::message::u32_at;
use super::{Attributes, Message, Netlink, Refusal};
use libc::{
    NDA_DST, NDA_LLADDR, NDA_VLAN, NTF_PROXY, NTF_SELF, NTF_USE, NUD_DELAY, NUD_NOARP, NUD_PERMANENT,
    NUD_PROBE, NUD_REACHABLE, NUD_STALE, RTM_GETNEIGH, RTM_NEWNEIGH,
};
use netlink_packet_core::NLM_F_CREATE;
use std::net::IpAddr;
use wire::ethernet::MacAddress;

/// `include/uapi/linux/neighbour.h`, which `libc` has for glibc alone.
const NDA_MASTER: u16 = 9;

/// Bytes of `struct ndmsg`: family, padding, interface, state, flags, type.
const NDMSG: usize = 12;
const STATE: usize = 8;
const FLAGS: usize = 10;
/// The family of entries of bridges.
pub(super) const BRIDGE: u8 = libc::AF_BRIDGE as u8;
/// `NUD_VALID` (include/net/neighbour.h): states in which the MAC address is used.
const VALID: u16 = NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_PROBE | NUD_STALE | NUD_DELAY;

/// A neighbour: who has an address on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Number of the interface.
    pub interface: u32,
    /// Its address.
    pub address: IpAddr,
    /// Its MAC address; `None`: not known, or not of six bytes.
    pub mac: Option<MacAddress>,
    /// `NUD_*`.
    pub state: u16,
}

impl Neighbour {
    /// Whether the kernel sends to its MAC address.
    pub const fn is_valid(&self) -> bool {
        self.state & VALID != 0
    }

    /// Of `struct ndmsg` and what follows it; `None`: it is none of IP, or one that this machine answers for.
    pub(super) fn read(body: &[u8]) -> Option<Neighbour> {
        let (attributes, state, flags) = parts(body)?;
        if flags & NTF_PROXY != 0 || body.first() == Some(&BRIDGE) {
            return None;
        }
        let address = attributes.get(NDA_DST).and_then(read_address)?;
        Some(Neighbour { interface: u32_at(body, 4)?, address, mac: mac(attributes), state })
    }
}

/// Where a bridge sends frames for a MAC address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BridgeEntry {
    /// Number of the interface: a port of the bridge, or for addresses of its own the bridge.
    pub port: u32,
    /// Number of the bridge.
    pub bridge: Option<u32>,
    /// The MAC address.
    pub mac: MacAddress,
    /// The VLAN in which it is there, where the bridge keeps them apart.
    pub vlan: Option<u16>,
    /// Whether frames for it are for this machine.
    pub is_own: bool,
}

impl BridgeEntry {
    /// Of `struct ndmsg` and what follows it (`fdb_fill_info()` in net/bridge/br_fdb.c); `None`: it is none of a bridge, but an
    /// address that a device's own filter has (`ndo_dflt_fdb_dump()` in net/core/rtnetlink.c).
    pub(super) fn read(body: &[u8]) -> Option<BridgeEntry> {
        let (attributes, state, flags) = parts(body)?;
        let bridge = attributes.u32(NDA_MASTER);
        if body.first() != Some(&BRIDGE) || (flags & NTF_SELF != 0 && bridge.is_none()) {
            return None;
        }
        Some(BridgeEntry {
            port: u32_at(body, 4)?,
            bridge,
            mac: mac(attributes)?,
            vlan: attributes.u16(NDA_VLAN),
            is_own: state & NUD_PERMANENT != 0,
        })
    }
}

/// Attributes, state and flags.
fn parts(body: &[u8]) -> Option<(Attributes<'_>, u16, u8)> {
    let state = u16::from_ne_bytes(*body.get(STATE..)?.first_chunk()?);
    Some((Attributes::behind(NDMSG, body), state, *body.get(FLAGS)?))
}

fn mac(attributes: Attributes<'_>) -> Option<MacAddress> {
    attributes.get(NDA_LLADDR).and_then(|mac| mac.try_into().ok()).map(MacAddress)
}

/// All neighbours of this network namespace, those included that do not answer.
pub fn neighbours() -> Result<Vec<Neighbour>, Refusal> {
    all(libc::AF_UNSPEC as u8, Neighbour::read)
}

/// All entries of all bridges, those for addresses of the bridges' own included.
pub fn bridge_entries() -> Result<Vec<BridgeEntry>, Refusal> {
    all(BRIDGE, BridgeEntry::read)
}

fn all<T>(family: u8, read: impl Fn(&[u8]) -> Option<T>) -> Result<Vec<T>, Refusal> {
    let objects = Netlink::route()?.dump(&Message::new(RTM_GETNEIGH, &ndmsg(family, 0, 0)))?;
    Ok(objects.iter().filter_map(|object| read(object)).collect())
}

/// Makes the kernel use a neighbour as a packet does (`NTF_USE`): it resolves one that it does not know, and sees whether one is
/// still there that it has not heard of for a while. Errors: `EPERM`: this process may not; `ENODEV`: there is no such interface.
pub fn refresh(interface: u32, address: IpAddr) -> Result<(), Refusal> {
    let message = Message::new(RTM_NEWNEIGH, &ndmsg(family(address), interface, NTF_USE));
    Netlink::route()?.set(&message.with(NDA_DST, &address_bytes(address)), NLM_F_CREATE)
}

fn ndmsg(family: u8, interface: u32, flags: u8) -> [u8; NDMSG] {
    let [a, b, c, d] = interface.to_ne_bytes();
    [family, 0, 0, 0, a, b, c, d, 0, 0, flags, 0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::{link_by_name, links};
    use testkit::netns::{Namespace, Veth, addressed_pair, probe};
    use testkit::{require, wait_for};

    fn message(family: u8, state: u16, flags: u8) -> Message {
        let mut structure = ndmsg(family, 7, flags);
        structure[STATE..FLAGS].copy_from_slice(&state.to_ne_bytes());
        Message::new(28, &structure).with(NDA_LLADDR, &[2, 0, 0, 0, 0, 1])
    }

    #[test]
    fn cut_short_at_any_place_nothing_panics() {
        let address = [192, 0, 2, 9];
        let neighbour = message(2, NUD_STALE, 0).with(NDA_DST, &address).bytes(0, 0).expect("short");
        let entry = message(BRIDGE, NUD_REACHABLE, 0)
            .with(NDA_MASTER, &3_u32.to_ne_bytes())
            .with(NDA_VLAN, &9_u16.to_ne_bytes());
        let entry = entry.bytes(0, 0).expect("short");
        let [neighbour, entry] = [&neighbour[16..], &entry[16..]];
        let mac = MacAddress([2, 0, 0, 0, 0, 1]);
        let expected = Neighbour { interface: 7, address: address.into(), mac: Some(mac), state: NUD_STALE };
        assert_eq!((Neighbour::read(neighbour), BridgeEntry::read(neighbour)), (Some(expected), None));
        let expected = BridgeEntry { port: 7, bridge: Some(3), mac, vlan: Some(9), is_own: false };
        assert_eq!((Neighbour::read(entry), BridgeEntry::read(entry)), (None, Some(expected)));
        for whole in [neighbour, entry] {
            for end in 0..whole.len() {
                let cut = whole.get(..end).expect("within");
                let _ = (Neighbour::read(cut), BridgeEntry::read(cut));
            }
        }
    }

    #[test]
    fn others_than_bridges_and_neighbours_are_left_out() {
        let read = |message: Message| message.bytes(0, 0).expect("short").split_off(16);
        assert_eq!(BridgeEntry::read(&read(message(BRIDGE, NUD_PERMANENT, NTF_SELF))), None);
        let proxy = message(2, 0, NTF_PROXY).with(NDA_DST, &[192, 0, 2, 9]);
        assert_eq!(Neighbour::read(&read(proxy)), None);
        assert!(!Neighbour { interface: 1, address: [0; 4].into(), mac: None, state: 0 }.is_valid());
    }

    #[test]
    fn a_neighbour_is_resolved_without_a_packet() {
        let Some(()) = require("netns", probe()) else { return };
        let [near, far] = addressed_pair().expect("two namespaces");
        let mac = far.inside(|| link_by_name("far0").expect("there").mac);
        near.inside(|| {
            let interface = link_by_name("wan0").expect("there").index;
            assert_eq!(neighbours().expect("a list"), []);
            let address = IpAddr::from([10, 7, 0, 2]);
            refresh(interface, address).expect("requested");
            let found = wait_for("an answer to ARP", || {
                neighbours().expect("a list").into_iter().find(Neighbour::is_valid)
            });
            assert_eq!((found.interface, found.address, found.mac), (interface, address, mac));
            let error = refresh(9999, address).expect_err("no interface").error;
            assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
        });
    }

    #[test]
    fn a_bridge_learns_where_a_station_is() {
        let Some(()) = require("netns", probe()) else { return };
        let namespace = Namespace::new().expect("a namespace");
        namespace.veth(&Veth::pair("port0", "host0")).expect("a pair");
        let made = namespace.run("ip", &["link", "add", "br0", "type", "bridge"]);
        let missing = |error| testkit::Missing(format!("bridges: {error}"));
        let Some(_) = require("bridge", made.map_err(missing)) else { return };
        for arguments in [["link", "set", "port0", "master", "br0"], ["link", "set", "dev", "br0", "up"]] {
            namespace.run("ip", &arguments).expect("done");
        }
        let (bridge, port, own) = namespace.inside(|| {
            let port = link_by_name("port0").expect("there");
            (link_by_name("br0").expect("there").index, port.index, port.mac)
        });
        let station = MacAddress([2, 0, 0, 0, 0, 0x77]);
        let frame = [&[0xff; 6][..], &station.0, &[0x88, 0xb5], &[0; 46]].concat();
        let links = namespace.inside(|| links().expect("a list"));
        let of = |index: u32| links.iter().find(|link| link.index == index).expect("listed");
        assert_eq!((of(port).master, of(port).below, of(port).vlan_filtering), (Some(bridge), None, None));
        assert_eq!((of(bridge).master, of(bridge).vlan_filtering), (None, Some(false)));
        let learned = wait_for("a frame through the bridge", || {
            namespace.send("host0", [&frame]).expect("sent");
            let all = namespace.inside(|| bridge_entries().expect("a list"));
            assert!(all.iter().any(|entry| entry.is_own && Some(entry.mac) == own), "{all:?}");
            all.into_iter().find(|entry| entry.mac == station)
        });
        let expected =
            BridgeEntry { port, bridge: Some(bridge), mac: station, vlan: learned.vlan, is_own: false };
        assert_eq!(learned, expected);
    }
}
