//! The indirection table (RETA): hash value to receive queue.

use crate::TableError;

/// Size of a device's indirection table: how many entries, and how wide each is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TableShape {
    entries: usize,
    entry_bits: u32,
}

impl TableShape {
    /// Most entries of a table. The largest known are 2048 (E810) and 4096; the bound keeps a mistyped size
    /// from becoming an allocation.
    pub const MAX_ENTRIES: usize = 1 << 16;

    /// A table of `entries` entries, each `entry_bits` wide: 128 and 3 for an I210 (datasheet, section
    /// 7.1.2.10.2), 128 and 4 for an 82599. Any number of entries, not only powers of two. Errors: no
    /// entries or more than 65536, a width other than 1 to 16.
    pub fn new(entries: usize, entry_bits: u32) -> Result<TableShape, TableError> {
        if !(1..=TableShape::MAX_ENTRIES).contains(&entries) {
            return Err(TableError::Entries { entries });
        }
        if !(1..=16).contains(&entry_bits) {
            return Err(TableError::EntryBits { bits: entry_bits });
        }
        Ok(TableShape { entries, entry_bits })
    }

    /// How many entries.
    pub const fn entries(self) -> usize {
        self.entries
    }

    /// Width of an entry in bits.
    pub const fn entry_bits(self) -> u32 {
        self.entry_bits
    }

    /// The highest queue that an entry can name.
    pub const fn highest_queue(self) -> u16 {
        u16::MAX >> (16 - self.entry_bits)
    }

    /// How many low bits of the hash select an entry; `None` where the number of entries is no power of two.
    pub const fn index_bits(self) -> Option<u32> {
        if self.entries.is_power_of_two() { Some(self.entries.trailing_zeros()) } else { None }
    }
}

/// Where a packet goes that no enabled hash type fits. Its hash value is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unmatched {
    /// The table is not used: RSS index 0 (I210 datasheet, section 7.1.2.10 and figure 7-6).
    QueueZero,
    /// The hash value 0 goes through the table like any other: entry 0.
    EntryZero,
    /// A queue set apart for such packets.
    Queue(u16),
}

/// An indirection table: one receive queue per entry.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IndirectionTable {
    shape: TableShape,
    queues: Vec<u16>,
}

impl IndirectionTable {
    /// `ethtool -X … equal N [start S]`, and with `start` 0 what drivers set by default
    /// (`ethtool_rxfh_indir_default`): entry `i` names queue `start + i % n`. Errors: `n` 0, a queue that does
    /// not fit into an entry.
    pub fn equal(shape: TableShape, n: u32, start: u32) -> Result<IndirectionTable, TableError> {
        if n == 0 {
            return Err(TableError::NoQueues);
        }
        let entries = (0..n).cycle().take(shape.entries).map(|queue| u64::from(start) + u64::from(queue));
        IndirectionTable::fill(shape, entries)
    }

    /// `ethtool -X … weight W0 W1 … [start S]`: queue `start + j` gets a contiguous block of entries in
    /// proportion to `weights[j]`. The blocks end where ethtool puts them: queue `j` ends before entry
    /// `entries × (w0 + … + wj) / sum`, rounded down. Errors: all weights 0, a sum above the number of
    /// entries, a queue that does not fit into an entry.
    pub fn weight(shape: TableShape, weights: &[u32], start: u32) -> Result<IndirectionTable, TableError> {
        let sum: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
        if sum == 0 {
            return Err(TableError::NoWeight);
        }
        let entries = shape.entries as u64;
        if sum > entries {
            return Err(TableError::WeightSum { sum, entries: shape.entries });
        }
        let ends = weights.iter().scan(0, |partial, weight| {
            *partial += u64::from(*weight);
            Some(entries * *partial / sum)
        });
        let blocks = (u64::from(start)..).zip(ends).scan(0, |begin, (queue, end)| {
            let block = end - *begin;
            *begin = end;
            Some(std::iter::repeat_n(queue, block as usize))
        });
        IndirectionTable::fill(shape, blocks.flatten())
    }

    /// An explicit list. Errors: another number of entries than the shape has, a queue that does not fit.
    pub fn explicit(shape: TableShape, queues: &[u16]) -> Result<IndirectionTable, TableError> {
        if queues.len() != shape.entries {
            return Err(TableError::Count { given: queues.len(), expected: shape.entries });
        }
        IndirectionTable::fill(shape, queues.iter().map(|queue| u64::from(*queue)))
    }

    fn fill(shape: TableShape, entries: impl Iterator<Item = u64>) -> Result<IndirectionTable, TableError> {
        let highest = shape.highest_queue();
        let fit = |(entry, queue): (usize, u64)| match u16::try_from(queue) {
            Ok(queue) if queue <= highest => Ok(queue),
            _ => Err(TableError::Width {
                entry,
                queue: u32::try_from(queue).unwrap_or(u32::MAX),
                bits: shape.entry_bits,
                highest: u32::from(highest),
            }),
        };
        let queues = entries.enumerate().map(fit).collect::<Result<Vec<u16>, TableError>>()?;
        Ok(IndirectionTable { shape, queues })
    }

    /// Number of entries and their width.
    pub const fn shape(&self) -> TableShape {
        self.shape
    }

    /// The queue of every entry.
    pub fn queues(&self) -> &[u16] {
        &self.queues
    }

    /// Which entry a hash value selects: its low bits (Microsoft, "RSS Hashing Functions"), which is the
    /// remainder by the number of entries; where that is no power of two, the remainder is how software
    /// tables (and Linux's default filling) index.
    #[inline]
    pub fn index(&self, hash: u32) -> usize {
        // At least one entry and at most 65536 (`TableShape::new`), so neither cast changes a value.
        (hash % (self.shape.entries as u32).max(1)) as usize
    }

    /// The queue that a hash value selects.
    #[inline]
    pub fn lookup(&self, hash: u32) -> u16 {
        self.queues.get(self.index(hash)).copied().unwrap_or(0)
    }

    /// The queue of a packet that no hash type fits.
    pub fn unmatched(&self, rule: Unmatched) -> u16 {
        match rule {
            Unmatched::QueueZero => 0,
            Unmatched::EntryZero => self.lookup(0),
            Unmatched::Queue(queue) => queue,
        }
    }

    /// How many entries name each queue, from queue 0 to the highest one named.
    pub fn shares(&self) -> Vec<usize> {
        let highest = self.queues.iter().copied().max().unwrap_or(0);
        let mut shares = vec![0; usize::from(highest) + 1];
        for queue in &self.queues {
            if let Some(share) = shares.get_mut(usize::from(*queue)) {
                *share += 1;
            }
        }
        shares
    }

    /// Whether a device with `queues` receive queues can take the table. Errors: the first entry that names
    /// a queue beyond them (Linux answers `EINVAL`).
    pub fn check_queues(&self, queues: u32) -> Result<(), TableError> {
        let offender = self.queues.iter().enumerate().find(|(_, queue)| u32::from(**queue) >= queues);
        match offender {
            Some((entry, queue)) => Err(TableError::NoSuchQueue { entry, queue: *queue, queues }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shape(entries: usize, bits: u32) -> TableShape {
        TableShape::new(entries, bits).unwrap()
    }

    #[test]
    fn equal_restripes() {
        let table = IndirectionTable::equal(shape(8, 4), 3, 0).unwrap();
        assert_eq!(table.queues(), [0, 1, 2, 0, 1, 2, 0, 1]);
        assert_eq!(table.shares(), [3, 3, 2]);
        let table = IndirectionTable::equal(shape(4, 4), 2, 5).unwrap();
        assert_eq!(table.queues(), [5, 6, 5, 6]);
        assert_eq!(IndirectionTable::equal(shape(4, 4), 0, 0), Err(TableError::NoQueues));
    }

    #[test]
    fn weight_fills_blocks_as_ethtool_does() {
        let queues = |entries, weights: &[u32]| {
            IndirectionTable::weight(shape(entries, 4), weights, 0).unwrap().queues().to_vec()
        };
        assert_eq!(queues(8, &[1, 1]), [0, 0, 0, 0, 1, 1, 1, 1]);
        assert_eq!(queues(8, &[1, 2]), [0, 0, 1, 1, 1, 1, 1, 1]);
        assert_eq!(queues(8, &[0, 1, 0, 1, 0]), [1, 1, 1, 1, 3, 3, 3, 3]);
        assert_eq!(queues(7, &[1, 1, 1]), [0, 0, 1, 1, 2, 2, 2]);
        assert_eq!(IndirectionTable::weight(shape(8, 4), &[0, 0], 0), Err(TableError::NoWeight));
        let sum = TableError::WeightSum { sum: 9, entries: 8 };
        assert_eq!(IndirectionTable::weight(shape(8, 4), &[8, 1], 0), Err(sum));
    }

    #[test]
    fn a_queue_has_to_fit_into_its_entry() {
        let width = TableError::Width { entry: 8, queue: 8, bits: 3, highest: 7 };
        assert_eq!(IndirectionTable::equal(shape(128, 3), 9, 0), Err(width));
        assert!(IndirectionTable::equal(shape(128, 4), 16, 0).is_ok());
        assert!(IndirectionTable::equal(shape(128, 16), u32::MAX, u32::MAX).is_err());
        let given = TableError::Count { given: 2, expected: 4 };
        assert_eq!(IndirectionTable::explicit(shape(4, 4), &[1, 2]), Err(given));
        assert_eq!(TableShape::new(0, 3), Err(TableError::Entries { entries: 0 }));
        assert_eq!(TableShape::new(128, 17), Err(TableError::EntryBits { bits: 17 }));
    }

    #[test]
    fn queues_that_the_device_lacks_are_found_and_unmatched_packets_go_where_it_says() {
        let table = IndirectionTable::explicit(shape(4, 4), &[3, 1, 2, 0]).unwrap();
        assert_eq!(table.check_queues(4), Ok(()));
        let lacking = TableError::NoSuchQueue { entry: 0, queue: 3, queues: 2 };
        assert_eq!(table.check_queues(2), Err(lacking));
        assert_eq!(table.unmatched(Unmatched::QueueZero), 0);
        assert_eq!(table.unmatched(Unmatched::EntryZero), 3);
        assert_eq!(table.unmatched(Unmatched::Queue(7)), 7);
    }

    /// ethtool's own loop (`fill_indir_table`), in Rust: moves on to the next queue while the entry lies
    /// behind the end of the current one's block.
    fn weight_by_walking(entries: u64, weights: &[u32]) -> Vec<u16> {
        let sum: u64 = weights.iter().map(|w| u64::from(*w)).sum();
        let (mut queue, mut partial) = (-1_i32, 0);
        (0..entries)
            .map(|entry| {
                while entry >= entries * partial / sum {
                    queue += 1;
                    partial += u64::from(weights[queue as usize]);
                }
                queue as u16
            })
            .collect()
    }

    proptest! {
        #[test]
        fn weight_equals_the_walk(
            entries in 1_usize..600,
            weights in proptest::collection::vec(0_u32..40, 1..12),
        ) {
            let shape = TableShape::new(entries, 16).unwrap();
            if let Ok(table) = IndirectionTable::weight(shape, &weights, 0) {
                let walked = weight_by_walking(entries as u64, &weights);
                prop_assert_eq!(table.queues(), &walked[..]);
            }
        }

        #[test]
        fn every_hash_finds_a_queue_and_the_index_is_the_low_bits(
            hash: u32,
            bits in 0_u32..=16,
            entries in 1_usize..3000,
            n in 1_u32..64,
        ) {
            let table = IndirectionTable::equal(shape(1 << bits, 16), 7, 0).unwrap();
            prop_assert_eq!(table.shape().index_bits(), Some(bits));
            prop_assert_eq!(table.index(hash) as u32, hash & ((1 << bits) - 1));
            let table = IndirectionTable::equal(shape(entries, 6), n, 0).unwrap();
            prop_assert!(table.index(hash) < entries);
            prop_assert!(u32::from(table.lookup(hash)) < n);
        }
    }
}
