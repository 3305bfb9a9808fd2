//! `rxlane steer` on stock drivers: where frames go, what is lost, and what is left when somebody dies.

use crate::{
    FLOWS, LONG, Landed, booted, frames, is_even, is_on_first, land, land_on, newer, older, vectors,
};
use anyhow::{Context, Result};
use rxlane_lab::built::program;
use rxlane_lab::{Guest, Output};
use serde_json::Value;
use std::thread;
use std::time::{Duration, Instant};
use testkit::{Missing, require};

const ALL: u64 = FLOWS as u64;
/// Encapsulations that put every frame on one queue.
const PPPOE: [&str; 3] = ["pppoe:1", "q:35,pppoe:1", "ad:100,q:200,pppoe:1"];

/// The checkout's own program, which the guest sees where it is.
pub fn rxlane() -> Option<String> {
    let path = program("rxlane").map_err(|error| Missing(error.to_string()));
    require("lab", path).map(|path| path.display().to_string())
}

/// Runs `rxlane steer` with the words.
pub fn steer(guest: &Guest, rxlane: &str, words: &str) -> Output {
    let argv: Vec<&str> = [rxlane, "steer"].into_iter().chain(words.split(' ')).collect();
    guest.run(&argv).expect("it runs")
}

/// The same, and it has to succeed.
pub fn steered(guest: &Guest, rxlane: &str, words: &str) -> String {
    let output = steer(guest, rxlane, words);
    assert_eq!(output.status, 0, "steer {words}: {}{}", output.text(), output.errors());
    output.text()
}

/// Puts steering on `wan`, and its vectors where they were: attaching sets the adapter up anew.
pub fn up(guest: &Guest, rxlane: &str, more: &str) {
    steered(guest, rxlane, &format!("up wan --cpus 0-3 --seconds 0 {more}"));
    guest.await_carrier("wan").expect("a carrier");
    vectors(guest, "wan").expect("vectors");
}

pub fn status(guest: &Guest, rxlane: &str, interface: &str) -> Value {
    let text = steered(guest, rxlane, &format!("status {interface} --json"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

pub fn sum(rows: &Value, field: &str) -> u64 {
    rows.as_array().expect("rows").iter().map(|row| row[field].as_u64().expect("a number")).sum()
}

pub fn reason(status: &Value, word: &str) -> u64 {
    let rows = status["reasons"].as_array().expect("rows");
    let row =
        rows.iter().find(|row| row["reason"] == word).unwrap_or_else(|| panic!("no {word} in {status}"));
    row["frames"].as_u64().expect("a number")
}

/// Every inner flow on its own CPU, nothing lost, and control frames where they arrived.
pub fn spreads(guest: &Guest) {
    let Some(rxlane) = rxlane() else { return };
    up(guest, &rxlane, "--classes pppoe --disable-rxvlan");
    let mut steered_so_far = 0;
    for encapsulation in PPPOE {
        let Landed { queues, cpus } = land(guest, encapsulation).expect("landed");
        println!("{encapsulation}: queues {queues:?}, CPUs {cpus:?}");
        assert_eq!(queues, [ALL, 0, 0, 0], "{encapsulation}");
        assert!(is_even(&cpus, ALL), "{encapsulation}: {cpus:?}");
        assert_eq!(cpus.iter().sum::<u64>(), ALL, "{encapsulation}: {cpus:?}");
        steered_so_far += ALL;
        let status = status(guest, &rxlane, "wan");
        assert_eq!(status["mode"], "native");
        assert_eq!(
            (sum(&status["cpus"], "frames"), sum(&status["cpus"], "drops")),
            (steered_so_far, 0),
            "{status}"
        );
        assert_eq!(reason(&status, "steered"), steered_so_far, "{status}");
    }
    // A class that the adapter spreads stays where it is.
    let Landed { queues, cpus } = land(guest, "none").expect("landed");
    assert!(is_even(&queues, ALL) && is_even(&cpus, ALL), "{queues:?} {cpus:?}");
    assert_eq!(reason(&status(guest, &rxlane, "wan"), "steered"), steered_so_far);
    control_frames_stay(guest, &rxlane);
    steered(guest, &rxlane, "down wan");
}

fn control_frames_stay(guest: &Guest, rxlane: &str) {
    const COUNT: u64 = 50;
    let station = guest.mac("wan").expect("an address").0;
    let from = [0x02, 0, 0, 0, 0, 1];
    let frame = |ethertype: [u8; 2], rest: &[u8]| {
        let mut frame = [&station[..], &from, &ethertype, rest].concat();
        frame.resize(60, 0);
        frame
    };
    // RFC 2516 section 5.2: a PADO of session 0 with an empty service name; RFC 1661 section 5.8: an echo request.
    let offer = frame([0x88, 0x63], &[0x11, 0x07, 0, 0, 0, 4, 0x01, 0x01, 0, 0]);
    let echo = frame([0x88, 0x64], &[0x11, 0, 0, 1, 0, 10, 0xc0, 0x21, 9, 1, 0, 8, 0, 0, 0, 0]);
    let before = guest.cpu_frames().expect("counts");
    let (steered, passed) = sides(&status(guest, rxlane, "wan"));
    for control in [&offer, &echo] {
        let many = (0..COUNT).map(|_| control);
        guest.port("wan").and_then(|port| port.inject(many, 1000)).expect("injected");
    }
    let start = Instant::now();
    let now = loop {
        let now = status(guest, rxlane, "wan");
        if sides(&now).1 >= passed + 2 * COUNT || start.elapsed() > LONG {
            break now;
        }
        thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(sides(&now), (steered, passed + 2 * COUNT), "{now}");
    let cpus = guest.cpu_frames().expect("counts");
    let taken: Vec<u64> = cpus.iter().zip(&before).map(|(now, before)| now - before).collect();
    println!("control frames: CPUs {taken:?}");
    assert!(taken[0] >= 2 * COUNT && taken[1..].iter().sum::<u64>() < COUNT, "{taken:?}");
}

/// Frames that were steered, and frames that were not for any reason.
fn sides(status: &Value) -> (u64, u64) {
    let steered = reason(status, "steered");
    (steered, sum(&status["reasons"], "frames") - steered)
}

#[test]
fn steering_gives_every_inner_flow_its_cpu_and_loses_nothing() {
    let Some(guest) = newer() else { return };
    spreads(&guest);
}

#[test]
#[ignore = "make nightly"]
fn steering_does_the_same_with_the_older_kernel() {
    let Some(guest) = older() else { return };
    spreads(&guest);
}

#[test]
#[ignore = "make nightly"]
fn a_killed_owner_leaves_steering_that_another_process_takes_down() {
    let (Some(rxlane), Some(guest)) = (rxlane(), newer()) else { return };
    let stripping = || guest.sh("ethtool -k wan | grep rx-vlan-offload").expect("a feature");
    assert!(stripping().contains(": on"));
    let words =
        "steer up wan --cpus 0-3 --seconds 0 --classes pppoe --disable-rxvlan --rebalance --foreground";
    let argv: Vec<&str> = [rxlane.as_str()].into_iter().chain(words.split(' ')).collect();
    let owner = guest.start(&argv, "/tmp/owner").expect("started");
    let start = Instant::now();
    while status(&guest, &rxlane, "wan")["mode"] != "native" {
        let said = guest.read("/tmp/owner").unwrap_or_default();
        assert!(start.elapsed() < LONG, "{}", String::from_utf8_lossy(&said));
        thread::sleep(Duration::from_millis(100));
    }
    guest.await_carrier("wan").expect("a carrier");
    vectors(&guest, "wan").expect("vectors");
    assert!(stripping().contains(": off"));
    let second = steer(&guest, &rxlane, "up wan --cpus 0-3 --seconds 0");
    assert_eq!(second.status, 1, "{}{}", second.text(), second.errors());
    assert_eq!(guest.signal(owner, 9, true).expect("killed"), Some(-9));
    let landed = land(&guest, "q:35,pppoe:1").expect("landed");
    println!("after kill -9: CPUs {:?}", landed.cpus);
    assert!(is_even(&landed.cpus, ALL), "{landed:?}");
    steered(&guest, &rxlane, "down wan");
    assert_nothing_left(&guest, &rxlane, "wan");
    assert!(stripping().contains(": on"));
    let landed = land(&guest, "pppoe:1").expect("landed");
    assert!(is_on_first(&landed.cpus, ALL), "{landed:?}");
}

pub fn assert_nothing_left(guest: &Guest, rxlane: &str, interface: &str) {
    assert_eq!(status(guest, rxlane, interface)["mode"], "off");
    assert_eq!(guest.sh(&format!("ip link show {interface} | grep -c xdp || true")).expect("a count"), "0\n");
    // Another test's concentrator may have its own in the same guest.
    let find = "find /sys/fs/bpf -mindepth 2 -path '*/rxlane/pppoe' -prune -o -not -type d -print; true";
    let pins = guest.sh(find).expect("pins");
    assert_eq!(pins, "", "pins are left");
}

#[test]
#[ignore = "make nightly"]
fn a_reloaded_driver_leaves_pins_that_are_recognised_and_removed() {
    let (Some(rxlane), Some(guest)) = (rxlane(), newer()) else { return };
    up(&guest, &rxlane, "--classes pppoe");
    guest.sh("rmmod igb").expect("unloaded");
    assert!(guest.counter("wan", "rx_packets").is_err());
    booted(&guest).expect("the adapters as after boot");
    guest.sh("ip link set wan promisc on up").expect("up");
    guest.await_carrier("wan").expect("a carrier");
    vectors(&guest, "wan").expect("vectors");
    // The kernel moves a vector at its next interrupt, whose poll still runs on the CPU before, while frames wait.
    land(&guest, "pppoe:1").expect("landed");
    let landed = land(&guest, "pppoe:1").expect("landed");
    assert!(is_on_first(&landed.cpus, ALL), "the program is still there: {landed:?}");
    up(&guest, &rxlane, "--classes pppoe");
    let landed = land(&guest, "pppoe:1").expect("landed");
    println!("after a reload: CPUs {:?}", landed.cpus);
    assert!(is_even(&landed.cpus, ALL), "{landed:?}");
    steered(&guest, &rxlane, "down wan");
    assert_nothing_left(&guest, &rxlane, "wan");
}

#[test]
#[ignore = "make nightly"]
fn e1000e_has_no_native_xdp_and_is_steered_in_generic_mode_only_on_request() {
    let (Some(rxlane), Some(guest)) = (rxlane(), newer()) else { return };
    guest.sh("ip link set old promisc on up").expect("up");
    guest.await_carrier("old").expect("a carrier");
    let refused = steer(&guest, &rxlane, "up old --cpus 0-3 --seconds 0 --classes pppoe");
    println!("{}", refused.errors());
    assert_eq!(refused.status, 3, "{}{}", refused.text(), refused.errors());
    assert!(refused.errors().contains("generic"), "{}", refused.errors());
    assert_nothing_left(&guest, &rxlane, "old");
    steered(&guest, &rxlane, "up old --cpus 0-3 --seconds 0 --classes pppoe --mode generic --disable-rxvlan");
    guest.await_carrier("old").expect("a carrier");
    assert_eq!(status(&guest, &rxlane, "old")["mode"], "generic");
    let per_cpu = generic(&guest, &rxlane).expect("landed");
    println!("e1000e, generic: CPUs {per_cpu:?}");
    // The CPU that its only queue interrupts gets less than the others.
    let most = per_cpu.iter().filter(|frames| **frames > ALL / 5).count();
    assert!(per_cpu.iter().sum::<u64>() == ALL && most >= 3, "{per_cpu:?}");
    steered(&guest, &rxlane, "down old");
    assert_nothing_left(&guest, &rxlane, "old");
}

/// Frames by CPU of a frame of each flow to the adapter `old`, from what the program counts on arrival.
fn generic(guest: &Guest, rxlane: &str) -> Result<Vec<u64>> {
    land_on(guest, "old", &frames(guest, "old", "pppoe:1")?)?;
    let start = Instant::now();
    loop {
        let status = status(guest, rxlane, "old");
        let rows = status["cpus"].as_array().context("rows")?;
        let cpus: Vec<u64> = rows.iter().filter_map(|row| row["frames"].as_u64()).collect();
        if cpus.iter().sum::<u64>() >= ALL || start.elapsed() > LONG {
            return Ok(cpus);
        }
        thread::sleep(Duration::from_millis(100));
    }
}
