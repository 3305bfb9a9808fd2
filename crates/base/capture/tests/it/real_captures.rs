//! Real captures, the project's own and those below the folder that `RXLANE_CAPTURES` names: the number of frames must
//! equal that of an independent dissector, given in `NAME.expected.json` next to each.

use std::fs;
use std::path::Path;

use rxlane_capture::{Batch, Capture};
use testkit::captures;

fn expected_frames(summary: &Path) -> u64 {
    let text = fs::read_to_string(summary).unwrap_or_else(|error| panic!("{}: {error}", summary.display()));
    let summary: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    summary["frames"].as_u64().expect("frames")
}

#[test]
fn frames_as_an_independent_dissector_counts() {
    let samples = captures::corpus();
    for sample in &samples {
        let path = &sample.capture;
        let summary = sample.expected.as_ref().unwrap_or_else(|| panic!("{}: no summary", path.display()));
        let expected = expected_frames(summary);
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
    eprintln!("{} captures", samples.len());
}
