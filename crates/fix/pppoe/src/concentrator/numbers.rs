//! Session numbers (SESSION_ID of RFC 2516 section 5.4): drawn at random, and not given again soon.
//!
//! Whoever wants to end or to disturb a session of others has to guess its number along with its MAC address. And a frame of a
//! session that is over, late or sent again, must not reach another one that has its number.

use crate::discovery::is_session;
use crate::discovery::place::Place;
use crate::{Random, Time, draw};
use std::collections::{HashSet, VecDeque};
use std::time::Duration;

/// How many numbers there are at one place: all but 0 and 0xffff.
pub(super) const ALL: u32 = 65_534;

/// How long a number rests, and how long a cookie could be used.
const REST: Duration = Duration::from_secs(90);
/// Most numbers that rest at the same time; if more sessions end, the earliest rests shorter.
const MOST: usize = 1 << 15;

#[derive(Debug)]
struct Resting {
    until: Time,
    place: Place,
    number: u16,
    cookie: u64,
}

/// What rests. Memory: at most [`MOST`] numbers, whatever comes and goes.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    queue: VecDeque<Resting>,
    numbers: HashSet<(Place, u16)>,
    cookies: HashSet<u64>,
}

impl Numbers {
    /// Draws a number that is neither in use nor resting; one that rests, where all others are in use. `None`: all are.
    pub(super) fn draw(
        &mut self,
        now: Time,
        place: &Place,
        random: &mut dyn Random,
        is_used: impl Fn(u16) -> bool,
    ) -> Option<u16> {
        self.wake(now);
        let is_free = |number: u16| !is_used(number) && !self.numbers.contains(&(*place, number));
        // Nearly always the first one is free; where most are in use, the rest is looked through from somewhere.
        let drawn = (0..64).map(|_| u16::from_be_bytes(draw(random)));
        if let Some(number) = drawn.into_iter().find(|number| is_session(*number) && is_free(*number)) {
            return Some(number);
        }
        let start = u16::from_be_bytes(draw(random));
        let around =
            || (0..=u16::MAX).map(|step| start.wrapping_add(step)).filter(|number| is_session(*number));
        around().find(|number| is_free(*number)).or_else(|| around().find(|number| !is_used(*number)))
    }

    /// Lets the number and the cookie of a session that is over rest.
    pub(super) fn rest(&mut self, now: Time, place: Place, number: u16, cookie: u64) {
        self.wake(now);
        if self.queue.len() >= MOST {
            self.drop_first();
        }
        self.numbers.insert((place, number));
        self.cookies.insert(cookie);
        self.queue.push_back(Resting { until: now + REST, place, number, cookie });
    }

    /// Whether a cookie opened a session that is over.
    pub(super) fn is_used_up(&self, cookie: u64) -> bool {
        self.cookies.contains(&cookie)
    }

    fn wake(&mut self, now: Time) {
        while self.queue.front().is_some_and(|first| first.until <= now) {
            self.drop_first();
        }
    }

    fn drop_first(&mut self) {
        if let Some(first) = self.queue.pop_front() {
            self.numbers.remove(&(first.place, first.number));
            self.cookies.remove(&first.cookie);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Seeded;
    use std::collections::BTreeSet;

    /// Attack 11: numbers that follow from those before. All 65,534 are given, in an order that the seed alone decides, and
    /// neighbours are as rare as chance has them.
    #[test]
    fn numbers_are_drawn_and_all_of_them_can_be() {
        let place = Place::default();
        let order = |seed: u64| {
            let (mut numbers, mut used) = (Numbers::default(), BTreeSet::new());
            let mut order = Vec::new();
            while let Some(number) =
                numbers.draw(Time::ZERO, &place, &mut Seeded::new(seed + order.len() as u64), |number| {
                    used.contains(&number)
                })
            {
                assert!(is_session(number) && used.insert(number), "{number}");
                order.push(number);
            }
            order
        };
        let (one, other) = (order(1), order(1_000_000));
        assert_eq!(one.len(), ALL as usize);
        assert_ne!(one, other);
        let near = one.windows(2).take(10_000).filter(|pair| pair[0].abs_diff(pair[1]) <= 16).count();
        assert!(near < 60, "{near} of 10,000 are within 16 of the one before, 5 are to be expected");
        let again = one.iter().zip(&other).filter(|(one, other)| one == other).count();
        assert!(again < 20, "{again} numbers repeat with another seed, 1 is to be expected");
    }

    #[test]
    fn a_number_rests_before_it_is_given_again() {
        let (one, two) = (Place::default(), Place { port: 2, ..Place::default() });
        let mut numbers = Numbers::default();
        numbers.rest(Time::ZERO, one, 7, 70);
        // 7 rests and 8 is free: 8 it is; with 8 in use, 7 is better than none.
        let mut draw = |place, is_used: fn(u16) -> bool| {
            numbers.draw(Time::from_secs(1), place, &mut Seeded::new(1), is_used)
        };
        assert_eq!(draw(&one, |number| number != 7 && number != 8), Some(8));
        assert_eq!(draw(&one, |number| number != 7), Some(7));
        assert_eq!(draw(&one, |_| true), None);
        // At another place it does not rest.
        assert_eq!(draw(&two, |number| number != 7), Some(7));
        assert!(numbers.is_used_up(70) && !numbers.is_used_up(71));
        numbers.draw(REST, &one, &mut Seeded::new(1), |_| false);
        assert!(!numbers.is_used_up(70) && numbers.queue.is_empty() && numbers.numbers.is_empty());
    }

    #[test]
    fn what_rests_has_a_bound() {
        let mut numbers = Numbers::default();
        for session in 0..100_000u32 {
            let place = Place { port: session / 60_000, ..Place::default() };
            numbers.rest(Time::ZERO, place, (session % 60_000) as u16, session.into());
        }
        assert_eq!((numbers.queue.len(), numbers.numbers.len(), numbers.cookies.len()), (MOST, MOST, MOST));
    }
}
