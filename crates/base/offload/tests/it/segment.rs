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
    #![proptest_config(ProptestConfig::with_cases(1000))]

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

    #[test]
    fn any_octets_are_answered(
        octets in proptest::collection::vec(any::<u8>(), 0..200),
        fields in any::<[u8; 10]>(),
        version in prop_oneof![Just(0x45), Just(0x60), any::<u8>()],
    ) {
        let mut octets = octets;
        if let Some(first) = octets.first_mut() {
            *first = version;
        }
        if let Ok(mut segments) = Segments::new(&Prefix::NONE, &NetHeader::parse(&fields), &mut octets) {
            let mut buffer = [0; 400];
            while segments.emit(&mut buffer).expect("room").is_some() {}
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
    let tcp = Spec::default();
    let udp = Spec { udp: true, ..Spec::default() };
    let packet = 3040;
    assert_eq!(refused(&tcp, |header, _| header.gso_size = 0), SegmentError::NoSize);
    assert_eq!(refused(&tcp, |header, _| header.flags = 0), SegmentError::NoChecksum);
    for found in [3041, 65535] {
        let error = refused(&tcp, |header, _| header.header_length = found);
        assert_eq!(error, SegmentError::HeaderLength { found, packet });
    }
    for found in [0, 19, 21, 40, 3039, 65535] {
        let error = refused(&tcp, |header, _| header.checksum_start = found);
        assert_eq!(error, SegmentError::ChecksumStart { found, transport: 20 });
    }
    for found in [0, 6, 15, 65535] {
        let error = refused(&tcp, |header, _| header.checksum_offset = found);
        assert_eq!(error, SegmentError::ChecksumOffset { found, expected: 16 });
    }
    for found in [NetHeader::UDP_FRAGMENTS, 2, 6, 0x21, 0x41, NetHeader::ECN, 0x7f] {
        assert_eq!(refused(&tcp, |header, _| header.gso_type = found), SegmentError::GsoType { found });
    }
    let found = NetHeader::UDP | NetHeader::ECN;
    assert_eq!(refused(&udp, |header, _| header.gso_type = found), SegmentError::GsoType { found });
    for gso_type in [NetHeader::TCP_IPV6, NetHeader::UDP] {
        let error = refused(&tcp, |header, _| header.gso_type = gso_type);
        assert_eq!(error, SegmentError::OtherProtocol { gso_type, version: 4, protocol: 6 });
    }
}

#[test]
fn a_smaller_hint_about_headers_changes_nothing() {
    let spec = Spec::default();
    let (mut header, packet) = spec.super_packet(&[5; 3000], 1000);
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
    let layer = |error| match error {
        SegmentError::Header(error) => (error.layer, error.rule),
        other => panic!("{other}"),
    };
    assert_eq!(layer(refused(&tcp, |_, packet| packet[0] = 0x54)), (Layer::Ip, Rule::Undefined));
    assert_eq!(layer(refused(&tcp, |_, packet| packet[0] = 0x44)), (Layer::Ipv4, Rule::Below));
    assert_eq!(layer(refused(&tcp, |_, packet| packet[32] = 0x40)), (Layer::Tcp, Rule::Below));
    assert_eq!(layer(refused(&tcp, |_, packet| packet[2] = 0xff)), (Layer::Ipv4, Rule::Exceeds));
    let shorter = SegmentError::Length { found: 3039, packet: 3040 };
    assert_eq!(refused(&tcp, |_, packet| packet[3] -= 1), shorter);
    let longer = SegmentError::Length { found: 3060, packet: 3061 };
    assert_eq!(refused(&over_ipv6, |_, packet| packet.push(0)), longer);
    for fragment in [0x20, 0x01, 0x3f] {
        assert_eq!(refused(&tcp, |_, packet| packet[6] = fragment), SegmentError::Fragment);
    }
    assert_eq!(refused(&over_ipv6, |_, packet| packet[6] = 44), SegmentError::Fragment);
    let other = refused(&over_ipv6, |_, packet| packet[6] = 51);
    let protocol = SegmentError::OtherProtocol { gso_type: NetHeader::TCP_IPV6, version: 6, protocol: 51 };
    assert_eq!(other, protocol);
    let error = refused(&udp, |_, packet| packet[25] += 1);
    assert_eq!(error, SegmentError::UdpLength { found: 3009, available: 3008 });
    assert_eq!(
        refused(&tcp, |header, packet| (*header, *packet) = (NetHeader::default(), vec![])).to_string(),
        "IP at byte 0: the frame ends after 0 of the 1 bytes of the header"
    );
    // A packet of its own whose checksum lies outside.
    let outside = refused(&tcp, |header, _| (header.gso_type, header.checksum_start) = (0, 3041));
    assert_eq!(outside, SegmentError::Partial(PartialError::Start { start: 3041, available: 3040 }));
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
    assert_eq!(error, SegmentError::TooLong { octets: 65534, most: 65533 });
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
    assert_eq!(
        frames,
        expected(&spec, &Encapsulation::NONE, &payload, 100, false)
            .iter()
            .map(|f| f[14..].to_vec())
            .collect::<Vec<_>>()
    );
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
