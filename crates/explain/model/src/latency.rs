//! Latencies in constant memory: counts in buckets whose width grows with the value, 64 of them for each doubling.

use crate::Time;

const BITS: u32 = 6;
const STEPS: usize = 1 << BITS;

/// How long frames took. A value that is read back is the middle of its bucket, off by 0.8 % at most; the mean is exact.
#[derive(Clone)]
pub struct Latencies {
    counts: Box<[u64]>,
    number: u64,
    sum: u128,
    longest: Time,
}

impl Latencies {
    pub(crate) fn new() -> Latencies {
        Latencies { counts: vec![0; STEPS * (65 - BITS as usize)].into(), number: 0, sum: 0, longest: 0 }
    }

    /// `times` frames took `value`.
    #[inline]
    pub(crate) fn add(&mut self, value: Time, times: u64) {
        self.counts[bucket(value)] += times;
        self.number += times;
        self.sum += u128::from(value) * u128::from(times);
        self.longest = self.longest.max(value);
    }

    /// How many frames.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Picoseconds on average; `None` where there was no frame.
    pub fn mean(&self) -> Option<f64> {
        (self.number > 0).then(|| self.sum as f64 / self.number as f64)
    }

    /// Picoseconds that the slowest took.
    pub fn longest(&self) -> Option<Time> {
        (self.number > 0).then_some(self.longest)
    }

    /// Picoseconds that `share` (0 to 1) of the frames did not exceed; `None` where there was no frame.
    pub fn percentile(&self, share: f64) -> Option<Time> {
        let rank = (share * self.number as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let found = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        })?;
        Some(middle(found).min(self.longest))
    }
}

#[inline]
fn bucket(value: Time) -> usize {
    if value < STEPS as u64 {
        return value as usize;
    }
    let doublings = 63 - value.leading_zeros() - BITS;
    ((doublings as usize + 1) << BITS) + ((value >> doublings) as usize & (STEPS - 1))
}

fn middle(bucket: usize) -> Time {
    if bucket < 2 * STEPS {
        return bucket as u64;
    }
    let doublings = (bucket >> BITS) - 1;
    let low = ((STEPS + (bucket & (STEPS - 1))) as u64) << doublings;
    low + (1 << (doublings - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_read_back_within_one_in_128() {
        let values = (0..3000u64).chain((12..64).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 77]));
        for value in values.chain([u64::MAX]) {
            let mut one = Latencies::new();
            one.add(value, 1);
            one.longest = u64::MAX;
            let back = one.percentile(0.5).unwrap();
            assert!(back.abs_diff(value) <= value / 128 + 1, "{value} is {back}");
        }
    }

    #[test]
    fn percentiles_of_numbers_from_1_to_10000() {
        let mut all = Latencies::new();
        assert_eq!((all.percentile(0.5), all.mean()), (None, None));
        (1..=10_000).for_each(|value| all.add(value, 2));
        assert_eq!((all.number(), all.mean(), all.longest()), (20_000, Some(5000.5), Some(10_000)));
        for (share, value) in [(0.5, 5000u64), (0.9, 9000), (0.99, 9900), (1.0, 10_000)] {
            let found = all.percentile(share).unwrap();
            assert!(found.abs_diff(value) <= value / 100, "{share}: {found}");
        }
    }
}
