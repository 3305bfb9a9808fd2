//! From a merged tally to the report.

use crate::flows::{Direction, NO_QUEUE};
use crate::report::*;
use crate::steering::Fields;
use crate::tally::is_read;
use crate::tally::{Count, EXTENSION_KINDS, Group, Tally};
use crate::{Options, TOP_FLOWS};
use nic::{ParserDepth, Profile, Receiver};
use rss::{HashType, IndirectionTable};
use std::collections::BTreeMap;
use wire::{FlowKey, Fragment};

/// Fills a report, whose source is already set, from what was counted.
pub(crate) fn compile(
    mut source: Source,
    tally: &Tally<'_>,
    receiver: &Receiver,
    options: &Options,
) -> Report {
    let total = tally.groups.iter().fold(Count::default(), |mut total, group| {
        total.merge(group.count);
        total
    });
    source.captured_bytes = tally.captured;
    source.wire_bytes = total.bytes;
    let frames = |counted: fn(&Group) -> bool| {
        tally.groups.iter().filter(|group| counted(group)).map(|group| group.count.frames).sum()
    };
    source.outgoing = frames(|group| group.shape.is_outgoing());
    source.above_link = frames(|group| group.shape.is_above_link());
    source.unread = tally.links.iter().filter(|(link, _)| !is_read(**link)).map(|(_, frames)| frames).sum();
    source.seconds = tally.time.map(|(from, to)| to.saturating_sub(from) as f64 / 1e9);
    source.link_types = tally.links.iter().map(|(link, frames)| (link.to_string(), *frames)).collect();
    let (flows, queue_flows, top_flows) = flows(tally, receiver, options.cpus);
    let mut queues: Vec<QueueRow> = (0..)
        .zip(tally.queues.iter().zip(queue_flows))
        .map(|(queue, (count, flows))| QueueRow { queue, frames: count.frames, bytes: count.bytes, flows })
        .collect();
    // Where no frame's queue is known, a list of zeros would say the opposite.
    if tally.unplaced.frames > 0 && queues.iter().all(|queue| queue.frames == 0) {
        queues.clear();
    }
    let per_queue: Vec<u64> = queues.iter().map(|queue| queue.frames).collect();
    Report {
        schema: Report::SCHEMA,
        stacks: stacks(tally, receiver.profile()),
        tags: tags(tally, total.frames),
        pppoe: pppoe(tally),
        flows,
        fragments: fragments(tally),
        extension_headers: EXTENSION_KINDS
            .iter()
            .zip(tally.extensions)
            .filter(|(_, frames)| *frames > 0)
            .map(|((_, name), frames)| (*name, frames))
            .collect(),
        bad: bad(tally, &source.files),
        nic: Nic {
            name: receiver.profile().name(),
            title: receiver.profile().title.clone(),
            queues: receiver.queues(),
            assumed: options.nic_assumed,
            unplaced: tally.unplaced.frames,
            unknown: unknown(tally, receiver),
            table_queues: receiver.table().map_or(0, table_queues),
            better_modes: better_modes(tally, receiver),
            key: receiver.key().to_string(),
            key_given: receiver.key_given(),
            hash_types: receiver.hash_types().map(HashType::name).collect(),
        },
        imbalance: Imbalance::of(&per_queue),
        queues,
        steered: steered(tally, options.cpus),
        admission: admission(tally),
        top_flows,
        source,
    }
}

/// Why the queue of frames is unknown.
fn unknown(tally: &Tally<'_>, receiver: &Receiver) -> Vec<UnknownRow> {
    let mut rows: Vec<UnknownRow> = Vec::new();
    for group in &tally.groups {
        let Some(why) = receiver.unknown_queue(&group.disposition) else { continue };
        // With a table frames of one EtherType have one queue, whichever that is.
        let one_queue = why.key() == Some(nic::schema::UNHASHED_FRAMES);
        let (key, why) = (why.key().map_or_else(String::new, |key| key.path()), why.to_string());
        match rows.iter_mut().find(|row| row.why == why) {
            Some(row) => row.frames += group.count.frames,
            None => rows.push(UnknownRow { key, why, frames: group.count.frames, one_queue }),
        }
    }
    rows.sort_by(|a, b| b.frames.cmp(&a.frames).then_with(|| a.why.cmp(&b.why)));
    rows
}

/// How many queues a table names.
fn table_queues(table: &IndirectionTable) -> u16 {
    table.shares().iter().filter(|share| **share > 0).count() as u16
}

/// Modes in which the parser comes further into the frames of the most frequent shape that it does not see
/// into now.
fn better_modes(tally: &Tally<'_>, receiver: &Receiver) -> Vec<String> {
    let hidden = |group: &&Group| group.disposition.depth == ParserDepth::Nothing && group.shape.has_flow();
    let Some(worst) = tally.groups.iter().filter(hidden).max_by_key(|group| group.count.frames) else {
        return Vec::new();
    };
    let sees = |profile: &Profile| {
        matches!(nic::parser_depth(profile, &worst.shape).0, ParserDepth::Transport | ParserDepth::Addresses)
    };
    let modes = receiver.profile().modes().iter();
    let profiles = modes.filter_map(|mode| receiver.profile().with_mode(&mode.name).ok());
    profiles.filter(sees).map(|profile| profile.name()).collect()
}

fn hash_name(group: &Group) -> &'static str {
    if group.disposition.depth == ParserDepth::Unknown {
        "unknown"
    } else {
        group.disposition.hash_type.name()
    }
}

/// Why a class is hashed as it is, in words.
fn why(group: &Group) -> String {
    match (group.disposition.depth, group.disposition.hash_type) {
        (ParserDepth::Transport, HashType::None) => "no hash type that is enabled fits".to_owned(),
        (ParserDepth::Unknown | ParserDepth::Nothing, _) | (_, HashType::None) => {
            group.disposition.why.to_string()
        }
        (_, hash_type) if hash_type.has_ports() => "hashed over addresses and ports".to_owned(),
        (ParserDepth::Addresses, _) => format!("hashed over addresses only ({})", group.disposition.why),
        _ => "hashed over addresses only".to_owned(),
    }
}

fn stacks(tally: &Tally<'_>, profile: &Profile) -> Vec<StackRow> {
    let mut by_stack: BTreeMap<String, Vec<&Group>> = BTreeMap::new();
    for group in &tally.groups {
        by_stack.entry(group.shape.stack().to_string()).or_default().push(group);
    }
    let mut rows: Vec<StackRow> = by_stack
        .into_iter()
        .map(|(stack, groups)| {
            let mut hash_types = BTreeMap::new();
            for group in &groups {
                *hash_types.entry(hash_name(group).to_owned()).or_default() += group.count.frames;
            }
            // Of two that are equally common, the same one whichever thread met it first.
            let most = groups.iter().max_by_key(|group| (group.count.frames, hash_name(group), why(group)));
            StackRow {
                stack,
                frames: groups.iter().map(|group| group.count.frames).sum(),
                bytes: groups.iter().map(|group| group.count.bytes).sum(),
                hash_type: most.map_or("none", |group| hash_name(group)).to_owned(),
                why: most.map(|group| why(group)).unwrap_or_default(),
                sources: most.map(|group| citations(profile, group)).unwrap_or_default(),
                hash_types,
            }
        })
        .collect();
    rows.sort_by(|a, b| b.frames.cmp(&a.frames).then_with(|| a.stack.cmp(&b.stack)));
    rows
}

/// The sources of the claim that decided.
fn citations(profile: &Profile, group: &Group) -> Vec<String> {
    let claim = group.disposition.why.key().and_then(|key| profile.claim(key));
    let citations = claim.map(|claim| claim.citations.as_slice()).unwrap_or_default();
    citations
        .iter()
        .map(|citation| {
            let source = profile.sources.get(&citation.source);
            let title = source.map_or(citation.source.as_str(), |source| source.title.as_str());
            format!("{title}: {}", citation.place)
        })
        .collect()
}

fn tags(tally: &Tally<'_>, frames: u64) -> Vec<TagRow> {
    let tagged: u64 = tally.tags.values().sum();
    let untagged = TagRow { tags: "untagged".to_owned(), frames: frames - tagged };
    let mut rows: Vec<TagRow> =
        tally.tags.iter().map(|(tags, frames)| TagRow { tags: tags.to_string(), frames: *frames }).collect();
    if untagged.frames > 0 {
        rows.push(untagged);
    }
    rows.sort_by(|a, b| b.frames.cmp(&a.frames).then_with(|| a.tags.cmp(&b.tags)));
    rows
}

fn pppoe(tally: &Tally<'_>) -> Pppoe {
    let mut pppoe = Pppoe { sessions: tally.sessions(), ..Pppoe::default() };
    for group in &tally.groups {
        if let Some(code) = group.shape.pppoe_code() {
            *pppoe.codes.entry(code.to_string()).or_default() += group.count.frames;
        }
        if let Some(ppp) = group.shape.ppp_protocol() {
            *pppoe.ppp.entry(format!("{:#06x}", ppp.0)).or_default() += group.count.frames;
        }
    }
    pppoe
}

fn fragments(tally: &Tally<'_>) -> Fragments {
    let mut fragments = Fragments::default();
    for group in &tally.groups {
        let shape = &group.shape;
        let counter = match (shape.fragment(), shape.is_ipv6()) {
            (Fragment::None, _) => continue,
            (Fragment::First, false) => &mut fragments.ipv4_first,
            (Fragment::Later, false) => &mut fragments.ipv4_later,
            (Fragment::First, true) => &mut fragments.ipv6_first,
            (Fragment::Later, true) => &mut fragments.ipv6_later,
        };
        *counter += group.count.frames;
    }
    fragments
}

fn bad(tally: &Tally<'_>, files: &[String]) -> Bad {
    let mut bad = Bad::default();
    let mut firsts: BTreeMap<String, (u32, u64)> = BTreeMap::new();
    for (reason, defect) in &tally.defects {
        match reason.class() {
            wire::Class::Truncated => bad.truncated += defect.frames,
            wire::Class::Malformed => bad.malformed += defect.frames,
        }
        if reason.rule == wire::error::Rule::CaptureCut {
            bad.cut_by_capture += defect.frames;
        }
        // Two rules can have the same words: a value that must be another one, and one that means nothing.
        let text = reason.to_string();
        *bad.reasons.entry(text.clone()).or_default() += defect.frames;
        firsts.entry(text).and_modify(|first| *first = defect.first.min(*first)).or_insert(defect.first);
    }
    let frame_of = |(file, frame): (u32, u64)| FirstFrame {
        file: files.get(file as usize).cloned().unwrap_or_default(),
        frame,
    };
    bad.first = firsts.into_iter().map(|(text, first)| (text, frame_of(first))).collect();
    bad
}

fn steered(tally: &Tally<'_>, cpus: u16) -> Steered {
    let count = usize::from(cpus);
    let mut per_cpu = vec![0; count];
    let buckets = tally.buckets.iter().enumerate();
    // A queue's interrupts go to the CPU of its number, where the frames that are not steered stay.
    let local = tally.local.iter().enumerate().chain([(0, &tally.local_unplaced)]);
    buckets.chain(local).for_each(|(number, frames)| per_cpu[number % count] += frames);
    let Imbalance { max_over_mean, effective_queues } = Imbalance::of(&per_cpu);
    Steered {
        cpus,
        per_cpu: (0..).zip(per_cpu).map(|(cpu, frames)| CpuRow { cpu, frames }).collect(),
        max_over_mean,
        effective_queues,
        left_alone: tally.local.iter().sum::<u64>() + tally.local_unplaced,
    }
}

fn admission(tally: &Tally<'_>) -> Admission {
    let mut admission = Admission::default();
    for group in &tally.groups {
        let Some(limit) = group.disposition.longest else {
            admission.unknown += group.count.frames;
            continue;
        };
        admission.accepted += group.count.frames - group.refused.frames;
        if group.refused.frames == 0 {
            continue;
        }
        let Count { frames, bytes } = group.refused;
        let stack = group.shape.stack().to_string();
        let same = |row: &&mut Dropped| row.stack == stack && row.limit == limit;
        match admission.dropped.iter_mut().find(same) {
            Some(row) => {
                row.frames += frames;
                row.bytes += bytes;
                row.largest = row.largest.max(group.largest);
            }
            None => admission.dropped.push(Dropped { stack, limit, frames, bytes, largest: group.largest }),
        }
    }
    admission.dropped.sort_by(|a, b| b.frames.cmp(&a.frames).then_with(|| a.stack.cmp(&b.stack)));
    admission
}

/// How many flows there are, how many on each queue, and the largest.
fn flows(tally: &Tally<'_>, receiver: &Receiver, cpus: u16) -> (Flows, Vec<u64>, Vec<FlowRow>) {
    let mut flows = Flows::default();
    let mut per_queue = vec![0; usize::from(receiver.queues())];
    let mut top: Vec<(u64, FlowKey, Direction)> = Vec::with_capacity(TOP_FLOWS + 1);
    let mut on_queue = |queue: u16| {
        if let Some(count) = per_queue.get_mut(usize::from(queue)) {
            *count += 1;
        }
    };
    for flow in tally.flows.iter() {
        flows.bidirectional += 1;
        flows.two_way += u64::from(flow.directions.iter().all(|direction| direction.frames > 0));
        for (reverse, direction) in flow.directions.iter().enumerate().filter(|(_, d)| d.frames > 0) {
            flows.unidirectional += 1;
            if !direction.scattered {
                on_queue(direction.queue);
            }
            let least = top.last().map_or(0, |(bytes, ..)| *bytes);
            if top.len() == TOP_FLOWS && direction.bytes < least {
                continue;
            }
            let key = if reverse == 0 { flow.key } else { flow.key.reversed() };
            let place = top.partition_point(|(bytes, other, _)| (*bytes, key) > (direction.bytes, *other));
            top.insert(place, (direction.bytes, key, *direction));
            top.truncate(TOP_FLOWS);
        }
    }
    tally.scattered.keys().for_each(|(_, queue)| on_queue(*queue));
    let top = top.into_iter().map(|(_, key, direction)| row(tally, &key, &direction, cpus)).collect();
    (flows, per_queue, top)
}

/// The queue of most of a flow direction's frames.
fn main_queue(tally: &Tally<'_>, key: &FlowKey, direction: &Direction) -> u16 {
    if !direction.scattered {
        return direction.queue;
    }
    let on = tally.scattered.iter().filter(|((flow, _), _)| flow == key);
    on.map(|((_, queue), frames)| (*frames, std::cmp::Reverse(*queue)))
        .max()
        .map_or(NO_QUEUE, |(_, queue)| queue.0)
}

fn row(tally: &Tally<'_>, key: &FlowKey, direction: &Direction, cpus: u16) -> FlowRow {
    let queue = main_queue(tally, key, direction);
    let bucket = tally.rules.steering.bucket(Fields::AddressesAndPorts, key);
    FlowRow {
        flow: key.to_string(),
        protocol: match key.protocol() {
            6 => "tcp",
            17 => "udp",
            _ => "sctp",
        },
        frames: direction.frames,
        bytes: direction.bytes,
        queue: (queue != NO_QUEUE).then_some(queue),
        cpu: u16::from(bucket) % cpus,
    }
}
