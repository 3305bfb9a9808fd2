//! The collector's filter in awk and `redact` in Rust take out the same.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use rxlane_host::{collector, redact};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use testkit::{program, require};

/// Lines through the script's own filter, where the program `awk` is that one.
fn filtered(awk: &Path, lines: &[String]) -> Vec<String> {
    let (_, from) = collector::SCRIPT.split_once("\nredact() {").expect("the filter");
    let (filter, _) = from.split_once("\n}\n").expect("its end");
    let folder = tempfile::tempdir().expect("a folder");
    std::os::unix::fs::symlink(awk, folder.path().join("awk")).expect("a link");
    let script =
        format!("LC_ALL=C; export LC_ALL; host_name=nowhere-at-all\nredact() {{{filter}\n}}\nredact");
    let mut shell = Command::new("/bin/sh")
        .args(["-c", &script])
        .env("PATH", folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("sh");
    let mut input = shell.stdin.take().expect("standard input");
    let text = lines.join("\n") + "\n";
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = shell.wait_with_output().expect("sh");
    writer.join().expect("a thread").expect("written");
    assert!(output.status.success(), "{} failed", awk.display());
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.lines().map(str::to_owned).collect()
}

/// What a line of addresses, near-addresses and other text is made of.
fn pieces() -> impl Strategy<Value = String> {
    prop_oneof![
        "[0-9a-f]{2}(:[0-9a-f]{2}){3,8}",
        "[0-9a-fA-F]{0,4}(:[0-9a-fA-F]{0,4}){1,9}",
        "[0-9]{1,3}(\\.[0-9]{1,3}){2,5}",
        "[0-9a-f]{1,2}([-.][0-9a-f]{1,2}){4,6}",
        "[0-9a-f]{2}(-[0-9a-f]{2}){5}",
        "[0-9a-f]{4}\\.[0-9a-f]{4}\\.[0-9a-f]{4}",
        "(en|wl|ww)x[0-9a-f]{11,13}",
        "(portid|switchid|link-netns) [0-9a-fg]{1,6}",
        "(version|firmware-version|fw|ver|Linux|rev)[:= .-]{1,3}",
        "[0-9a-fg.:]{1,24}",
        "[a-z0-9_]{1,12}: [0-9]{1,20}",
        "[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\\.[0-7]",
        "[ /=,%()-]{1,3}",
        "é",
    ]
}

#[test]
fn awk_and_rust_take_out_the_same() {
    let mut runner = TestRunner::deterministic();
    let strategy = prop::collection::vec(pieces(), 1..6).prop_map(|pieces| format!("_{}", pieces.concat()));
    let lines: Vec<String> =
        (0..5_000).map(|_| strategy.new_tree(&mut runner).expect("a line").current()).collect();
    let expected: Vec<_> = lines.iter().map(|line| redact::line(line)).collect();
    let changed = expected.iter().zip(&lines).filter(|(after, before)| after != before).count();
    assert!(changed > lines.len() / 4, "the lines should have addresses in them, and {changed} have");
    // The awk of this machine, and those of routers and of other systems.
    for name in ["awk", "busybox", "mawk", "gawk", "original-awk"] {
        let Some(awk) = require(name, program(name)) else { continue };
        let result = filtered(&awk, &lines);
        assert_eq!(result.len(), lines.len(), "{name}");
        for ((before, expected), result) in lines.iter().zip(&expected).zip(&result) {
            assert_eq!(result, expected, "{name}: {before}");
        }
    }
}
