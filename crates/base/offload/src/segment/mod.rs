//! A super-packet becomes segments (GSO).
//!
//! ```
//! use rxlane_offload::{NetHeader, Prefix, Segments};
//! # use rxlane_offload::segment::SegmentError;
//! # fn send(_: &[std::io::IoSlice]) {}
//!
//! # fn forward(prefix: &Prefix, buffer: &mut [u8]) -> Result<(), Box<dyn std::error::Error>> {
//! // What a read of TUN gave: a virtio header, then a packet.
//! let (header, packet) = buffer.split_first_chunk_mut().ok_or("a short read")?;
//! let mut segments = Segments::new(prefix, &NetHeader::parse(header), packet)?;
//! let mut headers = [0; 256];
//! while let Some(segment) = segments.emit(&mut headers)? {
//!     let frame = [&headers[..segment.header_length], segment.payload];
//!     send(&frame.map(std::io::IoSlice::new));
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What each segment gets
//!
//! | field | value |
//! | --- | --- |
//! | encapsulation | as it is; the PPPoE length is that of the segment |
//! | IPv4 total length, IPv6 payload length, UDP length | those of the segment |
//! | IPv4 identification | one more for each segment, modulo 65536, whatever DF says (Linux: `inet_gso_segment`); with [`Segments::with_fixed_identification`] and DF the same for all |
//! | IPv4 options, IPv6 extension headers, TCP options | as they are |
//! | TCP sequence number | that of its first byte |
//! | TCP FIN, PSH | in the last segment only |
//! | TCP CWR | in the first segment only (RFC 3168 section 6.1.2; Linux: `tcp_gso_segment`) |
//! | other TCP flags, acknowledgment, window, urgent pointer | as they are |
//! | checksums | of the segment; a UDP checksum of zero becomes all ones |
//!
//! A checksum is made from the partial one of the super-packet, so that a routing header, whose last node counts in the
//! pseudo header, needs no care: whoever made the super-packet has taken it.

mod error;
mod layout;

pub use error::{RoomError, SegmentError};
pub(crate) use layout::{TCP_CHECKSUM, Transport, UDP_CHECKSUM};

use crate::checksum::{Sum, complete};
use crate::prefix::Prefix;
use crate::virtio::NetHeader;
use layout::Layout;
use wire::emit::Tcp;
use wire::{IpVersion, ipv6};

/// CWR, the highest flag of TCP (RFC 3168 section 6.1).
pub(crate) const CWR: u8 = 0x80;

/// A frame: the headers that [`Segments::emit`] has written, then the payload, which stays where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'p> {
    /// Bytes written into the buffer.
    pub header_length: usize,
    /// Where the payload starts in the packet, bytes.
    pub start: usize,
    /// The rest of the frame, a part of the super-packet. Empty where it has no payload.
    pub payload: &'p [u8],
}

/// The segments of a packet, in order.
///
/// All headers are checked, and everything that segments share is summed, when the value is made; a segment then costs a
/// copy of the headers and one pass over its payload. Nothing is allocated.
#[derive(Clone, Debug)]
pub struct Segments<'p> {
    prefix: &'p Prefix,
    packet: &'p [u8],
    version: IpVersion,
    parts: Option<Parts>,
    /// Where the payload of the next segment starts.
    at: usize,
    /// Segments that are left.
    left: usize,
}

/// What the segments of a super-packet share.
#[derive(Clone, Copy, Debug)]
struct Parts {
    layout: Layout,
    size: usize,
    /// Of the next segment, and what the one after it has more.
    identification: u16,
    step: u16,
    dont_fragment: bool,
    sequence: u32,
    /// The word of data offset and flags, as in the super-packet.
    flags: u16,
    is_first: bool,
    /// The IPv4 header without length, identification, checksum.
    network: Sum,
    /// Pseudo header and transport header without lengths, sequence number, flags.
    transport: Sum,
}

impl<'p> Segments<'p> {
    /// The segments of `packet`, an IP packet with what `header` says about it, each behind `prefix`.
    ///
    /// A packet that is no super-packet is one segment. If its checksum is partial, it is completed in place; nothing
    /// else of it is looked at but the version. A super-packet whose payload fits one segment is one, too.
    ///
    /// Errors: see [`SegmentError`]; the packet is then as it was.
    pub fn new(
        prefix: &'p Prefix,
        header: &NetHeader,
        packet: &'p mut [u8],
    ) -> Result<Segments<'p>, SegmentError> {
        if header.is_super_packet() {
            return Segments::of(prefix, header, packet);
        }
        // What can be wrong is looked at first, so that the packet is as it was then; a checksum may be anywhere, in front
        // of the header that is looked at, too.
        let version = Segments::of(prefix, header, packet)?.version;
        if header.needs_checksum() {
            complete(packet, header.checksum_start.into(), header.checksum_offset.into())?;
        }
        Ok(Segments { prefix, packet, version, parts: None, at: 0, left: 1 })
    }

    /// The same of a packet that is not to be changed: of one that is no super-packet the checksum is left as it is, for
    /// the caller to complete ([`complete`]).
    ///
    /// Errors: see [`SegmentError`].
    pub fn of(
        prefix: &'p Prefix,
        header: &NetHeader,
        packet: &'p [u8],
    ) -> Result<Segments<'p>, SegmentError> {
        let version = layout::version(packet)?;
        if !header.is_super_packet() {
            if packet.len() > prefix.longest_packet() {
                return Err(SegmentError::TooLong { bytes: packet.len(), most: prefix.longest_packet() });
            }
            if header.gso_type != NetHeader::NONE {
                return Err(SegmentError::GsoType { found: header.gso_type });
            }
            return Ok(Segments { prefix, packet, version, parts: None, at: 0, left: 1 });
        }
        let layout = Layout::of(header, packet)?;
        let parts = Parts::of(layout, packet, header.gso_size.into());
        let payload = packet.len() - layout.length;
        let longest = layout.length + payload.min(parts.size);
        if longest > prefix.longest_packet() {
            return Err(SegmentError::TooLong { bytes: longest, most: prefix.longest_packet() });
        }
        let left = payload.div_ceil(parts.size).max(1);
        Ok(Segments { prefix, packet, version, parts: Some(parts), at: layout.length, left })
    }

    /// The same with one IPv4 identification for all segments, where DF is set: such packets are never fragmented, so
    /// that the field means nothing (RFC 6864 section 4.1). Where DF is not set, and for IPv6, nothing changes.
    #[must_use]
    pub fn with_fixed_identification(mut self) -> Segments<'p> {
        if let Some(parts) = &mut self.parts
            && parts.dont_fragment
        {
            parts.step = 0;
        }
        self
    }

    /// Segments that are left.
    pub const fn left(&self) -> usize {
        self.left
    }

    /// Bytes that [`Segments::emit`] writes for each segment.
    pub fn header_length(&self) -> usize {
        self.prefix.length() + self.parts.map_or(0, |parts| parts.layout.length)
    }

    /// Writes the headers of the next segment at the start of `buffer`. `None` when there is none left. Error: the
    /// buffer has less than [`Segments::header_length`] bytes; the segment is then still the next.
    #[inline]
    pub fn emit(&mut self, buffer: &mut [u8]) -> Result<Option<Segment<'p>>, RoomError> {
        if self.left == 0 {
            return Ok(None);
        }
        let header_length = self.header_length();
        let available = buffer.len();
        let short = RoomError { needed: header_length, available };
        let buffer = buffer.get_mut(..header_length).ok_or(short)?;
        let (front, inner) = buffer.split_at_mut_checked(self.prefix.length()).ok_or(short)?;
        let rest = self.packet.get(self.at..).unwrap_or_default();
        let Some(parts) = &mut self.parts else {
            self.prefix.write(self.version, rest.len(), front);
            self.left = 0;
            return Ok(Some(Segment { header_length, start: self.at, payload: rest }));
        };
        let payload = rest.get(..parts.size).unwrap_or(rest);
        self.prefix.write(self.version, inner.len() + payload.len(), front);
        let start = self.at;
        self.left -= 1;
        self.at += payload.len();
        if let Some(headers) = self.packet.get(..inner.len()) {
            inner.copy_from_slice(headers);
        }
        parts.write(inner, payload, self.left == 0);
        Ok(Some(Segment { header_length, start, payload }))
    }
}

impl Parts {
    /// `packet` has the headers of `layout`.
    fn of(layout: Layout, packet: &[u8], size: usize) -> Parts {
        let (network, transport) = packet.split_at_checked(layout.network_length).unwrap_or_default();
        let length = transport.len();
        let transport = transport.get(..layout.length - layout.network_length).unwrap_or_default();
        let is_v4 = layout.version == IpVersion::V4;
        let (sequence, flags) = match layout.transport {
            Transport::Tcp => (u32::from_be_bytes(bytes_at(transport, 4)), word(transport, 12)),
            Transport::Udp => (0, 0),
        };
        Parts {
            layout,
            size,
            identification: if is_v4 { word(network, 4) } else { 0 },
            step: 1,
            dont_fragment: is_v4 && word(network, 6) & 0x4000 != 0,
            sequence,
            flags,
            is_first: true,
            network: if is_v4 { without(network, &[2, 4, 10], 0) } else { Sum::ZERO },
            transport: match layout.transport {
                Transport::Tcp => without(transport, &[4, 6, 12], length),
                Transport::Udp => without(transport, &[4], length),
            },
        }
    }

    /// Makes a copy of the headers those of the next segment.
    #[inline]
    fn write(&mut self, headers: &mut [u8], payload: &[u8], is_last: bool) {
        let packet_length = headers.len() + payload.len();
        let transport_length = packet_length - self.layout.network_length;
        let Some((network, transport)) = headers.split_at_mut_checked(self.layout.network_length) else {
            return;
        };
        match self.layout.version {
            IpVersion::V4 => self.write_ipv4(network, packet_length),
            IpVersion::V6 => put(network, 4, (packet_length - ipv6::Header::LENGTH) as u16),
        }
        let sum = self.transport.plus(Sum::word(transport_length as u16)).plus(Sum::of(payload));
        match self.layout.transport {
            Transport::Tcp => self.write_tcp(transport, sum, is_last),
            Transport::Udp => {
                put(transport, 4, transport_length as u16);
                put(transport, UDP_CHECKSUM, sum.plus(Sum::word(transport_length as u16)).udp_checksum());
            }
        }
        self.sequence = self.sequence.wrapping_add(payload.len() as u32);
        self.is_first = false;
    }

    #[inline]
    fn write_ipv4(&mut self, header: &mut [u8], packet_length: usize) {
        let sum = self.network.plus(Sum::word(packet_length as u16)).plus(Sum::word(self.identification));
        put(header, 2, packet_length as u16);
        put(header, 4, self.identification);
        put(header, 10, sum.checksum());
        self.identification = self.identification.wrapping_add(self.step);
    }

    #[inline]
    fn write_tcp(&self, header: &mut [u8], sum: Sum, is_last: bool) {
        let mut taken = 0;
        if !is_last {
            taken |= Tcp::FIN | Tcp::PSH;
        }
        if !self.is_first {
            taken |= CWR;
        }
        let flags = self.flags & !u16::from(taken);
        let (high, low) = ((self.sequence >> 16) as u16, self.sequence as u16);
        put(header, 4, high);
        put(header, 6, low);
        put(header, 12, flags);
        let changed = Sum::word(high).plus(Sum::word(low)).plus(Sum::word(flags));
        put(header, TCP_CHECKSUM, sum.plus(changed).checksum());
    }
}

/// The sum of a header without the words at `places`, and without `length`.
fn without(header: &[u8], places: &[usize], length: usize) -> Sum {
    let all = Sum::of(header).minus(Sum::word(length as u16));
    places.iter().fold(all, |sum, at| sum.minus(Sum::word(word(header, *at))))
}

/// The bytes at `at`; zeros where there are none.
#[inline(always)]
pub(crate) fn bytes_at<const N: usize>(header: &[u8], at: usize) -> [u8; N] {
    header.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}

#[inline(always)]
pub(crate) fn word(header: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(bytes_at(header, at))
}

#[inline(always)]
pub(crate) fn put(header: &mut [u8], at: usize, value: u16) {
    if let Some(place) = header.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *place = value.to_be_bytes();
    }
}
