//! Frames for a router to forward.

use super::super::Error;
use crate::frames::Frames;
use std::net::Ipv4Addr;
use wire::emit::{Emit, Ethernet, Ipv4, Udp, checksum};
use wire::ethernet::{EtherType, MacAddress};
use wire::ip::IpProtocol;

/// Bytes of payload: so few that frames and not bytes are the limit. Without tags they make a frame of the least size.
pub const PAYLOAD: usize = 18;
/// Who sends on the line.
pub const SENDER: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
/// Bytes of both MAC addresses, behind which a tag stands (IEEE 802.1Q clause 9), and of the IP packet.
const ADDRESSES: usize = 12;
const PACKET: usize = 20 + 8 + PAYLOAD;

/// What stands between the MAC addresses and the IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encapsulation {
    Plain,
    Vlan(u16),
    Session(u16),
}

/// A frame of each flow, to the router's MAC address: from the first of the sources and those that follow it.
pub fn frames(
    router: MacAddress,
    first: Ipv4Addr,
    to: Ipv4Addr,
    flows: u16,
    encapsulation: Encapsulation,
) -> Result<Frames, Error> {
    let mut frames = Frames::new();
    for flow in 0..flows {
        let source = Ipv4Addr::from(u32::from(first) + u32::from(flow));
        // Behind all ports that have a meaning.
        let port = 1024_u16.saturating_add(flow);
        let frame = frame(router, (source, port), to);
        let mut frame = frame.map_err(|error| Error::Failed(format!("a frame cannot be made: {error}")))?;
        match encapsulation {
            Encapsulation::Plain => {}
            Encapsulation::Vlan(vid) => {
                let tag = [EtherType::VLAN.0.to_be_bytes(), vid.to_be_bytes()].concat();
                frame.splice(ADDRESSES..ADDRESSES, tag);
            }
            Encapsulation::Session(id) => {
                // RFC 2516 section 4: version and type 1, code 0, session, length; then PPP, IPv4.
                let length = PACKET as u16 + 2;
                let words = [EtherType::PPPOE_SESSION.0, 0x1100, id, length, 0x0021];
                frame.splice(ADDRESSES..ADDRESSES + 2, words.into_iter().flat_map(u16::to_be_bytes));
            }
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
    let mut bytes = vec![0; 14 + PACKET];
    let ethernet = Ethernet { destination: router, source: SENDER, ethertype: EtherType::IPV4 };
    let ip = Ipv4::new(IpProtocol::UDP, source, destination, u16::try_from(PACKET)?);
    let length = u16::try_from(8 + PAYLOAD)?;
    // Discard (RFC 863).
    let udp = Udp { source_port, destination_port: 9, length, checksum: 0 };
    let headers: [&dyn Emit; 3] = [&ethernet, &ip, &udp];
    wire::emit::headers(&headers, &mut bytes)?;
    let datagram = bytes.get_mut(14 + 20..).unwrap_or_default();
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
        for (encapsulation, length) in
            [(Encapsulation::Plain, 60), (Encapsulation::Vlan(10), 64), (Encapsulation::Session(1), 68)]
        {
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
            assert_eq!(flows.len(), 500, "{encapsulation:?}");
        }
    }
}
