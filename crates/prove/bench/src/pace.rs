//! A rate, held by sleeping.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// What was due and could not be sent is sent later, up to this long, also after the end.
const PATIENCE: Duration = Duration::from_millis(200);
/// No sleep is longer, so that a wish to end is seen.
const NAP: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub struct Pace {
    /// A second; `None`: as many as go.
    rate: Option<f64>,
    /// Datagrams that are due within this time are sent together.
    grain: Duration,
    start: Instant,
    length: Option<Duration>,
    count: u64,
    given: u64,
    skipped: u64,
    missed: u64,
}

impl Pace {
    /// From `start` on, for so long and so many.
    pub fn from(
        start: Instant,
        rate: Option<f64>,
        grain: Duration,
        length: Option<Duration>,
        count: Option<u64>,
    ) -> Pace {
        Pace { rate, grain, start, length, count: count.unwrap_or(u64::MAX), given: 0, skipped: 0, missed: 0 }
    }

    /// Datagrams that were due and will not be sent: whoever sends was too slow.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Waits until some are due and gives their number, at most `most`; `None` at the end.
    pub fn next(&mut self, most: u64, end: &AtomicBool) -> Option<u64> {
        let most = most.min(self.count - self.given);
        if most == 0 {
            return None;
        }
        loop {
            if end.load(Ordering::Relaxed) {
                return None;
            }
            let now = self.start.elapsed();
            let is_over = self.length.is_some_and(|length| now >= length);
            let is_late = self.length.is_some_and(|length| now >= length + PATIENCE);
            let Some(rate) = self.rate else { return (!is_over).then_some(most) };
            let now = self.length.map_or(now, |length| now.min(length));
            let due = self.due(now, rate);
            if is_over {
                self.skipped += due * u64::from(is_late);
                return (due > 0 && !is_late).then(|| due.min(most));
            }
            let group = ((rate * self.grain.as_secs_f64()) as u64).clamp(1, most);
            if due >= group {
                return Some(due.min(most));
            }
            // The last of a group comes due then.
            let at = (self.past() + group - 1) as f64 / rate;
            // Some rates are less than one in the age of the universe.
            let at = Duration::try_from_secs_f64(at).unwrap_or(Duration::MAX);
            let at = self.length.map_or(at, |length| at.min(length));
            thread::sleep(at.saturating_sub(self.start.elapsed()).min(NAP));
        }
    }

    /// What was sent of what [`Pace::next`] gave.
    pub fn sent(&mut self, count: u64) {
        self.given += count;
    }

    /// What could not be sent of what [`Pace::next`] gave, and is not due any more: not for want of time, and others are sent in its place
    /// where a number is asked for.
    pub fn missed(&mut self, count: u64) {
        self.missed += count;
    }

    /// Of what was due, what is no more, whatever became of it.
    fn past(&self) -> u64 {
        self.given + self.skipped + self.missed
    }

    /// How many are due after so long and were not sent. The first is due at once.
    fn due(&mut self, now: Duration, rate: f64) -> u64 {
        // At the very end the next one would begin another second.
        let is_end = self.length == Some(now);
        let all = now.as_secs_f64() * rate;
        let all = if is_end { (all - 1e-6).max(0.0).ceil() as u64 } else { all as u64 + 1 };
        let due = all.saturating_sub(self.past()).min(self.count - self.given);
        let most = ((rate * PATIENCE.as_secs_f64()) as u64).max(1);
        self.skipped += due.saturating_sub(most);
        due.min(most)
    }
}

/// Lets the calling thread's sleeps end when they should: the kernel adds up to 50 µs to them otherwise
/// (`PR_SET_TIMERSLACK` of prctl(2)).
pub fn sharpen_sleeps() {
    // Where it is refused sleeps are longer and groups larger; the rate stays.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sent in so long, when each call takes so long.
    fn run(rate: f64, milliseconds: u64, call: Duration) -> (u64, u64) {
        let end = AtomicBool::new(false);
        let length = Duration::from_millis(milliseconds);
        let mut pace = Pace::from(Instant::now(), Some(rate), Duration::from_micros(100), Some(length), None);
        let mut sent = 0;
        while let Some(count) = pace.next(64, &end) {
            pace.sent(count);
            sent += count;
            if !call.is_zero() {
                thread::sleep(call);
            }
        }
        (sent, pace.skipped())
    }

    #[test]
    fn a_rate_is_held_to_the_last_datagram() {
        for (rate, milliseconds, expected) in
            [(10.0, 500, 5), (1000.0, 200, 200), (12_345.0, 200, 2469), (1e6, 200, 200_000)]
        {
            let (sent, skipped) = run(rate, milliseconds, Duration::ZERO);
            // On a machine that stood still for longer than anybody waits, they count as skipped.
            assert_eq!(sent + skipped, expected, "{rate}");
            assert!(skipped * 2 <= expected, "{rate}: {skipped} skipped");
        }
    }

    #[test]
    fn what_cannot_be_sent_is_counted() {
        // 64 each 5 ms or more are 12,800 a second at most, and there are 0.8 seconds for them.
        let (sent, skipped) = run(100_000.0, 600, Duration::from_millis(5));
        assert!(sent <= 10_304 && sent + skipped == 60_000, "{sent} {skipped}");
    }

    #[test]
    fn what_had_no_way_was_not_too_late() {
        let end = AtomicBool::new(false);
        let length = Duration::from_millis(500);
        let mut pace =
            Pace::from(Instant::now(), Some(1000.0), Duration::from_micros(100), Some(length), Some(10));
        let (mut missed, mut sent) = (0, 0);
        while let Some(count) = pace.next(64, &end) {
            if missed < 400 {
                pace.missed(count);
                missed += count;
            } else {
                pace.sent(count);
                sent += count;
            }
        }
        // On a machine that stood still for longer than anybody waits, some count as skipped besides.
        assert!(
            pace.skipped() + missed + sent <= 500 && missed + pace.skipped() >= 400,
            "{missed} {sent} {pace:?}"
        );
        assert!(sent == 10 || pace.skipped() > 0, "{sent} {pace:?}");
    }

    #[test]
    fn the_end_is_seen_between_two_datagrams() {
        let end = AtomicBool::new(false);
        let mut pace = Pace::from(Instant::now(), Some(0.01), Duration::from_micros(100), None, None);
        assert_eq!(pace.next(64, &end), Some(1));
        pace.sent(1);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| pace.next(64, &end));
            thread::sleep(Duration::from_millis(30));
            end.store(true, Ordering::Relaxed);
            assert_eq!(waiting.join().expect("a thread"), None);
        });
    }

    #[test]
    fn a_count_ends_it() {
        let end = AtomicBool::new(false);
        for rate in [None, Some(1e6)] {
            let mut pace = Pace::from(Instant::now(), rate, Duration::from_micros(100), None, Some(100));
            let mut sent = 0;
            while let Some(count) = pace.next(64, &end) {
                pace.sent(count);
                sent += count;
            }
            assert_eq!(sent, 100);
        }
    }
}
