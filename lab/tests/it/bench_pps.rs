//! `rxlane bench pps --interface` on stock drivers: what settings do to queues and interrupts, what drivers refuse, and that
//! everything is as it was afterwards, however it ended. Emulated time says nothing about speed, and no speed is looked at.

use crate::pool::{Pool, Taken};
use crate::steer::rxlane;
use crate::{LONG, vectors};
use anyhow::{Context, Result, ensure};
use rxlane_lab::{Guest, Lab, Model, Nic, Output, Series, Spec};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use wire::emit::{Emit, Ethernet, Ipv4, Udp};
use wire::ethernet::{EtherType, MacAddress};
use wire::ip::IpProtocol;

/// Flows of one sender: its source ports.
const FLOWS: u16 = 256;
/// Where `rxlane bench` receives.
const PORT: u16 = 7184;
pub const OWN: [u8; 4] = [198, 18, 0, 1];
const OTHER: [u8; 4] = [198, 18, 0, 2];
/// A datagram of a test that is too short for a number.
const PAYLOAD: &[u8] = b"rxbsZZZZZZZZ";
/// Runs of many cells, on a busy machine.
const LIMIT: Duration = Duration::from_secs(400);

static GUESTS: Pool = Pool::of(1);

/// A guest with an `igb` and an `e1000e` that the harness sends to, and a pair of `igb` between it and its namespace `other`.
fn guest() -> Option<Taken> {
    let lab = Lab::require()?;
    Some(GUESTS.take(|| {
        let own = vec![Nic::new("wan", Model::Igb), Nic::new("old", Model::E1000e)];
        let nics = [own, Nic::pair("near", "far", Model::Igb).to_vec()].concat();
        let guest = lab.boot(&Spec { nics, ..Spec::new(Series::V6_12) }).expect("a guest");
        guest
            .sh("ip netns add other; ip link set far netns other; ip -n other link set lo up; \
                 ip -n other addr add 198.18.1.2/24 dev far; ip -n other link set far up; \
                 ip addr add 198.18.1.1/24 dev near; ip link set near up")
            .expect("a pair");
        guest.await_carrier("near").expect("a carrier");
        guest
    }))
}

/// Frames of [`FLOWS`] flows to the adapter, all from one address to another.
pub fn frames(station: MacAddress, destination: [u8; 4]) -> Result<Vec<Vec<u8>>> {
    let datagram = 8 + PAYLOAD.len();
    let frame = |flow: u16| -> Result<Vec<u8>> {
        let ethernet = Ethernet {
            destination: station,
            source: MacAddress([2, 0, 0, 0, 0, 1]),
            ethertype: EtherType::IPV4,
        };
        let ip = Ipv4::new(IpProtocol::UDP, OTHER.into(), destination.into(), u16::try_from(20 + datagram)?);
        let length = u16::try_from(datagram)?;
        // Without a checksum (RFC 768).
        let udp = Udp { source_port: 10_000 + flow, destination_port: PORT, length, checksum: 0 };
        let headers: [&dyn Emit; 3] = [&ethernet, &ip, &udp];
        let mut bytes = vec![0; 14 + 20 + 8];
        wire::emit::headers(&headers, &mut bytes)?;
        bytes.extend(PAYLOAD);
        // The least that an Ethernet frame has without FCS.
        bytes.resize(60, 0);
        Ok(bytes)
    };
    (0..FLOWS).map(frame).collect()
}

/// Does `work` while frames come to the adapter, `burst` at once and `rate` a second.
fn under_load<T>(guest: &Guest, nic: &str, burst: usize, rate: u32, work: impl FnOnce() -> T) -> T {
    let frames = frames(guest.mac(nic).expect("an adapter"), OWN).expect("frames");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let load = scope.spawn(|| -> Result<()> {
            let pause = Duration::from_secs(1).mul_f64(burst as f64 / f64::from(rate));
            for burst in frames.chunks(burst).cycle() {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                guest.port(nic)?.inject(burst, 0)?;
                thread::sleep(pause);
            }
            Ok(())
        });
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        is_over.store(true, Ordering::Relaxed);
        load.join().expect("no panic").expect("injected");
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The adapter up, with [`OWN`] and nobody else's.
fn up(guest: &Guest, nic: &str) {
    guest
        .sh(&format!(
            "for i in wan old; do ip addr flush dev $i; ip link set $i down; done; \
             ip addr add 198.18.0.1/24 dev {nic}; ip link set {nic} up"
        ))
        .expect("up");
    guest.await_carrier(nic).expect("a carrier");
    vectors(guest, nic).expect("vectors");
}

/// Everything that a run may change of an adapter, as the guest's own programs show it.
fn settings(guest: &Guest, nic: &str) -> Result<String> {
    let mut text = String::new();
    for words in ["-c", "-g", "-l", "-x"] {
        text.push_str(&guest.run(&["ethtool", words, nic])?.text());
    }
    text.push_str(&guest.run(&["ethtool", "-n", nic, "rx-flow-hash", "udp4"])?.text());
    text.push_str(&guest.sh(&format!(
        "for file in /proc/irq/*/{nic} /proc/irq/*/{nic}-*; do \
         [ ! -d $file ] || echo ${{file##*/}} $(cat ${{file%/*}}/smp_affinity_list); done | sort; \
         grep . /sys/class/net/{nic}/queues/rx-*/rps_cpus"
    ))?);
    Ok(text)
}

fn run(guest: &Guest, rxlane: &str, words: &str) -> Output {
    let argv: Vec<&str> = [rxlane, "bench", "pps"].into_iter().chain(words.split(' ')).collect();
    guest.run_with(&argv, &[], LIMIT).expect("it runs")
}

/// Runs it for its report, and looks that all settings are as they were.
fn report(guest: &Guest, rxlane: &str, nic: &str, words: &str) -> Value {
    let before = settings(guest, nic).expect("settings");
    let output = run(guest, rxlane, &format!("--interface {nic} --rounds 1 --json {words}"));
    assert_eq!(output.status, 0, "{words}: {}{}", output.text(), output.errors());
    guest.await_carrier(nic).expect("a carrier");
    assert_eq!(settings(guest, nic).expect("settings"), before, "{words}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["complete"], true, "{report:#}");
    for cell in report["cells"].as_array().expect("cells") {
        println!("{}", summary(cell));
        assert_eq!(cell["failures"], Value::Array(Vec::new()), "{cell:#}");
    }
    report
}

fn summary(cell: &Value) -> String {
    let figures = cell["figures"].as_object().expect("figures");
    let each = figures.iter().map(|(name, figures)| format!("{name} {}", figures["median"]));
    format!("{}: {}", cell["levels"], each.collect::<Vec<_>>().join(", "))
}

/// The figure of the cell with these levels, whatever its others are.
fn figure(report: &Value, levels: &[(&str, &str)], metric: &str) -> f64 {
    let cells = report["cells"].as_array().expect("cells");
    let is_it = |cell: &&Value| levels.iter().all(|(factor, level)| cell["levels"][factor] == *level);
    let cell = cells.iter().find(is_it).unwrap_or_else(|| panic!("no cell {levels:?}: {report:#}"));
    cell["figures"][metric]["median"].as_f64().unwrap_or_else(|| panic!("no {metric}: {cell:#}"))
}

/// The ratio of the sentence about a level compared with another, of the cells with `with`; what follows from it takes more rounds.
fn ratio(report: &Value, metric: &str, factor: &str, levels: [&str; 2], with: (&str, &str)) -> f64 {
    let is_it = |verdict: &&Value| {
        verdict["metric"] == metric
            && [&verdict["cell"], &verdict["baseline"]]
                .iter()
                .zip(levels)
                .all(|(cell, level)| cell[factor] == level && cell[with.0] == with.1)
    };
    let verdicts = report["verdicts"].as_array().expect("verdicts");
    let verdict = verdicts.iter().find(is_it).unwrap_or_else(|| panic!("no such sentence: {report:#}"));
    println!("{}", verdict["text"]);
    assert_eq!(verdict["outcome"], "unknown", "{verdict:#}");
    verdict["ratio"]["median"].as_f64().expect("a ratio")
}

#[test]
#[ignore = "make nightly"]
fn hash_fields_and_tables_of_igb_decide_how_many_queues_get_frames() {
    let (Some(guest), Some(rxlane)) = (guest(), rxlane()) else { return };
    up(&guest, "wan");
    let words = "--vary hash,table --only hash=sd,sdfn";
    let report = under_load(&guest, "wan", 16, 2000, || report(&guest, &rxlane, "wan", words));
    let busiest = |hash, table| figure(&report, &[("hash", hash), ("table", table)], "busiest");
    // One sender has one pair of addresses, and so one queue, whatever the table.
    for table in ["as-found", "one", "equal", "blocks"] {
        assert!(busiest("sd", table) > 0.999, "{report:#}");
    }
    assert!(busiest("sdfn", "one") > 0.999, "{report:#}");
    // Of 256 flows a quarter has a standard deviation of 7.
    for table in ["as-found", "equal", "blocks"] {
        assert!((0.25..0.4).contains(&busiest("sdfn", table)), "{report:#}");
        let queues = ["queue_0", "queue_1", "queue_2", "queue_3"];
        let shares = queues.map(|queue| figure(&report, &[("hash", "sdfn"), ("table", table)], queue));
        assert!(
            (shares.iter().sum::<f64>() - 1.0).abs() < 1e-6 && shares.iter().all(|share| *share > 0.1),
            "{shares:?}"
        );
    }
    for table in ["equal", "blocks"] {
        assert!(ratio(&report, "busiest", "table", [table, "one"], ("hash", "sdfn")) < 0.5);
    }
}

#[test]
#[ignore = "make nightly"]
fn intervals_are_set_and_explained_and_their_interrupts_counted() {
    let (Some(guest), Some(rxlane)) = (guest(), rxlane()) else { return };
    for nic in ["wan", "old"] {
        up(&guest, nic);
        // One by one, and farther apart than any of the intervals: each has its interrupt.
        let report = under_load(&guest, nic, 1, 400, || report(&guest, &rxlane, nic, "--vary usecs"));
        for level in ["as-found", "0", "3", "10", "50", "100"] {
            let [each, interrupts] =
                ["each", "interrupts"].map(|metric| figure(&report, &[("usecs", level)], metric));
            // The emulated adapters interrupt up to twice for a frame; a busy machine lets many frames come together.
            assert!((0.05..3.0).contains(&each) && interrupts > 10.0, "{nic} {level}: {report:#}");
        }
        let facts = report["facts"].as_array().expect("facts");
        let answer = |question: &str| {
            let fact = facts
                .iter()
                .find(|fact| fact["question"].as_str().is_some_and(|text| text.starts_with(question)));
            fact.and_then(|fact| fact["answer"].as_str())
                .unwrap_or_else(|| panic!("no {question}: {report:#}"))
        };
        assert_eq!(answer("rx-usecs 0 to"), "no moderation: an interrupt for every frame");
        assert!(answer("rx-usecs 3 to").starts_with("adaptive"), "{report:#}");
        assert_eq!(answer("usecs as found"), format!("ethtool -C {nic} rx-usecs 3"));
    }
}

#[test]
#[ignore = "make nightly"]
fn rings_and_queues_are_set_and_put_back() {
    let (Some(guest), Some(rxlane)) = (guest(), rxlane()) else { return };
    up(&guest, "wan");
    guest.sh("ethtool -N wan rx-flow-hash udp4 sdfn; ethtool -X wan weight 1 2 1; echo 2 >/sys/class/net/wan/queues/rx-3/rps_cpus").expect("set");
    let words = "--vary queues --vary ring --only queues=as-found,1,2";
    let report = under_load(&guest, "wan", 16, 2000, || report(&guest, &rxlane, "wan", words));
    assert!(figure(&report, &[("queues", "1")], "busiest") > 0.999, "{report:#}");
    let two = figure(&report, &[("queues", "2")], "busiest");
    assert!((0.5..0.7).contains(&two), "{report:#}");
    assert!(figure(&report, &[("ring", "256")], "received") > 0.0, "{report:#}");
    guest
        .sh("ethtool -N wan rx-flow-hash udp4 sd; ethtool -X wan default; echo 0 >/sys/class/net/wan/queues/rx-3/rps_cpus")
        .expect("as after boot");
}

#[test]
#[ignore = "make nightly"]
fn what_a_driver_refuses_is_reported_with_its_reason() {
    let (Some(guest), Some(rxlane)) = (guest(), rxlane()) else { return };
    up(&guest, "old");
    let words = "--vary hash --vary table --vary queues";
    let report = under_load(&guest, "old", 16, 2000, || report(&guest, &rxlane, "old", words));
    let left_out = report["left_out"].as_array().expect("left out");
    for (factor, level) in [("hash", "sdfn"), ("table", "equal"), ("queues", "2")] {
        let refused = left_out.iter().find(|left| left["levels"][factor] == level);
        let why = refused.and_then(|refused| refused["why"].as_str());
        assert!(why.is_some_and(|why| why.contains("ethtool -")), "{factor} {level}: {report:#}");
    }
    // What is found, and hashing by addresses alone, which is what the driver says that it does.
    let cells = report["cells"].as_array().expect("cells");
    assert!(cells.len() == 2 && cells[1]["levels"]["hash"] == "sd", "{report:#}");
}

/// Starts a run that stays in a cell with rx-usecs 100, and waits until the adapter has it.
fn begun(guest: &Guest, rxlane: &str) -> Result<u32> {
    let words = "--interface wan --vary usecs --only usecs=100 --seconds 60 --json";
    let argv: Vec<&str> = [rxlane, "bench", "pps"].into_iter().chain(words.split(' ')).collect();
    let pid = guest.start(&argv, "/tmp/pps")?;
    let start = Instant::now();
    let is_set = |text: String| text.lines().any(|line| line.split_whitespace().eq(["rx-usecs:", "100"]));
    while !is_set(guest.sh("ethtool -c wan")?) {
        ensure!(
            start.elapsed() < LONG,
            "it does not begin: {}",
            guest.sh("cat /tmp/pps; ethtool -c wan; cat /run/rxlane/journal")?
        );
        thread::sleep(Duration::from_millis(100));
    }
    Ok(pid)
}

/// Who puts back what a killed scenario changed, by number; the pattern is not its own words.
const SWEEPERS: &str = "grep -las 'bench.[s]weep' /proc/[0-9]*/cmdline | cut -d / -f 3";

#[test]
#[ignore = "make nightly"]
fn settings_are_put_back_by_a_signal_and_after_a_kill() {
    let (Some(guest), Some(rxlane)) = (guest(), rxlane()) else { return };
    up(&guest, "wan");
    let before = settings(&guest, "wan").expect("settings");
    under_load(&guest, "wan", 16, 500, || {
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            let pid = begun(&guest, &rxlane).expect("begun");
            let status = guest.signal(pid, signal, true).expect("its end");
            assert_eq!(status, Some(1), "{}", guest.sh("cat /tmp/pps").expect("its words"));
            assert_eq!(settings(&guest, "wan").expect("settings"), before);
        }
        let kill = |pid| guest.signal(pid, libc::SIGKILL, true).expect("its end");
        // By the process that watches it.
        kill(begun(&guest, &rxlane).expect("begun"));
        guest.sh(&format!("while [ -n \"$({SWEEPERS})\" ]; do sleep 0.1; done")).expect("swept");
        assert_eq!(settings(&guest, "wan").expect("settings"), before);
        // By somebody, where that is no more either.
        let pid = begun(&guest, &rxlane).expect("begun");
        guest.sh(&format!("kill -KILL $({SWEEPERS})")).expect("killed");
        kill(pid);
        assert_ne!(settings(&guest, "wan").expect("settings"), before);
        let output = run(&guest, &rxlane, "--undo");
        assert_eq!(
            (output.status, output.text().trim()),
            (0, "ethtool -C wan rx-usecs 3"),
            "{}",
            output.errors()
        );
        assert_eq!(settings(&guest, "wan").expect("settings"), before);
        // And by the next run, which then finds what the killed one had found.
        let pid = begun(&guest, &rxlane).expect("begun");
        guest.sh(&format!("kill -KILL $({SWEEPERS})")).expect("killed");
        kill(pid);
        let output =
            run(&guest, &rxlane, "--interface wan --vary receivers --only receivers=1 --rounds 1 --json");
        let report: Value =
            serde_json::from_slice(&output.stdout).with_context(|| output.errors()).expect("JSON");
        assert_eq!(report["cells"].as_array().map(Vec::len), Some(1), "{report:#}");
        assert_eq!(settings(&guest, "wan").expect("settings"), before);
    });
}

#[test]
#[ignore = "make nightly"]
fn another_host_sends_what_is_requested() {
    let (Some(guest), Some(rxlane)) = (guest(), rxlane()) else { return };
    let missing = run(&guest, &rxlane, "--interface near --from 198.18.1.2 --rounds 1");
    assert_eq!(missing.status, 3, "{}{}", missing.text(), missing.errors());
    let expected = "rxlane bench send 198.18.1.1 --remote";
    assert!(missing.errors().contains(expected), "{}", missing.errors());
    let argv = ["ip", "netns", "exec", "other", rxlane.as_str(), "bench", "send", "198.18.1.1", "--remote"];
    let pid = guest.start(&argv, "/tmp/send").expect("a sender");
    guest.sh("until grep -q ^Sending /tmp/send; do sleep 0.1; done").expect("it listens");
    let report = report(
        &guest,
        &rxlane,
        "near",
        "--from 198.18.1.2 --flows 64 --vary senders --vary ring --only senders=1,2",
    );
    for senders in ["1", "2"] {
        let of = |metric| figure(&report, &[("senders", senders), ("ring", "as-found")], metric);
        assert!(of("received") > 0.0 && of("sent") > 0.0 && (0.0..1.0).contains(&of("loss")), "{report:#}");
    }
    let other = run(&guest, &rxlane, "--interface wan --from 198.18.1.2 --rounds 1");
    assert_eq!(other.status, 2, "{}{}", other.text(), other.errors());
    assert!(other.errors().contains("--interface near"), "{}", other.errors());
    assert_eq!(guest.signal(pid, libc::SIGINT, true).expect("its end"), Some(0));
    let said = guest.sh("cat /tmp/send").expect("its words");
    assert_eq!(said.lines().filter(|line| line.contains("198.18.1.1 asked for ")).count(), 4, "{said}");
}
