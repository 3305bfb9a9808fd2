//! Scenario files: a machine, its settings, its costs and its traffic in TOML (`docs/model/scenarios.md`).
//!
//! Names follow the stages. Times of costs are nanoseconds. What a file does not say has the default that is written here;
//! what it says and nobody knows is an error with its line.

mod build;
mod format;
mod landing;
mod path;
mod words;

pub use build::{Capture, CaptureFrames};
pub use format::{Application, Arrival, Costs, Driver, HandOver, Interface, Moderation, Scenario, Traffic};
pub use path::{SetError, set};

use toml::Table;

/// Why a scenario cannot be simulated: where it is written, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", place(.file, *.line, .key))]
pub struct ScenarioError {
    /// The file.
    pub file: String,
    /// The line, where one is to blame.
    pub line: Option<usize>,
    /// The key, where it is known: `interface.wan.ring`.
    pub key: String,
    /// What was expected and what was found.
    pub problem: String,
}

fn place(file: &str, line: Option<usize>, key: &str) -> String {
    let mut text = format!("{file}: ");
    if let Some(line) = line {
        text.push_str(&format!("line {line}: "));
    }
    if !key.is_empty() {
        text.push_str(&format!("{key}: "));
    }
    text
}

impl ScenarioError {
    /// A problem with a key.
    pub fn of(key: impl Into<String>, problem: impl Into<String>) -> ScenarioError {
        ScenarioError { file: String::new(), line: None, key: key.into(), problem: problem.into() }
    }

    /// The same with the file's name.
    #[must_use]
    pub fn in_file(mut self, file: &str) -> ScenarioError {
        file.clone_into(&mut self.file);
        self
    }

    /// What the TOML library says, with the line.
    pub(super) fn of_toml(file: &str, text: &str, error: &toml::de::Error) -> ScenarioError {
        let before = error.span().and_then(|span| text.get(..span.start));
        let line = before.map(|before| before.matches('\n').count() + 1);
        let problem = words::in_words(error.message());
        // What is unknown or missing is a key itself.
        let is_of_value = problem.starts_with("expected ") || problem.starts_with("unknown word ");
        let key = before.filter(|_| is_of_value).map(words::key).unwrap_or_default();
        ScenarioError { file: file.to_owned(), line, key, problem }
    }
}

impl Scenario {
    /// Reads a scenario. `file` is for messages. Errors: no TOML, an unknown key, a value of the wrong kind.
    pub fn parse(file: &str, text: &str) -> Result<Scenario, ScenarioError> {
        toml::from_str(text).map_err(|error| ScenarioError::of_toml(file, text, &error))
    }

    /// The same with values of keys replaced: `("interface.wan.ring", "4096")`. Errors: as before, or a key leads nowhere.
    pub fn parse_with(
        file: &str,
        text: &str,
        changes: &[(&str, toml::Value)],
    ) -> Result<Scenario, ScenarioError> {
        // For its errors, which have lines.
        Scenario::parse(file, text)?;
        let table: Table = text.parse().map_err(|error| ScenarioError::of_toml(file, text, &error))?;
        let with = |left_out: Option<usize>| {
            let mut table = table.clone();
            for (number, (key, value)) in changes.iter().enumerate() {
                if left_out != Some(number) {
                    set(&mut table, key, value.clone())
                        .map_err(|error| ScenarioError::of(*key, error.to_string()).in_file(file))?;
                }
            }
            let read: Result<Scenario, _> = table.try_into();
            let keys = || changes.iter().map(|(key, _)| *key).collect::<Vec<_>>().join(", ");
            read.map_err(|error| ScenarioError::of(keys(), words::in_words(error.message())).in_file(file))
        };
        with(None).map_err(|error| {
            // To blame is the one without which all is well; where that is none or several, all of them.
            let mut blamed = (0..changes.len()).filter(|number| with(Some(*number)).is_ok());
            match (blamed.next().and_then(|number| changes.get(number)), blamed.next()) {
                (Some((key, _)), None) => ScenarioError { key: (*key).to_owned(), ..error },
                _ => error,
            }
        })
    }
}
