//! Scenario files: a machine, its settings, its costs and its traffic in TOML (`docs/model/scenarios.md`).
//!
//! Names follow the stages. Times of costs are nanoseconds. What a file does not say has the default that is written here;
//! what it says and nobody knows is an error with its line.

mod build;
mod format;
mod landing;
mod path;

pub use build::{Capture, CaptureFrames};
pub use format::{Application, Arrival, Costs, Driver, HandOver, Interface, Moderation, Scenario, Traffic};
pub use path::{SetError, set};

use nic::document::{self, FileError};
use toml::Table;

/// Keys that are set of which it is asked whether one is to blame: each question reads the scenario anew.
const MOST_ASKED: usize = 32;

impl Scenario {
    /// Reads a scenario. `file` is for messages. Errors: no TOML, an unknown key, a value of the wrong kind.
    pub fn parse(file: &str, text: &str) -> Result<Scenario, FileError> {
        document::read(file, text)
    }

    /// The same with values of keys replaced: `("interface.wan.ring", "4096")`. Errors: as before, or a key leads nowhere.
    pub fn parse_with(
        file: &str,
        text: &str,
        changes: &[(&str, toml::Value)],
    ) -> Result<Scenario, FileError> {
        // For its errors, which have lines.
        Scenario::parse(file, text)?;
        let table: Table = document::read(file, text)?;
        let mut keys: Vec<&str> = Vec::new();
        for (key, _) in changes {
            if !keys.contains(key) {
                keys.push(key);
            }
        }
        let without = |left_out: Option<&str>| {
            let mut table = table.clone();
            for (key, value) in changes.iter().filter(|(key, _)| Some(*key) != left_out) {
                set(&mut table, key, value.clone())
                    .map_err(|error| FileError::of(*key, error.to_string()).in_file(file))?;
            }
            let read: Result<Scenario, _> = table.try_into();
            read.map_err(|error| {
                FileError::of(keys.join(", "), document::in_words(error.message())).in_file(file)
            })
        };
        without(None).map_err(|error| {
            let problem_without = |key: &str| without(Some(key)).err().map(|error| error.problem);
            let blamed = blamed(&keys, &error.problem, &problem_without);
            if blamed.is_empty() { error } else { FileError { key: blamed.join(", "), ..error } }
        })
    }
}

/// Of keys that are set, those that are to blame for a problem: those without which all is well; where there are none, those without
/// which something else is wrong. None where it is one key, or nobody knows.
fn blamed<'k>(
    keys: &[&'k str],
    problem: &str,
    problem_without: &dyn Fn(&str) -> Option<String>,
) -> Vec<&'k str> {
    let asked = keys.iter().take(MOST_ASKED).filter(|_| keys.len() > 1);
    let others: Vec<(&str, Option<String>)> = asked.map(|key| (*key, problem_without(key))).collect();
    let of = |is_blamed: &dyn Fn(&Option<String>) -> bool| -> Vec<&'k str> {
        others.iter().filter(|(_, other)| is_blamed(other)).map(|(key, _)| *key).collect()
    };
    let alone = of(&Option::is_none);
    if alone.is_empty() { of(&|other| other.as_deref() != Some(problem)) } else { alone }
}
