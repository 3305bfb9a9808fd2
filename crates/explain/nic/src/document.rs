//! TOML files that people write: reading one, and what is wrong with it, in the words of whoever wrote it: keys and kinds
//! of values, no types of Rust.

use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use toml::{Table, Value};

/// The longest file that is read; the longest that comes with the program has a hundredth of this.
const LONGEST: u64 = 1 << 20;

/// What is wrong with a file, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {}{problem}", place(*.line, .key))]
pub struct FileError {
    /// The file.
    pub file: String,
    /// The line, where one is to blame.
    pub line: Option<usize>,
    /// The key with its tables, `parse.pppoe`; empty where the file as a whole is meant.
    pub key: String,
    /// What was expected and what was found.
    pub problem: String,
}

fn place(line: Option<usize>, key: &str) -> String {
    let line = line.map(|line| format!("line {line}: ")).unwrap_or_default();
    if key.is_empty() { line } else { format!("{line}{key}: ") }
}

impl FileError {
    /// A problem with a key.
    pub fn of(key: impl Into<String>, problem: impl Into<String>) -> FileError {
        FileError { file: String::new(), line: None, key: key.into(), problem: problem.into() }
    }

    /// The same with the file's name.
    #[must_use]
    pub fn in_file(mut self, file: &str) -> FileError {
        file.clone_into(&mut self.file);
        self
    }
}

/// The text of a file. Errors: it cannot be read, or is longer than a file of this kind can be.
pub(crate) fn text_of(path: &Path) -> Result<String, FileError> {
    let fail = |problem: String| FileError::of("", problem).in_file(&path.display().to_string());
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(LONGEST + 1).read_to_string(&mut text));
    match read {
        Ok(length) if length as u64 > LONGEST => {
            Err(fail(format!("is longer than {LONGEST} bytes, and no such file")))
        }
        Ok(_) => Ok(text),
        Err(error) => Err(fail(format!("cannot be read: {error}"))),
    }
}

/// Reads a text as TOML; `file` is for messages. Errors: it is none, or does not say what `T` has to hold.
pub fn read<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, FileError> {
    toml::from_str(text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start));
        let line = before.map(|before| before.matches('\n').count() + 1);
        // Without the text the library names the key.
        let again = text.parse::<Table>().ok().and_then(|table| table.try_into::<T>().err());
        let key = again.map(|error| key_of(&error)).unwrap_or_default();
        FileError { file: file.to_owned(), line, key, problem: in_words(error.message()) }
    })
}

/// Reads a value at a key.
pub(crate) fn read_value<T: DeserializeOwned>(at: &str, value: Value) -> Result<T, FileError> {
    value.try_into().map_err(|error| FileError::of(join(at, &key_of(&error)), in_words(error.message())))
}

/// The key with its tables that an error of a value without text names; empty where it names none.
fn key_of(error: &toml::de::Error) -> String {
    let text = error.to_string();
    let place = text.trim_end().rsplit('\n').next().and_then(|line| line.strip_prefix("in `"));
    place.and_then(|place| place.strip_suffix('`')).unwrap_or_default().to_owned()
}

/// A key below a table.
pub(crate) fn join(within: &str, key: &str) -> String {
    match (within, key) {
        ("", key) => key.to_owned(),
        (within, "") => within.to_owned(),
        (within, key) => format!("{within}.{key}"),
    }
}

/// A message of the TOML library as a person would say it: `invalid type: string "four", expected u32` as `expected a whole number from 0 on, found "four"`.
pub fn in_words(message: &str) -> String {
    let message = message.trim().replace('\n', " ");
    if let Some(rest) = message.strip_prefix("unknown field ") {
        // What serde says of a variant without any.
        let rest = rest.replace("there are no fields", "which this `kind` does not have, nor any other");
        return format!("unknown key {rest}");
    }
    if let Some(rest) = message.strip_prefix("unknown variant ") {
        return format!("unknown word {rest}");
    }
    if let Some(key) = message.strip_prefix("missing field ") {
        return format!("the key {key} is missing");
    }
    let invalid = ["invalid type: ", "invalid value: "].iter().find_map(|lead| message.strip_prefix(lead));
    match invalid.and_then(|rest| rest.rsplit_once(", expected ")) {
        Some((found, expected)) => format!("expected {}, found {}", kind(expected), value(found)),
        None => message,
    }
}

/// What serde calls the kinds of values that scenarios have.
fn kind(expected: &str) -> &str {
    match expected {
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" => "a whole number from 0 on",
        "f64" => "a number",
        "a string" | "string" => "text in quotes",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "a table",
        _ if expected.starts_with("struct ") || expected.contains("tagged enum") => "a table",
        other => other,
    }
}

/// `string "four"`, `` integer `-5` ``, `map`.
fn value(found: &str) -> String {
    match found.split_once(' ') {
        Some(("string", text)) => text.to_owned(),
        Some(("integer" | "boolean", value)) => value.trim_matches('`').to_owned(),
        Some(("floating", value)) => value.trim_start_matches("point ").trim_matches('`').to_owned(),
        _ => match found {
            "map" => "a table".to_owned(),
            "sequence" => "a list".to_owned(),
            other => other.to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_become_kinds_of_values() {
        for (message, words) in [
            (
                "invalid type: string \"four\", expected u32",
                "expected a whole number from 0 to 4294967295, found \"four\"",
            ),
            ("invalid value: integer `-5`, expected u64", "expected a whole number from 0 on, found -5"),
            (
                "invalid type: floating point `1.5`, expected u16",
                "expected a whole number from 0 to 65535, found 1.5",
            ),
            ("invalid type: map, expected f64", "expected a number, found a table"),
            ("invalid type: integer `3`, expected struct HandOver", "expected a table, found 3"),
            (
                "unknown field `us`, there are no fields",
                "unknown key `us`, which this `kind` does not have, nor any other",
            ),
            ("missing field `pps`", "the key `pps` is missing"),
            ("unknown variant `x`, expected `a` or `b`", "unknown word `x`, expected `a` or `b`"),
            ("duplicate key", "duplicate key"),
        ] {
            assert_eq!(in_words(message), words);
        }
    }
}
