//! What one worker counts, frame by frame, and how the counts of several workers become one.
//!
//! A frame costs one dissection, one look-up of its class (what does not depend on addresses is decided once
//! a class) and one of its flow (what depends on nothing else, its queue and its bucket, is decided once a
//! flow). Nothing is allocated for a frame whose class, tags, session and flow were seen before.

use crate::flows::{FlowTable, NO_QUEUE, OnQueue, Sought, TOGETHER};
use crate::steering::{BUCKETS, Fields, Steering};
use capture::{Batch, Frame, LinkType};
use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};
use nic::{Disposition, Landing, Receiver};
use std::hash::BuildHasher;
use wire::extension::Kind;
use wire::{Dissection, FlowKey, Link, Reason, Shape, dissect};

pub(crate) type Map<K, V> = HashMap<K, V, RandomState>;
pub(crate) type Set<K> = HashSet<K, RandomState>;

/// What all workers share.
pub(crate) struct Rules<'a> {
    pub receiver: &'a Receiver,
    pub steering: Steering,
    pub hasher: RandomState,
}

/// Counts of frames and their bytes on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub frames: u64,
    pub bytes: u64,
}

impl Count {
    #[inline(always)]
    pub fn add(&mut self, bytes: u64) {
        self.frames += 1;
        self.bytes += bytes;
    }

    pub fn merge(&mut self, other: Count) {
        self.frames += other.frames;
        self.bytes += other.bytes;
    }
}

/// Frames of one shape, and their counts.
pub(crate) struct Group {
    pub shape: Shape,
    pub disposition: Disposition,
    pub fields: Fields,
    pub count: Count,
    /// Frames longer than the device lets in, and the longest of them.
    pub refused: Count,
    pub largest: u32,
    /// Queue and hash type where they are the same for the whole class.
    landing: Option<Landing>,
}

impl Group {
    /// The queue of a frame of this group.
    #[inline]
    fn land(&self, rules: &Rules<'_>, data: &[u8], dissection: &Dissection) -> u16 {
        let queue = match self.landing {
            Some(landing) => landing.queue,
            None => rules.receiver.land(&self.disposition, data, dissection).queue,
        };
        queue.unwrap_or(NO_QUEUE)
    }
}

/// A kind of defect: how often, and the first frame that has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Defect {
    pub frames: u64,
    /// Index of the file, number of the frame.
    pub first: (u32, u64),
}

/// VLAN tags without priority and drop eligibility: TPID number and VID of each, up to four packed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Tags {
    Few(u64),
    Many(Box<[wire::vlan::Tag]>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Session {
    id: u16,
    /// Destination and source address as they stand in the frame.
    macs: [u8; 12],
    /// Hash of the tags: sessions of two subscribers behind one concentrator port differ in them.
    tags: u64,
}

impl Session {
    /// The same for both directions.
    fn canonical(mut self) -> Session {
        let (destination, source) = self.macs.split_at_mut(6);
        if destination > source {
            destination.swap_with_slice(source);
        }
        // An address of zeros is nobody's: an anonymised capture, where the other one says no more.
        if destination.iter().all(|byte| *byte == 0) {
            self.macs = [0; 12];
        }
        self
    }
}

/// A frame with a flow, all but its place counted.
struct Unplaced<'f> {
    data: &'f [u8],
    bytes: u64,
    /// Its group, by number.
    group: usize,
    sought: Sought,
    /// The place of its flow, where that was known when it was looked up.
    flow: Option<u32>,
}

/// Frames whose flows are looked up together.
struct Pending<'f> {
    frames: Vec<Unplaced<'f>>,
    /// Of each of these frames, and room for that of the next: a dissection is written in its place, not copied there.
    dissections: [Dissection; TOGETHER],
}

impl Pending<'_> {
    fn new() -> Self {
        Pending { frames: Vec::with_capacity(TOGETHER), dissections: [Dissection::unread(); TOGETHER] }
    }
}

/// Shapes, tags and sessions remembered in front of their tables: a capture has a dozen shapes that matter.
const RECENT: usize = 64;

/// The counts of one worker.
pub(crate) struct Tally<'a> {
    pub rules: &'a Rules<'a>,
    file: u32,
    index: Map<Shape, u32>,
    pub groups: Vec<Group>,
    /// The shape last seen with each value of [`Shape::mix`].
    recent: [u32; RECENT],
    pub tags: Map<Tags, u64>,
    /// Frames with the tags seen of late, up to four of them packed, that are not yet in `tags`.
    recent_tags: [(u64, u64); RECENT],
    sessions: Set<Session>,
    /// Sessions seen of late, as they stood in the frame.
    recent_sessions: [Option<Session>; RECENT],
    pub flows: FlowTable,
    /// Frames by queue of the flow directions that were on several.
    pub scattered: Map<(FlowKey, u16), u64>,
    pub queues: Vec<Count>,
    pub unplaced: Count,
    pub buckets: Box<[u64; BUCKETS]>,
    /// Frames that steering leaves alone, by queue.
    pub local: Vec<u64>,
    pub local_unplaced: u64,
    pub defects: Map<Reason, Defect>,
    pub extensions: [u64; 5],
    pub captured: u64,
    pub links: Map<LinkType, u64>,
    pub time: Option<(i64, i64)>,
}

impl<'a> Tally<'a> {
    pub fn new(rules: &'a Rules<'a>, file: u32) -> Tally<'a> {
        let queues = usize::from(rules.receiver.queues());
        let hasher = || rules.hasher.clone();
        Tally {
            rules,
            file,
            index: Map::with_hasher(hasher()),
            groups: Vec::new(),
            recent: [0; RECENT],
            tags: Map::with_hasher(hasher()),
            recent_tags: [(0, 0); RECENT],
            sessions: Set::with_hasher(hasher()),
            recent_sessions: [None; RECENT],
            flows: FlowTable::new(hasher()),
            scattered: Map::with_hasher(hasher()),
            queues: vec![Count::default(); queues],
            unplaced: Count::default(),
            buckets: Box::new([0; BUCKETS]),
            local: vec![0; queues],
            local_unplaced: 0,
            defects: Map::with_hasher(hasher()),
            extensions: [0; 5],
            captured: 0,
            links: Map::with_hasher(hasher()),
            time: None,
        }
    }

    /// Counts all frames of a batch.
    pub fn batch(&mut self, batch: &Batch) {
        let mut pending = Pending::new();
        let common = batch.link_type();
        if let Some(link_type) = common {
            *self.links.entry(link_type).or_default() += batch.len() as u64;
        }
        for frame in batch.frames() {
            if common.is_none() {
                *self.links.entry(frame.link_type()).or_default() += 1;
            }
            self.frame(common.unwrap_or(frame.link_type()), &frame, &mut pending);
            if pending.frames.len() == TOGETHER {
                self.place_all(&mut pending);
            }
        }
        self.place_all(&mut pending);
        if let Some((least, greatest)) = batch.time_span() {
            let (from, to) = self.time.unwrap_or((least, greatest));
            self.time = Some((from.min(least), to.max(greatest)));
        }
    }

    /// Counts a frame, and its place unless that is its flow's.
    #[inline]
    fn frame<'f>(&mut self, link_type: LinkType, frame: &Frame<'f>, pending: &mut Pending<'f>) {
        let (data, bytes) = (frame.data, u64::from(frame.wire_len));
        self.captured += data.len() as u64;
        let dissection = &mut pending.dissections[pending.frames.len()];
        *dissection = match link_type {
            LinkType::Ethernet => dissect(Link::Ethernet, data, frame.wire_len as usize),
            other => dissect_other(other, data, frame.wire_len as usize),
        };
        let dissection = &*dissection;
        if let Some(error) = dissection.error() {
            self.defect(error.reason(), frame.number);
        }
        if !dissection.extensions().is_empty() {
            self.count_extensions(dissection, data);
        }
        let group = self.group(dissection);
        let tags = self.count_tags(dissection, data);
        self.session(dissection, data, tags);
        let group_entry = &mut self.groups[group];
        group_entry.count.add(bytes);
        if group_entry.disposition.longest.is_some_and(|longest| frame.wire_len > longest) {
            group_entry.refused.add(bytes);
            group_entry.largest = group_entry.largest.max(frame.wire_len);
        }
        match dissection.flow().filter(|flow| flow.has_ports()) {
            Some(flow) => {
                let sought = self.flows.sought(flow);
                pending.frames.push(Unplaced { data, bytes, group, sought, flow: None });
            }
            None => {
                let of = &self.groups[group];
                let bucket = dissection.flow().map(|flow| self.rules.steering.bucket(of.fields, flow));
                self.count_place(group, of.land(self.rules, data, dissection), bucket, bytes);
            }
        }
    }

    /// Counts the places of these frames, by their flows.
    fn place_all(&mut self, pending: &mut Pending<'_>) {
        for frame in &mut pending.frames {
            frame.flow = self.flows.find(&frame.sought);
        }
        for (frame, dissection) in pending.frames.iter().zip(&pending.dissections) {
            if let Some(flow) = dissection.flow() {
                let (queue, bucket) = self.place(frame, dissection, flow);
                self.count_place(frame.group, queue, Some(bucket), frame.bytes);
            }
        }
        pending.frames.clear();
    }

    #[inline]
    fn count_place(&mut self, group: usize, queue: u16, bucket: Option<u8>, bytes: u64) {
        let at = usize::from(queue);
        match self.queues.get_mut(at) {
            Some(count) => count.add(bytes),
            None => self.unplaced.add(bytes),
        }
        match bucket {
            _ if self.groups[group].fields == Fields::NotReceived => {}
            Some(bucket) => self.buckets[usize::from(bucket)] += 1,
            None => *self.local.get_mut(at).unwrap_or(&mut self.local_unplaced) += 1,
        }
    }

    /// The frame's queue and its bucket, from its flow where that has been seen in this shape.
    #[inline]
    fn place(&mut self, frame: &Unplaced<'_>, dissection: &Dissection, flow: &FlowKey) -> (u16, u8) {
        let (group, number) = (&self.groups[frame.group], frame.group as u32);
        let direction = self.flows.direction(&frame.sought, frame.flow);
        let known = direction.frames > 0;
        direction.frames += 1;
        direction.bytes += frame.bytes;
        if known && direction.group == number && !direction.scattered {
            return (direction.queue, direction.bucket);
        }
        let queue = group.land(self.rules, frame.data, dissection);
        let bucket = self.rules.steering.bucket(group.fields, flow);
        if !known {
            direction.group = number;
            direction.queue = queue;
            direction.bucket = bucket;
        } else if direction.scattered {
            *self.scattered.entry((*flow, queue)).or_default() += 1;
        } else if direction.queue != queue {
            direction.scattered = true;
            self.scattered.insert((*flow, direction.queue), direction.frames - 1);
            self.scattered.insert((*flow, queue), 1);
        }
        (queue, bucket)
    }

    #[inline]
    fn group(&mut self, dissection: &Dissection) -> usize {
        let shape = dissection.shape();
        let recent = shape.mix() as usize % RECENT;
        let at = self.recent[recent] as usize;
        if self.groups.get(at).is_some_and(|group| group.shape == *shape) {
            return at;
        }
        let at = match self.index.get(shape) {
            Some(at) => *at as usize,
            None => self.new_group(*shape, dissection),
        };
        self.recent[recent] = at as u32;
        at
    }

    #[cold]
    fn new_group(&mut self, shape: Shape, dissection: &Dissection) -> usize {
        let disposition = self.rules.receiver.disposition(dissection);
        // A frame that is not hashed lands where all of its class do.
        let landing = (disposition.hash_type == rss::HashType::None)
            .then(|| self.rules.receiver.land(&disposition, &[], dissection));
        let group = Group {
            shape,
            disposition,
            fields: Fields::of(dissection),
            count: Count::default(),
            refused: Count::default(),
            largest: 0,
            landing,
        };
        self.index.insert(shape, self.groups.len() as u32);
        self.groups.push(group);
        self.groups.len() - 1
    }

    /// Counts the tags and gives a value that is equal for equal tags.
    #[inline]
    fn count_tags(&mut self, dissection: &Dissection, data: &[u8]) -> u64 {
        if dissection.stack().tags() == 0 {
            return 0;
        }
        let tags = pack(dissection, data);
        let Tags::Few(packed) = tags else {
            let hash = self.rules.hasher.hash_one(&tags);
            *self.tags.entry(tags).or_default() += 1;
            return hash;
        };
        // A tag without its TCI names no VLAN.
        if packed != 0 {
            let recent =
                &mut self.recent_tags[(packed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize % RECENT];
            if recent.0 != packed {
                let before = std::mem::replace(recent, (packed, 0));
                add_tags(&mut self.tags, before);
            }
            recent.1 += 1;
        }
        packed
    }

    /// A session is identified by its id, the two stations and the tags; either direction is the same session.
    #[inline]
    fn session(&mut self, dissection: &Dissection, data: &[u8], tags: u64) {
        let Some(pppoe) = dissection.pppoe() else { return };
        if pppoe.code != wire::pppoe::Code::SESSION {
            return;
        }
        let with_macs = data.first_chunk().filter(|_| dissection.shape().starts_with_ethernet());
        let macs = with_macs.copied().unwrap_or_default();
        let session = Session { id: pppoe.session, macs, tags };
        let [.., last] = macs;
        let recent = &mut self.recent_sessions[usize::from(session.id ^ u16::from(last)) % RECENT];
        if *recent != Some(session) {
            *recent = Some(session);
            self.sessions.insert(session.canonical());
        }
    }

    #[cold]
    fn defect(&mut self, reason: Reason, frame: u64) {
        let first = (self.file, frame);
        let defect = self.defects.entry(reason).or_insert(Defect { frames: 0, first });
        defect.frames += 1;
        defect.first = defect.first.min(first);
    }

    #[cold]
    fn count_extensions(&mut self, dissection: &Dissection, data: &[u8]) {
        for header in dissection.extension_headers(data) {
            self.extensions[header.kind as usize] += 1;
        }
    }

    /// Distinct PPPoE sessions.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// One tally of several, the flow tables merged on as many threads.
    pub fn merge(tallies: Vec<Tally<'a>>) -> Option<Tally<'a>> {
        let mut tables = Vec::with_capacity(tallies.len());
        let mut merged: Option<Tally<'a>> = None;
        for mut tally in tallies {
            for recent in &mut tally.recent_tags {
                add_tags(&mut tally.tags, std::mem::take(recent));
            }
            let empty = FlowTable::new(tally.rules.hasher.clone());
            tables.push(std::mem::replace(&mut tally.flows, empty));
            match &mut merged {
                None => merged = Some(tally),
                Some(merged) => merged.absorb(tally),
            }
        }
        let mut merged = merged?;
        let (flows, scattered) = FlowTable::merge(tables, &merged.rules.hasher);
        merged.flows = flows;
        merged.add_scattered(scattered);
        Some(merged)
    }

    fn add_scattered(&mut self, scattered: impl IntoIterator<Item = OnQueue>) {
        scattered.into_iter().for_each(|(place, frames)| *self.scattered.entry(place).or_default() += frames);
    }

    fn absorb(&mut self, other: Tally<'a>) {
        for group in other.groups {
            match self.index.get(&group.shape) {
                Some(at) => {
                    let into = &mut self.groups[*at as usize];
                    into.count.merge(group.count);
                    into.refused.merge(group.refused);
                    into.largest = into.largest.max(group.largest);
                }
                None => {
                    self.index.insert(group.shape, self.groups.len() as u32);
                    self.groups.push(group);
                }
            }
        }
        other.tags.into_iter().for_each(|(tags, frames)| *self.tags.entry(tags).or_default() += frames);
        self.sessions.extend(other.sessions);
        self.add_scattered(other.scattered);
        self.queues.iter_mut().zip(other.queues).for_each(|(into, from)| into.merge(from));
        self.unplaced.merge(other.unplaced);
        self.buckets.iter_mut().zip(other.buckets.iter()).for_each(|(into, from)| *into += from);
        self.local.iter_mut().zip(other.local).for_each(|(into, from)| *into += from);
        self.local_unplaced += other.local_unplaced;
        for (reason, defect) in other.defects {
            let into = self.defects.entry(reason).or_insert(Defect { frames: 0, first: defect.first });
            into.frames += defect.frames;
            into.first = into.first.min(defect.first);
        }
        self.extensions.iter_mut().zip(other.extensions).for_each(|(into, from)| *into += from);
        self.captured += other.captured;
        other.links.into_iter().for_each(|(link, frames)| *self.links.entry(link).or_default() += frames);
        self.time = match (self.time, other.time) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (one, two) => one.or(two),
        };
    }
}

/// The kinds in the order of [`Tally::extensions`].
pub(crate) const EXTENSION_KINDS: [(Kind, &str); 5] = [
    (Kind::HopByHop, "hop-by-hop"),
    (Kind::Routing, "routing"),
    (Kind::Fragment, "fragment"),
    (Kind::DestinationOptions, "destination-options"),
    (Kind::Authentication, "authentication"),
];

/// Whether frames of a link type can be dissected.
pub(crate) fn is_read(link_type: LinkType) -> bool {
    !matches!(link_type, LinkType::Other(_))
}

fn dissect_other(link_type: LinkType, data: &[u8], wire: usize) -> Dissection {
    // BSD loopback: four bytes of address family, which the IP version says again.
    let loopback = || dissect(Link::Ip, data.get(4..).unwrap_or_default(), wire.saturating_sub(4));
    match link_type {
        LinkType::LinuxCooked => dissect(Link::LinuxCooked, data, wire),
        LinkType::LinuxCooked2 => dissect(Link::LinuxCooked2, data, wire),
        LinkType::RawIp | LinkType::Ipv4 | LinkType::Ipv6 => dissect(Link::Ip, data, wire),
        LinkType::Ppp | LinkType::PppSerial => dissect(Link::Ppp, data, wire),
        LinkType::PppOverEthernet => dissect(Link::PppOverEthernet, data, wire),
        LinkType::Null | LinkType::Loop => loopback(),
        _ => Dissection::unread(),
    }
}

/// Adds frames of these tags.
fn add_tags(tags: &mut Map<Tags, u64>, (packed, frames): (u64, u64)) {
    if frames > 0 {
        *tags.entry(Tags::Few(packed)).or_default() += frames;
    }
}

/// Packs up to four tags as four bits of TPID number and twelve of VID each, the outermost lowest.
#[inline]
fn pack(dissection: &Dissection, data: &[u8]) -> Tags {
    if dissection.stack().tags() > 4 {
        let tags =
            dissection.tags(data).map(|tag| wire::vlan::Tag { tci: wire::vlan::Tci(tag.tci.vid()), ..tag });
        return Tags::Many(tags.collect());
    }
    let (mut packed, mut shift, mut tpids) = (0, 0, u64::from(dissection.tpids()));
    for tag in dissection.tag_bytes(data).chunks(wire::vlan::TAG_LENGTH) {
        let Some(tci) = tag.first_chunk().copied().map(u16::from_be_bytes) else { break };
        packed |= ((tpids & 15) << 12 | u64::from(wire::vlan::Tci(tci).vid())) << shift;
        shift += 16;
        tpids >>= 4;
    }
    Tags::Few(packed)
}

impl std::fmt::Display for Tags {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut separator = "";
        let mut tag = |f: &mut std::fmt::Formatter<'_>, tag: wire::vlan::Tag| {
            write!(f, "{separator}{tag}")?;
            separator = " ";
            Ok(())
        };
        match self {
            Tags::Many(tags) => tags.iter().try_for_each(|found| tag(f, *found)),
            Tags::Few(packed) => {
                (0..4).map(|at| packed >> (16 * at) & 0xffff).filter(|one| *one != 0).try_for_each(|one| {
                    let tpid = wire::ethernet::EtherType::of_tpid_number((one >> 12) as u32);
                    tag(f, wire::vlan::Tag { tpid, tci: wire::vlan::Tci(one as u16 & 0x0fff) })
                })
            }
        }
    }
}
