//! A packet of the discovery stage: checked once, then read; and written so that it fits.

use crate::framing::checked;
use format::Quotable;
use std::fmt;
use wire::emit::{Emit, LineIdentification, Pppoe};
use wire::error::Error;
use wire::pppoe::{Code, Header, Stage, Tag, TagType, tags};

/// Most bytes of a PADI, PPPoE header included: a relay must be able to add a tag of 12 bytes (RFC 2516 section 5.1).
pub(crate) const LONGEST_PADI: usize = 1484;
/// Most bytes of any other packet: what an Ethernet frame carries.
pub const LONGEST: usize = 1500;

/// A received packet. That it exists says: version, type and code are right, the length in its header is there, and every
/// tag lies within it. Padding behind the length is allowed, tags of unknown types are skipped, and of a tag that should be
/// there once the first counts.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    code: Code,
    session: u16,
    tags: &'a [u8],
}

impl<'a> Message<'a> {
    /// Reads the payload of a frame of EtherType 0x8863.
    ///
    /// # Errors
    ///
    /// What contradicts itself, with its offset from the start of `bytes`: the header or the length is not all there,
    /// another version or type, a code that RFC 2516 does not define or that is of the session stage, a tag that does not fit.
    pub fn parse(bytes: &'a [u8]) -> Result<Message<'a>, Error> {
        let (header, list) = checked(bytes, Stage::Discovery)?;
        for tag in tags(list) {
            tag.map_err(|error| error.at(Header::LENGTH + error.offset as usize))?;
        }
        Ok(Message { code: header.code(), session: header.session(), tags: list })
    }

    /// PADI, PADO, PADR, PADS or PADT.
    pub fn code(&self) -> Code {
        self.code
    }

    /// The session: of PADS and PADT, 0 in all others (RFC 2516 sections 5.1 to 5.5), which is not checked.
    pub fn session(&self) -> u16 {
        self.session
    }

    /// All tags before End-Of-List, in order.
    pub fn tags(&self) -> impl Iterator<Item = Tag<'a>> + use<'a> {
        tags(self.tags).map_while(Result::ok)
    }

    /// Value of the first tag of this type.
    pub fn first(&self, kind: TagType) -> Option<&'a [u8]> {
        self.tags().find(|tag| tag.kind == kind).map(|tag| tag.value)
    }

    /// Service-Name. PADI, PADR and PADS have one, an empty one meaning any service; where there is none, none was requested.
    pub(crate) fn service_name(&self) -> &'a [u8] {
        self.first(TagType::SERVICE_NAME).unwrap_or_default()
    }

    /// All Service-Names: a PADO has one for each service.
    pub(crate) fn service_names(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.tags().filter(|tag| tag.kind == TagType::SERVICE_NAME).map(|tag| tag.value)
    }

    pub(crate) fn ac_name(&self) -> Option<&'a [u8]> {
        self.first(TagType::AC_NAME)
    }

    /// Host-Uniq, by which a host knows which of its packets this answers.
    pub fn host_uniq(&self) -> Option<&'a [u8]> {
        self.first(TagType::HOST_UNIQ)
    }

    /// AC-Cookie, which a host gives back as it got it.
    pub fn cookie(&self) -> Option<&'a [u8]> {
        self.first(TagType::AC_COOKIE)
    }

    /// Relay-Session-Id, which both ends give back as they got it.
    pub fn relay_session_id(&self) -> Option<&'a [u8]> {
        self.first(TagType::RELAY_SESSION_ID)
    }

    /// PPP-Max-Payload, bytes (RFC 4638 section 4). One that has not two bytes is as good as none.
    pub fn max_payload(&self) -> Option<u16> {
        self.first(TagType::PPP_MAX_PAYLOAD)?.try_into().ok().map(u16::from_be_bytes)
    }

    /// What an access node says of the subscriber's line (TR-101 section 3.9.2). One that contradicts itself is as good as
    /// none.
    pub fn line(&self) -> Option<Line> {
        let tag = self.tags().find(|tag| tag.line_identification().is_some())?;
        let LineIdentification { circuit, remote } = LineIdentification::parse(&tag).ok()??;
        let kept = |id: &[u8]| id.get(..LONGEST_ID).unwrap_or(id).to_vec();
        Some(Line { circuit: kept(circuit), remote: kept(remote) })
    }
}

/// of TR-101 section 3.9.2 allow 63 bytes; more is nobody's identification.
const LONGEST_ID: usize = 63;

/// Line identification of an access node, each at most 63 bytes; empty where it is not known. Printed, it is escaped.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Line {
    /// Agent circuit id: access node, slot, port, VLAN.
    pub circuit: Vec<u8>,
    /// Agent remote id: the subscriber, as the operator calls it.
    pub remote: Vec<u8>,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "circuit \"{}\", remote \"{}\"", Quotable(&self.circuit), Quotable(&self.remote))
    }
}

/// What was to be written is longer than such a packet may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a {code} of {needed} bytes is longer than the {most} that one may have (RFC 2516 section 5)")]
pub struct TooLong {
    pub code: Code,
    /// Bytes with its header.
    pub needed: usize,
    /// Bytes that it may have.
    pub most: usize,
}

/// Writes a packet, tag by tag.
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    code: Code,
    session: u16,
    tags: Vec<u8>,
    /// Bytes of all tags, those that had no room among them.
    length: usize,
}

impl Builder {
    /// A packet without tags.
    pub fn new(code: Code, session: u16) -> Builder {
        Builder { code, session, tags: Vec::new(), length: 0 }
    }

    pub fn tag(mut self, kind: TagType, value: &[u8]) -> Builder {
        let tag = Tag { kind, value };
        self.length = self.length.saturating_add(tag.length());
        if Header::LENGTH + self.length <= self.most() {
            let at = self.tags.len();
            self.tags.resize(self.length, 0);
            // There is room for it, and a tag that fits a packet fits its length field.
            let _ = tag.emit(self.tags.get_mut(at..).unwrap_or_default());
        }
        self
    }

    /// One more tag if there is a value, an echo for example.
    pub fn tag_if(self, kind: TagType, value: Option<&[u8]>) -> Builder {
        match value {
            Some(value) => self.tag(kind, value),
            None => self,
        }
    }

    /// PPP-Max-Payload, bytes.
    pub fn max_payload(self, bytes: Option<u16>) -> Builder {
        match bytes {
            Some(bytes) => self.tag(TagType::PPP_MAX_PAYLOAD, &bytes.to_be_bytes()),
            None => self,
        }
    }

    /// Bytes that the packet takes, with its header.
    pub const fn length(&self) -> usize {
        Header::LENGTH + self.length
    }

    fn most(&self) -> usize {
        if self.code == Code::PADI { LONGEST_PADI } else { LONGEST }
    }

    /// The payload of a frame.
    ///
    /// # Errors
    ///
    /// The tags do not all fit.
    pub fn finish(self) -> Result<Vec<u8>, TooLong> {
        let (needed, most) = (self.length(), self.most());
        if needed > most {
            return Err(TooLong { code: self.code, needed, most });
        }
        let mut bytes = vec![0; Header::LENGTH];
        // At most 1494.
        let payload_length = self.tags.len() as u16;
        // There is room for it.
        let _ = Pppoe { code: self.code, session: self.session, payload_length }.emit(&mut bytes);
        bytes.extend(self.tags);
        Ok(bytes)
    }
}

/// A PADT (RFC 2516 section 5.5), with what is said about the reason: a text for people, at most 200 bytes of it, in a
/// Generic-Error tag.
pub fn padt(session: u16, text: Option<&str>) -> Vec<u8> {
    const MOST: usize = 200;
    let text = text.map(|text| text.get(..text.floor_char_boundary(MOST)).unwrap_or(text));
    let packet = Builder::new(Code::PADT, session);
    // 210 bytes fit.
    packet.tag_if(TagType::GENERIC_ERROR, text.map(str::as_bytes)).finish().unwrap_or_default()
}

#[cfg(test)]
mod tests;
