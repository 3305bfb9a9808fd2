//! A hash table of words that one thread changes while others look things up.
//!
//! # Contract
//!
//! * A look-up takes no lock and waits for nobody who sleeps: it reads words, each of which is whole. What it finds was there at
//!   one moment of the look-up; what is there throughout it finds.
//! * Open addressing, linear probing, at most half full. An entry that is removed is replaced by those behind it, so that
//!   probes stay short however long sessions come and go. While that happens, an entry may be in two places, and one that a
//!   look-up passes may move behind it: who finds nothing looks whether anything has moved, and then once more.
//! * Changes take turns (`&mut Writer` is the caller's business); each is a few words.

use kernel::bpf::SharedWords;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// How often a look-up that found nothing begins anew while entries move. Whoever moves them takes less than that, but when the
/// scheduler stops it on its way; then nothing is found, and a packet is lost.
const AGAIN: usize = 1000;
const EMPTY: u64 = 0;

/// Where entries are: in this process, or in a map that it shares with programs.
#[derive(Debug)]
enum Words {
    Own(Box<[AtomicU64]>),
    Shared(Arc<SharedWords>),
}

/// The table. Entries are words other than 0, whose hash their owner knows.
#[derive(Debug)]
pub(crate) struct Index {
    entries: Words,
    mask: usize,
    /// Odd while entries move, and two more after each time.
    moves: AtomicU64,
}

impl Index {
    /// With room for so many entries.
    pub(super) fn new(most: usize) -> Index {
        let size = Index::size(most);
        let entries = Words::Own((0..size).map(|_| AtomicU64::new(EMPTY)).collect());
        Index { entries, mask: size - 1, moves: AtomicU64::new(0) }
    }

    /// The same in memory of [`Index::size`], which is empty.
    pub(super) fn shared(words: Arc<SharedWords>) -> Index {
        let mask = words.words().len() - 1;
        Index { entries: Words::Shared(words), mask, moves: AtomicU64::new(0) }
    }

    #[inline]
    fn entries(&self) -> &[AtomicU64] {
        match &self.entries {
            Words::Own(entries) => entries,
            Words::Shared(words) => words.words(),
        }
    }

    /// Places of one with room for so many entries.
    pub(super) fn size(most: usize) -> usize {
        (most.max(8) * 2).next_power_of_two()
    }

    /// Bytes that one with room for so many entries takes.
    pub(super) fn bytes(most: usize) -> usize {
        Index::size(most) * size_of::<AtomicU64>()
    }

    /// Bytes that it takes.
    pub(super) fn memory(&self) -> usize {
        size_of_val(self.entries())
    }

    #[inline]
    fn entry(&self, at: usize) -> u64 {
        self.entries().get(at & self.mask).map_or(EMPTY, |entry| entry.load(Ordering::Acquire))
    }

    fn set(&self, at: usize, entry: u64) {
        if let Some(place) = self.entries().get(at & self.mask) {
            place.store(entry, Ordering::Release);
        }
    }

    /// The first entry under this hash for which `check` has an answer.
    #[inline]
    pub(super) fn find<T>(&self, hash: u32, mut check: impl FnMut(u64) -> Option<T>) -> Option<T> {
        for _ in 0..AGAIN {
            let before = self.moves.load(Ordering::Acquire);
            for at in (hash as usize..).take(self.mask + 1) {
                let entry = self.entry(at);
                if entry == EMPTY {
                    break;
                }
                if let Some(found) = check(entry) {
                    return Some(found);
                }
            }
            fence(Ordering::Acquire);
            if before & 1 == 0 && self.moves.load(Ordering::Relaxed) == before {
                return None;
            }
            std::hint::spin_loop();
        }
        None
    }

    /// Puts an entry in, of which there is none yet, and for which there is room.
    pub(super) fn insert(&self, hash: u32, entry: u64) {
        let mut at = hash as usize;
        // At most half full: there is an end.
        while self.entry(at) != EMPTY {
            at += 1;
        }
        self.set(at, entry);
    }

    /// Takes an entry out, where `hash_of` knows the hash of any that is there; whether it was there.
    pub(super) fn remove(&self, hash: u32, entry: u64, hash_of: impl Fn(u64) -> u32) -> bool {
        let mut hole = hash as usize & self.mask;
        loop {
            match self.entry(hole) {
                EMPTY => return false,
                found if found == entry => break,
                _ => hole = (hole + 1) & self.mask,
            }
        }
        self.moves.fetch_add(1, Ordering::AcqRel);
        let mut at = hole;
        loop {
            at = (at + 1) & self.mask;
            let next = self.entry(at);
            if next == EMPTY {
                break;
            }
            // It may go back to the hole unless its probe begins behind that.
            let from = hash_of(next) as usize & self.mask;
            if at.wrapping_sub(from) & self.mask >= at.wrapping_sub(hole) & self.mask {
                self.set(hole, next);
                hole = at;
            }
        }
        self.set(hole, EMPTY);
        self.moves.fetch_add(1, Ordering::AcqRel);
        true
    }
}

/// Hashes two words by a seed that nobody can guess, so that nobody can choose addresses that meet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seed([u64; 2]);

impl Seed {
    /// Another each time.
    pub(super) fn new() -> Seed {
        use std::hash::{BuildHasher, RandomState};
        Seed([RandomState::new().hash_one(1), RandomState::new().hash_one(2)])
    }

    /// Its words.
    pub(super) const fn words(self) -> [u64; 2] {
        self.0
    }

    /// The hash: the halves of a product, folded together.
    #[inline]
    pub(super) fn hash(self, a: u64, b: u64) -> u32 {
        let [one, other] = self.0;
        let product = u128::from(a ^ one) * u128::from(b ^ other);
        let folded = (product as u64) ^ (product >> 64) as u64;
        // The second product takes care of factors that have few bits.
        let mixed = folded.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::sync::atomic::{AtomicBool, AtomicU64};

    /// Hashes that meet often.
    fn hash(entry: u64) -> u32 {
        (entry % 7) as u32
    }

    proptest! {
        #[test]
        fn it_is_a_set(steps in prop::collection::vec((any::<bool>(), 1_u64..40), 1..300)) {
            let index = Index::new(40);
            let mut expected = BTreeSet::new();
            for (is_in, entry) in steps {
                if is_in && expected.insert(entry) {
                    index.insert(hash(entry), entry);
                } else if !is_in {
                    prop_assert_eq!(index.remove(hash(entry), entry, hash), expected.remove(&entry));
                }
                for entry in 1..40 {
                    let found = index.find(hash(entry), |found| (found == entry).then_some(found));
                    prop_assert_eq!(found.is_some(), expected.contains(&entry));
                }
            }
        }
    }

    #[test]
    fn what_stays_is_found_while_others_come_and_go() {
        let index = Index::new(64);
        let stay: Vec<u64> = (1..20).map(|number| number * 2).collect();
        for entry in &stay {
            index.insert(hash(*entry), *entry);
        }
        let is_over = AtomicBool::new(false);
        let (found, missed) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        for entry in &stay {
                            let seen = index.find(hash(*entry), |found| (found == *entry).then_some(found));
                            found.fetch_add(u64::from(seen == Some(*entry)), Ordering::Relaxed);
                            missed.fetch_add(u64::from(seen != Some(*entry)), Ordering::Relaxed);
                        }
                    }
                });
            }
            while found.load(Ordering::Relaxed) < 100_000 && missed.load(Ordering::Relaxed) == 0 {
                for entry in (1..20).map(|number| number * 2 + 1) {
                    index.insert(hash(entry), entry);
                }
                for entry in (1..20).map(|number| number * 2 + 1) {
                    assert!(index.remove(hash(entry), entry, hash));
                }
            }
            is_over.store(true, Ordering::Relaxed);
        });
        assert_eq!(missed.into_inner(), 0);
    }
}
