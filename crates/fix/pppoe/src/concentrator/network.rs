//! Networks: what is routed to a subscriber besides the address, and prefixes of links.

use crate::Invalid;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// An IP network: an address whose bits behind the prefix are zero, and the length of the prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Network {
    address: IpAddr,
    length: u8,
}

/// Addresses that no host of a subscriber can have, and what they are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reserved {
    pub network: Network,
    pub purpose: &'static str,
}

impl fmt::Display for Reserved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.network, self.purpose)
    }
}

const fn four(first: u8, length: u8, purpose: &'static str) -> Reserved {
    Reserved { network: Network { address: IpAddr::V4(Ipv4Addr::new(first, 0, 0, 0)), length }, purpose }
}

const fn six(first: u16, length: u8, purpose: &'static str) -> Reserved {
    let address = IpAddr::V6(Ipv6Addr::new(first, 0, 0, 0, 0, 0, 0, 0));
    Reserved { network: Network { address, length }, purpose }
}

/// RFC 1122 section 3.2.1.3, RFC 5771, RFC 1112 section 4; RFC 4291 sections 2.4, 2.5.6 and 2.7.
const RESERVED: [Reserved; 7] = [
    four(0, 8, "this network"),
    four(127, 8, "loopback"),
    four(224, 4, "multicast"),
    four(240, 4, "reserved, with the broadcast address"),
    six(0, 8, "reserved, with loopback"),
    six(0xfe80, 10, "link-local"),
    six(0xff00, 8, "multicast"),
];

impl Network {
    /// The network of `address` whose prefix has `length` bits; what is behind the prefix is cleared. `None`: more bits than
    /// the address has.
    pub fn of(address: IpAddr, length: u8) -> Option<Network> {
        let address = match address {
            IpAddr::V4(four) if length <= 32 => {
                let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
                IpAddr::V4((u32::from(four) & mask).into())
            }
            IpAddr::V6(six) if length <= 128 => {
                let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
                IpAddr::V6((u128::from(six) & mask).into())
            }
            _ => return None,
        };
        Some(Network { address, length })
    }

    pub const fn host(address: IpAddr) -> Network {
        Network { address, length: if address.is_ipv4() { 32 } else { 128 } }
    }

    /// Whether it is of the addresses that each link of IPv6 has for itself (RFC 4291 section 2.5.6).
    pub const fn is_link_local(&self) -> bool {
        match self.address {
            IpAddr::V6(address) => address.is_unicast_link_local(),
            IpAddr::V4(_) => false,
        }
    }

    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// Bits of the prefix.
    pub const fn length(&self) -> u8 {
        self.length
    }

    /// The lowest address of a network of IPv6.
    pub const fn ipv6(&self) -> Option<Ipv6Addr> {
        match self.address {
            IpAddr::V6(address) => Some(address),
            IpAddr::V4(_) => None,
        }
    }

    /// Whether `address` is in it.
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4() && Network::of(address, self.length) == Some(*self)
    }

    /// Addresses in it that no host of a subscriber can have; `None`: there are none such.
    pub(crate) fn reserved(&self) -> Option<Reserved> {
        // Of two networks that meet one is within the other.
        let meets = |other: &Network| other.contains(self.address) || self.contains(other.address);
        RESERVED.into_iter().find(|reserved| meets(&reserved.network))
    }
}

/// IPv6 prefixes of a subscriber.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Prefixes {
    /// Of the link, 64 bits long.
    #[serde(rename = "prefix")]
    pub link: Option<Network>,
    /// Of the networks behind the host, which learns of it by DHCPv6.
    #[serde(default)]
    pub delegated: Option<Network>,
}

impl Prefixes {
    pub fn iter(&self) -> impl Iterator<Item = Network> + use<> {
        self.link.into_iter().chain(self.delegated)
    }
}

impl FromStr for Network {
    type Err = Invalid;

    /// `ADDRESS/BITS`.
    fn from_str(text: &str) -> Result<Network, Invalid> {
        let read = || {
            let (address, length) = text.split_once('/')?;
            let is_number = length.bytes().all(|digit| digit.is_ascii_digit());
            let address: IpAddr = address.parse().ok()?;
            Some((address, Network::of(address, length.parse().ok().filter(|_| is_number)?)?))
        };
        match read() {
            Some((address, network)) if network.address == address => Ok(network),
            Some((_, network)) => Err(Invalid(format!("bits behind the prefix are set: expected {network}"))),
            None => Err(Invalid::new("expected a network such as 192.0.2.0/28 or 2001:db8:1::/48")),
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl serde::Serialize for Network {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Network {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Network, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_read_and_printed() {
        for text in ["192.0.2.0/28", "0.0.0.0/0", "10.0.0.1/32", "2001:db8::/32", "::/0", "2001:db8::1/128"] {
            assert_eq!(text.parse::<Network>().unwrap().to_string(), text);
        }
        for text in
            ["", "192.0.2.0", "192.0.2.0/", "192.0.2.0/33", "192.0.2.0/+8", "::/129", "x/8", "192.0.2.0/256"]
        {
            let error = text.parse::<Network>().unwrap_err().to_string();
            assert!(error.starts_with("expected a network such as"), "{text}: {error}");
        }
        let error = "192.0.2.17/28".parse::<Network>().unwrap_err();
        assert_eq!(error.to_string(), "bits behind the prefix are set: expected 192.0.2.16/28");
    }

    #[test]
    fn membership_keeps_to_the_family_and_the_prefix() {
        let network: Network = "192.0.2.16/28".parse().unwrap();
        for (address, expected) in [
            ("192.0.2.16", true),
            ("192.0.2.31", true),
            ("192.0.2.32", false),
            ("192.0.2.15", false),
            ("::", false),
        ] {
            assert_eq!(network.contains(address.parse().unwrap()), expected, "{address}");
        }
        let all: Network = "::/0".parse().unwrap();
        assert!(all.contains("ffff::1".parse().unwrap()) && !all.contains("1.2.3.4".parse().unwrap()));
    }

    #[test]
    fn networks_with_addresses_of_no_host_are_reported() {
        for (network, expected) in [
            ("0.0.0.0/0", "0.0.0.0/8 (this network)"),
            ("127.0.0.1/32", "127.0.0.0/8 (loopback)"),
            ("128.0.0.0/1", "224.0.0.0/4 (multicast)"),
            ("255.255.255.255/32", "240.0.0.0/4 (reserved, with the broadcast address)"),
            ("::/0", "::/8 (reserved, with loopback)"),
            ("fe80::/48", "fe80::/10 (link-local)"),
            ("8000::/1", "fe80::/10 (link-local)"),
            ("ff00::/8", "ff00::/8 (multicast)"),
        ] {
            let network: Network = network.parse().unwrap();
            assert_eq!(network.reserved().unwrap().to_string(), expected, "{network}");
        }
        for network in
            ["1.0.0.0/8", "100.64.0.0/10", "223.255.255.255/32", "2001:db8::/32", "fd00::/8", "fec0::/10"]
        {
            assert_eq!(network.parse::<Network>().unwrap().reserved(), None, "{network}");
        }
    }
}
