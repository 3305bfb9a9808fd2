//! Inputs on which an assertion of a fuzz target once failed (`fuzz/regressions/`), with what was wrong.

use capture::Capture;
use nic::{Receiver, Setup, lookup};
use rxlane_explain::{Options, explain};
use std::io::Cursor;

fn json(bytes: &'static [u8], workers: usize) -> String {
    let receiver = Receiver::new(lookup("i210").expect("i210"), &Setup::default()).expect("defaults");
    let mut capture = Capture::from_reader(Cursor::new(bytes), "fuzz").expect("a capture");
    capture.set_chunk_size(64);
    let options = Options { cpus: 4, workers, nic_assumed: false };
    let report = explain([capture], &receiver, &options).expect("report");
    serde_json::to_string(&report).expect("JSON")
}

/// A row of one stack with two classes of as many frames each: its hash type and reason were those of the
/// class that happened to be met last, so two runs over one file could differ.
#[test]
fn a_tie_between_classes_of_a_stack_is_decided_the_same_way_every_time() {
    let bytes = include_bytes!("../../../../../fuzz/regressions/explain/tie-between-classes");
    let first = json(bytes, 1);
    for _ in 0..50 {
        assert_eq!(json(bytes, 2), first);
    }
}

/// Two defects whose rules differ and whose words do not: the count of one took the place of the other's.
#[test]
fn defects_with_the_same_words_are_added_up() {
    let bytes = include_bytes!("../../../../../fuzz/regressions/explain/two-rules-one-reason");
    let report: serde_json::Value = serde_json::from_str(&json(bytes, 1)).expect("JSON");
    let bad = &report["bad"];
    let reasons = bad["reasons"].as_object().expect("reasons");
    let sum: u64 = reasons.values().map(|frames| frames.as_u64().expect("a count")).sum();
    let counted = bad["truncated"].as_u64().expect("a count") + bad["malformed"].as_u64().expect("a count");
    assert_eq!(sum, counted, "{reasons:?}");
    assert_eq!(reasons.len(), bad["first"].as_object().expect("first frames").len());
}
