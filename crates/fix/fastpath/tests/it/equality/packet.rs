//! Frames as they arrive at a router.

use super::flow::{Flow, TCP};
use super::router::{Kind, Side};
use std::net::{IpAddr, SocketAddr};
use wire::IpProtocol;
use wire::emit::checksum::{fill, internet};

/// ACK and PSH.
pub const DATA: u8 = 0x18;
pub const SYN: u8 = 0x02;
pub const ACK: u8 = 0x10;

/// What varies from packet to packet of a connection, without being hostile.
#[derive(Clone, Debug)]
pub struct Packet {
    pub source: SocketAddr,
    pub destination: SocketAddr,
    pub protocol: u8,
    pub flags: u8,
    /// TOS or traffic class.
    pub class: u8,
    pub ttl: u8,
    pub identification: u16,
    pub dont_fragment: bool,
    /// Behind the header of IP: options of IPv4, or extension headers of IPv6 of which the first has this number.
    pub options: Vec<u8>,
    pub extension: Option<u8>,
    pub payload: Vec<u8>,
}

impl Packet {
    pub fn of(flow: &Flow, at: Side, payload: &[u8]) -> Packet {
        let (source, destination) = flow.arriving(at);
        Packet {
            source,
            destination,
            protocol: flow.protocol,
            flags: DATA,
            class: 0,
            ttl: 64,
            identification: 0x1234,
            dont_fragment: true,
            options: Vec::new(),
            extension: None,
            payload: payload.to_vec(),
        }
    }

    /// Has a payload with which the checksum is zero, which has two forms (RFC 1624 section 3): as the packet arrives, or as it
    /// leaves.
    pub fn make_checksum_zero(&mut self, flow: &Flow, at: Side, leaves: bool) {
        let Some(word) = self.payload.first_chunk_mut::<2>() else { return };
        *word = [0, 0];
        let mut other = self.clone();
        if leaves {
            (other.source, other.destination) = flow.leaving(at);
        }
        let checksum = other.transport();
        let field = if self.protocol == TCP { 16 } else { 6 };
        self.payload[..2].copy_from_slice(&checksum[field..field + 2]);
    }

    /// The header of TCP or UDP with its payload.
    fn transport(&self) -> Vec<u8> {
        let mut bytes = [self.source.port(), self.destination.port()].map(u16::to_be_bytes).concat();
        match self.protocol {
            TCP => bytes.extend([0, 0, 0, 1, 0, 0, 0, 2, 0x50, self.flags, 1, 0, 0, 0, 0, 0]),
            _ => bytes.extend([(self.payload.len() as u16 + 8).to_be_bytes(), [0, 0]].concat()),
        }
        bytes.extend(&self.payload);
        fill(self.source.ip(), self.destination.ip(), IpProtocol(self.protocol), &mut bytes)
            .expect("a checksum");
        bytes
    }

    /// From its IP header on.
    pub fn bytes(&self) -> Vec<u8> {
        let transport = self.transport();
        ip(self, &transport)
    }
}

/// An IP packet with this behind its header.
fn ip(packet: &Packet, behind: &[u8]) -> Vec<u8> {
    let length = packet.options.len() + behind.len();
    let mut bytes = match (packet.source.ip(), packet.destination.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let words = (packet.options.len() / 4) as u8;
            let mut ip = vec![0x45 + words, packet.class];
            ip.extend((length as u16 + 20).to_be_bytes());
            ip.extend(packet.identification.to_be_bytes());
            ip.extend([if packet.dont_fragment { 0x40 } else { 0 }, 0, packet.ttl, packet.protocol, 0, 0]);
            ip.extend([source.octets(), destination.octets()].concat());
            ip.extend(&packet.options);
            let checksum = internet(&ip).to_be_bytes();
            ip[10..12].copy_from_slice(&checksum);
            ip
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let flow_label = packet.identification.to_be_bytes();
            let mut ip = vec![0x60 | packet.class >> 4, packet.class << 4, flow_label[0], flow_label[1]];
            ip.extend((length as u16).to_be_bytes());
            ip.extend([packet.extension.unwrap_or(packet.protocol), packet.ttl]);
            ip.extend([source.octets(), destination.octets()].concat());
            ip.extend(&packet.options);
            ip
        }
        _ => panic!("two IP versions"),
    };
    bytes.extend(behind);
    bytes
}

/// An ICMPv6 echo request.
pub fn echo(source: IpAddr, destination: IpAddr, payload: &[u8]) -> Vec<u8> {
    let mut icmp = vec![128, 0, 0, 0, 0, 1, 0, 1];
    icmp.extend(payload);
    fill(source, destination, IpProtocol(58), &mut icmp).expect("a checksum");
    let packet = Packet {
        source: (source, 0).into(),
        destination: (destination, 0).into(),
        protocol: 58,
        flags: 0,
        class: 0,
        ttl: 64,
        identification: 0,
        dont_fragment: false,
        options: Vec::new(),
        extension: None,
        payload: Vec::new(),
    };
    ip(&packet, &icmp)
}

/// A packet as it arrives at a side.
pub fn frame(kind: Kind, at: Side, packet: &[u8]) -> Vec<u8> {
    let mut frame = kind.head(at);
    let is_ipv6 = packet[0] >> 4 == 6;
    if kind.is_pppoe(at) {
        frame.extend([0x88, 0x64, 0x11, 0]);
        frame.extend(super::router::SESSION.to_be_bytes());
        frame.extend((packet.len() as u16 + 2).to_be_bytes());
        frame.extend(if is_ipv6 { [0, 0x57] } else { [0, 0x21] });
    } else {
        frame.extend(if is_ipv6 { [0x86, 0xdd] } else { [8, 0] });
    }
    frame.extend(packet);
    frame
}
