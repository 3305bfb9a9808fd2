//! Frames sent through the router for a while, and the greatest rate without loss (RFC 2544 section 26.1).

use super::super::router::{Router, Way};
use super::super::{Error, Tools};
use super::stall;
use crate::frames::{Played, Playing};
use crate::pin::{self, cpu_of};
use crate::supervise::{ThreadError, joined, started};
use std::sync::atomic::Ordering;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

/// What is on its way when the sender ends is waited for until nothing comes for so long, and no longer than RFC 2544
/// section 23 says.
const QUIET: Duration = Duration::from_millis(50);
const MOST: Duration = Duration::from_secs(2);
/// The search ends when the rate that passes and the one that fails are so near, or after so many trials.
const NEAR: f64 = 0.02;
const TRIALS: usize = 8;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Trial {
    pub sent: u64,
    pub arrived: u64,
    /// Frames that were due and could not be sent.
    pub skipped: u64,
    pub seconds: f64,
}

impl Trial {
    /// Whether the rate was held and nothing was lost.
    pub fn passes(&self) -> bool {
        self.sent > 0 && self.skipped == 0 && self.arrived >= self.sent
    }

    pub fn loss(&self) -> f64 {
        self.sent.saturating_sub(self.arrived) as f64 / self.sent.max(1) as f64
    }
}

/// Sends all these ways at once; `rate` is that of all of them together, `None` as fast as it goes. Where something is lost,
/// checks that the router forwards at all.
pub fn trial(router: &Router, ways: &[Way], rate: Option<f64>, tools: &Tools<'_>) -> Result<Trial, Error> {
    let each = rate.map(|rate| rate / ways.len() as f64);
    let cpus = pin::allowed();
    let before = router.arrived(ways)?;
    let played: Result<Vec<Played>, Error> = thread::scope(|scope| {
        let play = |(number, way): (usize, &Way)| {
            let (way, cpus) = (*way, cpu_of(&cpus, number).into_iter().collect());
            let playing = Playing { rate: each, length: Some(tools.seconds), cpus, ..Playing::default() };
            started(scope, move || router.play(way, playing, tools))
        };
        // Where one cannot be started, the others end with their time.
        let threads: Vec<_> = ways.iter().enumerate().map(play).collect::<Result<_, ThreadError>>()?;
        threads.into_iter().map(joined).collect()
    });
    let played = played?;
    let arrived = all_arrived(router, ways)?.saturating_sub(before);
    if tools.stop.load(Ordering::Relaxed) {
        return Err(Error::Interrupted);
    }
    let counts = |of: fn(&Played) -> u64| played.iter().map(of).sum();
    let trial = Trial {
        sent: counts(|played| played.counts.packets),
        arrived,
        skipped: counts(|played| played.counts.skipped),
        seconds: played.iter().map(|played| played.time.as_secs_f64()).fold(1e-9, f64::max),
    };
    if trial.arrived < trial.sent {
        stall::check(router, ways, tools)?;
    }
    Ok(trial)
}

/// Frames that have arrived when no more arrive.
fn all_arrived(router: &Router, ways: &[Way]) -> Result<u64, Error> {
    let (start, mut arrived) = (Instant::now(), router.arrived(ways)?);
    loop {
        sleep(QUIET);
        let now = router.arrived(ways)?;
        if now == arrived || start.elapsed() >= MOST {
            return Ok(now);
        }
        arrived = now;
    }
}

/// The greatest rate that passes, by halves, of which `most` does not; 0: none that was tried did.
pub fn search(most: f64, passes: &mut dyn FnMut(f64) -> Result<bool, Error>) -> Result<f64, Error> {
    let (mut good, mut bad) = (0.0, most);
    for _ in 0..TRIALS {
        let rate = f64::midpoint(good, bad);
        *if passes(rate)? { &mut good } else { &mut bad } = rate;
        if bad - good < NEAR * bad {
            break;
        }
    }
    Ok(good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_passes_when_the_rate_was_held_and_all_arrived() {
        let good = Trial { sent: 10, arrived: 10, skipped: 0, seconds: 1.0 };
        for (trial, passes, loss) in [
            (good, true, 0.0),
            (Trial { arrived: 9, ..good }, false, 0.1),
            (Trial { skipped: 1, ..good }, false, 0.0),
            (Trial { sent: 0, arrived: 0, ..good }, false, 0.0),
        ] {
            assert_eq!((trial.passes(), trial.loss()), (passes, loss), "{trial:?}");
        }
    }

    #[test]
    fn the_search_ends_near_the_limit() {
        for limit in [100.0, 999.0, 333.3, 650.0, 0.0] {
            let mut trials = 0;
            let found = search(1000.0, &mut |rate| {
                trials += 1;
                Ok(rate <= limit)
            });
            let found = found.expect("a rate");
            assert!(found <= limit && found >= 0.9 * limit && trials <= TRIALS, "{limit}: {found}, {trials}");
        }
        let error = search(1000.0, &mut |_| Err(Error::Failed("stalled".to_owned())));
        assert_eq!(error.expect_err("a failure").to_string(), "stalled");
    }
}
