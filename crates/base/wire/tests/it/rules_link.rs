//! Each rule of the headers before IP, broken alone: the defect is named; and what merely looks odd is legal.

use crate::frames::*;
use rxlane_wire::emit::*;
use rxlane_wire::error::{Field, Layer, Rule};
use rxlane_wire::ethernet::EtherType;
use rxlane_wire::ppp::PppProtocol;
use rxlane_wire::pppoe::{self, Code, TagType};
use rxlane_wire::{IpProtocol, Link, dissect, vlan};

mod ethernet {
    use super::*;

    #[test]
    fn values_from_1501_to_1535_are_neither_length_nor_type() {
        for value in 1495..=1545u16 {
            let frame = Built::payload("", 1550).ethernet(EtherType(value)).octets;
            let expected = (1501..=1535).contains(&value).then_some((
                Layer::Ethernet,
                Field::EtherType,
                Rule::Undefined,
            ));
            assert_eq!(defect(&frame), expected, "{value}");
            let word = if value <= 1500 { "eth/llc" } else { "eth/other" };
            assert_eq!(stack(&frame), word, "{value}");
        }
    }

    #[test]
    fn a_length_beyond_the_frame_exceeds_it_and_one_before_its_end_leaves_padding() {
        let frame = |length| Built::payload("", 46).ethernet(EtherType(length)).octets;
        assert_eq!(defect(&frame(47)), Some((Layer::Ethernet, Field::Length, Rule::Exceeds)));
        assert_eq!(defect(&frame(46)), None);
        assert_eq!(defect(&frame(3)), None);
        assert_eq!(defect(&frame(2)), Some((Layer::Llc, Field::Header, Rule::Cut)));
    }

    #[test]
    fn snap_leads_to_an_ethertype_under_two_organisations_only() {
        for (oui, expected) in
            [([0, 0, 0], "eth/llc/ipv4/udp"), ([0, 0, 0xf8], "eth/llc/ipv4/udp"), ([0, 0, 0x0c], "eth/llc")]
        {
            let inner = Built::payload("", 24)
                .udp()
                .ipv4(IpProtocol::UDP)
                .wrap(Layer::Llc, &Snap { oui, protocol: EtherType::IPV4 });
            let length = EtherType(inner.octets.len() as u16);
            let frame = inner.ethernet(length).octets;
            assert_eq!((stack(&frame).as_str(), defect(&frame)), (expected, None));
            assert_eq!(seen(&frame).is_snap(), expected != "eth/llc");
        }
    }

    #[test]
    fn tags_of_any_depth_are_walked() {
        for depth in [0, 1, 2, 3, 8, 9, 64, 299, 300] {
            let tpids = [0x8100, 0x88a8, 0x9100, 0x9200, 0x9300].map(EtherType);
            let mut frame = Built::payload("", 24).tcp().ipv4(IpProtocol::TCP);
            let mut under = EtherType::IPV4;
            for place in (0..depth).rev() {
                frame = frame.tag(place as u16, under);
                under = tpids[place % 5];
            }
            let frame = frame.ethernet(under).octets;
            let seen = seen(&frame);
            assert_eq!((seen.error(), usize::from(seen.stack().tags())), (None, depth));
            assert!(seen.flow().is_some_and(|flow| flow.destination_port() == Some(443)));
            let tags: Vec<_> = seen.tags(&frame).map(|tag| (tag.tpid, tag.tci.vid())).collect();
            let expected: Vec<_> = (0..depth).map(|place| (tpids[place % 5], place as u16)).collect();
            assert_eq!(tags, expected);
            assert_eq!(vlan::protocol(&frame).map(|p| (p.ethertype, p.tags)), Ok((EtherType::IPV4, depth)));
        }
    }

    #[test]
    fn octets_behind_the_ip_packet_are_padding() {
        let frame = Built::payload("", 0).udp().ipv4(IpProtocol::UDP).pad(18).ethernet(EtherType::IPV4);
        assert_eq!(defect(&frame.octets), None);
        let frame = Built::payload("", 0).udp().ipv6(IpProtocol::UDP).pad(9).ethernet(EtherType::IPV6);
        assert_eq!(defect(&frame.octets), None);
    }
}

mod mpls {
    use super::*;

    #[test]
    fn stacks_of_any_depth_lead_to_what_the_first_nibble_says() {
        for depth in [1, 2, 3, 10, 100] {
            let inner = Built::payload("", 24).tcp();
            let cases = [
                (inner.clone().ipv4(IpProtocol::TCP), "eth/mpls/ipv4/tcp"),
                (inner.clone().ipv6(IpProtocol::TCP), "eth/mpls/ipv6/tcp"),
                (Built::payload("", 30), "eth/mpls/other"),
            ];
            for (mut frame, expected) in cases {
                for place in 0..depth {
                    frame = frame.label(16 + place, place == 0);
                }
                let frame = frame.ethernet(EtherType::MPLS).octets;
                assert_eq!((stack(&frame).as_str(), defect(&frame)), (expected, None), "{depth} labels");
            }
        }
    }
}

mod pppoe_session {
    use super::*;

    fn session(header: &Pppoe, payload: Built) -> Vec<u8> {
        payload.wrap(Layer::Pppoe, header).ethernet(EtherType::PPPOE_SESSION).octets
    }

    fn ip_in_ppp() -> Built {
        Built::payload("", 24).tcp().ipv4(IpProtocol::TCP).ppp(PppProtocol::IPV4)
    }

    fn header(payload_length: usize) -> Pppoe {
        Pppoe { code: Code::SESSION, session: 1, payload_length: payload_length as u16 }
    }

    #[test]
    fn version_type_and_code_are_fixed() {
        let whole = session(&header(66), ip_in_ppp());
        assert_eq!(defect(&whole), None);
        for (value, field) in [(0x21, Field::Version), (0x01, Field::Version), (0x12, Field::Type)] {
            let mut frame = whole.clone();
            frame[14] = value;
            assert_eq!(defect(&frame), Some((Layer::Pppoe, field, Rule::MustBe)), "{value:#x}");
        }
        for code in 1..=255 {
            let mut frame = whole.clone();
            frame[15] = code;
            assert_eq!(defect(&frame), Some((Layer::Pppoe, Field::Code, Rule::MustBe)), "{code:#x}");
        }
    }

    #[test]
    fn padding_is_legal_and_a_length_beyond_the_frame_is_not() {
        assert_eq!(defect(&session(&header(66), ip_in_ppp().pad(20))), None);
        let frame = session(&header(67), ip_in_ppp());
        assert_eq!(defect(&frame), Some((Layer::Pppoe, Field::Length, Rule::Exceeds)));
        assert_eq!(stack(&frame), "eth/pppoe/ipv4/tcp", "what is inside is still shown");
    }

    #[test]
    fn a_length_that_ends_inside_the_packet_cuts_it() {
        assert_eq!(
            defect(&session(&header(65), ip_in_ppp())),
            Some((Layer::Ipv4, Field::Length, Rule::Exceeds))
        );
        assert_eq!(defect(&session(&header(21), ip_in_ppp())), Some((Layer::Ipv4, Field::Header, Rule::Cut)));
        assert_eq!(defect(&session(&header(1), ip_in_ppp())), Some((Layer::Ppp, Field::Protocol, Rule::Cut)));
        assert_eq!(defect(&session(&header(0), ip_in_ppp())), Some((Layer::Ppp, Field::Protocol, Rule::Cut)));
    }

    #[test]
    fn a_compressed_protocol_field_is_refused_on_pppoe_and_read_on_a_serial_line() {
        let compressed = {
            let mut frame = Built::payload("", 24).tcp().ipv4(IpProtocol::TCP);
            frame.octets.insert(0, 0x21);
            frame
        };
        let frame = session(&header(65), compressed.clone());
        assert_eq!(defect(&frame), Some((Layer::Ppp, Field::Protocol, Rule::Compressed)));
        assert_eq!(stack(&frame), "eth/pppoe/ipv4/tcp", "what is inside is still shown");
        for prefix in [&[][..], &[0xff, 0x03]] {
            let line = [prefix, &compressed.octets].concat();
            let seen = dissect(Link::Ppp, &line, line.len());
            assert_eq!((seen.error(), seen.ppp_protocol()), (None, Some(PppProtocol::IPV4)));
            assert_eq!(seen.stack().to_string(), "ipv4/tcp");
        }
    }

    #[test]
    fn an_even_protocol_is_undefined() {
        let frame = session(&header(66), Built::payload("", 64).ppp(PppProtocol(0x0020)));
        assert_eq!(defect(&frame), Some((Layer::Ppp, Field::Protocol, Rule::Undefined)));
    }

    #[test]
    fn control_packets_have_words_and_lengths() {
        let cases = [
            (PppProtocol::LCP, "lcp"),
            (PppProtocol::PAP, "pap"),
            (PppProtocol::CHAP, "chap"),
            (PppProtocol::IPCP, "ipcp"),
            (PppProtocol::IPV6CP, "ipv6cp"),
            (PppProtocol::CCP, "ccp"),
            (PppProtocol(0x8281), "other"),
        ];
        for (protocol, word) in cases {
            let packet = octets(&ControlPacket { code: 1, identifier: 7, data: &[1, 4, 5, 0xd4] });
            let built = |packet: &[u8]| {
                let payload = [&protocol.0.to_be_bytes(), packet].concat();
                let payload_length = payload.len();
                let mut frame = Built::payload("", 0);
                frame.octets = payload;
                session(&header(payload_length), frame.pad(20))
            };
            let whole = built(&packet);
            assert_eq!((stack(&whole), defect(&whole)), (format!("eth/pppoe/{word}"), None));
            assert_eq!(defect(&built(&[&packet[..], &[0; 9]].concat())), None, "padding of the packet");
            if word == "other" {
                continue;
            }
            let short = built(&[1, 7, 0, 3]);
            assert_eq!(defect(&short), Some((Layer::PppControl, Field::Length, Rule::Below)));
            let long = built(&[1, 7, 0, 5]);
            assert_eq!(defect(&long), Some((Layer::PppControl, Field::Length, Rule::Exceeds)));
            assert_eq!(defect(&built(&[1, 7, 0])), Some((Layer::PppControl, Field::Header, Rule::Cut)));
        }
    }
}

mod pppoe_discovery {
    use super::*;

    fn packet(code: u8, tags: &[u8]) -> Vec<u8> {
        let header = Pppoe { code: Code(code), session: 0, payload_length: tags.len() as u16 };
        let mut frame = Built::payload("", 0);
        frame.octets = tags.to_vec();
        frame.wrap(Layer::Pppoe, &header).pad(40).ethernet(EtherType::PPPOE_DISCOVERY).octets
    }

    #[test]
    fn codes_are_those_of_rfc_2516() {
        for code in 0..=255u8 {
            let known = [0x07, 0x09, 0x19, 0x65, 0xa7].contains(&code);
            let expected = (!known).then_some((Layer::Pppoe, Field::Code, Rule::Undefined));
            assert_eq!(defect(&packet(code, &[1, 1, 0, 0])), expected, "{code:#x}");
        }
    }

    #[test]
    fn tags_stay_within_the_payload() {
        let exceeds = Some((Layer::PppoeTag, Field::Length, Rule::Exceeds));
        assert_eq!(defect(&packet(0x09, &[1, 3, 0, 5, 1, 2, 3, 4])), exceeds, "one byte short");
        assert_eq!(defect(&packet(0x09, &[1, 3, 0xff, 0xff])), exceeds);
        let cut = Some((Layer::PppoeTag, Field::Header, Rule::Cut));
        assert_eq!(defect(&packet(0x09, &[1, 1, 0, 0, 1, 3, 0])), cut);
        assert_eq!(defect(&packet(0x09, &[])), None);
    }

    #[test]
    fn the_end_of_list_ends_the_list() {
        assert_eq!(defect(&packet(0x09, &[1, 1, 0, 0, 0, 0, 0, 0, 0xde, 0xad])), None);
        let must_be = Some((Layer::PppoeTag, Field::Length, Rule::MustBe));
        assert_eq!(defect(&packet(0x09, &[0, 0, 0, 1, 9])), must_be);
    }

    #[test]
    fn line_identification_is_read_and_its_overrun_is_named() {
        let line = octets(&LineIdentification { circuit: b"node 1/1", remote: b"" });
        let tag = pppoe::Tag::parse(&line).unwrap().unwrap();
        let items: Vec<_> = tag.line_identification().unwrap().collect();
        assert_eq!(items, [Ok((1, b"node 1/1".as_slice()))]);
        for (value, rule) in
            [(&[0, 0, 0x0d, 0xe9, 1, 9, 1][..], Rule::Exceeds), (&[0, 0, 0x0d, 0xe9, 1], Rule::Cut)]
        {
            let tag = PppoeTag { kind: TagType::VENDOR_SPECIFIC, value };
            let error = LineIdentification::parse(&tag).unwrap_err();
            assert_eq!((error.layer, error.field, error.rule), (Layer::PppoeTag, Field::Option, rule));
        }
        let other = PppoeTag { kind: TagType::VENDOR_SPECIFIC, value: &[0, 0, 1, 1, 1, 9, 1] };
        assert_eq!(LineIdentification::parse(&other), Ok(None));
    }
}
