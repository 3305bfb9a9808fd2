//! TCP (RFC 9293), UDP (RFC 768), SCTP (RFC 9260), ICMP (RFC 792) and ICMPv6 (RFC 4443): the fixed headers.

use crate::error::{Error, Field, Layer, Rule};

/// Bytes of the two ports at the start of a TCP, UDP or SCTP header.
pub const PORTS_LENGTH: usize = 4;

/// View of a TCP header without options (RFC 9293 section 3.1).
#[derive(Clone, Copy)]
pub struct Tcp<'a>(&'a [u8; Tcp::LENGTH]);

impl<'a> Tcp<'a> {
    /// Bytes of the fixed part.
    pub const LENGTH: usize = 20;

    /// View over the 20 bytes.
    #[inline(always)]
    pub const fn of(octets: &'a [u8; Tcp::LENGTH]) -> Tcp<'a> {
        Tcp(octets)
    }

    /// Source port, host order.
    pub const fn source_port(&self) -> u16 {
        u16::from_be_bytes([self.0[0], self.0[1]])
    }

    /// Destination port, host order.
    pub const fn destination_port(&self) -> u16 {
        u16::from_be_bytes([self.0[2], self.0[3]])
    }

    /// Sequence number.
    pub const fn sequence(&self) -> u32 {
        u32::from_be_bytes([self.0[4], self.0[5], self.0[6], self.0[7]])
    }

    /// Acknowledgment number.
    pub const fn acknowledgment(&self) -> u32 {
        u32::from_be_bytes([self.0[8], self.0[9], self.0[10], self.0[11]])
    }

    /// Bytes of the header, options included.
    #[inline(always)]
    pub const fn header_length(&self) -> usize {
        (self.0[12] >> 4) as usize * 4
    }

    /// CWR, ECE, URG, ACK, PSH, RST, SYN, FIN from the highest bit down.
    pub const fn flags(&self) -> u8 {
        self.0[13]
    }

    /// Window, as found.
    pub const fn window(&self) -> u16 {
        u16::from_be_bytes([self.0[14], self.0[15]])
    }

    /// Checksum, as found.
    pub const fn checksum(&self) -> u16 {
        u16::from_be_bytes([self.0[16], self.0[17]])
    }

    /// Urgent pointer.
    pub const fn urgent(&self) -> u16 {
        u16::from_be_bytes([self.0[18], self.0[19]])
    }

    /// The data offset: at least five words, at most the `available` bytes of the segment.
    #[inline(always)]
    pub const fn check(&self, available: usize) -> Result<(), Error> {
        let length = self.header_length();
        if length >= Tcp::LENGTH && length <= available {
            return Ok(());
        }
        let (rule, limit) =
            if length < Tcp::LENGTH { (Rule::Below, Tcp::LENGTH) } else { (Rule::Exceeds, available) };
        Err(Error::new(Layer::Tcp, Field::HeaderLength, rule, length, limit))
    }
}

/// View of a UDP header (RFC 768).
#[derive(Clone, Copy)]
pub struct Udp<'a>(&'a [u8; Udp::LENGTH]);

impl<'a> Udp<'a> {
    /// Bytes.
    pub const LENGTH: usize = 8;

    /// View over the eight bytes.
    #[inline(always)]
    pub const fn of(octets: &'a [u8; Udp::LENGTH]) -> Udp<'a> {
        Udp(octets)
    }

    /// Source port, host order.
    pub const fn source_port(&self) -> u16 {
        u16::from_be_bytes([self.0[0], self.0[1]])
    }

    /// Destination port, host order.
    pub const fn destination_port(&self) -> u16 {
        u16::from_be_bytes([self.0[2], self.0[3]])
    }

    /// Bytes of header and data; zero in a jumbogram.
    #[inline(always)]
    pub const fn length(&self) -> u16 {
        u16::from_be_bytes([self.0[4], self.0[5]])
    }

    /// Checksum, as found.
    pub const fn checksum(&self) -> u16 {
        u16::from_be_bytes([self.0[6], self.0[7]])
    }

    /// The length: at least eight, at most the `available` bytes of the datagram. Zero is legal in a
    /// jumbogram (RFC 2675 section 4), where more than 65,535 bytes are available.
    #[inline(always)]
    pub const fn check(&self, available: usize) -> Result<(), Error> {
        let length = self.length() as usize;
        if length >= Udp::LENGTH && length <= available || length == 0 && available > crate::ip::MAX_LENGTH {
            return Ok(());
        }
        let (rule, limit) =
            if length < Udp::LENGTH { (Rule::Below, Udp::LENGTH) } else { (Rule::Exceeds, available) };
        Err(Error::new(Layer::Udp, Field::Length, rule, length, limit))
    }
}

/// View of an SCTP common header (RFC 9260 section 3.1).
#[derive(Clone, Copy)]
pub struct Sctp<'a>(&'a [u8; Sctp::LENGTH]);

impl<'a> Sctp<'a> {
    /// Bytes.
    pub const LENGTH: usize = 12;

    /// View over the 12 bytes.
    pub const fn of(octets: &'a [u8; Sctp::LENGTH]) -> Sctp<'a> {
        Sctp(octets)
    }

    /// Source port, host order.
    pub const fn source_port(&self) -> u16 {
        u16::from_be_bytes([self.0[0], self.0[1]])
    }

    /// Destination port, host order.
    pub const fn destination_port(&self) -> u16 {
        u16::from_be_bytes([self.0[2], self.0[3]])
    }

    /// Verification tag.
    pub const fn verification_tag(&self) -> u32 {
        u32::from_be_bytes([self.0[4], self.0[5], self.0[6], self.0[7]])
    }

    /// CRC32c checksum, as found.
    pub const fn checksum(&self) -> u32 {
        u32::from_be_bytes([self.0[8], self.0[9], self.0[10], self.0[11]])
    }
}

/// View of the common part of an ICMP (RFC 792) or ICMPv6 (RFC 4443 section 2.1) header.
#[derive(Clone, Copy)]
pub struct Icmp<'a>(&'a [u8; Icmp::LENGTH]);

impl<'a> Icmp<'a> {
    /// Bytes that every message has.
    pub const LENGTH: usize = 4;

    /// View over the four bytes.
    pub const fn of(octets: &'a [u8; Icmp::LENGTH]) -> Icmp<'a> {
        Icmp(octets)
    }

    /// Message type.
    pub const fn kind(&self) -> u8 {
        self.0[0]
    }

    /// Message code.
    pub const fn code(&self) -> u8 {
        self.0[1]
    }

    /// Checksum, as found.
    pub const fn checksum(&self) -> u16 {
        u16::from_be_bytes([self.0[2], self.0[3]])
    }
}
