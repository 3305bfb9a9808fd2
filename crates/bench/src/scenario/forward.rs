//! `forward`: frames of least size through a router, one way and with a stream against them.
//!
//! As fast as the lines send, and the greatest rate at which nothing is lost, searched as RFC 2544 section 26.1 says: a trial at a
//! rate passes when as many frames leave as were sent.

use super::pair::{self, spread_by_rps};
use super::report::{Factor, LeftOut, Levels, Metric};
use super::router::{self, OUT, Router, Way};
use super::verdict::Comparison;
use super::{Error, Means, Measured, Scenario, level, levels};
use crate::frames::Played;
use crate::pin;
use crate::scene::ROUTER;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

/// The search ends when the rate that passes and the one that fails are so near, or after so many trials.
const NEAR: f64 = 0.02;
const TRIALS: usize = 8;
/// What waits in queues is forwarded, too.
const ON_ITS_WAY: Duration = Duration::from_millis(50);

/// The scenario.
#[derive(Debug)]
pub struct Forward {
    /// Flows each way.
    pub flows: u16,
}

/// What became of frames.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Trial {
    sent: u64,
    forwarded: u64,
    /// Frames that were due and could not be sent.
    skipped: u64,
    seconds: f64,
}

impl Trial {
    /// Whether the rate was held and nothing was lost.
    fn passes(&self) -> bool {
        self.sent > 0 && self.skipped == 0 && self.forwarded >= self.sent
    }

    fn plus(self, other: Trial) -> Trial {
        Trial {
            sent: self.sent + other.sent,
            forwarded: self.forwarded + other.forwarded,
            skipped: self.skipped + other.skipped,
            seconds: self.seconds.max(other.seconds),
        }
    }
}

impl Scenario for Forward {
    fn name(&self) -> &'static str {
        "forward"
    }

    fn title(&self) -> &'static str {
        "Small packets through a router"
    }

    fn parameters(&self) -> BTreeMap<String, String> {
        [("flows", self.flows.to_string()), ("payload", router::PAYLOAD.to_string())]
            .map(|(name, value)| (name.to_owned(), value))
            .into()
    }

    fn factors(&self) -> Vec<Factor> {
        vec![
            Factor::new("streams", &[("one", "one way"), ("both", "both ways")]),
            Factor::new("rps", &[("off", "RPS off"), ("on", "RPS on")]),
        ]
    }

    fn metrics(&self) -> Vec<Metric> {
        vec![
            Metric::new(
                "forwarded",
                "Packets forwarded when as many are sent as can be",
                "packets/s",
                Some(true),
            ),
            Metric::new("sent", "Packets sent then", "packets/s", None),
            Metric::new(
                "loss_free",
                "Greatest rate without loss (RFC 2544 section 26.1)",
                "packets/s",
                Some(true),
            ),
        ]
    }

    fn cells(&self) -> Vec<Levels> {
        let cell = |streams| ["off", "on"].map(|rps| levels([("streams", streams), ("rps", rps)]));
        ["one", "both"].into_iter().flat_map(cell).collect()
    }

    fn prepare(&mut self, _means: &Means<'_>) -> Result<Vec<LeftOut>, Error> {
        pair::is_possible(&[])?;
        Ok(Vec::new())
    }

    fn measure(&self, cell: &Levels, means: &Means<'_>) -> Result<Measured, Error> {
        let router = Router::new(self.flows)?;
        if level(cell, "rps") == "on" {
            for interface in [ROUTER, OUT] {
                spread_by_rps(router.namespace(), interface, &pin::allowed())?;
            }
        }
        let ways: &[Way] =
            if level(cell, "streams") == "both" { &[Way::There, Way::Back] } else { &[Way::There] };
        let most = trial(&router, ways, None, means)?;
        if most.forwarded == 0 {
            return Err(Error::Failed(format!("wedged: the router forwarded none of {} frames", most.sent)));
        }
        let sent = most.sent as f64 / most.seconds;
        let loss_free =
            search(sent, &mut |rate| trial(&router, ways, Some(rate), means).map(|trial| trial.passes()))?;
        Ok(vec![
            ("forwarded", most.forwarded as f64 / most.seconds),
            ("sent", sent),
            ("loss_free", loss_free),
        ])
    }

    fn comparisons(&self) -> Vec<Comparison> {
        let beside = |metric, [streams, rps]: [&str; 2], [other_streams, other_rps]: [&str; 2]| Comparison {
            metric,
            cell: levels([("streams", streams), ("rps", rps)]),
            baseline: levels([("streams", other_streams), ("rps", other_rps)]),
        };
        let of = |metric| {
            [
                beside(metric, ["both", "off"], ["one", "off"]),
                beside(metric, ["one", "on"], ["one", "off"]),
                beside(metric, ["both", "on"], ["both", "off"]),
            ]
        };
        ["forwarded", "loss_free"].into_iter().flat_map(of).collect()
    }
}

/// Sends all these ways at once; `rate` is that of all of them together.
fn trial(router: &Router, ways: &[Way], rate: Option<f64>, means: &Means<'_>) -> Result<Trial, Error> {
    let each = rate.map(|rate| rate / ways.len() as f64);
    let cpus = pin::allowed();
    let before: Vec<u64> = ways.iter().map(|way| router.forwarded(*way)).collect::<Result<_, _>>()?;
    let played: Result<Vec<Played>, Error> = thread::scope(|scope| {
        let play = |(number, way): (usize, &Way)| {
            let cpu = cpus.get(number % cpus.len().max(1)).copied();
            let way = *way;
            scope.spawn(move || router.play(way, each, cpu, means))
        };
        let threads: Vec<_> = ways.iter().enumerate().map(play).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect()
    });
    let played = played?;
    thread::sleep(ON_ITS_WAY);
    if means.stop.load(Ordering::Relaxed) {
        return Err(Error::Interrupted);
    }
    let mut sum = Trial::default();
    for ((way, before), played) in ways.iter().zip(before).zip(&played) {
        sum = sum.plus(Trial {
            sent: played.counts.packets,
            forwarded: router.forwarded(*way)?.saturating_sub(before),
            skipped: played.counts.skipped,
            seconds: played.time.as_secs_f64().max(1e-9),
        });
    }
    Ok(sum)
}

/// The greatest rate up to `most` that passes; 0: none that was tried did.
fn search(most: f64, passes: &mut dyn FnMut(f64) -> Result<bool, Error>) -> Result<f64, Error> {
    let (mut good, mut bad) = (0.0, most);
    if passes(most)? {
        return Ok(most);
    }
    for _ in 0..TRIALS {
        let rate = f64::midpoint(good, bad);
        if passes(rate)? {
            good = rate
        } else {
            bad = rate
        }
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
    fn the_search_ends_near_the_limit() {
        for limit in [100.0, 1000.0, 333.3, 650.0] {
            let mut trials = 0;
            let found = search(1000.0, &mut |rate| {
                trials += 1;
                Ok(rate <= limit)
            });
            let found = found.expect("a rate");
            assert!(
                found <= limit && found >= 0.9 * limit && trials <= 1 + TRIALS,
                "{limit}: {found}, {trials}"
            );
        }
        assert_eq!(search(1000.0, &mut |_| Ok(false)).expect("none"), 0.0);
    }

    #[test]
    fn a_trial_passes_when_the_rate_was_held_and_all_left() {
        let good = Trial { sent: 10, forwarded: 10, skipped: 0, seconds: 1.0 };
        assert!(good.passes());
        for bad in [
            Trial { forwarded: 9, ..good },
            Trial { skipped: 1, ..good },
            Trial { sent: 0, forwarded: 0, ..good },
        ] {
            assert!(!bad.passes(), "{bad:?}");
        }
    }
}
