//! The contract of the crate: no panic on any input, what a dissection says holds together, and the short cut for common
//! frames gives the answer of the general walk.
//!
//! Nothing that a caller can pass voids it. Offsets assume frames below 4 GiB; a wire length beyond that is
//! tried here too.

use crate::frames::*;
use proptest::prelude::*;
use rxlane_wire::dissect::dissect_general;
use rxlane_wire::emit::{self, Encapsulation, Ipv4, Ipv6, Tcp, Udp};
use rxlane_wire::error::Layer;
use rxlane_wire::{Dissection, FlowKey, Fragment, IpProtocol, IpVersion, Link, Word};
use rxlane_wire::{dissect, ethernet, extension, flow_key, ppp, pppoe, vlan};
use std::fmt::Debug;

const LINKS: [Link; 6] =
    [Link::Ethernet, Link::LinuxCooked, Link::LinuxCooked2, Link::Ip, Link::Ppp, Link::PppOverEthernet];

/// All that a dissection says.
fn statements(seen: &Dissection, frame: &[u8]) -> impl Debug + PartialEq {
    let places = (seen.network_offset(), seen.transport_offset(), seen.fragment());
    let link = (seen.tags(frame).collect::<Vec<_>>(), seen.tpids(), seen.tag_bytes(frame).to_vec());
    let pppoe = (seen.pppoe(), seen.ppp_protocol(), seen.is_snap());
    let ip = (seen.flow().copied(), seen.has_ipv4_options(), seen.extensions());
    (seen.stack(), seen.error().copied(), places, link, pppoe, ip)
}

/// What must hold between the answers of a dissection, of the general walk, and of the flow key alone.
fn check(link: Link, frame: &[u8], wire_length: usize) -> Result<(), TestCaseError> {
    let seen = dissect(link, frame, wire_length);
    let general = dissect_general(link, frame, wire_length);
    let key = general.error().map_or(Ok(general.flow().copied()), |error| Err(*error));
    prop_assert_eq!(flow_key(link, frame, wire_length), key);
    prop_assert_eq!(statements(&seen, frame), statements(&general, frame));
    let end = wire_length.max(frame.len());
    let flow = seen.flow();
    if let Some(flow) = flow.filter(|flow| flow.has_ports()) {
        let protocol = IpProtocol(flow.protocol());
        prop_assert!([IpProtocol::TCP, IpProtocol::UDP, IpProtocol::SCTP].contains(&protocol), "{flow}");
        prop_assert_ne!(seen.fragment(), Fragment::Later);
        prop_assert!(seen.transport_offset().is_some());
    }
    if let Some(transport) = seen.transport_offset() {
        prop_assert!(transport <= frame.len(), "transport at {transport} of {}", frame.len());
        prop_assert!(seen.network_offset().is_some_and(|network| network + 20 <= transport));
    }
    prop_assert_eq!(flow.is_some(), seen.network_offset().is_some());
    if flow.is_some() {
        prop_assert!(seen.stack().contains(Word::Ipv4) || seen.stack().contains(Word::Ipv6));
    }
    if let Some(error) = seen.error() {
        prop_assert!(error.offset as usize <= end, "{error}");
        prop_assert!(!error.to_string().is_empty() && !error.reason().to_string().is_empty());
    }
    let tags = usize::from(seen.stack().tags());
    prop_assert!(seen.tags(frame).count() <= tags);
    let whole = seen.error().is_none();
    prop_assert!(!whole || seen.tags(frame).count() == tags);
    prop_assert!(!whole || seen.tag_bytes(frame).len() == (4 * tags).saturating_sub(2));
    prop_assert!(seen.stack().words().count() <= 12 + tags);
    prop_assert_eq!(seen.pppoe().is_some(), seen.pppoe().map(|pppoe| pppoe.code.to_string()).is_some());
    prop_assert!(seen.extension_headers(frame).count() <= frame.len() / 8);
    let mut kinds = seen.extension_headers(frame).map(|header| header.kind);
    prop_assert!(!whole || kinds.all(|kind| seen.extensions().contains(kind)));
    let _ = (seen.home_address(frame), seen.routing2_destination(frame));
    Ok(())
}

fn check_everywhere(frame: &[u8], wire_length: usize) -> Result<(), TestCaseError> {
    for link in LINKS {
        check(link, frame, wire_length)?;
    }
    Ok(())
}

/// The parsers that are public by themselves.
fn read_everything(bytes: &[u8]) {
    let _ = (vlan::protocol(bytes), ethernet::llc(bytes));
    for tag in pppoe::tags(bytes).filter_map(Result::ok) {
        let _ = tag.line_identification().map(Iterator::count);
    }
    for compression in [ppp::Compression::Allowed, ppp::Compression::Forbidden] {
        let _ = ppp::protocol(bytes, compression);
    }
    use extension::Kind::*;
    for kind in [HopByHop, Routing, Fragment, DestinationOptions, Authentication] {
        for available in [0, bytes.len(), usize::MAX] {
            if let Ok(header) = extension::Header::parse(kind, bytes, available) {
                let _ = (header.options().count(), header.check_options(), header.check_routing());
                let _ = (header.home_address(), header.jumbo_payload(), header.routing2_destination());
                let _ = (header.fragment(), header.identification(), header.segments_left());
            }
        }
    }
    let _ = (emit::PppoeTag::parse(bytes), emit::ControlPacket::parse(bytes));
    let _ = (emit::HopByHop::parse(bytes), emit::DestinationOptions::parse(bytes));
    let _ = (emit::Routing::parse(bytes), emit::Fragment::parse(bytes), emit::Authentication::parse(bytes));
    let _ = (emit::checksum::internet(bytes), emit::checksum::crc32c(bytes));
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
    let mut packet = data(payload);
    packet = match protocol {
        IpProtocol::TCP => packet.wrap(Layer::Tcp, &Tcp { source_port, destination_port, ..tcp() }),
        _ => {
            let length = 8 + payload as u16;
            packet.wrap(Layer::Udp, &Udp { source_port, destination_port, length, ..udp() })
        }
    };
    let length = packet.bytes.len() as u16;
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
    let length = encapsulation.emit(MAC_A, MAC_B, version, packet.bytes.len(), &mut frame);
    frame.truncate(length.expect("256 bytes suffice"));
    frame.extend(packet.bytes);
    frame
}

fn valid() -> impl Strategy<Value = Vec<u8>> {
    let stack = prop::sample::select(&STACKS[..]);
    let protocol = prop::sample::select(&[IpProtocol::TCP, IpProtocol::UDP][..]);
    (stack, any::<bool>(), protocol, any::<(u32, u32)>(), 0usize..40)
        .prop_map(|(stack, v6, protocol, flow, payload)| frame(stack, v6, protocol, flow, payload))
}

#[test]
fn every_stack_is_read_without_a_defect() {
    for stack in STACKS {
        for (v6, protocol) in [(false, IpProtocol::TCP), (true, IpProtocol::UDP)] {
            let frame = frame(stack, v6, protocol, (1, 2), 6);
            let seen = dissect(Link::Ethernet, &frame, frame.len());
            assert_eq!(seen.error(), None, "{stack}");
            assert!(seen.flow().is_some_and(FlowKey::has_ports), "{stack}: {}", seen.stack());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn random_bytes(
        ethertype in prop_oneof![
            Just(0x0800u16), Just(0x86dd), Just(0x8864), Just(0x8863), Just(0x8100), Just(0x8847), 0u16..1600,
        ],
        first in any::<u8>(),
        bytes in proptest::collection::vec(prop_oneof![Just(0u8), Just(0x45), Just(0x60), Just(0x11), Just(44),
            Just(60), Just(51), any::<u8>()], 0..200),
        wire_length in prop_oneof![0usize..400, Just(usize::MAX), Just(u32::MAX as usize)],
    ) {
        check_everywhere(&bytes, wire_length)?;
        read_everything(&bytes);
        let mut frame = vec![0; 12];
        frame.extend(ethertype.to_be_bytes());
        frame.push(match ethertype { 0x0800 => 0x45 | first & 0x0f, 0x86dd => 0x60, 0x8863 | 0x8864 => 0x11, _ => first });
        frame.extend(bytes);
        check_everywhere(&frame, frame.len())?;
    }

    #[test]
    fn frames_changed_cut_padded_and_longer_on_the_wire(
        common in valid(),
        which in any::<prop::sample::Index>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        bit in any::<prop::sample::Index>(),
        cut in any::<prop::sample::Index>(),
        padding in 0usize..40,
        missing in prop_oneof![0usize..100, Just(500), Just(70_000)],
    ) {
        let corpus = corpus();
        let built = &corpus[which.index(corpus.len())];
        for (link, whole) in [(Link::Ethernet, &common), (built.link, &built.bytes)] {
            let mut frame = whole.clone();
            for (place, value) in &changes {
                let place = place.index(frame.len());
                frame[place] = *value;
            }
            let mut flipped = whole.clone();
            let bit = bit.index((flipped.len() - 12) * 8);
            flipped[12 + bit / 8] ^= 1 << (bit % 8);
            check(link, &flipped, flipped.len())?;
            let kept = &frame[..cut.index(frame.len() + 1)];
            let padded = [&frame[..], &vec![0x5a; padding]].concat();
            for (bytes, wire_length) in [
                (&frame[..], frame.len() + missing),
                (&frame, 0),
                (kept, kept.len()),
                (kept, frame.len()),
                (&padded, padded.len() + missing),
            ] {
                check(link, bytes, wire_length)?;
            }
            check_everywhere(&frame, frame.len())?;
            read_everything(&frame);
        }
    }
}

#[test]
fn frames_of_the_corpus_hold_together_at_every_cut() -> Result<(), TestCaseError> {
    for built in corpus() {
        for length in 0..=built.bytes.len() {
            for wire_length in [0, length, built.bytes.len(), built.bytes.len() + 5] {
                check(built.link, &built.bytes[..length], wire_length)?;
            }
        }
    }
    Ok(())
}

#[test]
fn no_frame_is_too_strange() -> Result<(), TestCaseError> {
    for byte in [0x00, 0x45, 0x60, 0x81, 0xff] {
        for length in [0, 1, 13, 14, 60, 1514, 70_000] {
            let frame = vec![byte; length];
            check_everywhere(&frame, length)?;
            read_everything(&frame);
        }
    }
    // As many tags as 70,000 bytes hold.
    let tags = [0x81, 0x00].repeat(35_000);
    check_everywhere(&tags, tags.len())
}
