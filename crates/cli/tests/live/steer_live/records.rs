//! Records that say nothing: `down` takes steering away whatever they are.

use crate::machine::{Machine, SIGNS, WAN};
use crate::run::Ended;
use service::Instance;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use steer::record::{Records, instance_of};
use xdp::{Attachment, Interface};

/// Puts something in the place of a record.
type Break = fn(&PathBuf);

/// What a record is replaced by.
const BROKEN: [(&str, Break); 4] = [
    ("bytes", |path| fs::write(path, b"\xff\xfe\n\x00{\n".repeat(5000)).expect("written")),
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

#[test]
fn down_takes_steering_away_whatever_a_record_is() {
    let Some(machine) = Machine::steer() else { return };
    for (record, says_of_bytes, code_of_bytes) in
        [("steer-PLACE.daemon", "was no record", 0), ("steer-PLACE.plan", "", 0), ("journal", "journal", 1)]
    {
        for (what, broken) in BROKEN {
            // Half of an entry at the end of a journal is what a kill leaves.
            if (record, what) == ("journal", "half of it") {
                continue;
            }
            let setting: &[&str] = if record == "journal" { &["--disable-rxvlan"] } else { &[] };
            machine.run(&[&["up", WAN, "--seconds", "0"], setting].concat()).ends(0);
            let Instance { namespace, name, .. } = place(&machine);
            let file = record.replace("PLACE", &format!("{namespace}-{name}"));
            let path = Path::new(machine.journal()).join(file);
            remove(&path);
            broken(&path);
            machine.run(&["status", WAN, "--interval", "0", "--json"]).ends(0);
            let down = machine.run(&["down", WAN]);
            assert_eq!(machine.status()["mode"], "off", "{}", down.text());
            let is_file = !matches!(what, "a folder" | "a FIFO");
            let code = if is_file { code_of_bytes } else { 1 };
            down.is(&(record, what), code, "wan0 is no longer steered.").says(if is_file {
                says_of_bytes
            } else if record == "journal" {
                record
            } else {
                "remove it by hand"
            });
            if record.ends_with("daemon") {
                down.says(".daemon");
                assert_eq!(path.exists(), !is_file, "{what}");
            }
            remove(&path);
            machine.assert_nothing_left();
        }
    }
}

#[test]
fn a_process_with_an_overwritten_record_ends_with_steering() {
    let Some(machine) = Machine::steer() else { return };
    machine.run(&["up", WAN, "--seconds", "0", "--rebalance"]).ends(0);
    let Instance { namespace, name, .. } = place(&machine);
    let path = Records::new(machine.journal()).folder().join(format!("steer-{namespace}-{name}.daemon"));
    fs::write(path, b"\xff\xfe").expect("written");
    machine.run(&["down", WAN]).ends(0);
    machine.run(&["up", WAN, "--seconds", "0", "--rebalance"]).ends(0);
    machine.run(&["down", WAN]).ends(0);
    machine.assert_nothing_left();
}

#[test]
fn down_in_the_midst_of_up_leaves_no_process() {
    let Some(machine) = Machine::steer() else { return };
    let up = ["up", WAN, "--seconds", "0", "--rebalance"];
    for sign in SIGNS.into_iter().filter(|sign| !sign.contains("rx-vlan")) {
        let started = machine.start_until(&up, sign);
        machine.run(&["down", WAN]).is(&sign, 0, "");
        started.wait_with_output().expect("an end");
        let status = machine.status();
        // Either `down` came before, and all is there, or after, and nothing is.
        let is_steered = status["mode"] != "off";
        assert_eq!(status["keeper"]["alive"] == true, is_steered, "{sign}");
        if !is_steered {
            machine.run(&up).is(&sign, 0, "");
        }
        machine.run(&["down", WAN]).ends(0);
        machine.assert_nothing_left();
    }
}
