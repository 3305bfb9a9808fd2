//! `doctor --apply --persist` and `steer up --persist` in namespaces of the tests' own: the folders `/etc` and `/run` are those of the
//! test, and process 1 is in the network namespace, so that it is the machine's.

use crate::killed::STEP;
use crate::machine::{FAR, Machine, WAN};
use crate::run::{BINARY, Ended};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use testkit::{program, require};

/// A machine whose configuration is a folder.
struct Configured {
    machine: Machine,
    kind: &'static str,
}

/// What systemd ships, and what udev has recorded of the interface.
const SHIPPED: &str = "/usr/lib/systemd/network/99-default.link";

impl Configured {
    fn new(kind: &'static str, machine: Option<Machine>) -> Option<Configured> {
        for tool in ["unshare", "systemctl", "ethtool"] {
            require(tool, program(tool))?;
        }
        let configured = Configured { machine: machine?, kind };
        for folder in ["etc", "run/systemd/system", "run/udev/data"] {
            fs::create_dir_all(configured.path(folder)).expect("a folder");
        }
        let index =
            configured.machine.namespace.run("cat", &["/sys/class/net/wan0/ifindex"]).expect("an index");
        let database = configured.path(&format!("run/udev/data/n{}", index.trim()));
        fs::write(database, format!("E:ID_NET_LINK_FILE={SHIPPED}\n")).expect("written");
        if kind == "doctor" {
            configured.machine.namespace.run("ethtool", &["-L", FAR, "tx", "4"]).expect("four queues");
            configured.machine.namespace.run("ethtool", &["-K", WAN, "gro", "off"]).expect("off");
        }
        Some(configured)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.machine.folder().join(name)
    }

    /// A program with the folders in place. A process 1 cannot be killed from within, so it is a shell.
    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let script =
            "mount --bind \"$1/etc\" /etc && mount --bind \"$1/run\" /run && shift && \"$@\"\nexit $?";
        let mut command = self.machine.namespace.command("unshare");
        command.args(["--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", script, "sh"]);
        command.arg(self.machine.folder()).arg(program).args(arguments);
        command.stdin(Stdio::null()).env("COLUMNS", "100");
        command
    }

    fn rxlane(&self, arguments: &[&str]) -> Command {
        self.command(BINARY, &[&[self.kind], arguments].concat())
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.rxlane(arguments).output().expect("it starts")
    }

    /// `doctor --apply gro-off --persist` under load.
    fn persist(&self, more: &[&str]) -> Output {
        self.persist_command(more, |_| ())
    }

    fn persist_command(&self, more: &[&str], change: impl FnOnce(&mut Command)) -> Output {
        let mut command = self.rxlane(&[&[WAN, "--seconds", "0.5", "--persist"], more].concat());
        change(&mut command);
        self.machine.under_load("vlan", || command.output().expect("it starts"))
    }

    /// Paths of all files, from the folder on.
    fn files(&self) -> Vec<String> {
        fn below(folder: &Path, all: &mut Vec<PathBuf>) {
            for entry in fs::read_dir(folder).expect("a folder").flatten() {
                match entry.file_type().expect("a kind").is_dir() {
                    true => below(&entry.path(), all),
                    false => all.push(entry.path()),
                }
            }
        }
        let mut all = Vec::new();
        below(&self.path("etc"), &mut all);
        let path =
            |path: PathBuf| path.strip_prefix(self.machine.folder()).expect("below").display().to_string();
        let mut paths: Vec<String> = all.into_iter().map(path).collect();
        paths.sort();
        paths
    }

    fn is_unconfigured(&self) -> bool {
        fs::read_dir(self.path("etc")).expect("a folder").count() == 0
    }

    fn has_gro(&self) -> bool {
        self.machine.features().contains("generic-receive-offload: on")
    }
}

const LINK: &str = "etc/systemd/network/00-rxlane-wan0.link";

#[test]
fn what_helped_is_there_after_the_next_boot_until_it_is_undone() {
    let Some(configured) = Configured::new("doctor", Machine::doctor()) else { return };
    // Printed, and nothing else.
    let dry_run = configured.persist(&["--apply", "gro-off", "--dry-run"]);
    dry_run
        .ends(0)
        .says("File /etc/systemd/network/00-rxlane-wan0.link, mode 0644:")
        .says("GenericReceiveOffload=yes");
    dry_run.says("udev of systemd").says("ID_NET_LINK_FILE=").says("Nothing was changed.");
    assert!(!configured.has_gro() && configured.is_unconfigured());
    // Without a terminal, nobody agrees.
    configured.persist(&["--apply", "gro-off"]).ends(2).says("--yes");
    assert!(!configured.has_gro() && configured.is_unconfigured());

    let done = configured.persist(&["--apply", "gro-off", "--yes"]);
    done.ends(0)
        .says("written: /etc/systemd/network/00-rxlane-wan0.link")
        .says("`rxlane doctor --undo` removes the files");
    assert!(configured.has_gro());
    assert_eq!(configured.files(), ["etc/rxlane/persist/doctor.json", LINK]);
    let text = fs::read_to_string(configured.path(LINK)).expect("text");
    assert!(text.contains("NamePolicy=") && text.contains(&format!("# From {SHIPPED}")), "{text}");

    // The finding is fixed; what was applied since the last boot stays in the configuration.
    configured
        .persist(&["--apply", "--yes"])
        .ends(0)
        .says("there already: /etc/systemd/network/00-rxlane-wan0.link");
    assert_eq!(fs::read_to_string(configured.path(LINK)).expect("text"), text);

    // What udev does at boot.
    configured.machine.namespace.run("ethtool", &["-K", WAN, "gro", "off"]).expect("off");
    if require("udevadm", program("udevadm")).is_some() {
        let device = format!("/sys/class/net/{WAN}");
        let applied = configured.command("udevadm", &["test-builtin", "net_setup_link", &device]).output();
        applied.expect("it starts").ends(0);
        assert!(configured.has_gro());
    }

    configured.run(&["--undo"]).ends(0).says("removed: /etc/systemd/network/00-rxlane-wan0.link");
    assert!(!configured.has_gro() && configured.is_unconfigured());
    configured.run(&["--undo"]).ends(0).says("Nothing to restore.");
}

#[test]
fn files_of_others_stay_as_they_are() {
    let Some(configured) = Configured::new("doctor", Machine::doctor()) else { return };
    let link = configured.path(LINK);
    fs::create_dir_all(link.parent().expect("above")).expect("a folder");
    fs::write(&link, "[Link]\nName=wan0\n").expect("written");
    // Before anything is applied.
    configured.persist(&["--apply", "gro-off", "--yes"]).ends(1).says("rxlane did not write it");
    assert!(!configured.has_gro());
    assert_eq!(fs::read_to_string(&link).expect("text"), "[Link]\nName=wan0\n");
    fs::remove_file(&link).expect("removed");

    configured.persist(&["--apply", "gro-off", "--yes"]).ends(0);
    let changed = fs::read_to_string(&link).expect("text") + "MTUBytes=1400\n";
    fs::write(&link, &changed).expect("written");
    for _ in 0..2 {
        configured
            .run(&["--undo"])
            .ends(1)
            .says("left alone, since somebody changed it after rxlane wrote it: /etc/systemd");
        assert_eq!(fs::read_to_string(&link).expect("text"), changed);
    }
    assert!(!configured.has_gro(), "what --apply changed is restored all the same");
    fs::remove_file(&link).expect("removed");
    configured.run(&["--undo"]).ends(0).says("removed before: ");
    assert!(!configured.path("etc/rxlane").exists());
}

/// A finding that the change did not remove did not help.
#[test]
fn what_did_not_help_is_not_written() {
    let Some(configured) = Configured::new("doctor", Machine::doctor()) else { return };
    // GRO that somebody turns off again as soon as it is on.
    let ethtool = program("ethtool").expect("required before").display().to_string();
    let script = format!(
        "'{ethtool}' \"$@\"; status=$?\n[ \"$1\" = -k ] || exit $status\n'{ethtool}' -K \"$2\" gro off\n"
    );
    crate::machine::script(&configured.path("ethtool"), &script);
    let path = crate::machine::search_path(configured.machine.folder());
    let done = configured.persist_command(&["--apply", "gro-off", "--yes"], |command| {
        command.env("PATH", path);
    });
    done.ends(1).says("Not made persistent, since the finding is still there after the change: gro-off.");
    assert!(configured.is_unconfigured(), "{:?}", configured.files());
}

#[test]
fn a_kill_at_any_step_leaves_what_undo_needs() {
    let Some(configured) = Configured::new("doctor", Machine::doctor()) else { return };
    // With a script, a unit and a link besides.
    let settings = configured.path("run/udev/data");
    fs::remove_dir_all(settings).expect("removed");
    // That GRO is off shows without load.
    let idle = || configured.rxlane(&[WAN, "--seconds", "0.1", "--apply", "gro-off", "--persist", "--yes"]);
    let mut steps = 0;
    for step in 1..60 {
        let output = idle().env(STEP, step.to_string()).output().expect("it starts");
        if output.code() == 0 {
            assert_eq!(configured.files().len(), 4, "{:?}", configured.files());
            configured.run(&["--undo"]).ends(0);
            steps = step - 1;
            break;
        }
        output.is(&step, 137, "");
        configured.run(&["--undo"]).is(&step, 0, "");
        assert!(!configured.has_gro() && configured.is_unconfigured(), "{step}: {:?}", configured.files());
    }
    assert!(steps >= 8, "{steps} steps");
    // And `--undo` itself.
    for step in 1..60 {
        idle().output().expect("it starts").ends(0);
        let output = configured.rxlane(&["--undo"]).env(STEP, step.to_string()).output().expect("it starts");
        if output.code() == 0 {
            assert!(step > 4, "{step}");
            break;
        }
        configured.run(&["--undo"]).is(&step, 0, "");
        assert!(!configured.has_gro() && configured.is_unconfigured(), "{step}: {:?}", configured.files());
    }
    assert!(configured.is_unconfigured());
}

/// In a network namespace that is not the machine's, nothing is made at boot.
#[test]
fn a_namespace_is_no_machine() {
    let Some(machine) = Machine::doctor() else { return };
    machine.namespace.run("ethtool", &["-K", WAN, "gro", "off"]).expect("off");
    let before = machine.state();
    let arguments = [WAN, "--seconds", "0.5", "--apply", "gro-off", "--yes", "--persist"];
    let output = machine.under_load("vlan", || machine.run(&arguments));
    output.ends(3).says("in a network namespace, which the next boot does not make");
    assert_eq!(machine.state(), before);
}

#[test]
fn steering_is_enabled_as_a_unit_until_it_is_undone() {
    let Some(configured) = Configured::new("steer", Machine::steer()) else { return };
    // The program of the tests is below a home, or somewhere that a unit reaches.
    let program = configured.path("etc/rxlane-program");
    fs::copy(BINARY, &program).expect("a copy");
    let run = |arguments: &[&str]| {
        let arguments = [&["steer"], arguments].concat();
        configured.command("/etc/rxlane-program", &arguments).output().expect("it starts")
    };
    let before = configured.files();
    let up = ["up", WAN, "--seconds", "0", "--rebalance", "--persist"];
    let dry_run = run(&[&up[..], &["--dry-run"]].concat());
    dry_run
        .ends(0)
        .says("File /etc/rxlane/steer-wan0.conf, mode 0644:")
        .says("OPTIONS=--cpus ")
        .says(" --rebalance");
    dry_run.says("Link /etc/systemd/system/multi-user.target.wants/rxlane-steer@wan0.service -> ");
    assert_eq!(configured.files(), before);

    run(&["up", WAN, "--seconds", "0", "--persist", "--state-dir", "/run/other"]).ends(2).says("--state-dir");
    let plain = ["up", WAN, "--seconds", "0", "--persist"];
    run(&plain).ends(0).says("written: /etc/rxlane/steer-wan0.conf").says("`rxlane steer down wan0 --undo`");
    let written = [
        "etc/rxlane-program",
        "etc/rxlane/persist/steer-wan0.json",
        "etc/rxlane/steer-wan0.conf",
        "etc/systemd/system/multi-user.target.wants/rxlane-steer@wan0.service",
        "etc/systemd/system/rxlane-steer@.service",
    ];
    assert_eq!(configured.files(), written);
    let unit = fs::read_to_string(configured.path(written[4])).expect("text");
    assert!(unit.contains("\nExecStart=/etc/rxlane-program steer up %I"), "{unit}");
    // Steered already: the same files. What stops at the end of the unit stays enabled. In one command, since the mounts with the
    // pins of the program end with it.
    let up = format!("/etc/rxlane-program steer {}", plain.join(" "));
    let script = format!("{up} && {up} && /etc/rxlane-program steer down {WAN}");
    let again = configured.command("sh", &["-c", &script]).output().expect("it starts");
    again.ends(0).says("wan0 is steered already.").says("there already: /etc/rxlane/steer-wan0.conf");
    again.says("wan0 is no longer steered.");
    assert_eq!(configured.files(), written);
    run(&["down", WAN, "--undo"]).ends(0).says("removed: /etc/rxlane/steer-wan0.conf");
    assert_eq!(configured.files(), before);
    run(&["down", WAN, "--undo"]).ends(0).says("Nothing was made persistent.");
}
