//! The framing of a link: what stands between the parent's frames and the packets or frames of the interface.
//!
//! # Two forms
//!
//! * [`Form::Packets`]: PPPoE. The interface has IP packets (TUN), as PPP has no addresses and needs no ARP.
//! * [`Form::Frames`]: VLAN tags alone. The interface has Ethernet frames (TAP), so that ARP and neighbour discovery work
//!   as on any Ethernet interface. Tags are put in behind the MAC addresses and taken out there.
//!
//! # Contract
//!
//! * A frame is taken when it has exactly the link's tags: TPID and VID of each match, priority and DEI are ignored, and
//!   no further tag follows. With PPPoE: version and type 1, code 0, the link's session, from the peer to this station,
//!   a length within the frame, PPP protocol 0x0021 or 0x0057 in two bytes, and a packet of that IP version.
//! * Bytes behind the PPPoE length, and behind the length of an IP packet, are padding and cut off.
//! * Whatever is wrong has a reason of its own ([`Dropped`]). No input panics; nothing is allocated or copied but MAC
//!   addresses and headers.
//!
//! IEEE 802.1Q-2022 clause 9, RFC 2516 sections 4 to 7, RFC 1661 section 2, RFC 791, RFC 8200.

#[cfg(test)]
mod tests;

use crate::dropped::Dropped;
use offload::Prefix;
use std::ops::Range;
use thiserror::Error;
use wire::IpVersion;
use wire::emit::{Encapsulation, MAX_TAGS};
use wire::error::Rule;
use wire::ethernet::{self, EtherType, MacAddress};
use wire::ppp::{self, Compression, PppProtocol};
use wire::pppoe::{self, Code};
use wire::vlan::{TAG_LENGTH, Tag, Tci};
use wire::{ipv4, ipv6};

/// Bytes of both MAC addresses.
const ADDRESSES: usize = 12;
/// Bytes of a PPP protocol field on PPPoE.
const PPP_LENGTH: usize = 2;
/// The longest head of any link: all tags and PPPoE.
pub(crate) const LONGEST_HEAD: usize =
    ethernet::Header::LENGTH + MAX_TAGS * TAG_LENGTH + pppoe::Header::LENGTH + PPP_LENGTH;

pub use kernel::tun::Form;

/// Why an encapsulation makes no link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FramingError {
    /// Neither tag nor PPPoE.
    #[error("`none` is no encapsulation: packets without tags and PPPoE are the parent's own")]
    Nothing,
    #[error(
        "a link has VLAN tags and PPPoE; MPLS labels are swapped by routers along a path and make no interface"
    )]
    Mpls,
    /// PPPoE without a session.
    #[error(
        "a link has a fixed PPPoE session: write `pppoe:SESSION@MAC`, with the session id and the peer's address"
    )]
    NoSession,
    /// PPPoE without a peer.
    #[error("a link has a fixed PPPoE peer: write `pppoe:SESSION@MAC`, with its MAC address")]
    NoPeer,
    /// A peer to which frames cannot be sent.
    #[error("{0} is no address of a single station, which a PPPoE peer is")]
    GroupPeer(MacAddress),
    #[error("{0} is the parent's own address, and `pppoe:SESSION@MAC` has that of the other end")]
    OwnPeer(MacAddress),
}

/// A PPPoE session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Session {
    id: u16,
    peer: MacAddress,
}

/// The framing of one link. See the [module](self).
#[derive(Clone, Debug)]
pub struct Framing {
    encapsulation: Encapsulation,
    local: MacAddress,
    session: Option<Session>,
    prefix: Option<Box<Prefix>>,
    is_managed: bool,
}

/// The bytes in front of what is sent, from the destination address on.
#[derive(Clone, Debug)]
pub struct Head {
    bytes: [u8; LONGEST_HEAD],
    length: usize,
}

impl Head {
    /// Without any bytes.
    pub const fn new() -> Head {
        Head { bytes: [0; LONGEST_HEAD], length: 0 }
    }

    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

impl Default for Head {
    fn default() -> Head {
        Head::new()
    }
}

impl Framing {
    /// That of a link of `encapsulation` over a parent whose MAC address is `local`.
    pub fn new(encapsulation: &Encapsulation, local: MacAddress) -> Result<Framing, FramingError> {
        if !encapsulation.labels().is_empty() {
            return Err(FramingError::Mpls);
        }
        let session = match encapsulation.pppoe() {
            None if encapsulation.tags().is_empty() => return Err(FramingError::Nothing),
            None => None,
            Some(pppoe) => {
                let id = pppoe.session.ok_or(FramingError::NoSession)?;
                let peer = pppoe.peer.ok_or(FramingError::NoPeer)?;
                if peer.is_multicast() || peer == MacAddress::default() {
                    return Err(FramingError::GroupPeer(peer));
                }
                if peer == local {
                    return Err(FramingError::OwnPeer(peer));
                }
                Some(Session { id, peer })
            }
        };
        let prefix = session.and_then(|session| Prefix::new(encapsulation, session.peer, local).ok());
        let prefix = prefix.map(Box::new);
        Ok(Framing { encapsulation: *encapsulation, local, session, prefix, is_managed: false })
    }

    /// The same of a session that this process negotiates: frames of LCP, authentication and network control protocols are
    /// for its control socket ([`crate::pppoe::ControlSocket`]), do not get to the data path, and are not counted there.
    #[must_use]
    pub(crate) fn managed(self) -> Framing {
        Framing { is_managed: true, ..self }
    }

    /// What goes in front of every packet of a session.
    #[inline]
    pub(crate) fn prefix(&self) -> Option<&Prefix> {
        self.prefix.as_deref()
    }

    /// Whether somebody else takes what is no data of the session.
    pub(crate) const fn is_managed(&self) -> bool {
        self.is_managed
    }

    /// What the interface carries.
    pub const fn form(&self) -> Form {
        if self.session.is_some() { Form::Packets } else { Form::Frames }
    }

    pub const fn encapsulation(&self) -> &Encapsulation {
        &self.encapsulation
    }

    /// MAC address of this end.
    pub(crate) const fn local(&self) -> MacAddress {
        self.local
    }

    /// Writes into `head` what goes in front of a packet or frame of the interface, and gives the rest of the frame: the
    /// packet, or the frame from its EtherType on.
    ///
    /// # Errors
    ///
    /// [`Dropped::IpVersion`], [`Dropped::TooLong`] of packets; [`Dropped::Short`], [`Dropped::MoreTags`] of frames.
    #[inline]
    pub fn encapsulate<'p>(&self, from_interface: &'p [u8], head: &mut Head) -> Result<&'p [u8], Dropped> {
        match self.session {
            Some(session) => self.encapsulate_packet(session, from_interface, head),
            None => self.encapsulate_frame(from_interface, head),
        }
    }

    fn encapsulate_packet<'p>(
        &self,
        session: Session,
        packet: &'p [u8],
        head: &mut Head,
    ) -> Result<&'p [u8], Dropped> {
        let version = version(packet).ok_or(Dropped::IpVersion)?;
        let written =
            self.encapsulation.emit(session.peer, self.local, version, packet.len(), &mut head.bytes);
        // The head has room; what can fail is the length, which PPPoE counts in 16 bits.
        head.length = written.map_err(|_| Dropped::TooLong)?;
        Ok(packet)
    }

    fn encapsulate_frame<'p>(&self, frame: &'p [u8], head: &mut Head) -> Result<&'p [u8], Dropped> {
        let (addresses, rest) = frame.split_first_chunk::<ADDRESSES>().ok_or(Dropped::Short)?;
        if word(rest, 0).ok_or(Dropped::Short).map(EtherType)?.is_tag() {
            return Err(Dropped::MoreTags);
        }
        let (place, tags) = head.bytes.split_first_chunk_mut::<ADDRESSES>().ok_or(Dropped::Short)?;
        *place = *addresses;
        let own = self.encapsulation.tags();
        for (tag, place) in own.iter().zip(tags.as_chunks_mut::<TAG_LENGTH>().0) {
            *place = bytes_of(*tag);
        }
        head.length = ADDRESSES + own.len() * TAG_LENGTH;
        Ok(rest)
    }

    /// Where in a received frame, from its destination address on, with every tag in its place, the packet or frame for
    /// the interface lies. Of the form [`Form::Frames`] it is moved together in place, which destroys the tags.
    #[inline]
    pub fn decapsulate(&self, frame: &mut [u8]) -> Result<Range<usize>, Dropped> {
        let under = self.under_tags(frame)?;
        match self.session {
            Some(session) => self.decapsulate_packet(session, frame, under),
            None => self.decapsulate_frame(frame, under),
        }
    }

    fn under_tags(&self, frame: &[u8]) -> Result<usize, Dropped> {
        let mut at = ADDRESSES;
        for tag in self.encapsulation.tags() {
            let tpid = word(frame, at).ok_or(Dropped::Short)?;
            if tpid != tag.tpid.0 {
                return Err(Dropped::OtherVlan);
            }
            let tci = Tci(word(frame, at + 2).ok_or(Dropped::Short)?);
            if tci.vid() != tag.tci.vid() {
                return Err(Dropped::OtherVlan);
            }
            at += TAG_LENGTH;
        }
        match EtherType(word(frame, at).ok_or(Dropped::Short)?).is_tag() {
            true => Err(Dropped::MoreTags),
            false => Ok(at),
        }
    }

    fn decapsulate_packet(
        &self,
        session: Session,
        frame: &[u8],
        under: usize,
    ) -> Result<Range<usize>, Dropped> {
        if word(frame, under) != Some(EtherType::PPPOE_SESSION.0) {
            return Err(Dropped::NotPppoe);
        }
        let at = under + 2;
        let (header, rest) = frame
            .get(at..)
            .and_then(|rest| rest.split_first_chunk::<{ pppoe::Header::LENGTH }>())
            .ok_or(Dropped::Short)?;
        let header = pppoe::Header::of(header);
        header.check_version().map_err(|_| Dropped::PppoeVersion)?;
        if header.code() != Code::SESSION {
            return Err(Dropped::PppoeCode);
        }
        if header.session() != session.id {
            return Err(Dropped::OtherSession);
        }
        let addresses = frame.first_chunk().ok_or(Dropped::Short).map(ethernet::Header::of)?;
        if addresses.source() != session.peer {
            return Err(Dropped::OtherPeer);
        }
        if addresses.destination() != self.local {
            return Err(Dropped::OtherStation);
        }
        let payload = rest.get(..usize::from(header.length())).ok_or(Dropped::PppoeLength)?;
        let (version, taken) = ip_of_ppp(payload)?;
        let packet = payload.get(taken..).unwrap_or_default();
        let start = at + pppoe::Header::LENGTH + taken;
        Ok(start..start + ip_length(version, packet)?)
    }

    fn decapsulate_frame(&self, frame: &mut [u8], under: usize) -> Result<Range<usize>, Dropped> {
        let version = match word(frame, under).map(EtherType) {
            Some(EtherType::IPV4) => Some(IpVersion::V4),
            Some(EtherType::IPV6) => Some(IpVersion::V6),
            _ => None,
        };
        let end = match version {
            Some(version) => under + 2 + ip_length(version, frame.get(under + 2..).unwrap_or_default())?,
            None => frame.len(),
        };
        let start = under - ADDRESSES;
        if let Some(moved) = frame.get_mut(..under) {
            moved.copy_within(..ADDRESSES, start);
        }
        Ok(start..end)
    }
}

/// The four bytes of a tag.
pub const fn bytes_of(tag: Tag) -> [u8; TAG_LENGTH] {
    let ([a, b], [c, d]) = (tag.tpid.0.to_be_bytes(), tag.tci.0.to_be_bytes());
    [a, b, c, d]
}

/// The IP version that the PPP protocol field announces, and the bytes of the field.
pub fn ip_of_ppp(payload: &[u8]) -> Result<(IpVersion, usize), Dropped> {
    /// Network control protocols and link control, from here to the end (RFC 1661 section 2).
    const CONTROL: u16 = 0x8000;
    let (protocol, taken) =
        ppp::protocol(payload, Compression::Forbidden).map_err(|error| match error.rule {
            Rule::Compressed => Dropped::PppCompressed,
            Rule::Cut => Dropped::Short,
            _ => Dropped::PppProtocol,
        })?;
    match protocol {
        PppProtocol::IPV4 => Ok((IpVersion::V4, taken)),
        PppProtocol::IPV6 => Ok((IpVersion::V6, taken)),
        PppProtocol(CONTROL..) => Err(Dropped::PppControl),
        _ => Err(Dropped::PppProtocol),
    }
}

/// Bytes of the IP packet at the start of `bytes`, which must be of `version`.
pub fn ip_length(announced: IpVersion, bytes: &[u8]) -> Result<usize, Dropped> {
    if version(bytes).ok_or(if bytes.is_empty() { Dropped::Short } else { Dropped::IpVersion })? != announced
    {
        return Err(Dropped::IpVersion);
    }
    let wrong = |_| Dropped::IpLength;
    match announced {
        IpVersion::V4 => {
            let header = ipv4::Header::of(bytes.first_chunk().ok_or(Dropped::Short)?);
            header.check_header().map_err(wrong)?;
            header.check_length(bytes.len()).map_err(wrong)
        }
        IpVersion::V6 => {
            let header = ipv6::Header::of(bytes.first_chunk().ok_or(Dropped::Short)?);
            let behind = bytes.len() - ipv6::Header::LENGTH;
            header.check_length(behind).map(|length| ipv6::Header::LENGTH + length).map_err(wrong)
        }
    }
}

/// The version in the first four bits; `None`: neither 4 nor 6, or no byte at all.
#[inline]
pub fn version(packet: &[u8]) -> Option<IpVersion> {
    match packet.first()? >> 4 {
        4 => Some(IpVersion::V4),
        6 => Some(IpVersion::V6),
        _ => None,
    }
}

/// Two bytes in network order.
#[inline]
pub fn word(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|word| u16::from_be_bytes(*word))
}

/// Writes two bytes in network order, where there is room.
#[inline]
pub(crate) fn put_word(bytes: &mut [u8], at: usize, value: u16) {
    if let Some(place) = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *place = value.to_be_bytes();
    }
}
