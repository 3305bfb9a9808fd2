//! Each rule of IP, its extension headers and the transport headers, broken alone: the defect is named; and what
//! merely looks odd is legal.

use crate::frames::*;
use rxlane_wire::emit::{Ipv4, Udp, home_address_option, jumbo_payload_option};
use rxlane_wire::error::{Class, Layer};
use rxlane_wire::ethernet::EtherType;
use rxlane_wire::extension::Kind;
use rxlane_wire::{Error, IpProtocol as Ip, Link, dissect};
use std::net::Ipv6Addr;

#[test]
fn ipv4() {
    let length = |length: u16| {
        let [high, low] = length.to_be_bytes();
        with(with(tcp4(), 16, high), 17, low)
    };
    let of = |inner: Built, header: Ipv4| inner.wrap(Layer::Ipv4, &header).ethernet(EtherType::IPV4).bytes;
    let fragment = |fragment_offset, more_fragments| {
        let header =
            Ipv4 { total_length: 64, fragment_offset, more_fragments, ..crate::frames::ipv4(Ip::TCP) };
        of(data(24).tcp(), header)
    };
    let first = Ipv4 { total_length: 44, more_fragments: true, ..crate::frames::ipv4(Ip::UDP) };
    let datagram = data(16).wrap(Layer::Udp, &Udp { length: 3000, ..udp() });
    let authenticated = || v4(data(24).tcp().authentication(Ip::TCP), Ip::AH);
    check([
        ("version 5", with(tcp4(), 14, 0x55), "eth/ipv4: Ipv4 Version MustBe"),
        ("IHL 0", with(tcp4(), 14, 0x40), "eth/ipv4: Ipv4 HeaderLength Below"),
        ("IHL 4", with(tcp4(), 14, 0x44), "eth/ipv4: Ipv4 HeaderLength Below"),
        ("total length of the packet", length(64), "eth/ipv4/tcp ports"),
        ("total length beyond the frame", length(65), "eth/ipv4/tcp ports: Ipv4 Length Exceeds"),
        ("total length 0", length(0), "eth/ipv4/tcp ports: Ipv4 Length Below"),
        ("total length below the header", length(19), "eth/ipv4: Ipv4 Length Below"),
        ("total length inside TCP", length(30), "eth/ipv4/tcp ports: Tcp Header Cut"),
        ("padding", v4(data(0).udp(), Ip::UDP).into_iter().chain([0; 18]).collect(), "eth/ipv4/udp ports"),
        ("no fragment", fragment(0, false), "eth/ipv4/tcp ports"),
        ("first fragment", fragment(0, true), "eth/ipv4/tcp ports first"),
        ("second fragment", fragment(1, true), "eth/ipv4 later"),
        ("last fragment", fragment(100, false), "eth/ipv4 later"),
        ("a datagram beyond its first fragment", of(datagram, first), "eth/ipv4/udp ports first"),
        ("AH", authenticated(), "eth/ipv4/ah/tcp ports"),
        ("AH of length 0", with(authenticated(), 35, 0), "eth/ipv4: Authentication HeaderLength Below"),
    ]);
    let ah = seen(&authenticated());
    assert!(ah.flow().is_some_and(|flow| flow.protocol() == 6));
    assert!(ah.extensions().contains(Kind::Authentication));
    let options = Ipv4 { total_length: 104, options: &[1; 40], ..crate::frames::ipv4(Ip::TCP) };
    let seen = seen(&of(data(24).tcp(), options));
    assert_eq!((seen.error(), seen.transport_offset(), seen.has_ipv4_options()), (None, Some(14 + 60), true));
    assert!(seen.flow().is_some_and(|flow| flow.source_port() == Some(49152)));
}

#[test]
fn ipv6() {
    let tcp = || data(24).tcp();
    let plain = || v6(tcp(), Ip::TCP);
    let hop = |next| tcp().hop_by_hop(next, &PADDING);
    let hop_options = |options| v6(tcp().hop_by_hop(Ip::TCP, options), Ip::HOP_BY_HOP);
    let second = hop(Ip::TCP).destination_options(Ip::HOP_BY_HOP, &PADDING);
    let twice = hop(Ip::TCP).hop_by_hop(Ip::HOP_BY_HOP, &PADDING);
    let cut = tcp().destination_options(Ip::TCP, &[1, 3, 0, 0, 0, 5]);
    let fragment = |offset, more| v6(tcp().fragment(Ip::TCP, offset, more), Ip::FRAGMENT);
    // The payload of a later fragment looks like an options header that would not fit.
    let later = data(16).fragment(Ip::DESTINATION_OPTIONS, 4, false);
    let nothing = data(0).ipv6(Ip::NO_NEXT_HEADER).pad(10).ethernet(EtherType::IPV6).bytes;
    check([
        ("version 4", with(plain(), 14, 0x40), "eth/ipv6: Ipv6 Version MustBe"),
        ("length beyond the frame", with(plain(), 19, 45), "eth/ipv6/tcp ports: Ipv6 Length Exceeds"),
        ("length inside TCP", with(plain(), 19, 19), "eth/ipv6/tcp ports: Tcp Header Cut"),
        ("padding", v6(data(0).udp(), Ip::UDP).into_iter().chain([0; 9]).collect(), "eth/ipv6/udp ports"),
        ("hop-by-hop first", v6(hop(Ip::TCP), Ip::HOP_BY_HOP), "eth/ipv6/tcp ports"),
        ("hop-by-hop second", v6(second, Ip::DESTINATION_OPTIONS), "eth/ipv6: HopByHop Header OutOfPlace"),
        ("hop-by-hop twice", v6(twice, Ip::HOP_BY_HOP), "eth/ipv6: HopByHop Header OutOfPlace"),
        (
            "an option beyond its header",
            hop_options(&[5, 5, 0, 0, 0, 0]),
            "eth/ipv6/tcp ports: HopByHop Option Exceeds",
        ),
        (
            "an option without its length",
            v6(cut, Ip::DESTINATION_OPTIONS),
            "eth/ipv6/tcp ports: DestinationOptions Option Cut",
        ),
        ("all Pad1", hop_options(&[0; 6]), "eth/ipv6/tcp ports"),
        (
            "a header longer than the packet",
            with(hop_options(&PADDING), 14 + 40 + 1, 200),
            "eth/ipv6: HopByHop HeaderLength Exceeds",
        ),
        ("atomic fragment", fragment(0, false), "eth/ipv6/tcp ports"),
        ("first fragment", fragment(0, true), "eth/ipv6/tcp ports first"),
        ("second fragment", fragment(1, true), "eth/ipv6 later"),
        ("last fragment", fragment(9, false), "eth/ipv6 later"),
        ("headers behind a later fragment", v6(later, Ip::FRAGMENT), "eth/ipv6 later"),
        ("AH", v6(tcp().authentication(Ip::TCP), Ip::AH), "eth/ipv6/ah/tcp ports"),
        ("no next header", nothing, "eth/ipv6"),
    ]);
    for frame in [fragment(0, false), fragment(1, true)] {
        let seen = seen(&frame);
        assert!(seen.extensions().contains(Kind::Fragment));
        assert!(seen.flow().is_some_and(|flow| flow.protocol() == 6));
    }
}

/// Routing headers obey their type: RFC 8200 section 4.4, RFC 6275 section 6.4, RFC 8754 section 2.
#[test]
fn routing_headers() {
    let addresses = |last_entry: u8, number: usize| {
        let mut data = vec![0; 4 + 16 * number];
        data[0] = last_entry;
        data
    };
    let cases = [
        (0, 2, addresses(0, 2), ""),
        (0, 3, addresses(0, 2), ": Routing Count Exceeds"),
        (0, 0, vec![0; 12], ": Routing HeaderLength NotMultiple"),
        (2, 1, addresses(0, 1), ""),
        (2, 0, addresses(0, 1), ": Routing Count MustBe"),
        (2, 1, addresses(0, 2), ": Routing HeaderLength MustBe"),
        (4, 1, addresses(1, 2), ""),
        (4, 0, addresses(2, 2), ": Routing Count Exceeds"),
        (4, 2, addresses(1, 2), ": Routing Count Exceeds"),
        (4, 0, addresses(0, 0), ": Routing Count Exceeds"), // Not even one segment.
        (253, 200, vec![0; 4], ""), // An unknown type is for its destination to judge.
    ];
    for (kind, left, fields, defect) in cases {
        let frame = v6(data(24).tcp().routing(Ip::TCP, kind, left, &fields), Ip::ROUTING);
        assert_eq!(
            answer(&frame),
            format!("eth/ipv6/tcp ports{defect}"),
            "type {kind}, {left} left, {fields:?}"
        );
    }
}

#[test]
fn home_address_and_final_destination_are_found() {
    let (home, final_destination) = (Ipv6Addr::new(0x2001, 0xdb8, 9, 0, 0, 0, 0, 9), V6_A);
    let fields = [&[0; 4][..], &final_destination.octets()].concat();
    let inner = data(24).tcp().routing(Ip::TCP, 2, 1, &fields);
    let inner = inner.destination_options(Ip::ROUTING, &home_address_option(home));
    let frame = v6(inner, Ip::DESTINATION_OPTIONS);
    let seen = seen(&frame);
    assert_eq!(seen.home_address(&frame), Some(home.octets()));
    assert_eq!(seen.routing2_destination(&frame), Some(final_destination.octets()));
    let kinds: Vec<_> = seen.extension_headers(&frame).map(|header| header.kind).collect();
    assert_eq!(kinds, [Kind::DestinationOptions, Kind::Routing]);
    assert_eq!(answer(&frame), "eth/ipv6/tcp ports", "extension headers are no words of the stack");
}

/// RFC 2675: the jumbo payload option and a length of zero need each other; no fragments.
#[test]
fn jumbograms() {
    let zero = |inner: Built| {
        inner.wrap(Layer::Ipv6, &crate::frames::ipv6(Ip::HOP_BY_HOP)).ethernet(EtherType::IPV6).bytes
    };
    let datagram = |length| data(length).wrap(Layer::Udp, &Udp { length: 0, ..udp() });
    let jumbo =
        |payload, claimed| zero(datagram(payload).hop_by_hop(Ip::UDP, &jumbo_payload_option(claimed)));
    let fragment = datagram(70_000).fragment(Ip::UDP, 0, true);
    let fragment = zero(fragment.hop_by_hop(Ip::FRAGMENT, &jumbo_payload_option(70_024)));
    let ordinary = data(50).udp().hop_by_hop(Ip::UDP, &jumbo_payload_option(70_000));
    let ordinary = v6(ordinary, Ip::HOP_BY_HOP);
    assert_eq!(seen(&ordinary).error().map(|error| error.offset), Some(14));
    check([
        ("long enough", jumbo(70_000, 70_016), "eth/ipv6/udp ports"),
        ("beyond the frame", jumbo(70_000, 70_017), "eth/ipv6/udp ports: HopByHop JumboPayload Exceeds"),
        ("less than is there", jumbo(70_000, 65_535), "eth/ipv6/udp ports: HopByHop JumboPayload Below"),
        (
            "what the ordinary length could say",
            jumbo(100, 116),
            "eth/ipv6/udp ports: HopByHop JumboPayload Below",
        ),
        ("a fragment", fragment, "eth/ipv6/udp ports first: Fragment Header OutOfPlace"),
        (
            "a length of zero without the option",
            zero(data(50).udp().hop_by_hop(Ip::UDP, &PADDING)),
            "eth/ipv6: Ipv6 Length Below",
        ),
        ("the option with a length", ordinary, "eth/ipv6/udp ports: Ipv6 Length MustBe"),
    ]);
}

#[test]
fn transport() {
    let offset = |words: u8| with(tcp4(), 14 + 20 + 12, words << 4);
    let of = |protocol| v4(data(32), protocol);
    check([
        ("data offset 0", offset(0), "eth/ipv4/tcp ports: Tcp HeaderLength Below"),
        ("data offset 4", offset(4), "eth/ipv4/tcp ports: Tcp HeaderLength Below"),
        ("data offset 11, the whole packet", offset(11), "eth/ipv4/tcp ports"),
        ("data offset 12", offset(12), "eth/ipv4/tcp ports: Tcp HeaderLength Exceeds"),
        ("UDP length 0, a jumbogram's only", udp4(0), "eth/ipv4/udp ports: Udp Length Below"),
        ("UDP length 1", udp4(1), "eth/ipv4/udp ports: Udp Length Below"),
        ("UDP length 7", udp4(7), "eth/ipv4/udp ports: Udp Length Below"),
        ("UDP length 8, bytes behind the datagram", udp4(8), "eth/ipv4/udp ports"),
        ("UDP length 24", udp4(24), "eth/ipv4/udp ports"),
        ("UDP length 25", udp4(25), "eth/ipv4/udp ports: Udp Length Exceeds"),
        ("SCTP", of(Ip::SCTP), "eth/ipv4/sctp ports"),
        ("ICMP", of(Ip::ICMP), "eth/ipv4/icmp"),
        ("IGMP", of(Ip::IGMP), "eth/ipv4/igmp"),
        ("GRE", of(Ip::GRE), "eth/ipv4/gre"),
        ("ESP", of(Ip::ESP), "eth/ipv4/esp"),
        ("protocol 200", of(Ip(200)), "eth/ipv4/other"),
        ("IPv6 in IPv4", v4(data(24).tcp().ipv6(Ip::TCP), Ip::IPV6), "eth/ipv4/ipv6/tcp"),
    ]);
    let outer = seen(&v4(data(24).tcp().ipv6(Ip::TCP), Ip::IPV6));
    assert!(outer.flow().is_some_and(|flow| flow.source() == V4_A), "the flow is that of the outer packet");
}

#[test]
fn an_error_says_which_header_which_field_which_rule() {
    let cut = &tcp4()[..30];
    let cases = [
        (&udp4(7)[..], 0, "UDP at byte 34: length 7 is below the least possible, 8"),
        (cut, 0, "IPv4 at byte 14: the frame ends after 16 of the 20 bytes of the header"),
        (cut, 78, "IPv4 at byte 14: the capture kept 16 of the 20 bytes of the header"),
    ];
    for (frame, wire_length, message) in cases {
        let seen = dissect(Link::Ethernet, frame, wire_length);
        assert_eq!(seen.error().map(Error::to_string).as_deref(), Some(message));
    }
    assert_eq!(dissect(Link::Ethernet, cut, 78).error().map(Error::class), Some(Class::Truncated));
}
