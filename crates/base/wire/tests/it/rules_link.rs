//! Each rule of the headers before IP, broken alone: the defect is named; and what merely looks odd is legal.

use crate::frames::*;
use rxlane_wire::emit::*;
use rxlane_wire::error::{Field, Layer, Rule};
use rxlane_wire::ethernet::EtherType;
use rxlane_wire::ppp::PppProtocol;
use rxlane_wire::pppoe::{self, Code, TagType};
use rxlane_wire::{IpProtocol as Ip, Link, dissect, vlan};

/// IEEE 802.3 clause 3.2.6: values from 1501 to 1535 are neither a length nor a type.
#[test]
fn ethernet_length_and_type() {
    for value in 1495..=1545u16 {
        let expected = match value {
            ..=1500 => "eth/llc",
            1501..=1535 => "eth/other: Ethernet EtherType Undefined",
            _ => "eth/other",
        };
        assert_eq!(answer(&data(1550).ethernet(EtherType(value)).bytes), expected, "{value}");
    }
    let length = |length| data(46).ethernet(EtherType(length)).bytes;
    check([
        ("a length beyond the frame", length(47), "eth/llc: Ethernet Length Exceeds"),
        ("a length of the frame", length(46), "eth/llc"),
        ("padding", length(3), "eth/llc"),
        ("too short for LLC", length(2), "eth/llc: Llc Header Cut"),
    ]);
    // SNAP leads to an EtherType under two organisations only.
    for (oui, expected) in [
        ([0, 0, 0], "eth/llc/ipv4/udp ports"),
        ([0, 0, 0xf8], "eth/llc/ipv4/udp ports"),
        ([0, 0, 0x0c], "eth/llc"),
    ] {
        let snap = Snap { oui, protocol: EtherType::IPV4 };
        let inner = data(24).udp().ipv4(Ip::UDP).wrap(Layer::Llc, &snap);
        let length = EtherType(inner.bytes.len() as u16);
        let frame = inner.ethernet(length).bytes;
        assert_eq!(answer(&frame), expected, "{oui:?}");
        assert_eq!(seen(&frame).is_snap(), expected != "eth/llc", "{oui:?}");
    }
}

#[test]
fn tags_and_labels_of_any_depth_are_walked() {
    for depth in [0, 1, 2, 3, 8, 9, 64, 299, 300] {
        let tpids = [0x8100, 0x88a8, 0x9100, 0x9200, 0x9300].map(EtherType);
        let mut frame = data(24).tcp().ipv4(Ip::TCP);
        let mut under = EtherType::IPV4;
        for place in (0..depth).rev() {
            frame = frame.tag(place as u16, under);
            under = tpids[place % 5];
        }
        let frame = frame.ethernet(under).bytes;
        let seen = seen(&frame);
        assert_eq!((seen.error(), usize::from(seen.stack().tags())), (None, depth));
        assert!(seen.flow().is_some_and(|flow| flow.destination_port() == Some(443)));
        let tags: Vec<_> = seen.tags(&frame).map(|tag| (tag.tpid, tag.tci.vid())).collect();
        let expected: Vec<_> = (0..depth).map(|place| (tpids[place % 5], place as u16)).collect();
        assert_eq!(tags, expected);
        let protocol = vlan::Protocol { ethertype: EtherType::IPV4, tags: depth, payload: 14 + 4 * depth };
        assert_eq!(vlan::protocol(&frame), Ok(protocol));
    }
    // Behind the last label the first nibble says what follows.
    for depth in [1, 2, 3, 10, 100] {
        let cases = [
            (data(24).tcp().ipv4(Ip::TCP), "eth/mpls/ipv4/tcp ports"),
            (data(24).tcp().ipv6(Ip::TCP), "eth/mpls/ipv6/tcp ports"),
            (data(30), "eth/mpls/other"),
        ];
        for (inner, expected) in cases {
            let frame = (0..depth).fold(inner, |frame, place| frame.label(16 + place, place == 0));
            assert_eq!(answer(&frame.ethernet(EtherType::MPLS).bytes), expected, "{depth} labels");
        }
    }
}

/// A PPPoE session frame whose header says `payload_length`.
fn session(payload_length: u16, payload: Built) -> Vec<u8> {
    let header = Pppoe { code: Code::SESSION, session: 1, payload_length };
    payload.wrap(Layer::Pppoe, &header).ethernet(EtherType::PPPOE_SESSION).bytes
}

#[test]
fn pppoe_session() {
    let ip = || data(24).tcp().ipv4(Ip::TCP).ppp(PppProtocol::IPV4);
    let whole = || session(66, ip());
    let compressed = [&[0x21][..], &data(24).tcp().ipv4(Ip::TCP).bytes].concat();
    // What is inside is reported, whatever is wrong outside.
    check([
        ("whole", whole(), "eth/pppoe/ipv4/tcp ports"),
        ("version 2", with(whole(), 14, 0x21), "eth/pppoe: Pppoe Version MustBe"),
        ("version 0", with(whole(), 14, 0x01), "eth/pppoe: Pppoe Version MustBe"),
        ("type 2", with(whole(), 14, 0x12), "eth/pppoe: Pppoe Type MustBe"),
        ("padding", session(66, ip().pad(20)), "eth/pppoe/ipv4/tcp ports"),
        ("beyond the frame", session(67, ip()), "eth/pppoe/ipv4/tcp ports: Pppoe Length Exceeds"),
        ("length inside the packet", session(65, ip()), "eth/pppoe/ipv4/tcp ports: Ipv4 Length Exceeds"),
        ("length inside IPv4", session(21, ip()), "eth/pppoe/ipv4: Ipv4 Header Cut"),
        ("length inside PPP", session(1, ip()), "eth/pppoe: Ppp Protocol Cut"),
        ("length 0", session(0, ip()), "eth/pppoe: Ppp Protocol Cut"),
        (
            "compressed protocol",
            session(65, Built::of_bytes("", &compressed)),
            "eth/pppoe/ipv4/tcp ports: Ppp Protocol Compressed",
        ),
        (
            "even protocol",
            session(66, data(64).ppp(PppProtocol(0x0020))),
            "eth/pppoe: Ppp Protocol Undefined",
        ),
    ]);
    for code in 1..=255 {
        let answer = answer(&with(whole(), 15, code));
        assert!(answer.ends_with(": Pppoe Code MustBe"), "{code:#x}: {answer}");
    }
    // A serial line may compress the protocol field.
    for prefix in [&[][..], &[0xff, 0x03]] {
        let line = [prefix, &compressed].concat();
        let seen = dissect(Link::Ppp, &line, line.len());
        assert_eq!((seen.error(), seen.ppp_protocol()), (None, Some(PppProtocol::IPV4)));
        assert_eq!(seen.stack().to_string(), "ipv4/tcp");
    }
}

#[test]
fn ppp_control_packets_have_words_and_lengths() {
    let packet = bytes(&ControlPacket { code: 1, identifier: 7, data: &[1, 4, 5, 0xd4] });
    for (protocol, word) in [
        (PppProtocol::LCP, "lcp"),
        (PppProtocol::PAP, "pap"),
        (PppProtocol::CHAP, "chap"),
        (PppProtocol::IPCP, "ipcp"),
        (PppProtocol::IPV6CP, "ipv6cp"),
        (PppProtocol::CCP, "ccp"),
        (PppProtocol(0x8281), "other"),
    ] {
        for (packet, defect) in [
            (&packet[..], ""),
            (&[&packet[..], &[0; 9]].concat(), ""),
            (&[1, 7, 0, 3], ": PppControl Length Below"),
            (&[1, 7, 0, 5], ": PppControl Length Exceeds"),
            (&[1, 7, 0], ": PppControl Header Cut"),
        ] {
            let defect = if word == "other" { "" } else { defect };
            let payload = Built::of_bytes("", packet).ppp(protocol);
            let frame = session(payload.bytes.len() as u16, payload.pad(20));
            assert_eq!(answer(&frame), format!("eth/pppoe/{word}{defect}"), "{packet:?}");
        }
    }
}

#[test]
fn pppoe_discovery() {
    let packet = |code: u8, tags: &[u8]| {
        let header = Pppoe { code: Code(code), session: 0, payload_length: tags.len() as u16 };
        let packet = Built::of_bytes("", tags).wrap(Layer::Pppoe, &header);
        packet.pad(40).ethernet(EtherType::PPPOE_DISCOVERY).bytes
    };
    for code in 0..=255u8 {
        let known = [0x07, 0x09, 0x19, 0x65, 0xa7].contains(&code);
        let expected =
            if known { "eth/pppoe-discovery" } else { "eth/pppoe-discovery: Pppoe Code Undefined" };
        assert_eq!(answer(&packet(code, &[1, 1, 0, 0])), expected, "{code:#x}");
    }
    let padi = |tags: &[u8]| packet(0x09, tags);
    check([
        ("no tags", padi(&[]), "eth/pppoe-discovery"),
        ("one byte short", padi(&[1, 3, 0, 5, 1, 2, 3, 4]), "eth/pppoe-discovery: PppoeTag Length Exceeds"),
        ("the longest", padi(&[1, 3, 0xff, 0xff]), "eth/pppoe-discovery: PppoeTag Length Exceeds"),
        ("half a tag header", padi(&[1, 1, 0, 0, 1, 3, 0]), "eth/pppoe-discovery: PppoeTag Header Cut"),
        (
            "bytes behind the end of the list",
            padi(&[1, 1, 0, 0, 0, 0, 0, 0, 0xde, 0xad]),
            "eth/pppoe-discovery",
        ),
        (
            "an end of the list with a value",
            padi(&[0, 0, 0, 1, 9]),
            "eth/pppoe-discovery: PppoeTag Length MustBe",
        ),
    ]);
}

#[test]
fn line_identification_is_read_and_its_overrun_is_named() {
    let line = bytes(&LineIdentification { circuit: b"node 1/1", remote: b"" });
    let tag = pppoe::Tag::parse(&line).unwrap().unwrap();
    let items: Vec<_> = tag.line_identification().unwrap().collect();
    assert_eq!(items, [Ok((1, b"node 1/1".as_slice()))]);
    for (value, expected) in [
        (&[0, 0, 0x0d, 0xe9, 1, 9, 1][..], Err((Layer::PppoeTag, Field::Option, Rule::Exceeds))),
        (&[0, 0, 0x0d, 0xe9, 1], Err((Layer::PppoeTag, Field::Option, Rule::Cut))),
        (&[0, 0, 1, 1, 1, 9, 1], Ok(None)),
    ] {
        let tag = PppoeTag { kind: TagType::VENDOR_SPECIFIC, value };
        let read = LineIdentification::parse(&tag).map_err(|error| (error.layer, error.field, error.rule));
        assert_eq!(read, expected, "{value:?}");
    }
}
