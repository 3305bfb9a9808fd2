//! `rxlane doctor --trace` while the kernel drops packets in namespaces of the tests' own. Reasons are of the whole machine, so that
//! others may add to a count; exact counts are tested in crate `host`.

use crate::process::Process;
use crate::run::{BINARY, Ended};
use serde_json::Value;
use std::net::UdpSocket;
use std::process::{Command, Output};
use testkit::netns::{Namespace, addressed_pair, probe};
use testkit::{Missing, open_copy, program, require, wait_for};

/// `wan0` and `far0` with addresses, in a namespace each.
struct Line {
    near: Namespace,
    far: Namespace,
}

impl Line {
    fn new() -> Option<Line> {
        require("netns", probe())?;
        let [near, far] = addressed_pair().expect("a pair");
        Some(Line { near, far })
    }

    fn doctor(&self, arguments: &[&str]) -> Command {
        let mut command = self.near.command(BINARY);
        command.args(["doctor", "wan0", "--trace"]).args(arguments).env("COLUMNS", "80");
        command
    }

    /// Sends datagrams to a closed port of `wan0`.
    fn send(&self) {
        self.far.inside(|| {
            let socket = UdpSocket::bind("10.7.0.2:0").expect("a socket");
            for _ in 0..500 {
                // That the port is closed is an error of the next call.
                let _ = socket.send_to(&[0; 100], ("10.7.0.1", 9));
            }
        });
    }

    /// A run of which some seconds are full of packets to a closed port.
    fn traced(&self, arguments: &[&str]) -> Output {
        let mut process = Process::start(&mut self.doctor(&[&["--seconds", "1"], arguments].concat()));
        while !process.has_ended() {
            self.send();
        }
        process.ended()
    }

    /// Such runs until one is as expected: next to other work on the CPUs, the functions with most of the time may all be of that.
    fn traced_until(&self, arguments: &[&str], is_expected: impl Fn(&Output) -> bool) -> Output {
        wait_for("functions of the receive path in a report", || {
            Some(self.traced(arguments)).filter(&is_expected)
        })
    }
}

/// Whether this machine allows a trace in full.
fn is_traced(output: &Output) -> Result<(), Missing> {
    let report = serde_json::from_slice::<Value>(&output.stdout).unwrap_or_default();
    let not_opened = &report["trace"]["not_opened"];
    match not_opened.as_array() {
        Some(none) if none.is_empty() => Ok(()),
        _ => Err(Missing(format!("not all can be traced: {not_opened} {}", output.text()))),
    }
}

#[test]
fn drops_and_cpu_time_are_in_the_report() {
    let Some(line) = Line::new() else { return };
    let probed = line.doctor(&["--seconds", "0.1", "--json"]).output().expect("it runs");
    let Some(()) = require("perf", is_traced(&probed)) else { return };
    let delivers = |output: &Output| {
        let cpus = output.json()["trace"]["cpu_time"]["cpus"].clone();
        let functions = cpus.as_array().expect("CPUs").iter().map(|cpu| &cpu["functions"]);
        functions.flat_map(|rows| rows.as_array().expect("functions")).any(|row| row["stage"] == "deliver")
    };
    let output = line.traced_until(&["--json"], delivers);
    let trace = &output.json()["trace"];
    let reasons = trace["drops"]["reasons"].as_array().expect("reasons");
    let row = reasons.iter().find(|row| row["reason"] == "NO_SOCKET").unwrap_or_else(|| panic!("{trace:#}"));
    assert!(row["packets"].as_u64() >= Some(500) && row["stage"] == "deliver", "{row:#}");
    assert!(trace["seconds"].as_f64() >= Some(1.0) && trace["cpu_time"]["samples"].as_u64() > Some(0));

    // The rules see where CPU time went, too.
    let report = output.json();
    let rules = report["rules"].as_array().expect("rules");
    let rule = rules.iter().find(|row| row["id"] == "lock-contention").expect("the rule");
    assert_ne!(rule["outcome"], "insufficient-data", "{rule:#}");

    // As text on a screen, and in full.
    let text = line.traced(&[]);
    text.says("Dropped by the kernel").says("NO_SOCKET").says("no socket for the port").says("Busiest CPU, ");
    let lines = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(lines.lines().count() <= 24 && lines.lines().all(|line| line.chars().count() <= 80), "{lines}");
    let in_full = line.traced_until(&["--verbose"], |output| output.text().contains("deliver"));
    in_full.says("NO_SOCKET").says("CPU time (");
    let page = line.traced(&["--html", "-"]);
    page.says("Packets that the kernel dropped").says("Where CPU time went");
}

#[test]
fn what_cannot_be_opened_is_named_with_the_way_out() {
    let Some(line) = Line::new() else { return };
    let Some(_) = require("setpriv", program("setpriv")) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let copy = open_copy(BINARY.as_ref(), folder.path()).expect("a copy");
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    let paranoid = paranoid.ok().and_then(|level| level.trim().parse::<i32>().ok());
    for who in [
        &["--reuid", "65534", "--regid", "65534", "--clear-groups"][..],
        &["--bounding-set", "-perfmon,-sys_admin", "--inh-caps", "-perfmon,-sys_admin"],
    ] {
        let mut command = line.near.command("setpriv");
        command.args(who).arg(&copy).args(["doctor", "wan0", "--trace", "--seconds", "0.1"]);
        let output = command.env("COLUMNS", "80").output().expect("it runs");
        output.says("CAP_PERFMON, or CAP_SYS_ADMIN").says("(sudo rxlane doctor --trace)");
        match paranoid {
            // Then CPU time can be sampled by everybody.
            Some(..=0) => output.says("Not opened: drop reasons (tracepoint skb:kfree_skb)"),
            _ => output.ends(3).says("tracing requires"),
        };
    }
}

#[test]
fn a_trace_is_of_a_live_machine() {
    let run = |arguments: &str| Command::new(BINARY).args(arguments.split(' ')).output().expect("it runs");
    run("doctor --trace --from /dev/null").ends(2).says("--from");
    run("doctor --trace --apply").ends(2).says("--apply");
}
