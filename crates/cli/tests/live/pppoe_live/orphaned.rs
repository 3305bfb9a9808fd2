//! Takeovers whose successor dies when it has the sessions, or just before or after that.

use super::line::{GATEWAY, Line, WAN};
use super::takeover::{PREFIX, ROUTED, line_of};
use crate::killed::STEP;
use crate::process::Process;
use crate::run::Ended;
use crate::stream::Stream;
use kernel::netlink::link_by_name;
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::os::linux::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::time::Instant;
use testkit::{PATIENCE, wait_until};

/// The former process has ended its interface by then, and goes on with another one.
#[test]
fn a_successor_that_ends_when_it_serves_leaves_the_sessions_to_the_former_process() {
    let Some(line) = Line::new() else { return };
    line.write("secrets", ROUTED);
    let accounts = line.text("accounts");
    let first = line.serve(&[&PREFIX[..], &["--accounting", &accounts]].concat());
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
            let (temporary, place) = (line.path("temporary"), line.socket());
            let listener = UnixListener::bind(&temporary).expect("a socket");
            fs::rename(&temporary, &place).expect("moved");
            drop(listener);
        }
        drop((successor, reader));
        first.hear("ended before all was in its place: this process goes on with them", times);
        line.goes_on(&client, first.process());
        line.assert_routes();
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

/// Somebody else has the name of the interface by then: nobody has the sessions, and subscribers get a PADT at once.
#[test]
fn a_former_process_that_cannot_go_on_disconnects_the_subscribers() {
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
    /// It has an interface of its own.
    HasInterface,
    /// It has a socket of its own.
    Listens,
    /// The interface of the former process is removed.
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
        let mut own_socket = self.socket().into_os_string();
        own_socket.push(format!(".{}", successor.process()));
        let (own_socket, place) = (PathBuf::from(own_socket), self.socket());
        let number = |path: &PathBuf| fs::symlink_metadata(path).ok().map(|file| file.st_ino());
        let former = number(&place);
        let until = Instant::now() + PATIENCE;
        self.far.inside(|| {
            let mut had_interface = false;
            let is_there = |name: &str| link_by_name(name).is_ok();
            while Instant::now() < until {
                had_interface |= is_there(&own);
                let is_so = match moment {
                    Moment::HasInterface => had_interface,
                    Moment::Listens => own_socket.exists(),
                    Moment::Without => had_interface && !is_there("pppoe0"),
                    Moment::Renamed => had_interface && !is_there(&own),
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
/// it was the successor's alone, and the next process goes on with it.
#[test]
fn a_successor_that_is_killed_at_any_moment_costs_no_session() {
    // A takeover that is cut off may be silent for the 10 s that a process waits for the other; a client that gives up earlier
    // ends the session by itself.
    const ECHO: [&str; 4] = ["--echo-interval", "1", "--echo-failures", "20"];
    let Some(line) = Line::new() else { return };
    let mut serving = line.serve(&[]);
    let client = line.connect("alice", &ECHO);
    let (mut kept, mut alone) = (0, 0);
    let moments = [Moment::HasInterface, Moment::Listens, Moment::Without, Moment::Renamed, Moment::Placed];
    // And by itself, behind each step at which the state on the disk changes.
    let moments = moments.into_iter().map(Ok).chain((1..).map(Err::<Moment, u32>));
    for moment in moments {
        let mut stream = Stream::between(&line.near, &line.far, GATEWAY);
        stream.carry(1 << 12);
        let mut command = line.serve_command(&["--takeover"]);
        match moment {
            Ok(moment) => {
                let successor = Process::start(&mut command);
                line.await_moment(moment, &successor);
                successor.killed();
            }
            Err(step) => {
                let mut successor = Process::start(command.env(STEP, step.to_string()));
                if successor.says_before_its_end("disconnect --concentrator") {
                    // It would be killed at its end.
                    serving.ended().ends(0);
                    successor.killed();
                    assert!(step > 3, "{step} steps");
                    break;
                }
                successor.ended();
            }
        }
        // The former process goes on, or has said that it does not.
        let is_over = || serving.said().contains("Another process goes on");
        wait_until("somebody has the sessions", || {
            is_over() || line.sessions_of(serving.process()) == Some(1)
        });
        if !is_over() {
            kept += 1;
            let what = || format!("an answer after {moment:?}: {}\n{}", serving.said(), client.said());
            wait_until(std::fmt::from_fn(|f| f.write_str(&what())), || {
                line.near.run("ping", &["-c", "1", "-W", "1", GATEWAY]).is_ok()
            });
            // That of the killed one is on its way out.
            wait_until("one interface", || {
                !line.far.run("ip", &["-br", "link"]).expect("ip").contains("rxlane-")
            });
            line.goes_on(&client, serving.process());
            stream.carry(1 << 12);
            continue;
        }
        alone += 1;
        serving.ended().is(&moment, 0, "");
        serving = line.serve(&["--takeover"]);
        line.goes_on(&client, serving.process());
    }
    assert!(kept > 2, "{kept} kept, {alone} alone with the process that was killed");
    client.interrupted().ends(0);
    // What the last one that was killed left is removed by the next.
    line.serve(&["--takeover"]).interrupted().ends(0);
    let left: Vec<_> = fs::read_dir(line.path("state")).expect("a folder").collect();
    assert!(left.is_empty(), "{left:?}");
    let links = line.far.run("ip", &["-br", "link"]).expect("ip");
    assert!(!links.contains("pppoe0") && !links.contains("rxlane-"), "{links}");
}
