//! Ethtool over generic netlink (`Documentation/networking/ethtool-netlink.rst`): Linux 5.6 and later.
//!
//! Attribute numbers are those of `include/uapi/linux/ethtool_netlink.h`, from Linux 5.7 on unless a number says
//! otherwise; numbers are never given anew.

use crate::live::attributes::{Attributes, attribute, nest};
use crate::live::bundle::printable;
use crate::live::netlink::{Netlink, Refusal};
use netlink_sys::protocols::NETLINK_GENERIC;

/// Octets of a generic netlink header: command, version, two reserved.
const HEADER: usize = 4;
/// `ETHTOOL_A_HEADER_DEV_NAME`; the header is attribute 1 of every request.
const DEVICE_NAME: u32 = 2;
const REQUEST_HEADER: u32 = 1;

/// Requests that only read (`ETHTOOL_MSG_*_GET`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Get {
    /// Port, transceiver.
    LinkInfo = 2,
    /// Speed, duplex, modes.
    LinkModes = 4,
    /// Whether there is a link.
    LinkState = 6,
    /// Offloads.
    Features = 11,
    /// Ring sizes.
    Rings = 15,
    /// Queues with vectors.
    Channels = 17,
    /// Interrupt coalescing.
    Coalesce = 19,
}

/// The ethtool family of generic netlink.
pub(crate) struct Generic {
    netlink: Netlink,
    family: u16,
}

impl Generic {
    /// Finds the family.
    pub(crate) fn open() -> Result<Generic, Refusal> {
        let mut netlink = Netlink::open(NETLINK_GENERIC)?;
        let family = netlink.family(b"ethtool\0")?;
        Ok(Generic { netlink, family })
    }

    /// What the kernel says of the interface `name`: attributes behind the generic header.
    pub(super) fn get(&mut self, get: Get, name: &[u8]) -> Result<Answer, Refusal> {
        let name = [name, b"\0"].concat();
        let header = nest(REQUEST_HEADER, &[attribute(DEVICE_NAME, &name)]);
        let request = [vec![get as u8, 1, 0, 0], header].concat();
        Ok(Answer(self.netlink.get(self.family, &request)?))
    }
}

/// An answer.
pub(super) struct Answer(Vec<u8>);

impl Answer {
    /// Its attributes.
    pub(super) fn attributes(&self) -> Attributes<'_> {
        Attributes::new(self.0.get(HEADER..).unwrap_or_default())
    }
}

/// A bit of a bit set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bit {
    /// Its number.
    pub index: u32,
    /// Its name; empty where it has none.
    pub name: String,
    /// Whether it is set. A list without a mask names the bits that are.
    pub set: bool,
}

/// The bits that a bit set of the long form names (`ETHTOOL_A_BITSET_*`): those of the mask where there is one,
/// else those that are set.
pub(super) fn bits(set: Attributes<'_>) -> Vec<Bit> {
    const NO_MASK: u32 = 1;
    const BITS: u32 = 3;
    let no_mask = set.has(NO_MASK);
    let Some(list) = set.nest(BITS) else { return Vec::new() };
    let bit = |(_, bit)| {
        let bit = Attributes::new(bit);
        let name = bit.string(2).map(printable).unwrap_or_default();
        Some(Bit { index: bit.u32(1)?, name, set: no_mask || bit.has(3) })
    };
    list.iter().filter_map(bit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_set_names_what_its_mask_has_or_what_is_set() {
        let bit = |index: u32, name: &[u8], set: bool| {
            let value = if set { attribute(3, &[]) } else { Vec::new() };
            nest(1, &[attribute(1, &index.to_ne_bytes()), attribute(2, name), value])
        };
        let list = nest(3, &[bit(5, b"1000baseT/Full\0", true), bit(6, b"Autoneg\0", false)]);
        let read: Vec<_> = bits(Attributes::new(&list)).into_iter().map(|bit| (bit.index, bit.set)).collect();
        assert_eq!(read, [(5, true), (6, false)]);
        let bare = [attribute(1, &[]), nest(3, &[bit(5, b"1000baseT/Full\0", false)])].concat();
        let read = bits(Attributes::new(&bare));
        assert_eq!(read, [Bit { index: 5, name: "1000baseT/Full".to_owned(), set: true }]);
    }
}
