//! What happens next: the next time of every part of the machine, in a tree of minima of fixed size.
//!
//! Parts (CPUs, vectors, sources, clocks) have one next event each, so there is nothing to queue: a slot is overwritten
//! when its part changes its mind. Equal times are served in the order of the slots, which makes runs repeatable.

use super::Time;

/// No event.
pub(super) const NEVER: Time = Time::MAX;

/// Children of a node: four make a tree of two levels of the sixteen slots that a router of four CPUs has.
const CHILDREN: usize = 4;

pub(super) struct Schedule {
    /// The earliest time of all.
    least: Time,
    /// Group g holds the times of the children of node g: nodes 4g + 1 to 4g + 4. Node 0 is the root, slots are the leaves.
    groups: Box<[[Time; CHILDREN]]>,
    /// The first leaf.
    leaves: usize,
}

impl Schedule {
    pub(super) fn new(slots: usize) -> Schedule {
        let (mut leaves, mut level) = (1, CHILDREN);
        while level < slots {
            leaves += level;
            level *= CHILDREN;
        }
        Schedule { least: NEVER, groups: vec![[NEVER; CHILDREN]; leaves].into(), leaves }
    }

    /// The earliest time.
    #[inline]
    pub(super) fn next_time(&self) -> Time {
        self.least
    }

    /// The time of a slot.
    #[inline]
    pub(super) fn time(&self, slot: usize) -> Time {
        let node = self.leaves + slot;
        if node == 0 { self.least } else { self.groups[(node - 1) / CHILDREN][(node - 1) % CHILDREN] }
    }

    /// The first of the slots that have the earliest time.
    #[inline]
    pub(super) fn next_slot(&self) -> usize {
        let least = self.least;
        let mut node = 0;
        while node < self.leaves {
            let [first, second, third, _] = self.groups[node];
            // Without a branch that depends on times: processors guess those badly.
            let not_first = usize::from(first != least);
            let nor_second = not_first & usize::from(second != least);
            let nor_third = nor_second & usize::from(third != least);
            node = CHILDREN * node + 1 + not_first + nor_second + nor_third;
        }
        node - self.leaves
    }

    #[inline]
    pub(super) fn set(&mut self, slot: usize, at: Time) {
        let (mut node, mut least) = (self.leaves + slot, at);
        while node > 0 {
            let place = (node - 1) % CHILDREN;
            node = (node - 1) / CHILDREN;
            let group = &mut self.groups[node];
            group[place] = least;
            let [first, second, third, fourth] = *group;
            least = first.min(second).min(third.min(fourth));
        }
        self.least = least;
    }

    #[inline]
    pub(super) fn clear(&mut self, slot: usize) {
        self.set(slot, NEVER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::{RngCore, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    #[test]
    fn the_earliest_of_any_slots_comes_first() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        for slots in [1, 2, 3, 9, 64, 130] {
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
