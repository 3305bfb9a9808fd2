//! What the kernel coalesces of the same frames.
//!
//! A veth end with GRO on holds what it coalesces until a timer or the next tick, so that frames sent one by one come
//! together; that a tick falls between two of them is why each batch is sent several times, and the run with the fewest
//! packets counts.

use super::{frames, is_readable, tun_probe};
use crate::packets::received::{CHANGES, Received, coalesce, in_order, stream};
use crate::packets::{MACS, Spec};
use kernel::socket::Packet;
use rxlane_offload::coalesce::{Coalescer, Limits};
use std::io::IoSliceMut;
use testkit::netns::{Namespace, Veth};
use testkit::require;
use wire::{Link, Word, dissect};

const LEAST_RUNS: usize = 3;
const MOST_RUNS: usize = 40;

struct Receiver {
    namespace: Namespace,
    frames: Packet,
}

impl Receiver {
    fn new() -> Receiver {
        let namespace = Namespace::new().expect("a namespace");
        namespace.veth(&Veth::pair("out0", "in0")).expect("a pair");
        let features = ["-K", "in0", "gro", "on", "rx-udp-gro-forwarding", "on"];
        namespace.run("ethtool", &features).expect("GRO on");
        namespace.inside(|| {
            std::fs::write("/sys/class/net/in0/gro_flush_timeout", "4000000").expect("a timeout of 4 ms");
        });
        let frames = namespace.inside(|| frames("in0")).expect("a packet socket");
        Receiver { namespace, frames }
    }

    /// The lengths of the IP packets that the stack gets of these frames: of the run with the fewest packets. There are
    /// more runs while more than `expected` packets come.
    fn lengths(&mut self, received: &[Received], expected: usize) -> Vec<usize> {
        let mut fewest = self.lengths_once(received);
        for run in 1..MOST_RUNS {
            if run >= LEAST_RUNS && fewest.len() <= expected {
                break;
            }
            let lengths = self.lengths_once(received);
            if lengths.len() < fewest.len() {
                fewest = lengths;
            }
        }
        fewest
    }

    fn lengths_once(&mut self, received: &[Received]) -> Vec<usize> {
        let frames = received.iter().map(|received| &received.frame);
        self.namespace.send("out0", frames).expect("sent");
        let mut missing: usize = received.iter().map(|received| payload_length(&received.frame)).sum();
        let mut lengths = Vec::new();
        let mut buffer = vec![0; 65600];
        while missing > 0 && is_readable(&self.frames, 2000) {
            let (length, _) = self.frames.receive(&mut [IoSliceMut::new(&mut buffer)]).expect("a frame");
            // Nothing but the test's frames has this address.
            if buffer[..6] == MACS[0].0 {
                lengths.push(length - 14);
                missing -= payload_length(&buffer[..length]);
            }
        }
        assert_eq!(missing, 0, "bytes of payload that did not arrive");
        lengths
    }
}

/// Bytes behind the transport header.
fn payload_length(frame: &[u8]) -> usize {
    let seen = dissect(Link::Ethernet, frame, frame.len());
    let at = seen.transport_offset().expect("a transport header");
    let is_tcp = seen.stack().contains(Word::Tcp);
    frame.len() - at - if is_tcp { usize::from(frame[at + 12] >> 4) * 4 } else { 8 }
}

#[test]
fn the_kernel_coalesces_the_same_packets() {
    let Some(()) = require("netns", tun_probe()) else { return };
    let mut receiver = Receiver::new();
    let mut coalescer = Coalescer::new(Limits::default());
    let tcp = Spec { tcp_options: vec![1; 4], ..Spec::default() };
    for version_6 in [false, true] {
        for udp in [false, true] {
            let tcp_options = if udp { vec![] } else { tcp.tcp_options.clone() };
            let base = Spec { version_6, udp, tcp_options, ..tcp.clone() };
            for (name, change, ..) in CHANGES {
                // To the kernel these are another flow, which the rest of the first one may overtake.
                let is_other = udp && version_6 && ["flow label", "extension header"].contains(&name);
                // Kernels differ in CWR, and do not look at an urgent pointer without URG.
                if is_other || ["CWR", "urgent pointer"].contains(&name) {
                    continue;
                }
                let mut packets = in_order(&base, 5, 100);
                let (spec, payload) = &mut packets[2];
                change(spec, payload);
                let received = stream("none", &packets);
                let mut own: Vec<usize> = coalesce(&mut coalescer, &received)
                    .iter()
                    .map(|numbers| {
                        // Headers of one length only are coalesced.
                        let whole =
                            numbers.iter().map(|number| received[*number].packet.len()).sum::<usize>();
                        whole - (numbers.len() - 1) * base.header_length()
                    })
                    .collect();
                let mut kernel = receiver.lengths(&received, own.len());
                // The kernel lets packets with options of IPv4 overtake what it holds.
                own.sort_unstable();
                kernel.sort_unstable();
                assert_eq!(own, kernel, "{name}, IPv6 {version_6}, UDP {udp}");
            }
        }
    }
}
