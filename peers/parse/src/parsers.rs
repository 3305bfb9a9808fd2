//! One function a library: from a frame to a digest of its addresses and ports, `None` where the library refuses
//! the frame.
//!
//! No peer knows PPPoE, and smoltcp knows no VLAN tags either: for those frames the headers before IP are walked
//! by [`inner`], which checks nothing but that the bytes are there, and the peer starts at the IP header. That
//! favours the peers: rxlane checks the PPPoE version, code, length and protocol field.

use rxlane_wire::{FlowKey, Link, dissect, flow_key};

/// Reads one frame.
pub type Parser = fn(&[u8]) -> Option<u32>;

/// All bytes of the 5-tuple that are addresses or ports, in the order in which they stand on the wire, mixed
/// into 32 bits. The same for every library, so that each has to produce every byte.
#[inline(always)]
fn digest(source: &[u8], destination: &[u8], ports: [u16; 2]) -> u32 {
    let word = |acc: u32, word: &[u8; 4]| acc.rotate_left(5) ^ u32::from_be_bytes(*word);
    let (source, _) = source.as_chunks();
    let (destination, _) = destination.as_chunks();
    let acc = source.iter().chain(destination).fold(0, word);
    acc.rotate_left(5) ^ (u32::from(ports[0]) << 16 | u32::from(ports[1]))
}

#[inline(always)]
fn digest_of(flow: &FlowKey) -> Option<u32> {
    let (words, _) = flow.addresses_and_ports().as_chunks();
    flow.has_ports().then(|| {
        words.iter().fold(0u32, |acc, word: &[u8; 4]| acc.rotate_left(5) ^ u32::from_be_bytes(*word))
    })
}

/// rxlane: the flow key, everything from the MAC header on and every length checked.
pub fn rxlane(frame: &[u8]) -> Option<u32> {
    digest_of(&flow_key(Link::Ethernet, frame, frame.len()).ok()??)
}

/// rxlane: the whole dissection left in memory (flow key, list of headers, tags, session, offsets), and the flow
/// key digested.
pub fn rxlane_dissect(frame: &[u8]) -> Option<u32> {
    let seen = dissect(Link::Ethernet, frame, frame.len());
    std::hint::black_box(&seen);
    digest_of(seen.flow().filter(|_| seen.error().is_none())?)
}

/// What stands under tags and PPPoE: EtherType and packet.
#[inline(always)]
fn inner(frame: &[u8]) -> Option<(u16, &[u8])> {
    let mut at = 12;
    loop {
        let ethertype = u16::from_be_bytes(*frame.get(at..)?.first_chunk()?);
        match ethertype {
            0x8100 | 0x88a8 => at += 4,
            0x8864 => {
                let protocol = u16::from_be_bytes(*frame.get(at + 8..)?.first_chunk()?);
                let ethertype = if protocol == 0x21 { 0x0800 } else { 0x86dd };
                return Some((ethertype, frame.get(at + 10..)?));
            }
            other => return Some((other, frame.get(at + 2..)?)),
        }
    }
}

#[inline(always)]
fn has_pppoe(frame: &[u8]) -> bool {
    let mut at = 12;
    loop {
        match frame.get(at..).and_then(|rest| rest.first_chunk()).map(|bytes| u16::from_be_bytes(*bytes)) {
            Some(0x8100 | 0x88a8) => at += 4,
            Some(0x8864) => return true,
            _ => return false,
        }
    }
}

/// etherparse: by itself where it can, behind [`inner`] where there is PPPoE.
pub fn etherparse(frame: &[u8]) -> Option<u32> {
    use etherparse::{NetSlice, SlicedPacket, TransportSlice};
    let packet = if has_pppoe(frame) {
        SlicedPacket::from_ip(inner(frame)?.1).ok()?
    } else {
        SlicedPacket::from_ethernet(frame).ok()?
    };
    let ports = match packet.transport.as_ref()? {
        TransportSlice::Tcp(tcp) => [tcp.source_port(), tcp.destination_port()],
        TransportSlice::Udp(udp) => [udp.source_port(), udp.destination_port()],
        _ => return None,
    };
    match packet.net.as_ref()? {
        NetSlice::Ipv4(ip) => Some(digest(&ip.header().source(), &ip.header().destination(), ports)),
        NetSlice::Ipv6(ip) => Some(digest(&ip.header().source(), &ip.header().destination(), ports)),
        NetSlice::Arp(_) => None,
    }
}

/// smoltcp: from the IP header on, behind [`inner`].
pub fn smoltcp(frame: &[u8]) -> Option<u32> {
    use smoltcp::wire::{IpProtocol, Ipv4Packet, Ipv6Packet, TcpPacket, UdpPacket};
    let ports = |protocol, bytes| match protocol {
        IpProtocol::Tcp => {
            let tcp = TcpPacket::new_checked(bytes).ok()?;
            Some([tcp.src_port(), tcp.dst_port()])
        }
        IpProtocol::Udp => {
            let udp = UdpPacket::new_checked(bytes).ok()?;
            Some([udp.src_port(), udp.dst_port()])
        }
        _ => None,
    };
    let (ethertype, packet) = inner(frame)?;
    if ethertype == 0x0800 {
        let ip = Ipv4Packet::new_checked(packet).ok()?;
        let ports = ports(ip.next_header(), ip.payload())?;
        Some(digest(&ip.src_addr().octets(), &ip.dst_addr().octets(), ports))
    } else {
        let ip = Ipv6Packet::new_checked(packet).ok()?;
        let ports = ports(ip.next_header(), ip.payload())?;
        Some(digest(&ip.src_addr().octets(), &ip.dst_addr().octets(), ports))
    }
}

/// pnet: its own Ethernet and VLAN views, then PPPoE by hand. It checks that a header's least bytes are
/// there, and no length.
pub fn pnet(frame: &[u8]) -> Option<u32> {
    use pnet_packet::Packet;
    use pnet_packet::ethernet::EthernetPacket;
    use pnet_packet::ipv4::Ipv4Packet;
    use pnet_packet::ipv6::Ipv6Packet;
    use pnet_packet::tcp::TcpPacket;
    use pnet_packet::udp::UdpPacket;
    use pnet_packet::vlan::VlanPacket;
    let ports = |protocol: u8, bytes| match protocol {
        6 => TcpPacket::new(bytes).map(|tcp| [tcp.get_source(), tcp.get_destination()]),
        17 => UdpPacket::new(bytes).map(|udp| [udp.get_source(), udp.get_destination()]),
        _ => None,
    };
    let mut ethertype = EthernetPacket::new(frame)?.get_ethertype().0;
    let mut rest = frame.get(14..)?;
    while let 0x8100 | 0x88a8 = ethertype {
        ethertype = VlanPacket::new(rest)?.get_ethertype().0;
        rest = rest.get(4..)?;
    }
    if ethertype == 0x8864 {
        ethertype = if rest.get(6..8)? == [0, 0x21] { 0x0800 } else { 0x86dd };
        rest = rest.get(8..)?;
    }
    if ethertype == 0x0800 {
        let ip = Ipv4Packet::new(rest)?;
        let ports = ports(ip.get_next_level_protocol().0, ip.payload())?;
        Some(digest(&ip.get_source().octets(), &ip.get_destination().octets(), ports))
    } else {
        let ip = Ipv6Packet::new(rest)?;
        let ports = ports(ip.get_next_header().0, ip.payload())?;
        Some(digest(&ip.get_source().octets(), &ip.get_destination().octets(), ports))
    }
}
