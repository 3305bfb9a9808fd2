//! Counters read once or twice, and what may be concluded from them.

#![expect(missing_docs, reason = "what its name does not say has a comment")]

use crate::Quote;
use std::collections::BTreeMap;
use std::time::Duration;

/// One past the largest value of a counter that wraps at 32 bits.
const WRAP: u64 = 1 << 32;

/// A counter: its first and its latest value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    first: u64,
    latest: Option<u64>,
    quote: Quote,
    /// Which of a driver's counters it is, or is the sum of; 0 where that does not matter.
    parts: u64,
    /// Whether it counts frames only while something makes the driver poll the queue.
    pub(crate) is_while_polled: bool,
}

/// What a counter counted between two samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delta {
    Counted(u64),
    /// So much, over the end of 32 bits: it may have been 2³² more.
    Wrapped(u64),
    /// It went backwards by other than a wrap: the driver or the machine was started anew.
    Reset,
    OneSample,
}

impl Counter {
    /// Read once.
    pub fn new(value: u64, quote: Quote) -> Counter {
        Counter { first: value, latest: None, quote, parts: 0, is_while_polled: false }
    }

    /// Read again: a later sample. The quote follows.
    pub fn again(&mut self, value: u64, quote: Quote) {
        self.latest = Some(value);
        self.quote = quote;
    }

    /// Puts a reading into `slot`, whether or not one is there.
    pub(crate) fn note(slot: &mut Option<Counter>, value: impl Into<Option<u64>>, quote: &Quote) {
        let Some(value) = value.into() else { return };
        let quote = quote.clone();
        match slot {
            Some(counter) => counter.again(value, quote),
            None => *slot = Some(Counter::new(value, quote)),
        }
    }

    /// Puts a reading into the counter of that key; false where `most` others are known.
    pub(crate) fn note_at<K: Ord>(
        counters: &mut BTreeMap<K, Counter>,
        key: K,
        value: u64,
        quote: Quote,
        most: usize,
    ) -> bool {
        if let Some(counter) = counters.get_mut(&key) {
            counter.again(value, quote);
            return true;
        }
        let has_room = counters.len() < most;
        if has_room {
            counters.insert(key, Counter::new(value, quote));
        }
        has_room
    }

    /// Puts the sum of `parts` (a set of bits) into `slot`. A text may be cut, and a sum of fewer parts is no
    /// second sample: it is left out. A sum of more parts replaces what was known.
    pub(crate) fn note_sum(slot: &mut Option<Counter>, value: u64, parts: u64, quote: Quote) {
        match slot {
            Some(counter) if counter.parts == parts => counter.again(value, quote),
            Some(counter) if parts & counter.parts != counter.parts => {}
            slot => *slot = Some(Counter { parts, ..Counter::new(value, quote) }),
        }
    }

    /// The latest value.
    pub fn value(&self) -> u64 {
        self.latest.unwrap_or(self.first)
    }

    pub fn first(&self) -> u64 {
        self.first
    }

    /// The line of the latest value.
    pub fn quote(&self) -> &Quote {
        &self.quote
    }

    /// What was counted between the first sample and the latest. A value that fell from the upper half of 32
    /// bits is taken for one wrap, since many drivers count in 32-bit registers.
    pub fn delta(&self) -> Delta {
        let Some(latest) = self.latest else { return Delta::OneSample };
        match latest.checked_sub(self.first) {
            Some(counted) => Delta::Counted(counted),
            None if self.first < WRAP && self.first >= WRAP / 2 => Delta::Wrapped(latest + WRAP - self.first),
            None => Delta::Reset,
        }
    }

    /// What was counted between two samples, a wrap included; `None` where that is not known.
    pub fn counted(&self) -> Option<u64> {
        match self.delta() {
            Delta::Counted(counted) | Delta::Wrapped(counted) => Some(counted),
            Delta::Reset | Delta::OneSample => None,
        }
    }
}

/// What the numbers of a comparison rest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Two samples, with the time between them where it is known.
    Between(Option<Duration>),
    /// One sample: everything since the counters were started.
    SinceStart,
}

/// Counters that are compared with each other, on one basis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shares {
    /// One number a counter, in the order given.
    pub counts: Vec<u64>,
    pub basis: Basis,
    /// Whether one of them wrapped at 32 bits.
    pub wrapped: bool,
}

impl Shares {
    /// Compares what `counters` counted between the samples where all have two and one of them moved, else
    /// their values. `None` where there is no counter, or one was reset between the samples.
    pub fn of<'a>(
        counters: impl IntoIterator<Item = &'a Counter>,
        interval: Option<Duration>,
    ) -> Option<Shares> {
        let counters: Vec<&Counter> = counters.into_iter().collect();
        let deltas: Vec<Delta> = counters.iter().map(|counter| counter.delta()).collect();
        if counters.is_empty() || deltas.contains(&Delta::Reset) {
            return None;
        }
        let between: Option<Vec<u64>> = counters.iter().map(|counter| counter.counted()).collect();
        let wrapped = deltas.iter().any(|delta| matches!(delta, Delta::Wrapped(_)));
        Some(match between.filter(|counts| counts.iter().any(|&count| count > 0)) {
            Some(counts) => Shares { counts, basis: Basis::Between(interval), wrapped },
            None => Shares {
                counts: counters.iter().map(|counter| counter.value()).collect(),
                basis: Basis::SinceStart,
                wrapped: false,
            },
        })
    }

    pub fn total(&self) -> u64 {
        self.counts.iter().fold(0, |sum, &count| sum.saturating_add(count))
    }

    /// The largest: its place and its share of the sum, 0 to 1. `None` where nothing was counted.
    pub fn largest(&self) -> Option<(usize, f64)> {
        let total = self.total();
        let (place, &count) =
            self.counts.iter().enumerate().max_by_key(|&(place, count)| (count, usize::MAX - place))?;
        (total > 0).then(|| (place, count as f64 / total as f64))
    }

    /// Largest over mean: 1 is even. `None` where nothing was counted.
    pub fn max_over_mean(&self) -> Option<f64> {
        self.largest().map(|(_, share)| share * self.counts.len() as f64)
    }

    /// A count per second, where the time is known and not zero.
    pub fn per_second(&self, count: u64) -> Option<f64> {
        match self.basis {
            Basis::Between(Some(time)) if !time.is_zero() => Some(count as f64 / time.as_secs_f64()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quote() -> Quote {
        Quote::new(&"t".into(), 1, None, "x")
    }

    fn twice(first: u64, latest: u64) -> Counter {
        let mut counter = Counter::new(first, quote());
        counter.again(latest, quote());
        counter
    }

    #[test]
    fn wraps_and_resets_are_distinguished() {
        assert_eq!(twice(5, 9).delta(), Delta::Counted(4));
        assert_eq!(twice(0xffff_fff0, 4).delta(), Delta::Wrapped(20));
        assert_eq!(twice(1000, 4).delta(), Delta::Reset);
        assert_eq!(twice(1 << 40, 4).delta(), Delta::Reset);
        assert_eq!(Counter::new(7, quote()).delta(), Delta::OneSample);
    }

    #[test]
    fn a_sum_is_sampled_again_only_of_the_same_parts() {
        let mut slot = None;
        Counter::note_sum(&mut slot, 10, 0b011, quote());
        Counter::note_sum(&mut slot, 7, 0b001, quote());
        assert_eq!(slot.as_ref().map(Counter::delta), Some(Delta::OneSample));
        Counter::note_sum(&mut slot, 15, 0b011, quote());
        assert_eq!(slot.as_ref().map(Counter::delta), Some(Delta::Counted(5)));
        Counter::note_sum(&mut slot, 99, 0b111, quote());
        assert_eq!(slot.map(|counter| (counter.first(), counter.delta())), Some((99, Delta::OneSample)));
    }

    #[test]
    fn counters_are_compared_on_one_basis() {
        let second = Some(Duration::from_secs(2));
        let shares = Shares::of([&twice(100, 110), &twice(0, 30)], second).expect("two samples");
        assert_eq!((shares.counts.as_slice(), shares.basis), ([10, 30].as_slice(), Basis::Between(second)));
        assert_eq!(shares.largest(), Some((1, 0.75)));
        assert_eq!(shares.max_over_mean(), Some(1.5));
        assert_eq!(shares.per_second(30), Some(15.0));
        // One of them has one sample: totals.
        let mixed = Shares::of([&twice(100, 110), &Counter::new(4, quote())], second).expect("totals");
        assert_eq!((mixed.counts.as_slice(), mixed.basis), ([110, 4].as_slice(), Basis::SinceStart));
        // Nothing moved: the same output pasted twice.
        let still = Shares::of([&twice(3, 3)], second).expect("totals");
        assert_eq!(still.basis, Basis::SinceStart);
        assert_eq!(Shares::of([&twice(1000, 3)], None), None);
        assert_eq!(Shares::of([], None), None);
    }
}
