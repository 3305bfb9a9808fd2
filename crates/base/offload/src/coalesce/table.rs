//! Which packets are open to be continued: a table of fixed size, a look-up of bounded cost.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

/// Buckets of the table; a power of two.
const BUCKETS: usize = 256;
/// Places of a bucket: what fits a cache line with the rest.
const PLACES: usize = 7;

/// Open packets whose hashes share some bits.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Bucket {
    /// The batch in which the places were taken; those of an earlier one are free.
    batch: u32,
    used: u8,
    /// The place that is given up next.
    oldest: u8,
    tags: [u32; PLACES],
    items: [u32; PLACES],
}

/// Open packets by the hash of their flow. Where a bucket is full, the packet that has been there longest gives way: it is
/// then closed, and nothing else is lost.
#[derive(Clone, Debug)]
pub(super) struct Table {
    buckets: Box<[Bucket; BUCKETS]>,
    batch: u32,
    /// So that nobody can choose flows that share a bucket.
    seed: u64,
}

impl Table {
    pub(super) fn new() -> Table {
        let buckets = Box::new([Bucket::default(); BUCKETS]);
        Table { buckets, batch: 0, seed: RandomState::new().hash_one(BUCKETS) }
    }

    pub(super) fn clear(&mut self) {
        self.batch = self.batch.wrapping_add(1);
        if self.batch == 0 {
            // Buckets left from the first batches must not count as this one's.
            self.buckets.fill(Bucket::default());
            self.batch = 1;
        }
    }

    /// A hash of words, from which [`Table::find`] and the others start.
    #[inline]
    pub(super) fn hash(&self, words: impl IntoIterator<Item = u64>) -> u64 {
        words.into_iter().fold(self.seed, |hash, word| {
            let product = u128::from(hash ^ word) * u128::from(0x9e37_79b9_7f4a_7c15_u64);
            (product >> 64) as u64 ^ product as u64
        })
    }

    #[inline]
    fn bucket(&mut self, hash: u64) -> Option<&mut Bucket> {
        let batch = self.batch;
        let bucket = self.buckets.get_mut(hash as usize % BUCKETS)?;
        if bucket.batch != batch {
            *bucket = Bucket { batch, ..Bucket::default() };
        }
        Some(bucket)
    }

    /// The open packet of this hash that is the right one.
    #[inline]
    pub(super) fn find(&mut self, hash: u64, is_right: impl Fn(u32) -> bool) -> Option<u32> {
        let bucket = self.bucket(hash)?;
        let tag = (hash >> 32) as u32;
        let places = bucket.tags.iter().zip(&bucket.items).take(bucket.used.into());
        places.filter(|(other, _)| **other == tag).map(|(_, item)| *item).find(|item| is_right(*item))
    }

    #[inline]
    pub(super) fn insert(&mut self, hash: u64, item: u32) {
        let Some(bucket) = self.bucket(hash) else { return };
        let place = if usize::from(bucket.used) < PLACES {
            bucket.used += 1;
            usize::from(bucket.used) - 1
        } else {
            let place = usize::from(bucket.oldest);
            bucket.oldest = (bucket.oldest + 1) % PLACES as u8;
            place
        };
        if let (Some(tag), Some(place)) = (bucket.tags.get_mut(place), bucket.items.get_mut(place)) {
            (*tag, *place) = ((hash >> 32) as u32, item);
        }
    }

    /// Closes a packet; one that is not open stays so.
    #[inline]
    pub(super) fn remove(&mut self, hash: u64, item: u32) {
        let Some(bucket) = self.bucket(hash) else { return };
        let used = usize::from(bucket.used);
        let Some(place) = bucket.items.iter().take(used).position(|other| *other == item) else { return };
        bucket.items.copy_within(place + 1..used, place);
        bucket.tags.copy_within(place + 1..used, place);
        bucket.used -= 1;
        bucket.oldest = 0;
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing)]
mod tests {
    use super::*;

    #[test]
    fn what_is_inserted_is_found_until_it_is_removed_or_gives_way() {
        let mut table = Table::new();
        table.clear();
        let hashes: Vec<u64> = (0..10_u64).map(|number| number << 32 | 5).collect();
        for (hash, item) in hashes.iter().zip(0..) {
            table.insert(*hash, item);
        }
        let found = |table: &mut Table| -> Vec<u32> {
            hashes.iter().filter_map(|hash| table.find(*hash, |_| true)).collect()
        };
        assert_eq!(found(&mut table), [3, 4, 5, 6, 7, 8, 9], "the three oldest gave way");
        table.remove(hashes[4], 4);
        table.remove(hashes[4], 4);
        assert_eq!(found(&mut table), [3, 5, 6, 7, 8, 9]);
        assert_eq!(table.find(hashes[5], |item| item != 5), None);
        table.clear();
        assert_eq!(found(&mut table), [0; 0]);
    }

    #[test]
    fn a_batch_number_that_comes_again_finds_nothing_old() {
        let mut table = Table::new();
        table.clear();
        table.insert(9, 9);
        table.batch = u32::MAX;
        table.clear();
        assert_eq!((table.batch, table.find(9, |_| true)), (1, None));
    }
}
