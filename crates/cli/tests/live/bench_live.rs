//! `rxlane bench send` and `recv` between network namespaces.

use crate::machine::{signal, two_ends};
use crate::run::{BINARY, Ended, Report};
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};
use testkit::netns::Namespace;
use testkit::{program, require, wait_until};

const SENDER: &str = "198.18.0.1";
pub const SINK: &str = "198.18.0.2";

/// Two namespaces with a pair between them; each end is wan0.
pub struct Ends {
    pub near: Namespace,
    pub far: Namespace,
}

impl Ends {
    pub fn new() -> Option<Ends> {
        let (near, far) = two_ends(1600, 2)?;
        for (end, address) in [(&near, SENDER), (&far, SINK)] {
            end.run("ip", &["addr", "add", &format!("{address}/24"), "dev", "wan0"]).expect("an address");
        }
        Some(Ends { near, far })
    }

    fn send(&self, arguments: &[&str]) -> Output {
        bench(&self.near, "send").args(arguments).output().expect("it runs")
    }

    /// A sink that listens.
    fn recv(&self, arguments: &[&str]) -> Child {
        let mut sink = bench(&self.far, "recv");
        let sink =
            sink.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
        let listens = || {
            let table = self.far.inside(|| std::fs::read_to_string("/proc/thread-self/net/udp6"));
            table.is_ok_and(|table| table.contains(":1C10 "))
        };
        wait_until("the sink listens", listens);
        sink
    }
}

pub fn bench(namespace: &Namespace, command: &str) -> Command {
    let mut bench = namespace.command(BINARY);
    bench.args(["bench", command]);
    bench
}

#[test]
fn what_was_sent_arrives_and_is_reported_in_json() {
    let Some(ends) = Ends::new() else { return };
    let sink = ends.recv(&["--once", "--json", "--workers", "2", "--interface", "wan0", "--line-rate", "1G"]);
    let arguments =
        ["--count", "20k", "--rate", "20k", "--payload", "32", "--source-ports", "8", "--workers", "2"];
    let sent = ends.send(&[&[SINK, "--json"][..], &arguments].concat());
    sent.ends(0);
    let received = sink.wait_with_output().expect("its end");
    received.ends(0);
    let (sent, received) = (sent.json(), received.json());
    for (report, scenario) in [(&sent, "send"), (&received, "recv")] {
        assert_eq!((&report["schema"], &report["scenario"]), (&"rxlane.bench/1".into(), &scenario.into()));
        assert!(report["machine"]["cpus"].as_u64().is_some_and(|cpus| cpus > 0), "{report:#}");
        let run = &report["runs"][0];
        run.has(json!({"packets": 20_000, "flows": 8}));
        // 14 + 20 + 8 + 32 bytes, and 24 around them.
        let each =
            run["bits_per_second"].as_f64().expect("known") / run["pps"].as_f64().expect("known") / 8.0;
        assert!((each - 98.0).abs() < 0.01, "{report:#}");
        let cpu = &run["cpu"][0];
        assert!(["user", "system", "softirq", "idle"].iter().all(|part| cpu[part].is_f64()), "{report:#}");
        let intervals = run["intervals"].as_array().expect("seconds");
        let total: u64 = intervals.iter().filter_map(|interval| interval["packets"].as_u64()).sum();
        assert_eq!(total, 20_000, "{report:#}");
    }
    let run = &received["runs"][0];
    run.has(json!({"lost": 0, "reordered": 0, "duplicates": 0, "foreign": 0, "before_first": 0, "loss": 0.0,
                   "loss_is_complete": true}));
    assert!(run["line_share"].as_f64().is_some_and(|share| share > 0.0 && share < 0.1), "{received:#}");
    assert!(sent["runs"][0]["loss"].is_null() && sent["runs"][0]["rate_held"].is_boolean(), "{sent:#}");
    // The kernel says 10 Gbit/s of any veth.
    assert!(sent["runs"][0]["line_rate"].is_null(), "{sent:#}");
}

#[test]
fn a_signal_ends_both_with_their_summaries() {
    let Some(ends) = Ends::new() else { return };
    let sink = ends.recv(&[]);
    let mut sender = bench(&ends.near, "send");
    let mut sender = sender.args([SINK, "--rate", "1k"]).stdout(Stdio::piped()).spawn().expect("it runs");
    let mut lines = BufReader::new(sender.stdout.take().expect("its output")).lines();
    // That nothing ends it, a heading and two seconds.
    let seen: Vec<String> = lines.by_ref().take(4).map(|line| line.expect("a line")).collect();
    assert!(seen[0] == "Sending for 10 seconds (--seconds); ^C ends it.", "{seen:?}");
    assert!(seen[1].contains("packets/s") && !seen[1].contains("lost"), "{seen:?}");
    // As timeout(1) does, which sends to the process and to its group.
    signal(sender.id(), "INT");
    signal(sender.id(), "INT");
    let rest: Vec<String> = lines.map(|line| line.expect("a line")).collect();
    assert!(sender.wait().expect("its end").success());
    assert!(
        rest.iter().any(|line| line == "Summary") && rest.iter().any(|line| line.contains("rate was")),
        "{rest:?}"
    );
    signal(sink.id(), "INT");
    sink.wait_with_output()
        .expect("its end")
        .ends(0)
        .says("Receiving on [::]:7184")
        .says("lost   reordered")
        .says("0 of what was sent, 0 %")
        .says("softirq");
}

#[test]
fn nothing_sent_or_received_is_no() {
    let Some(ends) = Ends::new() else { return };
    ends.recv(&["--seconds", "0.3"]).wait_with_output().expect("its end").ends(1);
    // No number, no loss.
    let sink = ends.recv(&["--once", "--json"]);
    ends.send(&[SINK, "--payload", "10", "--count", "100"]).ends(0);
    let received = sink.wait_with_output().expect("its end");
    let run = &received.json()["runs"][0];
    assert_eq!((&run["packets"], &run["unnumbered"]), (&100.into(), &100.into()), "{run:#}");
    assert!(run["loss"].is_null() && run["lost"].is_null() && run["reordered"].is_null(), "{run:#}");
}

#[test]
fn frames_go_out_from_a_seed_and_from_a_capture() {
    let Some(ends) = Ends::new() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let capture = folder.path().join("line.pcap");
    let capture = capture.to_str().expect("UTF-8");
    let made = Command::new(BINARY)
        .args(["gen", "--encap", "ad:100,q:200,pppoe", "--frames", "300", "-o", capture])
        .output()
        .expect("it runs");
    assert!(made.status.success(), "{}", made.text());
    let counter = || -> u64 {
        let path = "/sys/class/net/wan0/statistics/rx_packets";
        let text = ends.far.inside(|| std::fs::read_to_string(path)).expect("a counter");
        text.trim().parse().expect("a number")
    };
    let cases =
        [vec!["--encap", "ad:100,q:200,pppoe", "--size", "64", "--pool", "100"], vec!["--capture", capture]];
    for case in cases {
        let before = counter();
        let sent = ends
            .send(&[&["--raw", "wan0", "--count", "1000", "--workers", "2", "--json"], &case[..]].concat());
        sent.ends(0);
        sent.json()["runs"][0].has(json!({"name": "frames", "packets": 1000}));
        assert_eq!(counter() - before, 1000, "{case:?}");
    }
}

#[test]
fn queues_of_the_interface_are_reported() {
    let Some(_) = require("ethtool", program("ethtool")) else { return };
    let Some(ends) = Ends::new() else { return };
    // Only with NAPI does veth count its queues.
    ends.far.run("ethtool", &["-K", "wan0", "gro", "on"]).expect("GRO");
    ends.near.run("ethtool", &["-K", "wan0", "tso", "off"]).expect("no TSO");
    // A counter that stands at zero may be one that nothing is counted by.
    ends.send(&[SINK, "--count", "100"]);
    let sink = ends.recv(&["--once", "--json", "--interface", "wan0"]);
    ends.send(&[SINK, "--count", "20k", "--rate", "20k"]);
    let received = sink.wait_with_output().expect("its end").json();
    let queues = received["runs"][0]["queues"].as_array().expect("queues").clone();
    let frames: u64 = queues.iter().filter_map(|queue| queue["frames"].as_u64()).sum();
    assert!(queues.len() == 2 && frames >= 20_000, "{received:#}");
}

#[test]
fn what_is_wrong_or_missing_is_said() {
    let Some(ends) = Ends::new() else { return };
    let wrong: [(&[&str], &str); 15] = [
        (&[], "TARGET (an address or name), or --raw INTERFACE"),
        (&["--raw", ""], "a value is required for '--raw <INTERFACE>'"),
        (&[SINK, "--payload", "65508"], "65508 is not in 0..=65507"),
        (&[SINK, "--cpus", "999", "--count", "1"], "CPU 999 cannot be chosen: this process may use 0"),
        (&[SINK, "--encap", "q:1"], "cannot be used with"),
        (&[SINK, "--raw", "wan0"], "cannot be used with"),
        (&["--raw", "wan0", "--gso", "2"], "cannot be used with"),
        (&[SINK, "--workers", "2", "--source-ports", "1"], "fewer than 2 threads"),
        (&[SINK, "--payload", "1400", "--gso", "60"], "60 segments of 1400 bytes"),
        (&[SINK, "--interface", "nothing0"], "there is no interface nothing0"),
        (&[SINK, "--overhead", "4294967295"], "4294967295 is not in 0..=1024"),
        // Of all that goes with --raw alone, what was typed.
        (&[SINK, "--mtu=1400"], "'[TARGET]...' cannot be used with '--mtu <"),
        (
            &[SINK, "--size", "64", "--flows", "3"],
            "'[TARGET]...' cannot be used with:\n  --size <SIZE>\n  --flows <N>\n\n",
        ),
        (&["--raw", "nothing0"], "nothing0"),
        (
            &["--raw", "wan0", "--mtu", "9000", "--size", "9000"],
            "wan0 lets 1600 out: `ip link set dev wan0 mtu 9000` makes room",
        ),
    ];
    for (arguments, expected) in wrong {
        ends.send(arguments).is(&arguments, 2, expected);
    }
    ends.send(&["192.0.2.1"]).ends(3).says("cannot send to 192.0.2.1:7184");
}
