//! Link types: what the first byte of a captured frame belongs to.

use std::fmt;

/// Link type of an interface, <https://www.tcpdump.org/linktypes.html>.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LinkType {
    /// 0, `NULL`: a 4-byte address family in the byte order of the capturing machine, then the packet.
    Null,
    /// 1, `ETHERNET`: from the destination address on, without preamble.
    Ethernet,
    /// 9, `PPP`: from the PPP protocol field, or the bytes 0xff 0x03 before it.
    Ppp,
    /// 101, `RAW`: starts with an IPv4 or IPv6 header. Some programs wrote the operating system's own
    /// numbers 12 or 14 for it; they read as this too.
    RawIp,
    /// 50, `PPP_HDLC` (PPP_SERIAL): PPP in HDLC-like framing (RFC 1662), from address and control or from
    /// the protocol field.
    PppSerial,
    /// 51, `PPP_ETHER`: from the PPPoE header on (RFC 2516 section 4), without Ethernet header.
    PppOverEthernet,
    /// 108, `LOOP`: as [`LinkType::Null`], the address family in network byte order.
    Loop,
    /// 113, `LINUX_SLL`: 16-byte "cooked" header, version 1.
    LinuxCooked,
    /// 228, `IPV4`: starts with an IPv4 header.
    Ipv4,
    /// 229, `IPV6`: starts with an IPv6 header.
    Ipv6,
    /// 276, `LINUX_SLL2`: 20-byte "cooked" header, version 2.
    LinuxCooked2,
    /// Any other number of the registry.
    Other(u16),
}

impl LinkType {
    /// The link type of a number as it stands in a capture file.
    pub const fn from_number(number: u16) -> Self {
        match number {
            0 => Self::Null,
            1 => Self::Ethernet,
            9 => Self::Ppp,
            12 | 14 | 101 => Self::RawIp,
            50 => Self::PppSerial,
            51 => Self::PppOverEthernet,
            108 => Self::Loop,
            113 => Self::LinuxCooked,
            228 => Self::Ipv4,
            229 => Self::Ipv6,
            276 => Self::LinuxCooked2,
            other => Self::Other(other),
        }
    }

    /// The number that a capture file carries for this link type.
    pub const fn number(self) -> u16 {
        match self {
            Self::Null => 0,
            Self::Ethernet => 1,
            Self::Ppp => 9,
            Self::PppSerial => 50,
            Self::PppOverEthernet => 51,
            Self::RawIp => 101,
            Self::Loop => 108,
            Self::LinuxCooked => 113,
            Self::Ipv4 => 228,
            Self::Ipv6 => 229,
            Self::LinuxCooked2 => 276,
            Self::Other(number) => number,
        }
    }
}

impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Null => "BSD loopback",
            Self::Ethernet => "Ethernet",
            Self::Ppp => "PPP",
            Self::RawIp => "raw IP",
            Self::PppSerial => "PPP over serial",
            Self::PppOverEthernet => "PPP over Ethernet",
            Self::Loop => "OpenBSD loopback",
            Self::LinuxCooked => "Linux cooked",
            Self::Ipv4 => "raw IPv4",
            Self::Ipv6 => "raw IPv6",
            Self::LinuxCooked2 => "Linux cooked 2",
            Self::Other(number) => return write!(f, "link type {number}"),
        };
        f.write_str(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_survives_but_the_raw_ip_aliases() {
        for number in 0..=u16::MAX {
            let back = LinkType::from_number(number).number();
            let expected = if matches!(number, 12 | 14) { 101 } else { number };
            assert_eq!(back, expected);
        }
    }
}
