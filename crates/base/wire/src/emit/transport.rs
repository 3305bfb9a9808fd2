//! Representations of TCP, UDP, SCTP, ICMP and ICMPv6 headers. Their checksums cover the payload:
//! [`super::checksum::fill`] completes them.

use super::{Emit, EmitError, fits, multiple, place};
use crate::error::{Field, Layer};
use crate::transport;

/// TCP header with options (RFC 9293 section 3.1). View: [`transport::Tcp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Tcp<'a> {
    pub source_port: u16,
    pub destination_port: u16,
    pub sequence: u32,
    pub acknowledgment: u32,
    /// CWR, ECE, URG, ACK, PSH, RST, SYN, FIN from the highest bit down.
    pub flags: u8,
    pub window: u16,
    pub checksum: u16,
    pub urgent: u16,
    /// Options, padded to a multiple of four bytes, at most 40.
    pub options: &'a [u8],
}

impl Tcp<'_> {
    /// The most option bytes: the data offset counts 15 words.
    pub const MAX_OPTIONS: usize = 40;
    pub const FIN: u8 = 0x01;
    pub const SYN: u8 = 0x02;
    pub const RST: u8 = 0x04;
    pub const PSH: u8 = 0x08;
    pub const ACK: u8 = 0x10;
}

impl Emit for Tcp<'_> {
    fn length(&self) -> usize {
        transport::Tcp::LENGTH + self.options.len()
    }

    fn emit(&self, buffer: &mut [u8]) -> Result<usize, EmitError> {
        multiple(Layer::Tcp, Field::Option, self.options.len(), 0, 4)?;
        fits(Layer::Tcp, Field::Option, self.options.len(), Tcp::MAX_OPTIONS)?;
        let bytes =
            place(Layer::Tcp, self.length(), buffer)?.u16(self.source_port).u16(self.destination_port);
        let bytes = bytes.u32(self.sequence).u32(self.acknowledgment);
        let bytes = bytes.put(&[(self.length() / 4) as u8 * 16, self.flags]).u16(self.window);
        Ok(bytes.u16(self.checksum).u16(self.urgent).put(self.options).length())
    }
}

fields! {
    /// UDP header (RFC 768). View: [`transport::Udp`].
    #[derive(Default)]
    Udp: Layer::Udp, 8 {
        source_port: u16,
        destination_port: u16,
        /// Bytes of header and data; zero in a jumbogram.
        length: u16,
        checksum: u16,
    }
}

fields! {
    /// SCTP common header (RFC 9260 section 3.1).
    #[derive(Default)]
    Sctp: Layer::Sctp, 12 {
        source_port: u16,
        destination_port: u16,
        verification_tag: u32,
        /// CRC32c, as the four bytes of the wire read in network order.
        checksum: u32,
    }
}

fields! {
    /// The part that every ICMP message has (RFC 792), and the four bytes behind it.
    #[derive(Default)]
    Icmp: Layer::Icmp, 8 {
        kind: u8,
        code: u8,
        checksum: u16,
        /// Each type uses it in its own way: identifier and sequence number of an echo, for one.
        rest: [u8; 4],
    }
}

fields! {
    /// The same of ICMPv6 (RFC 4443 section 2.1), whose checksum covers a pseudo header.
    #[derive(Default)]
    Icmpv6: Layer::Icmpv6, 8 {
        kind: u8,
        code: u8,
        checksum: u16,
        rest: [u8; 4],
    }
}
