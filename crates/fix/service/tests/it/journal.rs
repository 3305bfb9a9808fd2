//! The journal and every kind of setting, on a folder that stands for a machine.

use crate::journal_machine::{Machine, mode, setting};
use host::setting::{self, Setting};
use rxlane_service::journal::{Applied, Error, Journal, Note, Outcome, Undone};
use rxlane_service::{StateDir, StateError};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// Every kind, with the file in which it shows and what is there afterwards.
const CHANGES: [(&str, &str, &str); 13] = [
    ("ethtool -L eth0 combined 4", "state/channels", "4"),
    ("ethtool -X eth0 equal 3", "state/reta", "0 1 2 0 1 2 0 1"),
    ("ethtool -X eth0 start 1 weight 1 2 1", "state/reta", "1 1 2 2 2 2 3 3"),
    ("ethtool -X eth0 default", "state/reta", "0 1 2 3 0 1 2 3"),
    ("ethtool -N eth0 rx-flow-hash udp4 sdfn", "state/udp4", "sdfn"),
    ("ethtool -G eth0 rx 4096", "state/ring", "4096"),
    ("ethtool -C eth0 rx-usecs 30", "state/rx-usecs", "30"),
    ("ethtool -C eth0 adaptive-rx off", "state/adaptive-rx", "off"),
    ("ip link set dev eth0 mtu 1508", "sys/class/net/eth0/mtu", "1508"),
    ("echo f > /sys/class/net/eth0/queues/rx-0/rps_cpus", "sys/class/net/eth0/queues/rx-0/rps_cpus", "f"),
    ("echo 2 > /proc/irq/128/smp_affinity_list", "proc/irq/128/smp_affinity_list", "2"),
    ("sysctl -w net.core.netdev_budget=600", "proc/sys/net/core/netdev_budget", "600"),
    (
        "sysctl -w net.ipv4.tcp_rmem='4096 131072 16777216'",
        "proc/sys/net/ipv4/tcp_rmem",
        "4096 131072 16777216",
    ),
];

#[test]
fn every_kind_is_changed_and_put_back() {
    let machine = Machine::new();
    let before = machine.state();
    let mut journal = machine.journal();
    for (command, file, after) in CHANGES {
        let applied = journal.apply(&setting(command), "test").unwrap_or_else(|error| panic!("{error}"));
        assert!(
            matches!(&applied, Applied::Changed { after, .. } if after.in_effect),
            "{command}: {applied:?}"
        );
        assert_eq!(machine.read(file).trim(), after, "{command}");
        assert_eq!(journal.apply(&setting(command), "test").expect("nothing to do"), Applied::Already);
    }
    assert_eq!(journal.entries().len(), CHANGES.len());
    drop(journal);

    let undone = machine.journal().undo(false).expect("undone");
    assert!(undone.iter().all(|undone| matches!(undone.outcome, Outcome::Restored)), "{undone:?}");
    let order: Vec<String> = undone.iter().rev().map(|undone| undone.entry.setting.command()).collect();
    assert_eq!(order, CHANGES.map(|(command, ..)| command));
    assert_eq!(machine.state(), before);
    assert!(!machine.journal_file().exists());
    assert_eq!(machine.journal().undo(false).expect("nothing").len(), 0);
}

#[test]
fn one_command_is_undone_and_another_stays() {
    let machine = Machine::new();
    let mut journal = machine.journal();
    journal.apply(&setting("ethtool -G eth0 rx 4096"), "doctor --apply").expect("changed");
    journal.apply(&setting("ip link set dev eth0 mtu 1508"), "steer up eth0").expect("changed");
    assert_eq!(journal.undo_by("steer up eth1", false).expect("nothing").len(), 0);
    let undone = journal.undo_by("steer up eth0", false).expect("undone");
    assert!(matches!(&undone[..], [only] if matches!(only.outcome, Outcome::Restored)), "{undone:?}");
    assert_eq!(machine.read("sys/class/net/eth0/mtu").trim(), "1500");
    assert_eq!(machine.read("state/ring"), "4096");
    assert_eq!(journal.entries().len(), 1);
    journal.undo_by("doctor --apply", false).expect("undone");
    assert_eq!(machine.read("state/ring"), "256");
    assert!(!machine.journal_file().exists());
}

#[test]
fn a_preview_says_what_undo_does_and_changes_nothing() {
    // The third covers the first, and the fourth the second.
    const COMMANDS: [&str; 6] = [
        "echo 2 > /proc/irq/128/smp_affinity_list",
        "ethtool -X eth0 equal 3",
        "echo 3 > /proc/irq/128/smp_affinity_list",
        "ethtool -L eth0 combined 4",
        "ethtool -G eth0 rx 4096",
        "ip link set dev eth0 mtu 1508",
    ];
    for force in [false, true] {
        let machine = Machine::new();
        let mut journal = machine.journal();
        for command in COMMANDS {
            journal.apply(&setting(command), "doctor --apply").expect("changed");
        }
        journal.apply(&setting("sysctl -w net.core.netdev_budget=600"), "steer up eth0").expect("changed");
        // Somebody changed one, and undid another.
        machine.write("state/ring", "1024");
        machine.write("sys/class/net/eth0/mtu", "1500");
        let (state, file) = (machine.state(), fs::read(machine.journal_file()).expect("a journal"));
        let preview = journal.undo_preview("doctor --apply", force).expect("a preview");
        assert_eq!(machine.state(), state);
        assert_eq!(fs::read(machine.journal_file()).expect("a journal"), file);
        let undone = journal.undo_by("doctor --apply", force).expect("undone");
        let lines = |all: &[Undone]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(lines(&preview), lines(&undone));
        assert_eq!(preview.iter().filter(|one| one.outcome.is_kept()).count(), usize::from(!force));
    }
}

#[test]
fn channels_bring_the_table_back_that_the_driver_reset() {
    let machine = Machine::new();
    machine.write("state/reta", "0 1 0 1 0 1 0 1");
    let before = machine.state();
    let mut journal = machine.journal();
    journal.apply(&setting("ethtool -L eth0 combined 4"), "test").expect("changed");
    assert_eq!(machine.read("state/reta"), "0 0 1 1 2 2 3 3");
    let former: Vec<String> = journal.entries()[0].former.settings().iter().map(Setting::command).collect();
    assert_eq!(former, ["ethtool -L eth0 combined 2", "ethtool -X eth0 default"]);
    journal.undo(false).expect("undone");
    assert_eq!(machine.state(), before);
}

#[test]
fn a_table_that_no_command_makes_is_left_alone() {
    let machine = Machine::new();
    machine.write("state/reta", "0 1 1 0 0 1 1 0");
    for command in ["ethtool -X eth0 equal 2", "ethtool -L eth0 combined 4"] {
        let error = machine.journal().apply(&setting(command), "test").expect_err("not to be undone");
        assert!(matches!(error, Error::Setting(setting::Error::Unrestorable { .. })), "{error}");
    }
    assert_eq!(machine.read("state/channels"), "2");
    assert!(!machine.journal_file().exists());
}

#[test]
fn what_a_driver_rounds_is_put_back_and_what_it_keeps_is_an_error() {
    let machine = Machine::new();
    let mut journal = machine.journal();
    let Applied::Changed { after, .. } =
        journal.apply(&setting("ethtool -G eth0 rx 1001"), "test").expect("changed")
    else {
        panic!("nothing done")
    };
    assert!(!after.in_effect && after.to_text() == "ethtool -G eth0 rx 1008", "{after:?}");
    journal.undo(false).expect("undone");
    assert_eq!(machine.read("state/ring"), "256");

    machine.write("state/keeps", "");
    let error = journal.apply(&setting("ethtool -G eth0 rx 4096"), "test").expect_err("kept");
    assert_eq!(
        error.to_string(),
        "ethtool -G eth0 rx 4096 had no effect: the value is now that of ethtool -G eth0 rx 256"
    );
    assert_eq!(journal.entries(), []);
}

#[test]
fn what_somebody_else_changed_is_left_alone_unless_forced() {
    let machine = Machine::new();
    let mut journal = machine.journal();
    let budget = setting("sysctl -w net.core.netdev_budget=600");
    journal.apply(&setting("ip link set dev eth0 mtu 1508"), "test").expect("changed");
    journal.apply(&budget, "test").expect("changed");
    machine.write("proc/sys/net/core/netdev_budget", "900");
    let undone = journal.undo(false).expect("undone");
    let [foreign, restored] = &undone[..] else { panic!("{undone:?}") };
    assert!(matches!(foreign.outcome, Outcome::Foreign { .. }) && foreign.outcome.is_kept());
    let text = foreign.to_string();
    assert!(text.contains("=900") && text.contains("=300"), "{text}");
    assert!(matches!(restored.outcome, Outcome::Restored));
    assert_eq!(machine.read("proc/sys/net/core/netdev_budget"), "900");
    drop(journal);

    let mut journal = machine.journal();
    assert_eq!(journal.entries().iter().map(|entry| &entry.setting).collect::<Vec<_>>(), [&budget]);
    assert!(matches!(journal.undo(true).expect("forced")[..], [ref one] if !one.outcome.is_kept()));
    assert_eq!(machine.read("proc/sys/net/core/netdev_budget"), "300");
    assert!(!machine.journal_file().exists());
}

#[test]
fn what_was_put_back_by_hand_or_removed_is_done() {
    let machine = Machine::new();
    let mut journal = machine.journal();
    journal.apply(&setting("ip link set dev eth0 mtu 1508"), "test").expect("changed");
    journal.apply(&setting("echo 2 > /proc/irq/128/smp_affinity_list"), "test").expect("changed");
    machine.write("sys/class/net/eth0/mtu", "1500");
    fs::remove_dir_all(machine.path("proc/irq/128")).expect("removed");
    let undone = journal.undo(false).expect("done");
    let outcomes: Vec<&Outcome> = undone.iter().map(|undone| &undone.outcome).collect();
    assert!(matches!(outcomes[..], [Outcome::Removed, Outcome::AlreadyBack]), "{outcomes:?}");
    assert!(!machine.journal_file().exists());
}

#[test]
fn changes_of_an_earlier_boot_are_dropped() {
    let machine = Machine::new();
    machine.journal().apply(&setting("ip link set dev eth0 mtu 1508"), "test").expect("changed");
    machine.write("proc/sys/kernel/random/boot_id", "6cf6f7b6-0000-4000-8000-000000000002");
    let mut journal = machine.journal();
    assert_eq!(journal.notes(), [Note::OtherBoot { entries: 1 }]);
    assert_eq!(journal.undo(false).expect("nothing").len(), 0);
    assert_eq!(machine.read("sys/class/net/eth0/mtu"), "1508");
    assert!(!machine.journal_file().exists());
}

#[test]
fn a_half_written_line_is_left_out_wherever_it_ends() {
    let machine = Machine::new();
    machine.journal().apply(&setting("sysctl -w net.core.netdev_budget=600"), "test").expect("changed");
    let whole = fs::read(machine.journal_file()).expect("a journal");
    let lines: Vec<usize> = (1..=whole.len()).filter(|end| whole[end - 1] == b'\n').collect();
    // At every place around the ends of lines, and at some between them.
    let is_near = |end: usize| end < 2 || lines.iter().any(|line| line.abs_diff(end) < 3);
    for end in (0..=whole.len()).filter(|&end| is_near(end) || end % 23 == 0) {
        machine.write("proc/sys/net/core/netdev_budget", "600");
        fs::write(machine.journal_file(), &whole[..end]).expect("cut");
        let mut journal = machine.journal();
        let is_whole = end == 0 || lines.contains(&end);
        assert_eq!(journal.notes().contains(&Note::HalfLine), !is_whole, "{end}");
        // The change was made if its intent was written.
        let intended = end >= lines[1];
        let undone = journal.undo(false).unwrap_or_else(|error| panic!("{end}: {error}"));
        assert_eq!(undone.len(), usize::from(intended), "{end}");
        assert_eq!(machine.read("proc/sys/net/core/netdev_budget"), if intended { "300" } else { "600" });
        assert!(!machine.journal_file().exists(), "{end}");
    }
}

#[test]
fn a_journal_goes_on_after_a_half_written_line() {
    let machine = Machine::new();
    let before = machine.state();
    machine.journal().apply(&setting("ip link set dev eth0 mtu 1508"), "test").expect("changed");
    let mut file = OpenOptions::new().append(true).open(machine.journal_file()).expect("a journal");
    file.write_all(br#"{"record":"inte"#).expect("written");
    let mut journal = machine.journal();
    journal.apply(&setting("sysctl -w net.core.netdev_budget=600"), "test").expect("changed");
    drop(journal);
    assert_eq!(machine.journal().undo(false).expect("undone").len(), 2);
    assert_eq!(machine.state(), before);
}

#[test]
fn a_damaged_line_or_another_version_is_named_and_nothing_is_done() {
    let machine = Machine::new();
    machine.journal().apply(&setting("ip link set dev eth0 mtu 1508"), "test").expect("changed");
    let text = fs::read_to_string(machine.journal_file()).expect("a journal");
    let open = |text: String| {
        fs::write(machine.journal_file(), text).expect("written");
        Journal::open(&StateDir::at(machine.directory()), &machine.tree()).expect_err("no journal")
    };
    let harmful = open(text.replace("ip link set dev eth0 mtu 1500", "reboot"));
    assert!(matches!(harmful, Error::Damaged { line: 2, .. }), "{harmful}");
    assert!(matches!(open(format!("{text}nonsense\n")), Error::Damaged { line: 4, .. }));
    assert!(matches!(open(text.replacen("\"version\":1", "\"version\":2", 1)), Error::Version { .. }));
    let headless = text.split_once('\n').expect("lines").1.to_owned();
    assert!(matches!(open(headless), Error::Version { .. }));
    assert_eq!(machine.read("sys/class/net/eth0/mtu"), "1508");
}

#[test]
fn only_a_folder_of_ones_own_is_trusted() {
    let machine = Machine::new();
    machine.journal();
    assert_eq!(mode(&machine.directory()), 0o700);
    machine.journal().apply(&setting("ip link set dev eth0 mtu 1508"), "test").expect("changed");
    assert_eq!(mode(&machine.journal_file()), 0o600);
    fs::set_permissions(machine.directory(), fs::Permissions::from_mode(0o755)).expect("opened");
    machine.journal();
    assert_eq!(mode(&machine.directory()), 0o700);
    fs::set_permissions(machine.directory(), fs::Permissions::from_mode(0o777)).expect("opened");
    let open =
        |path: PathBuf| Journal::open(&StateDir::at(path), &machine.tree()).expect_err("not to be trusted");
    assert!(matches!(open(machine.directory()), Error::State(StateError::Unsafe(_))));
    let link = machine.path("link");
    std::os::unix::fs::symlink(machine.directory(), &link).expect("a link");
    assert!(matches!(open(link), Error::State(StateError::Unsafe(_))));
}

#[test]
fn refusals_of_programs_are_reported_with_their_cause() {
    let machine = Machine::new();
    machine.write("state/refuses", "");
    let error = machine.journal().apply(&setting("ethtool -G eth0 rx 4096"), "test").expect_err("refused");
    let Error::Setting(error) = error else { panic!("{error}") };
    assert_eq!(error.to_string(), "ethtool -g eth0 failed (netlink error: Operation not permitted)");
    assert_eq!(error.io().map(io::Error::kind), Some(io::ErrorKind::PermissionDenied));
    fs::remove_file(machine.path("usr/sbin/ethtool")).expect("removed");
    let error = setting("ethtool -G eth0 rx 4096").apply(&machine.tree()).expect_err("no program");
    assert_eq!(error.to_string(), "ethtool is not installed (Debian: apt install ethtool)");
    let error = setting("ip link set dev eth9 mtu 1508").apply(&machine.tree()).expect_err("no interface");
    assert_eq!(error.io().map(io::Error::kind), Some(io::ErrorKind::NotFound));
}
