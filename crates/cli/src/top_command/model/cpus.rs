//! CPUs: where their time goes, and what the network stack counts on each.

use super::rate::per_second;
use super::{Heat, VectorRow};
use crate::top_command::steering::Readings;
use host::Snapshot;
use serde::Serialize;
use std::collections::BTreeSet;

/// Per cent of its time in softirq from which a CPU is worth a look, and is hot.
const WARM: f64 = 50.0;
const HOT: f64 = 80.0;

/// A CPU. What the stack counts is of all interfaces together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CpuRow {
    /// Its number.
    pub cpu: u32,
    /// Time that it was not idle, per cent.
    pub busy: Option<f64>,
    /// Time in softirqs, per cent.
    pub softirq: Option<f64>,
    /// Time in hard interrupts, per cent.
    pub interrupt: Option<f64>,
    /// Time in the kernel otherwise, per cent.
    pub system: Option<f64>,
    /// Time in programs, per cent.
    pub user: Option<f64>,
    /// `NET_RX` softirqs a second.
    pub net_rx_per_second: Option<f64>,
    /// Frames that the stack took up, a second (`processed` of softnet_stat).
    pub processed_per_second: Option<f64>,
    /// Frames dropped since the backlog was full, a second.
    pub dropped_per_second: Option<f64>,
    /// Times a second that budget or time ran out with frames left.
    pub time_squeeze_per_second: Option<f64>,
    /// Wake-ups by RPS a second.
    pub received_rps_per_second: Option<f64>,
    /// Interrupts of the device a second; `None` where none of its vectors is known.
    pub interrupts_per_second: Option<f64>,
    /// Frames that were steered to it, a second.
    pub steered_per_second: Option<f64>,
    /// Steered frames that its queue had no room for, a second.
    pub steered_drops_per_second: Option<f64>,
    /// Whether softirqs take much of its time.
    #[serde(skip)]
    pub heat: Heat,
}

/// The CPUs that anything tells of, by number.
pub fn rows(snapshot: &Snapshot, vectors: &[VectorRow], steering: &Readings) -> Vec<CpuRow> {
    let mut numbers: BTreeSet<u32> =
        snapshot.cpus.load.keys().chain(snapshot.softnet.keys()).copied().collect();
    let net_rx = snapshot.softirqs.get("NET_RX");
    numbers.extend(net_rx.into_iter().flat_map(|counts| counts.keys()));
    let interval = snapshot.interval;
    let row = |cpu: u32| {
        let load = snapshot.cpus.load.get(&cpu).map(|load| load.value);
        let softnet = snapshot.softnet.get(&cpu);
        let softirq = load.and_then(|load| load.softirq);
        let of_cpu = |vector: &VectorRow| vector.by_cpu.get(&cpu).copied();
        let interrupts: Vec<f64> = vectors.iter().filter_map(of_cpu).collect();
        CpuRow {
            cpu,
            busy: load.map(|load| 100.0 - load.idle),
            softirq,
            interrupt: load.map(|load| load.interrupt),
            system: load.map(|load| load.system),
            user: load.map(|load| load.user),
            net_rx_per_second: net_rx.and_then(|counts| per_second(counts.get(&cpu), interval)),
            processed_per_second: softnet.and_then(|row| per_second(Some(&row.processed), interval)),
            dropped_per_second: softnet.and_then(|row| per_second(Some(&row.dropped), interval)),
            time_squeeze_per_second: softnet.and_then(|row| per_second(Some(&row.time_squeeze), interval)),
            received_rps_per_second: softnet.and_then(|row| per_second(row.received_rps.as_ref(), interval)),
            interrupts_per_second: (!interrupts.is_empty()).then(|| interrupts.iter().sum()),
            steered_per_second: steering.per_second(|status| Some(status.cpus.get(&cpu)?.frames)),
            steered_drops_per_second: steering.per_second(|status| Some(status.cpus.get(&cpu)?.drops)),
            heat: match softirq {
                Some(softirq) if softirq >= HOT => Heat::Hot,
                Some(softirq) if softirq >= WARM => Heat::Warm,
                _ => Heat::Calm,
            },
        }
    };
    numbers.into_iter().map(row).collect()
}
