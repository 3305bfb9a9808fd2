//! Both ends of a session: a single one with a scripted peer ([`line`]), and clients with a concentrator ([`world`]).

mod any_bytes;
mod attacks;
mod authority;
mod client;
mod flood;
mod host_configuration;
pub(crate) mod line;
mod operation;
mod peers;
mod subscribers;
mod takeover;
mod world;

use crate::Random;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use wire::Vlans;
use wire::ethernet::{EtherType, MacAddress};
use wire::vlan::{Tag, Tci};

/// A station, and a line with one tag, of these numbers.
pub(crate) fn mac(number: u32) -> MacAddress {
    let [a, b, c, d] = number.to_be_bytes();
    MacAddress([2, 0x66, a, b, c, d])
}

pub(crate) fn vlans(vid: u16) -> Vlans {
    Vlans::of([Tag { tpid: EtherType::VLAN, tci: Tci(vid) }]).unwrap()
}

/// Pairs of lines: an input, and behind it what is expected of it.
pub(crate) fn cases(text: &str) -> Vec<[&str; 2]> {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert!(lines.len().is_multiple_of(2), "{text}");
    lines.as_chunks().0.to_vec()
}

/// The same randomness each time.
pub(crate) struct Seeded(Xoshiro256PlusPlus);

impl Seeded {
    pub(crate) fn new(seed: u64) -> Seeded {
        Seeded(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    pub(crate) fn below(&mut self, most: u32) -> u32 {
        self.0.next_u32() % most
    }
}

impl Random for Seeded {
    fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }
}
