//! A CPU that frames are steered to goes offline, and comes back.

use crate::steer::{reason, rxlane, status, steer, steered, sum, up};
use crate::{FLOWS, LONG, RATE, frames, is_even, land, newer};
use rxlane_lab::Guest;
use serde_json::Value;
use std::thread;
use std::time::{Duration, Instant};

const ALL: u64 = FLOWS as u64;
/// The CPU that goes.
const OFFLINE: u64 = 3;

fn set(guest: &Guest, online: bool) {
    let value = u8::from(online);
    guest
        .sh(&format!("echo {value} >/sys/devices/system/cpu/cpu{OFFLINE}/online"))
        .expect("a CPU that can go");
}

/// Injects a frame of each flow, and waits until every one that was steered is accounted for.
fn inject(guest: &Guest, rxlane: &str) -> Value {
    let sent = reason(&status(guest, rxlane, "wan"), "steered") + ALL;
    let frames = frames(guest, "wan", "pppoe:1").expect("frames");
    guest.port("wan").and_then(|port| port.inject(&frames, RATE)).expect("injected");
    let start = Instant::now();
    loop {
        let now = status(guest, rxlane, "wan");
        let arrived = sum(&now["cpus"], "frames");
        if (reason(&now, "steered") >= sent && arrived >= sent) || start.elapsed() > LONG {
            assert_eq!(
                (reason(&now, "steered"), arrived),
                (sent, sent),
                "lost: {} {}",
                now["cpus"],
                now["reasons"]
            );
            return now;
        }
        thread::sleep(Duration::from_millis(100));
    }
}

fn of_cpu(status: &Value, field: &str) -> u64 {
    let rows = status["cpus"].as_array().expect("CPUs");
    let row = rows.iter().find(|row| row["cpu"] == OFFLINE).expect("the CPU");
    row[field].as_u64().expect("a number")
}

#[test]
#[ignore = "make nightly"]
fn frames_for_a_cpu_that_is_offline_are_delivered_by_another() {
    let (Some(rxlane), Some(guest)) = (rxlane(), newer()) else { return };
    set(&guest, true);
    up(&guest, &rxlane, "--classes pppoe");
    inject(&guest, &rxlane);
    set(&guest, false);
    let during = inject(&guest, &rxlane);
    println!("offline: {} {}", during["cpus"], during["remarks"]);
    assert!(during["remarks"].to_string().contains("CPU 3 is offline"), "{}", during["remarks"]);
    assert_eq!(sum(&during["cpus"], "drops"), 0, "{}", during["cpus"]);
    // Online again, it has its queue, whose thread stays where it went until `up` makes another.
    set(&guest, true);
    let back = inject(&guest, &rxlane);
    println!("online: {} {}", back["cpus"], back["remarks"]);
    assert_eq!(sum(&back["cpus"], "drops"), 0, "{}", back["cpus"]);
    assert!(back["remarks"].to_string().contains("CPU 3 was offline since `up`"), "{}", back["remarks"]);
    set(&guest, false);
    steered(&guest, &rxlane, "down wan");
    let named = steer(&guest, &rxlane, "up wan --cpus 0-3 --seconds 0 --classes pppoe");
    println!("{}", named.errors());
    assert_eq!(named.status, 3, "{}{}", named.text(), named.errors());
    assert!(named.errors().contains("CPU 3 is not online (online: 0-2)"), "{}", named.errors());
    set(&guest, true);
    up(&guest, &rxlane, "--classes pppoe");
    let landed = land(&guest, "pppoe:1").expect("landed");
    println!("online again: CPUs {:?}", landed.cpus);
    assert!(is_even(&landed.cpus, ALL), "{landed:?}");
    steered(&guest, &rxlane, "down wan");
}

#[test]
#[ignore = "make nightly"]
fn the_keeper_moves_the_buckets_of_a_cpu_that_goes_offline_and_none_is_lost() {
    let (Some(rxlane), Some(guest)) = (rxlane(), newer()) else { return };
    set(&guest, true);
    let words = "steer up wan --cpus 0-3 --seconds 0 --classes pppoe --rebalance --foreground";
    let argv: Vec<&str> = [rxlane.as_str()].into_iter().chain(words.split(' ')).collect();
    let owner = guest.start(&argv, "/tmp/keeper").expect("started");
    let start = Instant::now();
    while status(&guest, &rxlane, "wan")["keeper"]["alive"] != true {
        let said = guest.read("/tmp/keeper").unwrap_or_default();
        assert!(start.elapsed() < LONG, "{}", String::from_utf8_lossy(&said));
        thread::sleep(Duration::from_millis(100));
    }
    guest.await_carrier("wan").expect("a carrier");
    assert!(of_cpu(&inject(&guest, &rxlane), "buckets") > 0);
    set(&guest, false);
    let start = Instant::now();
    let during = loop {
        let now = inject(&guest, &rxlane);
        if of_cpu(&now, "buckets") == 0 {
            break now;
        }
        assert!(start.elapsed() < 2 * LONG, "{} {}", now["cpus"], now["keeper"]);
    };
    println!("offline: {} {}", during["cpus"], during["keeper"]);
    assert_eq!(sum(&during["cpus"], "drops"), 0, "{}", during["cpus"]);
    set(&guest, true);
    let after = inject(&guest, &rxlane);
    println!("online again: {} {}", after["cpus"], after["keeper"]);
    assert_eq!(guest.signal(owner, 15, true).expect("ended"), Some(0));
    let said = guest.read("/tmp/keeper").expect("what it said");
    let said = String::from_utf8_lossy(&said);
    let moves = said.lines().filter(|line| line.ends_with(": CPU 3 is offline or no target")).count();
    println!("{moves} moves");
    assert!(moves > 0, "{said}");
    assert_eq!(status(&guest, &rxlane, "wan")["mode"], "off");
}
