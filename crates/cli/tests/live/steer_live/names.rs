//! Interfaces that are renamed, replaced, or moved to another namespace while they are steered.

use crate::machine::{Machine, WAN};
use crate::run::Ended;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Stdio;
use testkit::netns::{Namespace, Veth};
use testkit::wait_until;

/// What the interface is called later.
const LATER: &str = "wan9";

fn up(machine: &Machine, more: &[&str]) {
    machine.run(&[&["up", WAN, "--seconds", "0"], more].concat()).ends(0);
}

fn rename(machine: &Machine, from: &str, to: &str) {
    machine.ip(&["link", "set", from, "down"]);
    machine.ip(&["link", "set", from, "name", to]);
    machine.ip(&["link", "set", to, "up"]);
}

/// Another pair, whose near end is called as the first was.
fn replace(machine: &Machine) {
    machine.ip(&["link", "add", WAN, "type", "veth", "peer", "name", "other0"]);
    machine.ip(&["link", "set", WAN, "up"]);
}

#[test]
fn a_renamed_interface_is_known_by_both_names() {
    let Some(machine) = Machine::steer() else { return };
    for (name, taken_back_as) in [(WAN, WAN), (LATER, LATER)] {
        up(&machine, &["--rebalance"]);
        rename(&machine, WAN, LATER);
        let status = machine.status_of(name);
        assert_eq!((status["interface"].as_str(), status["mode"].as_str()), (Some(LATER), Some("native")));
        assert_eq!(status["keeper"]["alive"], true, "{}", status["keeper"]);
        assert!(status["remarks"].to_string().contains("it was called wan0"), "{}", status["remarks"]);
        machine
            .run(&["up", name, "--seconds", "0"])
            .ends(1)
            .says("wan9 is steered already (attached as wan0)");
        machine.run(&["down", taken_back_as]).ends(0);
        assert_eq!(machine.status_of(LATER)["mode"], "off");
        machine.assert_nothing_left();
        rename(&machine, LATER, WAN);
    }
}

#[test]
fn who_takes_the_name_of_a_renamed_interface_is_another() {
    let Some(machine) = Machine::steer() else { return };
    up(&machine, &["--rebalance"]);
    rename(&machine, WAN, LATER);
    replace(&machine);
    let status = machine.status_of(WAN);
    assert_eq!(status["mode"], "off");
    assert!(status["remarks"].to_string().contains("wan9, which is steered, was called wan0"), "{status:#}");
    machine.run(&["down", WAN]).ends(0).says("nothing to take back").says(LATER);
    assert_eq!(machine.status_of(LATER)["keeper"]["alive"], true);
    // It can be steered as well, and each has what is its own.
    up(&machine, &["--rebalance"]);
    let pids = [WAN, LATER].map(|name| machine.status_of(name)["keeper"]["pid"].as_u64());
    assert!(pids[0].is_some() && pids[1].is_some() && pids[0] != pids[1], "{pids:?}");
    machine.run(&["down", WAN]).ends(0);
    let left = machine.status_of(LATER);
    assert_eq!((left["mode"].as_str(), left["keeper"]["alive"].as_bool()), (Some("native"), Some(true)));
    machine.run(&["down", LATER]).ends(0);
    machine.assert_nothing_left();
}

#[test]
fn a_setting_of_a_renamed_interface_is_told_with_the_command_that_restores_it() {
    let Some(machine) = Machine::steer() else { return };
    let before = machine.state();
    up(&machine, &["--disable-rxvlan"]);
    rename(&machine, WAN, LATER);
    let down = machine.run(&["down", LATER]);
    down.ends(1);
    let text = down.text().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("is now called wan9") && text.contains("ethtool -K wan9 rxvlan on"), "{text}");
    assert_eq!(machine.status_of(LATER)["mode"], "off");
    // With its old name again, it is restored.
    rename(&machine, LATER, WAN);
    machine.run(&["down", WAN]).ends(0);
    assert_eq!(machine.state(), before);
    machine.assert_nothing_left();
}

#[test]
fn an_interface_removed_and_made_again_is_another() {
    let Some(machine) = Machine::steer() else { return };
    up(&machine, &["--rebalance", "--disable-rxvlan"]);
    let former = machine.status_of(WAN)["keeper"]["pid"].as_u64();
    machine.ip(&["link", "del", WAN]);
    replace(&machine);
    assert_eq!(machine.status_of(WAN)["mode"], "off");
    up(&machine, &["--rebalance"]);
    let status = machine.status_of(WAN);
    assert_eq!((status["mode"].as_str(), status["keeper"]["alive"].as_bool()), (Some("native"), Some(true)));
    assert_ne!(status["keeper"]["pid"].as_u64(), former);
    machine.run(&["down", WAN]).ends(0);
    machine.assert_nothing_left();
}

#[test]
fn an_interface_that_went_to_another_namespace_is_taken_back_there() {
    let Some(machine) = Machine::steer() else { return };
    let there = Namespace::new().expect("a namespace");
    up(&machine, &["--rebalance"]);
    machine.ip(&["link", "set", WAN, "netns", there.path().to_str().expect("UTF-8")]);
    for command in [&["status", WAN, "--interval", "0"][..], &["down", WAN]] {
        machine.run(command).ends(1).says("has left it").says("ip netns exec");
    }
    let status = machine.run_in(&there, &["status", WAN, "--interval", "0", "--json"]).json();
    assert_eq!(status["mode"], "native");
    machine.run_in(&there, &["down", WAN]).ends(0);
    machine.assert_nothing_left();
    machine.run(&["down", WAN]).ends(2);
}

#[test]
fn a_setting_of_another_namespace_is_no_business_of_one_of_the_same_name() {
    let Some(machine) = Machine::steer() else { return };
    let there = Namespace::new().expect("a namespace");
    there.run("ip", &["link", "add", WAN, "type", "veth", "peer", "name", "other0"]).expect("a pair");
    there.run("ip", &["link", "set", WAN, "up"]).expect("up");
    up(&machine, &["--disable-rxvlan"]);
    machine.run_in(&there, &["up", WAN, "--seconds", "0"]).ends(0);
    machine.run_in(&there, &["down", WAN]).ends(0);
    assert!(machine.features().contains("rx-vlan-offload: off"));
    machine.run(&["down", WAN]).ends(0);
    machine.assert_nothing_left();
}

#[test]
fn what_stays_in_the_foreground_takes_steering_off_an_interface_that_leaves() {
    let Some(machine) = Machine::steer() else { return };
    let there = Namespace::new().expect("a namespace");
    let child = machine.stays_in_the_foreground();
    machine.ip(&["link", "set", WAN, "netns", there.path().to_str().expect("UTF-8")]);
    child.wait_with_output().expect("an end").ends(0).says("no longer steered");
    let shown = there.run("ip", &["-d", "-o", "link", "show", "dev", WAN]).expect("the interface");
    assert!(!shown.contains("xdp"), "{shown}");
    machine.assert_nothing_left();
}

#[test]
fn a_setting_of_an_interface_that_went_away_is_told_until_it_is_restored() {
    let Some(machine) = Machine::steer() else { return };
    let there = Namespace::new().expect("a namespace");
    up(&machine, &["--disable-rxvlan"]);
    machine.ip(&["link", "set", WAN, "netns", there.path().to_str().expect("UTF-8")]);
    machine.run(&["down", WAN]).ends(1).says("has left it");
    for _ in 0..2 {
        machine.run_in(&there, &["down", WAN]).ends(1).says("ethtool -K wan0 rxvlan on");
        machine.run(&["down", WAN]).ends(1).says("ethtool -K wan0 rxvlan on");
    }
    there.run("ethtool", &["-K", WAN, "rxvlan", "on"]).expect("restored");
    machine.run_in(&there, &["down", WAN]).ends(0).says("already back");
    machine.assert_nothing_left();
    machine.run(&["down", WAN]).ends(2);
}

#[test]
fn a_setting_outlives_the_namespace_in_which_it_was_made() {
    let Some(machine) = Machine::steer() else { return };
    let (first, there) = (Namespace::new().expect("a namespace"), Namespace::new().expect("a namespace"));
    first.veth(&Veth::pair(WAN, "far0")).expect("a pair");
    let path = there.path();
    let path = path.to_str().expect("UTF-8");
    // With its peer it would go.
    first.run("ip", &["link", "set", "far0", "netns", path]).expect("moved");
    machine.run_in(&first, &["up", WAN, "--seconds", "0", "--disable-rxvlan"]).ends(0);
    first.run("ip", &["link", "set", WAN, "netns", path]).expect("moved");
    drop(first);
    // Another command looks for what deleted namespaces left, before and behind.
    for _ in 0..2 {
        machine.run(&["down", WAN]).ends(0);
        machine.run_in(&there, &["down", WAN]).ends(1).says("ethtool -K wan0 rxvlan on");
    }
    there.run("ethtool", &["-K", WAN, "rxvlan", "on"]).expect("restored");
    machine.run_in(&there, &["down", WAN]).ends(0).says("already back");
    machine.assert_nothing_left();
}

#[test]
fn a_setting_is_told_by_what_stays_in_the_foreground_when_the_interface_leaves() {
    let Some(machine) = Machine::steer() else { return };
    let there = Namespace::new().expect("a namespace");
    let mut command = machine.command(&["up", WAN, "--seconds", "0", "--foreground", "--disable-rxvlan"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    machine.wait_until_steered();
    machine.ip(&["link", "set", WAN, "netns", there.path().to_str().expect("UTF-8")]);
    child.wait_with_output().expect("an end").ends(1).says("ethtool -K wan0 rxvlan on");
    machine.run_in(&there, &["down", WAN]).ends(1);
    there.run("ethtool", &["-K", WAN, "rxvlan", "on"]).expect("restored");
    machine.run_in(&there, &["down", WAN]).ends(0);
    machine.assert_nothing_left();
}

#[test]
fn what_was_changed_on_a_renamed_interface_is_not_asked_of_the_one_that_has_its_name() {
    let Some(machine) = Machine::steer() else { return };
    up(&machine, &["--disable-rxvlan"]);
    rename(&machine, WAN, LATER);
    replace(&machine);
    machine.run(&["up", LATER, "--seconds", "0"]).says("`rxlane steer down wan9` ends it");
    up(&machine, &[]);
    let down = machine.run(&["down", LATER]);
    down.ends(1).says("wan9 (attached as wan0) is no longer steered.");
    assert_eq!(machine.status_of(WAN)["mode"], "native");
    machine.run(&["down", WAN]).ends(0);
    machine.run(&["down", LATER]).ends(1).says("ethtool -K wan9 rxvlan on");
    machine.inside(|| {
        let restored = std::process::Command::new("ethtool").args(["-K", LATER, "rxvlan", "on"]).status();
        assert!(restored.expect("ethtool").success());
    });
    machine.run(&["down", LATER]).ends(0).says("already back");
    machine.assert_nothing_left();
}

#[test]
fn status_knows_an_interface_that_was_removed_from_one_that_left() {
    let Some(machine) = Machine::steer() else { return };
    up(&machine, &["--rebalance"]);
    machine.ip(&["link", "del", WAN]);
    machine.run(&["status", WAN, "--interval", "0"]).ends(1).says("was removed while it was steered");
    machine.run(&["down", WAN]).ends(0);
    machine.assert_nothing_left();
}

#[test]
fn what_a_deleted_namespace_left_is_removed_by_the_next_command() {
    let Some(machine) = Machine::steer() else { return };
    let other = Namespace::new().expect("another namespace");
    other.veth(&Veth::pair(WAN, "far0")).expect("a pair");
    machine.run_in(&other, &["up", WAN, "--seconds", "0"]).ends(0);
    let inode = std::fs::metadata(other.path()).expect("its file").ino();
    let pins = format!("/sys/fs/bpf/rxlane/steer/{inode}");
    let record = Path::new(machine.journal()).join(format!("steer-{inode}-{WAN}.plan"));
    assert!(Path::new(&pins).exists() && record.exists());
    // As long as the namespace is there, its pins are nobody else's.
    let down = machine.run(&["down", WAN]);
    assert!(Path::new(&pins).exists() && record.exists(), "{}", down.text());
    drop(other);
    // The kernel takes namespaces apart in its own time. Commands of other tests may be first with the pins.
    wait_until(format!("{pins} goes"), || {
        let down = machine.run(&["down", WAN]);
        down.ends(0);
        if down.text().contains(&format!("network namespace that is no more ({inode})")) {
            assert!(!record.exists(), "{}", down.text());
        }
        !Path::new(&pins).exists()
    });
}
