//! What a worker asks the tables about frames and packets.

use super::registry::Table;
use super::slots::{Key, Observation, Owner};
use link::Dropped;
use link::framing::{Form, Framing, bytes_of, ip_length, ip_of_ppp, version, word};
use link::lines::Lines;
use link::mss::Clamp;
use offload::{NetHeader, Prefix};
use std::ops::Range;
use std::sync::Arc;
use wire::ethernet::{self, EtherType};
use wire::pppoe::{self, Code};
use wire::transport::Udp;
use wire::vlan::{TAG_LENGTH, Tag, Tci};
use wire::{IpProtocol, IpVersion, Vlans, ipv6};

/// Bytes of both MAC addresses.
const ADDRESSES: usize = 12;
/// Bytes in front of a PPPoE length, at most.
const FRONT: usize = ADDRESSES + Vlans::MOST * TAG_LENGTH + 2 + 4;
/// The first ten bits of link-local addresses, and what the rest of the upper half is (RFC 4291 section 2.5.6).
const LINK_LOCAL: u64 = 0xfe80 << 48;
const LINK_LOCAL_MASK: u64 = 0xffc0 << 48;
/// The first sixteen bits of groups on the link.
const LINK_GROUP: u128 = 0xff02 << 112;

/// The tables, for one worker.
#[derive(Clone, Debug)]
pub struct View {
    table: Arc<Table>,
}

impl View {
    pub(super) fn new(table: Arc<Table>) -> View {
        View { table }
    }

    #[inline]
    fn take(&self, frame: &[u8]) -> Result<(Range<usize>, Owner), Dropped> {
        let (key, at) = self.key_of(frame)?;
        let place = place_of(frame, at);
        // The table of addresses is small where that of keys is not: nearly every frame is done here, and waits for one line
        // of memory less.
        if let Ok((version, range)) = &place
            && let Some(packet) = frame.get(range.clone())
            && let Some(seen) = self.source_of(*version, packet)
            && seen.key == key
        {
            return self.within_rate(range.clone(), seen.owner);
        }
        let Some(seen) = self.table.session(key) else {
            self.table.note(key);
            let is_anothers = self.table.has_id(key.id());
            return Err(if is_anothers { Dropped::OtherPeer } else { Dropped::OtherSession });
        };
        let taken = place.and_then(|(version, range)| {
            let packet = frame.get(range.clone()).unwrap_or_default();
            if self.may_send(version, packet, &seen) { Ok(range) } else { Err(Dropped::OtherSource) }
        });
        if taken.is_err() {
            self.table.slots.count_dropped(seen.owner, true, 1);
        }
        self.within_rate(taken?, seen.owner)
    }

    /// A packet that a session has sent, where it does not exceed its rate.
    #[inline]
    fn within_rate(&self, range: Range<usize>, owner: Owner) -> Result<(Range<usize>, Owner), Dropped> {
        if self.table.slots.admits(owner, true, range.len() as u64) {
            return Ok((range, owner));
        }
        self.table.slots.count_dropped(owner, true, 1);
        Err(Dropped::OverRate)
    }

    /// Which session a frame says that it is of, and where its PPPoE header starts.
    #[inline]
    fn key_of(&self, frame: &[u8]) -> Result<(Key, usize), Dropped> {
        let addresses: ethernet::Header<'_> =
            frame.first_chunk().ok_or(Dropped::Short).map(ethernet::Header::of)?;
        if addresses.destination() != self.table.local() {
            return Err(Dropped::OtherStation);
        }
        let mut vlans = Vlans::NONE;
        let mut at = ADDRESSES;
        loop {
            let ethertype = word(frame, at).ok_or(Dropped::Short).map(EtherType)?;
            if ethertype == EtherType::PPPOE_SESSION {
                break;
            }
            if !ethertype.is_tag() {
                return Err(Dropped::NotPppoe);
            }
            let tci = Tci(word(frame, at + 2).ok_or(Dropped::Short)?);
            vlans = vlans.with(Tag { tpid: ethertype, tci }).ok_or(Dropped::MoreTags)?;
            at += TAG_LENGTH;
        }
        at += 2;
        let header = frame.get(at..).and_then(|rest| rest.first_chunk()).ok_or(Dropped::Short)?;
        let header = pppoe::Header::of(header);
        header.check_version().map_err(|_| Dropped::PppoeVersion)?;
        if header.code() != Code::SESSION {
            return Err(Dropped::PppoeCode);
        }
        Ok((Key::of(vlans, addresses.source(), header.session()), at))
    }

    /// The session that has the source address of a packet, whose IP header is whole.
    #[inline]
    fn source_of(&self, version: IpVersion, packet: &[u8]) -> Option<Observation> {
        let owned = match version {
            IpVersion::V4 => self.table.routes.find4(source4(packet)?),
            IpVersion::V6 => self.table.routes.find6(source6(packet)?),
        };
        self.table.session_of(owned?)
    }

    /// Whether a packet, whose IP header is whole, has a source address of the session.
    #[inline]
    fn may_send(&self, version: IpVersion, packet: &[u8], seen: &Observation) -> bool {
        match version {
            IpVersion::V4 => {
                let owned = source4(packet).and_then(|source| self.table.routes.find4(source));
                owned.is_some_and(|owned| owned.is(seen.owner))
            }
            IpVersion::V6 => {
                let Some(source) = source6(packet) else { return false };
                let (high, low) = ((source >> 64) as u64, source as u64);
                if high & LINK_LOCAL_MASK == LINK_LOCAL {
                    return high == LINK_LOCAL && low == seen.identifier && low != 0;
                }
                if source == 0 {
                    return asks_neighbours(packet);
                }
                self.table.routes.find6(source).is_some_and(|owned| owned.is(seen.owner))
            }
        }
    }
}

/// Where the packet is in a frame whose PPPoE header starts there, and of which version: all of it, and a whole IP header.
#[inline]
fn place_of(frame: &[u8], at: usize) -> Result<(IpVersion, Range<usize>), Dropped> {
    let start = at + pppoe::Header::LENGTH;
    let length = word(frame, at + 4).ok_or(Dropped::Short)?;
    let payload = frame.get(start..).and_then(|rest| rest.get(..usize::from(length)));
    let payload = payload.ok_or(Dropped::PppoeLength)?;
    let (version, taken) = ip_of_ppp(payload)?;
    let packet = payload.get(taken..).unwrap_or_default();
    let length = ip_length(version, packet)?;
    Ok((version, start + taken..start + taken + length))
}

/// The source address of a packet of IPv4.
#[inline]
fn source4(packet: &[u8]) -> Option<u32> {
    packet.get(12..).and_then(|rest| rest.first_chunk()).map(|source| u32::from_be_bytes(*source))
}

/// The source address of a packet of IPv6.
#[inline]
fn source6(packet: &[u8]) -> Option<u128> {
    packet.get(8..).and_then(|rest| rest.first_chunk()).map(|source| u128::from_be_bytes(*source))
}

/// Whether a packet of IPv6 is ICMPv6 to a group on the link: duplicate address detection and router solicitation have no
/// source.
fn asks_neighbours(packet: &[u8]) -> bool {
    let Some(header) = packet.first_chunk().map(ipv6::Header::of) else { return false };
    header.next_header() == IpProtocol::ICMPV6 && u128::from(header.destination()) >> 112 == LINK_GROUP >> 112
}

impl Lines for View {
    type Owner = Owner;

    #[inline]
    fn single(&self) -> Option<&Framing> {
        None
    }

    #[inline]
    fn form(&self) -> Form {
        Form::Packets
    }

    #[inline]
    fn network_offset(&self) -> usize {
        0
    }

    #[inline]
    fn decapsulate(&self, frame: &mut [u8]) -> Result<(Range<usize>, Owner), Dropped> {
        self.take(frame)
    }

    #[inline]
    fn outward<'p>(&'p self, packet: &[u8], space: &'p mut Prefix) -> Result<(&'p Prefix, Owner), Dropped> {
        let owned = match version(packet).ok_or(Dropped::IpVersion)? {
            IpVersion::V4 => {
                let to: Option<&[u8; 4]> = packet.get(16..).and_then(|rest| rest.first_chunk());
                self.table.routes.find4(u32::from_be_bytes(*to.ok_or(Dropped::Short)?))
            }
            IpVersion::V6 => {
                let to: Option<&[u8; 16]> = packet.get(24..).and_then(|rest| rest.first_chunk());
                self.table.routes.find6(u128::from_be_bytes(*to.ok_or(Dropped::Short)?))
            }
        };
        let seen = owned.and_then(|owned| self.table.session_of(owned)).ok_or(Dropped::NoSubscriber)?;
        let mut front = [0; FRONT];
        let length = put_front(&mut front, self, &seen.key);
        if !space.set_session(front.get(..length).unwrap_or_default()) {
            return Err(Dropped::TooLong);
        }
        Ok((space, seen.owner))
    }

    #[inline]
    fn clamp(&self, _: Option<Clamp>, owner: Owner) -> Option<Clamp> {
        owner.clamp()
    }

    #[inline]
    fn exceeded(&self, owner: Owner, header: &NetHeader, packet: &[u8]) -> Option<usize> {
        let most = usize::from(owner.mtu);
        if packet.len() <= most {
            return None;
        }
        let longest = match header.is_super_packet() {
            false => packet.len(),
            true => headers_of(header, packet) + usize::from(header.gso_size),
        };
        (longest > most).then_some(most)
    }

    #[inline]
    fn admits(&self, owner: Owner, bytes: u64) -> bool {
        self.table.slots.admits(owner, false, bytes)
    }

    #[inline]
    fn received(&self, owner: Owner, bytes: u64) {
        self.table.slots.count(owner, true, 1, bytes);
    }

    #[inline]
    fn sent(&self, owner: Owner, frames: u64, bytes: u64) {
        self.table.slots.count(owner, false, frames, bytes);
    }

    fn stayed(&self, owner: Owner, is_received: bool, frames: u64, bytes: u64) {
        self.table.slots.count(owner, is_received, frames.wrapping_neg(), bytes.wrapping_neg());
    }

    fn dropped(&self, owner: Owner, is_received: bool, frames: u64) {
        self.table.slots.count_dropped(owner, is_received, frames);
    }

    fn longest_frame(&self, parent_mtu: u32) -> u32 {
        // With a tag, which the first is where Linux lets it be.
        parent_mtu.saturating_add((ethernet::Header::LENGTH + TAG_LENGTH) as u32)
    }
}

/// Bytes of the headers of a super-packet; what is wrong with them is found when it is segmented.
fn headers_of(header: &NetHeader, packet: &[u8]) -> usize {
    let transport = usize::from(header.checksum_start);
    let length = match header.gso_type & !NetHeader::ECN {
        NetHeader::UDP => Udp::LENGTH,
        _ => packet.get(transport + 12).map_or(0, |byte| usize::from(byte >> 4) * 4),
    };
    transport + length
}

/// Writes MAC addresses, tags and PPPoE header up to its length; how many bytes.
#[inline]
fn put_front(front: &mut [u8; FRONT], view: &View, key: &Key) -> usize {
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        if let Some(place) = front.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
            at += bytes.len();
        }
    };
    put(&key.peer().0);
    put(&view.table.local().0);
    for tag in key.vlans.tags() {
        put(&bytes_of(tag));
    }
    put(&EtherType::PPPOE_SESSION.0.to_be_bytes());
    let [high, low] = key.id().to_be_bytes();
    put(&[0x11, Code::SESSION.0, high, low]);
    at
}
