//! What wrong passwords cost: who sends them waits before the next one is looked at.
//!
//! # Contract
//!
//! * Counted are wrong passwords and unknown users, of a host (MAC address, port and tags), and of a user on a line (port and
//!   tags), whoever sends them there. [`FREE`] of either cost nothing; after each further one nothing is looked at for twice as
//!   long as after the one before, a minute at most. Whoever sends none for [`FORGOTTEN`] begins anew.
//! * A user is never kept out on another line than the one with the wrong passwords, nor on the same one at the host from which
//!   they have connected last, unless it sends wrong ones itself.
//! * Strangers fill tables of a fixed size: one that has the place of another drives it out, which keeps nobody out.

use crate::discovery::place::Place;
use crate::pages::{HashKey, Pages};
use crate::{Random, Time, backoff};
use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;
use wire::ethernet::MacAddress;

const FREE: u32 = 5;
/// How long one waits after the first that does.
const FIRST: Duration = Duration::from_secs(2);
/// And at most.
pub(super) const LONGEST: Duration = Duration::from_secs(60);
/// After how long without a wrong one they are forgotten.
const FORGOTTEN: Duration = Duration::from_secs(600);
/// Places of each table: 400 kB where all are used.
const PLACES: usize = 1 << 14;

/// See the [module](self).
pub(super) struct LoginThrottle {
    key: HashKey,
    hosts: Pages<Count>,
    users: Pages<Count>,
    /// Where each user has connected last, by a keyed hash of the name, of at most so many as there may be sessions. A copy of each name
    /// would keep a page of the heap in use for as long as the process lives, among the sessions that have ended.
    known: HashMap<u64, (Place, MacAddress)>,
    most_known: usize,
}

/// Wrong passwords of one host, or of one user on a line.
#[derive(Clone, Copy, Default)]
struct Count {
    /// Whose: a keyed hash. Zero: nobody's.
    owner: u64,
    /// When the last one came, milliseconds.
    last: u64,
    count: u32,
}

impl Count {
    /// How long until the next one is looked at.
    fn wait(self, now: Time) -> Option<Duration> {
        let further = self.count.checked_sub(FREE).filter(|further| *further > 0)?;
        let until = Duration::from_millis(self.last).saturating_add(backoff(FIRST, further, LONGEST));
        until.checked_sub(now).filter(|wait| !wait.is_zero())
    }
}

impl std::fmt::Debug for LoginThrottle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoginThrottle").field("known", &self.known.len()).finish_non_exhaustive()
    }
}

impl LoginThrottle {
    pub(super) fn new(most_known: u32, random: &mut dyn Random) -> LoginThrottle {
        LoginThrottle {
            key: HashKey::new(random),
            hosts: Pages::new(Count::default(), PLACES),
            users: Pages::new(Count::default(), PLACES),
            known: HashMap::new(),
            most_known: most_known as usize,
        }
    }

    /// How long nothing of a host is looked at.
    pub(super) fn wait_of_host(&self, now: Time, place: &Place, station: MacAddress) -> Option<Duration> {
        let owner = self.hash((place, station.0));
        of(&self.hosts, owner)?.wait(now)
    }

    /// How long a claim to be this user is not looked at.
    pub(super) fn wait(
        &self,
        now: Time,
        place: &Place,
        station: MacAddress,
        user: &[u8],
    ) -> Option<Duration> {
        let host = self.wait_of_host(now, place, station);
        if self.known.get(&self.hash(user)) == Some(&(*place, station)) {
            return host;
        }
        let owner = self.hash((place, user));
        host.max(of(&self.users, owner).and_then(|count| count.wait(now)))
    }

    /// A claim was wrong.
    pub(super) fn failed(&mut self, now: Time, place: &Place, station: MacAddress, user: &[u8]) {
        let (host, user) = (self.hash((place, station.0)), self.hash((place, user)));
        strike(&mut self.hosts, host, now);
        strike(&mut self.users, user, now);
    }

    /// A claim was right.
    pub(super) fn succeeded(&mut self, place: Place, station: MacAddress, user: &[u8]) {
        let user = self.hash(user);
        if let Some(known) = self.known.get_mut(&user) {
            *known = (place, station);
        } else if self.known.len() < self.most_known {
            self.known.insert(user, (place, station));
        }
    }

    fn hash(&self, what: impl Hash) -> u64 {
        self.key.hash(what).max(1)
    }
}

fn of(table: &Pages<Count>, owner: u64) -> Option<Count> {
    table.get(owner as usize % PLACES).filter(|count| count.owner == owner)
}

fn strike(table: &mut Pages<Count>, owner: u64, now: Time) {
    let Some(place) = table.at(owner as usize % PLACES) else { return };
    let is_forgotten = now.saturating_sub(Duration::from_millis(place.last)) >= FORGOTTEN;
    if place.owner != owner || is_forgotten {
        *place = Count { owner, ..Count::default() };
    }
    place.count = place.count.saturating_add(1);
    place.last = now.as_millis() as u64;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::mac;
    use wire::Vlans;

    const NOW: Time = Duration::from_secs(5000);
    const HERE: Place = Place { port: 0, vlans: Vlans::NONE };
    const THERE: Place = Place { port: 1, vlans: Vlans::NONE };

    fn throttle() -> LoginThrottle {
        LoginThrottle::new(2, &mut |bytes: &mut [u8]| bytes.fill(7))
    }

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    /// Attack 23: passwords guessed from one host. Of a day's guesses a minute each is looked at.
    #[test]
    fn a_host_waits_longer_after_each_wrong_password() {
        let mut throttle = throttle();
        let mut waits = Vec::new();
        let mut now = NOW;
        for number in 0..12_u8 {
            assert_eq!(throttle.wait_of_host(now, &HERE, mac(1)), None);
            // Another user each time.
            throttle.failed(now, &HERE, mac(1), &[number]);
            let wait = throttle.wait_of_host(now, &HERE, mac(1)).unwrap_or_default();
            waits.push(wait.as_secs());
            assert_eq!(throttle.wait(now, &HERE, mac(1), b"alice").unwrap_or_default(), wait);
            now += wait;
        }
        assert_eq!(waits, [0, 0, 0, 0, 0, 2, 4, 8, 16, 32, 60, 60]);
        let looked_at = (0..86_400).filter(|second| {
            let now = now + seconds(*second);
            let is_looked_at = throttle.wait_of_host(now, &HERE, mac(1)).is_none();
            if is_looked_at {
                throttle.failed(now, &HERE, mac(1), b"alice");
            }
            is_looked_at
        });
        assert_eq!(looked_at.count(), 1440);
        // Who stops begins anew.
        now += seconds(86_400 + 600);
        throttle.failed(now, &HERE, mac(1), b"alice");
        assert_eq!(throttle.wait_of_host(now, &HERE, mac(1)), None);
    }

    /// Attack 23: from many hosts of one line. Other lines are as they were, and so is the host of the user.
    #[test]
    fn a_user_waits_where_the_wrong_passwords_come_from_and_nowhere_else() {
        let mut throttle = throttle();
        let alice = b"alice";
        throttle.succeeded(HERE, mac(1), alice);
        for number in 100..106 {
            assert_eq!(throttle.wait(NOW, &HERE, mac(number), alice), None);
            throttle.failed(NOW, &HERE, mac(number), alice);
        }
        assert_eq!(throttle.wait(NOW, &HERE, mac(200), alice), Some(seconds(2)));
        assert_eq!(throttle.wait_of_host(NOW, &HERE, mac(200)), None);
        assert_eq!(throttle.wait(NOW, &HERE, mac(200), b"bob"), None);
        assert_eq!(throttle.wait(NOW, &THERE, mac(200), alice), None);
        assert_eq!(throttle.wait(NOW, &HERE, mac(1), alice), None);
        // Its own wrong ones count.
        (0..6).for_each(|_| throttle.failed(NOW, &HERE, mac(1), alice));
        assert!(throttle.wait(NOW, &HERE, mac(1), alice).is_some());
    }

    /// Attack 7: strangers without number.
    #[test]
    fn the_tables_do_not_grow_without_bound() {
        let mut throttle = throttle();
        for number in 0..200_000_u32 {
            throttle.failed(NOW, &HERE, mac(number), &number.to_be_bytes());
            throttle.succeeded(HERE, mac(number), &number.to_be_bytes());
        }
        assert_eq!(throttle.hosts.bytes() + throttle.users.bytes(), 2 * PLACES * size_of::<Count>());
        assert_eq!(throttle.known.len(), 2);
        // None of them is kept out because of another.
        for number in 0..200_000_u32 {
            assert_eq!(throttle.wait(NOW, &HERE, mac(number), &number.to_be_bytes()), None);
        }
    }
}
