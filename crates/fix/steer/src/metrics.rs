//! Counters of an attachment in the text format of Prometheus (exposition format 0.0.4).
//!
//! Names never change once released; units are in them. Counters begin at 0 with the attachment, those of moves and
//! drops with the keeper.

mod server;

pub use server::{Server, unservable};

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use xdp::layout::{BUCKETS, Bucket, Reason};
use xdp::{Counters, Mode};

#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    pub interface: &'a str,
    pub mode: Mode,
    pub counters: &'a Counters,
    /// Frames found lost, by the CPU whose queue was full.
    pub dropped: &'a BTreeMap<u32, u64>,
    pub buckets: &'a [Bucket; BUCKETS],
    pub moves: u64,
    pub waiting: usize,
    /// The busiest CPU's load over the mean, where it is known.
    pub imbalance: Option<f64>,
}

pub fn text(page: &Page<'_>) -> String {
    let interface = [("interface", page.interface)];
    let mut out = Text { out: String::new(), interface: page.interface };
    out.family("rxlane_steer_info", "gauge", "Steering is on; how the program is run.");
    out.sample("rxlane_steer_info", &[interface[0], ("mode", page.mode.name())], 1);

    out.family("rxlane_steer_frames_total", "counter", "Frames by disposition.");
    for reason in Reason::ALL {
        let frames = page.counters.reason(reason);
        out.sample("rxlane_steer_frames_total", &[interface[0], ("reason", reason.name())], frames);
    }

    let targets = &page.counters.targets;
    out.family("rxlane_steer_cpu_queued_frames_total", "counter", "Frames queued to the CPU.");
    targets
        .iter()
        .for_each(|target| out.of_cpu("rxlane_steer_cpu_queued_frames_total", target.cpu, target.sent));
    out.family(
        "rxlane_steer_cpu_frames_total",
        "counter",
        "Frames that the CPU works on: out of its queue, or received on it.",
    );
    targets
        .iter()
        .for_each(|target| out.of_cpu("rxlane_steer_cpu_frames_total", target.cpu, target.frames()));
    out.family(
        "rxlane_steer_cpu_dropped_frames_total",
        "counter",
        "Frames found to be lost because the queue of the CPU was full.",
    );
    for target in targets {
        let dropped = page.dropped.get(&target.cpu).copied().unwrap_or(0);
        out.of_cpu("rxlane_steer_cpu_dropped_frames_total", target.cpu, dropped);
    }
    out.family("rxlane_steer_cpu_buckets", "gauge", "Buckets that should have the CPU.");
    for target in targets {
        let buckets = page.buckets.iter().filter(|bucket| bucket.cpu == target.cpu).count();
        out.of_cpu("rxlane_steer_cpu_buckets", target.cpu, buckets);
    }

    out.family("rxlane_steer_bucket_moves_total", "counter", "Buckets moved to another CPU.");
    out.sample("rxlane_steer_bucket_moves_total", &interface, page.moves);
    out.family("rxlane_steer_buckets_waiting", "gauge", "Buckets that wait for their move.");
    out.sample("rxlane_steer_buckets_waiting", &interface, page.waiting);
    if let Some(imbalance) = page.imbalance {
        let help = "Load of the busiest target CPU over the mean of all, 1 at best.";
        out.family("rxlane_steer_imbalance_ratio", "gauge", help);
        out.sample("rxlane_steer_imbalance_ratio", &interface, imbalance);
    }
    out.out
}

struct Text<'a> {
    out: String,
    interface: &'a str,
}

impl Text<'_> {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string does not fail.
        let _ = writeln!(self.out, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn of_cpu(&mut self, name: &str, cpu: u32, value: impl Display) {
        let cpu = cpu.to_string();
        self.sample(name, &[("interface", self.interface), ("cpu", &cpu)], value);
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let label = |(name, value): &(&str, &str)| format!("{name}=\"{}\"", escaped(value));
        let labels: Vec<String> = labels.iter().map(label).collect();
        let _ = writeln!(self.out, "{name}{{{}}} {value}", labels.join(","));
    }
}

/// A label's value: backslash, quotation mark and line feed are escaped.
fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use xdp::Target;

    #[test]
    fn a_page_has_every_family_once_and_escaped_labels() {
        let mut arrived = Box::new([0; BUCKETS]);
        arrived[7] = 90;
        let target = Target { cpu: 3, sent: 100, arrived, strange: 0, kept: 7 };
        let mut counters = Counters {
            taken_ns: 0,
            reasons: Default::default(),
            sent: Box::new([0; BUCKETS]),
            arrived: Box::new([0; BUCKETS]),
            kept: Box::new([0; BUCKETS]),
            targets: vec![target],
            receivers: Vec::new(),
        };
        counters.reasons[Reason::Steered as usize] = 100;
        let page = Page {
            interface: "we\"ird\\0",
            mode: Mode::Native,
            counters: &counters,
            dropped: &BTreeMap::from([(3, 8)]),
            buckets: &[Bucket { cpu: 3, ..Bucket::default() }; BUCKETS],
            moves: 5,
            waiting: 1,
            imbalance: Some(1.25),
        };
        let text = text(&page);
        let interface = r#"interface="we\"ird\\0""#;
        for line in [
            format!("rxlane_steer_info{{{interface},mode=\"native\"}} 1"),
            format!("rxlane_steer_frames_total{{{interface},reason=\"steered\"}} 100"),
            format!("rxlane_steer_frames_total{{{interface},reason=\"pppoe-discovery\"}} 0"),
            format!("rxlane_steer_cpu_queued_frames_total{{{interface},cpu=\"3\"}} 100"),
            format!("rxlane_steer_cpu_frames_total{{{interface},cpu=\"3\"}} 97"),
            format!("rxlane_steer_cpu_dropped_frames_total{{{interface},cpu=\"3\"}} 8"),
            format!("rxlane_steer_cpu_buckets{{{interface},cpu=\"3\"}} 256"),
            format!("rxlane_steer_bucket_moves_total{{{interface}}} 5"),
            format!("rxlane_steer_buckets_waiting{{{interface}}} 1"),
            format!("rxlane_steer_imbalance_ratio{{{interface}}} 1.25"),
        ] {
            assert_eq!(text.lines().filter(|found| **found == line).count(), 1, "{line}\n{text}");
        }
        let types: Vec<&str> = text.lines().filter(|line| line.starts_with("# TYPE")).collect();
        let mut once = types.clone();
        once.dedup();
        assert_eq!((types.len(), once.len()), (9, 9));
        // What is not known is not there.
        assert!(!super::text(&Page { imbalance: None, ..page }).contains("imbalance"));
    }
}
