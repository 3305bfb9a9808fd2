//! What no frame of the comparison has, since two routers cannot be expected to do the same with it at the same time; and the
//! checksums of frames that were changed.

use super::ends::Sent;
use super::flow::{TCP, UDP};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use wire::IpProtocol;
use wire::emit::checksum::{Sum, internet};

/// The longest frame of Ethernet without a tag, and one that a packet socket sends (`dev_validate_header()`).
const LONGEST: usize = 1514;
const SHORTEST: usize = 15;

/// An IP packet in a frame, however many tags and whatever PPPoE header there are before it.
#[derive(Clone, Copy)]
struct Found {
    ip: usize,
    is_ipv6: bool,
    transport: usize,
    protocol: u8,
    /// Of what is behind the IP header in a fragment, where it was in the packet.
    offset: usize,
}

fn word(frame: &[u8], at: usize) -> Option<u16> {
    frame.get(at..at + 2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
}

fn find(frame: &[u8]) -> Option<Found> {
    let mut at = 12;
    while matches!(word(frame, at)?, 0x8100 | 0x88a8 | 0x9100 | 0x9200 | 0x9300) {
        at += 4;
    }
    let ip = match word(frame, at)? {
        0x8864 => at + 10,
        _ => at + 2,
    };
    match frame.get(ip)? >> 4 {
        4 => find_ipv4(frame, ip),
        6 => find_ipv6(frame, ip),
        _ => None,
    }
}

fn find_ipv4(frame: &[u8], ip: usize) -> Option<Found> {
    let transport = ip + usize::from(frame.get(ip)? & 15) * 4;
    let offset = usize::from(word(frame, ip + 6)? & 0x1fff) * 8;
    Some(Found { ip, is_ipv6: false, transport, protocol: *frame.get(ip + 9)?, offset })
}

fn find_ipv6(frame: &[u8], ip: usize) -> Option<Found> {
    let (mut protocol, mut transport, mut offset) = (*frame.get(ip + 6)?, ip + 40, 0);
    for _ in 0..8 {
        match protocol {
            44 => offset = usize::from(word(frame, transport + 2)? & 0xfff8),
            0 | 43 | 60 | 135 => {}
            _ => break,
        }
        let length = if protocol == 44 { 8 } else { usize::from(*frame.get(transport + 1)?) * 8 + 8 };
        protocol = *frame.get(transport)?;
        transport += length;
    }
    Some(Found { ip, is_ipv6: true, transport, protocol, offset })
}

/// Takes out of a frame what makes routers differ that are alike.
pub fn make(sent: &mut Sent) {
    let bytes = &mut sent.bytes;
    bytes.truncate(LONGEST);
    bytes.resize(bytes.len().max(SHORTEST), 0);
    if let Some((start, offset)) = sent.partial
        && bytes.len() < usize::from(start + offset) + 2
    {
        sent.partial = None;
    }
    let Some(found) = find(bytes) else { return };
    no_end(bytes, &found);
    no_time(bytes, &found);
    if sent.partial.is_none() {
        no_left_checksum(bytes, &found);
    }
}

/// SYN, FIN and RST change the state of connections that all frames use, and the daemon follows a moment later; what it does then
/// other tests examine.
fn no_end(bytes: &mut [u8], found: &Found) {
    if found.protocol == TCP
        && let Some(place) = (found.transport + 13).checked_sub(found.offset)
        && let Some(flags) = bytes.get_mut(place)
    {
        *flags &= !7;
    }
}

/// The IP option that has the time of day (RFC 791, Internet Timestamp).
fn no_time(bytes: &mut [u8], found: &Found) {
    const TIMESTAMP: u8 = 0x44;
    if !found.is_ipv6
        && let Some(options) = bytes.get_mut(found.ip + 20..found.transport)
    {
        options.iter_mut().filter(|byte| **byte == TIMESTAMP).for_each(|byte| *byte = 1);
    }
}

/// A checksum that is the sum of the pseudo header is one that was left to a device. Of an intact one the kernel knows so by
/// the socket buffer, which XDP does not see: with that sum there, a packet is taken for such a one.
fn no_left_checksum(bytes: &mut [u8], found: &Found) {
    let field = found.transport + if found.protocol == TCP { 16 } else { 6 };
    if pseudo_sum(bytes).is_some_and(|sum| word(bytes, field) == Some(sum)) {
        bytes[field] ^= 0x55;
    }
}

/// The end of the IP packet, by its own length.
fn end(bytes: &[u8], found: &Found) -> Option<usize> {
    let at = if found.is_ipv6 { found.ip + 4 } else { found.ip + 2 };
    let length = usize::from(word(bytes, at)?) + if found.is_ipv6 { 40 } else { 0 };
    Some(found.ip + length).filter(|end| *end <= bytes.len())
}

/// The sum of the pseudo header of TCP or UDP; `None`: there is no such packet, or not all of it.
pub fn pseudo_sum(bytes: &[u8]) -> Option<u16> {
    let found = find(bytes)?;
    if ![TCP, UDP].contains(&found.protocol) {
        return None;
    }
    let length = end(bytes, &found)?.checked_sub(found.transport)?;
    let (source, destination) = addresses(bytes, &found)?;
    let sum = Sum::pseudo_header(source, destination, IpProtocol(found.protocol), length)?;
    Some(sum.folded())
}

fn addresses(bytes: &[u8], found: &Found) -> Option<(IpAddr, IpAddr)> {
    let v4 = |at: usize| Some(IpAddr::from(Ipv4Addr::from(*bytes.get(at..)?.first_chunk::<4>()?)));
    let v6 = |at: usize| Some(IpAddr::from(Ipv6Addr::from(*bytes.get(at..)?.first_chunk::<16>()?)));
    if found.is_ipv6 {
        v6(found.ip + 8).zip(v6(found.ip + 24))
    } else {
        v4(found.ip + 12).zip(v4(found.ip + 16))
    }
}

/// Makes the checksum of an IPv4 header right, where there is one.
pub fn fix_header(bytes: &mut [u8]) {
    let Some(found) = find(bytes).filter(|found| !found.is_ipv6) else { return };
    let Some(header) = bytes.get_mut(found.ip..found.transport).filter(|header| header.len() >= 20) else {
        return;
    };
    header[10..12].fill(0);
    let checksum = internet(header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// Makes the checksum of TCP or UDP right, where there is one.
pub fn fix_transport(bytes: &mut [u8]) {
    let Some(found) = find(bytes) else { return };
    let (Some(pseudo), Some(end)) = (pseudo_sum(bytes), end(bytes, &found)) else { return };
    let field = if found.protocol == TCP { 16 } else { 6 };
    let Some(transport) = bytes.get_mut(found.transport..end) else { return };
    if let Some(place) = transport.get_mut(field..field + 2) {
        place.fill(0);
        let checksum = Sum::ZERO.word(pseudo).bytes(transport).finish();
        transport[field..field + 2].copy_from_slice(&checksum.to_be_bytes());
    }
}
