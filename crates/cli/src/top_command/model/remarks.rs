//! What is busy, in a sentence each: what a person looking at the screen should see first. Why it is so, and what helps,
//! `rxlane doctor` says.

use super::rows::QUIET;
use super::{Model, StageRow};
use crate::top_command::table::share;
use serde::Serialize;
use std::collections::BTreeMap;
use steer::facts::list;

/// How much something catches the eye.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Heat {
    /// As it should be, or unknown.
    #[default]
    Calm,
    /// Worth a look.
    Warm,
    /// Something is lost or full.
    #[serde(rename = "hot")]
    Critical,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remark {
    pub heat: Heat,
    /// A sentence without a full stop.
    pub text: String,
}

/// What is critical or worth a look, the worst first.
pub fn remarks(model: &Model) -> Vec<Remark> {
    let mut remarks: Vec<Remark> = lost(model)
        .chain(cpus(model))
        .chain(queues(model))
        .chain(vectors(model))
        .chain(squeezed(model))
        .map(|(heat, text)| Remark { heat, text })
        .collect();
    remarks.sort_by_key(|remark| std::cmp::Reverse(remark.heat));
    remarks
}

fn lost(model: &Model) -> impl Iterator<Item = (Heat, String)> {
    let lossy = model.stages.iter().filter(|row| row.drops_per_second.is_some_and(|drops| drops > 0.0));
    lossy.map(|row: &StageRow| {
        let place = match row.stage {
            "admit" => "refused as too long (admit)",
            "queue" => "lost at the ring (queue)",
            "steer" => "lost at full backlogs (steer)",
            "deliver" => "discarded by IP (deliver)",
            stage => return (Heat::Critical, format!("frames are lost at {stage}")),
        };
        (Heat::Critical, format!("{} frames/s are {place}", format::compact(row.drops_per_second)))
    })
}

fn cpus(model: &Model) -> Option<(Heat, String)> {
    let mut by_softirq: Vec<f64> = model.cpus.iter().filter_map(|row| row.softirq).collect();
    by_softirq.sort_by(|one, other| other.total_cmp(one));
    let busy: Vec<u32> =
        model.cpus.iter().filter(|row| row.heat == Heat::Critical).map(|row| row.cpu).collect();
    let percent = |percent: f64| share(Some(percent / 100.0));
    let most = by_softirq.first().filter(|_| !busy.is_empty())?;
    let others = match by_softirq.get(busy.len()) {
        Some(next) => format!(", the others {} at most", percent(*next)),
        None => String::new(),
    };
    let (word, spend) = if busy.len() == 1 { ("CPU", "spends") } else { ("CPUs", "spend up to") };
    let text = format!("{word} {} {spend} {} of the time in softirq{others}", list(&busy), percent(*most));
    Some((Heat::Critical, text))
}

fn queues(model: &Model) -> Option<(Heat, String)> {
    let share_of = |row: &super::QueueRow| row.share.unwrap_or(0.0);
    let busiest = model.queues.iter().max_by(|one, other| share_of(one).total_cmp(&share_of(other)));
    let row = busiest.filter(|row| row.heat != Heat::Calm)?;
    let text = format!(
        "queue {} takes {} of the frames; {} queues would take {} each",
        row.queue,
        share(row.share),
        model.queues.len(),
        share(Some(1.0 / model.queues.len() as f64)),
    );
    Some((row.heat, text))
}

fn vectors(model: &Model) -> impl Iterator<Item = (Heat, String)> {
    let mut shared: BTreeMap<u32, usize> = BTreeMap::new();
    for row in model.vectors.iter().filter(|row| row.is_busy() && row.heat != Heat::Calm) {
        if let Some(cpu) = row.cpu {
            *shared.entry(cpu).or_default() += 1;
        }
    }
    shared.into_iter().map(|(cpu, vectors)| {
        (Heat::Warm, format!("{vectors} busy vectors of the device interrupt CPU {cpu}"))
    })
}

fn squeezed(model: &Model) -> Option<(Heat, String)> {
    let rows = model.cpus.iter().filter_map(|row| Some((row.time_squeeze_per_second?, row.cpu)));
    let (rates, cpus): (Vec<f64>, Vec<u32>) = rows.filter(|(rate, _)| *rate >= 1.0).unzip();
    let word = if cpus.len() == 1 { "CPU" } else { "CPUs" };
    let rate = format::compact(rates.iter().sum::<f64>());
    let text = format!("polling ran out of budget {rate} times/s on {word} {} (time_squeeze)", list(&cpus));
    (!cpus.is_empty()).then_some((Heat::Warm, text))
}

/// Whether enough is known to say that nothing is critical: frames by queue and the time of CPUs.
pub fn is_known(model: &Model) -> bool {
    let has_rates = model.queues.iter().any(|row| row.frames_per_second.is_some())
        || model.totals.frames_per_second.is_some_and(|rate| rate < QUIET);
    has_rates && model.cpus.iter().any(|row| row.softirq.is_some())
}
