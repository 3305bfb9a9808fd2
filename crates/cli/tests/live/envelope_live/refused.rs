//! What is refused, and leaves everything as it was.

use crate::envelope_live::UP;
use crate::envelope_machine::{Machine, WAN, code, said};
use testkit::{program, require};

#[test]
fn an_interface_has_one_program() {
    let Some(machine) = Machine::new() else { return };
    let steer = |arguments: &[&str]| {
        machine.command_in(&machine.namespace, "steer", arguments).output().expect("it starts")
    };
    machine.expect(0, &UP);
    let up = steer(&["up", WAN, "--seconds", "0"]);
    assert_eq!(code(&up), 1, "{}", said(&up));
    assert!(said(&up).contains("`rxlane envelope down wan0` ends it"), "{}", said(&up));
    // It is none of steering's.
    assert_eq!(code(&steer(&["down", WAN])), 0);
    assert_eq!(machine.status()["state"], "up");
    machine.expect(0, &["down", WAN]);

    assert_eq!(code(&steer(&["up", WAN, "--seconds", "0"])), 0);
    let before = machine.state();
    let steered = machine.expect(1, &UP);
    assert!(steered.contains("wan0 is steered already") && steered.contains("steer down wan0"), "{steered}");
    let none = machine.expect(1, &["down", WAN]);
    assert!(none.contains("has no envelope"), "{none}");
    assert_eq!(machine.state(), before);
    assert_eq!(code(&steer(&["down", WAN])), 0);
    machine.assert_nothing_left();
}

#[test]
fn an_mtu_beyond_the_maximum_is_told_with_what_fits() {
    let Some(machine) = Machine::new() else { return };
    for (mtu, fits) in [("65529", "which leaves `--header 6`"), ("65533", "no room for headers")] {
        machine.ip(&["link", "set", WAN, "mtu", mtu]);
        let up = machine.expect(3, &UP);
        assert!(up.contains("wan0 (veth) takes no MTU of 655") && up.contains(fits), "{up}");
        assert!(up.contains("its maximum is 65535") && up.contains("nothing was changed"), "{up}");
    }
    assert_eq!(machine.mtu(WAN), "65533");
    machine.assert_nothing_left();
}

#[test]
fn what_the_driver_refuses_leaves_no_program() {
    let Some(machine) = Machine::new() else { return };
    let before = machine.state();
    // An `ip` that says what one says whose driver refuses.
    let setting = "echo 'RTNETLINK answers: Invalid argument' >&2; exit 2";
    let mut command = machine.with_ip(setting, &UP);
    let output = command.stderr(std::process::Stdio::piped()).output().expect("it starts");
    assert_eq!(code(&output), 3, "{}", said(&output));
    assert!(said(&output).contains("RTNETLINK answers: Invalid argument"), "{}", said(&output));
    assert_eq!(machine.state(), before);
    machine.assert_nothing_left();
}

#[test]
fn super_packets_are_no_frames() {
    let Some(machine) = Machine::new() else { return };
    let before = machine.state();
    let generic = machine.expect(1, &[&UP[..], &["--mode", "generic"]].concat());
    assert!(generic.contains("super-packets") && generic.contains("native"), "{generic}");
    assert_eq!(machine.state(), before);
    // A driver without native XDP.
    machine.ip(&["link", "add", "plain0", "type", "ifb"]);
    let native = machine.expect(3, &["up", "plain0", "--header", "4"]);
    assert!(native.contains("has no native XDP") && native.contains("`--mode generic`"), "{native}");
    assert_eq!(machine.mtu("plain0"), "1500");
    machine.expect(0, &["up", "plain0", "--header", "4", "--mode", "generic"]);
    assert_eq!(machine.mtu("plain0"), "1504");
    machine.expect(0, &["down", "plain0"]);
    assert_eq!(machine.mtu("plain0"), "1500");
    machine.assert_nothing_left();
}

#[test]
fn devices_on_top_of_others_name_those_below() {
    let Some(machine) = Machine::new() else { return };
    machine.ip(&["link", "add", "br0", "type", "bridge"]);
    let up = machine.expect(2, &["up", "br0", "--header", "8"]);
    assert!(up.contains("br0 is a bridge: name its ports"), "{up}");
}

#[test]
fn without_root_it_says_what_it_takes() {
    let Some(machine) = Machine::new() else { return };
    let Some(_) = require("setpriv", program("setpriv")) else { return };
    let dry = machine.as_nobody(&[&UP[..], &["--dry-run"]].concat());
    assert_eq!(code(&dry), 0, "{}", said(&dry));
    let up = machine.as_nobody(&UP);
    assert!(code(&up) == 3 && said(&up).contains("CAP_BPF"), "{}", said(&up));
    machine.expect(0, &UP);
    for command in ["status", "down"] {
        let output = machine.as_nobody(&[command, WAN]);
        assert!(code(&output) == 3 && said(&output).contains("root"), "{}", said(&output));
    }
    assert_eq!(machine.status()["state"], "up");
}
