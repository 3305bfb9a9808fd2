//! The fuzz of `tests/it/equality` for as long as one wants: `cargo run -p rxlane-fastpath --example equality` as root.
//!
//! `RXLANE_FUZZ_FRAMES` says how many frames (5,000,000), `RXLANE_FUZZ_SEED` from which seed.
#![expect(clippy::print_stdout, reason = "it prints what it counted")]

#[path = "../tests/it/equality/mod.rs"]
mod equality;

use equality::{Kind, Total, compare, number};
use std::time::Instant;

/// Frames for the same routers: hostile ones leave connections and fragments behind, which fill the kernel's tables.
const ROUND: u64 = 100_000;

fn main() {
    let (frames, first) = (number("RXLANE_FUZZ_FRAMES", 5_000_000), number("RXLANE_FUZZ_SEED", 1));
    let (start, mut total) = (Instant::now(), Total::default());
    for (round, kind) in (0..frames.div_ceil(ROUND)).zip(Kind::ALL.into_iter().cycle()) {
        let count = ROUND.min(frames - round * ROUND);
        let Some(outcome) = compare(kind, count, first + round) else { return };
        total.add(outcome);
        eprintln!("{} of {frames} frames, {} s", total.frames(), start.elapsed().as_secs());
    }
    println!("seeds from {first}, {:.0} s\n{total}", start.elapsed().as_secs_f64());
    total.check();
}
