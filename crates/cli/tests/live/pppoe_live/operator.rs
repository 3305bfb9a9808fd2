//! What the operator of a concentrator does: disconnections, secrets, accounts.

use super::line::{GATEWAY, Line, WAN};
use crate::machine::speak_ipv6;
use crate::process::Process;
use crate::run::{Ended, Report};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use testkit::netns::{Namespace, Veth};
use testkit::{program, require, wait_for, wait_until};

#[test]
fn sessions_are_disconnected_one_by_one_and_all() {
    let Some(line) = Line::new() else { return };
    let _serving = line.serve(&[]);
    let alice = line.connect("alice", &[]);
    let bob = line.connect("bob", &["--ifname", "ppp1"]);
    let disconnect = |by: &[&str]| line.far(&[&["disconnect", "--concentrator", WAN], by].concat());
    let session = |user: &str| {
        let sessions = line.sessions();
        sessions.iter().find(|session| session["user"] == user).expect("there").clone()
    };
    let text = |user: &str, field: &str| session(user)[field].as_str().expect("a text").to_owned();
    let (id, mac) = (text("alice", "id"), text("alice", "mac"));
    let cases: [(Vec<&str>, &str, [usize; 2]); 3] = [
        (vec!["--id", &id], "1 session: end requested", [1, 0]),
        (vec!["--user", "bob"], "1 session: end requested", [1, 1]),
        (vec!["--mac", &mac], "2 sessions: end requested", [2, 2]),
    ];
    for (by, expected, closed) in cases {
        disconnect(&by).is(&by, 0, expected);
        for (client, closed) in [&alice, &bob].into_iter().zip(closed) {
            // They come back.
            client.hear("disconnected by the operator", closed);
            client.hear(": open", closed + 1);
        }
        line.wait_for_sessions(2);
    }
    let address = text("bob", "peer");
    disconnect(&["--address", &address]).ends(0);
    bob.hear(": open", 4);
    assert_eq!(alice.said().matches("closed").count(), 2);
    disconnect(&["--all"]).says("2 sessions: end requested");
    alice.hear(": open", 4);
    line.wait_for_sessions(2);
    disconnect(&["--vlan", "none"]).says("2 sessions: end requested");
    alice.hear(": open", 5);
    for (by, expected) in [
        (["--id", &id], 1),
        (["--user", "nobody"], 1),
        (["--mac", "nonsense"], 2),
        (["--vlan", "100.*"], 1),
        (["--vlan", "q100"], 2),
        (["--line", ""], 1),
    ] {
        disconnect(&by).is(&by, expected, "");
    }
    line.far(&["disconnect", "--concentrator", "eth7"]).ends(1);
}

#[test]
fn a_pool_is_one_route_unless_an_address_next_to_it_leads_elsewhere() {
    let Some(line) = Line::new() else { return };
    let pool = ["--pool", "10.64.0.2-10.64.255.254"];
    let routes = || line.far.run("ip", &["-4", "route", "show", "dev", "pppoe0"]).expect("routes");
    let serving = line.serve(&pool);
    assert_eq!(routes().trim(), "10.64.0.0/16 proto static scope link");
    serving.interrupted().ends(0);
    line.far.run("ip", &["route", "add", "10.64.255.0/24", "dev", "lo"]).expect("a route");
    let serving = line.serve(&pool);
    let pieces = routes();
    assert!(pieces.lines().count() == 29 && !pieces.contains("10.64.0.0/16"), "{pieces}");
    serving.interrupted().ends(0);
}

#[test]
fn a_drained_concentrator_keeps_what_it_has() {
    let Some(line) = Line::new() else { return };
    let serving = line.serve(&[]);
    let first = line.connect("alice", &[]);
    let drain = |more: &[&str]| line.far(&[&["drain", WAN], more].concat()).ends(0).text();
    assert_eq!(drain(&[]), "wan0 takes no more sessions; 1 session goes on.\n");
    assert_eq!(line.concentrator()["draining"], true);
    line.far(&["sessions", WAN]).says("`rxlane pppoe drain wan0 --undo`");
    let second = line.start_to_connect("bob", &["--ifname", "ppp1"]);
    wait_until("a PADI that is not answered", || {
        line.concentrator()["counters"]["ignored_draining"].as_u64() > Some(0)
    });
    line.ping(&line.near, GATEWAY, 1492);
    assert!(!first.said().contains("closed") && !second.said().contains(": open"), "{}", first.said());
    // It stays so for the next process, whether it takes over or goes on after a kill.
    let next = line.serve(&["--takeover"]);
    next.hear("1 session taken over, 0 disconnected (PADT);", 1);
    next.hear("rxlane pppoe drain wan0 --undo", 1);
    serving.ended().ends(0);
    assert_eq!(line.concentrator()["draining"], true);
    next.killed();
    for _ in 0..2 {
        line.far(&["sessions", WAN])
            .ends(1)
            .says("was killed: the next `rxlane pppoe serve wan0` goes on with its sessions");
        line.far(&["status"]).ends(1).says("was killed");
    }
    let next = line.serve(&[]);
    next.hear("1 session of a process that was killed, 0 disconnected (PADT);", 1);
    next.hear("rxlane pppoe drain wan0 --undo", 1);
    assert_eq!(drain(&["--undo"]), "wan0 takes sessions; it has 1 session.\n");
    second.hear(": open", 1);
    assert_eq!((line.sessions().len(), &line.concentrator()["draining"]), (2, &false.into()));
    line.far(&["drain", "eth7"]).ends(1);
}

/// What the kernel routes to the subscribers.
fn routes(line: &Line) -> String {
    let of =
        |version: &str| line.far.run("ip", &[version, "route", "show", "dev", "pppoe0"]).expect("routes");
    of("-4") + &of("-6")
}

/// An interface that is set down loses routes and IPv6 addresses.
#[test]
fn subscribers_are_reached_again_when_their_interface_was_down() {
    let Some(line) = Line::new() else { return };
    let serving = line.serve(&["--prefix", "fd00:99::/48"]);
    let _alice = line.connect("alice", &[]);
    let up = |state: &str| line.far.run("ip", &["link", "set", "pppoe0", state]).expect("set");
    let before = routes(&line);
    up("down");
    serving.hear("pppoe0 was set down", 1);
    up("up");
    serving.hear("pppoe0 is up again, with its addresses and routes", 1);
    wait_until("all routes", || routes(&line) == before);
    line.ping(&line.near, GATEWAY, 1492);
    line.ping(&line.far, "10.64.0.2", 1492);
}

/// The route of a pool is not that of a session whose network is the same.
#[test]
fn a_session_that_ends_does_not_take_the_route_of_its_pool_along() {
    let Some(line) = Line::new() else { return };
    let bob = "[[subscriber]]\nuser = \"bob\"\npassword = \"the builder\"\nroutes = [\"10.64.0.0/28\", \"10.98.0.0/24\"]\n";
    line.write("secrets", &format!("[[subscriber]]\nuser = \"alice\"\npassword = \"wonderland\"\n{bob}"));
    let _serving = line.serve(&[]);
    let before = routes(&line);
    let _alice = line.connect("alice", &[]);
    let bob = line.connect("bob", &["--ifname", "ppp1"]);
    assert!(routes(&line).contains("10.98.0.0/24"), "{}", routes(&line));
    bob.interrupted().ends(0);
    line.wait_for_sessions(1);
    assert_eq!(routes(&line), before);
    line.ping(&line.far, "10.64.0.2", 1492);
}

/// By user, in an open session; by MAC address, from its first PADI on.
#[test]
fn what_a_subscriber_sends_and_receives_is_captured() {
    let Some(line) = Line::new() else { return };
    let Some(tcpdump) = require("tcpdump", program("tcpdump")) else { return };
    let _serving = line.serve(&[]);
    let alice = line.connect("alice", &[]);
    let mac = line.sessions()[0]["mac"].as_str().expect("a MAC address").to_owned();
    line.far(&["capture", "nobody"]).is(&"nobody", 1, "no session is of `nobody`");

    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file.pcapng");
    let start = |subscriber: &str| {
        let words = ["capture", subscriber, "--output", file.to_str().expect("UTF-8")];
        let capture = Process::start(&mut line.command(&line.far, &words));
        capture.hear("capturing on wan0", 1);
        capture
    };
    let has_frames = || {
        let entries = fs::read_dir(folder.path()).expect("a folder").flatten();
        entries.into_iter().any(|entry| entry.metadata().is_ok_and(|data| data.len() > 500))
    };
    let read = || {
        let mode = fs::metadata(&file).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let read = Command::new(&tcpdump).arg("-env").arg("-r").arg(&file).output().expect("tcpdump");
        fs::remove_file(&file).expect("removed");
        String::from_utf8_lossy(&read.stdout).into_owned()
    };

    let capture = start("alice");
    wait_until("frames of the session", || {
        line.ping(&line.near, GATEWAY, 1000);
        has_frames()
    });
    capture.interrupted().ends(0).says(&format!("of {mac} in "));
    let frames = read();
    for text in ["PPPoE  [ses ", "ICMP echo request", "ICMP echo reply"] {
        assert!(frames.contains(text), "{text}: {frames}");
    }

    alice.interrupted().ends(0);
    line.wait_for_sessions(0);
    let capture = start(&mac);
    line.connect("bob", &[]).interrupted().ends(0);
    wait_until("frames of a session", has_frames);
    capture.interrupted().ends(0);
    let frames = read();
    for text in ["PPPoE PADI", "PPPoE PADS", "LCP", "PPPoE PADT"] {
        assert!(frames.contains(text), "{text}: {frames}");
    }
}

#[test]
fn concentrators_are_listed() {
    let Some(line) = Line::new() else { return };
    line.far(&["sessions"]).ends(1).says("no interface is served");
    let serving = line.serve(&[]);
    let _client = line.connect("alice", &[]);
    let status = line.far(&["status"]).text();
    for text in ["wan0: served\n", "pppoe0", &serving.process().to_string()] {
        assert!(status.contains(text), "{text}: {status}");
    }
    let all = line.far(&["status", "--json"]).json();
    let one = json!({"parent": WAN, "count": 1, "pid": serving.process()});
    all.has(json!({"concentrators": [one], "clients": []}));
    // The only one needs no name.
    assert!(line.far(&["sessions"]).text().starts_with("wan0: 1 session\n"));
    for name in [WAN, "pppoe0"] {
        line.far(&["status", name]).ends(1).says("`rxlane pppoe sessions wan0`");
    }
    line.far.run("ip", &["link", "add", "wan7", "type", "veth", "peer", "name", "wan8"]).expect("a pair");
    let secrets = line.text("secrets");
    let serve = ["serve", "wan7", "--ifname", "pppoe7", "--secrets", &secrets, "--local", "10.65.0.1"];
    let second = Process::start(&mut line.command(&line.far, &serve));
    second.hear("disconnect --concentrator", 1);
    line.far(&["sessions"]).ends(2).says("wan0, wan7 are served here: `rxlane pppoe sessions wan0`");
    line.far(&["sessions", "wan9"]).ends(1).says("`rxlane pppoe status` lists");
    second.killed();
    line.far(&["sessions", "wan7"]).ends(1).says("was killed");
    line.far(&["sessions"]).ends(0);
}

#[test]
fn accounts_begin_and_end_with_the_session() {
    let Some(line) = Line::new() else { return };
    let accounts = line.text("accounts");
    let _serving = line.serve(&["--accounting", &accounts, "--interim", "1"]);
    let client = line.connect("alice", &[]);
    line.ping(&line.near, GATEWAY, 1000);
    let records = || -> Vec<Value> {
        let text = fs::read_to_string(&accounts).unwrap_or_default();
        text.lines().map(|record| serde_json::from_str(record).expect("JSON")).collect()
    };
    wait_until("a record meanwhile", || records().len() >= 2);
    client.interrupted().ends(0);
    wait_until("the last record", || records().last().is_some_and(|record| record["event"] == "stop"));
    let records = records();
    let (first, last) = (&records[0], records.last().expect("one"));
    assert_eq!((&first["event"], &records[1]["event"]), (&"start".into(), &"interim".into()));
    for record in &records {
        record.has(json!({"user": "alice", "address": "10.64.0.2", "accounting": first["accounting"],
                          "circuit": null, "remote": null}));
        assert!(record["time"].as_str().is_some_and(|time| time.ends_with('Z')), "{record:#}");
    }
    assert!(last["received_octets"].as_u64() >= Some(3000), "{last:#}");
    assert!(last["uptime"].as_f64() >= Some(1.0), "{last:#}");
    assert!(!last["cause"].is_null() && !last["reason"].is_null(), "{last:#}");
}

/// `serve` where `full`, a folder, has no room for anything.
fn on_a_full_disk(line: &Line, more: &[&str]) -> Command {
    fs::create_dir_all(line.path("full")).expect("a folder");
    let serve = line.serve_command(more);
    let script = "mount -t tmpfs -o size=4k none $0 && touch $0/log $0/accounts && \
                  dd if=/dev/zero of=$0/filler bs=4k count=1 status=none && exec \"$@\"";
    let mut command = line.far.command("unshare");
    command.args(["--mount", "sh", "-c", script, &line.text("full")]);
    command.arg(serve.get_program()).args(serve.get_args()).env("COLUMNS", "80");
    command
}

#[test]
fn a_full_disk_is_reported_while_it_serves_and_by_the_exit_code() {
    let Some(line) = Line::new() else { return };
    let (accounts, log) = (line.text("full/accounts"), line.text("full/log"));
    let serving = Process::start(&mut on_a_full_disk(&line, &["--accounting", &accounts]));
    serving.hear("disconnect --concentrator", 1);
    let client = line.connect("alice", &[]);
    wait_until("a record is lost", || line.concentrator()["records_lost"] == 1);
    serving.hear("a record of accounting is lost: No space left", 1);
    let lacks = format!("{accounts} lacks 2 accounting records");
    let disconnected = line.far(&["disconnect", "--concentrator", WAN, "--json"]);
    assert_eq!(disconnected.ends(3).says(&lacks).json()["records_lost"], 2);
    serving.ended().ends(3).says(&lacks);
    Process::start(&mut on_a_full_disk(&line, &["--daemon", "--log", &log])).ended().ends(0);
    client.hear(": open", 2);
    let failure = || line.concentrator()["log_failure"].as_str().unwrap_or_default().to_owned();
    wait_until("the log fails", || failure().contains("the log takes nothing (No space left"));
    line.far(&["status"]).says("the log takes nothing");
    line.far(&["disconnect", "--concentrator", WAN]).ends(3).says("the log takes nothing");
    client.interrupted().ends(0);
}

#[test]
fn one_of_two_concentrators_is_pinned() {
    let Some(line) = Line::new() else { return };
    let other = Namespace::new().expect("a namespace");
    speak_ipv6(&other);
    let second_line = Veth { mtu: 1508, peer: Some(&other), ..Veth::pair("wan1", WAN) };
    line.near.veth(&second_line).expect("a pair");
    line.ip(&["link", "add", "br0", "mtu", "1508", "type", "bridge"]);
    for port in [WAN, "wan1"] {
        line.ip(&["link", "set", port, "master", "br0"]);
    }
    line.ip(&["link", "set", "br0", "up"]);
    let _first = line.serve(&["--name", "first"]);
    let secrets = line.text("secrets");
    let serve = ["serve", WAN, "--name", "second", "--secrets", &secrets, "--local", GATEWAY];
    let pool = ["--pool", "10.65.0.2-10.65.0.9"];
    let second = Process::start(&mut line.command(&other, &[&serve[..], &pool].concat()));
    second.hear("disconnect --concentrator", 1);
    let alice = line.text("alice");
    let connect = ["connect", "br0", "--user", "alice", "--password-file", &alice];
    let address = other.run("cat", &["/sys/class/net/wan0/address"]).expect("an address");
    for (pin, name) in [("first", "first"), ("second", "second"), (address.trim(), "second")] {
        let mut command = line.command(&line.near, &[&connect[..], &["--ac", pin]].concat());
        let client = Process::start(&mut command);
        client.hear(": open", 1);
        assert_eq!(line.status("ppp0")["ac_name"], name);
        client.interrupted().ends(0);
    }
    // No other will do.
    let client = Process::start(&mut line.command(&line.near, &[&connect[..], &["--ac", "third"]].concat()));
    let offers = || line.concentrator()["counters"]["offers"].as_u64().expect("a number");
    let before = offers();
    wait_until("it is offered sessions", || offers() >= before + 2);
    assert_eq!(line.status("ppp0")["phase"], "discovery");
    line.near(&["disconnect", "ppp0"]).ends(0);
    client.ended().ends(0).omits(": open");
}

/// A process that is stopped reads nothing, and its socket has room for some thousand frames.
#[test]
fn frames_that_are_lost_are_counted() {
    let Some(line) = Line::new() else { return };
    let serving = line.serve(&[]);
    let lost = || line.concentrator()["frames_lost"].as_u64().expect("a number");
    assert_eq!(lost(), 0);
    line.far(&["status"]).omits("lost");
    serving.signal("STOP");
    // A PADI for any service, padded.
    let padi =
        [&[0xff; 6][..], &[2, 0, 0x5e, 0, 0, 9], &[0x88, 0x63, 0x11, 9, 0, 0, 0, 4, 1, 1, 0, 0], &[0; 1400]];
    let padi = padi.concat();
    line.near.send(WAN, (0..20_000).map(|_| &padi)).expect("sent");
    serving.signal("CONT");
    wait_until("lost frames", || lost() > 0);
    line.far(&["status"]).says("lost").says("of discovery and negotiation");
    let all = line.far(&["status", "--json"]).json();
    assert!(all["concentrators"][0]["frames_lost"].as_u64() > Some(0), "{all:#}");
    // It goes on.
    let client = line.connect("alice", &[]);
    assert_eq!(line.status("ppp0")["frames_lost"], 0);
    client.interrupted().ends(0);
}

/// Bytes that a thread of a process has read from files and pipes (proc(5)).
fn read_by(process: u32, thread: &str) -> u64 {
    let is_it = |task: &fs::DirEntry| {
        fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.trim_end() == thread)
    };
    // A thread that was started has its name when it first runs.
    let task = wait_for(format!("a thread {thread}"), || {
        let tasks = fs::read_dir(format!("/proc/{process}/task")).expect("a process");
        tasks.filter_map(Result::ok).find(is_it)
    });
    let text = fs::read_to_string(task.path().join("io")).expect("its counters");
    let read = text.lines().find_map(|line| line.strip_prefix("rchar: ")?.parse().ok());
    read.expect("a number")
}

/// A file of many subscribers takes its time, in which those that are connected want answers.
#[test]
fn the_thread_that_answers_reads_no_secrets() {
    let Some(line) = Line::new() else { return };
    let serving = line.serve(&[]);
    let others: String =
        (0..20_000).map(|number| format!("user{number} * \"password {number}\" *\n")).collect();
    let secrets = line.write("secrets", &format!("alice * wonderland *\ncarol * carols *\n{others}"));
    line.write("carol", "carols\n");
    let length = fs::metadata(secrets).expect("a file").len();
    let read = || ["rxlane", "secrets"].map(|thread| read_by(serving.process(), thread));
    let before = read();
    for times in 1..=3 {
        serving.signal("USR1");
        serving.hear("the secrets were read again: 20,002 subscribers", times);
    }
    let [serves, reads] = [0, 1].map(|thread| read()[thread] - before[thread]);
    assert!(reads >= 3 * length && serves < length, "{serves} and {reads} of {length} bytes");
    let client = line.connect("carol", &[]);
    line.ping(&line.near, GATEWAY, 1492);
    client.interrupted().ends(0);
}
