//! Router Solicitation and Router Advertisement (RFC 4861), as far as a link with one host needs them.

use crate::concentrator::network::Network;
use crate::dhcpv6::{PREFERRED, VALID};
use std::net::Ipv6Addr;
use std::time::Duration;

/// Every packet of Neighbor Discovery has come over no router (section 6.1).
pub(crate) const HOP_LIMIT: u8 = 255;
/// The longest and the shortest time from one advertisement to the next (section 6.2.1: MaxRtrAdvInterval, MinRtrAdvInterval).
pub(crate) const LONGEST_INTERVAL: Duration = Duration::from_secs(1800);
pub(crate) const SHORTEST_INTERVAL: Duration = Duration::from_secs(1350);
/// Advertisements at the beginning, and the time between them (section 10).
pub(crate) const AT_FIRST: u8 = 3;
pub(crate) const FIRST_INTERVAL: Duration = Duration::from_secs(16);

const SOLICITATION: u8 = 133;
const ADVERTISEMENT: u8 = 134;
/// What hosts are to use as theirs: at most so many hops.
const HOPS: u8 = 64;
/// Addresses are assigned by DHCPv6, too, and so is everything else (section 4.2).
const MANAGED_AND_OTHER: u8 = 0xc0;
/// The prefix is that of the link, and hosts make addresses in it (section 4.6.2).
const ON_LINK_AND_AUTONOMOUS: u8 = 0xc0;
const PREFIX_INFORMATION: u8 = 3;
/// RFC 8106 section 5.1.
const NAME_SERVERS: u8 = 25;

/// Whether an ICMPv6 message whose checksum is right is a solicitation (section 6.1.1). `hop_limit` is that of its packet.
pub(crate) fn is_solicitation(message: &[u8], source: Ipv6Addr, hop_limit: u8) -> bool {
    let Some((head, mut options)) = message.split_first_chunk::<8>() else { return false };
    while let Some((kind, rest)) = options.split_first() {
        let length = rest.first().map_or(0, |units| usize::from(*units) * 8);
        // A source without an address has no link-layer address either.
        let is_wrong = length == 0 || *kind == 1 && source.is_unspecified();
        match options.get(length..) {
            Some(rest) if !is_wrong => options = rest,
            _ => return false,
        }
    }
    matches!(head, [SOLICITATION, 0, ..]) && hop_limit == HOP_LIMIT
}

/// An advertisement of this router, with its checksum left to be filled in.
pub(crate) fn advertisement(prefix: Option<Network>, name_servers: &[Ipv6Addr]) -> Vec<u8> {
    // As a router for three times the longest interval (section 6.2.1: AdvDefaultLifetime).
    let lifetime = (LONGEST_INTERVAL.as_secs() * 3) as u16;
    let [high, low] = lifetime.to_be_bytes();
    let mut out = vec![ADVERTISEMENT, 0, 0, 0, HOPS, MANAGED_AND_OTHER, high, low];
    // Reachable and retransmission times are the host's.
    out.extend([0; 8]);
    if let Some((prefix, address)) = prefix.and_then(|prefix| Some((prefix, prefix.ipv6()?))) {
        out.extend([PREFIX_INFORMATION, 4, prefix.length(), ON_LINK_AND_AUTONOMOUS]);
        out.extend((VALID.as_secs() as u32).to_be_bytes());
        out.extend((PREFERRED.as_secs() as u32).to_be_bytes());
        out.extend([0; 4]);
        out.extend(address.octets());
    }
    if !name_servers.is_empty() {
        out.extend([NAME_SERVERS, (1 + 2 * name_servers.len()) as u8, 0, 0]);
        out.extend(u32::from(lifetime).to_be_bytes());
        name_servers.iter().for_each(|server| out.extend(server.octets()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2);

    #[test]
    fn solicitations_are_those_of_the_specification() {
        let plain = [133, 0, 0, 0, 0, 0, 0, 0];
        let with_address = [&plain[..], &[1, 1, 2, 0, 0, 0, 0, 1]].concat();
        for source in [HOST, Ipv6Addr::UNSPECIFIED] {
            assert!(is_solicitation(&plain, source, 255));
            assert_eq!(is_solicitation(&with_address, source, 255), source == HOST);
        }
        assert!(!is_solicitation(&plain, HOST, 254));
        for wrong in [
            &plain[..7],
            &[134, 0, 0, 0, 0, 0, 0, 0],
            &[133, 1, 0, 0, 0, 0, 0, 0],
            &[&plain[..], &[14, 0, 0, 0, 0, 0, 0, 0]].concat(),
            &[&plain[..], &[14, 2, 0, 0, 0, 0, 0, 0]].concat(),
            &[&plain[..], &[14]].concat(),
        ] {
            assert!(!is_solicitation(wrong, HOST, 255), "{wrong:?}");
        }
    }

    #[test]
    fn an_advertisement_has_the_prefix_and_name_servers() {
        let prefix = "2001:db8:f::/64".parse().unwrap();
        let servers = ["2001:db8::53".parse().unwrap(), "2001:db8::54".parse().unwrap()];
        let out = advertisement(Some(prefix), &servers);
        assert_eq!(out[..8], [134, 0, 0, 0, 64, 0xc0, 0x15, 0x18]);
        assert_eq!(out[16..24], [3, 4, 64, 0xc0, 0, 0, 0x1c, 0x20]);
        assert_eq!(out[32..36], [0x20, 1, 0xd, 0xb8]);
        assert_eq!(out[48..56], [25, 5, 0, 0, 0, 0, 0x15, 0x18]);
        assert_eq!(out.len(), 16 + 32 + 40);
        assert_eq!(advertisement(None, &[]).len(), 16);
    }
}
