//! What was counted becomes a result.

use crate::counts::Counts;
use crate::frames::Played;
use crate::report::{Rates, Run};
use crate::supervise::Seen;
use crate::udp::{Received, Sent};
use std::time::Duration;

/// A rate within this share of the requested one is held.
const HELD: f64 = 0.01;
/// With fewer packets, or in less time, one packet or the start of a thread is more than that.
const JUDGED_PACKETS: f64 = 100.0;
const JUDGED_TIME: Duration = Duration::from_millis(100);

/// What was requested, as far as the result depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Requested {
    /// Packets a second.
    pub rate: Option<f64>,
    /// The line's rate, bit/s.
    pub line_rate: Option<u64>,
}

impl<P: Default> Run<P> {
    pub fn sent(parameters: P, sent: Sent, requested: Requested) -> Run<P> {
        let rates = Rates::of(&sent.counts, sent.time, 0);
        let run = Run::new("udp-send", parameters, &sent.counts, rates, sent.time, sent.seen, requested);
        Run { flows: Some(sent.flows), ..run }
    }

    pub fn played(parameters: P, played: Played, requested: Requested) -> Run<P> {
        let rates = Rates::of(&played.counts, played.time, 0);
        Run::new("frames", parameters, &played.counts, rates, played.time, played.seen, requested)
    }

    /// Of a sink. Its rates are those from the first datagram to the last.
    pub fn received(parameters: P, received: Received, requested: Requested) -> Run<P> {
        let counts = received.counts;
        let rates = received.rates();
        let has_numbers = counts.expected > 0;
        let of_numbers = |count: u64| has_numbers.then_some(count);
        let time = received.seen.time;
        Run {
            loss: counts.loss(),
            loss_is_complete: has_numbers.then_some(counts.ended == counts.flows),
            lost: of_numbers(counts.missing),
            before_first: of_numbers(received.before_first),
            reordered: of_numbers(counts.reordered),
            duplicates: of_numbers(counts.duplicates),
            too_late: of_numbers(counts.too_late),
            unnumbered: Some(counts.unnumbered),
            foreign: Some(counts.foreign),
            flows: Some(counts.flows),
            socket_drops: received.socket_drops,
            by_thread: received.by_thread,
            ..Run::new("udp-recv", parameters, &counts, rates, time, received.seen, requested)
        }
    }

    fn new(
        name: &'static str,
        parameters: P,
        counts: &Counts,
        rates: Option<Rates>,
        seconds: Duration,
        seen: Seen,
        requested: Requested,
    ) -> Run<P> {
        let errors = [
            ("refused", counts.refused),
            ("unreachable", counts.unreachable),
            ("no-room", counts.no_room),
            ("too-slow", counts.skipped),
        ];
        let wire = rates.map(|rates| rates.wire);
        let is_held = |rate: f64| rates.is_some_and(|rates| (rates.pps / rate - 1.0).abs() <= HELD);
        let is_judged = |rate: &f64| seconds >= JUDGED_TIME && rate * seconds.as_secs_f64() >= JUDGED_PACKETS;
        Run {
            name,
            parameters,
            seconds,
            packets: counts.packets,
            pps: rates.map(|rates| rates.pps),
            bits_per_second: wire,
            payload_bits_per_second: rates.map(|rates| rates.payload),
            errors: errors.into_iter().filter(|(_, count)| *count > 0).collect(),
            rate_held: requested.rate.filter(is_judged).map(is_held),
            line_rate: requested.line_rate,
            line_share: wire.zip(requested.line_rate).map(|(wire, rate)| wire / rate as f64),
            cpu: seen.usage.cpus(),
            interrupts_per_second: seen.usage.interrupts_per_second(),
            queues: seen.usage.queues(),
            intervals: seen.intervals,
            ..Run::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::Span;
    use std::time::Instant;

    fn received(counts: Counts) -> Received {
        let first = Instant::now();
        let span = Span { first, at_first: 1, last: first + Duration::from_secs(2) };
        let (before_first, socket_drops, buffer) = (0, Some(0), 0);
        let (by_thread, seen) = (vec![counts.packets], Seen::default());
        Received { counts, by_thread, span: Some(span), before_first, socket_drops, buffer, seen }
    }

    #[test]
    fn loss_is_known_of_numbers_alone() {
        let counts = Counts { packets: 201, wire: 201 * 84, unnumbered: 201, ..Counts::default() };
        let requested = Requested { rate: None, line_rate: Some(1_000_000_000) };
        let run = Run::received((), received(counts), requested);
        assert_eq!((run.loss, run.lost, run.reordered, run.pps), (None, None, None, Some(100.0)));
        assert_eq!((run.bits_per_second, run.line_share), (Some(67_200.0), Some(0.0000672)));
        let counts = Counts { unnumbered: 0, expected: 400, missing: 100, flows: 2, ended: 1, ..counts };
        let run = Run::received((), received(counts), Requested::default());
        assert_eq!((run.loss, run.lost, run.loss_is_complete), (Some(0.25), Some(100), Some(false)));
        let json = serde_json::to_value(&run).expect("JSON");
        for field in ["name", "parameters", "pps", "bits_per_second", "loss", "cpu", "queues", "intervals"] {
            assert!(json.get(field).is_some(), "{field}");
        }
    }

    #[test]
    fn a_rate_is_held_within_one_in_a_hundred() {
        let sent = |packets| Sent {
            counts: Counts { packets, ..Counts::default() },
            time: Duration::from_secs(1),
            flows: 1,
            seen: Seen::default(),
        };
        let requested = Requested { rate: Some(1000.0), line_rate: None };
        let held = [985, 995, 1005, 1015, 0].map(|packets| Run::sent((), sent(packets), requested).rate_held);
        assert_eq!(held, [Some(false), Some(true), Some(true), Some(false), Some(false)]);
        assert_eq!(Run::sent((), sent(5), Requested::default()).rate_held, None);
        // Of five packets in a second none can be said to have come in time, nor of many in a moment.
        let slow = Requested { rate: Some(5.0), line_rate: None };
        assert_eq!(Run::sent((), sent(5), slow).rate_held, None);
        let short = Sent { time: Duration::from_millis(50), ..sent(50) };
        assert_eq!(Run::sent((), short, requested).rate_held, None);
    }
}
