//! The answer, as `rxlane explain --json` prints it (schema `rxlane.explain/1`: fields are added, never
//! renamed) and as the text and the page show it.

#![expect(missing_docs, reason = "keys of the JSON answer; what its name does not say has a comment")]

use serde::Serialize;
use std::collections::BTreeMap;

/// The answer to "where does every frame of this capture land, and why".
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Always [`Report::SCHEMA`].
    pub schema: &'static str,
    pub source: Source,
    /// Encapsulation stacks, the most frequent first.
    pub stacks: Vec<StackRow>,
    /// VLAN tag stacks, the most frequent first; `untagged` among them.
    pub tags: Vec<TagRow>,
    pub pppoe: Pppoe,
    pub flows: Flows,
    pub fragments: Fragments,
    /// IPv6 extension headers (and AH), each occurrence counted.
    pub extension_headers: BTreeMap<&'static str, u64>,
    pub bad: Bad,
    pub nic: Nic,
    /// Receive queues; empty where the profile gives no frame's queue.
    pub queues: Vec<QueueRow>,
    pub imbalance: Imbalance,
    pub steered: Steered,
    pub admission: Admission,
    /// Flows with the most bytes.
    pub top_flows: Vec<FlowRow>,
}

impl Report {
    /// Name and version of the schema.
    pub const SCHEMA: &str = "rxlane.explain/1";

    /// Frames that a receive queue could have had.
    pub fn received(&self) -> u64 {
        self.source.frames.saturating_sub(self.source.outgoing + self.source.above_link)
    }

    /// Frames whose queue is known.
    pub fn placed(&self) -> u64 {
        self.queues.iter().map(|queue| queue.frames).sum()
    }

    /// Whether the queue of half the received frames is known: figures over fewer are not those of the traffic.
    pub fn is_mostly_placed(&self) -> bool {
        2 * self.placed() >= self.received()
    }
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Source {
    pub files: Vec<String>,
    /// Whole records.
    pub frames: u64,
    /// Bytes of the input that were read; of a compressed file, compressed bytes.
    pub bytes: u64,
    /// Bytes of frames that the capture kept.
    pub captured_bytes: u64,
    /// Bytes of frames on the wire, without FCS.
    pub wire_bytes: u64,
    /// Seconds from the first frame to the last; absent where the capture carries no times.
    pub seconds: Option<f64>,
    pub link_types: BTreeMap<String, u64>,
    /// Frames that the capturing machine sent, by the word of the capture: they pass no receive queue.
    pub outgoing: u64,
    /// Frames captured above the link layer (`ppp0`, a tunnel), where a network card never sees them.
    pub above_link: u64,
    /// Frames of link types that rxlane does not read.
    pub unread: u64,
    /// What was wrong with the files themselves.
    pub problems: Vec<String>,
    /// Whether part of a file could not be read; the other problems are remarks.
    pub damaged: bool,
    /// How the frames were sampled; absent of files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<LiveSample>,
}

/// What stands in a report in place of a hash key that was read from an interface: who knows the key can aim all traffic
/// at one queue, and reports are posted.
pub const INTERFACE_KEY: &str = "that of the interface";

/// A sample of what an interface receives, from a packet socket: after GRO, and without what an XDP program kept.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LiveSample {
    pub interface: String,
    /// Always `received`: frames that the interface sent are left out.
    pub direction: &'static str,
    /// How long it took.
    pub seconds: f64,
    /// Bytes kept of each frame.
    pub snap: u32,
    /// Frames that came too fast to be taken.
    pub dropped: u64,
    /// Frames that are several TCP segments, merged before the socket saw them.
    pub merged: u64,
    /// Frames whose outermost VLAN tag the NIC or the kernel had taken off, and that have it again.
    pub tags: u64,
    /// What ended it: `time`, `frames`, `bytes`, `down` (the interface), or `requested` (a signal).
    pub end: &'static str,
}

#[derive(Clone, Debug, Serialize)]
pub struct StackRow {
    pub stack: String,
    pub frames: u64,
    pub bytes: u64,
    /// Hash type of most of its frames: `none`, `unknown`, or a type's name.
    pub hash_type: String,
    /// Why, in words.
    pub why: String,
    /// Where the deciding claim is written; absent where no claim decides.
    pub sources: Vec<String>,
    pub hash_types: BTreeMap<String, u64>,
}

#[derive(Clone, Debug, Serialize)]
pub struct TagRow {
    /// `TPID/VID` of each, outermost first.
    pub tags: String,
    pub frames: u64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Pppoe {
    /// Distinct sessions: session id, stations and tags.
    pub sessions: usize,
    pub codes: BTreeMap<String, u64>,
    pub ppp: BTreeMap<String, u64>,
}

/// Distinct 5-tuples of frames that carry ports.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Flows {
    /// Each direction counted.
    pub unidirectional: u64,
    /// Both directions counted as one.
    pub bidirectional: u64,
    /// Of these, the flows of which both directions were seen.
    pub two_way: u64,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Fragments {
    /// Offset zero, more to follow.
    pub ipv4_first: u64,
    /// Any other.
    pub ipv4_later: u64,
    /// Offset zero, more to follow.
    pub ipv6_first: u64,
    /// Any other.
    pub ipv6_later: u64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Bad {
    /// Bytes are missing.
    pub truncated: u64,
    /// A field contradicts its specification.
    pub malformed: u64,
    /// Of the truncated frames, those of which only the capture kept too little (`tcpdump -s`).
    pub cut_by_capture: u64,
    pub reasons: BTreeMap<String, u64>,
    /// The first frame with each reason.
    pub first: BTreeMap<String, FirstFrame>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FirstFrame {
    pub file: String,
    pub frame: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct Nic {
    /// Name of the profile, with its mode.
    pub name: String,
    pub title: String,
    pub queues: u16,
    /// Whether the caller named the device, or it was assumed.
    pub assumed: bool,
    /// Frames whose queue the profile does not give.
    pub unplaced: u64,
    /// Why the queue of received frames is unknown, the most frequent reason first.
    pub unknown: Vec<UnknownRow>,
    /// Queues that the indirection table names; 0 where no table chooses the queue.
    pub table_queues: u16,
    /// Modes of the device that see through what keeps most frames from being hashed now.
    pub better_modes: Vec<String>,
    /// Hash key in use, as `ethtool -x` prints it.
    pub key: String,
    /// Whether the caller named the key; without one it is Microsoft's verification key.
    pub key_given: bool,
    /// Hash types that are enabled; empty where the profile does not say what is hashed.
    pub hash_types: Vec<&'static str>,
}

/// Frames whose queue is unknown for one reason.
#[derive(Clone, Debug, Serialize)]
pub struct UnknownRow {
    /// The claim that is missing, or says what is not computed: `parse.tags_through`.
    pub key: String,
    /// The same in words.
    pub why: String,
    pub frames: u64,
    /// Whether the frames are known to be unhashed: one queue takes them, and which is unknown.
    pub one_queue: bool,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct QueueRow {
    pub queue: u16,
    pub frames: u64,
    pub bytes: u64,
    /// Unidirectional flows.
    pub flows: u64,
}

/// How uneven a distribution is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Imbalance {
    /// The largest part over the mean: 1 is even. 0 where there is nothing to distribute.
    pub max_over_mean: f64,
    /// 1/Σ share²: equivalent number of evenly loaded parts.
    pub effective_queues: f64,
}

impl Imbalance {
    /// Of these parts.
    pub fn of(parts: &[u64]) -> Imbalance {
        let total = parts.iter().sum::<u64>() as f64;
        if total == 0.0 {
            return Imbalance::default();
        }
        let largest = parts.iter().copied().max().unwrap_or(0) as f64;
        let squares: f64 = parts.iter().map(|part| (*part as f64 / total).powi(2)).sum();
        Imbalance { max_over_mean: largest * parts.len() as f64 / total, effective_queues: 1.0 / squares }
    }
}

/// What steering by the inner header would do.
#[derive(Clone, Debug, Serialize)]
pub struct Steered {
    /// CPUs that flows are distributed to.
    pub cpus: u16,
    pub per_cpu: Vec<CpuRow>,
    /// See [`Imbalance::max_over_mean`].
    pub max_over_mean: f64,
    /// See [`Imbalance::effective_queues`].
    pub effective_queues: f64,
    /// Frames without an IP header, which stay on the CPU of their queue.
    pub left_alone: u64,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct CpuRow {
    pub cpu: u16,
    pub frames: u64,
}

/// What the device would refuse for its size.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Admission {
    /// Frames let in.
    pub accepted: u64,
    /// Frames of which the profile does not say.
    pub unknown: u64,
    /// Frames refused, by limit.
    pub dropped: Vec<Dropped>,
}

/// Frames that are too long.
#[derive(Clone, Debug, Serialize)]
pub struct Dropped {
    pub stack: String,
    /// The longest frame let in, bytes without FCS.
    pub limit: u32,
    pub frames: u64,
    pub bytes: u64,
    pub largest: u32,
}

#[derive(Clone, Debug, Serialize)]
pub struct FlowRow {
    /// `source > destination`.
    pub flow: String,
    /// `tcp`, `udp` or `sctp`.
    pub protocol: &'static str,
    pub frames: u64,
    pub bytes: u64,
    /// Queue of most of its frames; absent where the profile does not give it.
    pub queue: Option<u16>,
    /// CPU of its whole packets under steering.
    pub cpu: u16,
}
