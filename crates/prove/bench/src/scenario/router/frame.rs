//! Frames for a router to forward.

use super::super::Error;
use crate::frames::Frames;
use std::net::Ipv4Addr;
use wire::IpVersion;
use wire::emit::{Emit, Encapsulation, Ipv4, Udp, checksum};
use wire::ethernet::MacAddress;
use wire::ip::IpProtocol;

/// Bytes of payload: so few that frames and not bytes are the limit. Without tags they make a frame of the least size.
pub const PAYLOAD: usize = 18;
/// Who sends on the line.
pub const SENDER: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
/// Bytes of the IP packet.
const PACKET: usize = 20 + 8 + PAYLOAD;

/// A frame of each flow, to the router's MAC address: from the first of the sources and those that follow it.
pub fn frames(
    router: MacAddress,
    first: Ipv4Addr,
    to: Ipv4Addr,
    flows: u16,
    encapsulation: &str,
) -> Result<Frames, Error> {
    let mut frames = Frames::new();
    for flow in 0..flows {
        let source = Ipv4Addr::from(u32::from(first) + u32::from(flow));
        // Behind all ports that have a meaning.
        let port = 1024_u16.saturating_add(flow);
        let frame = frame(router, (source, port), to, encapsulation);
        frames.push(&frame.map_err(|error| Error::Failed(format!("a frame cannot be made: {error}")))?);
    }
    Ok(frames)
}

fn frame(
    router: MacAddress,
    (source, source_port): (Ipv4Addr, u16),
    destination: Ipv4Addr,
    encapsulation: &str,
) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let encapsulation: Encapsulation = encapsulation.parse()?;
    let mut bytes = vec![0; encapsulation.length() + PACKET];
    let at = encapsulation.emit(router, SENDER, IpVersion::V4, PACKET, &mut bytes)?;
    let packet = bytes.get_mut(at..).unwrap_or_default();
    let ip = Ipv4::new(IpProtocol::UDP, source, destination, u16::try_from(PACKET)?);
    let length = u16::try_from(8 + PAYLOAD)?;
    // Discard (RFC 863).
    let udp = Udp { source_port, destination_port: 9, length, checksum: 0 };
    let headers: [&dyn Emit; 2] = [&ip, &udp];
    wire::emit::headers(&headers, packet)?;
    let datagram = packet.get_mut(20..).unwrap_or_default();
    checksum::fill(source.into(), destination.into(), IpProtocol::UDP, datagram)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Link, dissect};

    #[test]
    fn frames_are_sound_and_each_is_a_flow() {
        let (router, from, to) =
            (MacAddress([2, 0, 0, 0, 0, 9]), Ipv4Addr::new(100, 64, 16, 0), Ipv4Addr::new(198, 18, 0, 2));
        for (encapsulation, length) in [("none", 60), ("q:10", 64), ("pppoe:1", 68)] {
            let frames = frames(router, from, to, 500, encapsulation).expect("frames");
            let mut flows: Vec<_> = frames
                .iter()
                .map(|frame| {
                    assert_eq!(frame.len(), length);
                    format!("{:?}", dissect(Link::Ethernet, frame, frame.len()).flow().expect("a flow"))
                })
                .collect();
            flows.sort();
            flows.dedup();
            assert_eq!(flows.len(), 500, "{encapsulation}");
        }
    }
}
