//! Representations of TCP, UDP, SCTP, ICMP and ICMPv6 headers. Their checksums cover the payload:
//! [`super::checksum::fill`] completes them.

use super::{Emit, EmitError, fits, multiple, place};
use crate::error::{Error, Field, Layer, Rule};
use crate::transport;

fn cut<const N: usize>(layer: Layer, octets: &[u8]) -> Result<&[u8; N], Error> {
    octets.first_chunk().ok_or(Error::new(layer, Field::Header, Rule::Cut, octets.len(), N))
}

/// TCP header with options (RFC 9293 section 3.1). View: [`transport::Tcp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Tcp<'a> {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgment number.
    pub acknowledgment: u32,
    /// CWR, ECE, URG, ACK, PSH, RST, SYN, FIN from the highest bit down.
    pub flags: u8,
    /// Window.
    pub window: u16,
    /// Checksum.
    pub checksum: u16,
    /// Urgent pointer.
    pub urgent: u16,
    /// Options, padded to a multiple of four bytes, at most 40.
    pub options: &'a [u8],
}

impl<'a> Tcp<'a> {
    /// The most option bytes: the data offset counts 15 words.
    pub const MAX_OPTIONS: usize = 40;
    /// FIN flag.
    pub const FIN: u8 = 0x01;
    /// SYN flag.
    pub const SYN: u8 = 0x02;
    /// RST flag.
    pub const RST: u8 = 0x04;
    /// PSH flag.
    pub const PSH: u8 = 0x08;
    /// ACK flag.
    pub const ACK: u8 = 0x10;

    /// Reads the header at the start of `octets`, the whole segment. Errors: not whole, a data offset below
    /// five or beyond the segment. The four reserved bits are not kept.
    pub fn parse(octets: &'a [u8]) -> Result<Tcp<'a>, Error> {
        let header = transport::Tcp::of(cut(Layer::Tcp, octets)?);
        header.check(octets.len())?;
        Ok(Tcp {
            source_port: header.source_port(),
            destination_port: header.destination_port(),
            sequence: header.sequence(),
            acknowledgment: header.acknowledgment(),
            flags: header.flags(),
            window: header.window(),
            checksum: header.checksum(),
            urgent: header.urgent(),
            options: octets.get(transport::Tcp::LENGTH..header.header_length()).unwrap_or_default(),
        })
    }
}

impl Emit for Tcp<'_> {
    fn length(&self) -> usize {
        transport::Tcp::LENGTH + self.options.len()
    }

    fn emit(&self, buffer: &mut [u8]) -> Result<usize, EmitError> {
        multiple(Layer::Tcp, Field::Option, self.options.len(), 0, 4)?;
        fits(Layer::Tcp, Field::Option, self.options.len(), Tcp::MAX_OPTIONS)?;
        let octets =
            place(Layer::Tcp, self.length(), buffer)?.u16(self.source_port).u16(self.destination_port);
        let octets = octets.u32(self.sequence).u32(self.acknowledgment);
        let octets = octets.put(&[(self.length() / 4) as u8 * 16, self.flags]).u16(self.window);
        Ok(octets.u16(self.checksum).u16(self.urgent).put(self.options).length())
    }
}

/// UDP header (RFC 768). View: [`transport::Udp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Udp {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Bytes of header and data; zero in a jumbogram.
    pub length: u16,
    /// Checksum.
    pub checksum: u16,
}

impl Udp {
    /// Reads the header at the start of `octets`. Error: not whole. The length is for the caller to compare
    /// ([`transport::Udp::check`]).
    pub fn parse(octets: &[u8]) -> Result<Udp, Error> {
        let header = transport::Udp::of(cut(Layer::Udp, octets)?);
        Ok(Udp {
            source_port: header.source_port(),
            destination_port: header.destination_port(),
            length: header.length(),
            checksum: header.checksum(),
        })
    }
}

impl Emit for Udp {
    fn length(&self) -> usize {
        transport::Udp::LENGTH
    }

    fn emit(&self, buffer: &mut [u8]) -> Result<usize, EmitError> {
        let octets = place(Layer::Udp, transport::Udp::LENGTH, buffer)?.u16(self.source_port);
        Ok(octets.u16(self.destination_port).u16(self.length).u16(self.checksum).length())
    }
}

/// SCTP common header (RFC 9260 section 3.1). View: [`transport::Sctp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Sctp {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Verification tag.
    pub verification_tag: u32,
    /// CRC32c, as the four bytes of the wire read in network order.
    pub checksum: u32,
}

impl Sctp {
    /// Reads the header at the start of `octets`. Error: not whole.
    pub fn parse(octets: &[u8]) -> Result<Sctp, Error> {
        let header = transport::Sctp::of(cut(Layer::Sctp, octets)?);
        Ok(Sctp {
            source_port: header.source_port(),
            destination_port: header.destination_port(),
            verification_tag: header.verification_tag(),
            checksum: header.checksum(),
        })
    }
}

impl Emit for Sctp {
    fn length(&self) -> usize {
        transport::Sctp::LENGTH
    }

    fn emit(&self, buffer: &mut [u8]) -> Result<usize, EmitError> {
        let octets = place(Layer::Sctp, self.length(), buffer)?.u16(self.source_port);
        Ok(octets.u16(self.destination_port).u32(self.verification_tag).u32(self.checksum).length())
    }
}

/// The part that every ICMP message has (RFC 792), and the four bytes behind it, which each type uses in its
/// own way. View: [`transport::Icmp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Icmp {
    /// Type.
    pub kind: u8,
    /// Code.
    pub code: u8,
    /// Checksum.
    pub checksum: u16,
    /// The second word of the header: identifier and sequence number of an echo, for one.
    pub rest: [u8; 4],
}

/// The same of ICMPv6 (RFC 4443 section 2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Icmpv6 {
    /// Type.
    pub kind: u8,
    /// Code.
    pub code: u8,
    /// Checksum, which covers a pseudo header.
    pub checksum: u16,
    /// The second word of the header.
    pub rest: [u8; 4],
}

macro_rules! icmp {
    ($name:ident, $layer:expr) => {
        impl $name {
            /// Bytes: the common part and the second word.
            pub const LENGTH: usize = 8;

            /// Reads the header at the start of `octets`. Error: not whole.
            pub fn parse(octets: &[u8]) -> Result<$name, Error> {
                let [kind, code, high, low, rest @ ..] = *cut::<{ $name::LENGTH }>($layer, octets)?;
                Ok($name { kind, code, checksum: u16::from_be_bytes([high, low]), rest })
            }
        }

        impl Emit for $name {
            fn length(&self) -> usize {
                $name::LENGTH
            }

            fn emit(&self, buffer: &mut [u8]) -> Result<usize, EmitError> {
                let octets = place($layer, $name::LENGTH, buffer)?.put(&[self.kind, self.code]);
                Ok(octets.u16(self.checksum).put(&self.rest).length())
            }
        }
    };
}

icmp!(Icmp, Layer::Icmp);
icmp!(Icmpv6, Layer::Icmpv6);
