//! The values of a column in one group of rows.

use crate::{Kind, Value, length};
use std::io;

/// Values that wait for their page.
pub(crate) struct Buffered {
    kind: Kind,
    /// Runs of nulls and of values, in turn of the rows: how long, and whether there is a value.
    runs: Vec<(u32, bool)>,
    /// Values as the encoding PLAIN has them, without the nulls.
    values: Vec<u8>,
    /// Truth values, whose encoding packs eight into a byte.
    flags: usize,
}

impl Buffered {
    pub(crate) fn new(kind: Kind) -> Buffered {
        Buffered { kind, runs: Vec::new(), values: Vec::new(), flags: 0 }
    }

    /// Adds a value; whether it is one of this column.
    pub(crate) fn push(&mut self, value: Value<'_>) -> bool {
        match (self.kind, value) {
            (_, Value::Null) => {}
            (Kind::Flag, Value::Flag(flag)) => {
                let bit = self.flags % 8;
                self.flags += 1;
                match self.values.last_mut().filter(|_| bit > 0) {
                    Some(byte) => *byte |= u8::from(flag) << bit,
                    None => self.values.push(u8::from(flag)),
                }
            }
            (Kind::Count, Value::Count(count)) => self.values.extend(count.to_le_bytes()),
            (Kind::Number, Value::Number(number)) => self.values.extend(number.to_le_bytes()),
            (Kind::Text, Value::Text(text)) => {
                let Ok(length) = length(text.len()) else { return false };
                self.values.extend(length.to_le_bytes());
                self.values.extend(text.as_bytes());
            }
            _ => return false,
        }
        let is_there = value != Value::Null;
        match self.runs.last_mut().filter(|(rows, was)| *was == is_there && *rows < i32::MAX as u32) {
            Some((rows, _)) => *rows += 1,
            None => self.runs.push((1, is_there)),
        }
        true
    }

    /// Bytes that it takes, about.
    pub(crate) fn size(&self) -> usize {
        self.values.len() + self.runs.len() * size_of::<(u32, bool)>()
    }

    /// The content of a data page: definition levels of one bit (encoding RLE, with its length in front), and values. Begins anew.
    pub(crate) fn take_page(&mut self) -> io::Result<Vec<u8>> {
        let mut levels = Vec::with_capacity(2 * self.runs.len());
        for (rows, is_there) in self.runs.drain(..) {
            // A run that repeats one value: twice its length, then the value.
            crate::thrift::varint(&mut levels, u64::from(rows) << 1);
            levels.push(u8::from(is_there));
        }
        let mut page = Vec::with_capacity(4 + levels.len() + self.values.len());
        page.extend(length(levels.len())?.to_le_bytes());
        page.extend(levels);
        page.append(&mut self.values);
        self.flags = 0;
        Ok(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(kind: Kind, values: &[Value<'_>]) -> Vec<u8> {
        let mut column = Buffered::new(kind);
        assert!(values.iter().all(|value| column.push(*value)));
        column.take_page().expect("short")
    }

    #[test]
    fn pages_are_as_the_format_says() {
        // Lengths and values in little-endian order; runs as "Run Length Encoding / Bit-Packing Hybrid" (Encodings.md) has them.
        let counts = page(Kind::Count, &[Value::Count(1), Value::Null, Value::Null, Value::Count(u64::MAX)]);
        assert_eq!(counts[..4], [6, 0, 0, 0]);
        assert_eq!(counts[4..10], [2, 1, 4, 0, 2, 1]);
        assert_eq!(counts[10..], [1, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]);

        let text = page(Kind::Text, &["".into(), "é".into()]);
        assert_eq!(text, [2, 0, 0, 0, 4, 1, 0, 0, 0, 0, 2, 0, 0, 0, 0xc3, 0xa9]);

        let flags: Vec<Value<'_>> = (0..9).map(|n| Value::Flag(n % 2 == 0)).collect();
        assert_eq!(page(Kind::Flag, &flags), [2, 0, 0, 0, 18, 1, 0b0101_0101, 1]);
        assert_eq!(page(Kind::Number, &[Value::Number(1.0)])[6..], 1.0_f64.to_le_bytes());
    }

    #[test]
    fn a_page_begins_anew() {
        let mut column = Buffered::new(Kind::Flag);
        assert!(column.push(true.into()));
        column.take_page().expect("short");
        assert!(column.push(false.into()));
        assert_eq!(column.take_page().expect("short"), [2, 0, 0, 0, 2, 1, 0]);
    }

    #[test]
    fn a_value_of_another_kind_is_refused() {
        assert!(!Buffered::new(Kind::Flag).push(1_u32.into()));
        assert!(!Buffered::new(Kind::Text).push(1.5.into()));
        assert!(Buffered::new(Kind::Text).push(None::<u64>.into()));
    }
}
