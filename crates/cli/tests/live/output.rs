//! What commands print fits a terminal of 80 columns and 24 lines, and what others choose (names of interfaces, files, users and
//! concentrators, their messages) reaches terminals, logs and commands to paste as text alone.

use crate::machine::{FAR, cpumap_programs};
use crate::pppoe_live::line::{Line, WAN};
use crate::process::Process;
use crate::run::{BINARY, Ended};
use std::path::Path;
use std::process::{Command, Output};
use testkit::netns::{Namespace, Veth, probe};
use testkit::require;

const COLUMNS: usize = 80;
const LINES: usize = 24;

/// A name that would end a command and begin another one, and one that would colour a terminal.
const HOSTILE: [&str; 2] = ["s;id", "a\x1b[31mb"];

/// What does not fit. `lines`: more than a screen has, where there is a row for each of something.
fn assert_fits(arguments: &str, output: &Output, lines: usize) {
    let text = String::from_utf8_lossy(&output.stdout);
    assert!((1..=lines).contains(&text.lines().count()), "{arguments}: {}", output.text());
    let is_wide = |line: &str| line.chars().count() > COLUMNS;
    assert!(!text.lines().any(is_wide), "{arguments}: wider than {COLUMNS}:\n{text}");
}

/// What is wrong with a text, line by line.
fn problems(text: &str) -> Vec<String> {
    // What commands begin with.
    const COMMANDS: [&str; 8] = [
        "rxlane steer ",
        "rxlane envelope ",
        "rxlane link ",
        "rxlane pppoe ",
        "ip link ",
        "ip -",
        "ethtool ",
        "> /",
    ];
    let mut problems = Vec::new();
    for line in text.lines().map(|line| line.strip_prefix("rxlane: ").unwrap_or(line)) {
        if line.contains(|c: char| c.is_control() && c != '\t') {
            problems.push(format!("control characters: {line:?}"));
        }
        for (place, _) in line.match_indices("s;id") {
            // A command stands between backquotes, or behind a label.
            let before = line[..place].rsplit('`').next().unwrap_or_default();
            let is_command = COMMANDS.iter().any(|command| before.contains(command));
            if is_command && before.matches('\'').count() % 2 == 0 {
                problems.push(format!("a command without quotes: {line}"));
            }
        }
    }
    problems
}

#[track_caller]
pub fn assert_is_text(case: &str, text: &str) {
    assert!(problems(text).is_empty() && !text.contains("panicked"), "{case}: {:#?}\n{text}", problems(text));
}

#[test]
fn output_about_no_machine_fits_a_screen() {
    let project = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let folder = tempfile::tempdir().expect("a folder");
    let capture = folder.path().join("l.pcap").display().to_string();
    let rxlane = |arguments: &str| {
        let mut command = Command::new(BINARY);
        let arguments = arguments.split(' ').map(|word| if word == "CAPTURE" { &capture } else { word });
        command.args(arguments).current_dir(project).env("COLUMNS", "80").output().expect("it runs")
    };
    rxlane("gen -o CAPTURE --scenario pppoe-qinq --frames 5000").ends(0);
    const HASH: &str = "rss hash --src 66.9.149.187 --sport 2794 --dst 161.142.100.80 --dport 1766";
    const IGB: &str = "crates/cli/src/top_command/fixtures/igb";
    let (nics, findings) = (33 + 3, 50 + 7);
    for (arguments, lines) in [
        // A row for each NIC, and for each finding.
        ("nics", nics),
        ("doctor --explain", findings),
        ("nics i210", LINES),
        ("nics 82599 x710", nics + 3),
        ("nics --can pppoe,qinq", LINES),
        ("nics --stack ad:100,q:200", LINES),
        ("nics --stack ad:100,q:200 i210", LINES),
        ("rss table equal 4", LINES),
        (HASH, LINES),
        (&format!("{HASH} --nic i210"), LINES),
        ("explain CAPTURE", LINES),
        ("explain CAPTURE --nic x710 --queues 8", LINES),
        ("gen --list", LINES),
        ("model run docs/model/router.toml", LINES),
        ("model reproduce", LINES),
        ("model sweep docs/model/router.toml --key interface.wan.ring --values 256,4096", LINES),
        (&format!("doctor --from {IGB}.settings.txt {IGB}.first.txt {IGB}.latest.txt"), LINES),
        (
            "bench compare docs/measurements/scenarios/vlan.1.json docs/measurements/scenarios/vlan.2.json",
            LINES,
        ),
        ("--help", findings),
    ] {
        assert_fits(arguments, &rxlane(arguments), lines);
    }
}

/// Of an interface NAME, in their order; those with a star print something to standard output, which fits a screen.
const COMMANDS: [&str; 42] = [
    "* doctor --seconds 0.1",
    "doctor --seconds 0.1 --verbose",
    "doctor NAME --seconds 0.1",
    "top NAME --once --interval 0.2",
    "* steer check NAME --seconds 0",
    "* steer up NAME --seconds 0 --dry-run",
    "* steer up NAME --seconds 0",
    "* steer status NAME --interval 0",
    "steer status --interval 0",
    "* steer down NAME",
    "* envelope check NAME --header 8",
    "* envelope up NAME --header 8",
    "* envelope status NAME",
    "link check NAME --vlan 35",
    "* envelope down NAME",
    "* link check NAME --vlan 35",
    "link check NAME --vlan 35 --mtu 9000",
    "* link up NAME --ifname sub0 --vlan 35 --dry-run",
    "link up NAME --ifname sub0 --vlan 35 --mtu 9000",
    "* link up NAME --ifname sub0 --vlan 35 --daemon",
    "link check sub0 --vlan 36",
    "* link status --interval 0",
    "* link down sub0",
    "link status NAME",
    "* pppoe connect NAME --user me --dry-run",
    "* pppoe discover NAME --seconds 1",
    "pppoe serve NAME --secrets SECRETS --dry-run",
    "* pppoe serve NAME --anybody --dry-run",
    "* pppoe serve NAME --anybody --daemon --ipv6 false --local 10.0.0.1 --pool 10.0.0.2-10.0.0.9",
    "pppoe serve NAME --secrets SECRETS",
    "* pppoe status",
    "pppoe status NAME",
    "* pppoe sessions",
    "pppoe sessions NAME",
    "pppoe sessions no-such",
    "* pppoe drain NAME",
    "pppoe disconnect --concentrator NAME --user NAME",
    "* pppoe disconnect --concentrator NAME",
    "pppoe disconnect NAME",
    "explain /dev/null --nic NAME",
    "* explain NAME --seconds 0.1",
    "explain --interface NAME --seconds 0.1 --verbose",
];

#[test]
fn output_about_a_machine_fits_a_screen_and_has_names_as_text() {
    if require("netns", probe()).is_none() || require("bpf", cpumap_programs()).is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let state = folder.path().join("state").display().to_string();
    let secrets = folder.path().join("secrets").display().to_string();
    std::fs::write(&secrets, "[[subscriber]]\nuser = 'alice'\npassword = 'wonderland'\n").expect("written");
    for name in [WAN, HOSTILE[0], HOSTILE[1]] {
        let namespace = Namespace::new().expect("a namespace");
        namespace.veth(&Veth { queues: 4, mtu: 1600, ..Veth::pair(name, FAR) }).expect("a pair");
        for arguments in COMMANDS {
            let words = arguments.trim_start_matches("* ").split(' ');
            let mut command = namespace.command(BINARY);
            command.args(words.map(|word| word.replace("NAME", name).replace("SECRETS", &secrets)));
            if !["discover", "explain"].iter().any(|stateless| arguments.contains(stateless)) {
                command.args(["--state-dir", &state]);
            }
            let output = command.env("COLUMNS", "80").env_remove("NOTIFY_SOCKET").output().expect("it runs");
            assert_is_text(arguments, &output.text());
            if name == WAN && arguments.starts_with('*') {
                assert_fits(arguments, &output, LINES);
            }
        }
    }
}

#[test]
fn names_of_files_are_text() {
    for name in HOSTILE {
        for arguments in [
            "explain NAME",
            "explain /dev/null --html NAME/x",
            "doctor --from NAME",
            "model run NAME",
            "model reproduce NAME",
            "nics NAME",
            "rss table parse NAME",
            "bench compare NAME NAME",
            "gen -o NAME/x",
            "collect --script -o NAME/x",
            "demo --directory /dev/null/NAME",
            "pppoe connect lo --config NAME",
            "pppoe serve lo --secrets NAME",
            "link up lo --vlan 7 --daemon --log NAME/x",
        ] {
            let mut command = Command::new(BINARY);
            command.args(arguments.split(' ').map(|word| word.replace("NAME", name)));
            let output = command.output().expect("it runs");
            assert_is_text(arguments, &output.text());
            assert_ne!(output.code(), 0, "{arguments}");
        }
    }
}

#[test]
fn names_of_users_are_text_at_both_ends() {
    let Some(line) = Line::new() else { return };
    let toml = |name: &str| name.replace('\x1b', "\\u001b");
    let secrets = HOSTILE.map(|name| format!("[[subscriber]]\nuser = \"{}\"\npassword = 'x'\n", toml(name)));
    line.write("secrets", &secrets.concat());
    line.write("x", "x\n");
    line.write("wrong", "y\n");
    let serving = line.serve(&["--accounting", &line.text("accounts")]);
    for name in HOSTILE {
        let connect = |file: &str| {
            let arguments = ["connect", WAN, "--user", name, "--password-file", &line.text(file)];
            Process::start(&mut line.command(&line.near, &arguments))
        };
        let refused = connect("wrong");
        refused.hear("closed: authentication failed", 1);
        assert_is_text(name, &refused.interrupted().text());
        let client = connect("x");
        client.hear(": open", 1);
        for output in [line.near(&["status", "ppp0"]), line.far(&["sessions", WAN]), line.far(&["status"])] {
            assert_is_text(name, &output.text());
        }
        for by in [&["--user", name][..], &["--all"]] {
            assert_is_text(name, &line.far(&[&["disconnect", "--concentrator", WAN], by].concat()).text());
        }
        client.hear("disconnected by the operator", 1);
        assert_is_text(name, &client.interrupted().text());
    }
    line.wait_for_sessions(0);
    assert_is_text("the log", &serving.interrupted().text());
    assert_is_text("accounts", &std::fs::read_to_string(line.path("accounts")).expect("accounts"));
}
