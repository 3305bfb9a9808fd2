//! What arrives at the far ends of a router: every packet of TCP and UDP, each with right checksums.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use testkit::frames::Frames;
use testkit::netns::Namespace;

pub const TCP: u8 = 6;
pub const UDP: u8 = 17;

/// A packet of TCP or UDP, as it arrived.
#[derive(Clone, Debug)]
pub struct Packet {
    /// Of the frame.
    pub to_mac: [u8; 6],
    /// Everything between the MAC addresses and the IP header.
    pub header: Vec<u8>,
    pub protocol: u8,
    pub source: SocketAddr,
    pub destination: SocketAddr,
    /// Behind the header of UDP; for TCP with that header.
    pub payload: Vec<u8>,
}

pub struct Sniffer(Frames);

impl Sniffer {
    pub fn on(namespace: &Namespace, interface: &str) -> Sniffer {
        Sniffer(namespace.inside(|| Frames::open(interface)).expect("a packet socket"))
    }

    /// Frames that have arrived since the last call.
    pub fn frames(&mut self) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        self.0.receive(&mut |frame| frames.push(frame.to_vec())).expect("frames");
        frames
    }

    /// Packets that have arrived since the last call. All their checksums are right.
    #[track_caller]
    pub fn packets(&mut self) -> Vec<Packet> {
        self.frames().iter().filter_map(|frame| packet(frame)).collect()
    }

    /// Sends a frame.
    pub fn send(&mut self, frame: &[u8]) {
        self.0.send(frame).expect("sent");
    }

    pub fn send_all(&mut self, frames: &[Vec<u8>]) {
        // In pieces for which a receiver has place.
        for piece in frames.chunks(64) {
            let piece: Vec<&[u8]> = piece.iter().map(Vec::as_slice).collect();
            self.0.send_all(&piece).expect("sent");
        }
    }
}

/// The sum of words of 16 bits, as one's complement (RFC 1071).
pub fn sum(parts: &[&[u8]]) -> u16 {
    let mut sum: u32 = 0;
    for part in parts {
        for pair in part.chunks(2) {
            sum += u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low));
            sum = (sum & 0xffff) + (sum >> 16);
        }
    }
    (sum & 0xffff) as u16 + (sum >> 16) as u16
}

/// `None`: it is neither TCP nor UDP.
#[track_caller]
fn packet(frame: &[u8]) -> Option<Packet> {
    let mut place = 12;
    let word = |place: usize| u16::from_be_bytes([frame[place], frame[place + 1]]);
    while [0x8100, 0x88a8].contains(&word(place)) {
        place += 4;
    }
    let is_ipv6 = match word(place) {
        0x0800 => false,
        0x86dd => true,
        0x8864 => {
            place += 8;
            match word(place) {
                0x0021 => false,
                0x0057 => true,
                _ => return None,
            }
        }
        _ => return None,
    };
    let (header, ip) = (&frame[12..place + 2], &frame[place + 2..]);
    let (protocol, addresses, data) = if is_ipv6 { ipv6(ip) } else { ipv4(ip)? };
    if ![TCP, UDP].contains(&protocol) {
        return None;
    }
    let length = (data.len() as u32).to_be_bytes();
    let is_unchecked = protocol == UDP && !is_ipv6 && data[6..8] == [0, 0];
    assert!(
        is_unchecked || sum(&[addresses, &length, &[0, protocol], data]) == 0xffff,
        "a wrong checksum: {frame:02x?}"
    );
    let port = |place: usize| u16::from_be_bytes([data[place], data[place + 1]]);
    let [source, destination] = [0, 1].map(|number| {
        let address = &addresses[number * addresses.len() / 2..][..addresses.len() / 2];
        let port = port(number * 2);
        match <[u8; 4]>::try_from(address) {
            Ok(address) => SocketAddr::from((Ipv4Addr::from(address), port)),
            Err(_) => {
                SocketAddr::from((Ipv6Addr::from(<[u8; 16]>::try_from(address).expect("an address")), port))
            }
        }
    });
    let payload = if protocol == UDP { &data[8..] } else { data };
    let (header, payload) = (header.to_vec(), payload.to_vec());
    let to_mac = frame[..6].try_into().expect("six bytes");
    Some(Packet { to_mac, header, protocol, source, destination, payload })
}

/// Protocol, both addresses, and what is behind the header; `None` for a fragment.
#[track_caller]
fn ipv4(ip: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let header = usize::from(ip[0] & 15) * 4;
    let length = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
    assert_eq!(sum(&[&ip[..header]]), 0xffff, "a wrong sum of the IP header: {ip:02x?}");
    let is_whole = (u16::from_be_bytes([ip[6], ip[7]]) & 0x3fff) == 0;
    is_whole.then(|| (ip[9], &ip[12..20], &ip[header..length]))
}

fn ipv6(ip: &[u8]) -> (u8, &[u8], &[u8]) {
    let length = usize::from(u16::from_be_bytes([ip[4], ip[5]]));
    (ip[6], &ip[8..40], &ip[40..40 + length])
}
