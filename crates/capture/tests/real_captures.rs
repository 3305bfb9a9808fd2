//! Real captures in the directory that `RXLANE_CAPTURES` names: the number of frames must equal that of an
//! independent dissector, given in `NAME.expected.json` beside each.

use std::fs;
use std::path::{Path, PathBuf};

use rxlane_capture::{Batch, Capture};

fn captures_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("RXLANE_CAPTURES names a readable directory") {
        let path = entry.expect("directory entry").path();
        if path.is_dir() {
            captures_below(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "pcap" || extension == "pcapng") {
            found.push(path);
        }
    }
}

fn expected_frames(capture: &Path) -> u64 {
    let path = format!("{}.expected.json", capture.display());
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let summary: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    summary["frames"].as_u64().expect("frames")
}

#[test]
fn frames_as_an_independent_dissector_counts() {
    let Some(folder) = std::env::var_os("RXLANE_CAPTURES") else {
        eprintln!("SKIPPED: RXLANE_CAPTURES is not set");
        return;
    };
    let mut paths = Vec::new();
    captures_below(Path::new(&folder), &mut paths);
    assert!(!paths.is_empty(), "no captures below {}", folder.display());
    for path in &paths {
        let expected = expected_frames(path);
        let mut capture = Capture::open(path).unwrap_or_else(|error| panic!("{error}"));
        let mut batch = Batch::new();
        let mut frames = 0;
        while capture.next_batch(&mut batch) {
            frames += batch.frames().len() as u64;
        }
        let report = capture.report();
        for problem in &report.problems {
            eprintln!("{problem}");
        }
        assert_eq!((frames, report.frames), (expected, expected), "{}", path.display());
    }
    eprintln!("{} captures", paths.len());
}
