//! The lines between the two stations: the adapter itself, or VLAN devices of the kernel on it.

use crate::Guest;
use anyhow::Result;

/// The subscriber's adapter.
pub(super) const NEAR: &str = "near";
/// The provider's adapter, in a network namespace of the same name.
pub(super) const FAR: &str = "far";

/// What a frame has around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    Untagged,
    /// 0x8100/35.
    Vlan,
    /// 0x88a8/7 0x8100/100.
    Provider,
    /// 0x88a8/7 0x8100/101.
    ProviderNeighbour,
    /// 0x8100/8 0x8100/200.
    Twice,
}

/// Device, what it stands on, protocol, VLAN ID: names begin with that of their adapter.
const DEVICES: [(&str, &str, &str, u16); 6] = [
    ("-v", "", "802.1Q", 35),
    ("-s", "", "802.1ad", 7),
    ("-sc", "-s", "802.1Q", 100),
    ("-sn", "-s", "802.1Q", 101),
    ("-o", "", "802.1Q", 8),
    ("-oc", "-o", "802.1Q", 200),
];

impl Line {
    fn suffix(self) -> &'static str {
        match self {
            Line::Untagged => "",
            Line::Vlan => "-v",
            Line::Provider => "-sc",
            Line::ProviderNeighbour => "-sn",
            Line::Twice => "-oc",
        }
    }

    /// The subscriber's device.
    pub(super) fn near(self) -> String {
        format!("{NEAR}{}", self.suffix())
    }

    /// The provider's device, in its namespace.
    pub(super) fn far(self) -> String {
        format!("{FAR}{}", self.suffix())
    }

    /// Gives both ends addresses; the IPv4 ones find each other by ARP, the IPv6 ones by neighbour discovery. Nobody
    /// looks for routers.
    pub(super) fn address(self, guest: &Guest) -> Result<()> {
        let (near, far) = (self.near(), self.far());
        guest
            .sh(&format!(
                "echo 0 >/proc/sys/net/ipv6/conf/{near}/router_solicitations\n\
                 echo 0 >/proc/sys/net/ipv6/conf/{near}/disable_ipv6; \
                 ip addr add 192.0.2.2/24 dev {near}; ip addr add 2001:db8:7::2/64 dev {near} nodad\n\
                 ip netns exec far sh -ec 'echo 0 >/proc/sys/net/ipv6/conf/{far}/router_solicitations\n\
                 echo 0 >/proc/sys/net/ipv6/conf/{far}/disable_ipv6; \
                 ip addr add 192.0.2.1/24 dev {far}; ip addr add 2001:db8:7::1/64 dev {far} nodad'"
            ))
            .map(drop)
    }

    pub(super) fn unaddress(self, guest: &Guest) -> Result<()> {
        let (near, far) = (self.near(), self.far());
        guest
            .sh(&format!(
                "ip addr flush dev {near}; ip -n far addr flush dev {far}\n\
                 echo 1 >/proc/sys/net/ipv6/conf/{near}/disable_ipv6\n\
                 ip netns exec far sh -ec 'echo 1 >/proc/sys/net/ipv6/conf/{far}/disable_ipv6'"
            ))
            .map(drop)
    }
}

/// Both adapters with all devices on them. No IPv6 on any, so that nothing speaks where PPPoE does.
pub(super) fn set_up(guest: &Guest) -> Result<()> {
    guest.sh("modprobe 8021q; ip netns add far; ip link set far netns far; ip -n far link set lo up")?;
    for (base, within) in [(NEAR, ""), (FAR, "ip netns exec far ")] {
        let mut script = String::new();
        let silent = |name: &str| {
            format!("echo 1 >/proc/sys/net/ipv6/conf/{name}/disable_ipv6; ip link set {name} promisc on up; ")
        };
        script.push_str(&silent(base));
        for (suffix, on, protocol, id) in DEVICES {
            script.push_str(&format!(
                "ip link add link {base}{on} name {base}{suffix} type vlan proto {protocol} id {id}; "
            ));
            script.push_str(&silent(&format!("{base}{suffix}")));
        }
        guest.sh(&format!("{within}sh -ec '{script}'"))?;
    }
    guest.await_carrier(NEAR)?;
    guest
        .sh("timeout 30 ip netns exec far sh -c 'until grep -q 1 /sys/class/net/far/carrier; do sleep 0.1; done'")
        .map(drop)
}

/// Both adapters have room for so many bytes behind the Ethernet header.
pub(super) fn resize(guest: &Guest, bytes: u32) -> Result<()> {
    guest.sh(&format!("ip link set near mtu {bytes}; ip -n far link set far mtu {bytes}"))?;
    // The driver sets the adapter up anew.
    std::thread::sleep(std::time::Duration::from_secs(1));
    guest.await_carrier(NEAR)?;
    guest
        .sh("timeout 30 ip netns exec far sh -c 'until grep -q 1 /sys/class/net/far/carrier; do sleep 0.1; done'")
        .map(drop)
}
