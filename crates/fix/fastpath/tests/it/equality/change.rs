//! Packets of connections that exist, most of them hostile.

use super::ends::Sent;
use super::flow::{Flow, TCP, UDP};
use super::packet::{ACK, DATA, Packet, frame};
use super::random::Random;
use super::router::{Kind, Side};
use super::safe::{self, fix_header, fix_transport};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Values that mean something somewhere.
const WORDS: [u16; 20] = [
    0x8100, 0x88a8, 0x9100, 0x0800, 0x86dd, 0x8863, 0x8864, 0x0806, 0x0021, 0x0057, 0xc021, 0x1100, 0, 1, 8,
    1500, 0x2000, 0x4000, 0x1fff, 0xffff,
];
const BYTES: [u8; 16] = [0, 1, 2, 4, 6, 8, 17, 43, 44, 0x45, 0x46, 58, 60, 0x60, 0x7f, 0xff];
const PORTS: [u16; 5] = [443, 7777, 8080, 20_000, 30_000];
/// Addresses of the routers, of clients and servers, and of nobody.
const ADDRESSES: [[u8; 4]; 12] = [
    [10, 1, 0, 1],
    [10, 1, 0, 2],
    [10, 1, 0, 3],
    [10, 1, 0, 5],
    [10, 1, 1, 2],
    [10, 2, 0, 1],
    [10, 2, 0, 9],
    [10, 3, 0, 2],
    [10, 3, 77, 77],
    [10, 9, 0, 1],
    [127, 0, 0, 1],
    [224, 0, 0, 5],
];

/// Makes the frames.
pub struct Hostile {
    kind: Kind,
    random: Random,
}

impl Hostile {
    pub fn new(kind: Kind, random: Random) -> Hostile {
        Hostile { kind, random }
    }

    /// Where the next batch arrives: of frames that meet, none can be first.
    pub fn side(&mut self) -> Side {
        let lans = usize::from(self.kind.lan_ports());
        if self.random.once_in(2) { Side::Wan } else { Side::Lan(self.random.below(lans) as u8) }
    }

    /// A connection with packets that arrive there; now and then one of another port.
    pub fn choose<'f>(&mut self, flows: &'f [Flow], at: Side) -> &'f Flow {
        loop {
            let flow = &flows[self.random.below(flows.len())];
            if at == Side::Wan || at == Side::Lan(flow.place) || self.random.once_in(20) {
                return flow;
            }
        }
    }

    /// A packet of the connection, or what a hostile sender makes of it.
    pub fn frames(&mut self, flow: &Flow, at: Side, all: &mut Vec<Sent>) {
        let mut packet = self.packet(flow, at);
        if self.random.once_in(8) {
            let leaves = self.random.once_in(2);
            packet.make_checksum_zero(flow, at, leaves);
        }
        let mut sent = match self.random.below(16) {
            0 | 1 => vec![self.whole(at, &packet)],
            2 => {
                self.other(&mut packet);
                vec![self.whole(at, &packet)]
            }
            3 => {
                packet.ttl = [0, 1, 2, 3, 255][self.random.below(5)];
                vec![self.whole(at, &packet)]
            }
            4 => {
                self.option(&mut packet);
                vec![self.whole(at, &packet)]
            }
            5 => self.fragments(at, &packet),
            6 => {
                packet.payload = self.random.bytes(200);
                packet.payload.resize(1300 + self.random.below(160), 0x5a);
                vec![self.whole(at, &packet)]
            }
            7 if self.can_leave(at, &packet) => vec![self.left(at, &packet)],
            8 if self.can_leave(at, &packet) => {
                let mut sent = self.left(at, &packet);
                let ip = self.kind.packet_at(at);
                sent.bytes[ip + 8] = self.random.byte();
                vec![sent]
            }
            _ => vec![self.changed(at, &packet)],
        };
        for one in &mut sent {
            safe::make(one);
        }
        all.append(&mut sent);
    }

    /// An ordinary packet.
    fn packet(&mut self, flow: &Flow, at: Side) -> Packet {
        let length = if self.random.once_in(12) { 1300 } else { 120 };
        let length = self.random.below(length);
        let payload = self.random.bytes(length);
        let flags = [ACK, DATA, ACK | 0x20, DATA | 0x40, DATA | 0x80, ACK | 0xc0][self.random.below(6)];
        Packet {
            flags,
            class: if self.random.once_in(3) { self.random.byte() } else { 0 },
            ttl: [64, 64, 128, 255, 2, 3, 77, 33][self.random.below(8)],
            identification: self.random.word(),
            dont_fragment: !self.random.once_in(3),
            ..Packet::of(flow, at, &payload)
        }
    }

    fn whole(&self, at: Side, packet: &Packet) -> Sent {
        Sent { bytes: frame(self.kind, at, &packet.bytes()), partial: None }
    }

    /// Another address, or another port.
    fn other(&mut self, packet: &mut Packet) {
        let Packet { source, destination, protocol, .. } = packet;
        let changed = if self.random.once_in(2) { source } else { destination };
        match self.random.below(4) {
            0 => changed.set_port(self.random.word()),
            1 => changed.set_port(PORTS[self.random.below(PORTS.len())]),
            2 => *protocol = if *protocol == TCP { UDP } else { TCP },
            _ => changed.set_ip(self.address(changed)),
        }
    }

    fn address(&mut self, former: &SocketAddr) -> IpAddr {
        match former.ip() {
            IpAddr::V4(_) if self.random.once_in(2) => {
                Ipv4Addr::from(ADDRESSES[self.random.below(ADDRESSES.len())]).into()
            }
            IpAddr::V4(address) => {
                let [a, b, c, _] = address.octets();
                Ipv4Addr::new(a, b, c, self.random.byte()).into()
            }
            IpAddr::V6(address) => {
                let mut bytes = address.octets();
                bytes[[1, 7, 15][self.random.below(3)]] = [0, 1, 2, 3, 77][self.random.below(5)];
                Ipv6Addr::from(bytes).into()
            }
        }
    }

    /// An option of IPv4, or an extension header of IPv6.
    fn option(&mut self, packet: &mut Packet) {
        let protocol = packet.protocol;
        let choice = self.random.below(6);
        if packet.source.is_ipv4() {
            packet.options = match choice {
                0 => vec![1, 1, 1, 1],
                1 => vec![7, 7, 4, 0, 0, 0, 0, 0],
                2 => vec![148, 4, 0, 0],
                3 => vec![131, 7, 4, 10, 3, 0, 2, 0],
                4 => vec![0, 0, 0, 0],
                _ => self.random.bytes(8),
            };
            return;
        }
        let (extension, options) = match choice {
            0 => (0, vec![protocol, 0, 1, 4, 0, 0, 0, 0]),
            1 => (0, vec![protocol, 0, 5, 2, 0, 0, 1, 0]),
            2 => (60, vec![protocol, 0, 1, 4, 0, 0, 0, 0]),
            3 => (43, vec![protocol, 0, 0, 0, 0, 0, 0, 0]),
            // All of it, in a fragment (RFC 6946).
            4 => (44, vec![protocol, 0, 0, 0, 1, 2, 3, self.random.byte()]),
            _ => ([0, 43, 60, 135][self.random.below(4)], [vec![protocol, 0], self.random.bytes(6)].concat()),
        };
        (packet.extension, packet.options) = (Some(extension), options);
    }

    /// Two or three fragments, sometimes in another order, or not all.
    fn fragments(&mut self, at: Side, packet: &Packet) -> Vec<Sent> {
        let mut packet = packet.clone();
        packet.dont_fragment = self.random.once_in(6);
        if packet.payload.len() < 64 {
            packet.payload = self.random.bytes(64);
        }
        let whole = packet.bytes();
        let header = if packet.source.is_ipv4() { 20 } else { 40 };
        let behind = &whole[header..];
        // The first has the flags of TCP.
        let (first, second) = (16 + 8 * self.random.below(2), 48);
        let number = [self.random.word().to_be_bytes(), self.random.word().to_be_bytes()].concat();
        let mut parts = vec![
            (0, &behind[..first], true),
            (first, &behind[first..second], true),
            (second, &behind[second..], false),
        ];
        if self.random.once_in(4) {
            parts.swap(self.random.below(3), 1);
        }
        if self.random.once_in(4) {
            parts.remove(self.random.below(3));
        }
        let build = |(offset, part, more): (usize, &[u8], bool)| {
            let place = offset as u16 / 8;
            let mut ip = whole[..header].to_vec();
            if header == 20 {
                ip[2..4].copy_from_slice(&(part.len() as u16 + 20).to_be_bytes());
                let flags = place | if more { 0x2000 } else { 0 } | u16::from(packet.dont_fragment) << 14;
                ip[6..8].copy_from_slice(&flags.to_be_bytes());
            } else {
                ip[4..6].copy_from_slice(&(part.len() as u16 + 8).to_be_bytes());
                ip[6] = 44;
                ip.extend([packet.protocol, 0]);
                ip.extend((place << 3 | u16::from(more)).to_be_bytes());
                ip.extend(&number);
            }
            ip.extend(part);
            let mut bytes = frame(self.kind, at, &ip);
            fix_header(&mut bytes);
            Sent { bytes, partial: None }
        };
        parts.into_iter().map(build).collect()
    }

    /// Whether checksums may be left to a device. A link of rxlane completes those of TCP itself, and writes zero where the kernel
    /// and the program write 0xffff, which means the same (RFC 1624 section 3).
    fn can_leave(&self, at: Side, packet: &Packet) -> bool {
        let is_link = at == Side::Wan && matches!(self.kind, Kind::Qinq | Kind::Pppoe);
        !is_link || packet.protocol == UDP
    }

    /// The checksum is left to a device.
    fn left(&self, at: Side, packet: &Packet) -> Sent {
        let mut bytes = frame(self.kind, at, &packet.bytes());
        let ip = self.kind.packet_at(at);
        let transport = ip + if packet.source.is_ipv4() { 20 } else { 40 };
        let field = if packet.protocol == TCP { 16 } else { 6 };
        let sum = safe::pseudo_sum(&bytes).expect("a whole packet");
        bytes[transport + field..transport + field + 2].copy_from_slice(&sum.to_be_bytes());
        Sent { bytes, partial: Some((transport as u16, field as u16)) }
    }

    /// Up to three changes, then sometimes checksums that are right all the same.
    fn changed(&mut self, at: Side, packet: &Packet) -> Sent {
        let mut bytes = frame(self.kind, at, &packet.bytes());
        for _ in 0..=self.random.below(3) {
            self.change(at, packet, &mut bytes);
        }
        if self.random.once_in(2) {
            if self.random.once_in(2) {
                fix_transport(&mut bytes);
            }
            fix_header(&mut bytes);
        }
        Sent { bytes, partial: None }
    }

    fn change(&mut self, at: Side, packet: &Packet, bytes: &mut Vec<u8>) {
        let ip = self.kind.packet_at(at);
        let header = if packet.source.is_ipv4() { 20 } else { 40 };
        let transport = ip + header;
        let among = bytes.len().min(110);
        match self.random.below(12) {
            0 => self.set(bytes, ip, header),
            1 => self.set(bytes, transport, if packet.protocol == TCP { 20 } else { 8 }),
            2 => self.set(bytes, 12, ip - 12),
            3 => self.set(bytes, 0, 12),
            4 => bytes.extend(vec![0xee; self.random.below(40)]),
            5 => bytes.truncate(self.random.below(bytes.len() + 1)),
            6 => self.set(bytes, 0, among),
            7 => {
                let tpid = [0x8100, 0x88a8, 0x9100][self.random.below(3)];
                let tci = if self.random.once_in(2) { 0xa000 } else { self.random.word() };
                let tag = [tpid, tci].map(u16::to_be_bytes).concat();
                let place = [12, 16][self.random.below(2)].min(bytes.len());
                bytes.splice(place..place, tag);
            }
            8 => {
                let from = self.random.below(among + 1);
                let to = (from + 1 + self.random.below(8)).min(bytes.len());
                bytes.drain(from.min(to)..to);
            }
            9 => {
                let from = self.random.below(among + 1);
                let word = WORDS[self.random.below(WORDS.len())].to_be_bytes();
                if let Some(place) = bytes.get_mut(from..from + 2) {
                    place.copy_from_slice(&word);
                }
            }
            10 => {
                // Lengths that are off by little.
                let length = if packet.source.is_ipv4() { ip + 3 } else { ip + 5 };
                let place = [length, transport + 5, ip - 3][self.random.below(3)];
                if let Some(byte) = bytes.get_mut(place) {
                    *byte = byte.wrapping_add(self.random.below(9) as u8).wrapping_sub(4);
                }
            }
            _ => {
                let field = transport + if packet.protocol == TCP { 16 } else { 6 };
                let value = [0, 0xffff, 1, self.random.word()][self.random.below(4)];
                if let Some(place) = bytes.get_mut(field..field + 2) {
                    place.copy_from_slice(&value.to_be_bytes());
                }
            }
        }
    }

    /// Another value somewhere in `length` bytes from `start` on.
    fn set(&mut self, bytes: &mut [u8], start: usize, length: usize) {
        let at = start + self.random.below(length);
        let value = match self.random.below(4) {
            0 => BYTES[self.random.below(BYTES.len())],
            1 => self.random.byte(),
            _ => bytes.get(at).map_or(0, |byte| byte ^ 1 << self.random.below(8)),
        };
        if let Some(byte) = bytes.get_mut(at) {
            *byte = value;
        }
    }
}
