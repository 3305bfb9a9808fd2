//! Settings and the journal on the running kernel, in network namespaces of the tests' own, also with the process
//! killed in the midst of it.

use host::setting::{self, Setting, Tree};
use rxlane_service::StateDir;
use rxlane_service::journal::{Applied, Error, Journal, Outcome};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use testkit::netns::{Namespace, Veth, probe};
use testkit::{program, require};

fn setting(command: &str) -> Setting {
    command.parse().unwrap_or_else(|error| panic!("{command}: {error}"))
}

/// A namespace with `in0`, of four queues, and `out0`; and a folder for the journal.
fn machine() -> Option<(Namespace, TempDir)> {
    require("netns", probe())?;
    let namespace = Namespace::new().expect("a namespace");
    namespace.veth(&Veth { queues: 4, ..Veth::pair("in0", "out0") }).expect("a pair");
    Some((namespace, TempDir::new().expect("a folder")))
}

fn journal(folder: &TempDir) -> Result<Journal, Error> {
    Journal::open(&StateDir::at(folder.path().join("rxlane")), &Tree::live())
}

/// Everything that the tests change, as the kernel shows it.
fn state(namespace: &Namespace) -> Vec<String> {
    let file = |path: &str| namespace.run("cat", &[path]).expect("a value");
    let mut state = vec![
        file("/sys/class/net/in0/mtu"),
        file("/sys/class/net/in0/queues/rx-0/rps_cpus"),
        file("/sys/class/net/in0/queues/rx-1/rps_cpus"),
        file("/proc/sys/net/ipv4/ip_forward"),
        file("/proc/sys/net/ipv4/tcp_rmem"),
        file("/proc/sys/net/ipv4/conf/in0/rp_filter"),
    ];
    if program("ethtool").is_ok() {
        state.push(namespace.run("ethtool", &["-l", "in0"]).expect("channels"));
        state.push(namespace.run("ethtool", &["-k", "in0"]).expect("features"));
    }
    state
}

/// What needs no ethtool.
const CHANGES: [&str; 6] = [
    "ip link set dev in0 mtu 1400",
    "echo 1 > /sys/class/net/in0/queues/rx-0/rps_cpus",
    "echo 1 > /sys/class/net/in0/queues/rx-1/rps_cpus",
    "sysctl -w net.ipv4.ip_forward=1",
    "sysctl -w net.ipv4.tcp_rmem='4096 65536 2000000'",
    "sysctl -w net.ipv4.conf.in0.rp_filter=2",
];

#[test]
fn settings_change_the_kernel_and_undo_changes_it_back() {
    let Some((namespace, folder)) = machine() else { return };
    let before = state(&namespace);
    namespace.inside(|| {
        let mut journal = journal(&folder).expect("a journal");
        for command in CHANGES {
            let applied =
                journal.apply(&setting(command), "test").unwrap_or_else(|error| panic!("{error:?}"));
            assert!(matches!(applied, Applied::Changed { after, .. } if after.in_effect), "{command}");
        }
    });
    let changed = state(&namespace);
    assert!(before.iter().zip(&changed).take(6).all(|(before, changed)| before != changed), "{changed:?}");
    assert_eq!(changed[4].trim(), "4096\t65536\t2000000");
    let undone = namespace.inside(|| journal(&folder).expect("a journal").undo(false)).expect("undone");
    assert!(undone.iter().all(|undone| matches!(undone.outcome, Outcome::Restored)), "{undone:?}");
    assert_eq!(state(&namespace), before);
}

#[test]
fn channels_and_features_change_and_return() {
    let Some((namespace, folder)) = machine() else { return };
    let Some(_) = require("ethtool", program("ethtool")) else { return };
    // A part of TSO is off before, and has to be afterwards.
    namespace.run("ethtool", &["-K", "in0", "tx-tcp-mangleid-segmentation", "off"]).expect("off");
    let before = state(&namespace);
    let commands = [
        "ethtool -L in0 tx 2",
        "ethtool -L in0 rx 2",
        "ethtool -K in0 gro on",
        "ethtool -K in0 tso off",
        "ethtool -K in0 sg off",
        "ethtool -K in0 tx-nocache-copy on",
    ];
    namespace.inside(|| {
        let mut journal = journal(&folder).expect("a journal");
        for command in commands {
            let applied =
                journal.apply(&setting(command), "test").unwrap_or_else(|error| panic!("{error:?}"));
            assert!(matches!(applied, Applied::Changed { after, .. } if after.in_effect), "{command}");
        }
    });
    let channels = namespace.run("ethtool", &["-l", "in0"]).expect("channels");
    let current: Vec<&str> = channels.lines().skip_while(|line| !line.starts_with("Current")).collect();
    assert_eq!(current[1..3], ["RX:\t\t2", "TX:\t\t2"]);
    let features = namespace.run("ethtool", &["-k", "in0"]).expect("features");
    for line in ["generic-receive-offload: on", "tcp-segmentation-offload: off", "scatter-gather: off"] {
        assert!(features.lines().any(|found| found == line), "{line}: {features}");
    }
    let undone = namespace.inside(|| journal(&folder).expect("a journal").undo(false)).expect("undone");
    assert!(undone.iter().all(|undone| matches!(undone.outcome, Outcome::Restored)), "{undone:?}");
    assert_eq!(state(&namespace), before);
}

#[test]
fn what_the_device_cannot_do_leaves_nothing_behind() {
    let Some((namespace, folder)) = machine() else { return };
    let Some(_) = require("ethtool", program("ethtool")) else { return };
    let before = state(&namespace);
    namespace.inside(|| {
        let mut journal = journal(&folder).expect("a journal");
        for command in [
            // Fixed, but the kernel records the request: "off [requested on]".
            "ethtool -K in0 rxhash on",
            "ethtool -L in0 rx 9",
            "ethtool -G in0 rx 512",
            "ethtool -X in0 equal 2",
            "ethtool -N in0 rx-flow-hash udp4 sdfn",
            "ethtool -C in0 rx-usecs 30",
            "ip link set dev in0 mtu 4000000",
            "ip link set dev nothing0 mtu 1400",
            "echo 1 > /sys/class/net/in0/queues/rx-9/rps_cpus",
            "echo 80000000,00000000,00000000 > /sys/class/net/in0/queues/rx-0/rps_cpus",
            "sysctl -w net.ipv4.ip_forward=word",
            "sysctl -w net.ipv4.nothing=1",
        ] {
            let refused = journal.apply(&setting(command), "test");
            assert!(matches!(refused, Err(Error::Setting(_))), "{command}: {refused:?}");
        }
        assert_eq!(journal.entries(), []);
    });
    assert_eq!(state(&namespace), before);
    assert!(!folder.path().join("rxlane/journal").exists());
}

#[test]
fn a_sysfs_of_another_namespace_is_not_taken_for_this_one() {
    let Some((namespace, _)) = machine() else { return };
    let Some(_) = require("nsenter", program("nsenter")) else { return };
    let victim = std::env::current_exe().expect("this program");
    let file = format!("--net={}", namespace.path().display());
    let mut command = Command::new("nsenter");
    command.arg(file).arg(victim).args([
        "journal_netns::other_sysfs",
        "--exact",
        "--ignored",
        "--test-threads=1",
    ]);
    let output = command.env(FOLDER, "").output().expect("started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// No test: what runs where `/sys` is that of another namespace.
#[test]
#[ignore = "started by another test"]
fn other_sysfs() {
    if std::env::var_os(FOLDER).is_none() {
        return;
    }
    for command in &CHANGES[..2] {
        let error = setting(command).apply(&Tree::live()).expect_err("refused");
        assert!(matches!(error, setting::Error::OtherSysfs { .. }), "{error:?}");
    }
}

#[test]
fn another_namespace_is_not_touched() {
    let Some((namespace, folder)) = machine() else { return };
    let other = Namespace::new().expect("another");
    other.veth(&Veth::pair("in0", "out0")).expect("a pair");
    let mtu = setting("ip link set dev in0 mtu 1400");
    namespace.inside(|| journal(&folder).expect("a journal").apply(&mtu, "test")).expect("changed");
    let error = other.inside(|| journal(&folder).expect("a journal").undo(true)).expect_err("not here");
    assert!(matches!(error, Error::Namespace { .. }), "{error}");
    assert!(error.to_string().contains("another network namespace (net:["), "{error}");
    // With an entry of its own, that one is put back and the other stays.
    other.inside(|| journal(&folder).expect("a journal").apply(&mtu, "test")).expect("changed");
    let undone = other.inside(|| journal(&folder).expect("a journal").undo(false)).expect("undone");
    let outcomes: Vec<&Outcome> = undone.iter().map(|undone| &undone.outcome).collect();
    assert!(matches!(outcomes[..], [Outcome::Restored, Outcome::OtherNamespace]), "{outcomes:?}");
    let undone = namespace.inside(|| journal(&folder).expect("a journal").undo(false)).expect("undone");
    assert!(matches!(undone[..], [ref one] if matches!(one.outcome, Outcome::Restored)), "{undone:?}");
    assert_eq!(namespace.run("cat", &["/sys/class/net/in0/mtu"]).expect("a value"), "1500\n");
}

#[test]
fn an_interface_that_was_deleted_made_anew_or_renamed_is_known() {
    let Some((namespace, folder)) = machine() else { return };
    let mtu = setting("ip link set dev in0 mtu 1400");
    let apply =
        || namespace.inside(|| journal(&folder).expect("a journal").apply(&mtu, "test")).expect("changed");
    let undo = |force| {
        let undone = namespace.inside(|| journal(&folder).expect("a journal").undo(force)).expect("undone");
        let [one] = <[_; 1]>::try_from(undone).expect("one entry");
        one.outcome
    };
    apply();
    let ip = |line: &str| namespace.run("ip", &line.split(' ').collect::<Vec<_>>()).expect("done");
    ip("link set dev in0 down");
    ip("link set dev in0 name wan0");
    assert!(matches!(undo(true), Outcome::Renamed { to } if to.as_str() == "wan0"));
    ip("link set dev wan0 name in0");
    assert!(matches!(undo(false), Outcome::Restored));
    apply();
    ip("link del dev in0");
    namespace.veth(&Veth { mtu: 1400, ..Veth::pair("in0", "out0") }).expect("a pair");
    assert!(matches!(undo(false), Outcome::Removed));
    assert_eq!(namespace.run("cat", &["/sys/class/net/in0/mtu"]).expect("a value"), "1400\n");
    ip("link set dev in0 mtu 1500");
    apply();
    ip("link del dev in0");
    assert!(matches!(undo(false), Outcome::Removed));
}

#[test]
fn without_root_it_is_permission_that_is_missing() {
    let Some((namespace, folder)) = machine() else { return };
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("readable");
    namespace.inside(|| {
        let nobody = rustix::process::Uid::from_raw(65_534);
        rustix::thread::set_thread_res_uid(nobody, nobody, nobody).expect("given up");
        let denied =
            |error: Option<&io::Error>| error.map(io::Error::kind) == Some(io::ErrorKind::PermissionDenied);
        let error = journal(&folder).expect_err("no journal");
        assert!(matches!(&error, Error::File { source, .. } if denied(Some(source))), "{error:?}");
        for command in CHANGES {
            let error = setting(command).apply(&Tree::live()).expect_err("refused");
            assert!(denied(error.io()), "{command}: {error:?}");
            assert!(!matches!(error, setting::Error::Managed { .. }));
        }
    });
}

/// Names the folder of the journal for the process that is to be killed.
const FOLDER: &str = "RXLANE_TEST_JOURNAL";

/// No test: what the killed process runs.
#[test]
#[ignore = "started by other tests"]
fn victim() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let mut journal = Journal::open(&StateDir::at(&folder), &Tree::live()).expect("a journal");
    journal.apply(&setting(CHANGES[0]), "test").expect("changed");
}

/// Runs a process whose first `ip` kills it, in the place of `KILL` in the script, and waits for its end.
fn killed_by_ip(namespace: &Namespace, folder: &TempDir, script: &str) {
    let path = std::env::var("PATH").expect("a search path");
    let real = program("ip").expect("probed");
    let body =
        script.replace("KILL", "kill -9 $PPID").replace("CHANGE", &format!("{} \"$@\"", real.display()));
    let file = folder.path().join("ip");
    fs::write(&file, format!("#!/bin/sh\n{body}\n")).expect("a script");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("executable");
    // Not the environment of the command itself, whose PATH would also find the `ip` that enters the namespace.
    let mut command: Command = namespace.command("env");
    command.arg(format!("PATH={}:{path}", folder.path().display()));
    command.arg(std::env::current_exe().expect("this program"));
    command.args(["journal_netns::victim", "--exact", "--ignored", "--test-threads=1"]);
    command.env(FOLDER, folder.path().join("rxlane")).stdin(Stdio::null());
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("started");
    assert_eq!(status.signal(), Some(9), "{status:?}");
}

fn mtu(namespace: &Namespace) -> String {
    namespace.run("cat", &["/sys/class/net/in0/mtu"]).expect("a value").trim().to_owned()
}

#[test]
fn what_a_killed_process_changed_is_put_back() {
    for (script, value) in [("KILL", "1500"), ("CHANGE\nKILL", "1400")] {
        let Some((namespace, folder)) = machine() else { return };
        killed_by_ip(&namespace, &folder, script);
        assert_eq!(mtu(&namespace), value);
        let mut journal = namespace.inside(|| journal(&folder)).expect("a journal");
        assert!(matches!(journal.entries(), [entry] if entry.is_interrupted()));
        let undone = namespace.inside(|| journal.undo(false)).expect("undone");
        let [only] = &undone[..] else { panic!("{undone:?}") };
        let is_restored = matches!(only.outcome, Outcome::Restored);
        assert!(is_restored == (value == "1400") && !only.outcome.is_kept(), "{only:?}");
        assert_eq!(mtu(&namespace), "1500");
        assert!(!folder.path().join("rxlane/journal").exists());
    }
}

#[test]
fn nobody_undoes_while_a_program_of_a_killed_process_is_about_to_change() {
    let Some((namespace, folder)) = machine() else { return };
    killed_by_ip(&namespace, &folder, "KILL\nsleep 1\nCHANGE");
    let open = || namespace.inside(|| journal(&folder));
    assert!(matches!(open(), Err(Error::Busy { pid: Some(pid), .. }) if pid != std::process::id()));
    assert_eq!(mtu(&namespace), "1500");
    let until = Instant::now() + testkit::PATIENCE;
    let mut journal = loop {
        match open() {
            Ok(journal) => break journal,
            Err(error) => assert!(Instant::now() < until, "{error}"),
        }
        thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(mtu(&namespace), "1400");
    namespace.inside(|| journal.undo(false)).expect("undone");
    assert_eq!(mtu(&namespace), "1500");
}
