//! Frames for a router to forward.

use super::super::Error;
use crate::frames::Frames;
use std::net::Ipv4Addr;
use wire::emit::{Emit, Ethernet, Ipv4, Udp, checksum};
use wire::ethernet::{EtherType, MacAddress};
use wire::ip::IpProtocol;

/// Octets of payload: so few that frames and not octets are the limit. Without tags they make a frame of least size.
pub const PAYLOAD: usize = 18;
/// Octets of both MAC addresses, behind which a tag stands (IEEE 802.1Q clause 9).
const ADDRESSES: usize = 12;

/// A frame of each flow, to the router's MAC address: from the first of the sources and those that follow it, tagged with a VID
/// where there is one.
pub fn frames(
    router: MacAddress,
    first: Ipv4Addr,
    to: Ipv4Addr,
    flows: u16,
    vid: Option<u16>,
) -> Result<Frames, Error> {
    let mut frames = Frames::new();
    for flow in 0..flows {
        let source = Ipv4Addr::from(u32::from(first) + u32::from(flow));
        // Behind all ports that have a meaning.
        let port = 1024_u16.saturating_add(flow);
        let frame = frame(router, (source, port), to);
        let mut frame = frame.map_err(|error| Error::Failed(format!("a frame cannot be made: {error}")))?;
        if let Some(vid) = vid {
            let [high, low] = vid.to_be_bytes();
            let [tpid_high, tpid_low] = EtherType::VLAN.0.to_be_bytes();
            frame.splice(ADDRESSES..ADDRESSES, [tpid_high, tpid_low, high, low]);
        }
        frames.push(&frame);
    }
    Ok(frames)
}

fn frame(
    router: MacAddress,
    (source, source_port): (Ipv4Addr, u16),
    destination: Ipv4Addr,
) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let length = 20 + 8 + PAYLOAD;
    let mut octets = vec![0; 14 + length];
    let own = MacAddress([2, 0, 0, 0, 0, 1]);
    let ethernet = Ethernet { destination: router, source: own, ethertype: EtherType::IPV4 };
    let ip = Ipv4::new(IpProtocol::UDP, source, destination, u16::try_from(length)?);
    let length = u16::try_from(8 + PAYLOAD)?;
    // Discard (RFC 863).
    let udp = Udp { source_port, destination_port: 9, length, checksum: 0 };
    let headers: [&dyn Emit; 3] = [&ethernet, &ip, &udp];
    wire::emit::headers(&headers, &mut octets)?;
    let datagram = octets.get_mut(14 + 20..).unwrap_or_default();
    checksum::fill(source.into(), destination.into(), IpProtocol::UDP, datagram)?;
    Ok(octets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Link, dissect};

    #[test]
    fn frames_are_sound_and_each_is_a_flow() {
        let (router, from, to) =
            (MacAddress([2, 0, 0, 0, 0, 9]), Ipv4Addr::new(100, 64, 16, 0), Ipv4Addr::new(198, 18, 0, 2));
        for (vid, length) in [(None, 60), (Some(10), 64)] {
            let frames = frames(router, from, to, 500, vid).expect("frames");
            let mut flows: Vec<_> = frames
                .iter()
                .map(|frame| {
                    assert_eq!(frame.len(), length);
                    format!("{:?}", dissect(Link::Ethernet, frame, frame.len()).flow().expect("a flow"))
                })
                .collect();
            flows.sort();
            flows.dedup();
            assert_eq!(flows.len(), 500);
        }
    }
}
