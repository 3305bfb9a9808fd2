//! A packet of addresses and ports as a frame, so that a device model sees what it would see on the wire.

use anyhow::{anyhow, bail};
use rss::Packet;
use std::net::{IpAddr, Ipv6Addr};
use wire::emit::{self, DestinationOptions, Emit, Encapsulation, Routing, home_address_option};
use wire::ethernet::MacAddress;
use wire::{FlowKey, IpProtocol, IpVersion, Link, dissect};

/// Both addresses are locally administered.
const TO: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const FROM: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);
/// Headers at most: Ethernet, IPv6, routing, destination options, fragment, TCP with room to spare.
const ROOM: usize = 256;

/// An untagged frame that holds `packet`. A fragment with ports is a first one, without them a later one.
/// Errors: a protocol of which no packet can be made, such as the number of an extension header.
pub fn of(packet: &Packet) -> anyhow::Result<Vec<u8>> {
    let behind = match (packet.fragment, packet.flow.has_ports()) {
        (true, false) => vec![0; 16],
        _ => transport(packet)?,
    };
    let mut headers = Vec::new();
    match (packet.flow.source(), packet.flow.destination()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let header = emit::Ipv4 {
                identification: 1,
                dont_fragment: false,
                more_fragments: packet.fragment && packet.flow.has_ports(),
                fragment_offset: u16::from(packet.fragment && !packet.flow.has_ports()),
                ..emit::Ipv4::new(
                    IpProtocol(packet.flow.protocol()),
                    source,
                    destination,
                    (20 + behind.len()) as u16,
                )
            };
            push(&mut headers, &header)?;
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            ipv6(&mut headers, packet, source, destination, behind.len())?;
        }
        _ => bail!("the addresses are of different IP versions"),
    }
    headers.extend(behind);
    let mut frame = vec![0; ROOM];
    let at = Encapsulation::NONE.emit(TO, FROM, packet.flow.version(), headers.len(), &mut frame)?;
    frame.truncate(at);
    frame.extend(headers);
    let seen = dissect(Link::Ethernet, &frame, frame.len());
    let same = |flow: &FlowKey| {
        flow.addresses() == packet.flow.addresses() && flow.protocol() == packet.flow.protocol()
    };
    match seen.flow().filter(|_| seen.error().is_none()) {
        Some(flow) if same(flow) => Ok(frame),
        _ => Err(anyhow!(
            "--nic looks at whole frames, and of protocol {} over {} none can be made",
            packet.flow.protocol(),
            if packet.flow.version() == IpVersion::V4 { "IPv4" } else { "IPv6" }
        )),
    }
}

fn push(headers: &mut Vec<u8>, header: &dyn Emit) -> anyhow::Result<()> {
    let mut bytes = vec![0; header.length()];
    header.emit(&mut bytes)?;
    headers.extend(bytes);
    Ok(())
}

/// Headers in the order of RFC 8200 section 4.1, the home address behind the routing header (RFC 6275
/// section 6.3).
fn ipv6(
    headers: &mut Vec<u8>,
    packet: &Packet,
    source: Ipv6Addr,
    destination: Ipv6Addr,
    behind: usize,
) -> anyhow::Result<()> {
    let transport = IpProtocol(packet.flow.protocol());
    let before_fragment = if packet.fragment { IpProtocol::FRAGMENT } else { transport };
    let before_options = match packet.home_address {
        Some(_) => IpProtocol::DESTINATION_OPTIONS,
        None => before_fragment,
    };
    let next_header =
        if packet.routing2_destination.is_some() { IpProtocol::ROUTING } else { before_options };
    let mut extensions = Vec::new();
    if let Some(address) = packet.routing2_destination {
        // RFC 6275 section 6.4.1: type 2, one segment left, four reserved bytes, the home address.
        let data = [[0; 4].as_slice(), &address].concat();
        let routing = Routing { next_header: before_options, routing_type: 2, segments_left: 1, data: &data };
        push(&mut extensions, &routing)?;
    }
    if let Some(address) = packet.home_address {
        let options = home_address_option(address.into());
        push(&mut extensions, &DestinationOptions { next_header: before_fragment, options: &options })?;
    }
    if packet.fragment {
        let more = packet.flow.has_ports();
        let fragment =
            emit::Fragment { next_header: transport, offset: u16::from(!more), more, identification: 1 };
        push(&mut extensions, &fragment)?;
    }
    let payload_length = (extensions.len() + behind) as u16;
    let header = emit::Ipv6 {
        traffic_class: 0,
        flow_label: 0,
        payload_length,
        next_header,
        hop_limit: 64,
        source,
        destination,
    };
    push(headers, &header)?;
    headers.extend(extensions);
    Ok(())
}

/// The transport header, filled up to a multiple of eight bytes as a first fragment has to be.
fn transport(packet: &Packet) -> anyhow::Result<Vec<u8>> {
    let ports = packet.flow.source_port().zip(packet.flow.destination_port());
    let mut bytes = Vec::new();
    match (IpProtocol(packet.flow.protocol()), ports) {
        (IpProtocol::TCP, Some((source_port, destination_port))) => {
            let tcp =
                emit::Tcp { source_port, destination_port, flags: emit::Tcp::ACK, ..emit::Tcp::default() };
            push(&mut bytes, &tcp)?;
        }
        (IpProtocol::UDP, Some((source_port, destination_port))) => {
            push(&mut bytes, &emit::Udp { source_port, destination_port, length: 8, checksum: 0 })?;
        }
        (_, Some((source, destination))) => {
            // SCTP: a common header and a COOKIE ACK chunk (RFC 9260 sections 3.1 and 3.3.12).
            bytes.extend(source.to_be_bytes());
            bytes.extend(destination.to_be_bytes());
            bytes.extend([0, 0, 0, 1, 0, 0, 0, 0, 11, 0, 0, 4]);
        }
        // An authentication header (RFC 4302 section 2) of six words over nothing.
        (IpProtocol::AH, None) => bytes.extend([[59, 4, 0, 0, 0, 0, 0, 1].as_slice(), &[0; 16]].concat()),
        _ => bytes.resize(16, 0),
    }
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(addresses: [&str; 2], protocol: u8, ports: bool) -> Packet {
        let [source, destination] = addresses.map(|address| address.parse().unwrap());
        let flow = match ports {
            true => FlowKey::with_ports(source, 2794, destination, 1766, protocol),
            false => FlowKey::without_ports(source, destination, protocol),
        };
        Packet::of(flow.unwrap())
    }

    #[test]
    fn frames_hold_the_packet() {
        for addresses in [["192.0.2.1", "198.51.100.1"], ["2001:db8::1", "2001:db8::2"]] {
            for (protocol, ports) in
                [(6, true), (17, true), (132, true), (1, false), (50, false), (58, false)]
            {
                let whole = packet(addresses, protocol, ports);
                of(&whole).unwrap_or_else(|error| panic!("{addresses:?} {protocol}: {error}"));
                let fragment = Packet { fragment: true, ..whole };
                let frame = of(&fragment).unwrap_or_else(|error| panic!("fragment {protocol}: {error}"));
                let seen = dissect(Link::Ethernet, &frame, frame.len());
                assert_ne!(seen.shape().fragment(), wire::Fragment::None, "{protocol}");
            }
        }
        assert!(of(&packet(["2001:db8::1", "2001:db8::2"], 43, false)).is_err());
    }

    #[test]
    fn addresses_of_mobile_nodes_are_found_again() {
        let mobile = Packet {
            home_address: Some([7; 16]),
            routing2_destination: Some([9; 16]),
            ..packet(["2001:db8::1", "2001:db8::2"], 6, true)
        };
        let frame = of(&mobile).unwrap();
        let seen = dissect(Link::Ethernet, &frame, frame.len());
        assert_eq!(seen.home_address(&frame), mobile.home_address);
        assert_eq!(seen.routing2_destination(&frame), mobile.routing2_destination);
    }
}
