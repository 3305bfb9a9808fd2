//! The sessions themselves: a cache line each, by their numbers.
//!
//! # Contract
//!
//! * One thread writes a session, any reads it. A reader gets all of a session as it was at one moment, or nothing while it is
//!   being written; it takes no lock.
//! * A number is used again after the session is removed, with another [generation](Owner::generation).
//! * Programs in XDP may read the same words, and count and take from buckets in them ([`super::memory`]).

use super::Session;
use super::memory::Memory;
use super::rates::{self, Bucket};
use link::mss::Clamp;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use wire::Vlans;
use wire::ethernet::MacAddress;
use xdp::subscribers_layout::{HAS_CLAMP, IS_LIMITED, IS_THERE};

/// How often a session is looked at that is being written.
const AGAIN: usize = 1000;

/// A session's number at one time; with what its packets need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    pub slot: u32,
    /// Which of those that had this place.
    pub(crate) generation: u16,
    /// The longest packet that it takes, bytes; 0: nobody's.
    pub mtu: u16,
    /// Whether its maximum segment sizes are lowered.
    pub(crate) has_clamp: bool,
    /// Whether it has a rate.
    pub(crate) is_limited: bool,
}

/// A session as the data path sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Observation {
    pub owner: Owner,
    pub key: Key,
    /// The interface identifier of its link-local address; 0: none.
    pub identifier: u64,
}

/// What distinguishes sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub vlans: Vlans,
    /// MAC address in the upper 48 bits, session id in the lower 16.
    pub station: u64,
}

impl Key {
    #[inline]
    pub(crate) fn of(vlans: Vlans, peer: MacAddress, id: u16) -> Key {
        let [a, b, c, d, e, f] = peer.0;
        let [g, h] = id.to_be_bytes();
        Key { vlans, station: u64::from_be_bytes([a, b, c, d, e, f, g, h]) }
    }

    #[inline]
    pub(crate) fn peer(self) -> MacAddress {
        let [a, b, c, d, e, f, ..] = self.station.to_be_bytes();
        MacAddress([a, b, c, d, e, f])
    }

    #[inline]
    pub(crate) fn id(self) -> u16 {
        self.station as u16
    }
}

/// Frames and bytes of a session. The bytes are those of frames, from the destination address on, without FCS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Frames from the subscriber whose packets were taken.
    pub received: link::Traffic,
    pub sent: link::Traffic,
    /// Frames from the subscriber that were refused, and packets that were.
    pub received_dropped: u32,
    /// Packets and frames to the subscriber that were not sent.
    pub sent_dropped: u32,
}

/// The words of a session: a cache line.
#[derive(Clone, Copy, Debug)]
struct Slot<'m> {
    /// From the lowest bit: 24 of sequence, odd while it is written; 8 of flags; 16 of MTU; 16 of generation.
    state: &'m AtomicU64,
    vlans: &'m AtomicU64,
    station: &'m AtomicU64,
    identifier: &'m AtomicU64,
    /// Frames and bytes from the subscriber, then to it.
    counts: [&'m AtomicU64; 4],
}

const SEQUENCE: u64 = 0xff_ffff;

/// All sessions.
#[derive(Debug)]
pub(crate) struct Slots {
    memory: Memory,
}

impl Slots {
    pub(crate) const fn new(memory: Memory) -> Slots {
        Slots { memory }
    }

    /// Bytes that it takes now.
    pub(crate) fn memory(&self) -> usize {
        self.memory.bytes()
    }

    #[inline]
    fn slot(&self, number: u32) -> Option<Slot<'_>> {
        let [state, vlans, station, identifier, a, b, c, d] = self.memory.line(number)?;
        Some(Slot { state, vlans, station, identifier, counts: [a, b, c, d] })
    }

    /// Whether a packet of so many bytes from or to a session does not exceed its rate.
    #[inline]
    pub(crate) fn admits(&self, owner: Owner, is_received: bool, bytes: u64) -> bool {
        if !owner.is_limited {
            return true;
        }
        let Some([received, sent]) = self.memory.buckets(owner.slot) else { return true };
        let bucket = Bucket::of(if is_received { received } else { sent });
        bucket.take(rates::now(), bytes)
    }

    /// The session of this number.
    #[inline]
    pub(crate) fn see(&self, number: u32) -> Option<Observation> {
        let slot = self.slot(number)?;
        for _ in 0..AGAIN {
            let state = slot.state.load(Ordering::Acquire);
            let vlans = slot.vlans.load(Ordering::Relaxed);
            let station = slot.station.load(Ordering::Relaxed);
            let identifier = slot.identifier.load(Ordering::Relaxed);
            fence(Ordering::Acquire);
            if state & 1 == 1 || slot.state.load(Ordering::Relaxed) != state {
                std::hint::spin_loop();
                continue;
            }
            if state & IS_THERE == 0 {
                return None;
            }
            let owner = Owner {
                slot: number,
                generation: (state >> 48) as u16,
                mtu: (state >> 32) as u16,
                has_clamp: state & HAS_CLAMP != 0,
                is_limited: state & IS_LIMITED != 0,
            };
            return Some(Observation {
                owner,
                key: Key { vlans: Vlans::of_number(vlans), station },
                identifier,
            });
        }
        None
    }

    /// Writes a session where there is none, with a generation of its own.
    pub(crate) fn fill(&self, number: u32, session: &Session) -> Option<Owner> {
        self.memory.reserve(number, is_limited(session))?;
        let slot = self.slot(number)?;
        self.limit(number, session, true);
        let generation = ((slot.state.load(Ordering::Relaxed) >> 48) as u16).wrapping_add(1);
        self.write(slot, |slot| {
            let key = Key::of(session.vlans, session.peer, session.id);
            slot.vlans.store(key.vlans.number(), Ordering::Relaxed);
            slot.station.store(key.station, Ordering::Relaxed);
            slot.identifier.store(session.identifier, Ordering::Relaxed);
            for count in slot.counts {
                count.store(0, Ordering::Relaxed);
            }
            state_of(session, generation)
        });
        if let Some(drops) = self.memory.drops(number) {
            drops.iter().for_each(|count| count.store(0, Ordering::Relaxed));
        }
        let mtu = session.mtu;
        let is_limited = is_limited(session);
        Some(Owner { slot: number, generation, mtu, has_clamp: session.mss_clamp, is_limited })
    }

    pub(crate) fn change(&self, number: u32, session: &Session) {
        let Some(slot) = self.slot(number) else { return };
        self.memory.reserve(number, is_limited(session));
        self.limit(number, session, false);
        let generation = (slot.state.load(Ordering::Relaxed) >> 48) as u16;
        self.write(slot, |slot| {
            slot.identifier.store(session.identifier, Ordering::Relaxed);
            state_of(session, generation)
        });
    }

    pub(crate) fn empty(&self, number: u32) {
        let Some(slot) = self.slot(number) else { return };
        let generation = slot.state.load(Ordering::Relaxed) >> 48;
        self.write(slot, |_| generation << 48);
    }

    /// Gives a session its rates; `anew`: nothing has passed yet.
    fn limit(&self, number: u32, session: &Session, anew: bool) {
        let Some(both) = self.memory.buckets(number) else { return };
        for (words, rate) in both.iter().zip([session.rates.upload, session.rates.download]) {
            let bucket = Bucket::of(words);
            bucket.set(rate);
            if anew {
                bucket.reset();
            }
        }
    }

    /// Lets `change` write while readers keep away; it gives the state but for the sequence.
    fn write(&self, slot: Slot<'_>, change: impl FnOnce(Slot<'_>) -> u64) {
        let sequence = slot.state.load(Ordering::Relaxed) & SEQUENCE;
        slot.state.fetch_or(1, Ordering::Relaxed);
        // Nothing that follows is seen before that.
        fence(Ordering::Release);
        let state = change(slot);
        slot.state.store(state | (sequence + 2) & SEQUENCE, Ordering::Release);
    }

    /// Whether the place still has the session that it had.
    #[inline]
    fn of(&self, owner: Owner) -> Option<Slot<'_>> {
        let slot = self.slot(owner.slot)?;
        let is_same = (slot.state.load(Ordering::Relaxed) >> 48) as u16 == owner.generation && owner.mtu > 0;
        is_same.then_some(slot)
    }

    /// Counts frames of a session; what was counted too many is added as its negative, modulo 2^64.
    #[inline]
    pub(crate) fn count(&self, owner: Owner, is_received: bool, frames: u64, bytes: u64) {
        let Some(slot) = self.of(owner) else { return };
        let [in_frames, in_bytes, out_frames, out_bytes] = slot.counts;
        let (one, other) = if is_received { (in_frames, in_bytes) } else { (out_frames, out_bytes) };
        one.fetch_add(frames, Ordering::Relaxed);
        other.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts frames of a session that went no further.
    pub(crate) fn count_dropped(&self, owner: Owner, is_received: bool, frames: u64) {
        if self.of(owner).is_some()
            && let Some([received, sent]) = self.memory.drops(owner.slot)
        {
            let count = if is_received { received } else { sent };
            count.fetch_add(frames, Ordering::Relaxed);
        }
    }

    /// What was counted of a session.
    pub(crate) fn usage(&self, number: u32) -> Usage {
        let Some(slot) = self.slot(number) else { return Usage::default() };
        let [in_frames, in_bytes, out_frames, out_bytes] =
            slot.counts.map(|count| count.load(Ordering::Relaxed));
        let dropped = |at: usize| {
            let counts = self.memory.drops(number).and_then(|drops| drops.get(at));
            counts.map_or(0, |count| count.load(Ordering::Relaxed) as u32)
        };
        Usage {
            received: link::Traffic { frames: in_frames, bytes: in_bytes },
            sent: link::Traffic { frames: out_frames, bytes: out_bytes },
            received_dropped: dropped(0),
            sent_dropped: dropped(1),
        }
    }

    /// The number of frames received from a session.
    pub(crate) fn heard(&self, number: u32) -> u64 {
        self.slot(number).map_or(0, |Slot { counts: [frames, ..], .. }| frames.load(Ordering::Relaxed))
    }
}

impl Owner {
    /// How far its segment sizes are lowered.
    #[inline]
    pub const fn clamp(self) -> Option<Clamp> {
        if self.has_clamp { Some(Clamp::for_mtu(self.mtu as u32)) } else { None }
    }
}

fn is_limited(session: &Session) -> bool {
    session.rates.download.is_some() || session.rates.upload.is_some()
}

fn state_of(session: &Session, generation: u16) -> u64 {
    let flag = |is_set, flag| if is_set { flag } else { 0 };
    let flags = IS_THERE | flag(session.mss_clamp, HAS_CLAMP) | flag(is_limited(session), IS_LIMITED);
    u64::from(generation) << 48 | u64::from(session.mtu) << 32 | flags
}
