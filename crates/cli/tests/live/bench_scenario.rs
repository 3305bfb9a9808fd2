//! `rxlane bench vlan`, `steer`, `pps`, `pppoe` and `forward`.
//!
//! Measurements are as short as they can be: what is tested is that they come to an end with figures, and what they leave.

use crate::machine::signal;
use crate::run::{BINARY, Ended};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;
use testkit::netns::probe;
use testkit::{open_copy, program, require, wait_for, wait_until};

const SCHEMA: &str = "rxlane.bench-scenario/1";

fn rxlane(words: &str) -> Command {
    let mut command = Command::new(BINARY);
    command.arg("bench").args(words.split(' ')).stdin(Stdio::null());
    command
}

fn run(words: &str) -> Output {
    rxlane(words).output().expect("it runs")
}

fn started(words: &str) -> Child {
    rxlane(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs")
}

/// What a scenario of process `pid` has made, and not removed.
fn left_by(pid: u32) -> Vec<PathBuf> {
    let prefix = format!("rxlane-scene-{pid}-");
    let of = |folder: &str| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let is_its =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&prefix));
    ["/run/netns", "/run"].into_iter().flat_map(of).filter(is_its).collect()
}

/// Its end, after which nothing is left of it.
#[track_caller]
fn ended(child: Child) -> Output {
    let pid = child.id();
    let output = child.wait_with_output().expect("its end");
    assert_eq!(left_by(pid), Vec::<PathBuf>::new(), "{}", output.text());
    output
}

/// Runs a scenario for its report.
fn report(words: &str) -> Value {
    let report = ended(started(&format!("{words} --rounds 1 --seconds 0.1 --json"))).ends(0).json();
    assert_eq!((&report["schema"], &report["complete"]), (&SCHEMA.into(), &true.into()), "{report:#}");
    assert!(report["machine"]["kernel"].is_string() && report["machine"]["rxlane"].is_string(), "{report:#}");
    report
}

/// Every figure of the cells is more than nothing.
fn assert_figures(report: &Value, cells: usize, metrics: &[&str]) {
    let measured = report["cells"].as_array().expect("cells");
    assert_eq!(measured.len(), cells, "{report:#}");
    for cell in measured {
        for metric in metrics {
            let figures = &cell["figures"][metric];
            assert!(figures["median"].as_f64().is_some_and(|median| median > 0.0), "{metric}: {cell:#}");
            assert_eq!(figures["raw"].as_array().map(Vec::len), Some(1), "{metric}: {cell:#}");
        }
    }
}

fn is_possible(programs: &[&str]) -> Option<()> {
    require("netns", probe())?;
    programs.iter().try_for_each(|name| require(name, program(name)).map(drop))
}

#[test]
fn vlan_measures_tags_and_says_what_follows() {
    let Some(()) = is_possible(&["iperf3", "ethtool"]) else { return };
    let report = report("vlan --level tags=none,ad+q --level by=nobody,rxlane --level rps=off");
    assert_figures(&report, 4, &["tcp_1", "tcp_8", "udp"]);
    let verdicts = report["verdicts"].as_array().expect("sentences");
    let of_one = |verdict: &&Value| verdict["metric"] == "tcp_1" && verdict["cell"]["offloads"] == "off";
    let verdict = verdicts.iter().find(of_one).unwrap_or_else(|| panic!("{report:#}"));
    let text = verdict["text"].as_str().expect("a sentence");
    assert!(
        text.starts_with(
            "TCP of one connection (offloads off, RPS off): two tags (0x88a8, 0x8100), by rxlane link has "
        ) && text.contains(" times that of no tag"),
        "{text}"
    );
    for metric in ["cpu_tcp_1", "udp", "udp_loss"] {
        assert!(verdicts.iter().any(|verdict| verdict["metric"] == metric), "{metric}: {report:#}");
    }
    let facts = report["facts"].as_array().expect("answers");
    // Of both kinds of tags that were requested, four sizes each.
    assert_eq!(facts.len(), 8, "{report:#}");
}

#[test]
fn steer_measures_what_each_way_forwards() {
    let Some(()) = is_possible(&[]) else { return };
    let Some(_) = require("cpus", two_cpus()) else { return };
    let report = report("steer --flows 200");
    assert_figures(&report, 8, &["forwarded", "sent", "busiest"]);
    assert_eq!(report["parameters"]["flows"], "200", "{report:#}");
}

#[test]
fn forward_searches_the_rate_without_loss_or_says_that_the_sender_is_the_limit() {
    let Some(()) = is_possible(&[]) else { return };
    let report = report("forward --level rps=off");
    let cells = report["cells"].as_array().expect("cells");
    // The trunk of 8021q is reported as left out where the kernel has none.
    let left_out = report["left_out"].as_array().expect("a list");
    assert_eq!(cells.len(), 6 - 2 * left_out.len(), "{report:#}");
    assert!(left_out.iter().all(|left| left["levels"]["lines"] == "trunk-8021q"), "{report:#}");
    assert_figures(&report, cells.len(), &["forwarded", "sent"]);
    for cell in cells {
        let median = |metric: &str| cell["figures"][metric]["median"].as_f64();
        let (loss, loss_free) = (median("loss").expect("a figure"), median("loss_free"));
        assert_eq!(loss == 0.0, loss_free.is_none(), "{cell:#}");
        assert!(loss_free.is_none_or(|rate| rate < median("sent").expect("a figure")), "{cell:#}");
    }
    let limited = cells.iter().filter(|cell| cell["figures"]["loss_free"].is_null()).count();
    let remarks = report["remarks"].as_array().expect("sentences");
    let counts = remarks.iter().filter_map(Value::as_str).map(|remark| remark.matches(" kpps (").count());
    assert_eq!(counts.sum::<usize>(), limited, "{report:#}");
}

/// Runs `ip netns exec` in a namespace of a scenario.
fn within(namespace: &Path, words: &[&str]) -> Output {
    let name = namespace.file_name().expect("a name");
    let mut command = Command::new("ip");
    command.args(["netns", "exec"]).arg(name).args(words).stdin(Stdio::null()).output().expect("ip")
}

/// The router of a scenario, once it forwards.
fn forwarding(pid: u32) -> PathBuf {
    wait_for("the router forwards", || {
        let all = left_by(pid);
        let router = all.into_iter().find(|path| path.to_string_lossy().ends_with("-router"))?;
        let counted = within(&router, &["cat", "/sys/class/net/out0/statistics/tx_packets"]).stdout;
        let count = String::from_utf8_lossy(&counted).trim().parse::<u64>().ok()?;
        (count > 1000).then_some(router)
    })
}

const FORWARD: &str = "forward --rounds 1 --seconds 2 --level lines=two --level streams=one --level rps=off";

#[test]
fn a_stalled_interface_is_named_with_its_counters() {
    let Some(()) = is_possible(&["tc"]) else { return };
    for (hold, messages) in [
        // A queue of no room: what is forwarded goes in, and nothing comes out.
        (
            "tc qdisc add dev out0 root pfifo limit 0",
            &[
                "nothing could be measured: stalled: none of 32 frames came out",
                "tx_packets of the router's out0 stands still at",
                "while rx_packets of wan0 went up by 32",
                "setting it down and up again does not help",
                "tc -s qdisc show dev out0",
            ][..],
        ),
        // The kernel makes this route anew when the interface comes up.
        (
            "ip route del 198.18.0.0/15 dev out0",
            &["router's out0 stands still", "set down and up again, it works"],
        ),
    ] {
        let child = started(FORWARD);
        within(&forwarding(child.id()), &hold.split(' ').collect::<Vec<_>>()).ends(0);
        let output = ended(child);
        for message in messages {
            output.is(&hold, 1, message);
        }
    }
}

fn two_cpus() -> Result<(), testkit::Missing> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    if cpus >= 2 { Ok(()) } else { Err(testkit::Missing("this machine has one CPU".to_owned())) }
}

#[test]
fn pps_measures_senders_and_receivers() {
    let Some(()) = is_possible(&["ethtool"]) else { return };
    let report = report("pps --level senders=1,2 --level receivers=2 --level queues=2");
    assert_figures(&report, 4, &["received", "sent"]);
    for cell in report["cells"].as_array().expect("cells") {
        let median = |metric: &str| cell["figures"][metric]["median"].as_f64().expect("a figure");
        assert!((0.0..=1.0).contains(&median("loss")), "{cell:#}");
    }
}

#[test]
fn pppoe_measures_a_session_and_the_bare_line() {
    let Some(()) = is_possible(&["iperf3", "ethtool", "ping"]) else { return };
    let report = report("pppoe --level path=bare-off,batch");
    assert_figures(&report, 2, &["up_1", "down_1", "up_8", "down_8", "round_trip", "round_trip_back"]);
    for memory in ["serve_memory", "connect_memory"] {
        let memory = &report["cells"][1]["figures"][memory]["median"];
        assert!(memory.as_f64().is_some_and(|bytes| bytes > 1e5), "{report:#}");
    }
}

#[test]
fn a_table_and_a_page_have_the_figures() {
    let Some(()) = is_possible(&["ethtool"]) else { return };
    let folder = TempDir::new().expect("a folder");
    let page = folder.path().join("pps.html");
    let path = page.to_str().expect("UTF-8");
    let only = "--level senders=1 --level receivers=1 --level queues=1";
    let output = run(&format!("pps --rounds 1 --seconds 0.2 --html {path} {only}"));
    output.ends(0).says("received, ").says("cpu (machine), CPUs").says("1 round from");
    let text = output.says("fewer than 3 rounds show neither").says("The page is in").text();
    // One figure has no range.
    assert!(!text.contains('[') && text.contains("Figures of one round"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100 || line.contains("The page")), "{text}");
    let html = fs::read_to_string(page).expect("a page");
    for expected in [
        "<svg class=\"spread\"",
        "Warning: fewer than 3 rounds show",
        "Every figure",
        SCHEMA,
        "default-src 'none'",
        "Linux ",
    ] {
        assert!(html.contains(expected), "{expected}");
    }
    assert!(!html.contains("<script") && !html.contains("NaN"));
}

/// Scenarios that take long.
const LONG: [&str; 3] = [
    "vlan --level tags=ad+q --level by=rxlane --rounds 50 --json",
    "pppoe --level path=batch --rounds 50 --json",
    "forward --level lines=trunk-rxlane --rounds 50 --seconds 5 --json",
];

/// The least of `pps`.
const LEAST: &str = "--level senders=1 --level receivers=1 --level queues=1 --level gro=off";

/// One of them, once its programs are there: two have sockets in its folder.
fn begun(words: &str) -> Child {
    let child = started(words);
    let has_programs = || {
        let folders = left_by(child.id()).into_iter().filter(|path| path.parent() == Some(Path::new("/run")));
        let entries =
            |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        folders.flat_map(entries).flat_map(entries).count() >= 2
    };
    wait_until("its programs are there", has_programs);
    child
}

#[test]
fn a_signal_ends_it_and_leaves_nothing() {
    let Some(()) = is_possible(&["iperf3", "ethtool", "ping"]) else { return };
    let forwards = fs::read_to_string("/proc/sys/net/ipv4/ip_forward").expect("a sysctl");
    for (name, arguments) in [("INT", LONG[0]), ("TERM", LONG[0]), ("INT", LONG[1]), ("INT", LONG[2])] {
        let child = begun(arguments);
        signal(child.id(), name);
        // In the first cell nothing was measured yet.
        ended(child).is(&(name, arguments), 1, "interrupted before anything was measured");
    }
    assert_eq!(fs::read_to_string("/proc/sys/net/ipv4/ip_forward").expect("a sysctl"), forwards);
}

/// Deletes the sink's interface in the midst of a measurement, whichever round that is.
fn delete_under_load(child: &mut Child) {
    let receives = |namespace: &Path| {
        let output = within(namespace, &["cat", "/proc/net/dev"]);
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().find_map(|line| line.trim().strip_prefix("wan0:"));
        let frames =
            line.and_then(|line| line.split_whitespace().nth(1)).and_then(|count| count.parse::<u64>().ok());
        frames.is_some_and(|frames| frames > 1000)
    };
    let delete =
        |namespace: &Path| within(namespace, &["ip", "link", "delete", "dev", "wan0"]).status.success();
    let is_sink = |path: &PathBuf| path.to_string_lossy().ends_with("-far");
    wait_until("the sink receives, and is deleted", || {
        assert!(child.try_wait().expect("its state").is_none(), "it ended before");
        left_by(child.id()).iter().filter(|path| is_sink(path)).any(|sink| receives(sink) && delete(sink))
    });
}

#[test]
fn a_cell_that_loses_its_interface_in_one_round_fails_in_it_and_ends_in_1() {
    let Some(()) = is_possible(&["ethtool"]) else { return };
    // Of two cells, since it is over where the only one fails at first.
    let mut child = started(
        "pps --rounds 3 --seconds 0.5 --level senders=1,2 --level receivers=1 --level queues=1 --level gro=off",
    );
    delete_under_load(&mut child);
    let output = child.wait_with_output().expect("its end");
    output.ends(1).says("1 of 3").says("a measurement failed, in 1 of 2 cells").says("looking for wan0: ");
}

/// As many processes as a machine's limits allow differ: with few no thread can be started.
#[test]
fn where_no_thread_can_be_started_that_is_said_and_nothing_is_left() {
    let Some(()) = is_possible(&["ethtool", "setpriv", "unshare", "prlimit"]) else { return };
    let probed =
        Command::new("unshare").args(["-Urn", "true"]).output().is_ok_and(|output| output.status.success());
    let probed =
        if probed { Ok(()) } else { Err(testkit::Missing("no user namespace can be made here".to_owned())) };
    let Some(()) = require("userns", probed) else { return };
    let script = "mount -t tmpfs t /run && prlimit --nproc=8 \"$0\" bench pps --only senders=2 --only queues=1 --only receivers=2 \
                  --only gro=off --rounds 1 --seconds 0.1; code=$?; ls /run/netns; exit $code";
    let mut command = Command::new("setpriv");
    // Limits do not hold for root.
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    command.args(["unshare", "-Urnmp", "--fork", "sh", "-c", script]);
    let folder = TempDir::new().expect("a folder");
    let program = open_copy(Path::new(BINARY), folder.path()).expect("a copy");
    let output = command.arg(program).output().expect("it runs");
    output.ends(3).says("ulimit -u");
    assert!(output.stdout.is_empty(), "{}", output.text());
}

#[test]
fn what_was_measured_before_a_signal_is_reported() {
    let Some(()) = is_possible(&["ethtool"]) else { return };
    let child = started(&format!("pps --rounds 500 --seconds 0.2 --json {LEAST}"));
    let pid = child.id();
    // Names are numbered: two of the look at the beginning, two of each round.
    let number = |path: &PathBuf| -> Option<u32> {
        let name = path.file_name()?.to_str()?.strip_prefix(&format!("rxlane-scene-{pid}-"))?;
        name.split('-').nth(1)?.parse().ok()
    };
    wait_until("some rounds are over", || {
        left_by(pid).iter().filter_map(number).max().is_some_and(|number| number >= 12)
    });
    signal(child.id(), "INT");
    let report = ended(child).ends(1).json();
    assert_eq!(report["complete"], false, "{report:#}");
    assert!(report["cells"][0]["figures"]["received"]["raw"][0].is_f64(), "{report:#}");
}

/// The process that sweeps behind one that is killed.
fn sweeper_of(pid: u32) -> Option<String> {
    let arguments = format!("\0bench\0sweep\0{pid}\0");
    let processes = fs::read_dir("/proc").expect("processes").flatten();
    let is_it = |entry: &fs::DirEntry| {
        fs::read_to_string(entry.path().join("cmdline")).is_ok_and(|line| line.contains(&arguments))
    };
    processes.into_iter().find(is_it).map(|entry| entry.file_name().to_string_lossy().into_owned())
}

/// In a `/run` of its own, where nobody else sweeps.
#[test]
fn what_a_killed_one_left_goes_by_itself() {
    let Some(()) = is_possible(&["iperf3", "ethtool", "ping", "unshare"]) else { return };
    let script = "mount -t tmpfs t /run || exit 4
        \"$0\" bench \"$@\" & scenario=$!
        left() { ls -d /run/rxlane-scene-$scenario-* /run/netns/rxlane-scene-$scenario-* 2>/dev/null; }
        until [ \"$(ls /run/rxlane-scene-$scenario-*/*/ 2>/dev/null | wc -l)\" -ge 2 ]; do kill -0 $scenario || exit 5; sleep 0.02; done
        kill -KILL $scenario; wait $scenario
        for each in $(seq 600); do [ -n \"$(left)\" ] || exit 0; sleep 0.1; done
        left; exit 6";
    for arguments in LONG {
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", script, BINARY]).args(arguments.split(' '));
        command.stdin(Stdio::null()).output().expect("unshare").is(&arguments, 0, "");
    }
}

/// What is pinned of interfaces in the namespaces that a scenario has made.
fn pins_of(pid: u32) -> Vec<PathBuf> {
    let namespaces = left_by(pid).into_iter().filter(|path| path.parent() == Some(Path::new("/run/netns")));
    let inodes = namespaces.filter_map(|path| Some(fs::metadata(path).ok()?.ino()));
    let folders = inodes.map(|inode| Path::new("/sys/fs/bpf/rxlane/steer").join(inode.to_string()));
    let pins = folders.flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
    pins.map(|entry| entry.path()).filter(|path| path.join("link").exists()).collect()
}

/// Programs that are killed leave their pins, and those keep threads of the kernel.
#[test]
fn what_a_killed_one_steered_is_not_steered_any_more() {
    let Some(()) = is_possible(&[]) else { return };
    let Some(()) = require("two CPUs", two_cpus()) else { return };
    let mut child = rxlane("steer --level way=xdp --level frames=plain --rounds 50 --seconds 20");
    let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
    let pins = wait_for("it steers", || {
        assert!(child.try_wait().expect("a status").is_none(), "it ends without steering");
        Some(pins_of(child.id())).filter(|pins| !pins.is_empty())
    });
    for namespace in left_by(child.id()).iter().filter_map(|path| path.file_name()) {
        let pids = Command::new("ip").args(["netns", "pids"]).arg(namespace).output().expect("ip");
        let kill = Command::new("kill")
            .arg("-KILL")
            .args(String::from_utf8_lossy(&pids.stdout).split_whitespace())
            .output();
        kill.expect("kill");
    }
    signal(child.id(), "KILL");
    child.wait().expect("its end");
    wait_until(format!("{pins:?} go"), || !pins.iter().any(|path| path.exists()));
}

#[test]
fn a_sweeper_that_somebody_stopped_holds_nothing_up() {
    let Some(()) = is_possible(&["iperf3", "ethtool", "ping"]) else { return };
    let child = begun(LONG[1]);
    let sweeper = sweeper_of(child.id()).expect("it sweeps");
    signal(&sweeper, "STOP");
    signal(child.id(), "TERM");
    child.wait_with_output().expect("its end").ends(1);
    assert!(!Path::new("/proc").join(sweeper).exists());
}

#[test]
fn what_one_left_that_was_killed_with_its_sweeper_goes_with_the_next() {
    let Some(()) = is_possible(&["iperf3", "ethtool", "ping"]) else { return };
    let killed = LONG.map(|arguments| {
        let mut child = begun(arguments);
        let sweeper = sweeper_of(child.id()).expect("it sweeps");
        signal(&sweeper, "KILL");
        signal(child.id(), "KILL");
        child.wait().expect("its end");
        child.id()
    });
    report(&format!("pps {LEAST}"));
    // Others may be about to sweep it.
    let is_left = |pid: &u32| {
        let processes = Command::new("pgrep").args(["-f", &format!("rxlane-scene-{pid}-")]).output();
        !left_by(*pid).is_empty() || processes.is_ok_and(|processes| !processes.stdout.is_empty())
    };
    wait_until(format!("what {killed:?} left goes"), || !killed.iter().any(is_left));
}

#[test]
fn what_is_missing_or_wrong_is_said() {
    for (words, expected) in [
        ("vlan --only colour=red", "--level colour: the factors are tags, by, offloads, rps"),
        ("vlan --level tags=x", "--level tags=x: tags is one of none, q, ad+q, q+q"),
        ("vlan --level tags", "is not FACTOR=LEVEL"),
        ("vlan --page /tmp", "--html /tmp is a directory"),
        ("vlan --html - --json", "both want standard output"),
        ("steer --rounds 0", "0 is not in 1..=1000"),
        ("pps --seconds 0", "'0' for '--seconds <SECONDS>': 0.001 to 320000000 seconds are possible"),
        ("pps --interface ", "a value is required for '--interface <NAME>'"),
        ("forward --cable eth1", "is not LINE:ROUTER"),
        ("forward --cable a:b --cable c:b", "--cable names b twice"),
        ("forward --level moderation=3", "--level moderation: the factors are lines, streams, rps"),
    ] {
        run(words).is(&words, 2, expected);
    }
    let Some(()) = is_possible(&["iperf3", "ethtool"]) else { return };
    run("vlan --level tags=none --level by=rxlane").ends(2);
    run("forward --cable nothing0:nothing1").ends(2).says("there is no interface nothing0 here");
    // Nothing but ip.
    let folder = TempDir::new().expect("a folder");
    let ip = program("ip").expect("probed");
    std::os::unix::fs::symlink(ip, folder.path().join("ip")).expect("a link");
    for (scenario, missing) in [
        ("vlan", "iperf3 is missing (Debian: apt install iperf3)"),
        ("steer", "sh is missing (Debian: apt install dash)"),
    ] {
        let output = rxlane(scenario).env("PATH", folder.path()).output().expect("it runs");
        output.is(&scenario, 3, missing);
    }
}
