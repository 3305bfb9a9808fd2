//! What tests need and the product does not: probes for things that a machine may lack, the place of
//! capture corpora, network namespaces, copies of programs, sockets for emulated peers, an allocator that counts, and a hash key. Development only; no
//! shipped crate depends on it.
//!
//! # Contract
//!
//! A test that needs something the machine may lack asks [`require`]. Without it the test is skipped, and a
//! line on standard error says so even where the test harness captures output; with the thing's name in the
//! environment variable `RXLANE_REQUIRE` (names separated by commas) the test fails instead, so that a
//! continuous integration run cannot pass by leaving something out.
//!
//! ```
//! use rxlane_testkit::{program, require};
//!
//! fn compare_with_tcpdump() {
//!     let Some(tcpdump) = require("tcpdump", program("tcpdump")) else { return };
//!     assert!(tcpdump.is_file());
//! }
//! # compare_with_tcpdump();
//! ```
//!
//! # Deliberately not here
//!
//! Packet builders (crates `wire` and `traffic` have them), assertions, anything that a single crate's tests
//! could keep for themselves.

#![forbid(unsafe_code)]

pub use kernel::allocations;
pub mod captures;
mod executable;
mod feature;
pub mod frames;
pub mod netns;
mod wait;

pub use executable::open_copy;
pub use feature::{Missing, program, require, require_more};
pub use wait::{PATIENCE, wait_for, wait_until};

/// A key of a flow hash that is the same each time; no two words are alike.
pub fn key<const WORDS: usize>() -> [u32; WORDS] {
    std::array::from_fn(|word| 0x9e37_79b9_u32.wrapping_mul(word as u32 + 1))
}
