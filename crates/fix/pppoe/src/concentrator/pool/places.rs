//! Numbered places of which some are taken: the arithmetic under pools of addresses and prefixes.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// Most places. A bit each for what is taken, one for what is kept back, and a 32nd part of that for the search.
pub(super) const MOST: u32 = 1 << 24;

const BITS: u32 = u64::BITS;

/// Places 0 to `len`, given out in turn so that one that was freed is given again as late as possible, and to a user who had
/// one the same again where it is free. Every operation takes the time of a few words, whatever the number of places.
///
/// Memory: two bits a place and a little, and the last places of at most as many users as there are places, up to
/// [`Places::REMEMBERED`] twice over.
#[derive(Debug)]
pub(super) struct Places {
    len: u32,
    taken: Box<[u64]>,
    kept_back: Box<[u64]>,
    /// Per word of the two, whether all of it is taken or kept back; then per word of that, and so on up to one word.
    full: Vec<Box<[u64]>>,
    free: u32,
    turn: u32,
    hasher: RandomState,
    /// Last places, by the hash of the user: the newer half, and the one before it.
    last: [HashMap<u64, u32>; 2],
}

impl Places {
    /// Users whose last place is remembered, at least; twice as many at most.
    pub(super) const REMEMBERED: usize = 1 << 17;

    /// `len` places, up to [`MOST`], all free.
    pub(super) fn new(len: u32) -> Places {
        let len = len.min(MOST);
        let words = |bits: u32| vec![0u64; bits.div_ceil(BITS) as usize].into_boxed_slice();
        let mut full = Vec::new();
        let mut bits = len.div_ceil(BITS);
        loop {
            full.push(words(bits));
            if bits <= BITS {
                break;
            }
            bits = bits.div_ceil(BITS);
        }
        let mut places = Places {
            len,
            taken: words(len),
            kept_back: words(len),
            full,
            free: len,
            turn: 0,
            hasher: RandomState::new(),
            last: Default::default(),
        };
        places.close_the_end();
        places
    }

    /// Bits behind the last place are never free.
    fn close_the_end(&mut self) {
        let end = self.len.div_ceil(BITS) * BITS;
        for place in self.len..end {
            set(&mut self.kept_back, place, true);
        }
        let last = self.len.saturating_sub(1) / BITS;
        self.refresh(last);
        let mut bits = self.len.div_ceil(BITS);
        for level in &mut self.full {
            for bit in bits..bits.div_ceil(BITS) * BITS {
                set(level, bit, true);
            }
            bits = bits.div_ceil(BITS);
        }
    }

    pub(super) const fn free(&self) -> u32 {
        self.free
    }

    pub(super) const fn len(&self) -> u32 {
        self.len
    }

    fn is_free(&self, place: u32) -> bool {
        place < self.len && !get(&self.taken, place) && !get(&self.kept_back, place)
    }

    /// Whether a place is somebody's.
    pub(super) fn is_taken(&self, place: u32) -> bool {
        get(&self.taken, place)
    }

    /// Takes a place for a user: the one they had last, where it is free, else the next free one. `None`: all are taken.
    pub(super) fn take(&mut self, user: &[u8]) -> Option<u32> {
        let user = self.hasher.hash_one(user);
        let last =
            self.last.iter().find_map(|half| half.get(&user)).copied().filter(|place| self.is_free(*place));
        let place = match last {
            Some(place) => place,
            None => {
                let place = self.next_free(self.turn).or_else(|| self.next_free(0))?;
                self.turn = place + 1;
                place
            }
        };
        self.remember(user, place);
        self.take_this(place);
        Some(place)
    }

    /// Takes one place for the user who had it. Whether it was free.
    pub(super) fn take_again(&mut self, user: &[u8], place: u32) -> bool {
        let user = self.hasher.hash_one(user);
        self.remember(user, place);
        self.take_this(place)
    }

    /// Takes one place. Whether it was free.
    pub(super) fn take_this(&mut self, place: u32) -> bool {
        let is_free = self.is_free(place);
        if is_free {
            set(&mut self.taken, place, true);
            self.free -= 1;
            self.refresh(place / BITS);
        }
        is_free
    }

    /// Gives a place back.
    pub(super) fn release(&mut self, place: u32) {
        if place < self.len && get(&self.taken, place) {
            set(&mut self.taken, place, false);
            self.free += u32::from(!get(&self.kept_back, place));
            self.refresh(place / BITS);
        }
    }

    /// Says whether a place is kept back: given to nobody by [`Places::take`], and no longer to who has it once they gave it
    /// back. Whether that was otherwise before.
    pub(super) fn keep_back(&mut self, place: u32, is_kept: bool) -> bool {
        if place >= self.len || get(&self.kept_back, place) == is_kept {
            return false;
        }
        set(&mut self.kept_back, place, is_kept);
        if !get(&self.taken, place) {
            self.free = if is_kept { self.free - 1 } else { self.free + 1 };
        }
        self.refresh(place / BITS);
        true
    }

    fn remember(&mut self, user: u64, place: u32) {
        let [newer, older] = &mut self.last;
        if newer.len() >= Places::REMEMBERED.min(self.len as usize) && !newer.contains_key(&user) {
            *older = std::mem::take(newer);
        }
        newer.insert(user, place);
    }

    /// Brings the levels above a word of places up to date.
    fn refresh(&mut self, word: u32) {
        let at = word as usize;
        let used = self.taken.get(at).copied().unwrap_or(0) | self.kept_back.get(at).copied().unwrap_or(0);
        let (mut is_full, mut bit) = (used == u64::MAX, word);
        for level in &mut self.full {
            set(level, bit, is_full);
            bit /= BITS;
            is_full = level.get(bit as usize).copied() == Some(u64::MAX);
        }
    }

    /// The first free place from `from` on.
    fn next_free(&self, from: u32) -> Option<u32> {
        let used = |word: u32| {
            let at = word as usize;
            self.taken.get(at).copied().unwrap_or(u64::MAX)
                | self.kept_back.get(at).copied().unwrap_or(u64::MAX)
        };
        let word = from / BITS;
        if let Some(bit) = first_zero(used(word), from % BITS) {
            return Some(word * BITS + bit);
        }
        let word = self.next_with_room(0, word + 1)?;
        first_zero(used(word), 0).map(|bit| word * BITS + bit)
    }

    /// The first bit from `from` on that is not set in a level: up where a word of it is full, and down again.
    fn next_with_room(&self, level: usize, from: u32) -> Option<u32> {
        let words = self.full.get(level)?;
        let word = from / BITS;
        if let Some(bit) = first_zero(words.get(word as usize).copied()?, from % BITS) {
            return Some(word * BITS + bit);
        }
        let word = self.next_with_room(level + 1, word + 1)?;
        first_zero(words.get(word as usize).copied()?, 0).map(|bit| word * BITS + bit)
    }
}

fn get(words: &[u64], bit: u32) -> bool {
    words.get((bit / BITS) as usize).is_some_and(|word| word >> (bit % BITS) & 1 != 0)
}

fn set(words: &mut [u64], bit: u32, is_set: bool) {
    if let Some(word) = words.get_mut((bit / BITS) as usize) {
        *word = *word & !(1 << (bit % BITS)) | u64::from(is_set) << (bit % BITS);
    }
}

/// The first bit from `from` on that is zero.
const fn first_zero(word: u64, from: u32) -> Option<u32> {
    let zeros = !word & (u64::MAX << from);
    if zeros == 0 { None } else { Some(zeros.trailing_zeros()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_place_is_given_once_and_none_beyond() {
        for len in [1, 2, 63, 64, 65, 4095, 4096, 4097, 300_000] {
            let mut places = Places::new(len);
            let mut given = BTreeSet::new();
            for number in 0..len {
                let place = places.take(&number.to_be_bytes()).unwrap();
                assert!(place < len && given.insert(place));
            }
            assert_eq!((places.free(), places.take(b"one more")), (0, None));
            places.release(len / 2);
            assert_eq!((places.free(), places.take(b"one more")), (1, Some(len / 2)));
        }
    }

    #[test]
    fn a_user_gets_the_same_place_and_a_freed_one_is_given_late() {
        let mut places = Places::new(100);
        let first = places.take(b"alice").unwrap();
        places.release(first);
        let others: Vec<_> = (0..99u32).map(|other| places.take(&other.to_be_bytes()).unwrap()).collect();
        assert!(!others.contains(&first), "the place of a user who left is the last to be given");
        assert_eq!(places.take(b"alice"), Some(first));
        places.release(first);
        assert_eq!(places.take(b"bob"), Some(first));
        assert_eq!(places.take(b"alice"), None);
        places.release(others[0]);
        assert_eq!(places.take(b"alice"), Some(others[0]));
    }

    proptest! {
        /// The words of bits, against sets.
        #[test]
        fn words_and_sets_agree(
            len in 1u32..700,
            steps in proptest::collection::vec((0u8..5, any::<u32>()), 0..400),
        ) {
            let mut places = Places::new(len);
            let (mut taken, mut kept) = (BTreeSet::new(), BTreeSet::new());
            for (step, number) in steps {
                let place = number % len;
                match step {
                    0 | 1 => match places.take(&(number % 50).to_be_bytes()) {
                        Some(place) => prop_assert!(taken.insert(place) && !kept.contains(&place)),
                        None => prop_assert_eq!(taken.union(&kept).count(), len as usize),
                    },
                    2 => {
                        let is_free = !taken.contains(&place) && !kept.contains(&place);
                        prop_assert_eq!(places.take_this(place), is_free);
                        if is_free {
                            taken.insert(place);
                        }
                    }
                    3 => {
                        places.release(place);
                        taken.remove(&place);
                    }
                    _ => {
                        places.keep_back(place, number % 3 == 0);
                        if number % 3 == 0 { kept.insert(place); } else { kept.remove(&place); }
                    }
                }
                prop_assert_eq!(places.free() as usize, len as usize - taken.union(&kept).count());
            }
        }
    }
}
