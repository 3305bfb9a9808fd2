//! A live machine against the tools themselves, line by line, in network namespaces of the test's own; and what is
//! left where rights are taken away.

#![cfg(target_os = "linux")]

use crate::facts::facts;
use crate::read;
use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use rxlane_host::collector::SCRIPT;
use rxlane_host::live::{Error, Options, Progress, collect};
use rxlane_host::redact::{HIDDEN, MAC};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use testkit::netns::{Namespace, Veth, probe};
use testkit::{program, require};

/// Outputs by command, one for each sample.
type Outputs = BTreeMap<String, Vec<Vec<String>>>;

/// A namespace with a pair of four queues (`v0`, `v1`) and a bridge with `v1` in it.
fn namespace() -> Option<Namespace> {
    require("netns", probe())?;
    let namespace = Namespace::new().expect("a namespace");
    namespace.veth(&Veth { queues: 4, ..Veth::pair("v0", "v1") }).expect("a pair");
    namespace.run("ip", &["link", "add", "br0", "type", "bridge"]).expect("a bridge");
    namespace.run("ip", &["link", "set", "v1", "master", "br0"]).expect("a member");
    Some(namespace)
}

fn bundle(options: &Options) -> String {
    watched(options, |_| ())
}

/// A bundle, and what is being done meanwhile.
fn watched(options: &Options, mut progress: impl FnMut(Progress)) -> String {
    let mut out = Vec::new();
    collect(options, &mut out, &mut progress).expect("a bundle");
    String::from_utf8(out).expect("UTF-8")
}

fn bundle_in(namespace: &Namespace) -> Outputs {
    outputs(&namespace.inside(|| bundle(&Options::default())))
}

/// Takes a bundle apart, and fails where it is not as its format says.
fn outputs(bundle: &str) -> Outputs {
    let mut lines = bundle.lines();
    assert_eq!(lines.next(), Some("# rxlane bundle 1"));
    assert_eq!(lines.next(), Some("# system: linux"));
    assert!(bundle.ends_with("\n# end\n"));
    let mut outputs = Outputs::new();
    let mut command = None;
    for line in lines.filter(|&line| line != "# end") {
        if let Some(prompt) = line.strip_prefix("$ ") {
            outputs.entry(prompt.to_owned()).or_default().push(Vec::new());
            command = Some(prompt.to_owned());
        } else if line.starts_with("# sample ") {
            command = None;
        } else if line != "# nothing to tell" {
            assert!(!line.starts_with('#') || line.starts_with("# not read: "), "{line}");
            assert!(!line.contains(|c: char| c.is_control() && c != '\t'), "{line:?}");
            let command = command.as_ref().unwrap_or_else(|| panic!("no prompt before {line}"));
            let outputs = outputs.get_mut(command).and_then(|outputs| outputs.last_mut());
            outputs.expect("begun at the prompt").push(line.to_owned());
        }
    }
    outputs
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// Our output against the tool's: the same lines but for blanks, apart from the tool's lines that `left_out` knows.
fn compare(command: &str, ours: &[String], tool: &std::process::Output, left_out: &dyn Fn(&str) -> bool) {
    let (stdout, stderr) = (String::from_utf8_lossy(&tool.stdout), String::from_utf8_lossy(&tool.stderr));
    if let [line] = ours
        && let Some(reason) = line.strip_prefix("# not read: ")
    {
        assert!(!tool.status.success(), "{command}: we read nothing, the tool {stdout}");
        assert!(
            stderr.contains(reason) || stdout.contains(reason),
            "{command}: {reason}, the tool: {stderr}"
        );
        return;
    }
    assert!(tool.status.success(), "{command}: {stderr}");
    let ours: Vec<Vec<&str>> = ours.iter().map(|line| words(line)).filter(|line| !line.is_empty()).collect();
    let tool: Vec<Vec<&str>> = stdout.lines().filter(|line| !left_out(line)).map(words).collect();
    let tool: Vec<Vec<&str>> = tool.into_iter().filter(|line| !line.is_empty()).collect();
    assert_eq!(ours, tool, "{command}");
}

#[test]
fn ethtool_prints_the_same() {
    let Some(ethtool) = require("ethtool", program("ethtool")) else { return };
    let Some(namespace) = namespace() else { return };
    // A tap device has coalescing, which a pair has not.
    namespace.run("ip", &["tuntap", "add", "tap0", "mode", "tap", "multi_queue"]).expect("a tap device");
    let ours = bundle_in(&namespace);
    let mut compared = 0;
    for (command, outputs) in ours.iter().filter(|(command, _)| command.starts_with("ethtool ")) {
        let tool =
            namespace.command(&ethtool).args(words(command).iter().skip(1)).output().expect("it starts");
        compare(command, &outputs[0], &tool, &|line| is_left_out(line));
        compared += 1;
    }
    assert_eq!(compared, 4 * 12, "four interfaces, twelve commands each");
    let read = |command: &str| !ours[command][0][0].starts_with("# not read");
    for command in
        ["ethtool v0", "ethtool -i v0", "ethtool -l v0", "ethtool -k br0", "ethtool -S v1", "ethtool -c tap0"]
    {
        assert!(read(command), "{command}: {:?}", ours[command]);
    }
    assert!(!read("ethtool -x v0") && !read("ethtool -g v0"));
}

/// Lines of ethtool that say nothing about receiving (the PHY's address, crossing, waking, messages), and those that
/// versions after 6.1 brought.
fn is_left_out(line: &str) -> bool {
    const LABELS: [&str; 11] = [
        "PHYAD:",
        "MDI-X:",
        "Supports Wake-on:",
        "Wake-on:",
        "Current message level:",
        "RX Push:",
        "TX push buff len:",
        "HDS thresh",
        "tx-aggr-",
        "RSS input transformation:",
        "symmetric-xor:",
    ];
    // The words of the message level follow on a line of their own.
    line.starts_with("\t\t\t") || LABELS.iter().any(|label| line.trim_start().starts_with(label))
}

#[test]
fn the_devices_of_this_machine_read_the_same_too() {
    let Some(ethtool) = require("ethtool", program("ethtool")) else { return };
    // Nothing is changed: both sides read. Counters may move between, so they are left alone.
    let ours = outputs(&bundle(&Options::default()));
    // Interfaces without a device may go away at any time: a container's, for example.
    let has_device = |command: &str| {
        let folder = |word: &&str| Path::new("/sys/class/net").join(word).join("device");
        words(command).iter().skip(1).any(|word| folder(word).exists())
    };
    let settings = ours.iter().filter(|(command, _)| {
        command.starts_with("ethtool ") && !command.contains(" -S ") && has_device(command)
    });
    for (command, outputs) in settings {
        let mut tool =
            Command::new(&ethtool).args(words(command).iter().skip(1)).output().expect("it starts");
        let stdout = String::from_utf8_lossy(&tool.stdout).into_owned();
        // The key, where there is one, is one line of bytes.
        let hidden = stdout.lines().map(|line| {
            if words(line).len() == 1 && line.contains(':') && line.len() > 32 { HIDDEN } else { line }
        });
        tool.stdout = hidden.collect::<Vec<_>>().join("\n").into();
        compare(command, &outputs[0], &tool, &|line| is_left_out(line));
    }
}

#[test]
fn ip_link_prints_the_same() {
    let Some(namespace) = namespace() else { return };
    let frames = vec![[0xff_u8; 60]; 3];
    namespace.send("v0", frames).expect("sent");
    let ours = bundle_in(&namespace);
    let ours = &ours["ip -d -s link"][0];
    let tool = namespace.run("ip", &["-d", "-s", "link"]).expect("ip");
    let tool: Vec<&str> = tool.lines().collect();
    assert_eq!(ours.len(), tool.len(), "{ours:#?}\n{tool:#?}");
    for (ours, tool) in ours.iter().zip(&tool) {
        compare_link_line(ours, tool);
    }
    let text = ours.join("\n");
    for part in [
        "v1@v0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue master br0 ",
        "    bridge stp_state 0 ",
        " numtxqueues 4 numrxqueues 4 ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("ff:ff:ff"), "{text}");
}

/// Our words are the tool's in their order. The tool may say more: addresses, the details of a bridge; and we more
/// than an older tool: pairs of a word and a number that it does not know.
fn compare_link_line(ours: &str, tool: &str) {
    let newer = ["gso_ipv4_max_size", "gro_ipv4_max_size", "allmulti"];
    let mut rest = words(tool).into_iter();
    let mut skip_number = false;
    for word in words(&ours.replace(MAC, "")) {
        if std::mem::take(&mut skip_number) {
            continue;
        }
        if newer.contains(&word) && !words(tool).contains(&word) {
            skip_number = true;
            continue;
        }
        assert!(
            rest.any(|theirs| theirs == word),
            "{word} of\n{ours}\nis not there or out of order in\n{tool}"
        );
    }
}

#[test]
fn what_counts_is_read_twice_and_moves() {
    let Some(namespace) = namespace() else { return };
    let options = Options { interval: Duration::from_millis(100), ..Options::default() };
    // A thread outside sends between the samples of the one inside, which waits for it.
    let (ask, question) = mpsc::channel();
    let (answer, answered) = mpsc::channel();
    let text = thread::scope(|scope| {
        let namespace = &namespace;
        let collecting =
            scope.spawn(move || namespace.inside(move || collect_and_send(&options, &ask, &answered)));
        if question.recv().is_ok() {
            namespace.send("v1", vec![[0xff_u8; 60]; 5]).expect("sent");
            answer.send(()).expect("still there");
        }
        collecting.join().expect("collected")
    });
    let at = |sample: u32| -> f64 {
        let start = format!("# sample {sample} at ");
        let at = text.lines().find_map(|line| line.strip_prefix(&start));
        at.and_then(|at| at.parse().ok()).expect("a time")
    };
    assert!(at(2) - at(1) >= 0.099, "{} and {}", at(1), at(2));
    let ours = outputs(&text);
    for command in
        ["cat /proc/interrupts", "cat /proc/softirqs", "cat /proc/stat", "cat /proc/net/softnet_stat"]
    {
        assert_eq!(ours[command].len(), 2, "{command}");
    }
    assert_eq!((ours["ethtool -k v0"].len(), ours["top -b -n 1"].len()), (1, 1));
    let received = |sample: usize| -> u64 {
        let link = &ours["ip -d -s link"][sample];
        let start = link.iter().position(|line| line.contains(": v0@v1: ")).expect("v0");
        let counts = &link[start + 1..];
        let at = counts.iter().position(|line| line.trim_start().starts_with("RX:")).expect("its counts") + 1;
        words(&counts[at])[1].parse().expect("packets")
    };
    assert!(received(1) >= received(0) + 5, "{} and {}", received(0), received(1));
}

/// A bundle; between its samples `ask` gets a message and `answered` waited for, once: when settings are read, since nothing waits for
/// the second sample where that alone has taken the interval.
fn collect_and_send(options: &Options, ask: &mpsc::Sender<()>, answered: &mpsc::Receiver<()>) -> String {
    let mut seen = Vec::new();
    let text = watched(options, |step| {
        if matches!(step, Progress::Interface { number: 1, .. }) {
            ask.send(()).expect("still there");
            answered.recv().expect("sent");
        }
        seen.push(step);
    });
    assert!(seen.contains(&Progress::Sample(1)) && seen.contains(&Progress::Sample(2)), "{seen:?}");
    let first = seen.iter().find(|step| matches!(step, Progress::Interface { .. }));
    assert!(matches!(first, Some(Progress::Interface { number: 1, of: 3, .. })), "{first:?}");
    text
}

#[test]
fn an_interface_that_goes_away_meanwhile_says_so() {
    let Some(namespace) = namespace() else { return };
    let options = Options { interval: Duration::from_millis(30), ..Options::default() };
    let text = namespace.inside(|| {
        watched(&options, |step| {
            // After the first counters, before the settings of the first interface are read, which happens once.
            if matches!(step, Progress::Interface { number: 1, .. }) {
                namespace.run("ip", &["link", "del", "v0"]).expect("deleted");
            }
        })
    });
    let ours = outputs(&text);
    assert!(ours["ethtool -S v0"][0].len() > 1, "{:?}", ours["ethtool -S v0"]);
    assert_eq!(ours["ethtool -S v0"][1], ["# not read: No such device"]);
    let removed = &ours["ethtool -k v0"];
    assert!(removed[0][0].starts_with("# not read: No such device"), "{removed:?}");
    assert!(ours["ethtool -k br0"][0].len() > 10);
}

#[test]
fn interfaces_are_chosen_with_what_they_stand_on() {
    let Some(namespace) = namespace() else { return };
    let chosen = |name: &str| Options { interfaces: Some(vec![name.to_owned()]), ..Options::default() };
    let ours = outputs(&namespace.inside(|| bundle(&chosen("br0"))));
    assert!(ours.contains_key("ethtool -l br0") && ours.contains_key("ethtool -l v1"));
    assert!(!ours.contains_key("ethtool -l v0") && !ours.contains_key("ethtool -l lo"));
    assert!(!ours["ip -d -s link"][0].join("\n").contains(": v0@"));
    let ours = outputs(&namespace.inside(|| bundle(&chosen("lo"))));
    assert!(ours.contains_key("ethtool -k lo"));
    let error = namespace.inside(|| collect(&chosen("eth7"), &mut Vec::new(), &mut |_| {}));
    match error {
        Err(error @ Error::UnknownInterface { .. }) => {
            let text = error.to_string();
            assert!(text.contains("eth7") && text.contains("lo, v1, v0, br0"), "{text}");
        }
        other => panic!("{other:?}"),
    }
}

/// Nor is anything read in the name of another interface, which a shell would take theirs for.
#[test]
fn names_cannot_break_the_bundle() {
    let Some(namespace) = namespace() else { return };
    let names = ["e\u{1b}[31m#", "$", "-x", "\u{e9}th\u{7f}", "v1;x", "a\\b", "q\"u"];
    for name in names {
        namespace.run("ip", &["link", "set", "v0", "down"]).expect("down");
        namespace.run("ip", &["link", "set", "v0", "name", name]).expect("renamed");
        let ours = namespace.inside(|| bundle(&Options { interval: Duration::ZERO, ..Options::default() }));
        outputs(&ours);
        let script =
            namespace.command("sh").args(["-c", SCRIPT, "sh", "-s", "0"]).output().expect("it starts");
        for bundle in [ours, String::from_utf8_lossy(&script.stdout).into_owned()] {
            let snapshot = read(&bundle);
            let mut names: Vec<&str> = snapshot.interfaces.iter().map(|one| one.name.as_str()).collect();
            names.sort_unstable();
            // Interrupts of the machine's own NIC are nobody's here.
            names.retain(|name| !name.is_empty());
            assert_eq!(names, ["br0", "lo", "v1"], "{name:?}");
            assert!(snapshot.interface("").is_none_or(|nameless| nameless.driver.is_none()), "{name:?}");
        }
        let escaped = name.replace('\u{1b}', "\\x1b").replace('\u{7f}', "\\x7f");
        let chosen = Options { interfaces: Some(vec![escaped]), ..Options::default() };
        let chosen = namespace.inside(|| collect(&chosen, &mut Vec::new(), &mut |_| {}));
        assert!(matches!(chosen, Err(Error::OddName { .. } | Error::UnknownInterface { .. })), "{name:?}");
        namespace.run("ip", &["link", "set", "dev", name, "name", "v0"]).expect("renamed");
    }
}

#[test]
fn sysfs_of_another_namespace_is_not_taken_for_this_one() {
    let Some(namespace) = namespace() else { return };
    let Some(other) = self::namespace() else { return };
    // Another index under the same name.
    other.run("ip", &["link", "del", "v0"]).expect("deleted");
    other.veth(&Veth::pair("v0", "v1")).expect("a pair");
    let here = namespace.inside(|| {
        // A thread that enters a namespace keeps the sysfs that it has.
        let file = std::fs::File::open(other.path()).expect("the namespace");
        let kind = Some(rustix::thread::LinkNameSpaceType::Network);
        rustix::thread::move_into_link_name_space(std::os::fd::AsFd::as_fd(&file), kind).expect("entered");
        bundle(&Options::default())
    });
    let ours = outputs(&here);
    assert_eq!(
        ours["cat /sys/class/net/v0/queues/rx-0/rps_cpus"][0],
        ["# not read: sysfs shows another network namespace"]
    );
    assert!(ours["ethtool -l v0"][0].contains(&"RX:\t\t1".to_owned()), "{:?}", ours["ethtool -l v0"]);
}

#[test]
fn an_unprivileged_user_reads_what_the_kernel_allows() {
    let Some(namespace) = namespace() else { return };
    let nobody = 65_534;
    let ours = namespace.inside(|| {
        // Of this thread alone, which ends with the closure.
        set_thread_groups(&[]).expect("root");
        let (gid, uid) = (Gid::from_raw(nobody), Uid::from_raw(nobody));
        set_thread_res_gid(gid, gid, gid).expect("root");
        set_thread_res_uid(uid, uid, uid).expect("root");
        assert!(std::fs::write("/proc/sys/net/core/netdev_budget", "300").is_err(), "still root");
        outputs(&bundle(&Options::default()))
    });
    let as_root = bundle_in(&namespace);
    assert_eq!(ours.keys().collect::<Vec<_>>(), as_root.keys().collect::<Vec<_>>());
    for command in
        ["ethtool -S v0", "ethtool -l v0", "ethtool -k br0", "ip -d -s link", "cat /proc/interrupts"]
    {
        assert!(ours[command][0].len() > 1, "{command}: {:?}", ours[command]);
    }
    if std::fs::read_to_string("/proc/sys/kernel/dmesg_restrict")
        .is_ok_and(|restricted| restricted.trim() != "0")
    {
        assert_eq!(ours["dmesg"][0], ["# not read: Operation not permitted"]);
    }
    let refused: Vec<&String> =
        ours.values().flatten().flatten().filter(|line| line.contains("not read: ")).collect();
    let known =
        ["Operation not supported", "No such file or directory", "No data available", "no stats available"];
    let privilege = ["Permission denied", "Operation not permitted"];
    for line in refused {
        let reason = line.trim_start_matches("# not read: ");
        assert!(known.iter().chain(&privilege).any(|known| reason.starts_with(known)), "{line}");
    }
}

#[test]
fn the_vectors_that_sysfs_names_are_the_interfaces_own() {
    // The machine's own devices: a virtual machine's virtio ones bear names that only sysfs explains.
    let text = bundle(&Options::default());
    let listed: Vec<String> = outputs(&text)
        .into_iter()
        .filter(|(command, _)| command.starts_with("ls /sys/class/net/"))
        .flat_map(|(_, mut outputs)| outputs.swap_remove(0))
        .collect();
    let snapshot = read(&text);
    for interrupt in snapshot.interrupts.iter().filter(|interrupt| listed.contains(&interrupt.vector)) {
        assert!(interrupt.interface.is_some(), "{interrupt:?}");
    }
}

#[test]
fn the_reader_of_texts_takes_the_bundle() {
    let Some(namespace) = namespace() else { return };
    namespace.run("sh", &["-c", "echo 1 > /sys/class/net/v0/queues/rx-3/rps_cpus"]).expect("set");
    let options = Options { interval: Duration::from_millis(50), ..Options::default() };
    let text = namespace.inside(|| bundle(&options));
    let snapshot = read(&text);
    assert_eq!(snapshot.omitted, 0);
    assert!(snapshot.interval >= Some(Duration::from_millis(49)), "{:?}", snapshot.interval);
    let facts = facts(&snapshot);
    for (start, value) in [
        ("cpus online: ", ""),
        ("v0 kind: ", "Veth"),
        ("v0 driver: ", "\"veth\""),
        ("v0 channels rx: ", "4"),
        ("v0 queue 3 rps: ", "[0]"),
        ("v0 feature rx-checksumming: ", "on"),
        ("v1 master: ", "\"br0\""),
        ("v1 mtu: ", "1500"),
        ("v1 packets: ", ""),
        ("not read ethtool -x v0", ""),
    ] {
        let is_so = |fact: &String| fact.strip_prefix(start).is_some_and(|rest| rest.starts_with(value));
        assert!(facts.iter().any(is_so), "{start}{value}: {facts:#?}");
    }
}

/// What the tests below take away from their thread.
fn deny(call: i64, argument: u8, value: u64) {
    let condition =
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value).expect("valid");
    let rules = [(call, vec![SeccompRule::new(vec![condition]).expect("valid")])].into();
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let architecture = std::env::consts::ARCH.try_into().expect("an architecture with seccomp");
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, architecture).expect("valid");
    let program: BpfProgram = filter.try_into().expect("valid");
    seccompiler::apply_filter(&program).expect("seccomp");
}

#[test]
fn without_netlink_the_ioctl_and_files_are_left() {
    let Some(namespace) = namespace() else { return };
    let with = bundle_in(&namespace);
    let chosen = Options { interfaces: Some(vec!["br0".to_owned()]), ..Options::default() };
    let (without, around_bridge) = namespace.inside(|| {
        deny(libc::SYS_socket, 0, u64::from(libc::AF_NETLINK.unsigned_abs()));
        (outputs(&bundle(&Options::default())), outputs(&bundle(&chosen)))
    });
    assert_eq!(without["ip -d -s link"][0], ["# not read: Operation not permitted"]);
    for command in
        ["ethtool v0", "ethtool -l v0", "ethtool -k v0", "ethtool -k br0", "ethtool -S v1", "ethtool -g v0"]
    {
        assert_eq!(without[command], with[command], "{command}");
    }
    assert_eq!(without.keys().collect::<Vec<_>>(), with.keys().collect::<Vec<_>>());
    assert!(around_bridge.contains_key("ethtool -l v1") && !around_bridge.contains_key("ethtool -l v0"));
}

#[test]
fn without_the_ioctl_netlink_is_left() {
    let Some(namespace) = namespace() else { return };
    let with = bundle_in(&namespace);
    let without = namespace.inside(|| {
        deny(libc::SYS_ioctl, 1, libc::SIOCETHTOOL);
        outputs(&bundle(&Options::default()))
    });
    for command in ["ethtool -S v0", "ethtool -i v0", "ethtool -x v0"] {
        assert_eq!(without[command][0], ["# not read: Operation not permitted"], "{command}");
    }
    for command in ["ethtool v0", "ethtool -l v0", "ethtool -k v0", "ethtool -g v0"] {
        assert_eq!(without[command], with[command], "{command}");
    }
}
