//! Representations of the IPv6 extension headers, and of the authentication header.

use super::{Emit, EmitError, fits, multiple, place};
use crate::error::{Error, Field};
use crate::extension::{HOME_ADDRESS, Header, JUMBO_PAYLOAD, Kind};
use crate::ip::IpProtocol;
use core::net::Ipv6Addr;

/// Bytes that the one-byte extension length can say: 256 units of eight.
const MAX_LENGTH: usize = 256 * 8;

/// The jumbo payload option (RFC 2675 section 2): alone it fills a hop-by-hop header, at the alignment that
/// it requires. `length` is what follows the IPv6 header, bytes.
pub const fn jumbo_payload_option(length: u32) -> [u8; 6] {
    let [a, b, c, d] = length.to_be_bytes();
    [JUMBO_PAYLOAD, 4, a, b, c, d]
}

/// The home address option (RFC 6275 section 6.3) behind four bytes of padding: alone it fills a destination
/// options header, at the alignment 8n + 6 that it requires.
pub fn home_address_option(address: Ipv6Addr) -> [u8; 22] {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = address.octets();
    [1, 2, 0, 0, HOME_ADDRESS, 16, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p]
}

macro_rules! options_header {
    ($(#[$about:meta])* $name:ident) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name<'a> {
            /// Protocol of what follows.
            pub next_header: IpProtocol,
            /// Options with their padding: six bytes, or six and a multiple of eight.
            pub options: &'a [u8],
        }

        impl<'a> $name<'a> {
            /// Reads the header at the start of `bytes`. Errors: not whole, an option that does not fit.
            pub fn parse(bytes: &'a [u8]) -> Result<$name<'a>, Error> {
                let header = Header::parse(Kind::$name, bytes, bytes.len())?;
                header.check_options()?;
                let options = header.bytes.get(2..).unwrap_or_default();
                Ok($name { next_header: header.next_header(), options })
            }
        }

        impl Emit for $name<'_> {
            fn length(&self) -> usize {
                2 + self.options.len()
            }

            fn emit(&self, buffer: &mut [u8]) -> Result<usize, EmitError> {
                let (layer, length) = (Kind::$name.layer(), self.length());
                multiple(layer, Field::Option, self.options.len(), 2, 8)?;
                fits(layer, Field::HeaderLength, length, MAX_LENGTH)?;
                let bytes = place(layer, length, buffer)?.put(&[self.next_header.0, (length / 8 - 1) as u8]);
                Ok(bytes.put(self.options).length())
            }
        }
    };
}

options_header! {
    /// Hop-by-hop options header (RFC 8200 section 4.3).
    HopByHop
}

options_header! {
    /// Destination options header (RFC 8200 section 4.6).
    DestinationOptions
}

/// Routing header (RFC 8200 section 4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Routing<'a> {
    /// Protocol of what follows.
    pub next_header: IpProtocol,
    /// Routing type: 0, 2 or 4 have rules here.
    pub routing_type: u8,
    pub segments_left: u8,
    /// What the type defines: four bytes (reserved, or last entry, flags and tag), then the addresses.
    pub data: &'a [u8],
}

impl<'a> Routing<'a> {
    /// Reads the header at the start of `bytes`. Errors: not whole, or against the rules of its type
    /// ([`Header::check_routing`]).
    pub fn parse(bytes: &'a [u8]) -> Result<Routing<'a>, Error> {
        let header = Header::parse(Kind::Routing, bytes, bytes.len())?;
        header.check_routing()?;
        Ok(Routing {
            next_header: header.next_header(),
            routing_type: header.routing_type(),
            segments_left: header.segments_left(),
            data: header.bytes.get(4..).unwrap_or_default(),
        })
    }
}

impl Emit for Routing<'_> {
    fn length(&self) -> usize {
        4 + self.data.len()
    }

    fn emit(&self, buffer: &mut [u8]) -> Result<usize, EmitError> {
        let (layer, length) = (Kind::Routing.layer(), self.length());
        multiple(layer, Field::Header, self.data.len(), 4, 8)?;
        fits(layer, Field::HeaderLength, length, MAX_LENGTH)?;
        let bytes = place(layer, length, buffer)?.put(&[self.next_header.0, (length / 8 - 1) as u8]);
        Ok(bytes.put(&[self.routing_type, self.segments_left]).put(self.data).length())
    }
}

/// Fragment header (RFC 8200 section 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Protocol of what the first fragment carries.
    pub next_header: IpProtocol,
    /// Offset in units of eight bytes, 13 bits.
    pub offset: u16,
    pub more: bool,
    pub identification: u32,
}

impl Fragment {
    /// Reads the header at the start of `bytes`. Error: not whole. Reserved bits are not kept.
    pub fn parse(bytes: &[u8]) -> Result<Fragment, Error> {
        let header = Header::parse(Kind::Fragment, bytes, bytes.len())?;
        let field = match *header.bytes {
            [_, _, high, low, ..] => u16::from_be_bytes([high, low]),
            _ => 0,
        };
        Ok(Fragment {
            next_header: header.next_header(),
            offset: field >> 3,
            more: field & 1 != 0,
            identification: header.identification(),
        })
    }
}

impl Emit for Fragment {
    fn length(&self) -> usize {
        8
    }

    fn emit(&self, buffer: &mut [u8]) -> Result<usize, EmitError> {
        let layer = Kind::Fragment.layer();
        fits(layer, Field::FragmentOffset, usize::from(self.offset), 0x1fff)?;
        let bytes = place(layer, 8, buffer)?.put(&[self.next_header.0, 0]);
        Ok(bytes.u16(self.offset << 3 | u16::from(self.more)).u32(self.identification).length())
    }
}

/// Authentication header (RFC 4302 section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authentication<'a> {
    /// Protocol of what follows.
    pub next_header: IpProtocol,
    pub spi: u32,
    pub sequence: u32,
    /// Integrity check value with its padding, a multiple of four bytes (of eight over IPv6, for which the
    /// caller answers).
    pub icv: &'a [u8],
}

impl<'a> Authentication<'a> {
    /// Bytes before the integrity check value.
    pub const FIXED_LENGTH: usize = 12;
    /// Bytes that the length field can say: it counts words, less two.
    pub const MAX_LENGTH: usize = (255 + 2) * 4;

    /// Reads the header at the start of `bytes`. Errors: not whole, a length below 12.
    pub fn parse(bytes: &'a [u8]) -> Result<Authentication<'a>, Error> {
        let header = Header::parse(Kind::Authentication, bytes, bytes.len())?;
        let (spi, sequence, icv) = match *header.bytes {
            [_, _, _, _, a, b, c, d, e, f, g, h, ref icv @ ..] => {
                (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]), icv)
            }
            _ => (0, 0, Default::default()),
        };
        Ok(Authentication { next_header: header.next_header(), spi, sequence, icv })
    }
}

impl Emit for Authentication<'_> {
    fn length(&self) -> usize {
        Authentication::FIXED_LENGTH + self.icv.len()
    }

    fn emit(&self, buffer: &mut [u8]) -> Result<usize, EmitError> {
        let (layer, length) = (Kind::Authentication.layer(), self.length());
        multiple(layer, Field::Header, self.icv.len(), Authentication::FIXED_LENGTH, 4)?;
        fits(layer, Field::HeaderLength, length, Authentication::MAX_LENGTH)?;
        let bytes = place(layer, length, buffer)?.put(&[self.next_header.0, (length / 4 - 2) as u8, 0, 0]);
        Ok(bytes.u32(self.spi).u32(self.sequence).put(self.icv).length())
    }
}
