//! Receive queues.

use super::rate::{counted, per_second, sum};
use super::{Heat, VectorRow};
use host::Snapshot;
use serde::Serialize;

/// A queue that takes this much more than its fair share is worth a look, and is hot.
const WARM: f64 = 1.5;
const HOT: f64 = 2.0;
/// Frames a second of all queues below which no queue is hot.
pub(super) const QUIET: f64 = 1000.0;

/// A receive queue.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueueRow {
    /// Its number.
    pub queue: u32,
    /// Frames a second.
    pub frames_per_second: Option<f64>,
    /// Bytes a second.
    pub bytes_per_second: Option<f64>,
    /// Frames that it lost, a second.
    pub drops_per_second: Option<f64>,
    /// Frames that it lost since the driver started to count.
    pub drops: Option<u64>,
    /// Its frames over those of all queues, between the samples.
    pub share: Option<f64>,
    /// Its interrupt vector.
    pub vector: Option<String>,
    /// The CPU that took most of the vector's interrupts.
    pub cpu: Option<u32>,
    /// CPUs that RPS spreads its frames to; empty where RPS is off.
    pub rps: Option<Vec<u32>>,
    /// Whether it takes more than it should.
    #[serde(skip)]
    pub heat: Heat,
}

/// The queues of the device, by number.
pub fn rows(snapshot: &Snapshot, device: &str, vectors: &[VectorRow]) -> Vec<QueueRow> {
    let Some(own) = snapshot.interface(device) else { return Vec::new() };
    let interval = snapshot.interval;
    let frames = |queue: &host::Queue| queue.packets.as_ref().and_then(counted);
    let all: Option<f64> = sum(own.queues.values().map(|queue| frames(queue).map(|frames| frames as f64)));
    let rate = all.zip(interval).map(|(all, interval)| all / interval.as_secs_f64());
    let is_busy = rate.is_some_and(|rate| rate >= QUIET) && own.queues.len() > 1;
    let row = |(&number, queue): (&u32, &host::Queue)| {
        let share = frames(queue).zip(all).filter(|(_, all)| *all > 0.0).map(|(own, all)| own as f64 / all);
        let over_mean = share.map(|share| share * own.queues.len() as f64);
        let vector =
            vectors.iter().find(|vector| vector.queue == Some(number) && vector.receives != Some(false));
        QueueRow {
            queue: number,
            frames_per_second: per_second(queue.packets.as_ref(), interval),
            bytes_per_second: per_second(queue.bytes.as_ref(), interval),
            drops_per_second: per_second(queue.drops.as_ref(), interval),
            drops: queue.drops.as_ref().map(|drops| drops.value()),
            share,
            vector: vector.map(|vector| vector.vector.clone()),
            cpu: vector.and_then(|vector| vector.cpu),
            rps: queue.rps.as_ref().map(|rps| rps.get().clone()),
            heat: match over_mean.filter(|_| is_busy) {
                Some(over) if over >= HOT => Heat::Hot,
                Some(over) if over >= WARM => Heat::Warm,
                _ => Heat::Calm,
            },
        }
    };
    own.queues.iter().map(row).collect()
}
