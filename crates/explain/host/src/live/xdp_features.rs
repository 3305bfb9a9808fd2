//! What a driver's XDP can do, in the kernel's words: the `netdev` family of generic netlink
//! (`Documentation/netlink/specs/netdev.yaml`, `include/uapi/linux/netdev.h`), Linux 6.3 and later.

use super::attributes::{Attributes, attribute};
use super::netlink::Netlink;
use crate::setting::InterfaceName;
use netlink_sys::protocols::NETLINK_GENERIC;
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketType};

/// `NETDEV_CMD_DEV_GET`, `NETDEV_A_DEV_IFINDEX`, `NETDEV_A_DEV_XDP_FEATURES`.
const DEV_GET: u8 = 1;
const IFINDEX: u32 = 1;
const XDP_FEATURES: u32 = 3;

/// `NETDEV_XDP_ACT_*` of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XdpFeatures {
    bits: u64,
}

impl XdpFeatures {
    /// Whether the driver runs XDP programs itself and knows abort, drop, pass and transmit
    /// (`NETDEV_XDP_ACT_BASIC`).
    pub const fn is_native(self) -> bool {
        self.bits & 1 != 0
    }

    /// Whether a program may redirect a frame, to a CPU among others (`NETDEV_XDP_ACT_REDIRECT`).
    pub const fn redirects(self) -> bool {
        self.bits & 2 != 0
    }

    /// Whether programs that know frames in several buffers get them so (`NETDEV_XDP_ACT_RX_SG`).
    pub const fn has_frags(self) -> bool {
        self.bits & 32 != 0
    }
}

/// What the kernel says of the interface, in the network namespace of the calling thread. `None`: it says nothing,
/// being older than 6.3, or there is no such interface. Takes no privilege. A driver that was not told of in 6.3 may
/// run XDP and not say so; all drivers of the kernel itself were.
pub fn xdp_features(interface: &InterfaceName) -> Option<XdpFeatures> {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None).ok()?;
    let index = name_to_index(&socket, interface.as_str()).ok()?;
    let mut netlink = Netlink::open(NETLINK_GENERIC).ok()?;
    let family = netlink.family(b"netdev\0").ok()?;
    let request = [vec![DEV_GET, 1, 0, 0], attribute(IFINDEX, &index.to_ne_bytes())].concat();
    features(&netlink.get(family, &request).ok()?)
}

/// Behind the generic header of four octets, a 64-bit number in the machine's byte order.
fn features(answer: &[u8]) -> Option<XdpFeatures> {
    let value = Attributes::new(answer.get(4..)?).get(XDP_FEATURES)?;
    Some(XdpFeatures { bits: u64::from_ne_bytes(*value.first_chunk()?) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_and_no_piece_of_one_panics() {
        let bits: u64 = 1 | 2 | 32;
        let attributes =
            [attribute(IFINDEX, &2u32.to_ne_bytes()), attribute(XDP_FEATURES, &bits.to_ne_bytes())];
        let answer = [vec![DEV_GET, 1, 0, 0], attributes.concat()].concat();
        let read = features(&answer).expect("features");
        assert!(read.is_native() && read.redirects() && read.has_frags());
        for end in 0..answer.len() {
            assert_eq!(features(answer.get(..end).expect("within")), None, "{end}");
        }
        let none = [vec![DEV_GET, 1, 0, 0], attribute(XDP_FEATURES, &4u64.to_ne_bytes())].concat();
        let read = features(&none).expect("features");
        assert!(!read.is_native() && !read.redirects() && !read.has_frags());
    }

    #[test]
    fn an_interface_that_is_not_there_has_none() {
        assert_eq!(xdp_features(&"rxlane-nothere".parse().expect("a name")), None);
    }
}
