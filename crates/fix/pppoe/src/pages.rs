//! Tables of a fixed size, of which only what somebody touched takes memory.

const PAGE: usize = 1 << 8;

/// A table of entries that are all the same at first; pages that nobody has touched are not there.
pub(crate) struct Pages<T> {
    first: T,
    pages: Box<[Option<Box<[T; PAGE]>>]>,
}

impl<T: Copy> Pages<T> {
    /// So many of this, a multiple of 256.
    pub fn new(first: T, count: usize) -> Pages<T> {
        Pages { first, pages: std::iter::repeat_with(|| None).take(count / PAGE).collect() }
    }

    /// What the entry of this number is; `None`: there are fewer.
    pub fn get(&self, number: usize) -> Option<T> {
        match self.pages.get(number / PAGE)? {
            Some(page) => page.get(number % PAGE).copied(),
            None => Some(self.first),
        }
    }

    /// The entry of this number, to be changed; `None`: there are fewer.
    pub fn at(&mut self, number: usize) -> Option<&mut T> {
        let page = self.pages.get_mut(number / PAGE)?;
        page.get_or_insert_with(|| Box::new([self.first; PAGE])).get_mut(number % PAGE)
    }

    /// Bytes that its entries take.
    #[cfg(test)]
    pub fn octets(&self) -> usize {
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
        assert_eq!(table.octets(), 0);
        for number in [0, 255, 300] {
            *table.at(number).unwrap() += 1;
        }
        assert_eq!([0, 1, 255, 256, 300].map(|number| *table.at(number).unwrap()), [8, 7, 8, 7, 8]);
        assert_eq!([0, 1, 300].map(|number| table.get(number)), [Some(8), Some(7), Some(8)]);
        assert_eq!(table.octets(), 2 * 256 * 4);
        assert_eq!((table.at(1023).copied(), table.at(1024).copied()), (Some(7), None));
    }
}
