//! Thrift's compact protocol, as far as the metadata of Parquet take it (`thrift-compact-protocol.md`).

const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// Seven bits a byte, the lowest first.
pub(crate) fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Small where the amount is, whatever the sign.
const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// A structure that is being written, its fields in the order of their numbers.
pub(crate) struct Struct<'o> {
    out: &'o mut Vec<u8>,
    /// The number of the last field.
    last: u8,
}

impl Struct<'_> {
    pub(crate) fn write(out: &mut Vec<u8>, fields: impl FnOnce(&mut Struct<'_>)) {
        fields(&mut Struct { out, last: 0 });
        out.push(0);
    }

    /// Numbers of fields ascend by 15 at most in all structures of Parquet.
    fn field(&mut self, number: u8, kind: u8) {
        debug_assert!((1..=15).contains(&(number - self.last)));
        self.out.push((number - self.last) << 4 | kind);
        self.last = number;
    }

    pub(crate) fn i32(&mut self, number: u8, value: i32) {
        self.field(number, I32);
        varint(self.out, zigzag(value.into()));
    }

    pub(crate) fn i64(&mut self, number: u8, value: i64) {
        self.field(number, I64);
        varint(self.out, zigzag(value));
    }

    pub(crate) fn text(&mut self, number: u8, text: &str) {
        self.field(number, BINARY);
        binary(self.out, text);
    }

    pub(crate) fn structure(&mut self, number: u8, fields: impl FnOnce(&mut Struct<'_>)) {
        self.field(number, STRUCT);
        Struct::write(self.out, fields);
    }

    fn list(&mut self, number: u8, kind: u8, length: usize) {
        self.field(number, LIST);
        if length < 15 {
            self.out.push((length as u8) << 4 | kind);
        } else {
            self.out.push(0xf0 | kind);
            varint(self.out, length as u64);
        }
    }

    pub(crate) fn i32s(&mut self, number: u8, values: &[i32]) {
        self.list(number, I32, values.len());
        for value in values {
            varint(self.out, zigzag((*value).into()));
        }
    }

    pub(crate) fn texts(&mut self, number: u8, texts: &[&str]) {
        self.list(number, BINARY, texts.len());
        for text in texts {
            binary(self.out, text);
        }
    }

    pub(crate) fn structs<T>(
        &mut self,
        number: u8,
        items: impl Iterator<Item = T>,
        fields: impl Fn(&mut Struct<'_>, T),
    ) {
        let items: Vec<T> = items.collect();
        self.list(number, STRUCT, items.len());
        for item in items {
            Struct::write(self.out, |one| fields(one, item));
        }
    }
}

fn binary(out: &mut Vec<u8>, text: &str) {
    varint(out, text.len() as u64);
    out.extend(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_and_lists_are_as_the_protocol_says() {
        let mut out = Vec::new();
        Struct::write(&mut out, |fields| {
            fields.i32(1, -1);
            fields.i64(3, 300);
            fields.texts(4, &["a"]);
            fields.structs(9, 0..16, |one, n| one.i32(1, n));
        });
        // A field: how far from the last one, and its type. -1 is 1, 300 is 600 in zigzag: 0xd8 0x04.
        assert_eq!(out[..2], [0x15, 1]);
        assert_eq!(out[2..5], [0x26, 0xd8, 0x04]);
        assert_eq!(out[5..9], [0x19, 0x18, 1, b'a']);
        assert_eq!(out[9..12], [0x59, 0xfc, 16]);
        assert_eq!(out[12..15], [0x15, 0, 0]);
        assert_eq!(out.len(), 12 + 16 * 3 + 1);
    }
}
