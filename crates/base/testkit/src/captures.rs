//! The corpus of captures that tests run over: the project's own, which are always there, and those of a folder that
//! the environment variable `RXLANE_CAPTURES` names, an independent dissector's summary next to each.
//!
//! Below a folder, at any depth, `NAME` (ending in `.pcap`, `.pcapng` or `.cap`, plain or with `.gz` or `.zst`
//! behind) is a capture and `NAME.expected.json` its summary.

use crate::{Missing, require_more};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Environment variable: the folder of further captures.
pub const CAPTURES: &str = "RXLANE_CAPTURES";

/// A capture with its summary.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sample {
    /// The capture.
    pub capture: PathBuf,
    /// `NAME.expected.json`, where there is one.
    pub expected: Option<PathBuf>,
}

/// The folder of the project's own captures (`captures/README.md` says what they hold).
pub fn own() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../captures")
}

/// The folder that `RXLANE_CAPTURES` names. Error: the variable is not set. (One that names no folder is no reason to skip a
/// test: [`below`] fails.)
pub fn folder() -> Result<PathBuf, Missing> {
    std::env::var_os(CAPTURES)
        .filter(|folder| !folder.is_empty())
        .map(PathBuf::from)
        .ok_or_else(|| Missing(format!("{CAPTURES} names no folder of them")))
}

/// The project's own captures and those below the folder that `RXLANE_CAPTURES` names. Where it names none, a line on
/// standard error says that only those others are left out.
///
/// # Panics
///
/// There are no own captures, a folder cannot be read, or `RXLANE_CAPTURES` is not set while `RXLANE_REQUIRE` names
/// `captures`.
#[track_caller]
pub fn corpus() -> Vec<Sample> {
    let read = |folder: &Path| below(folder).unwrap_or_else(|error| panic!("{error}"));
    let mut samples = read(&own());
    assert!(!samples.is_empty(), "no captures below {}", own().display());
    let which = format!("captures in addition to the project's own {}, which are run over", samples.len());
    if let Some(folder) = require_more("captures", &which, folder()) {
        samples.extend(read(&folder));
    }
    samples
}

/// All captures below `folder`, sorted by path. Error: a folder cannot be read; the message names it.
pub fn below(folder: &Path) -> io::Result<Vec<Sample>> {
    let mut samples = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", folder.display()));
        for entry in fs::read_dir(&folder).map_err(named)? {
            let path = entry.map_err(named)?.path();
            if path.is_dir() {
                folders.push(path);
            } else if is_capture(&path) {
                let mut expected = OsString::from(&path);
                expected.push(".expected.json");
                let expected = Some(PathBuf::from(expected)).filter(|expected| expected.is_file());
                samples.push(Sample { capture: path, expected });
            }
        }
    }
    samples.sort();
    Ok(samples)
}

fn is_capture(path: &Path) -> bool {
    let name = path.to_string_lossy();
    let plain = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(&name);
    [".pcap", ".pcapng", ".cap"].into_iter().any(|suffix| plain.ends_with(suffix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captures_are_found_at_any_depth_with_their_summaries() {
        let root = std::env::temp_dir().join(format!("rxlane-testkit-{}", std::process::id()));
        let deep = root.join("a/b");
        fs::create_dir_all(&deep).expect("folder");
        for name in ["one.pcap", "one.pcap.expected.json", "a/two.pcapng.zst", "a/b/three.cap", "a/notes.txt"]
        {
            fs::write(root.join(name), b"").expect("file");
        }
        let found = below(&root).expect("readable");
        let names: Vec<(String, bool)> = found
            .iter()
            .map(|sample| {
                let name = sample.capture.strip_prefix(&root).expect("below the root");
                (name.display().to_string(), sample.expected.is_some())
            })
            .collect();
        fs::remove_dir_all(&root).expect("removed");
        assert_eq!(
            names,
            [
                ("a/b/three.cap".to_owned(), false),
                ("a/two.pcapng.zst".to_owned(), false),
                ("one.pcap".to_owned(), true)
            ]
        );
    }

    #[test]
    fn own_captures_are_always_there_with_their_summaries() {
        let corpus = corpus();
        let own: Vec<&Sample> = corpus.iter().filter(|sample| sample.capture.starts_with(own())).collect();
        assert!(own.len() > 10, "{own:?}");
        assert!(own.iter().all(|sample| sample.expected.is_some()), "{own:?}");
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let error = below(Path::new("/nonexistent/captures")).expect_err("no such folder");
        assert!(error.to_string().contains("/nonexistent/captures"), "{error}");
    }
}
