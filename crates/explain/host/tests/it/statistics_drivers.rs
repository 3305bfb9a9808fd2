//! `ethtool -S` of every driver known: `statistics_drivers.txt`.

use crate::read;
use rxlane_host::{Counter, Delta, Interface};

/// What a driver prints.
struct Case {
    driver: &'static str,
    /// Drops of the queues; `None` where the driver counts no frames by queue.
    drops: Option<Vec<u64>>,
    lines: Vec<&'static str>,
}

impl Case {
    fn text(&self) -> String {
        self.lines.iter().map(|line| format!("     {line}\n")).collect()
    }
}

fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let lines = include_str!("statistics_drivers.txt").lines();
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(more) = line.strip_prefix("  ") {
            cases.last_mut().expect("a driver").lines.extend(more.split(';').map(str::trim));
            continue;
        }
        let (driver, drops) = line.split_once(':').expect("a driver");
        let numbers = drops.split_whitespace().map(|drops| drops.parse().expect("a number"));
        let drops = (drops.trim() != "totals").then(|| numbers.collect());
        cases.push(Case { driver, drops, lines: Vec::new() });
    }
    cases
}

fn packets(interface: &Interface) -> Vec<(u32, Option<u64>)> {
    interface.queues.iter().map(|(&n, queue)| (n, queue.packets.as_ref().map(Counter::value))).collect()
}

#[test]
fn every_drivers_queues_are_found_and_nothing_else_is_one() {
    for case in cases() {
        let (driver, Some(drops)) = (case.driver, &case.drops) else { continue };
        for text in [format!("NIC statistics:\n{}", case.text()), case.text()] {
            let snapshot = read(&text);
            let interface = snapshot.interface("").expect("counters");
            assert_eq!(packets(interface), [(0, Some(5)), (1, Some(4))], "{driver}:\n{text}");
            let dropped: Vec<u64> =
                interface.queues.values().filter_map(|queue| Some(queue.drops.as_ref()?.value())).collect();
            assert_eq!(&dropped, drops, "{driver}:\n{text}");
        }
    }
}

#[test]
fn a_driver_without_such_counters_has_totals_and_no_queues() {
    for case in cases().into_iter().filter(|case| case.drops.is_none()) {
        let (driver, snapshot) = (case.driver, read(&case.text()));
        let interface = snapshot.interface("").expect("counters");
        assert!(interface.queues.is_empty(), "{driver}: {:?}", interface.queues.keys());
        assert_eq!(interface.totals.packets.as_ref().map(Counter::value), Some(9), "{driver}");
    }
}

#[test]
fn a_second_output_is_the_second_sample_with_or_without_headings() {
    for case in cases().into_iter().filter(|case| case.drops.is_some()) {
        let (driver, first) = (case.driver, case.text());
        let later: String = first.lines().map(|line| format!("{}\n", hundred_more(line))).collect();
        for text in [
            format!("NIC statistics:\n{first}# sample 2 at 3.0\nNIC statistics:\n{later}"),
            format!("{first}# sample 2 at 3.0\n{later}"),
            format!("$ ethtool -S eth0\n{first}$ ethtool -S eth0\n{later}"),
        ] {
            for queue in read(&text).interfaces.first().expect("one").queues.values() {
                let delta = queue.packets.as_ref().expect("counted").delta();
                // A sum has three parts.
                let is_right = matches!(delta, Delta::Counted(100 | 300));
                assert!(is_right, "{driver}: {delta:?}\n{text}");
            }
        }
    }
}

fn hundred_more(line: &str) -> String {
    let (name, value) = line.rsplit_once(':').expect("a counter");
    // A heading's value is the number of the queue.
    let more = if name.ends_with('#') { 0 } else { 100 };
    format!("{name}: {}", value.trim().parse::<u64>().expect("a number") + more)
}
