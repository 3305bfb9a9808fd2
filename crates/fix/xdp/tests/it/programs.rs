//! The programs, the C parser as a library of this machine, and the Rust reference: one answer.

// Tests say on standard output what they saw.
#![allow(clippy::print_stdout)]

mod agreement;
mod btf;
mod captures;
mod envelope;
mod fixture;
mod fixtures;
mod forwarding;
mod hash;
mod kernel;
mod moving;
mod mutations;
mod native;
mod packet;
mod sys;

use rxlane_xdp::layout::{Class, Settings};

/// All classes, a fixed key.
fn settings() -> Settings {
    let mut word = 0x2545_f491_u32;
    let key = std::array::from_fn(|_| {
        word = word.wrapping_mul(0x9e37_79b1).rotate_left(13) ^ 0x5bd1_e995;
        word
    });
    let classes = Class::ALL.iter().fold(0, |bits, class| bits | class.bit());
    Settings { key, classes, symmetric: 0, cpus: 1, spare: 0, hold_ns: 100_000 }
}
