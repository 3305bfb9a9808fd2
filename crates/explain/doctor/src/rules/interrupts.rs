//! Which CPUs serve a device's receive vectors: `irq-one-cpu`, `irq-collision`, `irq-floating`.

use crate::Case;
use crate::case::since;
use crate::device::Device;
use crate::facts::{Effect, Fact};
use crate::finding::{Finding, Remedy, Severity, found};
use crate::placement::Placement;
use crate::rule::Judgement;
use crate::rules::sharing;
use crate::vectors::{self, Vector};
use crate::{fixed, load, modelled};
use host::Basis;
use std::collections::{BTreeMap, BTreeSet};

/// Part of a device's receive interrupts that one CPU must have served: what remains are those from before
/// affinities were set.
const ALL: f64 = 0.95;

/// Part of a vector's interrupts that a second CPU must have for the vector to move.
const SECOND: f64 = 0.1;

/// Part of a device's interrupts from which those of other devices on the same CPU make a forecast by the device's alone
/// wrong.
const OTHERS: f64 = 0.1;

/// The vectors of a device with several queues that carry load; else what became of the rule.
fn of_several<'c>(device: &Device<'c>) -> Result<Vec<Vector<'c>>, Judgement> {
    if device.case.queue_count(device) == Some(1) {
        return Err(Judgement::DoesNotApply);
    }
    vectors::judged(device)
}

/// The CPU that serves all these vectors of a device, where there are several and other CPUs.
fn only_cpu(device: &Device<'_>, vectors: &[Vector<'_>]) -> Option<u32> {
    let of = |cpu: u32| -> u64 {
        let counts = vectors.iter().map(|vector| vector.by_cpu.get(&cpu).copied().unwrap_or(0));
        counts.fold(0, u64::saturating_add)
    };
    let cpus = device.case.machine().cpus();
    let &busiest = cpus.iter().max_by_key(|cpu| of(**cpu))?;
    let is_all = of(busiest) as f64 >= ALL * vectors::total(vectors) as f64;
    (vectors.len() >= 2 && cpus.len() >= 2 && is_all).then_some(busiest)
}

/// Whether affinities that were read say that each vector has another CPU by now: the counts are then history.
fn is_fixed(vectors: &[Vector<'_>], cpu: u32) -> bool {
    vectors.iter().filter(|vector| vector.is_elsewhere(cpu)).count() >= vectors.len().saturating_sub(1).max(1)
}

/// `irq-one-cpu`: several busy receive vectors of a device, all served by one CPU.
pub(super) fn one_cpu(device: &Device<'_>) -> Judgement {
    let vectors = match of_several(device) {
        Ok(vectors) => vectors,
        Err(judgement) => return judgement,
    };
    match only_cpu(device, &vectors) {
        Some(cpu) if is_fixed(&vectors, cpu) => Judgement::lacks("cat /proc/interrupts, twice under load"),
        Some(cpu) => all_on(device, &vectors, cpu).into(),
        None => Judgement::Clear,
    }
}

/// The CPU that serves all receive vectors of a device, of several, with so many interrupts that it may limit.
pub(super) fn limiting_cpu(device: &Device<'_>) -> Option<(u32, u64)> {
    let vectors = of_several(device).ok()?;
    let cpu = only_cpu(device, &vectors).filter(|cpu| !is_fixed(&vectors, *cpu))?;
    let basis = vectors.first().map_or(Basis::SinceStart, |vector| vector.basis);
    let total = vectors::total(&vectors);
    (!vectors::is_little(basis, total)).then_some((cpu, total))
}

fn all_on(device: &Device<'_>, vectors: &[Vector<'_>], cpu: u32) -> Finding {
    let load = load::of(device.case, Some(cpu));
    let cpus = device.case.machine().cpus().len();
    let basis = vectors.first().map_or(Basis::SinceStart, |vector| vector.basis);
    let total = vectors::total(vectors);
    let is_little = vectors::is_little(basis, total);
    let sources = sharing::sources(device.case);
    // Next to what another device has on that CPU these are little.
    let dominant = sharing::dominant(&sources, cpu, total).filter(|_| !is_little);
    let severity = match dominant {
        Some(_) => Severity::Info,
        None => load.severity(if is_little { Severity::Info } else { Severity::Warning }),
    };
    let since = since(basis);
    let on_cpu = vectors.iter().filter_map(|vector| vector.by_cpu.get(&cpu)).copied();
    let share = on_cpu.fold(0, u64::saturating_add) as f64 / total.max(1) as f64;
    let fact = Fact::VectorsOnOneCpu { vectors: vectors.len(), cpu, others: cpus - 1, share, since };
    let minor = dominant.map(|dominant| Fact::MinorPart {
        cpu,
        owner: dominant.owner.to_owned(),
        share: dominant.share,
    });
    let finding = found(severity, fact)
        .says(minor)
        .says(is_little.then_some(Fact::SoFewInterrupts))
        .quotes(vectors.iter().map(|vector| &vector.interrupt.quote).take(vectors::MOST_QUOTES))
        .load(&load);
    let commands = moves(device.case, vectors, &in_order(device, cpu), true);
    if commands.is_empty() {
        return finding.fix(fixed::instead_of_affinity(device.case, &vectors.iter().collect::<Vec<_>>()));
    }
    let most = vectors.iter().map(|vector| vector.total).max().unwrap_or(0);
    let share = most as f64 / total.max(1) as f64;
    // What the CPU does for other devices remains with it.
    let others = sharing::of_others(&sources, cpu, &device.word());
    if others as f64 > OTHERS * total as f64 {
        return finding.fix([Remedy::linux(Effect::CpuEach { busiest: None }, commands)]);
    }
    let effect = Effect::CpuEach { busiest: (vectors.len() <= cpus).then_some(share) };
    let frames: Vec<u64> = vectors.iter().map(|vector| vector.total).collect();
    finding.fix([modelled::with_a_cpu_each(Remedy::linux(effect, commands), device.case, cpus, &frames)])
}

/// All CPUs: those of the serving CPU's NUMA node first, and among them those that serve no busy vector of another
/// device.
fn in_order(device: &Device<'_>, cpu: u32) -> Vec<u32> {
    let case = device.case;
    let local = case.snapshot().cpus.nodes.values().find(|node| node.contains(&cpu));
    let taken: BTreeSet<u32> = case.machine().serving(Some(&device.name)).collect();
    let mut cpus: Vec<u32> = case.machine().cpus().iter().copied().collect();
    cpus.sort_by_key(|cpu| (local.is_some_and(|local| !local.contains(cpu)), taken.contains(cpu), *cpu));
    cpus
}

/// `irq-collision`: busy receive vectors share a CPU while others serve none.
pub(super) fn collision(device: &Device<'_>) -> Judgement {
    let vectors = match of_several(device) {
        Ok(vectors) => vectors,
        Err(judgement) => return judgement,
    };
    // All on one CPU is `irq-one-cpu`.
    if only_cpu(device, &vectors).is_some() {
        return Judgement::Clear;
    }
    let mut by_cpu: BTreeMap<u32, Vec<&Vector<'_>>> = BTreeMap::new();
    for vector in &vectors {
        if let Some(cpu) = vector.cpu() {
            by_cpu.entry(cpu).or_default().push(vector);
        }
    }
    let shared =
        by_cpu.iter().filter(|(_, vectors)| vectors.len() > 1).max_by_key(|(_, vectors)| vectors.len());
    let Some((&cpu, together)) = shared else { return Judgement::Clear };
    let free = free(device, cpu);
    if free.is_empty() {
        return Judgement::Clear;
    }
    let load = load::of(device.case, Some(cpu));
    // Totals since boot may be of affinities that changed long ago.
    let is_now = together.iter().all(|vector| vector.basis != Basis::SinceStart);
    let severity = load.severity(if is_now { Severity::Warning } else { Severity::Info });
    let names = together.iter().map(|vector| vector.interrupt.action.clone()).collect();
    let commands = moves(device.case, together.iter().skip(1).copied(), &free, false);
    let remedies = match commands.is_empty() {
        false => vec![Remedy::linux(Effect::FreeCpuEach, commands)],
        true => fixed::instead_of_affinity(device.case, together),
    };
    found(severity, Fact::VectorsShare { cpu, names, free })
        .quotes(together.iter().map(|vector| &vector.interrupt.quote))
        .load(&load)
        .fix(remedies)
        .into()
}

/// Commands that give each of these vectors a CPU, in turn. One that the plan of the machine moves goes where that says, and others
/// to CPUs that it leaves free, where there are any.
fn moves<'v>(
    case: &Case<'_>,
    vectors: impl IntoIterator<Item = &'v Vector<'v>>,
    cpus: &[u32],
    repeat: bool,
) -> Vec<String> {
    let placement = Placement::of(case);
    let taken: BTreeSet<u32> = placement.cpus().collect();
    let open: Vec<u32> = cpus.iter().copied().filter(|cpu| !taken.contains(cpu)).collect();
    let open = if open.is_empty() { cpus } else { &open };
    let mut open = open.iter().copied().cycle().take(if repeat { usize::MAX } else { open.len() });
    let movable = vectors.into_iter().filter(|vector| !vector.is_fixed(case));
    let placed =
        movable.filter_map(|vector| Some((vector, placement.cpu_of(vector).or_else(|| open.next())?)));
    placed.flat_map(|(vector, cpu)| vectors::one_each(case, [vector], &[cpu])).collect()
}

/// CPUs of the same NUMA node, or of the machine where nodes are not known, that serve no busy vector of any
/// device.
fn free(device: &Device<'_>, cpu: u32) -> Vec<u32> {
    let machine = device.case.machine();
    let node = device.case.snapshot().cpus.nodes.values().find(|node| node.contains(&cpu));
    let taken: BTreeSet<u32> = machine.serving(None).collect();
    let free = machine.cpus().difference(&taken).copied();
    free.filter(|cpu| node.is_none_or(|node| node.contains(cpu))).collect()
}

/// `irq-floating`: a receive vector is served by several CPUs in turn.
pub(super) fn floating(device: &Device<'_>) -> Judgement {
    if device.case.snapshot().cpu_count() == Some(1) {
        return Judgement::DoesNotApply;
    }
    let vectors = match vectors::judged(device) {
        Ok(vectors) => vectors,
        Err(judgement) => return judgement,
    };
    let cpus_of = |vector: &Vector<'_>| -> Vec<u32> {
        let serves = |(_, count): &(&u32, &u64)| **count as f64 >= SECOND * vector.total as f64;
        vector.by_cpu.iter().filter(serves).map(|(cpu, _)| *cpu).collect()
    };
    let moving: Vec<&Vector<'_>> = vectors.iter().filter(|vector| cpus_of(vector).len() > 1).collect();
    let Some(first) = moving.first() else { return Judgement::Clear };
    let fact = Fact::VectorsMove {
        moved: moving.len(),
        of: vectors.len(),
        since: since(first.basis),
        first: first.interrupt.action.clone(),
        cpus: cpus_of(first),
    };
    found(Severity::Info, fact).quotes(moving.iter().map(|vector| &vector.interrupt.quote)).into()
}
