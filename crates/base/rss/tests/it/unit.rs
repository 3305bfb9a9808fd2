//! Which hash type fits which packet, and over which bytes.

use proptest::prelude::*;
use rxlane_rss::{
    FlowHash, HashFields, HashKey, HashType, HashTypes, HashUnit, Packet, Path, Toeplitz, UnitError,
};
use wire::flow::FlowKey;

const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;
const SCTP: u8 = 132;

fn unit(types: &[HashType]) -> HashUnit {
    HashUnit::new(&HashKey::MICROSOFT, types.iter().copied().collect()).unwrap()
}

fn v4(protocol: u8) -> Packet {
    Packet::of(FlowKey::with_ports([10, 0, 0, 1].into(), 1000, [10, 0, 0, 2].into(), 80, protocol).unwrap())
}

fn v6(protocol: u8) -> Packet {
    let (source, destination) = ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap());
    Packet::of(FlowKey::with_ports(source, 1000, destination, 80, protocol).unwrap())
}

fn without_ports(packet: Packet) -> Packet {
    let flow = packet.flow;
    Packet {
        flow: FlowKey::without_ports(flow.source(), flow.destination(), flow.protocol()).unwrap(),
        ..packet
    }
}

use HashType::*;

#[test]
fn the_transport_type_wins_over_the_ip_type() {
    let all = unit(&[Ipv4, TcpIpv4, UdpIpv4, SctpIpv4, Ipv6, TcpIpv6, UdpIpv6, SctpIpv6]);
    let both = unit(&[Ipv6, TcpIpv6, Ipv6Ex, TcpIpv6Ex]);
    assert_eq!((both.choose(&v6(TCP)), both.choose(&v6(UDP))), (TcpIpv6Ex, Ipv6Ex), "and Ex over plain");
    let chosen =
        [TCP, UDP, SCTP, ICMP].map(|protocol| (all.choose(&v4(protocol)), all.choose(&v6(protocol))));
    assert_eq!(chosen, [(TcpIpv4, TcpIpv6), (UdpIpv4, UdpIpv6), (SctpIpv4, SctpIpv6), (Ipv4, Ipv6)]);
}

#[test]
fn a_transport_without_its_type_is_plain_ip_or_nothing() {
    assert_eq!(unit(&[Ipv4, TcpIpv4]).choose(&v4(UDP)), Ipv4);
    // Microsoft: a UDP packet while only TCP is to be hashed has no hash.
    assert_eq!(unit(&[TcpIpv4]).hash(&v4(UDP)), (None, 0));
    assert_eq!(unit(&[Ipv4, TcpIpv4, UdpIpv4]).hash(&v6(TCP)), (None, 0));
    assert_eq!(unit(&[]).hash(&v4(TCP)), (None, 0));
}

#[test]
fn fragments_and_packets_without_ports_are_plain_ip() {
    let types = unit(&[Ipv4, TcpIpv4, UdpIpv4, Ipv6, TcpIpv6, UdpIpv6]);
    for (packet, plain) in [(v4(TCP), Ipv4), (v4(UDP), Ipv4), (v6(TCP), Ipv6), (v6(UDP), Ipv6)] {
        let fragment = Packet { fragment: true, ..packet };
        assert_eq!(types.choose(&fragment), plain);
        assert_eq!(types.hash(&fragment), types.hash(&without_ports(fragment)));
        assert_eq!(types.choose(&without_ports(packet)), plain);
    }
    assert_eq!(unit(&[TcpIpv4]).choose(&Packet { fragment: true, ..v4(TCP) }), None);
}

#[test]
fn ex_types_take_the_addresses_of_the_extension_headers() {
    let home: [u8; 16] = std::array::from_fn(|i| 0x20 + i as u8);
    let routed: [u8; 16] = std::array::from_fn(|i| 0x80 + i as u8);
    let plain = v6(TCP);
    let moved = Packet { home_address: Some(home), routing2_destination: Some(routed), ..plain };
    let ex = unit(&[Ipv6Ex, TcpIpv6Ex, UdpIpv6Ex]);
    let ports = &plain.flow.addresses_and_ports()[32..];
    let (source, destination) = plain.flow.addresses().split_at(16);

    assert_eq!(ex.input(&moved, TcpIpv6Ex).bytes(), [&home, &routed, ports].concat());
    let expected = HashKey::MICROSOFT.hash(&[&home, &routed, ports].concat()).unwrap();
    assert_eq!(ex.hash(&moved), (TcpIpv6Ex, expected));

    let only_home = Packet { home_address: Some(home), fragment: true, ..plain };
    let expected = HashKey::MICROSOFT.hash(&[&home, destination].concat()).unwrap();
    assert_eq!(ex.hash(&only_home), (Ipv6Ex, expected));

    let only_routed = Packet { routing2_destination: Some(routed), ..v6(ICMP) };
    let expected = HashKey::MICROSOFT.hash(&[source, &routed].concat()).unwrap();
    assert_eq!(ex.hash(&only_routed), (Ipv6Ex, expected));

    // Without those headers the Ex type hashes what the plain type hashes.
    let without = unit(&[Ipv6, TcpIpv6]);
    assert_eq!((ex.hash(&plain).1, ex.choose(&plain)), (without.hash(&plain).1, TcpIpv6Ex));
    // And a plain type does not look at them.
    assert_eq!(without.hash(&moved), without.hash(&plain));
}

fn set(unit: &mut HashUnit, text: &str) -> Result<(), UnitError> {
    unit.set_flow(text.parse::<FlowHash>().unwrap())
}

#[test]
fn hash_fields_switch_types_as_intel_drivers_do() {
    let mut unit = unit(&[Ipv4, TcpIpv4, Ipv6, TcpIpv6]);
    set(&mut unit, "udp4=sdfn").unwrap();
    set(&mut unit, "udp6=sdfn").unwrap();
    assert_eq!((unit.choose(&v4(UDP)), unit.choose(&v6(UDP))), (UdpIpv4, UdpIpv6));
    set(&mut unit, "udp4=sd").unwrap();
    assert_eq!((unit.choose(&v4(UDP)), unit.choose(&v6(UDP))), (Ipv4, UdpIpv6));
    set(&mut unit, "tcp4=sd").unwrap();
    assert_eq!(unit.types(), HashTypes::from_iter([Ipv4, Ipv6, TcpIpv6, UdpIpv6]));
}

#[test]
fn hash_fields_name_the_ex_types_where_those_are_enabled() {
    let mut unit = unit(&[Ipv6Ex, TcpIpv6Ex]);
    set(&mut unit, "udp6=sdfn").unwrap();
    assert_eq!(unit.choose(&v6(UDP)), UdpIpv6Ex);
    set(&mut unit, "tcp6=sd").unwrap();
    assert_eq!(unit.choose(&v6(TCP)), Ipv6Ex);
}

#[test]
fn narrowed_fields_leave_the_others_out() {
    let mut unit = unit(&[TcpIpv4]);
    set(&mut unit, "tcp4=sd").unwrap();
    let packet = v4(TCP);
    assert_eq!(unit.fields(TcpIpv4), HashFields::ADDRESSES);
    assert_eq!(unit.hash(&packet), (TcpIpv4, HashKey::MICROSOFT.hash(packet.flow.addresses()).unwrap()));
    set(&mut unit, "tcp4=sn").unwrap();
    assert_eq!(unit.input(&packet, TcpIpv4).bytes(), [10, 0, 0, 1, 0, 80]);
    assert_eq!(unit.hash(&packet).1, HashKey::MICROSOFT.hash(&[10, 0, 0, 1, 0, 80]).unwrap());
    set(&mut unit, "tcp4=sdfn").unwrap();
    assert_eq!(unit.fields(TcpIpv4), HashFields::ADDRESSES_AND_PORTS);
    set(&mut unit, "ip4=s").unwrap();
    assert_eq!(unit.input(&v4(ICMP), Ipv4).bytes(), [10, 0, 0, 1]);
}

#[test]
fn settings_that_cannot_be_followed_are_refused() {
    let mut unit = unit(&[TcpIpv4, Ipv6]);
    for text in ["tcp4=vsd", "udp4=r", "ip4=t", "esp4=s"] {
        assert!(matches!(set(&mut unit, text), Err(UnitError::Undefined { .. })), "{text}");
    }
    assert!(matches!(set(&mut unit, "esp4=sd"), Err(UnitError::NeedsType { needs: Ipv4, .. })));
    assert_eq!(set(&mut unit, "ah6=sd"), Ok(()));
    assert_eq!(unit.types(), HashTypes::from_iter([TcpIpv4, Ipv6]));
}

fn any_packet() -> impl Strategy<Value = Packet> {
    let address = any::<[u8; 16]>();
    let protocol = prop_oneof![Just(TCP), Just(UDP), Just(SCTP), any::<u8>()];
    let extension = proptest::option::of(any::<[u8; 16]>());
    (any::<bool>(), address, any::<[u8; 16]>(), proptest::option::of(any::<[u8; 4]>()), protocol)
        .prop_flat_map(move |(six, source, destination, ports, protocol)| {
            let flow = if six {
                let addresses = [source, destination];
                FlowKey::from_ipv6(addresses.as_flattened().try_into().unwrap(), ports, protocol)
            } else {
                FlowKey::from_ipv4(source.first_chunk().unwrap(), ports, protocol)
            };
            (any::<bool>(), extension.clone(), extension.clone()).prop_map(move |(fragment, home, routed)| {
                Packet { flow, fragment, home_address: home, routing2_destination: routed }
            })
        })
}

proptest! {
    /// The short way that most packets take gives the hash of the bytes that `input` names.
    #[test]
    fn the_hash_is_that_of_the_input(
        packet in any_packet(),
        types in proptest::sample::subsequence(HashType::ALL.to_vec(), 0..=11),
    ) {
        let unit = unit(&types);
        let (hash_type, hash) = unit.hash(&packet);
        prop_assert!(hash_type == None || types.contains(&hash_type));
        let input = unit.input(&packet, hash_type);
        prop_assert_eq!(HashKey::MICROSOFT.hash(input.bytes()), Ok(hash));
        prop_assert!(!(packet.fragment && hash_type.has_ports()));
    }
}

#[test]
fn the_unit_takes_the_best_path() {
    assert_eq!(unit(&[]).path(), Path::best());
    assert_eq!(unit(&[]).toeplitz().path(), Toeplitz::new(&HashKey::MICROSOFT).unwrap().path());
}
