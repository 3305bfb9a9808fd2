//! Turns most names away before they are compared with a table: nearly all statistics names are none of its.

/// Words of the set.
const WORDS: usize = 64;

/// A set that contains every name put into it, and few others.
pub(super) struct Sieve([u64; WORDS]);

impl Sieve {
    /// The set of `names`, each in the two pieces that a table keeps it in.
    pub fn of<'a>(names: impl Iterator<Item = (&'a str, &'a str)>) -> Sieve {
        let mut sieve = Sieve([0; WORDS]);
        for (before, after) in names {
            let place = place(before, after);
            if let Some(word) = sieve.0.get_mut(place / 64) {
                *word |= 1 << (place % 64);
            }
        }
        sieve
    }

    /// Whether it may be there; `false` is certain.
    pub fn may_have(&self, before: &str, after: &str) -> bool {
        let place = place(before, after);
        self.0.get(place / 64).is_some_and(|word| word >> (place % 64) & 1 == 1)
    }
}

/// A bit for a name, from its lengths and a few of its octets.
fn place(before: &str, after: &str) -> usize {
    let (before, after) = (before.as_bytes(), after.as_bytes());
    let octets = [
        before.len() as u8,
        before.get(before.len() / 2).copied().unwrap_or(0),
        before.get((before.len() / 4).max(3)).copied().unwrap_or(0),
        before.last().copied().unwrap_or(0),
        after.len() as u8,
        after.get(1).copied().unwrap_or(0),
        after.get(after.len() / 2).copied().unwrap_or(0),
        after.last().copied().unwrap_or(0),
    ];
    // The upper bits of a product depend on all lower ones of its factor (Fibonacci hashing).
    let product = u64::from_le_bytes(octets).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (product >> 52) as usize % (64 * WORDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_in_is_found_and_little_else() {
        let names: Vec<String> = (0..100).map(|n| format!("rx_counter_{n}_of_many{}", n * 37)).collect();
        let sieve = Sieve::of(names.iter().map(|name| name.split_at(name.len() / 2)));
        for name in &names {
            let (before, after) = name.split_at(name.len() / 2);
            assert!(sieve.may_have(before, after), "{name}");
        }
        let others = (0..1000).filter(|n| sieve.may_have(&format!("tx_other_{n}"), "")).count();
        assert!(others < 100, "{others} of 1000");
        assert!(!Sieve::of(std::iter::empty()).may_have("", ""));
    }
}
