//! A claim: a value, where it is written, and what a reader needs along with it.

#![expect(missing_docs, reason = "profiles/SCHEMA.md says what each is")]

use crate::schema::Key;
use crate::tags::TagPattern;
use serde::Deserialize;
use std::fmt;

/// The value of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// The sources named were read and do not say it.
    Unknown,
    /// `"yes"` or `"no"`.
    Tri(bool),
    Int(u64),
    /// Numbers, written in hexadecimal where they are TPIDs.
    Ints(Vec<u64>),
    Text(String),
    Words(Vec<String>),
    Stacks(Vec<TagPattern>),
}

impl Value {
    /// As a person reads it; `key` says how numbers are written.
    pub fn display(&self, key: Key) -> impl fmt::Display + '_ {
        let tpids = key == crate::schema::TAG_ALLOWANCE;
        DisplayValue { value: self, tpids }
    }
}

struct DisplayValue<'a> {
    value: &'a Value,
    tpids: bool,
}

impl fmt::Display for DisplayValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value {
            Value::Unknown => f.write_str("unknown"),
            Value::Tri(true) => f.write_str("yes"),
            Value::Tri(false) => f.write_str("no"),
            Value::Int(number) => write!(f, "{number}"),
            Value::Ints(numbers) if self.tpids => list(f, numbers.iter().map(|n| format!("0x{n:04x}"))),
            Value::Ints(numbers) => list(f, numbers.iter()),
            Value::Text(text) if text.is_empty() => f.write_str("none"),
            Value::Text(text) => f.write_str(text),
            Value::Words(words) => list(f, words.iter()),
            Value::Stacks(stacks) => list(f, stacks.iter()),
        }
    }
}

fn list<T: fmt::Display>(f: &mut fmt::Formatter<'_>, items: impl Iterator<Item = T>) -> fmt::Result {
    let mut separator = "";
    for item in items {
        write!(f, "{separator}{item}")?;
        separator = ", ";
    }
    if separator.is_empty() { f.write_str("none") } else { Ok(()) }
}

/// Where a claim is written: a source declared in the profile, and the place in it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Citation {
    pub source: String,
    /// Section, table, register, file and function.
    pub place: String,
}

impl TryFrom<String> for Citation {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Citation, &'static str> {
        let (source, place) = text.split_once(':').ok_or("expected \"KEY: place\"")?;
        let (source, place) = (source.trim().to_owned(), place.trim().to_owned());
        if place.is_empty() { Err("expected \"KEY: place\"") } else { Ok(Citation { source, place }) }
    }
}

/// A value with its citations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub value: Value,
    /// Where it is written; never empty.
    pub citations: Vec<Citation>,
    pub note: Option<String>,
}

/// What kind of text a source is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceKind {
    /// The manufacturer's datasheet or errata.
    Datasheet,
    /// Source code of a driver, a kernel or an emulated device.
    Driver,
    /// Manual, kernel documentation, standard.
    Documentation,
    /// Somebody saw it.
    FieldReport,
    /// A test in this repository.
    Measurement,
}

impl SourceKind {
    pub const fn name(self) -> &'static str {
        match self {
            SourceKind::Datasheet => "datasheet",
            SourceKind::Driver => "driver",
            SourceKind::Documentation => "documentation",
            SourceKind::FieldReport => "field-report",
            SourceKind::Measurement => "measurement",
        }
    }
}

/// A declared source.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    pub kind: SourceKind,
    pub title: String,
    pub url: Option<String>,
}
