//! Any bytes as a frame of any link type, captured whole or in part: no panic, the short cut for common
//! frames reports the same as the general walk, everything reported lies within the frame, and a capture that kept
//! less of a good frame makes it no worse than cut by the capture.

use rxlane_wire::dissect::dissect_general;
use rxlane_wire::error::Rule;
use rxlane_wire::{Class, Dissection, Link, dissect};

const LINKS: [Link; 6] =
    [Link::Ethernet, Link::LinuxCooked, Link::LinuxCooked2, Link::Ip, Link::Ppp, Link::PppOverEthernet];

/// All that is reported, for comparison.
fn fields(seen: &Dissection, frame: &[u8]) -> impl PartialEq + std::fmt::Debug + use<> {
    let headers = (seen.stack(), seen.error().copied(), seen.pppoe(), seen.ppp_protocol());
    let tags = (seen.tags(frame).collect::<Vec<_>>(), seen.tpids(), seen.tag_bytes(frame).to_vec());
    let ip = (seen.flow().copied(), seen.fragment(), seen.has_ipv4_options(), seen.extensions());
    let addresses = (seen.home_address(frame), seen.routing2_destination(frame));
    (headers, tags, ip, addresses, seen.is_snap(), seen.network_offset(), seen.transport_offset())
}

fn lies_within(seen: &Dissection, frame: &[u8]) {
    assert!(seen.network_offset().is_none_or(|at| at < frame.len()));
    assert!(seen.transport_offset().is_none_or(|at| at <= frame.len()));
    assert!(seen.tags(frame).count() <= usize::from(seen.stack().tags()));
    assert!(seen.stack().last().is_some() || seen.error().is_some());
    if let Some(error) = seen.error() {
        assert!(error.offset as usize <= frame.len(), "{error}");
        assert!(!error.to_string().is_empty() && !error.reason().to_string().is_empty());
    }
    if let Some(flow) = seen.flow() {
        assert_eq!(flow.reversed().reversed(), *flow);
        assert_eq!(flow.bidirectional(), flow.reversed().bidirectional());
        assert_eq!(flow.has_ports(), flow.source_port().is_some());
    }
    let headers: usize = seen.extension_headers(frame).map(|header| header.bytes.len()).sum();
    assert!(headers <= frame.len());
}

pub fn run(bytes: &[u8]) {
    let Some((&[link, missing_high, missing_low, cut], frame)) = bytes.split_first_chunk() else { return };
    let link = LINKS[usize::from(link) % LINKS.len()];
    let wire_length = frame.len() + usize::from(u16::from_be_bytes([missing_high, missing_low]));
    for wire_length in [frame.len(), wire_length] {
        let seen = dissect(link, frame, wire_length);
        assert_eq!(fields(&seen, frame), fields(&dissect_general(link, frame, wire_length), frame));
        lies_within(&seen, frame);
        let kept = &frame[..frame.len().min(usize::from(cut))];
        let of_part = dissect(link, kept, wire_length);
        lies_within(&of_part, kept);
        if let (None, Some(error)) = (seen.error(), of_part.error()) {
            assert!(error.rule == Rule::CaptureCut && error.class() == Class::Truncated, "{link:?}: {error}");
        }
    }
}
