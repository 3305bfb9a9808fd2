//! The short cut for common frames gives the answer of the general walk, on valid frames and on damaged ones.

use proptest::prelude::*;
use rxlane_wire::dissect::{Pppoe, dissect_general};
use rxlane_wire::emit::{Emit, Encapsulation, Ipv4, Ipv6, Tcp, Udp, headers};
use rxlane_wire::error::Error;
use rxlane_wire::ethernet::MacAddress;
use rxlane_wire::ppp::PppProtocol;
use rxlane_wire::vlan::Tag;
use rxlane_wire::{
    Dissection, Extensions, FlowKey, Fragment, IpProtocol, IpVersion, Link, Stack, dissect, flow_key,
};

/// All that a dissection tells.
#[derive(Debug, PartialEq)]
struct Seen {
    stack: Stack,
    error: Option<Error>,
    tags: Vec<Tag>,
    tpids: u32,
    tag_octets: Vec<u8>,
    pppoe: Option<Pppoe>,
    ppp_protocol: Option<PppProtocol>,
    flow: Option<FlowKey>,
    fragment: Fragment,
    options: bool,
    snap: bool,
    extensions: Extensions,
    offsets: (Option<usize>, Option<usize>),
}

impl Seen {
    fn of(seen: &Dissection, frame: &[u8]) -> Seen {
        Seen {
            stack: seen.stack(),
            error: seen.error().copied(),
            tags: seen.tags(frame).collect(),
            tpids: seen.tpids(),
            tag_octets: seen.tag_octets(frame).to_vec(),
            pppoe: seen.pppoe(),
            ppp_protocol: seen.ppp_protocol(),
            flow: seen.flow().copied(),
            fragment: seen.fragment(),
            options: seen.has_ipv4_options(),
            snap: seen.is_snap(),
            extensions: seen.extensions(),
            offsets: (seen.network_offset(), seen.transport_offset()),
        }
    }
}

fn agree(frame: &[u8], wire_length: usize) -> Result<(), TestCaseError> {
    let short = dissect(Link::Ethernet, frame, wire_length);
    let general = dissect_general(Link::Ethernet, frame, wire_length);
    let key = match general.error() {
        Some(error) => Err(*error),
        None => Ok(general.flow().copied()),
    };
    prop_assert_eq!(flow_key(Link::Ethernet, frame, wire_length), key);
    prop_assert_eq!(Seen::of(&short, frame), Seen::of(&general, frame));
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

fn transport(protocol: IpProtocol, ports: (u16, u16), payload: usize) -> Vec<u8> {
    let (source_port, destination_port) = ports;
    let mut octets = vec![0; 20 + payload];
    let written = if protocol == IpProtocol::TCP {
        Tcp {
            source_port,
            destination_port,
            sequence: 1,
            acknowledgment: 2,
            flags: 0x10,
            window: 0xffff,
            checksum: 0,
            urgent: 0,
            options: &[],
        }
        .emit(&mut octets)
    } else {
        let length = 8 + payload as u16;
        Udp { source_port, destination_port, length, checksum: 0 }.emit(&mut octets)
    };
    octets.truncate(written.expect("20 bytes suffice") + payload);
    octets
}

fn frame(stack: &str, v6: bool, protocol: IpProtocol, flow: (u32, u32), payload: usize) -> Vec<u8> {
    let encapsulation: Encapsulation = stack.parse().expect(stack);
    let transport = transport(protocol, (flow.0 as u16, flow.1 as u16), payload);
    let version = if v6 { IpVersion::V6 } else { IpVersion::V4 };
    let ip6 = Ipv6 {
        traffic_class: 0,
        flow_label: 0,
        payload_length: transport.len() as u16,
        next_header: protocol,
        hop_limit: 64,
        source: u128::from(flow.0).into(),
        destination: u128::from(flow.1).into(),
    };
    let ip4 = Ipv4::new(protocol, flow.0.into(), flow.1.into(), 20 + transport.len() as u16);
    let ip: &dyn Emit = if v6 { &ip6 } else { &ip4 };
    let mut frame = vec![0; 256];
    let (to, from) = (MacAddress([2, 0, 0, 0, 0, 1]), MacAddress([2, 0, 0, 0, 0, 2]));
    let length = ip.length() + transport.len();
    let mut at = encapsulation.emit(to, from, version, length, &mut frame).expect("256 bytes suffice");
    at += headers(&[ip], &mut frame[at..]).expect("256 bytes suffice");
    frame.truncate(at);
    frame.extend(transport);
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
