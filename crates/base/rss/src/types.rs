//! Hash types: what a device looks for in a packet, and which of them it can look for at once.

use crate::TypesError;
use std::fmt;
use std::str::FromStr;

named! {
    /// Which fields of which packets are hashed.
    ///
    /// Microsoft, "RSS Hashing Types", defines the types of IPv4, TCP, UDP and the Ex types; Intel's controllers
    /// had the UDP types before (I210 datasheet, section 7.1.2.10.1). The SCTP types hash addresses and ports
    /// as Linux's ice driver sets them (`ICE_HASH_SCTP_IPV4`, `ICE_HASH_SCTP_IPV6`, ice_flow.h).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[repr(u8)]
    HashType[12] {
        /// Nothing fits: no hash is computed and the value is 0.
        None = "none",
        /// Addresses of any IPv4 packet.
        Ipv4 = "ipv4",
        /// Addresses and ports of an unfragmented TCP segment in IPv4.
        TcpIpv4 = "tcp-ipv4",
        /// Addresses and ports of an unfragmented UDP datagram in IPv4.
        UdpIpv4 = "udp-ipv4",
        /// Addresses and ports of an unfragmented SCTP packet in IPv4.
        SctpIpv4 = "sctp-ipv4",
        /// Addresses of any IPv6 packet.
        Ipv6 = "ipv6",
        /// Addresses and ports of an unfragmented TCP segment in IPv6.
        TcpIpv6 = "tcp-ipv6",
        /// Addresses and ports of an unfragmented UDP datagram in IPv6.
        UdpIpv6 = "udp-ipv6",
        /// Addresses and ports of an unfragmented SCTP packet in IPv6.
        SctpIpv6 = "sctp-ipv6",
        /// As [`HashType::Ipv6`], with the home address option (RFC 6275, section 6.3) in place of the source
        /// and the address of a type 2 routing header (section 6.4) in place of the destination, where present.
        Ipv6Ex = "ipv6-ex",
        /// As [`HashType::TcpIpv6`] with those addresses.
        TcpIpv6Ex = "tcp-ipv6-ex",
        /// As [`HashType::UdpIpv6`] with those addresses.
        UdpIpv6Ex = "udp-ipv6-ex",
    }
}

impl HashType {
    /// All types but [`HashType::None`].
    pub const ALL: [HashType; 11] = {
        let [_, types @ ..] = HashType::EVERY;
        types
    };

    /// Whether the ports belong to the type.
    pub const fn has_ports(self) -> bool {
        !matches!(self, HashType::None | HashType::Ipv4 | HashType::Ipv6 | HashType::Ipv6Ex)
    }

    /// Whether the home address option and the type 2 routing header are looked for.
    pub const fn is_ex(self) -> bool {
        matches!(self, HashType::Ipv6Ex | HashType::TcpIpv6Ex | HashType::UdpIpv6Ex)
    }
}

impl FromStr for HashType {
    type Err = TypesError;

    /// A [`HashType::name`]; the spelling of the datasheets (`TcpIPv4`) and underscores are understood too.
    fn from_str(text: &str) -> Result<HashType, TypesError> {
        let plain = |name: &str| name.to_ascii_lowercase().replace(['-', '_'], "");
        let spelling = plain(text);
        HashType::ALL
            .into_iter()
            .find(|hash_type| plain(hash_type.name()) == spelling)
            .ok_or_else(|| TypesError { name: text.to_owned() })
    }
}

/// A set of hash types: what is enabled, or what a device can do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct HashTypes(u16);

impl HashTypes {
    /// No type: nothing is hashed.
    pub const NONE: HashTypes = HashTypes(0);

    /// Whether the type is in the set. [`HashType::None`] is in no set.
    pub const fn contains(self, hash_type: HashType) -> bool {
        self.0 & 1 << hash_type as u16 & !1 != 0
    }

    /// Adds a type; [`HashType::None`] changes nothing.
    pub const fn insert(&mut self, hash_type: HashType) {
        self.0 |= 1 << hash_type as u16 & !1;
    }

    /// Takes a type out.
    pub const fn remove(&mut self, hash_type: HashType) {
        self.0 &= !(1 << hash_type as u16);
    }

    /// Whether no type is in the set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The types in the order of [`HashType::ALL`].
    pub fn iter(self) -> impl Iterator<Item = HashType> {
        HashType::ALL.into_iter().filter(move |hash_type| self.contains(*hash_type))
    }
}

impl FromIterator<HashType> for HashTypes {
    fn from_iter<I: IntoIterator<Item = HashType>>(types: I) -> HashTypes {
        let mut set = HashTypes::NONE;
        types.into_iter().for_each(|hash_type| set.insert(hash_type));
        set
    }
}

impl FromStr for HashTypes {
    type Err = TypesError;

    /// Names separated by commas; `none` is the empty set.
    fn from_str(text: &str) -> Result<HashTypes, TypesError> {
        if text.trim() == HashType::None.name() {
            return Ok(HashTypes::NONE);
        }
        text.split(',').map(|name| name.trim().parse()).collect()
    }
}

impl fmt::Display for HashTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str(HashType::None.name());
        }
        for (i, hash_type) in self.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            write!(f, "{comma}{hash_type}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for HashTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HashTypes({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for hash_type in HashType::ALL {
            assert_eq!(hash_type.name().parse(), Ok(hash_type));
        }
        assert_eq!("TcpIPv6Ex".parse(), Ok(HashType::TcpIpv6Ex));
        assert_eq!("UDP_IPv4".parse(), Ok(HashType::UdpIpv4));
        let all = HashTypes::from_iter(HashType::ALL);
        assert_eq!(all.to_string().parse(), Ok(all));
        assert_eq!("none".parse(), Ok(HashTypes::NONE));
        assert_eq!(HashTypes::NONE.to_string(), "none");
        assert_eq!("ipv4,tcp".parse::<HashTypes>(), Err(TypesError { name: "tcp".into() }));
    }

    #[test]
    fn none_is_in_no_set() {
        let mut set = HashTypes::from_iter([HashType::None, HashType::Ipv4]);
        assert!(!set.contains(HashType::None));
        set.remove(HashType::Ipv4);
        assert!(set.is_empty());
    }
}
