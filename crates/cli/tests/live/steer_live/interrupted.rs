//! A signal, or an output that takes nothing, in the midst of `up`: everything is taken back.

use crate::steer_machine::{Machine, WAN, binary, code, said};
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use testkit::{program, require, wait_for, wait_until};

/// `rxlane steer …` with `--disable-rxvlan`, once it has made the first change, after which nothing may stay.
fn begun(machine: &Machine, arguments: &[&str]) -> Child {
    let child = machine.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.expect("it starts");
    let until = Instant::now() + testkit::PATIENCE;
    while !machine.features().contains("rx-vlan-offload: off") {
        assert!(child.try_wait().expect("a status").is_none() && Instant::now() < until, "no change");
    }
    child
}

/// Whatever the moment, `up` was interrupted and nothing is left, or it had ended before.
#[test]
fn a_signal_in_the_midst_of_up_leaves_nothing() {
    let Some(machine) = Machine::new() else { return };
    let before = machine.state();
    for (signal, wait) in [("INT", 0), ("TERM", 10), ("HUP", 30), ("TERM", 60)] {
        // Under nohup it is ignored by whatever is started, and stays so.
        if signal == "HUP" && hang_up_is_ignored() {
            continue;
        }
        let arguments = ["up", WAN, "--seconds", "0", "--foreground", "--disable-rxvlan"];
        let mut child = begun(&machine, &arguments);
        thread::sleep(Duration::from_millis(wait));
        machine.signal(&child, signal);
        wait_for(format!("{signal} after {wait} ms ends it"), || child.try_wait().expect("a status"));
        let ended = child.wait_with_output().expect("an end");
        let said = said(&ended);
        match ended.status.code() {
            Some(0) => assert!(said.contains("no longer steered"), "{signal}: {said}"),
            Some(1) => assert!(said.contains("interrupted by SIG"), "{signal}: {said}"),
            _ => panic!("{signal}: {ended:?}"),
        }
        assert_eq!(machine.state(), before, "{signal} after {wait} ms");
        machine.assert_nothing_left();
    }
}

/// One signal makes the verifier give up, and the next one its repetition.
#[test]
fn signals_that_come_again_and_again_are_one() {
    let Some(machine) = Machine::new() else { return };
    let before = machine.state();
    let arguments = ["up", WAN, "--seconds", "0", "--disable-rxvlan"];
    let mut child = begun(&machine, &arguments);
    wait_for("its end", || {
        let ended = child.try_wait().expect("a status");
        if ended.is_none() {
            machine.signal(&child, "TERM");
        }
        ended
    });
    let ended = child.wait_with_output().expect("an end");
    let said = said(&ended);
    assert_eq!((code(&ended), said.contains("interrupted by SIGTERM")), (1, true), "{said}");
    assert_eq!(machine.state(), before);
    machine.assert_nothing_left();
}

/// Where the mount namespace of process 1 may not be looked at, that of an ancestor is where the pins are.
#[test]
fn what_stays_takes_steering_away_when_whoever_started_it_has_ended() {
    let Some(machine) = Machine::new() else { return };
    let Some(_) = require("setpriv", program("setpriv")) else { return };
    let before = machine.state();
    let output = machine.folder().join("output");
    let script = "ip netns exec $0 \"$@\" </dev/null >$output 2>&1 & echo $!
        for each in $(seq 600); do grep -q 'is steered in' $output && exit 0; sleep 0.1; done; cat $output; exit 9";
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-sys_ptrace", "sh", "-c", script, machine.namespace()]).arg(binary());
    command.args(["steer", "up", WAN, "--seconds", "0", "--foreground", "--journal", machine.journal()]);
    let started = command.env("output", &output).stdin(Stdio::null()).output().expect("it starts");
    assert_eq!(code(&started), 0, "{}", said(&started));
    let pid = said(&started).trim().to_owned();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill").success());
    wait_until("its end", || !Path::new("/proc").join(&pid).join("exe").exists());
    let told = std::fs::read_to_string(&output).expect("its output");
    assert!(told.contains("no longer steered"), "{told}");
    assert_eq!(machine.state(), before);
    machine.assert_nothing_left();
}

/// Whether this process ignores SIGHUP, and so what it starts.
fn hang_up_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("SigIgn");
    u64::from_str_radix(ignored.trim(), 16).expect("a mask") & 1 != 0
}

#[test]
fn what_cannot_be_told_is_not_done() {
    let Some(machine) = Machine::new() else { return };
    let before = machine.state();
    let full = File::options().write(true).open("/dev/full").expect("/dev/full");
    let up = machine
        .command(&["up", WAN, "--seconds", "0", "--disable-rxvlan", "--rebalance"])
        .stdout(full)
        .stderr(Stdio::piped())
        .spawn()
        .and_then(|child| child.wait_with_output())
        .expect("it starts");
    assert_eq!(code(&up), 3, "{}", said(&up));
    assert_eq!(machine.state(), before);
    machine.assert_nothing_left();
}
