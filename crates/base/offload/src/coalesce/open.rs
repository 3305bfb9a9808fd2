//! A packet that is being put together: what may follow, and what its headers become.

use super::candidate::{Candidate, LAST, pseudo_header};
use super::link::Link;
use crate::checksum::{Sum, internet};
use crate::segment::{TCP_CHECKSUM, Transport, UDP_CHECKSUM, put, word};
use crate::virtio::NetHeader;
use wire::ip::MAX_LENGTH;
use wire::transport::Tcp;
use wire::{FlowKey, IpVersion, ipv6};

/// The most datagrams that Linux takes in one super-packet (`UDP_GRO_CNT_MAX`).
const MOST_DATAGRAMS: u32 = 64;

/// The headers of the first packet, and what has been put behind it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    pub(super) key: FlowKey,
    /// Its place among what is delivered.
    pub(super) item: u32,
    /// What the fence of its addresses said when it was opened.
    pub(super) fence: u32,
    /// VLAN tags of its frame.
    pub(super) tags: usize,
    pub(super) version: IpVersion,
    pub(super) transport: Transport,
    pub(super) network_length: usize,
    pub(super) header_length: usize,
    /// Payload bytes of the first packet, and of each but the last.
    pub(super) size: usize,
    /// Bytes of the IP packet so far.
    pub(super) length: usize,
    pub(super) count: u32,
    /// FIN and PSH of the last segment.
    pub(super) last_flags: u16,
    pub(super) has_fixed_identification: bool,
    next_sequence: u32,
    /// Of the first packet, and whether DF is set; of IPv4.
    identification: (u16, bool),
}

impl Open {
    /// A packet that begins with this one.
    pub(super) fn new(key: FlowKey, item: u32, fence: u32, tags: usize, first: &Candidate<'_>) -> Open {
        let header_length = first.network_header.len() + first.transport_header.len();
        Open {
            key,
            item,
            fence,
            tags,
            version: first.version,
            transport: first.transport,
            network_length: first.network_header.len(),
            header_length,
            size: first.payload.len(),
            length: header_length + first.payload.len(),
            count: 1,
            last_flags: 0,
            has_fixed_identification: false,
            next_sequence: first.sequence.wrapping_add(first.payload.len() as u32),
            identification: first.identification(),
        }
    }

    /// Whether `next`, of the same flow, may follow, as far as headers say. `packet` is the first packet, `link` compares
    /// what is in front of both. The rules: see the module.
    pub(super) fn may_follow(&self, link: Link, packet: &[u8], next: &Candidate<'_>, most: u32) -> bool {
        let (Some(network), Some(transport)) =
            (packet.get(..self.network_length), packet.get(self.network_length..self.header_length))
        else {
            return false;
        };
        let most = if self.transport == Transport::Udp { most.min(MOST_DATAGRAMS) } else { most };
        let fits = self.count < most
            && next.payload.len() <= self.size
            && self.length + next.payload.len() <= MAX_LENGTH;
        link == Link::Same
            && fits
            && network.len() == next.network_header.len()
            && transport.len() == next.transport_header.len()
            && self.network_agrees(network, next)
            && match self.transport {
                Transport::Tcp => self.tcp_agrees(transport, next),
                Transport::Udp => true,
            }
    }

    fn network_agrees(&self, first: &[u8], next: &Candidate<'_>) -> bool {
        match self.version {
            // All but length, identification and checksum.
            IpVersion::V4 => {
                let fields = |header: &[u8]| (word(header, 0), word(header, 6), word(header, 8));
                fields(first) == fields(next.network_header)
                    && next.identification().0 == self.next_identification(self.is_fixed_with(next))
            }
            // All but the length.
            IpVersion::V6 => {
                first.get(..4) == next.network_header.get(..4)
                    && first.get(6..) == next.network_header.get(6..)
            }
        }
    }

    /// Whether all packets have one identification, as the second one says. Only where DF is set: otherwise each packet
    /// needs its own (RFC 6864 section 4.2).
    fn is_fixed_with(&self, next: &Candidate<'_>) -> bool {
        let (identification, dont_fragment) = self.identification;
        match self.count {
            1 => dont_fragment && next.identification().0 == identification,
            _ => self.has_fixed_identification,
        }
    }

    fn next_identification(&self, is_fixed: bool) -> u16 {
        let (identification, _) = self.identification;
        if is_fixed { identification } else { identification.wrapping_add(self.count as u16) }
    }

    fn tcp_agrees(&self, first: &[u8], next: &Candidate<'_>) -> bool {
        let header = next.transport_header;
        (word(first, 12) ^ next.flags) & !u16::from(LAST) == 0
            && next.sequence == self.next_sequence
            // Acknowledgment; window; urgent pointer and options.
            && first.get(8..12) == header.get(8..12)
            && word(first, 14) == word(header, 14)
            && first.get(Tcp::LENGTH - 2..) == header.get(Tcp::LENGTH - 2..)
    }

    /// Puts the packet behind. Gives whether another may still follow: a shorter one, FIN and PSH end it.
    pub(super) fn push(&mut self, next: &Candidate<'_>) -> bool {
        self.has_fixed_identification = self.version == IpVersion::V4 && self.is_fixed_with(next);
        self.count += 1;
        self.length += next.payload.len();
        self.next_sequence = self.next_sequence.wrapping_add(next.payload.len() as u32);
        self.last_flags = next.flags & u16::from(LAST);
        next.payload.len() == self.size && !next.is_last()
    }

    /// Makes the headers of the first packet those of all, and says what a virtio header says of them.
    pub(super) fn finish(&self, headers: &mut [u8]) -> NetHeader {
        let transport_length = self.length - self.network_length;
        let Some((network, transport)) = headers.split_at_mut_checked(self.network_length) else {
            return NetHeader::default();
        };
        match self.version {
            IpVersion::V4 => {
                put(network, 2, self.length as u16);
                put(network, 10, 0);
                put(network, 10, internet(network));
            }
            IpVersion::V6 => put(network, 4, (self.length - ipv6::Header::LENGTH) as u16),
        }
        let pseudo = pseudo_header(self.version, self.transport, network, transport_length);
        let partial = pseudo.unwrap_or(Sum::ZERO).folded();
        let (gso_type, checksum_offset) = match self.transport {
            Transport::Tcp => {
                let flags = word(transport, 12) | self.last_flags;
                put(transport, 12, flags);
                put(transport, TCP_CHECKSUM, partial);
                let gso_type = match self.version {
                    IpVersion::V4 => NetHeader::TCP_IPV4,
                    IpVersion::V6 => NetHeader::TCP_IPV6,
                };
                (gso_type, TCP_CHECKSUM)
            }
            Transport::Udp => {
                put(transport, 4, transport_length as u16);
                put(transport, UDP_CHECKSUM, partial);
                (NetHeader::UDP, UDP_CHECKSUM)
            }
        };
        NetHeader {
            flags: NetHeader::NEEDS_CHECKSUM,
            gso_type,
            header_length: self.header_length as u16,
            gso_size: self.size as u16,
            checksum_start: self.network_length as u16,
            checksum_offset: checksum_offset as u16,
        }
    }
}
