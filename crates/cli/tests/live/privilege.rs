//! What commands say that lack a privilege, and that nothing is changed then.

use crate::machine::{Machine, WAN, frags, tun};
use crate::run::{BINARY, Ended};
use std::process::{Command, Output};
use testkit::{open_copy, program, require};

/// Runs a command of the machine without these capabilities, or as nobody: `-all`.
fn without(machine: &Machine, capabilities: &str, arguments: &str) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    // The build folder may be closed to others.
    let copy = open_copy(BINARY.as_ref(), folder.path()).expect("a copy");
    let mut command = machine.namespace.command("setpriv");
    match capabilities {
        "nobody" => command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]),
        some => command.args(["--bounding-set", some, "--inh-caps", some]),
    };
    command.arg(copy).args(arguments.split(' '));
    if ["steer", "envelope", "link", "doctor"].iter().any(|kind| arguments.starts_with(kind)) {
        command.args(["--state-dir", machine.journal()]);
    }
    command.env("COLUMNS", "80").output().expect("it runs")
}

#[test]
fn what_is_missing_is_named_and_nothing_is_changed() {
    let Some(_) = require("setpriv", program("setpriv")) else { return };
    let (Some(machine), Some(())) = (Machine::steer(), require("bpf", frags())) else { return };
    let Some(()) = require("tun", tun()) else { return };
    let before = machine.state();
    const STEER: &str = "steer up wan0 --seconds 0";
    const ENVELOPE: &str = "envelope up wan0 --header 8";
    const LINK: &str = "link up wan0 --ifname sub0 --vlan 35";
    for (lacking, arguments, code, expected) in [
        // CAP_SYS_ADMIN stands for two of them.
        ("-net_admin", STEER, 3, "missing: CAP_NET_ADMIN"),
        ("-bpf,-sys_admin", STEER, 3, "missing: CAP_BPF"),
        ("-perfmon,-sys_admin", STEER, 3, "missing: CAP_PERFMON"),
        ("nobody", STEER, 3, "CAP_BPF"),
        ("nobody", "steer up wan0 --dry-run --seconds 0", 0, ""),
        ("nobody", ENVELOPE, 3, "CAP_BPF"),
        ("nobody", "envelope up wan0 --header 8 --dry-run", 0, ""),
        ("nobody", LINK, 3, "CAP_NET_ADMIN"),
        ("-net_raw", LINK, 3, "CAP_NET_RAW"),
        ("-net_raw,-net_admin", "pppoe connect wan0", 3, "root"),
        ("-net_raw,-net_admin", "pppoe serve wan0 --anybody", 3, "root"),
        ("-all", "pppoe discover wan0", 3, "CAP_NET_RAW: run rxlane as root"),
        ("-net_raw", "bench send --raw wan0", 3, "requires CAP_NET_RAW"),
        ("nobody", "bench vlan --rounds 1", 3, "require root: sudo rxlane bench vlan --rounds 1"),
        ("nobody", "bench steer --rounds 1", 3, "require root: sudo rxlane bench steer --rounds 1"),
        ("nobody", "bench pps --rounds 1", 3, "require root: sudo rxlane bench pps --rounds 1"),
        ("nobody", "bench pppoe --rounds 1", 3, "require root: sudo rxlane bench pppoe --rounds 1"),
        ("nobody", "bench forward --rounds 1", 3, "require root: sudo rxlane bench forward --rounds 1"),
        ("nobody", "doctor wan0 --sample --seconds 1", 3, ""),
        ("-net_raw", "explain wan0", 3, "requires CAP_NET_RAW: run it as root (sudo rxlane explain wan0)"),
        ("nobody", "explain wan0", 3, "tcpdump -Q in -i wan0 -c 100000 -s 256 -w FILE"),
    ] {
        let output = without(&machine, lacking, arguments);
        output.is(&(lacking, arguments), code, expected);
        if lacking.starts_with('-') && arguments == STEER {
            assert_eq!(output.says("run it as root").text().lines().count(), 1, "{}", output.text());
        }
        assert_eq!(machine.state(), before, "{lacking}: {arguments}");
        machine.assert_nothing_left();
    }
    // What can be read is.
    let check = without(&machine, "nobody", "steer check wan0 --seconds 0.2");
    assert!(matches!(check.says("requires root").code(), 0 | 1), "{}", check.text());
    let doctor = without(&machine, "nobody", "doctor wan0 --json --seconds 0.2");
    assert_eq!(doctor.json()["interfaces"][0]["name"], WAN);
    // The device for links.
    let Some(unshare) = require("unshare", program("unshare")) else { return };
    let mut hidden: Command = machine.namespace.command(unshare);
    hidden.args(["--mount", "sh", "-c", "mount -t tmpfs none /dev/net && exec \"$@\"", "sh", BINARY]);
    hidden.args(LINK.split(' ')).args(["--state-dir", machine.journal()]);
    hidden.output().expect("it runs").ends(3).says("modprobe tun");
}

#[test]
fn what_is_up_is_not_taken_down() {
    let Some(_) = require("setpriv", program("setpriv")) else { return };
    for machine in [Machine::steer(), Machine::envelope()].into_iter().flatten() {
        machine.up(WAN).ends(0);
        let keeper = machine.status()["keeper"]["pid"].clone();
        let kind = if keeper.is_null() { "envelope" } else { "steer" };
        // Its counters, at least.
        without(&machine, "nobody", &format!("{kind} status wan0")).says("root");
        without(&machine, "nobody", &format!("{kind} down wan0")).ends(3);
        // In a mount namespace of its own, as `ip netns exec` makes one, pins are those of process 1.
        if kind == "steer" {
            without(&machine, "-sys_ptrace", "steer down wan0").ends(3).says("missing: CAP_SYS_PTRACE");
        }
        assert!(machine.is_up(WAN) && machine.status()["keeper"]["pid"] == keeper, "{:#}", machine.status());
        machine.run(&["down", WAN]).ends(0);
        machine.assert_nothing_left();
    }
}
