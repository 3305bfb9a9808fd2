//! Where the headers of a super-packet are, every length checked.

use super::SegmentError;
use crate::virtio::NetHeader;
use wire::error::{Error, Field, Layer, Rule};
use wire::extension::{self, Kind};
use wire::transport::{Tcp, Udp};
use wire::{Fragment, IpProtocol, IpVersion, ipv4, ipv6};

/// Bytes of a TCP header in front of its checksum.
pub(crate) const TCP_CHECKSUM: usize = 16;
/// Bytes of a UDP header in front of its checksum.
pub(crate) const UDP_CHECKSUM: usize = 6;

/// The transport protocols that are segmented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Tcp,
    Udp,
}

/// The headers of a super-packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) version: IpVersion,
    pub(super) transport: Transport,
    /// Bytes before the transport header.
    pub(super) network_length: usize,
    /// Bytes before the payload.
    pub(super) length: usize,
}

impl Layout {
    /// The headers of `packet`, which are what `header` says of them.
    pub(super) fn of(header: &NetHeader, packet: &[u8]) -> Result<Layout, SegmentError> {
        let transport = match header.gso_type & !NetHeader::ECN {
            NetHeader::TCP_IPV4 | NetHeader::TCP_IPV6 => Transport::Tcp,
            NetHeader::UDP if header.gso_type & NetHeader::ECN == 0 => Transport::Udp,
            _ => return Err(SegmentError::GsoType { found: header.gso_type }),
        };
        if header.gso_size == 0 {
            return Err(SegmentError::NoSize);
        }
        if !header.needs_checksum() {
            return Err(SegmentError::NoChecksum);
        }
        if usize::from(header.header_length) > packet.len() {
            return Err(SegmentError::HeaderLength { found: header.header_length, packet: packet.len() });
        }
        let (version, network_length, protocol) = network(packet)?;
        let expected = match transport {
            Transport::Tcp => IpProtocol::TCP,
            Transport::Udp => IpProtocol::UDP,
        };
        let version_fits = match header.gso_type & !NetHeader::ECN {
            NetHeader::TCP_IPV4 => version == IpVersion::V4,
            NetHeader::TCP_IPV6 => version == IpVersion::V6,
            _ => true,
        };
        if protocol != expected || !version_fits {
            return Err(SegmentError::OtherProtocol {
                gso_type: header.gso_type,
                version: if version == IpVersion::V4 { 4 } else { 6 },
                protocol: protocol.0,
            });
        }
        let transport_length = transport_header(transport, packet, network_length)?;
        check_checksum(header, transport, network_length)?;
        Ok(Layout { version, transport, network_length, length: network_length + transport_length })
    }
}

fn check_checksum(header: &NetHeader, transport: Transport, at: usize) -> Result<(), SegmentError> {
    if usize::from(header.checksum_start) != at {
        return Err(SegmentError::ChecksumStart { found: header.checksum_start, transport: at });
    }
    let expected = match transport {
        Transport::Tcp => TCP_CHECKSUM,
        Transport::Udp => UDP_CHECKSUM,
    } as u16;
    if header.checksum_offset != expected {
        return Err(SegmentError::ChecksumOffset { found: header.checksum_offset, expected });
    }
    Ok(())
}

/// The IP version of a packet, from its first four bits.
pub(super) fn version(packet: &[u8]) -> Result<IpVersion, wire::Error> {
    match packet.first().map(|byte| byte >> 4) {
        Some(4) => Ok(IpVersion::V4),
        Some(6) => Ok(IpVersion::V6),
        Some(found) => Err(Error::new(Layer::Ip, Field::Version, Rule::Undefined, usize::from(found), 0)),
        None => Err(Error::new(Layer::Ip, Field::Header, Rule::Cut, 0, 1)),
    }
}

/// Version, bytes of the IP header with its options or extension headers, and the protocol behind them.
fn network(packet: &[u8]) -> Result<(IpVersion, usize, IpProtocol), SegmentError> {
    let cut = |layer, needed| Error::new(layer, Field::Header, Rule::Cut, packet.len(), needed);
    match version(packet)? {
        IpVersion::V4 => {
            let header = packet.first_chunk().map(ipv4::Header::of);
            let header = header.ok_or(cut(Layer::Ipv4, ipv4::Header::LENGTH))?;
            header.check_header()?;
            header.check_length(packet.len())?;
            let length = usize::from(header.total_length());
            if length != packet.len() {
                return Err(SegmentError::Length { found: length, packet: packet.len() });
            }
            if header.fragment() != Fragment::None {
                return Err(SegmentError::Fragment);
            }
            Ok((IpVersion::V4, header.header_length(), header.protocol()))
        }
        IpVersion::V6 => {
            let header = packet.first_chunk().map(ipv6::Header::of);
            let header = header.ok_or(cut(Layer::Ipv6, ipv6::Header::LENGTH))?;
            let length = ipv6::Header::LENGTH + usize::from(header.payload_length());
            if length != packet.len() {
                return Err(SegmentError::Length { found: length, packet: packet.len() });
            }
            extension_headers(packet, header.next_header())
        }
    }
}

/// The end of the extension headers that a segment may have, and the protocol behind them. Options and routing go into
/// every segment as they are; a fragment header makes the packet a fragment, and any other header stands for the
/// protocol. Every header is at least eight bytes, so the packet bounds the walk.
fn extension_headers(
    packet: &[u8],
    mut next: IpProtocol,
) -> Result<(IpVersion, usize, IpProtocol), SegmentError> {
    let mut at = ipv6::Header::LENGTH;
    while let Some(kind) = Kind::of(next) {
        match kind {
            Kind::HopByHop | Kind::Routing | Kind::DestinationOptions => {}
            Kind::Fragment => return Err(SegmentError::Fragment),
            Kind::Authentication => break,
        }
        let rest = packet.get(at..).unwrap_or_default();
        let header = extension::Header::parse(kind, rest, rest.len()).map_err(|error| error.at(at))?;
        next = header.next_header();
        at += header.bytes.len();
    }
    Ok((IpVersion::V6, at, next))
}

/// Bytes of the transport header at byte `at`.
fn transport_header(transport: Transport, packet: &[u8], at: usize) -> Result<usize, SegmentError> {
    let rest = packet.get(at..).unwrap_or_default();
    match transport {
        Transport::Tcp => {
            let cut = Error::new(Layer::Tcp, Field::Header, Rule::Cut, rest.len(), Tcp::LENGTH).at(at);
            let header = rest.first_chunk().map(Tcp::of).ok_or(cut)?;
            header.check(rest.len()).map_err(|error| error.at(at))?;
            Ok(header.header_length())
        }
        Transport::Udp => {
            let cut = Error::new(Layer::Udp, Field::Header, Rule::Cut, rest.len(), Udp::LENGTH).at(at);
            let header = rest.first_chunk().map(Udp::of).ok_or(cut)?;
            if usize::from(header.length()) != rest.len() {
                return Err(SegmentError::UdpLength { found: header.length(), available: rest.len() });
            }
            Ok(Udp::LENGTH)
        }
    }
}
