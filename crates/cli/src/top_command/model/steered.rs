//! What the steering program does.

use crate::top_command::steering::{Mode, Readings};
use serde::Serialize;

/// Steering on the interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SteeringRows {
    /// How it is attached; `None` where nobody could tell.
    pub mode: Option<Mode>,
    /// CPUs that frames are steered to.
    pub cpus: Vec<SteeredCpu>,
    /// What became of frames.
    pub reasons: Vec<ReasonRow>,
    /// Buckets; `None` where nobody tells.
    pub buckets: Option<usize>,
    /// Buckets that were moved since it was attached.
    pub moves: Option<u64>,
    /// Buckets moved a second.
    pub moves_per_second: Option<f64>,
    /// Frames steered a second.
    pub steered_per_second: Option<f64>,
    /// Steered frames lost a second.
    pub drops_per_second: Option<f64>,
}

/// A CPU that frames are steered to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SteeredCpu {
    /// Its number.
    pub cpu: u32,
    /// Frames that arrived, a second.
    pub frames_per_second: Option<f64>,
    /// Over those of all CPUs, between the readings.
    pub share: Option<f64>,
    /// Frames that its queue had no room for, a second.
    pub drops_per_second: Option<f64>,
    /// Frames that arrived since the program was attached.
    pub frames: u64,
    /// Frames lost since then.
    pub drops: u64,
    /// Buckets that go to it; `None` where nobody tells.
    pub buckets: Option<usize>,
}

/// Frames by what became of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReasonRow {
    /// The word of `rxlane steer status`.
    pub reason: String,
    /// Frames a second.
    pub frames_per_second: Option<f64>,
    /// Frames since the program was attached.
    pub frames: u64,
}

/// Rows from two readings.
pub fn rows(readings: &Readings) -> SteeringRows {
    let Ok(latest) = &readings.latest else { return SteeringRows::default() };
    let tells_buckets = !latest.buckets.is_empty();
    let frames = |cpu: u32| readings.per_second(|status| Some(status.cpus.get(&cpu)?.frames));
    let drops = |cpu: u32| readings.per_second(|status| Some(status.cpus.get(&cpu)?.drops));
    let all = super::sum(latest.cpus.keys().map(|&cpu| frames(cpu))).filter(|all| *all > 0.0);
    let cpus = latest.cpus.iter().map(|(&cpu, counts)| SteeredCpu {
        cpu,
        frames_per_second: frames(cpu),
        share: frames(cpu).zip(all).map(|(frames, all)| frames / all),
        drops_per_second: drops(cpu),
        frames: counts.frames,
        drops: counts.drops,
        buckets: tells_buckets.then(|| latest.buckets.iter().filter(|&&target| target == cpu).count()),
    });
    let reasons = latest.reasons.iter().map(|(reason, &frames)| ReasonRow {
        reason: reason.clone(),
        frames_per_second: readings.per_second(|status| status.reasons.get(reason).copied()),
        frames,
    });
    let mut reasons: Vec<ReasonRow> = reasons.collect();
    reasons.sort_by_key(|row| std::cmp::Reverse(row.frames));
    SteeringRows {
        mode: Some(latest.mode),
        cpus: cpus.collect(),
        reasons,
        buckets: tells_buckets.then_some(latest.buckets.len()),
        moves: (latest.mode != Mode::Off).then_some(latest.moves),
        moves_per_second: readings.per_second(|status| Some(status.moves)),
        steered_per_second: readings.per_second(|status| status.reasons.get("steered").copied()),
        drops_per_second: super::sum(latest.cpus.keys().map(|&cpu| drops(cpu))),
    }
}
