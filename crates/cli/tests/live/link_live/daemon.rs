//! `link up --daemon`: a link without a command that waits for it.

use super::ends::{Ends, LINK, PARENT, Side};
use super::talk;
use crate::run::Ended;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Output};
use testkit::wait_until;

/// A link in the background; its process is killed when this is dropped.
struct Daemon {
    pid: u32,
    said: String,
}

impl Daemon {
    fn up(ends: &Ends, side: Side, link: &str, more: &[&str]) -> Daemon {
        Daemon::start(&mut ends.up_command(side, link, &[&["--daemon"], more].concat()))
    }

    /// That there is an end of its output says that nobody holds the caller's streams.
    fn start(command: &mut Command) -> Daemon {
        // Nor does anybody hold another descriptor of the caller.
        let mut caller = Command::new("sh");
        caller
            .args(["-c", "exec 9>/dev/zero; exec \"$@\"", "sh"])
            .arg(command.get_program())
            .args(command.get_args());
        command.get_current_dir().map(|folder| caller.current_dir(folder));
        let output = caller.output().expect("it runs");
        output.ends(0);
        assert!(output.stderr.is_empty(), "{}", output.text());
        let said = output.text();
        let pid = said.split_once("daemon").and_then(|(_, rest)| rest.split_whitespace().nth(1));
        Daemon { pid: pid.and_then(|pid| pid.parse().ok()).expect("its number"), said }
    }

    fn proc(&self, file: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{file}", self.pid))
    }

    /// One that has ended and was not waited for has no arguments.
    fn is_there(&self) -> bool {
        fs::read(self.proc("cmdline")).is_ok_and(|arguments| !arguments.is_empty())
    }

    fn kill(&self) {
        let _ = Command::new("kill").args(["-KILL", &self.pid.to_string()]).output();
    }

    fn wait_until_removed(&self) {
        wait_until("the process ends", || !self.is_there());
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let arguments = fs::read(self.proc("cmdline")).unwrap_or_default();
        // The number could be another's by now.
        if String::from_utf8_lossy(&arguments).contains("--daemon-process") {
            self.kill();
        }
    }
}

#[test]
fn it_returns_when_the_interface_is_up_and_the_link_stays_until_down() {
    for ends in Ends::of_each_data_path(1516) {
        for link in ["ad:100,q:200", "q:35,pppoe:7@PEER"] {
            let daemons =
                [Side::Near, Side::Far].map(|side| Daemon::up(&ends, side, link, &["--mtu", "1492"]));
            for (side, daemon) in [Side::Near, Side::Far].into_iter().zip(&daemons) {
                assert!(daemon.said.starts_with("sub0 is up over wan0."), "{}", daemon.said);
                assert!(daemon.said.contains("rxlane link down sub0 --state-dir /"), "{}", daemon.said);
                assert_eq!(ends.status(side)["pid"], daemon.pid);
                // The leader of a session without a terminal (fields 6 and 7 behind the name, proc(5)).
                let stat = fs::read_to_string(daemon.proc("stat")).expect("it is there");
                let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
                assert_eq!((fields[3], fields[4]), (daemon.pid.to_string().as_str(), "0"), "{stat}");
                assert_eq!(fs::read_link(daemon.proc("cwd")).expect("a folder"), PathBuf::from("/"));
                for stream in ["fd/0", "fd/1", "fd/2"] {
                    let open = fs::read_link(daemon.proc(stream)).expect("a stream");
                    assert_eq!(open, PathBuf::from("/dev/null"), "{stream}");
                }
                for open in fs::read_dir(daemon.proc("fd")).expect("descriptors").flatten() {
                    let open = fs::read_link(open.path()).unwrap_or_default();
                    assert_ne!(open, PathBuf::from("/dev/zero"), "a descriptor of the caller");
                }
            }
            talk::both_ways(&ends, 1492);
            for (side, daemon) in [Side::Near, Side::Far].into_iter().zip(&daemons) {
                ends.rxlane(side, &["down", LINK]).ends(0);
                assert!(!ends.has(side, LINK));
                daemon.wait_until_removed();
            }
            ends.assert_nothing_left();
        }
    }
}

#[test]
fn what_stops_a_link_is_reported_as_in_the_foreground() {
    let Some(ends) = Ends::new(1516) else { return };
    let first = ends.up(Side::Near, "q:35", &["--io", "af-xdp"]);
    let both = |link: &str, more: &[&str]| -> (Output, Output) {
        let up = |more: &[&str]| ends.up_command(Side::Near, link, more).output().expect("it runs");
        (up(more), up(&[more, &["--daemon"]].concat()))
    };
    let cases: [(&str, &[&str], i32); 4] = [
        ("q:36", &[], 1),
        ("q:36", &["--peer", "10.9.0.2", "--peer", "10.9.0.3"], 2),
        ("q:36", &["--mtu", "1000"], 2),
        ("none", &[], 2),
    ];
    let assert_alike = |(foreground, background): (Output, Output), expected: i32| {
        background.ends(expected);
        foreground.ends(expected);
        assert_eq!(background.text(), foreground.text());
        assert!(background.stdout.is_empty() && !background.stderr.is_empty(), "{}", background.text());
    };
    for (link, more, expected) in cases {
        assert_alike(both(link, more), expected);
    }
    // The first has the queue, and is none the worse for it.
    let other = |more: &[&str]| {
        let arguments = ["--name", "sub1", "--encap", "q:36", "--io", "af-xdp"];
        ends.plain_up(Side::Near).args(arguments).args(more).output().expect("it runs")
    };
    assert_alike((other(&[]), other(&["--daemon"])), 1);
    assert!(!ends.has(Side::Near, "sub1"));
    assert_eq!(ends.status(Side::Near)["encapsulation"], "q:35");
    first.interrupted().ends(0);
    assert_alike(both("q:36", &["--mtu", "1600"]), 1);
    ends.up_refused(Side::Near, "q:36", &["--daemon", "--log", "/nonexistent/log"])
        .ends(2)
        .says("cannot write to /nonexistent/log");
    ends.up_refused(Side::Near, "q:36", &["--log", "log"]).ends(2);
    ends.assert_nothing_left();
}

#[test]
fn one_without_its_caller_does_not_stay() {
    let Some(ends) = Ends::new(1516) else { return };
    let (caller, own) = UnixStream::pair().expect("a pair");
    drop(caller);
    let mut command = ends.up_command(Side::Near, "q:35", &["--daemon", "--daemon-process"]);
    command.stdin(OwnedFd::from(own)).output().expect("it runs").ends(3);
    ends.assert_nothing_left();
}

#[test]
fn what_happens_to_it_stands_in_its_log() {
    let Some(ends) = Ends::new(1516) else { return };
    let log = ends.folder().join("log");
    fs::write(&log, "before\n").expect("a log");
    // As seen from the caller's folder.
    let mut command = ends.up_command(Side::Near, "q:35", &["--daemon", "--log", "log"]);
    let daemon = Daemon::start(command.current_dir(ends.folder()));
    let logged = || fs::read_to_string(&log).expect("a log");
    assert_eq!(logged(), "before\n");
    ends.ip(Side::Near, &["link", "set", PARENT, "down"]);
    wait_until("the log has it", || logged().contains("wan0 is down: sub0 has no carrier"));
    ends.ip(Side::Near, &["link", "del", PARENT]);
    daemon.wait_until_removed();
    let logged = logged();
    for line in logged.lines().skip(1) {
        let (time, said) = line.split_once(' ').expect("a time");
        let form: String = time.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        assert!(form == "0000-00-00T00:00:00Z" && !said.is_empty(), "{line}");
    }
    assert!(logged.starts_with("before\n") && !logged.contains("is up over"), "{logged}");
    assert!(logged.contains("sub0 is removed") && logged.contains("rxlane: wan0 was removed"), "{logged}");
    ends.assert_nothing_left();
}

#[test]
fn it_ends_with_its_network_namespace() {
    let Some(ends) = Ends::new(1516) else { return };
    let log = ends.folder().join("log").display().to_string();
    let daemon = Daemon::up(&ends, Side::Near, "q:35", &["--log", &log]);
    let name = ends.namespace(Side::Near).name();
    let deleted = Command::new("ip").args(["netns", "del", name]).output().expect("it runs");
    assert!(deleted.status.success(), "{}", deleted.text());
    daemon.wait_until_removed();
    let logged = fs::read_to_string(&log).expect("a log");
    assert!(logged.contains("the network namespace was deleted: sub0 ends"), "{logged}");
    ends.assert_nothing_left();
}
