//! What a representation emits is read back as it was, for any value of any field.

use crate::frames;

use crate::frames::bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use rxlane_wire::emit::*;
use rxlane_wire::ethernet::{self, EtherType, MacAddress};
use rxlane_wire::ppp::{self, Compression, PppProtocol};
use rxlane_wire::pppoe::{self, Code, TagType};
use rxlane_wire::vlan::Tci;
use rxlane_wire::{IpProtocol, IpVersion, Link, Word, dissect, ipv4, ipv6, mpls, transport};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

prop_compose! {
    fn mac()(address in any::<[u8; 6]>()) -> MacAddress { MacAddress(address) }
}

fn protocol() -> impl Strategy<Value = IpProtocol> {
    any::<u8>().prop_map(IpProtocol)
}

/// Up to 40 bytes in words of four.
fn words() -> impl Strategy<Value = Vec<u8>> {
    (0usize..=10).prop_flat_map(|words| vec(any::<u8>(), 4 * words))
}

/// Options of an extension header, each whole, padded to 8n + 6 bytes.
fn ipv6_options() -> impl Strategy<Value = Vec<u8>> {
    vec((2u8..=255, vec(any::<u8>(), 0..20)), 0..6).prop_map(|items| {
        let mut options = Vec::new();
        for (kind, value) in items {
            options.extend([kind, value.len() as u8]);
            options.extend(value);
        }
        while options.len() % 8 != 6 {
            options.push(0);
        }
        options
    })
}

/// Holds a header to what its bytes parse to.
macro_rules! comes_back {
    ($kind:ident: $header:expr) => {
        let header = $header;
        let written = bytes(&header);
        prop_assert_eq!($kind::parse(&written), Ok(header));
    };
}

/// Holds the fields of a view to those of the representation.
macro_rules! agree {
    ($view:ident, $header:ident: $($field:ident)*) => {
        $(prop_assert_eq!($view.$field(), $header.$field);)*
    };
}

proptest! {
    #[test]
    fn link_headers(
        (destination, source, ethertype) in (mac(), mac(), any::<u16>().prop_map(EtherType)),
        (code, traffic_class, ttl) in (any::<u8>(), 0u8..8, any::<u8>()),
        (label, bottom) in (0u32..1 << 20, any::<bool>()),
        (session, payload_length, number) in any::<(u16, u16, u16)>(),
    ) {
        let header = Ethernet { destination, source, ethertype };
        let written = bytes(&header);
        let view = ethernet::Header::of(written.first_chunk().unwrap());
        agree!(view, header: destination source ethertype);
        let written = bytes(&Mpls { label, traffic_class, bottom, ttl });
        let view = mpls::Entry::of(*written.first_chunk().unwrap());
        let fields = (view.label(), view.traffic_class(), view.is_bottom(), view.ttl());
        prop_assert_eq!(fields, (label, traffic_class, bottom, ttl));
        let written = bytes(&Pppoe { code: Code(code), session, payload_length });
        let view = pppoe::Header::of(written.first_chunk().unwrap());
        prop_assert_eq!((view.code(), view.session(), view.length()), (Code(code), session, payload_length));
        prop_assert_eq!(view.check_version(), Ok(()));
        // RFC 1661 section 2: the first byte even, the second odd.
        let protocol = PppProtocol(number & 0xfeff | 1);
        prop_assert_eq!(ppp::protocol(&bytes(&Ppp { protocol }), Compression::Forbidden), Ok((protocol, 2)));
    }

    #[test]
    fn pppoe_tags(items in vec((1u16..=0xffff, vec(any::<u8>(), 0..30)), 0..10)) {
        let tags: Vec<PppoeTag> =
            items.iter().map(|(kind, value)| PppoeTag { kind: TagType(*kind), value }).collect();
        let written = bytes(&PppoeTags(&tags));
        let read: Result<Vec<_>, _> = pppoe::tags(&written).collect();
        prop_assert_eq!(read, Ok(tags.clone()));
        if let Some(first) = tags.first() {
            prop_assert_eq!(PppoeTag::parse(&written), Ok(Some(*first)));
        }
    }

    #[test]
    fn line_identification(circuit in vec(any::<u8>(), 0..=63), remote in vec(any::<u8>(), 0..=63)) {
        let line = LineIdentification { circuit: &circuit, remote: &remote };
        let written = bytes(&line);
        let tag = PppoeTag::parse(&written).unwrap().unwrap();
        prop_assert_eq!(tag.length(), written.len());
        prop_assert_eq!(LineIdentification::parse(&tag), Ok(Some(line)));
    }

    #[test]
    fn control_packet(code in any::<u8>(), identifier in any::<u8>(), data in vec(any::<u8>(), 0..100), padding in 0usize..20) {
        let packet = ControlPacket { code, identifier, data: &data };
        let mut written = bytes(&packet);
        written.extend(vec![0xee; padding]);
        prop_assert_eq!(ControlPacket::parse(&written), Ok(packet));
    }

    #[test]
    fn ipv4_header(
        (traffic_class, total_length, identification, ttl) in any::<(u8, u16, u16, u8)>(),
        (dont_fragment, more_fragments) in any::<(bool, bool)>(),
        fragment_offset in 0u16..1 << 13,
        protocol in protocol(),
        (source, destination) in any::<(Ipv4Addr, Ipv4Addr)>(),
        options in words(),
    ) {
        let header = Ipv4 {
            traffic_class, total_length, identification, dont_fragment, more_fragments, fragment_offset, ttl,
            protocol, source, destination, options: &options,
        };
        let written = bytes(&header);
        prop_assert_eq!(checksum::internet(&written), 0);
        let view = ipv4::Header::of(written.first_chunk().unwrap());
        prop_assert_eq!((view.check_header(), view.header_length()), (Ok(()), written.len()));
        agree!(view, header: traffic_class total_length identification dont_fragment more_fragments);
        agree!(view, header: fragment_offset ttl protocol source destination);
        prop_assert_eq!(&written[20..], options);
    }

    #[test]
    fn ipv6_headers(
        traffic_class in any::<u8>(), flow_label in 0u32..1 << 20, payload_length in any::<u16>(),
        next_header in protocol(), hop_limit in any::<u8>(),
        (source, destination) in any::<(Ipv6Addr, Ipv6Addr)>(),
        options in ipv6_options(), icv in words(),
        (routing_type, segments_left, units, fill) in (5u8..=255, any::<u8>(), 0usize..10, any::<u8>()),
        (offset, more) in (0u16..1 << 13, any::<bool>()),
        (identification, spi, sequence) in any::<(u32, u32, u32)>(),
    ) {
        let header =
            Ipv6 { traffic_class, flow_label, payload_length, next_header, hop_limit, source, destination };
        let written = bytes(&header);
        let view = ipv6::Header::of(written.first_chunk().unwrap());
        prop_assert_eq!(view.check_version(), Ok(()));
        agree!(view, header: traffic_class flow_label payload_length next_header hop_limit source destination);
        comes_back!(HopByHop: HopByHop { next_header, options: &options });
        comes_back!(DestinationOptions: DestinationOptions { next_header, options: &options });
        let data = vec![fill; 4 + 8 * units];
        comes_back!(Routing: Routing { next_header, routing_type, segments_left, data: &data });
        let (segments_left, data) = (segments_left % 2, vec![0; 4 + 16 * (1 + units)]);
        comes_back!(Routing: Routing { next_header, routing_type: 0, segments_left, data: &data });
        comes_back!(Fragment: Fragment { next_header, offset, more, identification });
        comes_back!(Authentication: Authentication { next_header, spi, sequence, icv: &icv });
    }

    #[test]
    fn tcp(
        (source_port, destination_port, sequence, acknowledgment) in any::<(u16, u16, u32, u32)>(),
        (flags, window, checksum, urgent) in any::<(u8, u16, u16, u16)>(),
        options in words(),
    ) {
        let header = Tcp {
            source_port, destination_port, sequence, acknowledgment, flags, window, checksum, urgent,
            options: &options,
        };
        let written = bytes(&header);
        let view = transport::Tcp::of(written.first_chunk().unwrap());
        prop_assert_eq!((view.check(written.len()), view.header_length()), (Ok(()), written.len()));
        agree!(view, header: source_port destination_port sequence acknowledgment flags window checksum urgent);
        prop_assert_eq!(&written[20..], options);
    }

    #[test]
    fn home_address_and_jumbo_payload(address in any::<Ipv6Addr>(), length in 65_536u32..) {
        use rxlane_wire::extension::{Header, Kind};
        let option = home_address_option(address);
        let written = bytes(&DestinationOptions { next_header: IpProtocol::TCP, options: &option });
        let header = Header::parse(Kind::DestinationOptions, &written, written.len()).unwrap();
        prop_assert_eq!(header.home_address(), Some(address.octets()));
        // RFC 6275 section 6.3: the option's type stands at 8n + 6.
        prop_assert_eq!(written[6], 0xc9);
        let option = jumbo_payload_option(length);
        let written = bytes(&HopByHop { next_header: IpProtocol::UDP, options: &option });
        let header = Header::parse(Kind::HopByHop, &written, written.len()).unwrap();
        prop_assert_eq!(header.jumbo_payload(), Ok(Some(length)));
    }

    #[test]
    fn transport_checksums(
        payload in vec(any::<u8>(), 20..80),
        (s4, d4) in any::<(Ipv4Addr, Ipv4Addr)>(),
        (s6, d6) in any::<(Ipv6Addr, Ipv6Addr)>(),
        place in any::<prop::sample::Index>(),
        bit in 0u8..8,
    ) {
        let pairs: [(IpAddr, IpAddr); 2] = [(s4.into(), d4.into()), (s6.into(), d6.into())];
        for (source, destination) in pairs {
            for protocol in
                [IpProtocol::TCP, IpProtocol::UDP, IpProtocol::SCTP, IpProtocol::ICMP, IpProtocol::ICMPV6]
            {
                let mut packet = payload.clone();
                prop_assert_eq!(checksum::fill(source, destination, protocol, &mut packet), Ok(()));
                prop_assert!(checksum::is_right(source, destination, protocol, &packet));
                // Any single bit that flips is noticed, unless it turns a UDP checksum off.
                packet[place.index(payload.len())] ^= 1 << bit;
                let off = protocol == IpProtocol::UDP && packet[6..8] == [0, 0];
                prop_assert!(off || !checksum::is_right(source, destination, protocol, &packet));
            }
        }
    }

    #[test]
    fn encapsulations_read_as_they_are_written(
        tags in vec((0usize..5, 0u16..=4094), 0..=8),
        labels in vec(0u32..1 << 20, 0..=4),
        pppoe in proptest::option::of((1u16..=65534, proptest::option::of(mac()))),
    ) {
        let mut encapsulation = Encapsulation::NONE;
        for (tpid, vid) in tags {
            let tpid = EtherType([0x8100, 0x88a8, 0x9100, 0x9200, 0x9300][tpid]);
            let tag = rxlane_wire::vlan::Tag { tpid, tci: Tci::new(0, false, vid) };
            encapsulation = encapsulation.with_tag(tag).unwrap();
        }
        encapsulation = match pppoe {
            Some((session, peer)) => {
                encapsulation.with_pppoe(PppoeSession { session: Some(session), peer }).unwrap()
            }
            None => labels.iter().try_fold(encapsulation, |e, label| e.with_label(*label)).unwrap(),
        };
        let text = encapsulation.to_string();
        prop_assert_eq!(text.parse(), Ok(encapsulation), "{}", text);
    }
}

#[test]
fn headers_of_nothing_but_fields_are_written_in_order() {
    let address = [5, 6, 7, 8, 9, 10, 0, 0];
    let (tci, ethertype) = (Tci(0x0102), EtherType(0x0304));
    let (source_port, destination_port, checksum) = (0x0102, 0x0304, 0x0506_0708);
    let cooked = LinuxCooked { packet_type: 1, hardware: 2, address_length: 6, address, protocol: 0x0b0c };
    let cooked_2 = LinuxCooked2 {
        protocol: 1,
        reserved: 2,
        interface: 3,
        hardware: 4,
        packet_type: 5,
        address_length: 6,
        address,
    };
    let (sender_ip, target_ip) = ([1, 2, 3, 4].into(), [5, 6, 7, 8].into());
    let (sender, target) = (MacAddress([9; 6]), MacAddress([10; 6]));
    let cases: [(&dyn Emit, &[u8]); 9] = [
        (&VlanTag { tci, ethertype }, &[1, 2, 3, 4]),
        (&Llc { dsap: 1, ssap: 2, control: 3 }, &[1, 2, 3]),
        (&Snap { oui: [1, 2, 3], protocol: EtherType(0x0405) }, &[0xaa, 0xaa, 3, 1, 2, 3, 4, 5]),
        (&cooked, &[0, 1, 0, 2, 0, 6, 5, 6, 7, 8, 9, 10, 0, 0, 11, 12]),
        (&cooked_2, &[0, 1, 0, 2, 0, 0, 0, 3, 0, 4, 5, 6, 5, 6, 7, 8, 9, 10, 0, 0]),
        (&Udp { source_port, destination_port, length: 5, checksum: 6 }, &[1, 2, 3, 4, 0, 5, 0, 6]),
        (
            &Sctp { source_port, destination_port, verification_tag: 9, checksum },
            &[1, 2, 3, 4, 0, 0, 0, 9, 5, 6, 7, 8],
        ),
        (&Icmp { kind: 1, code: 2, checksum: 0x0304, rest: [5, 6, 7, 8] }, &[1, 2, 3, 4, 5, 6, 7, 8]),
        (
            &Arp { operation: 2, sender, sender_ip, target, target_ip },
            &[0, 1, 8, 0, 6, 4, 0, 2, 9, 9, 9, 9, 9, 9, 1, 2, 3, 4, 10, 10, 10, 10, 10, 10, 5, 6, 7, 8],
        ),
    ];
    for (header, expected) in cases {
        assert_eq!(bytes(header), expected);
    }
}

#[test]
fn encapsulations_are_what_a_dissector_sees() {
    let cases = [
        ("none", "eth/ipv4/udp", "eth/ipv6/udp"),
        ("q:35", "eth/vlan/ipv4/udp", "eth/vlan/ipv6/udp"),
        ("ad:100,q:200,pppoe:77", "eth/vlan/vlan/pppoe/ipv4/udp", "eth/vlan/vlan/pppoe/ipv6/udp"),
        ("mpls:16,mpls:17", "eth/mpls/ipv4/udp", "eth/mpls/ipv6/udp"),
    ];
    for (text, v4, v6) in cases {
        let encapsulation: Encapsulation = text.parse().unwrap();
        let payload = [bytes(&Udp { length: 20, ..frames::udp() }), vec![0; 12]].concat();
        let packets = [
            (bytes(&Ipv4 { total_length: 40, ..frames::ipv4(IpProtocol::UDP) }), IpVersion::V4, v4),
            (bytes(&Ipv6 { payload_length: 20, ..frames::ipv6(IpProtocol::UDP) }), IpVersion::V6, v6),
        ];
        for (header, version, stack) in packets {
            let packet = [header, payload.clone()].concat();
            let mut frame = vec![0; encapsulation.length()];
            let (a, b) = (frames::MAC_A, frames::MAC_B);
            assert_eq!(encapsulation.emit(a, b, version, packet.len(), &mut frame), Ok(frame.len()));
            frame.extend(packet);
            let seen = dissect(Link::Ethernet, &frame, frame.len());
            assert_eq!((seen.error(), seen.stack().to_string().as_str()), (None, stack));
            let session = encapsulation.pppoe().and_then(|pppoe| pppoe.session);
            assert_eq!(seen.pppoe().map(|pppoe| pppoe.session), session);
            assert_eq!(seen.stack().last(), Some(Word::Udp));
        }
    }
}

#[test]
fn the_notation_refuses_what_no_link_can_be() {
    use EncapsulationError as E;
    let cases = [
        ("", E::Word(1)),
        ("q", E::Word(1)),
        ("q:1,gre", E::Word(2)),
        ("q:1,,q:2", E::Word(2)),
        ("q:4095", E::VlanIdentifier),
        ("q:+5", E::VlanIdentifier),
        ("q:", E::VlanIdentifier),
        ("0x0800:5", E::Tpid(EtherType::IPV4)),
        ("0xzz:5", E::Word(1)),
        ("mpls:1048576", E::Label(1 << 20)),
        ("pppoe:0", E::Session),
        ("pppoe:65535", E::Session),
        ("pppoe:1@02:00:00", E::MacAddress),
        ("pppoe:1@02:00:00:00:00:00:01", E::MacAddress),
        ("pppoe:1@0200:00:00:00:00:1", E::MacAddress),
        ("pppoe,q:1", E::Order),
        ("pppoe,pppoe", E::Order),
        ("mpls:16,pppoe", E::Order),
        ("pppoe,mpls:16", E::Order),
        ("q:1,q:1,q:1,q:1,q:1,q:1,q:1,q:1,q:1", E::TooManyTags),
        ("mpls:1,mpls:1,mpls:1,mpls:1,mpls:1", E::TooManyLabels),
    ];
    for (text, error) in cases {
        assert_eq!(text.parse::<Encapsulation>(), Err(error), "{text}");
    }
}
