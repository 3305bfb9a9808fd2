//! Rows of queues, interrupt vectors and CPUs, and what counters counted in a second. What was read once, or fell, is unknown.

use super::Heat;
use crate::top_command::steering::Readings;
use host::{Counter, Interrupt, Queue, Snapshot};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Frames a second of all queues below which no queue is busy.
pub const QUIET: f64 = 1000.0;
/// Interrupts a second of a vector above which a CPU that it shares with another is worth a word.
const BUSY: f64 = 100.0;

/// What a counter counted in a second.
pub fn per_second(counter: Option<&Counter>, interval: Option<Duration>) -> Option<f64> {
    let seconds = interval?.as_secs_f64();
    let counted = counter?.counted()?;
    (seconds > 0.0).then(|| counted as f64 / seconds)
}

/// The sum, where there is something to add up and all of it is known.
pub fn sum(rates: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    let mut rates = rates.into_iter().peekable();
    rates.peek()?;
    rates.try_fold(0.0, |sum, rate| Some(sum + rate?))
}

/// Warm from one figure on, critical from another.
fn heat(value: Option<f64>, warm: f64, critical: f64) -> Heat {
    match value {
        Some(value) if value >= critical => Heat::Critical,
        Some(value) if value >= warm => Heat::Warm,
        _ => Heat::Calm,
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueueRow {
    pub queue: u32,
    pub frames_per_second: Option<f64>,
    pub bytes_per_second: Option<f64>,
    /// Frames that it lost.
    pub drops_per_second: Option<f64>,
    /// Since the driver started to count.
    pub drops: Option<u64>,
    /// Its frames over those of all queues, between the samples.
    pub share: Option<f64>,
    pub vector: Option<String>,
    /// The CPU that took most of the vector's interrupts.
    pub cpu: Option<u32>,
    /// CPUs that RPS spreads its frames to; empty where RPS is off.
    pub rps: Option<Vec<u32>>,
    #[serde(skip)]
    pub heat: Heat,
}

/// The queues of the device, by number.
pub fn queues(snapshot: &Snapshot, device: &str, vectors: &[VectorRow]) -> Vec<QueueRow> {
    let Some(own) = snapshot.interface(device) else { return Vec::new() };
    let interval = snapshot.interval;
    let frames = |queue: &Queue| queue.packets.as_ref()?.counted().map(|frames| frames as f64);
    let all = sum(own.queues.values().map(frames));
    let rate = all.zip(interval).map(|(all, interval)| all / interval.as_secs_f64());
    let is_busy = rate.is_some_and(|rate| rate >= QUIET) && own.queues.len() > 1;
    let row = |(&number, queue): (&u32, &Queue)| {
        let share = frames(queue).zip(all).filter(|(_, all)| *all > 0.0).map(|(own, all)| own / all);
        let over_mean = share.filter(|_| is_busy).map(|share| share * own.queues.len() as f64);
        let vector =
            vectors.iter().find(|vector| vector.queue == Some(number) && vector.receives != Some(false));
        QueueRow {
            queue: number,
            frames_per_second: per_second(queue.packets.as_ref(), interval),
            bytes_per_second: per_second(queue.bytes.as_ref(), interval),
            drops_per_second: per_second(queue.drops.as_ref(), interval),
            drops: queue.drops.as_ref().map(Counter::value),
            share,
            vector: vector.map(|vector| vector.vector.clone()),
            cpu: vector.and_then(|vector| vector.cpu),
            rps: queue.rps.as_ref().map(|rps| rps.get().clone()),
            heat: heat(over_mean, 1.5, 2.0),
        }
    };
    own.queues.iter().map(row).collect()
}

/// A line of `/proc/interrupts`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VectorRow {
    pub vector: String,
    /// What it is for, as the driver calls it.
    pub action: String,
    /// The queue that it serves.
    pub queue: Option<u32>,
    /// Whether it serves received frames; `None` where its name does not say.
    pub receives: Option<bool>,
    /// On all CPUs.
    pub interrupts_per_second: Option<f64>,
    /// The CPU that took most of them between the samples, and how much of them it took.
    pub cpu: Option<u32>,
    pub cpu_share: Option<f64>,
    /// CPUs that it is delivered to, or may be.
    pub affinity: Option<Vec<u32>>,
    /// Of its queue.
    pub frames_per_interrupt: Option<f64>,
    /// Interrupts a second.
    #[serde(skip)]
    by_cpu: BTreeMap<u32, f64>,
    /// Whether a CPU serves it and another busy one.
    #[serde(skip)]
    pub heat: Heat,
}

impl VectorRow {
    /// Whether it interrupts a CPU that is known, often, for received frames.
    pub fn is_busy(&self) -> bool {
        self.receives != Some(false)
            && self.cpu.is_some()
            && self.interrupts_per_second.is_some_and(|rate| rate >= BUSY)
    }
}

/// The vectors of the device, in the order of `/proc/interrupts`.
pub fn vectors(snapshot: &Snapshot, device: &str) -> Vec<VectorRow> {
    let mut rows: Vec<VectorRow> =
        snapshot.interrupts_of(device).map(|interrupt| vector(interrupt, snapshot, device)).collect();
    let mut shared: BTreeMap<Option<u32>, u32> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.is_busy()) {
        *shared.entry(row.cpu).or_default() += 1;
    }
    let has_choice = snapshot.cpu_count().is_some_and(|count| count > 1);
    for row in rows.iter_mut().filter(|row| row.is_busy() && has_choice) {
        if shared.get(&row.cpu).is_some_and(|&vectors| vectors > 1) {
            row.heat = Heat::Warm;
        }
    }
    rows
}

fn vector(interrupt: &Interrupt, snapshot: &Snapshot, device: &str) -> VectorRow {
    let seconds = snapshot.interval.map(|interval| interval.as_secs_f64()).filter(|seconds| *seconds > 0.0);
    let counts: Vec<(Option<u32>, Option<u64>)> =
        interrupt.counts.iter().map(|(&cpu, counter)| (cpu, counter.counted())).collect();
    let total = sum(counts.iter().map(|(_, count)| count.map(|count| count as f64)));
    let busiest = counts
        .iter()
        .filter_map(|&(cpu, count)| Some((count?, cpu?)))
        .filter(|(count, _)| *count > 0)
        .max_by_key(|&(count, cpu)| (count, std::cmp::Reverse(cpu)));
    let interrupts_per_second = total.zip(seconds).map(|(total, seconds)| total / seconds);
    let queue = interrupt.queue.filter(|_| interrupt.receives != Some(false));
    let frames = queue.and_then(|queue| {
        let queue = snapshot.interface(device)?.queues.get(&queue)?;
        per_second(queue.packets.as_ref(), snapshot.interval)
    });
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
        by_cpu: counts.iter().filter_map(|&(cpu, count)| Some((cpu?, count? as f64 / seconds?))).collect(),
        heat: Heat::Calm,
    }
}

/// A CPU: where its time goes, in per cent, and what the network stack counts on it, of all interfaces together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CpuRow {
    pub cpu: u32,
    /// Time that it was not idle.
    pub busy: Option<f64>,
    pub softirq: Option<f64>,
    /// Hard interrupts.
    pub interrupt: Option<f64>,
    /// The kernel otherwise.
    pub system: Option<f64>,
    pub user: Option<f64>,
    /// Softirqs.
    pub net_rx_per_second: Option<f64>,
    /// Frames that the stack took up, were dropped since the backlog was full, and times that budget or time ran out with frames
    /// left (softnet_stat).
    pub processed_per_second: Option<f64>,
    pub dropped_per_second: Option<f64>,
    pub time_squeeze_per_second: Option<f64>,
    /// Wake-ups by RPS.
    pub received_rps_per_second: Option<f64>,
    /// Of the device; `None` where none of its vectors is known.
    pub interrupts_per_second: Option<f64>,
    /// Frames that were steered to it, and those that its queue had no room for.
    pub steered_per_second: Option<f64>,
    pub steered_drops_per_second: Option<f64>,
    #[serde(skip)]
    pub heat: Heat,
}

/// The CPUs of which anything is known, by number.
pub fn cpus(snapshot: &Snapshot, vectors: &[VectorRow], steering: &Readings) -> Vec<CpuRow> {
    let mut numbers: BTreeSet<u32> =
        snapshot.cpus.load.keys().chain(snapshot.softnet.keys()).copied().collect();
    let net_rx = snapshot.softirqs.get("NET_RX");
    numbers.extend(net_rx.into_iter().flat_map(|counts| counts.keys()));
    let rate = |counter: Option<&Counter>| per_second(counter, snapshot.interval);
    let row = |cpu: u32| {
        let load = snapshot.cpus.load.get(&cpu).map(|load| load.value);
        let softnet = snapshot.softnet.get(&cpu);
        let softirq = load.and_then(|load| load.softirq);
        let interrupts: Vec<f64> =
            vectors.iter().filter_map(|vector| vector.by_cpu.get(&cpu).copied()).collect();
        let (steered_per_second, steered_drops_per_second) = steering.on_cpu(cpu);
        CpuRow {
            cpu,
            busy: load.map(|load| 100.0 - load.idle),
            softirq,
            interrupt: load.map(|load| load.interrupt),
            system: load.map(|load| load.system),
            user: load.map(|load| load.user),
            net_rx_per_second: net_rx.and_then(|counts| rate(counts.get(&cpu))),
            processed_per_second: rate(softnet.map(|row| &row.processed)),
            dropped_per_second: rate(softnet.map(|row| &row.dropped)),
            time_squeeze_per_second: rate(softnet.map(|row| &row.time_squeeze)),
            received_rps_per_second: rate(softnet.and_then(|row| row.received_rps.as_ref())),
            interrupts_per_second: (!interrupts.is_empty()).then(|| interrupts.iter().sum()),
            steered_per_second,
            steered_drops_per_second,
            heat: heat(softirq, 50.0, 80.0),
        }
    };
    numbers.into_iter().map(row).collect()
}
