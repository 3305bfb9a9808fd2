//! What the kernel put together or left unfinished on the parent, as a virtual interface hands it over. The kernel itself
//! receives what comes out, and verifies its checksums.

use super::*;
use crate::datapath::Line;
use crate::framing::Framing;
use crate::parent::tests::send_with_header;
use crate::tests::{PEER, Unfinished, emitted, ipv4, line, set_up, with_pair};
use kernel::netlink::{self, Address};
use offload::NetHeader;
use std::net::UdpSocket;
use std::time::{Duration, Instant};
use wire::emit::{Encapsulation, Ipv4, Udp};
use wire::ethernet::MacAddress;
use wire::{IpProtocol, IpVersion};

const PORT: u16 = 4000;

/// A frame of the link with a datagram, whose checksum is the sum of its pseudo header only, and where that starts.
fn unfinished(link: &Encapsulation, local: MacAddress, payload: &[u8]) -> (Vec<u8>, usize) {
    let ip = |length| emitted(&Ipv4 { dont_fragment: false, ..ipv4(IpProtocol::UDP, length) });
    let length = 8 + payload.len() as u16;
    let udp = Udp { source_port: 9, destination_port: PORT, length, checksum: 0 };
    let packet = Unfinished::new(ip, &udp, payload);
    let mut head = [0; 64];
    let at = link.emit(local, PEER, IpVersion::V4, packet.bytes.len(), &mut head).expect("room");
    ([&head[..at], &packet.bytes].concat(), at + packet.start)
}

fn payload(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|place| (place * 31 + place / 256) as u8).collect()
}

/// A link over `near`.
fn link(encapsulation: &Encapsulation, near: &netlink::Link, local: MacAddress) -> (Simple, Line, UdpSocket) {
    let framing = Framing::new(encapsulation, local).expect("a link");
    let tun = Tun::new("sub0", framing.form()).expect("an interface");
    let address: Address = "10.9.0.1/24".parse().expect("an address");
    netlink::add_address(set_up(&framing), &address).expect("an address");
    let parent = Parent::open(near.index, &framing).expect("sockets");
    let line = line(framing, near.mtu);
    let socket = UdpSocket::bind(("10.9.0.1", PORT)).expect("bound");
    socket.set_read_timeout(Some(Duration::from_secs(5))).expect("a time");
    (Simple::new(tun, parent), line, socket)
}

fn datagrams(socket: &UdpSocket, count: usize) -> Vec<Vec<u8>> {
    let mut buffer = [0; 9000];
    let mut next = || socket.recv(&mut buffer).map(|length| buffer[..length].to_vec()).expect("in time");
    (0..count).map(|_| next()).collect()
}

/// Lets the data path take what has arrived, until it has counted so many frames.
fn take(path: &mut Simple, line: &Line, frames: u64) {
    let until = Instant::now() + testkit::PATIENCE;
    while line.counters.read().received.frames < frames {
        path.receive_some(line).expect("received");
        assert!(Instant::now() < until, "{:?}", line.counters.read());
    }
}

#[test]
fn super_packets_and_partial_checksums_are_finished() {
    for text in
        ["q:35", "ad:100,q:200", "0x9100:5", "pppoe:7@02:00:5e:00:00:02", "ad:1,pppoe:7@02:00:5e:00:00:02"]
    {
        let encapsulation: Encapsulation = text.parse().expect("an encapsulation");
        with_pair(1600, |[near, far], [local, _]| {
            let (mut path, line, socket) = link(&encapsulation, &near, local);
            let partial = |start: usize| NetHeader {
                flags: NetHeader::NEEDS_CHECKSUM,
                checksum_start: start as u16,
                checksum_offset: 6,
                ..NetHeader::default()
            };
            let (frame, start) = unfinished(&encapsulation, local, &payload(700));
            send_with_header(far.index, &partial(start), &frame).expect("sent");
            take(&mut path, &line, 1);
            assert_eq!(datagrams(&socket, 1), [payload(700)], "{text}");

            // As the parent's socket gives a super-packet.
            let (mut frame, start) = unfinished(&encapsulation, local, &payload(4500));
            let header = NetHeader {
                gso_type: NetHeader::UDP,
                gso_size: 1000,
                header_length: (start + 8) as u16,
                ..partial(start)
            };
            let received = Received { frame: &mut frame, header };
            assert!(super::take(&line, &path.tun, received, &mut *path.headers).is_ok(), "{text}");
            let expected: Vec<Vec<u8>> = payload(4500).chunks(1000).map(<[u8]>::to_vec).collect();
            assert_eq!(datagrams(&socket, 5), expected, "{text}");
            let counted = line.counters.read();
            assert!(counted.drops.is_empty(), "{text}: {:?}", counted.drops);
            assert_eq!((counted.received.frames, counted.segments), (2, 5), "{text}");

            // As many segments as anybody sends, and more.
            let (longest, size) = (payload(60_000), 60_000 / 5000);
            let mut many = |size: usize| {
                let (mut frame, _) = unfinished(&encapsulation, local, &longest);
                let header = NetHeader { gso_size: size as u16, ..header };
                let received = Received { frame: &mut frame, header };
                super::take(&line, &path.tun, received, &mut *path.headers)
            };
            assert!(matches!(many(size), Ok(5000)), "{text}");
            assert!(matches!(many(7), Err(Undelivered::Dropped(Dropped::SuperPacket))), "{text}");
            assert_eq!(line.counters.read().segments, 5005, "{text}");

            // Without a partial checksum, of an unknown type, or with a checksum in front of the packet: refused.
            let wrong = [
                NetHeader { flags: 0, ..header },
                NetHeader { gso_type: 0x7f, ..header },
                NetHeader { checksum_start: 3, ..header },
                NetHeader { checksum_start: u16::MAX, ..header },
                NetHeader { checksum_start: u16::MAX, ..partial(start) },
                NetHeader { gso_size: 0, ..header },
            ];
            for header in wrong {
                let (mut frame, _) = unfinished(&encapsulation, local, &payload(4500));
                let received = Received { frame: &mut frame, header };
                let refused = super::take(&line, &path.tun, received, &mut *path.headers);
                assert!(
                    matches!(refused, Err(Undelivered::Dropped(Dropped::SuperPacket))),
                    "{text} {header:?}"
                );
            }
        });
    }
}
