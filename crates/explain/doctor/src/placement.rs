//! Which CPUs the vectors of a machine go to: one plan for `cpu-shared` and `irq-little-cpu`, in which each vector moves once.

use crate::Case;
use crate::cores::Cores;
use crate::facts::Effect;
use crate::finding::{Finding, Remedy};
use crate::rules::sharing::{self, Source};
use crate::vectors::Vector;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Vectors with the CPU that each gets.
#[derive(Default)]
pub(crate) struct Placement {
    moves: Vec<(String, u32)>,
    interfaces: BTreeSet<String>,
    /// Whether a little CPU serves network devices now.
    from_little: bool,
}

impl Placement {
    /// Network devices of little CPUs first, to big ones, then what shares a CPU, to those that are free after that.
    pub fn of(case: &Case<'_>) -> Placement {
        let sources = sharing::sources(case);
        let mut placement = Placement::default();
        let Some(most) = sharing::busiest(&sources) else { return placement };
        let busy: Vec<&Source<'_>> =
            sources.iter().filter(|source| source.is_part(sharing::BUSY, most)).collect();
        let taken: BTreeSet<u32> = busy.iter().map(|source| source.cpu).collect();
        if let Some(cores) = Cores::of(case) {
            let free: Vec<u32> = cores.big.difference(&taken).copied().collect();
            let is_on_little = |source: &&&Source<'_>| {
                source.is_network && cores.little.contains(&source.cpu) && !source.is_elsewhere()
            };
            let mut on_little: Vec<&Source<'_>> = busy.iter().filter(is_on_little).copied().collect();
            on_little.sort_by_key(|source| Reverse(source.vector.total));
            placement.add(case, &on_little, &free);
            placement.from_little = !placement.moves.is_empty();
        }
        let free = sharing::free(case, &busy);
        if let Some(cpu) = sharing::shared_cpu(&busy).filter(|_| !free.is_empty()) {
            let given: BTreeSet<u32> = placement.cpus().collect();
            let remaining: Vec<u32> = free.iter().copied().filter(|cpu| !given.contains(cpu)).collect();
            let together = sharing::together(&sources, most, cpu);
            let here: Vec<&Source<'_>> =
                together.into_iter().filter(|source| !placement.moves(source)).collect();
            // One stays: of those that cannot be moved, or else the busiest.
            let stays = usize::from(here.iter().all(|source| !source.vector.is_fixed(case)));
            let movable: Vec<&Source<'_>> =
                here.into_iter().filter(|source| !source.vector.is_fixed(case)).skip(stays).collect();
            placement.add(case, &movable, if remaining.is_empty() { &free } else { &remaining });
        }
        placement
    }

    fn add(&mut self, case: &Case<'_>, sources: &[&Source<'_>], cpus: &[u32]) {
        let is_movable = |source: &&&Source<'_>| {
            source.vector.interrupt.vector.bytes().all(|digit| digit.is_ascii_digit())
                && !source.vector.is_fixed(case)
        };
        for (source, cpu) in sources.iter().filter(is_movable).zip(cpus.iter().cycle()) {
            self.moves.push((source.vector.interrupt.vector.clone(), *cpu));
            self.interfaces.extend(source.vector.interrupt.interface.clone());
        }
    }

    fn moves(&self, source: &Source<'_>) -> bool {
        self.cpu_of(&source.vector).is_some()
    }

    /// The CPU that a vector gets; `None`: it stays where it is.
    pub fn cpu_of(&self, vector: &Vector<'_>) -> Option<u32> {
        let is_it = |moved: &&(String, u32)| moved.0 == vector.interrupt.vector;
        self.moves.iter().find(is_it).map(|(_, cpu)| *cpu)
    }

    /// The CPUs that get a vector.
    pub fn cpus(&self) -> impl Iterator<Item = u32> {
        self.moves.iter().map(|(_, cpu)| *cpu)
    }

    /// The commands of the whole plan.
    pub fn remedy(&self) -> Option<Remedy> {
        let commands = self
            .moves
            .iter()
            .map(|(vector, cpu)| format!("echo {cpu} > /proc/irq/{vector}/smp_affinity_list"));
        let effect = if self.from_little { Effect::BigCpuEach } else { Effect::FreeCpuEach };
        (!self.moves.is_empty()).then(|| Remedy::linux(effect, commands))
    }

    /// Whether a little CPU serves network devices now.
    pub fn is_from_little(&self) -> bool {
        self.from_little
    }
}

/// Affinities before RPS at the same interfaces, among findings of the same weight: what they cost is nothing, and RPS moves work
/// that has already begun.
pub(crate) fn before_rps(case: &Case<'_>, findings: &mut Vec<Finding>) {
    let placement = Placement::of(case);
    let is_rps = |finding: &Finding| {
        let spreads = |remedy: &Remedy| matches!(remedy.effect, Effect::Rps { .. } | Effect::Steer { .. });
        finding.remedies.first().is_some_and(spreads)
            && finding.interface.as_ref().is_some_and(|name| placement.interfaces.contains(name))
    };
    for id in ["cpu-shared", "irq-little-cpu"] {
        let Some(place) = findings.iter().position(|finding| finding.id == id) else { continue };
        let Some(finding) = findings.get(place).cloned() else { continue };
        let has_affinities =
            |remedy: &Remedy| matches!(remedy.effect, Effect::BigCpuEach | Effect::FreeCpuEach);
        let is_same =
            |other: &Finding| (other.severity, other.certainty) == (finding.severity, finding.certainty);
        let first = findings.iter().take(place).position(|other| is_same(other) && is_rps(other));
        if let Some(first) = first.filter(|_| finding.remedies.iter().any(has_affinities)) {
            findings.remove(place);
            findings.insert(first, finding);
        }
    }
}
