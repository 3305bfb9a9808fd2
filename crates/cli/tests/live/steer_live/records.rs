//! Records that say nothing: `down` takes steering away whatever they are.

use crate::steer_machine::{Machine, WAN, code, said};
use service::Instance;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use steer::record::{Records, instance_of};
use xdp::{Attachment, Interface};

/// Puts something in the place of a record.
type Break = fn(&PathBuf);

/// What a record is replaced by.
const BROKEN: [(&str, Break); 4] = [
    ("octets", |path| fs::write(path, b"\xff\xfe\n\x00{\n".repeat(5000)).expect("written")),
    ("half of it", |path| fs::write(path, b"{\"pid\":12").expect("written")),
    ("a folder", |path| fs::create_dir(path).expect("made")),
    ("a FIFO", |path| assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo").success())),
];

fn place(machine: &Machine) -> Instance {
    machine.inside(|| {
        let interface = Interface::find(WAN).expect("the interface");
        instance_of(&Attachment::open(&interface).expect("its pins").expect("steered"))
    })
}

fn remove(path: &PathBuf) {
    let _ = fs::remove_file(path).or_else(|_| fs::remove_dir(path));
}

/// Replaces a record of a steered interface and takes steering away: its exit code and what it said, in one line.
fn down_with(machine: &Machine, up: &[&str], record: &str, broken: Break) -> (i32, String, PathBuf) {
    let up = machine.run(&[&["up", WAN, "--seconds", "0"], up].concat());
    assert_eq!(code(&up), 0, "{}", said(&up));
    let Instance { namespace, name, .. } = place(machine);
    let record = record.replace("PLACE", &format!("{namespace}-{name}"));
    let path = Records::new(machine.journal()).folder().join(record);
    remove(&path);
    broken(&path);
    let status = machine.run(&["status", WAN, "--interval", "0", "--json"]);
    assert_eq!(code(&status), 0, "{}", said(&status));
    let down = machine.run(&["down", WAN]);
    let text = said(&down).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(machine.status_of(WAN)["mode"], "off", "{text}");
    assert!(text.contains("wan0 is no longer steered."), "{text}");
    (code(&down), text, path)
}

#[test]
fn down_takes_steering_away_whatever_the_record_of_a_process_is() {
    let Some(machine) = Machine::new() else { return };
    for (what, broken) in BROKEN {
        let (code, text, path) = down_with(&machine, &[], "steer-PLACE.daemon", broken);
        let is_file = matches!(what, "octets" | "half of it");
        assert_eq!(code, if is_file { 0 } else { 1 }, "{what}: {text}");
        let word = if is_file { "was no record" } else { "remove it by hand" };
        assert!(text.contains(word) && text.contains(".daemon"), "{what}: {text}");
        assert_eq!(path.exists(), !is_file, "{what}");
        remove(&path);
        machine.assert_nothing_left();
    }
}

#[test]
fn a_process_whose_record_is_overwritten_ends_with_steering() {
    let Some(machine) = Machine::new() else { return };
    let garbage: Break = |path| fs::write(path, b"\xff\xfe").expect("written");
    let up = machine.run(&["up", WAN, "--seconds", "0", "--rebalance"]);
    assert_eq!(code(&up), 0, "{}", said(&up));
    let Instance { namespace, name, .. } = place(&machine);
    let path = Records::new(machine.journal()).folder().join(format!("steer-{namespace}-{name}.daemon"));
    garbage(&path);
    let down = machine.run(&["down", WAN]);
    assert_eq!(code(&down), 0, "{}", said(&down));
    let again = machine.run(&["up", WAN, "--seconds", "0", "--rebalance"]);
    assert_eq!(code(&again), 0, "{}", said(&again));
    assert_eq!(code(&machine.run(&["down", WAN])), 0);
    machine.assert_nothing_left();
}

#[test]
fn down_takes_steering_away_whatever_the_plan_is() {
    let Some(machine) = Machine::new() else { return };
    for (what, broken) in BROKEN {
        let (code, text, path) = down_with(&machine, &[], "steer-PLACE.plan", broken);
        let is_file = matches!(what, "octets" | "half of it");
        assert_eq!(code, if is_file { 0 } else { 1 }, "{what}: {text}");
        assert!(is_file || text.contains("remove it by hand"), "{what}: {text}");
        remove(&path);
        machine.assert_nothing_left();
    }
}

#[test]
fn down_takes_steering_away_whatever_the_journal_is() {
    let Some(machine) = Machine::new() else { return };
    for (what, broken) in BROKEN {
        if what == "half of it" {
            continue;
        }
        let (code, text, path) = down_with(&machine, &["--disable-rxvlan"], "journal", broken);
        assert_eq!(code, 1, "{what}: {text}");
        assert!(text.contains("journal"), "{what}: {text}");
        remove(&path);
        machine.assert_nothing_left();
    }
}

#[test]
fn down_in_the_midst_of_up_leaves_no_process() {
    let Some(machine) = Machine::new() else { return };
    for milliseconds in (20..=270).step_by(25) {
        let mut up = machine.command(&["up", WAN, "--seconds", "0", "--rebalance"]);
        let mut up = up.stdout(std::process::Stdio::null()).spawn().expect("it starts");
        std::thread::sleep(std::time::Duration::from_millis(milliseconds));
        let down = machine.run(&["down", WAN]);
        assert_eq!(code(&down), 0, "after {milliseconds} ms: {}", said(&down));
        up.wait().expect("an end");
        let status = machine.status_of(WAN);
        // Either `down` came before, and all is there, or after, and nothing is.
        let is_steered = status["mode"] != "off";
        assert_eq!(status["keeper"]["alive"] == true, is_steered, "after {milliseconds} ms");
        if !is_steered {
            let again = machine.run(&["up", WAN, "--seconds", "0", "--rebalance"]);
            assert_eq!(code(&again), 0, "after {milliseconds} ms: {}", said(&again));
        }
        assert_eq!(code(&machine.run(&["down", WAN])), 0);
        machine.assert_nothing_left();
    }
}
