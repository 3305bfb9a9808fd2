//! The kernel as reference: what it makes of the same super-packets and of the same frames, and what it takes.

mod gro;

use crate::packets::{CWR, MACS, Spec, segments};
use kernel::netlink::link_by_name;
use kernel::socket::Packet;
use kernel::tun::{Form, Tun};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rxlane_offload::coalesce::{Coalescer, Delivery, Limits};
use rxlane_offload::{NetHeader, Prefix};
use std::io::{self, IoSlice, IoSliceMut};
use std::net::IpAddr;
use std::time::Instant;
use testkit::netns::{Namespace, Veth, probe};
use testkit::{Missing, program, require};
use wire::emit::{Encapsulation, Tcp};
use wire::{Link, dissect};

/// What these tests need in addition to namespaces.
fn tun_probe() -> Result<(), Missing> {
    probe()?;
    program("ethtool")?;
    let namespace = Namespace::new().map_err(|error| Missing(error.to_string()))?;
    let tried = namespace.inside(|| tun("probe0"));
    tried.map(drop).map_err(|error| {
        Missing(format!(
            "no TUN device with TCP and UDP offloads can be made (Linux 6.2 or newer has it): {error}"
        ))
    })
}

/// A TUN device in the namespace of this thread, with virtio headers and all offloads.
fn tun(name: &str) -> io::Result<Tun> {
    let (mut queues, offloads) = Tun::queues(name, Form::Packets, 1).map_err(io::Error::other)?;
    match queues.pop().filter(|_| offloads.udp) {
        Some(tun) => Ok(tun),
        None => Err(io::Error::other("the kernel knows no UDP segmentation")),
    }
}

/// A packet socket for the frames that come in by an interface.
fn frames(interface: &str) -> io::Result<Packet> {
    let socket = Packet::open()?;
    socket.bind(link_by_name(interface)?.index)?;
    Ok(socket)
}

/// A namespace that forwards from `tun0` to `out0`, whose other end `in0` shows what left; `out0` offloads nothing.
struct Router {
    namespace: Namespace,
    tun: Tun,
    frames: Packet,
}

impl Router {
    fn new() -> Router {
        let namespace = Namespace::new().expect("a namespace");
        let tun = namespace.inside(|| tun("tun0")).expect("a TUN device");
        namespace.veth(&Veth::pair("out0", "in0")).expect("a pair");
        let off = ["tso", "gso", "gro", "tx", "tx-udp-segmentation"];
        for interface in ["out0", "in0"] {
            let settings = off.iter().flat_map(|name| [*name, "off"]);
            let arguments: Vec<&str> = ["-K", interface].into_iter().chain(settings).collect();
            namespace.run("ethtool", &arguments).expect("offloads off");
        }
        namespace.inside(|| {
            for (file, value) in [
                ("ipv4/ip_forward", "1"),
                ("ipv4/conf/all/rp_filter", "0"),
                ("ipv4/conf/tun0/rp_filter", "0"),
                ("ipv6/conf/all/disable_ipv6", "0"),
                ("ipv6/conf/tun0/disable_ipv6", "0"),
                ("ipv6/conf/out0/disable_ipv6", "0"),
                ("ipv6/conf/all/forwarding", "1"),
            ] {
                std::fs::write(format!("/proc/sys/net/{file}"), value).expect(file);
            }
        });
        let ip = |arguments: &str| {
            let arguments: Vec<&str> = arguments.split(' ').collect();
            namespace.run("ip", &arguments).expect("ip")
        };
        ip("link set tun0 up");
        let station = MACS[0].to_string();
        for (near, far) in [("198.18.0.1/32", "198.18.0.2"), ("2001:db8::1/128", "2001:db8::2")] {
            ip(&format!("route add {near} dev tun0"));
            ip(&format!("route add {far} dev out0"));
            ip(&format!("neigh add {far} lladdr {station} dev out0 nud permanent"));
        }
        let frames = namespace.inside(|| frames("in0")).expect("a packet socket");
        Router { namespace, tun, frames }
    }

    /// Hands a packet to the kernel.
    fn write(&mut self, header: &NetHeader, pieces: &[&[u8]]) {
        let header = header.bytes();
        let pieces: Vec<IoSlice> =
            std::iter::once(&header[..]).chain(pieces.iter().copied()).map(IoSlice::new).collect();
        self.tun.write(&pieces).expect("the kernel takes it");
    }

    /// The next `count` IP packets between the two ends that left by `out0`.
    fn left(&mut self, count: usize) -> Vec<Vec<u8>> {
        let mut packets = Vec::new();
        let end = Instant::now() + testkit::PATIENCE;
        let mut buffer = [0; 65600];
        while packets.len() < count && Instant::now() < end {
            if !is_readable(&self.frames, 100) {
                continue;
            }
            let (length, _) = self.frames.receive(&mut [IoSliceMut::new(&mut buffer)]).expect("a frame");
            let frame = &buffer[..length];
            let seen = dissect(Link::Ethernet, frame, length);
            let flow = seen.flow().filter(|flow| {
                let ends: [IpAddr; 2] = if flow.source().is_ipv4() {
                    [[198, 18, 0, 1].into(), [198, 18, 0, 2].into()]
                } else {
                    ["2001:db8::1".parse().expect("an address"), "2001:db8::2".parse().expect("an address")]
                };
                [flow.source(), flow.destination()] == ends
            });
            if flow.is_some() {
                packets.push(frame[14..].to_vec());
            }
        }
        packets
    }
}

/// Whether frames are there, at the latest after `milliseconds`.
fn is_readable(frames: &Packet, milliseconds: i64) -> bool {
    let mut polled = [PollFd::new(frames, PollFlags::IN)];
    let limit = Timespec { tv_sec: milliseconds / 1000, tv_nsec: milliseconds % 1000 * 1_000_000 };
    match poll(&mut polled, Some(&limit)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => panic!("poll: {error}"),
    }
    polled[0].revents().contains(PollFlags::IN)
}

/// Super-packets of every kind.
fn specs() -> Vec<Spec> {
    let tcp = Spec { flags: Tcp::ACK | CWR | Tcp::PSH | Tcp::FIN, ttl: 9, ..Spec::default() };
    let options = vec![1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
    let with_options =
        Spec { tcp_options: options, identification: 0xfffe, dont_fragment: false, ..tcp.clone() };
    let over_ipv6 =
        Spec { version_6: true, flow_label: 0x5_1234, traffic_class: 0x22, ..with_options.clone() };
    let mut specs = vec![
        Spec { sequence: u32::MAX - 2000, ip_options: vec![1, 1, 1, 0], ..with_options.clone() },
        Spec { extensions: (None, Some(vec![0x1e, 4, 1, 2, 3, 4])), ..over_ipv6.clone() },
        Spec { urgent: 77, flags: Tcp::ACK, ..tcp.clone() },
        tcp,
        with_options,
        over_ipv6,
    ];
    let datagrams = specs.clone().into_iter().map(|spec| Spec { udp: true, tcp_options: vec![], ..spec });
    specs.extend(datagrams.collect::<Vec<_>>());
    specs
}

#[test]
fn segments_are_those_of_the_kernel() {
    let Some(()) = require("netns", tun_probe()) else { return };
    let mut router = Router::new();
    let mut compared = 0;
    for spec in specs() {
        for (length, size) in [(5000, 1000_u16), (60_001, 1400), (1001, 1000), (2000, 1000), (77, 8)] {
            let payload: Vec<u8> = (0..length).map(|place: usize| ((place * 7) >> 3) as u8).collect();
            let (header, packet) = spec.super_packet(&payload, size);
            router.write(&header, &[&packet]);
            // The kernel is a hop.
            let (_, behind) = Spec { ttl: spec.ttl - 1, ..spec.clone() }.super_packet(&payload, size);
            let expected = segments(&Prefix::NONE, &header, &behind, false);
            let left = router.left(expected.len());
            assert_eq!(left.len(), expected.len(), "packets that left of {spec:?}");
            for (number, (left, expected)) in left.iter().zip(&expected).enumerate() {
                assert_eq!(left, expected, "segment {number} of {length} bytes by {size} of {spec:?}");
                compared += 1;
            }
        }
    }
    assert!(compared > 500, "{compared} segments of {}", router.namespace.name());
}

#[test]
fn the_kernel_takes_what_was_coalesced_for_what_it_was() {
    let Some(()) = require("netns", tun_probe()) else { return };
    let mut router = Router::new();
    let encapsulation: Encapsulation = "ad:100,q:200,pppoe:7".parse().expect("an encapsulation");
    let prefix = Prefix::new(&encapsulation, MACS[0], MACS[1]).expect("room");
    let mut coalescer = Coalescer::new(Limits::default());
    let mut counts = Vec::new();
    for spec in specs().into_iter().filter(|spec| spec.ip_options.is_empty()) {
        let spec = Spec { flags: spec.flags & !CWR, ..spec };
        let payload: Vec<u8> = (0..30_001).map(|place: usize| ((place * 5) >> 2) as u8).collect();
        let (header, packet) = spec.super_packet(&payload, 1400);
        let frames = segments(&prefix, &header, &packet, false);
        for delivery in coalescer.coalesce(&frames) {
            let Delivery::Packet(packet) = delivery else { panic!("a packet") };
            counts.push(packet.segments());
            router.write(&packet.header(), &packet.pieces().collect::<Vec<_>>());
        }
        let (_, behind) = Spec { ttl: spec.ttl - 1, ..spec.clone() }.super_packet(&payload, 1400);
        let expected = segments(&Prefix::NONE, &header, &behind, false);
        assert_eq!(router.left(expected.len()), expected, "{spec:?}");
    }
    assert!(counts.iter().all(|count| *count == 22), "each stream became one packet: {counts:?}");
}
