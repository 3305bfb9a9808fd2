//! `rxlane explain` of an interface: a veth pair in a namespace of the test's own.

use crate::process::Process;
use crate::run::{BINARY, Ended, Report};
use serde_json::{Value, json};
use std::process::Command;
use tempfile::TempDir;
use testkit::netns::{Namespace, Veth, probe};
use testkit::{require, wait_until};
use traffic::Scenario;

const FRAMES: usize = 600;

/// `out0` and `in0`, of which the NIC strips and inserts VLAN tags.
fn pair() -> Option<Namespace> {
    require("netns", probe())?;
    let namespace = Namespace::new().expect("a namespace");
    namespace.veth(&Veth { mtu: 1600, ..Veth::pair("out0", "in0") }).expect("a pair");
    Some(namespace)
}

fn frames() -> Vec<Vec<u8>> {
    let mut scenario = Scenario::named("pppoe-qinq").expect("a scenario").with_flows(50);
    scenario.control_per_million = 20_000;
    let mut traffic = scenario.generate(3).expect("a generator");
    (0..FRAMES).map(|_| traffic.next_frame().bytes.to_vec()).collect()
}

/// Packet sockets of the namespace that are bound (column `R`): whether there is one, and bytes that wait in them (`Rmem`).
fn waiting(namespace: &Namespace) -> Option<u64> {
    let sockets = namespace.run("cat", &["/proc/net/packet"]).expect("the list");
    let bytes = |row: &str| {
        let mut words = row.split_whitespace().skip(5);
        words.next().filter(|bound| *bound == "1")?;
        words.next()?.parse::<u64>().ok()
    };
    sockets.lines().skip(1).filter_map(bytes).reduce(|sum, bytes| sum + bytes)
}

/// `explain` with these arguments while the frames arrive.
fn sampling(namespace: &Namespace, arguments: &[&str]) -> Process {
    let process = Process::start(namespace.command(BINARY).arg("explain").args(arguments));
    wait_until("a packet socket", || waiting(namespace).is_some());
    namespace.send("out0", frames()).expect("sent");
    process
}

/// A report without what differs between a capture and a sample.
fn compared(mut report: Value) -> Value {
    for key in ["files", "bytes", "seconds", "captured_bytes", "sample"] {
        report["source"].as_object_mut().expect("an object").remove(key);
    }
    report["top_flows"] = Value::Null;
    report
}

#[test]
fn a_sample_is_explained_as_the_capture_of_the_same_frames() {
    let Some(namespace) = pair() else { return };
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("line.pcap");
    let mut writer =
        capture::Writer::pcap(Vec::new(), capture::LinkType::Ethernet, capture::Resolution::Nanoseconds)
            .expect("a writer");
    for frame in frames() {
        writer.write(0, &frame, frame.len() as u32).expect("written");
    }
    std::fs::write(&path, writer.finish().expect("a capture")).expect("written");
    let nic = ["--nic", "i350", "--queues", "4", "--json"];
    let mut file = Command::new(BINARY);
    let file = file.arg("explain").arg(&path).args(nic).output().expect("it runs").ends(0).json();

    let limits = ["in0", "--seconds", "60", "--frames", &FRAMES.to_string()];
    let live = sampling(&namespace, &[&limits[..], &nic].concat()).ended().ends(0).json();
    live["source"]["sample"].has(json!({
        "interface": "in0", "direction": "received", "snap": 256, "dropped": 0, "merged": 0,
        "tags": FRAMES, "end": "frames"
    }));
    assert_eq!(compared(live), compared(file));

    // Of the interface itself, without --nic.
    let text = sampling(&namespace, &[&limits[..], &["--verbose"]].concat()).ended();
    text.ends(0).says("600 frames").says("put back here").says("(veth)").omits("assumed");
}

#[test]
fn a_signal_ends_the_sample_and_what_has_arrived_is_explained() {
    let Some(namespace) = pair() else { return };
    let process = sampling(&namespace, &["in0", "--seconds", "3600"]);
    wait_until("frames that were taken", || waiting(&namespace) == Some(0));
    process.signal("INT");
    process.ended().ends(0).says("600 frames").says("ended early by a signal");
}

#[test]
fn what_is_no_sample_says_why_and_the_way_out() {
    let Some(namespace) = pair() else { return };
    let folder = TempDir::new().expect("a folder");
    std::fs::write(folder.path().join("in0"), "no capture").expect("written");
    for (arguments, code, expected) in [
        ("out0 --seconds 0.1", 1, "out0 received no frame in 0.1 s."),
        ("in0", 2, "in0 is a file and an interface: ./in0 is the file, --interface in0 the interface"),
        ("./in0", 2, "neither pcap nor pcapng"),
        ("--interface in0 --seconds 0.1", 1, "in0 received no frame in 0.1 s."),
        ("nothing0", 2, "there is no file nothing0 here, and there is no interface `nothing0`"),
        ("ut0", 2, "near it are out0"),
        ("out0 lo", 2, "out0 is an interface, and a sample is explained alone: rxlane explain out0"),
        ("./in0 --seconds 1", 2, "limit the sample of an interface; files are read whole"),
    ] {
        let mut command = namespace.command(BINARY);
        let command = command.arg("explain").args(arguments.split(' ')).current_dir(folder.path());
        command.output().expect("it runs").is(&arguments, code, expected);
    }
    namespace.run("ip", &["link", "set", "dev", "out0", "down"]).expect("down");
    let down = namespace.command(BINARY).args(["explain", "out0"]).output().expect("it runs");
    down.ends(2).says("out0 is down and receives nothing (ip link set dev out0 up)");
}
