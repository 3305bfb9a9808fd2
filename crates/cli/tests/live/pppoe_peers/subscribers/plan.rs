//! What each subscriber is: drawn from the seed before anything begins.

use crate::pppoe_peers::by_hand::frame::{Place, Tag};
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

/// A generator of a subscriber's own, so that what one does depends on the seed and not on when others are served.
#[derive(Clone, Debug)]
pub struct Dice(Xoshiro256PlusPlus);

impl Dice {
    pub fn new(seed: u64, number: u64) -> Dice {
        Dice(Xoshiro256PlusPlus::seed_from_u64(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    pub fn word(&mut self) -> u64 {
        self.0.next_u64()
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end.max(1)
    }

    /// So many times of a hundred.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub fn octets(&mut self, count: u64) -> Vec<u8> {
        (0..count).map(|_| self.word() as u8).collect()
    }
}

/// A user of the secrets.
#[derive(Clone, Debug)]
pub struct User {
    pub name: String,
    pub password: String,
    /// `None`: one of the pool.
    pub address: Option<Ipv4Addr>,
    /// Network of 29 bits behind the subscriber.
    pub route: Option<Ipv4Addr>,
    /// Prefix of 64 bits.
    pub prefix: Option<Ipv6Addr>,
}

/// A subscriber.
#[derive(Clone, Debug)]
pub struct Plan {
    pub place: Place,
    /// Of its tags.
    pub priority: u8,
    /// Who it is in the first wave and in the second.
    pub users: [User; 2],
    pub is_pap: bool,
    /// Named in LCP; `None`: it names none, and receives what PPPoE takes.
    pub mru: Option<u16>,
    pub has_magic: bool,
    /// Asks for what PPPoE has no use for, and has to do without.
    pub asks_odd_options: bool,
    pub has_ipv4: bool,
    pub has_ipv6: bool,
    /// Address that it asks for first.
    pub guess: Ipv4Addr,
    pub asks_dns: bool,
    pub asks_vj: bool,
    /// Interface identifier; zero: it wants to be told one.
    pub identifier: u64,
    pub host_uniq: Option<Vec<u8>>,
    pub relay: Option<Vec<u8>>,
    /// What its access node says of it: circuit and remote id.
    pub line: Option<(String, String)>,
}

/// Networks of those that have some of their own; each has 16 bits for subscribers.
const FIXED: [u8; 2] = [100, 100];

/// The tags of a subscriber: mostly a customer's tag in a service's, each its own; some share one, and some have none, one or
/// three.
fn tags(dice: &mut Dice) -> Vec<Tag> {
    let vid = |dice: &mut Dice, first: u64| (first + dice.below(2000)) as u16;
    match dice.below(100) {
        0..5 => vec![],
        5..12 => vec![(0x8100, vid(dice, 30))],
        12..22 => vec![(0x88a8, 5), (0x8100, 7)],
        22..26 => vec![(0x8100, 11), (0x8100, vid(dice, 1)), (0x8100, vid(dice, 1))],
        26..30 => vec![(0x9100, 12), (0x8100, vid(dice, 1))],
        _ => vec![(0x88a8, (100 + dice.below(16)) as u16), (0x8100, vid(dice, 1))],
    }
}

/// A place of no other.
pub fn place(number: usize, moves: u8, dice: &mut Dice) -> Place {
    let [a, b] = (number as u16).to_be_bytes();
    let mut mac = [0x02, moves, 0x5e, (number >> 16) as u8, a, b];
    let tags = tags(dice);
    // Two with one MAC address, as clones have; what tells them apart are their tags.
    if moves == 0 && number % 32 == 31 && tags.len() == 2 {
        mac[5] = mac[5].wrapping_sub(1);
        return Place { mac, tags: vec![(0x88a8, 99), (0x8100, 1 + (number / 32) as u16)] };
    }
    Place { mac, tags }
}

impl Plan {
    pub fn draw(number: usize, dice: &mut Dice) -> Plan {
        let low = number as u16;
        let has_ipv6 = dice.chance(85);
        let [a, b] = low.to_be_bytes();
        let user = |wave: usize, dice: &mut Dice| {
            let is_first = wave == 0;
            let [first, second] = FIXED;
            User {
                name: format!("{}{number}@isp.example", ["a", "b"][wave]),
                password: format!("pw-{:x}", dice.word()),
                address: (is_first && dice.chance(15)).then(|| Ipv4Addr::new(first, second, a, b)),
                route: (is_first && dice.chance(5))
                    .then(|| Ipv4Addr::new(10, (low >> 13) as u8, (low >> 5) as u8, (low << 3) as u8)),
                prefix: (is_first && dice.chance(10))
                    .then(|| Ipv6Addr::new(0x2001, 0xdb8, 1, low, 0, 0, 0, 0)),
            }
        };
        Plan {
            place: place(number, 0, dice),
            priority: dice.below(8) as u8,
            users: [user(0, dice), user(1, dice)],
            is_pap: dice.chance(50),
            mru: match dice.below(4) {
                0 => None,
                1 => Some(1400),
                _ => Some(1492),
            },
            has_magic: dice.chance(80),
            asks_odd_options: dice.chance(20),
            has_ipv4: !has_ipv6 || dice.chance(94),
            has_ipv6,
            guess: if dice.chance(70) { Ipv4Addr::UNSPECIFIED } else { Ipv4Addr::new(192, 168, 1, 1) },
            asks_dns: dice.chance(60),
            asks_vj: dice.chance(20),
            identifier: if dice.chance(80) { 0x0211_0000_0000_0000 | number as u64 } else { 0 },
            host_uniq: dice.chance(85).then(|| {
                let count = 1 + dice.below(16);
                dice.octets(count)
            }),
            relay: dice.chance(10).then(|| dice.octets(12)),
            line: dice.chance(50).then(|| (format!("node7 eth 1/1/{number}"), format!("line-{number}"))),
        }
    }

    /// Whom a wave has.
    pub fn user(&self, wave: usize) -> &User {
        &self.users[wave]
    }
}

/// The secrets of all.
pub fn secrets<'p>(plans: impl Iterator<Item = &'p Plan>) -> String {
    let mut text = String::new();
    for user in plans.flat_map(|plan| &plan.users) {
        let User { name, password, .. } = user;
        let _ = writeln!(text, "[[subscriber]]\nuser = '{name}'\npassword = '{password}'");
        if let Some(address) = user.address {
            let _ = writeln!(text, "address = '{address}'");
        }
        if let Some(route) = user.route {
            let _ = writeln!(text, "routes = ['{route}/29']");
        }
        if let Some(prefix) = user.prefix {
            let _ = writeln!(text, "prefix = '{prefix}/64'");
        }
    }
    text
}
