//! What IPv4 and IPv6 share: protocol numbers and the bounds of a packet.

use core::fmt;

/// An IP protocol or next header number (IANA "Assigned Internet Protocol Numbers").
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IpProtocol(pub u8);

#[allow(missing_docs, reason = "a number that says no more than its name")]
impl IpProtocol {
    pub const HOP_BY_HOP: IpProtocol = IpProtocol(0);
    pub const ICMP: IpProtocol = IpProtocol(1);
    pub const IGMP: IpProtocol = IpProtocol(2);
    /// IPv4 in IP.
    pub const IPV4: IpProtocol = IpProtocol(4);
    pub const TCP: IpProtocol = IpProtocol(6);
    pub const UDP: IpProtocol = IpProtocol(17);
    /// IPv6 in IP.
    pub const IPV6: IpProtocol = IpProtocol(41);
    pub const ROUTING: IpProtocol = IpProtocol(43);
    pub const FRAGMENT: IpProtocol = IpProtocol(44);
    pub const GRE: IpProtocol = IpProtocol(47);
    /// Encapsulating security payload.
    pub const ESP: IpProtocol = IpProtocol(50);
    /// Authentication header.
    pub const AH: IpProtocol = IpProtocol(51);
    pub const ICMPV6: IpProtocol = IpProtocol(58);
    /// IPv6: nothing follows.
    pub const NO_NEXT_HEADER: IpProtocol = IpProtocol(59);
    pub const DESTINATION_OPTIONS: IpProtocol = IpProtocol(60);
    pub const SCTP: IpProtocol = IpProtocol(132);
}

impl fmt::Debug for IpProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The largest length that the 16-bit length field of an IP header can say, bytes.
pub const MAX_LENGTH: usize = 65535;

/// Where a packet stands in the sequence of fragments that it may be part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Fragment {
    /// The whole packet, an atomic fragment (RFC 6946) among them.
    #[default]
    None,
    /// Offset zero, more to follow: the ports are here and in no other fragment.
    First,
    /// A later one: no ports.
    Later,
}

impl Fragment {
    /// From the fragment offset (any unit) and the more-fragments flag.
    #[inline(always)]
    pub const fn of(offset: u16, more: bool) -> Fragment {
        match (offset, more) {
            (0, false) => Fragment::None,
            (0, true) => Fragment::First,
            _ => Fragment::Later,
        }
    }
}
