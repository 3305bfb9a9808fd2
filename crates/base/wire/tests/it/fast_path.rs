//! The short cut for common frames gives the answer of the general walk, on valid frames and on damaged ones.

use crate::frames::{Built, MAC_A, MAC_B, ipv4, ipv6, tcp, udp};
use proptest::prelude::*;
use rxlane_wire::dissect::dissect_general;
use rxlane_wire::emit::{Encapsulation, Ipv4, Ipv6, Tcp, Udp};
use rxlane_wire::error::Layer;
use rxlane_wire::{Dissection, FlowKey, IpProtocol, IpVersion, Link, dissect, flow_key};
use std::fmt::Debug;

/// All that a dissection tells.
fn told(seen: &Dissection, frame: &[u8]) -> impl Debug + PartialEq {
    let places = (seen.network_offset(), seen.transport_offset(), seen.fragment());
    let link = (seen.tags(frame).collect::<Vec<_>>(), seen.tpids(), seen.tag_bytes(frame).to_vec());
    let pppoe = (seen.pppoe(), seen.ppp_protocol(), seen.is_snap());
    let ip = (seen.flow().copied(), seen.has_ipv4_options(), seen.extensions());
    (seen.stack(), seen.error().copied(), places, link, pppoe, ip)
}

fn agree(frame: &[u8], wire_length: usize) -> Result<(), TestCaseError> {
    let short = dissect(Link::Ethernet, frame, wire_length);
    let general = dissect_general(Link::Ethernet, frame, wire_length);
    let key = match general.error() {
        Some(error) => Err(*error),
        None => Ok(general.flow().copied()),
    };
    prop_assert_eq!(flow_key(Link::Ethernet, frame, wire_length), key);
    prop_assert_eq!(told(&short, frame), told(&general, frame));
    Ok(())
}

const STACKS: [&str; 9] = [
    "none",
    "q:35",
    "ad:100,q:200",
    "pppoe:1",
    "q:35,pppoe:65534",
    "ad:100,q:200,pppoe:7",
    "ad:4094,q:1,q:2,q:3,q:4,q:5,q:6,q:7",
    "ad:1,q:1,q:2,q:3,q:4,q:5,q:6,q:7,pppoe:9",
    "mpls:16",
];

fn frame(stack: &str, v6: bool, protocol: IpProtocol, flow: (u32, u32), payload: usize) -> Vec<u8> {
    let encapsulation: Encapsulation = stack.parse().expect(stack);
    let (source_port, destination_port) = (flow.0 as u16, flow.1 as u16);
    let mut packet = Built::payload("", payload);
    packet = match protocol {
        IpProtocol::TCP => packet.wrap(Layer::Tcp, &Tcp { source_port, destination_port, ..tcp() }),
        _ => {
            let length = 8 + payload as u16;
            packet.wrap(Layer::Udp, &Udp { source_port, destination_port, length, ..udp() })
        }
    };
    let length = packet.octets.len() as u16;
    let (version, packet) = if v6 {
        let (source, destination) = (u128::from(flow.0).into(), u128::from(flow.1).into());
        let header = Ipv6 { payload_length: length, source, destination, ..ipv6(protocol) };
        (IpVersion::V6, packet.wrap(Layer::Ipv6, &header))
    } else {
        let (source, destination) = (flow.0.into(), flow.1.into());
        let header = Ipv4 { total_length: 20 + length, source, destination, ..ipv4(protocol) };
        (IpVersion::V4, packet.wrap(Layer::Ipv4, &header))
    };
    let mut frame = vec![0; 256];
    let length = encapsulation.emit(MAC_A, MAC_B, version, packet.octets.len(), &mut frame);
    frame.truncate(length.expect("256 bytes suffice"));
    frame.extend(packet.octets);
    frame
}

fn valid() -> impl Strategy<Value = Vec<u8>> {
    let stack = prop::sample::select(&STACKS[..]);
    let protocol = prop::sample::select(&[IpProtocol::TCP, IpProtocol::UDP][..]);
    (stack, any::<bool>(), protocol, any::<(u32, u32)>(), 0usize..40)
        .prop_map(|(stack, v6, protocol, flow, payload)| frame(stack, v6, protocol, flow, payload))
}

#[test]
fn every_stack_goes_both_ways_without_a_defect() {
    for stack in STACKS {
        for (v6, protocol) in [(false, IpProtocol::TCP), (true, IpProtocol::UDP)] {
            let frame = frame(stack, v6, protocol, (1, 2), 6);
            let seen = dissect(Link::Ethernet, &frame, frame.len());
            assert_eq!(seen.error(), None, "{stack}");
            assert!(seen.flow().is_some_and(FlowKey::has_ports), "{stack}: {}", seen.stack());
            agree(&frame, frame.len()).expect(stack);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn valid_frames_cut_padded_and_longer_on_the_wire(
        frame in valid(),
        cut in any::<prop::sample::Index>(),
        padding in 0usize..8,
        missing in 0usize..8,
    ) {
        agree(&frame, frame.len() + missing)?;
        let cut = &frame[..cut.index(frame.len() + 1)];
        agree(cut, cut.len())?;
        agree(cut, frame.len())?;
        let padded = [&frame[..], &[0; 8][..padding]].concat();
        agree(&padded, padded.len() + missing)?;
    }

    #[test]
    fn frames_with_octets_changed(
        mut frame in valid(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        missing in prop::sample::select(&[0usize, 1, 500, 70_000][..]),
    ) {
        for (place, value) in changes {
            let place = place.index(frame.len());
            frame[place] = value;
        }
        agree(&frame, frame.len() + missing)?;
    }

    #[test]
    fn frames_with_a_bit_of_a_header_flipped(mut frame in valid(), bit in any::<prop::sample::Index>()) {
        let bit = bit.index((frame.len() - 12) * 8);
        frame[12 + bit / 8] ^= 1 << (bit % 8);
        agree(&frame, frame.len())?;
    }
}
