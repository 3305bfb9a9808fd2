//! Interfaces.

use super::message::u32_at;
use super::xdp::Xdp;
use super::{Attributes, Message, Netlink, Refusal, get, set};
use libc::{
    IFLA_ADDRESS, IFLA_AF_SPEC, IFLA_IFNAME, IFLA_INFO_DATA, IFLA_INFO_KIND, IFLA_INFO_SLAVE_DATA,
    IFLA_INFO_SLAVE_KIND, IFLA_LINK, IFLA_LINK_NETNSID, IFLA_LINKINFO, IFLA_MASTER, IFLA_MAX_MTU, IFLA_MTU,
    IFLA_PARENT_DEV_BUS_NAME, IFLA_PARENT_DEV_NAME, IFLA_PROTINFO, IFLA_STATS64, IFLA_XDP, RTM_DELLINK,
    RTM_GETLINK, RTM_SETLINK,
};
use std::io;
use wire::ethernet::MacAddress;

/// Bytes of `struct ifinfomsg`.
pub(super) const IFINFO: usize = 16;
const IFLA_TUN_VNET_HDR: u16 = 5;
/// `IFLA_VLAN_*`, `IFLA_BR_VLAN_FILTERING`, `IFLA_BRPORT_STATE`.
const IFLA_VLAN_ID: u16 = 1;
const IFLA_VLAN_EGRESS_QOS: u16 = 3;
const IFLA_VLAN_PROTOCOL: u16 = 5;
const IFLA_BR_VLAN_FILTERING: u16 = 7;
const IFLA_BRPORT_STATE: u16 = 1;
/// `tx_dropped` in `struct rtnl_link_stats64`.
const TX_DROPPED: usize = 7 * 8;

/// What the kernel says of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "what says no more than its name")]
pub struct Link {
    pub index: u32,
    pub name: String,
    /// ARPHRD type: 1 is Ethernet.
    pub hardware: u16,
    /// `IFF_…`
    pub flags: u32,
    /// MTU, bytes.
    pub mtu: u32,
    /// The largest MTU that the driver takes; `None`: not known, or the driver itself decides.
    pub max_mtu: Option<u32>,
    /// MAC address; `None`: it has none of six bytes.
    pub mac: Option<MacAddress>,
    /// Packets that the kernel was to send through it and dropped.
    pub tx_dropped: Option<u64>,
    /// Kind of a virtual interface: `veth`, `vlan`.
    pub kind: Option<String>,
    /// Whether it is a TUN or TAP device whose other end writes virtio headers (Linux 4.18).
    pub has_virtio_headers: bool,
    /// Bus and name of the device behind it, as under `/sys/bus` (Linux 5.14).
    pub device: Option<(String, String)>,
    pub xdp: Option<Xdp>,
    /// Number of the interface that it stands on: a VLAN's parent. `None`: on none, on one of another network namespace; nor does
    /// one end of a veth pair stand on the other.
    pub below: Option<u32>,
    /// Number of the bridge, bond or VRF that it is a port of.
    pub master: Option<u32>,
    /// Whether it is a port of a bridge that forwards (STP, 802.1Q clause 8.4); `None`: it is none.
    pub bridge_port_forwards: Option<bool>,
    /// What a VLAN interface adds.
    pub vlan: Option<VlanDevice>,
    /// Whether a bridge keeps VLANs apart; `None`: it is no bridge.
    pub vlan_filtering: Option<bool>,
}

/// The tag of a VLAN interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlanDevice {
    /// VLAN identifier.
    pub id: u16,
    /// TPID, host order: 0x8100 or 0x88a8.
    pub tpid: u16,
    /// Whether the priority in the tag depends on that of the packet (`egress-qos-map` of ip-link(8)); otherwise it is 0.
    pub egress_qos: bool,
}

impl VlanDevice {
    /// Of `IFLA_INFO_DATA` (`vlan_fill_info()` in net/8021q/vlan_netlink.c).
    fn read(data: Attributes<'_>) -> Option<VlanDevice> {
        const TPID: u16 = 0x8100;
        Some(VlanDevice {
            id: data.u16(IFLA_VLAN_ID)?,
            tpid: data.be16(IFLA_VLAN_PROTOCOL).unwrap_or(TPID),
            egress_qos: data.nest(IFLA_VLAN_EGRESS_QOS).is_some_and(|map| map.iter().next().is_some()),
        })
    }
}

impl Link {
    /// Whether it is up and has a carrier.
    pub const fn works(&self) -> bool {
        const WORKS: u32 = libc::IFF_UP as u32 | libc::IFF_LOWER_UP as u32;
        self.flags & WORKS == WORKS
    }

    /// Whether it is up.
    pub const fn is_up(&self) -> bool {
        self.flags & libc::IFF_UP as u32 != 0
    }

    /// Of `struct ifinfomsg` and what follows it.
    pub(super) fn read(body: &[u8]) -> Link {
        let attributes = Attributes::behind(IFINFO, body);
        let info = attributes.nest(IFLA_LINKINFO).unwrap_or_default();
        let kind = info.text(IFLA_INFO_KIND);
        let data = info.nest(IFLA_INFO_DATA).unwrap_or_default();
        let is_bridge_port = info.text(IFLA_INFO_SLAVE_KIND).as_deref() == Some("bridge");
        let port = info.nest(IFLA_INFO_SLAVE_DATA).filter(|_| is_bridge_port);
        let is = |name: &str| kind.as_deref() == Some(name);
        let index = u32_at(body, 4).unwrap_or_default();
        let is_elsewhere = attributes.has(IFLA_LINK_NETNSID) || is("veth");
        let statistics = attributes.get(IFLA_STATS64).and_then(|counters| counters.get(TX_DROPPED..));
        Link {
            index,
            name: attributes.text(IFLA_IFNAME).unwrap_or_default(),
            hardware: body
                .get(2..)
                .and_then(|rest| rest.first_chunk())
                .map_or(0, |two| u16::from_ne_bytes(*two)),
            flags: u32_at(body, 8).unwrap_or_default(),
            mtu: attributes.u32(IFLA_MTU).unwrap_or_default(),
            max_mtu: attributes.u32(IFLA_MAX_MTU).filter(|&most| most != 0),
            mac: attributes.get(IFLA_ADDRESS).and_then(|mac| mac.try_into().ok()).map(MacAddress),
            tx_dropped: statistics
                .and_then(|rest| rest.first_chunk())
                .map(|count| u64::from_ne_bytes(*count)),
            has_virtio_headers: is("tun") && data.u8(IFLA_TUN_VNET_HDR).is_some_and(|header| header != 0),
            below: attributes.u32(IFLA_LINK).filter(|&below| !is_elsewhere && below != 0 && below != index),
            master: attributes.u32(IFLA_MASTER).filter(|&master| master != 0),
            bridge_port_forwards: port.and_then(|port| port.u8(IFLA_BRPORT_STATE)).map(forwards),
            vlan: if is("vlan") { VlanDevice::read(data) } else { None },
            vlan_filtering: data.u8(IFLA_BR_VLAN_FILTERING).filter(|_| is("bridge")).map(|on| on != 0),
            kind,
            device: attributes.text(IFLA_PARENT_DEV_BUS_NAME).zip(attributes.text(IFLA_PARENT_DEV_NAME)),
            xdp: attributes.nest(IFLA_XDP).and_then(Xdp::read),
        }
    }
}

/// What a bridge says of one of its ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BridgePort {
    /// Number of the port's interface.
    pub interface: u32,
    /// Whether it forwards.
    pub forwards: bool,
}

impl BridgePort {
    /// Of `struct ifinfomsg` of the family `AF_BRIDGE` and what follows it (`br_fill_ifinfo()` in net/bridge/br_netlink.c); `None`: it is
    /// not about a port.
    pub(super) fn read(body: &[u8]) -> Option<BridgePort> {
        let port = Attributes::behind(IFINFO, body).nest(IFLA_PROTINFO)?;
        Some(BridgePort { interface: u32_at(body, 4)?, forwards: forwards(port.u8(IFLA_BRPORT_STATE)?) })
    }
}

/// `BR_STATE_*` (include/uapi/linux/if_bridge.h).
const fn forwards(state: u8) -> bool {
    const FORWARDING: u8 = 3;
    state == FORWARDING
}

/// Asks for an interface. `ENODEV`: there is none.
pub fn link_by_name(name: &str) -> io::Result<Link> {
    // IFNAMSIZ, the zero included; the kernel would answer ERANGE.
    if name.is_empty() || name.len() >= libc::IFNAMSIZ {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    ask(&ifinfo(RTM_GETLINK, 0).with_text(IFLA_IFNAME, name.as_bytes()))
}

/// Asks for an interface by its number. `ENODEV`: there is none.
pub fn link_by_index(index: u32) -> io::Result<Link> {
    ask(&ifinfo(RTM_GETLINK, index))
}

/// All interfaces of this network namespace.
pub fn links() -> Result<Vec<Link>, Refusal> {
    let objects = Netlink::route()?.dump(&ifinfo(RTM_GETLINK, 0))?;
    Ok(objects.iter().map(|object| Link::read(object)).collect())
}

fn ask(message: &Message) -> io::Result<Link> {
    get(message).map(|answer| Link::read(&answer)).map_err(|refusal| refusal.error)
}

/// Sets MTU and, where there is one, MAC address.
pub fn configure(index: u32, mtu: u32, mac: Option<MacAddress>) -> Result<(), Refusal> {
    let message = ifinfo(RTM_SETLINK, index).with(IFLA_MTU, &mtu.to_ne_bytes());
    set(&match mac {
        Some(mac) => message.with(IFLA_ADDRESS, &mac.0),
        None => message,
    })
}

/// Sets an interface up.
pub fn set_up(index: u32) -> Result<(), Refusal> {
    set(&with_flags(index, libc::IFF_UP, libc::IFF_UP))
}

/// Sets an interface down: it loses its routes, and its IPv6 addresses.
pub fn set_down(index: u32) -> Result<(), Refusal> {
    set(&with_flags(index, 0, libc::IFF_UP))
}

/// Deletes a virtual interface. `ENODEV`: there is none; `EOPNOTSUPP`: it is a device.
pub fn remove_link(index: u32) -> Result<(), Refusal> {
    set(&ifinfo(RTM_DELLINK, index))
}

/// Gives an interface another name. `EBUSY`: it is up, which kernels before 6.2 do not allow; `EEXIST`: another one has it.
pub fn rename(index: u32, name: &str) -> Result<(), Refusal> {
    set(&ifinfo(RTM_SETLINK, index).with_text(IFLA_IFNAME, name.as_bytes()))
}

/// Keeps the kernel from making a link-local IPv6 address of its own for the interface when that is set up: it gets one from
/// somebody else. `EAFNOSUPPORT`: there is no IPv6.
pub fn disable_own_ipv6(index: u32) -> Result<(), Refusal> {
    /// `IFLA_INET6_ADDR_GEN_MODE`, `IN6_ADDR_GEN_MODE_NONE` of linux/if_link.h.
    const MODE: u16 = 8;
    const NONE: u8 = 1;
    let family =
        |families: Message| families.with_nest(libc::AF_INET6 as u16, |family| family.with(MODE, &[NONE]));
    set(&ifinfo(RTM_SETLINK, index).with_nest(IFLA_AF_SPEC, family))
}

/// A request about an interface; 0: about the one that an attribute names.
pub(super) fn ifinfo(kind: u16, index: u32) -> Message {
    structure(kind, index, 0, 0)
}

fn with_flags(index: u32, flags: i32, change: i32) -> Message {
    structure(RTM_SETLINK, index, flags as u32, change as u32)
}

/// `struct ifinfomsg`: family, padding, type, index, flags, and which of them change.
fn structure(kind: u16, index: u32, flags: u32, change: u32) -> Message {
    Message::new(kind, &[0, index, flags, change].map(u32::to_ne_bytes).concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_there_by_name_and_number() {
        let link = link_by_name("lo").expect("every namespace has it");
        assert_eq!((link.index, link.name.as_str(), link.hardware, link.xdp), (1, "lo", 772, None));
        assert_eq!(link_by_index(1).expect("there").name, "lo");
        assert!(link.mtu > 0 && link.tx_dropped.is_some());
        for name in ["no-such-one", "", "a-name-that-is-too-long-for-any"] {
            let error = link_by_name(name).expect_err("not there");
            assert_eq!(error.raw_os_error(), Some(libc::ENODEV), "{name}");
        }
    }

    #[test]
    fn interfaces_name_what_they_stand_on_and_no_piece_panics() {
        let vlan = |data: Message| {
            data.with(IFLA_VLAN_ID, &7_u16.to_ne_bytes())
                .with(IFLA_VLAN_PROTOCOL, &0x88a8_u16.to_be_bytes())
                .with_nest(IFLA_VLAN_EGRESS_QOS, |map| map.with(1, &[0; 8]))
        };
        let of = |kind: &str, data: &dyn Fn(Message) -> Message| {
            structure(16, 3, 1, 0).with_nest(IFLA_LINKINFO, |info| {
                info.with_text(IFLA_INFO_KIND, kind.as_bytes()).with_nest(IFLA_INFO_DATA, data)
            })
        };
        let read = |message: &Message| Link::read(&message.bytes(0, 0).expect("short").split_off(16));
        let on = |message: Message, below: u32| message.with(IFLA_LINK, &below.to_ne_bytes());
        let wan = on(of("vlan", &vlan), 2).with(IFLA_MASTER, &9_u32.to_ne_bytes());
        let link = read(&wan);
        assert_eq!((link.below, link.master, link.vlan_filtering), (Some(2), Some(9), None));
        assert_eq!(link.vlan, Some(VlanDevice { id: 7, tpid: 0x88a8, egress_qos: true }));
        let elsewhere = on(of("vlan", &vlan), 2).with(IFLA_LINK_NETNSID, &0_u32.to_ne_bytes());
        assert_eq!(read(&elsewhere).below, None);
        assert_eq!(read(&on(of("veth", &|data| data), 2)).below, None);
        assert_eq!(read(&on(structure(16, 3, 1, 0), 3)).below, None);
        let bridge = read(&of("bridge", &|data| data.with(IFLA_BR_VLAN_FILTERING, &[1])));
        assert_eq!((bridge.vlan_filtering, bridge.vlan), (Some(true), None));
        let port = |state: u8| {
            structure(16, 3, 1, 0).with_nest(IFLA_LINKINFO, |info| {
                info.with_text(IFLA_INFO_SLAVE_KIND, b"bridge")
                    .with_nest(IFLA_INFO_SLAVE_DATA, |data| data.with(IFLA_BRPORT_STATE, &[state]))
            })
        };
        assert_eq!([3, 4].map(|state| read(&port(state)).bridge_port_forwards), [Some(true), Some(false)]);
        assert_eq!(bridge.bridge_port_forwards, None);
        let body = wan.bytes(0, 0).expect("short").split_off(16);
        for end in 0..body.len() {
            Link::read(body.get(..end).expect("within"));
        }
        assert!(links().expect("a list").iter().any(|link| link.name == "lo" && link.below.is_none()));
    }

    #[test]
    fn cut_short_at_any_place_nothing_panics() {
        let message = structure(16, 3, 1, 0)
            .with_text(IFLA_IFNAME, b"wan0")
            .with(IFLA_ADDRESS, &[2, 0, 0, 0, 0, 1])
            .with(IFLA_MTU, &1500_u32.to_ne_bytes())
            .with(IFLA_STATS64, &[1; 64])
            .with_nest(IFLA_LINKINFO, |info| {
                info.with_text(IFLA_INFO_KIND, b"tun")
                    .with_nest(IFLA_INFO_DATA, |data| data.with(IFLA_TUN_VNET_HDR, &[1]))
            })
            .with_nest(IFLA_XDP, |xdp| xdp.with(2, &[1]).with(4, &7_u32.to_ne_bytes()));
        let body = message.bytes(0, 0).expect("short").split_off(16);
        let whole = Link::read(&body);
        assert_eq!((whole.index, whole.name.as_str(), whole.mtu, whole.is_up()), (3, "wan0", 1500, true));
        assert_eq!(whole.mac, Some(MacAddress([2, 0, 0, 0, 0, 1])));
        assert_eq!(whole.tx_dropped, Some(0x0101_0101_0101_0101));
        assert!(whole.has_virtio_headers && whole.xdp.is_some_and(|xdp| xdp.has(7)));
        for end in 0..body.len() {
            Link::read(body.get(..end).expect("within"));
        }
    }
}
