//! `rxlane envelope` on veth pairs in network namespaces of its own: up, status, down, and what can come between.

mod refused;

use crate::machine::{Machine, WAN, signal};
use crate::run::Ended;
use serde_json::{Value, json};
use std::fs;
use std::net::UdpSocket;
use std::process::Stdio;
use std::time::Duration;
use testkit::wait_until;

const UP: [&str; 4] = ["up", WAN, "--header", "8"];

/// A frame of these headers and a payload of so many bytes.
fn frame(headers: &[u8], payload: usize) -> Vec<u8> {
    let stations = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    [&stations[..], headers, &vec![0; payload]].concat()
}

const UNTAGGED: &[u8] = &[0x88, 0xb5];
const TAGGED: &[u8] = &[0x81, 0, 0, 35, 0x88, 0xb5];
const TWO_TAGS: &[u8] = &[0x88, 0xa8, 0, 100, 0x81, 0, 0, 200, 0x88, 0xb5];
/// With a length that is right for a payload of 1500.
const PPPOE: &[u8] = &[0x88, 0x64, 0x11, 0, 0, 7, 0x05, 0xde, 0, 0x21];

fn rows(status: &Value, list: &str) -> Vec<u64> {
    status[list].as_array().expect("rows").iter().map(|row| row["frames"].as_u64().expect("frames")).collect()
}

#[test]
fn headers_get_room_and_payloads_do_not() {
    let Some(machine) = Machine::envelope() else { return };
    let before = machine.state();
    machine
        .run(&[&UP[..], &["--dry-run"]].concat())
        .ends(0)
        .says("nothing is changed now")
        .says("1508, was 1500");
    assert_eq!(machine.state(), before);

    machine.run(&UP).ends(0).says("wan0 has an envelope of 8 bytes.").says("native");
    assert_eq!(machine.mtu(WAN), "1508");
    let kinds = [UNTAGGED, TAGGED, TWO_TAGS, PPPOE];
    let at_limit = kinds.map(|headers| frame(headers, 1500));
    let beyond = (1501..=1508).map(|payload| frame(UNTAGGED, payload));
    let others =
        [(TAGGED, 1501), (TWO_TAGS, 1501), (PPPOE, 1501)].map(|(headers, more)| frame(headers, more));
    let frames: Vec<Vec<u8>> = at_limit.into_iter().chain(beyond).chain(others).collect();
    let status = machine.send(&frames, 15);
    assert_eq!((rows(&status, "passed"), rows(&status, "refused")), (vec![1, 2, 1], vec![8, 2, 1]));
    assert_eq!(status["refused"][0]["word"], "untagged-long");
    let numbers = ["state", "mode", "mtu", "payload", "header", "frags"].map(|field| &status[field]);
    assert_eq!(json!(numbers), json!(["up", "native", 1508, 1500, 8, true]));
    let text = machine.run(&["status", WAN]).ends(0).text();
    assert!(text.lines().any(|line| line.split_whitespace().eq(["untagged-long", "8"])), "{text}");

    machine.run(&UP).ends(1).says("wan0 has an envelope already").says("envelope down");
    assert_eq!(machine.mtu(WAN), "1508");
    machine.run(&["down", WAN]).ends(0).says("ip link set dev wan0 mtu 1500").says("11 frames");
    assert_eq!(machine.state(), before);
    machine.assert_nothing_left();
    let none = machine.run(&["down", WAN]).ends(1).text();
    assert_eq!(none, "rxlane: wan0 has no envelope: there is nothing to take back\n");
}

/// A UDP datagram in a packet of so many bytes (RFC 791, RFC 768: no checksum).
fn datagram(length: usize) -> Vec<u8> {
    let mut packet = vec![0; length];
    packet[..10].copy_from_slice(&[0x45, 0, (length >> 8) as u8, length as u8, 0, 0, 0, 0, 64, 17]);
    packet[12..20].copy_from_slice(&[10, 0, 0, 2, 10, 0, 0, 1]);
    let words = packet[..20].chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let sum: u32 = words.sum();
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    let ports_and_length = [0x23, 0x28, 0x23, 0x28, ((length - 20) >> 8) as u8, (length - 20) as u8];
    packet[20..26].copy_from_slice(&ports_and_length);
    [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00][..], &packet].concat()
}

#[test]
fn what_passes_is_delivered_and_what_is_refused_is_not() {
    let Some(machine) = Machine::envelope() else { return };
    machine.ip(&["link", "set", WAN, "address", "02:00:00:00:00:02"]);
    machine.ip(&["address", "add", "10.0.0.1/24", "dev", WAN]);
    let socket = machine.namespace.inside(|| UdpSocket::bind("10.0.0.1:9000")).expect("a socket");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a time");
    machine.run(&UP).ends(0);
    let frames: Vec<Vec<u8>> = [1504, 1500, 1508, 1501, 1000].map(datagram).into();
    let status = machine.send(&frames, 5);
    assert_eq!((rows(&status, "passed"), rows(&status, "refused")), (vec![2, 0, 0], vec![3, 0, 0]));
    let mut buffer = [0; 2000];
    let mut received = || socket.recv(&mut buffer).expect("in time");
    assert_eq!([received(), received()], [1500 - 28, 1000 - 28]);
}

#[test]
fn frames_of_several_buffers_are_measured_whole() {
    let Some(machine) = Machine::envelope() else { return };
    machine.ip(&["link", "set", "far0", "mtu", "9600"]);
    machine.ip(&["link", "set", WAN, "mtu", "9000"]);
    machine.run(&["up", WAN, "--header", "482"]).ends(0);
    assert_eq!(machine.mtu(WAN), "9482");
    let frames = [frame(UNTAGGED, 9000), frame(UNTAGGED, 9001), frame(PPPOE, 9000), frame(PPPOE, 9001)];
    let status = machine.send(&frames, 4);
    assert_eq!((rows(&status, "passed"), rows(&status, "refused")), (vec![1, 0, 1], vec![1, 0, 1]));
    machine.run(&["down", WAN]).ends(0);
    assert_eq!(machine.mtu(WAN), "9000");
}

/// Kills a command where it is to set the MTU, with an `ip` that does not come back.
fn killed_at_mark(machine: &Machine, setting: &str, arguments: &[&str]) {
    let mut child = machine.with_ip(setting, arguments).spawn().expect("it starts");
    machine.wait_for_mark(&mut child);
    signal(format!("-{}", child.id()), "KILL");
    child.wait().expect("an end");
}

/// The program keeps longer payloads out whatever the MTU is.
#[test]
fn a_kill_when_the_mtu_is_set_lets_nothing_in() {
    let Some(machine) = Machine::envelope() else { return };
    let before = machine.state();
    const BEFORE: &str = "touch MARK; exec sleep 30";
    const AFTER: &str = "IP \"$@\"; touch MARK; exec sleep 30";
    for (command, setting, mtu) in [
        (&UP[..], BEFORE, "1500"),
        (&UP, AFTER, "1508"),
        (&["down", WAN], BEFORE, "1508"),
        (&["down", WAN], AFTER, "1500"),
    ] {
        if command != UP {
            machine.run(&UP).ends(0);
        }
        killed_at_mark(&machine, setting, command);
        assert_eq!(machine.mtu(WAN), mtu);
        if command == UP && setting == BEFORE {
            machine.run(&["status", WAN]).ends(1).says("damaged").says("the MTU is 1500 and not 1508");
            // The next one undoes what that did, and begins anew.
            machine.run(&UP).ends(0).says("a process was killed");
        }
        let status = machine.send(&[frame(UNTAGGED, 1501)], 1);
        assert_eq!(rows(&status, "refused"), [1, 0, 0]);
        machine.run(&["down", WAN]).ends(0).says(if command == UP && setting == AFTER {
            "mtu 1500"
        } else {
            ""
        });
        assert_eq!(machine.state(), before);
        machine.assert_nothing_left();
    }
}

#[test]
fn an_mtu_that_does_not_go_back_keeps_its_program() {
    let Some(machine) = Machine::envelope() else { return };
    let before = machine.state();
    machine.run(&UP).ends(0);
    let setting = "echo 'RTNETLINK answers: Device or resource busy' >&2; exit 2";
    let mut command = machine.with_ip(setting, &["down", WAN]);
    command
        .stderr(Stdio::piped())
        .output()
        .expect("it starts")
        .ends(3)
        .says("resource busy")
        .says("the program stays");
    assert_eq!(machine.status()["state"], "up");
    machine.run(&["down", WAN]).ends(0);
    assert_eq!(machine.state(), before);
    machine.assert_nothing_left();
}

#[test]
fn a_signal_in_the_midst_of_up_takes_everything_back() {
    let Some(machine) = Machine::envelope() else { return };
    let before = machine.state();
    let mut command = machine.with_ip("IP \"$@\"; touch MARK; sleep 1; exit 0", &UP);
    let mut child = command.stderr(Stdio::piped()).spawn().expect("it starts");
    machine.wait_for_mark(&mut child);
    assert_eq!(machine.mtu(WAN), "1508");
    signal(child.id(), "TERM");
    child.wait_with_output().expect("an end").ends(1).says("interrupted by SIGTERM: wan0 has no envelope");
    assert_eq!(machine.state(), before);
    machine.assert_nothing_left();
}

#[test]
fn an_mtu_that_somebody_changed_is_reported_and_left_alone() {
    let Some(machine) = Machine::envelope() else { return };
    for (mtu, meaning) in [("1400", "may refuse frames with headers"), ("1600", "are refused all the same")] {
        machine.run(&UP).ends(0);
        machine.ip(&["link", "set", WAN, "mtu", mtu]);
        machine.run(&["status", WAN]).ends(1).says("damaged").says(meaning);
        let status = machine.status();
        assert_eq!(status["state"], "damaged");
        assert_eq!(status["problems"].as_array().map(Vec::len), Some(1));
        machine.run(&["down", WAN]).ends(1).says("somebody changed the MTU since");
        assert_eq!(machine.mtu(WAN), mtu);
        assert!(!machine.state().contains("xdp"));
        machine.assert_nothing_left();
        machine.run(&["down", WAN]).ends(1);
        machine.ip(&["link", "set", WAN, "mtu", "1500"]);
    }
    // What is back by itself is back.
    machine.run(&UP).ends(0);
    machine.ip(&["link", "set", WAN, "mtu", "1500"]);
    machine.run(&["down", WAN]).ends(0);
    machine.assert_nothing_left();
}

#[test]
fn a_raised_mtu_without_its_program_is_no_new_beginning() {
    let Some(machine) = Machine::envelope() else { return };
    let before = machine.state();
    machine.run(&UP).ends(0);
    for pin in fs::read_dir(machine.pins().join(WAN)).expect("pins") {
        fs::remove_file(pin.expect("a pin").path()).expect("removed");
    }
    wait_until("the program goes with its pins", || !machine.state().contains("xdp"));
    let status = machine.status();
    assert_eq!(status["state"], "damaged", "{status:#}");
    assert!(status["problems"].to_string().contains("its program is no longer attached"), "{status:#}");
    machine.run(&UP).ends(1).says("still has the MTU").says("envelope down wan0");
    machine.run(&["down", WAN]).ends(0);
    assert_eq!(machine.state(), before);
    machine.assert_nothing_left();
}

#[test]
fn without_the_journal_the_pins_know_the_mtu() {
    let Some(machine) = Machine::envelope() else { return };
    let before = machine.state();
    machine.run(&UP).ends(0);
    machine.forget_journal();
    machine.run(&["down", WAN]).ends(0);
    assert_eq!(machine.state(), before);
    machine.assert_nothing_left();
}
