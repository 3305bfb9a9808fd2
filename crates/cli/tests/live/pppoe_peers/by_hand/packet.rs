//! IP packets: UDP over IPv4 and IPv6 (RFC 791, RFC 8200, RFC 768), echoes of ICMP (RFC 792, RFC 4443), checksums (RFC 1071).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const UDP: u8 = 17;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

/// The sum of 16-bit words, folded and inverted.
fn checksum(parts: &[&[u8]]) -> u16 {
    let octets: Vec<u8> = parts.concat();
    let mut sum: u32 = 0;
    for pair in octets.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// What the checksum of the transport header goes over besides it.
fn pseudo_header(source: IpAddr, destination: IpAddr, protocol: u8, length: usize) -> Vec<u8> {
    let octets = |address: IpAddr| match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let mut pseudo = [octets(source), octets(destination)].concat();
    if source.is_ipv4() {
        pseudo.extend([0, protocol]);
        pseudo.extend((length as u16).to_be_bytes());
    } else {
        pseudo.extend((length as u32).to_be_bytes());
        pseudo.extend([0, 0, 0, protocol]);
    }
    pseudo
}

/// A UDP datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    pub source: (IpAddr, u16),
    pub destination: (IpAddr, u16),
    pub payload: Vec<u8>,
}

/// Octets of all headers in front of the payload.
pub const fn headers(is_ipv4: bool) -> usize {
    if is_ipv4 { 28 } else { 48 }
}

/// The packet of a datagram.
pub fn udp(datagram: &Datagram) -> Vec<u8> {
    let Datagram { source, destination, payload } = datagram;
    let length = (payload.len() + 8) as u16;
    let mut segment = [source.1, destination.1, length, 0].map(u16::to_be_bytes).concat();
    segment.extend(payload);
    let sum = checksum(&[&pseudo_header(source.0, destination.0, UDP, segment.len()), &segment]);
    // RFC 768: a sum of zero is sent as all ones.
    segment[6..8].copy_from_slice(&(if sum == 0 { 0xffff } else { sum }).to_be_bytes());
    wrap(source.0, destination.0, UDP, &segment)
}

/// An IP header in front of what is given.
fn wrap(source: IpAddr, destination: IpAddr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let mut header = vec![0x45, 0];
            header.extend(((payload.len() + 20) as u16).to_be_bytes());
            header.extend([0, 0, 0x40, 0, 64, protocol, 0, 0]);
            header.extend(source.octets());
            header.extend(destination.octets());
            let sum = checksum(&[&header]);
            header[10..12].copy_from_slice(&sum.to_be_bytes());
            [header, payload.to_vec()].concat()
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let mut header = vec![0x60, 0, 0, 0];
            header.extend((payload.len() as u16).to_be_bytes());
            header.extend([protocol, 64]);
            header.extend(source.octets());
            header.extend(destination.octets());
            [header, payload.to_vec()].concat()
        }
        _ => panic!("{source} and {destination} are of two versions"),
    }
}

struct Header<'p> {
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    payload: &'p [u8],
}

/// The IP header of a packet that ends where it says.
fn unwrap(packet: &[u8]) -> Result<Header<'_>, &'static str> {
    let short = "it ends in the IP header";
    let address4 = |at: usize| {
        let octets: Option<[u8; 4]> = packet.get(at..at + 4).and_then(|octets| octets.try_into().ok());
        octets.map(|octets| IpAddr::from(Ipv4Addr::from(octets))).ok_or(short)
    };
    let address6 = |at: usize| {
        let octets: Option<[u8; 16]> = packet.get(at..at + 16).and_then(|octets| octets.try_into().ok());
        octets.map(|octets| IpAddr::from(Ipv6Addr::from(octets))).ok_or(short)
    };
    let length = |at: usize| -> Result<usize, &'static str> {
        let octets: [u8; 2] =
            packet.get(at..at + 2).and_then(|octets| octets.try_into().ok()).ok_or(short)?;
        Ok(u16::from_be_bytes(octets).into())
    };
    match packet.first() {
        Some(0x45) => {
            if length(2)? != packet.len() {
                return Err("the length of IPv4 is not that of the packet");
            }
            if checksum(&[&packet[..20]]) != 0 {
                return Err("the checksum of the IPv4 header is wrong");
            }
            let (source, destination) = (address4(12)?, address4(16)?);
            Ok(Header { source, destination, protocol: packet[9], payload: &packet[20..] })
        }
        Some(first) if first >> 4 == 6 => {
            let (source, destination) = (address6(8)?, address6(24)?);
            if length(4)? + 40 != packet.len() {
                return Err("the length of IPv6 is not that of the packet");
            }
            Ok(Header { source, destination, protocol: packet[6], payload: &packet[40..] })
        }
        _ => Err("it is no IP packet without options"),
    }
}

/// The datagram of a packet, whose every length and checksum has to be right.
pub fn read_udp(packet: &[u8]) -> Result<Datagram, String> {
    let read = || {
        let Header { source, destination, protocol, payload } = unwrap(packet)?;
        if protocol != UDP || payload.len() < 8 {
            return Err("it is no UDP datagram");
        }
        let port = |at: usize| u16::from_be_bytes([payload[at], payload[at + 1]]);
        if usize::from(port(4)) != payload.len() {
            return Err("the length of UDP is not that of the packet");
        }
        if checksum(&[&pseudo_header(source, destination, UDP, payload.len()), payload]) != 0 {
            return Err("the checksum of UDP is wrong");
        }
        let (source, destination) = ((source, port(0)), (destination, port(2)));
        Ok(Datagram { source, destination, payload: payload[8..].to_vec() })
    };
    read().map_err(|what| format!("{what}: {packet:02x?}"))
}

/// The answer to an echo request to `own`; `None`: it is something else.
pub fn echo_reply(packet: &[u8], own: IpAddr) -> Option<Vec<u8>> {
    let Header { source, destination, protocol, payload } = unwrap(packet).ok()?;
    let (request, reply) = match protocol {
        ICMP => (8, 0),
        ICMPV6 => (128, 129),
        _ => return None,
    };
    let pseudo = |from, to| match protocol {
        ICMPV6 => pseudo_header(from, to, ICMPV6, payload.len()),
        _ => Vec::new(),
    };
    let is_whole = checksum(&[&pseudo(source, destination), payload]) == 0;
    if destination != own || payload.first() != Some(&request) || !is_whole {
        return None;
    }
    let mut answer = payload.to_vec();
    answer[..4].copy_from_slice(&[reply, 0, 0, 0]);
    let sum = checksum(&[&pseudo(own, source), &answer]);
    answer[2..4].copy_from_slice(&sum.to_be_bytes());
    Some(wrap(own, source, protocol, &answer))
}
