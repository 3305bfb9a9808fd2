//! `rxlane envelope` as far as it takes neither privilege nor a device: usage, errors, what any process may know.

use crate::run;
use serde_json::Value;
use std::process::Output;

fn rxlane(arguments: &[&str]) -> Output {
    let mut command = run::rxlane();
    command.arg("envelope").args(arguments).env("COLUMNS", "80").output().expect("it starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn wrong_usage_is_exit_2_and_says_what_is_wrong() {
    let cases: [(&[&str], &str); 8] = [
        (&["up", "lo"], "--header <N>"),
        (&["up", "lo", "--header", "3"], "3 is not in 4..=482"),
        (&["up", "lo", "--header", "483"], "483 is not in 4..=482"),
        (&["up", "lo", "--header", "eight"], "invalid digit"),
        (&["up", "lo", "--header=-8"], "-8 is not in 4..=482"),
        (&["up", "lo", "--header", "8", "--mode", "fast"], "native, generic"),
        (&["up", "eth0;reboot x", "--header", "8"], "is no name of an interface"),
        (&["up", "lo", "--header", "8", "--dry-run"], "lo is the loopback"),
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
    let commands: [&[&str]; 3] = [&["up", "loo", "--header", "8"], &["status", "loo"], &["down", "loo"]];
    for command in commands {
        let output = rxlane(command);
        let said = stderr(&output);
        // Without root `down` may not look for what is left.
        if output.status.code() == Some(3) && command[0] == "down" {
            assert!(said.contains("root") && !rustix::process::geteuid().is_root(), "{said}");
            continue;
        }
        assert_eq!(output.status.code(), Some(2), "{command:?}: {said}");
        assert!(
            said.contains("no interface `loo`") && said.contains("near it are lo"),
            "{command:?}: {said}"
        );
        assert_eq!(said.lines().count(), 1, "{command:?}: {said}");
    }
}

#[test]
fn an_interface_without_one_is_off() {
    let output = rxlane(&["status", "lo", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let status: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        (&status["schema"], &status["state"]),
        (&"rxlane.envelope/1".into(), &"off".into()),
        "{status:#}"
    );
    assert_eq!(status["passed"].as_array().map(Vec::len), Some(0));
    let text = rxlane(&["status", "lo"]);
    assert_eq!(String::from_utf8_lossy(&text.stdout), "lo: no envelope\n");
}
