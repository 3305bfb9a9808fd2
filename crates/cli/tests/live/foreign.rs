//! Names that others choose reach terminals and commands to paste as text alone.

use crate::run::BINARY;
use std::process::Output;
use testkit::netns::{Namespace, probe};
use testkit::require;

/// A name that would end a command and begin another one, and one that would colour a terminal.
const NAMES: [&str; 2] = ["s;id", "a\x1b[31mb"];

fn run(namespace: &Namespace, state: &str, arguments: &[&str]) -> Output {
    let mut command = namespace.command(BINARY);
    command.args(arguments).env("COLUMNS", "100");
    if !arguments.contains(&"discover") {
        command.args(["--state-dir", state]);
    }
    command.env_remove("NOTIFY_SOCKET").output().expect("it runs")
}

/// What is wrong with a text, line by line.
fn problems(text: &str) -> Vec<String> {
    const SIGNS: [&str; 8] = [
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
            let is_command = SIGNS.iter().any(|sign| before.contains(sign));
            if is_command && before.matches('\'').count() % 2 == 0 {
                problems.push(format!("a command without quotes: {line}"));
            }
        }
    }
    problems
}

#[test]
fn names_of_interfaces_are_quoted_in_commands_and_printable_elsewhere() {
    if require("netns", probe()).is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let state = folder.path().join("state").display().to_string();
    let secrets = folder.path().join("secrets").display().to_string();
    std::fs::write(&secrets, "[[subscriber]]\nuser = 'alice'\npassword = 'wonderland'\n").expect("written");
    for name in NAMES {
        let namespace = Namespace::new().expect("a namespace");
        namespace.run("ip", &["link", "add", name, "type", "veth", "peer", "name", "far0"]).expect("a pair");
        namespace.run("ip", &["link", "set", name, "mtu", "1508", "up"]).expect("up");
        let commands: &[&[&str]] = &[
            &["doctor", "--seconds", "0.1", "--verbose"],
            &["doctor", name, "--seconds", "0.1"],
            &["top", name, "--once", "--interval", "0.2"],
            &["steer", "check", name, "--seconds", "0"],
            &["steer", "up", name, "--seconds", "0", "--dry-run"],
            &["steer", "up", name, "--seconds", "0"],
            &["steer", "status", name, "--interval", "0"],
            &["steer", "status", "--interval", "0"],
            &["steer", "down", name],
            &["envelope", "check", name, "--header", "8"],
            &["envelope", "up", name, "--header", "8"],
            &["envelope", "status", name],
            &["link", "check", name, "--vlan", "35"],
            &["envelope", "down", name],
            &["link", "check", name, "--vlan", "35", "--mtu", "9000"],
            &["link", "up", name, "--ifname", "sub0", "--vlan", "35", "--dry-run"],
            &["link", "up", name, "--ifname", "sub0", "--vlan", "35", "--mtu", "9000"],
            &["link", "up", name, "--ifname", "sub0", "--vlan", "35", "--daemon"],
            &["link", "check", "sub0", "--vlan", "36"],
            &["link", "status", "--interval", "0"],
            &["link", "down", "sub0"],
            &["link", "status", name],
            &["pppoe", "connect", name, "--dry-run"],
            &["pppoe", "discover", name, "--seconds", "1"],
            &["pppoe", "serve", name, "--secrets", &secrets, "--dry-run"],
            &["pppoe", "serve", name, "--secrets", &secrets, "--daemon"],
            &["pppoe", "serve", name, "--secrets", &secrets],
            &["pppoe", "status"],
            &["pppoe", "status", name],
            &["pppoe", "sessions", name],
            &["pppoe", "sessions", "no-such"],
            &["pppoe", "drain", name],
            &["pppoe", "disconnect", "--concentrator", name, "--user", name],
            &["pppoe", "disconnect", "--concentrator", name],
            &["pppoe", "disconnect", name],
        ];
        for arguments in commands {
            let output = run(&namespace, &state, arguments);
            let text = [output.stdout, output.stderr].concat();
            let text = String::from_utf8(text).expect("UTF-8");
            let wrong = problems(&text);
            assert!(wrong.is_empty(), "{arguments:?}:\n{}\n{text}", wrong.join("\n"));
            assert!(!text.contains("panicked"), "{arguments:?}: {text}");
        }
        let mut explain = namespace.command(BINARY);
        let output = explain.args(["explain", "/dev/null", "--nic", name]).output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(problems(&text), [""; 0], "{text}");
    }
}
