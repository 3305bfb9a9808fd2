//! What the tools of the systems make of the files. Which are installed is tried out.

use crate::files::{machine, origin, settings, systemd};
use crate::machines::name;
use host::setting::Tree;
use rxlane_persist::{Content, File, Identity, Manager, System, machine::OpenWrt, plan};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use testkit::netns::{Namespace, Veth, probe};
use testkit::{Missing, program, require};

const SETTINGS: [&str; 5] = [
    "ethtool -N wan0 rx-flow-hash udp6 ''",
    "ethtool -X wan0 weight 1 2",
    "echo fe > /sys/class/net/wan0/queues/rx-0/rps_cpus",
    "echo 2 > /proc/irq/120/smp_affinity_list",
    "echo 3,5 > /proc/irq/121/smp_affinity_list",
];

/// The text files that end so, below a folder.
fn written(folder: &Path, files: &[File], part: &str) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for file in files.iter().filter(|file| file.path.to_string_lossy().contains(part)) {
        let Content::Text(text) = &file.content else { continue };
        let path = folder.join(file.path.strip_prefix("/").expect("absolute"));
        fs::create_dir_all(path.parent().expect("above")).expect("a folder");
        fs::write(&path, text).expect("written");
        paths.push(path);
    }
    assert!(!paths.is_empty(), "{part}");
    paths
}

fn succeeds(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().expect("it starts");
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{command:?}: {text}");
    text
}

fn scripts(folder: &Path) -> Vec<PathBuf> {
    let all = settings(&SETTINGS);
    let openwrt = System::OpenWrt(OpenWrt::default());
    let machines = [
        (systemd(252), "settings-"),
        (machine(System::Systemd(252), Manager::NetworkManager), "dispatcher.d"),
        (machine(openwrt, Manager::None), "hotplug.d"),
        (machine(System::Other, Manager::Udev), "settings-"),
    ];
    let files = |(number, (machine, part)): (usize, &(rxlane_persist::Machine, &str))| {
        let folder = folder.join(number.to_string());
        written(&folder, &plan::linux(&all, machine, &origin()).files, part)
    };
    machines.iter().enumerate().flat_map(files).collect()
}

#[test]
fn scripts_are_scripts() {
    let folder = tempfile::tempdir().expect("a folder");
    let scripts = scripts(folder.path());
    assert_eq!(scripts.len(), 4);
    for shell in [&["dash"][..], &["bash", "--posix"], &["busybox", "sh"]] {
        let Some(_) = require(shell[0], program(shell[0])) else { continue };
        for script in &scripts {
            succeeds(Command::new(shell[0]).args(&shell[1..]).arg("-n").arg(script));
        }
    }
    let Some(shellcheck) = require("shellcheck", program("shellcheck")) else { return };
    // Folders of procfs whose names are plain; SC2012 would rather have find.
    succeeds(Command::new(shellcheck).args(["--shell=sh", "--exclude=SC2012"]).args(&scripts));
}

/// A script that runs with other tools in front of the search path, on folders in place of procfs and sysfs.
#[test]
fn a_script_runs_every_command_and_says_whether_all_went_well() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let script = &scripts(folder.path())[0];
    for made in ["net/wan0/queues/rx-0", "irq/7/wan0-rx-0", "irq/9/wan0-rx-1", "bin"] {
        fs::create_dir_all(path(made)).expect("a folder");
    }
    fs::write(
        path("bin/ethtool"),
        format!("#!/bin/sh\necho \"$@\" >> {}\n[ \"$1\" != -X ]\n", path("calls").display()),
    )
    .expect("written");
    succeeds(Command::new("chmod").arg("0755").arg(path("bin/ethtool")));
    let text = fs::read_to_string(script).expect("text");
    let here = |name: &str| path(name).display().to_string();
    let text = text
        .replace("/sys/class/net", &here("net"))
        .replace("/proc/irq", &here("irq"))
        .replace("PATH=", &format!("PATH={}:", here("bin")));
    fs::write(script, text).expect("written");
    let status = Command::new("sh").arg(script).status().expect("it starts");
    // One command failed, and the others were run all the same.
    assert_eq!(status.code(), Some(1));
    let calls = fs::read_to_string(path("calls")).expect("calls");
    assert_eq!(calls, "-N wan0 rx-flow-hash udp6 \n-X wan0 weight 1 2\n");
    let value = |name: &str| fs::read_to_string(path(name)).expect(name);
    assert_eq!(value("net/wan0/queues/rx-0/rps_cpus"), "fe\n");
    assert_eq!(
        (value("irq/7/smp_affinity_list"), value("irq/9/smp_affinity_list")),
        ("2\n".into(), "3,5\n".into())
    );
}

#[test]
fn the_unit_and_its_name_are_those_of_systemd() {
    let Some(analyze) = require("systemd-analyze", program("systemd-analyze")) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let files = plan::linux(&settings(&SETTINGS), &systemd(252), &origin()).files;
    let units = written(folder.path(), &files, "rxlane-settings@");
    let output =
        Command::new(analyze).arg("verify").args(&units).stdin(Stdio::null()).output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!text.contains("rxlane-settings"), "{text}");

    let Some(escape) = require("systemd-escape", program("systemd-escape")) else { return };
    for interface in ["wan-1", "eth0.35", "a_b@d", "enp1s0f0np0"] {
        let own = plan::linux(
            &settings(&[&format!("ethtool -X {interface} equal 2")]),
            &with_interface(interface),
            &origin(),
        );
        let device = format!("/sys/subsystem/net/devices/{interface}");
        let device = succeeds(Command::new(&escape).args(["--path", "--suffix=device", &device]));
        let link = own.files.last().expect("files").path.display().to_string();
        assert!(link.contains(&format!("/{}.wants/", device.trim())), "{link}, {device}");
    }
}

fn with_interface(interface: &str) -> rxlane_persist::Machine {
    let mut machine = systemd(252);
    machine.interfaces[0].name = name(interface);
    machine
}

#[test]
fn sysctls_are_read_by_sysctl() {
    let Some(sysctl) = require("sysctl", program("sysctl")) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let present = |name: &str| {
        let file = format!("/proc/sys/{}", name.replace('.', "/"));
        Tree::live().read(&file).expect("a value").replace('\t', " ")
    };
    let commands = ["net.core.netdev_budget", "net.ipv4.tcp_rmem"].map(|name| {
        let value: String = present(name);
        let quoted = host::setting::quoted(&value);
        format!("sysctl -w {name}={quoted}")
    });
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    let files = plan::linux(&settings(&commands), &systemd(252), &origin()).files;
    // `--pattern` of a name that there is not: the file is read and nothing is set.
    let text = succeeds(Command::new(sysctl).args(["--pattern", "^nothing$", "-p"]).args(written(
        folder.path(),
        &files,
        "sysctl.d",
    )));
    assert!(!text.to_lowercase().contains("error") && !text.contains("invalid"), "{text}");
}

/// `udevadm verify` came with systemd 254.
#[test]
fn the_rule_is_read_by_udev() {
    let Some(udevadm) = require("udevadm", program("udevadm")) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let files = plan::linux(&settings(&SETTINGS), &machine(System::Other, Manager::Udev), &origin()).files;
    let rules = written(folder.path(), &files, "rules.d");
    let help = succeeds(Command::new(&udevadm).arg("--help"));
    if help.contains("verify") {
        succeeds(Command::new(udevadm).arg("verify").args(rules));
    }
}

/// What udev does with an interface when it appears at boot, on one of the test's own.
#[test]
fn udev_applies_the_link_file() {
    let Some(()) = require("netns", probe()) else { return };
    for tool in ["udevadm", "unshare", "ethtool"] {
        let Some(_) = require(tool, program(tool)) else { return };
    }
    let folder = tempfile::tempdir().expect("a folder");
    let namespace = Namespace::new().expect("a namespace");
    namespace.veth(&Veth { queues: 4, ..Veth::pair("wan0", "far0") }).expect("a pair");
    let commands = [
        "ethtool -L wan0 rx 2",
        "ethtool -K wan0 gro on",
        "ip link set dev wan0 mtu 1400",
        // What a veth has not: udev reads it, and says that the device refuses it.
        "ethtool -G wan0 rx 4096",
        "ethtool -C wan0 rx-usecs 30",
        "ethtool -C wan0 rx-frames-irq 8",
        "ethtool -C wan0 adaptive-rx on",
        "ethtool -K wan0 rx-gro-hw off",
        "ethtool -K wan0 ntuple off",
    ];
    let mut machine = systemd(252);
    machine.interfaces[0].identity = Identity::Name;
    let files = plan::linux(&settings(&commands), &machine, &origin()).files;
    assert_eq!(files.len(), 1);
    written(folder.path(), &files, ".link");
    let script = "mount --bind \"$1\" /etc/systemd/network &&\n\
                  SYSTEMD_LOG_LEVEL=debug udevadm test-builtin net_setup_link /sys/class/net/wan0";
    let network = folder.path().join("etc/systemd/network");
    let mut command = namespace.command("unshare");
    let text = succeeds(command.args(["--mount", "sh", "-c", script, "sh"]).arg(network));
    let applied = "ID_NET_LINK_FILE=/etc/systemd/network/00-rxlane-wan0.link";
    if !text.contains(applied) {
        // Without a database of hardware or in a container, udev may look at nothing.
        let missing =
            Missing(format!("udevadm applies no link file here: {}", text.lines().last().unwrap_or("")));
        let Some(()) = require("udev", Err(missing)) else { return };
    }
    assert!(!text.contains("Unknown key") && !text.contains("Failed to parse"), "{text}");
    let channels = namespace.run("ethtool", &["-l", "wan0"]).expect("channels");
    assert!(channels.ends_with("RX:\t\t2\nTX:\t\t4\nOther:\t\tn/a\nCombined:\tn/a\n"), "{channels}");
    let features = namespace.run("ethtool", &["-k", "wan0"]).expect("features");
    assert!(features.contains("generic-receive-offload: on"), "{features}");
    let mtu = namespace.run("cat", &["/sys/class/net/wan0/mtu"]).expect("an MTU");
    assert_eq!(mtu.trim(), "1400");
}
