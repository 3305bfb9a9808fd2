//! Whatever is generated is valid, reproducible, and the same flows in every encapsulation.

use rxlane_traffic::{Arrival, Generator, NAMED, Scenario, ScenarioError, Sizes};
use std::collections::{HashMap, HashSet};
use wire::emit::{Encapsulation, checksum};
use wire::pppoe::Code;
use wire::{Dissection, Fragment, IpProtocol, IpVersion, Link, Word, dissect};

/// A named scenario in which everything that is rare by default is frequent.
fn lively(name: &str) -> Result<Scenario, ScenarioError> {
    let scenario = Scenario::named(name)?;
    Ok(Scenario { control_per_million: 50_000, fragments_per_million: 50_000, ..scenario })
}

fn seen(bytes: &[u8]) -> Dissection {
    dissect(Link::Ethernet, bytes, bytes.len())
}

/// Bytes of the transport packet, and what its checksum covers besides.
fn transport_is_right(bytes: &[u8], seen: &Dissection) -> bool {
    let (Some(flow), Some(network), Some(transport)) =
        (seen.flow(), seen.network_offset(), seen.transport_offset())
    else {
        return false;
    };
    let header_is_right =
        flow.version() == IpVersion::V6 || checksum::internet(&bytes[network..network + 20]) == 0;
    let (source, destination, protocol) = (flow.source(), flow.destination(), IpProtocol(flow.protocol()));
    header_is_right && checksum::is_right(source, destination, protocol, &bytes[transport..])
}

#[test]
fn every_frame_of_every_scenario_is_valid() -> Result<(), ScenarioError> {
    for named in &NAMED {
        let mut traffic = lively(named.name)?.generate(11)?;
        let (mut whole, mut controls, mut fragments) = (0, 0, 0);
        for number in 0..20_000 {
            let frame = traffic.next_frame();
            let place = format!("{} frame {number}", named.name);
            let seen = seen(frame.bytes);
            assert_eq!(seen.error(), None, "{place}: {:02x?}", frame.bytes);
            assert!(frame.bytes.len() >= 60, "{place} has {} bytes", frame.bytes.len());
            let (flow, fragment, found) = (frame.flow, seen.fragment(), seen.flow().copied());
            match (flow, fragment) {
                (Some(_), Fragment::None) => {
                    whole += 1;
                    assert!(transport_is_right(frame.bytes, &seen), "{place}: wrong checksum");
                }
                (Some(_), _) => fragments += 1,
                (None, _) => {
                    controls += 1;
                    if seen.stack().contains(Word::Icmpv6) {
                        assert!(transport_is_right(frame.bytes, &seen), "{place}: wrong checksum");
                    }
                    continue;
                }
            }
            if fragment != Fragment::Later {
                let expected = flow.and_then(|flow| traffic.flow(flow));
                assert_eq!(found, expected, "{place}");
            }
        }
        assert!(whole > 15_000 && controls > 800 && fragments > 1600, "{whole} {controls} {fragments}");
    }
    Ok(())
}

#[test]
fn stacks_are_those_of_the_encapsulation() -> Result<(), ScenarioError> {
    let expected = [
        ("untagged", "eth"),
        ("vlan", "eth/vlan"),
        ("qinq", "eth/vlan/vlan"),
        ("pppoe", "eth/pppoe"),
        ("pppoe-vlan", "eth/vlan/pppoe"),
        ("pppoe-qinq", "eth/vlan/vlan/pppoe"),
        ("mpls", "eth/mpls"),
        ("access", "eth/vlan/vlan/pppoe"),
    ];
    for (name, stack) in expected {
        let mut traffic = Scenario::named(name)?.data_only().generate(5)?;
        let stacks: HashSet<String> =
            (0..2000).map(|_| seen(traffic.next_frame().bytes).stack().to_string()).collect();
        let tails = ["ipv4/tcp", "ipv4/udp", "ipv6/tcp", "ipv6/udp"];
        assert_eq!(stacks, tails.map(|tail| format!("{stack}/{tail}")).into(), "{name}");
    }
    let mut mixed = Scenario::named("mixed")?.with_flows(10_000).data_only().generate(5)?;
    let stacks: HashSet<String> =
        (0..50_000).map(|_| seen(mixed.next_frame().bytes).stack().to_string()).collect();
    assert_eq!(stacks.len(), 6 * 4);
    Ok(())
}

/// The sequence of flows and their IP packets, without what stands before them.
fn packets(mut traffic: Generator, frames: usize) -> Vec<(u64, Option<u32>, Vec<u8>)> {
    let mut packets = Vec::new();
    for _ in 0..frames {
        let frame = traffic.next_frame();
        let network = seen(frame.bytes).network_offset().unwrap_or(frame.bytes.len());
        packets.push((frame.timestamp_ns, frame.flow, frame.bytes[network..].to_vec()));
    }
    packets
}

#[test]
fn the_same_packets_come_in_every_encapsulation() -> Result<(), ScenarioError> {
    // Small enough that PPPoE's smaller MTU shortens none of them.
    let scenario = Scenario { sizes: Sizes::Range(64, 1510), ..Scenario::named("untagged")? }.data_only();
    let untagged = packets(scenario.clone().generate(9)?, 3000);
    for stack in ["q:35", "ad:100,q:200", "pppoe", "q:7,pppoe:99", "mpls:16", "0x9100:1,0x9200:2,0x9300:3"] {
        let encapsulation: Encapsulation = stack.parse()?;
        let other = packets(scenario.clone().with_encapsulation(encapsulation).generate(9)?, 3000);
        assert!(untagged == other, "{stack} carries other packets");
    }
    Ok(())
}

#[test]
fn fragments_put_together_are_the_packet() -> Result<(), ScenarioError> {
    for name in ["untagged", "pppoe-qinq"] {
        let scenario = Scenario { fragments_per_million: 1_000_000, control_per_million: 0, ..lively(name)? };
        let mut traffic = scenario.generate(2)?;
        let mut versions = HashSet::new();
        for _ in 0..500 {
            let first = traffic.next_frame().bytes.to_vec();
            let later = traffic.next_frame().bytes.to_vec();
            let (one, two) = (seen(&first), seen(&later));
            assert_eq!((one.fragment(), two.fragment()), (Fragment::First, Fragment::Later));
            let (Some(flow), Some(start)) = (one.flow(), one.transport_offset()) else {
                panic!("a first fragment has a flow and a transport header")
            };
            assert!(flow.has_ports());
            assert!(two.flow().is_some_and(|flow| !flow.has_ports()));
            let mut packet = first[start..].to_vec();
            packet.extend(&later[later.len() - 200..]);
            let protocol = IpProtocol(flow.protocol());
            assert!(checksum::is_right(flow.source(), flow.destination(), protocol, &packet));
            versions.insert(flow.version());
        }
        assert_eq!(versions.len(), 2);
    }
    Ok(())
}

#[test]
fn every_subscriber_has_tags_and_session_of_its_own() -> Result<(), ScenarioError> {
    let mut traffic = Scenario::named("access")?.with_flows(20_000).data_only().generate(4)?;
    let mut lines = HashMap::new();
    for _ in 0..50_000 {
        let bytes = traffic.next_frame().bytes;
        let seen = seen(bytes);
        let session = seen.pppoe().map(|pppoe| pppoe.session);
        let line = (seen.tag_bytes(bytes).to_vec(), bytes[6..12].to_vec());
        assert_eq!(lines.entry(session).or_insert_with(|| line.clone()), &line);
    }
    assert!(lines.len() > 950, "{} of 1,000 subscribers were heard", lines.len());
    let tags: HashSet<_> = lines.values().collect();
    assert_eq!(tags.len(), lines.len());
    Ok(())
}

#[test]
fn discovery_goes_through_its_four_packets() -> Result<(), ScenarioError> {
    let scenario =
        Scenario { control_per_million: 1_000_000, fragments_per_million: 0, ..lively("pppoe-qinq")? };
    let mut traffic = scenario.generate(4)?;
    let codes: Vec<_> = (0..6).map(|_| seen(traffic.next_frame().bytes).pppoe().map(|p| p.code)).collect();
    let expected = [Code::PADI, Code::PADO, Code::PADR, Code::PADS, Code::SESSION, Code::SESSION];
    assert_eq!(codes, expected.map(Some));
    Ok(())
}

#[test]
fn sizes_are_those_of_untagged_frames_with_fcs() -> Result<(), ScenarioError> {
    for (name, overhead) in [("untagged", 0), ("qinq", 8), ("pppoe-vlan", 12), ("mpls", 8)] {
        let scenario = Scenario { sizes: Sizes::Fixed(594), ..Scenario::named(name)? }.data_only();
        let mut traffic = scenario.generate(1)?;
        assert!((0..100).all(|_| traffic.next_frame().bytes.len() == 594 - 4 + overhead), "{name}");
    }
    let full = Scenario { sizes: Sizes::Fixed(1518), ..Scenario::named("pppoe")? }.data_only();
    assert!(full.clone().generate(1)?.next_frame().bytes.len() == 1514, "PPPoE stays within the MTU");
    let baby_jumbo = Scenario { mtu: 1508, ..full };
    assert_eq!(baby_jumbo.generate(1)?.next_frame().bytes.len(), 1522);
    Ok(())
}

#[test]
fn tcp_segments_of_a_flow_follow_one_another() -> Result<(), ScenarioError> {
    let scenario = Scenario { udp_percent: 0, ..Scenario::named("untagged")? };
    let mut traffic = scenario.with_flows(3).data_only().generate(1)?;
    let mut next: HashMap<Option<u32>, u32> = HashMap::new();
    for _ in 0..1000 {
        let frame = traffic.next_frame();
        let transport = seen(frame.bytes).transport_offset().unwrap_or_default();
        let bytes = &frame.bytes[transport..];
        let sequence = u32::from_be_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
        let payload = (bytes.len() - 20) as u32;
        let expected = next.insert(frame.flow, sequence.wrapping_add(payload));
        assert!(expected.is_none_or(|expected| expected == sequence), "flow {:?}", frame.flow);
    }
    Ok(())
}

/// FNV-1a, 64 bits, of times and bytes.
fn digest(name: &str, arrival: Arrival) -> Result<u64, ScenarioError> {
    let mut traffic = Scenario { arrival, ..lively(name)? }.generate(1)?;
    let mut digest = 0xcbf2_9ce4_8422_2325;
    for _ in 0..10_000 {
        let frame = traffic.next_frame();
        for byte in frame.timestamp_ns.to_be_bytes().iter().chain(frame.bytes) {
            digest = (digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    Ok(digest)
}

/// Benchmarks and expected outputs depend on these bytes. When this test fails, either a platform differs,
/// which is a defect, or generation was changed on purpose: then the digests change with it.
#[test]
fn the_same_seed_gives_the_same_bytes_on_every_machine() -> Result<(), ScenarioError> {
    let poisson = Arrival::Poisson { rate: 100_000 };
    let constant = Arrival::Constant { rate: 1_488_095 };
    let found = [
        digest("untagged", poisson)?,
        digest("pppoe-qinq", poisson)?,
        digest("mixed", constant)?,
        digest("access", poisson)?,
    ];
    let expected =
        [0x28eb_aef0_f334_06cb, 0x00e5_ad84_bab8_bb77, 0x043b_b3b1_cd7f_12fd, 0xd415_ada9_60ba_2603];
    assert_eq!(found, expected, "{found:#018x?}");
    let flows = |seed| -> Result<HashSet<_>, ScenarioError> {
        let traffic = Scenario::named("untagged")?.generate(seed)?;
        Ok((0..traffic.flows()).filter_map(|number| traffic.flow(number)).collect())
    };
    assert!(flows(1)?.is_disjoint(&flows(2)?), "another seed gives other flows");
    Ok(())
}
