//! `rxlane bench compare`: two results of a scenario, from files and standard input.

use serde_json::{Value, json};
use std::fs::{self, File};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

const SCHEMA: &str = "rxlane.bench-scenario/1";

fn run(arguments: &[&str], input: Stdio) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxlane"));
    command.arg("bench").args(arguments).stdin(input).output().expect("it runs")
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
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

/// Writes both and compares them.
fn compare(before: &Value, after: &Value, more: &[&str]) -> Output {
    let folder = TempDir::new().expect("a folder");
    let paths = [("before.json", before), ("after.json", after)].map(|(name, value)| {
        let path = folder.path().join(name);
        fs::write(&path, value.to_string()).expect("written");
        path.to_str().expect("UTF-8").to_owned()
    });
    run(&[&["compare", "--verbose", &paths[0], &paths[1]], more].concat(), Stdio::null())
}

const STEADY: [f64; 5] = [100e3, 102e3, 98e3, 101e3, 99e3];

#[test]
fn compare_tells_noise_from_change() {
    let before = result(&STEADY, &STEADY);
    let same = compare(&before, &before, &[]);
    assert_eq!(same.status.code(), Some(0), "{}", said(&same));
    assert!(said(&same).contains("Of 2 figures 0 changed outside the noise, 2 did not."), "{}", said(&same));
    let slower = STEADY.map(|figure| figure / 2.0);
    let changed = compare(&before, &result(&STEADY, &slower), &[]);
    assert_eq!(changed.status.code(), Some(1), "{}", said(&changed));
    let text = said(&changed);
    let last = text
        .split("Changed outside the noise\n")
        .nth(1)
        .unwrap_or_else(|| panic!("no list of changes: {text}"));
    assert!(last.lines().next().is_some_and(|line| line.ends_with(": LESS, worse (0.50 times)")), "{text}");
    assert!(
        text.contains("LESS, worse") && text.contains("Of 2 figures 1 changed outside the noise"),
        "{text}"
    );
    let json = compare(&before, &result(&STEADY, &slower), &["--json"]);
    let json: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(json["schema"], "rxlane.bench-compare/1");
    let row = &json["rows"][1];
    assert_eq!(
        (&row["outcome"], &row["better"], &row["ratio"]),
        (&"less".into(), &false.into(), &0.5.into())
    );
    let few = compare(&result(&STEADY[..2], &STEADY[..2]), &result(&slower[..2], &slower[..2]), &[]);
    assert_eq!(few.status.code(), Some(2), "{}", said(&few));
    for expected in [
        "unknown, too few rounds",
        "Unknown whether anything changed. Of 2 figures",
        "that takes four rounds and",
    ] {
        assert!(said(&few).contains(expected), "{expected}: {}", said(&few));
    }
    // Of what was nothing now and then there is no ratio that means something.
    let now_and_then = compare(&result(&[0.0, 3.0, 0.0, 2.0, 0.001], &STEADY), &before, &[]);
    assert!(said(&now_and_then).contains("  –  "), "{}", said(&now_and_then));
    // Other answers are a change, other machines a warning.
    let mut other = before.clone();
    other["facts"][0]["answer"] = "no".into();
    other["machine"]["kernel"] = "6.1".into();
    let other = compare(&before, &other, &[]);
    assert_eq!(other.status.code(), Some(1), "{}", said(&other));
    assert!(
        said(&other).contains("is it let in: no, was yes") && said(&other).contains("the kernel differs")
    );
}

#[test]
fn a_verdict_near_a_border_changes_its_word_within_the_noise() {
    let with_verdict = |second: &[f64]| {
        let mut result = result(&STEADY, second);
        let cell = |level: &str| json!({"way": level});
        // What the file says of it does not count: it is judged anew.
        result["verdicts"] = json!([{"metric": "forwarded", "cell": cell("rps"), "baseline": cell("off"), "ratio": null,
                                     "outcome": "unknown", "text": "anything"}]);
        result
    };
    let times = |by: [f64; 5]| {
        let mut figures = STEADY;
        figures.iter_mut().zip(by).for_each(|(figure, by)| *figure *= by);
        with_verdict(&figures)
    };
    let near = times([0.75, 0.7, 0.76, 0.85, 0.72]);
    let same = compare(&near, &near, &[]);
    assert!(said(&same).contains("Of 1 verdict 1 has the same word."), "{}", said(&same));
    let tie = compare(&near, &times([0.8, 0.74, 0.9, 0.79, 0.85]), &[]);
    assert_eq!(tie.status.code(), Some(0), "{}", said(&tie));
    let said_of_tie = said(&tie).split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in [
        "Forwarded: RPS compared with no steering was less, 0.75 [0.70–0.85], is a tie, 0.80 [0.74–0.90]: within the noise",
        "Of 1 verdict 0 have the same word; 1 has another one, within the noise.",
    ] {
        assert!(said_of_tie.contains(expected), "{expected}: {said_of_tie}");
    }
    let changed = compare(&near, &times([1.5, 1.4, 1.6, 1.7, 1.5]), &["--json"]);
    assert_eq!(changed.status.code(), Some(1), "{}", said(&changed));
    let changed: Value = serde_json::from_slice(&changed.stdout).expect("JSON");
    let verdict = &changed["verdicts"][0];
    assert_eq!(
        [&verdict["change"], &verdict["before"]["outcome"], &verdict["after"]["outcome"]],
        ["outside-noise", "less", "more"]
    );
    let changed = compare(&near, &times([1.5, 1.4, 1.6, 1.7, 1.5]), &[]);
    assert!(said(&changed).contains("Ratios of 1 verdict changed outside the noise."), "{}", said(&changed));
    // Something beside nothing is more than any multiple, and not unknown.
    let mut nothing = with_verdict(&STEADY);
    nothing["cells"][0]["figures"]["forwarded"]["raw"] = json!([0, 0, 0, 0, 0]);
    let more = compare(&near, &nothing, &[]);
    let said_of_more = said(&more).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said_of_more.contains("is more, where the other has none in 5 rounds: CHANGED"),
        "{said_of_more}"
    );
    // One that stands in one file alone is told, and one that stands there twice refused.
    let alone = compare(&near, &result(&STEADY, &STEADY), &[]);
    for expected in
        ["is not there: only before", "Of 0 verdicts 0 have the same word. 1 stands in one of the two alone."]
    {
        assert!(said(&alone).contains(expected), "{}", said(&alone));
    }
    let mut twice = near.clone();
    twice["verdicts"] = Value::Array(
        [near["verdicts"].as_array().cloned(), near["verdicts"].as_array().cloned()]
            .into_iter()
            .flatten()
            .flatten()
            .collect(),
    );
    let twice = compare(&near, &twice, &[]);
    assert_eq!(twice.status.code(), Some(2), "{}", said(&twice));
    assert!(said(&twice).contains("stands there twice"), "{}", said(&twice));
}

#[test]
fn a_metric_of_which_nobody_knows_any_more_whether_more_is_better_is_compared() {
    let before = result(&STEADY, &STEADY);
    let mut after = result(&STEADY, &STEADY.map(|figure| figure / 2.0));
    after["metrics"][0]["more_is_better"] = Value::Null;
    let changed = compare(&before, &after, &["--json"]);
    assert_eq!(changed.status.code(), Some(1), "{}", said(&changed));
    let changed: Value = serde_json::from_slice(&changed.stdout).expect("JSON");
    assert_eq!(
        (&changed["rows"][1]["outcome"], &changed["rows"][1]["better"]),
        (&"less".into(), &Value::Null)
    );
    after["metrics"][0]["more_is_better"] = false.into();
    assert_eq!(compare(&before, &after, &[]).status.code(), Some(2));
}

#[test]
fn who_reads_no_further_learns_what_changed_from_the_exit_code() {
    let folder = TempDir::new().expect("a folder");
    let paths = [("before.json", result(&STEADY, &STEADY)), ("after.json", result(&STEADY, &[1.0; 5]))];
    let paths = paths.map(|(name, value)| {
        let path = folder.path().join(name);
        fs::write(&path, value.to_string()).expect("written");
        path
    });
    for form in [&[][..], &["--json"]] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_rxlane"));
        command.args(["bench", "compare"]).args(&paths).args(form).stdout(writer);
        let status = command.status().expect("it runs");
        assert_eq!(status.code(), Some(1), "{form:?}");
    }
}

#[test]
fn compare_refuses_what_is_not_alike() {
    let good = result(&STEADY, &STEADY);
    let with = |field: &str, value: Value| {
        let mut result = good.clone();
        result[field] = value;
        result
    };
    for (other, expected) in [
        (with("scenario", "vlan".into()), "only like can be compared"),
        (with("schema", "rxlane.bench/1".into()), "is of schema rxlane.bench/1"),
        (with("schema", 7.into()), "names no schema"),
        (with("cells", 7.into()), "is no whole rxlane.bench-scenario/1"),
        (Value::Null, "names no schema"),
    ] {
        let output = compare(&good, &other, &[]);
        assert_eq!(output.status.code(), Some(2), "{expected}: {}", said(&output));
        assert!(
            said(&output).contains(expected) && said(&output).contains("after.json"),
            "{}",
            said(&output)
        );
    }
    let missing = run(&["compare", "/nonexistent/a.json", "/nonexistent/b.json"], Stdio::null());
    assert_eq!(missing.status.code(), Some(2), "{}", said(&missing));
    assert!(said(&missing).contains("cannot read /nonexistent/a.json"), "{}", said(&missing));
    let wrong = compare(&good, &good, &["--tie", "0.5"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", said(&wrong));
}

#[test]
fn what_cannot_be_a_result_is_named_with_its_file() {
    let good = result(&STEADY, &STEADY);
    let with = |pointer: &str, value: Value| {
        let mut result = good.clone();
        *result.pointer_mut(pointer).expect("there is such a place") = value;
        result
    };
    let verdict = |level: &str, outcome: &str| {
        let cell = |level: &str| json!({"way": level});
        json!([{"metric": "forwarded", "cell": cell("rps"), "baseline": cell(level), "ratio": null, "outcome": outcome, "text": ""}])
    };
    for (other, expected) in [
        (with("/cells/1/levels/way", "off".into()), "the cell way=off stands there twice"),
        (with("/cells/0/figures/forwarded/raw/1", (-1.0).into()), "forwarded of round 2 is -1e0"),
        (with("/cells/0/figures/forwarded/raw/1", 1e308.into()), "forwarded of round 2 is 1e308"),
        (
            with("/metrics/0/unit", "".into()),
            "forwarded of round 1 is 1e5, which nothing measures (0 to 1e0)",
        ),
        (with("/machine/busy_before", (-5e300).into()), "of its machine is -5e300, which nothing measures"),
        (with("/cells/0/levels/way", "unheard".into()), "a cell has way=unheard"),
        (with("/verdicts", verdict("unheard", "tie")), "a verdict is on way=unheard"),
        (with("/verdicts", verdict("off", "unheard")), "unknown variant `unheard`"),
        (with("/metrics", json!([])), "forwarded is no metric there"),
        (with("/metrics/0/unit", "bit/s".into()), "the metric forwarded is another one in each"),
    ] {
        let output = compare(&good, &other, &[]);
        assert_eq!(output.status.code(), Some(2), "{expected}: {}", said(&output));
        assert!(
            said(&output).contains(expected) && said(&output).contains("after.json"),
            "{expected}: {}",
            said(&output)
        );
    }
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("nan.json");
    fs::write(&path, good.to_string().replace("100000.0", "NaN")).expect("written");
    let path = path.to_str().expect("UTF-8");
    let output = run(&["compare", path, path], Stdio::null());
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("nan.json is no JSON"), "{}", said(&output));
}

#[test]
fn a_metric_or_an_answer_that_vanished_is_told() {
    let before = result(&STEADY, &STEADY);
    let mut after = before.clone();
    after["metrics"][0]["name"] = "other".into();
    for cell in 0..2 {
        let figures = after["cells"][cell]["figures"]["forwarded"].take();
        after["cells"][cell]["figures"] = json!({"other": figures});
    }
    after["facts"] = json!([]);
    let output = compare(&before, &after, &[]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    for expected in ["only before", "only after", "4 figures stand in one of the two alone", "is it let in"] {
        assert!(said(&output).contains(expected), "{expected}: {}", said(&output));
    }
    let json = compare(&before, &after, &["--json"]);
    let json: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!((&json["conclusion"], &json["rows"][0]["outcome"]), (&"unknown".into(), &"only-after".into()));
}

#[test]
fn standard_input_is_one_of_the_two() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("result.json");
    fs::write(&path, result(&STEADY, &STEADY).to_string()).expect("written");
    let input = || Stdio::from(File::open(&path).expect("a file"));
    let name = path.to_str().expect("UTF-8");
    for arguments in [["compare", name, "-"], ["compare", "-", name]] {
        let output = run(&arguments, input());
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        assert!(said(&output).contains("standard input, 2026-11-23"), "{}", said(&output));
    }
    let output = run(&["compare", "-", "-"], input());
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("standard input is one result"), "{}", said(&output));
    let output = run(&["compare", name, "-"], Stdio::null());
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("standard input is no JSON"), "{}", said(&output));
}

/// What is read, where every list may be as long as it likes.
#[test]
fn a_file_that_is_too_much_is_refused_in_a_sentence() {
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
    // Both within their bounds, and cells times metrics are not.
    let figures: serde_json::Map<String, Value> =
        (0..200).map(|number| (number.to_string(), json!({"raw": []}))).collect();
    let cells = |number: usize| {
        let way = ["off".to_owned(), format!("{number}")];
        json!({"levels": {"way": way[usize::from(number > 0)]}, "figures": figures, "failures": []})
    };
    let mut crossed = with("/metrics", many(200, &metric));
    crossed["rounds"] = 0.into();
    crossed["cells"] = many(101, &cells);
    for (other, expected) in [
        (with("/metrics", many(100_000, &metric)), "is longer than 4 MiB"),
        (with("/metrics", many(300, &metric)), "more than 256 metrics"),
        (with("/factors/0/levels", many(300, &level)), "more than 256 levels of a factor"),
        (with("/cells", many(3000, &cell)), "more than 2048 cells"),
        (with("/warnings", many(100, &|_| "".into())), "more than 64 sentences"),
        (crossed, "its cells and metrics have 20200 figures"),
        (
            with("/cells/0/figures/forwarded/raw", many(1001, &|_| 1.into())),
            "more than 1000 rounds of a figure",
        ),
    ] {
        let output = compare(&good, &other, &[]);
        assert_eq!(output.status.code(), Some(2), "{expected}: {}", said(&output));
        assert!(
            said(&output).contains(expected) && said(&output).contains("after.json"),
            "{}",
            said(&output)
        );
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
        let path = folder.path().join("much.json");
        fs::write(&path, &text).expect("written");
        let path = path.to_str().expect("UTF-8");
        let mut limited = Command::new("sh");
        let limited = limited.args(["-c", "ulimit -v 200000; exec \"$0\" bench compare \"$1\" \"$1\""]);
        let output = limited.args([env!("CARGO_BIN_EXE_rxlane"), path]).output().expect("it runs");
        assert_eq!(output.status.code(), Some(code), "{}", said(&output));
    }
}

#[test]
fn rows_are_no_wider_than_there_is_room() {
    let mut result = result(&STEADY, &STEADY);
    result["factors"][0]["levels"][1]["text"] =
        "receive packet steering over all of the other CPUs, by a hash of addresses".into();
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("a.json");
    fs::write(&path, result.to_string()).expect("written");
    let lines = |columns: usize| -> Vec<String> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rxlane"));
        let command = command.args(["bench", "compare", "a.json", "a.json"]).current_dir(folder.path());
        let output = command.env("COLUMNS", columns.to_string()).output().expect("it runs");
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
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
