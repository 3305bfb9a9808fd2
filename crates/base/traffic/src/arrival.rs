//! When frames arrive.

use rand_core::Rng;

/// Arrival process. The rate is the mean of the whole mix, in frames a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Equal gaps.
    Constant {
        /// Frames a second, at least 1.
        rate: u64,
    },
    /// Independent gaps, exponentially distributed: many independent senders.
    Poisson {
        /// Frames a second, at least 1.
        rate: u64,
    },
}

impl Arrival {
    /// Frames a second.
    pub const fn rate(self) -> u64 {
        match self {
            Arrival::Constant { rate } | Arrival::Poisson { rate } => rate,
        }
    }
}

/// Time that passes as frames are drawn.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    /// Nanoseconds with 32 fractional bits.
    now: u128,
    /// Mean gap in the same unit.
    gap: u64,
    poisson: bool,
}

/// 2026-01-01 00:00:00 UTC: a fixed start, since the same seed has to give the same bytes.
const START_NS: u64 = 1_767_225_600_000_000_000;

impl Clock {
    /// `rate` must not be zero.
    pub(crate) fn new(arrival: Arrival) -> Clock {
        let gap = ((1_000_000_000u128 << 32) / u128::from(arrival.rate())) as u64;
        Clock { now: u128::from(START_NS) << 32, gap, poisson: matches!(arrival, Arrival::Poisson { .. }) }
    }

    /// The time of the next frame, nanoseconds since 1970. Draws one number for either process.
    pub(crate) fn tick(&mut self, random: &mut impl Rng) -> u64 {
        let now = (self.now >> 32) as u64;
        let random = random.next_u64();
        let gap = u128::from(self.gap);
        self.now += if self.poisson { (gap * u128::from(exponential(random))) >> 32 } else { gap };
        now
    }
}

/// An exponentially distributed number of mean 1, with 32 fractional bits, from a uniform one: -ln(u).
pub fn exponential(random: u64) -> u64 {
    const LN_2: u128 = 2_977_044_472; // ln 2 with 32 fractional bits
    let log2 = log2(random | 1);
    ((u128::from((64 << 32) - log2) * LN_2) >> 32) as u64
}

const STEPS: usize = 256;

/// log2(1 + i / 256) with 32 fractional bits.
static LOG2: [u64; STEPS + 1] = log2_table();

const fn log2_table() -> [u64; STEPS + 1] {
    let mut table = [0; STEPS + 1];
    let mut i = 0;
    while i < STEPS {
        // Squaring doubles the logarithm: each time the square reaches 2, the next bit is one.
        let mut value = (STEPS + i) as u128 * ((1 << 62) / STEPS as u128);
        let mut bit = 32;
        while bit > 0 {
            bit -= 1;
            value = (value * value) >> 62;
            if value >= 1 << 63 {
                value >>= 1;
                table[i] |= 1 << bit;
            }
        }
        i += 1;
    }
    table[STEPS] = 1 << 32;
    table
}

/// log2 of a number that is not zero, with 32 fractional bits; off by at most 3 in a million.
fn log2(value: u64) -> u64 {
    let whole = u64::from(63 - value.leading_zeros());
    let fraction = (value << value.leading_zeros()) << 1;
    let (step, within) = ((fraction >> 56) as usize, fraction << 8 >> 32);
    let (low, high) = (LOG2[step], LOG2[step + 1]);
    (whole << 32) + low + (((high - low) * within) >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;

    #[test]
    fn logarithm_agrees_with_the_platforms() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
        for i in 0..100_000u32 {
            let value = random.next_u64() >> (i % 64);
            if value > 0 {
                let (ours, theirs) = (log2(value) as f64 / (1u64 << 32) as f64, (value as f64).log2());
                assert!((ours - theirs).abs() < 3e-6, "{value}: {ours} and {theirs}");
            }
        }
    }

    #[test]
    fn gaps_have_the_mean_and_the_spread_of_a_poisson_process() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut clock = Clock::new(Arrival::Poisson { rate: 1_000_000 });
        let times: Vec<u64> = (0..200_000).map(|_| clock.tick(&mut random)).collect();
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 1000.0).abs() < 10.0, "mean {mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.02, "deviation {}", variance.sqrt());
        let longer = gaps.iter().filter(|gap| **gap > 3000.0).count() as f64 / gaps.len() as f64;
        assert!((longer - (-3f64).exp()).abs() < 0.003, "{longer} are longer than three means");
    }

    #[test]
    fn a_constant_rate_does_not_drift() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut clock = Clock::new(Arrival::Constant { rate: 3_000_000 });
        let last = (0..=3_000_000).map(|_| clock.tick(&mut random)).last();
        assert!(last.is_some_and(|last| last.abs_diff(START_NS + 1_000_000_000) <= 1));
    }
}
