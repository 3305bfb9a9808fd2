//! Requests as they are written, and attributes as they are read. Integers are in the machine's byte order unless a name says
//! otherwise (`include/net/netlink.h`).

use netlink_packet_core::{NLA_F_NESTED, NLA_HEADER_SIZE, NLM_F_REQUEST, NetlinkBuffer, NlasIterator};
use std::io;

/// Header of a netlink message, bytes.
pub(super) const HEADER: usize = 16;

/// A request: its type, the structure that every request of this type has, and attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    kind: u16,
    /// Bytes of `body` before the first attribute.
    fixed: usize,
    body: Vec<u8>,
}

impl Message {
    /// A request with the structure that its type prescribes and without attributes.
    pub fn new(kind: u16, structure: &[u8]) -> Message {
        Message { kind, fixed: structure.len(), body: structure.to_vec() }
    }

    /// With an attribute.
    #[must_use]
    pub fn with(mut self, kind: u16, value: &[u8]) -> Message {
        // No attribute of this program comes near the 65,535 bytes that one can have.
        let length = u16::try_from(NLA_HEADER_SIZE + value.len()).unwrap_or(u16::MAX);
        self.body.extend(length.to_ne_bytes());
        self.body.extend(kind.to_ne_bytes());
        self.body.extend_from_slice(value);
        self.body.resize(self.body.len().next_multiple_of(4), 0);
        self
    }

    /// With a string, which ends in a zero.
    #[must_use]
    pub fn with_text(self, kind: u16, text: &[u8]) -> Message {
        self.with(kind, &[text, b"\0"].concat())
    }

    /// With a nest of the attributes that `build` adds.
    #[must_use]
    pub fn with_nest(self, kind: u16, build: impl FnOnce(Message) -> Message) -> Message {
        let nest = build(Message::new(kind, &[]));
        self.with(kind | NLA_F_NESTED, &nest.body)
    }

    /// The attributes, to be read again.
    pub fn attributes(&self) -> &[u8] {
        self.body.get(self.fixed..).unwrap_or_default()
    }

    pub(super) fn bytes(&self, flags: u16, sequence: u32) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(HEADER + self.body.len());
        self.append(&mut bytes, flags, sequence)?;
        Ok(bytes)
    }

    /// Writes the message behind others of a datagram.
    pub(super) fn append(&self, datagram: &mut Vec<u8>, flags: u16, sequence: u32) -> io::Result<()> {
        let too_long = |_| io::Error::new(io::ErrorKind::InvalidInput, "the request is too long");
        let length = u32::try_from(HEADER + self.body.len()).map_err(too_long)?;
        let mut header = [0; HEADER];
        let mut fields = NetlinkBuffer::new(&mut header);
        fields.set_length(length);
        fields.set_message_type(self.kind);
        fields.set_flags(NLM_F_REQUEST | flags);
        fields.set_sequence_number(sequence);
        // A message starts at a multiple of 4 (`NLMSG_ALIGN`).
        datagram.resize(datagram.len().next_multiple_of(4), 0);
        datagram.extend_from_slice(&header);
        datagram.extend_from_slice(&self.body);
        Ok(())
    }
}

/// The attributes of a message or of a nest, up to the first that is cut off. One of an unexpected size is as one that is not
/// there.
#[derive(Clone, Copy, Debug, Default)]
pub struct Attributes<'a>(&'a [u8]);

impl<'a> Attributes<'a> {
    /// Attributes in `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Attributes<'a> {
        Attributes(bytes)
    }

    /// Those behind a structure of `size` bytes.
    pub fn behind(size: usize, bytes: &'a [u8]) -> Attributes<'a> {
        Attributes(bytes.get(size..).unwrap_or_default())
    }

    /// Each attribute's type without its flags, and its value.
    pub fn iter(self) -> impl Iterator<Item = (u16, &'a [u8])> {
        NlasIterator::new(self.0).map_while(Result::ok).filter_map(|attribute| {
            let (kind, end) = (attribute.kind(), usize::from(attribute.length()));
            Some((kind, attribute.into_inner().get(NLA_HEADER_SIZE..end)?))
        })
    }

    /// The first attribute of type `kind`.
    pub fn get(self, kind: u16) -> Option<&'a [u8]> {
        self.iter().find(|&(found, _)| found == kind).map(|(_, value)| value)
    }

    /// Whether there is an attribute of type `kind`.
    pub fn has(self, kind: u16) -> bool {
        self.get(kind).is_some()
    }

    /// A nest.
    pub fn nest(self, kind: u16) -> Option<Attributes<'a>> {
        self.get(kind).map(Attributes)
    }

    /// An 8-bit number.
    pub fn u8(self, kind: u16) -> Option<u8> {
        self.get(kind)?.first().copied()
    }

    /// A 16-bit number.
    pub fn u16(self, kind: u16) -> Option<u16> {
        Some(u16::from_ne_bytes(*self.get(kind)?.first_chunk()?))
    }

    /// A 16-bit number in network byte order.
    pub fn be16(self, kind: u16) -> Option<u16> {
        Some(u16::from_be_bytes(*self.get(kind)?.first_chunk()?))
    }

    /// A 32-bit number.
    pub fn u32(self, kind: u16) -> Option<u32> {
        Some(u32::from_ne_bytes(*self.get(kind)?.first_chunk()?))
    }

    /// A 32-bit number in network byte order.
    pub fn be32(self, kind: u16) -> Option<u32> {
        Some(u32::from_be_bytes(*self.get(kind)?.first_chunk()?))
    }

    /// A 64-bit number.
    pub fn u64(self, kind: u16) -> Option<u64> {
        Some(u64::from_ne_bytes(*self.get(kind)?.first_chunk()?))
    }

    /// A string, without the zero that ends it.
    pub fn string(self, kind: u16) -> Option<&'a [u8]> {
        self.get(kind).map(until_zero)
    }

    /// The same as text; what is not UTF-8 is replaced.
    pub fn text(self, kind: u16) -> Option<String> {
        self.string(kind).map(|text| String::from_utf8_lossy(text).into_owned())
    }
}

/// Bytes before the first zero.
pub fn until_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// A 32-bit number of a structure.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_that_were_written_are_read() {
        let nest = |nest: Message| nest.with(1, &7u32.to_ne_bytes()).with_text(2, b"eth0");
        let message = Message::new(16, &[9; 8]).with(9, &[5]).with_nest(3, nest);
        let read = Attributes::new(message.attributes());
        assert_eq!(read.u8(9), Some(5));
        let nest = read.nest(3).expect("there");
        assert_eq!((nest.u32(1), nest.text(2).as_deref()), (Some(7), Some("eth0")));
        assert!(!nest.has(4) && nest.u16(9).is_none());
        let bytes = message.bytes(0, 7).expect("short");
        assert_eq!(bytes.len(), HEADER + 8 + 8 + 4 + 8 + 12);
        assert_eq!(Attributes::behind(HEADER + 8, &bytes).u8(9), Some(5));
    }

    #[test]
    fn an_attribute_too_short_or_cut_off_is_unknown() {
        let message = Message::new(0, &[]).with(1, &[1, 2]).with(2, &[3; 8]);
        let bytes = message.attributes();
        assert_eq!(Attributes::new(bytes).u32(1), None);
        for end in 0..bytes.len() {
            let cut = Attributes::new(bytes.get(..end).expect("within"));
            assert!(cut.iter().count() <= 1, "{end}");
        }
        // A length below the header's own, which would read backwards.
        assert_eq!(Attributes::new(&[2, 0, 1, 0, 0, 0, 0, 0]).iter().count(), 0);
    }
}
