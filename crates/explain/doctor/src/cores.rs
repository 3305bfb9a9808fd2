//! Machines whose CPUs are not alike: which are little.

use crate::Case;
use host::{Cpus, Fact as Read, Quote};
use std::collections::{BTreeMap, BTreeSet};

/// Part of the fastest CPU's capacity below which a CPU is little. CPUs of one kind differ by some per cent, as their
/// highest frequencies do.
const LITTLE: f64 = 0.75;

/// Arm's CPUs that are made for little energy, by `CPU part` (arch/arm64/include/asm/cputype.h): Cortex-A7, A35, A53, A55,
/// A510, A520.
const LITTLE_PARTS: [u32; 6] = [0xc07, 0xd04, 0xd03, 0xd05, 0xd46, 0xd80];

/// The CPUs of a machine that has little and big ones.
pub(crate) struct Cores<'c> {
    pub little: BTreeSet<u32>,
    pub big: BTreeSet<u32>,
    quotes: BTreeMap<u32, &'c Quote>,
    /// Capacity of each, of 1024, where that was read.
    capacity: BTreeMap<u32, u32>,
}

impl<'c> Cores<'c> {
    /// `None` where the text does not say that the CPUs differ.
    pub fn of(case: &Case<'c>) -> Option<Cores<'c>> {
        let cpus = &case.snapshot().cpus;
        let (known, is_little) = [&cpus.capacity, &cpus.frequency]
            .into_iter()
            .map(|values| (values, below(values)))
            .find(|(values, little)| !little.is_empty() && little.len() < values.len())
            .or_else(|| parts(cpus).map(|little| (&cpus.parts, little)))?;
        let big = known.keys().copied().filter(|cpu| !is_little.contains(cpu)).collect();
        let quotes = known.iter().map(|(cpu, value)| (*cpu, &value.quote)).collect();
        let capacity = cpus.capacity.iter().map(|(cpu, value)| (*cpu, value.value)).collect();
        Some(Cores { little: is_little, big, quotes, capacity })
    }

    /// Whether the text says what the CPUs can do, alike or not.
    pub fn are_known(case: &Case<'_>) -> bool {
        let Cpus { capacity, frequency, parts, .. } = &case.snapshot().cpus;
        [capacity, frequency, parts].iter().any(|known| known.len() > 1)
    }

    pub fn quote(&self, cpu: u32) -> Option<&'c Quote> {
        self.quotes.get(&cpu).copied()
    }

    pub fn capacity(&self, cpu: u32) -> Option<u32> {
        self.capacity.get(&cpu).copied()
    }
}

/// CPUs whose value is far below the largest.
fn below(values: &BTreeMap<u32, Read<u32>>) -> BTreeSet<u32> {
    let most = values.values().map(|value| value.value).max().unwrap_or(0);
    let is_little = |value: &Read<u32>| f64::from(value.value) < LITTLE * f64::from(most);
    values.iter().filter(|(_, value)| is_little(value)).map(|(cpu, _)| *cpu).collect()
}

/// Little CPUs by their part, where others are of another part.
fn parts(cpus: &Cpus) -> Option<BTreeSet<u32>> {
    let is_little = |part: &Read<u32>| LITTLE_PARTS.contains(&part.value);
    let little: BTreeSet<u32> =
        cpus.parts.iter().filter(|(_, part)| is_little(part)).map(|(cpu, _)| *cpu).collect();
    (!little.is_empty() && little.len() < cpus.parts.len()).then_some(little)
}
