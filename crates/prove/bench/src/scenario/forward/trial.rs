//! Frames sent through the router for a while, and what became of them.

use super::super::router::{Router, Way};
use super::super::{Error, Means};
use super::wedge;
use crate::frames::Played;
use crate::namespace::SceneError;
use crate::pin;
use crate::supervise::started;
use std::sync::atomic::Ordering;
use std::thread::{self, sleep};
use std::time::Duration;

/// What is on its way when the sender ends is waited for until nothing comes for so long, and no longer than RFC 2544 section 23
/// wants.
const QUIET: Duration = Duration::from_millis(50);
const MOST: Duration = Duration::from_secs(2);

/// What became of frames.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Trial {
    /// Frames that were sent.
    pub sent: u64,
    /// Frames that came to the other ends.
    pub arrived: u64,
    /// Frames that were due and could not be sent.
    pub skipped: u64,
    /// How long it was sent.
    pub seconds: f64,
}

impl Trial {
    /// Whether the rate was held and nothing was lost.
    pub fn passes(&self) -> bool {
        self.sent > 0 && self.skipped == 0 && self.arrived >= self.sent
    }

    /// Share of the frames that did not come.
    pub fn loss(&self) -> f64 {
        self.sent.saturating_sub(self.arrived) as f64 / self.sent.max(1) as f64
    }
}

/// Sends all these ways at once; `rate` is that of all of them together, `None` as fast as it goes. Where something is lost it
/// looks whether the router forwards at all.
///
/// # Errors
///
/// It could not be sent, or the router is wedged; or the end.
pub fn trial(router: &Router, ways: &[Way], rate: Option<f64>, means: &Means<'_>) -> Result<Trial, Error> {
    let each = rate.map(|rate| rate / ways.len() as f64);
    let cpus = pin::allowed();
    let before = router.arrived(ways)?;
    let played: Result<Vec<Played>, Error> = thread::scope(|scope| {
        let play = |(number, way): (usize, &Way)| {
            let cpu = cpus.get(number % cpus.len().max(1)).copied();
            let way = *way;
            started(scope, move || router.play(way, each, cpu, means)).map_err(SceneError::Thread)
        };
        // Where one cannot be started, the others end with their time.
        let threads: Vec<_> = ways.iter().enumerate().map(play).collect::<Result<_, _>>()?;
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect()
    });
    let played = played?;
    let arrived = all_arrived(router, ways)?.saturating_sub(before);
    if means.stop.load(Ordering::Relaxed) {
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
        wedge::look(router, ways, means)?;
    }
    Ok(trial)
}

/// Frames that have come when no more come.
fn all_arrived(router: &Router, ways: &[Way]) -> Result<u64, Error> {
    let mut arrived = router.arrived(ways)?;
    let mut waited = Duration::ZERO;
    while waited < MOST {
        sleep(QUIET);
        waited += QUIET;
        let now = router.arrived(ways)?;
        if now == arrived {
            break;
        }
        arrived = now;
    }
    Ok(arrived)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_passes_when_the_rate_was_held_and_all_arrived() {
        let good = Trial { sent: 10, arrived: 10, skipped: 0, seconds: 1.0 };
        assert!(good.passes() && good.loss() == 0.0);
        for (bad, loss) in [
            (Trial { arrived: 9, ..good }, 0.1),
            (Trial { skipped: 1, ..good }, 0.0),
            (Trial { sent: 0, arrived: 0, ..good }, 0.0),
        ] {
            assert!(!bad.passes() && bad.loss() == loss, "{bad:?}");
        }
    }
}
