//! `rxlane steer` as far as it takes neither privilege nor a device: usage, errors, what any process may know.

use crate::run;
use serde_json::Value;
use std::process::Output;
use testkit::{program, require};

fn rxlane(arguments: &[&str]) -> Output {
    let mut command = run::rxlane();
    command.args(arguments).env("COLUMNS", "80").output().expect("it starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn wrong_usage_is_exit_2_with_one_sentence() {
    let cases: [(&[&str], &str); 9] = [
        (
            &["steer", "up", "lo", "--classes", "pppoe,pppo"],
            "`pppo` is no class; there are plain, vlan, qinq",
        ),
        (&["steer", "up", "lo", "--queue-size", "0"], "1..=16384"),
        (&["steer", "up", "lo", "--queue-size", "16385"], "1..=16384"),
        (&["steer", "up", "lo", "--metrics", "nowhere"], "no address with a port"),
        (&["steer", "up", "lo", "--mode", "fast"], "native, generic"),
        (&["steer", "up", "lo", "--all", "--classes", "vlan"], "cannot be used with"),
        (&["steer", "up", "lo", "--cpus", "1-"], "--cpus: \"1-\" is no CPU or range of CPUs"),
        (&["steer", "up", "lo", "--cpus=-1"], "--cpus: \"-1\" is no CPU or range of CPUs"),
        (&["steer", "up", "lo", "--cpus", "8000"], "there is no CPU 8000: this machine has 0"),
    ];
    for (arguments, expected) in cases {
        let output = rxlane(arguments);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}

#[test]
fn an_interface_that_is_not_there_is_told_with_those_near_it() {
    for command in ["check", "up", "status", "down"] {
        let output = rxlane(&["steer", command, "loo"]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{command}: {said}");
        assert!(said.contains("no interface `loo`") && said.contains("near it are lo"), "{command}: {said}");
        assert_eq!(said.lines().count(), 1, "{command}: {said}");
    }
    let hostile = rxlane(&["steer", "check", "eth0;reboot x"]);
    assert_eq!(hostile.status.code(), Some(2), "{}", stderr(&hostile));
    assert!(stderr(&hostile).starts_with("rxlane: \"eth0;reboot x\" is no name"), "{}", stderr(&hostile));
}

#[test]
fn nothing_steered_is_mode_off() {
    let output = rxlane(&["steer", "status", "lo", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let status: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((status["schema"].as_str(), status["mode"].as_str()), (Some("rxlane.steer/1"), Some("off")));
    assert_eq!((status["interface"].as_str(), status["moves"].as_u64()), (Some("lo"), Some(0)));
    for list in ["cpus", "reasons", "buckets"] {
        assert_eq!(status[list].as_array().map(Vec::len), Some(0), "{list}");
    }
    let text = stdout(&rxlane(&["steer", "status", "lo"]));
    assert_eq!(text, "lo: not steered\n");
}

#[test]
fn check_says_where_frames_come_in() {
    let output = rxlane(&["steer", "check", "lo", "--seconds", "0", "--json"]);
    let check: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(check["schema"], "rxlane.steer-check/1");
    assert_eq!(check["possible"], false);
    let facts = check["facts"].as_array().expect("facts");
    let place = facts.iter().find(|fact| fact["about"] == "place").expect("a place");
    assert!(place["text"].as_str().is_some_and(|text| text.contains("loopback")), "{place}");
    let up = rxlane(&["steer", "up", "lo", "--dry-run", "--seconds", "0"]);
    assert_eq!(up.status.code(), Some(2), "{}", stderr(&up));
    assert!(stderr(&up).contains("loopback"), "{}", stderr(&up));
}

#[test]
fn every_line_fits_eighty_columns() {
    for arguments in [&["steer", "check", "lo", "--seconds", "0"][..], &["steer", "status", "lo"]] {
        let text = stdout(&rxlane(arguments));
        assert!(!text.is_empty());
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{}: {line}", line.chars().count());
        }
    }
}

#[test]
fn the_units_are_such_that_systemd_takes() {
    let Some(analyze) = require("systemd-analyze", program("systemd-analyze")) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let binary = run::BINARY;
    for (template, unit) in [
        ("rxlane-steer", include_str!("../../../../packaging/systemd/rxlane-steer@.service")),
        ("rxlane-link", include_str!("../../../../packaging/systemd/rxlane-link@.service")),
        ("rxlane-pppoe", include_str!("../../../../packaging/systemd/rxlane-pppoe@.service")),
        ("rxlane-pppoe-serve", include_str!("../../../../packaging/systemd/rxlane-pppoe-serve@.service")),
    ] {
        // It is not installed where systemd looks, nor are its manual pages.
        let unit = unit.replace("=rxlane ", &format!("={} ", binary));
        let unit = unit.replace("=-rxlane ", &format!("=-{} ", binary));
        let unit: Vec<&str> = unit.lines().filter(|line| !line.starts_with("Documentation=")).collect();
        let path = folder.path().join(format!("{template}@wan0.service"));
        std::fs::write(&path, unit.join("\n")).expect("a unit");
        let verified =
            std::process::Command::new(&analyze).arg("verify").arg(&path).output().expect("it starts");
        let said = String::from_utf8_lossy(&verified.stderr).into_owned();
        assert!(!said.contains("wan0.service"), "{said}");
    }
}
