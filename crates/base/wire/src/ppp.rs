//! The PPP protocol field (RFC 1661 section 2) and control packets (section 5).

use crate::error::{Error, Field, Layer, Rule};
use core::fmt;

/// A PPP protocol number, host order (IANA "Point-to-Point (PPP) Protocol Field Assignments").
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PppProtocol(pub u16);

impl PppProtocol {
    /// IPv4, RFC 1332.
    pub const IPV4: PppProtocol = PppProtocol(0x0021);
    /// IPv6, RFC 5072.
    pub const IPV6: PppProtocol = PppProtocol(0x0057);
    /// MPLS unicast, RFC 3032 section 4.3.
    pub const MPLS: PppProtocol = PppProtocol(0x0281);
    /// MPLS multicast, RFC 3032 section 4.3.
    pub const MPLS_MULTICAST: PppProtocol = PppProtocol(0x0283);
    /// IPCP, RFC 1332.
    pub const IPCP: PppProtocol = PppProtocol(0x8021);
    /// IPV6CP, RFC 5072.
    pub const IPV6CP: PppProtocol = PppProtocol(0x8057);
    /// CCP, RFC 1962.
    pub const CCP: PppProtocol = PppProtocol(0x80fd);
    /// LCP, RFC 1661.
    pub const LCP: PppProtocol = PppProtocol(0xc021);
    /// PAP, RFC 1334.
    pub const PAP: PppProtocol = PppProtocol(0xc023);
    /// CHAP, RFC 1994.
    pub const CHAP: PppProtocol = PppProtocol(0xc223);
}

impl fmt::Debug for PppProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#06x}", self.0)
    }
}

/// How a protocol field may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Two bytes always. RFC 2516 section 7: the protocol field MUST NOT be compressed on PPPoE.
    Forbidden,
    /// One byte where it is odd (RFC 1661 section 6.5), as on a serial line.
    Allowed,
}

/// Reads the protocol field: the protocol and how many bytes the field took.
///
/// The least significant bit of the field's last byte is 1 and that of the byte before it 0
/// (RFC 1661 section 2), so a first byte that is odd is a compressed field. Errors: [`Rule::Compressed`]
/// where that is forbidden, [`Rule::Undefined`] for an even last byte, [`Rule::Cut`].
#[inline(always)]
pub fn protocol(bytes: &[u8], compression: Compression) -> Result<(PppProtocol, usize), Error> {
    let error = |rule, found, limit| Error::new(Layer::Ppp, Field::Protocol, rule, found, limit);
    match *bytes {
        [first, ..] if first & 1 != 0 => match compression {
            Compression::Allowed => Ok((PppProtocol(u16::from(first)), 1)),
            Compression::Forbidden => Err(error(Rule::Compressed, usize::from(first), 0)),
        },
        [first, second, ..] if second & 1 != 0 => Ok((PppProtocol(u16::from_be_bytes([first, second])), 2)),
        [first, second, ..] => {
            Err(error(Rule::Undefined, usize::from(u16::from_be_bytes([first, second])), 0))
        }
        _ => {
            let least = if bytes.is_empty() && compression == Compression::Allowed { 1 } else { 2 };
            Err(error(Rule::Cut, bytes.len(), least))
        }
    }
}

view! {
    /// The header of a control packet: LCP, IPCP, IPV6CP, CCP, PAP or CHAP (RFC 1661 section 5).
    ControlHeader[4] {
        /// Configure-Request and so on.
        code: u8 @ 0,
        /// Matches a reply to its request.
        identifier: u8 @ 1,
        /// Bytes of the packet, this header included.
        length: u16 @ 2,
    }
}

impl ControlHeader<'_> {
    /// Checks the length against the `available` bytes from the start of the packet. Bytes behind the
    /// length are padding (RFC 1661 section 5).
    pub fn check(&self, available: usize) -> Result<(), Error> {
        let length = usize::from(self.length());
        let error = |rule, limit| Err(Error::new(Layer::PppControl, Field::Length, rule, length, limit));
        if length < ControlHeader::LENGTH {
            error(Rule::Below, ControlHeader::LENGTH)
        } else if length > available {
            error(Rule::Exceeds, available)
        } else {
            Ok(())
        }
    }
}
