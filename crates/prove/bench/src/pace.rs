//! A rate, held by sleeping.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// What was due and could not be sent is sent later, up to this long, also after the end.
const PATIENCE: Duration = Duration::from_millis(200);
/// No sleep is longer, so that a request to end is seen.
const NAP: Duration = Duration::from_millis(20);

/// How much is to be sent, and how fast.
#[derive(Clone, Copy, Debug)]
pub struct Pacing {
    /// A second; `None`: as many as go.
    pub rate: Option<f64>,
    pub length: Option<Duration>,
    pub count: Option<u64>,
    /// What is due within this time is sent together.
    pub grain: Duration,
}

#[derive(Debug)]
pub struct Pace {
    pacing: Pacing,
    start: Instant,
    given: u64,
    skipped: u64,
    missed: u64,
}

enum Step {
    /// So many are to be sent.
    Due(u64),
    /// Nothing until then, counted from the start.
    Wait(Duration),
    End,
}

impl Pace {
    pub fn from(start: Instant, pacing: Pacing) -> Pace {
        Pace { pacing, start, given: 0, skipped: 0, missed: 0 }
    }

    /// How many there are to send still.
    fn left(&self) -> u64 {
        self.pacing.count.unwrap_or(u64::MAX) - self.given
    }

    /// Datagrams that were due and will not be sent: whoever sends was too slow.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Waits until some are due and gives their number, at most `most`; `None` at the end.
    pub fn next(&mut self, most: u64, end: &AtomicBool) -> Option<u64> {
        let most = most.min(self.left());
        if most == 0 {
            return None;
        }
        while !end.load(Ordering::Relaxed) {
            match self.step(self.start.elapsed(), most) {
                Step::Due(count) => return Some(count),
                Step::Wait(at) => thread::sleep(at.saturating_sub(self.start.elapsed()).min(NAP)),
                Step::End => return None,
            }
        }
        None
    }

    /// What to do `now`, counted from the start.
    fn step(&mut self, now: Duration, most: u64) -> Step {
        let Pacing { rate, length, grain, .. } = self.pacing;
        let is_over = length.is_some_and(|length| now >= length);
        let is_late = length.is_some_and(|length| now >= length + PATIENCE);
        let Some(rate) = rate else { return if is_over { Step::End } else { Step::Due(most) } };
        let now = length.map_or(now, |length| now.min(length));
        let due = self.due(now, rate);
        if is_over {
            self.skipped += due * u64::from(is_late);
            return if due > 0 && !is_late { Step::Due(due.min(most)) } else { Step::End };
        }
        let group = ((rate * grain.as_secs_f64()) as u64).clamp(1, most);
        if due >= group {
            return Step::Due(due.min(most));
        }
        // The last of a group comes due then.
        let at = (self.past() + group - 1) as f64 / rate;
        // Some rates are less than one in the age of the universe.
        let at = Duration::try_from_secs_f64(at).unwrap_or(Duration::MAX);
        Step::Wait(length.map_or(at, |length| at.min(length)))
    }

    /// What was sent of what [`Pace::next`] gave.
    pub fn sent(&mut self, count: u64) {
        self.given += count;
    }

    /// What could not be sent of what [`Pace::next`] gave, and is not due any more: not for want of time, and others are sent in its place
    /// where a number is requested.
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
        let is_end = self.pacing.length == Some(now);
        let all = now.as_secs_f64() * rate;
        let all = if is_end { (all - 1e-6).max(0.0).ceil() as u64 } else { all as u64 + 1 };
        let due = all.saturating_sub(self.past()).min(self.left());
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

    fn pace(rate: impl Into<Option<f64>>, length: Option<Duration>, count: Option<u64>) -> Pace {
        let grain = Duration::from_micros(100);
        Pace::from(Instant::now(), Pacing { rate: rate.into(), length, count, grain })
    }

    /// Calls `send` with what is due, by a clock that advances by each call's time and to where a wait ends.
    fn run(pace: &mut Pace, call: Duration, mut send: impl FnMut(&mut Pace, u64)) {
        let mut now = Duration::ZERO;
        loop {
            match pace.step(now, 64.min(pace.left()).max(1)) {
                Step::Due(count) => {
                    send(pace, count);
                    now += call;
                }
                // A moment later at least, as sleeps end.
                Step::Wait(at) => now = at.max(now + Duration::from_micros(1)),
                Step::End => return,
            }
        }
    }

    #[test]
    fn a_rate_is_held_to_the_last_datagram() {
        for (rate, milliseconds, expected) in
            [(10.0, 500, 5), (1000.0, 200, 200), (12_345.0, 200, 2469), (1e6, 200, 200_000)]
        {
            let mut pace = pace(rate, Some(Duration::from_millis(milliseconds)), None);
            run(&mut pace, Duration::ZERO, Pace::sent);
            assert_eq!((pace.given, pace.skipped()), (expected, 0), "{rate}");
        }
    }

    #[test]
    fn what_cannot_be_sent_is_counted() {
        let mut pace = pace(100_000.0, Some(Duration::from_millis(600)), None);
        run(&mut pace, Duration::from_millis(5), Pace::sent);
        // 64 each 5 ms, for 0.8 seconds; the first time fewer are due.
        assert!((159 * 64..160 * 64).contains(&pace.given), "{pace:?}");
        assert_eq!(pace.given + pace.skipped(), 60_000);
    }

    #[test]
    fn what_had_no_way_was_not_too_late() {
        let mut pace = pace(1000.0, Some(Duration::from_millis(500)), Some(10));
        run(&mut pace, Duration::ZERO, |pace, count| match pace.missed < 400 {
            true => pace.missed(count),
            false => pace.sent(count),
        });
        assert_eq!((pace.given, pace.missed, pace.skipped()), (10, 400, 0));
    }

    #[test]
    fn the_end_is_seen_between_two_datagrams() {
        let end = AtomicBool::new(false);
        let mut pace = pace(0.01, None, None);
        assert_eq!(pace.next(64, &end), Some(1));
        pace.sent(1);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| pace.next(64, &end));
            end.store(true, Ordering::Relaxed);
            assert_eq!(waiting.join().expect("a thread"), None);
        });
    }

    #[test]
    fn a_count_ends_it() {
        let end = AtomicBool::new(false);
        for rate in [None, Some(1e6)] {
            let mut pace = pace(rate, None, Some(100));
            let mut sent = 0;
            while let Some(count) = pace.next(64, &end) {
                pace.sent(count);
                sent += count;
            }
            assert_eq!(sent, 100);
        }
    }
}
