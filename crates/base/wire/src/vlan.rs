//! VLAN tags (IEEE 802.1Q-2022 clause 9): any number of them, of any of the five TPIDs in use.

use crate::error::{Error, Field, Layer, Rule};
use crate::ethernet::EtherType;
use core::fmt;

/// Bytes of one tag: two of TPID, two of TCI. In a frame the TPID of a tag stands where the EtherType of
/// the header before it would, so a tag adds the TCI and the next EtherType.
pub const TAG_LENGTH: usize = 4;

/// Tag control information: priority, drop eligibility and VLAN identifier (IEEE 802.1Q-2022 clause 9.6).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Tci(pub u16);

impl Tci {
    /// From its three parts; bits that do not fit their field are cut off.
    pub const fn new(pcp: u8, dei: bool, vid: u16) -> Tci {
        Tci(((pcp & 7) as u16) << 13 | (dei as u16) << 12 | vid & 0x0fff)
    }

    /// Priority code point, 0 to 7.
    pub const fn pcp(self) -> u8 {
        (self.0 >> 13) as u8
    }

    /// Drop eligible indicator.
    pub const fn dei(self) -> bool {
        self.0 & 0x1000 != 0
    }

    /// VLAN identifier, 0 to 4095. 0 means priority only, 4095 is reserved.
    #[inline(always)]
    pub const fn vid(self) -> u16 {
        self.0 & 0x0fff
    }
}

impl fmt::Debug for Tci {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tci(pcp {} dei {} vid {})", self.pcp(), self.dei(), self.vid())
    }
}

/// One tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag {
    /// The value that announced the tag.
    pub tpid: EtherType,
    /// Priority, drop eligibility, identifier.
    pub tci: Tci,
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#06x}/{}", self.tpid.0, self.tci.vid())
    }
}

/// The protocol under any number of tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// The EtherType (or 802.3 length) under the last tag.
    pub ethertype: EtherType,
    /// Number of tags.
    pub tags: usize,
    /// Where the payload of `ethertype` starts, in bytes from the start of the frame.
    pub payload: usize,
}

/// The protocol under any number of tags of an Ethernet frame: what a driver needs to know before it can
/// offload a checksum, and what drivers got wrong that looked at no more than one tag of TPID 0x8100.
///
/// Error: the frame ends inside the MAC header or inside a tag.
#[inline]
pub fn protocol(frame: &[u8]) -> Result<Protocol, Error> {
    let Some((header, rest)) = frame.split_first_chunk::<14>() else {
        return Err(Error::new(Layer::Ethernet, Field::Header, Rule::Cut, frame.len(), 14));
    };
    let mut tags = 0;
    match untag(crate::ethernet::Header::of(header).ethertype(), rest, |_| tags += 1) {
        Ok((ethertype, rest)) => Ok(Protocol { ethertype, tags, payload: frame.len() - rest.len() }),
        Err(error) => Err(error.at(header.len() + error.offset as usize)),
    }
}

/// Walks the tags at the start of `bytes`, which is what `ethertype` announces, and gives the EtherType
/// under them with what follows it. Calls `seen` with the TPID of each tag, a last one that is not whole
/// included. The offset of an error counts from the start of `bytes`.
#[inline(always)]
pub(crate) fn untag(
    mut ethertype: EtherType,
    bytes: &[u8],
    mut seen: impl FnMut(EtherType),
) -> Result<(EtherType, &[u8]), Error> {
    let mut rest = bytes;
    while ethertype.is_tag() {
        seen(ethertype);
        let Some((&[_, _, high, low], behind)) = rest.split_first_chunk::<TAG_LENGTH>() else {
            return Err(Error::new(Layer::Vlan, Field::Header, Rule::Cut, rest.len(), TAG_LENGTH)
                .at(bytes.len() - rest.len()));
        };
        ethertype = EtherType(u16::from_be_bytes([high, low]));
        rest = behind;
    }
    Ok((ethertype, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tagged(tags: &[(u16, u16)]) -> std::vec::Vec<u8> {
        let mut frame = std::vec![0; 12];
        for (tpid, tci) in tags {
            frame.extend(tpid.to_be_bytes());
            frame.extend(tci.to_be_bytes());
        }
        frame.extend(0x0800u16.to_be_bytes());
        frame
    }

    #[test]
    fn a_cut_tag_is_named_with_its_place() {
        let frame = tagged(&[(0x88a8, 100), (0x8100, 200)]);
        for length in 14..frame.len() {
            let error = protocol(&frame[..length]).unwrap_err();
            let tag = if length < 18 { 14 } else { 18 };
            assert_eq!((error.layer, error.offset as usize), (Layer::Vlan, tag), "at length {length}");
            assert_eq!((error.found as usize, error.limit), (length - tag, 4));
        }
    }

    #[test]
    fn tci_parts_keep_apart() {
        let tci = Tci::new(5, true, 0xabc);
        assert_eq!((tci.pcp(), tci.dei(), tci.vid()), (5, true, 0xabc));
        assert_eq!(Tci::new(0, false, 4095).0, 0x0fff);
        assert_eq!(Tci::new(7, false, 0).0, 0xe000);
    }
}
