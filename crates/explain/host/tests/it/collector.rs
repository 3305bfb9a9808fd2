//! The collector script: on this Linux under every shell there is, and on a FreeBSD and a NetBSD whose programs
//! answer as the systems' manual pages and sources say (`collector/*.txt`, written from those, addresses from the ranges
//! for documentation).

mod machine;

use crate::facts::facts;
use crate::read;
use machine::{Machine, output_of, prompts};
use rxlane_host::collector::SCRIPT;
use rxlane_host::{Delta, System};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use testkit::{program, require};

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn complaint(output: &Output, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

fn freebsd() -> Machine {
    Machine::new("FreeBSD", "14.1-RELEASE-p5", include_str!("collector/freebsd.txt"))
}

fn netbsd() -> Machine {
    Machine::new("NetBSD", "10.0", include_str!("collector/netbsd.txt"))
}

/// Nobody's addresses, names or secrets are in `bundle`.
fn assert_redacted(bundle: &str) {
    const SECRETS: &str =
        "5e:00:53;5eff;192.0.2;fe80;Our ISP;Family Doe;A1B2C3;gateway;example.net;diary-of-jane;Jane;sshd";
    for secret in SECRETS.split(';') {
        assert!(!bundle.contains(secret), "{secret} is in:\n{bundle}");
    }
}

/// `collector/SYSTEM.bundle.txt` has the bundle without its times, `---`, and the facts that are read from it.
/// `RXLANE_RECORD=1 cargo test` writes them anew, to be read in the diff.
#[test]
fn bsds_give_their_bundles_without_addresses() {
    for (name, machine, seconds) in [("freebsd", freebsd(), "0"), ("netbsd", netbsd(), "1")] {
        let bundle = text(&machine.collect(&["-s", seconds]));
        assert_redacted(&bundle);
        let (mut times, mut said) = (Vec::new(), String::new());
        for line in bundle.lines() {
            let sample = line.split_once(" at ").filter(|_| line.starts_with("# sample "));
            times.extend(sample.map(|(_, at)| at.parse::<f64>().expect("seconds")));
            said.extend([sample.map_or(line, |(sample, _)| sample), "\n"]);
        }
        assert!(times.is_sorted_by(|first, second| second - first >= 1.0), "{times:?}");
        let facts = facts(&read(&bundle)).into_iter().filter(|fact| !fact.starts_with("interval: "));
        said.extend(["---\n".to_owned()].into_iter().chain(facts.map(|fact| fact + "\n")));
        let file = format!("{}/tests/it/collector/{name}.bundle.txt", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("RXLANE_RECORD").is_some() {
            fs::write(&file, &said).expect("written");
        }
        assert_eq!(said, fs::read_to_string(&file).expect("the recorded bundle"), "{name}");
    }
}

#[test]
fn what_this_linux_says_is_understood() {
    let output =
        Command::new("/bin/sh").args(["-c", SCRIPT, "collector.sh", "-s", "1"]).output().expect("sh");
    let snapshot = read(&text(&output));
    assert_eq!(snapshot.system.map(|fact| fact.value), Some(System::Linux));
    assert!(snapshot.interval >= Some(Duration::from_secs(1)), "{:?}", snapshot.interval);
    assert!(!snapshot.interrupts.is_empty());
    let mut counters = snapshot.softirqs.values().flat_map(|cpus| cpus.values()).peekable();
    assert!(counters.peek().is_some());
    assert!(counters.all(|counter| counter.delta() != Delta::OneSample));
}

/// A machine that has rxlane, with a fast path up.
#[test]
fn a_fast_path_is_in_the_bundle() {
    let folder = tempfile::tempdir().expect("a folder");
    let status = "{\"schema\": \"rxlane.fastpath/1\",\n  \"ports\": [\"lan0\", \"wan0\"],\n  \"mode\": \"native\",\n  \
                  \"packets\": {\"fast\": 7, \"slow\": {\"no-entry\": 2}}\n}";
    let words = "[ \"$*\" = 'fastpath status --json' ] || exit 1";
    let script = format!("#!/bin/sh\n{words}\ncat <<'END'\n{status}\nEND\n");
    let program = folder.path().join("rxlane");
    fs::write(&program, script).expect("a script");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("executable");
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("/bin/sh");
    command.args(["-c", SCRIPT, "collector.sh", "-s", "0"]).env("PATH", path);
    let snapshot = read(&text(&command.output().expect("sh")));
    let fast_path = snapshot.fast_path.expect("a fast path");
    assert_eq!((fast_path.fast.value(), fast_path.slow["no-entry"].value()), (7, 2));
    assert_eq!(fast_path.ports.value, ["lan0", "wan0"]);
}

#[test]
fn freebsd_says_what_it_cannot_read_and_goes_on() {
    let machine = freebsd();
    fs::remove_file(machine.folder().join("pciconf")).expect("it was there");
    machine.program("dmesg", &[]);
    let bundle = text(&machine.collect(&["-s", "0", "vlan7"]));
    assert_eq!(output_of(&bundle, "pciconf -lv"), ["# not read: pciconf is not installed"]);
    assert_eq!(output_of(&bundle, "dmesg"), ["# not read: dmesg: : unknown"]);
    // The parent of the VLAN device named is looked at, too.
    assert!(prompts(&bundle).contains(&"sysctl dev.igb.0"), "{bundle}");
    assert!(bundle.ends_with("\n# end\n"), "{bundle}");
}

#[test]
fn a_wrong_call_prints_no_bundle() {
    let machine = freebsd();
    for (arguments, expected) in [
        (&["em7"][..], "there is no interface em7; there are: igb0 lo0"),
        (&["$(id)"], "not the name of an interface"),
        (&["-s", "1.5"], "whole seconds"),
        (&["-x"], "Usage: sh collector.sh"),
    ] {
        let complaint = complaint(&machine.collect(arguments), 2);
        assert!(complaint.contains(expected), "{arguments:?}: {complaint}");
    }
    // A name is no pattern for files.
    machine.program("ifconfig", &[("-l", "igb0 * [a-z]* lo0")]);
    assert!(complaint(&machine.collect(&["em7"]), 2).contains("there are: igb0 * [a-z]* lo0"));
    assert!(complaint(&Machine::new("Plan9", "4", "").collect(&[]), 3).contains("Plan9 is not known here"));
    fs::remove_file(machine.folder().join("awk")).expect("it was there");
    assert!(complaint(&machine.collect(&[]), 3).contains("nothing could be redacted"));
    assert!(
        text(&machine.collect(&["-h"])).starts_with("Usage: sh collector.sh [-s SECONDS] [INTERFACE...]")
    );
}

#[test]
fn zeros_before_the_seconds_make_no_octal_number() {
    let machine = netbsd();
    machine.program("sleep", &[("1", ""), ("0.05", "")]);
    let output = machine.collect(&["-s", "08"]);
    let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(complaints.contains("waiting 8 s"), "{complaints}");
    assert!(text(&output).contains("# sample 2 at"), "{complaints}");
}

#[test]
fn other_names_of_an_interface_are_left_out() {
    let function = SCRIPT.lines().find(|line| line.starts_with("without_altnames() {")).expect("one line");
    let link = "2: eth0: <UP> mtu 1500\n    link/ether (mac)\n    altname enx00005e005301\n";
    let program = format!("{function}\nwithout_altnames <<'END'\n{link}END\n");
    let output = Command::new("sh").args(["-c", &program]).output().expect("sh");
    assert_eq!(text(&output), "2: eth0: <UP> mtu 1500\n    link/ether (mac)\n");
}

/// The shells of Debian, of routers, of BSDs' kin; each runs a file.
fn shells() -> Vec<Vec<String>> {
    let known = ["dash", "bash --posix", "busybox ash", "mksh", "yash -o posix"];
    let commands = known.map(|command| command.split(' ').map(str::to_owned).collect::<Vec<_>>());
    let found = commands.into_iter().filter_map(|mut command| {
        command[0] = require(&command[0], program(&command[0]))?.to_string_lossy().into_owned();
        Some(command)
    });
    found.collect()
}

fn addresses_of_this_machine() -> Vec<String> {
    let folder = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    folder
        .filter_map(|entry| fs::read_to_string(entry.path().join("address")).ok())
        .map(|address| address.trim().to_owned())
        .filter(|address| address.len() == 17)
        .collect()
}

#[test]
fn this_linux_gives_the_same_bundle_under_every_shell() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("collector.sh");
    fs::write(&file, SCRIPT).expect("the script");
    let mut first: Option<Vec<String>> = None;
    for shell in shells() {
        let run = |arguments: &[&str]| {
            Command::new(&shell[0]).args(&shell[1..]).args(arguments).output().expect("a shell")
        };
        let path = file.to_str().expect("UTF-8");
        assert!(run(&["-n", path]).status.success(), "{shell:?}");
        let output = run(&[path, "-s", "1"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.lines().all(|line| line.starts_with("collector: ")), "{shell:?}: {said}");
        let bundle = text(&output);
        assert!(bundle.starts_with("# rxlane bundle 1\n") && bundle.ends_with("\n# end\n"), "{bundle}");
        let samples = bundle.lines().filter(|line| line.starts_with("# sample ")).count();
        assert_eq!(samples, 2, "{bundle}");
        for address in addresses_of_this_machine() {
            assert!(!bundle.to_lowercase().contains(&address), "{address} is in:\n{bundle}");
        }
        let interrupts = prompts(&bundle).iter().filter(|prompt| **prompt == "cat /proc/interrupts").count();
        assert_eq!(interrupts, 2, "{bundle}");
        // BusyBox's shell prefers its own ip to the one on the path.
        if !shell.contains(&"ash".to_owned()) {
            let prompts: Vec<String> = prompts(&bundle).into_iter().map(str::to_owned).collect();
            assert_eq!(*first.get_or_insert_with(|| prompts.clone()), prompts, "{shell:?}");
        }
    }
}

#[test]
fn the_script_may_come_by_standard_input() {
    let mut shell = Command::new("/bin/sh")
        .args(["-s", "--", "-s", "0", "lo"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("sh");
    let mut input = shell.stdin.take().expect("standard input");
    input.write_all(SCRIPT.as_bytes()).expect("the script");
    drop(input);
    let bundle = text(&shell.wait_with_output().expect("sh"));
    assert!(
        bundle.ends_with("\n# end\n") && prompts(&bundle).contains(&"cat /sys/class/net/lo/mtu"),
        "{bundle}"
    );
}

/// A router whose ip and ps are BusyBox's, without ethtool; interfaces are those of the machine the test runs on.
#[test]
fn a_linux_without_ethtool_says_so_and_collects_the_rest() {
    let answers = "$ ip link
5: wan: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1508 qdisc mq qlen 1000
    link/ether 00:00:5e:00:53:01 brd ff:ff:ff:ff:ff:ff
    alias Family Doe
$ dmesg
[    5.1] mtk_soc_eth 15100000.ethernet lo: Link is Up - 1Gbps/Full - flow control rx/tx
[    6.0] wifi: reset of diary-of-jane
[    7.0] eth9: partial checksum but proto=88a8!
";
    let machine = Machine::new("Linux", "6.6.73", answers);
    machine.program("sysctl", &[]);
    let bundle = text(&machine.collect(&["-s", "0", "lo"]));
    assert_redacted(&bundle);
    assert_eq!(
        output_of(&bundle, "ethtool"),
        ["# not read: ethtool is not installed (opkg install ethtool, apt install ethtool)"]
    );
    assert_eq!(output_of(&bundle, "ip link").last(), Some(&"    link/ether (mac) brd (mac)"));
    let log = output_of(&bundle, "dmesg");
    assert!(
        matches!(log[..], [up, partial] if up.contains("Link is Up") && partial.contains("proto=88a8")),
        "{log:?}"
    );
    assert!(!output_of(&bundle, "cat /proc/interrupts").is_empty(), "{bundle}");
    assert!(!output_of(&bundle, "cat /proc/cpuinfo").is_empty(), "{bundle}");
    assert_eq!(output_of(&bundle, "ps -eo pid,pcpu,comm")[0], "    PID %CPU COMMAND");
}

#[test]
fn an_output_longer_than_an_argument_is_read_under_every_shell() {
    let machine = Machine::new("Linux", "6.6.73", "");
    // Linux gives a program no argument of more than 128 KiB (MAX_ARG_STRLEN).
    let log: String =
        (0..4096).map(|n| format!("[ {n}.0] eth0: partial checksum but proto=88a8, {n:030}\n")).collect();
    assert!(log.len() > 2 << 17);
    machine.program("dmesg", &[("", &log)]);
    // BusyBox's shell prefers its own dmesg to the one on the path.
    for shell in shells().into_iter().filter(|shell| !shell.contains(&"ash".to_owned())) {
        let output = machine.collector_under(&shell, &["-s", "0", "lo"]).output().expect("a shell");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.lines().all(|line| line.starts_with("collector: ")), "{shell:?}: {said}");
        let bundle = text(&output);
        let last = output_of(&bundle, "dmesg").last().map(|line| line.to_string()).unwrap_or_default();
        assert!(last.starts_with("[ 4095.0] "), "{shell:?}: {last}");
    }
}

#[test]
fn shellcheck_finds_nothing() {
    let Some(shellcheck) = require("shellcheck", program("shellcheck")) else { return };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/collector/collector.sh");
    let output = Command::new(shellcheck).args(["-s", "sh"]).arg(script).output().expect("shellcheck");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn ended_in_the_middle_it_leaves_nothing_behind() {
    let machine = netbsd();
    let mut child =
        machine.collector(&["-s", "60"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("sh");
    let complaints = BufReader::new(child.stderr.take().expect("standard error"));
    let waits = complaints.lines().map_while(Result::ok).any(|line| line.contains("waiting"));
    assert!(waits, "it never came to wait");
    child.kill().expect("it runs");
    child.wait().expect("it ended");
    // Standard output ends with the last process that has it: the sleep of a minute, were it left.
    let killed = Instant::now();
    let mut rest = String::new();
    child.stdout.take().expect("standard output").read_to_string(&mut rest).expect("UTF-8");
    assert!(killed.elapsed() < Duration::from_secs(20), "it went on for {:?}", killed.elapsed());
    assert!(!rest.contains("# end"), "{rest}");
}
