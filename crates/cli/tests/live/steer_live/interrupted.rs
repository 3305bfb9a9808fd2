//! A signal, or an output that takes nothing, in the midst of `up`: everything is taken back.

use crate::machine::{Machine, SIGNS, WAN, signal};
use crate::run::{BINARY, Ended};
use std::path::Path;
use std::process::{Command, Stdio};
use testkit::{program, require, wait_for, wait_until};

const UP: [&str; 5] = ["up", WAN, "--seconds", "0", "--disable-rxvlan"];

/// Whatever the moment, `up` was interrupted and nothing is left, or it had ended before.
#[test]
fn a_signal_in_the_midst_of_up_leaves_nothing() {
    let Some(machine) = Machine::steer() else { return };
    let before = machine.state();
    for (name, sign) in [("INT", SIGNS[1]), ("TERM", SIGNS[2]), ("HUP", SIGNS[1]), ("TERM", SIGNS[3])] {
        // Under nohup it is ignored by whatever is started, and stays so.
        if name == "HUP" && hang_up_is_ignored() {
            continue;
        }
        let child = machine.start_until(&[&UP[..], &["--foreground"]].concat(), sign);
        signal(child.id(), name);
        let ended = child.wait_with_output().expect("an end");
        match ended.code() {
            0 => ended.says("no longer steered"),
            _ => ended.is(&(name, sign), 1, "interrupted by SIG"),
        };
        assert_eq!(machine.state(), before, "{name} after {sign}");
        machine.assert_nothing_left();
    }
}

/// One signal makes the verifier give up, and the next one its repetition.
#[test]
fn signals_that_come_again_and_again_are_one() {
    let Some(machine) = Machine::steer() else { return };
    let before = machine.state();
    let mut child = machine.start_until(&UP, SIGNS[1]);
    wait_for("its end", || {
        let ended = child.try_wait().expect("a status");
        if ended.is_none() {
            signal(child.id(), "TERM");
        }
        ended
    });
    child.wait_with_output().expect("an end").ends(1).says("interrupted by SIGTERM");
    assert_eq!(machine.state(), before);
    machine.assert_nothing_left();
}

/// Where the mount namespace of process 1 may not be looked at, that of an ancestor is where the pins are.
#[test]
fn the_daemon_takes_steering_away_when_whoever_started_it_has_ended() {
    let Some(machine) = Machine::steer() else { return };
    let Some(_) = require("setpriv", program("setpriv")) else { return };
    let before = machine.state();
    let output = machine.folder().join("output");
    let script = "ip netns exec $0 \"$@\" </dev/null >$output 2>&1 & echo $!
        for each in $(seq 600); do grep -q 'is steered in' $output && exit 0; sleep 0.1; done; cat $output; exit 9";
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-sys_ptrace", "sh", "-c", script, machine.namespace.name()]).arg(BINARY);
    command.args(["steer", "up", WAN, "--seconds", "0", "--foreground", "--journal", machine.journal()]);
    let started = command.env("output", &output).stdin(Stdio::null()).output().expect("it starts");
    started.ends(0);
    let pid = started.text().trim().to_owned();
    signal(&pid, "TERM");
    wait_until("its end", || !Path::new("/proc").join(&pid).join("exe").exists());
    let text = std::fs::read_to_string(&output).expect("its output");
    assert!(text.contains("no longer steered"), "{text}");
    assert_eq!(machine.state(), before);
    machine.assert_nothing_left();
}

/// Whether this process ignores SIGHUP, and so what it starts.
fn hang_up_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("SigIgn");
    u64::from_str_radix(ignored.trim(), 16).expect("a mask") & 1 != 0
}
