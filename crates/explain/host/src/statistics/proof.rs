//! Which driver printed a set of names, where only one of the drivers in the tables can have.

use super::drivers::{self, Driver};
use foldhash::fast::FixedState;
use std::collections::HashMap;
use std::sync::LazyLock;

/// The names that prove or disprove a driver, by place in [`Clues`].
static CLUES: LazyLock<HashMap<&str, usize, FixedState>> = LazyLock::new(|| {
    let mut names: Vec<&str> =
        drivers::all().iter().flat_map(|driver| driver.proof.iter().flatten().copied()).collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter().zip(0..).collect()
});

/// Words of the set of clues.
const WORDS: usize = 4;

/// The clues seen in one output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clues {
    seen: [u64; WORDS],
}

/// Whether some driver can be recognised by this name.
pub(crate) fn is_clue(name: &str) -> bool {
    CLUES.contains_key(name)
}

impl Clues {
    /// Notes a name; whether it was a clue.
    pub fn note(&mut self, name: &str) -> bool {
        let Some(&place) = CLUES.get(name) else { return false };
        if let Some(word) = self.seen.get_mut(place / 64) {
            *word |= 1 << (place % 64);
        }
        true
    }

    fn has(&self, name: &str) -> bool {
        CLUES
            .get(name)
            .is_some_and(|place| self.seen.get(place / 64).is_some_and(|word| word >> (place % 64) & 1 == 1))
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
        assert!(CLUES.len() <= WORDS * 64, "{}", CLUES.len());
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
