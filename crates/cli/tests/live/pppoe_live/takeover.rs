//! Takeovers: those that nobody notices, and those of which nothing comes.

use super::line::{GATEWAY, Line, WAN};
use crate::machine::until_enough;
use crate::process::Process;
use crate::run::{BINARY, Ended};
use crate::stream::Stream;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::linux::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use testkit::{PATIENCE, program, require, wait_until};

/// What leads to the subscriber of [`ROUTED`] stands once at the concentrator's interface.
const ROUTES: [&str; 4] = ["10.64.0.0/28 ", "203.0.113.7 ", "198.51.100.0/28 ", "2001:db8:100::/48 "];
/// Secrets of one with an address and a network of its own.
pub const ROUTED: &str = "[[subscriber]]\nuser = 'alice'\npassword = 'wonderland'\naddress = '203.0.113.7'\nroutes = ['198.51.100.0/28']\n";
/// And options of its concentrator.
pub const PREFIX: [&str; 2] = ["--prefix", "2001:db8:100::/48"];

#[test]
fn a_takeover_is_not_noticed() {
    let Some(line) = Line::new() else { return };
    line.write("secrets", ROUTED);
    let options = [&PREFIX[..], &["--vlan", "any"]].concat();
    let takeover = [&options[..], &["--takeover"]].concat();
    let mut serving = line.serve(&options);
    let client = line.connect("alice", &["--vlan", "35"]);
    let id = line.status("ppp0")["session_id"].clone();
    let mut stream = Stream::between(&line.near, &line.far, GATEWAY);
    for _ in 0..2 {
        stream.carry(1 << 20);
        let bytes = line.sessions()[0]["received_octets"].as_u64();
        let next = line.serve(&takeover);
        assert!(next.said().contains("1 session taken over, 0 disconnected (PADT)"), "{}", next.said());
        let said = std::mem::replace(&mut serving, next).ended().ends(0).text();
        assert!(said.ends_with("Another process goes on with the sessions.\n"), "{said}");
        stream.carry(1 << 20);
        line.goes_on(&client, serving.process());
        line.assert_routes();
        assert_eq!(line.status("ppp0")["session_id"], id);
        assert!(line.sessions()[0]["received_octets"].as_u64() > bytes);
        let addresses = line.far.run("ip", &["-br", "addr", "show", "dev", "pppoe0"]).expect("ip");
        assert!(addresses.contains(GATEWAY) && addresses.contains("fe80::1/64"), "{addresses}");
    }
    // Where there is nothing to take over it begins.
    serving.interrupted().ends(0);
    client.hear("closed", 1);
    line.serve(&takeover).hear("0 sessions taken over", 1);
}

/// Subscribers, log and accounts say what changed.
#[test]
fn a_takeover_with_another_address_says_so() {
    let Some(line) = Line::new() else { return };
    let first = line.serve(&[]);
    let client = line.connect("alice", &[]);
    let accounts = line.text("accounts");
    let second = line.serve(&["--local", "10.64.0.99", "--takeover", "--accounting", &accounts]);
    first.ended().ends(0);
    assert!(second.said().contains("0 sessions taken over, 1 disconnected (PADT)"), "{}", second.said());
    const CHANGED: &str = "the concentrator was restarted: the address of the concentrator changed from 10.64.0.1 to 10.64.0.99";
    client.hear(CHANGED, 1);
    second.hear(CHANGED, 1);
    let account = fs::read_to_string(&accounts).expect("accounts");
    let record: Value = serde_json::from_str(account.lines().next().expect("a line")).expect("JSON");
    assert_eq!((&record["event"], &record["cause"]), (&"stop".into(), &"not-restored".into()));
    assert!(record["reason"].as_str().is_some_and(|reason| reason.starts_with(CHANGED)), "{record:#}");
    client.hear(": open", 2);
    assert_eq!(line.status("ppp0")["peer"], "10.64.0.99");
    line.ping(&line.near, "10.64.0.99", 1492);
}

/// Who cannot begin takes nothing over.
#[test]
fn a_takeover_that_cannot_be_leaves_the_sessions_where_they_are() {
    let Some(line) = Line::new() else { return };
    let first = line.serve(&[]);
    let client = line.connect("alice", &[]);
    for (more, reason) in [
        (&["--ifname", "lo"][..], "there is an interface lo already"),
        (&["--mtu", "9000"], "do not fit"),
        (&["--pool", "10.64.0.2-10.64.0.5", "--pool", "10.64.0.4-10.64.0.9"], "10.64.0.4"),
    ] {
        let output = line.serve_in_vain(&[more, &["--takeover"]].concat());
        output.says(reason);
        assert!(output.code() != 0, "{}", output.text());
    }
    line.ping(&line.near, GATEWAY, 1492);
    assert_eq!(line.concentrator()["pid"], first.process());
    assert!(!client.said().contains("closed"), "{}", client.said());
}

impl Line {
    /// The session is where it was, and carries packets.
    pub fn goes_on(&self, client: &Process, process: u32) {
        self.ping(&self.near, GATEWAY, 1492);
        let concentrator = self.concentrator();
        assert_eq!((&concentrator["pid"], &concentrator["count"]), (&process.into(), &1.into()));
        assert_eq!(concentrator["interface"], "pppoe0");
        assert!(!client.said().contains("closed"), "{}", client.said());
        let links = self.far.run("ip", &["-br", "link"]).expect("ip");
        assert!(links.contains("pppoe0") && !links.contains("rxlane-"), "{links}");
    }

    /// As they were before the former interface was removed, next to whose routes they stood.
    pub fn assert_routes(&self) {
        let routes = |family| self.far.run("ip", &[family, "route", "show", "dev", "pppoe0"]).expect("ip");
        let routes = routes("-4") + &routes("-6");
        for route in ROUTES {
            assert_eq!(routes.matches(route).count(), 1, "{route}: {routes}");
        }
    }

    /// Where the concentrator takes requests.
    pub fn socket(&self) -> PathBuf {
        let namespace =
            self.far.inside(|| fs::metadata("/proc/thread-self/ns/net").expect("procfs").st_ino());
        self.path("state").join(format!("concentrator-{namespace}-{WAN}.sock"))
    }

    /// How many sessions a process has, where it is the one that answers.
    pub fn sessions_of(&self, process: u32) -> Option<u64> {
        let output = self.far(&["sessions", WAN, "--json"]);
        let concentrator: Value = serde_json::from_slice(&output.stdout).ok()?;
        concentrator["count"].as_u64().filter(|_| concentrator["pid"] == process)
    }

    /// A connection to the concentrator's socket, on which a takeover begins.
    pub fn takes_over(&self) -> (UnixStream, BufReader<UnixStream>) {
        let mut stream = UnixStream::connect(self.socket()).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time");
        stream.write_all(b"takeover\n").expect("requested");
        let reader = BufReader::new(stream.try_clone().expect("a copy"));
        (stream, reader)
    }
}

pub fn line_of(reader: &mut impl BufRead) -> String {
    let mut line = String::new();
    reader.read_line(&mut line).expect("read");
    line
}

/// Whatever the machine refuses to the next process, the former one goes on.
#[test]
fn a_takeover_to_which_the_machine_refuses_something_changes_nothing() {
    let Some(line) = Line::new() else { return };
    let Some(unshare) = require("unshare", program("unshare")) else { return };
    let first = line.serve(&[]);
    let client = line.connect("alice", &[]);
    let mut stream = Stream::between(&line.near, &line.far, GATEWAY);
    stream.carry(1 << 16);
    // IPv6 is turned off meanwhile.
    let ipv6 = |off: &str| {
        let setting = format!("net.ipv6.conf.default.disable_ipv6={off}");
        line.far.run("sysctl", &["-qw", &setting]).expect("a setting");
    };
    ipv6("1");
    let output = line.serve_in_vain(&["--takeover"]);
    let expected = format!("the process {} goes on with the sessions", first.process());
    output.ends(3).says("IPv6 is off here").says(&expected);
    ipv6("0");
    line.goes_on(&client, first.process());
    // The folder of sockets cannot be written to.
    let state = line.text("state");
    let mut command = line.far.command(unshare);
    let script = format!("mount --bind {state} {state} && mount -o remount,bind,ro {state} && exec \"$@\"");
    let serve = line.serve_command(&["--takeover"]);
    let inside = serve.get_args().skip_while(|argument| *argument != BINARY);
    command.args(["--mount", "sh", "-c", &script, "sh"]).args(inside);
    command.output().expect("it runs").ends(3).says("Read-only file system");
    line.goes_on(&client, first.process());
    stream.carry(1 << 16);
}

/// From too few descriptors on to as many as it takes, in the foreground and in the background.
#[test]
fn a_takeover_with_too_few_descriptors_changes_nothing() {
    let Some(line) = Line::new() else { return };
    let Some(prlimit) = require("prlimit", program("prlimit")) else { return };
    let first = line.serve(&["--workers", "2"]);
    let client = line.connect("alice", &[]);
    let mut stream = Stream::between(&line.near, &line.far, GATEWAY);
    let takeover = |limit| {
        let serve = line.serve_command(&["--takeover", "--workers", "2", "--daemon"]);
        let mut command = line.far.command(&prlimit);
        command.arg(format!("--nofile={limit}"));
        command.args(serve.get_args().skip_while(|argument| *argument != BINARY)).output().expect("it runs")
    };
    let failed = until_enough(8..100, takeover, |_, _| {
        line.goes_on(&client, first.process());
        stream.carry(1 << 10);
    });
    assert!(failed > 10, "{failed}");
    let text = first.ended().ends(0).text();
    assert!(text.ends_with("Another process goes on with the sessions.\n"), "{text}");
    stream.carry(1 << 16);
    let second = line.concentrator()["pid"].as_u64().expect("a number");
    line.goes_on(&client, second as u32);
    line.far(&["disconnect", "--concentrator", WAN]).ends(0);
}

/// A successor that says what it has to say up to some word, and ends then.
#[test]
fn a_successor_that_ends_before_it_serves_changes_nothing() {
    let Some(line) = Line::new() else { return };
    let accounts = line.text("accounts");
    let first = line.serve(&["--accounting", &accounts]);
    let client = line.connect("alice", &[]);
    let mut stream = Stream::between(&line.near, &line.far, GATEWAY);
    for (number, word) in ["", "busy\n", "bus", "nonsense\n"].into_iter().enumerate() {
        let (mut successor, mut reader) = line.takes_over();
        let snapshot: Value = serde_json::from_str(&line_of(&mut reader)).expect("JSON");
        assert_eq!(snapshot["sessions"].as_array().map(Vec::len), Some(1), "{snapshot:#}");
        successor.write_all(word.as_bytes()).expect("written");
        // Packets go on, and who asks is answered; sessions cannot be changed.
        stream.carry(1 << 16);
        if word != "nonsense\n" {
            assert_eq!(line.concentrator()["count"], 1);
            for question in [&["drain", WAN][..], &["disconnect", "--concentrator", WAN, "--all"]] {
                line.far(question).ends(1).says("ask again");
            }
            line.serve_in_vain(&["--takeover"]).ends(1).says("takes its sessions over already");
        }
        drop((successor, reader));
        first.hear("began to take the sessions over, and it", number + 1);
        line.goes_on(&client, first.process());
    }
    // LCP goes on as well.
    line.far(&["disconnect", "--concentrator", WAN, "--all"]).ends(0);
    client.hear("disconnected by the operator", 1);
    client.hear(": open", 2);
    first.interrupted().ends(0);
    let account = fs::read_to_string(&accounts).expect("accounts");
    let records = account.lines().map(|record| serde_json::from_str::<Value>(record).expect("JSON"));
    let events: Vec<Value> = records.map(|record| record["event"].clone()).collect();
    assert_eq!(events, ["start", "stop", "start", "stop"], "{account}");
}

/// Sessions are in one of them, whichever comes first.
#[test]
fn takeovers_at_the_same_time_lose_nothing() {
    let Some(line) = Line::new() else { return };
    let mut serving = line.serve(&[]);
    let client = line.connect("alice", &[]);
    let mut stream = Stream::between(&line.near, &line.far, GATEWAY);
    for _ in 0..6 {
        let next: Vec<Process> =
            (0..3).map(|_| Process::start(&mut line.serve_command(&["--takeover"]))).collect();
        // Each serves, or has said why not.
        for process in &next {
            wait_until("it serves, or does not", || {
                process.said().contains("disconnect --concentrator") || process.said().contains("rxlane: ")
            });
        }
        let pid = line.concentrator()["pid"].as_u64().expect("a number") as u32;
        for process in next {
            if process.process() == pid {
                let former = std::mem::replace(&mut serving, process);
                former.ended().ends(0);
            } else {
                let ended = process.ended();
                match ended.code() {
                    0 => ended.says("goes on with the sessions."),
                    _ => ended.ends(1).says("rxlane: "),
                };
            }
        }
        assert_eq!(serving.process(), pid);
        line.goes_on(&client, pid);
        stream.carry(1 << 16);
    }
}

/// Whoever called the successor is killed before that can say that it serves; the former process may have no sessions.
#[test]
fn a_successor_without_its_caller_serves() {
    let Some(line) = Line::new() else { return };
    let (first, log) = (line.serve(&[]), line.text("log"));
    let caller = Process::start(&mut line.serve_command(&["--takeover", "--daemon", "--log", &log]));
    let children = format!("/proc/{0}/task/{0}/children", caller.process());
    wait_until("the daemon", || fs::read_to_string(&children).is_ok_and(|pids| !pids.is_empty()));
    caller.killed();
    first.ended().ends(0);
    wait_until("it says so", || {
        fs::read_to_string(&log).is_ok_and(|log| log.contains("this process serves all the same"))
    });
    let client = line.connect("alice", &[]);
    line.ping(&line.near, GATEWAY, 1000);
    line.far(&["disconnect", "--concentrator", WAN]).ends(0);
    client.hear("closed", 1);
}
