//! The tables of a report: interfaces with queues, vectors × CPUs, CPUs.

use crate::Case;
use crate::report::{CpuRow, InterfaceRow, QueueRow, VectorRow};
use host::{Basis, Counter, Interface, Shares};
use std::collections::{BTreeMap, BTreeSet};

/// Judged devices and what stands on them.
pub(crate) fn interfaces(case: &Case<'_>) -> Vec<InterfaceRow> {
    case.devices().chain(case.stacked()).map(|interface| interface_row(case, interface)).collect()
}

fn interface_row(case: &Case<'_>, interface: &Interface) -> InterfaceRow {
    let profiles = case.profiles(interface);
    let spread = case.spread(interface);
    let physical = case.snapshot().physical(&interface.name);
    let queues = interface
        .queues
        .iter()
        .map(|(&number, queue)| {
            let place = spread.as_ref().and_then(|spread| spread.queues.iter().position(|&q| q == number));
            let shares = spread.as_ref().map(|spread| &spread.shares);
            let packets = place.and_then(|place| shares?.counts.get(place).copied());
            let total = shares.map_or(0, Shares::total);
            QueueRow {
                queue: number,
                packets,
                per_second: packets.and_then(|packets| shares?.per_second(packets)),
                share: packets.filter(|_| total > 0).map(|packets| packets as f64 / total as f64),
                drops: queue.drops.as_ref().map(Counter::value),
            }
        })
        .collect();
    InterfaceRow {
        name: interface.name.clone(),
        driver: interface.driver.as_ref().map(|driver| driver.value.clone()),
        profile: if let [one] = profiles[..] { Some(one.name()) } else { None },
        candidates: if profiles.len() > 1 {
            profiles.iter().map(|profile| profile.name()).collect()
        } else {
            Vec::new()
        },
        physical: (physical != interface.name).then(|| physical.to_owned()),
        since_start: spread.is_some_and(|spread| spread.shares.basis == Basis::SinceStart),
        queues,
    }
}

/// Vectors of network interfaces.
pub(crate) fn vectors(case: &Case<'_>) -> Vec<VectorRow> {
    let snapshot = case.snapshot();
    let wanted: BTreeSet<&str> = case.devices().map(|device| device.name.as_str()).collect();
    snapshot
        .interrupts
        .iter()
        .filter_map(|interrupt| {
            let interface = interrupt.interface.as_ref().filter(|name| wanted.contains(name.as_str()))?;
            let shares = Shares::of(interrupt.counts.values(), snapshot.interval)?;
            let per_cpu: BTreeMap<u32, u64> = interrupt
                .counts
                .keys()
                .zip(&shares.counts)
                .filter_map(|(cpu, &count)| Some(((*cpu)?, count)))
                .collect();
            Some(VectorRow {
                interface: interface.clone(),
                vector: interrupt.vector.clone(),
                action: interrupt.action.clone(),
                queue: interrupt.queue,
                per_cpu,
                total: shares.total(),
                per_second: shares.per_second(shares.total()),
                affinity: interrupt.affinity.as_ref().map(|cpus| cpus.get().clone()),
            })
        })
        .collect()
}

/// What each CPU did.
pub(crate) fn per_cpu(case: &Case<'_>) -> Vec<CpuRow> {
    let snapshot = case.snapshot();
    let net_rx = snapshot.softirqs.get("NET_RX");
    let cpus: BTreeSet<u32> = net_rx
        .into_iter()
        .flat_map(BTreeMap::keys)
        .chain(snapshot.softnet.keys())
        .chain(snapshot.cpus.load.keys())
        .copied()
        .collect();
    let counted = |counter: &Counter| {
        Shares::of([counter], snapshot.interval).and_then(|shares| shares.counts.first().copied())
    };
    cpus.into_iter()
        .map(|cpu| {
            let softnet = snapshot.softnet.get(&cpu);
            let load = snapshot.cpus.load.get(&cpu).map(|load| load.value);
            CpuRow {
                cpu,
                net_rx: net_rx.and_then(|net_rx| net_rx.get(&cpu)).and_then(counted),
                processed: softnet.and_then(|softnet| counted(&softnet.processed)),
                dropped: softnet.and_then(|softnet| counted(&softnet.dropped)),
                time_squeeze: softnet.and_then(|softnet| counted(&softnet.time_squeeze)),
                busy: load.map(|load| 100.0 - load.idle),
                softirq: load.and_then(|load| load.softirq),
            }
        })
        .collect()
}
