//! `rxlane bench compare`: two results of a scenario, from files and standard input.

use crate::run::{BINARY, Ended, Report};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

const SCHEMA: &str = "rxlane.bench-scenario/1";

fn run(arguments: &[&str], input: Stdio) -> Output {
    let mut command = Command::new(BINARY);
    command.arg("bench").args(arguments).stdin(input).output().expect("it runs")
}

/// A result with one metric of two cells.
fn result(first: &[f64], second: &[f64]) -> Value {
    let cell = |way: &str, raw: &[f64]| json!({"levels": {"way": way}, "figures": {"forwarded": {"raw": raw}}, "failures": []});
    json!({
        "schema": SCHEMA, "scenario": "steer", "title": "t", "began": "2026-11-23T09:00:00Z",
        "machine": {"kernel": "6.18", "model": "x", "cpus": 2, "rxlane": "0.1.0", "virtualised": true,
                    "load_average": 0.1, "busy_before": 0.0},
        "parameters": {"seconds": "1"}, "rounds": first.len(), "complete": true,
        "factors": [{"name": "way", "levels": [{"name": "off", "text": "no steering"}, {"name": "rps", "text": "RPS"}]}],
        "metrics": [{"name": "forwarded", "title": "Forwarded", "unit": "packets/s", "more_is_better": true}],
        "cells": [cell("off", first), cell("rps", second)],
        "left_out": [], "facts": [{"question": "is it let in", "answer": "yes"}], "verdicts": [], "warnings": [],
    })
}

/// The path of a new file.
fn written(folder: &TempDir, name: &str, text: &str) -> String {
    let path = folder.path().join(name);
    fs::write(&path, text).expect("written");
    path.to_str().expect("UTF-8").to_owned()
}

/// Writes both and compares them.
fn compare(before: &Value, after: &Value, more: &[&str]) -> Output {
    let folder = TempDir::new().expect("a folder");
    let paths = [("before.json", before), ("after.json", after)]
        .map(|(name, value)| written(&folder, name, &value.to_string()));
    run(&[&["compare", "--verbose", &paths[0], &paths[1]], more].concat(), Stdio::null())
}

const STEADY: [f64; 5] = [100e3, 102e3, 98e3, 101e3, 99e3];

#[test]
fn noise_is_distinguished_from_change() {
    let before = result(&STEADY, &STEADY);
    compare(&before, &before, &[]).ends(0).says("Of 2 figures 0 changed outside the noise, 2 did not.");
    let slower = STEADY.map(|figure| figure / 2.0);
    let text = compare(&before, &result(&STEADY, &slower), &[]).ends(1).text();
    let (_, list) = text.split_once("Changed outside the noise\n").expect("a list of changes");
    assert!(list.lines().next().is_some_and(|line| line.ends_with(": LESS, worse (0.50 times)")), "{text}");
    assert!(text.contains("Of 2 figures 1 changed outside the noise"), "{text}");
    let json = compare(&before, &result(&STEADY, &slower), &["--json"]).json();
    json.has(json!({"schema": "rxlane.bench-compare/1"}));
    json["rows"][1].has(json!({"outcome": "less", "better": false, "ratio": 0.5}));
    compare(&result(&STEADY[..2], &STEADY[..2]), &result(&slower[..2], &slower[..2]), &[])
        .ends(2)
        .says("unknown, too few rounds")
        .says("Unknown whether anything changed. Of 2 figures")
        .says("that takes four rounds and");
    // Of what was nothing now and then there is no ratio that means something.
    compare(&result(&[0.0, 3.0, 0.0, 2.0, 0.001], &STEADY), &before, &[]).says("  –  ");
    // Other answers are a change, other machines a warning.
    let mut other = before.clone();
    other["facts"][0]["answer"] = "no".into();
    other["machine"]["kernel"] = "6.1".into();
    compare(&before, &other, &[]).ends(1).says("is it let in: no, was yes").says("the kernel differs");
    // Whether more is better may be unknown by now.
    let mut after = result(&STEADY, &slower);
    after["metrics"][0]["more_is_better"] = Value::Null;
    let changed = compare(&before, &after, &["--json"]).ends(1).json();
    changed["rows"][1].has(json!({"outcome": "less", "better": null}));
    after["metrics"][0]["more_is_better"] = false.into();
    compare(&before, &after, &[]).ends(2);
    // A metric or an answer that vanished is reported.
    let mut after = before.clone();
    after["metrics"][0]["name"] = "other".into();
    for cell in 0..2 {
        let figures = after["cells"][cell]["figures"]["forwarded"].take();
        after["cells"][cell]["figures"] = json!({"other": figures});
    }
    after["facts"] = json!([]);
    let both = compare(&before, &after, &[]);
    both.ends(2)
        .says("only before")
        .says("only after")
        .says("4 figures stand in one of the two alone")
        .says("is it let in");
    let json = compare(&before, &after, &["--json"]).json();
    assert_eq!((&json["conclusion"], &json["rows"][0]["outcome"]), (&"unknown".into(), &"only-after".into()));
}

#[test]
fn verdicts_are_compared_by_word_and_ratio() {
    let with_verdict = |by: [f64; 5]| {
        let mut figures = STEADY;
        figures.iter_mut().zip(by).for_each(|(figure, by)| *figure *= by);
        let mut result = result(&STEADY, &figures);
        // What the file says of it does not count: it is judged anew.
        result["verdicts"] = json!([{"metric": "forwarded", "cell": {"way": "rps"}, "baseline": {"way": "off"}, "ratio": null,
                                     "outcome": "unknown", "text": "anything"}]);
        result
    };
    let near = with_verdict([0.75, 0.7, 0.76, 0.85, 0.72]);
    compare(&near, &near, &[]).says("Of 1 verdict 1 has the same word.");
    compare(&near, &with_verdict([0.8, 0.74, 0.9, 0.79, 0.85]), &[])
        .ends(0)
        .says("Forwarded: RPS compared with no steering was less, 0.75 [0.70–0.85], is a tie, 0.80 [0.74–0.90]: within the noise")
        .says("Of 1 verdict 0 have the same word; 1 has another one, within the noise.");
    let more = with_verdict([1.5, 1.4, 1.6, 1.7, 1.5]);
    compare(&near, &more, &["--json"]).ends(1).json()["verdicts"][0]
        .has(json!({"change": "outside-noise", "before": {"outcome": "less"}, "after": {"outcome": "more"}}));
    compare(&near, &more, &[]).says("Ratios of 1 verdict changed outside the noise.");
    // Something compared with nothing is more than any multiple, and not unknown.
    let mut nothing = with_verdict([1.0; 5]);
    nothing["cells"][0]["figures"]["forwarded"]["raw"] = json!([0, 0, 0, 0, 0]);
    compare(&near, &nothing, &[]).says("is more, where the other has none in 5 rounds: CHANGED");
    // One that stands in one file alone is reported, and one that stands there twice refused.
    compare(&near, &result(&STEADY, &STEADY), &[])
        .says("is not there: only before")
        .says("Of 0 verdicts 0 have the same word. 1 stands in one of the two alone.");
    let mut twice = near.clone();
    twice["verdicts"] = json!([near["verdicts"][0], near["verdicts"][0]]);
    compare(&near, &twice, &[]).ends(2).says("stands there twice");
}

/// What is no sound result is tested in crate `bench`; here, that it is looked at, and the lists that may be as long as they like.
#[test]
fn what_cannot_be_compared_is_named_with_its_file() {
    let good = result(&STEADY, &STEADY);
    let with = |pointer: &str, value: Value| {
        let mut result = good.clone();
        *result.pointer_mut(pointer).expect("there is such a place") = value;
        result
    };
    let many = |count: usize, of: &dyn Fn(usize) -> Value| Value::Array((0..count).map(of).collect());
    let metric =
        |number: usize| json!({"name": number.to_string(), "title": "", "unit": "", "more_is_better": null});
    let level = |number: usize| json!({"name": number.to_string(), "text": ""});
    let cell = |number: usize| json!({"levels": {"way": number.to_string()}, "figures": {}, "failures": []});
    for (other, expected) in [
        (with("/scenario", "vlan".into()), "only like can be compared"),
        (with("/schema", "rxlane.bench/1".into()), "is of schema rxlane.bench/1"),
        (with("/schema", 7.into()), "names no schema"),
        (with("/cells", 7.into()), "is no whole rxlane.bench-scenario/1"),
        (Value::Null, "names no schema"),
        (json!([SCHEMA]), "is no whole rxlane.bench-scenario/1"),
        (with("/cells/1/levels/way", "off".into()), "the cell way=off stands there twice"),
        (with("/cells/0/figures/forwarded/raw/1", (-1.0).into()), "forwarded of round 2 is -1e0"),
        (with("/metrics/0/unit", "bit/s".into()), "the metric forwarded is another one in each"),
        (with("/metrics", many(100_000, &metric)), "is longer than 4 MiB"),
        (with("/metrics", many(300, &metric)), "more than 256 metrics"),
        (with("/factors/0/levels", many(300, &level)), "more than 256 levels of a factor"),
        (with("/cells", many(3000, &cell)), "more than 2048 cells"),
        (with("/warnings", many(100, &|_| "".into())), "more than 64 sentences"),
        (
            with("/cells/0/figures/forwarded/raw", many(1001, &|_| 1.into())),
            "more than 1000 rounds of a figure",
        ),
    ] {
        compare(&good, &other, &[]).is(&expected, 2, expected).says("after.json");
    }
    compare(&good, &good, &["--tie", "0.5"]).ends(2);
    let missing = run(&["compare", "/nonexistent/a.json", "/nonexistent/b.json"], Stdio::null());
    missing.ends(2).says("cannot read /nonexistent/a.json");
    let folder = TempDir::new().expect("a folder");
    let write = |name: &str, text: String| written(&folder, name, &text);
    let nan = write("nan.json", good.to_string().replace("100000.0", "NaN"));
    run(&["compare", &nan, &nan], Stdio::null()).ends(2).says("nan.json is no JSON");
    // Standard input is one of the two.
    let name = write("result.json", good.to_string());
    let input = || Stdio::from(File::open(&name).expect("a file"));
    for arguments in [["compare", &name, "-"], ["compare", "-", &name]] {
        run(&arguments, input()).ends(0).says("standard input, 2026-11-23");
    }
    run(&["compare", "-", "-"], input()).ends(2).says("standard input is one result");
    run(&["compare", &name, "-"], Stdio::null()).ends(2).says("standard input is no JSON");
    // Who reads no further learns what changed from the exit code.
    let changed = write("after.json", result(&STEADY, &[1.0; 5]).to_string());
    for form in [&[][..], &["--json"]] {
        let (_, writer) = std::io::pipe().expect("a pipe");
        let mut command = Command::new(BINARY);
        command.args(["bench", "compare", &name, &changed]).args(form).stdout(writer);
        assert_eq!(command.status().expect("it runs").code(), Some(1), "{form:?}");
    }
}

/// Where it is taken into memory before anybody asks what it is, this is an abort.
#[test]
fn what_is_not_of_the_schema_takes_no_memory() {
    let folder = TempDir::new().expect("a folder");
    let good = result(&STEADY, &STEADY).to_string();
    let inside = |before: &str, entry: &str, after: &str| {
        let room = (4 << 20) - before.len() - after.len() - entry.len();
        let entries = format!("{entry},").repeat(room / (entry.len() + 1));
        format!("{before}{entries}{entry}{after}")
    };
    let split = |at: &str| {
        let (before, after) = good.split_once(at).expect("it is there");
        (format!("{before}{at}\"x\": ["), format!("], {after}"))
    };
    let (outside, outside_end) = split("{");
    let (figures, figures_end) = split("\"forwarded\":{");
    let (machine, machine_end) = split("\"machine\":{");
    for (text, code) in [
        (inside("{\"schema\": \"rxlane.bench-scenario/1\", \"a\": [", "{\"a\":{}}", "]}"), 2),
        (inside(&outside, "[[]]", &outside_end), 0),
        (inside(&figures, "[[]]", &figures_end), 0),
        (inside(&machine, "[[]]", &machine_end), 0),
    ] {
        let path = written(&folder, "much.json", &text);
        let mut limited = Command::new("sh");
        let limited = limited.args(["-c", "ulimit -v 200000; exec \"$0\" bench compare \"$1\" \"$1\""]);
        limited.args([BINARY, &path]).output().expect("it runs").ends(code);
    }
}

#[test]
fn rows_are_no_wider_than_there_is_room() {
    let mut result = result(&STEADY, &STEADY);
    result["factors"][0]["levels"][1]["text"] =
        "receive packet steering over all of the other CPUs, by a hash of addresses".into();
    let folder = TempDir::new().expect("a folder");
    written(&folder, "a.json", &result.to_string());
    let lines = |columns: usize| -> Vec<String> {
        let mut command = Command::new(BINARY);
        let command =
            command.args(["bench", "compare", "--verbose", "a.json", "a.json"]).current_dir(folder.path());
        let output = command.env("COLUMNS", columns.to_string()).output().expect("it runs");
        output.ends(0);
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
    };
    for columns in [40, 60, 80, 100] {
        let lines = lines(columns);
        assert!(lines.iter().all(|line| line.chars().count() <= columns), "{columns}: {lines:#?}");
        assert_eq!(lines.iter().filter(|line| line.contains("no steering")).count(), 1, "{lines:#?}");
    }
    // The cell above its figures, all of them in one line.
    let lines = lines(80);
    let name = lines.iter().position(|line| line == "  no steering").expect("a line of its own");
    assert!(
        lines[name + 1].starts_with("  ") && lines[name + 1].contains("1.00  within the noise"),
        "{lines:#?}"
    );
}
