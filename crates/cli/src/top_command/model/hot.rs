//! What is hot, in a sentence each: what a person looking at the screen should see first.
//!
//! This is no diagnosis: why it is so, and what helps, `rxlane doctor` says.

use super::vectors::is_busy;
use super::{Model, queues};
use crate::top_command::figures;
use serde::Serialize;
use std::collections::BTreeMap;

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
    Hot,
}

/// A sentence about something hot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// How hot.
    pub heat: Heat,
    /// The sentence, without a full stop.
    pub text: String,
}

/// What is hot, the worst first.
pub fn remarks(model: &Model) -> Vec<Remark> {
    let mut remarks: Vec<Remark> = [lost(model), cpus(model), queues(model), vectors(model), squeezed(model)]
        .into_iter()
        .flatten()
        .collect();
    remarks.sort_by_key(|remark| std::cmp::Reverse(remark.heat));
    remarks
}

fn lost(model: &Model) -> Vec<Remark> {
    let lossy = model.stages.iter().filter(|row| row.drops_per_second.is_some_and(|drops| drops > 0.0));
    let remark = |row: &super::StageRow| {
        let place = match row.stage {
            "admit" => "refused as too long (admit)",
            "queue" => "lost at the ring (queue)",
            "steer" => "lost at full backlogs (steer)",
            "deliver" => "discarded by IP (deliver)",
            stage => return Remark { heat: Heat::Hot, text: format!("frames are lost at {stage}") },
        };
        let rate = format::compact(row.drops_per_second);
        Remark { heat: Heat::Hot, text: format!("{rate} frames/s are {place}") }
    };
    lossy.map(remark).collect()
}

fn cpus(model: &Model) -> Vec<Remark> {
    let mut by_softirq: Vec<(f64, u32)> =
        model.cpus.iter().filter_map(|row| Some((row.softirq?, row.cpu))).collect();
    by_softirq.sort_by(|one, other| other.0.total_cmp(&one.0));
    let hot: Vec<u32> = model.cpus.iter().filter(|row| row.heat == Heat::Hot).map(|row| row.cpu).collect();
    let Some(&(share, _)) = by_softirq.first().filter(|_| !hot.is_empty()) else { return Vec::new() };
    let others = match by_softirq.get(hot.len()) {
        Some((next, _)) => format!(", the others {} at most", figures::percent(Some(*next))),
        None => String::new(),
    };
    let word = if hot.len() == 1 { "CPU" } else { "CPUs" };
    let verb = if hot.len() == 1 { "spends" } else { "spend up to" };
    let text = format!(
        "{word} {} {verb} {} of the time in softirq{others}",
        figures::cpu_list(&hot),
        figures::percent(Some(share)),
    );
    vec![Remark { heat: Heat::Hot, text }]
}

fn queues(model: &Model) -> Vec<Remark> {
    let hottest = model
        .queues
        .iter()
        .max_by(|one, other| one.share.unwrap_or(0.0).total_cmp(&other.share.unwrap_or(0.0)));
    let Some(row) = hottest.filter(|row| row.heat != Heat::Calm) else { return Vec::new() };
    let text = format!(
        "queue {} takes {} of the frames; {} queues would take {} each",
        row.queue,
        figures::share(row.share),
        model.queues.len(),
        figures::share(Some(1.0 / model.queues.len() as f64)),
    );
    vec![Remark { heat: row.heat, text }]
}

fn vectors(model: &Model) -> Vec<Remark> {
    let mut shared: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    for row in model.vectors.iter().filter(|row| is_busy(row) && row.heat != Heat::Calm) {
        if let Some(cpu) = row.cpu {
            shared.entry(cpu).or_default().push(&row.vector);
        }
    }
    let remark = |(cpu, vectors): (u32, Vec<&str>)| Remark {
        heat: Heat::Warm,
        text: format!("{} busy vectors of the device interrupt CPU {cpu}", vectors.len()),
    };
    shared.into_iter().map(remark).collect()
}

fn squeezed(model: &Model) -> Vec<Remark> {
    let rows = model.cpus.iter().filter_map(|row| Some((row.time_squeeze_per_second?, row.cpu)));
    let squeezed: Vec<(f64, u32)> = rows.filter(|(rate, _)| *rate >= 1.0).collect();
    if squeezed.is_empty() {
        return Vec::new();
    }
    let cpus: Vec<u32> = squeezed.iter().map(|(_, cpu)| *cpu).collect();
    let rate: f64 = squeezed.iter().map(|(rate, _)| rate).sum();
    let word = if cpus.len() == 1 { "CPU" } else { "CPUs" };
    let text = format!(
        "polling ran out of budget {} times/s on {word} {} (time_squeeze)",
        format::compact(rate),
        figures::cpu_list(&cpus),
    );
    vec![Remark { heat: Heat::Warm, text }]
}

/// Whether enough is known to say that nothing is hot: frames by queue and the time of CPUs.
pub fn is_known(model: &Model) -> bool {
    let has_rates = model.queues.iter().any(|row| row.frames_per_second.is_some())
        || model.totals.frames_per_second.is_some_and(|rate| rate < queues::QUIET);
    has_rates && model.cpus.iter().any(|row| row.softirq.is_some())
}
