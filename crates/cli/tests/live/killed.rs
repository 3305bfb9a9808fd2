//! SIGKILL after every step at which the state on the disk changes, of every kind that is brought up: the next command undoes
//! all that was done.

use crate::envelope_machine;
use crate::link_live::ends::{Ends, LINK, Side};
use crate::pppoe_live::line::{Line, WAN};
use crate::steer_machine::{self, code, said};
use std::fs;
use std::process::{Command, Output};
use testkit::{program, require, wait_until};

/// A debug build kills itself behind the step of this number.
const STEP: &str = "RXLANE_KILL_AT_STEP";
/// More steps than anything has.
const MOST: u32 = 100;

/// Runs a command for every step at which it can be killed, until it is not killed any more; `check` sees after each kill that the
/// next command undoes everything. Gives the number of steps.
fn at_every_step(command: impl Fn() -> Command, check: impl Fn(u32)) -> u32 {
    for step in 1..MOST {
        let output = command().env(STEP, step.to_string()).output().expect("it starts");
        if !was_killed(&output) {
            assert_eq!(code(&output), 0, "step {step}: {}", said(&output));
            return step - 1;
        }
        check(step);
    }
    panic!("it does not come to its end");
}

/// Itself, or the daemon that it started.
fn was_killed(output: &Output) -> bool {
    output.status.code().is_none() || said(output).contains("signal 9 ended the daemon")
}

/// Whether it says so, wherever a line is broken.
fn is_recovered(output: &Output) -> bool {
    let words: Vec<String> = said(output).split_whitespace().map(str::to_owned).collect();
    words.join(" ").contains("what it did is undone")
}

#[track_caller]
fn succeeds(output: &Output) {
    assert_eq!(code(output), 0, "{}", said(output));
}

#[test]
fn steering_that_was_killed_at_any_step_is_undone() {
    let Some(machine) = steer_machine::Machine::new() else { return };
    let before = machine.state();
    let up = ["up", steer_machine::WAN, "--seconds", "0", "--disable-rxvlan"];
    let down = ["down", steer_machine::WAN];
    let is_undone = || {
        assert_eq!(machine.state(), before);
        machine.assert_nothing_left();
    };
    let steps = at_every_step(
        || machine.command(&up),
        |step| {
            // Either command recovers.
            if step % 2 == 0 {
                let again = machine.run(&up);
                succeeds(&again);
                assert!(is_recovered(&again), "step {step}: {}", said(&again));
            }
            succeeds(&machine.run(&down));
            is_undone();
        },
    );
    assert!(steps >= 8, "{steps} steps of up");
    succeeds(&machine.run(&down));
    let steps = at_every_step(
        || {
            succeeds(&machine.run(&up));
            machine.command(&down)
        },
        |_| {
            succeeds(&machine.run(&down));
            is_undone();
        },
    );
    assert!(steps >= 2, "{steps} steps of down");
    is_undone();
}

#[test]
fn an_envelope_that_was_killed_at_any_step_is_undone() {
    let Some(machine) = envelope_machine::Machine::new() else { return };
    let before = machine.state();
    let command = |arguments: &[&str]| machine.command_in(&machine.namespace, "envelope", arguments);
    let up = ["up", envelope_machine::WAN, "--header", "8"];
    let down = ["down", envelope_machine::WAN];
    let is_undone = || {
        assert_eq!(machine.state(), before);
        machine.assert_nothing_left();
    };
    let steps = at_every_step(
        || command(&up),
        |step| {
            if step % 2 == 0 {
                let again = machine.run(&up);
                succeeds(&again);
                assert!(is_recovered(&again), "step {step}: {}", said(&again));
            }
            succeeds(&machine.run(&down));
            is_undone();
        },
    );
    assert!(steps >= 6, "{steps} steps of up");
    succeeds(&machine.run(&down));
    let steps = at_every_step(
        || {
            succeeds(&machine.run(&up));
            command(&down)
        },
        |_| {
            // It may have come to its end but for the lock.
            assert!((0..2).contains(&code(&machine.run(&down))));
            is_undone();
        },
    );
    assert!(steps >= 1, "{steps} steps of down");
    succeeds(&machine.run(&up));
    succeeds(&machine.run(&down));
    is_undone();
}

#[test]
fn a_link_that_was_killed_at_any_step_leaves_nothing() {
    let Some(ends) = Ends::new(1516) else { return };
    let steps = at_every_step(
        || ends.up_command(Side::Near, "q:35", &["--daemon"]),
        |_| {
            wait_until("the interface goes", || !ends.has(Side::Near, LINK));
            assert_eq!(code(&ends.rxlane(Side::Near, &["status", LINK])), 1);
            ends.assert_nothing_left();
        },
    );
    assert!(steps >= 3, "{steps} steps");
    // It is killed when it is about to remove its socket.
    wait_until("the link ends", || {
        ends.rxlane(Side::Near, &["down", LINK]);
        !ends.has(Side::Near, LINK)
    });
    assert_eq!(code(&ends.rxlane(Side::Near, &["status", LINK])), 1);
    ends.assert_nothing_left();
}

#[test]
fn a_concentrator_and_a_session_that_were_killed_at_any_step_leave_nothing() {
    let Some(line) = Line::new() else { return };
    let Some(unshare) = require("unshare", program("unshare")) else { return };
    let left = || fs::read_dir(line.path("state")).map(Iterator::count).unwrap_or_default();
    let steps = at_every_step(
        || line.serve_command(&["--daemon", "--dns", "10.64.0.53"]),
        |_| {
            assert_eq!(code(&line.far(&["sessions", WAN])), 1);
            // A killed one leaves the file of its lock, which keeps nobody away.
            line.serve(&[]).interrupted();
            assert_eq!(left(), 0);
        },
    );
    assert!(steps >= 3, "{steps} steps of a concentrator");
    line.far(&["disconnect", "--concentrator", WAN]);
    let serving = line.serve(&["--dns", "10.64.0.53"]);
    // A folder /etc that nobody else sees, whose file has to be as before when the session has ended, whatever ended it.
    let etc = line.path("etc");
    fs::create_dir(&etc).expect("a folder");
    let file = etc.join("resolv.conf");
    let former = "nameserver 192.0.2.1\n";
    fs::write(&file, former).expect("written");
    let hidden = |arguments: &[&str]| {
        let mut command = line.near.command(unshare.clone());
        let script = "mount --bind \"$0\" /etc && exec \"$@\"";
        command.args(["--mount", "sh", "-c", script]).arg(&etc).arg(env!("CARGO_BIN_EXE_rxlane"));
        command.arg("pppoe").args(arguments).args(["--state", &line.text("state")]);
        command
    };
    let password = line.text("alice");
    let connect = ["connect", WAN, "--dns", "--user", "alice", "--password-file", &password, "--daemon"];
    let text = || fs::read_to_string(&file).expect("text");
    let own = line.path("state");
    let own = || {
        let entries = fs::read_dir(&own).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names.filter(|name| !name.starts_with("concentrator-")).collect::<Vec<_>>()
    };
    let mut changed = 0;
    for step in 1..MOST {
        let output = hidden(&connect).env(STEP, step.to_string()).output().expect("it starts");
        let status = || hidden(&["status", "ppp0"]).output().expect("it starts");
        if !was_killed(&output) {
            succeeds(&output);
            // A later step is in a thread that takes the name servers, or at the end.
            wait_until("it is killed, or has the name servers", || {
                code(&status()) != 0 || text().contains("10.64.0.53")
            });
            let ended = hidden(&["disconnect", "ppp0"]).output().expect("it starts");
            // One that is killed at the very end has answered before.
            if code(&ended) == 0 && own().is_empty() {
                break;
            }
        }
        changed += u32::from(text() != former);
        wait_until("it is recognised as killed", || {
            code(&status()) == 1 && text() == former && own().is_empty()
        });
    }
    assert!(changed > 0, "no kill came while the file was changed");
    assert_eq!((text().as_str(), own()), (former, Vec::new()));
    serving.interrupted();
}
