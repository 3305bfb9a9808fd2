//! `rxlane envelope` on veth pairs in network namespaces of its own: up, status, down, and what can come between.

mod names;
mod refused;

use crate::envelope_machine::{Machine, WAN, code, said};
use serde_json::{Value, json};
use std::fs;
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::thread;
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
fn what_cannot_be_told_is_not_done() {
    let Some(machine) = Machine::new() else { return };
    let before = machine.state();
    let full = fs::File::options().write(true).open("/dev/full").expect("/dev/full");
    let up = machine.command_in(&machine.namespace, "envelope", &UP).stdout(full).output().expect("it runs");
    assert_eq!(code(&up), 3, "{}", said(&up));
    assert_eq!(machine.state(), before);
    machine.assert_nothing_left();
}

#[test]
fn headers_get_room_and_payloads_do_not() {
    let Some(machine) = Machine::new() else { return };
    let before = machine.state();
    let dry = machine.expect(0, &[&UP[..], &["--dry-run"]].concat());
    assert!(dry.contains("nothing is changed now") && dry.contains("1508, was 1500"), "{dry}");
    assert_eq!(machine.state(), before);

    let up = machine.expect(0, &UP);
    assert!(up.contains("wan0 has an envelope of 8 bytes.") && up.contains("native"), "{up}");
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
    let text = machine.expect(0, &["status", WAN]);
    assert!(text.lines().any(|line| line.split_whitespace().eq(["untagged-long", "8"])), "{text}");

    let again = machine.expect(1, &UP);
    assert!(again.contains("wan0 has an envelope already") && again.contains("envelope down"), "{again}");
    assert_eq!(machine.mtu(WAN), "1508");
    let down = machine.expect(0, &["down", WAN]);
    assert!(down.contains("ip link set dev wan0 mtu 1500") && down.contains("11 frames"), "{down}");
    assert_eq!(machine.state(), before);
    machine.assert_nothing_left();
    let none = machine.expect(1, &["down", WAN]);
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
    let Some(machine) = Machine::new() else { return };
    machine.ip(&["link", "set", WAN, "address", "02:00:00:00:00:02"]);
    machine.ip(&["address", "add", "10.0.0.1/24", "dev", WAN]);
    let socket = machine.namespace.inside(|| UdpSocket::bind("10.0.0.1:9000")).expect("a socket");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a time");
    machine.expect(0, &UP);
    let frames: Vec<Vec<u8>> = [1504, 1500, 1508, 1501, 1000].map(datagram).into();
    let status = machine.send(&frames, 5);
    assert_eq!((rows(&status, "passed"), rows(&status, "refused")), (vec![2, 0, 0], vec![3, 0, 0]));
    let mut buffer = [0; 2000];
    let mut received = || socket.recv(&mut buffer).expect("in time");
    assert_eq!([received(), received()], [1500 - 28, 1000 - 28]);
}

#[test]
fn frames_of_several_buffers_are_measured_whole() {
    let Some(machine) = Machine::new() else { return };
    machine.ip(&["link", "set", "far0", "mtu", "9600"]);
    machine.ip(&["link", "set", WAN, "mtu", "9000"]);
    machine.expect(0, &["up", WAN, "--header", "482"]);
    assert_eq!(machine.mtu(WAN), "9482");
    let frames = [frame(UNTAGGED, 9000), frame(UNTAGGED, 9001), frame(PPPOE, 9000), frame(PPPOE, 9001)];
    let status = machine.send(&frames, 4);
    assert_eq!((rows(&status, "passed"), rows(&status, "refused")), (vec![1, 0, 1], vec![1, 0, 1]));
    machine.expect(0, &["down", WAN]);
    assert_eq!(machine.mtu(WAN), "9000");
}

#[test]
fn a_kill_at_any_moment_leaves_what_down_takes_back() {
    let Some(machine) = Machine::new() else { return };
    let before = machine.state();
    for milliseconds in [2, 5, 10, 20, 40, 80, 160] {
        let mut child = machine
            .command_in(&machine.namespace, "envelope", &UP)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        thread::sleep(Duration::from_millis(milliseconds));
        let _ = child.kill();
        child.wait().expect("an end");
        let down = machine.run(&["down", WAN]);
        // Killed before it did anything, there is none.
        assert!(matches!(code(&down), 0 | 1), "after {milliseconds} ms: {}", said(&down));
        assert_eq!(machine.state(), before, "after {milliseconds} ms: {}", said(&down));
        machine.assert_nothing_left();
    }
}

/// Kills a command where it is to set the MTU, with an `ip` that does not come back.
fn killed_at_mark(machine: &Machine, setting: &str, arguments: &[&str]) {
    let mut child = machine.with_ip(setting, arguments).spawn().expect("it starts");
    machine.wait_for_mark(&mut child);
    let group = format!("-{}", child.id());
    assert!(Command::new("kill").args(["-9", "--", &group]).status().expect("kill").success());
    child.wait().expect("an end");
}

#[test]
fn a_kill_between_program_and_mtu_is_told_and_taken_back() {
    let Some(machine) = Machine::new() else { return };
    let before = machine.state();
    killed_at_mark(&machine, "touch MARK; exec sleep 30", &UP);
    assert_eq!(machine.mtu(WAN), "1500");
    let status = machine.expect(1, &["status", WAN]);
    assert!(status.contains("damaged") && status.contains("the MTU is 1500 and not 1508"), "{status}");
    // The next one undoes what that did, and begins anew.
    let up = machine.expect(0, &UP);
    assert!(up.contains("a process was killed"), "{up}");
    machine.expect(0, &["down", WAN]);
    assert_eq!(machine.state(), before);
    machine.assert_nothing_left();
}

#[test]
fn a_kill_after_the_mtu_was_raised_is_taken_back() {
    let Some(machine) = Machine::new() else { return };
    let before = machine.state();
    killed_at_mark(&machine, "IP \"$@\"; touch MARK; exec sleep 30", &UP);
    assert_eq!(machine.mtu(WAN), "1508");
    // The program keeps longer payloads out all the same.
    let status = machine.send(&[frame(UNTAGGED, 1501)], 1);
    assert_eq!(rows(&status, "refused"), [1, 0, 0]);
    let down = machine.expect(0, &["down", WAN]);
    assert!(down.contains("mtu 1500"), "{down}");
    assert_eq!(machine.state(), before);
    machine.assert_nothing_left();
}

#[test]
fn a_kill_in_the_midst_of_down_lets_nothing_in() {
    let Some(machine) = Machine::new() else { return };
    let before = machine.state();
    for (setting, mtu) in
        [("touch MARK; exec sleep 30", "1508"), ("IP \"$@\"; touch MARK; exec sleep 30", "1500")]
    {
        machine.expect(0, &UP);
        killed_at_mark(&machine, setting, &["down", WAN]);
        assert_eq!(machine.mtu(WAN), mtu);
        let status = machine.send(&[frame(UNTAGGED, 1501)], 1);
        assert_eq!(rows(&status, "refused"), [1, 0, 0]);
        machine.expect(0, &["down", WAN]);
        assert_eq!(machine.state(), before);
        machine.assert_nothing_left();
    }
}

#[test]
fn an_mtu_that_does_not_go_back_keeps_its_program() {
    let Some(machine) = Machine::new() else { return };
    let before = machine.state();
    machine.expect(0, &UP);
    let setting = "echo 'RTNETLINK answers: Device or resource busy' >&2; exit 2";
    let mut command = machine.with_ip(setting, &["down", WAN]);
    let output = command.stderr(Stdio::piped()).output().expect("it starts");
    assert_eq!(code(&output), 3, "{}", said(&output));
    assert!(said(&output).contains("resource busy") && said(&output).contains("the program stays"));
    assert_eq!(machine.status()["state"], "up");
    machine.expect(0, &["down", WAN]);
    assert_eq!(machine.state(), before);
    machine.assert_nothing_left();
}

#[test]
fn a_signal_in_the_midst_of_up_takes_everything_back() {
    let Some(machine) = Machine::new() else { return };
    let before = machine.state();
    let mut command = machine.with_ip("IP \"$@\"; touch MARK; sleep 1; exit 0", &UP);
    let mut child = command.stderr(Stdio::piped()).spawn().expect("it starts");
    machine.wait_for_mark(&mut child);
    assert_eq!(machine.mtu(WAN), "1508");
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("kill").success());
    let ended = child.wait_with_output().expect("an end");
    assert_eq!(code(&ended), 1, "{}", said(&ended));
    assert!(said(&ended).contains("interrupted by SIGTERM: wan0 has no envelope"), "{}", said(&ended));
    assert_eq!(machine.state(), before);
    machine.assert_nothing_left();
}

#[test]
fn an_mtu_that_somebody_changed_is_told_and_left_alone() {
    let Some(machine) = Machine::new() else { return };
    for (mtu, meaning) in [("1400", "may refuse frames with headers"), ("1600", "are refused all the same")] {
        machine.expect(0, &UP);
        machine.ip(&["link", "set", WAN, "mtu", mtu]);
        let status = machine.expect(1, &["status", WAN]);
        assert!(
            status.contains("damaged") && status.replace("\n              ", " ").contains(meaning),
            "{status}"
        );
        let status = machine.status();
        assert_eq!(status["state"], "damaged");
        assert_eq!(status["problems"].as_array().map(Vec::len), Some(1));
        let down = machine.expect(1, &["down", WAN]);
        assert!(down.contains("somebody changed the MTU since"), "{down}");
        assert_eq!(machine.mtu(WAN), mtu);
        assert!(!machine.state().contains("xdp"));
        machine.assert_nothing_left();
        machine.expect(1, &["down", WAN]);
        machine.ip(&["link", "set", WAN, "mtu", "1500"]);
    }
    // What is back by itself is back.
    machine.expect(0, &UP);
    machine.ip(&["link", "set", WAN, "mtu", "1500"]);
    machine.expect(0, &["down", WAN]);
    machine.assert_nothing_left();
}

#[test]
fn a_raised_mtu_without_its_program_is_no_new_beginning() {
    let Some(machine) = Machine::new() else { return };
    let before = machine.state();
    machine.expect(0, &UP);
    for pin in fs::read_dir(machine.pins().join(WAN)).expect("pins") {
        fs::remove_file(pin.expect("a pin").path()).expect("removed");
    }
    wait_until("the program goes with its pins", || !machine.state().contains("xdp"));
    let status = machine.status();
    assert_eq!(status["state"], "damaged", "{status:#}");
    assert!(status["problems"].to_string().contains("its program is gone"), "{status:#}");
    let up = machine.expect(1, &UP);
    assert!(up.contains("still has the MTU") && up.contains("envelope down wan0"), "{up}");
    machine.expect(0, &["down", WAN]);
    assert_eq!(machine.state(), before);
    machine.assert_nothing_left();
}

#[test]
fn without_the_journal_the_pins_know_the_mtu() {
    let Some(machine) = Machine::new() else { return };
    let before = machine.state();
    machine.expect(0, &UP);
    machine.forget_journal();
    machine.expect(0, &["down", WAN]);
    assert_eq!(machine.state(), before);
    machine.assert_nothing_left();
}
