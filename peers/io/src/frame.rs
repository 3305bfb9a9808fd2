//! Frames: the headers of an encapsulated link in front of pieces of a super-packet.

use anyhow::ensure;
use rxlane_wire::emit::{Emit, Encapsulation, Ipv4, Tcp, checksum};
use rxlane_wire::ethernet::MacAddress;
use rxlane_wire::{IpProtocol, IpVersion};
use std::net::Ipv4Addr;

/// An address that is nobody's here, so that a stack that gets the packet drops it.
const SOURCE: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 1);
const DESTINATION: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
/// IPv4 with no options and TCP with timestamps.
pub const IP_HEADERS: usize = 52;
/// Pieces of a super-packet.
pub const PIECES: usize = 44;
const SUPER_PAYLOAD: usize = 63_800;

/// PPPoE in two tags.
pub const PPPOE: &str = "ad:100,q:200,pppoe:1234@02:00:5e:00:00:01";
/// Two tags alone, behind which the kernel can segment.
pub const TAGS: &str = "ad:100,q:200";
pub const NO_LINK: &str = "";

/// The headers from the destination address on, of a frame with so many octets of TCP payload. Without an encapsulation
/// the packet alone.
pub fn headers(encapsulation: &str, payload: usize, port: u16) -> anyhow::Result<Vec<u8>> {
    let packet = IP_HEADERS + payload;
    let mut octets = vec![0; 128];
    let mut at = 0;
    if !encapsulation.is_empty() {
        let encapsulation: Encapsulation =
            encapsulation.parse().map_err(|error| anyhow::anyhow!("{encapsulation}: {error}"))?;
        let (to, from) = (MacAddress([2, 0, 0x5e, 0, 0, 1]), MacAddress([2, 0, 0, 0, 0, 9]));
        at = encapsulation.emit(to, from, IpVersion::V4, packet, &mut octets)?;
    }
    let ip = Ipv4 {
        traffic_class: 0,
        total_length: u16::try_from(packet)?,
        identification: 0,
        dont_fragment: true,
        more_fragments: false,
        fragment_offset: 0,
        ttl: 64,
        protocol: IpProtocol::TCP,
        source: SOURCE,
        destination: DESTINATION,
        options: &[],
    };
    let tcp = Tcp {
        source_port: port,
        destination_port: 9,
        sequence: 1,
        acknowledgment: 1,
        flags: Tcp::ACK,
        window: 500,
        checksum: 0,
        urgent: 0,
        options: &[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 1],
    };
    let start = at;
    at += ip.emit(&mut octets[at..])?;
    at += tcp.emit(&mut octets[at..])?;
    ensure!(at - start == IP_HEADERS, "headers of {} octets", at - start);
    octets.truncate(at);
    // The payload is zeroes, which add nothing to the sum, but the length does.
    let mut segment = octets[start + 20..].to_vec();
    segment.resize(32 + payload, 0);
    checksum::fill(SOURCE.into(), DESTINATION.into(), IpProtocol::TCP, &mut segment)?;
    octets[start + 20..].copy_from_slice(&segment[..32]);
    Ok(octets)
}

/// The checksum of the pseudo-header alone, as a super-packet carries it, in place of the whole.
pub fn partial(headers: &mut [u8], payload: usize) {
    let sum = checksum::Sum::pseudo_header(SOURCE.into(), DESTINATION.into(), IpProtocol::TCP, 32 + payload);
    let at = headers.len() - 16;
    let folded = sum.map_or(0, |sum| sum.folded());
    headers[at..at + 2].copy_from_slice(&folded.to_be_bytes());
}

/// `struct virtio_net_hdr`: TCP over IPv4, `segment` octets a piece, the checksum partial (virtio 1.2 section 5.1.6).
pub fn virtio(headers: usize, segment: usize) -> [u8; 10] {
    let numbers = [headers, segment, headers - 32, 16].map(|number| (number as u16).to_ne_bytes());
    let mut octets = [1, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    octets[2..].copy_from_slice(numbers.as_flattened());
    octets
}

/// A super-packet's payload and the headers that each frame of it gets.
pub struct Source {
    pub headers: Vec<u8>,
    payload: Vec<u8>,
    piece: usize,
    at: usize,
}

impl Source {
    /// Frames of so many octets of payload each.
    pub fn new(encapsulation: &str, piece: usize) -> anyhow::Result<Source> {
        let headers = headers(encapsulation, piece, 1024)?;
        Ok(Source { headers, payload: vec![0; SUPER_PAYLOAD], piece, at: 0 })
    }

    pub fn frame_length(&self) -> usize {
        self.headers.len() + self.piece
    }

    fn advance(&mut self) -> (usize, usize) {
        let start = self.at;
        let end = start + self.piece;
        self.at = if end + self.piece <= self.payload.len() { end } else { 0 };
        (start, end)
    }

    /// The next `count` frames as headers and payload, where they lie.
    pub fn pieces(&self, count: usize) -> impl Iterator<Item = [&[u8]; 2]> {
        let fit = self.payload.len().checked_div(self.piece).unwrap_or(usize::MAX);
        let piece = self.piece;
        (0..count).map(move |index| [&self.headers[..], &self.payload[index % fit * piece..][..piece]])
    }

    /// Writes the next frame, whole.
    pub fn write(&mut self, frame: &mut [u8]) {
        let (start, end) = self.advance();
        let (head, rest) = frame.split_at_mut(self.headers.len());
        head.copy_from_slice(&self.headers);
        rest[..self.piece].copy_from_slice(&self.payload[start..end]);
    }

    /// The payload of a whole super-packet.
    pub fn super_payload(&self) -> &[u8] {
        &self.payload[..self.piece * PIECES]
    }
}
