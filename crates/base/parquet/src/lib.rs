//! Parquet files of flat tables, for DuckDB, ClickHouse, Spark and whatever else reads columns.
//!
//! Of the format (parquet-format 2.10, `parquet.thrift`): columns of truth values, whole numbers, numbers and text, each of which may be
//! null; one data page for each column of a group of rows, plain, compressed with gzip. Libraries that do all of it bring some fifteen
//! crates, the smallest of them.
//!
//! ```
//! use rxlane_parquet::{Column, Kind, Value, Writer};
//! const COLUMNS: &[Column] = &[Column::new("interface", Kind::Text), Column::new("packets", Kind::Count)];
//! let mut table = Writer::new(Vec::new(), COLUMNS)?;
//! table.row(&["eth0".into(), 17_u64.into()])?;
//! table.row(&["eth1".into(), Value::Null])?;
//! let file = table.finish()?;
//! assert!(file.starts_with(b"PAR1") && file.ends_with(b"PAR1"));
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # Deliberately not here
//!
//! Reading, nested columns, dictionaries, statistics.

#![forbid(unsafe_code)]

mod column;
mod thrift;

use column::Buffered;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{self, Write};
use thrift::Struct;

/// What the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `BOOLEAN`.
    Flag,
    /// 64 bits without a sign: `INT64`, `UINT_64`.
    Count,
    /// `DOUBLE`.
    Number,
    /// `BYTE_ARRAY`, `UTF8`.
    Text,
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    name: &'static str,
    kind: Kind,
}

impl Column {
    /// A column of this name.
    pub const fn new(name: &'static str, kind: Kind) -> Column {
        Column { name, kind }
    }

    /// Its name.
    pub const fn name(&self) -> &'static str {
        self.name
    }
}

/// A value of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'v> {
    /// Unknown, of any column.
    Null,
    /// Of a [`Kind::Flag`].
    Flag(bool),
    /// Of a [`Kind::Count`].
    Count(u64),
    /// Of a [`Kind::Number`].
    Number(f64),
    /// Of a [`Kind::Text`].
    Text(&'v str),
}

macro_rules! from {
    ($($kind:ident: $from:ty),*) => {
        $(impl From<$from> for Value<'_> {
            fn from(value: $from) -> Self {
                Value::$kind(value.into())
            }
        })*
    };
}
from!(Flag: bool, Count: u32, Count: u64, Number: f64);

impl<'v> From<&'v str> for Value<'v> {
    fn from(value: &'v str) -> Self {
        Value::Text(value)
    }
}

impl<'v, T: Into<Value<'v>>> From<Option<T>> for Value<'v> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}

/// Bytes of values that a group of rows holds before it is written; with a row's own it is what the writer keeps in memory.
const GROUP: usize = 8 << 20;

const MAGIC: &[u8] = b"PAR1";

// Values of parquet.thrift.
const REPETITION_OPTIONAL: i32 = 1;
const PAGE_DATA: i32 = 0;
const ENCODING_PLAIN: i32 = 0;
const ENCODING_RLE: i32 = 3;
const CODEC_GZIP: i32 = 2;
const CONVERTED_UTF8: i32 = 0;
const CONVERTED_UINT_64: i32 = 14;

impl Kind {
    /// `Type` of parquet.thrift.
    const fn physical(self) -> i32 {
        match self {
            Kind::Flag => 0,
            Kind::Count => 2,
            Kind::Number => 5,
            Kind::Text => 6,
        }
    }

    /// `ConvertedType`, where there is one.
    const fn converted(self) -> Option<i32> {
        match self {
            Kind::Flag | Kind::Number => None,
            Kind::Count => Some(CONVERTED_UINT_64),
            Kind::Text => Some(CONVERTED_UTF8),
        }
    }
}

/// A column of a group as it was written.
struct Chunk {
    /// Of its page, from the start of the file.
    offset: i64,
    /// Bytes of header and page, as they stand there, and before they were compressed.
    compressed: i64,
    uncompressed: i64,
}

struct Group {
    rows: i64,
    chunks: Vec<Chunk>,
}

/// A file that is being written. Nothing of it can be read before [`Writer::finish`].
pub struct Writer<W> {
    out: W,
    /// Bytes that were written.
    offset: i64,
    columns: &'static [Column],
    buffered: Vec<Buffered>,
    /// Rows in `buffered`.
    rows: i64,
    groups: Vec<Group>,
}

impl<W: Write> Writer<W> {
    /// Begins a file. Errors: those of `out`.
    pub fn new(mut out: W, columns: &'static [Column]) -> io::Result<Writer<W>> {
        out.write_all(MAGIC)?;
        let buffered = columns.iter().map(|column| Buffered::new(column.kind)).collect();
        Ok(Writer { out, offset: MAGIC.len() as i64, columns, buffered, rows: 0, groups: Vec::new() })
    }

    /// Adds a row, a value for each column in their order. Errors: [`io::ErrorKind::InvalidInput`] where a value is not of its column's
    /// kind, and those of `out`; the file is of no use afterwards.
    pub fn row(&mut self, row: &[Value<'_>]) -> io::Result<()> {
        let fits = row.len() == self.columns.len()
            && self.buffered.iter_mut().zip(row).all(|(column, value)| column.push(*value));
        if !fits {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a value is not of its column's kind"));
        }
        self.rows += 1;
        if self.buffered.iter().map(Buffered::size).sum::<usize>() < GROUP {
            return Ok(());
        }
        self.write_group()
    }

    /// Rows so far.
    pub fn rows(&self) -> u64 {
        let written: i64 = self.groups.iter().map(|group| group.rows).sum();
        (written + self.rows) as u64
    }

    /// Writes what is left, and the metadata. Errors: those of `out`.
    pub fn finish(mut self) -> io::Result<W> {
        if self.rows > 0 {
            self.write_group()?;
        }
        let mut metadata = Vec::new();
        Struct::write(&mut metadata, |file| self.metadata(file));
        self.out.write_all(&metadata)?;
        self.out.write_all(&length(metadata.len())?.to_le_bytes())?;
        self.out.write_all(MAGIC)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn write_group(&mut self) -> io::Result<()> {
        let rows = std::mem::take(&mut self.rows);
        let mut chunks = Vec::with_capacity(self.columns.len());
        for column in &mut self.buffered {
            let page = column.take_page()?;
            let mut packed = GzEncoder::new(Vec::new(), Compression::default());
            packed.write_all(&page)?;
            let packed = packed.finish()?;
            let mut header = Vec::new();
            let (of_page, of_packed, values) =
                (length(page.len())?, length(packed.len())?, length(rows as usize)?);
            Struct::write(&mut header, |page| {
                page.i32(1, PAGE_DATA);
                page.i32(2, of_page);
                page.i32(3, of_packed);
                page.structure(5, |data| {
                    data.i32(1, values);
                    data.i32(2, ENCODING_PLAIN);
                    data.i32(3, ENCODING_RLE);
                    data.i32(4, ENCODING_RLE);
                });
            });
            self.out.write_all(&header)?;
            self.out.write_all(&packed)?;
            let chunk = Chunk {
                offset: self.offset,
                compressed: (header.len() + packed.len()) as i64,
                uncompressed: (header.len() + page.len()) as i64,
            };
            self.offset += chunk.compressed;
            chunks.push(chunk);
        }
        self.groups.push(Group { rows, chunks });
        Ok(())
    }

    /// `FileMetaData`.
    fn metadata(&self, file: &mut Struct<'_>) {
        file.i32(1, 1);
        let root = std::iter::once(None).chain(self.columns.iter().map(Some));
        file.structs(2, root, |element, column| match column {
            None => {
                element.text(4, "table");
                element.i32(5, self.columns.len() as i32);
            }
            Some(column) => {
                element.i32(1, column.kind.physical());
                element.i32(3, REPETITION_OPTIONAL);
                element.text(4, column.name);
                if let Some(converted) = column.kind.converted() {
                    element.i32(6, converted);
                }
            }
        });
        file.i64(3, self.groups.iter().map(|group| group.rows).sum());
        file.structs(4, self.groups.iter(), |group, written| {
            let chunks = self.columns.iter().zip(&written.chunks);
            group.structs(1, chunks, |chunk, (column, at)| {
                chunk.i64(2, at.offset);
                chunk.structure(3, |metadata| column_metadata(metadata, column, at, written.rows));
            });
            group.i64(2, written.chunks.iter().map(|chunk| chunk.uncompressed).sum());
            group.i64(3, written.rows);
        });
        file.text(6, concat!("rxlane ", env!("CARGO_PKG_VERSION")));
    }
}

/// `ColumnMetaData`.
fn column_metadata(metadata: &mut Struct<'_>, column: &Column, at: &Chunk, rows: i64) {
    metadata.i32(1, column.kind.physical());
    metadata.i32s(2, &[ENCODING_PLAIN, ENCODING_RLE]);
    metadata.texts(3, &[column.name]);
    metadata.i32(4, CODEC_GZIP);
    metadata.i64(5, rows);
    metadata.i64(6, at.uncompressed);
    metadata.i64(7, at.compressed);
    metadata.i64(9, at.offset);
}

/// A length in 31 bits, as the format has them.
fn length(bytes: usize) -> io::Result<i32> {
    i32::try_from(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a text is longer than 2 GiB"))
}
