//! Ends of every kind at the subscriber's end, and what comes back after them.

use super::line::{Line, WAN};
use crate::machine::{script, search_path};
use crate::process::Process;
use crate::run::{BINARY, Ended};
use std::fs;
use testkit::{program, require, wait_until};

/// Soon missed.
const ECHO: [&str; 4] = ["--echo-interval", "1", "--echo-failures", "1"];

#[test]
fn disconnect_takes_everything_away() {
    let Some(line) = Line::new() else { return };
    let serving = line.serve(&["--dns", "10.64.0.53"]);
    let resolver = fs::read("/etc/resolv.conf").ok();
    let before = line.ip(&["route"]) + &line.ip(&["-6", "route"]);
    let client = line.connect("alice", &["--default-route", "--metric", "50"]);
    assert!(line.ip(&["route"]).contains("default dev ppp0 proto static scope link metric 50"));
    // Without --dns they are nobody's business.
    assert_eq!(fs::read("/etc/resolv.conf").ok(), resolver);
    line.near(&["disconnect", "ppp0"]).ends(0).says("ppp0 is disconnected.");
    assert!(!line.has("ppp0"));
    assert_eq!(line.ip(&["route"]) + &line.ip(&["-6", "route"]), before);
    assert_eq!(fs::read("/etc/resolv.conf").ok(), resolver);
    client.ended().ends(0);
    line.wait_for_sessions(0);
    line.near(&["disconnect", "ppp0"]).ends(1).says("there is no PPPoE session ppp0");
    line.near(&["status", "ppp0"]).ends(1);
    serving.interrupted().ends(0);
    assert_eq!(fs::read_dir(line.path("state")).map(Iterator::count).unwrap_or_default(), 0);
}

#[test]
fn name_servers_are_the_concentrators_as_long_as_the_session_is_open() {
    let Some(line) = Line::new() else { return };
    let Some(unshare) = require("unshare", program("unshare")) else { return };
    let _serving = line.serve(&["--dns", "10.64.0.53", "--dns", "10.64.0.54"]);
    // A folder /etc that nobody else sees.
    const HIDDEN: &str =
        "mount -t tmpfs none /etc && echo nameserver 192.0.2.1 > /etc/resolv.conf && exec \"$@\"";
    let (alice, state) = (line.text("alice"), line.text("state"));
    let mut command = line.near.command(unshare);
    command.args(["--mount", "sh", "-c", HIDDEN, "sh", BINARY, "pppoe", "connect", WAN, "--dns"]);
    command.args(["--user", "alice", "--password-file", &alice, "--state", &state]);
    let before = fs::read("/etc/resolv.conf").ok();
    let client = Process::start(&mut command);
    client.hear(": open", 1);
    let path = format!("/proc/{}/root/etc/resolv.conf", client.process());
    let servers = || {
        let text = fs::read_to_string(&path).unwrap_or_default();
        let lines = text.lines().filter_map(|line| line.strip_prefix("nameserver ").map(str::to_owned));
        lines.collect::<Vec<_>>()
    };
    assert_eq!(servers(), ["10.64.0.53", "10.64.0.54"]);
    assert_eq!(fs::read("/etc/resolv.conf").ok(), before);
    // While there is no session they are as before.
    line.far(&["disconnect", "--concentrator", WAN]).ends(0);
    wait_until("the former name servers", || servers() == ["192.0.2.1"]);
    client.interrupted().ends(0);
}

/// Echoes are answered while what keeps the machine's name servers hangs, and who waits for it gets a message.
#[test]
fn a_resolvconf_that_hangs_does_not_end_the_session() {
    let Some(line) = Line::new() else { return };
    // Who does not answer for 8 of the 10 seconds that it hangs is given up.
    let echo = ["--echo-interval", "1", "--echo-failures", "7"];
    let _serving = line.serve(&[&echo[..], &["--dns", "10.64.0.53"]].concat());
    // Only what is requested of it first hangs.
    let calls = line.text("calls");
    let text =
        format!("echo \"$@\" >> {calls}\ncase $1 in -a) echo waits for a lock >&2; sleep 600;; esac\n");
    script(&line.path("resolvconf"), &text);
    let mut command = line.connect_command("alice", &["--dns"]);
    let client = Process::start(command.env("PATH", search_path(&line.path(""))));
    client.hear(": open", 1);
    client.hear("was still running after 10 s and was ended (it said: waits for a lock)", 1);
    line.ping(&line.near, super::line::GATEWAY, 1492);
    let said = client.interrupted().ends(0).text();
    assert!(!said.contains("closed") && said.matches(": open").count() == 1, "{said}");
    assert_eq!(fs::read_to_string(calls).expect("the calls"), "-a ppp0.rxlane\n-d ppp0.rxlane\n");
}

#[test]
fn a_killed_client_is_missed_and_the_next_one_connects_at_once() {
    let Some(line) = Line::new() else { return };
    let serving = line.serve(&ECHO);
    line.connect("alice", &[]).killed();
    serving.hear("the peer is silent", 1);
    line.wait_for_sessions(0);
    // Nobody has said good-bye, and the former session is still there.
    line.connect("alice", &[]).killed();
    line.near(&["status", "ppp0"]).ends(1).says("was killed");
    let _third = line.connect("alice", &[]);
    line.ping(&line.near, super::line::GATEWAY, 1492);
    line.wait_for_sessions(1);
}

#[test]
fn a_concentrator_that_stays_away_is_missed_and_the_session_comes_back_if_requested() {
    let Some(line) = Line::new() else { return };
    let serving = line.serve(&[]);
    let client = line.connect("alice", &ECHO);
    serving.killed();
    client.hear("closed: ", 1);
    // It goes on with a session that the subscriber has given up, which gives way to the new one.
    let serving = line.serve(&[]);
    client.hear(": open", 2);
    line.wait_until_it_answers();
    line.wait_for_sessions(1);
    assert_eq!(line.status("ppp0")["sessions"], 2);
    client.interrupted().ends(0);
    let client = line.start_to_connect("alice", &[&ECHO[..], &["--reconnect", "false"]].concat());
    client.hear(": open", 1);
    serving.killed();
    let said = client.ended().ends(1).omits("closed: ").text();
    assert_eq!(said.matches("rxlane: the peer is silent").count(), 1, "{said}");
    assert!(!line.has("ppp0"));
}

#[test]
fn other_mac_addresses_of_either_end_are_found_out() {
    let Some(line) = Line::new() else { return };
    let _serving = line.serve(&ECHO);
    let client = line.connect("alice", &ECHO);
    let far = line.far.run("ip", &["link", "set", WAN, "address", "02:00:5e:00:00:77"]);
    far.expect("another address");
    client.hear(": open", 2);
    line.wait_until_it_answers();
    assert_eq!(line.status("ppp0")["ac_mac"], "02:00:5e:00:00:77");
    line.ip(&["link", "set", WAN, "address", "02:00:5e:00:00:78"]);
    client.hear("the interface has another MAC address", 1);
    client.hear(": open", 3);
    line.wait_until_it_answers();
    wait_until("the session of the other address", || {
        line.sessions().iter().all(|session| session["mac"] == "02:00:5e:00:00:78")
    });
}

#[test]
fn interfaces_that_somebody_deletes_are_reported() {
    let Some(line) = Line::new() else { return };
    let serving = line.serve(&[]);
    let client = line.connect("alice", &[]);
    line.ip(&["link", "del", "ppp0"]);
    client.ended().ends(1).says("rxlane: somebody deleted ppp0: the session is over").omits("closed");
    line.wait_for_sessions(0);
    let client = line.connect("alice", &[]);
    line.ip(&["link", "del", WAN]);
    client.ended().ends(1).says("the interface with the line was removed");
    assert!(!line.has("ppp0"));
    serving.ended().ends(1).says("wan0 was removed");
    line.start_to_connect("alice", &[]).ended().ends(2).says("there is no interface wan0");
    // That of the subscribers.
    let Some(line) = Line::new() else { return };
    let serving = line.serve(&[]);
    let client = line.connect("alice", &[]);
    line.far.run("ip", &["link", "del", "pppoe0"]).expect("deleted");
    serving.ended().ends(1).says("somebody deleted pppoe0");
    client.hear("by a PADT", 1);
}

#[test]
fn scripts_run_when_it_comes_up_and_when_it_ends() {
    let Some(line) = Line::new() else { return };
    let _serving = line.serve(&["--dns", "10.64.0.53"]);
    let calls = line.path("calls");
    for name in ["up", "down"] {
        let text = format!(
            "echo {name} $1 $2 $4 $5 $IFNAME $IPLOCAL $IPREMOTE $DNS1 $LLREMOTE $PEERNAME $PPPLOGNAME $MTU ${{CONNECT_TIME:+over}} \
             >> {}\n",
            calls.display()
        );
        script(&line.path(name), &text);
    }
    // A path is one of the folder of the caller.
    let mut command = line.connect_command("alice", &["--up-script", "./up", "--down-script", "./down"]);
    let client = Process::start(command.current_dir(line.path("")));
    let text = || fs::read_to_string(&calls).unwrap_or_default();
    let all = "ppp0 wan0 10.64.0.2 10.64.0.1 ppp0 10.64.0.2 10.64.0.1 10.64.0.53 fe80::1 rxlane alice 1492";
    wait_until("the script", || text() == format!("up {all}\n"));
    let said = client.interrupted().ends(0).text();
    assert_eq!(text(), format!("up {all}\ndown {all} over\n"), "{said}");
}

#[test]
fn in_the_background_it_stays_and_writes_its_log() {
    let Some(line) = Line::new() else { return };
    let serve = line.serve_in_vain(&["--daemon", "--log", &line.text("serve.log")]);
    serve.ends(0).says("rxlane serves wan0.");
    let log = line.text("log");
    line.connect_command("alice", &["--daemon", "--log", &log])
        .output()
        .expect("it runs")
        .ends(0)
        .says("ppp0 over wan0: open");
    line.ping(&line.near, super::line::GATEWAY, 1492);
    let refused = line.connect_command("bob", &["--daemon"]).output().expect("it runs");
    refused.ends(1).says("`--ifname` takes another");
    assert!(refused.stdout.is_empty());
    let vain = ["--daemon", "--reconnect", "false", "--ifname", "ppp1"];
    line.write("mallory", "guess\n");
    line.connect_command("mallory", &vain).output().expect("it runs").ends(1).says("authentication failed");
    // It has no terminal that could hang up.
    let serving = line.concentrator()["pid"].to_string();
    line.far.run("kill", &["-HUP", &serving]).expect("a signal");
    let served = || fs::read_to_string(line.path("serve.log")).expect("a log");
    wait_until("the secrets", || {
        served().contains("Z note: the secrets were read again: 2 subscribers, nothing changed")
    });
    // The concentrator's process ends, says so, and the client's writes it down.
    line.far(&["disconnect", "--concentrator", WAN]).ends(0).says("1 session ended");
    let logged = || fs::read_to_string(&log).unwrap_or_default();
    wait_until("a line of the log", || {
        logged().contains("Z closed: the concentrator ended the session by a PADT")
    });
    let served = served();
    for text in ["Z rxlane serves wan0.\n", " alice: open, 10.64.0.2\n", "Z rxlane serves no more.\n"] {
        assert!(served.contains(text), "{text}: {served}");
    }
    line.near(&["disconnect", "ppp0"]).ends(0);
    assert!(logged().contains("Z ppp0 over wan0: open\n"), "{}", logged());
    assert!(logged().contains("ppp0 is disconnected."), "{}", logged());
}
