//! Results, as `--json` prints them (schema `rxlane.bench/1`).

use crate::counts::Counts;
use crate::machine::{CpuShare, Machine, QueueShare};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::time::Duration;

pub const SCHEMA: &str = "rxlane.bench/1";

#[derive(Clone, Debug, Serialize)]
pub struct Report<P> {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// What was done: `send`, `recv`.
    pub scenario: &'static str,
    pub machine: Machine,
    pub runs: Vec<Run<P>>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Run<P> {
    /// `udp-send`, `udp-recv`, `frames`.
    pub name: &'static str,
    pub parameters: P,
    #[serde(serialize_with = "seconds")]
    pub seconds: Duration,
    /// Datagrams, or frames of the raw mode, in all.
    pub packets: u64,
    /// The same a second; at a sink from the first that came to the last.
    pub pps: Option<f64>,
    /// On the line, with preamble, FCS and the gap between frames.
    pub bits_per_second: Option<f64>,
    /// Payload of UDP; of the raw mode frames without FCS.
    pub payload_bits_per_second: Option<f64>,
    /// Share of the datagrams with numbers that did not come, 0 to 1.
    pub loss: Option<f64>,
    /// Whether each flow's end was seen; if not, more may be lost behind the last that came.
    pub loss_is_complete: Option<bool>,
    pub lost: Option<u64>,
    /// Datagrams before the first that came of a flow whose beginning was not seen: lost, or sent before.
    pub before_first: Option<u64>,
    /// Datagrams that came after one with a greater number (RFC 4737).
    pub reordered: Option<u64>,
    pub duplicates: Option<u64>,
    /// Datagrams more than 4,096 behind, of which nobody knows whether they came before; they count as lost.
    pub too_late: Option<u64>,
    /// Datagrams of tests that are too short for a number.
    pub unnumbered: Option<u64>,
    pub foreign: Option<u64>,
    pub flows: Option<u64>,
    /// Datagrams for which the sockets had no room; with GRO, messages of them.
    pub socket_drops: Option<u64>,
    pub by_thread: Vec<u64>,
    /// What could not be sent, by its reason: `refused`, `unreachable`, `no-room`; `too-slow`: due at the rate and not sent.
    pub errors: BTreeMap<&'static str, u64>,
    /// Whether the requested rate was held within 1 %.
    pub rate_held: Option<bool>,
    /// The line's rate, bit/s.
    pub line_rate: Option<u64>,
    /// `bits_per_second` over it.
    pub line_share: Option<f64>,
    /// Time of each CPU while packets went.
    pub cpu: Vec<CpuShare>,
    pub interrupts_per_second: Option<f64>,
    pub queues: Vec<QueueShare>,
    /// Second by second.
    pub intervals: Vec<Interval>,
}

/// A second, or what was left at the end.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// When it ended, from the start.
    #[serde(serialize_with = "seconds")]
    pub at: Duration,
    pub packets: u64,
    /// The same a second.
    pub pps: f64,
    /// As in [`Run`].
    pub bits_per_second: f64,
    /// As in [`Run`].
    pub payload_bits_per_second: f64,
    /// Datagrams that were found missing, less those that came late after all; `None`: there were none with numbers.
    pub lost: Option<i64>,
    /// As in [`Run`].
    pub reordered: Option<u64>,
}

fn seconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((time.as_secs_f64() * 1e6).round() / 1e6)
}

impl Interval {
    /// Of what was counted at its beginning and at its end.
    pub fn between(before: &Counts, after: &Counts, at: Duration, length: Duration) -> Interval {
        let counted = after.since(before);
        let rate = |count: u64| count as f64 / length.as_secs_f64().max(1e-9);
        let is_known = after.expected > 0;
        Interval {
            at,
            packets: counted.packets,
            pps: rate(counted.packets),
            bits_per_second: 8.0 * rate(counted.wire),
            payload_bits_per_second: 8.0 * rate(counted.bytes),
            lost: is_known.then(|| after.missing.wrapping_sub(before.missing) as i64),
            reordered: is_known.then_some(counted.reordered),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Packets a second.
    pub pps: f64,
    pub wire: f64,
    pub payload: f64,
}

impl Rates {
    /// Of what was counted in that time; `None` where either is nothing. `at_first` were there at its beginning already.
    pub fn of(counts: &Counts, time: Duration, at_first: u64) -> Option<Rates> {
        let packets = counts.packets.checked_sub(at_first).filter(|packets| *packets > 0)?;
        let pps = Some(packets as f64 / time.as_secs_f64()).filter(|pps| pps.is_finite())?;
        let each = |bytes: u64| 8.0 * pps * bytes as f64 / counts.packets as f64;
        Some(Rates { pps, wire: each(counts.wire), payload: each(counts.bytes) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_rate_at_1_gbit_is_1_488_million() {
        let counts =
            Counts { packets: 1_488_095, bytes: 18 * 1_488_095, wire: 84 * 1_488_095, ..Counts::default() };
        let rates = Rates::of(&counts, Duration::from_secs(1), 0).expect("rates");
        assert!((rates.wire / 1e9 - 1.0).abs() < 1e-6, "{rates:?}");
        assert_eq!(Rates::of(&counts, Duration::ZERO, 0), None);
        assert_eq!(Rates::of(&counts, Duration::from_secs(1), counts.packets), None);
        assert_eq!(Rates::of(&Counts::default(), Duration::from_secs(1), 0), None);
    }

    #[test]
    fn what_comes_late_is_taken_off_the_loss() {
        let second = Duration::from_secs(1);
        let before = Counts { packets: 10, expected: 15, missing: 5, ..Counts::default() };
        let after = Counts { packets: 13, expected: 15, missing: 2, reordered: 3, ..before };
        let interval = Interval::between(&before, &after, 2 * second, second);
        assert_eq!((interval.lost, interval.reordered, interval.pps), (Some(-3), Some(3), 3.0));
        let unknown = Interval::between(
            &Counts::default(),
            &Counts { packets: 3, ..Counts::default() },
            second,
            second,
        );
        assert_eq!(unknown.lost, None);
    }
}
