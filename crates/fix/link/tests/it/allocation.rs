//! Nothing is allocated once a data path has seen traffic.

use kernel::netlink::{self, link_by_name};
use kernel::socket::Transmit;
use kernel::tun::Tun;
use rxlane_link::Counters;
use rxlane_link::batch::{Batch, Below, Io};
use rxlane_link::datapath::{DataPath, Line};
use rxlane_link::framing::{Form, Framing, Head};
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Instant;
use testkit::allocations::{self, Counting};
use testkit::netns::{Namespace, Veth, probe};
use testkit::require;
use wire::emit::{Emit, Ipv4};
use wire::ethernet::MacAddress;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Frames of a link with UDP datagrams of several flows, which are put together.
fn frames(framing: &Framing, local: MacAddress, peer: MacAddress) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    for number in 0..120_u16 {
        let mut packet = vec![0x5a; 528];
        let ip = Ipv4 {
            identification: number / 5,
            dont_fragment: false,
            ..Ipv4::new(wire::IpProtocol::UDP, [10, 9, 0, 2].into(), [10, 9, 0, 1].into(), 528)
        };
        ip.emit(&mut packet).expect("room");
        packet[20..28].copy_from_slice(&[0x10, (number % 5) as u8, 0x20, 0, 1, 252, 0, 0]);
        let addresses = packet[12..20].first_chunk().expect("addresses");
        let pseudo = offload::checksum::Sum::pseudo_ipv4(addresses, wire::IpProtocol::UDP, 508).folded();
        packet[26..28].copy_from_slice(&pseudo.to_be_bytes());
        offload::checksum::complete(&mut packet, 20, 6).expect("a checksum");
        let plain = match framing.form() {
            Form::Packets => packet,
            Form::Frames => [&local.0[..], &peer.0, &[8, 0], &packet].concat(),
        };
        let mut head = Head::new();
        let rest = framing.encapsulate(&plain, &mut head).expect("a frame");
        frames.push([head.bytes(), rest].concat());
    }
    frames
}

fn round(
    path: &mut Batch,
    line: &Line,
    frames: &[&[u8]],
    transmit: &mut Transmit,
    socket: &UdpSocket,
) -> u64 {
    let before = line.counters.read();
    let until = Instant::now() + testkit::PATIENCE;
    transmit.send(frames).expect("sent");
    for _ in 0..40 {
        // To all, whom nobody has to be asked for.
        socket.send_to(&[0; 900], ("10.9.0.255", 9)).expect("sent");
    }
    let mut counted = allocations::of_this_thread();
    let mut made = 0;
    loop {
        path.receive_some(line).expect("received");
        path.send_some(line).expect("sent");
        made += allocations::of_this_thread() - counted;
        let now = line.counters.read();
        if now.received.frames >= before.received.frames + frames.len() as u64
            && now.sent.frames >= before.sent.frames + 40
        {
            assert!(now.drops.is_empty(), "{now:?}");
            assert!(now.delivered - before.delivered > 2 * (now.deliveries - before.deliveries), "{now:?}");
            return made;
        }
        assert!(Instant::now() < until, "{now:?}");
        counted = allocations::of_this_thread();
    }
}

#[test]
fn the_steady_state_allocates_nothing() {
    let Some(()) = require("netns", probe()) else { return };
    for io in [Io::AfPacket, Io::AfXdp] {
        for link in ["ad:1,q:2,pppoe:7@PEER", "q:35"] {
            let namespace = Namespace::new().expect("a namespace");
            namespace.veth(&Veth { mtu: 1600, ..Veth::pair("near0", "far0") }).expect("a pair");
            namespace.inside(|| {
                let [near, far] = ["near0", "far0"].map(|name| link_by_name(name).expect("there"));
                let [near_mac, far_mac] = [&near, &far].map(|link| link.mac.expect("an address"));
                let framing = |local: MacAddress, peer: MacAddress| {
                    let link = link.replace("PEER", &peer.to_string()).parse().expect("an encapsulation");
                    Framing::new(&link, local).expect("a link")
                };
                let (near_framing, far_framing) = (framing(near_mac, far_mac), framing(far_mac, near_mac));
                let (queues, offloads) = Tun::queues("sub0", near_framing.form(), 1).expect("an interface");
                let index = link_by_name("sub0").expect("there").index;
                let mac = (near_framing.form() == Form::Frames).then_some(near_mac);
                netlink::configure(index, 1500, mac).expect("configured");
                netlink::add_address(index, &"10.9.0.1/24".parse().expect("one")).expect("an address");
                netlink::set_up(index).expect("up");
                let below = Below { index: near.index, mtu: near.mtu };
                let mut workers =
                    Batch::workers(queues, offloads, below, &near_framing, io).expect("a worker");
                let mut path = workers.remove(0);
                let line = Line {
                    framing: near_framing,
                    clamp: None,
                    counters: Arc::new(Counters::default()),
                    parent_mtu: Arc::new(AtomicU32::new(near.mtu)),
                };
                let frames = frames(&far_framing, near_mac, far_mac);
                let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
                let mut transmit = Transmit::open("far0").expect("a socket");
                let socket = UdpSocket::bind(("10.9.0.1", 0)).expect("bound");
                socket.set_broadcast(true).expect("allowed");
                for _ in 0..3 {
                    round(&mut path, &line, &frames, &mut transmit, &socket);
                }
                for _ in 0..10 {
                    let made = round(&mut path, &line, &frames, &mut transmit, &socket);
                    assert_eq!(made, 0, "{link} {io}");
                }
            });
        }
    }
}
