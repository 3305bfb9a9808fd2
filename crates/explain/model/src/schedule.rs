//! What happens next: the next time of every part of the machine, and the least of them.
//!
//! Parts (CPUs, vectors, sources, clocks) have one next event each, so there is nothing to queue: a slot is overwritten
//! when its part changes its mind. Equal times are served in the order of the slots, which makes runs repeatable.

use crate::Time;
use crate::engine::LONGEST;

pub(crate) const NEVER: Time = Time::MAX;

/// A key is a time and, in so many bits below it, the slot: the least key says whose turn it is, too. Keys of [`NEVER`] have all
/// bits set.
const SLOT_BITS: u32 = 12;
/// What would come from here on, after 75 minutes, comes never: no simulation is that long.
const END: Time = 1 << (64 - SLOT_BITS);
const _: () = assert!(END > LONGEST, "times fit");
/// Slots of a group: what a router of four CPUs has is in one.
const GROUP: usize = 16;

pub(crate) struct Schedule {
    /// The least key of all.
    least: u64,
    /// The least of each group.
    leasts: Box<[u64]>,
    /// Of all slots, up to a multiple of four.
    keys: Box<[u64]>,
}

impl Schedule {
    /// Of so many slots, 4,096 at most.
    pub(crate) fn new(slots: usize) -> Schedule {
        assert!(slots <= 1 << SLOT_BITS, "{slots} parts of a machine");
        let groups = slots.div_ceil(GROUP);
        Schedule {
            least: NEVER,
            leasts: vec![NEVER; groups].into(),
            keys: vec![NEVER; slots.next_multiple_of(4)].into(),
        }
    }

    /// The earliest time.
    #[inline]
    pub(crate) fn next_time(&self) -> Time {
        time(self.least)
    }

    /// The time of a slot.
    #[inline]
    pub(crate) fn time(&self, slot: usize) -> Time {
        time(self.keys[slot])
    }

    /// The first of the slots that have the earliest time. Means nothing where no slot has one.
    #[inline]
    pub(crate) fn next_slot(&self) -> usize {
        (self.least & ((1 << SLOT_BITS) - 1)) as usize
    }

    #[inline]
    pub(crate) fn set(&mut self, slot: usize, at: Time) {
        let key = if at < END { at << SLOT_BITS | slot as u64 } else { NEVER };
        let before = std::mem::replace(&mut self.keys[slot], key);
        if self.keys.len() <= GROUP {
            if key <= self.least {
                self.least = key;
            } else if before == self.least {
                self.least = least_of(&self.keys);
            }
            return;
        }
        let group = slot / GROUP;
        let least = self.leasts[group];
        if key <= least {
            self.leasts[group] = key;
            self.least = self.least.min(key);
        } else if before == least {
            // Most often it is the least of all that goes, and what comes in its place is found by looking at all.
            let end = (group * GROUP + GROUP).min(self.keys.len());
            self.leasts[group] = least_of(&self.keys[group * GROUP..end]);
            self.least = self.leasts.iter().copied().fold(NEVER, u64::min);
        }
    }

    #[inline]
    pub(crate) fn clear(&mut self, slot: usize) {
        self.set(slot, NEVER);
    }
}

#[inline]
fn time(key: u64) -> Time {
    if key == NEVER { NEVER } else { key >> SLOT_BITS }
}

/// In four chains, which a processor follows at a time.
#[inline]
fn least_of(keys: &[u64]) -> u64 {
    let mut least = [NEVER; 4];
    for four in keys.chunks_exact(4) {
        for (least, key) in least.iter_mut().zip(four) {
            *least = (*least).min(*key);
        }
    }
    let [first, second, third, fourth] = least;
    first.min(second).min(third.min(fourth))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    #[test]
    fn the_earliest_of_any_slots_comes_first() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        for slots in [1, 2, 3, 9, 16, 17, 64, 130] {
            let mut schedule = Schedule::new(slots);
            let mut plain = vec![NEVER; slots];
            for _ in 0..5000 {
                let slot = random.next_u64() as usize % slots;
                let at = if random.next_u64() % 8 == 0 { NEVER } else { random.next_u64() % 50 };
                schedule.set(slot, at);
                plain[slot] = at;
                assert_eq!(schedule.time(slot), at);
                let least = plain.iter().copied().min().unwrap();
                assert_eq!(schedule.next_time(), least);
                if least != NEVER {
                    assert_eq!(Some(schedule.next_slot()), plain.iter().position(|at| *at == least));
                }
            }
        }
    }
}
