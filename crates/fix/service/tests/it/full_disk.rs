//! A disk without room: it is reported when it happens, and what there was stays.

use crate::journal_machine::{Machine, setting};
use rxlane_service::journal::{Error, Journal};
use rxlane_service::record::{self, Live};
use rxlane_service::{Instances, Kind, StateDir};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use testkit::netns::probe;
use testkit::{program, require};

/// The disk, for the process that sees it.
const DISK: &str = "RXLANE_TEST_DISK";

#[test]
fn a_full_disk_is_reported_and_what_there_was_stays() {
    if let Some(disk) = std::env::var_os(DISK) {
        return on_full_disk(disk.into());
    }
    let (Some(_), Some(unshare)) = (require("netns", probe()), require("unshare", program("unshare"))) else {
        return;
    };
    let disk = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(unshare);
    command.args(["--mount", "sh", "-c", "mount -t tmpfs -o size=32k,mode=0700 none \"$0\" && exec \"$@\""]);
    command.arg(disk.path()).arg(std::env::current_exe().expect("this program"));
    command.args(["--exact", "full_disk::a_full_disk_is_reported_and_what_there_was_stays", "--nocapture"]);
    let output = command.env(DISK, disk.path()).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn on_full_disk(disk: PathBuf) {
    let state = StateDir::at(disk.join("state"));
    let instances = Instances::new(Kind::Steer, state.clone()).expect("a namespace");
    let file = |suffix: &str| record::path(&state, &instances.named("wan0"), suffix);
    let (plan, daemon) = (file(".plan"), file(".daemon"));
    let long = json!({ "number": 2, "text": "x".repeat(6000) });
    record::write(&state, &plan, &json!({ "number": 1 })).expect("room");
    let mut live = Live::hold(&state, &daemon, &json!({ "number": 1 })).expect("room");
    // All that is left.
    let _ = fs::write(disk.join("filler"), "x".repeat(64 << 10));
    let is_full = |error: &str| assert!(error.contains("No space left on device"), "{error}");
    is_full(&record::write(&state, &plan, &long).expect_err("no room").to_string());
    is_full(&live.write(&long).expect_err("no room").to_string());
    let read = record::read::<Value>(&state, &plan).expect("whole").expect("there");
    let (kept, lives) = Live::read::<Value>(&state, &daemon).expect("whole").expect("there");
    assert_eq!((&read["number"], &kept["number"], lives), (&json!(1), &json!(1), true));
    let machine = Machine::new();
    let before = machine.state();
    let other = StateDir::at(disk.join("state"));
    let changed = Journal::open(&other, &machine.tree())
        .and_then(|mut journal| journal.apply(&setting("ip link set dev eth0 mtu 1508"), "test").map(drop));
    let Err(Error::File { source, .. }) = changed else { panic!("{changed:?}") };
    is_full(&source.to_string());
    assert_eq!(machine.state(), before, "nothing was changed");
    fs::remove_file(disk.join("filler")).expect("removed");
    record::write(&state, &plan, &long).expect("room again");
    live.write(&long).expect("room again");
}
