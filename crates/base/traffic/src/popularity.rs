//! How frames spread over flows.

use crate::below;
use rand_core::Rng;
use std::fmt;
use std::str::FromStr;

/// Which flow a frame belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Popularity {
    /// Each flow as often as any other, at random.
    Uniform,
    /// The flow of rank r in proportion to 1/r (Zipf's law, exponent 1): a few flows carry most frames. Flow 0
    /// is the busiest.
    Zipf,
    /// One after the other: as many frames as flows make every frame a flow of its own.
    RoundRobin,
}

impl FromStr for Popularity {
    type Err = String;

    fn from_str(text: &str) -> Result<Popularity, String> {
        match text {
            "uniform" => Ok(Popularity::Uniform),
            "zipf" => Ok(Popularity::Zipf),
            "round-robin" => Ok(Popularity::RoundRobin),
            _ => Err("one of uniform, zipf, round-robin".to_owned()),
        }
    }
}

impl fmt::Display for Popularity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Popularity::Uniform => "uniform",
            Popularity::Zipf => "zipf",
            Popularity::RoundRobin => "round-robin",
        })
    }
}

/// Draws flows.
#[derive(Clone, Debug)]
pub struct Sampler(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Uniform {
        flows: u32,
    },
    /// Sums of the weights up to each rank.
    Zipf {
        sums: Vec<u64>,
    },
    RoundRobin {
        flows: u32,
        next: u32,
    },
}

impl Sampler {
    /// `flows` must not be zero.
    pub fn new(popularity: Popularity, flows: u32) -> Sampler {
        let kind = match popularity {
            Popularity::Uniform => Kind::Uniform { flows },
            Popularity::RoundRobin => Kind::RoundRobin { flows, next: 0 },
            Popularity::Zipf => {
                let weights = (1..=u64::from(flows)).map(|rank| (1 << 40) / rank);
                let sums = weights.scan(0, |sum, weight| {
                    *sum += weight;
                    Some(*sum)
                });
                Kind::Zipf { sums: sums.collect() }
            }
        };
        Sampler(kind)
    }

    /// Draws one number, whatever the popularity: a flow.
    pub fn draw(&mut self, random: &mut impl Rng) -> u32 {
        match &mut self.0 {
            Kind::Uniform { flows } => below(random, u64::from(*flows)) as u32,
            Kind::Zipf { sums } => {
                let place = below(random, sums.last().copied().unwrap_or(1));
                sums.partition_point(|sum| *sum <= place) as u32
            }
            Kind::RoundRobin { flows, next } => {
                random.next_u64();
                let flow = *next;
                *next = if flow + 1 == *flows { 0 } else { flow + 1 };
                flow
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;

    fn counts(popularity: Popularity, flows: u32, frames: u32) -> Vec<u32> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
        let mut sampler = Sampler::new(popularity, flows);
        let mut counts = vec![0; flows as usize];
        (0..frames).for_each(|_| counts[sampler.draw(&mut random) as usize] += 1);
        counts
    }

    #[test]
    fn zipf_ranks_get_their_share() {
        let counts = counts(Popularity::Zipf, 100, 518_738); // 100,000 times the 100th harmonic number
        for rank in [1, 2, 5, 10, 50, 100] {
            let expected = 100_000.0 / rank as f64;
            let found = f64::from(counts[rank - 1]);
            assert!((found - expected).abs() < 5.0 * expected.sqrt(), "rank {rank}: {found}, not {expected}");
        }
    }

    #[test]
    fn uniform_flows_are_about_equal_and_none_is_left_out() {
        let counts = counts(Popularity::Uniform, 64, 64_000);
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }

    #[test]
    fn round_robin_visits_each_flow_once_a_round() {
        assert_eq!(counts(Popularity::RoundRobin, 7, 21), [3; 7]);
    }
}
