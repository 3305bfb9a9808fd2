//! What cannot be written is refused with its numbers, and nothing is written then.

use crate::frames::*;
use rxlane_wire::emit::*;
use rxlane_wire::error::{Class, Error, Field, Layer};
use rxlane_wire::ethernet::EtherType;
use rxlane_wire::ppp::PppProtocol;
use rxlane_wire::pppoe::{Code, TagType};
use rxlane_wire::vlan::Tci;
use rxlane_wire::{IpProtocol, IpVersion};

type Parse = Option<fn(&[u8]) -> Option<Error>>;

/// One header of each kind, the name it goes by, and what reads it back, if that can fail.
fn every_header(check: &mut dyn FnMut(&dyn Emit, Layer, Parse)) {
    macro_rules! check {
        ($layer:ident $kind:ident: $header:expr) => {
            check(&$header, Layer::$layer, Some(|bytes| $kind::parse(bytes).err()))
        };
    }
    let tag = PppoeTag { kind: TagType::AC_NAME, value: b"name" };
    let next_header = IpProtocol::UDP;
    let arp = Arp { operation: 1, sender: MAC_A, sender_ip: V4_A, target: MAC_B, target_ip: V4_B };
    check(&Ethernet { destination: MAC_A, source: MAC_B, ethertype: EtherType::IPV4 }, Layer::Ethernet, None);
    check(&arp, Layer::Ethernet, None);
    check(&VlanTag { tci: Tci(1), ethertype: EtherType::IPV4 }, Layer::Vlan, None);
    check(&Llc { dsap: 1, ssap: 2, control: 3 }, Layer::Llc, None);
    check(&Snap { oui: [1; 3], protocol: EtherType::IPV4 }, Layer::Llc, None);
    check(&Mpls { label: 16, traffic_class: 0, bottom: true, ttl: 64 }, Layer::Mpls, None);
    check(&COOKED, Layer::LinuxCooked, None);
    check(&COOKED_2, Layer::LinuxCooked, None);
    check(&Pppoe { code: Code::SESSION, session: 1, payload_length: 0 }, Layer::Pppoe, None);
    check(&tag, Layer::PppoeTag, None);
    check(&PppoeTags(&[tag, tag]), Layer::PppoeTag, None);
    check(&LineIdentification { circuit: b"circuit", remote: b"remote" }, Layer::PppoeTag, None);
    check(&Ppp { protocol: PppProtocol::IPV4 }, Layer::Ppp, None);
    check!(PppControl ControlPacket: ControlPacket { code: 1, identifier: 2, data: &[1, 2, 3] });
    check(&Ipv4 { options: &[1; 8], ..ipv4(next_header) }, Layer::Ipv4, None);
    check(&ipv6(next_header), Layer::Ipv6, None);
    check!(HopByHop HopByHop: HopByHop { next_header, options: &[0; 14] });
    check!(DestinationOptions DestinationOptions: DestinationOptions { next_header, options: &PADDING });
    check!(Routing Routing: Routing { next_header, routing_type: 0, segments_left: 1, data: &[7; 20] });
    check!(Fragment Fragment: Fragment { next_header, offset: 1, more: true, identification: 1 });
    check!(Authentication Authentication:
        Authentication { next_header, spi: 1, sequence: 1, icv: &[1; 12] });
    check(&Tcp { options: &[1; 12], ..tcp() }, Layer::Tcp, None);
    check(&udp(), Layer::Udp, None);
    check(&Sctp::default(), Layer::Sctp, None);
    check(&Icmp::default(), Layer::Icmp, None);
    check(&Icmpv6::default(), Layer::Icmpv6, None);
}

#[test]
fn a_header_touches_its_own_bytes_and_no_more_and_names_itself_where_it_is_cut() {
    let mut headers = 0;
    every_header(&mut |header, layer, parse| {
        headers += 1;
        let needed = header.length();
        let (mut zeros, mut ones) = (vec![0; needed + 8], vec![0xff; needed + 8]);
        assert_eq!((header.emit(&mut zeros), header.emit(&mut ones)), (Ok(needed), Ok(needed)));
        assert_eq!(zeros[..needed], ones[..needed], "{layer:?} leaves a byte unwritten");
        assert_eq!((&zeros[needed..], &ones[needed..]), (&[0; 8][..], &[0xff; 8][..]), "{layer:?}");
        let whole = &zeros[..needed];
        assert_eq!(parse.and_then(|parse| parse(whole)), None, "{layer:?}");
        for available in 0..needed {
            let mut buffer = vec![0xcc; available];
            let error = EmitError::BufferShort { layer, needed, available };
            assert_eq!(header.emit(&mut buffer), Err(error));
            assert!(buffer.iter().all(|byte| *byte == 0xcc), "{layer:?} wrote into {available} bytes");
            if let Some(parse) = parse {
                let error = parse(&whole[..available]).map(|error| (error.layer, error.class()));
                assert_eq!(error, Some((layer, Class::Truncated)), "{layer:?} cut to {available}");
            }
        }
    });
    assert_eq!(headers, 26);
}

#[test]
fn values_that_a_field_cannot_hold_are_refused() {
    let (next_header, zeros) = (IpProtocol::UDP, vec![0; 65_536]);
    let long_tag = PppoeTag { kind: TagType::AC_NAME, value: &zeros[..40_000] };
    let entry = Mpls { label: 0, traffic_class: 0, bottom: true, ttl: 1 };
    let authentication = Authentication { next_header, spi: 0, sequence: 0, icv: &[0; 2] };
    let fragment = Fragment { next_header, offset: 1 << 13, more: false, identification: 0 };
    let routing = Routing { next_header, routing_type: 0, segments_left: 0, data: &[0; 5] };
    let cases: [(&dyn Emit, &str); 18] = [
        (&Mpls { label: 1 << 20, ..entry }, "MPLS count: 1048576 does not fit, the largest is 1048575"),
        (&Mpls { traffic_class: 8, ..entry }, "MPLS type: 8 does not fit, the largest is 7"),
        (
            &PppoeTag { value: &zeros, ..long_tag },
            "PPPoE tag length: 65536 does not fit, the largest is 65535",
        ),
        (&PppoeTags(&[long_tag; 2]), "PPPoE length: 80008 does not fit, the largest is 65535"),
        (
            &LineIdentification { circuit: &zeros[..64], remote: b"" },
            "PPPoE tag option: 64 does not fit, the largest is 63",
        ),
        (
            &ControlPacket { code: 1, identifier: 1, data: &zeros },
            "PPP control length: 65540 does not fit, the largest is 65535",
        ),
        (&Ipv4 { options: &[0; 44], ..ipv4(next_header) }, "IPv4 option: 44 does not fit, the largest is 40"),
        (
            &Ipv4 { options: &[0; 3], ..ipv4(next_header) },
            "IPv4 option: 3 bytes and the 0 before them are no multiple of 4",
        ),
        (
            &Ipv4 { fragment_offset: 1 << 13, ..ipv4(next_header) },
            "IPv4 fragment offset: 8192 does not fit, the largest is 8191",
        ),
        (
            &Ipv6 { flow_label: 1 << 20, ..ipv6(next_header) },
            "IPv6 count: 1048576 does not fit, the largest is 1048575",
        ),
        (
            &HopByHop { next_header, options: &[0; 7] },
            "IPv6 hop-by-hop options option: 7 bytes and the 2 before them are no multiple of 8",
        ),
        (
            &DestinationOptions { next_header, options: &zeros[..2054] },
            "IPv6 destination options header length: 2056 does not fit, the largest is 2048",
        ),
        (&routing, "IPv6 routing header: 5 bytes and the 4 before them are no multiple of 8"),
        (&fragment, "IPv6 fragment fragment offset: 8192 does not fit, the largest is 8191"),
        (
            &Authentication { icv: &zeros[..1020], ..authentication },
            "AH header length: 1032 does not fit, the largest is 1028",
        ),
        (&authentication, "AH header: 2 bytes and the 12 before them are no multiple of 4"),
        (&Tcp { options: &[0; 44], ..tcp() }, "TCP option: 44 does not fit, the largest is 40"),
        (
            &Tcp { options: &[0; 2], ..tcp() },
            "TCP option: 2 bytes and the 0 before them are no multiple of 4",
        ),
    ];
    let mut buffer = vec![0xcc; 70_000];
    for (header, message) in cases {
        assert_eq!(header.emit(&mut buffer).map_err(|error| error.to_string()), Err(message.to_owned()));
        assert!(buffer.iter().all(|byte| *byte == 0xcc), "{message}: something was written");
    }
    let short = Tcp { options: &[1; 12], ..tcp() }.emit(&mut [0; 31]).map_err(|error| error.to_string());
    assert_eq!(short, Err("TCP header takes 32 bytes, the buffer has 31".to_owned()));
}

#[test]
fn an_encapsulation_refuses_a_packet_that_pppoe_cannot_hold() {
    let encapsulation: Encapsulation = "pppoe:1".parse().unwrap();
    let mut buffer = [0; 64];
    let mut emit = |length| encapsulation.emit(MAC_A, MAC_B, IpVersion::V4, length, &mut buffer);
    assert_eq!(emit(65_533), Ok(22));
    let error =
        EmitError::TooLarge { layer: Layer::Pppoe, field: Field::Length, found: 65_536, limit: 65_535 };
    assert_eq!(emit(65_534), Err(error));
    assert!(emit(usize::MAX).is_err());
    let short = encapsulation.emit(MAC_A, MAC_B, IpVersion::V4, 100, &mut [0; 21]);
    assert_eq!(short, Err(EmitError::BufferShort { layer: Layer::Ppp, needed: 2, available: 1 }));
}
