//! Takeovers whose successor dies when it has the sessions, or just before or after that.

use super::line::{GATEWAY, Line, WAN};
use super::process::{PATIENCE, Process, wait};
use super::takeover::line_of;
use crate::run::Ended;
use crate::stream::Stream;
use kernel::netlink::link_by_name;
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::os::linux::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

/// The former process has ended its interface by then, and goes on with another one.
#[test]
fn a_successor_that_is_gone_when_it_serves_leaves_the_sessions_to_the_former_process() {
    let Some(line) = Line::new() else { return };
    let secrets = "[[subscriber]]\nuser = 'alice'\npassword = 'wonderland'\naddress = '203.0.113.7'\nroutes = ['198.51.100.0/28']\n";
    line.write("secrets", secrets);
    let accounts = line.text("accounts");
    let first = line.serve(&["--accounting", &accounts, "--prefix", "2001:db8:100::/48"]);
    let client = line.connect("alice", &[]);
    let mut stream = Stream::between(&line.near, &line.far, GATEWAY);
    for times in 1..=3 {
        stream.carry(1 << 16);
        let (mut successor, mut reader) = line.takes_over();
        line_of(&mut reader);
        successor.write_all(b"serves\n").expect("written");
        let counted: Value = serde_json::from_str(&line_of(&mut reader)).expect("JSON");
        assert!(line.far.run("ip", &["link", "show", "pppoe0"]).is_err());
        // One that had got further has the former's place.
        if times > 1 {
            let (beside, place) = (line.path("beside"), line.socket());
            let listener = UnixListener::bind(&beside).expect("a socket");
            fs::rename(&beside, &place).expect("moved");
            drop(listener);
        }
        drop((successor, reader));
        first.hear("ended before all was in its place: this process goes on with them", times);
        line.goes_on(&client, first.process());
        let routes = |family| line.far.run("ip", &[family, "route", "show", "dev", "pppoe0"]).expect("ip");
        let routes = routes("-4") + &routes("-6");
        for route in ["10.64.0.0/28 ", "203.0.113.7 ", "198.51.100.0/28 ", "2001:db8:100::/48 "] {
            assert_eq!(routes.matches(route).count(), 1, "{route}: {routes}");
        }
        stream.carry(1 << 16);
        let (before, now) = (&counted[0][1]["received_octets"], &line.sessions()[0]["received_octets"]);
        assert!(before.as_u64() > Some(1 << 16) && now.as_u64() > before.as_u64(), "{before} {now}");
    }
    // What is negotiated goes on as well.
    line.far(&["disconnect", "--concentrator", WAN, "--all"]).ends(0);
    client.hear("disconnected by the operator", 1);
    client.hear(": open", 2);
    line.far(&["disconnect", "--concentrator", WAN]).ends(0);
    first.ended().ends(0);
    let account = fs::read_to_string(&accounts).expect("accounts");
    let records = account.lines().map(|record| serde_json::from_str::<Value>(record).expect("JSON"));
    let records: Vec<Value> = records.collect();
    let events: Vec<&Value> = records.iter().map(|record| &record["event"]).collect();
    assert_eq!(events, ["start", "stop", "start", "stop"], "{account}");
    // All that went that way, whatever carried it.
    assert!(records[1]["received_octets"].as_u64() > Some(6 << 16), "{account}");
}

/// Somebody else has the name of the interface by then: nobody has the sessions, and subscribers are told at once.
#[test]
fn a_former_process_that_cannot_go_on_tells_the_subscribers() {
    let Some(line) = Line::new() else { return };
    let accounts = line.text("accounts");
    let first = line.serve(&["--accounting", &accounts]);
    let client = line.start_to_connect("alice", &["--reconnect", "false"]);
    client.hear(": open", 1);
    line.ping(&line.near, GATEWAY, 1000);
    let (mut successor, mut reader) = line.takes_over();
    line_of(&mut reader);
    successor.write_all(b"serves\n").expect("written");
    let counted: Value = serde_json::from_str(&line_of(&mut reader)).expect("JSON");
    assert!(counted[0][1]["received_octets"].as_u64() >= Some(3000), "{counted:#}");
    line.far.run("ip", &["link", "add", "pppoe0", "type", "veth", "peer", "name", "other"]).expect("taken");
    drop((successor, reader));
    let former = first.ended();
    former.ends(1).says("this process cannot go on: there is an interface pppoe0");
    former.says("subscribers were disconnected (PADT)");
    client.ended().says("PADT").says("is being shut down");
    let account = fs::read_to_string(&accounts).expect("accounts");
    assert_eq!(account.matches("\"event\":\"stop\"").count(), 1, "{account}");
}

/// Moments of a takeover that can be seen from outside, in their order.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// So long after its start.
    After(Duration),
    /// It has an interface of its own.
    Beside,
    /// It has a socket of its own.
    Listens,
    /// The interface of the former process is gone.
    Without,
    /// Its interface has the name.
    Renamed,
    /// Its socket has the place.
    Placed,
}

impl Line {
    /// Waits until a successor is that far, as exactly as can be; gives up when it serves, or is late.
    fn await_moment(&self, moment: Moment, successor: &Process) {
        let own = format!("rxlane-{}", successor.process());
        let mut beside = self.socket().into_os_string();
        beside.push(format!(".{}", successor.process()));
        let (beside, place) = (PathBuf::from(beside), self.socket());
        let number = |path: &PathBuf| fs::symlink_metadata(path).ok().map(|file| file.st_ino());
        let former = number(&place);
        if let Moment::After(time) = moment {
            return thread::sleep(time);
        }
        let until = Instant::now() + PATIENCE;
        self.far.inside(|| {
            let mut was_beside = false;
            let is_there = |name: &str| link_by_name(name).is_ok();
            while Instant::now() < until {
                was_beside |= is_there(&own);
                let is_so = match moment {
                    Moment::After(_) => true,
                    Moment::Beside => was_beside,
                    Moment::Listens => beside.exists(),
                    Moment::Without => was_beside && !is_there("pppoe0"),
                    Moment::Renamed => was_beside && !is_there(&own),
                    Moment::Placed => number(&place) != former,
                };
                let said = successor.said();
                if is_so || said.contains("disconnect --concentrator") || said.contains("rxlane: ") {
                    return;
                }
            }
        });
    }
}

/// The real successor, killed at any moment, with packets under way: the session is with the former process, which goes on; or
/// it was the successor's alone and goes with it, and the client has the next one when it has waited as it says.
#[test]
fn a_successor_that_is_killed_at_any_moment_costs_no_session_that_it_does_not_have() {
    let Some(line) = Line::new() else { return };
    let mut serving = line.serve(&[]);
    let mut client = line.connect("alice", &["--echo-interval", "1", "--echo-failures", "5"]);
    // How long a whole one takes here.
    let began = Instant::now();
    let next = line.serve(&["--takeover"]);
    std::mem::replace(&mut serving, next).ended().ends(0);
    let whole = began.elapsed();
    let named = [Moment::Beside, Moment::Listens, Moment::Without, Moment::Renamed, Moment::Placed];
    let spread = (0..10_u32).map(|share| Moment::After(whole * (share * 2 + 1) / 16));
    let (mut kept, mut lost) = (0, 0);
    for moment in named.into_iter().chain(spread) {
        let mut stream = Stream::between(&line.near, &line.far, GATEWAY);
        stream.carry(1 << 12);
        let successor = Process::start(&mut line.serve_command(&["--takeover"]));
        line.await_moment(moment, &successor);
        successor.killed();
        // The former process goes on, or has said that it does not.
        wait("somebody has the sessions", || {
            serving.said().contains("Another process goes on")
                || line.sessions_of(serving.process()) == Some(1)
        });
        if !serving.said().contains("Another process goes on") {
            kept += 1;
            let answers = || line.near.run("ping", &["-c", "1", "-W", "1", GATEWAY]).is_ok();
            let told = || format!("{moment:?}: {}\n{}", serving.said(), client.said());
            let until = Instant::now() + PATIENCE;
            while !answers() {
                assert!(Instant::now() < until, "no answer after {}", told());
            }
            stream.carry(1 << 12);
            // That of the killed one is on its way out.
            wait("one interface", || !line.far.run("ip", &["-br", "link"]).expect("ip").contains("rxlane-"));
            line.goes_on(&client, serving.process());
            continue;
        }
        lost += 1;
        serving.ended().is(&moment, 0, "");
        // What it left is removed by the next one, which serves the client again: it sends, and is told.
        serving = line.serve(&["--takeover"]);
        client.hear("closed: ", 1);
        let status = line.status("ppp0");
        assert!(status["next_try"].as_f64().unwrap_or_default() <= 1.0, "{status:#}");
        client.hear(": open", 2);
        line.wait_until_it_answers();
        // One that was open for so short a time would wait longer and longer.
        client.interrupted().ends(0);
        line.wait_for_sessions(0);
        client = line.connect("alice", &["--echo-interval", "1", "--echo-failures", "5"]);
    }
    assert!(kept > 2, "{kept} kept, {lost} lost with their process, a whole takeover in {whole:?}");
    client.interrupted().ends(0);
    // What the last one that was killed left is removed by the next.
    let next = line.serve(&["--takeover"]);
    std::mem::replace(&mut serving, next).ended().ends(0);
    serving.interrupted().ends(0);
    let left: Vec<_> = fs::read_dir(line.path("state")).expect("a folder").collect();
    assert!(left.is_empty(), "{left:?}");
    let links = line.far.run("ip", &["-br", "link"]).expect("ip");
    assert!(!links.contains("pppoe0") && !links.contains("rxlane-"), "{links}");
}
