//! When each session wants to be called: a binary heap that knows where everybody is.

use crate::Time;

const NOWHERE: u32 = u32::MAX;

/// At most one time for each slot. Setting, moving and removing one takes the logarithm of their number, asking for the
/// earliest no time; sessions that wait cost nothing.
#[derive(Debug, Default)]
pub(in crate::concentrator) struct Timers {
    heap: Vec<(Time, u32)>,
    /// Where each slot stands in the heap.
    places: Vec<u32>,
}

impl Timers {
    pub(in crate::concentrator) fn next(&self) -> Option<Time> {
        self.heap.first().map(|(time, _)| *time)
    }

    /// Takes the earliest out, where it is not later than `now`.
    pub(in crate::concentrator) fn expired(&mut self, now: Time) -> Option<u32> {
        let (time, slot) = *self.heap.first()?;
        (time <= now).then(|| {
            self.set(slot, None);
            slot
        })
    }

    pub(in crate::concentrator) fn of(&self, slot: u32) -> Option<Time> {
        let place = self.places.get(slot as usize)?;
        self.heap.get(*place as usize).map(|(time, _)| *time)
    }

    /// How many slots have a time.
    #[cfg(test)]
    pub(in crate::concentrator) fn len(&self) -> usize {
        self.heap.len()
    }

    /// Sets the time of a slot, or takes it away.
    pub(in crate::concentrator) fn set(&mut self, slot: u32, time: Option<Time>) {
        if self.places.len() <= slot as usize {
            if time.is_none() {
                return;
            }
            self.places.resize(slot as usize + 1, NOWHERE);
        }
        let place = self.places.get(slot as usize).copied().unwrap_or(NOWHERE);
        match (time, place) {
            (None, NOWHERE) => {}
            (None, place) => self.remove(place as usize),
            (Some(time), NOWHERE) => {
                self.heap.push((time, slot));
                self.note(self.heap.len() - 1);
                self.up(self.heap.len() - 1);
            }
            (Some(time), place) => {
                let place = place as usize;
                if let Some(entry) = self.heap.get_mut(place) {
                    entry.0 = time;
                }
                self.up(place);
                self.down(place);
            }
        }
    }

    fn remove(&mut self, place: usize) {
        let last = self.heap.len() - 1;
        self.swap(place, last);
        if let Some((_, slot)) = self.heap.pop()
            && let Some(place) = self.places.get_mut(slot as usize)
        {
            *place = NOWHERE;
        }
        if place < self.heap.len() {
            self.up(place);
            self.down(place);
        }
    }

    fn note(&mut self, at: usize) {
        if let Some((_, slot)) = self.heap.get(at)
            && let Some(place) = self.places.get_mut(*slot as usize)
        {
            *place = at as u32;
        }
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        self.note(one);
        self.note(other);
    }

    fn is_before(&self, one: usize, other: usize) -> bool {
        matches!((self.heap.get(one), self.heap.get(other)), (Some(one), Some(other)) if one < other)
    }

    fn up(&mut self, mut at: usize) {
        while at > 0 && self.is_before(at, (at - 1) / 2) {
            self.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
    }

    fn down(&mut self, mut at: usize) {
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            let least = if self.is_before(right, left) { right } else { left };
            if !self.is_before(least, at) {
                return;
            }
            self.swap(at, least);
            at = least;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// The heap, against an ordered map.
        #[test]
        fn the_earliest_is_always_the_next(steps in proptest::collection::vec((0u32..40, 0u64..60), 0..300)) {
            let mut timers = Timers::default();
            let mut expected = BTreeMap::new();
            for (slot, time) in steps {
                if time < 50 {
                    timers.set(slot, Some(Time::from_secs(time)));
                    expected.insert(slot, Time::from_secs(time));
                } else if time < 55 {
                    timers.set(slot, None);
                    expected.remove(&slot);
                } else {
                    let now = Time::from_secs(u64::from(slot));
                    while let Some(slot) = timers.expired(now) {
                        let time = expected.remove(&slot).unwrap();
                        prop_assert!(time <= now && expected.values().all(|other| *other >= time));
                    }
                    prop_assert!(expected.values().all(|time| *time > now));
                }
                prop_assert_eq!(timers.next(), expected.values().min().copied());
                prop_assert_eq!(timers.len(), expected.len());
                for slot in 0..40 {
                    prop_assert_eq!(timers.of(slot), expected.get(&slot).copied());
                }
            }
        }
    }
}
