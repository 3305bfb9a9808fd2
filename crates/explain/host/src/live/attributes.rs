//! Netlink attributes, read one by one: an attribute of an unexpected size or shape is unknown and costs nothing
//! but itself. Integers are in the machine's byte order unless a name says otherwise (`include/net/netlink.h`).

use netlink_packet_core::{DefaultNla, Emitable, NLA_F_NESTED, NLA_HEADER_SIZE, NlasIterator};

/// The attributes of a message or of a nest.
#[derive(Clone, Copy)]
pub(super) struct Attributes<'a>(&'a [u8]);

impl<'a> Attributes<'a> {
    /// Attributes in `bytes`, up to the first that is cut off.
    pub(super) fn new(bytes: &'a [u8]) -> Attributes<'a> {
        Attributes(bytes)
    }

    /// Each attribute's type without its flags, and its value.
    pub(super) fn iter(self) -> impl Iterator<Item = (u32, &'a [u8])> {
        NlasIterator::new(self.0).map_while(Result::ok).filter_map(|attribute| {
            let (kind, end) = (u32::from(attribute.kind()), usize::from(attribute.length()));
            Some((kind, attribute.into_inner().get(NLA_HEADER_SIZE..end)?))
        })
    }

    /// The first attribute of type `kind`.
    pub(super) fn get(self, kind: u32) -> Option<&'a [u8]> {
        self.iter().find(|&(found, _)| found == kind).map(|(_, value)| value)
    }

    /// Whether there is an attribute of type `kind`.
    pub(super) fn has(self, kind: u32) -> bool {
        self.get(kind).is_some()
    }

    /// A nest.
    pub(super) fn nest(self, kind: u32) -> Option<Attributes<'a>> {
        self.get(kind).map(Attributes)
    }

    /// An 8-bit number.
    pub(super) fn u8(self, kind: u32) -> Option<u8> {
        self.get(kind)?.first().copied()
    }

    /// A 16-bit number.
    pub(super) fn u16(self, kind: u32) -> Option<u16> {
        Some(u16::from_ne_bytes(*self.get(kind)?.first_chunk()?))
    }

    /// A 16-bit number in network byte order.
    pub(super) fn be16(self, kind: u32) -> Option<u16> {
        Some(u16::from_be_bytes(*self.get(kind)?.first_chunk()?))
    }

    /// A 32-bit number.
    pub(super) fn u32(self, kind: u32) -> Option<u32> {
        Some(u32::from_ne_bytes(*self.get(kind)?.first_chunk()?))
    }

    /// A string, without the zero that ends it.
    pub(super) fn string(self, kind: u32) -> Option<&'a [u8]> {
        self.get(kind).map(until_zero)
    }
}

/// Bytes before the first zero.
pub(super) fn until_zero(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    bytes.get(..end).unwrap_or(bytes)
}

/// An attribute as it is sent.
pub(super) fn attribute(kind: u32, value: &[u8]) -> Vec<u8> {
    let attribute = DefaultNla::new(u16::try_from(kind).unwrap_or(0), value.to_vec());
    let mut bytes = vec![0; attribute.buffer_len()];
    attribute.emit(&mut bytes);
    bytes
}

/// A nest of attributes as it is sent.
pub(super) fn nest(kind: u32, attributes: &[Vec<u8>]) -> Vec<u8> {
    attribute(kind | u32::from(NLA_F_NESTED), &attributes.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_that_were_written_are_read() {
        let inner = [attribute(1, &7u32.to_ne_bytes()), attribute(2, b"eth0\0")];
        let bytes = [attribute(9, &[5]), nest(3, &inner)].concat();
        let read = Attributes::new(&bytes);
        assert_eq!(read.u8(9), Some(5));
        let nest = read.nest(3).expect("there");
        assert_eq!((nest.u32(1), nest.string(2)), (Some(7), Some(b"eth0".as_slice())));
        assert!(!nest.has(4) && nest.u16(9).is_none());
    }

    #[test]
    fn an_attribute_too_short_or_cut_off_is_unknown() {
        let bytes = [attribute(1, &[1, 2]), attribute(2, &[3; 8])].concat();
        assert_eq!(Attributes::new(&bytes).u32(1), None);
        for end in 0..bytes.len() {
            let cut = Attributes::new(bytes.get(..end).expect("within"));
            assert!(cut.iter().count() <= 1, "{end}");
        }
        // A length below the header's own, which would read backwards.
        assert_eq!(Attributes::new(&[2, 0, 1, 0, 0, 0, 0, 0]).iter().count(), 0);
    }
}
