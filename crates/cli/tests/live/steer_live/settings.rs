//! Settings that were changed on interfaces which are then renamed, or moved to another namespace.

use crate::machine::{Machine, WAN};
use crate::names::LATER;
use crate::run::Ended;
use testkit::netns::{Namespace, Veth};

const RESTORES: [&str; 2] = ["ethtool -K wan0 rxvlan on", "ethtool -K wan9 rxvlan on"];

fn up(machine: &Machine, more: &[&str]) {
    machine.run(&[&["up", WAN, "--seconds", "0"], more].concat()).ends(0);
}

fn restore(namespace: &Namespace, name: &str) {
    namespace.run("ethtool", &["-K", name, "rxvlan", "on"]).expect("restored");
}

#[test]
fn a_setting_of_a_renamed_interface_is_reported_with_the_command_that_restores_it() {
    let Some(machine) = Machine::steer() else { return };
    let before = machine.state();
    up(&machine, &["--disable-rxvlan"]);
    machine.rename(WAN, LATER);
    machine.run(&["down", LATER]).ends(1).says("is now called wan9").says(RESTORES[1]);
    assert_eq!(machine.status_of(LATER)["mode"], "off");
    // With its old name again, it is restored.
    machine.rename(LATER, WAN);
    machine.run(&["down", WAN]).ends(0);
    assert_eq!(machine.state(), before);
    machine.assert_nothing_left();
    // It is not restored on another one that has its name.
    up(&machine, &["--disable-rxvlan"]);
    machine.rename(WAN, LATER);
    machine.replace();
    machine.run(&["up", LATER, "--seconds", "0"]).says("`rxlane steer down wan9` ends it");
    up(&machine, &[]);
    machine.run(&["down", LATER]).ends(1).says("wan9 (attached as wan0) is no longer steered.");
    assert_eq!(machine.status_of(WAN)["mode"], "native");
    machine.run(&["down", WAN]).ends(0);
    machine.run(&["down", LATER]).ends(1).says(RESTORES[1]);
    restore(&machine.namespace, LATER);
    machine.run(&["down", LATER]).ends(0).says("already back");
    machine.assert_nothing_left();
}

#[test]
fn a_setting_of_an_interface_that_went_away_is_reported_until_it_is_restored() {
    let Some(machine) = Machine::steer() else { return };
    let there = Namespace::new().expect("a namespace");
    // One of the same name in another namespace has nothing to do with it.
    there.veth(&Veth::pair(WAN, "other0")).expect("a pair");
    up(&machine, &["--disable-rxvlan"]);
    machine.run_in(&there, &["up", WAN, "--seconds", "0"]).ends(0);
    machine.run_in(&there, &["down", WAN]).ends(0);
    assert!(machine.features().contains("rx-vlan-offload: off"));
    there.run("ip", &["link", "del", WAN]).expect("deleted");

    machine.ip(&["link", "set", WAN, "netns", there.name()]);
    machine.run(&["down", WAN]).ends(1).says("has left it");
    for _ in 0..2 {
        machine.run_in(&there, &["down", WAN]).ends(1).says(RESTORES[0]);
        machine.run(&["down", WAN]).ends(1).says(RESTORES[0]);
    }
    restore(&there, WAN);
    machine.run_in(&there, &["down", WAN]).ends(0).says("already back");
    machine.assert_nothing_left();
    machine.run(&["down", WAN]).ends(2);
}

#[test]
fn a_setting_outlives_the_namespace_in_which_it_was_made() {
    let Some(machine) = Machine::steer() else { return };
    let (first, there) = (Namespace::new().expect("a namespace"), Namespace::new().expect("a namespace"));
    first.veth(&Veth::pair(WAN, "far0")).expect("a pair");
    // With its peer it would go.
    first.run("ip", &["link", "set", "far0", "netns", there.name()]).expect("moved");
    machine.run_in(&first, &["up", WAN, "--seconds", "0", "--disable-rxvlan"]).ends(0);
    first.run("ip", &["link", "set", WAN, "netns", there.name()]).expect("moved");
    drop(first);
    // Another command looks for what deleted namespaces left, before and behind.
    for _ in 0..2 {
        machine.run(&["down", WAN]).ends(0);
        machine.run_in(&there, &["down", WAN]).ends(1).says(RESTORES[0]);
    }
    restore(&there, WAN);
    machine.run_in(&there, &["down", WAN]).ends(0).says("already back");
    machine.assert_nothing_left();
}

#[test]
fn a_foreground_process_takes_steering_off_an_interface_that_leaves_and_reports_its_setting() {
    for (more, code, words) in [(&[][..], 0, "no longer steered"), (&["--disable-rxvlan"], 1, RESTORES[0])] {
        let Some(machine) = Machine::steer() else { return };
        let there = Namespace::new().expect("a namespace");
        let child = machine.start_in_the_foreground(more);
        machine.ip(&["link", "set", WAN, "netns", there.name()]);
        child.wait_with_output().expect("an end").ends(code).says(words);
        let link = there.run("ip", &["-d", "-o", "link", "show", "dev", WAN]).expect("the interface");
        assert!(!link.contains("xdp"), "{link}");
        if code == 1 {
            machine.run_in(&there, &["down", WAN]).ends(1);
            restore(&there, WAN);
            machine.run_in(&there, &["down", WAN]).ends(0);
        }
        machine.assert_nothing_left();
    }
}
