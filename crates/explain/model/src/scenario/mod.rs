//! Scenario files: a machine, its settings, its costs and its traffic in TOML (`docs/model/scenarios.md`).
//!
//! Names follow the stages. Times of costs are nanoseconds. What a file does not say has the default that is written here;
//! what it says and nobody knows is an error with its line.

mod build;
mod format;
mod landing;

pub use build::{Capture, CaptureFrames};
pub use format::{Application, Arrival, Costs, Driver, HandOver, Interface, Moderation, Scenario, Traffic};

use nic::document::{self, FileError};
use toml::{Table, Value};

/// Keys that are set of which it is tried whether one is to blame: each try reads the scenario anew.
const MOST_TRIED: usize = 32;

impl Scenario {
    /// Reads a scenario. `file` is for messages. Errors: no TOML, an unknown key, a value of the wrong kind.
    pub fn parse(file: &str, text: &str) -> Result<Scenario, FileError> {
        document::read(file, text)
    }

    /// The same with values of keys replaced: `("interface.wan.ring", "4096")`. Errors: as before, or a key leads nowhere.
    pub fn parse_with(file: &str, text: &str, changes: &[(&str, Value)]) -> Result<Scenario, FileError> {
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
                    .map_err(|problem| FileError::of(*key, problem).in_file(file))?;
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
    let tried = keys.iter().take(MOST_TRIED).filter(|_| keys.len() > 1);
    let others: Vec<(&str, Option<String>)> = tried.map(|key| (*key, problem_without(key))).collect();
    let of = |is_blamed: &dyn Fn(&Option<String>) -> bool| -> Vec<&'k str> {
        others.iter().filter(|(_, other)| is_blamed(other)).map(|(key, _)| *key).collect()
    };
    let alone = of(&Option::is_none);
    if alone.is_empty() { of(&|other| other.as_deref() != Some(problem)) } else { alone }
}

/// Sets the value of a key such as `traffic.line.arrival.poisson_pps`. Tables on the way have to be there; the last part
/// may be new, since most keys have defaults. Errors: they are not.
pub fn set(table: &mut Table, key: &str, value: Value) -> Result<(), String> {
    let mut parts: Vec<&str> = key.split('.').collect();
    let last = parts.pop().unwrap_or_default();
    let mut at = table;
    for (depth, part) in parts.iter().enumerate() {
        let name = || parts[..=depth].join(".");
        // Tables with defaults may be left out of a file; those with names of their own may not.
        let optional = depth == 0 && ["costs", "driver", "hand_over", "gro"].contains(part);
        let below = match at.contains_key(*part) || !optional {
            true => at.get_mut(*part).ok_or_else(|| format!("the scenario has no `{}`", name()))?,
            false => at.entry((*part).to_owned()).or_insert_with(|| Value::Table(Table::new())),
        };
        at = below
            .as_table_mut()
            .ok_or_else(|| format!("`{}` is a value and has nothing below it", name()))?;
    }
    at.insert(last.to_owned(), value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_followed_to_their_value() {
        let mut table: Table = "cpus = 2\n[interface.wan]\nring = 256\n".parse().unwrap();
        set(&mut table, "interface.wan.ring", Value::Integer(4096)).unwrap();
        set(&mut table, "interface.wan.queues", Value::Integer(2)).unwrap();
        set(&mut table, "costs.poll", Value::Float(1.5)).unwrap();
        let text = table.to_string();
        assert!(text.contains("ring = 4096") && text.contains("queues = 2") && text.contains("poll = 1.5"));
        let wrong = |table: &mut Table, key: &str| set(table, key, Value::Integer(1)).unwrap_err();
        assert_eq!(wrong(&mut table, "interface.lan.ring"), "the scenario has no `interface.lan`");
        assert_eq!(wrong(&mut table, "cpus.0"), "`cpus` is a value and has nothing below it");
    }
}
