//! `rxlane bench vlan`, `pppoe` and `forward` with what a machine may lack: the kernel's 8021q and PPPoE, `pppd`, adapters whose
//! interrupts can be moderated.
//!
//! An emulated machine's speed says little. What is looked at is that every cell is measured, and directions that hold anywhere.

use crate::pool::{Pool, Taken};
use crate::until;
use rxlane_lab::{Guest, Lab, Model, Nic, Series, Spec};
use serde_json::Value;
use std::time::Duration;

/// Two, since the scenarios one behind the other take longer than everything else.
static GUESTS: Pool = Pool::of(2);
/// A whole scenario in a guest on a busy machine.
const LIMIT: Duration = Duration::from_secs(1200);
/// Adapters that are joined: sender and router, for both lines.
const CABLES: [&str; 4] = ["--cable", "near0:wan0", "--cable", "far0:out0"];
const ADAPTERS: [&str; 4] = ["near0", "wan0", "far0", "out0"];

fn guest() -> Option<Taken> {
    let lab = Lab::require()?;
    Some(GUESTS.take(|| {
        let nics = [Nic::pair("near0", "wan0", Model::Igb), Nic::pair("far0", "out0", Model::Igb)].concat();
        let guest = lab.boot(&Spec { cpus: 2, nics, ..Spec::new(Series::V6_12) }).expect("a guest");
        guest
            .sh("modprobe -a tun veth 8021q pppoe ppp_async; [ -c /dev/ppp ] || mknod /dev/ppp c 108 0")
            .expect("modules");
        guest
    }))
}

/// Runs a scenario for its report, once where nothing else is said.
fn bench(guest: &Guest, rxlane: &str, words: &[&str]) -> Value {
    let once: &[&str] = if words.contains(&"--rounds") { &["--json"] } else { &["--rounds", "1", "--json"] };
    let output = guest.run_with(&[&[rxlane, "bench"], words, once].concat(), &[], LIMIT).expect("it runs");
    assert!(!output.timed_out, "{words:?} does not end");
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{words:?}: {error}: {}", output.errors()));
    let cells = report["cells"].as_array().expect("cells");
    let failures: Vec<&Value> = cells.iter().filter_map(|cell| cell["failures"].get(0)).collect();
    assert_eq!(output.status, 0, "{words:?}: {}{failures:?}", output.errors());
    let namespaces = guest.sh("ip netns list; ls -d /run/rxlane-scene-* 2>/dev/null || :").expect("a list");
    assert_eq!(namespaces, "", "{words:?} leaves something");
    report
}

/// So many cells were measured, none was left out, and each has these figures.
fn assert_whole(report: &Value, cells: usize, metrics: &[&str]) {
    assert_eq!(report["left_out"], Value::Array(Vec::new()), "{report:#}");
    let measured = report["cells"].as_array().expect("cells");
    assert_eq!(measured.len(), cells, "{report:#}");
    for cell in measured {
        for metric in metrics {
            let median = cell["figures"][metric]["median"].as_f64();
            assert!(median.is_some_and(|median| median > 0.0), "{metric}: {cell:#}");
        }
    }
}

/// The figure of the cell that has these levels.
fn figure(report: &Value, metric: &str, levels: &[(&str, &str)]) -> f64 {
    let is_it = |cell: &&Value| levels.iter().all(|(factor, level)| cell["levels"][factor] == *level);
    let cell = report["cells"].as_array().expect("cells").iter().find(is_it);
    let cell = cell.unwrap_or_else(|| panic!("no cell {levels:?}: {report:#}"));
    let figure = cell["figures"][metric]["median"].as_f64();
    figure.unwrap_or_else(|| panic!("no {metric} of {levels:?}: {cell:#}"))
}

#[test]
#[ignore = "make nightly"]
fn vlan_measures_the_kernels_8021q_in_every_cell() {
    let Some(guest) = guest() else { return };
    let Some(rxlane) = crate::steer::rxlane() else { return };
    let report = bench(&guest, &rxlane, &["vlan", "--seconds", "1"]);
    assert_whole(&report, 28, &["tcp_1", "tcp_8", "udp", "cpu_tcp_1"]);
    // is_skb_forwardable() allows a tag more than the MTU, whatever the frame has.
    let facts = report["facts"].as_array().expect("answers");
    let answers: Vec<&str> = facts.iter().filter_map(|fact| fact["answer"].as_str()).collect();
    assert_eq!(answers, ["let in", "let in", "dropped", "dropped"].repeat(4), "{report:#}");
}

/// What the verdict says of a cell compared with another that differs in one factor.
fn outcome<'r>(report: &'r Value, metric: &str, cell: &[(&str, &str)], baseline: (&str, &str)) -> &'r str {
    let (factor, level) = baseline;
    let is_it = |verdict: &&Value| {
        verdict["metric"] == metric
            && cell.iter().all(|(factor, level)| verdict["cell"][factor] == *level)
            && verdict["baseline"][factor] == level
    };
    let verdict = report["verdicts"].as_array().expect("verdicts").iter().find(is_it);
    let verdict =
        verdict.unwrap_or_else(|| panic!("no verdict on {cell:?} against {baseline:?}: {report:#}"));
    println!("{}", verdict["text"].as_str().expect("a sentence"));
    verdict["outcome"].as_str().expect("a word")
}

#[test]
#[ignore = "make nightly"]
fn offloads_pay_and_the_tags_of_a_program_cost() {
    let Some(guest) = guest() else { return };
    let Some(rxlane) = crate::steer::rxlane() else { return };
    let only = ["--only", "tags=none,q", "--only", "rps=off"];
    let report = bench(&guest, &rxlane, &[&["vlan", "--rounds", "3"][..], &only].concat());
    assert_whole(&report, 6, &["tcp_1", "tcp_8"]);
    // Super-packets go through the stack and a veth pair whole, also with a tag of the kernel: on an emulated machine that others
    // load, it is at least not the other way round.
    for (tags, by) in [("none", "nobody"), ("q", "8021q")] {
        let cell = [("tags", tags), ("by", by), ("offloads", "on")];
        assert_ne!(outcome(&report, "tcp_1", &cell, ("offloads", "off")), "less", "{tags}");
    }
    // What every frame goes through a program for; the kernel's own tags make less difference than a loaded machine.
    let cell = [("tags", "q"), ("by", "rxlane"), ("offloads", "on")];
    assert_ne!(outcome(&report, "tcp_1", &cell, ("tags", "none")), "more");
}

#[test]
#[ignore = "make nightly"]
fn pppoe_measures_pppd_in_the_kernel_and_in_user_mode() {
    let Some(guest) = guest() else { return };
    let Some(rxlane) = crate::steer::rxlane() else { return };
    let before = guest.sh("cat /etc/ppp/options; ls -l /run/ppp* 2>/dev/null || :").expect("files");
    let report = bench(&guest, &rxlane, &["pppoe", "--seconds", "2"]);
    let after = guest.sh("cat /etc/ppp/options; ls -l /run/ppp* 2>/dev/null || :").expect("files");
    assert_eq!(before, after, "the machine's own files of pppd were touched");
    assert_whole(&report, 6, &["up_1", "down_1", "up_8", "down_8", "round_trip", "round_trip_back"]);
    let of = |metric, path| figure(&report, metric, &[("path", path)]);
    for path in ["bare-off", "bare", "simple", "batch", "kernel", "user"] {
        let [up, down] = ["up_1", "down_1"].map(|metric| of(metric, path) / 1e6);
        println!("{path}: {up:.0} up, {down:.0} down Mbit/s, {:.0} µs", of("round_trip", path) * 1e6);
    }
    assert!(of("connect_memory", "kernel") > 1e5 && of("connect_memory", "user") > 1e5, "{report:#}");
    assert_eq!(report["facts"].as_array().map(Vec::len), Some(4), "{report:#}");
}

#[test]
#[ignore = "make nightly"]
fn forward_measures_both_kinds_of_trunk() {
    let Some(guest) = guest() else { return };
    let Some(rxlane) = crate::steer::rxlane() else { return };
    let words = ["forward", "--rounds", "3", "--seconds", "0.3", "--flows", "200", "--only", "rps=off"];
    let report = bench(&guest, &rxlane, &words);
    assert_whole(&report, 6, &["forwarded", "sent"]);
    // Medians of three rounds: one of three tenths of a second, in a guest that others load, may be any.
    let one_way = |lines| figure(&report, "forwarded", &[("lines", lines), ("streams", "one")]);
    let [two, kernel, program] = ["two", "trunk-8021q", "trunk-rxlane"].map(one_way);
    println!("two interfaces {two:.0}, trunk by 8021q {kernel:.0}, by rxlane link {program:.0} a second");
    // A fifth and a half were seen; the second is within what others do to three rounds.
    assert!(program < two && program < 2.0 * kernel, "{report:#}");
}

/// Interval of every adapter, and whether it is up.
fn state(guest: &Guest) -> String {
    let each =
        |adapter: &str| format!("ethtool -c {adapter} | grep rx-usecs:; cat /sys/class/net/{adapter}/flags");
    guest.sh(&ADAPTERS.map(each).join("; ")).expect("the adapters are back")
}

/// One way through two interfaces, small.
const MODERATED: [&str; 9] =
    ["forward", "--flows", "200", "--only", "rps=off", "--only", "streams=one", "--only", "lines=two"];

#[test]
#[ignore = "make nightly"]
fn forward_moderates_interrupts_and_gives_adapters_back() {
    let Some(guest) = guest() else { return };
    let Some(rxlane) = crate::steer::rxlane() else { return };
    let before = state(&guest);
    let words = [&MODERATED[..], &CABLES].concat();
    let report = bench(&guest, &rxlane, &[&words[..], &["--seconds", "0.5"]].concat());
    assert_whole(&report, 6, &["forwarded", "sent", "interrupts"]);
    let interrupts = |usecs| figure(&report, "interrupts", &[("moderation", usecs)]);
    for usecs in ["as-is", "0", "3", "10", "50", "100"] {
        let forwarded = figure(&report, "forwarded", &[("moderation", usecs)]);
        println!("rx-usecs {usecs}: {forwarded:.0} a second, {:.1} interrupts for 1000", interrupts(usecs));
    }
    assert_eq!(state(&guest), before);
    // Adapters of a killed one, and what was set, come back from its namespaces by themselves.
    let slow = [&words[..], &["--only", "moderation=100", "--seconds", "60"]].concat();
    let pid = guest.start(&[&[rxlane.as_str(), "bench"], &slow[..]].concat(), "/tmp/killed.output");
    let is_set = "n=$(ip netns list | grep -o \"[^ ]*-router\") && ip netns exec $n ethtool -c wan0 | grep -q \"rx-usecs:.100\"";
    guest.sh(&format!("{} 2>&1", until(is_set))).expect("the requested moderation is in effect");
    guest.signal(pid.expect("it starts"), libc::SIGKILL, true).expect("killed");
    let is_swept = "[ -z \"$(ls -d /run/rxlane-scene-* /run/netns/rxlane-scene-* 2>/dev/null)\" ]";
    guest.sh(&format!("{} 2>&1", until(is_swept))).expect("all is swept");
    assert_eq!(state(&guest), before);
    // Whoever uses an adapter keeps it.
    guest.sh("ip link set dev wan0 up").expect("up");
    let output = guest.run(&[&[rxlane.as_str(), "bench"], &words[..]].concat()).expect("it runs");
    guest.sh("ip link set dev wan0 down").expect("down");
    assert_eq!(output.status, 2, "{}{}", output.text(), output.errors());
    assert!(output.errors().contains("wan0 is up") && output.errors().contains("ip link set dev wan0 down"));
}

#[test]
#[ignore = "make nightly"]
fn forward_takes_one_cable_for_a_trunk() {
    let Some(guest) = guest() else { return };
    let Some(rxlane) = crate::steer::rxlane() else { return };
    let only = ["--only", "moderation=as-is", "--only", "rps=off", "--only", "streams=one"];
    let words = [&["forward", "--seconds", "0.5", "--flows", "200"][..], &only, &CABLES[..2]].concat();
    let report = bench(&guest, &rxlane, &words);
    assert_whole(&report, 2, &["forwarded", "sent", "interrupts"]);
}
