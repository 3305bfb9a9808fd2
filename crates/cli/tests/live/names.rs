//! Interfaces that are renamed, removed, replaced or moved to another namespace while they are steered or have an envelope.

use crate::machine::{Machine, WAN};
use crate::run::Ended;
use testkit::netns::{Namespace, Veth};
use testkit::wait_until;

/// What the interface is called later.
pub const LATER: &str = "wan9";

/// Those that can be made here; what is steered has a daemon.
fn machines() -> impl Iterator<Item = Machine> {
    [Machine::steer, Machine::envelope].into_iter().filter_map(|make| make())
}

impl Machine {
    pub fn rename(&self, from: &str, to: &str) {
        self.ip(&["link", "set", from, "down"]);
        self.ip(&["link", "set", from, "name", to]);
        self.ip(&["link", "set", to, "up"]);
    }

    /// Another pair, whose near end is called as the first was.
    pub fn replace(&self) {
        self.ip(&["link", "add", WAN, "type", "veth", "peer", "name", "other0"]);
        self.ip(&["link", "set", WAN, "up"]);
    }
}

#[test]
fn a_renamed_interface_is_known_by_both_names() {
    for machine in machines() {
        for taken_back_as in [WAN, LATER] {
            machine.up(WAN).ends(0);
            machine.rename(WAN, LATER);
            for name in [WAN, LATER] {
                assert!(machine.is_up(name), "{name}: {:#}", machine.status_of(name));
                assert_eq!(machine.status_of(name)["interface"], LATER);
                let again = machine.up(name);
                again.ends(1).says(" already (attached as wan0)");
                assert!(again.text().starts_with("rxlane: wan9 "), "{}", again.text());
            }
            machine.run(&["down", taken_back_as]).ends(0);
            assert!(!machine.is_up(LATER));
            machine.assert_nothing_left();
            machine.rename(LATER, WAN);
        }
    }
}

#[test]
fn who_takes_the_name_of_a_renamed_interface_is_another() {
    for machine in machines() {
        machine.up(WAN).ends(0);
        machine.rename(WAN, LATER);
        machine.replace();
        assert!(!machine.is_up(WAN), "{:#}", machine.status());
        let down = machine.run(&["down", WAN]);
        assert!([0, 1].contains(&down.says(LATER).code()), "{}", down.text());
        // It can have the same, and each has what is its own.
        machine.up(WAN).ends(0);
        assert!(machine.is_up(WAN) && machine.is_up(LATER), "{:#}", machine.status_of(LATER));
        machine.run(&["down", WAN]).ends(0);
        assert!(!machine.is_up(WAN) && machine.is_up(LATER), "{:#}", machine.status_of(LATER));
        machine.run(&["down", LATER]).ends(0);
        machine.assert_nothing_left();
    }
}

#[test]
fn an_interface_that_is_removed_leaves_nothing_behind_and_a_new_one_begins_anew() {
    for machine in machines() {
        machine.up(WAN).ends(0);
        machine.ip(&["link", "del", WAN]);
        machine.run(&["status", WAN]).ends(1).says("wan0 was removed while it ");
        machine.run(&["down", WAN]).ends(0);
        machine.assert_nothing_left();
        machine.run(&["down", WAN]).ends(2);
        machine.replace();
        machine.up(WAN).ends(0);
        machine.ip(&["link", "del", WAN]);
        machine.replace();
        assert!(!machine.is_up(WAN), "{:#}", machine.status());
        machine.up(WAN).ends(0);
        assert!(machine.is_up(WAN), "{:#}", machine.status());
        machine.run(&["down", WAN]).ends(0);
        machine.assert_nothing_left();
    }
}

#[test]
fn an_interface_that_moved_to_another_namespace_is_taken_back_there() {
    for machine in machines() {
        let there = Namespace::new().expect("a namespace");
        machine.up(WAN).ends(0);
        machine.ip(&["link", "set", WAN, "netns", there.name()]);
        for command in ["status", "down"] {
            machine.run(&[command, WAN]).ends(1).says("has left it");
        }
        machine.run_in(&there, &["down", WAN]).ends(0);
        let link = there.run("ip", &["-d", "-o", "link", "show", "dev", WAN]).expect("the interface");
        assert!(!link.contains("xdp") && !link.contains("mtu 1508"), "{link}");
        machine.assert_nothing_left();
        machine.run(&["down", WAN]).ends(2);
    }
}

/// Neither does its daemon keep the namespace.
#[test]
fn what_a_deleted_namespace_left_is_removed_by_the_next_command() {
    for machine in machines() {
        let other = Namespace::new().expect("another namespace");
        other.veth(&Veth { queues: 2, ..Veth::pair(WAN, "far0") }).expect("a pair");
        machine.run_in(&other, &machine.up_arguments(WAN)).ends(0);
        let (pins, records) = (machine.pins_in(&other), machine.left());
        // As long as the namespace is there, its pins are nobody else's.
        machine.run(&["down", WAN]);
        assert!(pins.exists() && !records.is_empty() && machine.left() == records, "{records:?}");
        drop(other);
        // The kernel takes namespaces apart in its own time, and programs that other tests start may keep one until they end.
        wait_until(format!("{} goes", pins.display()), || {
            machine.up(WAN).ends(0);
            machine.run(&["down", WAN]).ends(0);
            !pins.exists() && machine.left().is_empty()
        });
    }
}
