//! Where in a table a name can stand: nearly all statistics names are in none, and the others are a comparison away.

use std::ops::Range;

/// Buckets, of which most hold no name or one.
const BUCKETS: usize = 4096;

/// The buckets of a table that is sorted by [`bucket`].
pub(super) struct Buckets {
    /// Where each bucket starts, and behind the last one where the table ends.
    starts: Vec<u16>,
}

impl Buckets {
    /// The buckets of `names` in their order, each name in the two pieces that the table keeps it in.
    pub fn of<'a>(names: impl Iterator<Item = (&'a str, &'a str)>) -> Buckets {
        let mut starts = vec![0; BUCKETS + 1];
        for (before, after) in names {
            if let Some(end) = starts.get_mut(bucket(before, after) + 1) {
                *end += 1;
            }
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        Buckets { starts }
    }

    /// The places in the table that have to be compared; empty for most names.
    pub fn places(&self, before: &str, after: &str) -> Range<usize> {
        match self.starts.get(bucket(before, after)..) {
            Some([start, end, ..]) => usize::from(*start)..usize::from(*end),
            _ => 0..0,
        }
    }
}

/// The bucket of a name, from its lengths and a few of its bytes.
pub(super) fn bucket(before: &str, after: &str) -> usize {
    let (before, after) = (before.as_bytes(), after.as_bytes());
    let bytes = [
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
    let product = u64::from_le_bytes(bytes).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (product >> 52) as usize % BUCKETS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_in_its_bucket_and_few_share_one() {
        let names: Vec<String> = (0..100).map(|n| format!("rx_counter_{n}_of_many{}", n * 37)).collect();
        let mut names: Vec<(&str, &str)> = names.iter().map(|name| name.split_at(name.len() / 2)).collect();
        names.sort_by_key(|(before, after)| bucket(before, after));
        let buckets = Buckets::of(names.iter().copied());
        for (place, (before, after)) in names.iter().enumerate() {
            assert!(buckets.places(before, after).contains(&place), "{before}{after}");
        }
        let others = (0..1000).filter(|n| !buckets.places(&format!("tx_other_{n}"), "").is_empty()).count();
        assert!(others < 100, "{others} of 1000");
        assert!(Buckets::of(std::iter::empty()).places("", "").is_empty());
    }
}
