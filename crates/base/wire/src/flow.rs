//! Flow keys: which packets belong together.
//!
//! A flow is the 5-tuple (addresses, ports, protocol) of the first IP header behind Ethernet, VLAN, MPLS
//! and PPPoE. The key keeps those fields in the order in which receive-side scaling hashes them (source
//! address, destination address, source port, destination port, network byte order: Microsoft, "RSS Hashing
//! Types"), so that the input of a Toeplitz hash is a prefix of the key and nothing is rearranged on the way.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Bytes of two addresses.
const IPV4_ADDRESSES: usize = 8;
const IPV6_ADDRESSES: usize = 32;

/// IP version of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IpVersion {
    /// RFC 791.
    V4,
    /// RFC 8200.
    V6,
}

/// The 5-tuple of a packet, 40 bytes, compared and hashed as bytes.
///
/// Bytes 0 to 11 (IPv4) or 0 to 35 (IPv6) are source address, destination address, source port and
/// destination port in network byte order; unused bytes are zero, so equal flows are equal bytes.
#[derive(Clone, Copy, Eq, PartialOrd, Ord)]
#[repr(C, align(8))]
pub struct FlowKey {
    bytes: [u8; 40],
}

/// As five words, without a branch: two arrays are compared by a call into the C library, which costs more than the comparison.
impl PartialEq for FlowKey {
    #[inline(always)]
    fn eq(&self, other: &FlowKey) -> bool {
        let pairs = self.words().into_iter().zip(other.words());
        pairs.fold(0, |differing, (one, other)| differing | one ^ other) == 0
    }
}

impl core::hash::Hash for FlowKey {
    #[inline(always)]
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        self.words().into_iter().for_each(|word| state.write_u64(word));
    }
}

impl FlowKey {
    /// The key of no packet, all bytes zero. No packet's key equals it.
    pub(crate) const NONE: FlowKey = FlowKey { bytes: [0; 40] };

    /// A key of a packet whose ports are unknown: no port-carrying transport, or a later fragment.
    /// `protocol` is the IP protocol number behind all extension headers.
    #[inline]
    pub fn without_ports(source: IpAddr, destination: IpAddr, protocol: u8) -> Option<FlowKey> {
        match (source, destination) {
            (IpAddr::V4(s), IpAddr::V4(d)) => {
                let addresses = [s.octets(), d.octets()];
                Some(FlowKey::from_ipv4(addresses.as_flattened().first_chunk()?, None, protocol))
            }
            (IpAddr::V6(s), IpAddr::V6(d)) => {
                let addresses = [s.octets(), d.octets()];
                Some(FlowKey::from_ipv6(addresses.as_flattened().first_chunk()?, None, protocol))
            }
            _ => None,
        }
    }

    /// The same for a packet with ports (host order). `None` when the two addresses are of different versions.
    #[inline]
    pub fn with_ports(
        source: IpAddr,
        source_port: u16,
        destination: IpAddr,
        destination_port: u16,
        protocol: u8,
    ) -> Option<FlowKey> {
        let ports = (u32::from(source_port) << 16 | u32::from(destination_port)).to_be_bytes();
        let mut key = FlowKey::without_ports(source, destination, protocol)?;
        key.set_ports(Some(ports));
        Some(key)
    }

    /// From the bytes of a header: `addresses` is source then destination as they stand in an IPv4 header,
    /// `ports` the first four bytes of a TCP, UDP or SCTP header.
    #[inline(always)]
    pub fn from_ipv4(addresses: &[u8; IPV4_ADDRESSES], ports: Option<[u8; 4]>, protocol: u8) -> FlowKey {
        let mut bytes = [0; 40];
        if let Some((head, _)) = bytes.split_first_chunk_mut::<IPV4_ADDRESSES>() {
            *head = *addresses;
        }
        FlowKey { bytes }.finish(IPV4_ADDRESSES, 4, ports, protocol)
    }

    /// From the bytes of an IPv6 header, as [`FlowKey::from_ipv4`].
    #[inline(always)]
    pub fn from_ipv6(addresses: &[u8; IPV6_ADDRESSES], ports: Option<[u8; 4]>, protocol: u8) -> FlowKey {
        let mut bytes = [0; 40];
        if let Some((head, _)) = bytes.split_first_chunk_mut::<IPV6_ADDRESSES>() {
            *head = *addresses;
        }
        FlowKey { bytes }.finish(IPV6_ADDRESSES, 6, ports, protocol)
    }

    #[inline(always)]
    fn finish(mut self, ports_at: usize, version: u8, ports: Option<[u8; 4]>, protocol: u8) -> FlowKey {
        if let Some(place) = self.bytes.get_mut(ports_at..).and_then(|rest| rest.first_chunk_mut::<4>()) {
            *place = ports.unwrap_or([0; 4]);
        }
        if let Some(meta) = self.bytes.last_chunk_mut::<4>() {
            *meta = [version, protocol, u8::from(ports.is_some()), 0];
        }
        self
    }

    #[inline(always)]
    fn set_ports(&mut self, ports: Option<[u8; 4]>) {
        *self = self.finish(self.ports_at(), self.meta()[0], ports, self.protocol());
    }

    #[inline(always)]
    const fn meta(&self) -> [u8; 4] {
        let [.., version, protocol, flag, zero] = self.bytes;
        [version, protocol, flag, zero]
    }

    #[inline(always)]
    const fn ports_at(&self) -> usize {
        match self.version() {
            IpVersion::V4 => IPV4_ADDRESSES,
            IpVersion::V6 => IPV6_ADDRESSES,
        }
    }

    /// IPv4 or IPv6.
    #[inline(always)]
    pub const fn version(&self) -> IpVersion {
        if self.meta()[0] == 4 { IpVersion::V4 } else { IpVersion::V6 }
    }

    /// The IP protocol number behind all extension headers (IANA "Assigned Internet Protocol Numbers").
    #[inline(always)]
    pub const fn protocol(&self) -> u8 {
        self.meta()[1]
    }

    /// Whether the ports were present in the packet. Port 0 is a port.
    #[inline(always)]
    pub const fn has_ports(&self) -> bool {
        self.meta()[2] != 0
    }

    /// All 40 bytes.
    #[inline(always)]
    pub const fn bytes(&self) -> &[u8; 40] {
        &self.bytes
    }

    /// Source and destination address, 8 or 32 bytes in network order: a 2-tuple hash input.
    #[inline(always)]
    pub fn addresses(&self) -> &[u8] {
        self.bytes.get(..self.ports_at()).unwrap_or_default()
    }

    /// Addresses and ports, 12 or 36 bytes in network order: a 4-tuple hash input. The ports are zero
    /// where [`FlowKey::has_ports`] is false.
    #[inline(always)]
    pub fn addresses_and_ports(&self) -> &[u8] {
        self.bytes.get(..self.ports_at() + 4).unwrap_or_default()
    }

    /// Source address.
    pub fn source(&self) -> IpAddr {
        self.address(0)
    }

    /// Destination address.
    pub fn destination(&self) -> IpAddr {
        self.address(self.ports_at() / 2)
    }

    fn address(&self, at: usize) -> IpAddr {
        let rest = self.bytes.get(at..).unwrap_or_default();
        match self.version() {
            IpVersion::V4 => Ipv4Addr::from(rest.first_chunk::<4>().copied().unwrap_or_default()).into(),
            IpVersion::V6 => Ipv6Addr::from(rest.first_chunk::<16>().copied().unwrap_or_default()).into(),
        }
    }

    fn ports(&self) -> [u8; 4] {
        self.bytes
            .get(self.ports_at()..)
            .and_then(|rest| rest.first_chunk::<4>())
            .copied()
            .unwrap_or_default()
    }

    /// Source port, host order; `None` where the packet had none.
    pub fn source_port(&self) -> Option<u16> {
        let [a, b, ..] = self.ports();
        self.has_ports().then_some(u16::from_be_bytes([a, b]))
    }

    /// Destination port, host order; `None` where the packet had none.
    pub fn destination_port(&self) -> Option<u16> {
        let [.., c, d] = self.ports();
        self.has_ports().then_some(u16::from_be_bytes([c, d]))
    }

    /// The key of the opposite direction.
    pub fn reversed(&self) -> FlowKey {
        let half = self.ports_at() / 2;
        let mut bytes = self.bytes;
        if let Some(addresses) = bytes.get_mut(..half * 2) {
            addresses.rotate_left(half);
        }
        let mut key = FlowKey { bytes };
        let [a, b, c, d] = self.ports();
        key.set_ports(self.has_ports().then_some([c, d, a, b]));
        key
    }

    /// One key for both directions: the smaller of the key and its reverse.
    #[inline]
    pub fn bidirectional(&self) -> FlowKey {
        if self.is_smaller_direction() { *self } else { self.reversed() }
    }

    /// Whether the key is not greater than its reverse: its source, then its source port, is not greater
    /// than its destination and destination port.
    #[inline]
    pub fn is_smaller_direction(&self) -> bool {
        let [a, b, c, d] = self.ports();
        let (from, to) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let (source, destination) = match self.version() {
            IpVersion::V4 => (u128::from(self.number(0)), u128::from(self.number(4))),
            IpVersion::V6 => (self.wide_number(0), self.wide_number(16)),
        };
        (source, from) <= (destination, to)
    }

    #[inline(always)]
    fn number(&self, at: usize) -> u32 {
        let bytes = self.bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
        bytes.map_or(0, |bytes| u32::from_be_bytes(*bytes))
    }

    #[inline(always)]
    fn wide_number(&self, at: usize) -> u128 {
        let bytes = self.bytes.get(at..).and_then(|rest| rest.first_chunk::<16>());
        bytes.map_or(0, |bytes| u128::from_be_bytes(*bytes))
    }

    /// The key as words of memory order.
    #[inline(always)]
    pub fn words(&self) -> [u64; 5] {
        let mut words = [0; 5];
        for (word, bytes) in words.iter_mut().zip(self.bytes.as_chunks::<8>().0) {
            *word = u64::from_ne_bytes(*bytes);
        }
        words
    }
}

impl fmt::Display for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = |f: &mut fmt::Formatter<'_>, address: IpAddr, port: Option<u16>| match (address, port) {
            (address, None) => write!(f, "{address}"),
            (address, Some(port)) => write!(f, "{}", SocketAddr::new(address, port)),
        };
        end(f, self.source(), self.source_port())?;
        f.write_str(" > ")?;
        end(f, self.destination(), self.destination_port())
    }
}

impl fmt::Debug for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FlowKey({self} protocol {})", self.protocol())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4() -> FlowKey {
        FlowKey::with_ports([192, 0, 2, 1].into(), 1024, [198, 51, 100, 7].into(), 443, 6).unwrap()
    }

    #[test]
    fn bytes_are_the_toeplitz_input() {
        assert_eq!(v4().addresses_and_ports(), [192, 0, 2, 1, 198, 51, 100, 7, 4, 0, 1, 187]);
        assert_eq!(v4().addresses(), [192, 0, 2, 1, 198, 51, 100, 7]);
        let s: IpAddr = "2001:db8::1".parse().unwrap();
        let d: IpAddr = "2001:db8::2".parse().unwrap();
        let v6 = FlowKey::with_ports(s, 1, d, 2, 17).unwrap();
        assert_eq!(v6.addresses_and_ports().len(), 36);
        assert_eq!(v6.addresses_and_ports()[32..], [0, 1, 0, 2]);
        assert_eq!((v6.source(), v6.destination(), v6.protocol()), (s, d, 17));
    }

    #[test]
    fn both_directions_share_one_bidirectional_key() {
        let there = v4();
        let back = there.reversed();
        assert_eq!(back.to_string(), "198.51.100.7:443 > 192.0.2.1:1024");
        assert_ne!(there, back);
        assert_eq!(there.bidirectional(), back.bidirectional());
        assert_eq!(back.reversed(), there);
    }

    #[test]
    fn the_smaller_direction_is_the_smaller_key() {
        let ends = [([10, 0, 0, 1], 5), ([10, 0, 0, 1], 9), ([10, 0, 0, 2], 5), ([9, 255, 0, 0], 7)];
        for (source, from) in ends {
            for (destination, to) in ends {
                let v4 = FlowKey::with_ports(source.into(), from, destination.into(), to, 6).unwrap();
                let [source, destination] =
                    [source, destination].map(|a| core::net::Ipv4Addr::from(a).to_ipv6_mapped().into());
                let v6 = FlowKey::with_ports(source, from, destination, to, 6).unwrap();
                for key in [v4, v6] {
                    assert_eq!(key.is_smaller_direction(), key.bytes() <= key.reversed().bytes(), "{key}");
                    assert_eq!(key.bidirectional(), key.reversed().bidirectional());
                }
            }
        }
    }

    #[test]
    fn port_zero_is_not_the_absence_of_ports() {
        let zero = FlowKey::with_ports([10, 0, 0, 1].into(), 0, [10, 0, 0, 2].into(), 0, 17).unwrap();
        let none = FlowKey::without_ports([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 17).unwrap();
        assert_ne!(zero, none);
        assert_eq!((zero.source_port(), none.source_port()), (Some(0), None));
    }

    #[test]
    fn mixed_versions_have_no_key() {
        assert!(FlowKey::without_ports([10, 0, 0, 1].into(), "::1".parse().unwrap(), 6).is_none());
    }
}
