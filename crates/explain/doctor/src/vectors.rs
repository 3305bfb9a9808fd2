//! The receive vectors of each device that carry load, and the CPUs that serve them.

use crate::Case;
use crate::case::{enough, kind};
use crate::device::{self, Device};
use crate::rule::Judgement;
use host::{Basis, Interrupt, Kind};
use std::collections::{BTreeMap, BTreeSet};

/// Lines of evidence.
pub(crate) const MOST_QUOTES: usize = 8;

/// Interrupts since boot that are a few minutes of a busy line, at some thousand a second.
const LITTLE: u64 = 1_000_000;

/// Interrupts a second that any CPU serves by the way.
const LITTLE_RATE: f64 = 500.0;

/// A receive vector with what it counted.
pub(crate) struct Vector<'a> {
    pub interrupt: &'a Interrupt,
    /// Interrupts by CPU, between the samples where there are two and it moved.
    pub by_cpu: BTreeMap<u32, u64>,
    pub total: u64,
    pub basis: Basis,
}

/// The receive vectors of a device that carry load.
enum Busy<'a> {
    Vectors(Vec<Vector<'a>>),
    TooFew,
    /// Next to the busiest interface of the machine this one has no load.
    Negligible,
    /// The text does not show them, or does not count by CPU.
    Unknown,
}

/// Part of an even share below which a vector of a device carries no load.
const IDLE_VECTOR: f64 = 0.1;

/// Part of the busiest interface's interrupts below which a device carries no load: drivers such as igb interrupt
/// on every queue each two seconds even without traffic (`igb_watchdog_task()`).
const IDLE_DEVICE: f64 = 0.001;

impl<'a> Vector<'a> {
    pub(crate) fn of(case: &Case<'_>, interrupt: &'a Interrupt) -> Option<Vector<'a>> {
        let shares = case.shares(interrupt.counts.values())?;
        let cpus: Option<Vec<u32>> = interrupt.counts.keys().copied().collect();
        let by_cpu: BTreeMap<u32, u64> = cpus?.into_iter().zip(shares.counts.iter().copied()).collect();
        Some(Vector { interrupt, by_cpu, total: shares.total(), basis: shares.basis })
    }

    /// Whether an affinity that was read says that another CPU serves it by now: the counts are then history.
    pub(crate) fn is_elsewhere(&self, cpu: u32) -> bool {
        let affinity = self.interrupt.affinity.as_ref().map(|seen| seen.get());
        self.basis == Basis::SinceStart
            && affinity.is_some_and(|cpus| !cpus.is_empty() && !cpus.contains(&cpu))
    }

    /// Whether the kernel refuses it another CPU.
    pub(crate) fn is_fixed(&self, case: &Case<'_>) -> bool {
        self.interrupt.fixed(case.snapshot()).is_some()
    }

    pub(crate) fn cpu(&self) -> Option<u32> {
        let (&cpu, &most) = self.by_cpu.iter().max_by_key(|(_, count)| **count)?;
        (most as f64 >= device::SERVES * self.total as f64).then_some(cpu)
    }
}

fn all<'c>(device: &Device<'c>) -> Option<Vec<Vector<'c>>> {
    let interrupts = device.case.receive_interrupts(device).into_iter();
    let found: Option<Vec<Vector<'c>>> =
        interrupts.map(|interrupt| Vector::of(device.case, interrupt)).collect();
    found.filter(|vectors| !vectors.is_empty())
}

/// The requirements on all devices together; [`Case::machine`] keeps it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Machine {
    /// Most receive interrupts that a device counted between two samples.
    between: u64,
    /// The same since the counters were started.
    since_start: u64,
    /// Most frames that a device's queues counted since the counters were started.
    frames: u64,
    /// CPUs by number: those that the text names, and those that columns of interrupts name.
    cpus: BTreeSet<u32>,
    /// CPUs that serve a busy vector, with the device's name.
    serving: Vec<(String, u32)>,
}

impl Machine {
    pub(crate) fn of(case: &Case<'_>) -> Machine {
        let columns =
            case.snapshot().interrupts.iter().flat_map(|interrupt| interrupt.counts.keys().flatten());
        let cpus = columns.copied().chain(device::online(case)).collect();
        let mut machine = Machine { cpus, ..Machine::default() };
        for vectors in case.devices().filter_map(|device| all(&device)) {
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
            if let Busy::Vectors(busy) = compared(&machine, &device) {
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

    pub(crate) fn cpus(&self) -> &BTreeSet<u32> {
        &self.cpus
    }

    /// CPUs that serve busy vectors, of devices other than `but`.
    pub(crate) fn serving<'m>(&'m self, but: Option<&'m str>) -> impl Iterator<Item = u32> + 'm {
        self.serving.iter().filter(move |(name, _)| Some(name.as_str()) != but).map(|(_, cpu)| *cpu)
    }
}

fn busy<'c>(device: &Device<'c>) -> Busy<'c> {
    compared(device.case.machine(), device)
}

fn compared<'c>(machine: &Machine, device: &Device<'c>) -> Busy<'c> {
    let Some(mut vectors) = all(device) else { return Busy::Unknown };
    // Where only some moved between the samples, the others are idle: totals do not compare with differences.
    if vectors.iter().any(|vector| vector.basis != Basis::SinceStart) {
        vectors.retain(|vector| vector.basis != Basis::SinceStart);
    }
    let total = total(&vectors);
    let basis = vectors.first().map_or(Basis::SinceStart, |vector| vector.basis);
    let most = if basis == Basis::SinceStart { machine.since_start } else { machine.between };
    if (total as f64) < IDLE_DEVICE * most as f64 {
        return Busy::Negligible;
    }
    if total < enough(basis) {
        return Busy::TooFew;
    }
    let even = total as f64 / vectors.len().max(1) as f64;
    vectors.retain(|vector| vector.total as f64 >= IDLE_VECTOR * even);
    Busy::Vectors(vectors)
}

/// The vectors of a device that carry load; else what became of the rule that asks for them.
pub(crate) fn judged<'c>(device: &Device<'c>) -> Result<Vec<Vector<'c>>, Judgement> {
    if !are_listed(device) {
        return Err(Judgement::DoesNotApply);
    }
    let command = device.case.by_system("cat /proc/interrupts", "vmstat -i", "vmstat -i");
    match busy(device) {
        Busy::Vectors(vectors) => Ok(vectors),
        Busy::Negligible => Err(Judgement::Clear),
        Busy::TooFew => Err(Judgement::lacks(format!("{command}, twice under load"))),
        Busy::Unknown => Err(Judgement::lacks(command)),
    }
}

/// Whether there are interrupts to show: not of a device without hardware, nor by CPU where the system adds them up.
fn are_listed(device: &Device<'_>) -> bool {
    kind(device) != Some(&Kind::Veth) && device.driver_name() != Some("veth") && !device.case.is_bsd()
}

pub(crate) fn total(vectors: &[Vector<'_>]) -> u64 {
    vectors.iter().map(|vector| vector.total).fold(0, u64::saturating_add)
}

/// Whether so many interrupts limit nothing.
pub(crate) fn is_little(basis: Basis, total: u64) -> bool {
    match basis {
        Basis::Between(time) => time
            .filter(|time| !time.is_zero())
            .is_some_and(|time| (total as f64) < LITTLE_RATE * time.as_secs_f64()),
        Basis::SinceStart => total < LITTLE,
    }
}

/// Commands that give each vector a CPU of its own, in turn over `cpus`; none for those that the kernel does not move.
pub(crate) fn one_each<'v>(
    case: &Case<'_>,
    vectors: impl IntoIterator<Item = &'v Vector<'v>>,
    cpus: &[u32],
) -> Vec<String> {
    vectors
        .into_iter()
        .filter(|vector| vector.interrupt.vector.bytes().all(|digit| digit.is_ascii_digit()))
        .filter(|vector| !vector.is_fixed(case))
        .zip(cpus.iter().cycle())
        .map(|(vector, cpu)| format!("echo {cpu} > /proc/irq/{}/smp_affinity_list", vector.interrupt.vector))
        .collect()
}
