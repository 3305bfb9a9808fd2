//! Time and randomness.

use std::time::{Duration, Instant};

/// The time since this was made, by a clock that never goes back and that nobody sets.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Default for Clock {
    fn default() -> Clock {
        Clock(Instant::now())
    }
}

impl Clock {
    pub fn now(self) -> Duration {
        self.0.elapsed()
    }
}

/// Fills in what nobody can guess. A kernel without getrandom(2) (before 3.17, or a sandbox) ends the process: numbers that can be
/// guessed are worse than no session.
pub fn random(bytes: &mut [u8]) {
    if kernel::random::fill(bytes).is_err() {
        std::process::abort();
    }
}
