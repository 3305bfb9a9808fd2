//! Verification of received frames against frames made by crate `traffic` and by hand.

use crate::packets::frame;
use rxlane_offload::checksum::{Verdict, verify};
use std::net::{IpAddr, Ipv6Addr};
use traffic::{NAMED, Scenario};
use wire::emit::{DestinationOptions, Emit, Encapsulation, Ipv4, Ipv6, Routing, Tcp, Udp};
use wire::emit::{checksum, home_address_option};
use wire::{Fragment, IpProtocol, Link, Word, dissect};

#[test]
fn frames_of_every_scenario_are_right_and_any_changed_byte_is_found() {
    let mut seen = [0; 3];
    for named in &NAMED {
        let mut scenario = Scenario::named(named.name).expect("a scenario").with_flows(20);
        scenario.control_per_million = 100_000;
        scenario.fragments_per_million = 100_000;
        let mut traffic = scenario.generate(7).expect("valid");
        for turn in 0..300_usize {
            let frame = traffic.next_frame().bytes.to_vec();
            let dissection = dissect(Link::Ethernet, &frame, frame.len());
            let verified = verify(&frame);
            let Some(network) = dissection.network_offset() else {
                assert_eq!((verified.header, verified.transport), (Verdict::Unknown, Verdict::Unknown));
                continue;
            };
            if dissection.fragment() != Fragment::None {
                assert_eq!(verified.transport, Verdict::Unknown);
                seen[0] += 1;
                continue;
            }
            assert_eq!(verified.transport, Verdict::Right, "{}", dissection.stack());
            let is_v4 = dissection.stack().contains(Word::Ipv4);
            assert_eq!(verified.header, if is_v4 { Verdict::Right } else { Verdict::Unknown });
            seen[1] += 1;
            // The last byte of the transport header, which no length and no flag is.
            let mut changed = frame.clone();
            let at = dissection.transport_offset().expect("transport") + turn % 4;
            changed[at] ^= 0x10;
            assert_ne!(verify(&changed).transport, Verdict::Right, "byte {at}");
            if is_v4 {
                let mut changed = frame.clone();
                changed[network + 8] ^= 1;
                assert_eq!(verify(&changed).header, Verdict::Wrong);
                seen[2] += 1;
            }
        }
    }
    assert!(seen.iter().all(|count| *count > 50), "{seen:?}");
}

/// A UDP datagram with the checksum that these two ends give.
fn datagram(source: IpAddr, destination: IpAddr) -> Vec<u8> {
    let mut datagram = vec![0; 8 + 33];
    Udp { source_port: 7, destination_port: 9, length: 41, checksum: 0 }.emit(&mut datagram).expect("room");
    datagram[8..].fill(0x5a);
    checksum::fill(source, destination, IpProtocol::UDP, &mut datagram).expect("whole");
    datagram
}

fn ipv6(next_header: IpProtocol, destination: Ipv6Addr, behind: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; 40];
    let header = Ipv6::new(next_header, node(1), destination, behind.len() as u16);
    header.emit(&mut packet).expect("room");
    packet.extend(behind);
    packet
}

fn node(number: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, number)
}

/// RFC 8200 section 8.1: the pseudo-header has the last node of a routing header; RFC 6275 section 11.3.1: and the home
/// address.
#[test]
fn routing_headers_and_home_addresses_name_the_ends() {
    let next_header = IpProtocol::UDP;
    let list = |first: [u8; 4], nodes: [u16; 2]| {
        let nodes = nodes.map(|number| node(number).octets());
        [&first[..], nodes.as_flattened()].concat()
    };
    let source_route = list([0; 4], [3, 9]);
    // Of a segment routing header, the index of the last entry, and the last node first.
    let segments = list([1, 0, 0, 0], [9, 3]);
    let route = |routing_type, data| Routing { next_header, routing_type, segments_left: 1, data };
    let option = home_address_option(node(8));
    let options = DestinationOptions { next_header, options: &option };
    type Case<'a> = (&'static str, IpProtocol, &'a dyn Emit, [u16; 2], [u16; 2]);
    let cases: [Case; 3] = [
        ("routing type 0", IpProtocol::ROUTING, &route(0, &source_route), [1, 9], [1, 2]),
        ("routing type 4", IpProtocol::ROUTING, &route(4, &segments), [1, 9], [1, 2]),
        ("home address", IpProtocol::DESTINATION_OPTIONS, &options, [8, 2], [1, 2]),
    ];
    for (name, first, header, right, wrong) in cases {
        let mut behind = vec![0; header.length()];
        header.emit(&mut behind).expect("room");
        for ([source, destination], verdict) in [(right, Verdict::Right), (wrong, Verdict::Wrong)] {
            let packet = [&behind[..], &datagram(node(source).into(), node(destination).into())].concat();
            let frame = frame(&Encapsulation::NONE, &ipv6(first, node(2), &packet));
            assert_eq!(verify(&frame).transport, verdict, "{name}, summed with {source} and {destination}");
        }
    }
}

#[test]
fn padding_is_not_summed_and_a_missing_udp_checksum_is_no_wrong_one() {
    let (source, destination) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
    let header = Ipv4 { identification: 1, ..Ipv4::new(IpProtocol::UDP, source, destination, 61) };
    let mut packet = vec![0; 20];
    header.emit(&mut packet).expect("room");
    packet.extend(datagram(source.into(), destination.into()));
    let mut padded = frame(&Encapsulation::NONE, &packet);
    padded.extend([0xee; 9]);
    assert_eq!(verify(&padded).transport, Verdict::Right);
    packet[26..28].fill(0);
    assert_eq!(verify(&frame(&Encapsulation::NONE, &packet)).transport, Verdict::Absent);
    let mut over_ipv6 = datagram(node(1).into(), node(2).into());
    over_ipv6[6..8].fill(0);
    let over_ipv6 = frame(&Encapsulation::NONE, &ipv6(IpProtocol::UDP, node(2), &over_ipv6));
    assert_eq!(verify(&over_ipv6).transport, Verdict::Wrong);
}

#[test]
fn every_prefix_of_a_frame_gets_a_verdict() {
    let mut segment = vec![0; 20];
    Tcp { flags: Tcp::ACK, ..Tcp::default() }.emit(&mut segment).expect("room");
    checksum::fill(node(1).into(), node(2).into(), IpProtocol::TCP, &mut segment).expect("whole");
    let whole = frame(&Encapsulation::NONE, &ipv6(IpProtocol::TCP, node(2), &segment));
    for length in 0..whole.len() {
        assert_eq!(verify(&whole[..length]).transport, Verdict::Unknown, "{length} bytes");
    }
    assert_eq!(verify(&whole).transport, Verdict::Right);
}
