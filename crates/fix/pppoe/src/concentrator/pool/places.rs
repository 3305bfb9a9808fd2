//! Which places of a pool are taken.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};

/// Places 0 to `len`, given out in turn so that one that was freed is given again as late as possible, and to a user who had
/// one the same again where it is free. Memory and time grow with what is taken, not with `len`.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) len: u32,
    /// Free places: the first of each run of them, and the one behind its last.
    runs: BTreeMap<u32, u32>,
    pub(super) free: u32,
    pub(super) taken: HashSet<u32>,
    pub(super) kept_back: HashSet<u32>,
    turn: u32,
    hasher: RandomState,
    /// Last places, by the hash of the user: the newer half, and the one before it.
    last: [HashMap<u64, u32>; 2],
}

impl Places {
    /// Users whose last place is remembered, at least; twice as many at most.
    const REMEMBERED: usize = 1 << 17;

    pub(super) fn new(len: u32) -> Places {
        Places {
            len,
            runs: (len > 0).then_some((0, len)).into_iter().collect(),
            free: len,
            taken: HashSet::new(),
            kept_back: HashSet::new(),
            turn: 0,
            hasher: RandomState::new(),
            last: Default::default(),
        }
    }

    /// The run of free places that has this one.
    fn run_of(&self, place: u32) -> Option<(u32, u32)> {
        let (first, behind) = self.runs.range(..=place).next_back()?;
        (place < *behind).then_some((*first, *behind))
    }

    /// Takes a place out of the free ones. Whether it was among them.
    fn occupy(&mut self, place: u32) -> bool {
        let Some((first, behind)) = self.run_of(place) else { return false };
        self.runs.remove(&first);
        let rest = [(first, place), (place + 1, behind)];
        self.runs.extend(rest.into_iter().filter(|(first, behind)| first < behind));
        self.free -= 1;
        true
    }

    /// Puts a place among the free ones, where it is not.
    fn vacate(&mut self, place: u32) {
        let behind = self.runs.remove(&(place + 1)).unwrap_or(place + 1);
        match self.runs.range_mut(..place).next_back() {
            Some((_, end)) if *end == place => *end = behind,
            _ => {
                self.runs.insert(place, behind);
            }
        }
        self.free += 1;
    }

    /// The first free place from `from` on.
    fn next_free(&self, from: u32) -> Option<u32> {
        match self.run_of(from) {
            Some(_) => Some(from),
            None => self.runs.range(from..).next().map(|(first, _)| *first),
        }
    }

    /// The place that a user had last, where it is free, else the next free one. `None`: all are taken.
    pub(super) fn take(&mut self, user: &[u8]) -> Option<u32> {
        let user = self.hasher.hash_one(user);
        let last = self.last.iter().find_map(|half| half.get(&user)).copied();
        let place = match last.filter(|place| self.run_of(*place).is_some()) {
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
        self.remember(self.hasher.hash_one(user), place);
        self.take_this(place)
    }

    /// Takes one place. Whether it was free.
    pub(super) fn take_this(&mut self, place: u32) -> bool {
        self.occupy(place) && self.taken.insert(place)
    }

    pub(super) fn release(&mut self, place: u32) {
        if self.taken.remove(&place) && !self.kept_back.contains(&place) {
            self.vacate(place);
        }
    }

    /// Says whether a place is kept back: given to nobody by [`Places::take`], and no longer to who has it once they gave it
    /// back.
    pub(super) fn keep_back(&mut self, place: u32, is_kept: bool) {
        if is_kept {
            self.kept_back.insert(place);
            self.occupy(place);
        } else if self.kept_back.remove(&place) && !self.taken.contains(&place) {
            self.vacate(place);
        }
    }

    fn remember(&mut self, user: u64, place: u32) {
        let [newer, older] = &mut self.last;
        if newer.len() >= Places::REMEMBERED.min(self.len as usize) && !newer.contains_key(&user) {
            *older = std::mem::take(newer);
        }
        newer.insert(user, place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

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
        /// Runs of free places, against sets.
        #[test]
        fn runs_and_sets_agree(
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
                prop_assert_eq!(places.free as usize, len as usize - taken.union(&kept).count());
            }
        }
    }
}
