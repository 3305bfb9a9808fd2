//! Time and randomness.

use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
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
pub fn random(octets: &mut [u8]) {
    let mut left = octets;
    while !left.is_empty() {
        let filled = match getrandom(&mut *left, GetRandomFlags::empty()) {
            Ok(filled) => filled,
            Err(Errno::INTR) => 0,
            Err(_) => std::process::abort(),
        };
        left = left.get_mut(filled..).unwrap_or_default();
    }
}
