//! Link types: what the first byte of a captured frame belongs to.

use std::fmt;

macro_rules! link_types {
    ($($(#[$about:meta])* $type:ident = $number:literal, $name:literal;)*) => {
        /// Link type of an interface, <https://www.tcpdump.org/linktypes.html>.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum LinkType {
            $($(#[$about])* $type,)*
            /// Any other number of the registry.
            Other(u16),
        }

        impl LinkType {
            /// The link type of a number as it stands in a capture file.
            pub const fn from_number(number: u16) -> Self {
                match number {
                    12 | 14 => Self::RawIp,
                    $($number => Self::$type,)*
                    other => Self::Other(other),
                }
            }

            /// The number that a capture file carries for this link type.
            pub const fn number(self) -> u16 {
                match self {
                    $(Self::$type => $number,)*
                    Self::Other(number) => number,
                }
            }
        }

        impl fmt::Display for LinkType {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$type => f.write_str($name),)*
                    Self::Other(number) => write!(f, "link type {number}"),
                }
            }
        }
    };
}

link_types! {
    /// 0, `NULL`: a 4-byte address family in the byte order of the capturing machine, then the packet.
    Null = 0, "BSD loopback";
    /// 1, `ETHERNET`: from the destination address on, without preamble.
    Ethernet = 1, "Ethernet";
    /// 9, `PPP`: from the PPP protocol field, or the bytes 0xff 0x03 before it.
    Ppp = 9, "PPP";
    /// 101, `RAW`: starts with an IPv4 or IPv6 header. Some programs wrote the operating system's own
    /// numbers 12 or 14 for it; they read as this too.
    RawIp = 101, "raw IP";
    /// 50, `PPP_HDLC` (PPP_SERIAL): PPP in HDLC-like framing (RFC 1662), from address and control or from
    /// the protocol field.
    PppSerial = 50, "PPP over serial";
    /// 51, `PPP_ETHER`: from the PPPoE header on (RFC 2516 section 4), without Ethernet header.
    PppOverEthernet = 51, "PPP over Ethernet";
    /// 108, `LOOP`: as [`LinkType::Null`], the address family in network byte order.
    Loop = 108, "OpenBSD loopback";
    /// 113, `LINUX_SLL`: 16-byte "cooked" header, version 1.
    LinuxCooked = 113, "Linux cooked";
    /// 228, `IPV4`: starts with an IPv4 header.
    Ipv4 = 228, "raw IPv4";
    /// 229, `IPV6`: starts with an IPv6 header.
    Ipv6 = 229, "raw IPv6";
    /// 276, `LINUX_SLL2`: 20-byte "cooked" header, version 2.
    LinuxCooked2 = 276, "Linux cooked 2";
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
