//! Whether the checksums of a received frame are right.

use super::{Sum, internet};
use std::net::{IpAddr, Ipv4Addr};
use wire::emit::checksum::is_right;
use wire::extension::Kind;
use wire::{Dissection, Fragment, IpProtocol, IpVersion, Link, dissect, ipv4, ipv6};

/// What became of verifying.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Right.
    Right,
    /// Wrong.
    Wrong,
    /// The sender left it out: a UDP checksum of zero over IPv4 (RFC 768).
    Absent,
    /// There is nothing to verify with: a fragment, a protocol without a checksum or an unknown one, a frame with a
    /// defect, no IP at all.
    Unknown,
}

/// Whether the checksum of an IPv4 header is right (RFC 791 section 3.1): `header` is the whole header, options
/// included.
#[inline]
pub fn verify_ipv4_header(header: &[u8]) -> bool {
    internet(header) == 0
}

/// Whether the checksum of a whole transport packet is right. `pseudo` is the sum of its pseudo header.
///
/// TCP, UDP and ICMPv6 are summed with it, ICMP without (RFC 792); SCTP has a CRC (RFC 9260 appendix A). A UDP
/// checksum of zero is [`Verdict::Absent`] over IPv4 and wrong over IPv6 (RFC 8200 section 8.1).
pub fn verify_transport(pseudo: Sum, over_ipv6: bool, protocol: IpProtocol, packet: &[u8]) -> Verdict {
    let right = match protocol {
        IpProtocol::TCP if packet.len() >= 20 => pseudo.plus(Sum::of(packet)).checksum() == 0,
        IpProtocol::UDP if packet.len() >= 8 => match packet.get(6..8) {
            Some([0, 0]) if over_ipv6 => false,
            Some([0, 0]) => return Verdict::Absent,
            _ => pseudo.plus(Sum::of(packet)).checksum() == 0,
        },
        IpProtocol::ICMPV6 if packet.len() >= 4 => pseudo.plus(Sum::of(packet)).checksum() == 0,
        IpProtocol::ICMP if packet.len() >= 4 => internet(packet) == 0,
        IpProtocol::SCTP if packet.len() >= 12 => {
            let anybody = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
            is_right(anybody, anybody, protocol, packet)
        }
        _ => return Verdict::Unknown,
    };
    if right { Verdict::Right } else { Verdict::Wrong }
}

/// The checksums of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Verified {
    /// That of the IPv4 header; [`Verdict::Unknown`] for IPv6, which has none.
    pub header: Verdict,
    /// That of the transport packet.
    pub transport: Verdict,
}

impl Verified {
    const UNKNOWN: Verified = Verified { header: Verdict::Unknown, transport: Verdict::Unknown };
}

/// Verifies the first IP packet of an Ethernet frame, whatever tags, labels and PPPoE are in front of it. Bytes behind
/// the IP length are padding and not summed.
///
/// A frame that the sending host captured may hold unfinished checksums, which are wrong here.
pub fn verify(frame: &[u8]) -> Verified {
    let seen = dissect(Link::Ethernet, frame, frame.len());
    let (Some(flow), Some(network), None) = (seen.flow(), seen.network_offset(), seen.error()) else {
        return Verified::UNKNOWN;
    };
    let bytes = frame.get(network..).unwrap_or_default();
    let (header, packet) = match flow.version() {
        IpVersion::V4 => {
            let Some(fixed) = bytes.first_chunk().map(ipv4::Header::of) else { return Verified::UNKNOWN };
            let right = bytes.get(..fixed.header_length()).is_some_and(verify_ipv4_header);
            let header = if right { Verdict::Right } else { Verdict::Wrong };
            (header, fixed.check_length(bytes.len()).ok().and_then(|length| bytes.get(..length)))
        }
        IpVersion::V6 => {
            let Some(fixed) = bytes.first_chunk().map(ipv6::Header::of) else { return Verified::UNKNOWN };
            let length = ipv6::Header::LENGTH + usize::from(fixed.payload_length());
            (Verdict::Unknown, bytes.get(..length))
        }
    };
    let transport_at = seen.transport_offset().and_then(|at| at.checked_sub(network));
    let transport = match (packet, transport_at, seen.fragment()) {
        (Some(packet), Some(at), Fragment::None) => transport_of(&seen, frame, packet, at),
        _ => Verdict::Unknown,
    };
    Verified { header, transport }
}

/// `packet` is the IP packet, whose transport header is at byte `at`.
fn transport_of(seen: &Dissection, frame: &[u8], packet: &[u8], at: usize) -> Verdict {
    let (Some(flow), Some(transport)) = (seen.flow(), packet.get(at..)) else { return Verdict::Unknown };
    let protocol = IpProtocol(flow.protocol());
    let pseudo = match flow.version() {
        IpVersion::V4 => packet.first_chunk().map(ipv4::Header::of).and_then(|header| {
            Some(Sum::pseudo_ipv4(header.addresses(), protocol, u16::try_from(transport.len()).ok()?))
        }),
        IpVersion::V6 => ends(seen, frame, packet)
            .map(|addresses| Sum::pseudo_ipv6(&addresses, protocol, transport.len() as u32)),
    };
    match pseudo {
        Some(pseudo) => verify_transport(pseudo, flow.version() == IpVersion::V6, protocol, transport),
        None => Verdict::Unknown,
    }
}

/// Source and destination as the transport layer sees them: the home address of a mobile node, and the last node of a
/// routing header (RFC 8200 section 8.1). `None` for a routing header whose type hides the last node.
fn ends(seen: &Dissection, frame: &[u8], packet: &[u8]) -> Option<[u8; 32]> {
    let mut addresses = *packet.first_chunk().map(ipv6::Header::of)?.addresses();
    if seen.extensions().is_empty() {
        return Some(addresses);
    }
    if let Some(home) = seen.home_address(frame) {
        *addresses.first_chunk_mut()? = home;
    }
    for header in seen.extension_headers(frame) {
        if header.kind != Kind::Routing || header.segments_left() == 0 {
            continue;
        }
        let last: &[u8; 16] = match header.routing_type() {
            0 => header.bytes.last_chunk()?,
            // RFC 6275 section 6.4, RFC 8754 section 2: the first entry is the last node.
            2 | 4 => header.bytes.get(8..)?.first_chunk()?,
            _ => return None,
        };
        *addresses.last_chunk_mut()? = *last;
    }
    Some(addresses)
}
