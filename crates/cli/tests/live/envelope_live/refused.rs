//! What is refused, and leaves everything as it was.

use crate::envelope_live::UP;
use crate::machine::{Machine, WAN};
use crate::run::Ended;

#[test]
fn an_interface_has_one_program() {
    let Some(machine) = Machine::envelope() else { return };
    let steer = |arguments: &[&str]| {
        machine.command_of(&machine.namespace, "steer", arguments).output().expect("it starts")
    };
    machine.run(&UP).ends(0);
    steer(&["up", WAN, "--seconds", "0"]).ends(1).says("`rxlane envelope down wan0` ends it");
    // It is none of steering's.
    steer(&["down", WAN]).ends(0);
    assert_eq!(machine.status()["state"], "up");
    machine.run(&["down", WAN]).ends(0);

    steer(&["up", WAN, "--seconds", "0"]).ends(0);
    let before = machine.state();
    machine.run(&UP).ends(1).says("wan0 is steered already").says("steer down wan0");
    machine.run(&["down", WAN]).ends(1).says("has no envelope");
    assert_eq!(machine.state(), before);
    steer(&["down", WAN]).ends(0);
    machine.assert_nothing_left();
}

#[test]
fn an_mtu_beyond_the_maximum_is_reported_with_what_fits() {
    let Some(machine) = Machine::envelope() else { return };
    for (mtu, fits) in [("65529", "which leaves `--header 6`"), ("65533", "no room for headers")] {
        machine.ip(&["link", "set", WAN, "mtu", mtu]);
        machine
            .run(&UP)
            .ends(3)
            .says("wan0 (veth) takes no MTU of 655")
            .says(fits)
            .says("its maximum is 65535")
            .says("nothing was changed");
    }
    assert_eq!(machine.mtu(WAN), "65533");
    machine.assert_nothing_left();
}

#[test]
fn what_the_driver_refuses_leaves_no_program() {
    let Some(machine) = Machine::envelope() else { return };
    let before = machine.state();
    // An `ip` that says what one says whose driver refuses.
    let setting = "echo 'RTNETLINK answers: Invalid argument' >&2; exit 2";
    let mut command = machine.with_ip(setting, &UP);
    command
        .stderr(std::process::Stdio::piped())
        .output()
        .expect("it starts")
        .ends(3)
        .says("RTNETLINK answers: Invalid argument");
    assert_eq!(machine.state(), before);
    machine.assert_nothing_left();
}

#[test]
fn super_packets_are_no_frames() {
    let Some(machine) = Machine::envelope() else { return };
    let before = machine.state();
    machine.run(&[&UP[..], &["--mode", "generic"]].concat()).ends(1).says("super-packets").says("native");
    assert_eq!(machine.state(), before);
    // A driver without native XDP.
    machine.ip(&["link", "add", "plain0", "type", "ifb"]);
    machine
        .run(&["up", "plain0", "--header", "4"])
        .ends(3)
        .says("has no native XDP")
        .says("`--mode generic`");
    assert_eq!(machine.mtu("plain0"), "1500");
    machine.run(&["up", "plain0", "--header", "4", "--mode", "generic"]).ends(0);
    assert_eq!(machine.mtu("plain0"), "1504");
    machine.run(&["down", "plain0"]).ends(0);
    assert_eq!(machine.mtu("plain0"), "1500");
    machine.assert_nothing_left();
}

#[test]
fn devices_on_top_of_others_name_those_below() {
    let Some(machine) = Machine::envelope() else { return };
    machine.ip(&["link", "add", "br0", "type", "bridge"]);
    machine.run(&["up", "br0", "--header", "8"]).ends(2).says("br0 is a bridge: name its ports");
}
