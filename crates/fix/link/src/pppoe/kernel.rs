//! What the machines of crate `pppoe` take from the kernel: time and randomness.

use pppoe::{Random, Time};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use std::time::Instant;

/// The time since this was made, by a clock that never goes back and that nobody sets.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    /// Begins.
    pub fn new() -> Clock {
        Clock(Instant::now())
    }

    /// Now.
    pub fn now(self) -> Time {
        self.0.elapsed()
    }
}

/// The kernel's generator.
pub struct Kernel;

impl Random for Kernel {
    fn fill(&mut self, octets: &mut [u8]) {
        let mut left = octets;
        while !left.is_empty() {
            let filled = match getrandom(&mut *left, GetRandomFlags::empty()) {
                Ok(filled) => filled,
                Err(Errno::INTR) => 0,
                // Numbers that can be guessed are worse than no session (Linux before 3.17, or a sandbox).
                Err(_) => std::process::abort(),
            };
            left = left.get_mut(filled..).unwrap_or_default();
        }
    }
}
