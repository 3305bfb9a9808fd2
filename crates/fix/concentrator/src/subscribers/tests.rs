//! What a view makes of frames and packets by itself; [`live`] has namespaces and traffic.

mod forwarded;
mod live;

use super::*;
use link::Dropped;
use link::lines::Lines;
use pppoe::concentrator::network::Network;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;
use wire::emit::{Emit, Encapsulation, Ipv4, Ipv6, Udp};
use wire::ethernet::EtherType;
use wire::{IpProtocol, IpVersion};

const LOCAL: MacAddress = MacAddress([2, 0, 0x5e, 0, 0, 1]);
/// Bytes of a header of UDP.
const UDP: usize = 8;
const LIMITS: Limits = Limits { sessions: 64, prefixes: 64 };

pub(super) fn vlans(text: &str) -> Vlans {
    let encapsulation: Encapsulation = text.parse().expect("an encapsulation");
    Vlans::of(encapsulation.tags().iter().copied()).expect("few enough")
}

pub(super) fn session(line: &str, number: u16) -> Session {
    let [high, low] = number.to_be_bytes();
    Session {
        vlans: vlans(line),
        peer: MacAddress([2, 0, 0x5e, 1, high, low]),
        id: number + 1,
        mtu: 1492,
        mss_clamp: false,
        identifier: 0x0200_5eff_fe00_0000 | u64::from(number),
        rates: BitRates::default(),
    }
}

pub(super) fn address(number: u16) -> Ipv4Addr {
    let [high, low] = number.to_be_bytes();
    Ipv4Addr::new(10, 64, high, low)
}

/// A datagram without a checksum, or for IPv6 something of no protocol.
pub(super) fn datagram(source: IpAddr, destination: IpAddr, payload: &[u8]) -> Vec<u8> {
    let length = (UDP + payload.len()) as u16;
    let udp = Udp { source_port: 7001, destination_port: 7000, length, checksum: 0 };
    let mut packet = vec![0; 40 + usize::from(length)];
    let at = match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let ip = Ipv4::new(IpProtocol::UDP, source, destination, 20 + length);
            ip.emit(&mut packet).expect("room")
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let ip = Ipv6 {
                traffic_class: 0,
                flow_label: 0,
                payload_length: length,
                next_header: IpProtocol::NO_NEXT_HEADER,
                hop_limit: 255,
                source,
                destination,
            };
            ip.emit(&mut packet).expect("room")
        }
        _ => panic!("two versions"),
    };
    udp.emit(&mut packet[at..]).expect("room");
    packet[at + UDP..at + usize::from(length)].copy_from_slice(payload);
    packet.truncate(at + usize::from(length));
    packet
}

/// Everything in front of the packet of a frame between two stations.
fn head(session: &Session, to: MacAddress, from: MacAddress, packet: &[u8]) -> Vec<u8> {
    let mut encapsulation = Encapsulation::NONE;
    for tag in session.vlans.tags() {
        encapsulation = encapsulation.with_tag(tag).expect("few enough");
    }
    let pppoe = wire::emit::PppoeSession { session: Some(session.id), peer: None };
    let encapsulation = encapsulation.with_pppoe(pppoe).expect("the last");
    let version = if packet[0] >> 4 == 4 { IpVersion::V4 } else { IpVersion::V6 };
    let mut bytes = [0; 64];
    let length = encapsulation.emit(to, from, version, packet.len(), &mut bytes).expect("room");
    bytes[..length].to_vec()
}

pub(super) fn frame(session: &Session, local: MacAddress, packet: &[u8]) -> Vec<u8> {
    [&head(session, local, session.peer, packet), packet].concat()
}

pub(super) fn frame_to(session: &Session, local: MacAddress, packet: &[u8]) -> Vec<u8> {
    [&head(session, session.peer, local, packet), packet].concat()
}

/// Where the packet of a frame is.
fn packet_of(view: &View, frame: &[u8]) -> Result<Range<usize>, Dropped> {
    view.decapsulate(&mut frame.to_vec()).map(|(range, _)| range)
}

/// Writes everything in front of a packet to a subscriber, and gives its length.
fn head_of(
    view: &View,
    packet: &[u8],
    space: &mut offload::Prefix,
    buffer: &mut [u8],
) -> Result<usize, Dropped> {
    let version = if packet[0] >> 4 == 4 { IpVersion::V4 } else { IpVersion::V6 };
    let (prefix, _) = view.outward(packet, space)?;
    let buffer = &mut buffer[..prefix.length()];
    prefix.write(version, packet.len(), buffer);
    Ok(buffer.len())
}

const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));

/// Sessions 0 to 9 in three VLANs, each with an address; the first has more.
fn registry() -> (Registry, Vec<(Session, Number)>) {
    let mut registry = Registry::new(LIMITS, LOCAL);
    let mut all = Vec::new();
    for number in 0..10_u16 {
        let line = ["none", "q:35", "ad:100,q:200"][usize::from(number) % 3];
        let session = session(line, number);
        let own = registry.insert(&session).expect("room");
        registry.add_address(own, address(number).into()).expect("free");
        all.push((session, own));
    }
    let (_, first) = all[0];
    for prefix in ["198.51.100.0/28", "2001:db8:1::/64", "2001:db8:ff00::/56"] {
        registry.add_prefix(first, prefix.parse().expect("a network")).expect("free");
    }
    (registry, all)
}

#[test]
fn every_session_gets_its_own_frames_both_ways() {
    let (registry, all) = registry();
    let view = registry.view();
    let mut space = offload::Prefix::NONE;
    for (number, (session, own)) in (0..).zip(&all) {
        let packet = datagram(address(number).into(), SERVER, b"up");
        // With padding behind it.
        let frame = [frame(session, LOCAL, &packet), vec![0; 9]].concat();
        let range = packet_of(&view, &frame).expect("a session's");
        assert_eq!(frame[range], packet);
        let back = datagram(SERVER, address(number).into(), b"down");
        let mut buffer = [0; 64];
        let length = head_of(&view, &back, &mut space, &mut buffer).expect("a subscriber's");
        assert_eq!([&buffer[..length], &back].concat(), frame_to(session, LOCAL, &back));
        assert_eq!(registry.usage(*own), Ok(Usage::default()));
    }
    let nobody = datagram(SERVER, "10.65.0.1".parse().expect("an address"), b"down");
    assert_eq!(head_of(&view, &nobody, &mut space, &mut [0; 64]), Err(Dropped::NoSubscriber));
    let routed = datagram(SERVER, "198.51.100.9".parse().expect("an address"), b"down");
    assert!(head_of(&view, &routed, &mut space, &mut [0; 64]).is_ok());
}

/// Attack 4: tag and PPPoE lengths that disagree with the frame.
#[test]
fn lengths_are_believed_only_within_the_frame() {
    let (registry, all) = registry();
    let view = registry.view();
    let (session, own) = all[2];
    let whole = frame(&session, LOCAL, &datagram(address(2).into(), SERVER, &[7; 100]));
    let pppoe = 12 + 8 + 2;
    for cut in 0..whole.len() {
        assert!(packet_of(&view, &whole[..cut]).is_err(), "{cut}");
    }
    let end = whole.len() - pppoe - 6;
    for (length, expected) in [
        (0, Err(Dropped::Short)),
        (1, Err(Dropped::Short)),
        (2, Err(Dropped::Short)),
        (21, Err(Dropped::Short)),
        (22, Err(Dropped::IpLength)),
        (end - 1, Err(Dropped::IpLength)),
        (end, Ok(pppoe + 8..whole.len())),
        (end + 1, Err(Dropped::PppoeLength)),
        (0xffff, Err(Dropped::PppoeLength)),
    ] {
        let mut frame = whole.clone();
        frame[pppoe + 4..pppoe + 6].copy_from_slice(&(length as u16).to_be_bytes());
        assert_eq!(packet_of(&view, &frame), expected, "{length}");
    }
    let usage = registry.usage(own).expect("there");
    assert_eq!(usage.received_dropped as usize, 8 + (whole.len() - pppoe - 6));
}

/// Attack 5: a compressed protocol field.
#[test]
fn what_is_no_ip_in_two_bytes_of_protocol_is_refused() {
    let (registry, all) = registry();
    let view = registry.view();
    let whole = frame(&all[0].0, LOCAL, &datagram(address(0).into(), SERVER, b"x"));
    for (protocol, why) in [
        (0x2145, Dropped::PppCompressed),
        (0xc021, Dropped::PppControl),
        (0x0281, Dropped::PppProtocol),
        (0x0057, Dropped::IpVersion),
    ] {
        let mut frame = whole.clone();
        frame[20..22].copy_from_slice(&u16::to_be_bytes(protocol));
        assert_eq!(packet_of(&view, &frame), Err(why));
    }
    for (place, byte, why) in [(14, 0x21, Dropped::PppoeVersion), (15, 9, Dropped::PppoeCode)] {
        let mut frame = whole.clone();
        frame[place] = byte;
        assert_eq!(packet_of(&view, &frame), Err(why));
    }
}

/// Attack 16: data for a session from another MAC address or VLAN.
#[test]
fn data_from_another_station_or_vlan_is_no_sessions() {
    let (registry, all) = registry();
    let view = registry.view();
    for (number, (session, own)) in (0..).zip(&all) {
        let packet = datagram(address(number).into(), SERVER, b"x");
        let mut others = vec![
            Session { peer: MacAddress([2, 9, 9, 9, 9, 9]), ..*session },
            Session { peer: all[usize::from(number + 1) % 10].0.peer, ..*session },
        ];
        for line in ["none", "q:35", "q:36", "ad:35", "ad:100,q:200", "q:100,q:200", "ad:100,q:200,q:1"] {
            if vlans(line) != session.vlans {
                others.push(Session { vlans: vlans(line), ..*session });
            }
        }
        for other in others {
            let taken = packet_of(&view, &frame(&other, LOCAL, &packet));
            assert_eq!(taken, Err(Dropped::OtherPeer), "{other:?}");
        }
        let unknown = Session { id: 500, ..*session };
        assert_eq!(packet_of(&view, &frame(&unknown, LOCAL, &packet)), Err(Dropped::OtherSession));
        let elsewhere = frame(session, MacAddress([2, 0, 0x5e, 0, 0, 9]), &packet);
        assert_eq!(packet_of(&view, &elsewhere), Err(Dropped::OtherStation));
        assert_eq!(registry.usage(*own).expect("there").received_dropped, 0);
    }
    let strays: Vec<Stray> = registry.strays().collect();
    assert_eq!(strays.len(), 64);
    let first = Stray { source: MacAddress([2, 9, 9, 9, 9, 9]), vlans: Vlans::NONE, session: 1 };
    assert_eq!(strays[0], first);
    assert_eq!(registry.strays().count(), 0);
}

/// Attack 17: data of a session from another inner source address.
#[test]
fn a_source_address_that_is_not_the_sessions_is_refused() {
    let (registry, all) = registry();
    let view = registry.view();
    let (session, own) = all[0];
    let server6 = IpAddr::V6(Ipv6Addr::LOCALHOST);
    let link_local = format!(
        "fe80::{}",
        Ipv6Addr::from(u128::from(session.identifier)).to_string().trim_start_matches(':')
    );
    for (source, destination, is_own) in [
        ("10.64.0.0", "10.0.0.1", true),
        ("198.51.100.15", "10.0.0.1", true),
        ("198.51.100.16", "10.0.0.1", false),
        ("10.64.0.1", "10.0.0.1", false),
        ("0.0.0.0", "10.0.0.1", false),
        ("10.0.0.1", "10.64.0.1", false),
        ("2001:db8:1::5", "::1", true),
        ("2001:db8:ff00:ff::1", "::1", true),
        ("2001:db8:ff00:100::1", "::1", false),
        (&link_local, "ff02::2", true),
        ("fe80::1", "ff02::2", false),
        ("fe80:0:0:1:200:5eff:fe00:0", "ff02::2", false),
        ("::", "ff02::2", false),
        ("::1", "::1", false),
    ] {
        let [source, destination] =
            [source, destination].map(|text| text.parse::<IpAddr>().unwrap_or_else(|_| panic!("{text}")));
        let seen = packet_of(&view, &frame(&session, LOCAL, &datagram(source, destination, b"x")));
        let expected = if is_own { Ok(()) } else { Err(Dropped::OtherSource) };
        assert_eq!(seen.map(drop), expected, "{source} {destination}");
    }
    // Duplicate address detection has no source.
    let mut asks = datagram(Ipv6Addr::UNSPECIFIED.into(), "ff02::1:ff00:1".parse().expect("one"), b"");
    asks[6] = IpProtocol::ICMPV6.0;
    assert!(packet_of(&view, &frame(&session, LOCAL, &asks)).is_ok());
    asks[24] = 0x20;
    assert_eq!(packet_of(&view, &frame(&session, LOCAL, &asks)), Err(Dropped::OtherSource));
    // Without an identifier no link-local address, not even that of zero.
    let (mut registry, _) = self::registry();
    let quiet = Session { identifier: 0, ..session };
    let zero = datagram("fe80::".parse().expect("one"), server6, b"x");
    registry.change(own, &quiet).expect("there");
    assert_eq!(packet_of(&registry.view(), &frame(&session, LOCAL, &zero)), Err(Dropped::OtherSource));
}

#[test]
fn what_is_removed_is_not_found_and_what_takes_its_place_is_another() {
    let (mut registry, all) = registry();
    let view = registry.view();
    let (session, own) = all[1];
    let packet = datagram(address(1).into(), SERVER, b"x");
    let down = datagram(SERVER, address(1).into(), b"x");
    let mut space = offload::Prefix::NONE;
    assert_eq!(registry.insert(&session), Err(Refusal::Session(session.id, session.peer)));
    registry.remove(own).expect("there");
    assert_eq!(registry.remove(own), Err(Refusal::Removed));
    assert_eq!(registry.heard(own), Err(Refusal::Removed));
    assert_eq!(packet_of(&view, &frame(&session, LOCAL, &packet)), Err(Dropped::OtherSession));
    assert_eq!(head_of(&view, &down, &mut space, &mut [0; 64]), Err(Dropped::NoSubscriber));
    // All places, and no more.
    let mut more: Vec<Number> = Vec::new();
    for number in 100.. {
        match registry.insert(&self::session("q:7", number)) {
            Ok(own) => more.push(own),
            Err(refusal) => {
                assert_eq!(refusal, Refusal::Sessions(LIMITS.sessions));
                break;
            }
        }
    }
    assert_eq!((registry.count, more.len()), (64, 55));
    assert!(!more.contains(&own));
    assert_eq!(registry.usage(own), Err(Refusal::Removed));
    // Its address is free for another.
    registry.add_address(more[54], address(1).into()).expect("free");
    let mut buffer = [0; 64];
    let length = head_of(&view, &down, &mut space, &mut buffer).expect("a subscriber's");
    assert_eq!([&buffer[..length], &down].concat(), frame_to(&self::session("q:7", 154), LOCAL, &down));
    let prefix = Network::host(address(1).into());
    assert_eq!(registry.add_prefix(all[2].1, prefix), Err(Refusal::Taken(prefix)));
    assert_eq!(registry.remove_prefix(all[2].1, prefix), Err(Refusal::NotHeld(prefix)));
    registry.remove_prefix(more[54], prefix).expect("held");
    assert_eq!(head_of(&view, &down, &mut space, &mut buffer), Err(Dropped::NoSubscriber));
    for number in 0.. {
        let prefix = Network::host(Ipv4Addr::from(0x0a80_0000 | number).into());
        if let Err(refusal) = registry.add_prefix(all[2].1, prefix) {
            assert_eq!(refusal, Refusal::Prefixes(LIMITS.prefixes));
            break;
        }
        assert!(number < 100);
    }
}

#[test]
fn any_bytes_are_refused_without_a_panic() {
    let (registry, all) = registry();
    let view = registry.view();
    let mut random = 0x5eed_u64;
    for round in 0..200_000_u64 {
        let (session, _) = all[(round % 10) as usize];
        let mut frame = frame(&session, LOCAL, &datagram(address((round % 10) as u16).into(), SERVER, b"x"));
        for _ in 0..3 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let place = 12 + (random >> 8) as usize % (frame.len() - 12);
            frame[place] = random as u8;
        }
        frame.truncate(frame.len() - (random >> 60) as usize);
        if let Ok(range) = packet_of(&view, &frame) {
            assert!(range.end <= frame.len() && range.len() >= 20);
        }
    }
    assert_eq!(EtherType::PPPOE_SESSION.0, 0x8864);
}

#[test]
fn what_exceeds_a_rate_is_dropped_and_counted_and_other_sessions_do_not_notice() {
    let (mut registry, all) = registry();
    let view = registry.view();
    let packet = |number: u16| datagram(address(number).into(), SERVER, &[7; 972]);
    let (session, own) = all[1];
    // 1000 bytes a second, and 15,000 at once.
    let slow = Session { rates: BitRates { download: Some(8_000), upload: Some(8_000) }, ..session };
    registry.change(own, &slow).expect("there");
    let taken = |registry: &Registry, number: u16| {
        let (session, own) = all[usize::from(number)];
        let passed = (0..100).filter(|_| {
            let taken = packet_of(&view, &frame(&session, LOCAL, &packet(number)));
            assert!(matches!(taken, Ok(_) | Err(Dropped::OverRate)), "{taken:?}");
            taken.is_ok()
        });
        (passed.count(), registry.usage(own).expect("there").received_dropped)
    };
    let (passed, dropped) = taken(&registry, 1);
    // More than a burst where the machine takes its time.
    assert!((16..70).contains(&passed), "{passed}");
    assert_eq!(dropped as usize, 100 - passed);
    assert_eq!(taken(&registry, 2), (100, 0));
    // The other way has a bucket of its own.
    let mut space = offload::Prefix::NONE;
    let down = datagram(SERVER, address(1).into(), b"x");
    let (_, owner) = view.outward(&down, &mut space).expect("a session");
    let passed = (0..100).filter(|_| view.admits(owner, 1000)).count();
    assert!((16..70).contains(&passed), "{passed}");
    // Without a rate again, and the next session at its place has none.
    registry.change(own, &session).expect("there");
    assert_eq!(taken(&registry, 1), (100, dropped));
    registry.change(own, &slow).expect("there");
    assert!(taken(&registry, 1).0 < 100);
    registry.remove(own).expect("there");
    let mut other = Registry::new(Limits { sessions: 1, prefixes: 8 }, LOCAL);
    for (session, expected) in [(&slow, 16..70), (&session, 100..101)] {
        let own = other.insert(session).expect("room");
        other.add_address(own, address(1).into()).expect("free");
        let view = other.view();
        let passed = (0..100).filter(|_| packet_of(&view, &frame(session, LOCAL, &packet(1))).is_ok());
        assert!(expected.contains(&passed.count()));
        other.remove(own).expect("there");
    }
    // One that has rates from the start, with memory for them.
    let before = registry.memory();
    registry.insert(&slow).expect("room");
    assert_eq!(registry.memory(), before);
}
