//! Representations of the IPv4 and IPv6 headers.

use super::checksum::Sum;
use super::{Emit, EmitError, cut, fits, multiple, place};
use crate::error::{Error, Field, Layer};
use crate::ip::IpProtocol;
use crate::{ipv4, ipv6};
use core::net::{Ipv4Addr, Ipv6Addr};

/// IPv4 header with options (RFC 791 section 3.1). View: [`ipv4::Header`]. The header checksum is computed
/// when the header is written, and not verified when it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4<'a> {
    pub traffic_class: u8,
    /// Bytes of the packet, this header included.
    pub total_length: u16,
    pub identification: u16,
    pub dont_fragment: bool,
    pub more_fragments: bool,
    /// In units of eight bytes, 13 bits.
    pub fragment_offset: u16,
    pub ttl: u8,
    pub protocol: IpProtocol,
    pub source: Ipv4Addr,
    pub destination: Ipv4Addr,
    /// Options, padded to a multiple of four bytes, at most 40.
    pub options: &'a [u8],
}

impl<'a> Ipv4<'a> {
    /// The most option bytes: IHL counts 15 words.
    pub const MAX_OPTIONS: usize = 40;

    /// A packet of so many bytes, its header of 20 included, in one piece: not to be fragmented, with an identification of 0
    /// (RFC 6864 section 4), a time to live of 64 (RFC 1700) and no options.
    pub const fn new(
        protocol: IpProtocol,
        source: Ipv4Addr,
        destination: Ipv4Addr,
        total_length: u16,
    ) -> Ipv4<'static> {
        Ipv4 {
            traffic_class: 0,
            total_length,
            identification: 0,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: 0,
            ttl: 64,
            protocol,
            source,
            destination,
            options: &[],
        }
    }

    /// Reads the header at the start of `octets`. Errors: not whole, another version, IHL below five. The
    /// total length is for the caller to compare ([`ipv4::Header::check_length`]). The reserved flag is not
    /// kept.
    pub fn parse(octets: &'a [u8]) -> Result<Ipv4<'a>, Error> {
        let cut = |needs| cut(Layer::Ipv4, octets, needs);
        let header = octets.first_chunk().map(ipv4::Header::of).ok_or(cut(ipv4::Header::LENGTH))?;
        header.check_header()?;
        let length = header.header_length();
        Ok(Ipv4 {
            traffic_class: header.traffic_class(),
            total_length: header.total_length(),
            identification: header.identification(),
            dont_fragment: header.dont_fragment(),
            more_fragments: header.more_fragments(),
            fragment_offset: header.fragment_offset(),
            ttl: header.ttl(),
            protocol: header.protocol(),
            source: header.source(),
            destination: header.destination(),
            options: octets.get(ipv4::Header::LENGTH..length).ok_or(cut(length))?,
        })
    }
}

impl Emit for Ipv4<'_> {
    fn length(&self) -> usize {
        ipv4::Header::LENGTH + self.options.len()
    }

    fn emit(&self, buffer: &mut [u8]) -> Result<usize, EmitError> {
        multiple(Layer::Ipv4, Field::Option, self.options.len(), 0, 4)?;
        fits(Layer::Ipv4, Field::Option, self.options.len(), Ipv4::MAX_OPTIONS)?;
        fits(Layer::Ipv4, Field::FragmentOffset, usize::from(self.fragment_offset), 0x1fff)?;
        let version_length = 0x40 | (self.length() / 4) as u8;
        let flags = u16::from(self.dont_fragment) << 14 | u16::from(self.more_fragments) << 13;
        let (source, destination) = (self.source.octets(), self.destination.octets());
        let sum = Sum::ZERO
            .bytes(&[version_length, self.traffic_class])
            .word(self.total_length)
            .word(self.identification)
            .word(flags | self.fragment_offset)
            .bytes(&[self.ttl, self.protocol.0])
            .bytes(&source)
            .bytes(&destination)
            .bytes(self.options);
        let octets = place(Layer::Ipv4, self.length(), buffer)?.put(&[version_length, self.traffic_class]);
        let octets = octets.u16(self.total_length).u16(self.identification).u16(flags | self.fragment_offset);
        let octets = octets.put(&[self.ttl, self.protocol.0]).u16(sum.finish());
        Ok(octets.put(&source).put(&destination).put(self.options).length())
    }
}

/// IPv6 header (RFC 8200 section 3). View: [`ipv6::Header`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6 {
    pub traffic_class: u8,
    /// 20 bits.
    pub flow_label: u32,
    /// Bytes behind this header; zero in a jumbogram.
    pub payload_length: u16,
    /// Protocol of what follows directly.
    pub next_header: IpProtocol,
    pub hop_limit: u8,
    pub source: Ipv6Addr,
    pub destination: Ipv6Addr,
}

impl Ipv6 {
    /// Reads the header at the start of `octets`. Errors: not whole, another version. The payload length is
    /// for the caller to compare ([`ipv6::Header::check_length`]).
    pub fn parse(octets: &[u8]) -> Result<Ipv6, Error> {
        let cut = cut(Layer::Ipv6, octets, ipv6::Header::LENGTH);
        let header = octets.first_chunk().map(ipv6::Header::of).ok_or(cut)?;
        header.check_version()?;
        Ok(Ipv6 {
            traffic_class: header.traffic_class(),
            flow_label: header.flow_label(),
            payload_length: header.payload_length(),
            next_header: header.next_header(),
            hop_limit: header.hop_limit(),
            source: header.source(),
            destination: header.destination(),
        })
    }
}

impl Emit for Ipv6 {
    fn length(&self) -> usize {
        ipv6::Header::LENGTH
    }

    fn emit(&self, buffer: &mut [u8]) -> Result<usize, EmitError> {
        fits(Layer::Ipv6, Field::Count, self.flow_label as usize, 0xf_ffff)?;
        let first = 6 << 28 | u32::from(self.traffic_class) << 20 | self.flow_label;
        let octets = place(Layer::Ipv6, self.length(), buffer)?.u32(first).u16(self.payload_length);
        let octets = octets.put(&[self.next_header.0, self.hop_limit]);
        Ok(octets.put(&self.source.octets()).put(&self.destination.octets()).length())
    }
}
