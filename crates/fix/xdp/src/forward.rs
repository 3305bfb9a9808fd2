//! The fast path: packets of established flows leave from where they arrive, without the kernel's stack.
//!
//! `bpf/forward.h` says what happens to a packet, [`forward_reference`](crate::forward_reference) says the same in Rust.
//! [`Forwarding`] is the program with its maps; nothing is pinned, so it ends with the process that holds it.
//!
//! # Order of writing
//!
//! A port before the next hops that lead to it, a next hop before its flows, and the way back in the reverse order: what is
//! missing sends packets to the kernel. A next hop that changes is written in place and not all at once, so that a packet
//! that leaves at that moment may have part of either header; whoever cannot bear it takes another place and renews the
//! flows.
//!
//! # Memory
//!
//! Of IPv4 an entry takes 144 bytes of kernel memory, of IPv6 168 (`htab_map_mem_usage()` in kernel/bpf/hashtab.c, which is `memlock`
//! in the map's fdinfo(5)), cut from blocks of 192; it is allocated when it is inserted. With the maps, 16 bytes are allocated for
//! each flow that they may have, rounded up to a power of two, once for IPv4 and once for IPv6; and 40 bytes for each next
//! hop. So 2^20 flows of IPv4 are 185 MB by that count, and 235 MB with whole blocks.

mod loaded;

pub use loaded::{Counts, Forwarding, Port};

use crate::error::Error;
use crate::forward_layout::{FLOW_TRANSLATED, FLOW_VERIFIED, FlowKey, FlowValue, LIMITS, NextHopValue, tag};
use std::net::{IpAddr, SocketAddr, SocketAddrV4};
use wire::ethernet::MacAddress;

/// A VLAN tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag {
    /// 0x8100 or 0x88a8: the two that Linux has VLAN interfaces for.
    pub tpid: u16,
    /// VLAN ID, 12 bits. Priority and DEI do not select a flow, and are 0 where a packet leaves.
    pub vid: u16,
}

/// The PPPoE session in which a packet arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Session {
    /// 1 to 65,535.
    pub id: u16,
    /// The MAC address of its other end.
    pub peer: MacAddress,
}

/// What selects the packets of a flow in one direction, as they arrive. In the maps the other end of the session is no part of
/// the key: a packet of another sender finds the flow, and is left to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Interface index of the port.
    pub port: u32,
    /// Outer tag, then inner tag.
    pub tags: [Option<Tag>; 2],
    /// The PPPoE session; `None`: IP stands behind MAC addresses and tags.
    pub session: Option<Session>,
    /// IANA number: 6 (TCP) or 17 (UDP).
    pub protocol: u8,
    /// Source address and port. Flow label and scope of IPv6 do not count.
    pub source: SocketAddr,
    /// Destination address and port, of the source's IP version.
    pub destination: SocketAddr,
}

/// What happens to the packets of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flow {
    /// Place of its next hop.
    pub next_hop: u32,
    /// Its packets are forwarded as long as this is the generation of [`Forwarding::beat`].
    pub generation: u32,
    /// The router's MAC address where they arrive.
    pub own: MacAddress,
    /// Source and destination of the packets that leave; `None`: as they arrive. IPv4 alone.
    pub translated: Option<(SocketAddrV4, SocketAddrV4)>,
    /// Whether the checksum of TCP or UDP has to be right, as conntrack demands with `nf_conntrack_checksum`. A port of a
    /// virtual interface wants it: there packets arrive whose checksum is left to a NIC, and the kernel finishes it.
    pub verified: bool,
    /// Place of a rate limit, 1 to `LIMITS - 1`; 0: none.
    pub limit: u8,
}

/// What a flow forwarded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Packets.
    pub packets: u64,
    /// Bytes of their IP packets.
    pub bytes: u64,
    /// When the last one was forwarded, nanoseconds of the monotonic clock, at the kernel's last tick; 0: none was.
    pub used_ns: u64,
}

/// The way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NextHop {
    /// Place in the map of ports, below [`PORTS_MOST`](crate::forward_layout::PORTS_MOST).
    pub port: u32,
    /// Most bytes that an IP packet may have: the MTU of the interface by which the kernel would send it.
    pub largest: u16,
    /// The router's MAC address there.
    pub source: MacAddress,
    /// MAC address of the next router, host, or access concentrator.
    pub destination: MacAddress,
    /// Outer tag, then inner tag.
    pub tags: [Option<Tag>; 2],
    /// PPPoE session id; `None`: no PPPoE.
    pub session: Option<u16>,
}

impl Key {
    /// As in the maps.
    ///
    /// # Errors
    ///
    /// [`Error::Plan`]: the two addresses are of two IP versions, an inner tag stands without an outer one, a tag has another
    /// TPID than those two, a session has the id 0, or the protocol is neither TCP nor UDP.
    pub fn value(&self) -> Result<FlowKey, Error> {
        let mut addresses = [0; 32];
        match (self.source.ip(), self.destination.ip()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let both = [source.octets(), destination.octets()];
                addresses.iter_mut().zip(both.as_flattened()).for_each(|(place, byte)| *place = *byte);
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let both = [source.octets(), destination.octets()];
                addresses.copy_from_slice(both.as_flattened());
            }
            _ => return refuse("source and destination of a flow are of two IP versions"),
        }
        let [outer, inner] = match self.tags {
            [None, Some(_)] => return refuse("an inner tag without an outer one"),
            tags => tags.map(|one| one.map_or(Some([0; 2]), |one| tag(one.tpid, one.vid))),
        };
        let (Some(outer), Some(inner)) = (outer, inner) else {
            return refuse("a tag whose TPID is neither 0x8100 nor 0x88a8");
        };
        if self.session.is_some_and(|session| session.id == 0) {
            return refuse("a PPPoE session with the id 0");
        }
        if !matches!(self.protocol, 6 | 17) {
            return refuse("a flow of neither TCP nor UDP");
        }
        Ok(FlowKey {
            port: self.port,
            outer,
            inner,
            session: self.session.map_or(0, |session| session.id).to_be_bytes(),
            protocol: u16::from(self.protocol),
            ports: ports(self.source.port(), self.destination.port()),
            addresses,
        })
    }

    /// Whether it is a flow of IPv6.
    pub fn is_ipv6(&self) -> bool {
        self.source.is_ipv6()
    }
}

impl Flow {
    /// As in the maps, with what `key` and the translation change in checksums, and no packets.
    ///
    /// # Errors
    ///
    /// [`Error::Plan`]: a translation of IPv6, or a limit that does not exist.
    pub fn value(&self, key: &Key) -> Result<FlowValue, Error> {
        if self.limit >= LIMITS {
            return refuse("a rate limit beyond the last");
        }
        let mut value = FlowValue {
            next_hop: self.next_hop,
            generation: self.generation,
            stations: stations(self.own, key.session),
            flags: if self.verified { FLOW_VERIFIED } else { 0 },
            limit: self.limit,
            // TTL is the upper byte of its word.
            ip_delta: Delta::default().change([1, 0], [0, 0]).bytes(),
            ..FlowValue::default()
        };
        let Some((source, destination)) = self.translated else { return Ok(value) };
        let (SocketAddr::V4(from), SocketAddr::V4(to)) = (key.source, key.destination) else {
            return refuse("a translated flow of IPv6");
        };
        let addresses = |delta: Delta| {
            let delta = delta.change(from.ip().octets(), source.ip().octets());
            delta.change(to.ip().octets(), destination.ip().octets())
        };
        value.flags |= FLOW_TRANSLATED;
        let both = [source.ip().octets(), destination.ip().octets()];
        value.addresses.copy_from_slice(both.as_flattened());
        value.ports = ports(source.port(), destination.port());
        value.ip_delta = addresses(Delta::default().change([1, 0], [0, 0])).bytes();
        let transport = addresses(Delta::default());
        value.transport_delta = transport.change(ports(from.port(), to.port()), value.ports).bytes();
        Ok(value)
    }
}

impl NextHop {
    /// As in the map.
    ///
    /// # Errors
    ///
    /// [`Error::Plan`]: an inner tag stands without an outer one.
    pub fn value(&self) -> Result<NextHopValue, Error> {
        NextHopValue::new(self).map_or_else(|| refuse("an inner tag without an outer one"), Ok)
    }
}

fn refuse<T>(problem: &str) -> Result<T, Error> {
    Err(Error::Plan(problem.to_owned()))
}

fn stations(MacAddress(own): MacAddress, session: Option<Session>) -> [u8; 12] {
    let MacAddress(peer) = session.map_or(MacAddress::default(), |session| session.peer);
    let mut stations = [0; 12];
    stations.copy_from_slice([own, peer].as_flattened());
    stations
}

fn ports(source: u16, destination: u16) -> [u8; 4] {
    let ([a, b], [c, d]) = (source.to_be_bytes(), destination.to_be_bytes());
    [a, b, c, d]
}

/// What a sum of 16-bit words changes by when words change: `~old + new` for each (RFC 1624 section 3).
#[derive(Clone, Copy, Default)]
struct Delta(u64);

impl Delta {
    fn change<const N: usize>(self, old: [u8; N], new: [u8; N]) -> Delta {
        let words = |bytes: &[u8; N]| -> u64 {
            bytes.as_chunks::<2>().0.iter().map(|word| u64::from(u16::from_be_bytes(*word))).sum()
        };
        Delta(self.0 + (N as u64 / 2) * 0xffff - words(&old) + words(&new))
    }

    /// Folded to 16 bits. Never 0: whatever `old` is, `~old` and `new` are not both 0 in every word of a flow.
    fn bytes(self) -> [u8; 2] {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        (sum as u16).to_be_bytes()
    }
}
