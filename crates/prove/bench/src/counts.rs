//! What a thread counts, and how the others hear of it.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub packets: u64,
    /// Bytes of payload, or of frames without FCS.
    pub bytes: u64,
    /// Bytes on the line, with what is around each frame.
    pub wire: u64,
    pub unnumbered: u64,
    pub foreign: u64,
    /// Datagrams that should have come so far.
    pub expected: u64,
    /// Those of them that did not. What comes late makes it less.
    pub missing: u64,
    /// See [`crate::sequence`].
    pub reordered: u64,
    pub duplicates: u64,
    pub too_late: u64,
    /// Flows that were heard of, and those of them that have ended.
    pub flows: u64,
    pub ended: u64,
    /// Sending failed since nobody listens (`ECONNREFUSED`).
    pub refused: u64,
    /// Sending failed since there is no way (`EHOSTUNREACH`, `ENETUNREACH`).
    pub unreachable: u64,
    /// Sending failed since a queue was full (`ENOBUFS`).
    pub no_room: u64,
    /// Datagrams that were due at the rate and will not be sent.
    pub skipped: u64,
}

impl Counts {
    #[must_use]
    pub fn plus(&self, other: &Counts) -> Counts {
        self.each(other, u64::wrapping_add)
    }

    /// What was counted since. What became less is 0.
    #[must_use]
    pub fn since(&self, before: &Counts) -> Counts {
        self.each(before, u64::saturating_sub)
    }

    fn each(&self, other: &Counts, of: impl Fn(u64, u64) -> u64) -> Counts {
        Counts {
            packets: of(self.packets, other.packets),
            bytes: of(self.bytes, other.bytes),
            wire: of(self.wire, other.wire),
            unnumbered: of(self.unnumbered, other.unnumbered),
            foreign: of(self.foreign, other.foreign),
            expected: of(self.expected, other.expected),
            missing: of(self.missing, other.missing),
            reordered: of(self.reordered, other.reordered),
            duplicates: of(self.duplicates, other.duplicates),
            too_late: of(self.too_late, other.too_late),
            flows: of(self.flows, other.flows),
            ended: of(self.ended, other.ended),
            refused: of(self.refused, other.refused),
            unreachable: of(self.unreachable, other.unreachable),
            no_room: of(self.no_room, other.no_room),
            skipped: of(self.skipped, other.skipped),
        }
    }

    /// Share of the datagrams that did not come; `None`: none had a number.
    pub fn loss(&self) -> Option<f64> {
        (self.expected > 0).then(|| self.missing as f64 / self.expected as f64)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub first: Instant,
    /// Datagrams that were there already at that time.
    pub at_first: u64,
    pub last: Instant,
}

impl Span {
    /// All together, of so many datagrams each, which came to several threads; `None` of none. Of what was there when the later ones
    /// began, as much was there at the first time as had not come since by their own rates.
    pub fn of_all(each: &[(Span, u64)]) -> Option<Span> {
        let first = each.iter().map(|(span, _)| span.first).min()?;
        let last = each.iter().map(|(span, _)| span.last).max()?;
        let at_first = each.iter().map(|(span, packets)| span.before(first, *packets)).sum();
        Some(Span { first, at_first, last })
    }

    /// Of its datagrams, `packets` in all, those that were there at an earlier time.
    fn before(&self, earlier: Instant, packets: u64) -> u64 {
        if self.first == earlier {
            return self.at_first;
        }
        let since = packets.saturating_sub(self.at_first) as f64 / (self.last - self.first).as_secs_f64();
        let came = since * (self.first - earlier).as_secs_f64();
        // The last of them came at its own first time. All at one time: nothing says when they came.
        if came.is_finite() { self.at_first.saturating_sub(came.ceil() as u64) } else { 0 }
    }
}

/// Where a thread leaves its counts for the one that reports. Each has cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Shared(Mutex<Counts>);

impl Shared {
    /// Leaves them there, or keeps them until the next time where somebody reads.
    pub fn publish(&self, counts: &Counts) {
        if let Ok(mut shared) = self.0.try_lock() {
            *shared = *counts;
        }
    }

    pub fn conclude(&self, counts: &Counts) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = *counts;
    }

    pub fn read(&self) -> Counts {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub fn sum(shared: &[Shared]) -> Counts {
    shared.iter().fold(Counts::default(), |sum, shared| sum.plus(&shared.read()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_waited_for_each_thread_was_there_at_the_first_time() {
        let start = Instant::now();
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        let span = |first, at_first, last| Span { first: at(first), at_first, last: at(last) };
        // 10 a millisecond each: of the 100 that the second found, 30 had come in the three milliseconds.
        let all = Span::of_all(&[(span(2, 50, 102), 1050), (span(5, 100, 105), 1100)]);
        assert_eq!(all, Some(span(2, 50 + 70, 105)));
        // A flow that begins later waits for nobody, and one datagram has no rate.
        let late = Span::of_all(&[(span(2, 50, 102), 1050), (span(52, 1, 102), 501), (span(7, 1, 7), 1)]);
        assert_eq!(late, Some(span(2, 50, 102)));
        assert_eq!(Span::of_all(&[(span(3, 1, 3), 1)]), Some(span(3, 1, 3)));
        let slow = Span::of_all(&[(span(2, 1, 1002), 11), (span(40, 1, 1040), 11)]);
        assert_eq!(slow, Some(span(2, 1, 1040)));
        assert_eq!(Span::of_all(&[]), None);
    }
}
