//! The fast path and the kernel, side by side.
#![allow(clippy::print_stdout, reason = "says what it counted")]

mod equality;

use equality::{Kind, Total, compare, number};

/// A fuzz of frames, most of them hostile: what leaves a router does not depend on the fast path.
///
/// `RXLANE_FUZZ_FRAMES` says how many (20,000), `RXLANE_FUZZ_SEED` from which seed.
#[test]
fn the_same_frames_leave_with_and_without_the_fast_path() {
    let (frames, seed) = (number("RXLANE_FUZZ_FRAMES", 20_000), number("RXLANE_FUZZ_SEED", 1));
    let mut total = Total::default();
    for kind in Kind::ALL {
        let Some(outcome) = compare(kind, frames / Kind::ALL.len() as u64, seed) else { return };
        total.add(outcome);
    }
    println!("seed {seed}\n{total}");
    total.check();
}
