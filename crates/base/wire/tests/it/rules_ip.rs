//! Each rule of IP, its extension headers and the transport headers, broken alone: the defect is named; and what
//! merely looks odd is legal.

use crate::frames::*;
use rxlane_wire::emit::*;
use rxlane_wire::error::{Class, Field, Layer, Rule};
use rxlane_wire::ethernet::EtherType;
use rxlane_wire::extension::Kind;
use rxlane_wire::{Error, Fragment as Place, IpProtocol, Link, Word, dissect};
use std::net::Ipv6Addr;

mod ipv4_rules {
    use super::*;

    #[test]
    fn version_and_header_length() {
        assert_eq!(defect(&with(tcp4(), 14, 0x55)), Some((Layer::Ipv4, Field::Version, Rule::MustBe)));
        for words in 0..5 {
            let frame = with(tcp4(), 14, 0x40 | words);
            assert_eq!(defect(&frame), Some((Layer::Ipv4, Field::HeaderLength, Rule::Below)), "IHL {words}");
        }
    }

    #[test]
    fn total_length_covers_the_header_and_fits_the_frame() {
        let length = |length: u16| {
            let [high, low] = length.to_be_bytes();
            let mut frame = with(tcp4(), 16, high);
            frame[17] = low;
            frame
        };
        assert_eq!(defect(&length(64)), None);
        assert_eq!(defect(&length(65)), Some((Layer::Ipv4, Field::Length, Rule::Exceeds)));
        assert_eq!(stack(&length(65)), "eth/ipv4/tcp");
        for short in [0, 1, 19] {
            assert_eq!(defect(&length(short)), Some((Layer::Ipv4, Field::Length, Rule::Below)), "{short}");
        }
        assert_eq!(defect(&length(30)), Some((Layer::Tcp, Field::Header, Rule::Cut)));
    }

    #[test]
    fn options_move_the_transport_header() {
        let frame = Built::payload("", 24)
            .tcp()
            .wrap(Layer::Ipv4, &Ipv4 { total_length: 104, options: &[1; 40], ..ipv4(IpProtocol::TCP) })
            .ethernet(EtherType::IPV4)
            .octets;
        let seen = seen(&frame);
        assert_eq!((seen.error(), seen.transport_offset()), (None, Some(14 + 60)));
        assert!(seen.has_ipv4_options() && seen.flow().is_some_and(|f| f.source_port() == Some(49152)));
    }

    #[test]
    fn only_the_first_fragment_has_ports() {
        let fragment = |fragment_offset, more_fragments| {
            let header = Ipv4 { total_length: 64, fragment_offset, more_fragments, ..ipv4(IpProtocol::TCP) };
            Built::payload("", 24).tcp().wrap(Layer::Ipv4, &header).ethernet(EtherType::IPV4).octets
        };
        let cases = [
            (0, false, Place::None, true, "eth/ipv4/tcp"),
            (0, true, Place::First, true, "eth/ipv4/tcp"),
            (1, true, Place::Later, false, "eth/ipv4"),
            (100, false, Place::Later, false, "eth/ipv4"),
        ];
        for (offset, more, place, ports, words) in cases {
            let frame = fragment(offset, more);
            let seen = seen(&frame);
            assert_eq!((seen.error(), seen.fragment()), (None, place));
            assert_eq!(seen.flow().map(|flow| flow.has_ports()), Some(ports));
            assert_eq!(
                (seen.stack().to_string().as_str(), seen.transport_offset().is_some()),
                (words, ports)
            );
        }
    }

    #[test]
    fn the_length_of_a_fragmented_datagram_reaches_past_its_first_fragment() {
        let header = Ipv4 { total_length: 44, more_fragments: true, ..ipv4(IpProtocol::UDP) };
        let frame = Built::payload("", 16)
            .wrap(Layer::Udp, &Udp { length: 3000, ..udp() })
            .wrap(Layer::Ipv4, &header)
            .ethernet(EtherType::IPV4);
        assert_eq!(defect(&frame.octets), None);
    }

    #[test]
    fn the_authentication_header_is_walked() {
        let icv = [0; 12];
        let header = Authentication { next_header: IpProtocol::TCP, spi: 1, sequence: 1, icv: &icv };
        let frame = Built::payload("", 24)
            .tcp()
            .wrap(Layer::Authentication, &header)
            .ipv4(IpProtocol::AH)
            .ethernet(EtherType::IPV4);
        let found = seen(&frame.octets);
        assert_eq!((found.error(), found.stack().to_string().as_str()), (None, "eth/ipv4/ah/tcp"));
        assert!(found.flow().is_some_and(|f| f.protocol() == 6 && f.has_ports()));
        assert!(found.extensions().contains(Kind::Authentication));
        let short = with(frame, 35, 0);
        assert_eq!(defect(&short), Some((Layer::Authentication, Field::HeaderLength, Rule::Below)));
    }
}

mod ipv6_rules {
    use super::*;

    fn tcp_behind(first: IpProtocol, wrap: impl FnOnce(Built) -> Built) -> Built {
        wrap(Built::payload("", 24).tcp()).ipv6(first).ethernet(EtherType::IPV6)
    }

    #[test]
    fn version_and_length() {
        let frame = || tcp_behind(IpProtocol::TCP, |tcp| tcp);
        assert_eq!(defect(&with(frame(), 14, 0x40)), Some((Layer::Ipv6, Field::Version, Rule::MustBe)));
        assert_eq!(defect(&with(frame(), 19, 45)), Some((Layer::Ipv6, Field::Length, Rule::Exceeds)));
        assert_eq!(defect(&with(frame(), 19, 19)), Some((Layer::Tcp, Field::Header, Rule::Cut)));
    }

    #[test]
    fn hop_by_hop_stands_first_or_not_at_all() {
        let hop = |next_header| HopByHop { next_header, options: &PADDING };
        let first =
            tcp_behind(IpProtocol::HOP_BY_HOP, |tcp| tcp.wrap(Layer::HopByHop, &hop(IpProtocol::TCP)));
        assert_eq!((defect(&first.octets), stack(&first.octets).as_str()), (None, "eth/ipv6/tcp"));
        let destination = DestinationOptions { next_header: IpProtocol::HOP_BY_HOP, options: &PADDING };
        let second = tcp_behind(IpProtocol::DESTINATION_OPTIONS, |tcp| {
            tcp.wrap(Layer::HopByHop, &hop(IpProtocol::TCP)).wrap(Layer::DestinationOptions, &destination)
        });
        assert_eq!(defect(&second.octets), Some((Layer::HopByHop, Field::Header, Rule::OutOfPlace)));
        let twice = tcp_behind(IpProtocol::HOP_BY_HOP, |tcp| {
            tcp.wrap(Layer::HopByHop, &hop(IpProtocol::TCP))
                .wrap(Layer::HopByHop, &hop(IpProtocol::HOP_BY_HOP))
        });
        assert_eq!(defect(&twice.octets), Some((Layer::HopByHop, Field::Header, Rule::OutOfPlace)));
    }

    #[test]
    fn options_stay_within_their_header() {
        let overrun = HopByHop { next_header: IpProtocol::TCP, options: &[5, 5, 0, 0, 0, 0] };
        let frame = tcp_behind(IpProtocol::HOP_BY_HOP, |tcp| tcp.wrap(Layer::HopByHop, &overrun));
        assert_eq!(defect(&frame.octets), Some((Layer::HopByHop, Field::Option, Rule::Exceeds)));
        let cut = DestinationOptions { next_header: IpProtocol::TCP, options: &[1, 3, 0, 0, 0, 5] };
        let frame =
            tcp_behind(IpProtocol::DESTINATION_OPTIONS, |tcp| tcp.wrap(Layer::DestinationOptions, &cut));
        assert_eq!(defect(&frame.octets), Some((Layer::DestinationOptions, Field::Option, Rule::Cut)));
        let all_pad1 = HopByHop { next_header: IpProtocol::TCP, options: &[0; 6] };
        let frame = tcp_behind(IpProtocol::HOP_BY_HOP, |tcp| tcp.wrap(Layer::HopByHop, &all_pad1));
        assert_eq!(defect(&frame.octets), None);
    }

    #[test]
    fn a_header_longer_than_the_packet_exceeds_it() {
        let frame = tcp_behind(IpProtocol::HOP_BY_HOP, |tcp| {
            tcp.wrap(Layer::HopByHop, &HopByHop { next_header: IpProtocol::TCP, options: &PADDING })
        });
        let frame = with(frame, 14 + 40 + 1, 200);
        assert_eq!(defect(&frame), Some((Layer::HopByHop, Field::HeaderLength, Rule::Exceeds)));
    }

    #[test]
    fn routing_headers_obey_their_type() {
        use Field::{Count, HeaderLength};
        let routing = |routing_type, segments_left, data: &[u8]| {
            let header = Routing { next_header: IpProtocol::TCP, routing_type, segments_left, data };
            defect(&tcp_behind(IpProtocol::ROUTING, |tcp| tcp.wrap(Layer::Routing, &header)).octets)
        };
        let broken = |field, rule| Some((Layer::Routing, field, rule));
        let addresses = |number: usize| vec![0; 4 + 16 * number];
        assert_eq!(routing(0, 2, &addresses(2)), None);
        assert_eq!(routing(0, 3, &addresses(2)), broken(Count, Rule::Exceeds));
        assert_eq!(routing(0, 0, &[0; 12]), broken(HeaderLength, Rule::NotMultiple));
        assert_eq!(routing(2, 1, &addresses(1)), None);
        assert_eq!(routing(2, 0, &addresses(1)), broken(Count, Rule::MustBe));
        assert_eq!(routing(2, 1, &addresses(2)), broken(HeaderLength, Rule::MustBe));
        let segments = |last_entry: u8, number| {
            let mut data = addresses(number);
            data[0] = last_entry;
            data
        };
        assert_eq!(routing(4, 1, &segments(1, 2)), None);
        assert_eq!(routing(4, 0, &segments(2, 2)), broken(Count, Rule::Exceeds));
        assert_eq!(routing(4, 2, &segments(1, 2)), broken(Count, Rule::Exceeds));
        assert_eq!(routing(4, 0, &segments(0, 0)), broken(Count, Rule::Exceeds), "not even one segment");
        assert_eq!(routing(253, 200, &[0; 4]), None, "an unknown type is for its destination to judge");
    }

    #[test]
    fn home_address_and_final_destination_are_found() {
        let (home, final_destination) = (Ipv6Addr::new(0x2001, 0xdb8, 9, 0, 0, 0, 0, 9), V6_A);
        let option = home_address_option(home);
        let mut data = [0; 20];
        data[4..].copy_from_slice(&final_destination.octets());
        let frame = tcp_behind(IpProtocol::DESTINATION_OPTIONS, |tcp| {
            tcp.wrap(
                Layer::Routing,
                &Routing { next_header: IpProtocol::TCP, routing_type: 2, segments_left: 1, data: &data },
            )
            .wrap(
                Layer::DestinationOptions,
                &DestinationOptions { next_header: IpProtocol::ROUTING, options: &option },
            )
        })
        .octets;
        let seen = seen(&frame);
        assert_eq!(seen.error(), None);
        assert_eq!(seen.home_address(&frame), Some(home.octets()));
        assert_eq!(seen.routing2_destination(&frame), Some(final_destination.octets()));
        let kinds: Vec<_> = seen.extension_headers(&frame).map(|header| header.kind).collect();
        assert_eq!(kinds, [Kind::DestinationOptions, Kind::Routing]);
        assert_eq!(seen.stack().to_string(), "eth/ipv6/tcp", "extension headers are no words of the stack");
    }

    #[test]
    fn fragments_first_later_and_atomic() {
        let fragment = |offset, more| {
            let header = Fragment { next_header: IpProtocol::TCP, offset, more, identification: 9 };
            tcp_behind(IpProtocol::FRAGMENT, |tcp| tcp.wrap(Layer::Fragment, &header)).octets
        };
        let cases = [
            (0, false, Place::None, true),
            (0, true, Place::First, true),
            (1, true, Place::Later, false),
            (9, false, Place::Later, false),
        ];
        for (offset, more, place, ports) in cases {
            let frame = fragment(offset, more);
            let seen = seen(&frame);
            assert_eq!((seen.error(), seen.fragment()), (None, place));
            assert_eq!(seen.flow().map(|flow| (flow.has_ports(), flow.protocol())), Some((ports, 6)));
            assert!(seen.extensions().contains(Kind::Fragment));
        }
    }

    #[test]
    fn nothing_is_read_behind_a_later_fragment() {
        // The payload of a later fragment looks like an options header that would not fit.
        let header = Fragment {
            next_header: IpProtocol::DESTINATION_OPTIONS,
            offset: 4,
            more: false,
            identification: 9,
        };
        let frame =
            tcp_behind(IpProtocol::FRAGMENT, |_| Built::payload("", 16).wrap(Layer::Fragment, &header));
        assert_eq!(defect(&frame.octets), None);
        assert_eq!(stack(&frame.octets), "eth/ipv6");
    }

    #[test]
    fn the_authentication_header_is_walked() {
        let header = Authentication { next_header: IpProtocol::TCP, spi: 1, sequence: 1, icv: &[0; 12] };
        let frame = tcp_behind(IpProtocol::AH, |tcp| tcp.wrap(Layer::Authentication, &header));
        assert_eq!((stack(&frame.octets).as_str(), defect(&frame.octets)), ("eth/ipv6/ah/tcp", None));
        assert!(seen(&frame.octets).flow().is_some_and(|flow| flow.has_ports()));
    }

    #[test]
    fn no_next_header_ends_a_packet() {
        let frame = Built::payload("", 0).ipv6(IpProtocol::NO_NEXT_HEADER).pad(10).ethernet(EtherType::IPV6);
        assert_eq!((stack(&frame.octets).as_str(), defect(&frame.octets)), ("eth/ipv6", None));
    }
}

mod jumbograms {
    use super::*;

    /// A UDP jumbogram (RFC 2675 section 4: length zero) with `claimed` in its option.
    fn jumbo(payload: usize, claimed: u32) -> Vec<u8> {
        let option = jumbo_payload_option(claimed);
        let frame = Built::payload("", payload)
            .wrap(Layer::Udp, &Udp { length: 0, ..udp() })
            .wrap(Layer::HopByHop, &HopByHop { next_header: IpProtocol::UDP, options: &option })
            .wrap(Layer::Ipv6, &ipv6(IpProtocol::HOP_BY_HOP));
        frame.ethernet(EtherType::IPV6).octets
    }

    #[test]
    fn one_that_is_long_enough_is_read() {
        let frame = jumbo(70_000, 70_016);
        let seen = seen(&frame);
        assert_eq!((seen.error(), seen.stack().to_string().as_str()), (None, "eth/ipv6/udp"));
        assert!(seen.flow().is_some_and(|flow| flow.destination_port() == Some(53)));
    }

    #[test]
    fn its_length_is_neither_too_small_nor_beyond_the_frame() {
        let broken = |rule| Some((Layer::HopByHop, Field::JumboPayload, rule));
        assert_eq!(defect(&jumbo(70_000, 70_017)), broken(Rule::Exceeds));
        assert_eq!(defect(&jumbo(70_000, 65_535)), broken(Rule::Below));
        assert_eq!(defect(&jumbo(100, 116)), broken(Rule::Below), "the ordinary length could have said it");
    }

    #[test]
    fn it_has_no_fragment_header() {
        let option = jumbo_payload_option(70_024);
        let fragment = Fragment { next_header: IpProtocol::UDP, offset: 0, more: true, identification: 1 };
        let frame = Built::payload("", 70_000)
            .wrap(Layer::Udp, &Udp { length: 0, ..udp() })
            .wrap(Layer::Fragment, &fragment)
            .wrap(Layer::HopByHop, &HopByHop { next_header: IpProtocol::FRAGMENT, options: &option })
            .wrap(Layer::Ipv6, &ipv6(IpProtocol::HOP_BY_HOP))
            .ethernet(EtherType::IPV6);
        assert_eq!(defect(&frame.octets), Some((Layer::Fragment, Field::Header, Rule::OutOfPlace)));
    }

    #[test]
    fn a_length_of_zero_needs_the_option() {
        let header = HopByHop { next_header: IpProtocol::UDP, options: &PADDING };
        let frame = Built::payload("", 50)
            .udp()
            .wrap(Layer::HopByHop, &header)
            .wrap(Layer::Ipv6, &ipv6(IpProtocol::HOP_BY_HOP))
            .ethernet(EtherType::IPV6);
        assert_eq!(defect(&frame.octets), Some((Layer::Ipv6, Field::Length, Rule::Below)));
        assert_eq!(seen(&frame.octets).error().map(|error| error.offset), Some(14));
    }

    #[test]
    fn the_option_needs_a_length_of_zero() {
        let option = jumbo_payload_option(70_000);
        let frame = Built::payload("", 50)
            .udp()
            .wrap(Layer::HopByHop, &HopByHop { next_header: IpProtocol::UDP, options: &option })
            .ipv6(IpProtocol::HOP_BY_HOP)
            .ethernet(EtherType::IPV6);
        assert_eq!(defect(&frame.octets), Some((Layer::Ipv6, Field::Length, Rule::MustBe)));
        assert_eq!(seen(&frame.octets).error().map(|error| error.offset), Some(14));
        assert_eq!(stack(&frame.octets), "eth/ipv6/udp");
    }
}

mod transport {
    use super::*;

    #[test]
    fn tcp_data_offset() {
        for words in 0..5 {
            let frame = with(tcp4(), 14 + 20 + 12, words << 4);
            assert_eq!(defect(&frame), Some((Layer::Tcp, Field::HeaderLength, Rule::Below)), "{words}");
        }
        assert_eq!(defect(&with(tcp4(), 46, 11 << 4)), None);
        let frame = with(tcp4(), 46, 12 << 4);
        assert_eq!(defect(&frame), Some((Layer::Tcp, Field::HeaderLength, Rule::Exceeds)));
    }

    #[test]
    fn udp_length() {
        for length in 1..8 {
            assert_eq!(defect(&udp4(length)), Some((Layer::Udp, Field::Length, Rule::Below)), "{length}");
        }
        assert_eq!(defect(&udp4(0)), Some((Layer::Udp, Field::Length, Rule::Below)), "only a jumbogram's");
        assert_eq!(defect(&udp4(25)), Some((Layer::Udp, Field::Length, Rule::Exceeds)));
        assert_eq!(defect(&udp4(24)), None);
        assert_eq!(defect(&udp4(8)), None, "bytes behind the datagram");
    }

    #[test]
    fn protocols_with_and_without_ports() {
        let cases = [
            (IpProtocol::SCTP, "eth/ipv4/sctp", true),
            (IpProtocol::ICMP, "eth/ipv4/icmp", false),
            (IpProtocol::IGMP, "eth/ipv4/igmp", false),
            (IpProtocol::GRE, "eth/ipv4/gre", false),
            (IpProtocol::ESP, "eth/ipv4/esp", false),
            (IpProtocol(200), "eth/ipv4/other", false),
        ];
        for (protocol, words, ports) in cases {
            let frame = Built::payload("", 32).ipv4(protocol).ethernet(EtherType::IPV4).octets;
            assert_eq!((stack(&frame).as_str(), defect(&frame)), (words, None));
            assert_eq!(seen(&frame).flow().map(|flow| flow.has_ports()), Some(ports), "{words}");
        }
    }

    #[test]
    fn the_flow_is_that_of_the_outer_packet() {
        let frame = Built::payload("", 24)
            .tcp()
            .ipv6(IpProtocol::TCP)
            .ipv4(IpProtocol::IPV6)
            .ethernet(EtherType::IPV4)
            .octets;
        let seen = seen(&frame);
        assert_eq!((seen.error(), seen.stack().to_string().as_str()), (None, "eth/ipv4/ipv6/tcp"));
        assert!(seen.flow().is_some_and(|flow| flow.source() == V4_A && !flow.has_ports()));
    }
}

mod messages {
    use super::*;

    #[test]
    fn an_error_says_which_header_which_field_which_rule() {
        let message = |octets: &[u8]| seen(octets).error().map(Error::to_string);
        assert_eq!(
            message(&udp4(7)).as_deref(),
            Some("UDP at byte 34: length 7 is below the least possible, 8")
        );
        assert_eq!(
            message(&tcp4().octets[..30]).as_deref(),
            Some("IPv4 at byte 14: the frame ends after 16 of the 20 bytes of the header")
        );
        let captured = dissect(Link::Ethernet, &tcp4().octets[..30], 78);
        assert_eq!(
            captured.error().map(Error::to_string).as_deref(),
            Some("IPv4 at byte 14: the capture kept 16 of the 20 bytes of the header")
        );
        assert_eq!(captured.error().map(Error::class), Some(Class::Truncated));
        assert_eq!(captured.stack().last(), Some(Word::Ipv4));
    }
}
