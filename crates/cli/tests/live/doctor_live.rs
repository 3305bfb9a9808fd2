//! `rxlane doctor` on live interfaces: veth pairs with four queues, in network namespaces of the tests' own, with
//! PPPoE and VLAN traffic from the generator. A finding comes when its condition is made and goes when it is removed.

use crate::machine::{FAR, Machine, WAN, cpumap_programs, script, search_path, signal};
use crate::run::{BINARY, Ended, Report};
use serde_json::{Value, json};
use std::os::unix::process::CommandExt;
use std::process::{Output, Stdio};
use testkit::{program, require, wait_until};

/// One with `doctor` on the interface, after a second under load.
fn under_load(machine: &Machine, scenario: &str, more: &[&str]) -> Output {
    let arguments = [&[WAN, "--seconds", "1"], more].concat();
    machine.under_load(scenario, || machine.run(&arguments))
}

/// The report on it, of a sample with enough frames: on a busy machine few come in a second.
fn diagnosed(machine: &Machine, scenario: &str, more: &[&str]) -> Value {
    let mut last = Value::Null;
    for seconds in ["1", "4", "16", "30"] {
        let arguments = [&["--json", WAN, "--seconds", seconds], more].concat();
        let output = machine.under_load(scenario, || machine.run(&arguments));
        last = output.json();
        output.ends(i32::from(last["verdict"] == "limited"));
        if outcome(&last, "one-queue-hot") != "insufficient-data" {
            break;
        }
    }
    last
}

fn finding<'r>(report: &'r Value, id: &str) -> Option<&'r Value> {
    let findings = report["findings"].as_array().expect("findings");
    for finding in findings {
        assert!(!finding["evidence"].as_array().expect("evidence").is_empty(), "{finding}");
    }
    findings.iter().find(|finding| finding["id"] == id && finding["interface"] == WAN)
}

fn outcome<'r>(report: &'r Value, id: &str) -> &'r str {
    let rules = report["rules"].as_array().expect("rules");
    let row = rules.iter().find(|row| row["id"] == id).expect("the rule");
    row["outcome"].as_str().expect("a word")
}

#[test]
fn findings_come_with_their_conditions_and_go_with_them() {
    let Some(machine) = Machine::doctor() else { return };
    const LOAD: &str = "pppoe";
    let report = diagnosed(&machine, LOAD, &["--sample"]);
    let one_queue = finding(&report, "one-queue-hot").unwrap_or_else(|| panic!("{report:#}"));
    // A live sample joins the traffic.
    let expected = one_queue["remedies"][0]["expected"].as_str().expect("a prediction");
    assert!(expected.contains("In the traffic sample"), "{expected}");
    let evidence = one_queue["evidence"][0]["text"].as_str().expect("text");
    assert!(evidence.starts_with("rx_queue_0_xdp_packets: "), "{evidence}");
    let queues = report["interfaces"][0]["queues"].as_array().expect("queues").iter();
    let shares: Vec<f64> = queues.map(|queue| queue["share"].as_f64().expect("a share")).collect();
    assert_eq!(shares, [1.0, 0.0, 0.0, 0.0]);

    let ethtool = |arguments: &[&str]| machine.namespace.run("ethtool", arguments).expect("ethtool");
    ethtool(&["-L", FAR, "tx", "4"]);
    let report = diagnosed(&machine, LOAD, &[]);
    assert_eq!((finding(&report, "one-queue-hot"), outcome(&report, "one-queue-hot")), (None, "clear"));
    // Then no queue is counted either.
    ethtool(&["-K", WAN, "gro", "off"]);
    let report = diagnosed(&machine, LOAD, &[]);
    assert!(finding(&report, "gro-off").is_some(), "{report:#}");
    ethtool(&["-K", WAN, "gro", "on"]);
    let report = diagnosed(&machine, LOAD, &[]);
    assert_eq!((finding(&report, "gro-off"), outcome(&report, "gro-off")), (None, "clear"));
}

#[test]
fn what_is_applied_is_undone() {
    let Some(machine) = Machine::doctor() else { return };
    const LOAD: &str = "pppoe";
    let before = machine.state();

    // Without a terminal nothing is applied without --yes.
    under_load(&machine, LOAD, &["--apply", "one-queue-hot"]).ends(2).says("--yes");
    assert_eq!(machine.state(), before);
    under_load(&machine, LOAD, &["--apply", "one-queue-hot", "--yes"]).ends(0).says("done: echo ");
    assert_ne!(machine.state(), before);
    let report = diagnosed(&machine, LOAD, &[]);
    assert_eq!(finding(&report, "rps-off"), None, "{report:#}");

    let after = machine.state();
    machine.run(&["--undo", "--dry-run"]).ends(0).says("would run: echo ").says("Nothing was changed.");
    assert_eq!(machine.state(), after);
    machine.run(&["--undo"]).ends(0);
    assert_eq!(machine.state(), before);
    let report = diagnosed(&machine, LOAD, &[]);
    assert!(finding(&report, "rps-off").is_some(), "{report:#}");
    machine.run(&["--undo"]).ends(0).says("Nothing to restore");
}

#[test]
fn a_kill_between_leaves_what_undo_needs() {
    let Some(machine) = Machine::doctor() else { return };
    const LOAD: &str = "vlan";
    machine.namespace.run("ethtool", &["-K", WAN, "gro", "off"]).expect("off");
    let before = machine.state();
    // An `ethtool` that changes a feature and then does not come back.
    let ethtool = program("ethtool").expect("required before").display().to_string();
    let hanging = format!("'{ethtool}' \"$@\"\nstatus=$?\n[ \"$1\" = -K ] && exec sleep 30\nexit $status\n");
    script(&machine.folder().join("ethtool"), &hanging);
    machine.under_load(LOAD, || {
        let mut command = machine.command(&[WAN, "--seconds", "1", "--apply", "gro-off", "--yes"]);
        command.env("PATH", search_path(machine.folder())).stdout(Stdio::null()).process_group(0);
        let mut child = command.spawn().expect("it starts");
        wait_until("a change", || {
            assert!(child.try_wait().expect("a status").is_none(), "it ended without a change");
            machine.state() != before
        });
        // The group: the program that it waits for holds the journal, too.
        signal(format!("-{}", child.id()), "KILL");
        child.wait().expect("an end");
    });
    assert_ne!(machine.state(), before);
    machine.run(&["--undo"]).ends(0);
    assert_eq!(machine.state(), before);
}

/// Commands that all findings offer together.
fn offered(report: &Value) -> Vec<&str> {
    let findings = report["findings"].as_array().expect("findings");
    let remedies = findings.iter().flat_map(|finding| finding["remedies"].as_array().expect("remedies"));
    let commands = remedies.flat_map(|remedy| remedy["commands"].as_array().expect("commands"));
    commands.map(|command| command.as_str().expect("text")).collect()
}

#[test]
fn what_is_steered_is_seen_and_not_offered_again() {
    let Some(()) = require("bpf", cpumap_programs()) else { return };
    let Some(machine) = Machine::doctor() else { return };
    const LOAD: &str = "pppoe";
    let is_up = |command: &&str| *command == format!("rxlane steer up {WAN}");
    let is_rps = |command: &&str| command.contains("rps_cpus");
    let before = diagnosed(&machine, LOAD, &[]);
    assert!(finding(&before, "rps-off").is_some() && offered(&before).iter().any(is_rps), "{before:#}");
    assert!(before["interfaces"][0]["steering"].is_null());

    let run = |kind: &str, arguments: &[&str]| {
        machine.command_of(&machine.namespace, kind, arguments).output().expect("it starts")
    };
    run("steer", &["up", WAN, "--seconds", "0"]).ends(0);
    let report = diagnosed(&machine, LOAD, &[]);
    let row = &report["interfaces"][0]["steering"];
    row.has(json!({"mode": "native", "since_start": false}));
    assert!(row["share"].as_f64().is_some_and(|share| share > 0.8), "{row:#}");
    let one_queue = finding(&report, "one-queue-hot").unwrap_or_else(|| panic!("{report:#}"));
    assert!(
        one_queue["explanation"].as_str().is_some_and(|text| text.contains("rxlane steers ")),
        "{one_queue:#}"
    );
    assert_eq!(outcome(&report, "rps-off"), "clear");
    assert!(!offered(&report).iter().any(|command| is_up(command) || is_rps(command)), "{report:#}");

    // The bundle says the same elsewhere.
    let mut collect = machine.namespace.command(BINARY);
    collect.args(["collect", WAN, "--seconds", "0"]);
    let collected = machine.under_load(LOAD, || collect.output().expect("it starts"));
    let bundle = machine.folder().join("bundle.txt");
    std::fs::write(&bundle, &collected.stdout).expect("a bundle");
    let bundle = bundle.to_str().expect("UTF-8");
    collected.says(&format!("$ rxlane steer status {WAN} --json\n{{\"schema\":\"rxlane.steer/1\""));
    let read = machine.run(&["--from", bundle, "--json"]).json();
    assert_eq!(read["interfaces"][0]["steering"]["mode"], "native", "{read:#}");
    machine.run(&["--from", bundle, "--verbose"]).says("Steering: native mode, ");

    run("steer", &["down", WAN]).ends(0);
    let after = diagnosed(&machine, LOAD, &[]);
    assert!(
        finding(&after, "rps-off").is_some() && after["interfaces"][0]["steering"].is_null(),
        "{after:#}"
    );
}
