//! The program, run as its users run it: its file, how a run ended, and what it said.

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
    /// What it wrote to standard output, as JSON.
    fn json(&self) -> Value;
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
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }
}
