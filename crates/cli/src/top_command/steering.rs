//! What a steering program on the interface does, as `rxlane steer status` reports it; read only.

use super::model::sum;
use serde::Serialize;
use std::time::Duration;
use steer::record::Records;
use steer::status::{Status, status};

/// The mode where nothing is steered.
pub const OFF: &str = "off";

/// Reads what steering does on `device`; else why nothing is known, and what would help (root, most of the time).
pub fn read(device: &str, records: &Records) -> Result<Status, String> {
    let status = status(device, Duration::ZERO, records)
        .map_err(|error| format!("{:#}", anyhow::Error::from(error)))?;
    // Otherwise somebody's program is attached, and nobody may say whose it is.
    if status.complete || matches!(status.mode, "native" | "generic") {
        return Ok(status);
    }
    Err(status.remarks.join("; "))
}

fn frames(status: &Status, reason: &str) -> Option<u64> {
    status.reasons.iter().find(|row| row.reason == reason).map(|row| row.frames)
}

/// Drops that a former reading was certain of are certain still: a reading says at least how many there were, and may be
/// less certain than the one before.
pub fn keep_certain(latest: &mut Status, former: &Status) {
    let is_less =
        |row: &steer::status::ReasonRow| frames(latest, row.reason).is_none_or(|now| now < row.frames);
    // Attached anew, it counts anew.
    if former.reasons.iter().any(is_less) {
        return;
    }
    for row in &mut latest.cpus {
        if let Some(before) = former.cpus.iter().find(|before| before.cpu == row.cpu) {
            row.drops = row.drops.max(before.drops);
        }
    }
}

/// Two readings and the time between them, as far as there are any.
#[derive(Clone, Debug)]
pub struct Readings {
    pub former: Option<Status>,
    /// The latest, or why there is none.
    pub latest: Result<Status, String>,
    pub between: Duration,
}

impl Readings {
    /// What a counter grew by in a second. `None` where it was not read twice, or fell.
    fn per_second(&self, counter: impl Fn(&Status) -> Option<u64>) -> Option<f64> {
        let latest = counter(self.latest.as_ref().ok()?)?;
        let grown = latest.checked_sub(counter(self.former.as_ref()?)?)?;
        (!self.between.is_zero()).then(|| grown as f64 / self.between.as_secs_f64())
    }

    /// Frames that arrived on a CPU that frames are steered to, and those that its queue had no room for, a second.
    pub fn on_cpu(&self, cpu: u32) -> (Option<f64>, Option<f64>) {
        let row = |status: &Status| status.cpus.iter().find(|row| row.cpu == cpu).copied();
        let frames = self.per_second(|status| Some(row(status)?.frames));
        (frames, self.per_second(|status| Some(row(status)?.drops)))
    }

    pub fn drops_per_second(&self) -> Option<f64> {
        self.per_second(|status| Some(status.cpus.iter().map(|row| row.drops).sum()))
    }

    pub fn steered_per_second(&self) -> Option<f64> {
        self.per_second(|status| frames(status, "steered"))
    }

    /// The latest reading, where something is steered.
    pub fn on(&self) -> Option<&Status> {
        self.latest.as_ref().ok().filter(|status| status.mode != OFF)
    }

    pub fn rows(&self) -> SteeringRows {
        let Ok(latest) = &self.latest else { return SteeringRows::default() };
        let has_buckets = !latest.buckets.is_empty();
        let rates: Vec<_> = latest.cpus.iter().map(|row| self.on_cpu(row.cpu)).collect();
        let all = sum(rates.iter().map(|(frames, _)| *frames)).filter(|all| *all > 0.0);
        let cpus =
            latest.cpus.iter().zip(&rates).map(|(row, &(frames_per_second, drops_per_second))| SteeredCpu {
                cpu: row.cpu,
                frames_per_second,
                share: frames_per_second.zip(all).map(|(frames, all)| frames / all),
                drops_per_second,
                frames: row.frames,
                drops: row.drops,
                buckets: has_buckets
                    .then(|| latest.buckets.iter().filter(|bucket| bucket.cpu == row.cpu).count()),
            });
        let mut reasons: Vec<ReasonRow> = latest.reasons.iter().map(|row| self.reason(row)).collect();
        reasons.sort_by_key(|row| std::cmp::Reverse(row.frames));
        SteeringRows {
            mode: Some(latest.mode),
            cpus: cpus.collect(),
            reasons,
            buckets: has_buckets.then_some(latest.buckets.len()),
            moves: self.on().map(|latest| latest.moves),
            moves_per_second: self.per_second(|status| Some(status.moves)),
            steered_per_second: self.steered_per_second(),
            drops_per_second: sum(rates.iter().map(|(_, drops)| *drops)),
        }
    }

    fn reason(&self, row: &steer::status::ReasonRow) -> ReasonRow {
        let frames_per_second = self.per_second(|status| frames(status, row.reason));
        ReasonRow { reason: row.reason, frames_per_second, frames: row.frames }
    }
}

/// Steering on the interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SteeringRows {
    /// `None` where it is unknown.
    pub mode: Option<&'static str>,
    pub cpus: Vec<SteeredCpu>,
    pub reasons: Vec<ReasonRow>,
    /// `None` where nobody reports it, as below.
    pub buckets: Option<usize>,
    /// Buckets that were moved since it was attached.
    pub moves: Option<u64>,
    pub moves_per_second: Option<f64>,
    pub steered_per_second: Option<f64>,
    pub drops_per_second: Option<f64>,
}

/// A CPU that frames are steered to. Totals are since the program was attached.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SteeredCpu {
    pub cpu: u32,
    pub frames_per_second: Option<f64>,
    /// Over those of all CPUs, between the readings.
    pub share: Option<f64>,
    /// Frames that its queue had no room for.
    pub drops_per_second: Option<f64>,
    pub frames: u64,
    pub drops: u64,
    pub buckets: Option<usize>,
}

/// Frames by disposition, in the words of `rxlane steer status`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReasonRow {
    pub reason: &'static str,
    pub frames_per_second: Option<f64>,
    pub frames: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use steer::status::CpuRow;

    #[test]
    fn certain_drops_stay_until_it_is_attached_anew() {
        let status = |frames: u64, drops: u64| Status {
            cpus: vec![CpuRow { cpu: 1, frames: frames - drops, drops, ..CpuRow::default() }],
            reasons: vec![steer::status::ReasonRow { reason: "steered", frames, per_second: None }],
            ..Status::default()
        };
        let kept = |mut latest: Status, former: &Status| {
            keep_certain(&mut latest, former);
            latest.cpus[0].drops
        };
        assert_eq!(kept(status(2000, 450), &status(1000, 500)), 500);
        assert_eq!(kept(status(2000, 700), &status(1000, 500)), 700);
        assert_eq!(kept(status(900, 0), &status(1000, 500)), 0);
    }
}
