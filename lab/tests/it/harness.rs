//! The harness itself: what goes in comes out, and nothing outlives whoever started it.

use crate::LONG;
use rxlane_lab::{Guest, Lab, Model, Nic, Series, Spec};
use std::io::{BufRead, BufReader};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Whether the process is there and no zombie.
fn is_alive(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    status.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

fn ends_within(pid: u32, limit: Duration) -> bool {
    let start = Instant::now();
    while is_alive(pid) && start.elapsed() < limit {
        thread::sleep(Duration::from_millis(20));
    }
    !is_alive(pid)
}

/// Two adapters that are wired to each other, and one that is wired to the harness.
fn spec() -> Spec {
    let [left, right] = Nic::pair("left", "right", Model::Igb);
    let nics = vec![left, right, Nic::new("wan", Model::VirtioNet)];
    Spec { cpus: 2, nics, counting: true, ..Spec::new(Series::V6_12) }
}

#[test]
fn a_guest_runs_commands_and_ends_with_its_owner() {
    let Some(lab) = Lab::require() else { return };
    let guest = lab.boot(&spec()).expect("a guest");
    let pid = guest.pid();
    assert!(is_alive(pid));
    commands(&guest);
    files(&guest);
    frames(&guest);
    instructions(&guest);
    pauses(&guest);
    let panicked = catch_unwind(AssertUnwindSafe(move || {
        let _owned = guest;
        panic!("on purpose");
    }));
    assert!(panicked.is_err());
    assert!(!is_alive(pid), "QEMU outlived a panic");
}

fn commands(guest: &Guest) {
    assert!(guest.sh("uname -r").expect("a release").starts_with("6.12."));
    let output =
        guest.run_with(&["sh", "-c", "cat; echo no >&2; exit 4"], b"\0\xffin", LONG).expect("it ran");
    assert_eq!((output.status, output.timed_out), (4, false));
    assert_eq!((output.stdout.as_slice(), output.errors().as_str()), (&b"\0\xffin"[..], "no\n"));
    let error = guest.sh("echo first; false; echo second").expect_err("it fails");
    assert!(error.to_string().contains("status 1: first\n"), "{error:#}");
    let output = guest.run_with(&["sleep", "50"], &[], Duration::from_millis(300)).expect("it ran");
    assert!(output.timed_out);
    assert!(guest.run(&["/nonexistent/program"]).is_err());
    // Commands run at the same time: each waits for all.
    thread::scope(|scope| {
        for number in 0..4 {
            let meet = format!(
                "touch /tmp/meet.{number}; until [ \"$(ls /tmp/meet.* | wc -l)\" = 4 ]; do sleep 1; done"
            );
            scope.spawn(move || guest.sh(&meet).expect("it ran"));
        }
    });
    let pid = guest.start(&["sleep", "50"], "/tmp/output").expect("started");
    assert_eq!(guest.signal(pid, 9, true).expect("ended"), Some(-9));
    assert!(guest.signal(pid, 9, true).is_err());
}

fn files(guest: &Guest) {
    let bytes: Vec<u8> = (0..100_000_u32).map(|place| (place * 7) as u8).collect();
    guest.write("/tmp/new/folder/file", &bytes).expect("written");
    assert_eq!(guest.read("/tmp/new/folder/file").expect("read"), bytes);
    assert!(guest.read("/tmp/new/none").is_err());
    // The machine's files are there and stay as they are.
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let path = manifest.display().to_string();
    assert_eq!(guest.read(&path).expect("read"), std::fs::read(&manifest).expect("read here"));
    guest.write(&path, b"changed").expect("in the guest's own layer");
    assert_ne!(std::fs::read(&manifest).expect("read here"), b"changed");
}

fn frames(guest: &Guest) {
    guest
        .sh("ip link set wan up; ip link set left up; ip netns add far; ip link set right netns far; \
             ip addr add 10.0.0.1/24 dev left; ip addr add 10.1.0.1/24 dev wan; \
             ip netns exec far ip addr add 10.0.0.2/24 dev right; ip netns exec far ip link set right up")
        .expect("set up");
    for nic in ["wan", "left"] {
        guest.await_carrier(nic).expect("a carrier");
    }
    let port = guest.port("wan").expect("a port");
    assert!(guest.port("left").is_err());
    let before = guest.counter("wan", "rx_packets").expect("a counter");
    let frame = |number: u8| [&[0xff; 6][..], &[2, 0, 0, 0, 0, number, 0x88, 0xb5], &[number; 46]].concat();
    let spent = port.inject((0..200).map(frame), 1000).expect("injected");
    assert!(spent >= Duration::from_millis(190), "{spent:?}");
    guest.await_counter("wan", "rx_packets", before + 200, LONG).expect("all of them");
    let hello = "ip neigh add 10.1.0.9 lladdr 02:00:00:00:00:09 dev wan; \
                 bash -c 'echo hello >/dev/udp/10.1.0.9/99'";
    guest.sh(hello).expect("sent");
    let sent = port.await_frame(LONG, |frame| frame.starts_with(&[2, 0, 0, 0, 0, 9])).expect("the frame");
    assert!(sent.windows(5).any(|window| window == b"hello"), "{sent:02x?}");
    // The wired pair: `right` is in another namespace, so the packets really travel.
    guest.sh("busybox ping -c 3 -W 10 10.0.0.2").expect("an echo over the wired pair");
}

/// A loop of a known length costs at least its length, on the CPU on which it runs.
fn instructions(guest: &Guest) {
    let before = guest.instructions().expect("counts");
    guest.sh("taskset -c 1 busybox awk 'BEGIN { for (i = 0; i < 200000; i++) x += i }'").expect("a loop");
    let after = guest.instructions().expect("counts");
    let spent: Vec<u64> = before.iter().zip(&after).map(|(before, after)| after - before).collect();
    assert_eq!(spent.len(), 2);
    assert!(spent[1] > 200_000 * 20, "{spent:?}");
}

/// One that would never be idle executes nothing while it is paused, and goes on where it was.
fn pauses(guest: &Guest) {
    let busy = guest.start(&["sh", "-c", "while :; do :; done"], "/dev/null").expect("started");
    guest.pause().expect("paused");
    let counts = || guest.instructions().expect("counts");
    let before = counts();
    thread::sleep(Duration::from_millis(300));
    assert_eq!(counts(), before);
    guest.resume().expect("resumed");
    assert_eq!(guest.signal(busy, 9, true).expect("ended"), Some(-9));
    assert!(counts().iter().sum::<u64>() > before.iter().sum());
}

#[test]
#[ignore = "make nightly"]
fn a_guest_ends_with_a_process_that_was_killed() {
    let Some(_) = Lab::require() else { return };
    let mut owner = Command::new(env!("CARGO_BIN_EXE_rxlane-lab"))
        .args(["run", "6.1", "sleep", "600"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the lab");
    let mut line = String::new();
    let errors = owner.stderr.take().expect("its errors");
    BufReader::new(errors).read_line(&mut line).expect("a line");
    let pid = line.trim().strip_prefix("QEMU is process ").and_then(|pid| pid.parse().ok());
    let pid: u32 = pid.unwrap_or_else(|| panic!("{line}"));
    assert!(is_alive(pid));
    owner.kill().expect("killed");
    owner.wait().expect("its end");
    assert!(ends_within(pid, LONG), "QEMU outlived its owner");
}
