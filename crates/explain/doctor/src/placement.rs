//! Which CPUs the vectors of a machine go to: one plan for `cpu-shared` and `irq-little-cpu`, in which each vector moves once.

use crate::Case;
use crate::cores::Cores;
use crate::facts::Effect;
use crate::finding::{Finding, Remedy};
use crate::rules::sharing::{self, Source};
use crate::vectors::Vector;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Vectors with the CPU that each gets.
#[derive(Default)]
pub(crate) struct Placement {
    moves: Vec<(String, u32)>,
    /// Interrupts of busy devices by CPU, before and after.
    before: BTreeMap<u32, u64>,
    after: BTreeMap<u32, u64>,
    interfaces: BTreeSet<String>,
    /// Whether a little CPU serves network devices now.
    from_little: bool,
}

impl Placement {
    /// Network devices of little CPUs first, to big ones, then what shares a CPU, to those that are free after that: the
    /// busiest vectors first, each to the CPU that has least by then.
    pub fn of(case: &Case<'_>) -> Placement {
        let sources = sharing::sources(case);
        let mut placement = Placement::default();
        let Some(most) = sharing::busiest(&sources) else { return placement };
        let busy: Vec<&Source<'_>> = sources.iter().filter(|source| source.is_busy(most)).collect();
        let counts = |source: &&Source<'_>| {
            source.is_busy(most) || source.is_network && source.is_part(sharing::SEEN, most)
        };
        for source in sources.iter().filter(|source| !source.is_elsewhere()).filter(counts) {
            for (cpu, interrupts) in &source.vector.by_cpu {
                count(&mut placement.before, *cpu, *interrupts);
            }
            count(&mut placement.after, source.cpu, source.vector.total);
        }
        let taken: BTreeSet<u32> = busy.iter().map(|source| source.cpu).collect();
        if let Some(cores) = Cores::of(case) {
            let free: Vec<u32> = cores.big.difference(&taken).copied().collect();
            let is_on_little = |source: &&&Source<'_>| {
                source.is_network && cores.little.contains(&source.cpu) && !source.is_elsewhere()
            };
            let mut on_little: Vec<&Source<'_>> = busy.iter().filter(is_on_little).copied().collect();
            on_little.sort_by_key(|source| Reverse(source.vector.total));
            for source in on_little {
                placement.add(case, source, &free);
            }
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
            let kept = usize::from(here.iter().all(|source| !source.vector.is_fixed(case)));
            let movable = here.into_iter().filter(|source| !source.vector.is_fixed(case)).skip(kept);
            let cpus = if remaining.is_empty() { &free } else { &remaining };
            for source in movable {
                // What is little by itself moves only to a CPU that no vector was given.
                let is_given = |cpu: &u32| placement.cpus().any(|given| given == *cpu);
                if source.is_part(sharing::BUSY, most) || !cpus.iter().all(is_given) {
                    placement.add(case, source, cpus);
                }
            }
        }
        placement
    }

    /// Moves a source to the first of the CPUs that have least, where that is less than its own has without it.
    fn add(&mut self, case: &Case<'_>, source: &Source<'_>, cpus: &[u32]) {
        let vector = &source.vector;
        let is_numbered = vector.interrupt.vector.bytes().all(|digit| digit.is_ascii_digit());
        let load = |cpu: &u32| self.after.get(cpu).copied().unwrap_or(0);
        let Some(&cpu) = cpus.iter().min_by_key(|cpu| load(cpu)) else { return };
        let own = load(&source.cpu).saturating_sub(vector.total);
        if !is_numbered || vector.is_fixed(case) || load(&cpu) >= own.max(1) && self.is_given(cpu) {
            return;
        }
        self.after.insert(source.cpu, own);
        count(&mut self.after, cpu, vector.total);
        self.moves.push((vector.interrupt.vector.clone(), cpu));
        self.interfaces.extend(vector.interrupt.interface.clone());
    }

    fn is_given(&self, cpu: u32) -> bool {
        self.cpus().any(|given| given == cpu)
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

    /// Whether each vector gets a CPU for itself.
    fn is_alone(&self) -> bool {
        let cpus: BTreeSet<u32> = self.cpus().collect();
        cpus.len() == self.moves.len()
    }

    /// The commands of the whole plan.
    pub fn remedy(&self) -> Option<Remedy> {
        let commands = self
            .moves
            .iter()
            .map(|(vector, cpu)| format!("echo {cpu} > /proc/irq/{vector}/smp_affinity_list"));
        let effect = match self.is_alone() {
            true if self.from_little => Effect::BigCpuEach,
            true => Effect::FreeCpuEach,
            false => Effect::FreeCpus {
                before: part_of_busiest(&self.before),
                after: part_of_busiest(&self.after),
            },
        };
        (!self.moves.is_empty()).then(|| Remedy::linux(effect, commands))
    }

    /// Whether a little CPU serves network devices now.
    pub fn is_from_little(&self) -> bool {
        self.from_little
    }
}

fn count(by_cpu: &mut BTreeMap<u32, u64>, cpu: u32, interrupts: u64) {
    let sum = by_cpu.entry(cpu).or_default();
    *sum = sum.saturating_add(interrupts);
}

/// Part of the interrupts that the CPU with most of them has.
fn part_of_busiest(by_cpu: &BTreeMap<u32, u64>) -> f64 {
    let all = by_cpu.values().copied().fold(0, u64::saturating_add);
    by_cpu.values().copied().max().unwrap_or(0) as f64 / all.max(1) as f64
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
        let has_affinities = |remedy: &Remedy| {
            matches!(remedy.effect, Effect::BigCpuEach | Effect::FreeCpuEach | Effect::FreeCpus { .. })
        };
        let is_same =
            |other: &Finding| (other.severity, other.certainty) == (finding.severity, finding.certainty);
        let first = findings.iter().take(place).position(|other| is_same(other) && is_rps(other));
        if let Some(first) = first.filter(|_| finding.remedies.iter().any(has_affinities)) {
            findings.remove(place);
            findings.insert(first, finding);
        }
    }
}
