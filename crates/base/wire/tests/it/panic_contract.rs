//! The contract of the crate: no panic on any input, and what a dissection says holds together.
//!
//! Nothing that a caller can pass voids it. Offsets assume frames below 4 GiB; a wire length beyond that is
//! tried here too.

use crate::frames::corpus;
use proptest::prelude::*;
use rxlane_wire::emit;
use rxlane_wire::{
    Dissection, Fragment, IpProtocol, Link, Word, dissect, ethernet, extension, ppp, pppoe, vlan,
};

const LINKS: [Link; 6] =
    [Link::Ethernet, Link::LinuxCooked, Link::LinuxCooked2, Link::Ip, Link::Ppp, Link::PppOverEthernet];

/// Everything that can be asked of a dissection, and what must hold between the answers.
fn check(frame: &[u8], wire_length: usize, seen: &Dissection) -> Result<(), TestCaseError> {
    let end = wire_length.max(frame.len());
    let flow = seen.flow();
    if let Some(flow) = flow.filter(|flow| flow.has_ports()) {
        let protocol = IpProtocol(flow.protocol());
        prop_assert!([IpProtocol::TCP, IpProtocol::UDP, IpProtocol::SCTP].contains(&protocol), "{flow}");
        prop_assert_ne!(seen.fragment(), Fragment::Later);
        prop_assert!(seen.transport_offset().is_some());
    }
    if let Some(transport) = seen.transport_offset() {
        prop_assert!(transport <= frame.len(), "transport at {transport} of {}", frame.len());
        prop_assert!(seen.network_offset().is_some_and(|network| network + 20 <= transport));
    }
    prop_assert_eq!(flow.is_some(), seen.network_offset().is_some());
    if flow.is_some() {
        prop_assert!(seen.stack().contains(Word::Ipv4) || seen.stack().contains(Word::Ipv6));
    }
    if let Some(error) = seen.error() {
        prop_assert!(error.offset as usize <= end, "{error}");
        prop_assert!(!error.to_string().is_empty() && !error.reason().to_string().is_empty());
    }
    let tags = usize::from(seen.stack().tags());
    prop_assert!(seen.tags(frame).count() <= tags);
    let whole = seen.error().is_none();
    prop_assert!(!whole || seen.tags(frame).count() == tags);
    prop_assert!(!whole || seen.tag_bytes(frame).len() == (4 * tags).saturating_sub(2));
    prop_assert!(seen.stack().words().count() <= 12 + tags);
    prop_assert_eq!(seen.pppoe().is_some(), seen.pppoe().map(|pppoe| pppoe.code.to_string()).is_some());
    prop_assert!(seen.extension_headers(frame).count() <= frame.len() / 8);
    let mut kinds = seen.extension_headers(frame).map(|header| header.kind);
    prop_assert!(!whole || kinds.all(|kind| seen.extensions().contains(kind)));
    let _ = (seen.home_address(frame), seen.routing2_destination(frame));
    Ok(())
}

fn check_everywhere(frame: &[u8], wire_length: usize) -> Result<(), TestCaseError> {
    for link in LINKS {
        check(frame, wire_length, &dissect(link, frame, wire_length))?;
    }
    Ok(())
}

/// The parsers that are public by themselves.
fn read_everything(octets: &[u8]) {
    let _ = (vlan::protocol(octets), vlan::tags(octets).count(), ethernet::llc(octets));
    for tag in pppoe::tags(octets).filter_map(Result::ok) {
        let _ = tag.line_identification().map(Iterator::count);
    }
    for compression in [ppp::Compression::Allowed, ppp::Compression::Forbidden] {
        let _ = ppp::protocol(octets, compression);
    }
    use extension::Kind::*;
    for kind in [HopByHop, Routing, Fragment, DestinationOptions, Authentication] {
        for available in [0, octets.len(), usize::MAX] {
            if let Ok(header) = extension::Header::parse(kind, octets, available) {
                let _ = (header.options().count(), header.check_options(), header.check_routing());
                let _ = (header.home_address(), header.jumbo_payload(), header.routing2_destination());
                let _ = (header.fragment(), header.identification(), header.segments_left());
            }
        }
    }
    let _ = (emit::Ethernet::parse(octets), emit::VlanTag::parse(octets), emit::Mpls::parse(octets));
    let _ = (emit::Llc::parse(octets), emit::Snap::parse(octets), emit::Arp::parse(octets));
    let _ = (emit::LinuxCooked::parse(octets), emit::LinuxCooked2::parse(octets), emit::Pppoe::parse(octets));
    let _ = (emit::PppoeTag::parse(octets), emit::Ppp::parse(octets), emit::ControlPacket::parse(octets));
    let _ = (emit::Ipv4::parse(octets), emit::Ipv6::parse(octets), emit::HopByHop::parse(octets));
    let _ = (emit::DestinationOptions::parse(octets), emit::Routing::parse(octets));
    let _ = (emit::Fragment::parse(octets), emit::Authentication::parse(octets), emit::Tcp::parse(octets));
    let _ = (emit::Udp::parse(octets), emit::Sctp::parse(octets), emit::Icmp::parse(octets));
    let _ = (emit::Icmpv6::parse(octets), emit::checksum::internet(octets), emit::checksum::crc32c(octets));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn random_octets_never_panic(
        octets in proptest::collection::vec(any::<u8>(), 0..300),
        wire_length in prop_oneof![0usize..400, Just(usize::MAX), Just(u32::MAX as usize)],
    ) {
        check_everywhere(&octets, wire_length)?;
        read_everything(&octets);
    }

    #[test]
    fn octets_that_start_like_a_frame_never_panic(
        ethertype in prop_oneof![
            Just(0x0800u16), Just(0x86dd), Just(0x8864), Just(0x8863), Just(0x8100), Just(0x8847), 0u16..1600,
        ],
        first in any::<u8>(),
        octets in proptest::collection::vec(prop_oneof![Just(0u8), Just(0x45), Just(0x60), Just(0x11), Just(44),
            Just(60), Just(51), any::<u8>()], 0..200),
    ) {
        let mut frame = vec![0; 12];
        frame.extend(ethertype.to_be_bytes());
        frame.push(match ethertype { 0x0800 => 0x45 | first & 0x0f, 0x86dd => 0x60, 0x8863 | 0x8864 => 0x11, _ => first });
        frame.extend(octets);
        check_everywhere(&frame, frame.len())?;
    }

    #[test]
    fn mutated_frames_never_panic(
        which in any::<prop::sample::Index>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
        grown in 0usize..40,
        missing in 0usize..100,
    ) {
        let corpus = corpus();
        let mut frame = corpus[which.index(corpus.len())].octets.clone();
        for (place, value) in changes {
            let place = place.index(frame.len());
            frame[place] = value;
        }
        if is_cut {
            frame.truncate(cut.index(frame.len() + 1));
        }
        frame.extend(vec![0x5a; grown]);
        for wire_length in [0, frame.len(), frame.len() + missing] {
            check_everywhere(&frame, wire_length)?;
        }
        read_everything(&frame);
    }
}

#[test]
fn frames_of_the_corpus_hold_together_at_every_cut() -> Result<(), TestCaseError> {
    for built in corpus() {
        for length in 0..=built.octets.len() {
            for wire_length in [0, length, built.octets.len(), built.octets.len() + 5] {
                let frame = &built.octets[..length];
                let seen = dissect(built.link, frame, wire_length);
                check(frame, wire_length, &seen)?;
            }
        }
    }
    Ok(())
}

#[test]
fn no_frame_is_too_strange() -> Result<(), TestCaseError> {
    for octet in [0x00, 0x45, 0x60, 0x81, 0xff] {
        for length in [0, 1, 13, 14, 60, 1514, 70_000] {
            let frame = vec![octet; length];
            check_everywhere(&frame, length)?;
            read_everything(&frame);
        }
    }
    // As many tags as 70,000 bytes hold.
    let tags = [0x81, 0x00].repeat(35_000);
    check_everywhere(&tags, tags.len())
}
