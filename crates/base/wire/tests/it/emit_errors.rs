//! What cannot be written is refused with its numbers, and nothing is written then.

use crate::frames::*;
use rxlane_wire::emit::*;
use rxlane_wire::error::{Class, Error, Field, Layer};
use rxlane_wire::ethernet::EtherType;
use rxlane_wire::ppp::PppProtocol;
use rxlane_wire::pppoe::{Code, TagType};
use rxlane_wire::vlan::Tci;
use rxlane_wire::{IpProtocol, IpVersion};

fn ethernet() -> Ethernet {
    Ethernet { destination: MAC_A, source: MAC_B, ethertype: EtherType::IPV4 }
}

/// One header of each kind, and the name it goes by.
fn every_header(check: &mut dyn FnMut(&dyn Emit, Layer)) {
    let tag = PppoeTag { kind: TagType::AC_NAME, value: b"name" };
    let protocol = IpProtocol::UDP;
    let arp = Arp { operation: 1, sender: MAC_A, sender_ip: V4_A, target: MAC_B, target_ip: V4_B };
    let cooked = LinuxCooked { packet_type: 0, hardware: 1, address_length: 6, address: [1; 8], protocol: 1 };
    let cooked2 = LinuxCooked2 {
        protocol: 1,
        reserved: 0,
        interface: 2,
        hardware: 1,
        packet_type: 0,
        address_length: 6,
        address: [1; 8],
    };
    check(&ethernet(), Layer::Ethernet);
    check(&arp, Layer::Ethernet);
    check(&VlanTag { tci: Tci(1), ethertype: EtherType::IPV4 }, Layer::Vlan);
    check(&Llc { dsap: 1, ssap: 2, control: 3 }, Layer::Llc);
    check(&Snap { oui: [1; 3], protocol: EtherType::IPV4 }, Layer::Llc);
    check(&Mpls { label: 16, traffic_class: 0, bottom: true, ttl: 64 }, Layer::Mpls);
    check(&cooked, Layer::LinuxCooked);
    check(&cooked2, Layer::LinuxCooked);
    check(&Pppoe { code: Code::SESSION, session: 1, payload_length: 2 }, Layer::Pppoe);
    check(&tag, Layer::PppoeTag);
    check(&PppoeTags(&[tag, tag]), Layer::PppoeTag);
    check(&LineIdentification { circuit: b"circuit", remote: b"remote" }, Layer::PppoeTag);
    check(&Ppp { protocol: PppProtocol::IPV4 }, Layer::Ppp);
    check(&ControlPacket { code: 1, identifier: 2, data: &[1, 2, 3] }, Layer::PppControl);
    check(&Ipv4 { options: &[1; 8], ..ipv4(protocol) }, Layer::Ipv4);
    check(&ipv6(protocol), Layer::Ipv6);
    check(&HopByHop { next_header: protocol, options: &PADDING }, Layer::HopByHop);
    check(&DestinationOptions { next_header: protocol, options: &PADDING }, Layer::DestinationOptions);
    let routing = Routing { next_header: protocol, routing_type: 0, segments_left: 0, data: &[7; 20] };
    check(&routing, Layer::Routing);
    let fragment = Fragment { next_header: protocol, offset: 1, more: true, identification: 1 };
    check(&fragment, Layer::Fragment);
    let authentication = Authentication { next_header: protocol, spi: 1, sequence: 1, icv: &[1; 12] };
    check(&authentication, Layer::Authentication);
    check(&Tcp { options: &[1; 12], ..tcp() }, Layer::Tcp);
    check(&udp(), Layer::Udp);
    check(&Sctp::default(), Layer::Sctp);
    check(&Icmp::default(), Layer::Icmp);
    check(&Icmpv6::default(), Layer::Icmpv6);
}

#[test]
fn a_buffer_one_octet_short_or_more_is_left_as_it_was() {
    let mut headers = 0;
    every_header(&mut |header, layer| {
        headers += 1;
        let needed = header.length();
        for available in 0..needed {
            let mut buffer = vec![0xcc; available];
            let error = EmitError::BufferShort { layer, needed, available };
            assert_eq!(header.emit(&mut buffer), Err(error));
            assert!(buffer.iter().all(|octet| *octet == 0xcc), "{layer:?} wrote into {available} bytes");
        }
    });
    assert_eq!(headers, 26);
}

#[test]
fn a_header_touches_its_own_octets_and_no_more() {
    every_header(&mut |header, layer| {
        let length = header.length();
        let (mut zeros, mut ones) = (vec![0; length + 8], vec![0xff; length + 8]);
        assert_eq!((header.emit(&mut zeros), header.emit(&mut ones)), (Ok(length), Ok(length)));
        assert_eq!(zeros[..length], ones[..length], "{layer:?} leaves a byte unwritten");
        assert_eq!((&zeros[length..], &ones[length..]), (&[0; 8][..], &[0xff; 8][..]), "{layer:?}");
    });
}

#[test]
fn every_parse_names_its_header_at_every_cut() {
    type Parse = fn(&[u8]) -> Option<Error>;
    let protocol = IpProtocol::UDP;
    let cases: [(Layer, Vec<u8>, Parse); 18] = [
        (Layer::Ethernet, octets(&ethernet()), |octets| Ethernet::parse(octets).err()),
        (Layer::Vlan, vec![0; 4], |octets| VlanTag::parse(octets).err()),
        (Layer::Llc, vec![0; 3], |octets| Llc::parse(octets).err()),
        (Layer::Llc, vec![0xaa, 0xaa, 3, 0, 0, 0, 8, 0], |octets| Snap::parse(octets).err()),
        (Layer::Mpls, vec![0; 4], |octets| Mpls::parse(octets).err()),
        (Layer::LinuxCooked, vec![0; 16], |octets| LinuxCooked::parse(octets).err()),
        (Layer::LinuxCooked, vec![0; 20], |octets| LinuxCooked2::parse(octets).err()),
        (Layer::Pppoe, vec![0x11, 0, 0, 1, 0, 0], |octets| Pppoe::parse(octets).err()),
        (Layer::Ppp, vec![0x00, 0x21], |octets| Ppp::parse(octets).err()),
        (Layer::PppControl, vec![1, 1, 0, 6, 3, 4], |octets| ControlPacket::parse(octets).err()),
        (Layer::Ipv4, octets(&Ipv4 { options: &[1; 8], ..ipv4(protocol) }), |octets| {
            Ipv4::parse(octets).err()
        }),
        (Layer::Ipv6, octets(&ipv6(protocol)), |octets| Ipv6::parse(octets).err()),
        (Layer::HopByHop, octets(&HopByHop { next_header: protocol, options: &[0; 14] }), |octets| {
            HopByHop::parse(octets).err()
        }),
        (
            Layer::Routing,
            octets(&Routing { next_header: protocol, routing_type: 0, segments_left: 1, data: &[0; 20] }),
            |octets| Routing::parse(octets).err(),
        ),
        (
            Layer::Authentication,
            octets(&Authentication { next_header: protocol, spi: 1, sequence: 1, icv: &[1; 12] }),
            |octets| Authentication::parse(octets).err(),
        ),
        (Layer::Tcp, octets(&Tcp { options: &[1; 12], ..tcp() }), |octets| Tcp::parse(octets).err()),
        (Layer::Udp, vec![0; 8], |octets| Udp::parse(octets).err()),
        (Layer::Icmpv6, vec![0; 8], |octets| Icmpv6::parse(octets).err()),
    ];
    for (layer, whole, parse) in cases {
        assert_eq!(parse(&whole), None, "{layer:?}");
        for length in 0..whole.len() {
            let error = parse(&whole[..length]).map(|error| (error.layer, error.class()));
            assert_eq!(error, Some((layer, Class::Truncated)), "{layer:?} cut to {length}");
        }
    }
}

#[test]
fn values_that_a_field_cannot_hold_are_refused() {
    let protocol = IpProtocol::UDP;
    let too_large = |layer, field, found, limit| Err(EmitError::TooLarge { layer, field, found, limit });
    let not_multiple = |layer, field, found, besides, unit| {
        Err(EmitError::NotMultiple { layer, field, found, besides, unit })
    };
    let mut buffer = vec![0xcc; 70_000];
    let mut refused = |header: &dyn Emit, error: Result<usize, EmitError>| {
        assert_eq!(header.emit(&mut buffer), error);
        assert!(buffer.iter().all(|octet| *octet == 0xcc), "{error:?}: something was written");
    };
    let entry = Mpls { label: 1 << 20, traffic_class: 0, bottom: true, ttl: 1 };
    refused(&entry, too_large(Layer::Mpls, Field::Count, 1 << 20, 0xf_ffff));
    let entry = Mpls { label: 0, traffic_class: 8, bottom: true, ttl: 1 };
    refused(&entry, too_large(Layer::Mpls, Field::Type, 8, 7));
    let long = vec![0; 65_536];
    let tag = PppoeTag { kind: TagType::AC_NAME, value: &long };
    refused(&tag, too_large(Layer::PppoeTag, Field::Length, 65_536, 65_535));
    let tag = PppoeTag { kind: TagType::AC_NAME, value: &long[..40_000] };
    refused(&PppoeTags(&[tag, tag]), too_large(Layer::Pppoe, Field::Length, 80_008, 65_535));
    let line = LineIdentification { circuit: &long[..64], remote: b"" };
    refused(&line, too_large(Layer::PppoeTag, Field::Option, 64, 63));
    let packet = ControlPacket { code: 1, identifier: 1, data: &long };
    refused(&packet, too_large(Layer::PppControl, Field::Length, 65_540, 65_535));
    refused(&Ipv4 { options: &[0; 44], ..ipv4(protocol) }, too_large(Layer::Ipv4, Field::Option, 44, 40));
    refused(&Ipv4 { options: &[0; 3], ..ipv4(protocol) }, not_multiple(Layer::Ipv4, Field::Option, 3, 0, 4));
    let header = Ipv4 { fragment_offset: 1 << 13, ..ipv4(protocol) };
    refused(&header, too_large(Layer::Ipv4, Field::FragmentOffset, 8192, 8191));
    let header = Ipv6 { flow_label: 1 << 20, ..ipv6(protocol) };
    refused(&header, too_large(Layer::Ipv6, Field::Count, 1 << 20, 0xf_ffff));
    let header = HopByHop { next_header: protocol, options: &[0; 7] };
    refused(&header, not_multiple(Layer::HopByHop, Field::Option, 7, 2, 8));
    let header = DestinationOptions { next_header: protocol, options: &long[..2054] };
    refused(&header, too_large(Layer::DestinationOptions, Field::HeaderLength, 2056, 2048));
    let header = Routing { next_header: protocol, routing_type: 0, segments_left: 0, data: &[0; 5] };
    refused(&header, not_multiple(Layer::Routing, Field::Header, 5, 4, 8));
    let header = Fragment { next_header: protocol, offset: 1 << 13, more: false, identification: 0 };
    refused(&header, too_large(Layer::Fragment, Field::FragmentOffset, 8192, 8191));
    let header = Authentication { next_header: protocol, spi: 0, sequence: 0, icv: &long[..1020] };
    refused(&header, too_large(Layer::Authentication, Field::HeaderLength, 1032, 1028));
    let header = Authentication { next_header: protocol, spi: 0, sequence: 0, icv: &[0; 2] };
    refused(&header, not_multiple(Layer::Authentication, Field::Header, 2, 12, 4));
    refused(&Tcp { options: &[0; 44], ..tcp() }, too_large(Layer::Tcp, Field::Option, 44, 40));
    refused(&Tcp { options: &[0; 2], ..tcp() }, not_multiple(Layer::Tcp, Field::Option, 2, 0, 4));
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

#[test]
fn messages_hold_the_numbers() {
    let short = Tcp { options: &[1; 12], ..tcp() }.emit(&mut [0; 31]).map_err(|error| error.to_string());
    assert_eq!(short, Err("TCP header takes 32 bytes, the buffer has 31".to_owned()));
    let large = Ipv4 { options: &[0; 44], ..ipv4(IpProtocol::TCP) }.emit(&mut [0; 64]);
    let message = large.map_err(|error| error.to_string());
    assert_eq!(message, Err("IPv4 option: 44 does not fit, the largest is 40".to_owned()));
    let odd = HopByHop { next_header: IpProtocol::TCP, options: &[0; 7] }.emit(&mut [0; 64]);
    let message = odd.map_err(|error| error.to_string());
    let expected = "IPv6 hop-by-hop options option: 7 bytes and the 2 before them are no multiple of 8";
    assert_eq!(message, Err(expected.to_owned()));
}
