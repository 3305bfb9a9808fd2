//! The decision of `bpf/forward.h`, in Rust: tests hold the program to it.
//!
//! A router sends a packet on with its TTL or hop limit decremented (RFC 1812 section 5.3.1, RFC 8200 section 3). It
//! replaces addresses and ports where it translates them, and corrects the checksum of TCP or UDP by what changed
//! (RFC 3022 section 4.2, RFC 1624). What arrives in front of the IP packet stays behind, and so does what follows it.
//!
//! A frame that has several reasons to stay with the kernel counts under the first of: its headers in their order (of an
//! IPv4 header: length, fragment, protocol, TTL, checksum), the flow, its place for a next hop, the daemon, the generation, the MAC
//! addresses, the next hop there, the length, the checksum of TCP or UDP, the port, the limit, the space in front.

use std::collections::{BTreeSet, HashMap};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use crate::forward::{Flow, Key, NextHop, Session, Tag};
use crate::forward_layout::{HEARTBEAT_MOST_NS, PAUSE_SHIFT, PAUSE_UNITS, Pass};
use wire::emit::checksum::{Sum, internet, is_right};
use wire::ethernet::{self, EtherType, MacAddress};
use wire::ppp::PppProtocol;
use wire::transport::{Tcp, Udp};
use wire::vlan::Tci;
use wire::{Fragment, IpProtocol, ipv4, ipv6, pppoe};

/// What the program has in maps.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    /// Installed flows, under their keys without the sender ([`Tables::insert`]).
    pub flows: HashMap<Key, (Key, Flow)>,
    /// When those that are paused were.
    pub paused: HashMap<Key, u16>,
    /// Next hops by place; behind the last there are none.
    pub next_hops: Vec<Option<NextHop>>,
    /// Places of the map of ports that have an interface.
    pub ports: BTreeSet<u32>,
    /// Rate limits by place; place 0 is none.
    pub limits: HashMap<u8, Bucket>,
    /// Generation of the flows that are valid.
    pub generation: u32,
    /// When the daemon was last heard of, nanoseconds.
    pub heartbeat_ns: u64,
    /// Bytes in front of a frame for longer headers.
    pub headroom: usize,
}

/// A token bucket.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bucket {
    /// Nanoseconds that a byte takes.
    pub ns_per_byte: u64,
    /// How far ahead of now the bucket may be full again, nanoseconds.
    pub burst_ns: u64,
    /// When it is full again.
    pub full_ns: u64,
}

impl Tables {
    /// Installs a flow, and gives the one that was there.
    pub fn insert(&mut self, key: Key, flow: Flow) -> Option<Flow> {
        self.paused.remove(&any_sender(key));
        self.flows.insert(any_sender(key), (key, flow)).map(|(_, former)| former)
    }
}

/// The time in a flow that is paused.
fn pause_unit(now_ns: u64) -> u16 {
    match (now_ns >> PAUSE_SHIFT) as u16 {
        0 => 1,
        unit => unit,
    }
}

/// A key of packets from any other end of its session.
fn any_sender(key: Key) -> Key {
    let session = key.session.map(|session| Session { peer: MacAddress::default(), ..session });
    Key { session, ..key }
}

/// What happens to a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It leaves by the port at this place, with these bytes, of which the IP packet has so many.
    Sent {
        /// Place in the map of ports.
        port: u32,
        /// From the destination MAC address on, without padding and FCS.
        frame: Vec<u8>,
        /// Bytes of the IP packet.
        packet: usize,
    },
    /// A rate limit drops it.
    Limited,
    /// It stays with the kernel, as it is.
    Passed(Pass),
}

/// Decides about a frame, from the destination MAC address on and without FCS, that arrives by the interface `port`. The
/// bucket of a limit changes with what it lets through.
pub fn forward(frame: &[u8], port: u32, tables: &mut Tables, now_ns: u64) -> Verdict {
    decide(frame, port, tables, now_ns).unwrap_or_else(Verdict::Passed)
}

fn decide(frame: &[u8], port: u32, tables: &mut Tables, now_ns: u64) -> Result<Verdict, Pass> {
    let arrived = Arrived::read(frame, port)?;
    if arrived.changes_state {
        // Whatever comes of it in conntrack, the kernel is to see what follows.
        if tables.flows.contains_key(&any_sender(arrived.key)) {
            tables.paused.insert(any_sender(arrived.key), pause_unit(now_ns));
        }
        return Err(Pass::TcpFlags);
    }
    let (key, flow) = tables.flows.get(&any_sender(arrived.key)).copied().ok_or(Pass::NoEntry)?;
    let next = *tables.next_hops.get(flow.next_hop as usize).ok_or(Pass::NoNextHop)?;
    if now_ns > tables.heartbeat_ns.saturating_add(HEARTBEAT_MOST_NS) {
        return Err(Pass::DaemonSilent);
    }
    let is_paused = |since: &u16| pause_unit(now_ns).wrapping_sub(*since) < PAUSE_UNITS;
    if flow.generation != tables.generation || tables.paused.get(&any_sender(key)).is_some_and(is_paused) {
        return Err(Pass::Stale);
    }
    let is_station = |mac: &[u8]| mac.first().is_some_and(|first| first & 1 == 0) && mac != [0; 6];
    let is_sender = key == arrived.key && frame.get(6..12).is_some_and(is_station);
    if frame.get(..6) != Some(&flow.own.0[..]) || !is_sender {
        return Err(Pass::NotAddressed);
    }
    let next = next.ok_or(Pass::NoNextHop)?;
    if arrived.packet.len() > usize::from(next.largest) {
        return Err(Pass::TooLong);
    }
    let completed = if flow.verified && !arrived.is_right() {
        Some(arrived.completed().ok_or(Pass::Checksum)?)
    } else {
        None
    };
    if !tables.ports.contains(&next.port) {
        return Err(Pass::NoNextHop);
    }
    if let Some(bucket) = tables.limits.get_mut(&flow.limit)
        && !bucket.takes(arrived.packet.len(), now_ns)
    {
        return Ok(Verdict::Limited);
    }
    let mut sent = header(&next, &arrived);
    if sent.len() > arrived.at + tables.headroom {
        return Err(Pass::NoRoom);
    }
    sent.extend(packet(&arrived, completed, flow.translated));
    Ok(Verdict::Sent { port: next.port, frame: sent, packet: arrived.packet.len() })
}

impl Bucket {
    fn takes(&mut self, bytes: usize, now_ns: u64) -> bool {
        let start = self.full_ns.max(now_ns);
        if start > now_ns.saturating_add(self.burst_ns) {
            return false;
        }
        self.full_ns = start.saturating_add(self.ns_per_byte.saturating_mul(bytes as u64));
        true
    }
}

/// A packet that could be of a flow.
struct Arrived<'a> {
    key: Key,
    /// Bytes in front of it.
    at: usize,
    /// As long as its IP header says.
    packet: &'a [u8],
    /// Bytes of its IP header.
    header: usize,
    /// Whether it has SYN, FIN or RST, or no ACK.
    changes_state: bool,
}

/// What a frame has in front of IP.
struct Outside {
    tags: [Option<Tag>; 2],
    session: Option<Session>,
    is_ipv6: bool,
    /// Bytes of it.
    at: usize,
    /// Bytes of PPP payload; `None`: no PPPoE.
    payload: Option<usize>,
}

fn bytes<const N: usize>(frame: &[u8], at: usize) -> Result<&[u8; N], Pass> {
    frame.get(at..).and_then(<[u8]>::first_chunk).ok_or(Pass::Malformed)
}

impl Outside {
    fn read(frame: &[u8]) -> Result<Outside, Pass> {
        // Space for two tags, which any frame of Ethernet has.
        let start: &[u8; 22] = bytes(frame, 0)?;
        let mac = ethernet::Header::of(bytes(start, 0)?);
        let (mut ethertype, mut at, mut tags) = (mac.ethertype(), 14, [None; 2]);
        for tag in &mut tags {
            if !matches!(ethertype, EtherType(0x8100 | 0x88a8)) {
                break;
            }
            let [a, b, c, d] = *bytes(frame, at)?;
            *tag = Some(Tag { tpid: ethertype.0, vid: Tci(u16::from_be_bytes([a, b])).vid() });
            (ethertype, at) = (EtherType(u16::from_be_bytes([c, d])), at + 4);
        }
        let outside = |session, is_ipv6, at, payload| Ok(Outside { tags, session, is_ipv6, at, payload });
        match ethertype.0 {
            0x0800 => outside(None, false, at, None),
            0x86dd => outside(None, true, at, None),
            0x8863 => Err(Pass::Control),
            0x8864 => {
                let (id, is_ipv6, length) = session(frame, at)?;
                let session = Session { id, peer: mac.source() };
                outside(Some(session), is_ipv6, at + 8, Some(length - 2))
            }
            _ => Err(Pass::NotIp),
        }
    }
}

/// A PPPoE session packet with IP (RFC 2516 section 4): session id, whether it is IPv6, and the length.
fn session(frame: &[u8], at: usize) -> Result<(u16, bool, usize), Pass> {
    let both: &[u8; 8] = bytes(frame, at)?;
    let header = pppoe::Header::of(bytes(both, 0)?);
    let length = usize::from(header.length());
    let is_session = header.check_version().is_ok() && header.code() == pppoe::Code::SESSION;
    if !is_session || header.session() == 0 || length < 2 || length > frame.len() - at - 6 {
        return Err(Pass::Pppoe);
    }
    match PppProtocol(u16::from_be_bytes(*bytes(both, 6)?)) {
        PppProtocol::IPV4 => Ok((header.session(), false, length)),
        PppProtocol::IPV6 => Ok((header.session(), true, length)),
        _ => Err(Pass::Control),
    }
}

impl<'a> Arrived<'a> {
    fn read(frame: &'a [u8], port: u32) -> Result<Arrived<'a>, Pass> {
        let outside = Outside::read(frame)?;
        let rest = frame.get(outside.at..).unwrap_or_default();
        let (packet, header, protocol) =
            if outside.is_ipv6 { ipv6_packet(rest, &outside)? } else { ipv4_packet(rest, &outside)? };
        let (source_port, destination_port, changes_state) =
            ports(packet.get(header..).unwrap_or_default(), protocol)?;
        let (source, destination) = if outside.is_ipv6 {
            let ip = ipv6::Header::of(bytes(packet, 0)?);
            let end = |address, port| SocketAddr::V6(SocketAddrV6::new(address, port, 0, 0));
            (end(ip.source(), source_port), end(ip.destination(), destination_port))
        } else {
            let ip = ipv4::Header::of(bytes(packet, 0)?);
            let end = |address, port| SocketAddr::V4(SocketAddrV4::new(address, port));
            (end(ip.source(), source_port), end(ip.destination(), destination_port))
        };
        let (tags, session) = (outside.tags, outside.session);
        let key = Key { port, tags, session, protocol: protocol.0, source, destination };
        Ok(Arrived { key, at: outside.at, packet, header, changes_state })
    }

    /// Whether the checksum of TCP or UDP is right, or left out (RFC 768; conntrack lets IPv6 do that, too: `udp_error` in
    /// net/netfilter/nf_conntrack_proto_udp.c).
    fn is_right(&self) -> bool {
        let transport = self.packet.get(self.header..).unwrap_or_default();
        let (source, destination) = (self.key.source.ip(), self.key.destination.ip());
        let protocol = IpProtocol(self.key.protocol);
        let is_absent = protocol == IpProtocol::UDP && transport.get(6..8) == Some(&[0, 0]);
        is_absent || is_right(source, destination, protocol, transport)
    }

    /// The checksum of a packet whose sender, on this machine, left it to a device: it has put the sum of the pseudo header there
    /// (CHECKSUM_PARTIAL, include/linux/skbuff.h). `None`: that is not there.
    fn completed(&self) -> Option<u16> {
        let mut transport = self.packet.get(self.header..)?.to_vec();
        let at = self.checksum();
        let present = u16::from_be_bytes(*transport.get(at..)?.first_chunk()?);
        put(&mut transport, at, |_: [u8; 2]| [0, 0]);
        let (source, destination) = (self.key.source.ip(), self.key.destination.ip());
        let protocol = IpProtocol(self.key.protocol);
        let pseudo = Sum::pseudo_header(source, destination, protocol, transport.len())?;
        if present != pseudo.folded() {
            return None;
        }
        let checksum = pseudo.bytes(&transport).finish();
        // As the kernel writes it, of TCP too (`skb_checksum_help()` of net/core/dev.c).
        Some(if checksum == 0 { 0xffff } else { checksum })
    }

    /// Where the checksum stands in the transport header.
    fn checksum(&self) -> usize {
        if self.key.protocol == IpProtocol::UDP.0 { 6 } else { 16 }
    }
}

/// The packet, which has to be as long as it says, and in PPPoE exactly as long as the payload.
fn whole<'a>(rest: &'a [u8], length: usize, outside: &Outside) -> Result<&'a [u8], Pass> {
    if length > outside.payload.unwrap_or(rest.len()) {
        return Err(Pass::Malformed);
    }
    if outside.payload.is_some_and(|payload| payload != length) {
        return Err(Pass::Pppoe);
    }
    rest.get(..length).ok_or(Pass::Malformed)
}

fn forwarded(protocol: IpProtocol) -> Result<(), Pass> {
    match protocol {
        IpProtocol::TCP | IpProtocol::UDP => Ok(()),
        _ => Err(Pass::OtherProtocol),
    }
}

/// A packet of IPv4 (RFC 791 section 3.1), bytes of its header, and the protocol.
fn ipv4_packet<'a>(rest: &'a [u8], outside: &Outside) -> Result<(&'a [u8], usize, IpProtocol), Pass> {
    // With space for the least transport header.
    let _: &[u8; 28] = bytes(rest, 0)?;
    let fixed = bytes(rest, 0)?;
    let ip = ipv4::Header::of(fixed);
    match (ip.version(), ip.header_length()) {
        (4, ipv4::Header::LENGTH) => {}
        (4, length) if length > ipv4::Header::LENGTH => return Err(Pass::IpOptions),
        _ => return Err(Pass::Malformed),
    }
    let packet = whole(rest, usize::from(ip.total_length()), outside)?;
    if ip.fragment() != Fragment::None {
        return Err(Pass::Fragment);
    }
    forwarded(ip.protocol())?;
    if ip.ttl() < 2 {
        return Err(Pass::Ttl);
    }
    if packet.len() < ipv4::Header::LENGTH || internet(fixed) != 0 {
        return Err(Pass::Malformed);
    }
    Ok((packet, ipv4::Header::LENGTH, ip.protocol()))
}

/// A packet of IPv6 (RFC 8200 section 3), bytes of its header, and the protocol.
fn ipv6_packet<'a>(rest: &'a [u8], outside: &Outside) -> Result<(&'a [u8], usize, IpProtocol), Pass> {
    let ip = ipv6::Header::of(bytes(rest, 0)?);
    if ip.version() != 6 {
        return Err(Pass::Malformed);
    }
    let packet = whole(rest, ipv6::Header::LENGTH + usize::from(ip.payload_length()), outside)?;
    forwarded(ip.next_header())?;
    if ip.hop_limit() < 2 {
        return Err(Pass::Ttl);
    }
    Ok((packet, ipv6::Header::LENGTH, ip.next_header()))
}

/// The ports of a packet, and whether it changes conntrack's state of its connection.
fn ports(transport: &[u8], protocol: IpProtocol) -> Result<(u16, u16, bool), Pass> {
    if protocol == IpProtocol::TCP {
        /// SYN, FIN, RST and ACK, of which an established connection has ACK alone.
        const DECIDING: u8 = 0x17;
        const ACK: u8 = 0x10;
        let tcp = Tcp::of(bytes(transport, 0)?);
        tcp.check(transport.len()).map_err(|_| Pass::Malformed)?;
        return Ok((tcp.source_port(), tcp.destination_port(), tcp.flags() & DECIDING != ACK));
    }
    let udp = Udp::of(bytes(transport, 0)?);
    if usize::from(udp.length()) != transport.len() {
        return Err(Pass::Malformed);
    }
    Ok((udp.source_port(), udp.destination_port(), false))
}

/// What leaves in front of the packet.
fn header(next: &NextHop, arrived: &Arrived<'_>) -> Vec<u8> {
    let mut header = [next.destination.0, next.source.0].concat();
    for tag in next.tags.iter().flatten() {
        header.extend([tag.tpid, Tci::new(0, false, tag.vid).0].map(u16::to_be_bytes).concat());
    }
    let (ethertype, ppp) =
        if arrived.header == ipv6::Header::LENGTH { (0x86dd, 0x0057_u16) } else { (0x0800, 0x0021) };
    match next.session {
        Some(session) => {
            let length = arrived.packet.len() as u16 + 2;
            let fields = [0x8864, 0x1100, session, length, ppp];
            header.extend(fields.map(u16::to_be_bytes).concat());
        }
        None => header.extend(u16::to_be_bytes(ethertype)),
    }
    header
}

/// The packet as it leaves.
fn packet(
    arrived: &Arrived<'_>,
    completed: Option<u16>,
    translated: Option<(SocketAddrV4, SocketAddrV4)>,
) -> Vec<u8> {
    let mut packet = arrived.packet.to_vec();
    if let Some(checksum) = completed {
        put(&mut packet, arrived.header + arrived.checksum(), |_: [u8; 2]| checksum.to_be_bytes());
    }
    if arrived.header == ipv6::Header::LENGTH {
        put(&mut packet, 7, |[hop_limit]: [u8; 1]| [hop_limit - 1]);
        return packet;
    }
    put(&mut packet, 8, |[ttl]: [u8; 1]| [ttl - 1]);
    if let Some((source, destination)) = translated {
        translate(&mut packet, source, destination, completed.is_some());
    }
    // It was right, so that the one of the new header is what correcting it gives.
    put(&mut packet, 10, |_: [u8; 2]| [0, 0]);
    let checksum = internet(packet.get(..ipv4::Header::LENGTH).unwrap_or_default());
    put(&mut packet, 10, |_: [u8; 2]| checksum.to_be_bytes());
    packet
}

/// Replaces addresses and ports. The checksum of TCP or UDP is corrected and not computed anew, so that a wrong one stays
/// wrong; a UDP checksum of 0 is none, and one that comes out as 0 is written as 0xffff (RFC 768), as is one that was completed.
fn translate(packet: &mut [u8], source: SocketAddrV4, destination: SocketAddrV4, completed: bool) {
    let is_udp = packet.get(9) == Some(&IpProtocol::UDP.0);
    let at = ipv4::Header::LENGTH + if is_udp { 6 } else { 16 };
    let words = |packet: &[u8]| -> Vec<u16> {
        let words = packet.get(12..24).unwrap_or_default().as_chunks::<2>().0;
        words.iter().map(|word| u16::from_be_bytes(*word)).collect()
    };
    let old = words(packet);
    let address = |address: &Ipv4Addr| address.octets();
    put(packet, 12, |_: [u8; 4]| address(source.ip()));
    put(packet, 16, |_: [u8; 4]| address(destination.ip()));
    put(packet, 20, |_: [u8; 2]| source.port().to_be_bytes());
    put(packet, 22, |_: [u8; 2]| destination.port().to_be_bytes());
    let new = words(packet);
    put(packet, at, |checksum: [u8; 2]| match u16::from_be_bytes(checksum) {
        0 if is_udp => [0, 0],
        checksum => {
            // HC' = ~(~HC + ~m + m') for each word (RFC 1624 section 3).
            let changed = old.iter().zip(&new);
            let sum = changed.fold(Sum::ZERO.word(!checksum), |sum, (old, new)| sum.word(!old).word(*new));
            match sum.finish() {
                0 if is_udp || completed => 0xffff,
                checksum => checksum,
            }
            .to_be_bytes()
        }
    });
}

/// Changes bytes at a place.
fn put<const N: usize>(packet: &mut [u8], at: usize, change: impl FnOnce([u8; N]) -> [u8; N]) {
    if let Some(place) = packet.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
        *place = change(*place);
    }
}
