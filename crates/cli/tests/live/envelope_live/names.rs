//! Interfaces that are renamed, removed, or moved to another namespace while they have an envelope.

use crate::envelope_live::UP;
use crate::envelope_machine::{Machine, WAN, code, said};
use std::time::Instant;
use testkit::netns::Namespace;

#[test]
fn a_renamed_interface_is_known_by_both_names() {
    let Some(machine) = Machine::new() else { return };
    for taken_back_as in [WAN, "wan9"] {
        machine.expect(0, &UP);
        machine.ip(&["link", "set", WAN, "down"]);
        machine.ip(&["link", "set", WAN, "name", "wan9"]);
        for name in [WAN, "wan9"] {
            let status = machine.expect(0, &["status", name]);
            assert!(status.starts_with("wan9: envelope, native mode\n"), "{status}");
            let again = machine.expect(1, &["up", name, "--header", "8"]);
            assert!(again.contains("wan9 has an envelope already (attached as wan0)"), "{again}");
        }
        let down = machine.expect(0, &["down", taken_back_as]);
        assert!(down.contains("wan9 (attached as wan0)"), "{down}");
        assert_eq!(machine.mtu("wan9"), "1500");
        machine.assert_nothing_left();
        machine.ip(&["link", "set", "wan9", "name", WAN]);
        machine.ip(&["link", "set", WAN, "up"]);
    }
}

#[test]
fn who_takes_the_name_of_a_renamed_interface_is_another() {
    let Some(machine) = Machine::new() else { return };
    machine.expect(0, &UP);
    machine.ip(&["link", "set", WAN, "down"]);
    machine.ip(&["link", "set", WAN, "name", "wan9"]);
    machine.ip(&["link", "add", WAN, "type", "veth", "peer", "name", "other0"]);
    let none = machine.expect(1, &["down", WAN]);
    assert!(none.contains("wan0 has no envelope") && none.contains("`rxlane envelope down wan9`"), "{none}");
    machine.expect(0, &["up", WAN, "--header", "4"]);
    assert_eq!((machine.mtu(WAN), machine.mtu("wan9")), ("1504".to_owned(), "1508".to_owned()));
    machine.expect(0, &["down", WAN]);
    assert_eq!((machine.mtu(WAN), machine.mtu("wan9")), ("1500".to_owned(), "1508".to_owned()));
    machine.expect(0, &["down", "wan9"]);
    assert_eq!(machine.mtu("wan9"), "1500");
    machine.assert_nothing_left();
}

#[test]
fn an_interface_that_is_gone_leaves_nothing_behind() {
    let Some(machine) = Machine::new() else { return };
    machine.expect(0, &UP);
    machine.ip(&["link", "del", WAN]);
    let status = machine.expect(1, &["status", WAN]);
    assert!(status.contains("wan0 was removed while it had an envelope"), "{status}");
    let down = machine.expect(0, &["down", WAN]);
    assert!(down.contains("the interface had been removed"), "{down}");
    machine.assert_nothing_left();
    machine.expect(2, &["down", WAN]);
}

#[test]
fn a_new_interface_of_the_name_begins_anew() {
    let Some(machine) = Machine::new() else { return };
    machine.expect(0, &UP);
    machine.ip(&["link", "del", WAN]);
    machine.ip(&["link", "add", WAN, "type", "veth", "peer", "name", "far0"]);
    let status = machine.status();
    assert_eq!(status["state"], "damaged", "{status:#}");
    machine.expect(0, &UP);
    assert_eq!(machine.status()["state"], "up");
    machine.expect(0, &["down", WAN]);
    assert_eq!(machine.mtu(WAN), "1500");
    machine.assert_nothing_left();
}

#[test]
fn an_interface_that_moved_is_taken_back_where_it_is() {
    let Some(machine) = Machine::new() else { return };
    let other = Namespace::new().expect("a namespace");
    machine.expect(0, &UP);
    machine.ip(&["link", "set", WAN, "netns", other.name()]);
    for command in ["status", "down"] {
        let here = machine.expect(1, &[command, WAN]);
        assert!(here.contains("has left it"), "{here}");
    }
    let down = machine.command_in(&other, "envelope", &["down", WAN]).output().expect("it starts");
    assert_eq!(code(&down), 0, "{}", said(&down));
    let mtu = other.run("cat", &[&format!("/sys/class/net/{WAN}/mtu")]).expect("an MTU");
    assert_eq!(mtu.trim(), "1500");
    machine.assert_nothing_left();
}

#[test]
fn a_deleted_namespace_is_cleared_by_the_next_up() {
    let (Some(first), Some(second)) = (Machine::new(), Machine::new()) else { return };
    first.expect(0, &UP);
    let pins = first.pins();
    assert!(pins.join(WAN).exists());
    let journal = first.delete_namespace();
    let run = |arguments: &[&str]| {
        let output = second.command_with(&journal, arguments).output().expect("it starts");
        assert_eq!(code(&output), 0, "{}", said(&output));
    };
    let number = pins.file_name().and_then(|name| name.to_str()).expect("a number");
    // A process that another test starts may have seen the namespace's name, and keeps it until it ends; also between the look
    // into the journal and the one at the pins.
    let until = Instant::now() + testkit::PATIENCE;
    loop {
        run(&UP);
        let text = std::fs::read_to_string(journal.join("journal")).expect("a journal");
        // Of the two changes the first is struck.
        let noted: Vec<&str> = text.lines().filter(|line| line.contains("\"intent\"")).collect();
        if !pins.exists() && noted.len() == 1 && noted.iter().all(|line| !line.contains(number)) {
            break;
        }
        run(&["down", WAN]);
        assert!(Instant::now() < until, "{}: {text}", pins.display());
    }
    run(&["down", WAN]);
}
