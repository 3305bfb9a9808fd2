//! Things that a machine may lack.

use std::ffi::OsStr;
use std::fmt;
use std::io::Write;
use std::path::PathBuf;

/// Environment variable: names, separated by commas, of what has to be there.
pub const REQUIRE: &str = "RXLANE_REQUIRE";

/// Why something is not there, and how to get it: one sentence without a full stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing(pub String);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a probe for the feature `name` found. `None` after a line on standard error that says what is
/// skipped and why.
///
/// # Panics
///
/// Where it is missing and `RXLANE_REQUIRE` names it.
#[track_caller]
pub fn require<T>(name: &str, probed: Result<T, Missing>) -> Option<T> {
    // Not eprintln!, which the test harness swallows when the test passes.
    decide(name, None, probed, std::env::var(REQUIRE).ok().as_deref(), &mut std::io::stderr())
}

/// As [`require`], for a test that goes on without the feature and leaves only `part` out, as the line then says.
///
/// # Panics
///
/// Where it is missing and `RXLANE_REQUIRE` names it.
#[track_caller]
pub fn require_more<T>(name: &str, part: &str, probed: Result<T, Missing>) -> Option<T> {
    decide(name, Some(part), probed, std::env::var(REQUIRE).ok().as_deref(), &mut std::io::stderr())
}

#[track_caller]
fn decide<T>(
    name: &str,
    part: Option<&str>,
    probed: Result<T, Missing>,
    required: Option<&str>,
    out: &mut impl Write,
) -> Option<T> {
    let missing = match probed {
        Ok(found) => return Some(found),
        Err(missing) => missing,
    };
    let is_required = required.unwrap_or_default().split(',').any(|required| required.trim() == name);
    assert!(!is_required, "{REQUIRE} names {name}, but {missing}");
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let what = match part {
        None => format!("SKIPPED {test}"),
        Some(part) => format!("SKIPPED {test}, in part: {part}"),
    };
    let _ = writeln!(out, "{what}: {missing} ({REQUIRE}={name} makes this an error)");
    None
}

/// Where the program `name` is on `PATH`. Error: it is nowhere there.
pub fn program(name: &str) -> Result<PathBuf, Missing> {
    program_on(name, std::env::var_os("PATH").unwrap_or_default().as_os_str())
}

fn program_on(name: &str, path: &OsStr) -> Result<PathBuf, Missing> {
    std::env::split_paths(path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
        .ok_or_else(|| Missing(format!("{name} is not installed (make deps installs it)")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing() -> Result<(), Missing> {
        Err(Missing("it is not there".to_owned()))
    }

    #[test]
    fn what_is_there_is_handed_on_whether_required_or_not() {
        let mut out = Vec::new();
        assert_eq!(decide("x", None, Ok(7), None, &mut out), Some(7));
        assert_eq!(decide("x", None, Ok(7), Some("x"), &mut out), Some(7));
        assert!(out.is_empty());
    }

    #[test]
    fn what_is_missing_is_skipped_unless_its_very_name_is_required() {
        for required in [None, Some(""), Some("capture,captures2")] {
            let mut out = Vec::new();
            assert_eq!(decide("captures", None, missing(), required, &mut out), None);
            let line = String::from_utf8(out).expect("UTF-8");
            assert!(line.starts_with("SKIPPED ") && line.contains("it is not there"), "{line}");
        }
    }

    #[test]
    fn what_is_left_out_of_a_test_that_runs_differs_from_a_test_that_does_not() {
        let mut out = Vec::new();
        assert_eq!(decide("captures", Some("other captures"), missing(), None, &mut out), None);
        let line = String::from_utf8(out).expect("UTF-8");
        assert!(
            line.starts_with("SKIPPED ") && line.contains(", in part: other captures: it is not there"),
            "{line}"
        );
    }

    #[test]
    #[should_panic(expected = "RXLANE_REQUIRE names captures, but it is not there")]
    fn what_is_missing_and_required_fails_the_test() {
        decide("captures", None, missing(), Some("tshark, captures"), &mut Vec::new());
    }

    #[test]
    fn a_program_is_found_on_the_path_only() {
        let folder = std::env::current_exe().expect("path of the test");
        let (folder, name) = (folder.parent().expect("folder"), folder.file_name().expect("name"));
        let name = name.to_str().expect("UTF-8");
        assert_eq!(program_on(name, folder.as_os_str()), Ok(folder.join(name)));
        assert!(program_on(name, OsStr::new("/nonexistent")).is_err());
    }
}
