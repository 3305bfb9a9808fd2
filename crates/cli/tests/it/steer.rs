//! `rxlane steer` and `rxlane envelope` as far as they take neither privilege nor a device: usage, errors, what any process may know.

use crate::run::{self, Ended, Report};
use serde_json::json;
use std::process::Output;

fn rxlane(arguments: &str) -> Output {
    run::rxlane().args(arguments.split(' ')).env("COLUMNS", "80").output()
}

#[test]
fn wrong_usage_is_exit_2_and_says_what_is_wrong() {
    for (arguments, expected) in [
        ("steer up lo --classes pppoe,pppo", "`pppo` is no class; there are plain, vlan, qinq"),
        ("steer up lo --queue-size 0", "1..=16384"),
        ("steer up lo --queue-size 16385", "1..=16384"),
        ("steer up lo --metrics nowhere", "no address with a port"),
        ("steer up lo --mode fast", "native, generic"),
        ("steer up lo --all --classes vlan", "cannot be used with"),
        ("steer up lo --cpus 1-", "--cpus: \"1-\" is no CPU or range of CPUs"),
        ("steer up lo --cpus=-1", "--cpus: \"-1\" is no CPU or range of CPUs"),
        ("steer up lo --cpus -1", "invalid value '-1' for '--cpus': it cannot be negative"),
        ("pppoe serve lo --download -5M", "invalid value '-5M' for '--download': it cannot be negative"),
        ("steer up lo --json -5", "unexpected argument"),
        ("steer up lo --cpus 8000", "there is no CPU 8000: this machine has 0"),
        ("steer up lo --dry-run --seconds 0", "loopback"),
        ("steer check eth0/reboot", "rxlane: \"eth0/reboot\" is no name"),
        ("envelope up lo", "--header <N>"),
        ("envelope up lo --header 3", "3 is not in 4..=482"),
        ("envelope up lo --header 483", "483 is not in 4..=482"),
        ("envelope up lo --header eight", "invalid digit"),
        ("envelope up lo --header=-8", "-8 is not in 4..=482"),
        ("envelope up lo --header 8 --mode fast", "native, generic"),
        ("envelope up eth0/reboot --header 8", "is no name of an interface"),
        ("envelope up lo --header 8 --dry-run", "lo is the loopback"),
    ] {
        rxlane(arguments).is(&arguments, 2, expected);
    }
    for arguments in [
        "steer check loo",
        "steer up loo",
        "steer status loo",
        "steer down loo",
        "envelope up loo --header 8",
        "envelope status loo",
        "envelope down loo",
    ] {
        let output = rxlane(arguments);
        // Without root `envelope down` may not look for what is left.
        if output.code() == 3 && arguments == "envelope down loo" {
            output.says("root");
            assert!(!rustix::process::geteuid().is_root());
            continue;
        }
        output.is(&arguments, 2, "no interface `loo`").says("near it are lo");
        assert_eq!(output.text().lines().count(), 1, "{arguments}: {}", output.text());
    }
}

#[test]
fn nothing_is_steered_and_has_no_envelope() {
    let envelope = rxlane("envelope status lo --json").ends(0).json();
    envelope.has(json!({"schema": "rxlane.envelope/1", "state": "off", "passed": []}));
    assert_eq!(rxlane("envelope status lo").text(), "lo: no envelope\n");
    rxlane("steer status lo --json").ends(0).json().has(json!({
        "schema": "rxlane.steer/1", "mode": "off", "interface": "lo", "moves": 0, "cpus": [], "reasons": [], "buckets": [],
    }));
    assert_eq!(rxlane("steer status lo").text(), "lo: not steered\n");
    let check = rxlane("steer check lo --seconds 0 --json").json();
    check.has(json!({"schema": "rxlane.steer-check/1", "possible": false}));
    let facts = check["facts"].as_array().expect("facts");
    let place = facts.iter().find(|fact| fact["about"] == "place").expect("a place");
    assert!(place["text"].as_str().is_some_and(|text| text.contains("loopback")), "{place}");
    let text = rxlane("steer check lo --seconds 0").text();
    assert!(!text.is_empty() && text.lines().all(|line| line.chars().count() <= 80), "{text}");
}
