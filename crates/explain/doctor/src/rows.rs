//! The tables of a report: interfaces with queues, vectors × CPUs, CPUs.

use crate::report::{
    CpuRow, FastPathRow, InterfaceRow, QueueRow, StackRow, SteeredCpuRow, SteeringRow, TrafficRow, VectorRow,
};
use crate::{Case, Device, steered};
use host::{Basis, Counter, Fact, Interface, Interrupt, Observed, Shares, Xdp};
use std::collections::{BTreeMap, BTreeSet};

/// Judged devices and what stands on them.
pub(crate) fn interfaces(case: &Case<'_>) -> Vec<InterfaceRow> {
    let devices = case.devices().map(|device| device.interface);
    devices.chain(case.stacked()).map(|interface| interface_row(&Device { case, interface })).collect()
}

fn interface_row(interface: &Device<'_>) -> InterfaceRow {
    let case = interface.case;
    let profiles = case.profiles(interface);
    let names = || profiles.iter().map(|profile| profile.name());
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
        driver: value(&interface.driver),
        profile: names().next().filter(|_| profiles.len() == 1),
        candidates: names().filter(|_| profiles.len() > 1).collect(),
        model: value(&interface.model),
        bus: value(&interface.bus),
        up: latest(&interface.up),
        carrier: latest(&interface.link.up),
        virtual_functions: interface.virtual_functions.as_ref().map(|functions| functions.value),
        master: value(&interface.master),
        physical: (physical != interface.name).then(|| physical.to_owned()),
        since_start: spread.is_some_and(|spread| spread.shares.basis == Basis::SinceStart),
        queues,
        steering: steering_row(interface),
    }
}

fn steering_row(device: &Device<'_>) -> Option<SteeringRow> {
    let case = device.case;
    let steering = device.steering.as_ref()?;
    let steered = steered::of(device);
    let by_target = || steering.cpus.iter();
    let frames = column(case, by_target().filter_map(|(&cpu, target)| Some((cpu, target.frames.as_ref()?))));
    let drops = column(case, by_target().filter_map(|(&cpu, target)| Some((cpu, target.drops.as_ref()?))));
    let total = frames.values().fold(0, |sum: u64, count| sum.saturating_add(*count));
    let cpus = by_target().map(|(&cpu, _)| SteeredCpuRow {
        cpu,
        frames: frames.get(&cpu).copied(),
        share: frames.get(&cpu).filter(|_| total > 0).map(|count| *count as f64 / total as f64),
        drops: drops.get(&cpu).copied(),
    });
    let is_sampled =
        by_target().filter_map(|(_, target)| target.frames.as_ref()).all(|frames| frames.counted().is_some());
    Some(SteeringRow {
        mode: mode(*steering.mode.get()),
        classes: steering.classes.as_ref().map(|seen| seen.get().clone()),
        share: steered.and_then(|steered| steered.share()),
        cpus: cpus.collect(),
        since_start: !is_sampled || case.snapshot().interval.is_none(),
        rebalances: latest(&steering.rebalances),
    })
}

/// What a fast path forwards; `None` where none is known, or its counters were started anew.
pub(crate) fn fast_path(case: &Case<'_>) -> Option<FastPathRow> {
    let fast_path = case.snapshot().fast_path.as_ref()?;
    let shares = fast_path.shares(case.snapshot().interval)?;
    let (fast, slow) = shares.counts.split_first()?;
    let total = shares.total();
    Some(FastPathRow {
        ports: fast_path.ports.value.clone(),
        mode: mode(fast_path.mode.value),
        fast: *fast,
        slow: fast_path.slow.keys().cloned().zip(slow.iter().copied()).collect(),
        fast_share: (total > 0).then(|| *fast as f64 / total as f64),
        flows: fast_path.flows.as_ref().map(|flows| *flows.get()),
        since_start: shares.basis == Basis::SinceStart,
    })
}

const fn mode(xdp: Xdp) -> &'static str {
    match xdp {
        Xdp::Native => "native",
        Xdp::Generic => "generic",
        Xdp::Off | Xdp::Offloaded => "off",
    }
}

fn value(fact: &Option<Fact<String>>) -> Option<String> {
    fact.as_ref().map(|fact| fact.value.clone())
}

fn latest(seen: &Option<Observed<bool>>) -> Option<bool> {
    seen.as_ref().map(|seen| *seen.get())
}

pub(crate) fn traffic(case: &Case<'_>) -> Vec<TrafficRow> {
    let rows = case.devices().filter_map(|device| {
        let mix = case.sampled(&device)?;
        Some(TrafficRow {
            interface: device.name.clone(),
            frames: mix.source.frames,
            bytes: mix.source.wire_bytes,
            flows: mix.flows.unidirectional,
            stacks: mix
                .stacks
                .iter()
                .map(|row| StackRow { stack: row.stack.clone(), frames: row.frames })
                .collect(),
            problems: mix.source.problems.clone(),
            damaged: mix.source.damaged,
        })
    });
    rows.collect()
}

/// Vectors of network interfaces. Those of one interface are compared on one basis.
pub(crate) fn vectors(case: &Case<'_>) -> Vec<VectorRow> {
    case.devices().flat_map(|device| vectors_of(case, &device)).collect()
}

fn vectors_of(case: &Case<'_>, device: &Interface) -> Vec<VectorRow> {
    let interrupts: Vec<&Interrupt> = case.snapshot().interrupts_of(&device.name).collect();
    let counters = interrupts.iter().flat_map(|interrupt| interrupt.counts.values());
    let Some(shares) = case.shares(counters) else { return Vec::new() };
    let mut counts = shares.counts.iter().copied();
    let rows = interrupts.iter().map(|interrupt| {
        let counted: Vec<(Option<u32>, u64)> =
            interrupt.counts.keys().copied().zip(counts.by_ref().take(interrupt.counts.len())).collect();
        let total = counted.iter().fold(0, |sum: u64, (_, count)| sum.saturating_add(*count));
        VectorRow {
            interface: device.name.clone(),
            vector: interrupt.vector.clone(),
            action: interrupt.action.clone(),
            queue: interrupt.queue,
            per_cpu: counted.into_iter().filter_map(|(cpu, count)| Some((cpu?, count))).collect(),
            total,
            per_second: shares.per_second(total),
            since_start: shares.basis == Basis::SinceStart,
            affinity: interrupt.affinity.as_ref().map(|cpus| cpus.get().clone()),
        }
    });
    rows.collect()
}

/// What each CPU did. Each column is compared on one basis.
pub(crate) fn per_cpu(case: &Case<'_>) -> Vec<CpuRow> {
    let snapshot = case.snapshot();
    let net_rx = snapshot.softirqs.get("NET_RX");
    let softnet = &snapshot.softnet;
    let net_rx_counted = column(case, net_rx.into_iter().flatten().map(|(&cpu, counter)| (cpu, counter)));
    let processed = column(case, softnet.iter().map(|(&cpu, softnet)| (cpu, &softnet.processed)));
    let dropped = column(case, softnet.iter().map(|(&cpu, softnet)| (cpu, &softnet.dropped)));
    let squeezed = column(case, softnet.iter().map(|(&cpu, softnet)| (cpu, &softnet.time_squeeze)));
    let woken = softnet.iter().filter_map(|(&cpu, softnet)| Some((cpu, softnet.received_rps.as_ref()?)));
    let woken = column(case, woken);
    let cpus = net_rx.into_iter().flat_map(BTreeMap::keys);
    let cpus: BTreeSet<u32> = cpus.chain(softnet.keys()).chain(snapshot.cpus.load.keys()).copied().collect();
    let row = |cpu| {
        let load = snapshot.cpus.load.get(&cpu).map(|load| load.value);
        CpuRow {
            cpu,
            net_rx: net_rx_counted.get(&cpu).copied(),
            processed: processed.get(&cpu).copied(),
            dropped: dropped.get(&cpu).copied(),
            time_squeeze: squeezed.get(&cpu).copied(),
            received_rps: woken.get(&cpu).copied(),
            busy: load.map(|load| 100.0 - load.idle),
            softirq: load.and_then(|load| load.softirq),
        }
    };
    cpus.into_iter().map(row).collect()
}

/// What the counters of a column counted: between the samples where there are two, else since start.
fn column<'c>(case: &Case<'_>, counters: impl Iterator<Item = (u32, &'c Counter)>) -> BTreeMap<u32, u64> {
    let counters: Vec<(u32, &Counter)> = counters.collect();
    let deltas: Option<BTreeMap<u32, u64>> =
        counters.iter().map(|&(cpu, counter)| Some((cpu, counter.counted()?))).collect();
    match deltas.filter(|_| case.snapshot().interval.is_some()) {
        Some(deltas) => deltas,
        None => {
            let shares = case.shares(counters.iter().map(|(_, counter)| *counter));
            shares.map_or_else(BTreeMap::new, |shares| {
                counters.iter().map(|(cpu, _)| *cpu).zip(shares.counts).collect()
            })
        }
    }
}
