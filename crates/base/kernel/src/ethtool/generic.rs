//! Ethtool over generic netlink (`Documentation/networking/ethtool-netlink.rst`): Linux 5.6 and later.
//!
//! Attribute numbers are those of `include/uapi/linux/ethtool_netlink.h`, from Linux 5.7 on unless a number says
//! otherwise; numbers are never given anew.

use crate::netlink::{self, Attributes, Message, Refusal};

/// `ETHTOOL_A_HEADER_DEV_NAME`; the header is attribute 1 of every request.
const DEVICE_NAME: u16 = 2;
const REQUEST_HEADER: u16 = 1;

/// Requests that only read (`ETHTOOL_MSG_*_GET`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "what says no more than its name")]
pub enum Get {
    LinkInfo = 2,
    LinkModes = 4,
    /// Whether there is a link.
    LinkState = 6,
    Features = 11,
    Rings = 15,
    Channels = 17,
    Coalesce = 19,
}

/// The ethtool family of generic netlink.
#[derive(Debug)]
pub struct Generic(netlink::Generic);

impl Generic {
    /// Finds the family. Error: this kernel does not have it.
    pub fn open() -> Result<Generic, Refusal> {
        netlink::Generic::open("ethtool").map(Generic)
    }

    /// What the kernel says of the interface `name`: [`Attributes`].
    pub fn get(&mut self, get: Get, name: &[u8]) -> Result<Vec<u8>, Refusal> {
        let header = |header: Message| header.with_text(DEVICE_NAME, name);
        self.0.get(get as u8, |message| message.with_nest(REQUEST_HEADER, header))
    }
}

/// A bit of a bit set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bit {
    /// Its number.
    pub index: u32,
    /// Its name; empty where it has none.
    pub name: Vec<u8>,
    /// Whether it is set. A list without a mask names the bits that are.
    pub set: bool,
}

/// The bits that a bit set of the long form names (`ETHTOOL_A_BITSET_*`): those of the mask where there is one,
/// else those that are set.
pub fn bits(set: Attributes<'_>) -> Vec<Bit> {
    const NO_MASK: u16 = 1;
    const BITS: u16 = 3;
    let no_mask = set.has(NO_MASK);
    let Some(list) = set.nest(BITS) else { return Vec::new() };
    let bit = |(_, bit)| {
        let bit = Attributes::new(bit);
        let name = bit.string(2).unwrap_or_default().to_vec();
        Some(Bit { index: bit.u32(1)?, name, set: no_mask || bit.has(3) })
    };
    list.iter().filter_map(bit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_set_names_what_its_mask_has_or_what_is_set() {
        let bit = |index: u32, name: &'static [u8], set: bool| {
            move |list: Message| {
                list.with_nest(1, |bit| {
                    let bit = bit.with(1, &index.to_ne_bytes()).with_text(2, name);
                    if set { bit.with(3, &[]) } else { bit }
                })
            }
        };
        let read = |set: &Message| bits(Attributes::new(set.attributes()));
        let list = Message::new(0, &[])
            .with_nest(3, |list| bit(6, b"Autoneg", false)(bit(5, b"1000baseT/Full", true)(list)));
        let found: Vec<_> = read(&list).into_iter().map(|bit| (bit.index, bit.set)).collect();
        assert_eq!(found, [(5, true), (6, false)]);
        let bare = Message::new(0, &[]).with(1, &[]).with_nest(3, bit(5, b"1000baseT/Full", false));
        assert_eq!(read(&bare), [Bit { index: 5, name: b"1000baseT/Full".to_vec(), set: true }]);
    }
}
