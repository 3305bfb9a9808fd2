//! Nothing is allocated for packets of a concentrator's subscribers, in any thread, once it has seen traffic.

use kernel::netlink::link_by_name;
use kernel::socket::Transmit;
use pppoe::concentrator::BitRates;
use rxlane_concentrator::subscribers::{Config, Limits, Number, Registry, Session, Subscribers};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use testkit::allocations::{self, Counting};
use testkit::netns::{Namespace, Veth, probe};
use testkit::require;
use wire::emit::Encapsulation;
use wire::ethernet::MacAddress;
use wire::{VlanPattern, Vlans};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const COUNT: u8 = 40;

fn address(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 64, 0, number)
}

/// A frame of session `id` from station `peer` in two VLANs, with a datagram from `number`'s address.
fn frame(local: MacAddress, peer: MacAddress, id: u16, number: u8) -> Vec<u8> {
    let mut packet = vec![0x5a; 128];
    let header = [0x45, 0, 0, 128, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 64, 0, number, 10, 0, 0, 1];
    packet[..20].copy_from_slice(&header);
    let sum = offload::checksum::internet(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet[20..28].copy_from_slice(&[0x1b, number, 0x1b, 0x58, 0, 108, 0, 0]);
    let encapsulation: Encapsulation = format!("ad:100,q:200,pppoe:{id}").parse().expect("an encapsulation");
    let mut head = [0; 64];
    let version = wire::IpVersion::V4;
    let length = encapsulation.emit(local, peer, version, packet.len(), &mut head).expect("room");
    [&head[..length], &packet].concat()
}

/// Frames in and packets out of every session; allocations meanwhile.
fn round(
    registry: &Registry,
    all: &[Number],
    transmit: &mut Transmit,
    frames: &[&[u8]],
    socket: &UdpSocket,
) -> u64 {
    let total = || {
        let usage = all.iter().map(|own| registry.usage(*own).expect("there"));
        usage.map(|usage| usage.received.frames + usage.sent.frames).sum::<u64>()
    };
    let expected = total() + 2 * u64::from(COUNT);
    let before = allocations::of_all_threads();
    transmit.send(frames).expect("sent");
    for number in 0..COUNT {
        // The last is longer than its subscriber takes, and becomes fragments.
        let bytes = if number + 1 == COUNT { 400 } else { 100 };
        socket.send_to(&[0x5a; 400][..bytes], SocketAddr::from((address(number), 9))).expect("sent");
    }
    testkit::wait_until("all frames", || total() > expected);
    allocations::of_all_threads() - before
}

#[test]
fn the_steady_state_of_many_sessions_allocates_nothing() {
    let Some(()) = require("netns", probe()) else { return };
    let namespace = Namespace::new().expect("a namespace");
    namespace.veth(&Veth { mtu: 1600, ..Veth::pair("near0", "far0") }).expect("a pair");
    namespace.inside(|| {
        let local = link_by_name("near0").expect("there").mac.expect("an address");
        let config = Config {
            name: "bras0".to_owned(),
            parent: "near0".to_owned(),
            vlans: VlanPattern::Any,
            addresses: vec!["10.0.0.1/9".parse().expect("an address")],
            mtu: 1492,
            workers: 2,
            limits: Limits { sessions: 100, prefixes: 100 },
            uplinks: Vec::new(),
        };
        let (subscribers, mut registry) = Subscribers::up(&config).expect("up");
        let stack: Encapsulation = "ad:100,q:200".parse().expect("an encapsulation");
        let vlans = Vlans::of(stack.tags().iter().copied()).expect("two");
        let (mut all, mut frames) = (Vec::new(), Vec::new());
        for number in 0..COUNT {
            let peer = MacAddress([2, 0, 0x5e, 1, 0, number]);
            let id = u16::from(number) + 1;
            let mtu = if number + 1 == COUNT { 300 } else { 1492 };
            let rates = BitRates { download: Some(100_000_000_000), upload: Some(100_000_000_000) };
            let session = Session { vlans, peer, id, mtu, mss_clamp: true, identifier: 0, rates };
            let own = registry.insert(&session).expect("room");
            registry.add_address(own, address(number).into()).expect("free");
            all.push(own);
            frames.push(frame(local, peer, id, number));
            // Of another address, of no session, of another station.
            frames.push(frame(local, peer, id, number + 1));
            frames.push(frame(local, peer, id + 100, number));
            frames.push(frame(local, MacAddress([2, 6, 6, 6, 6, number]), id, number));
        }
        let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
        let mut transmit = Transmit::open("far0").expect("a socket");
        let _taker = UdpSocket::bind((SERVER, 7000)).expect("bound");
        // Sockets that are made from now on let their datagrams be fragmented.
        std::fs::write("/proc/sys/net/ipv4/ip_no_pmtu_disc", "1").expect("set");
        let socket = UdpSocket::bind((SERVER, 0)).expect("bound");
        // Memory for the largest batch is there once that has come, and how frames fall into batches is chance.
        let (mut quiet, mut made) = (0, 0);
        for _ in 0..300 {
            let now = round(&registry, &all, &mut transmit, &frames, &socket);
            (quiet, made) = if now == 0 { (quiet + 1, made) } else { (0, made + now) };
            if quiet == 20 {
                break;
            }
        }
        assert!(quiet == 20 && made < 100, "{quiet} {made}");
        assert!(subscribers.down().drops["other-source"] > 0);
    });
}
