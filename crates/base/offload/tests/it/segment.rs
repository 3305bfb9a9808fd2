//! Segments against packets written field by field, and what hostile virtio headers are answered.

use crate::packets::{CWR, MACS, Spec, any_encapsulation, any_spec, frame, segments};
use proptest::prelude::*;
use rxlane_offload::checksum::{PartialError, Verdict, verify};
use rxlane_offload::segment::{RoomError, SegmentError};
use rxlane_offload::{NetHeader, Prefix, Segments};
use wire::emit::{Encapsulation, Tcp};
use wire::error::{Layer, Rule};

/// The segments as the module's table says, each written from its own fields.
fn expected(
    spec: &Spec,
    encapsulation: &Encapsulation,
    payload: &[u8],
    size: usize,
    fixed: bool,
) -> Vec<Vec<u8>> {
    let chunks: Vec<&[u8]> = if payload.is_empty() { vec![&[]] } else { payload.chunks(size).collect() };
    let last = chunks.len() - 1;
    let each = chunks.iter().enumerate().map(|(place, chunk)| {
        let mut spec = spec.clone();
        if !(fixed && spec.dont_fragment) {
            spec.identification = spec.identification.wrapping_add(place as u16);
        }
        spec.sequence = spec.sequence.wrapping_add((place * size) as u32);
        if place != 0 {
            spec.flags &= !CWR;
        }
        if place != last {
            spec.flags &= !(Tcp::FIN | Tcp::PSH);
        }
        frame(encapsulation, &spec.packet(chunk))
    });
    each.collect()
}

fn prefix(encapsulation: &Encapsulation) -> Prefix {
    Prefix::new(encapsulation, MACS[0], MACS[1]).expect("room")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn segments_are_what_their_fields_say(
        spec in any_spec(),
        encapsulation in any_encapsulation(),
        payload in proptest::collection::vec(any::<u8>(), 0..6000),
        size in 1..3000_u16,
        fixed in any::<bool>(),
    ) {
        let size = size.max((payload.len() / 40) as u16);
        let (header, packet) = spec.super_packet(&payload, size);
        let frames = segments(&prefix(&encapsulation), &header, &packet, fixed);
        prop_assert_eq!(&frames, &expected(&spec, &encapsulation, &payload, size.into(), fixed));
        for frame in &frames {
            prop_assert_eq!(verify(frame).transport, Verdict::Right);
        }
    }

    #[test]
    fn a_packet_of_its_own_passes_with_its_checksum_completed(
        spec in any_spec(),
        encapsulation in any_encapsulation(),
        payload in proptest::collection::vec(any::<u8>(), 0..1500),
        partial in any::<bool>(),
    ) {
        let (mut header, packet) = spec.super_packet(&payload, 0);
        let whole = spec.packet(&payload);
        header.gso_type = NetHeader::NONE;
        let frames = if partial {
            segments(&prefix(&encapsulation), &header, &packet, false)
        } else {
            segments(&prefix(&encapsulation), &NetHeader::default(), &whole, false)
        };
        prop_assert_eq!(frames, vec![frame(&encapsulation, &whole)]);
    }

    #[test]
    fn any_virtio_header_is_answered(
        spec in any_spec(),
        length in 0..200_usize,
        size in any::<u16>(),
        flags in 0..4_u8,
        fields in any::<[u8; 10]>(),
        which in any::<u8>(),
        cut in any::<proptest::sample::Index>(),
    ) {
        let (honest, packet) = spec.super_packet(&vec![7; length], size);
        let hostile = NetHeader::parse(&fields);
        let pick = |bit: u8, honest: u16, hostile: u16| if which & 1 << bit != 0 { hostile } else { honest };
        let header = NetHeader {
            flags,
            gso_type: pick(0, honest.gso_type.into(), hostile.gso_type.into()) as u8,
            header_length: pick(1, honest.header_length, hostile.header_length),
            gso_size: pick(2, honest.gso_size, hostile.gso_size % 100),
            checksum_start: pick(3, honest.checksum_start, hostile.checksum_start % 100),
            checksum_offset: pick(4, honest.checksum_offset, hostile.checksum_offset % 100),
        };
        let kept = if which & 0x20 != 0 { cut.index(packet.len() + 1) } else { packet.len() };
        let mut packet = packet[..kept].to_vec();
        let before = packet.clone();
        match Segments::new(&Prefix::NONE, &header, &mut packet) {
            Ok(mut segments) => {
                let mut buffer = [0; 400];
                let mut payload = 0;
                while let Some(segment) = segments.emit(&mut buffer).expect("room") {
                    payload += segment.payload.len();
                }
                prop_assert!(payload + segments.header_length() == kept);
            }
            Err(error) => {
                prop_assert!(!error.to_string().is_empty());
                prop_assert_eq!(packet, before);
            }
        }
    }
}

/// What is said of a super-packet of 3 segments whose header or bytes were changed.
fn refused(spec: &Spec, change: impl FnOnce(&mut NetHeader, &mut Vec<u8>)) -> SegmentError {
    let (mut header, mut packet) = spec.super_packet(&[5; 3000], 1000);
    change(&mut header, &mut packet);
    let before = packet.clone();
    let error = Segments::new(&Prefix::NONE, &header, &mut packet).expect_err("a defect");
    assert_eq!(packet, before);
    error
}

#[test]
fn lies_of_the_virtio_header_are_named() {
    type Lie = fn(&mut NetHeader, u16);
    let tcp = Spec::default();
    let udp = Spec { udp: true, ..Spec::default() };
    let header_length = |found| SegmentError::HeaderLength { found, packet: 3040 };
    let start = |found| SegmentError::ChecksumStart { found, transport: 20 };
    let offset = |found| SegmentError::ChecksumOffset { found, expected: 16 };
    let gso_type = |found: u16| SegmentError::GsoType { found: found as u8 };
    let other =
        |gso_type: u16| SegmentError::OtherProtocol { gso_type: gso_type as u8, version: 4, protocol: 6 };
    let set_type: Lie = |header, found| header.gso_type = found as u8;
    let [ecn, fragments, udp_type, tcp6] =
        [NetHeader::ECN, NetHeader::UDP_FRAGMENTS, NetHeader::UDP, NetHeader::TCP_IPV6].map(u16::from);
    type Case<'a> = (&'a Spec, Lie, &'a [u16], &'a dyn Fn(u16) -> SegmentError);
    let cases: [Case; 8] = [
        (&tcp, |header, size| header.gso_size = size, &[0], &|_| SegmentError::NoSize),
        (&tcp, |header, flags| header.flags = flags as u8, &[0], &|_| SegmentError::NoChecksum),
        (&tcp, |header, found| header.header_length = found, &[3041, 65535], &header_length),
        (&tcp, |header, found| header.checksum_start = found, &[0, 19, 21, 40, 3039, 65535], &start),
        (&tcp, |header, found| header.checksum_offset = found, &[0, 6, 15, 65535], &offset),
        (&tcp, set_type, &[fragments, 2, 6, 0x21, 0x41, ecn, 0x7f], &gso_type),
        (&udp, set_type, &[udp_type | ecn], &gso_type),
        (&tcp, set_type, &[tcp6, udp_type], &other),
    ];
    for (spec, lie, values, expected) in cases {
        for value in values {
            assert_eq!(refused(spec, |header, _| lie(header, *value)), expected(*value));
        }
    }
    // A smaller hint about headers changes nothing.
    let (mut header, packet) = tcp.super_packet(&[5; 3000], 1000);
    let honest = segments(&Prefix::NONE, &header, &packet, false);
    for hint in [0, 1, 40, 54, 3040] {
        header.header_length = hint;
        assert_eq!(segments(&Prefix::NONE, &header, &packet, false), honest);
    }
}

#[test]
fn defects_of_the_packet_are_named() {
    let tcp = Spec::default();
    let over_ipv6 = Spec { version_6: true, ..Spec::default() };
    let udp = Spec { udp: true, ..Spec::default() };
    let layer = |at: usize, value: u8| match refused(&tcp, |_, packet| packet[at] = value) {
        SegmentError::Header(error) => (error.layer, error.rule),
        other => panic!("{other}"),
    };
    assert_eq!(layer(0, 0x54), (Layer::Ip, Rule::Undefined));
    assert_eq!(layer(0, 0x44), (Layer::Ipv4, Rule::Below));
    assert_eq!(layer(32, 0x40), (Layer::Tcp, Rule::Below));
    assert_eq!(layer(2, 0xff), (Layer::Ipv4, Rule::Exceeds));
    for fragment in [0x20, 0x01, 0x3f] {
        assert_eq!(refused(&tcp, |_, packet| packet[6] = fragment), SegmentError::Fragment);
    }
    let other = SegmentError::OtherProtocol { gso_type: NetHeader::TCP_IPV6, version: 6, protocol: 51 };
    // A packet of its own whose checksum lies outside.
    let outside = SegmentError::Partial(PartialError::Start { start: 3041, available: 3040 });
    type Case<'a> = (&'a Spec, fn(&mut NetHeader, &mut Vec<u8>), SegmentError);
    let cases: [Case; 6] = [
        (&tcp, |_, packet| packet[3] -= 1, SegmentError::Length { found: 3039, packet: 3040 }),
        (&over_ipv6, |_, packet| packet.push(0), SegmentError::Length { found: 3060, packet: 3061 }),
        (&over_ipv6, |_, packet| packet[6] = 44, SegmentError::Fragment),
        (&over_ipv6, |_, packet| packet[6] = 51, other),
        (&udp, |_, packet| packet[25] += 1, SegmentError::UdpLength { found: 3009, available: 3008 }),
        (&tcp, |header, _| (header.gso_type, header.checksum_start) = (0, 3041), outside),
    ];
    for (spec, change, expected) in cases {
        assert_eq!(refused(spec, change), expected);
    }
    assert_eq!(
        refused(&tcp, |header, packet| (*header, *packet) = (NetHeader::default(), vec![])).to_string(),
        "IP at byte 0: the frame ends after 0 of the 1 bytes of the header"
    );
}

#[test]
fn every_cut_of_a_super_packet_is_refused() {
    for spec in [
        Spec { tcp_options: vec![1; 12], ip_options: vec![1; 8], ..Spec::default() },
        Spec { version_6: true, extensions: (Some(vec![1, 4, 0, 0, 0, 0]), None), ..Spec::default() },
        Spec { udp: true, ..Spec::default() },
    ] {
        let (header, packet) = spec.super_packet(&[5; 300], 100);
        for length in 0..packet.len() {
            let mut cut = packet[..length].to_vec();
            assert!(Segments::new(&Prefix::NONE, &header, &mut cut).is_err(), "{length} bytes of {spec:?}");
        }
    }
}

#[test]
fn pppoe_counts_no_more_than_it_can() {
    let encapsulation: Encapsulation = "q:7,pppoe:1".parse().expect("an encapsulation");
    let mut packet = Spec::default().packet(&vec![1; 65534 - 40]);
    let error =
        Segments::new(&prefix(&encapsulation), &NetHeader::default(), &mut packet).expect_err("too long");
    assert_eq!(error, SegmentError::TooLong { bytes: 65534, most: 65533 });
    let packet = Spec::default().packet(&vec![1; 65533 - 40]);
    let frames = segments(&prefix(&encapsulation), &NetHeader::default(), &packet, false);
    assert_eq!(frames[0][22..24], [0xff, 0xff]);
}

#[test]
fn a_short_buffer_is_named_and_loses_nothing() {
    let (header, mut packet) = Spec::default().super_packet(&[5; 3000], 1000);
    let prefix = prefix(&"pppoe:5".parse().expect("an encapsulation"));
    let mut segments = Segments::new(&prefix, &header, &mut packet).expect("good");
    let mut buffer = [0; 62];
    assert_eq!(segments.header_length(), 62);
    for available in 0..62 {
        assert_eq!(segments.emit(&mut buffer[..available]), Err(RoomError { needed: 62, available }));
    }
    let mut count = 0;
    while segments.emit(&mut buffer).expect("room").is_some() {
        count += 1;
    }
    assert_eq!((count, segments.left()), (3, 0));
}

#[test]
fn a_udp_checksum_of_zero_becomes_ones_in_a_segment() {
    // The source port makes up for everything else in the second datagram.
    let spec = Spec { udp: true, ..Spec::default() };
    let payload = [[1; 100], [2; 100]].concat();
    let second = expected(&spec, &Encapsulation::NONE, &payload, 100, false).remove(1);
    let checksum = u16::from_be_bytes([second[40], second[41]]);
    let (port, carry) = spec.ports.0.overflowing_add(checksum);
    let spec = Spec { ports: (port + u16::from(carry), spec.ports.1), ..spec };
    let (header, packet) = spec.super_packet(&payload, 100);
    let frames = segments(&Prefix::NONE, &header, &packet, false);
    assert_eq!(frames[1][26..28], [0xff, 0xff]);
    let framed = frames.iter().map(|packet| frame(&Encapsulation::NONE, packet));
    assert!(framed.eq(expected(&spec, &Encapsulation::NONE, &payload, 100, false)));
}

#[test]
fn virtio_headers_read_back_as_written() {
    let header = NetHeader {
        flags: 1,
        gso_type: 0x81,
        header_length: 54,
        gso_size: 1448,
        checksum_start: 34,
        checksum_offset: 16,
    };
    assert_eq!(NetHeader::parse(&header.bytes()), header);
    assert_eq!(header.bytes()[2..4], 54_u16.to_ne_bytes());
}
