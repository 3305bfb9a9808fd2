//! What becomes one packet, rule by rule.

use crate::packets::received::{Received, coalesce, in_order, stream};
use crate::packets::{CWR, ECE, Spec, URG, frame};
use rxlane_offload::coalesce::{Coalescer, Delivery, Limits};
use wire::emit::{Encapsulation, Tcp};
use wire::{Link, dissect};

/// What becomes of the second of two packets, by its name.
type Change = (&'static str, fn(&mut Spec));

/// How many packets each delivery of a batch holds.
fn counts(received: &[Received]) -> Vec<usize> {
    let mut coalescer = Coalescer::new(Limits::default());
    coalesce(&mut coalescer, received).iter().map(Vec::len).collect()
}

#[test]
fn streams_of_every_kind_become_one_packet() {
    let options = vec![1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
    let tcp = Spec { tcp_options: options, ..Spec::default() };
    let over_ipv6 = Spec { version_6: true, flow_label: 0x1_2345, ..tcp.clone() };
    let extended = Spec { extensions: (Some(vec![1, 4, 0, 0, 0, 0]), None), ..over_ipv6.clone() };
    let fragmentable = Spec { dont_fragment: false, identification: 65530, ..tcp.clone() };
    let wrapping = Spec { sequence: u32::MAX - 250, ..tcp.clone() };
    for spec in [&tcp, &over_ipv6, &extended, &fragmentable, &wrapping] {
        for udp in [false, true] {
            let spec = Spec {
                udp,
                tcp_options: if udp { vec![] } else { spec.tcp_options.clone() },
                ..spec.clone()
            };
            for encapsulation in ["none", "q:35", "ad:100,q:200", "ad:100,q:200,pppoe:77", "q:5,mpls:99"] {
                let stream = stream(encapsulation, &in_order(&spec, 9, 100));
                assert_eq!(counts(&stream), [9], "{encapsulation} {spec:?}");
            }
        }
    }
}

#[test]
fn what_differs_is_no_one_packet() {
    let base = Spec { tcp_options: vec![1, 1, 1, 0], ..Spec::default() };
    let change = |change: fn(&mut Spec)| {
        let mut packets = in_order(&base, 2, 100);
        change(&mut packets[1].0);
        counts(&stream("q:5", &packets))
    };
    assert_eq!(change(|_| {}), [2]);
    let changes: [Change; 20] = [
        ("acknowledgment", |spec| spec.acknowledgment += 1),
        ("window", |spec| spec.window += 1),
        ("urgent pointer", |spec| spec.urgent += 1),
        ("option", |spec| spec.tcp_options = vec![1, 1, 0, 0]),
        ("option length", |spec| spec.tcp_options.clear()),
        ("ECE", |spec| spec.flags |= ECE),
        ("CWR", |spec| spec.flags |= CWR),
        ("URG", |spec| spec.flags |= URG),
        ("SYN", |spec| spec.flags |= Tcp::SYN),
        ("RST", |spec| spec.flags |= Tcp::RST),
        ("ACK", |spec| spec.flags = 0),
        ("gap", |spec| spec.sequence += 1),
        ("again", |spec| spec.sequence -= 100),
        ("TTL", |spec| spec.ttl -= 1),
        ("traffic class", |spec| spec.traffic_class = 4),
        ("DF", |spec| spec.dont_fragment = false),
        ("identification", |spec| spec.identification += 1),
        ("IP options", |spec| spec.ip_options = vec![1, 1, 1, 0]),
        ("port", |spec| spec.ports.0 += 1),
        ("address", |spec| spec.ends.0 += 1),
    ];
    for (name, changed) in changes {
        assert_eq!(change(changed), [1, 1], "{name}");
    }
    let base = Spec { version_6: true, extensions: (None, Some(vec![1, 4, 0, 0, 0, 0])), ..Spec::default() };
    let changes: [Change; 4] = [
        ("flow label", |spec| spec.flow_label = 1),
        ("hop limit", |spec| spec.ttl -= 1),
        ("traffic class", |spec| spec.traffic_class = 1),
        ("extension header", |spec| spec.extensions.1 = Some(vec![0, 1, 3, 0, 0, 0])),
    ];
    for (name, changed) in changes {
        let mut packets = in_order(&base, 2, 100);
        changed(&mut packets[1].0);
        assert_eq!(counts(&stream("none", &packets)), [1, 1], "{name}");
    }
}

#[test]
fn an_identification_that_stands_still_is_told() {
    let mut packets = in_order(&Spec::default(), 4, 100);
    packets.iter_mut().for_each(|(spec, _)| spec.identification = 7);
    let received = stream("none", &packets);
    let frames: Vec<_> = received.iter().map(|received| &received.frame).collect();
    let mut coalescer = Coalescer::new(Limits::default());
    let mut batch = coalescer.coalesce(&frames);
    let Some(Delivery::Packet(packet)) = batch.next() else { panic!("a packet") };
    assert!(packet.has_fixed_identification() && packet.segments() == 4);
    assert_eq!(counts(&received), [4]);
    // One that stands still and then counts, or that counts and then stands still.
    packets[3].0.identification = 8;
    assert_eq!(counts(&stream("none", &packets)), [3, 1]);
    let mut packets = in_order(&Spec::default(), 3, 100);
    packets[2].0.identification = packets[1].0.identification;
    assert_eq!(counts(&stream("none", &packets)), [2, 1]);
    // Without DF every packet needs its own.
    let mut packets = in_order(&Spec { dont_fragment: false, ..Spec::default() }, 2, 100);
    packets[1].0.identification = packets[0].0.identification;
    assert_eq!(counts(&stream("none", &packets)), [1, 1]);
}

#[test]
fn a_shorter_packet_push_and_fin_end_a_packet() {
    let with = |place: usize, change: fn(&mut (Spec, Vec<u8>))| {
        let mut packets = in_order(&Spec::default(), 5, 100);
        change(&mut packets[place]);
        // The ones behind a shorter packet follow it in sequence.
        let gap = 100_u32.wrapping_sub(packets[place].1.len() as u32);
        packets[place + 1..].iter_mut().for_each(|(spec, _)| spec.sequence = spec.sequence.wrapping_sub(gap));
        counts(&stream("pppoe:5", &packets))
    };
    assert_eq!(with(2, |packet| packet.1.truncate(99)), [3, 2]);
    assert_eq!(with(2, |packet| packet.1.clear()), [2, 1, 2]);
    assert_eq!(with(2, |packet| packet.1.push(1)), [2, 2, 1], "a longer one begins anew");
    assert_eq!(with(2, |packet| packet.0.flags |= Tcp::PSH), [3, 2]);
    assert_eq!(with(2, |packet| packet.0.flags |= Tcp::FIN), [3, 2]);
    assert_eq!(with(0, |packet| packet.0.flags |= Tcp::PSH), [1, 4]);
    assert_eq!(with(0, |packet| packet.0.flags |= CWR), [1, 4]);
    assert_eq!(with(2, |packet| packet.0.flags |= CWR), [2, 1, 2]);
}

#[test]
fn checksums_that_segmentation_would_write_otherwise_stand_alone() {
    // A sum of zero may be written as 0x0000 or as 0xffff, and only one of them comes out again.
    let second = |spec: &Spec, at: usize| {
        let packet = &stream("none", &in_order(spec, 3, 100))[1].packet;
        u16::from_be_bytes([packet[at], packet[at + 1]])
    };
    let add = |value: u16, checksum: u16| {
        let (sum, carry) = value.overflowing_add(checksum);
        sum + u16::from(carry)
    };
    let mut tcp = Spec::default();
    tcp.ports.0 = add(tcp.ports.0, second(&tcp, 36));
    let mut header = Spec::default();
    header.identification = add(header.identification, second(&header, 10));
    for (spec, at) in [(tcp, 36), (header, 10)] {
        let mut received = stream("none", &in_order(&spec, 3, 100));
        assert_eq!(received[1].packet[at..at + 2], [0, 0]);
        assert_eq!(counts(&received), [3]);
        received[1].packet[at..at + 2].fill(0xff);
        received[1].frame[14 + at..16 + at].fill(0xff);
        assert_eq!(counts(&received), [1, 1, 1], "byte {at}");
    }
}

#[test]
fn the_reserved_bit_of_ipv4_is_not_coalesced() {
    let mut received = stream("none", &in_order(&Spec::default(), 3, 100));
    for Received { frame, packet, .. } in &mut received {
        packet[6] |= 0x80;
        packet[10..12].fill(0);
        let checksum = wire::emit::checksum::internet(&packet[..20]);
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        frame[14..].copy_from_slice(packet);
    }
    assert_eq!(counts(&received), [1, 1, 1]);
}

#[test]
fn wrong_checksums_stand_alone() {
    let packets = in_order(&Spec::default(), 5, 100);
    for (at, name) in [(14 + 10, "IPv4 header"), (14 + 36, "TCP"), (14 + 45, "payload")] {
        let mut received = stream("none", &packets);
        received[2].frame[at] ^= 0x40;
        received[2].packet[at - 14] ^= 0x40;
        assert_eq!(counts(&received), [2, 1, 2], "{name}");
    }
}

#[test]
fn a_udp_datagram_without_checksum_and_one_of_another_size_stand_apart() {
    let spec = Spec { udp: true, ..Spec::default() };
    let mut received = stream("none", &in_order(&spec, 5, 100));
    received[1].frame[40..42].fill(0);
    received[1].packet[26..28].fill(0);
    assert_eq!(counts(&received), [1, 1, 3]);
    let mut packets = in_order(&spec, 5, 100);
    packets[1].1.push(9);
    packets[3].1.pop();
    assert_eq!(counts(&stream("none", &packets)), [1, 2, 1, 1]);
    let none = Limits { udp: false, ..Limits::default() };
    assert_eq!(coalesce(&mut Coalescer::new(none), &stream("none", &in_order(&spec, 3, 100))).len(), 3);
}

#[test]
fn a_packet_stays_below_64_kib_and_the_limits() {
    let large = |count: u16, size: usize, segments: u32| -> Vec<usize> {
        let received = stream("q:5,pppoe:9", &in_order(&Spec::default(), count, size));
        let mut coalescer = Coalescer::new(Limits { segments, udp: true });
        coalesce(&mut coalescer, &received).iter().map(Vec::len).collect()
    };
    assert_eq!(large(100, 1448, 1000), [45, 45, 10]);
    // 40 bytes of headers and five times 13,099: 65,535.
    assert_eq!(large(5, 13_099, 1000), [5]);
    assert_eq!(large(5, 13_100, 1000), [4, 1]);
    assert_eq!(large(10, 100, 4), [4, 4, 2]);
    assert_eq!(large(3, 100, 0), [1, 1, 1]);
    let datagrams = in_order(&Spec { udp: true, ..Spec::default() }, 130, 100);
    let received = stream("none", &datagrams);
    let mut coalescer = Coalescer::new(Limits { segments: 1000, udp: true });
    let delivered = coalesce(&mut coalescer, &received);
    assert_eq!(delivered.iter().map(Vec::len).collect::<Vec<_>>(), [64, 64, 2]);
}

#[test]
fn flows_of_one_five_tuple_in_different_sessions_are_apart_and_both_coalesced() {
    let one = stream("ad:100,q:1,pppoe:7", &in_order(&Spec::default(), 6, 100));
    let two = stream("ad:100,q:2,pppoe:7", &in_order(&Spec::default(), 6, 100));
    let three = stream("ad:100,q:1,pppoe:8", &in_order(&Spec::default(), 6, 100));
    let mut mixed = Vec::new();
    for ((one, two), three) in one.into_iter().zip(two).zip(three) {
        mixed.extend([one, Received { flow: 1, ..two }, Received { flow: 2, ..three }]);
    }
    assert_eq!(counts(&mixed), [6, 6, 6]);
}

#[test]
fn priority_and_addresses_keep_packets_apart_but_in_order() {
    for at in [0, 6, 14] {
        let mut received = stream("q:5", &in_order(&Spec::default(), 4, 100));
        received[1].frame[at] ^= 0x40;
        assert_eq!(counts(&received), [1, 1, 2], "byte {at}");
    }
}

#[test]
fn a_fragment_closes_what_is_between_its_addresses() {
    let mut mixed = stream("none", &in_order(&Spec::default(), 3, 100));
    let other = Spec { ends: (7, 8), ..Spec::default() };
    let mut apart = stream("none", &in_order(&other, 3, 100));
    apart.iter_mut().for_each(|received| received.flow = 1);
    let mut fragment = stream("none", &[(Spec { udp: true, ..Spec::default() }, vec![1; 64])]).remove(0);
    fragment.packet[6] = 0x20;
    fragment.packet[10..12].fill(0);
    let checksum = wire::emit::checksum::internet(&fragment.packet[..20]);
    fragment.packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    fragment.frame = frame(&Encapsulation::NONE, &fragment.packet);
    fragment.is_fragment = true;
    fragment.flow = 2;
    // Two of each flow, the fragment, the third of each.
    let (third, third_apart) = (mixed.pop().expect("3"), apart.pop().expect("3"));
    mixed.extend(apart);
    mixed.extend([fragment, third, third_apart]);
    assert_eq!(counts(&mixed), [2, 3, 1, 1]);
}

#[test]
fn frames_without_a_whole_packet_are_handed_on_as_they_are() {
    let control: Encapsulation = "q:5,pppoe:1".parse().expect("an encapsulation");
    let mut lcp = frame(&control, &Spec::default().packet(&[1; 20]));
    lcp[24..26].copy_from_slice(&[0xc0, 0x21]);
    let whole = frame(&control, &Spec::default().packet(&[1; 20]));
    let frames = [&lcp[..], &whole, &whole[..40], &[], &[0xff; 60]];
    let mut coalescer = Coalescer::new(Limits::default());
    let told: Vec<_> = coalescer
        .coalesce(&frames)
        .map(|delivery| match delivery {
            Delivery::Frame(number) => (number, None),
            Delivery::Packet(packet) => (packet.frame(), Some(packet.length())),
        })
        .collect();
    assert_eq!(told, [(0, None), (1, Some(60)), (2, None), (3, None), (4, None)]);
    let seen = dissect(Link::Ethernet, &lcp, lcp.len());
    assert!(seen.flow().is_none());
}
