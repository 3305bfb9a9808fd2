//! What becomes one packet, rule by rule.

use crate::packets::received::{CHANGES, Received, coalesce, in_order, stream};
use crate::packets::{CWR, Spec, complete_header, frame};
use rxlane_offload::coalesce::{Coalescer, Delivery, Limits};
use wire::emit::{Encapsulation, Tcp};

/// How many packets each delivery of a batch holds.
fn counts(received: &[Received]) -> Vec<usize> {
    counts_within(Limits::default(), received)
}

fn counts_within(limits: Limits, received: &[Received]) -> Vec<usize> {
    coalesce(&mut Coalescer::new(limits), received).iter().map(Vec::len).collect()
}

/// Five packets of 100 bytes of payload.
fn five(spec: &Spec) -> Vec<(Spec, Vec<u8>)> {
    in_order(spec, 5, 100)
}

#[test]
fn streams_of_every_kind_become_one_packet() {
    let options = vec![1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
    let tcp = Spec { tcp_options: options, ..Spec::default() };
    let over_ipv6 = Spec { version_6: true, flow_label: 0x1_2345, ..tcp.clone() };
    let extended = Spec { extensions: (Some(vec![1, 4, 0, 0, 0, 0]), None), ..over_ipv6.clone() };
    let fragmentable = Spec { dont_fragment: false, identification: 65530, ..tcp.clone() };
    let wrapping = Spec { sequence: u32::MAX - 250, ..tcp.clone() };
    for spec in [tcp, over_ipv6, extended, fragmentable, wrapping] {
        for spec in [Spec { udp: true, tcp_options: vec![], ..spec.clone() }, spec] {
            for encapsulation in ["none", "q:35", "ad:100,q:200", "ad:100,q:200,pppoe:77", "q:5,mpls:99"] {
                let stream = stream(encapsulation, &in_order(&spec, 9, 100));
                assert_eq!(counts(&stream), [9], "{encapsulation} {spec:?}");
            }
        }
    }
}

#[test]
fn what_differs_is_no_one_packet() {
    let v4 = Spec { tcp_options: vec![1, 1, 1, 0], ..Spec::default() };
    let v6 = Spec { version_6: true, ..v4.clone() };
    for (name, change, over_ipv4, over_ipv6) in CHANGES {
        for (base, expected) in [(&v4, over_ipv4), (&v6, over_ipv6)] {
            let mut packets = five(base);
            let (spec, payload) = &mut packets[2];
            change(spec, payload);
            assert_eq!(counts(&stream("q:5", &packets)), expected, "{name}, IPv6 {}", base.version_6);
        }
    }
    // Within the first packet already, and in what a table of TCP over IPv4 with the same ends does not have.
    let extended = Spec { extensions: (None, Some(vec![1, 4, 0, 0, 0, 0])), ..v6 };
    type Case<'a> = (&'static str, &'a Spec, fn(&mut Spec));
    let cases: [Case; 5] = [
        ("no options", &v4, |spec| spec.tcp_options.clear()),
        ("ACK", &v4, |spec| spec.flags = 0),
        ("port", &v4, |spec| spec.ports.0 += 1),
        ("address", &v4, |spec| spec.ends.0 += 1),
        ("other extension header", &extended, |spec| spec.extensions.1 = Some(vec![0, 1, 3, 0, 0, 0])),
    ];
    for (name, base, change) in cases {
        let mut packets = in_order(base, 2, 100);
        change(&mut packets[1].0);
        assert_eq!(counts(&stream("q:5", &packets)), [1, 1], "{name}");
    }
}

#[test]
fn identifications_count_or_stand_still() {
    let fragmentable = Spec { dont_fragment: false, ..Spec::default() };
    // Without DF every packet needs its own.
    for (base, identifications, expected) in [
        (Spec::default(), &[7, 7, 7, 7][..], &[4][..]),
        (Spec::default(), &[7, 7, 7, 8], &[3, 1]),
        (Spec::default(), &[1, 2, 2], &[2, 1]),
        (fragmentable, &[1, 1], &[1, 1]),
    ] {
        let mut packets = in_order(&base, identifications.len() as u16, 100);
        packets.iter_mut().zip(identifications).for_each(|((spec, _), number)| spec.identification = *number);
        let received = stream("none", &packets);
        assert_eq!(counts(&received), expected, "{identifications:?}");
        let frames: Vec<_> = received.iter().map(|received| &received.frame).collect();
        let mut coalescer = Coalescer::new(Limits::default());
        let Some(Delivery::Packet(packet)) = coalescer.coalesce(&frames).next() else { panic!("a packet") };
        assert_eq!(packet.has_fixed_identification(), identifications[..2] == [7, 7], "{identifications:?}");
    }
}

#[test]
fn a_shorter_packet_push_and_fin_end_a_packet() {
    type Case = (&'static str, usize, fn(&mut (Spec, Vec<u8>)), &'static [usize]);
    let cases: [Case; 8] = [
        ("shorter", 2, |packet| packet.1.truncate(99), &[3, 2]),
        ("empty", 2, |packet| packet.1.clear(), &[2, 1, 2]),
        ("longer, which begins anew", 2, |packet| packet.1.push(1), &[2, 2, 1]),
        ("PSH", 2, |packet| packet.0.flags |= Tcp::PSH, &[3, 2]),
        ("FIN", 2, |packet| packet.0.flags |= Tcp::FIN, &[3, 2]),
        ("PSH first", 0, |packet| packet.0.flags |= Tcp::PSH, &[1, 4]),
        ("CWR first", 0, |packet| packet.0.flags |= CWR, &[1, 4]),
        ("CWR", 2, |packet| packet.0.flags |= CWR, &[2, 1, 2]),
    ];
    for (name, place, change, expected) in cases {
        let mut packets = five(&Spec::default());
        change(&mut packets[place]);
        // The ones behind a shorter packet follow it in sequence.
        let gap = 100_u32.wrapping_sub(packets[place].1.len() as u32);
        packets[place + 1..].iter_mut().for_each(|(spec, _)| spec.sequence = spec.sequence.wrapping_sub(gap));
        assert_eq!(counts(&stream("pppoe:5", &packets)), expected, "{name}");
    }
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

/// A change of a frame and of the packet in it, which starts at byte 14.
#[test]
fn wrong_checksums_the_reserved_bit_and_datagrams_without_checksum_stand_alone() {
    type Case = (&'static str, bool, fn(&mut [u8]), &'static [usize]);
    let cases: [Case; 5] = [
        ("IPv4 header checksum", false, |packet| packet[10] ^= 0x40, &[2, 1, 2]),
        ("TCP checksum", false, |packet| packet[36] ^= 0x40, &[2, 1, 2]),
        ("payload", false, |packet| packet[45] ^= 0x40, &[2, 1, 2]),
        ("no UDP checksum", true, |packet| packet[26..28].fill(0), &[2, 1, 2]),
        (
            "reserved bit of IPv4",
            false,
            |packet| {
                packet[6] |= 0x80;
                complete_header(packet);
            },
            &[2, 1, 2],
        ),
    ];
    for (name, udp, change, expected) in cases {
        let mut received = stream("none", &five(&Spec { udp, ..Spec::default() }));
        let Received { frame, packet, .. } = &mut received[2];
        change(packet);
        frame[14..].copy_from_slice(packet);
        assert_eq!(counts(&received), expected, "{name}");
    }
    // Priority and addresses of the link.
    for at in [0, 6, 14] {
        let mut received = stream("q:5", &in_order(&Spec::default(), 4, 100));
        received[1].frame[at] ^= 0x40;
        assert_eq!(counts(&received), [1, 1, 2], "byte {at}");
    }
}

#[test]
fn packets_stay_below_64_kib_and_the_limits() {
    let tcp = Spec::default();
    let udp = Spec { udp: true, ..Spec::default() };
    for (spec, count, size, segments, expected) in [
        (&tcp, 100, 1448, 1000, &[45, 45, 10][..]),
        // 40 bytes of headers and five times 13,099: 65,535.
        (&tcp, 5, 13_099, 1000, &[5]),
        (&tcp, 5, 13_100, 1000, &[4, 1]),
        (&tcp, 10, 100, 4, &[4, 4, 2]),
        (&tcp, 3, 100, 0, &[1, 1, 1]),
        (&udp, 130, 100, 1000, &[64, 64, 2]),
    ] {
        let received = stream("q:5,pppoe:9", &in_order(spec, count, size));
        let limits = Limits { segments, udp: true };
        assert_eq!(counts_within(limits, &received), expected, "{count} of {size} bytes, {segments} at most");
    }
    let mut packets = five(&udp);
    packets[1].1.push(9);
    packets[3].1.pop();
    assert_eq!(counts(&stream("none", &packets)), [1, 2, 1, 1], "datagrams of another size");
    let none = Limits { udp: false, ..Limits::default() };
    assert_eq!(counts_within(none, &stream("none", &in_order(&udp, 3, 100))), [1, 1, 1]);
}

#[test]
fn flows_of_one_five_tuple_in_different_sessions_are_apart_and_both_coalesced() {
    let sessions = ["ad:100,q:1,pppoe:7", "ad:100,q:2,pppoe:7", "ad:100,q:1,pppoe:8"];
    let streams = sessions.map(|session| stream(session, &in_order(&Spec::default(), 6, 100)));
    let mixed: Vec<Received> = (0..6)
        .flat_map(|turn| [0, 1, 2].map(|flow| Received { flow, ..streams[flow][turn].clone() }))
        .collect();
    assert_eq!(counts(&mixed), [6, 6, 6]);
}

#[test]
fn a_fragment_closes_what_is_between_its_addresses() {
    let mut mixed = stream("none", &in_order(&Spec::default(), 3, 100));
    let other = Spec { ends: (7, 8), ..Spec::default() };
    let mut apart = stream("none", &in_order(&other, 3, 100));
    apart.iter_mut().for_each(|received| received.flow = 1);
    let mut packet = Spec { udp: true, ..Spec::default() }.packet(&[1; 64]);
    packet[6] = 0x20;
    complete_header(&mut packet);
    let fragment = Received { is_fragment: true, ..Received::new(&Encapsulation::NONE, packet, 2) };
    // Two of each flow, the fragment, the third of each.
    let (third, third_apart) = (mixed.pop().expect("3"), apart.pop().expect("3"));
    mixed.extend(apart);
    mixed.extend([fragment, third, third_apart]);
    // Pairs of addresses share 256 fences by a hash with a seed of its own in each coalescer: in one of 256 the other flow
    // is closed, too. In eight at once it does not happen.
    let outcomes: Vec<_> = (0..8).map(|_| counts(&mixed)).collect();
    assert!(
        outcomes.iter().all(|counts| matches!(counts[..], [2, 3, 1, 1] | [2, 2, 1, 1, 1])),
        "{outcomes:?}"
    );
    assert!(outcomes.iter().any(|counts| counts[..] == [2, 3, 1, 1]), "{outcomes:?}");
}

#[test]
fn frames_without_a_whole_packet_are_handed_on_as_they_are() {
    let control: Encapsulation = "q:5,pppoe:1".parse().expect("an encapsulation");
    let whole = frame(&control, &Spec::default().packet(&[1; 20]));
    let mut lcp = whole.clone();
    lcp[24..26].copy_from_slice(&[0xc0, 0x21]);
    let frames = [&lcp[..], &whole, &whole[..40], &[], &[0xff; 60]];
    let mut coalescer = Coalescer::new(Limits::default());
    let delivered: Vec<_> = coalescer
        .coalesce(&frames)
        .map(|delivery| match delivery {
            Delivery::Frame(number) => (number, None),
            Delivery::Packet(packet) => (packet.frame(), Some(packet.length())),
        })
        .collect();
    assert_eq!(delivered, [(0, None), (1, Some(60)), (2, None), (3, None), (4, None)]);
}
