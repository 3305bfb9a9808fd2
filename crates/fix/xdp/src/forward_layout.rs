//! What the program of the fast path and its loader share. `bpf/forward_layout.h` says the same in C; a test compares both
//! from the object's BTF.
//!
//! Addresses, ports, VIDs, session ids and checksums are in network byte order, as in frames, and stand here as bytes; all
//! other numbers are in host byte order.

use wire::ethernet::MacAddress;

/// Why the program left a frame to the kernel. The order is that of the numbers in C; the first reason that a frame has
/// counts, in the order in which [`forward_reference`](crate::forward_reference) looks for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum Pass {
    /// No flow is installed for it.
    NoEntry = 0,
    /// Its flow was installed under another generation than the present one, or is paused: a packet with SYN, FIN or RST came.
    Stale = 1,
    /// The daemon's heartbeat is older than [`HEARTBEAT_MOST_NS`].
    DaemonSilent = 2,
    /// The destination MAC address is not the router's, or the source address not that of the PPPoE session's other end, or
    /// none that a station can have.
    NotAddressed = 3,
    /// Its flow has no next hop, or that has no port.
    NoNextHop = 4,
    /// The IP packet is longer than the next hop takes.
    TooLong = 5,
    /// A fragment of IPv4; those of IPv6 are [`OtherProtocol`](Pass::OtherProtocol).
    Fragment = 6,
    /// An IPv4 header with options.
    IpOptions = 7,
    /// Neither TCP nor UDP directly behind the IP header: another protocol, or an extension header of IPv6.
    OtherProtocol = 8,
    /// TTL or hop limit below 2.
    Ttl = 9,
    /// TCP with SYN, FIN or RST, or without ACK.
    TcpFlags = 10,
    /// PPPoE discovery, and PPP protocols other than IP.
    Control = 11,
    /// A PPPoE header that is none of a session, or whose length is not that of the packet in it.
    Pppoe = 12,
    /// An EtherType other than IP, behind two tags at most.
    NotIp = 13,
    /// A header that reaches beyond the end, or a length or IPv4 header checksum that is wrong.
    Malformed = 14,
    /// The checksum of TCP or UDP is wrong, in a flow for which it is verified.
    Checksum = 15,
    /// No memory in front of the frame for longer headers.
    NoRoom = 16,
}

impl Pass {
    /// All of them, in the order of their numbers.
    pub const ALL: [Pass; 17] = [
        Pass::NoEntry,
        Pass::Stale,
        Pass::DaemonSilent,
        Pass::NotAddressed,
        Pass::NoNextHop,
        Pass::TooLong,
        Pass::Fragment,
        Pass::IpOptions,
        Pass::OtherProtocol,
        Pass::Ttl,
        Pass::TcpFlags,
        Pass::Control,
        Pass::Pppoe,
        Pass::NotIp,
        Pass::Malformed,
        Pass::Checksum,
        Pass::NoRoom,
    ];

    /// The word of output.
    pub const fn name(self) -> &'static str {
        match self {
            Pass::NoEntry => "no-entry",
            Pass::Stale => "stale",
            Pass::DaemonSilent => "daemon-silent",
            Pass::NotAddressed => "not-addressed",
            Pass::NoNextHop => "no-next-hop",
            Pass::TooLong => "too-long",
            Pass::Fragment => "fragment",
            Pass::IpOptions => "ip-options",
            Pass::OtherProtocol => "other-protocol",
            Pass::Ttl => "ttl",
            Pass::TcpFlags => "tcp-flags",
            Pass::Control => "control",
            Pass::Pppoe => "pppoe",
            Pass::NotIp => "not-ip",
            Pass::Malformed => "malformed",
            Pass::Checksum => "checksum",
            Pass::NoRoom => "no-room",
        }
    }
}

/// Places for reasons in [`ForwardCounts`]; those behind [`Pass::ALL`] are spare.
pub const PASS_PLACES: usize = 32;
/// Places in the map of ports.
pub const PORTS_MOST: u32 = 64;
/// Places for rate limits; place 0 stands for none.
pub const LIMITS: u8 = 4;
/// Least rate of a limit, bits per second.
pub const RATE_LEAST: u64 = 8;
/// Nanoseconds since the last heartbeat after which the daemon is taken for dead.
pub const HEARTBEAT_MOST_NS: u64 = 2_000_000_000;
/// Bits by which the monotonic clock in nanoseconds is shifted for [`FlowValue::paused`]: 1.07 seconds.
pub const PAUSE_SHIFT: u32 = 30;
/// For how many of those units a flow is paused at least, less one: by then the daemon has heard of the change, or is silent.
pub const PAUSE_UNITS: u16 = 3;
/// Most bytes of headers before an IP packet: MAC header, two tags, PPPoE and PPP.
pub const NEXT_HEADER_MOST: usize = 30;

/// In [`FlowValue::flags`]: addresses and ports are replaced.
pub const FLOW_TRANSLATED: u8 = 1;
/// In [`FlowValue::flags`]: the checksum of TCP or UDP is verified first.
pub const FLOW_VERIFIED: u8 = 2;

/// In [`FlowKey::outer`] and [`FlowKey::inner`], in place of the priority: TPID 0x8100.
const TAG_VLAN: u16 = 0x1000;
/// In the same place: TPID 0x88a8.
const TAG_SERVICE_VLAN: u16 = 0x2000;

/// A key of the maps [`map::FLOWS_IPV4`] and [`map::FLOWS_IPV6`]; those of IPv4 end after [`KEY_IPV4_LENGTH`] bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct FlowKey {
    /// Interface index of the port.
    pub port: u32,
    /// The outer tag as [`tag`]; 0: none.
    pub outer: [u8; 2],
    /// The inner tag.
    pub inner: [u8; 2],
    /// PPPoE session id; 0: no PPPoE.
    pub session: [u8; 2],
    /// IANA number.
    pub protocol: u16,
    /// Source, then destination.
    pub ports: [u8; 4],
    /// Source, then destination: 16 bytes each of IPv6, four each of IPv4.
    pub addresses: [u8; 32],
}

/// Bytes of a key of IPv6.
pub const KEY_LENGTH: usize = size_of::<FlowKey>();
/// Bytes of a key of IPv4.
pub const KEY_IPV4_LENGTH: usize = KEY_LENGTH - 24;

impl FlowKey {
    /// As in the map; the first [`KEY_IPV4_LENGTH`] are a key of IPv4.
    pub fn bytes(&self) -> [u8; KEY_LENGTH] {
        let mut bytes = Bytes::new();
        bytes.put(self.port.to_ne_bytes());
        bytes.put(self.outer);
        bytes.put(self.inner);
        bytes.put(self.session);
        bytes.put(self.protocol.to_ne_bytes());
        bytes.put(self.ports);
        bytes.put(self.addresses);
        bytes.0
    }
}

/// A tag in a [`FlowKey`]: its VID, and which of the two TPIDs it has. `None`: another TPID.
pub fn tag(tpid: u16, vid: u16) -> Option<[u8; 2]> {
    let kind = match tpid {
        0x8100 => TAG_VLAN,
        0x88a8 => TAG_SERVICE_VLAN,
        _ => return None,
    };
    Some((kind | vid & 0x0fff).to_be_bytes())
}

/// A value of [`map::FLOWS_IPV4`] and [`map::FLOWS_IPV6`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct FlowValue {
    /// Packets forwarded, by all CPUs.
    pub packets: u64,
    /// Bytes of their IP packets.
    pub bytes: u64,
    /// When the last one was forwarded: the monotonic clock at its last tick, in nanoseconds.
    pub used_ns: u64,
    /// Place in [`map::NEXT_HOPS`].
    pub next_hop: u32,
    /// Has to be that of [`Alive`].
    pub generation: u32,
    /// MAC addresses: the router's where these packets arrive, then that of the other end of their PPPoE session, 0 without one.
    pub stations: [u8; 12],
    /// [`FLOW_TRANSLATED`], [`FLOW_VERIFIED`].
    pub flags: u8,
    /// Place in [`map::RATE_LIMITS`]; 0: none.
    pub limit: u8,
    /// When a packet with SYN, FIN or RST has paused it, in units of 2^[`PAUSE_SHIFT`] ns of the monotonic clock, never 0; 0: none has.
    pub paused: u16,
    /// IPv4 addresses of a translated packet, source first.
    pub addresses: [u8; 8],
    /// Ports of a translated packet, source first.
    pub ports: [u8; 4],
    /// What the sum of the IPv4 header changes by (RFC 1624): TTL, and addresses of a translated packet.
    pub ip_delta: [u8; 2],
    /// What the sum of TCP or UDP changes by: addresses and ports.
    pub transport_delta: [u8; 2],
}

impl FlowValue {
    /// As in the map.
    pub fn bytes(&self) -> [u8; size_of::<FlowValue>()] {
        let mut bytes = Bytes::new();
        bytes.put(self.packets.to_ne_bytes());
        bytes.put(self.bytes.to_ne_bytes());
        bytes.put(self.used_ns.to_ne_bytes());
        bytes.put(self.next_hop.to_ne_bytes());
        bytes.put(self.generation.to_ne_bytes());
        bytes.put(self.stations);
        bytes.put([self.flags, self.limit]);
        bytes.put(self.paused.to_ne_bytes());
        bytes.put(self.addresses);
        bytes.put(self.ports);
        bytes.put(self.ip_delta);
        bytes.put(self.transport_delta);
        bytes.0
    }
}

/// A value of [`map::NEXT_HOPS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct NextHopValue {
    /// Place in [`map::PORTS`].
    pub port: u32,
    /// Most bytes that an IP packet may have.
    pub largest: u16,
    /// Bytes of `header` that are used, a multiple of four and two; 0: there is no next hop.
    pub length: u8,
    /// 1: the header ends with PPPoE and PPP.
    pub is_pppoe: u8,
    /// Everything before the IP packet; the program fills in the PPPoE length and what announces IPv4 or IPv6.
    pub header: [u8; NEXT_HEADER_MOST + 2],
}

impl NextHopValue {
    /// As in the map.
    pub fn bytes(&self) -> [u8; size_of::<NextHopValue>()] {
        let mut bytes = Bytes::new();
        bytes.put(self.port.to_ne_bytes());
        bytes.put(self.largest.to_ne_bytes());
        bytes.put([self.length, self.is_pppoe]);
        bytes.put(self.header);
        bytes.0
    }

    /// Headers of a way out. `None`: the inner tag stands without an outer one.
    pub(crate) fn new(next: &crate::forward::NextHop) -> Option<NextHopValue> {
        if next.tags[0].is_none() && next.tags[1].is_some() {
            return None;
        }
        let MacAddress(source) = next.source;
        let mut header = [next.destination.0, source].concat();
        for tag in next.tags.iter().flatten() {
            header.extend(tag.tpid.to_be_bytes());
            header.extend((tag.vid & 0x0fff).to_be_bytes());
        }
        if let Some(session) = next.session {
            header.extend([0x88, 0x64, 0x11, 0x00]);
            header.extend(session.to_be_bytes());
            header.extend([0, 0]);
        }
        header.extend([0, 0]);
        let mut value = NextHopValue {
            port: next.port,
            largest: next.largest,
            length: header.len() as u8,
            is_pppoe: u8::from(next.session.is_some()),
            header: [0; NEXT_HEADER_MOST + 2],
        };
        value.header.get_mut(..header.len())?.copy_from_slice(&header);
        Some(value)
    }
}

/// A value of [`map::NEXT_HOPS`]: a next hop is never changed while a packet may be reading it, but the other one, and then the
/// number of the one that counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct NextHops {
    /// Which of them counts, 0 or 1.
    pub current: u32,
    pub spare: u32,
    pub both: [NextHopValue; 2],
}

impl NextHops {
    /// As in the map.
    pub fn bytes(&self) -> [u8; size_of::<NextHops>()] {
        let mut bytes = Bytes::new();
        bytes.put(self.current.to_ne_bytes());
        bytes.put(self.spare.to_ne_bytes());
        self.both.iter().for_each(|one| bytes.put(one.bytes()));
        bytes.0
    }

    /// With another next hop: what is to be written first, and what then.
    pub fn replaced(&self, next: NextHopValue) -> [NextHops; 2] {
        let other = self.current ^ 1;
        let mut written = *self;
        if let Some(place) = written.both.get_mut(other as usize) {
            *place = next;
        }
        [written, NextHops { current: other, ..written }]
    }
}

/// The one value of [`map::ALIVE`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Alive {
    /// When the daemon was last heard of: monotonic clock, nanoseconds.
    pub heartbeat_ns: u64,
    /// Flows of others are not forwarded.
    pub generation: u32,
    pub spare: u32,
}

impl Alive {
    /// As in the map.
    pub fn bytes(&self) -> [u8; size_of::<Alive>()] {
        let mut bytes = Bytes::new();
        bytes.put(self.heartbeat_ns.to_ne_bytes());
        bytes.put(self.generation.to_ne_bytes());
        bytes.put(self.spare.to_ne_bytes());
        bytes.0
    }
}

/// A value of [`map::RATE_LIMITS`]: a bucket, as the time at which it is full again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Limit {
    /// Monotonic clock, nanoseconds.
    pub full_ns: u64,
    /// Nanoseconds that a byte takes, times 65,536.
    pub ns_per_byte_16: u64,
    /// How far ahead of now it may be full again, nanoseconds.
    pub burst_ns: u64,
}

impl Limit {
    /// A full bucket for so many bits per second, and at least 10 ms of that rate at once: the program reads a clock that
    /// goes on at the kernel's tick, which takes up to 10 ms. `None`: the rate is below [`RATE_LEAST`].
    pub fn new(bits_per_second: u64, burst_bytes: u64) -> Option<Limit> {
        if bits_per_second < RATE_LEAST {
            return None;
        }
        // At most 10^9 ns for a byte, so that no product with a packet's length overflows.
        let ns = |bytes: u64, shift: u32| {
            ((u128::from(bytes) * 8_000_000_000) << shift) / u128::from(bits_per_second)
        };
        let burst_ns = ns(burst_bytes, 0).clamp(10_000_000, 1 << 62) as u64;
        Some(Limit { full_ns: 0, ns_per_byte_16: ns(1, 16) as u64, burst_ns })
    }

    /// As in the map.
    pub fn bytes(&self) -> [u8; size_of::<Limit>()] {
        let mut bytes = Bytes::new();
        bytes.put(self.full_ns.to_ne_bytes());
        bytes.put(self.ns_per_byte_16.to_ne_bytes());
        bytes.put(self.burst_ns.to_ne_bytes());
        bytes.0
    }
}

/// The one value of the per-CPU map [`map::FORWARDED`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ForwardCounts {
    /// Packets forwarded.
    pub fast: u64,
    /// Bytes of their IP packets.
    pub fast_bytes: u64,
    /// Packets dropped by a rate limit.
    pub limited: u64,
    /// Frames left to the kernel, by [`Pass`].
    pub passed: [u64; PASS_PLACES],
}

/// Names of the maps.
pub mod map {
    /// Hash: [`FlowKey`](super::FlowKey) of IPv4 to [`FlowValue`](super::FlowValue).
    pub const FLOWS_IPV4: &str = "FLOWS_IPV4";
    /// Hash: [`FlowKey`](super::FlowKey) of IPv6 to [`FlowValue`](super::FlowValue).
    pub const FLOWS_IPV6: &str = "FLOWS_IPV6";
    /// Array of [`NextHops`](super::NextHops).
    pub const NEXT_HOPS: &str = "NEXT_HOPS";
    /// Devmap: the interfaces by which packets leave.
    pub const PORTS: &str = "FASTPATH_PORTS";
    /// Array of one [`Alive`](super::Alive): a variable of the program, which is named by its section.
    pub const ALIVE: &str = ".bss";
    /// Array of [`Limit`](super::Limit).
    pub const RATE_LIMITS: &str = "RATE_LIMITS";
    /// Per-CPU array of one [`ForwardCounts`](super::ForwardCounts).
    pub const FORWARDED: &str = "FORWARDED";
}

/// A structure's bytes, put together in the order of its fields.
struct Bytes<const N: usize>([u8; N], usize);

impl<const N: usize> Bytes<N> {
    fn new() -> Bytes<N> {
        Bytes([0; N], 0)
    }

    fn put<const M: usize>(&mut self, field: [u8; M]) {
        if let Some(place) = self.0.get_mut(self.1..self.1 + M) {
            place.copy_from_slice(&field);
        }
        self.1 += M;
    }
}
