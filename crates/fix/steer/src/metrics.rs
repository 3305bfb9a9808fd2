//! What steering counts, as metrics.
//!
//! Counters begin at 0 with the attachment, those of moves and drops with the daemon.

use crate::status::Status;
use service::metrics::Page;
use std::collections::BTreeMap;
use xdp::Counters;
use xdp::layout::{BUCKETS, Bucket, Reason};

/// What is counted of an attachment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Steering<'a> {
    /// Its interface.
    pub interface: &'a str,
    /// How the program is run.
    pub mode: &'a str,
    /// Frames by disposition.
    pub reasons: Vec<(&'a str, u64)>,
    /// The CPUs to which frames are steered.
    pub cpus: Vec<Target>,
    /// Buckets moved to another CPU.
    pub moves: u64,
    /// Buckets that wait for their move.
    pub waiting: usize,
    /// The busiest CPU's load over the mean, where it is known.
    pub imbalance: Option<f64>,
}

/// What is counted of a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// Its number.
    pub cpu: u32,
    /// Frames queued to it, where they are known.
    pub queued: Option<u64>,
    /// Frames that it works on: out of its queue, or received on it.
    pub frames: u64,
    /// Frames found lost because its queue was full.
    pub dropped: u64,
    /// Buckets that should have it.
    pub buckets: usize,
}

impl<'a> Steering<'a> {
    /// By the daemon of the attachment; `dropped`: frames found lost, by the CPU whose queue was full.
    pub fn counted(
        interface: &'a str,
        mode: xdp::Mode,
        counters: &Counters,
        dropped: &BTreeMap<u32, u64>,
        buckets: &[Bucket; BUCKETS],
    ) -> Steering<'a> {
        let target = |target: &xdp::Target| Target {
            cpu: target.cpu,
            queued: Some(target.sent),
            frames: target.frames(),
            dropped: dropped.get(&target.cpu).copied().unwrap_or(0),
            buckets: buckets.iter().filter(|bucket| bucket.cpu == target.cpu).count(),
        };
        Steering {
            interface,
            mode: mode.name(),
            reasons: Reason::ALL.map(|reason| (reason.name(), counters.reason(reason))).to_vec(),
            cpus: counters.targets.iter().map(target).collect(),
            ..Steering::default()
        }
    }

    /// By a status.
    pub fn of(status: &'a Status) -> Steering<'a> {
        let cpus = status.cpus.iter().map(|row| Target {
            cpu: row.cpu,
            queued: None,
            frames: row.frames,
            dropped: row.drops,
            buckets: row.buckets,
        });
        Steering {
            interface: &status.interface,
            mode: status.mode,
            reasons: status.reasons.iter().map(|row| (row.reason, row.frames)).collect(),
            cpus: cpus.collect(),
            moves: status.moves,
            waiting: status.buckets.iter().filter(|bucket| bucket.waiting).count(),
            imbalance: None,
        }
    }

    /// Adds it to a page.
    pub fn add_to(&self, page: &mut Page) {
        let interface = ("interface", self.interface);
        page.gauge("rxlane_steer_info", "Steering is on; how the program is run.")
            .sample(&[interface, ("mode", self.mode)], 1);
        for (reason, frames) in &self.reasons {
            page.counter("rxlane_steer_frames", "Frames by disposition.")
                .sample(&[interface, ("reason", reason)], frames);
        }
        for target in &self.cpus {
            let cpu = target.cpu.to_string();
            let labels = [interface, ("cpu", cpu.as_str())];
            page.counter("rxlane_steer_cpu_queued_frames", "Frames queued to the CPU.")
                .known(&labels, target.queued);
            let works_on = "Frames that the CPU works on: out of its queue, or received on it.";
            page.counter("rxlane_steer_cpu_frames", works_on).sample(&labels, target.frames);
            let dropped = "Frames found to be lost because the queue of the CPU was full.";
            page.counter("rxlane_steer_cpu_dropped_frames", dropped).sample(&labels, target.dropped);
            page.gauge("rxlane_steer_cpu_buckets", "Buckets that should have the CPU.")
                .sample(&labels, target.buckets);
        }
        page.counter("rxlane_steer_bucket_moves", "Buckets moved to another CPU.")
            .sample(&[interface], self.moves);
        page.gauge("rxlane_steer_buckets_waiting", "Buckets that wait for their move.")
            .sample(&[interface], self.waiting);
        let imbalance = "Load of the busiest target CPU over the mean of all, 1 at best.";
        page.gauge("rxlane_steer_imbalance_ratio", imbalance).known(&[interface], self.imbalance);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use service::metrics::Format;
    use xdp::Mode;

    #[test]
    fn what_the_daemon_counts_is_on_the_page() {
        let mut arrived = Box::new([0; BUCKETS]);
        arrived[7] = 90;
        let target = xdp::Target { cpu: 3, sent: 100, arrived, strange: 0, kept: 7 };
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
        let buckets = [Bucket { cpu: 3, ..Bucket::default() }; BUCKETS];
        let dropped = BTreeMap::from([(3, 8)]);
        let steering = Steering::counted("wan0", Mode::Native, &counters, &dropped, &buckets);
        let steering = Steering { moves: 5, waiting: 1, imbalance: Some(1.25), ..steering };
        let text = |steering: &Steering<'_>| {
            let mut page = Page::new();
            steering.add_to(&mut page);
            page.text(Format::Prometheus)
        };
        let page = text(&steering);
        for line in [
            r#"rxlane_steer_info{interface="wan0",mode="native"} 1"#,
            r#"rxlane_steer_frames_total{interface="wan0",reason="steered"} 100"#,
            r#"rxlane_steer_frames_total{interface="wan0",reason="pppoe-discovery"} 0"#,
            r#"rxlane_steer_cpu_queued_frames_total{interface="wan0",cpu="3"} 100"#,
            r#"rxlane_steer_cpu_frames_total{interface="wan0",cpu="3"} 97"#,
            r#"rxlane_steer_cpu_dropped_frames_total{interface="wan0",cpu="3"} 8"#,
            r#"rxlane_steer_cpu_buckets{interface="wan0",cpu="3"} 256"#,
            r#"rxlane_steer_bucket_moves_total{interface="wan0"} 5"#,
            r#"rxlane_steer_buckets_waiting{interface="wan0"} 1"#,
            r#"rxlane_steer_imbalance_ratio{interface="wan0"} 1.25"#,
        ] {
            assert_eq!(page.lines().filter(|found| *found == line).count(), 1, "{line}\n{page}");
        }
        // What is not known is not there.
        assert!(!text(&Steering { imbalance: None, ..steering }).contains("imbalance"));
    }
}
