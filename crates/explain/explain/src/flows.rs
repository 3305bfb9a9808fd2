//! The flow table: what is counted of each 5-tuple.
//!
//! It is the only part of an analysis that grows with the traffic. One entry holds both directions, so that
//! a frame costs one look-up and the number of bidirectional flows needs no second pass.

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use std::hash::BuildHasher;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use wire::FlowKey;

/// Parts of a table, split by bits of the hash that the table itself does not use for its index. Parts grow
/// one after another instead of all at once, and tables of two workers are merged part by part.
const PARTS: usize = 16;

/// Flows that are looked up one right after the other, before any of them is worked on: a look-up in a large table waits for memory, and
/// the processor waits for several at once as long as little stands between them.
pub(crate) const TOGETHER: usize = 32;

/// A direction of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Direction {
    pub frames: u64,
    /// Bytes on the wire, without FCS.
    pub bytes: u64,
    /// The shape of the first frame: while it stays the same, queue and bucket do too.
    pub group: u32,
    /// The queue of the first frame; [`NO_QUEUE`] where it is unknown.
    pub queue: u16,
    /// Steering bucket of frames of `group`.
    pub bucket: u8,
    /// Its frames were on several queues; how many on each is reported elsewhere.
    pub scattered: bool,
}

/// Frames of a flow direction on one of its several queues.
pub(crate) type OnQueue = ((FlowKey, u16), u64);

/// A queue that the profile does not give.
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
    parts: [Part; PARTS],
}

/// Flows in the order in which they appeared, and an index over them. A table of whole flows would copy all
/// of them whenever it grows, and would touch a cache line for each it compares.
#[derive(Default)]
struct Part {
    flows: Vec<Flow>,
    /// Hashes of their keys, so that a merge reads both in order.
    hashes: Vec<u32>,
    index: HashTable<Slot>,
}

/// A direction of a flow that is yet to be looked up.
#[derive(Clone, Copy)]
pub(crate) struct Sought {
    /// The smaller of the two keys.
    key: FlowKey,
    hash: u32,
    /// Whether it is that of the frame.
    forward: bool,
}

/// Place of a flow, and the hash of its key, so that growing the index touches no flow.
#[derive(Clone, Copy)]
struct Slot {
    hash: u32,
    place: u32,
}

impl Slot {
    /// The hash as the index wants it: its place comes from the lowest bits, its tag from the highest.
    #[inline(always)]
    fn spread(hash: u32) -> u64 {
        u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

impl Part {
    /// The place of the flow of `key`, where there is one.
    #[inline]
    fn find(&self, hash: u32, key: &FlowKey) -> Option<u32> {
        let same = |slot: &Slot| slot.hash == hash && self.flows[slot.place as usize].key == *key;
        self.index.find(Slot::spread(hash), same).map(|slot| slot.place)
    }

    /// The flow of `key`, made by `new` when it is new.
    #[inline]
    fn entry(&mut self, hash: u32, key: &FlowKey, new: impl FnOnce() -> Flow) -> &mut Flow {
        let flows = &mut self.flows;
        let same = |slot: &Slot| slot.hash == hash && flows[slot.place as usize].key == *key;
        match self.index.entry(Slot::spread(hash), same, |slot| Slot::spread(slot.hash)) {
            Entry::Occupied(slot) => &mut flows[slot.get().place as usize],
            Entry::Vacant(vacant) => {
                // Four billion flows are 400 gigabytes of them.
                let place = flows.len() as u32;
                vacant.insert(Slot { hash, place });
                self.hashes.push(hash);
                flows.push(new());
                &mut flows[place as usize]
            }
        }
    }
}

#[inline(always)]
fn part_of(hash: u32) -> usize {
    hash as usize % PARTS
}

impl FlowTable {
    pub fn new(hasher: RandomState) -> FlowTable {
        FlowTable { hasher, parts: Default::default() }
    }

    #[inline(always)]
    fn hash(&self, key: &FlowKey) -> u32 {
        (self.hasher.hash_one(key) >> 32) as u32
    }

    /// What to look up for the direction of `key`.
    #[inline]
    pub fn sought(&self, key: &FlowKey) -> Sought {
        let forward = key.is_smaller_direction();
        let key = if forward { *key } else { key.reversed() };
        Sought { key, hash: self.hash(&key), forward }
    }

    /// The place of its flow, where there is one. Places stay what they are.
    #[inline]
    pub fn find(&self, sought: &Sought) -> Option<u32> {
        self.parts[part_of(sought.hash)].find(sought.hash, &sought.key)
    }

    /// The direction, made when it is new; `place` is what [`FlowTable::find`] said at any time before.
    #[inline]
    pub fn direction(&mut self, sought: &Sought, place: Option<u32>) -> &mut Direction {
        let part = &mut self.parts[part_of(sought.hash)];
        let flow = match place {
            Some(place) => &mut part.flows[place as usize],
            None => {
                let new = || Flow { key: sought.key, directions: Default::default() };
                part.entry(sought.hash, &sought.key, new)
            }
        };
        &mut flow.directions[usize::from(!sought.forward)]
    }

    /// All flows, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Flow> {
        self.parts.iter().flat_map(|part| &part.flows)
    }

    /// Merges the tables of several workers, on as many threads as there are. Gives also, for each flow
    /// direction that is scattered only when all tables are seen, its frames by queue.
    pub fn merge(tables: Vec<FlowTable>, hasher: &RandomState) -> (FlowTable, Vec<OnQueue>) {
        let mut tables = tables.into_iter();
        let mut merged = tables.next().unwrap_or_else(|| FlowTable::new(hasher.clone()));
        let others: Vec<FlowTable> = tables.collect();
        if others.is_empty() {
            return (merged, Vec::new());
        }
        let threads = others.len() + 1;
        let mut jobs: Vec<(&mut Part, Vec<Part>)> =
            merged.parts.iter_mut().map(|part| (part, Vec::with_capacity(others.len()))).collect();
        for table in others {
            jobs.iter_mut().zip(table.parts).for_each(|((_, sources), part)| sources.push(part));
        }
        let share = jobs.len().div_ceil(threads);
        let work = |mine: Vec<(&mut Part, Vec<Part>)>| {
            let mut scattered = Vec::new();
            for (part, sources) in mine {
                sources.into_iter().for_each(|source| absorb(part, source, &mut scattered));
            }
            scattered
        };
        let scattered = std::thread::scope(|scope| {
            let mut handles = Vec::with_capacity(threads);
            let mut scattered = Vec::new();
            while !jobs.is_empty() {
                let mine: Vec<_> = jobs.drain(..share.min(jobs.len())).collect();
                let place = Arc::new(Mutex::new(Some(mine)));
                let theirs = Arc::clone(&place);
                let take =
                    |place: &Mutex<Option<_>>| place.lock().unwrap_or_else(PoisonError::into_inner).take();
                match thread::Builder::new().spawn_scoped(scope, move || take(&theirs).map(work)) {
                    Ok(handle) => handles.push(handle),
                    // No thread is to be had: this one does it.
                    Err(_) => scattered.extend(take(&place).map(work).into_iter().flatten()),
                }
            }
            let joined =
                handles.into_iter().map(|handle| handle.join().unwrap_or_else(|panic| resume_unwind(panic)));
            scattered.extend(joined.flatten().flatten());
            scattered
        });
        (merged, scattered)
    }
}

/// Adds `source` to `part`; the larger of the two stays in place.
fn absorb(part: &mut Part, mut source: Part, scattered: &mut Vec<OnQueue>) {
    if part.flows.len() < source.flows.len() {
        std::mem::swap(part, &mut source);
    }
    for (flows, hashes) in source.flows.chunks(TOGETHER).zip(source.hashes.chunks(TOGETHER)) {
        let mut places = [None; TOGETHER];
        for ((place, flow), hash) in places.iter_mut().zip(flows).zip(hashes) {
            *place = part.find(*hash, &flow.key);
        }
        for ((place, flow), hash) in places.iter().zip(flows).zip(hashes) {
            match place {
                Some(place) => add(&mut part.flows[*place as usize], flow, scattered),
                // No two flows of a table have one key.
                None => {
                    part.entry(*hash, &flow.key, || flow.clone());
                }
            }
        }
    }
}

/// Adds what another worker counted of a flow.
fn add(into: &mut Flow, flow: &Flow, scattered: &mut Vec<OnQueue>) {
    let keys = [flow.key, flow.key.reversed()];
    for ((into, from), key) in into.directions.iter_mut().zip(flow.directions).zip(keys) {
        if into.frames == 0 {
            *into = from;
            continue;
        }
        if from.frames > 0 && (into.scattered || from.scattered || into.queue != from.queue) {
            for side in [*into, from].iter().filter(|side| !side.scattered) {
                scattered.push(((key, side.queue), side.frames));
            }
            into.scattered = true;
        }
        into.frames += from.frames;
        into.bytes += from.bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u16) -> FlowKey {
        FlowKey::with_ports([10, 0, 0, 1].into(), number, [10, 0, 0, 2].into(), 443, 6).unwrap()
    }

    impl FlowTable {
        fn get(&self, key: &FlowKey) -> Option<&Direction> {
            let flow = self.iter().find(|flow| flow.key == key.bidirectional())?;
            Some(&flow.directions[usize::from(!key.is_smaller_direction())])
        }
    }

    fn table(hasher: &RandomState, numbers: impl Iterator<Item = u16>, queue: u16) -> FlowTable {
        let mut table = FlowTable::new(hasher.clone());
        for number in numbers {
            let sought = table.sought(&key(number));
            let direction = table.direction(&sought, None);
            *direction =
                Direction { frames: direction.frames + 1, bytes: direction.bytes + 100, queue, ..*direction };
        }
        table
    }

    #[test]
    fn both_directions_are_one_flow() {
        let mut table = table(&RandomState::default(), [7].into_iter(), 0);
        let reverse = table.sought(&key(7).reversed());
        let place = table.find(&reverse);
        assert_eq!(place, Some(0));
        table.direction(&reverse, place).frames += 5;
        assert_eq!(table.iter().count(), 1);
        assert_eq!(table.get(&key(7)).unwrap().frames, 1);
        assert_eq!(table.get(&key(7).reversed()).unwrap().frames, 5);
        assert!(table.get(&key(8)).is_none());
    }

    #[test]
    fn merging_adds_up_and_reports_which_flow_had_another_queue() {
        let hasher = RandomState::default();
        let tables = vec![
            table(&hasher, 0..3000, 1),
            table(&hasher, 2000..9000, 2),
            table(&hasher, (0..10).chain(0..10), 1),
        ];
        let (merged, scattered) = FlowTable::merge(tables, &hasher);
        assert_eq!(merged.iter().count(), 9000);
        let frames: u64 =
            merged.iter().map(|flow| flow.directions.iter().map(|d| d.frames).sum::<u64>()).sum();
        assert_eq!(frames, 3000 + 7000 + 20);
        assert_eq!(merged.get(&key(3)).unwrap().frames, 3);
        assert_eq!(merged.get(&key(2500)).unwrap().bytes, 200);
        let flows: std::collections::BTreeSet<_> = scattered.iter().map(|((key, _), _)| *key).collect();
        assert_eq!(flows.len(), 1000, "the flows that tables 1 and 2 share");
        assert_eq!(scattered.iter().map(|(_, frames)| frames).sum::<u64>(), 2000);
        assert!(merged.get(&key(2500)).unwrap().scattered && !merged.get(&key(3)).unwrap().scattered);
    }
}
