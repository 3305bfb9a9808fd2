//! Interrupt vectors of the device.

use super::rate::counted;
use super::{Heat, rate};
use host::{Interrupt, Snapshot};
use serde::Serialize;
use std::collections::BTreeMap;

/// Interrupts a second of a vector above which a CPU that it shares with another is worth a word.
pub(super) const BUSY: f64 = 100.0;

/// A line of `/proc/interrupts`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VectorRow {
    /// Number.
    pub vector: String,
    /// What it is for, as the driver calls it.
    pub action: String,
    /// The queue that it serves.
    pub queue: Option<u32>,
    /// Whether it serves received frames; `None` where its name does not say.
    pub receives: Option<bool>,
    /// Interrupts a second, on all CPUs.
    pub interrupts_per_second: Option<f64>,
    /// The CPU that took most of them between the samples.
    pub cpu: Option<u32>,
    /// How much of them it took.
    pub cpu_share: Option<f64>,
    /// CPUs that it is delivered to, or may be.
    pub affinity: Option<Vec<u32>>,
    /// Frames of its queue for each interrupt.
    pub frames_per_interrupt: Option<f64>,
    /// Interrupts a second by CPU.
    #[serde(skip)]
    pub by_cpu: BTreeMap<u32, f64>,
    /// Whether a CPU serves it and another busy one.
    #[serde(skip)]
    pub heat: Heat,
}

/// The vectors of the device, in the order of `/proc/interrupts`.
pub fn rows(snapshot: &Snapshot, device: &str) -> Vec<VectorRow> {
    let mut rows: Vec<VectorRow> =
        snapshot.interrupts_of(device).map(|interrupt| row(interrupt, snapshot, device)).collect();
    let mut shared: BTreeMap<u32, u32> = BTreeMap::new();
    for row in rows.iter().filter(|row| is_busy(row)) {
        *shared.entry(row.cpu.unwrap_or(0)).or_default() += 1;
    }
    let has_choice = snapshot.cpu_count().is_some_and(|count| count > 1);
    for row in rows.iter_mut().filter(|row| is_busy(row) && has_choice) {
        if shared.get(&row.cpu.unwrap_or(0)).is_some_and(|&vectors| vectors > 1) {
            row.heat = Heat::Warm;
        }
    }
    rows
}

/// Whether it interrupts a CPU that is known, often, for received frames.
pub(super) fn is_busy(row: &VectorRow) -> bool {
    row.receives != Some(false)
        && row.cpu.is_some()
        && row.interrupts_per_second.is_some_and(|rate| rate >= BUSY)
}

fn row(interrupt: &Interrupt, snapshot: &Snapshot, device: &str) -> VectorRow {
    let seconds = snapshot.interval.map(|interval| interval.as_secs_f64()).filter(|seconds| *seconds > 0.0);
    let counts: Vec<(Option<u32>, Option<u64>)> =
        interrupt.counts.iter().map(|(&cpu, counter)| (cpu, counted(counter))).collect();
    let total = rate::sum(counts.iter().map(|(_, count)| count.map(|count| count as f64)));
    let busiest = counts
        .iter()
        .filter_map(|&(cpu, count)| Some((count?, cpu?)))
        .filter(|(count, _)| *count > 0)
        .max_by_key(|&(count, cpu)| (count, std::cmp::Reverse(cpu)));
    let interrupts_per_second = total.zip(seconds).map(|(total, seconds)| total / seconds);
    let queue = interrupt.queue.filter(|_| interrupt.receives != Some(false));
    let frames = queue.and_then(|queue| {
        let queue = snapshot.interface(device)?.queues.get(&queue)?;
        rate::per_second(queue.packets.as_ref(), snapshot.interval)
    });
    let by_cpu = counts.iter().filter_map(|&(cpu, count)| Some((cpu?, count? as f64 / seconds?)));
    VectorRow {
        vector: interrupt.vector.clone(),
        action: interrupt.action.clone(),
        queue: interrupt.queue,
        receives: interrupt.receives,
        interrupts_per_second,
        cpu: busiest.map(|(_, cpu)| cpu),
        cpu_share: busiest
            .zip(total.filter(|total| *total > 0.0))
            .map(|((count, _), total)| count as f64 / total),
        affinity: interrupt.affinity.as_ref().map(|cpus| cpus.get().clone()),
        frames_per_interrupt: frames
            .zip(interrupts_per_second.filter(|rate| *rate > 0.0))
            .map(|(frames, interrupts)| frames / interrupts),
        by_cpu: by_cpu.collect(),
        heat: Heat::Calm,
    }
}
