//! `rxlane steer` on veth pairs in network namespaces of its own: up, status, down, and what can come between.

mod interrupted;
mod keeper;
mod records;
mod refused;
mod settings;
mod simultaneous;

use crate::machine::{Machine, Manager, WAN, online_cpus, signal};
use crate::run::{Ended, Report};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;
use testkit::wait_for;

#[test]
fn pppoe_of_one_queue_is_spread_and_everything_is_taken_back() {
    let Some(machine) = Machine::steer() else { return };
    let before = machine.state();
    machine
        .run(&["up", WAN, "--dry-run", "--seconds", "0", "--cpus", &online_cpus()])
        .ends(0)
        .says("nothing is changed now");
    assert_eq!(machine.state(), before);

    machine
        .run(&["up", WAN, "--seconds", "0", "--cpus", &online_cpus()])
        .ends(0)
        .says("steered in native mode");
    machine.send_scenario("pppoe");
    let status = machine.status();
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

    machine.run(&["up", WAN, "--seconds", "0"]).ends(1).says("steered already").says("steer down");

    let down = machine.run(&["down", WAN, "--json"]).ends(0).json();
    assert_eq!((down["steered"].as_bool(), down["mode"].as_str()), (Some(true), Some("native")));
    assert_eq!(down["frames"].as_u64(), Some(steered));
    assert_eq!(machine.state(), before);
    machine.assert_nothing_left();
    machine.run(&["down", WAN]).ends(0).says("nothing to take back");
}

fn reason(status: &Value, word: &str) -> u64 {
    let rows = status["reasons"].as_array().expect("reasons");
    rows.iter().find(|row| row["reason"] == word).and_then(|row| row["frames"].as_u64()).expect("the reason")
}

#[test]
fn classes_that_were_not_named_stay_where_they_are() {
    let Some(machine) = Machine::steer() else { return };
    machine.run(&["up", WAN, "--seconds", "0", "--classes", "qinq"]).ends(0);
    let sent = machine.send_scenario("pppoe");
    let status = machine.status();
    assert_eq!(reason(&status, "steered"), 0, "{status:#}");
    let left = reason(&status, "class-left");
    assert!(left > 0 && left <= sent, "{status:#}");
    assert_eq!(status["classes"], serde_json::json!(["qinq"]));
}

#[test]
fn generic_mode_is_taken_only_when_it_is_requested() {
    let Some(machine) = Machine::steer() else { return };
    machine.run(&["up", WAN, "--seconds", "0", "--mode", "generic"]).ends(0).says("steered in generic mode");
    machine.send_scenario("pppoe");
    let status = machine.status();
    assert_eq!(status["mode"], "generic");
    assert!(reason(&status, "steered") > 1000, "{status:#}");
    machine.run(&["down", WAN]).ends(0);
    machine.assert_nothing_left();
    // An interface whose driver has no native XDP.
    machine.ip(&["link", "add", "plain0", "type", "ifb"]);
    machine.ip(&["link", "set", "plain0", "up"]);
    machine.run(&["up", "plain0", "--seconds", "0"]).ends(3).says("--mode generic");
    assert!(!machine.state_of("plain0").contains("xdp"), "{}", machine.state_of("plain0"));
}

#[test]
fn a_setting_is_changed_with_consent_and_put_back() {
    let Some(machine) = Machine::steer() else { return };
    let before = machine.state();
    machine
        .run(&["up", WAN, "--seconds", "0", "--disable-rxvlan"])
        .ends(0)
        .says(&format!("ethtool -K {WAN} rxvlan off"));
    assert!(machine.features().contains("rx-vlan-offload: off"));
    // The doctor's own changes are another matter.
    let undo = machine.command_of(&machine.namespace, "doctor", &["--undo"]).output().expect("it starts");
    assert!(machine.features().contains("rx-vlan-offload: off"), "{}", undo.text());
    machine.run(&["down", WAN]).ends(0).says("rxvlan on");
    assert_eq!(machine.state(), before);
    machine.assert_nothing_left();
}

#[test]
fn in_the_foreground_it_notifies_the_manager_and_ends_with_a_signal() {
    let Some(machine) = Machine::steer() else { return };
    let before = machine.state();
    let manager = Manager::new(machine.folder());
    let mut command = machine.command(&["up", WAN, "--seconds", "0", "--foreground", "--disable-rxvlan"]);
    let child =
        command.env("NOTIFY_SOCKET", &manager.path).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.expect("it starts");
    assert_eq!(manager.heard(), format!("READY=1\nSTATUS={WAN} is steered\n"));
    machine.status().has(json!({"mode": "native", "keeper": {"foreground": true}}));
    signal(child.id(), "TERM");
    assert_eq!(manager.heard(), "STOPPING=1\n");
    child.wait_with_output().expect("an end").ends(0).says("no longer steered");
    assert_eq!(machine.state(), before);
    machine.assert_nothing_left();
}

#[test]
fn a_foreground_process_ends_with_steering_and_with_the_interface() {
    let Some(machine) = Machine::steer() else { return };
    let child = machine.start_in_the_foreground(&[]);
    machine.run(&["down", WAN]).ends(0);
    child.wait_with_output().expect("an end").ends(0);
    machine.assert_nothing_left();
    let child = machine.start_in_the_foreground(&[]);
    machine.ip(&["link", "del", WAN]);
    child.wait_with_output().expect("an end").ends(0);
    machine.assert_nothing_left();
}

#[test]
fn a_keeper_serves_metrics_and_its_death_is_reported() {
    let Some(machine) = Machine::steer() else { return };
    let port = "127.0.0.1:9144";
    machine.run(&["up", WAN, "--seconds", "0", "--rebalance", "--metrics", port]).ends(0);
    machine.send_scenario("pppoe");
    let page = machine.inside(|| {
        let mut stream = TcpStream::connect(port).expect("connected");
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a time");
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nHost: rxlane\r\nConnection: close\r\n\r\n")
            .expect("requested");
        let mut page = String::new();
        stream.read_to_string(&mut page).expect("answered");
        page
    });
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("rxlane_"), "{page}");
    assert!(page.contains(&format!("interface=\"{WAN}\"")), "{page}");
    let keeper = machine.status()["keeper"].clone();
    assert_eq!((keeper["alive"].as_bool(), keeper["metrics"].as_str()), (Some(true), Some(port)), "{keeper}");
    signal(keeper["pid"].as_u64().expect("a number"), "KILL");
    let status = wait_for("the keeper is dead", || {
        Some(machine.status()).filter(|status| status["keeper"]["alive"] == false)
    });
    assert!(status["remarks"].to_string().contains("is dead"), "{status:#}");
    machine.run(&["down", WAN]).ends(0);
    machine.assert_nothing_left();
}

#[test]
fn check_says_that_an_interface_is_steered_and_how_that_stands() {
    let Some(machine) = Machine::steer() else { return };
    let before = machine.run(&["check", WAN, "--seconds", "0", "--json"]).json();
    assert!(before["steered"] == false && before["status"].is_null(), "{before:#}");
    machine.run(&["up", WAN, "--seconds", "0", "--rebalance", "--classes", "vlan"]).ends(0);
    let pid = machine.status_of(WAN)["keeper"]["pid"].as_u64().expect("a process");
    let check = machine.run(&["check", WAN, "--seconds", "0"]);
    let text = check.ends(1).text();
    assert!(text.starts_with("wan0 (driver veth; profile veth): steered already\n"), "{text}");
    for part in [
        "wan0: steered, native mode, for ",
        "  classes     vlan\n",
        &format!("  process     {pid} rebalances"),
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("CPUs to steer to") && !text.contains("steer up"), "{text}");
    let check = machine.run(&["check", WAN, "--seconds", "0", "--json"]).json();
    check.has(json!({
        "recommendation": {"answer": "steered"}, "status": {"mode": "native", "keeper": {"pid": pid}},
    }));
    machine.run(&["down", WAN]).ends(0);
}

#[test]
fn check_shows_what_is_counted_and_what_is_not_where_no_frame_comes() {
    let Some(machine) = Machine::steer() else { return };
    // One look counts nothing, and says what would.
    let look = |seconds: &str| machine.run(&["check", WAN, "--verbose", "--seconds", seconds]);
    look("0").says("frames were not counted twice: look for a second or more");
    look("0.2")
        .says("0 frames arrived during the look: look again under load")
        .says("what each queue takes is not counted; an end of a veth pair counts");
    // Received in NAPI, which counts queues (veth_skb_is_eligible_for_gro of drivers/net/veth.c).
    let napi =
        || Command::new("sh").args(["-c", "ethtool -K wan0 gro on && ethtool -K far0 tso off"]).status();
    assert!(machine.inside(napi).expect("ethtool").success());
    machine.send_scenario("pppoe");
    let text = look("0.2").text();
    assert!(text.contains("\n  0                   0           0/s  -       -\n"), "{text}");
    assert!(!text.contains("is not counted") && !text.contains("of the frames"), "{text}");
}

#[test]
fn check_sees_the_traffic_and_the_queues() {
    let Some(machine) = Machine::steer() else { return };
    let output = machine.under_load("pppoe", || machine.run(&["check", WAN, "--seconds", "1", "--json"]));
    let check = output.json();
    assert_eq!(check["possible"], true, "{check:#}");
    let pppoe = &check["classes"][3];
    pppoe.has(json!({"class": "pppoe", "selected": true}));
    assert!(pppoe["share"].as_f64().is_some_and(|share| share > 0.9), "{check:#}");
    assert!(check["sample"]["frames"].as_u64().is_some_and(|frames| frames > 1000), "{check:#}");
    let answer = check["recommendation"]["answer"].as_str().expect("an answer");
    assert!(["steer", "rps", "nothing", "unknown"].contains(&answer), "{check:#}");
    assert_eq!(output.code() == 0, answer == "steer", "{check:#}");
    for line in machine.run(&["check", WAN, "--verbose", "--seconds", "0"]).text().lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}
