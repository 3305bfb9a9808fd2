//! Which driver printed a set of names, where only one of the drivers in the tables can have.

use super::buckets::{Buckets, bucket};
use super::drivers::{self, Driver};
use std::sync::LazyLock;

/// The names that prove or disprove a driver.
struct Names {
    /// Sorted by bucket.
    sorted: Vec<&'static str>,
    buckets: Buckets,
}

impl Names {
    fn place(&self, name: &str) -> Option<usize> {
        self.buckets.places(name, "").find(|&place| self.sorted.get(place) == Some(&name))
    }
}

static CLUES: LazyLock<Names> = LazyLock::new(|| {
    let mut names: Vec<&str> =
        drivers::all().iter().flat_map(|driver| driver.proof.iter().flatten().copied()).collect();
    names.sort_unstable_by_key(|name| (bucket(name, ""), *name));
    names.dedup();
    Names { buckets: Buckets::of(names.iter().map(|name| (*name, ""))), sorted: names }
});

/// Words of the set of clues.
const WORDS: usize = 4;

/// The clues seen in one output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clues {
    seen: [u64; WORDS],
}

/// Whether some driver can be told by this name.
pub(crate) fn is_clue(name: &str) -> bool {
    CLUES.place(name).is_some()
}

impl Clues {
    /// Notes a name; whether it was a clue.
    pub fn note(&mut self, name: &str) -> bool {
        let Some(place) = CLUES.place(name) else { return false };
        if let Some(word) = self.seen.get_mut(place / 64) {
            *word |= 1 << (place % 64);
        }
        true
    }

    fn has(&self, name: &str) -> bool {
        CLUES
            .place(name)
            .and_then(|place| Some(self.seen.get(place / 64)? >> (place % 64) & 1 == 1))
            .unwrap_or(false)
    }

    /// The driver, where the clues prove one and no other.
    pub fn driver(&self) -> Option<&'static str> {
        if self.seen == [0; WORDS] {
            return None;
        }
        let proves = |driver: &&Driver| {
            let [with, without] = &driver.proof;
            !with.is_empty()
                && with.iter().all(|name| self.has(name))
                && !without.iter().any(|name| self.has(name))
        };
        let mut proved =
            drivers::all().iter().filter(proves).filter_map(|driver| driver.names.first().copied());
        let first = proved.next()?;
        proved.next().is_none().then_some(first)
    }
}

/// The driver (as `ethtool -i` names it) whose `ethtool -S` prints `names`, where they prove it among the drivers
/// of the tables. `None` where several would do, or none is known that does.
pub fn drivers_with<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<&'static str> {
    let mut clues = Clues::default();
    for name in names {
        clues.note(name);
    }
    clues.driver()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_every_clue() {
        assert!(CLUES.sorted.len() <= WORDS * 64, "{}", CLUES.sorted.len());
    }

    #[test]
    fn every_proof_proves_its_driver_and_no_other() {
        for driver in drivers::all() {
            let [with, without] = &driver.proof;
            assert!(without.is_empty() || !with.is_empty(), "{:?}", driver.names);
            if !with.is_empty() {
                assert_eq!(drivers_with(with.iter().copied()), driver.names.first().copied());
            }
        }
    }
}
