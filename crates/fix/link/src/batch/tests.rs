//! `batch` compared with `simple`, with the same streams: every byte on the line, and every packet of the interface once what was
//! put together is taken apart, are those of the reference, flow by flow in order.

mod allocation;

use super::*;
use crate::counters::Counted;
use crate::framing::Head;
use crate::parent::{Arrival, Parent};
use crate::simple::Simple;
use crate::tests::{Unfinished, emitted, framings, ipv4, ipv6, line, of_interface, set_up, tcp};
use kernel::netlink::link_by_name;
use kernel::socket::{Flag, Packet, Transmit};
use offload::{NetHeader, Prefix, Segments};
use std::collections::BTreeMap;
use std::io::IoSlice;
use std::time::Instant;
use testkit::netns::{Namespace, Veth, probe};
use testkit::{program, require};
use wire::emit::{Emit, Ipv4, Ipv6, Tcp, Udp};
use wire::{IpProtocol, IpVersion};

const LINKS: [&str; 5] = ["q:35", "ad:100,q:200", "0x9100:5,q:6", "pppoe:7@PEER", "ad:1,q:2,pppoe:7@PEER"];
const PATIENCE: Duration = testkit::PATIENCE;
const PACKETS: usize = 400;

/// A seeded sequence (xorshift64).
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

/// One way of a conversation between two addresses of its own.
#[derive(Clone, Copy)]
struct Flow {
    number: u8,
    version: IpVersion,
    is_tcp: bool,
    sequence: u32,
    identification: u16,
}

impl Flow {
    fn all() -> Vec<Flow> {
        (0..8)
            .map(|number| Flow {
                number,
                version: if number % 2 == 0 { IpVersion::V4 } else { IpVersion::V6 },
                is_tcp: number < 6,
                sequence: 0xffff_e000,
                identification: 0xfff0,
            })
            .collect()
    }

    fn kind(&self) -> u8 {
        match (self.is_tcp, self.version) {
            (false, _) => NetHeader::UDP,
            (true, IpVersion::V4) => NetHeader::TCP_IPV4,
            (true, IpVersion::V6) => NetHeader::TCP_IPV6,
        }
    }

    fn protocol(&self) -> IpProtocol {
        if self.is_tcp { IpProtocol::TCP } else { IpProtocol::UDP }
    }

    fn packet(&mut self, payload: &[u8], flags: u8, options: &[u8]) -> Unfinished {
        let destination_port = 4000 + u16::from(self.number);
        let tcp = Tcp { destination_port, ..tcp(self.sequence, flags, options) };
        let length = 8 + payload.len() as u16;
        let udp = Udp { source_port: 53, destination_port: 4000, length, checksum: 0 };
        let transport: &dyn Emit = if self.is_tcp { &tcp } else { &udp };
        self.sequence = self.sequence.wrapping_add(payload.len() as u32);
        Unfinished::new(|length| self.network(length), transport, payload)
    }

    fn network(&mut self, length: usize) -> Vec<u8> {
        match self.version {
            IpVersion::V4 => {
                let ip = Ipv4 {
                    identification: self.identification,
                    dont_fragment: self.number == 0,
                    destination: [10, 77, 0, self.number].into(),
                    ..ipv4(self.protocol(), length)
                };
                self.identification = self.identification.wrapping_add(1);
                emitted(&ip)
            }
            IpVersion::V6 => {
                let destination = format!("fd00:77::{}", self.number).parse().expect("an address");
                emitted(&Ipv6 { destination, ..ipv6(self.protocol(), length) })
            }
        }
    }
}

/// Streams as a line delivers them: interleaved, with losses, packets out of order, options, fragments, wrong checksums.
fn arriving(seed: u64) -> Vec<Vec<u8>> {
    let (mut random, mut flows) = (Seeded(seed), Flow::all());
    let payload: Vec<u8> = (0..1400_u32).map(|place| (place * 31 + place / 256) as u8).collect();
    let mut packets: Vec<Vec<u8>> = Vec::new();
    while packets.len() < PACKETS {
        let flow = &mut flows[random.below(8) as usize];
        let burst = 1 + random.below(6);
        let size = [1400, 1400, 700, 33, 1][random.below(5) as usize];
        let options: &[u8] = if random.below(4) == 0 { &[1, 1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 8] } else { &[] };
        for step in 0..burst {
            let flags = if step + 1 == burst { 0x18 } else { 0x10 };
            let packet = flow.packet(&payload[..size], flags, options);
            let mut bytes = packet.finished();
            match random.below(40) {
                // Lost.
                0 => continue,
                // A wrong checksum.
                1 => *bytes.last_mut().expect("one") ^= 4,
                // A first fragment.
                2 if flow.version == IpVersion::V4 => {
                    bytes[6] |= 0x20;
                    bytes[10..12].fill(0);
                    let sum = offload::checksum::internet(&bytes[..20]);
                    bytes[10..12].copy_from_slice(&sum.to_be_bytes());
                }
                // Out of order.
                3 if !packets.is_empty() => {
                    let place = packets.len() - 1;
                    packets.insert(place, bytes);
                    continue;
                }
                _ => {}
            }
            packets.push(bytes);
        }
    }
    packets
}

/// What the kernel sends: super-packets, and packets whose checksum is not complete.
fn departing(seed: u64) -> Vec<(Unfinished, Option<usize>, u8)> {
    let (mut random, mut flows) = (Seeded(seed), Flow::all());
    let payload: Vec<u8> = (0..60_000_u32).map(|place| (place * 7 + place / 256) as u8).collect();
    let mut packets = Vec::new();
    for _ in 0..PACKETS / 8 {
        let flow = &mut flows[random.below(8) as usize];
        let size = [1400, 536, 100][random.below(3) as usize];
        // A kernel refuses more datagrams in one than 64 (`UDP_MAX_SEGMENTS`).
        let most = if flow.is_tcp { 40 } else { 20 };
        let length = 1 + random.below(size * most) as usize;
        let flags = [0x10, 0x18, 0x11][random.below(3) as usize];
        let packet = flow.packet(&payload[..length], flags, &[]);
        let size = size as usize;
        // Segments have identifications of their own.
        flow.identification = flow.identification.wrapping_add(length.div_ceil(size) as u16);
        packets.push((packet, (length > size).then_some(size), flow.kind()));
    }
    packets
}

/// Makes a data path, of a framing, over the parent of this number and MTU.
type Make = fn(&Framing, u32, u32) -> Box<dyn DataPath>;

/// A link over `near0` in this namespace, and its other end.
struct Topology {
    path: Box<dyn DataPath>,
    line: Line,
    far: Parent,
    far_framing: Framing,
    transmit: Transmit,
    /// The interface of the link, as the kernel has it.
    interface: Packet,
}

impl Topology {
    fn new(encapsulation: &str, make: Make) -> Topology {
        let [near, far] = ["near0", "far0"].map(|name| link_by_name(name).expect("there"));
        let macs = [&near, &far].map(|link| link.mac.expect("an address"));
        let [near_framing, far_framing] = framings(encapsulation, macs);
        let path = make(&near_framing, near.index, near.mtu);
        let interface = kernels_side(set_up(&near_framing));
        let line = line(near_framing, near.mtu);
        let far = Parent::open(far.index, &far_framing).expect("sockets");
        let transmit = Transmit::open("far0").expect("a socket");
        Topology { path, line, far, far_framing, transmit, interface }
    }

    fn before(&self) -> usize {
        self.line.framing.network_offset()
    }

    /// A packet as the interface of either end has it.
    fn plain(&self, from: &Framing, to: &Framing, packet: &[u8]) -> Vec<u8> {
        of_interface(from.form(), to.local(), from.local(), packet)
    }

    /// The frame of a packet to this end.
    fn on_the_line(&self, packet: &[u8]) -> Vec<u8> {
        let plain = self.plain(&self.far_framing, &self.line.framing, packet);
        let mut head = Head::new();
        let rest = self.far_framing.encapsulate(&plain, &mut head).expect("a frame");
        [head.bytes(), rest].concat()
    }

    /// Packets of the interface, taken apart, by their destination, once so many frames have come.
    fn arrive(&mut self, packets: &[Vec<u8>]) -> (Streams, Counted) {
        for (number, packet) in packets.iter().enumerate() {
            let padding = if number % 3 == 0 { &[0; 9][..] } else { &[] };
            let frame = [&self.on_the_line(packet), padding].concat();
            self.transmit.send(&[&frame]).expect("sent");
        }
        let until = Instant::now() + PATIENCE;
        loop {
            self.path.receive_some(&self.line).expect("received");
            let counted = self.line.counters.read();
            let handled = counted.received.frames + counted.drops.values().sum::<u64>();
            if handled >= packets.len() as u64 {
                break;
            }
            assert!(Instant::now() < until, "{counted:?}");
        }
        let mut found: Streams = BTreeMap::new();
        let mut buffer = crate::parent::buffer();
        while let Arrival::Frame(received) =
            crate::parent::receive(&self.interface, &mut buffer).expect("received")
        {
            for packet in apart(received.header, received.frame, self.before()) {
                found.entry(destination(&packet)).or_default().push(packet);
            }
        }
        (found, self.line.counters.read())
    }

    /// Frames on the line by the destination of their packet.
    fn depart(&mut self, packets: &[(Unfinished, Option<usize>, u8)]) -> (Streams, Counted) {
        let mut found: Streams = BTreeMap::new();
        for (packet, size, kind) in packets {
            let header = packet.header(self.before(), *size, *kind).bytes();
            let plain = self.plain(&self.line.framing, &self.far_framing, &packet.bytes);
            let pieces = [&header[..], &plain].map(IoSlice::new);
            rustix::io::writev(&self.interface, &pieces).expect("sent");
            self.path.send_some(&self.line).expect("sent");
            while let Arrival::Frame(received) = self.far.receive().expect("received") {
                assert!(!received.header.needs_checksum(), "the pair has no offloads: {:?}", received.header);
                let frame = received.frame.to_vec();
                let range = self.far_framing.decapsulate(received.frame).expect("a frame of the link");
                let packet = &received.frame[range][self.far_framing.network_offset()..];
                found.entry(destination(packet)).or_default().push(frame);
            }
        }
        (found, self.line.counters.read())
    }
}

fn destination(packet: &[u8]) -> Vec<u8> {
    if packet[0] >> 4 == 4 { packet[16..20].to_vec() } else { packet[24..40].to_vec() }
}

/// Segments of what the kernel got, without MAC addresses.
fn apart(header: NetHeader, frame: &mut [u8], before: usize) -> Vec<Vec<u8>> {
    let packet = &mut frame[before..];
    let header = NetHeader {
        checksum_start: header.checksum_start.saturating_sub(before as u16),
        header_length: 0,
        ..header
    };
    let mut headers = [0; 512];
    let mut segments = Segments::new(&Prefix::NONE, &header, packet).expect("a packet");
    let mut all = Vec::new();
    while let Some(segment) = segments.emit(&mut headers).expect("room") {
        all.push([&headers[..segment.header_length], segment.payload].concat());
    }
    all
}

/// A socket on an interface that gets what the kernel receives there, and from which the kernel sends.
fn kernels_side(index: u32) -> Packet {
    let socket = Packet::open().expect("a socket");
    for flag in [Flag::NetHeader, Flag::IgnoreOutgoing] {
        socket.turn_on(flag).expect("an option");
    }
    socket.set_receive_buffer(16 << 20);
    socket.bind(index).expect("bound");
    socket
}

fn simple(framing: &Framing, parent: u32, _: u32) -> Box<dyn DataPath> {
    let tun = Tun::new("sub0", framing.form()).expect("an interface");
    Box::new(Simple::new(tun, Parent::open(parent, framing).expect("sockets")))
}

fn by(io: Io, framing: &Framing, index: u32, mtu: u32) -> Box<dyn DataPath> {
    let (queues, offloads) = Tun::queues("sub0", framing.form(), 1).expect("an interface");
    assert!(offloads.tcp, "{offloads:?}");
    let below = Below { index, mtu };
    let mut workers = Batch::workers(queues, offloads, below, framing, io).expect("a worker");
    Box::new(workers.remove(0))
}

const BATCH: [(Make, &str); 2] = [
    (|framing, index, mtu| by(Io::AfPacket, framing, index, mtu), "af-packet"),
    (|framing, index, mtu| by(Io::AfXdp, framing, index, mtu), "af-xdp"),
];

/// Packets or frames by the destination of the packet.
type Streams = BTreeMap<Vec<u8>, Vec<Vec<u8>>>;
/// What comes of both ways.
type Seen = [(Streams, Counted); 2];

fn seen(encapsulation: &str, seed: u64, make: Make) -> Seen {
    let namespace = Namespace::new().expect("a namespace");
    let veth = Veth { mtu: 1600, ..Veth::pair("near0", "far0") };
    namespace.veth(&veth).expect("a pair");
    for (interface, mac) in [("near0", "02:00:5e:00:00:01"), ("far0", "02:00:5e:00:00:02")] {
        namespace.run("ip", &["link", "set", interface, "address", mac]).expect("ip");
        let off = ["-K", interface, "tso", "off", "gso", "off", "gro", "off", "tx", "off"];
        namespace.run("ethtool", &off).expect("ethtool");
    }
    namespace.inside(|| {
        let mut topology = Topology::new(encapsulation, make);
        let arrived = topology.arrive(&arriving(seed));
        let departed = topology.depart(&departing(seed));
        [arrived, departed]
    })
}

#[test]
fn the_bytes_are_those_of_simple() {
    let Some(()) = require("netns", probe()) else { return };
    let Some(_) = require("ethtool", program("ethtool")) else { return };
    for (link, seed) in LINKS.into_iter().zip(0x5eed_u64..) {
        let [arrived, departed] = seen(link, seed, simple);
        for (make, name) in BATCH {
            let [other_arrived, other_departed] = seen(link, seed, make);
            assert_eq!(other_arrived.0.len(), 8, "{link} {name}: flows");
            assert_same(&arrived.0, &other_arrived.0, &format!("{link} {name} in"));
            assert_same(&departed.0, &other_departed.0, &format!("{link} {name} out"));
            let (one, other) = (&departed.1, &other_departed.1);
            assert_eq!((one.received, one.sent, &one.drops), (other.received, other.sent, &other.drops));
            assert!(other.delivered > other.deliveries * 5 / 4, "{link} {name}: {other:?}");
            assert!(other.super_packets > 20, "{link} {name}: {other:?}");
        }
    }
}

fn assert_same(one: &Streams, other: &Streams, what: &str) {
    assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>(), "{what}");
    for (key, packets) in one {
        let others = &other[key];
        let different = packets.iter().zip(others).position(|(one, other)| one != other);
        if let Some(place) = different {
            panic!("{what}, {key:?}, {place}:\n{:02x?}\n{:02x?}", &packets[place], &others[place]);
        }
        assert_eq!(packets.len(), others.len(), "{what}, {key:?}");
    }
}
