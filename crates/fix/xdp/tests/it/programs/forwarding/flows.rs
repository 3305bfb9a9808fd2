//! Flows of every kind, and their packets.

use rxlane_xdp::forward::{Flow, Key, NextHop, Session, Tag};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4};
use wire::IpProtocol;
use wire::emit::checksum::{fill, internet};
use wire::ethernet::MacAddress;

/// The interface by which all packets arrive: the loopback interface of any network namespace.
pub const PORT: u32 = 1;
pub const GENERATION: u32 = 7;
pub const OWN: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
pub const PEER: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);
pub const TCP: u8 = 6;
pub const UDP: u8 = 17;

/// Headers in front of IP.
#[derive(Clone, Copy, Debug)]
pub struct Encapsulation {
    pub tags: [Option<Tag>; 2],
    pub session: Option<u16>,
}

/// None, a tag, two tags; each without PPPoE and with it.
pub fn encapsulations() -> Vec<Encapsulation> {
    let (inner, outer) = (Tag { tpid: 0x8100, vid: 35 }, Tag { tpid: 0x88a8, vid: 0xfff });
    let tags = [[None, None], [Some(inner), None], [Some(outer), Some(inner)]];
    let sessions = [None, Some(0x1234)];
    sessions.into_iter().flat_map(|session| tags.map(|tags| Encapsulation { tags, session })).collect()
}

/// Next hops: one for each encapsulation, then one without a port, and one for short packets alone.
pub fn next_hops() -> Vec<Option<NextHop>> {
    let next = |encapsulation: Encapsulation| NextHop {
        port: 3,
        largest: 1500,
        source: MacAddress([2, 0, 0, 0, 1, 1]),
        destination: MacAddress([2, 0, 0, 0, 1, 2]),
        tags: encapsulation.tags,
        session: encapsulation.session,
    };
    let mut next_hops: Vec<_> = encapsulations().into_iter().map(|one| Some(next(one))).collect();
    let plain = next(Encapsulation { tags: [None; 2], session: None });
    next_hops.extend([None, Some(NextHop { port: 4, ..plain }), Some(NextHop { largest: 100, ..plain })]);
    next_hops
}

/// Places in [`next_hops`].
pub const MISSING: u32 = 6;
pub const WITHOUT_PORT: u32 = 7;
pub const SHORT: u32 = 8;

pub fn v4(last: u8, port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, last), port)
}

fn v6(last: u16, port: u16) -> SocketAddr {
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last), port).into()
}

/// A flow that leads to the first next hop, untranslated.
pub fn flow() -> Flow {
    Flow { next_hop: 0, generation: GENERATION, own: OWN, translated: None, verified: false, limit: 0 }
}

pub fn key(encapsulation: Encapsulation, protocol: u8, source: SocketAddr, destination: SocketAddr) -> Key {
    let session = encapsulation.session.map(|id| Session { id, peer: PEER });
    Key { port: PORT, tags: encapsulation.tags, session, protocol, source, destination }
}

/// Every encapsulation on both sides, every kind of translation, both IP versions, both protocols; every second one
/// verifies checksums.
pub fn every_kind() -> Vec<(Key, Flow)> {
    let mut flows: Vec<(Key, Flow)> = Vec::new();
    for encapsulation in encapsulations() {
        for next_hop in 0..6 {
            for protocol in [TCP, UDP] {
                let port = 1000 + flows.len() as u16;
                let (from, to) = (v4(1, port), v4(2, 443));
                let (source, destination) = (v4(77, 65_000), SocketAddrV4::new([10, 255, 0, 3].into(), 8443));
                for translated in
                    [None, Some((source, to)), Some((from, destination)), Some((source, destination))]
                {
                    let from = SocketAddrV4::new(*from.ip(), port + flows.len() as u16);
                    // Where the source stays it is the key's own.
                    let translated =
                        translated.map(|(at, to)| (if at == source { source } else { from }, to));
                    let verified = flows.len().is_multiple_of(2);
                    let flow = Flow { next_hop, translated, verified, ..flow() };
                    flows.push((key(encapsulation, protocol, from.into(), to.into()), flow));
                }
                let verified = flows.len().is_multiple_of(2);
                flows.push((
                    key(encapsulation, protocol, v6(1, port), v6(2, 443)),
                    Flow { next_hop, verified, ..flow() },
                ));
            }
        }
    }
    flows
}

/// A packet of a flow with so many bytes behind the transport header, without Ethernet's padding.
pub fn frame(key: &Key, payload: &[u8]) -> Vec<u8> {
    let peer = key.session.map_or(PEER, |session| session.peer);
    let mut frame = [OWN.0, peer.0].concat();
    for tag in key.tags.iter().flatten() {
        // With priority and DEI, which no key has.
        frame.extend([tag.tpid, tag.vid | 0xb000].map(u16::to_be_bytes).concat());
    }
    let packet = packet(key, payload);
    match key.session {
        Some(session) => {
            let ppp = if key.is_ipv6() { 0x57 } else { 0x21 };
            let fields = [0x8864, 0x1100, session.id, packet.len() as u16 + 2, ppp];
            frame.extend(fields.map(u16::to_be_bytes).concat());
        }
        None => frame.extend(if key.is_ipv6() { [0x86, 0xdd] } else { [8, 0] }),
    }
    frame.extend(packet);
    frame
}

/// Where its IP packet begins.
pub fn packet_at(key: &Key) -> usize {
    14 + 4 * key.tags.iter().flatten().count() + if key.session.is_some() { 8 } else { 0 }
}

fn packet(key: &Key, payload: &[u8]) -> Vec<u8> {
    let mut transport = [key.source.port(), key.destination.port()].map(u16::to_be_bytes).concat();
    match key.protocol {
        TCP => transport.extend([0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x18, 1, 0, 0, 0, 0, 0]),
        _ => transport.extend([(payload.len() as u16 + 8).to_be_bytes(), [0, 0]].concat()),
    }
    transport.extend(payload);
    let (source, destination) = (key.source.ip(), key.destination.ip());
    fill(source, destination, IpProtocol(key.protocol), &mut transport).expect("a checksum");
    let length = (transport.len() as u16).to_be_bytes();
    let mut ip = match (key.source, key.destination) {
        (SocketAddr::V4(source), SocketAddr::V4(destination)) => {
            let total = (transport.len() as u16 + 20).to_be_bytes();
            let mut ip = vec![0x45, 0x10, total[0], total[1], 0x12, 0x34, 0x40, 0, 64, key.protocol, 0, 0];
            ip.extend([source.ip().octets(), destination.ip().octets()].concat());
            let checksum = internet(&ip).to_be_bytes();
            ip[10..12].copy_from_slice(&checksum);
            ip
        }
        (SocketAddr::V6(source), SocketAddr::V6(destination)) => {
            let mut ip = vec![0x60, 1, 2, 3, length[0], length[1], key.protocol, 64];
            ip.extend([source.ip().octets(), destination.ip().octets()].concat());
            ip
        }
        _ => panic!("two IP versions"),
    };
    ip.extend(transport);
    ip
}
