//! The flow table: what is counted of each 5-tuple.
//!
//! It is the only part of an analysis that grows with the traffic. One entry holds both directions, so that
//! a frame costs one look-up and the number of bidirectional flows needs no second pass.

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use std::hash::BuildHasher;
use std::panic::resume_unwind;
use wire::FlowKey;

/// Parts of a table, split by bits of the hash that the table itself does not use for its index. Parts grow
/// one after another instead of all at once, and tables of two workers are merged part by part.
const PARTS: usize = 16;

/// A direction of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Direction {
    pub frames: u64,
    /// Octets on the wire, without FCS.
    pub bytes: u64,
    /// The class of the last frame: while it stays the same, queue and bucket do too.
    pub class: u32,
    /// The queue of the first frame; [`NO_QUEUE`] where it is unknown.
    pub queue: u16,
    /// Steering bucket of frames of `class`.
    pub bucket: u16,
}

/// A queue that the profile cannot tell.
pub(crate) const NO_QUEUE: u16 = u16::MAX;

/// A flow in both directions.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    /// The smaller of the two keys.
    pub key: FlowKey,
    /// That of `key`, then that of its reverse.
    pub directions: [Direction; 2],
}

/// All flows of one worker. Tables that are to be merged must share their `RandomState`.
pub(crate) struct FlowTable {
    hasher: RandomState,
    parts: [HashTable<Flow>; PARTS],
}

#[inline(always)]
fn part_of(hash: u64) -> usize {
    // Index bits are the lowest, tag bits the highest seven.
    (hash >> 40) as usize % PARTS
}

impl FlowTable {
    pub fn new(hasher: RandomState) -> FlowTable {
        FlowTable { hasher, parts: std::array::from_fn(|_| HashTable::new()) }
    }

    /// The direction of `key`, made when it is new.
    #[inline]
    pub fn direction(&mut self, key: &FlowKey) -> &mut Direction {
        let canonical = key.bidirectional();
        let reverse = usize::from(canonical != *key);
        let hash = self.hasher.hash_one(canonical);
        let hasher = &self.hasher;
        let part = &mut self.parts[part_of(hash)];
        let entry = part.entry(hash, |flow| flow.key == canonical, |flow| hasher.hash_one(flow.key));
        let flow = match entry {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                entry.insert(Flow { key: canonical, directions: Default::default() }).into_mut()
            }
        };
        &mut flow.directions[reverse]
    }

    /// The direction of `key`, if it was seen.
    pub fn get(&self, key: &FlowKey) -> Option<&Direction> {
        let canonical = key.bidirectional();
        let hash = self.hasher.hash_one(canonical);
        let flow = self.parts[part_of(hash)].find(hash, |flow| flow.key == canonical)?;
        Some(&flow.directions[usize::from(canonical != *key)])
    }

    /// All flows, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Flow> {
        self.parts.iter().flat_map(HashTable::iter)
    }

    /// Merges the tables of several workers, on as many threads. Gives also the flow directions, with the
    /// queue, that had another first queue in one of the tables than in the merged one.
    pub fn merge(tables: Vec<FlowTable>, hasher: &RandomState) -> (FlowTable, Vec<(FlowKey, u16)>) {
        let mut tables = tables.into_iter();
        let mut merged = tables.next().unwrap_or_else(|| FlowTable::new(hasher.clone()));
        let others: Vec<FlowTable> = tables.collect();
        if others.is_empty() {
            return (merged, Vec::new());
        }
        let threads = others.len() + 1;
        let mut jobs: Vec<(&mut HashTable<Flow>, Vec<HashTable<Flow>>)> =
            merged.parts.iter_mut().map(|part| (part, Vec::with_capacity(others.len()))).collect();
        for table in others {
            jobs.iter_mut().zip(table.parts).for_each(|((_, sources), part)| sources.push(part));
        }
        let share = jobs.len().div_ceil(threads);
        let strays = std::thread::scope(|scope| {
            let mut handles = Vec::with_capacity(threads);
            while !jobs.is_empty() {
                let mine: Vec<_> = jobs.drain(..share.min(jobs.len())).collect();
                handles.push(scope.spawn(move || {
                    let mut strays = Vec::new();
                    for (part, sources) in mine {
                        sources.into_iter().for_each(|source| absorb(part, source, hasher, &mut strays));
                    }
                    strays
                }));
            }
            handles
                .into_iter()
                .flat_map(|handle| handle.join().unwrap_or_else(|panic| resume_unwind(panic)))
                .collect()
        });
        (merged, strays)
    }
}

/// Adds `source` to `part`; the larger of the two stays in place.
fn absorb(
    part: &mut HashTable<Flow>,
    mut source: HashTable<Flow>,
    hasher: &RandomState,
    strays: &mut Vec<(FlowKey, u16)>,
) {
    if part.len() < source.len() {
        std::mem::swap(part, &mut source);
    }
    for flow in source {
        let hash = hasher.hash_one(flow.key);
        match part.entry(hash, |other| other.key == flow.key, |flow| hasher.hash_one(flow.key)) {
            Entry::Occupied(mut entry) => {
                let keys = [flow.key, flow.key.reversed()];
                for ((into, from), key) in
                    entry.get_mut().directions.iter_mut().zip(flow.directions).zip(keys)
                {
                    if into.frames == 0 {
                        *into = from;
                    } else if from.frames > 0 {
                        into.frames += from.frames;
                        into.bytes += from.bytes;
                        if into.queue != from.queue {
                            strays.push((key, from.queue));
                        }
                    }
                }
            }
            Entry::Vacant(entry) => {
                entry.insert(flow);
            }
        }
    }
}
