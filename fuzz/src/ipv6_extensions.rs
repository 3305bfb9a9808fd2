//! Any bytes as a chain of extension headers: each header by itself is written again byte for byte, its
//! options and addresses are read without panic, and the whole chain behind an IPv6 header is walked to an
//! end that lies within the packet.

use rxlane_wire::emit::{Authentication, DestinationOptions, Emit, Fragment, HopByHop, Ipv6, Routing};
use rxlane_wire::extension::{Header, Kind};
use rxlane_wire::{IpProtocol, Link, dissect};

fn written(header: &dyn Emit) -> Vec<u8> {
    let mut buffer = vec![0; header.length()];
    assert_eq!(header.emit(&mut buffer), Ok(buffer.len()));
    buffer
}

fn alone(kind: Kind, bytes: &[u8]) {
    let Ok(header) = Header::parse(kind, bytes, bytes.len()) else { return };
    let options: usize = header.options().map_while(Result::ok).map(|option| option.value.len() + 2).sum();
    assert!(options + 2 <= header.bytes.len());
    let _ = (header.check_routing(), header.check_options(), header.jumbo_payload());
    let _ = (header.home_address(), header.routing2_destination(), header.fragment());
    let again = match kind {
        Kind::HopByHop => HopByHop::parse(bytes).map(|header| written(&header)),
        Kind::Routing => Routing::parse(bytes).map(|header| written(&header)),
        Kind::DestinationOptions => DestinationOptions::parse(bytes).map(|header| written(&header)),
        Kind::Authentication => Authentication::parse(bytes).map(|header| written(&header)),
        // Reserved bits are not kept.
        Kind::Fragment => {
            let again = Fragment::parse(bytes).map(|header| written(&header));
            assert_eq!(Fragment::parse(bytes), again.and_then(|bytes| Fragment::parse(&bytes)));
            return;
        }
    };
    if let Ok(again) = again {
        // The reserved field of an authentication header, bytes 2 and 3, is not kept.
        let compared = if kind == Kind::Authentication { 2 } else { 4 };
        assert_eq!(header.bytes[..compared], again[..compared]);
        assert_eq!(header.bytes[4..], again[4..]);
        assert_eq!(header.bytes.len(), again.len());
    }
}

pub fn run(bytes: &[u8]) {
    let Some((&next, chain)) = bytes.split_first() else { return };
    let kinds =
        [Kind::HopByHop, Kind::Routing, Kind::Fragment, Kind::DestinationOptions, Kind::Authentication];
    for kind in kinds {
        alone(kind, chain);
    }
    let next_header = IpProtocol(next);
    for payload_length in [u16::try_from(chain.len()).unwrap_or(0), 0] {
        let header = Ipv6 {
            traffic_class: 0,
            flow_label: 0,
            payload_length,
            next_header,
            hop_limit: 64,
            source: 1u128.into(),
            destination: 2u128.into(),
        };
        let packet = [written(&header), chain.to_vec()].concat();
        let seen = dissect(Link::Ip, &packet, packet.len());
        let walked: usize = seen.extension_headers(&packet).map(|header| header.bytes.len()).sum();
        assert!(40 + walked <= packet.len());
        assert_eq!(seen.network_offset(), Some(0));
        if seen.error().is_none()
            && let Some(at) = seen.transport_offset()
        {
            assert_eq!(at, 40 + walked, "{}", seen.stack());
        }
    }
}
