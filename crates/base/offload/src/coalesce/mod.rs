//! Received frames become super-packets (GRO).
//!
//! ```
//! use rxlane_offload::coalesce::{Coalescer, Delivery, Limits};
//! # fn writev(_: &[std::io::IoSlice]) {}
//! # fn control(_: &[u8]) {}
//!
//! # fn receive(coalescer: &mut Coalescer, ring: &[&[u8]]) {
//! for delivery in coalescer.coalesce(ring) {
//!     match delivery {
//!         Delivery::Packet(packet) => {
//!             let header = packet.header().bytes();
//!             let pieces = std::iter::once(&header[..]).chain(packet.pieces());
//!             // A caller in a hurry keeps the vector.
//!             let pieces: Vec<_> = pieces.map(std::io::IoSlice::new).collect();
//!             writev(&pieces);
//!         }
//!         Delivery::Frame(frame) => control(ring[frame]),
//!     }
//! }
//! # }
//! # receive(&mut Coalescer::new(Limits::default()), &[]);
//! ```
//!
//! # What becomes one packet
//!
//! The rules are those of Linux (`net/core/gro.c`, `tcp_gro_receive`, `udp_gro_receive_segment`, `inet_gro_receive`,
//! `inet_gro_flush`, `ipv6_gro_receive`):
//!
//! | what | rule |
//! | --- | --- |
//! | never coalesced | fragments; IPv4 options; AH, ESP; SYN, RST, URG, CWR; no payload (a bare ACK); UDP without checksum; wrong checksums of IPv4 header, TCP or UDP |
//! | has to be equal | addresses, ports, encapsulation; traffic class (DSCP and ECN), TTL or hop limit, DF, flow label, extension headers; TCP data offset, reserved bits and flags but FIN and PSH, acknowledgment, window, options byte by byte |
//! | IPv4 identification | one more each packet, or, where DF is set, the same for all, as the second packet says |
//! | TCP sequence number | that of the next byte |
//! | length | no longer than the first; a shorter packet is the last |
//! | FIN, PSH | are the last; a packet that has them begins none |
//! | at most | 65,535 bytes, [`Limits::segments`] packets, 64 datagrams |
//!
//! Stricter than Linux: CWR stands alone, which older kernels allow in the first segment and newer ones in all of them
//! (`SKB_GSO_TCP_ACCECN`), what a virtio header cannot say; urgent pointers have to be equal, too; the reserved bit of IPv4
//! must not be set; a fixed identification needs DF, for which the newest kernels no longer ask; and a checksum of
//! 0xffff, which no sum but that of UDP gives, stands alone. With that, segmenting a super-packet again
//! ([`crate::Segments`]; with [`Packet::has_fixed_identification`] if so) gives back every byte. A virtio header cannot
//! say that identifications are fixed: a kernel that segments such a packet counts them up, which DF allows (RFC 6864
//! section 4.1).
//!
//! Looser than Linux: bytes behind the IP length (padding) are cut off first, where Linux leaves a padded packet alone.
//!
//! # Order
//!
//! Deliveries stand in the order of their first frames. A packet of a flow that cannot be put behind the open one closes
//! it, so that none of the flow overtakes another; a flow here is the 5-tuple with its VLANs, labels and PPPoE session,
//! whatever priority, MPLS time to live or MAC addresses. A fragment closes all packets between its two addresses. (Linux lets
//! fragments and packets with IPv4 options overtake what it holds.)

mod candidate;
mod deliver;
mod link;
mod open;
mod table;

pub use deliver::{Batch, Delivery, Packet, Pieces};

use crate::segment::Transport;
use crate::virtio::NetHeader;
use candidate::{Candidate, Place, address_words, flow_words};
use link::Link;
use open::Open;
use table::Table;
use wire::{Dissection, FlowKey, Fragment, IpProtocol, dissect};

/// No frame, no open packet.
const NONE: u32 = u32::MAX;
/// Fences for pairs of addresses; a power of two.
const FENCES: usize = 256;

/// What super-packets may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most packets in one, at least 1. Each is a piece of a writev(2), which takes 1024 in all (`UIO_MAXIOV`), of
    /// which two are for headers. Datagrams are at most 64 whatever this says.
    pub segments: u32,
    /// Whether datagrams are coalesced: TUN takes them from Linux 6.2 on (`TUN_F_USO4`, `TUN_F_USO6`).
    pub udp: bool,
}

impl Default for Limits {
    /// 64 packets, datagrams, too.
    fn default() -> Limits {
        Limits { segments: 64, udp: true }
    }
}

/// Puts the frames of a batch together. Nothing is held from one batch to the next but the memory, which grows to what
/// the largest batch took: about 200 bytes a frame, and the headers of super-packets.
#[derive(Clone, Debug)]
pub struct Coalescer {
    limits: Limits,
    table: Table,
    /// Counters that show whether a fragment came between the addresses of a packet since it was opened.
    fences: Box<[u32; FENCES]>,
    items: Vec<Item>,
    opens: Vec<Open>,
    /// The payload of each frame, by its number.
    parts: Vec<Part>,
    heads: Vec<u8>,
    super_packets: Vec<SuperPacket>,
}

/// A delivery: a frame as it is, or the packet that begins in it.
#[derive(Clone, Copy, Debug)]
struct Item {
    first: u32,
    /// The last frame of the chain of parts.
    last: u32,
    /// The IP packet of the first frame; `None` for a frame as it is.
    place: Option<Place>,
    /// Number of the super-packet.
    super_packet: u32,
}

/// Where the payload of a frame is, and the frame whose payload follows.
#[derive(Clone, Copy, Debug)]
struct Part {
    start: usize,
    end: usize,
    next: u32,
}

/// A packet of more than one frame.
#[derive(Clone, Copy, Debug)]
struct SuperPacket {
    header: NetHeader,
    /// Where its headers are among all.
    head: usize,
    head_length: usize,
    length: usize,
    count: u32,
    has_fixed_identification: bool,
}

impl Coalescer {
    /// With an empty memory.
    pub fn new(limits: Limits) -> Coalescer {
        Coalescer {
            limits,
            table: Table::new(),
            fences: Box::new([0; FENCES]),
            items: Vec::new(),
            opens: Vec::new(),
            parts: Vec::new(),
            heads: Vec::new(),
            super_packets: Vec::new(),
        }
    }

    /// Puts a batch of Ethernet frames together (from the destination address on, without FCS, in order of arrival), of
    /// at most 2^32 - 2. Every frame comes out once: alone, or in one packet. No payload is copied.
    pub fn coalesce<'b, F: AsRef<[u8]>>(&'b mut self, frames: &'b [F]) -> Batch<'b, F> {
        self.items.clear();
        self.opens.clear();
        self.parts.clear();
        self.heads.clear();
        self.super_packets.clear();
        self.table.clear();
        for (number, frame) in (0..NONE).zip(frames) {
            self.accept(number, frame.as_ref(), frames);
        }
        self.finish(frames);
        Batch { coalescer: self, frames, next: 0 }
    }

    fn accept<F: AsRef<[u8]>>(&mut self, number: u32, frame: &[u8], frames: &[F]) {
        self.parts.push(Part { start: 0, end: 0, next: NONE });
        let seen = dissect(wire::Link::Ethernet, frame, frame.len());
        let place = Place::of(&seen, frame);
        if let (Some(place), Some(flow)) = (place, seen.flow()) {
            let fence = self.table.hash(address_words(flow)) as usize % FENCES;
            let is_transport = matches!(IpProtocol(flow.protocol()), IpProtocol::TCP | IpProtocol::UDP);
            if seen.fragment() != Fragment::None || is_transport && !flow.has_ports() {
                // Which of the packets between these addresses it belongs to is not known.
                if let Some(fence) = self.fences.get_mut(fence) {
                    *fence = fence.wrapping_add(1);
                }
            } else if flow.has_ports() {
                let fence = self.fences.get(fence).copied().unwrap_or_default();
                let hash = self.table.hash(flow_words(flow, &seen, frame));
                let candidate = Candidate::of(&seen, frame, place)
                    .filter(|candidate| self.limits.udp || candidate.transport == Transport::Tcp);
                let arrival = Arrival { number, frame, seen: &seen, flow, place, fence, hash, candidate };
                if self.join(&arrival, frames) {
                    return;
                }
                self.open(&arrival);
            }
        }
        self.items.push(Item { first: number, last: number, place, super_packet: NONE });
    }

    /// Puts a packet behind the open one of its flow: true. Where it cannot, that one is closed.
    fn join<F: AsRef<[u8]>>(&mut self, arrival: &Arrival<'_>, frames: &[F]) -> bool {
        let (opens, items) = (&self.opens, &self.items);
        let is_right = |open: u32| {
            let open = opens.get(open as usize).filter(|open| open.key == *arrival.flow);
            open.is_some_and(|open| arrival.compare(open, items, frames).0 != Link::Other)
        };
        let Some(found) = self.table.find(arrival.hash, is_right) else { return false };
        let Some(open) = self.opens.get_mut(found as usize) else { return false };
        let (link, packet) = arrival.compare(open, &self.items, frames);
        let next = arrival.candidate.filter(|next| {
            open.fence == arrival.fence
                && open.may_follow(link, packet, next, self.limits.segments)
                && next.verify()
        });
        let Some(next) = next else {
            self.table.remove(arrival.hash, found);
            return false;
        };
        if !open.push(&next) {
            self.table.remove(arrival.hash, found);
        }
        if let Some(item) = self.items.get_mut(open.item as usize) {
            let before = std::mem::replace(&mut item.last, arrival.number);
            if let Some(before) = self.parts.get_mut(before as usize) {
                before.next = arrival.number;
            }
        }
        self.set_part(arrival.number, &next);
        true
    }

    /// Opens a packet, where it may begin a super-packet.
    fn open(&mut self, arrival: &Arrival<'_>) {
        let Some(first) = arrival.candidate.filter(|first| !first.is_last() && first.verify()) else {
            return;
        };
        let tags = usize::from(arrival.seen.stack().tags());
        let item = self.items.len() as u32;
        self.set_part(arrival.number, &first);
        self.table.insert(arrival.hash, self.opens.len() as u32);
        self.opens.push(Open::new(*arrival.flow, item, arrival.fence, tags, &first));
    }

    fn set_part(&mut self, number: u32, candidate: &Candidate<'_>) {
        if let Some(part) = self.parts.get_mut(number as usize) {
            let end = candidate.place.end;
            (part.start, part.end) = (end - candidate.payload.len(), end);
        }
    }

    /// Writes the headers of all packets of more than one frame.
    fn finish<F: AsRef<[u8]>>(&mut self, frames: &[F]) {
        for open in self.opens.iter().filter(|open| open.count > 1) {
            let Some(item) = self.items.get_mut(open.item as usize) else { continue };
            let first = frames.get(item.first as usize).map(AsRef::as_ref).unwrap_or_default();
            let packet = item.place.and_then(|place| first.get(place.network..)).unwrap_or_default();
            let head = self.heads.len();
            self.heads.extend_from_slice(packet.get(..open.header_length).unwrap_or_default());
            let header = open.finish(self.heads.get_mut(head..).unwrap_or_default());
            item.super_packet = self.super_packets.len() as u32;
            self.super_packets.push(SuperPacket {
                header,
                head,
                head_length: open.header_length,
                length: open.length,
                count: open.count,
                has_fixed_identification: open.has_fixed_identification,
            });
        }
    }
}

/// A packet with ports that has just come.
struct Arrival<'a> {
    number: u32,
    frame: &'a [u8],
    seen: &'a Dissection,
    flow: &'a FlowKey,
    place: Place,
    fence: u32,
    hash: u64,
    candidate: Option<Candidate<'a>>,
}

impl Arrival<'_> {
    /// How its link compares to that of an open packet, and the first packet of that one, from its IP header on.
    fn compare<'f, F: AsRef<[u8]>>(&self, open: &Open, items: &[Item], frames: &'f [F]) -> (Link, &'f [u8]) {
        let first = items.get(open.item as usize).and_then(|item| Some((item.first, item.place?.network)));
        let Some((first, network)) = first else { return (Link::Other, &[]) };
        let first = frames.get(first as usize).map(AsRef::as_ref).unwrap_or_default();
        let (prefix, packet) = first.split_at_checked(network).unwrap_or_default();
        let own = self.frame.get(..self.place.network).unwrap_or_default();
        (Link::compare(prefix, own, open.tags), packet)
    }
}
