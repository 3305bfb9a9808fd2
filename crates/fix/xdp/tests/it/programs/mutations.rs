//! Frames that were changed at random, seeded: fixtures, generated traffic, and captures.
//!
//! `RXLANE_FUZZ_FRAMES` says how many (200,000), `RXLANE_FUZZ_SEED` from which seed.

use crate::programs::agreement::{Agreement, FIRST_BUFFER};
use crate::programs::{captures, fixture, settings};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rxlane_xdp::layout::Reason;
use rxlane_xdp::reference::{decide, decide_in_buffers};
use std::time::Instant;
use traffic::{NAMED, Scenario, Sizes};

pub fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable)
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{variable}={text}")))
}

#[test]
fn changed_frames_have_one_decision() {
    let (count, seed) = (number("RXLANE_FUZZ_FRAMES", 200_000), number("RXLANE_FUZZ_SEED", 1));
    let (pool, start) = (pool(), Instant::now());
    let mut mutator = Mutator::new(seed);
    let mut agreement = Agreement::new();
    let mut frame = Vec::new();
    for _ in 0..count {
        mutator.change(&pool, &mut frame);
        let choice = mutator.below(1 << 16);
        agreement.check(&frame, choice);
        if choice.is_multiple_of(4) {
            let first = mutator.below(frame.len() + 1);
            agreement.check_buffers(&frame[..first], frame.len(), choice);
            let part = decide_in_buffers(&frame[..first], frame.len(), &settings());
            assert!(
                part.reason == Reason::NotLinear || part == decide(&frame, &settings()),
                "{first} of {frame:02x?}"
            );
        }
        if choice % 8 == 1 {
            captures::as_dissected(&frame);
        }
    }
    agreement.finish();
    println!(
        "{} frames of seed {seed} from {} originals, {} in the kernel, {} steered, {:.0} s",
        agreement.frames,
        pool.len(),
        agreement.in_kernel,
        agreement.steered,
        start.elapsed().as_secs_f64()
    );
    assert!(agreement.steered > count / 10 && agreement.steered < count * 9 / 10);
}

/// What is changed.
fn pool() -> Vec<Vec<u8>> {
    let mut pool: Vec<Vec<u8>> = fixture::all().into_iter().map(|fixture| fixture.frame).collect();
    pool.retain(|frame| frame.len() <= FIRST_BUFFER);
    for named in &NAMED {
        let mut scenario = Scenario::named(named.name).expect("a scenario");
        scenario.control_per_million = 50_000;
        scenario.fragments_per_million = 50_000;
        scenario.sizes = Sizes::Fixed(90);
        let mut traffic = scenario.generate(7).expect("traffic");
        pool.extend((0..40).map(|_| traffic.next_frame().bytes.to_vec()));
    }
    for sample in testkit::captures::corpus() {
        let mut kept = 0;
        captures::frames(&sample.capture, |bytes, _| {
            if kept < 20 && bytes.len() <= 400 {
                pool.push(bytes.to_vec());
                kept += 1;
            }
        });
    }
    pool
}

/// Values that mean something somewhere.
const BYTES: [u8; 24] =
    [0, 1, 2, 4, 5, 6, 7, 8, 0x0f, 0x11, 17, 0x20, 43, 44, 0x45, 0x46, 0x4f, 50, 51, 58, 59, 60, 0x60, 0xff];
const WORDS: [u16; 24] = [
    0x8100, 0x88a8, 0x9100, 0x9200, 0x9300, 0x0800, 0x86dd, 0x8863, 0x8864, 0x8847, 0x8848, 0x0806, 0x0021,
    0x0057, 0x0281, 0xc021, 0x8021, 0x1100, 0, 1, 1500, 1535, 0x2000, 0xffff,
];

/// Changes frames, seeded.
pub struct Mutator {
    random: Xoshiro256PlusPlus,
}

impl Mutator {
    pub fn new(seed: u64) -> Mutator {
        Mutator { random: Xoshiro256PlusPlus::seed_from_u64(seed) }
    }

    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.random.next_u64()) * bound as u128) >> 64) as usize
    }

    fn change(&mut self, pool: &[Vec<u8>], frame: &mut Vec<u8>) {
        frame.clear();
        frame.extend_from_slice(&pool[self.below(pool.len())]);
        for _ in 0..self.below(5) {
            self.change_once(pool, frame);
        }
    }

    /// A place in the frame, mostly among the headers.
    fn place(&mut self, frame: &[u8], width: usize) -> Option<usize> {
        let places = (frame.len() + 1).checked_sub(width).filter(|places| *places > 0)?;
        let among = if self.below(8) == 0 { places } else { places.min(110) };
        Some(self.below(among))
    }

    pub fn change_once(&mut self, pool: &[Vec<u8>], frame: &mut Vec<u8>) {
        match self.below(10) {
            0 => {
                if let Some(at) = self.place(frame, 1) {
                    frame[at] ^= 1 << self.below(8);
                }
            }
            1 | 2 => {
                if let Some(at) = self.place(frame, 1) {
                    frame[at] = BYTES[self.below(BYTES.len())];
                }
            }
            3 => {
                if let Some(at) = self.place(frame, 2) {
                    frame[at..at + 2].copy_from_slice(&WORDS[self.below(WORDS.len())].to_be_bytes());
                }
            }
            4 => {
                // Lengths that are off by little.
                if let Some(at) = self.place(frame, 1) {
                    frame[at] = frame[at].wrapping_add(self.below(9) as u8).wrapping_sub(4);
                }
            }
            5 => {
                let length = self.below(frame.len() + 1);
                frame.truncate(length);
            }
            6 => {
                let more = if self.below(200) == 0 { 9000 } else { 64 };
                let length = frame.len() + self.below(more);
                frame.resize(length, 0);
            }
            7 => {
                // A tag, a label or some header more.
                if let Some(at) = self.place(frame, 4) {
                    let tpid = WORDS[self.below(11)].to_be_bytes();
                    let at = if self.below(2) == 0 { at.min(12) } else { at };
                    frame.splice(at..at, [tpid[0], tpid[1], 0, self.below(256) as u8]);
                }
            }
            8 => {
                if let Some(at) = self.place(frame, 8) {
                    let length = 1 + self.below(8);
                    frame.drain(at..at + length);
                }
            }
            _ => {
                // The head of one frame and the tail of another.
                let other = &pool[self.below(pool.len())];
                let (head, tail) = (self.below(frame.len() + 1), self.below(other.len() + 1));
                frame.truncate(head);
                frame.extend_from_slice(&other[tail..]);
            }
        }
    }
}
