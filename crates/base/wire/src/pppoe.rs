//! PPPoE (RFC 2516): the header, and the tags of the discovery stage (RFC 2516 appendix A, RFC 4638,
//! Broadband Forum TR-101).

use crate::error::{Error, Field, Layer, Rule};
use core::fmt;

/// A PPPoE code (RFC 2516 section 5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code(pub u8);

impl Code {
    /// Session data.
    pub const SESSION: Code = Code(0x00);
    /// Active Discovery Offer.
    pub const PADO: Code = Code(0x07);
    /// Active Discovery Initiation.
    pub const PADI: Code = Code(0x09);
    /// Active Discovery Request.
    pub const PADR: Code = Code(0x19);
    /// Active Discovery Session-confirmation.
    pub const PADS: Code = Code(0x65);
    /// Active Discovery Terminate.
    pub const PADT: Code = Code(0xa7);

    /// The name, lower case, as in scripted output; `None` for a code that RFC 2516 does not define.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Code::SESSION => "session",
            Code::PADO => "pado",
            Code::PADI => "padi",
            Code::PADR => "padr",
            Code::PADS => "pads",
            Code::PADT => "padt",
            _ => return None,
        })
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{:#04x}", self.0),
        }
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

view! {
    /// The header (RFC 2516 section 4): version and type, code, session id, length.
    Header[6] {
        code: Code @ 1,
        /// Session id. 0xffff is reserved.
        session: u16 @ 2,
        /// Bytes behind this header that belong to the packet.
        length: u16 @ 4,
    }
}

impl Header<'_> {
    /// Version and type, which must both be 1.
    #[inline(always)]
    pub const fn check_version(&self) -> Result<(), Error> {
        if self.0[0] == 0x11 {
            return Ok(());
        }
        let (version, kind) = (self.0[0] >> 4, self.0[0] & 0x0f);
        let (field, found) = if version != 1 { (Field::Version, version) } else { (Field::Type, kind) };
        Err(Error::new(Layer::Pppoe, field, Rule::MustBe, found as usize, 1))
    }

    /// The length against the `available` bytes behind the header. Bytes behind the length are padding,
    /// which a short frame needs.
    #[inline(always)]
    pub const fn check_length(&self, available: usize) -> Result<(), Error> {
        let length = self.length() as usize;
        if length <= available {
            return Ok(());
        }
        Err(Error::new(Layer::Pppoe, Field::Length, Rule::Exceeds, length, available))
    }

    /// The code against the stage that the EtherType announced.
    #[inline(always)]
    pub const fn check_code(&self, stage: Stage) -> Result<(), Error> {
        let found = self.0[1] as usize;
        match stage {
            Stage::Session if found == 0 => Ok(()),
            Stage::Session => Err(Error::new(Layer::Pppoe, Field::Code, Rule::MustBe, found, 0)),
            Stage::Discovery if found != 0 && self.code().name().is_some() => Ok(()),
            Stage::Discovery => Err(Error::new(Layer::Pppoe, Field::Code, Rule::Undefined, found, 0)),
        }
    }
}

/// The stage, given by the EtherType: 0x8863 or 0x8864.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// EtherType 0x8863.
    Discovery,
    /// EtherType 0x8864.
    Session,
}

/// A tag type of the discovery stage, host order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TagType(pub u16);

impl TagType {
    /// End of the list; its length is zero.
    pub const END_OF_LIST: TagType = TagType(0x0000);
    /// Service-Name, UTF-8.
    pub const SERVICE_NAME: TagType = TagType(0x0101);
    /// AC-Name, UTF-8.
    pub const AC_NAME: TagType = TagType(0x0102);
    /// Host-Uniq, opaque.
    pub const HOST_UNIQ: TagType = TagType(0x0103);
    /// AC-Cookie, opaque.
    pub const AC_COOKIE: TagType = TagType(0x0104);
    /// Vendor-Specific: four bytes of vendor id (the first is zero), then the vendor's own.
    pub const VENDOR_SPECIFIC: TagType = TagType(0x0105);
    /// Relay-Session-Id, at most 12 bytes.
    pub const RELAY_SESSION_ID: TagType = TagType(0x0110);
    /// PPP-Max-Payload, two bytes (RFC 4638).
    pub const PPP_MAX_PAYLOAD: TagType = TagType(0x0120);
    /// Service-Name-Error.
    pub const SERVICE_NAME_ERROR: TagType = TagType(0x0201);
    /// AC-System-Error.
    pub const AC_SYSTEM_ERROR: TagType = TagType(0x0202);
    /// Generic-Error, UTF-8.
    pub const GENERIC_ERROR: TagType = TagType(0x0203);
}

impl fmt::Debug for TagType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#06x}", self.0)
    }
}

/// The Broadband Forum's vendor id, under which TR-101 puts its line identification.
pub const BROADBAND_FORUM: u32 = 3561;

/// One tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag<'a> {
    /// The type.
    pub kind: TagType,
    /// The value, as many bytes as the tag's length says.
    pub value: &'a [u8],
}

impl<'a> Tag<'a> {
    /// Bytes of type and length.
    pub const HEADER_LENGTH: usize = 4;

    /// The sub-options of a TR-101 line identification tag (TR-101 section 3.9.2: vendor id 3561, then
    /// type, length, value each): 1 is the circuit id, 2 the remote id. `None` for any other tag.
    pub fn line_identification(&self) -> Option<LineIdentification<'a>> {
        let (vendor, rest) = self.value.split_first_chunk::<4>()?;
        let ours = self.kind == TagType::VENDOR_SPECIFIC && u32::from_be_bytes(*vendor) == BROADBAND_FORUM;
        ours.then_some(LineIdentification(rest))
    }
}

/// Iterator over the sub-options of a TR-101 line identification tag; an item whose length does not fit
/// ends it with an error.
#[derive(Clone, Debug)]
pub struct LineIdentification<'a>(&'a [u8]);

impl<'a> Iterator for LineIdentification<'a> {
    type Item = Result<(u8, &'a [u8]), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let rest = core::mem::take(&mut self.0);
        let error =
            |rule, found, limit| Some(Err(Error::new(Layer::PppoeTag, Field::Option, rule, found, limit)));
        let Some((&[kind, length], rest)) = rest.split_first_chunk::<2>() else {
            return error(Rule::Cut, rest.len(), 2);
        };
        let Some((value, rest)) = rest.split_at_checked(usize::from(length)) else {
            return error(Rule::Exceeds, usize::from(length), rest.len());
        };
        self.0 = rest;
        Some(Ok((kind, value)))
    }
}

/// Iterator over the tags of a discovery packet: `bytes` is the packet's payload, cut to the length in its
/// header. Ends at End-Of-List or with the last byte; a tag that does not fit ends it with an error.
/// Offsets in errors count from the start of `bytes`.
pub fn tags(bytes: &[u8]) -> Tags<'_> {
    Tags { bytes, at: 0 }
}

/// See [`tags`].
#[derive(Clone, Debug)]
pub struct Tags<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Tags<'a> {
    type Item = Result<Tag<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.bytes.get(self.at..).filter(|rest| !rest.is_empty())?;
        let at = core::mem::replace(&mut self.at, self.bytes.len());
        let error = |field, rule, found, limit| {
            Some(Err(Error::new(Layer::PppoeTag, field, rule, found, limit).at(at)))
        };
        let Some((&[a, b, c, d], rest)) = rest.split_first_chunk::<{ Tag::HEADER_LENGTH }>() else {
            return error(Field::Header, Rule::Cut, rest.len(), Tag::HEADER_LENGTH);
        };
        let kind = TagType(u16::from_be_bytes([a, b]));
        let length = usize::from(u16::from_be_bytes([c, d]));
        if kind == TagType::END_OF_LIST {
            return if length == 0 { None } else { error(Field::Length, Rule::MustBe, length, 0) };
        }
        let Some(value) = rest.get(..length) else {
            return error(Field::Length, Rule::Exceeds, length, rest.len());
        };
        self.at = at + Tag::HEADER_LENGTH + length;
        Some(Ok(Tag { kind, value }))
    }
}
