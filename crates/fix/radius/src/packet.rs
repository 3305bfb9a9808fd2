//! The bytes of a RADIUS packet (RFC 2865 section 3): code, identifier, length, authenticator, attributes.

use crate::attribute::VENDOR_SPECIFIC;
use std::fmt;

/// Bytes before the attributes.
pub const HEADER: usize = 20;
/// Bytes of the longest packet.
pub const LONGEST: usize = 4096;
/// Bytes of the longest value of an attribute, and of one of a vendor.
pub const LONGEST_VALUE: usize = 253;
const LONGEST_OF_VENDOR: usize = LONGEST_VALUE - 6;

const LENGTH: std::ops::Range<usize> = 2..4;
pub(crate) const AUTHENTICATOR: std::ops::Range<usize> = 4..HEADER;

/// What a packet is (RFC 2865 section 3, RFC 2866 section 3, RFC 5176 section 3).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Code(pub u8);

impl Code {
    /// Access-Request.
    pub const ACCESS_REQUEST: Code = Code(1);
    /// Access-Accept.
    pub const ACCESS_ACCEPT: Code = Code(2);
    /// Access-Reject.
    pub const ACCESS_REJECT: Code = Code(3);
    /// Accounting-Request.
    pub const ACCOUNTING_REQUEST: Code = Code(4);
    /// Accounting-Response.
    pub const ACCOUNTING_RESPONSE: Code = Code(5);
    /// Access-Challenge.
    pub const ACCESS_CHALLENGE: Code = Code(11);
    /// Status-Server (RFC 5997 section 2).
    pub const STATUS_SERVER: Code = Code(12);
    /// Disconnect-Request.
    pub const DISCONNECT_REQUEST: Code = Code(40);
    /// Disconnect-ACK.
    pub const DISCONNECT_ACK: Code = Code(41);
    /// Disconnect-NAK.
    pub const DISCONNECT_NAK: Code = Code(42);
    /// CoA-Request.
    pub const COA_REQUEST: Code = Code(43);
    /// CoA-ACK.
    pub const COA_ACK: Code = Code(44);
    /// CoA-NAK.
    pub const COA_NAK: Code = Code(45);

    /// Whether a request of this code has an authenticator that nobody can guess, and a Message-Authenticator; others have a digest of
    /// what they say.
    pub(crate) const fn is_query(self) -> bool {
        matches!(self, Code::ACCESS_REQUEST | Code::STATUS_SERVER)
    }

    /// Whether it answers a request of this code.
    pub(crate) const fn answers(self, request: Code) -> bool {
        match request {
            Code::ACCESS_REQUEST => {
                matches!(self, Code::ACCESS_ACCEPT | Code::ACCESS_REJECT | Code::ACCESS_CHALLENGE)
            }
            Code::ACCOUNTING_REQUEST => matches!(self, Code::ACCOUNTING_RESPONSE),
            // That of the port that it came to.
            Code::STATUS_SERVER => matches!(self, Code::ACCESS_ACCEPT | Code::ACCOUNTING_RESPONSE),
            Code::DISCONNECT_REQUEST => matches!(self, Code::DISCONNECT_ACK | Code::DISCONNECT_NAK),
            Code::COA_REQUEST => matches!(self, Code::COA_ACK | Code::COA_NAK),
            _ => false,
        }
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "code {}", self.0)
    }
}

/// Bytes that are no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Fewer bytes than a header has, or than the header says.
    #[error("a RADIUS packet of {length} bytes came with {found}")]
    Short {
        /// Bytes that its header says; those of a header where there is none.
        length: usize,
        /// Bytes that came.
        found: usize,
    },
    /// The header says fewer bytes than it has itself, or more than there may be.
    #[error("a RADIUS packet says that it has {length} bytes, which have to be {HEADER} to {LONGEST}")]
    Length {
        /// What it says.
        length: usize,
    },
    /// An attribute ends behind the packet, or is shorter than its own header.
    #[error(
        "attribute {kind} at byte {at} of a RADIUS packet says that it has {length} bytes, and {left} are there"
    )]
    Attribute {
        /// Its number.
        kind: u8,
        /// Where it begins.
        at: usize,
        /// What it says.
        length: u8,
        /// Bytes to the end of the packet.
        left: usize,
    },
}

/// An attribute: its number, and its value of at most [`LONGEST_VALUE`] bytes.
pub type Attribute<'p> = (u8, &'p [u8]);

/// A packet that came, whose lengths all fit. Whether it is of whoever it seems to be is not known yet.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'p> {
    bytes: &'p [u8],
}

impl<'p> Packet<'p> {
    /// Reads a datagram; what is behind the length of the packet is padding (RFC 2865 section 3).
    ///
    /// # Errors
    ///
    /// A length that contradicts another one.
    pub fn parse(datagram: &'p [u8]) -> Result<Packet<'p>, Malformed> {
        let found = datagram.len();
        let short = |length| Malformed::Short { length, found };
        let header: &[u8; HEADER] = datagram.first_chunk().ok_or(short(HEADER))?;
        let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
        if !(HEADER..=LONGEST).contains(&length) {
            return Err(Malformed::Length { length });
        }
        let bytes = datagram.get(..length).ok_or(short(length))?;
        let mut at = HEADER;
        while let Some([kind, rest @ ..]) = bytes.get(at..) {
            let left = length - at;
            let own = rest.first().copied().unwrap_or(0);
            if own < 2 || usize::from(own) > left {
                return Err(Malformed::Attribute { kind: *kind, at, length: own, left });
            }
            at += usize::from(own);
        }
        Ok(Packet { bytes })
    }

    /// What it is.
    pub fn code(&self) -> Code {
        Code(self.bytes[0])
    }

    /// Which request it answers, or what its answers are known by.
    pub fn identifier(&self) -> u8 {
        self.bytes[1]
    }

    /// Its authenticator, of 16 bytes.
    pub fn authenticator(&self) -> &'p [u8] {
        &self.bytes[AUTHENTICATOR]
    }

    /// All of it, without padding.
    pub const fn bytes(&self) -> &'p [u8] {
        self.bytes
    }

    /// Its attributes, in their order.
    pub fn attributes(&self) -> impl Iterator<Item = Attribute<'p>> + use<'p> {
        attributes(&self.bytes[HEADER..])
    }

    /// The values of an attribute.
    pub fn values(&self, kind: u8) -> impl Iterator<Item = &'p [u8]> + use<'p> {
        self.attributes().filter(move |(number, _)| *number == kind).map(|(_, value)| value)
    }

    /// The values of an attribute of a vendor (RFC 2865 section 5.26). What is not made as that section recommends is left out.
    pub fn vendor_values(&self, vendor: u32, kind: u8) -> impl Iterator<Item = &'p [u8]> + use<'p> {
        let of_vendor = move |value: &'p [u8]| value.strip_prefix(&vendor.to_be_bytes()[..]);
        self.values(VENDOR_SPECIFIC)
            .filter_map(of_vendor)
            .flat_map(attributes)
            .filter(move |(number, _)| *number == kind)
            .map(|(_, value)| value)
    }

    /// Where the value of the first attribute of this number begins.
    pub(crate) fn place(&self, kind: u8) -> Option<(usize, &'p [u8])> {
        let mut at = HEADER;
        self.attributes().find_map(|(number, value)| {
            let begins = at + 2;
            at = begins + value.len();
            (number == kind).then_some((begins, value))
        })
    }
}

/// Attributes one after the other, as far as their lengths fit.
fn attributes(mut rest: &[u8]) -> impl Iterator<Item = Attribute<'_>> {
    std::iter::from_fn(move || {
        let [kind, length, ..] = *rest else { return None };
        let (attribute, behind) = rest.split_at_checked(usize::from(length))?;
        rest = behind;
        Some((kind, attribute.get(2..)?))
    })
}

/// A packet that is being made.
#[derive(Clone, Debug)]
pub struct Draft {
    pub(crate) bytes: Vec<u8>,
}

impl From<Packet<'_>> for Draft {
    fn from(packet: Packet<'_>) -> Draft {
        Draft { bytes: packet.bytes.to_vec() }
    }
}

/// There is no room for what was to be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("attribute {kind} of {length} bytes has no room in a RADIUS packet")]
pub struct NoRoom {
    /// Its number.
    pub kind: u8,
    /// Bytes of its value.
    pub length: usize,
}

impl Draft {
    /// A packet without attributes, identifier and authenticator.
    pub fn new(code: Code) -> Draft {
        let mut bytes = vec![0; HEADER];
        bytes[0] = code.0;
        let mut draft = Draft { bytes };
        draft.write_length();
        draft
    }

    /// What it is.
    pub fn code(&self) -> Code {
        Code(self.bytes[0])
    }

    /// All of it, without identifier and authenticator: [`Packet::parse`] takes it, to make it a draft again.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn write_length(&mut self) {
        let length = self.bytes.len() as u16;
        self.bytes[LENGTH].copy_from_slice(&length.to_be_bytes());
    }

    /// Adds an attribute.
    ///
    /// # Errors
    ///
    /// More than [`LONGEST_VALUE`] bytes, or more than [`LONGEST`] in all.
    pub fn add(&mut self, kind: u8, value: &[u8]) -> Result<(), NoRoom> {
        if value.len() > LONGEST_VALUE || self.bytes.len() + 2 + value.len() > LONGEST {
            return Err(NoRoom { kind, length: value.len() });
        }
        self.bytes.extend([kind, 2 + value.len() as u8]);
        self.bytes.extend(value);
        self.write_length();
        Ok(())
    }

    /// Adds a number of 32 bits.
    ///
    /// # Errors
    ///
    /// As [`Draft::add`].
    pub fn add_number(&mut self, kind: u8, number: u32) -> Result<(), NoRoom> {
        self.add(kind, &number.to_be_bytes())
    }

    /// Adds an attribute of a vendor, by its number of the IANA's enterprises.
    ///
    /// # Errors
    ///
    /// As [`Draft::add`], with a value of six bytes less.
    pub fn add_vendor(&mut self, vendor: u32, kind: u8, value: &[u8]) -> Result<(), NoRoom> {
        if value.len() > LONGEST_OF_VENDOR {
            return Err(NoRoom { kind, length: value.len() });
        }
        let mut inner = vendor.to_be_bytes().to_vec();
        inner.extend([kind, 2 + value.len() as u8]);
        inner.extend(value);
        self.add(VENDOR_SPECIFIC, &inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn draft() -> Draft {
        let mut draft = Draft::new(Code::ACCESS_REQUEST);
        draft.add(1, b"nemo").expect("room");
        draft.add_vendor(311, 25, &[7; 50]).expect("room");
        draft.add_number(5, 20).expect("room");
        draft
    }

    #[test]
    fn what_is_made_is_read_again() {
        let draft = draft();
        let padded = [&draft.bytes[..], &[0; 9]].concat();
        let packet = Packet::parse(&padded).expect("a packet");
        assert_eq!(packet.bytes(), draft.bytes);
        assert_eq!(packet.code(), Code::ACCESS_REQUEST);
        assert_eq!(packet.values(1).collect::<Vec<_>>(), [b"nemo"]);
        assert_eq!(packet.values(5).collect::<Vec<_>>(), [[0, 0, 0, 20]]);
        assert_eq!(packet.vendor_values(311, 25).collect::<Vec<_>>(), [[7; 50]]);
        assert_eq!(packet.vendor_values(311, 26).count() + packet.vendor_values(9, 25).count(), 0);
        assert_eq!(packet.place(5), Some((draft.bytes.len() - 4, &[0, 0, 0, 20][..])));
    }

    #[test]
    fn lengths_that_do_not_fit_are_named() {
        assert_eq!(Packet::parse(&[1; 19]).map(drop), Err(Malformed::Short { length: 20, found: 19 }));
        let mut bytes = draft().bytes;
        bytes[3] = 19;
        assert_eq!(Packet::parse(&bytes).map(drop), Err(Malformed::Length { length: 19 }));
        bytes[3] = 200;
        let found = bytes.len();
        assert_eq!(Packet::parse(&bytes).map(drop), Err(Malformed::Short { length: 200, found }));
        bytes[3] = found as u8;
        for length in [0, 1, 200] {
            bytes[21] = length;
            let error = Packet::parse(&bytes).map(drop);
            assert_eq!(error, Err(Malformed::Attribute { kind: 1, at: 20, length, left: found - 20 }));
        }
        // An attribute that ends with its number.
        bytes[3] = 21;
        let error = Packet::parse(&bytes).map(drop);
        assert_eq!(error, Err(Malformed::Attribute { kind: 1, at: 20, length: 0, left: 1 }));
    }

    #[test]
    fn what_has_no_room_is_refused() {
        let mut draft = draft();
        assert_eq!(draft.add(2, &[0; 254]), Err(NoRoom { kind: 2, length: 254 }));
        assert_eq!(draft.add_vendor(9, 2, &[0; 248]), Err(NoRoom { kind: 2, length: 248 }));
        while draft.add(2, &[0; 253]).is_ok() {}
        assert!(draft.bytes.len() <= LONGEST && Packet::parse(&draft.bytes).is_ok());
    }

    proptest! {
        #[test]
        fn no_datagram_panics(mut bytes in prop::collection::vec(any::<u8>(), 0..300), fits in any::<bool>()) {
            let length = bytes.len() as u16;
            if fits && let Some(place) = bytes.get_mut(LENGTH) {
                place.copy_from_slice(&length.to_be_bytes());
            }
            if let Ok(packet) = Packet::parse(&bytes) {
                let attributes: usize = packet.attributes().map(|(_, value)| 2 + value.len()).sum();
                prop_assert_eq!(HEADER + attributes, packet.bytes().len());
                packet.vendor_values(311, 25).for_each(drop);
            }
        }
    }
}
