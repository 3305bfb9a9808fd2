//! What a steering program on the interface does, as `rxlane steer status` tells it; read only.

use std::collections::BTreeMap;
use std::time::Duration;
use steer::record::Records;
use steer::status::{CpuRow, status};

/// How the program is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// In the driver.
    Native,
    /// After the driver.
    Generic,
    /// Not at all.
    Off,
}

impl Mode {
    /// The word of `rxlane steer status --json`.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Native => "native",
            Mode::Generic => "generic",
            Mode::Off => "off",
        }
    }
}

/// What was counted on one CPU that frames are steered to, since the program was attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuCounts {
    /// Frames that arrived.
    pub frames: u64,
    /// Frames that its queue had no room for.
    pub drops: u64,
}

/// Steering at one time; the fields of schema `rxlane.steer/1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// How it is attached.
    pub mode: Mode,
    /// By CPU.
    pub cpus: BTreeMap<u32, CpuCounts>,
    /// Frames by what became of them, `steered` among the reasons.
    pub reasons: BTreeMap<String, u64>,
    /// The CPU of each bucket, by the bucket's number; empty where nobody tells.
    pub buckets: Vec<u32>,
    /// Buckets that were moved from one CPU to another.
    pub moves: u64,
    /// What else there is to say, such as why counters cannot be read.
    pub remarks: Vec<String>,
}

/// Reads what steering does on `device`, and changes nothing.
///
/// # Errors
///
/// Why nothing is known, in one sentence that also says what would help (root, most of the time).
pub fn read(device: &str, records: &Records) -> Result<Status, String> {
    let told = status(device, Duration::ZERO, records)
        .map_err(|error| format!("{:#}", anyhow::Error::from(error)))?;
    let mode = match told.mode {
        "native" => Mode::Native,
        "generic" => Mode::Generic,
        // Somebody's program is attached, and nobody may say whose it is.
        _ if !told.complete => return Err(told.remarks.join("; ")),
        _ => Mode::Off,
    };
    let counts = |row: &CpuRow| (row.cpu, CpuCounts { frames: row.frames, drops: row.drops });
    Ok(Status {
        mode,
        cpus: told.cpus.iter().map(counts).collect(),
        reasons: told.reasons.iter().map(|row| (row.reason.to_owned(), row.frames)).collect(),
        buckets: told.buckets.iter().map(|bucket| bucket.cpu).collect(),
        moves: told.moves,
        remarks: told.remarks,
    })
}

impl Status {
    /// Drops that a former reading was certain of are certain still: a reading tells at least how many there were, and may
    /// be less certain than the one before.
    pub fn keep_certain(&mut self, former: &Status) {
        let is_less =
            |(reason, frames): (&String, &u64)| self.reasons.get(reason).is_none_or(|now| now < frames);
        // Attached anew, it counts anew.
        if former.reasons.iter().any(is_less) {
            return;
        }
        for (cpu, counts) in &mut self.cpus {
            if let Some(before) = former.cpus.get(cpu) {
                counts.drops = counts.drops.max(before.drops);
            }
        }
    }
}

/// Two readings and the time between them, as far as there are any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readings {
    /// The former reading.
    pub former: Option<Status>,
    /// The latest, or why there is none.
    pub latest: Result<Status, String>,
    /// The time between.
    pub between: Duration,
}

impl Readings {
    /// What a counter grew by in a second. `None` where it was not read twice, or fell.
    pub fn per_second(&self, counter: impl Fn(&Status) -> Option<u64>) -> Option<f64> {
        let latest = counter(self.latest.as_ref().ok()?)?;
        let grown = latest.checked_sub(counter(self.former.as_ref()?)?)?;
        (!self.between.is_zero()).then(|| grown as f64 / self.between.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certain_drops_stay_until_it_is_attached_anew() {
        let status = |steered: u64, drops: u64| Status {
            mode: Mode::Native,
            cpus: [(1, CpuCounts { frames: steered - drops, drops })].into(),
            reasons: [("steered".to_owned(), steered)].into(),
            buckets: Vec::new(),
            moves: 0,
            remarks: Vec::new(),
        };
        let kept = |mut latest: Status, former: &Status| {
            latest.keep_certain(former);
            latest.cpus[&1].drops
        };
        assert_eq!(kept(status(2000, 450), &status(1000, 500)), 500);
        assert_eq!(kept(status(2000, 700), &status(1000, 500)), 700);
        assert_eq!(kept(status(900, 0), &status(1000, 500)), 0);
    }
}
