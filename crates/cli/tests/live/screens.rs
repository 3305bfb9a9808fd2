//! What commands print by default fits a terminal of 80 columns and 24 lines.

use crate::machine::{FAR, WAN, cpumap_programs};
use crate::run::BINARY;
use std::path::Path;
use std::process::{Command, Output};
use testkit::netns::{Namespace, Veth, probe};
use testkit::require;

const COLUMNS: usize = 80;
const LINES: usize = 24;

const BEFORE: &str = "docs/measurements/scenarios/vlan.1.json";
const AFTER: &str = "docs/measurements/scenarios/vlan.2.json";

/// The project's folder, in which the documents are.
fn project() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn rxlane(arguments: &[&str]) -> Output {
    let mut command = Command::new(BINARY);
    command.args(arguments).current_dir(project()).env("COLUMNS", "80").output().expect("it runs")
}

/// What does not fit. `lines`: more than a screen has, where there is a row for each of something.
fn judge(arguments: &[&str], output: &Output, lines: usize, found: &mut Vec<String>) {
    let text = String::from_utf8_lossy(&output.stdout);
    let count = text.lines().count();
    if count == 0 || count > lines {
        let error = String::from_utf8_lossy(&output.stderr);
        found.push(format!("{arguments:?}: {count} lines of {lines}\n{text}{error}"));
    }
    let wide = text.lines().filter(|line| line.chars().count() > COLUMNS);
    found.extend(wide.map(|line| format!("{arguments:?}: wider than {COLUMNS}: {line}")));
}

#[test]
fn what_is_asked_of_no_machine_fits_a_screen() {
    let folder = tempfile::tempdir().expect("a folder");
    let capture = folder.path().join("l.pcap").display().to_string();
    let scenario = ["--scenario", "pppoe-qinq", "--frames", "5000"];
    assert!(rxlane(&[&["gen", "-o", &capture], &scenario[..]].concat()).status.success());
    let link = ["--src", "66.9.149.187", "--sport", "2794", "--dst", "161.142.100.80", "--dport", "1766"];
    let hash = [&["rss", "hash"], &link[..]].concat();
    let texts = ["settings", "first", "latest"]
        .map(|part| format!("crates/cli/src/top_command/fixtures/igb.{part}.txt"));
    let doctor: Vec<&str> =
        ["doctor", "--from"].into_iter().chain(texts.iter().map(String::as_str)).collect();
    let (nics, findings) = (24 + 3, 36 + 6);
    for (arguments, lines) in [
        // A row for each NIC, and for each finding.
        (&["nics"][..], nics),
        (&["doctor", "--explain"], findings),
        (&["nics", "i210"], LINES),
        (&["nics", "82599", "x710"], nics + 3),
        (&["nics", "--can", "pppoe,qinq"], LINES),
        (&["nics", "--stack", "ad:100,q:200"], LINES),
        (&["nics", "--stack", "ad:100,q:200", "i210"], LINES),
        (&["rss", "table", "equal", "4"], LINES),
        (&hash, LINES),
        (&[hash.as_slice(), &["--nic", "i210"]].concat(), LINES),
        (&["explain", &capture], LINES),
        (&["explain", &capture, "--nic", "x710", "--queues", "8"], LINES),
        (&["gen", "--list"], LINES),
        (&["model", "run", "docs/model/router.toml"], LINES),
        (&["model", "reproduce"], LINES),
        (
            &[
                "model",
                "sweep",
                "docs/model/router.toml",
                "--key",
                "interface.wan.ring",
                "--values",
                "256,4096",
            ],
            LINES,
        ),
        (&doctor, LINES),
        (&["bench", "compare", BEFORE, AFTER], LINES),
        (&["--help"], findings),
    ] {
        let mut found = Vec::new();
        judge(arguments, &rxlane(arguments), lines, &mut found);
        assert!(found.is_empty(), "{}", found.join("\n"));
    }
}

#[test]
fn what_is_asked_of_a_machine_fits_a_screen() {
    if require("netns", probe()).is_none() || require("bpf", cpumap_programs()).is_none() {
        return;
    }
    let namespace = Namespace::new().expect("a namespace");
    namespace.veth(&Veth { queues: 4, mtu: 1600, ..Veth::pair(WAN, FAR) }).expect("a pair");
    let folder = tempfile::tempdir().expect("a folder");
    let state = folder.path().join("state").display().to_string();
    let run = |arguments: &[&str]| {
        let state = ["--state-dir", &state];
        let whole =
            if arguments.contains(&"discover") { arguments.to_vec() } else { [arguments, &state].concat() };
        let mut command = namespace.command(BINARY);
        command.args(&whole).env("COLUMNS", "80").output().expect("it runs")
    };
    let mut found = Vec::new();
    let link = ["--ifname", "sub0", "--vlan", "35"];
    let pool = ["--ipv6", "false", "--local", "10.0.0.1", "--pool", "10.0.0.2-10.0.0.9"];
    let check = ["steer", "check", "wan0", "--seconds", "0"];
    judge(&check, &run(&check), LINES, &mut found);
    let dry = ["steer", "up", "wan0", "--seconds", "0", "--dry-run"];
    judge(&dry, &run(&dry), LINES, &mut found);
    let commands: &[&[&str]] = &[
        &["doctor", "--seconds", "0.1"],
        &["steer", "up", "wan0", "--seconds", "0"],
        &["steer", "status", "wan0", "--interval", "0"],
        &["steer", "down", "wan0"],
        &["envelope", "check", "wan0", "--header", "8"],
        &["envelope", "up", "wan0", "--header", "8"],
        &["envelope", "status", "wan0"],
        &["envelope", "down", "wan0"],
        &["link", "check", "wan0", "--vlan", "35"],
        &[&["link", "up", "wan0", "--dry-run"], &link[..]].concat(),
        &[&["link", "up", "wan0", "--daemon"], &link[..]].concat(),
        &["link", "status", "--interval", "0"],
        &["link", "down", "sub0"],
        &["pppoe", "connect", "wan0", "--user", "me", "--dry-run"],
        &["pppoe", "discover", "wan0", "--seconds", "1"],
        &["pppoe", "serve", "wan0", "--anybody", "--dry-run"],
        &[&["pppoe", "serve", "wan0", "--anybody", "--daemon"], &pool[..]].concat(),
        &["pppoe", "status"],
        &["pppoe", "sessions"],
        &["pppoe", "drain", "wan0"],
        &["pppoe", "disconnect", "--concentrator", "wan0"],
    ];
    for arguments in commands {
        judge(arguments, &run(arguments), LINES, &mut found);
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
