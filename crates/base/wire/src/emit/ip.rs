//! Representations of the IPv4 and IPv6 headers.

use super::checksum::Sum;
use super::{Emit, EmitError, fits, multiple, place};
use crate::error::{Field, Layer};
use crate::ip::IpProtocol;
use crate::{ipv4, ipv6};
use core::net::{Ipv4Addr, Ipv6Addr};

/// IPv4 header with options (RFC 791 section 3.1). View: [`ipv4::Header`]. The header checksum is computed
/// when the header is written.
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

impl Ipv4<'_> {
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
        let bytes = place(Layer::Ipv4, self.length(), buffer)?.put(&[version_length, self.traffic_class]);
        let bytes = bytes.u16(self.total_length).u16(self.identification).u16(flags | self.fragment_offset);
        let bytes = bytes.put(&[self.ttl, self.protocol.0]).u16(sum.finish());
        Ok(bytes.put(&source).put(&destination).put(self.options).length())
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
    /// A packet of so many bytes behind its header, of flow label 0 and the hop limit 64 (RFC 1700).
    pub const fn new(
        next_header: IpProtocol,
        source: Ipv6Addr,
        destination: Ipv6Addr,
        payload_length: u16,
    ) -> Ipv6 {
        let (traffic_class, flow_label, hop_limit) = (0, 0, 64);
        Ipv6 { traffic_class, flow_label, payload_length, next_header, hop_limit, source, destination }
    }
}

impl Emit for Ipv6 {
    fn length(&self) -> usize {
        ipv6::Header::LENGTH
    }

    fn emit(&self, buffer: &mut [u8]) -> Result<usize, EmitError> {
        fits(Layer::Ipv6, Field::Count, self.flow_label as usize, 0xf_ffff)?;
        let first = 6 << 28 | u32::from(self.traffic_class) << 20 | self.flow_label;
        let bytes = place(Layer::Ipv6, self.length(), buffer)?.u32(first).u16(self.payload_length);
        let bytes = bytes.put(&[self.next_header.0, self.hop_limit]);
        Ok(bytes.put(&self.source.octets()).put(&self.destination.octets()).length())
    }
}
