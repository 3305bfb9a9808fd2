//! `rxlane steer` and `rxlane envelope` as far as they take neither privilege nor a device: usage, errors, what any process may know.

use crate::run::{self, BINARY, Ended};
use serde_json::Value;
use std::process::Output;
use testkit::{program, require};

fn rxlane(arguments: &[&str]) -> Output {
    run::rxlane().args(arguments).env("COLUMNS", "80").output()
}

#[test]
fn wrong_usage_is_exit_2_and_says_what_is_wrong() {
    let cases: [(&[&str], &str); 17] = [
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
        (&["envelope", "up", "lo"], "--header <N>"),
        (&["envelope", "up", "lo", "--header", "3"], "3 is not in 4..=482"),
        (&["envelope", "up", "lo", "--header", "483"], "483 is not in 4..=482"),
        (&["envelope", "up", "lo", "--header", "eight"], "invalid digit"),
        (&["envelope", "up", "lo", "--header=-8"], "-8 is not in 4..=482"),
        (&["envelope", "up", "lo", "--header", "8", "--mode", "fast"], "native, generic"),
        (&["envelope", "up", "eth0;reboot x", "--header", "8"], "is no name of an interface"),
        (&["envelope", "up", "lo", "--header", "8", "--dry-run"], "lo is the loopback"),
    ];
    for (arguments, expected) in cases {
        rxlane(arguments).is(&arguments, 2, expected);
    }
}

#[test]
fn an_interface_that_is_not_there_is_named_with_those_near_it() {
    for command in [
        &["steer", "check", "loo"][..],
        &["steer", "up", "loo"],
        &["steer", "status", "loo"],
        &["steer", "down", "loo"],
        &["envelope", "up", "loo", "--header", "8"],
        &["envelope", "status", "loo"],
        &["envelope", "down", "loo"],
    ] {
        let output = rxlane(command);
        // Without root `envelope down` may not look for what is left.
        if output.code() == 3 && command[..2] == ["envelope", "down"] {
            output.says("root");
            assert!(!rustix::process::geteuid().is_root());
            continue;
        }
        output.is(&command, 2, "no interface `loo`").says("near it are lo");
        assert_eq!(output.text().lines().count(), 1, "{command:?}: {}", output.text());
    }
    let hostile = rxlane(&["steer", "check", "eth0;reboot x"]);
    hostile.ends(2);
    assert!(hostile.text().starts_with("rxlane: \"eth0;reboot x\" is no name"), "{}", hostile.text());
}

#[test]
fn an_interface_without_an_envelope_is_off() {
    let status = rxlane(&["envelope", "status", "lo", "--json"]).ends(0).json();
    let expected = (&Value::from("rxlane.envelope/1"), &Value::from("off"));
    assert_eq!((&status["schema"], &status["state"]), expected, "{status:#}");
    assert_eq!(status["passed"].as_array().map(Vec::len), Some(0));
    assert_eq!(rxlane(&["envelope", "status", "lo"]).text(), "lo: no envelope\n");
}

#[test]
fn nothing_steered_is_mode_off() {
    let status = rxlane(&["steer", "status", "lo", "--json"]).ends(0).json();
    assert_eq!((status["schema"].as_str(), status["mode"].as_str()), (Some("rxlane.steer/1"), Some("off")));
    assert_eq!((status["interface"].as_str(), status["moves"].as_u64()), (Some("lo"), Some(0)));
    for list in ["cpus", "reasons", "buckets"] {
        assert_eq!(status[list].as_array().map(Vec::len), Some(0), "{list}");
    }
    assert_eq!(rxlane(&["steer", "status", "lo"]).text(), "lo: not steered\n");
}

#[test]
fn check_says_where_frames_come_in() {
    let check = rxlane(&["steer", "check", "lo", "--seconds", "0", "--json"]).json();
    assert_eq!(check["schema"], "rxlane.steer-check/1");
    assert_eq!(check["possible"], false);
    let facts = check["facts"].as_array().expect("facts");
    let place = facts.iter().find(|fact| fact["about"] == "place").expect("a place");
    assert!(place["text"].as_str().is_some_and(|text| text.contains("loopback")), "{place}");
    rxlane(&["steer", "up", "lo", "--dry-run", "--seconds", "0"]).ends(2).says("loopback");
}

#[test]
fn every_line_fits_eighty_columns() {
    for arguments in [&["steer", "check", "lo", "--seconds", "0"][..], &["steer", "status", "lo"]] {
        let text = rxlane(arguments).text();
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
    for (template, unit) in [
        ("rxlane-steer", include_str!("../../../../packaging/systemd/rxlane-steer@.service")),
        ("rxlane-link", include_str!("../../../../packaging/systemd/rxlane-link@.service")),
        ("rxlane-pppoe", include_str!("../../../../packaging/systemd/rxlane-pppoe@.service")),
        ("rxlane-pppoe-serve", include_str!("../../../../packaging/systemd/rxlane-pppoe-serve@.service")),
    ] {
        // It is not installed where systemd looks, nor are its manual pages.
        let unit = unit.replace("=rxlane ", &format!("={BINARY} "));
        let unit = unit.replace("=-rxlane ", &format!("=-{BINARY} "));
        let unit: Vec<&str> = unit.lines().filter(|line| !line.starts_with("Documentation=")).collect();
        let path = folder.path().join(format!("{template}@wan0.service"));
        std::fs::write(&path, unit.join("\n")).expect("a unit");
        let verified = std::process::Command::new(&analyze).arg("verify").arg(&path).output();
        verified.expect("it starts").omits("wan0.service");
    }
}
