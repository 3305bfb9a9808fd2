//! `rxlane steer` on veth pairs in network namespaces of its own: up, status, down, and what can come between.

mod interrupted;
mod keeper;
mod names;
mod records;
mod refused;

use crate::steer_machine::{Machine, WAN, code, said};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;
use testkit::{program, require, wait_for, wait_until};

#[test]
fn pppoe_of_one_queue_is_spread_and_everything_is_taken_back() {
    let Some(machine) = Machine::new() else { return };
    let before = machine.state();
    let dry = machine.run(&["up", WAN, "--dry-run", "--seconds", "0", "--cpus", machine.cpus()]);
    assert_eq!(code(&dry), 0, "{}", said(&dry));
    assert!(said(&dry).contains("nothing is changed now"), "{}", said(&dry));
    assert_eq!(machine.state(), before);

    let up = machine.run(&["up", WAN, "--seconds", "0", "--cpus", machine.cpus()]);
    assert_eq!(code(&up), 0, "{}", said(&up));
    assert!(said(&up).contains("steered in native mode"), "{}", said(&up));
    machine.send("pppoe");
    let status = machine.status(&["--interval", "0"]);
    assert_eq!(status["mode"], "native");
    assert_eq!(status["classes"], serde_json::json!(["qinq", "pppoe", "mpls"]));
    assert_eq!(status["buckets"].as_array().map(Vec::len), Some(256));
    let cpus: Vec<(u64, u64)> = status["cpus"]
        .as_array()
        .expect("CPUs")
        .iter()
        .map(|row| (row["frames"].as_u64().expect("frames"), row["drops"].as_u64().expect("drops")))
        .collect();
    let all: u64 = cpus.iter().map(|(frames, _)| frames).sum();
    let steered = reason(&status, "steered");
    assert!(steered > 1000, "{status:#}");
    assert_eq!(all + cpus.iter().map(|(_, drops)| drops).sum::<u64>(), steered, "{status:#}");
    for (frames, _) in &cpus {
        let share = *frames as f64 / all as f64;
        assert!((share - 1.0 / cpus.len() as f64).abs() < 0.2, "{cpus:?}");
    }

    let again = machine.run(&["up", WAN, "--seconds", "0"]);
    assert_eq!(code(&again), 1, "{}", said(&again));
    assert!(
        said(&again).contains("steered already") && said(&again).contains("steer down"),
        "{}",
        said(&again)
    );

    let down = machine.run(&["down", WAN, "--json"]);
    assert_eq!(code(&down), 0, "{}", said(&down));
    let down: Value = serde_json::from_slice(&down.stdout).expect("JSON");
    assert_eq!((down["steered"].as_bool(), down["mode"].as_str()), (Some(true), Some("native")));
    assert_eq!(down["frames"].as_u64(), Some(steered));
    assert_eq!(machine.state(), before);
    machine.assert_nothing_left();
    let nothing = machine.run(&["down", WAN]);
    assert!(code(&nothing) == 0 && said(&nothing).contains("nothing to take back"), "{}", said(&nothing));
}

fn reason(status: &Value, word: &str) -> u64 {
    let rows = status["reasons"].as_array().expect("reasons");
    rows.iter().find(|row| row["reason"] == word).and_then(|row| row["frames"].as_u64()).expect("the reason")
}

#[test]
fn classes_that_were_not_named_stay_where_they_are() {
    let Some(machine) = Machine::new() else { return };
    let up = machine.run(&["up", WAN, "--seconds", "0", "--classes", "qinq"]);
    assert_eq!(code(&up), 0, "{}", said(&up));
    let sent = machine.send("pppoe");
    let status = machine.status(&["--interval", "0"]);
    assert_eq!(reason(&status, "steered"), 0, "{status:#}");
    let left = reason(&status, "class-left");
    assert!(left > 0 && left <= sent, "{status:#}");
    assert_eq!(status["classes"], serde_json::json!(["qinq"]));
}

#[test]
fn generic_mode_is_taken_only_when_it_is_asked_for() {
    let Some(machine) = Machine::new() else { return };
    let up = machine.run(&["up", WAN, "--seconds", "0", "--mode", "generic"]);
    assert_eq!(code(&up), 0, "{}", said(&up));
    assert!(said(&up).contains("steered in generic mode"), "{}", said(&up));
    machine.send("pppoe");
    let status = machine.status(&["--interval", "0"]);
    assert_eq!(status["mode"], "generic");
    assert!(reason(&status, "steered") > 1000, "{status:#}");
    assert_eq!(code(&machine.run(&["down", WAN])), 0);
    machine.assert_nothing_left();
    // An interface whose driver has no native XDP.
    machine.ip(&["link", "add", "plain0", "type", "ifb"]);
    machine.ip(&["link", "set", "plain0", "up"]);
    let native = machine.run(&["up", "plain0", "--seconds", "0"]);
    assert_eq!(code(&native), 3, "{}", said(&native));
    assert!(said(&native).contains("--mode generic"), "{}", said(&native));
    assert!(!machine.state_of("plain0").contains("xdp"), "{}", machine.state_of("plain0"));
}

#[test]
fn a_setting_is_changed_with_consent_and_put_back() {
    let Some(machine) = Machine::new() else { return };
    let before = machine.state();
    let up = machine.run(&["up", WAN, "--seconds", "0", "--disable-rxvlan"]);
    assert_eq!(code(&up), 0, "{}", said(&up));
    assert!(said(&up).contains(&format!("ethtool -K {WAN} rxvlan off")), "{}", said(&up));
    assert!(machine.features().contains("rx-vlan-offload: off"));
    // The doctor's own changes are another matter.
    let undo = machine.rxlane(&["doctor", "--undo", "--journal", machine.journal()]);
    assert!(machine.features().contains("rx-vlan-offload: off"), "{}", said(&undo));
    let down = machine.run(&["down", WAN]);
    assert!(code(&down) == 0 && said(&down).contains("rxvlan on"), "{}", said(&down));
    assert_eq!(machine.state(), before);
    machine.assert_nothing_left();
}

#[test]
fn a_kill_in_the_midst_of_up_leaves_what_down_takes_back() {
    let Some(machine) = Machine::new() else { return };
    let before = machine.state();
    // A kill after the setting and before the programs: ethtool does not come back.
    let mut child = machine
        .with_hanging_ethtool(&["up", WAN, "--seconds", "0", "--disable-rxvlan"])
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    wait_until("a change", || {
        assert!(child.try_wait().expect("a status").is_none(), "it ended without a change");
        machine.features().contains("rx-vlan-offload: off")
    });
    machine.kill_group(&child);
    child.wait().expect("an end");
    assert_ne!(machine.state(), before);
    let down = machine.run(&["down", WAN]);
    assert_eq!(code(&down), 0, "{}", said(&down));
    assert_eq!(machine.state(), before);
    machine.assert_nothing_left();
}

#[test]
fn a_kill_at_any_moment_leaves_what_down_takes_back() {
    let Some(machine) = Machine::new() else { return };
    let before = machine.state();
    for milliseconds in [5, 20, 60, 120, 250, 500, 900] {
        let arguments = ["up", WAN, "--seconds", "0", "--disable-rxvlan", "--rebalance"];
        let mut child = machine
            .command(&arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        thread::sleep(Duration::from_millis(milliseconds));
        let _ = child.kill();
        child.wait().expect("an end");
        // What was started in the background may be about to say so.
        let down = machine.run(&["down", WAN]);
        assert_eq!(code(&down), 0, "after {milliseconds} ms: {}", said(&down));
        assert_eq!(machine.state(), before, "after {milliseconds} ms");
    }
    machine.assert_nothing_left();
}

#[test]
fn an_interface_that_is_gone_leaves_nothing_behind() {
    let Some(machine) = Machine::new() else { return };
    let up = machine.run(&["up", WAN, "--seconds", "0", "--disable-rxvlan", "--rebalance"]);
    assert_eq!(code(&up), 0, "{}", said(&up));
    machine.ip(&["link", "del", WAN]);
    let down = machine.run(&["down", WAN]);
    assert_eq!(code(&down), 0, "{}", said(&down));
    machine.assert_nothing_left();
    // Another one of its name is not steered.
    let unknown = machine.run(&["down", WAN]);
    assert_eq!(code(&unknown), 2, "{}", said(&unknown));
}

#[test]
fn two_at_once_are_one_after_the_other() {
    let Some(machine) = Machine::new() else { return };
    let spawn = || {
        let mut command = machine.command(&["up", WAN, "--seconds", "0", "--disable-rxvlan"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    };
    let both = [spawn(), spawn()];
    let ended = both.map(|child| child.wait_with_output().expect("an end"));
    let mut codes = ended.each_ref().map(code);
    codes.sort_unstable();
    assert_eq!(codes, [0, 1], "{} {}", said(&ended[0]), said(&ended[1]));
    // What the loser took back was not the winner's.
    assert!(machine.features().contains("rx-vlan-offload: off"));
    assert_eq!(machine.status(&["--interval", "0"])["mode"], "native");
    assert_eq!(code(&machine.run(&["down", WAN])), 0);
    machine.assert_nothing_left();
}

#[test]
fn in_the_foreground_it_tells_the_manager_and_ends_with_a_signal() {
    let Some(machine) = Machine::new() else { return };
    let before = machine.state();
    let socket = machine.folder().join("notify");
    let manager = UnixDatagram::bind(&socket).expect("bound");
    manager.set_read_timeout(Some(Duration::from_secs(60))).expect("a time");
    let mut command = machine.command(&["up", WAN, "--seconds", "0", "--foreground", "--disable-rxvlan"]);
    let child = command.env("NOTIFY_SOCKET", &socket).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.expect("it starts");
    let heard = || {
        let mut buffer = [0; 200];
        let length = manager.recv(&mut buffer).expect("heard in time");
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    };
    assert_eq!(heard(), format!("READY=1\nSTATUS={WAN} is steered\n"));
    let status = machine.status(&["--interval", "0"]);
    assert_eq!(
        (status["mode"].as_str(), status["keeper"]["foreground"].as_bool()),
        (Some("native"), Some(true))
    );
    machine.signal(&child, "TERM");
    assert_eq!(heard(), "STOPPING=1\n");
    let ended = child.wait_with_output().expect("an end");
    assert_eq!(code(&ended), 0, "{}", said(&ended));
    assert!(said(&ended).contains("no longer steered"), "{}", said(&ended));
    assert_eq!(machine.state(), before);
    machine.assert_nothing_left();
}

#[test]
fn down_ends_what_stays_in_the_foreground() {
    let Some(machine) = Machine::new() else { return };
    let mut command = machine.command(&["up", WAN, "--seconds", "0", "--foreground"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    machine.wait_until_steered();
    let down = machine.run(&["down", WAN]);
    assert_eq!(code(&down), 0, "{}", said(&down));
    let ended = child.wait_with_output().expect("an end");
    assert_eq!(code(&ended), 0, "{}", said(&ended));
    machine.assert_nothing_left();
}

#[test]
fn what_stays_in_the_foreground_ends_with_the_interface() {
    let Some(machine) = Machine::new() else { return };
    let mut command = machine.command(&["up", WAN, "--seconds", "0", "--foreground"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    machine.wait_until_steered();
    machine.ip(&["link", "del", WAN]);
    let ended = child.wait_with_output().expect("an end");
    assert_eq!(code(&ended), 0, "{}", said(&ended));
    machine.assert_nothing_left();
}

#[test]
fn a_keeper_serves_metrics_and_its_death_is_told() {
    let Some(machine) = Machine::new() else { return };
    let port = "127.0.0.1:9144";
    let up = machine.run(&["up", WAN, "--seconds", "0", "--rebalance", "--metrics", port]);
    assert_eq!(code(&up), 0, "{}", said(&up));
    machine.send("pppoe");
    let page = machine.inside(|| {
        let mut stream = TcpStream::connect(port).expect("connected");
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a time");
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nHost: rxlane\r\nConnection: close\r\n\r\n")
            .expect("asked");
        let mut page = String::new();
        stream.read_to_string(&mut page).expect("answered");
        page
    });
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("rxlane_"), "{page}");
    assert!(page.contains(&format!("interface=\"{WAN}\"")), "{page}");
    let keeper = machine.status(&["--interval", "0"])["keeper"].clone();
    assert_eq!((keeper["alive"].as_bool(), keeper["metrics"].as_str()), (Some(true), Some(port)), "{keeper}");
    let pid = keeper["pid"].as_u64().expect("a number").to_string();
    assert!(std::process::Command::new("kill").args(["-9", &pid]).status().expect("kill").success());
    let status = wait_for("the keeper is dead", || {
        Some(machine.status(&["--interval", "0"])).filter(|status| status["keeper"]["alive"] == false)
    });
    assert!(status["remarks"].to_string().contains("is dead"), "{status:#}");
    assert_eq!(code(&machine.run(&["down", WAN])), 0);
    machine.assert_nothing_left();
}

#[test]
fn a_keeper_that_cannot_start_leaves_nothing_behind() {
    let Some(machine) = Machine::new() else { return };
    let before = machine.state();
    // An address that this namespace does not have.
    let up = machine.run(&["up", WAN, "--seconds", "0", "--disable-rxvlan", "--metrics", "192.0.2.1:9144"]);
    assert_eq!(code(&up), 3, "{}", said(&up));
    assert!(said(&up).contains("192.0.2.1:9144"), "{}", said(&up));
    assert_eq!(machine.state(), before);
    machine.assert_nothing_left();
}

#[test]
fn without_root_it_says_what_it_takes() {
    let Some(machine) = Machine::new() else { return };
    let Some(()) = require("setpriv", program("setpriv").map(|_| ())) else { return };
    let check = machine.as_nobody(&["check", WAN, "--seconds", "0.2"]);
    assert!(matches!(code(&check), 0 | 1), "{}", said(&check));
    assert!(said(&check).contains("requires root"), "{}", said(&check));
    let dry = machine.as_nobody(&["up", WAN, "--dry-run", "--seconds", "0"]);
    assert_eq!(code(&dry), 0, "{}", said(&dry));
    let up = machine.as_nobody(&["up", WAN, "--seconds", "0"]);
    assert_eq!(code(&up), 3, "{}", said(&up));
    assert!(said(&up).contains("CAP_BPF"), "{}", said(&up));
    assert_eq!(code(&machine.run(&["up", WAN, "--seconds", "0"])), 0);
    let status = machine.as_nobody(&["status", WAN, "--interval", "0"]);
    assert_eq!(code(&status), 0, "{}", said(&status));
    assert!(said(&status).contains("root"), "{}", said(&status));
    let down = machine.as_nobody(&["down", WAN]);
    assert_eq!(code(&down), 3, "{}", said(&down));
    assert_eq!(machine.status(&["--interval", "0"])["mode"], "native");
}

#[test]
fn check_says_that_an_interface_is_steered_and_how_that_stands() {
    let Some(machine) = Machine::new() else { return };
    let before = machine.run(&["check", WAN, "--seconds", "0", "--json"]);
    let before: Value = serde_json::from_slice(&before.stdout).expect("JSON");
    assert!(before["steered"] == false && before["status"].is_null(), "{before:#}");
    let up = machine.run(&["up", WAN, "--seconds", "0", "--rebalance", "--classes", "vlan"]);
    assert_eq!(code(&up), 0, "{}", said(&up));
    let pid = machine.status_of(WAN)["keeper"]["pid"].as_u64().expect("a process");
    let check = machine.run(&["check", WAN, "--seconds", "0"]);
    let text = said(&check);
    assert_eq!(code(&check), 1, "{text}");
    assert!(text.starts_with("wan0 (driver veth; profile veth): steered already\n"), "{text}");
    for part in [
        "wan0: steered, native mode, for ",
        "  classes     vlan\n",
        &format!("  process     {pid} rebalances"),
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("CPUs to steer to") && !text.contains("steer up"), "{text}");
    let check = machine.run(&["check", WAN, "--seconds", "0", "--json"]);
    let check: Value = serde_json::from_slice(&check.stdout).expect("JSON");
    assert_eq!(check["recommendation"]["answer"], "steered");
    assert_eq!(
        (&check["status"]["mode"], &check["status"]["keeper"]["pid"]),
        (&"native".into(), &pid.into())
    );
    assert_eq!(code(&machine.run(&["down", WAN])), 0);
}

#[test]
fn check_shows_what_is_counted_and_what_is_not_where_no_frame_comes() {
    let Some(machine) = Machine::new() else { return };
    // One look counts nothing, and says what would.
    let look = |seconds: &str| -> String {
        let text = said(&machine.run(&["check", WAN, "--seconds", seconds]));
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let text = look("0");
    assert!(text.contains("frames were not counted twice: look for a second or more"), "{text}");
    let text = look("0.2");
    assert!(text.contains("0 frames arrived during the look: look again under load"), "{text}");
    assert!(text.contains("what each queue takes is not counted; an end of a veth pair counts"), "{text}");
    // Received in NAPI, which counts queues (veth_skb_is_eligible_for_gro of drivers/net/veth.c).
    let napi =
        || Command::new("sh").args(["-c", "ethtool -K wan0 gro on && ethtool -K far0 tso off"]).status();
    assert!(machine.inside(napi).expect("ethtool").success());
    machine.send("pppoe");
    let text = said(&machine.run(&["check", WAN, "--seconds", "0.2"]));
    assert!(text.contains("\n  0                   0           0/s  -       -\n"), "{text}");
    assert!(!text.contains("is not counted") && !text.contains("of the frames"), "{text}");
}

#[test]
fn check_sees_the_traffic_and_the_queues() {
    let Some(machine) = Machine::new() else { return };
    let output = machine.under_load("pppoe", || machine.run(&["check", WAN, "--seconds", "1", "--json"]));
    let check: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(check["possible"], true, "{check:#}");
    let pppoe = &check["classes"].as_array().expect("classes")[3];
    assert_eq!(
        (pppoe["class"].as_str(), pppoe["selected"].as_bool()),
        (Some("pppoe"), Some(true)),
        "{check:#}"
    );
    assert!(pppoe["share"].as_f64().is_some_and(|share| share > 0.9), "{check:#}");
    assert!(check["sample"]["frames"].as_u64().is_some_and(|frames| frames > 1000), "{check:#}");
    let answer = check["recommendation"]["answer"].as_str().expect("an answer");
    assert!(["steer", "rps", "nothing", "unknown"].contains(&answer), "{check:#}");
    assert_eq!(code(&output) == 0, answer == "steer", "{check:#}");
    for line in said(&machine.run(&["check", WAN, "--seconds", "0"])).lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}
