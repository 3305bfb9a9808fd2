//! The program, run as its users run it: its file, how a run ended, and what it said.

pub mod schema;

use serde_json::Value;
use std::fmt::Debug;
use std::process::Output;

/// Its file.
pub const BINARY: &str = env!("CARGO_BIN_EXE_rxlane");

/// How a run ended, and what it said.
pub trait Ended {
    /// Exit code; -1 for a signal.
    fn code(&self) -> i32;
    /// All that it said, to either stream.
    fn text(&self) -> String;
    /// It ended with this code.
    fn ends(&self, code: i32) -> &Self;
    /// It said this, wherever a line is broken.
    fn says(&self, text: &str) -> &Self;
    /// It did not say this.
    fn omits(&self, text: &str) -> &Self;
    /// In the row `case` of a table it ended with this code and said this.
    fn is(&self, case: &dyn Debug, code: i32, text: &str) -> &Self;
    /// What it wrote to standard output, as JSON, which is as its schema says.
    fn json(&self) -> Value;
}

/// A report in JSON.
pub trait Report {
    /// It has all of these fields with these values; others are not looked at. `case` says of what.
    fn has_of(&self, case: &dyn Debug, expected: Value) -> &Self;
    /// The same where there is one case.
    fn has(&self, expected: Value) -> &Self;
}

impl Report for Value {
    #[track_caller]
    fn has_of(&self, case: &dyn Debug, expected: Value) -> &Value {
        assert!(includes(self, &expected), "{case:?}: {expected:#} is not in {self:#}");
        self
    }

    #[track_caller]
    fn has(&self, expected: Value) -> &Value {
        self.has_of(&"report", expected)
    }
}

/// Objects may have more fields than expected, lists no more items.
fn includes(value: &Value, expected: &Value) -> bool {
    match (value, expected) {
        (Value::Object(value), Value::Object(expected)) => expected
            .iter()
            .all(|(key, expected)| value.get(key).is_some_and(|value| includes(value, expected))),
        (Value::Array(values), Value::Array(expected)) => {
            values.len() == expected.len()
                && values.iter().zip(expected).all(|(value, item)| includes(value, item))
        }
        (value, expected) => value == expected,
    }
}

/// The words of a text whose lines are folded.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn has(said: &str, text: &str) -> bool {
    said.contains(text) || flat(text) == text && flat(said).contains(text)
}

impl Ended for Output {
    fn code(&self) -> i32 {
        self.status.code().unwrap_or(-1)
    }

    fn text(&self) -> String {
        format!("{}{}", String::from_utf8_lossy(&self.stdout), String::from_utf8_lossy(&self.stderr))
    }

    #[track_caller]
    fn ends(&self, code: i32) -> &Output {
        assert_eq!(self.code(), code, "{}", self.text());
        self
    }

    #[track_caller]
    fn says(&self, text: &str) -> &Output {
        assert!(has(&self.text(), text), "`{text}` is missing: {}", self.text());
        self
    }

    #[track_caller]
    fn omits(&self, text: &str) -> &Output {
        assert!(!has(&self.text(), text), "`{text}`: {}", self.text());
        self
    }

    #[track_caller]
    fn is(&self, case: &dyn Debug, code: i32, text: &str) -> &Output {
        assert_eq!(self.code(), code, "{case:?}: {}", self.text());
        assert!(has(&self.text(), text), "{case:?}: `{text}` is missing: {}", self.text());
        self
    }

    #[track_caller]
    fn json(&self) -> Value {
        let document =
            serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.text()));
        let violations = schema::violations(&document);
        assert!(violations.is_empty(), "{}\n{document:#}", violations.join("\n"));
        document
    }
}
