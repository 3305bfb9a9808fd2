//! Tables of a fixed size, of which only what somebody touched takes memory, and the keyed hash that finds a place in them.

use crate::{Random, draw};
use std::hash::{DefaultHasher, Hash, Hasher};

/// A key that nobody outside knows, so that nobody can choose what shares a place.
pub(crate) struct HashKey([u8; 16]);

impl HashKey {
    pub(crate) fn new(random: &mut dyn Random) -> HashKey {
        HashKey(draw(random))
    }

    pub(crate) fn hash(&self, what: impl Hash) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        what.hash(&mut hasher);
        hasher.finish()
    }
}

const PAGE: usize = 1 << 8;

/// A table of entries that are all the same at first; pages that nobody has touched are not there.
pub(crate) struct Pages<T> {
    first: T,
    pages: Box<[Option<Box<[T; PAGE]>>]>,
}

impl<T: Copy> Pages<T> {
    /// So many of this, a multiple of 256.
    pub(crate) fn new(first: T, count: usize) -> Pages<T> {
        Pages { first, pages: std::iter::repeat_with(|| None).take(count / PAGE).collect() }
    }

    /// What the entry of this number is; `None`: there are fewer.
    pub(crate) fn get(&self, number: usize) -> Option<T> {
        match self.pages.get(number / PAGE)? {
            Some(page) => page.get(number % PAGE).copied(),
            None => Some(self.first),
        }
    }

    /// The entry of this number, to be changed; `None`: there are fewer.
    pub(crate) fn at(&mut self, number: usize) -> Option<&mut T> {
        let page = self.pages.get_mut(number / PAGE)?;
        page.get_or_insert_with(|| Box::new([self.first; PAGE])).get_mut(number % PAGE)
    }

    /// Bytes that its entries take.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.pages.iter().flatten().count() * size_of::<[T; PAGE]>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_comes_with_what_is_touched() {
        let mut table = Pages::new(7_u32, 1024);
        assert_eq!((table.get(0), table.get(1023), table.get(1024)), (Some(7), Some(7), None));
        assert_eq!(table.bytes(), 0);
        for number in [0, 255, 300] {
            *table.at(number).unwrap() += 1;
        }
        assert_eq!([0, 1, 255, 256, 300].map(|number| *table.at(number).unwrap()), [8, 7, 8, 7, 8]);
        assert_eq!([0, 1, 300].map(|number| table.get(number)), [Some(8), Some(7), Some(8)]);
        assert_eq!(table.bytes(), 2 * 256 * 4);
        assert_eq!((table.at(1023).copied(), table.at(1024).copied()), (Some(7), None));
    }
}
