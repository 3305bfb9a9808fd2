//! Which subscriber has an address: the longest prefix decides.
//!
//! # Contract
//!
//! * A look-up asks the table of each length of prefix that there is, the longest first, once: with addresses and a few lengths
//!   of routes that is one or two probes, however many subscribers there are. It takes no lock ([`super::index`]).
//! * A prefix belongs to one session. What is found belongs to the session that it was added for: the entry has six bits of
//!   its generation.

use super::index::{Index, Seed};
use super::slots::Owner;
use pppoe::concentrator::network::Network;
use std::net::IpAddr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Bits of a session's number, and of its generation in an entry.
const NUMBER_BITS: u32 = 20;
const GENERATION_BITS: u32 = 6;
const BEHIND: u32 = NUMBER_BITS + GENERATION_BITS;
/// The most sessions.
pub(crate) const MOST_SESSIONS: usize = 1 << NUMBER_BITS;
/// Prefixes of IPv6 whose memory is taken together.
const PIECE: usize = 1024;

const fn mask4(length: u8) -> u32 {
    match length {
        0 => 0,
        length => u32::MAX << (32 - length as u32),
    }
}

const fn mask6(length: u8) -> u128 {
    match length {
        0 => 0,
        length => u128::MAX << (128 - length as u32),
    }
}

/// Whom a prefix leads to, as an entry has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owned {
    bits: u32,
}

impl Owned {
    fn of(owner: Owner) -> Owned {
        let generation = u32::from(owner.generation) & ((1 << GENERATION_BITS) - 1);
        Owned { bits: generation << NUMBER_BITS | owner.slot & (MOST_SESSIONS as u32 - 1) }
    }

    /// The number of the session.
    #[inline]
    pub(super) const fn slot(self) -> u32 {
        self.bits & (MOST_SESSIONS as u32 - 1)
    }

    /// Whether it is this one, at its time.
    #[inline]
    pub(super) fn is(self, owner: Owner) -> bool {
        self == Owned::of(owner)
    }
}

/// All prefixes.
#[derive(Debug)]
pub(super) struct Routes {
    seed: Seed,
    /// An entry: address, length and one, whose.
    index4: Index,
    /// Bit N: there are prefixes of N bits.
    lengths4: [AtomicU64; 1],
    /// An entry: hash, and the number of a record and one.
    index6: Index,
    lengths6: [AtomicU64; 3],
    records: Box<[OnceLock<Box<[Record]>>]>,
}

/// A prefix of IPv6.
#[derive(Debug, Default)]
struct Record {
    /// From the highest bit: 30 of sequence, odd while it is written; 8 of length; 26 of whose.
    state: AtomicU64,
    high: AtomicU64,
    low: AtomicU64,
}

const SEQUENCE: u32 = BEHIND + 8;

impl Routes {
    /// With room for so many prefixes of each version.
    ///
    /// The index has as many of IPv4; programs may read it, too (`entry_of_ipv4` of `bpf/subscribers.bpf.c` in crate `xdp`).
    pub(super) fn new(most: usize, index4: Index) -> Routes {
        Routes {
            seed: Seed::new(),
            index4,
            lengths4: Default::default(),
            index6: Index::new(most),
            lengths6: Default::default(),
            records: (0..most.div_ceil(PIECE)).map(|_| OnceLock::new()).collect(),
        }
    }

    /// What addresses are hashed by.
    pub(super) const fn seed(&self) -> Seed {
        self.seed
    }

    /// Bytes that it takes now.
    pub(super) fn memory(&self) -> usize {
        let used = self.records.iter().filter(|piece| piece.get().is_some()).count();
        self.index4.memory()
            + self.index6.memory()
            + used * PIECE * size_of::<Record>()
            + self.records.len() * size_of::<OnceLock<Box<[Record]>>>()
    }

    /// Whose an IPv4 address is.
    #[inline]
    pub(super) fn find4(&self, address: u32) -> Option<Owned> {
        longest(&self.lengths4, |length| self.exact4(address & mask4(length), length))
    }

    #[inline]
    fn exact4(&self, address: u32, length: u8) -> Option<Owned> {
        let key = entry4(address, length, 0) >> BEHIND;
        let hash = self.hash4(address, length);
        let owned = |entry: u64| Owned { bits: entry as u32 & ((1 << BEHIND) - 1) };
        self.index4.find(hash, |entry| (entry >> BEHIND == key).then(|| owned(entry)))
    }

    /// Eight addresses in a row have eight places in a row, which are a cache line: pools give such addresses out, so that
    /// ten thousand subscribers are in a few thousand lines and not in ten thousand.
    #[inline]
    fn hash4(&self, address: u32, length: u8) -> u32 {
        self.seed.hash((address >> 3).into(), length.into()) << 3 | address & 7
    }

    /// Whose an IPv6 address is.
    #[inline]
    pub(super) fn find6(&self, address: u128) -> Option<Owned> {
        longest(&self.lengths6, |length| self.exact6(address & mask6(length), length).map(|(_, owned)| owned))
    }

    /// The entry of a prefix, and whose it is.
    #[inline]
    fn exact6(&self, address: u128, length: u8) -> Option<(u64, Owned)> {
        let hash = self.hash6(address, length);
        self.index6.find(hash, |entry| {
            if (entry >> 32) as u32 != hash {
                return None;
            }
            let (found, bits, owned) = self.record(entry)?;
            (found == address && bits == length).then_some((entry, owned))
        })
    }

    #[inline]
    fn hash6(&self, address: u128, length: u8) -> u32 {
        self.seed.hash((address >> 64) as u64, (address as u64).rotate_left(8) ^ u64::from(length) << 1)
    }

    fn place(&self, entry: u64) -> Option<&Record> {
        let number = (entry as u32).checked_sub(1)? as usize;
        self.records.get(number / PIECE)?.get()?.get(number % PIECE)
    }

    /// The record of an entry, unless it is written at this moment: then the entry is removed, too.
    #[inline]
    fn record(&self, entry: u64) -> Option<(u128, u8, Owned)> {
        let record = self.place(entry)?;
        let state = record.state.load(Ordering::Acquire);
        let high = record.high.load(Ordering::Relaxed);
        let low = record.low.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        let is_whole = state >> SEQUENCE & 1 == 0 && record.state.load(Ordering::Relaxed) == state;
        let owned = Owned { bits: state as u32 & ((1 << BEHIND) - 1) };
        is_whole.then_some((u128::from(high) << 64 | u128::from(low), (state >> BEHIND) as u8, owned))
    }
}

/// `address` (32 bits), length and one (6), whose (26).
const fn entry4(address: u32, length: u8, owned: u32) -> u64 {
    (address as u64) << 32 | (length as u64 + 1) << BEHIND | owned as u64
}

/// Asks for each length that there is, the longest first.
#[inline]
fn longest<T>(lengths: &[AtomicU64], mut ask: impl FnMut(u8) -> Option<T>) -> Option<T> {
    for (part, lengths) in lengths.iter().enumerate().rev() {
        let mut lengths = lengths.load(Ordering::Acquire);
        while lengths != 0 {
            let bit = 63 - lengths.leading_zeros();
            lengths ^= 1 << bit;
            let found = ask((part as u32 * 64 + bit) as u8);
            if found.is_some() {
                return found;
            }
        }
    }
    None
}

/// How many prefixes there are of an IP version, by length, and in all.
#[derive(Clone, Copy, Debug)]
struct Counts {
    of_length: [u32; 129],
    all: usize,
}

impl Counts {
    /// Counts one more of a length; `lengths` has a bit for each of which there are any.
    fn add(&mut self, length: u8, lengths: &[AtomicU64]) {
        self.all += 1;
        if let Some(count) = self.of_length.get_mut(usize::from(length)) {
            *count += 1;
        }
        if let Some(lengths) = lengths.get(usize::from(length) / 64) {
            lengths.fetch_or(1 << (length % 64), Ordering::Release);
        }
    }

    fn remove(&mut self, length: u8, lengths: &[AtomicU64]) {
        self.all = self.all.saturating_sub(1);
        let Some(count) = self.of_length.get_mut(usize::from(length)) else { return };
        *count = count.saturating_sub(1);
        if *count == 0
            && let Some(lengths) = lengths.get(usize::from(length) / 64)
        {
            lengths.fetch_and(!(1 << (length % 64)), Ordering::Release);
        }
    }
}

/// The one who changes them.
#[derive(Debug)]
pub(super) struct Writer {
    most: usize,
    counts4: Counts,
    counts6: Counts,
    /// Numbers of records that are free, and the next that was never used.
    free: Vec<u32>,
    next: u32,
}

impl Writer {
    /// Of routes with room for so many of each version.
    pub(super) fn new(most: usize) -> Writer {
        let none = Counts { of_length: [0; 129], all: 0 };
        Writer { most, counts4: none, counts6: none, free: Vec::new(), next: 0 }
    }

    /// Whether there is room for one more like this.
    pub(super) fn has_room(&self, prefix: Network) -> bool {
        (if prefix.address().is_ipv4() { self.counts4.all } else { self.counts6.all }) < self.most
    }

    /// Whose exactly this prefix is.
    pub(super) fn owner(&self, routes: &Routes, prefix: Network) -> Option<Owned> {
        match prefix.address() {
            IpAddr::V4(address) => routes.exact4(address.into(), prefix.length()),
            IpAddr::V6(address) => routes.exact6(address.into(), prefix.length()).map(|(_, owned)| owned),
        }
    }

    /// Adds one that is nobody's, and for which there is room.
    pub(super) fn add(&mut self, routes: &Routes, prefix: Network, owner: Owner) {
        let (owned, length) = (Owned::of(owner).bits, prefix.length());
        match prefix.address() {
            IpAddr::V4(address) => {
                let address = u32::from(address);
                routes.index4.insert(routes.hash4(address, length), entry4(address, length, owned));
                self.counts4.add(length, &routes.lengths4);
            }
            IpAddr::V6(address) => {
                let address = u128::from(address);
                let number = self.free.pop().unwrap_or_else(|| {
                    self.next += 1;
                    self.next - 1
                });
                let entry = u64::from(routes.hash6(address, length)) << 32 | u64::from(number + 1);
                if let Some(piece) = routes.records.get(number as usize / PIECE) {
                    piece.get_or_init(|| (0..PIECE).map(|_| Record::default()).collect());
                }
                if let Some(record) = routes.place(entry) {
                    record.write(address, length, owned);
                }
                routes.index6.insert((entry >> 32) as u32, entry);
                self.counts6.add(length, &routes.lengths6);
            }
        }
    }

    /// Removes one; whether it was there.
    pub(super) fn remove(&mut self, routes: &Routes, prefix: Network) -> bool {
        let length = prefix.length();
        match prefix.address() {
            IpAddr::V4(address) => {
                let address = u32::from(address);
                let Some(owned) = routes.exact4(address, length) else { return false };
                self.counts4.remove(length, &routes.lengths4);
                let hash =
                    |entry: u64| routes.hash4((entry >> 32) as u32, ((entry >> BEHIND) & 0x3f) as u8 - 1);
                let entry = entry4(address, length, owned.bits);
                routes.index4.remove(hash(entry), entry, hash)
            }
            IpAddr::V6(address) => {
                let Some((entry, _)) = routes.exact6(address.into(), length) else { return false };
                self.counts6.remove(length, &routes.lengths6);
                let hash = |entry: u64| (entry >> 32) as u32;
                self.free.push(entry as u32 - 1);
                routes.index6.remove(hash(entry), entry, hash)
            }
        }
    }
}

impl Record {
    fn write(&self, address: u128, length: u8, owned: u32) {
        let sequence = self.state.load(Ordering::Relaxed) >> SEQUENCE;
        self.state.store((sequence | 1) << SEQUENCE, Ordering::Relaxed);
        fence(Ordering::Release);
        self.high.store((address >> 64) as u64, Ordering::Relaxed);
        self.low.store(address as u64, Ordering::Relaxed);
        let state = sequence.wrapping_add(2) << SEQUENCE | u64::from(length) << BEHIND | u64::from(owned);
        self.state.store(state, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::net::{Ipv4Addr, Ipv6Addr};

    fn owner(slot: u32, generation: u16) -> Owner {
        Owner { slot, generation, mtu: 1492, has_clamp: false, is_limited: false }
    }

    /// Addresses near each other, so that prefixes are inside others.
    fn prefixes() -> impl Strategy<Value = Network> {
        let v4 = (0_u32..16, 0_u8..=32)
            .prop_map(|(low, length)| (IpAddr::V4(Ipv4Addr::from(0xc633_6400 | low)), length));
        let v6 = (0_u128..4, 0_u128..4, 0_u8..=128).prop_map(|(high, low, length)| {
            (IpAddr::V6(Ipv6Addr::from(0x2001_0db8 << 96 | high << 64 | low)), length)
        });
        prop_oneof![v4, v6].prop_map(|(address, length)| Network::of(address, length).expect("so many bits"))
    }

    fn naive(all: &BTreeMap<Network, Owner>, address: IpAddr) -> Option<Owner> {
        let has = |prefix: &Network| Network::of(address, prefix.length()).is_some_and(|own| own == *prefix);
        all.iter()
            .filter(|(prefix, _)| has(prefix))
            .max_by_key(|(prefix, _)| prefix.length())
            .map(|(_, own)| *own)
    }

    proptest! {
        #[test]
        fn the_longest_prefix_is_found_as_by_a_walk_over_all(
            steps in prop::collection::vec((any::<bool>(), prefixes(), 0_u32..50, any::<u16>()), 1..120),
        ) {
            let (routes, mut writer) = (Routes::new(120, Index::new(120)), Writer::new(120));
            let mut all = BTreeMap::new();
            for (is_in, prefix, slot, generation) in steps {
                let was = writer.owner(&routes, prefix);
                prop_assert_eq!(was.is_some(), all.contains_key(&prefix));
                if is_in && was.is_none() {
                    writer.add(&routes, prefix, owner(slot, generation));
                    all.insert(prefix, owner(slot, generation));
                } else if !is_in {
                    prop_assert_eq!(writer.remove(&routes, prefix), all.remove(&prefix).is_some());
                }
            }
            for low in 0..16_u32 {
                let address = 0xc633_6400 | low;
                let expected = naive(&all, IpAddr::V4(address.into()));
                let found = routes.find4(address);
                prop_assert_eq!(found.is_some(), expected.is_some());
                prop_assert!(found.zip(expected).is_none_or(|(found, own)| found.is(own)));
            }
            for (high, low) in (0..16_u128).map(|number| (number / 4, number % 4)) {
                let address = 0x2001_0db8 << 96 | high << 64 | low;
                let expected = naive(&all, IpAddr::V6(address.into()));
                let found = routes.find6(address);
                prop_assert_eq!(found.is_some(), expected.is_some());
                prop_assert!(found.zip(expected).is_none_or(|(found, own)| found.is(own)));
            }
        }
    }

    #[test]
    fn the_default_route_and_one_address_coexist() {
        let (routes, mut writer) = (Routes::new(8, Index::new(8)), Writer::new(8));
        let (one, other) = (owner(3, 1), owner(4, 65));
        writer.add(&routes, Network::of(Ipv4Addr::UNSPECIFIED.into(), 0).expect("no bits"), one);
        writer.add(&routes, Network::host(Ipv4Addr::new(192, 0, 2, 1).into()), other);
        assert!(routes.find4(0xc000_0201).is_some_and(|found| found.is(other) && found.slot() == 4));
        assert!(routes.find4(0xc000_0202).is_some_and(|found| found.is(one)));
        // Another session at the same place.
        assert!(!routes.find4(0xc000_0202).is_some_and(|found| found.is(owner(3, 2))));
        assert_eq!(routes.find6(1), None);
        assert_eq!(Network::of(Ipv4Addr::UNSPECIFIED.into(), 33), None);
    }
}
