use super::*;
use crate::tests::{PEER, frame, vlans, with_pair};
use kernel::socket::Transmit;
use std::time::{Instant, SystemTime};

const OTHER: MacAddress = MacAddress([2, 0, 0x5e, 0, 0, 9]);

const PADI: [u8; 10] = [0x11, 9, 0, 0, 0, 4, 1, 1, 0, 0];

fn session(protocol: u16) -> Vec<u8> {
    let [high, low] = protocol.to_be_bytes();
    vec![0x11, 0, 0, 7, 0, 6, high, low, 9, 1, 0, 4]
}

/// A packet of IPv6 in a session: next header and hop limit, the first two bytes of the destination, and what follows the header.
fn ipv6(next: [u8; 2], destination: u16, payload: [u8; 4]) -> Vec<u8> {
    let addresses = [&[0; 16][..], &destination.to_be_bytes(), &[0; 14]].concat();
    let packet = [&[0x60, 0, 0, 0, 0, 4], &next[..], &addresses, &payload].concat();
    [&[0x11, 0, 0, 7, 0, 46, 0, 0x57][..], &packet].concat()
}

type Seen = (MacAddress, Vlans, Stage, Vec<u8>);

/// What a socket has received once a frame has come that ends with this byte, and how many frames were left to this side to
/// refuse.
fn seen(socket: &mut ControlSocket, last: u8) -> (Vec<Seen>, usize) {
    let until = Instant::now() + testkit::PATIENCE;
    let (mut all, mut taken): (Vec<Seen>, usize) = (Vec::new(), 0);
    while all.last().is_none_or(|(.., payload)| payload.last() != Some(&last)) {
        assert!(Instant::now() < until, "{all:?}");
        taken += socket
            .receive(|frame| {
                assert_eq!(frame.source, PEER);
                all.push((frame.destination, frame.vlans, frame.stage, frame.payload.to_vec()));
            })
            .expect("received");
    }
    let refused = taken - all.len();
    all.pop();
    (all, refused)
}

#[test]
fn discovery_and_negotiation_arrive_and_data_does_not() {
    with_pair(1600, |[near, _], [local, _]| {
        let lines = ["none", "q:35", "ad:100,q:200", "q:100,q:200", "0x9100:1,q:2", "ad:1,q:2,q:3,q:4"];
        for (pattern, own) in [
            (VlanPattern::Any, &lines[..]),
            ("none".parse().expect("a pattern"), &lines[..1]),
            ("100.*".parse().expect("a pattern"), &lines[2..4]),
            ("*.*".parse().expect("a pattern"), &lines[2..5]),
            (vlans("ad:100,q:200").into(), &lines[2..3]),
            (vlans("ad:1,q:2,q:3,q:4").into(), &lines[5..]),
        ] {
            let mut frames = Vec::new();
            let mut expected: Vec<Seen> = Vec::new();
            for line in lines {
                let lcp = session(0xc021);
                let unknown = session(0x0281);
                let (solicitation, dhcp) =
                    (ipv6([58, 255], 0xff02, [133, 0, 0, 0]), ipv6([17, 1], 0xff02, [2, 34, 2, 35]));
                let taken = [
                    (local, 0x8864, &solicitation[..]),
                    (local, 0x8864, &dhcp),
                    (MacAddress::BROADCAST, 0x8863, &PADI[..]),
                    (local, 0x8863, &PADI),
                    (local, 0x8864, &lcp),
                    (local, 0x8864, &unknown),
                ];
                for (to, ethertype, payload) in taken {
                    frames.push(frame(to, line, ethertype, payload));
                    let stage = if ethertype == 0x8863 { Stage::Discovery } else { Stage::Session };
                    if own.contains(&line) {
                        expected.push((to, vlans(line), stage, payload.to_vec()));
                    }
                }
                // For another station, data of both versions, compressed protocol fields, a broadcast of a session, something
                // else, one that ends inside.
                frames.push(frame(OTHER, line, 0x8863, &PADI));
                frames.push(frame(OTHER, line, 0x8864, &lcp));
                frames.push(frame(MacAddress::BROADCAST, line, 0x8864, &lcp));
                for protocol in [0x0021, 0x0057, 0x2145, 0x5760, 0xfd00] {
                    frames.push(frame(local, line, 0x8864, &session(protocol)));
                }
                // An advertisement, a solicitation that came over a router, a datagram to another port, one that is not of the link.
                for other in [
                    ipv6([58, 255], 0xff02, [134, 0, 0, 0]),
                    ipv6([58, 64], 0xff02, [133, 0, 0, 0]),
                    ipv6([17, 1], 0xff02, [2, 34, 0, 53]),
                    ipv6([17, 64], 0x2001, [2, 34, 2, 35]),
                ] {
                    frames.push(frame(local, line, 0x8864, &other));
                }
                frames.push(frame(local, line, 0x0800, &lcp));
                frames.push(frame(local, line, 0x8864, &lcp[..7]));
            }
            // More tags than anybody has.
            frames.push(frame(local, "q:1,q:2,q:3,q:4,q:5", 0x8863, &PADI));
            let end = frame(local, own[0], 0x8863, &[0x11, 9, 0, 0, 0, 1, 0xee]);
            frames.push(end);
            let mut socket = ControlSocket::open(near.index, local, pattern).expect("a socket");
            let mut transmit = Transmit::open("far0").expect("a socket");
            transmit.send(&frames.iter().map(Vec::as_slice).collect::<Vec<_>>()).expect("sent");
            let (found, refused) = seen(&mut socket, 0xee);
            assert_eq!(found, expected, "{pattern}");
            // Only what a filter cannot count is left to this side.
            assert!(refused <= 1, "{pattern}: {refused}");
            assert_eq!(socket.losses().expect("a descriptor").count(), 0);
        }
    });
}

#[test]
fn what_is_sent_is_padded_and_arrives_with_its_tags() {
    with_pair(1500, |[near, far], [near_mac, far_mac]| {
        let mut one = ControlSocket::open(near.index, near_mac, VlanPattern::Any).expect("a socket");
        let mut other = ControlSocket::open(far.index, far_mac, VlanPattern::Any).expect("a socket");
        other.enable_timestamps().expect("enabled");
        let lines = ["none", "q:35", "ad:100,q:200"].map(vlans);
        let count = 3 * ControlSocket::BATCH + 5;
        for number in 0..count {
            let payload = [0x11, 9, 0, 0, 0, 2, (number >> 8) as u8, number as u8];
            one.put(far_mac, lines[number % 3], Stage::Discovery, &payload).expect("sent");
        }
        one.flush().expect("sent");
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
        let mut number = 0;
        let until = Instant::now() + testkit::PATIENCE;
        while number < count {
            assert!(Instant::now() < until, "{number}");
            other
                .receive(|frame| {
                    let line = lines[number % 3];
                    assert_eq!((frame.source, frame.vlans), (near_mac, line), "{number}");
                    assert_eq!(frame.payload.len(), 60 - 14 - 4 * line.count());
                    assert_eq!(frame.payload[6..8], (number as u16).to_be_bytes());
                    let off = frame.time.expect("a time").abs_diff(now);
                    assert!(off < Duration::from_secs(60), "{off:?}");
                    number += 1;
                })
                .expect("received");
        }
        // A frame that the MTU forbids is counted, those around it go.
        for payload in [&[1; 50][..], &[2; 1501], &[3; 50], &[4; 5000]] {
            let put = one.put(far_mac, Vlans::NONE, Stage::Discovery, payload);
            assert_eq!(put.is_err(), payload.len() == 5000);
        }
        assert_eq!(one.flush(), Err(Unsent { count: 1, why: Dropped::ParentMtu }));
        let mut firsts = Vec::new();
        while firsts.len() < 2 {
            assert!(Instant::now() < until, "{firsts:?}");
            other.receive(|frame| firsts.push(frame.payload[0])).expect("received");
        }
        assert_eq!(firsts, [1, 3]);
        // The interface gets another address.
        let moved = MacAddress([2, 0, 0x5e, 0, 0, 0x77]);
        other.set_local(moved).expect("set");
        for to in [far_mac, moved] {
            one.send(to, Vlans::NONE, Stage::Discovery, &[5; 50]).expect("sent");
        }
        let mut destinations = Vec::new();
        while destinations.is_empty() {
            assert!(Instant::now() < until);
            other.receive(|frame| destinations.push(frame.destination)).expect("received");
        }
        assert_eq!(destinations, [moved]);
    });
}

#[test]
fn frames_that_end_anywhere_are_no_frames() {
    let whole = frame(PEER, "ad:100,q:200", 0x8864, &session(0xc021));
    for length in 0..whole.len() {
        let frame = ControlFrame::of(&whole[..length], None);
        let has_protocol = length >= 12 + 8 + 2 + 8;
        assert_eq!(frame.is_some(), has_protocol, "{length}");
    }
}
