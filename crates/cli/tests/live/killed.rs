//! SIGKILL after every step at which the state on the disk changes, of every kind that is brought up: the next command undoes
//! all that was done.

use crate::link_live::ends::{Ends, LINK, Side};
use crate::machine::{Machine, WAN};
use crate::pppoe_live::line::Line;
use crate::run::{BINARY, Ended};
use std::fs;
use std::process::{Command, Output};
use testkit::{program, require, wait_until};

/// A debug build kills itself behind the step of this number.
pub const STEP: &str = "RXLANE_KILL_AT_STEP";
/// More steps than anything has.
const MOST: u32 = 100;

/// Runs a command for every step at which it can be killed, until it is not killed any more; `check` sees after each kill that the
/// next command undoes everything. Gives the number of steps.
fn at_every_step(command: impl Fn() -> Command, check: impl Fn(u32)) -> u32 {
    for step in 1..MOST {
        let output = command().env(STEP, step.to_string()).output().expect("it starts");
        if !was_killed(&output) {
            output.is(&step, 0, "");
            return step - 1;
        }
        check(step);
    }
    panic!("it does not come to its end");
}

/// Itself, or the daemon that it started.
fn was_killed(output: &Output) -> bool {
    output.status.code().is_none() || output.text().contains("signal 9 ended the daemon")
}

/// `up`, and `down` of what is up, killed at every step, of which there are that many at least.
fn assert_undone(machine: &Machine, up: &[&str], steps: [u32; 2]) {
    let before = machine.state();
    let down = ["down", WAN];
    let is_undone = || {
        assert_eq!(machine.state(), before);
        machine.assert_nothing_left();
    };
    let of_up = at_every_step(
        || machine.command(up),
        |step| {
            // Either command recovers.
            if step % 2 == 0 {
                machine.run(up).is(&step, 0, "what it did is undone");
            }
            machine.run(&down).ends(0);
            is_undone();
        },
    );
    machine.run(&down).ends(0);
    let of_down = at_every_step(
        || {
            machine.run(up).ends(0);
            machine.command(&down)
        },
        |_| {
            // It may have come to its end but for the lock.
            assert!((0..2).contains(&machine.run(&down).code()));
            is_undone();
        },
    );
    assert!(of_up >= steps[0] && of_down >= steps[1], "{of_up} steps of up, {of_down} of down");
    is_undone();
}

/// An output that takes nothing.
#[test]
fn what_cannot_be_reported_is_not_done() {
    for machine in [Machine::steer(), Machine::envelope()].into_iter().flatten() {
        let before = machine.state();
        let full = fs::File::options().write(true).open("/dev/full").expect("/dev/full");
        machine.command(&machine.up_arguments(WAN)).stdout(full).output().expect("it starts").ends(3);
        assert_eq!(machine.state(), before);
        machine.assert_nothing_left();
    }
}

#[test]
fn steering_that_was_killed_at_any_step_is_undone() {
    let Some(machine) = Machine::steer() else { return };
    assert_undone(&machine, &["up", WAN, "--seconds", "0", "--disable-rxvlan"], [8, 2]);
}

#[test]
fn an_envelope_that_was_killed_at_any_step_is_undone() {
    let Some(machine) = Machine::envelope() else { return };
    assert_undone(&machine, &["up", WAN, "--header", "8"], [6, 1]);
}

#[test]
fn a_link_that_was_killed_at_any_step_leaves_nothing() {
    let Some(ends) = Ends::new(1516) else { return };
    let steps = at_every_step(
        || ends.up_command(Side::Near, "q:35", &["--daemon"]),
        |_| {
            wait_until("the interface goes", || !ends.has(Side::Near, LINK));
            ends.rxlane(Side::Near, &["status", LINK]).ends(1);
            ends.assert_nothing_left();
        },
    );
    assert!(steps >= 3, "{steps} steps");
    // It is killed when it is about to remove its socket.
    wait_until("the link ends", || {
        ends.rxlane(Side::Near, &["down", LINK]);
        !ends.has(Side::Near, LINK)
    });
    ends.rxlane(Side::Near, &["status", LINK]).ends(1);
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
            line.far(&["sessions", WAN]).ends(1);
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
        command.args(["--mount", "sh", "-c", script]).arg(&etc).arg(BINARY);
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
            output.ends(0);
            // A later step is in a thread that takes the name servers, or at the end.
            wait_until("it is killed, or has the name servers", || {
                status().code() != 0 || text().contains("10.64.0.53")
            });
            let ended = hidden(&["disconnect", "ppp0"]).output().expect("it starts");
            // One that is killed at the very end has answered before.
            if ended.code() == 0 && own().is_empty() {
                break;
            }
        }
        changed += u32::from(text() != former);
        wait_until("it is recognised as killed", || {
            status().code() == 1 && text() == former && own().is_empty()
        });
    }
    assert!(changed > 0, "no kill came while the file was changed");
    assert_eq!((text().as_str(), own()), (former, Vec::new()));
    serving.interrupted();
}
