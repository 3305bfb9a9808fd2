//! Nothing is allocated once a data path has seen traffic.

use super::*;
use crate::tests::with_pair;
use kernel::netlink;
use std::net::UdpSocket;
use testkit::allocations;

/// Frames with UDP datagrams of several flows, which are put together.
fn frames(topology: &Topology) -> Vec<Vec<u8>> {
    let frame = |number: u16| {
        let identification = number / 5;
        let ip =
            |length| emitted(&Ipv4 { identification, dont_fragment: false, ..ipv4(IpProtocol::UDP, length) });
        let udp = Udp { source_port: 4096 + number % 5, destination_port: 8192, length: 508, checksum: 0 };
        topology.on_the_line(&Unfinished::new(ip, &udp, &[0x5a; 500]).finished())
    };
    (0..120).map(frame).collect()
}

/// Allocations of the data path until it has moved these frames and as many datagrams the other way.
fn round(topology: &mut Topology, frames: &[&[u8]], socket: &UdpSocket) -> u64 {
    let Topology { path, line, transmit, .. } = topology;
    let before = line.counters.read();
    let until = Instant::now() + PATIENCE;
    transmit.send(frames).expect("sent");
    for _ in 0..40 {
        // To all, for which no address has to be resolved.
        socket.send_to(&[0; 900], ("10.9.0.255", 9)).expect("sent");
    }
    let mut made = 0;
    loop {
        let counted = allocations::of_this_thread();
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
    }
}

#[test]
fn the_steady_state_allocates_nothing() {
    for (make, io) in BATCH {
        for link in ["ad:1,q:2,pppoe:7@PEER", "q:35"] {
            with_pair(1600, |_, _| {
                let mut topology = Topology::new(link, make);
                let index = link_by_name("sub0").expect("there").index;
                netlink::add_address(index, &"10.9.0.1/24".parse().expect("one")).expect("an address");
                let frames = frames(&topology);
                let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
                let socket = UdpSocket::bind(("10.9.0.1", 0)).expect("bound");
                socket.set_broadcast(true).expect("allowed");
                let made: Vec<u64> = (0..13).map(|_| round(&mut topology, &frames, &socket)).collect();
                assert_eq!(made[3..], [0; 10], "{link} {io}");
                assert!(allocations::of_this_thread() > 0, "they are counted");
            });
        }
    }
}
