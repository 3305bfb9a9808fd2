//! Representations of PPPoE, its tags, the PPP protocol field and PPP control packets.

use super::{Emit, EmitError, fits, place};
use crate::error::{Error, Field, Layer, Rule};
use crate::ppp::{ControlHeader, PppProtocol};
use crate::pppoe::{BROADBAND_FORUM, Code, Tag, TagType, tags};

const MAX_U16: usize = u16::MAX as usize;

fields! {
    /// PPPoE header (RFC 2516 section 4), version 1, type 1. View: [`crate::pppoe::Header`].
    Pppoe: Layer::Pppoe, 6, behind [0x11] {
        code: Code,
        session: u16,
        /// Bytes behind this header that belong to the packet.
        payload_length: u16,
    }
}

/// One tag of a discovery packet (RFC 2516 appendix A).
pub type PppoeTag<'a> = Tag<'a>;

impl<'a> Tag<'a> {
    /// Reads the tag at the start of `bytes` and gives it with its length. `None` at End-Of-List and at
    /// the end. Errors: as [`tags`].
    pub fn parse(bytes: &'a [u8]) -> Result<Option<Tag<'a>>, Error> {
        tags(bytes).next().transpose()
    }
}

impl Emit for Tag<'_> {
    fn length(&self) -> usize {
        Tag::HEADER_LENGTH + self.value.len()
    }

    fn emit(&self, buffer: &mut [u8]) -> Result<usize, EmitError> {
        fits(Layer::PppoeTag, Field::Length, self.value.len(), MAX_U16)?;
        let bytes = place(Layer::PppoeTag, self.length(), buffer)?.u16(self.kind.0);
        Ok(bytes.u16(self.value.len() as u16).put(self.value).length())
    }
}

/// The tags of a discovery packet, in order. The counterpart of [`tags`], which reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PppoeTags<'a>(pub &'a [Tag<'a>]);

impl Emit for PppoeTags<'_> {
    fn length(&self) -> usize {
        self.0.iter().map(Emit::length).sum()
    }

    fn emit(&self, buffer: &mut [u8]) -> Result<usize, EmitError> {
        let needed = self.length();
        fits(Layer::Pppoe, Field::Length, needed, MAX_U16)?;
        let available = buffer.len();
        let Some(mut rest) = buffer.get_mut(..needed) else {
            return Err(EmitError::BufferShort { layer: Layer::PppoeTag, needed, available });
        };
        for tag in self.0 {
            let length = tag.emit(rest)?;
            rest = rest.get_mut(length..).unwrap_or_default();
        }
        Ok(needed)
    }
}

/// The line identification that an access node inserts (TR-101 section 3.9.2): a Vendor-Specific tag of the
/// Broadband Forum with sub-options 1 and 2. An empty id is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineIdentification<'a> {
    /// Agent circuit id, at most 63 bytes.
    pub circuit: &'a [u8],
    /// Agent remote id, at most 63 bytes.
    pub remote: &'a [u8],
}

impl<'a> LineIdentification<'a> {
    /// TR-101 section 3.9.2, R-124 and R-125: no longer than 63 bytes.
    const MAX_ID: usize = 63;

    /// Reads the two ids from a tag; `None` for any other tag. Errors: a sub-option that does not fit.
    pub fn parse(tag: &Tag<'a>) -> Result<Option<LineIdentification<'a>>, Error> {
        let Some(items) = tag.line_identification() else { return Ok(None) };
        let mut found = LineIdentification { circuit: &[], remote: &[] };
        for item in items {
            match item? {
                (1, value) => found.circuit = value,
                (2, value) => found.remote = value,
                _ => {}
            }
        }
        Ok(Some(found))
    }

    fn sub_options(&self) -> impl Iterator<Item = (u8, &'a [u8])> {
        [(1, self.circuit), (2, self.remote)].into_iter().filter(|(_, value)| !value.is_empty())
    }
}

impl Emit for LineIdentification<'_> {
    fn length(&self) -> usize {
        Tag::HEADER_LENGTH + 4 + self.sub_options().map(|(_, value)| 2 + value.len()).sum::<usize>()
    }

    fn emit(&self, buffer: &mut [u8]) -> Result<usize, EmitError> {
        for (_, value) in self.sub_options() {
            fits(Layer::PppoeTag, Field::Option, value.len(), LineIdentification::MAX_ID)?;
        }
        let bytes = place(Layer::PppoeTag, self.length(), buffer)?.u16(TagType::VENDOR_SPECIFIC.0);
        let bytes = bytes.u16((self.length() - Tag::HEADER_LENGTH) as u16).u32(BROADBAND_FORUM);
        Ok(self
            .sub_options()
            .fold(bytes, |bytes, (kind, value)| bytes.put(&[kind, value.len() as u8]).put(value))
            .length())
    }
}

fields! {
    /// The PPP protocol field, two bytes, which is how PPPoE wants it (RFC 2516 section 7).
    Ppp: Layer::Ppp, 2 {
        protocol: PppProtocol,
    }
}

/// An LCP, IPCP, IPV6CP, CCP, PAP or CHAP packet (RFC 1661 section 5). View: [`ControlHeader`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlPacket<'a> {
    pub code: u8,
    pub identifier: u8,
    /// What follows the header: options, a magic number, a name and so on.
    pub data: &'a [u8],
}

impl<'a> ControlPacket<'a> {
    /// Reads the packet at the start of `bytes`; bytes behind its length are padding. Errors: not whole,
    /// a length below four or beyond `bytes`.
    pub fn parse(bytes: &'a [u8]) -> Result<ControlPacket<'a>, Error> {
        let cut = Error::new(Layer::PppControl, Field::Header, Rule::Cut, bytes.len(), ControlHeader::LENGTH);
        let header = bytes.first_chunk().map(ControlHeader::of).ok_or(cut)?;
        header.check(bytes.len())?;
        let length = usize::from(header.length());
        let data = bytes.get(ControlHeader::LENGTH..length).unwrap_or_default();
        Ok(ControlPacket { code: header.code(), identifier: header.identifier(), data })
    }
}

impl Emit for ControlPacket<'_> {
    fn length(&self) -> usize {
        ControlHeader::LENGTH + self.data.len()
    }

    fn emit(&self, buffer: &mut [u8]) -> Result<usize, EmitError> {
        fits(Layer::PppControl, Field::Length, self.length(), MAX_U16)?;
        let bytes = place(Layer::PppControl, self.length(), buffer)?.put(&[self.code, self.identifier]);
        Ok(bytes.u16(self.length() as u16).put(self.data).length())
    }
}
