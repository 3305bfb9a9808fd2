//! The receive vectors of each device that carry load, and the CPUs that serve them.

use crate::{Case, ENOUGH_BETWEEN, ENOUGH_SINCE_START, steering};
use host::{Basis, Interface, Interrupt, Kind, Shares};
use std::collections::{BTreeMap, BTreeSet};

/// A receive vector with what it counted.
pub(crate) struct Vector<'a> {
    /// The line.
    pub interrupt: &'a Interrupt,
    /// Interrupts by CPU, between the samples where there are two and it moved.
    pub by_cpu: BTreeMap<u32, u64>,
    /// Their sum.
    pub total: u64,
    /// What they rest on.
    pub basis: Basis,
}

/// The receive vectors of a device that carry load.
pub(crate) enum Busy<'a> {
    /// These.
    Vectors(Vec<Vector<'a>>),
    /// Too few interrupts were counted to tell.
    TooFew,
    /// Beside the busiest interface of the machine this one has no load.
    Negligible,
    /// The text does not show them, or does not tell CPUs apart.
    Unknown,
}

/// Part of an even share below which a vector of a device carries no load.
const IDLE_VECTOR: f64 = 0.1;

/// Part of the busiest interface's interrupts below which a device carries no load: drivers such as igb interrupt
/// on every queue each two seconds even without traffic (`igb_watchdog_task()`).
const IDLE_DEVICE: f64 = 0.001;

impl Vector<'_> {
    /// The CPU that took nearly all.
    pub(crate) fn cpu(&self) -> Option<u32> {
        let (&cpu, &most) = self.by_cpu.iter().max_by_key(|(_, count)| **count)?;
        (most as f64 >= steering::SERVES * self.total as f64).then_some(cpu)
    }
}

fn vector<'a>(case: &Case<'_>, interrupt: &'a Interrupt) -> Option<Vector<'a>> {
    let shares = Shares::of(interrupt.counts.values(), case.snapshot().interval)?;
    let cpus: Option<Vec<u32>> = interrupt.counts.keys().copied().collect();
    let by_cpu: BTreeMap<u32, u64> = cpus?.into_iter().zip(shares.counts.iter().copied()).collect();
    Some(Vector { interrupt, by_cpu, total: shares.total(), basis: shares.basis })
}

fn all<'a>(case: &Case<'a>, interface: &Interface) -> Option<Vec<Vector<'a>>> {
    let found: Option<Vec<Vector<'a>>> =
        case.receive_interrupts(interface).into_iter().map(|interrupt| vector(case, interrupt)).collect();
    found.filter(|vectors| !vectors.is_empty())
}

/// What is asked of all devices together; [`Case::machine`] keeps it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Machine {
    /// Most receive interrupts that a device counted between two samples.
    between: u64,
    /// The same since the counters were started.
    since_start: u64,
    /// Most frames that a device's queues counted since the counters were started.
    frames: u64,
    /// CPUs by number: those that are told, and those that columns of interrupts name.
    cpus: BTreeSet<u32>,
    /// CPUs that serve a busy vector, with the device's name.
    serving: Vec<(String, u32)>,
}

impl Machine {
    /// Asks the case.
    pub(crate) fn of(case: &Case<'_>) -> Machine {
        let columns =
            case.snapshot().interrupts.iter().flat_map(|interrupt| interrupt.counts.keys().flatten());
        let cpus = columns.copied().chain(steering::online(case)).collect();
        let mut machine = Machine { cpus, ..Machine::default() };
        for vectors in case.devices().filter_map(|device| all(case, device)) {
            let (between, since_start): (Vec<_>, Vec<_>) =
                vectors.iter().partition(|vector| vector.basis != Basis::SinceStart);
            let sum = |vectors: &[&Vector<'_>]| {
                vectors.iter().map(|vector| vector.total).fold(0, u64::saturating_add)
            };
            machine.between = machine.between.max(sum(&between));
            machine.since_start = machine.since_start.max(sum(&since_start));
        }
        for device in case.devices() {
            let frames = device.queues.values().filter_map(|queue| queue.packets.as_ref());
            let frames = frames.map(host::Counter::value).fold(0, u64::saturating_add);
            machine.frames = machine.frames.max(frames);
            if let Busy::Vectors(busy) = beside(&machine, case, device) {
                let cpus = busy.iter().filter_map(Vector::cpu);
                machine.serving.extend(cpus.map(|cpu| (device.name.clone(), cpu)));
            }
        }
        machine
    }

    /// Most frames that a device's queues counted since the counters were started.
    pub(crate) fn frames(&self) -> u64 {
        self.frames
    }

    /// CPUs by number.
    pub(crate) fn cpus(&self) -> &BTreeSet<u32> {
        &self.cpus
    }

    /// CPUs that serve busy vectors, of devices other than `but`.
    pub(crate) fn serving<'m>(&'m self, but: Option<&'m str>) -> impl Iterator<Item = u32> + 'm {
        self.serving.iter().filter(move |(name, _)| Some(name.as_str()) != but).map(|(_, cpu)| *cpu)
    }
}

/// The receive vectors of the device that carry load.
pub(crate) fn busy<'a>(case: &Case<'a>, interface: &Interface) -> Busy<'a> {
    beside(case.machine(), case, interface)
}

fn beside<'a>(machine: &Machine, case: &Case<'a>, interface: &Interface) -> Busy<'a> {
    let Some(mut vectors) = all(case, interface) else { return Busy::Unknown };
    // Where only some moved between the samples, the others are idle: totals do not compare with differences.
    if vectors.iter().any(|vector| vector.basis != Basis::SinceStart) {
        vectors.retain(|vector| vector.basis != Basis::SinceStart);
    }
    let total: u64 = vectors.iter().map(|vector| vector.total).fold(0, u64::saturating_add);
    let is_between = vectors.iter().any(|vector| vector.basis != Basis::SinceStart);
    let most = if is_between { machine.between } else { machine.since_start };
    if (total as f64) < IDLE_DEVICE * most as f64 {
        return Busy::Negligible;
    }
    if total < if is_between { ENOUGH_BETWEEN } else { ENOUGH_SINCE_START } {
        return Busy::TooFew;
    }
    let even = total as f64 / vectors.len().max(1) as f64;
    vectors.retain(|vector| vector.total as f64 >= IDLE_VECTOR * even);
    Busy::Vectors(vectors)
}

/// What would show it.
pub(crate) fn wanted(case: &Case<'_>, busy: &Busy<'_>) -> Vec<String> {
    let command = match case.system() {
        Some(host::System::FreeBsd | host::System::NetBsd) => "vmstat -i",
        _ => "cat /proc/interrupts",
    };
    vec![match busy {
        Busy::TooFew => format!("{command}, twice under load"),
        _ => command.to_owned(),
    }]
}

/// Whether there are interrupts to show: not of a device without hardware, nor by CPU where the system adds them up.
pub(crate) fn are_shown(case: &Case<'_>, interface: &Interface) -> bool {
    let is_veth = matches!(interface.kind.as_ref().map(|kind| &kind.value), Some(Kind::Veth))
        || interface.driver.as_ref().is_some_and(|driver| driver.value == "veth");
    !is_veth && !matches!(case.system(), Some(host::System::FreeBsd | host::System::NetBsd))
}

/// Commands that give each vector a CPU of its own, in turn over `cpus`.
pub(crate) fn one_each(vectors: &[&Vector<'_>], cpus: &[u32]) -> Vec<String> {
    vectors
        .iter()
        .filter(|vector| vector.interrupt.vector.bytes().all(|digit| digit.is_ascii_digit()))
        .zip(cpus.iter().cycle())
        .map(|(vector, cpu)| format!("echo {cpu} > /proc/irq/{}/smp_affinity_list", vector.interrupt.vector))
        .collect()
}

/// What goes against fixed affinities.
pub(crate) const IRQBALANCE: &str = "Where irqbalance runs it moves vectors again: stop it first, or let it do the \
                                     spreading alone (systemctl status irqbalance).";
