//! Machines with little and big CPUs: `irq-little-cpu`.

use super::sharing::{self, Source};
use crate::Case;
use crate::case::since;
use crate::cores::Cores;
use crate::facts::Fact;
use crate::finding::{Finding, Severity, found};
use crate::fixed;
use crate::load;
use crate::placement::Placement;
use crate::rule::Judgement;
use crate::vectors::{self, Vector};
use host::Architecture;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// What shows the CPUs' capacities.
const CAPACITIES: &str = "grep . /sys/devices/system/cpu/cpu*/cpu_capacity";

/// `irq-little-cpu`: a little CPU serves busy network devices, and a big one serves none.
pub(super) fn little_cpu(case: &Case<'_>) -> Judgement {
    let snapshot = case.snapshot();
    let Some(cores) = Cores::of(case) else {
        // Other machines with CPUs of two kinds are no routers.
        let may_differ = snapshot.architecture.as_ref().is_none_or(|known| known.value == Architecture::Arm);
        return match snapshot.cpu_count() {
            Some(1) => Judgement::DoesNotApply,
            _ if snapshot.interrupts.is_empty() => Judgement::lacks("cat /proc/interrupts"),
            _ if !may_differ => Judgement::DoesNotApply,
            _ if Cores::are_known(case) || snapshot.architecture.is_none() => Judgement::Clear,
            // Up to four CPUs are of one kind on nearly every board.
            Some(..=4) => Judgement::Clear,
            _ => Judgement::lacks(CAPACITIES),
        };
    };
    let sources = sharing::sources(case);
    let Some(most) = sharing::busiest(&sources) else { return Judgement::lacks("cat /proc/interrupts") };
    let busy: Vec<&Source<'_>> =
        sources.iter().filter(|source| source.is_part(sharing::BUSY, most)).collect();
    let taken: Vec<u32> = busy.iter().map(|source| source.cpu).collect();
    let free: Vec<u32> = cores.big.iter().copied().filter(|cpu| !taken.contains(cpu)).collect();
    let mut by_cpu: BTreeMap<u32, Vec<&Source<'_>>> = BTreeMap::new();
    let is_on_little = |source: &&&Source<'_>| {
        source.is_network && cores.little.contains(&source.cpu) && !source.is_elsewhere()
    };
    for source in busy.iter().filter(is_on_little) {
        by_cpu.entry(source.cpu).or_default().push(source);
    }
    let total = |together: &Vec<&Source<'_>>| together.iter().map(|source| source.vector.total).sum::<u64>();
    let busiest = by_cpu.into_iter().max_by_key(|(_, together)| total(together));
    let Some((cpu, mut together)) = busiest.filter(|_| !free.is_empty()) else { return Judgement::Clear };
    together.sort_by_key(|source| Reverse(source.vector.total));
    finding(case, &cores, cpu, &together, free).into()
}

fn finding(
    case: &Case<'_>,
    cores: &Cores<'_>,
    cpu: u32,
    together: &[&Source<'_>],
    free: Vec<u32>,
) -> Finding {
    let load = load::of(case, Some(cpu));
    let first = together.first();
    let is_few = first.is_none_or(|first| vectors::is_little(first.vector.basis, first.vector.total));
    let severity = load.severity(if is_few { Severity::Info } else { Severity::Warning });
    let since = first.map_or(crate::facts::Since::Start, |first| since(first.vector.basis));
    let of_1024 = cores.capacity(cpu);
    let owners = sharing::owners(together);
    let vectors = together.iter().map(|source| &source.vector);
    let fixed: Vec<&Vector<'_>> = vectors.filter(|vector| vector.is_fixed(case)).collect();
    let affinity = Placement::of(case).remedy().filter(|_| fixed.len() < together.len());
    let big = free.first().and_then(|cpu| cores.quote(*cpu));
    found(severity, Fact::LittleCpu { cpu, owners, of_1024, big: free, since })
        .says(is_few.then_some(Fact::SoFewInterrupts))
        .quotes(together.iter().map(|source| &source.vector.interrupt.quote).take(vectors::MOST_QUOTES))
        .quotes(cores.quote(cpu).into_iter().chain(big))
        .load(&load)
        .fix(affinity)
        .fix(fixed::instead_of_affinity(case, &fixed))
}
