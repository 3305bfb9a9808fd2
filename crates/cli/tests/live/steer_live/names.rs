//! Interfaces that are renamed, replaced, or moved to another namespace while they are steered.

use crate::steer_machine::{Machine, WAN, code, said};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Stdio;
use testkit::netns::{Namespace, Veth};
use testkit::wait_until;

/// What the interface is called later.
const LATER: &str = "wan9";

fn up(machine: &Machine, more: &[&str]) {
    let up = machine.run(&[&["up", WAN, "--seconds", "0"], more].concat());
    assert_eq!(code(&up), 0, "{}", said(&up));
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
    let Some(machine) = Machine::new() else { return };
    for (name, taken_back_as) in [(WAN, WAN), (LATER, LATER)] {
        up(&machine, &["--rebalance"]);
        rename(&machine, WAN, LATER);
        let status = machine.status_of(name);
        assert_eq!((status["interface"].as_str(), status["mode"].as_str()), (Some(LATER), Some("native")));
        assert_eq!(status["keeper"]["alive"], true, "{}", status["keeper"]);
        assert!(status["remarks"].to_string().contains("it was called wan0"), "{}", status["remarks"]);
        let again = machine.run(&["up", name, "--seconds", "0"]);
        assert_eq!(code(&again), 1, "{}", said(&again));
        assert!(said(&again).contains("wan9 is steered already (attached as wan0)"), "{}", said(&again));
        let down = machine.run(&["down", taken_back_as]);
        assert_eq!(code(&down), 0, "{}", said(&down));
        assert_eq!(machine.status_of(LATER)["mode"], "off");
        machine.assert_nothing_left();
        rename(&machine, LATER, WAN);
    }
}

#[test]
fn who_takes_the_name_of_a_renamed_interface_is_another() {
    let Some(machine) = Machine::new() else { return };
    up(&machine, &["--rebalance"]);
    rename(&machine, WAN, LATER);
    replace(&machine);
    let status = machine.status_of(WAN);
    assert_eq!(status["mode"], "off");
    assert!(status["remarks"].to_string().contains("wan9, which is steered, was called wan0"), "{status:#}");
    let down = machine.run(&["down", WAN]);
    assert_eq!(code(&down), 0, "{}", said(&down));
    assert!(said(&down).contains("nothing to take back") && said(&down).contains(LATER), "{}", said(&down));
    assert_eq!(machine.status_of(LATER)["keeper"]["alive"], true);
    // It can be steered as well, and each has what is its own.
    up(&machine, &["--rebalance"]);
    let pids = [WAN, LATER].map(|name| machine.status_of(name)["keeper"]["pid"].as_u64());
    assert!(pids[0].is_some() && pids[1].is_some() && pids[0] != pids[1], "{pids:?}");
    assert_eq!(code(&machine.run(&["down", WAN])), 0);
    let left = machine.status_of(LATER);
    assert_eq!((left["mode"].as_str(), left["keeper"]["alive"].as_bool()), (Some("native"), Some(true)));
    assert_eq!(code(&machine.run(&["down", LATER])), 0);
    machine.assert_nothing_left();
}

#[test]
fn a_setting_of_a_renamed_interface_is_told_with_the_command_that_restores_it() {
    let Some(machine) = Machine::new() else { return };
    let before = machine.state();
    up(&machine, &["--disable-rxvlan"]);
    rename(&machine, WAN, LATER);
    let down = machine.run(&["down", LATER]);
    assert_eq!(code(&down), 1, "{}", said(&down));
    let text = said(&down).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("is now called wan9") && text.contains("ethtool -K wan9 rxvlan on"), "{text}");
    assert_eq!(machine.status_of(LATER)["mode"], "off");
    // With its old name again, it is restored.
    rename(&machine, LATER, WAN);
    let down = machine.run(&["down", WAN]);
    assert_eq!(code(&down), 0, "{}", said(&down));
    assert_eq!(machine.state(), before);
    machine.assert_nothing_left();
}

#[test]
fn an_interface_removed_and_made_again_is_another() {
    let Some(machine) = Machine::new() else { return };
    up(&machine, &["--rebalance", "--disable-rxvlan"]);
    let former = machine.status_of(WAN)["keeper"]["pid"].as_u64();
    machine.ip(&["link", "del", WAN]);
    replace(&machine);
    assert_eq!(machine.status_of(WAN)["mode"], "off");
    up(&machine, &["--rebalance"]);
    let status = machine.status_of(WAN);
    assert_eq!((status["mode"].as_str(), status["keeper"]["alive"].as_bool()), (Some("native"), Some(true)));
    assert_ne!(status["keeper"]["pid"].as_u64(), former);
    let down = machine.run(&["down", WAN]);
    assert_eq!(code(&down), 0, "{}", said(&down));
    machine.assert_nothing_left();
}

#[test]
fn an_interface_that_went_to_another_namespace_is_taken_back_there() {
    let Some(machine) = Machine::new() else { return };
    let there = Namespace::new().expect("a namespace");
    up(&machine, &["--rebalance"]);
    machine.ip(&["link", "set", WAN, "netns", there.path().to_str().expect("UTF-8")]);
    for command in [&["status", WAN, "--interval", "0"][..], &["down", WAN]] {
        let left = machine.run(command);
        assert_eq!(code(&left), 1, "{}", said(&left));
        assert!(
            said(&left).contains("has left it") && said(&left).contains("ip netns exec"),
            "{}",
            said(&left)
        );
    }
    let status = machine.run_in(&there, &["status", WAN, "--interval", "0", "--json"]);
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).expect("JSON");
    assert_eq!(status["mode"], "native");
    let down = machine.run_in(&there, &["down", WAN]);
    assert_eq!(code(&down), 0, "{}", said(&down));
    machine.assert_nothing_left();
    let unknown = machine.run(&["down", WAN]);
    assert_eq!(code(&unknown), 2, "{}", said(&unknown));
}

#[test]
fn a_setting_of_another_namespace_is_no_business_of_one_of_the_same_name() {
    let Some(machine) = Machine::new() else { return };
    let there = Namespace::new().expect("a namespace");
    there.run("ip", &["link", "add", WAN, "type", "veth", "peer", "name", "other0"]).expect("a pair");
    there.run("ip", &["link", "set", WAN, "up"]).expect("up");
    up(&machine, &["--disable-rxvlan"]);
    let second = machine.run_in(&there, &["up", WAN, "--seconds", "0"]);
    assert_eq!(code(&second), 0, "{}", said(&second));
    let down = machine.run_in(&there, &["down", WAN]);
    assert_eq!(code(&down), 0, "{}", said(&down));
    assert!(machine.features().contains("rx-vlan-offload: off"));
    assert_eq!(code(&machine.run(&["down", WAN])), 0);
    machine.assert_nothing_left();
}

#[test]
fn what_stays_in_the_foreground_takes_steering_off_an_interface_that_leaves() {
    let Some(machine) = Machine::new() else { return };
    let there = Namespace::new().expect("a namespace");
    let mut command = machine.command(&["up", WAN, "--seconds", "0", "--foreground"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    machine.wait_until_steered();
    machine.ip(&["link", "set", WAN, "netns", there.path().to_str().expect("UTF-8")]);
    let ended = child.wait_with_output().expect("an end");
    assert_eq!(code(&ended), 0, "{}", said(&ended));
    assert!(said(&ended).contains("no longer steered"), "{}", said(&ended));
    let shown = there.run("ip", &["-d", "-o", "link", "show", "dev", WAN]).expect("the interface");
    assert!(!shown.contains("xdp"), "{shown}");
    machine.assert_nothing_left();
}

fn in_one_line(output: &std::process::Output) -> String {
    said(output).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_setting_of_an_interface_that_went_away_is_told_until_it_is_restored() {
    let Some(machine) = Machine::new() else { return };
    let there = Namespace::new().expect("a namespace");
    up(&machine, &["--disable-rxvlan"]);
    machine.ip(&["link", "set", WAN, "netns", there.path().to_str().expect("UTF-8")]);
    let left = machine.run(&["down", WAN]);
    assert_eq!(code(&left), 1, "{}", said(&left));
    assert!(in_one_line(&left).contains("has left it"), "{}", said(&left));
    for _ in 0..2 {
        let down = machine.run_in(&there, &["down", WAN]);
        assert_eq!(code(&down), 1, "{}", said(&down));
        assert!(in_one_line(&down).contains("ethtool -K wan0 rxvlan on"), "{}", said(&down));
        let former = machine.run(&["down", WAN]);
        assert_eq!(code(&former), 1, "{}", said(&former));
        assert!(in_one_line(&former).contains("ethtool -K wan0 rxvlan on"), "{}", said(&former));
    }
    there.run("ethtool", &["-K", WAN, "rxvlan", "on"]).expect("restored");
    let down = machine.run_in(&there, &["down", WAN]);
    assert_eq!(code(&down), 0, "{}", said(&down));
    assert!(in_one_line(&down).contains("already back"), "{}", said(&down));
    machine.assert_nothing_left();
    assert_eq!(code(&machine.run(&["down", WAN])), 2);
}

#[test]
fn a_setting_outlives_the_namespace_in_which_it_was_made() {
    let Some(machine) = Machine::new() else { return };
    let (first, there) = (Namespace::new().expect("a namespace"), Namespace::new().expect("a namespace"));
    first.veth(&Veth::pair(WAN, "far0")).expect("a pair");
    let path = there.path();
    let path = path.to_str().expect("UTF-8");
    // With its peer it would go.
    first.run("ip", &["link", "set", "far0", "netns", path]).expect("moved");
    let up = machine.run_in(&first, &["up", WAN, "--seconds", "0", "--disable-rxvlan"]);
    assert_eq!(code(&up), 0, "{}", said(&up));
    first.run("ip", &["link", "set", WAN, "netns", path]).expect("moved");
    drop(first);
    // Another command looks for what deleted namespaces left, before and behind.
    for _ in 0..2 {
        assert_eq!(code(&machine.run(&["down", WAN])), 0);
        let down = machine.run_in(&there, &["down", WAN]);
        assert_eq!(code(&down), 1, "{}", said(&down));
        assert!(in_one_line(&down).contains("ethtool -K wan0 rxvlan on"), "{}", said(&down));
    }
    there.run("ethtool", &["-K", WAN, "rxvlan", "on"]).expect("restored");
    let down = machine.run_in(&there, &["down", WAN]);
    assert_eq!(code(&down), 0, "{}", said(&down));
    assert!(in_one_line(&down).contains("already back"), "{}", said(&down));
    machine.assert_nothing_left();
}

#[test]
fn a_setting_is_told_by_what_stays_in_the_foreground_when_the_interface_leaves() {
    let Some(machine) = Machine::new() else { return };
    let there = Namespace::new().expect("a namespace");
    let mut command = machine.command(&["up", WAN, "--seconds", "0", "--foreground", "--disable-rxvlan"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    machine.wait_until_steered();
    machine.ip(&["link", "set", WAN, "netns", there.path().to_str().expect("UTF-8")]);
    let ended = child.wait_with_output().expect("an end");
    assert_eq!(code(&ended), 1, "{}", said(&ended));
    assert!(in_one_line(&ended).contains("ethtool -K wan0 rxvlan on"), "{}", said(&ended));
    let down = machine.run_in(&there, &["down", WAN]);
    assert_eq!(code(&down), 1, "{}", said(&down));
    there.run("ethtool", &["-K", WAN, "rxvlan", "on"]).expect("restored");
    let down = machine.run_in(&there, &["down", WAN]);
    assert_eq!(code(&down), 0, "{}", said(&down));
    machine.assert_nothing_left();
}

#[test]
fn what_was_changed_on_a_renamed_interface_is_not_asked_of_the_one_that_has_its_name() {
    let Some(machine) = Machine::new() else { return };
    up(&machine, &["--disable-rxvlan"]);
    rename(&machine, WAN, LATER);
    replace(&machine);
    let again = machine.run(&["up", LATER, "--seconds", "0"]);
    assert!(in_one_line(&again).contains("`rxlane steer down wan9` ends it"), "{}", said(&again));
    up(&machine, &[]);
    let down = machine.run(&["down", LATER]);
    assert_eq!(code(&down), 1, "{}", said(&down));
    assert!(
        in_one_line(&down).starts_with("wan9 (attached as wan0) is no longer steered."),
        "{}",
        said(&down)
    );
    assert_eq!(machine.status_of(WAN)["mode"], "native");
    let other = machine.run(&["down", WAN]);
    assert_eq!(code(&other), 0, "{}", said(&other));
    let still = machine.run(&["down", LATER]);
    assert_eq!(code(&still), 1, "{}", said(&still));
    assert!(in_one_line(&still).contains("ethtool -K wan9 rxvlan on"), "{}", said(&still));
    machine.inside(|| {
        let restored = std::process::Command::new("ethtool").args(["-K", LATER, "rxvlan", "on"]).status();
        assert!(restored.expect("ethtool").success());
    });
    let down = machine.run(&["down", LATER]);
    assert_eq!(code(&down), 0, "{}", said(&down));
    assert!(in_one_line(&down).contains("already back"), "{}", said(&down));
    machine.assert_nothing_left();
}

#[test]
fn status_knows_an_interface_that_was_removed_from_one_that_left() {
    let Some(machine) = Machine::new() else { return };
    up(&machine, &["--rebalance"]);
    machine.ip(&["link", "del", WAN]);
    let status = machine.run(&["status", WAN, "--interval", "0"]);
    assert_eq!(code(&status), 1, "{}", said(&status));
    assert!(in_one_line(&status).contains("was removed while it was steered"), "{}", said(&status));
    let down = machine.run(&["down", WAN]);
    assert_eq!(code(&down), 0, "{}", said(&down));
    machine.assert_nothing_left();
}

#[test]
fn what_a_deleted_namespace_left_is_removed_by_the_next_command() {
    let Some(machine) = Machine::new() else { return };
    let other = Namespace::new().expect("another namespace");
    other.veth(&Veth::pair(WAN, "far0")).expect("a pair");
    let up = machine.run_in(&other, &["up", WAN, "--seconds", "0"]);
    assert_eq!(code(&up), 0, "{}", said(&up));
    let inode = std::fs::metadata(other.path()).expect("its file").ino();
    let pins = format!("/sys/fs/bpf/rxlane/steer/{inode}");
    let record = Path::new(machine.journal()).join(format!("steer-{inode}-{WAN}.plan"));
    assert!(Path::new(&pins).exists() && record.exists());
    // As long as the namespace is there, its pins are nobody else's.
    let down = machine.run(&["down", WAN]);
    assert!(Path::new(&pins).exists() && record.exists(), "{}", said(&down));
    drop(other);
    // The kernel takes namespaces apart in its own time. Commands of other tests may be first with the pins.
    wait_until(format!("{pins} goes"), || {
        let down = machine.run(&["down", WAN]);
        assert_eq!(code(&down), 0, "{}", said(&down));
        if said(&down).contains(&format!("network namespace that is no more ({inode})")) {
            assert!(!record.exists(), "{}", said(&down));
        }
        !Path::new(&pins).exists()
    });
}
