//! Interfaces that are renamed, removed, or moved to another namespace while they have an envelope.

use crate::envelope_live::UP;
use crate::machine::{Machine, WAN};
use crate::run::Ended;
use std::fs;
use std::path::Path;
use std::process::Command;
use testkit::netns::Namespace;
use testkit::wait_until;

#[test]
fn a_renamed_interface_is_known_by_both_names() {
    let Some(machine) = Machine::envelope() else { return };
    for taken_back_as in [WAN, "wan9"] {
        machine.run(&UP).ends(0);
        machine.ip(&["link", "set", WAN, "down"]);
        machine.ip(&["link", "set", WAN, "name", "wan9"]);
        for name in [WAN, "wan9"] {
            let status = machine.run(&["status", name]).ends(0).text();
            assert!(status.starts_with("wan9: envelope, native mode\n"), "{status}");
            machine
                .run(&["up", name, "--header", "8"])
                .ends(1)
                .says("wan9 has an envelope already (attached as wan0)");
        }
        machine.run(&["down", taken_back_as]).ends(0).says("wan9 (attached as wan0)");
        assert_eq!(machine.mtu("wan9"), "1500");
        machine.assert_nothing_left();
        machine.ip(&["link", "set", "wan9", "name", WAN]);
        machine.ip(&["link", "set", WAN, "up"]);
    }
}

#[test]
fn who_takes_the_name_of_a_renamed_interface_is_another() {
    let Some(machine) = Machine::envelope() else { return };
    machine.run(&UP).ends(0);
    machine.ip(&["link", "set", WAN, "down"]);
    machine.ip(&["link", "set", WAN, "name", "wan9"]);
    machine.ip(&["link", "add", WAN, "type", "veth", "peer", "name", "other0"]);
    machine.run(&["down", WAN]).ends(1).says("wan0 has no envelope").says("`rxlane envelope down wan9`");
    machine.run(&["up", WAN, "--header", "4"]).ends(0);
    assert_eq!((machine.mtu(WAN), machine.mtu("wan9")), ("1504".to_owned(), "1508".to_owned()));
    machine.run(&["down", WAN]).ends(0);
    assert_eq!((machine.mtu(WAN), machine.mtu("wan9")), ("1500".to_owned(), "1508".to_owned()));
    machine.run(&["down", "wan9"]).ends(0);
    assert_eq!(machine.mtu("wan9"), "1500");
    machine.assert_nothing_left();
}

#[test]
fn an_interface_that_is_gone_leaves_nothing_behind() {
    let Some(machine) = Machine::envelope() else { return };
    machine.run(&UP).ends(0);
    machine.ip(&["link", "del", WAN]);
    machine.run(&["status", WAN]).ends(1).says("wan0 was removed while it had an envelope");
    machine.run(&["down", WAN]).ends(0).says("the interface had been removed");
    machine.assert_nothing_left();
    machine.run(&["down", WAN]).ends(2);
}

#[test]
fn a_new_interface_of_the_name_begins_anew() {
    let Some(machine) = Machine::envelope() else { return };
    machine.run(&UP).ends(0);
    machine.ip(&["link", "del", WAN]);
    machine.ip(&["link", "add", WAN, "type", "veth", "peer", "name", "far0"]);
    let status = machine.status();
    assert_eq!(status["state"], "damaged", "{status:#}");
    machine.run(&UP).ends(0);
    assert_eq!(machine.status()["state"], "up");
    machine.run(&["down", WAN]).ends(0);
    assert_eq!(machine.mtu(WAN), "1500");
    machine.assert_nothing_left();
}

#[test]
fn an_interface_that_moved_is_taken_back_where_it_is() {
    let Some(machine) = Machine::envelope() else { return };
    let other = Namespace::new().expect("a namespace");
    machine.run(&UP).ends(0);
    machine.ip(&["link", "set", WAN, "netns", other.name()]);
    for command in ["status", "down"] {
        machine.run(&[command, WAN]).ends(1).says("has left it");
    }
    machine.run_in(&other, &["down", WAN]).ends(0);
    let mtu = other.run("cat", &[&format!("/sys/class/net/{WAN}/mtu")]).expect("an MTU");
    assert_eq!(mtu.trim(), "1500");
    machine.assert_nothing_left();
}

#[test]
fn a_deleted_namespace_is_cleared_by_the_next_up() {
    let (Some(first), Some(second)) = (Machine::envelope(), Machine::envelope()) else { return };
    first.run(&UP).ends(0);
    let pins = first.pins();
    assert!(pins.join(WAN).exists());
    let deleted = Command::new("ip").args(["netns", "del", first.namespace.name()]).output();
    deleted.expect("ip").ends(0);
    let run = |arguments: &[&str]| {
        first.run_in(&second.namespace, arguments).ends(0);
    };
    let number = pins.file_name().and_then(|name| name.to_str()).expect("a number");
    // A process that another test starts may have seen the namespace's name, and keeps it until it ends; also between the look
    // into the journal and the one at the pins.
    wait_until("what the namespace left is cleared", || {
        run(&UP);
        let text = fs::read_to_string(Path::new(first.journal()).join("journal")).expect("a journal");
        // Of the two changes the first is struck.
        let recorded: Vec<&str> = text.lines().filter(|line| line.contains("\"intent\"")).collect();
        let is_cleared = !pins.exists() && recorded.len() == 1 && !recorded[0].contains(number);
        run(&["down", WAN]);
        is_cleared
    });
}
