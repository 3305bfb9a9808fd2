//! A concentrator that is killed, and the next one, which goes on with its sessions.

use super::line::{GATEWAY, Line};
use crate::run::{Ended, Report};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use testkit::wait_until;

/// The file of the sessions.
fn kept(line: &Line) -> PathBuf {
    let folder = fs::read_dir(line.path("state")).expect("a folder");
    let mut files = folder.map(|entry| entry.expect("an entry").path());
    files.find(|path| path.to_string_lossy().ends_with(".sessions")).expect("a file of sessions")
}

#[test]
fn the_next_one_goes_on_with_the_sessions() {
    let Some(line) = Line::new() else { return };
    let accounts = line.text("accounts");
    let options = ["--accounting", &accounts, "--prefix", "fd00:99::/48"];
    let serving = line.serve(&options);
    // One that is over is not there again.
    line.connect("alice", &[]).interrupted().ends(0);
    let [alice, bob] =
        [("alice", "ppp0"), ("bob", "ppp1")].map(|(user, name)| line.connect(user, &["--ifname", name]));
    line.ping(&line.near, GATEWAY, 1492);
    let received = |session: &Value| session["received_octets"].as_u64().expect("a number");
    wait_until("what they have transferred is written", || {
        let text = fs::read_to_string(kept(&line)).expect("a text");
        line.sessions()
            .iter()
            .all(|session| text.contains(&format!("\"received_octets\":{},", received(session))))
    });
    let of =
        |user: &str| line.sessions().into_iter().find(|session| session["user"] == user).expect("a session");
    let before = ["alice", "bob"].map(of);
    serving.killed();
    let serving = line.serve(&options);
    serving.hear("2 sessions of a process that was killed, 0 disconnected", 1);
    for (before, after) in before.iter().zip(["alice", "bob"].map(of)) {
        for field in ["id", "session_id", "mac", "peer", "prefix"] {
            assert_eq!(before[field], after[field], "{after:#} {before:#}");
        }
        assert!(received(&after) >= received(before), "{after:#} {before:#}");
        assert!(after["uptime"].as_f64() >= before["uptime"].as_f64(), "{after:#} {before:#}");
    }
    assert!(before.iter().map(received).sum::<u64>() >= 3 * 1492, "{before:#?}");
    for name in ["ppp0", "ppp1"] {
        assert_eq!(line.status(name)["sessions"], 1);
    }
    line.ping(&line.near, GATEWAY, 1492);
    line.ping(&line.far, "10.64.0.2", 1492);
    for client in [alice, bob] {
        client.interrupted().ends(0).omits("closed: ");
    }
    line.wait_for_sessions(0);
    serving.interrupted().ends(0);
    let records = fs::read_to_string(&accounts).expect("accounts");
    for event in ["start", "stop"] {
        assert_eq!(records.matches(&format!("\"event\":\"{event}\"")).count(), 3, "{records}");
    }
    assert!(
        line.path("state")
            .read_dir()
            .expect("a folder")
            .all(|entry| { !entry.expect("an entry").path().to_string_lossy().ends_with(".sessions") })
    );
}

#[test]
fn a_session_of_a_line_that_is_not_served_any_more_ends() {
    let Some(line) = Line::new() else { return };
    line.serve(&["--vlan", "any"]).killed();
    let serving = line.serve(&["--vlan", "any"]);
    let client = line.connect("alice", &["--vlan", "100.200"]);
    serving.killed();
    let serving = line.serve(&["--vlan", "none"]);
    serving.hear("0 sessions of a process that was killed, 1 disconnected", 1);
    serving.hear("its VLANs are not served any more", 1);
    client.hear("closed: ", 1);
    line.wait_for_sessions(0);
}

#[test]
fn a_file_that_cannot_be_read_keeps_nobody_from_serving() {
    let Some(line) = Line::new() else { return };
    for text in ["nonsense\n", "{\"form\":9}\n", "{\"ended\":7}\n"] {
        line.serve(&[]).killed();
        fs::write(kept(&line), text).expect("written");
        let serving = line.serve(&[]);
        serving.hear("the sessions of the process that was killed do not go on", 1);
        let client = line.connect("alice", &[]);
        line.sessions()[0].has(json!({"user": "alice"}));
        client.interrupted().ends(0);
        serving.interrupted().ends(0);
    }
}
