//! The answer, as `rxlane doctor --json` prints it (schema `rxlane.doctor/1`: fields are added, never renamed), but for
//! the sentences of findings and conclusion, which the command adds.

#![expect(missing_docs, reason = "keys of the JSON answer; what its name does not say has a comment")]

use crate::finding::Finding;
use crate::stacked::StackedRow;
use serde::Serialize;
use std::collections::BTreeMap;

/// What is wrong with a machine's receive path.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Always [`Report::SCHEMA`].
    pub schema: &'static str,
    pub verdict: Verdict,
    /// What the conclusion says besides the findings.
    #[serde(skip)]
    pub summary: Summary,
    /// Operating system, where known: `linux`, `freebsd`, `netbsd`.
    pub system: Option<&'static str>,
    pub cpus: Option<u32>,
    /// Their model, where known.
    pub cpu_model: Option<String>,
    /// Seconds between the samples; absent where there was one.
    pub seconds: Option<f64>,
    /// Interfaces that were judged, with their queues.
    pub interfaces: Vec<InterfaceRow>,
    pub vectors: Vec<VectorRow>,
    pub per_cpu: Vec<CpuRow>,
    pub stacked: Vec<StackedRow>,
    /// What rxlane's fast path forwards; absent where none is known to be up.
    pub fastpath: Option<FastPathRow>,
    /// The traffic sample, by the interface that it counts for.
    pub traffic: Vec<TrafficRow>,
    #[serde(skip)]
    pub findings: Vec<Finding>,
    pub rules: Vec<RuleRow>,
    /// What could not be read, and why.
    pub unread: Vec<host::Unread>,
    /// Where packets were dropped and CPU time went meanwhile; absent where it was not traced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<host::trace::Trace>,
}

impl Report {
    /// Name and version of the schema.
    pub const SCHEMA: &str = "rxlane.doctor/1";
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Summary {
    pub nothing_read: bool,
    pub steered: bool,
    pub idle: bool,
    /// Whether the traffic sample holds frames; `None` without one.
    pub sample: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// What was looked at is in order, and enough was looked at.
    Healthy,
    Limited,
    /// The text does not say.
    Unknown,
}

impl Verdict {
    /// The word of output.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Healthy => "healthy",
            Verdict::Limited => "limited",
            Verdict::Unknown => "unknown",
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct InterfaceRow {
    /// Name; empty where the text names none.
    pub name: String,
    /// Driver, where known.
    pub driver: Option<String>,
    /// Profile of the device; absent where it is not known, or several would fit.
    pub profile: Option<String>,
    /// Profiles that would fit, where several do.
    pub candidates: Vec<String>,
    /// What the text calls the device, where it does.
    pub model: Option<String>,
    /// Bus address (`0000:03:00.0`), where known.
    pub bus: Option<String>,
    /// Whether it is administratively up, where known.
    pub up: Option<bool>,
    /// Whether there is carrier, where known.
    pub carrier: Option<bool>,
    /// SR-IOV functions in use, where known.
    pub virtual_functions: Option<u32>,
    pub master: Option<String>,
    /// The device that its frames come in by, where that is another.
    pub physical: Option<String>,
    /// Whether `queues` counts since the counters were started, not between two samples.
    pub since_start: bool,
    /// Receive queues with what they counted; empty where unknown.
    pub queues: Vec<QueueRow>,
    /// What rxlane's program hands to other CPUs; absent where nobody looked, or nobody could.
    pub steering: Option<SteeringRow>,
}

#[derive(Clone, Debug, Serialize)]
pub struct SteeringRow {
    /// `native`, `generic`, or `off`.
    pub mode: &'static str,
    /// Encapsulations that are handed on, where known.
    pub classes: Option<Vec<String>>,
    /// Part of the frames that is handed on, 0 to 1; absent where too few were counted.
    pub share: Option<f64>,
    pub cpus: Vec<SteeredCpuRow>,
    /// Whether counts and drops of `cpus` are since it was attached, not between two samples.
    pub since_start: bool,
    /// Whether a living process moves flows from busy to idle CPUs, where known.
    pub rebalances: Option<bool>,
}

#[derive(Clone, Debug, Serialize)]
pub struct FastPathRow {
    pub ports: Vec<String>,
    /// `native`, `generic`, or `off`.
    pub mode: &'static str,
    /// Packets that it forwarded.
    pub fast: u64,
    /// Packets that it left to the kernel, by reason.
    pub slow: BTreeMap<String, u64>,
    /// Part of them all that it forwarded, 0 to 1; absent where there were none.
    pub fast_share: Option<f64>,
    /// Connections that are in it.
    pub flows: Option<u64>,
    /// Whether packets are those since it is up, not between two samples.
    pub since_start: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct SteeredCpuRow {
    pub cpu: u32,
    /// Frames; absent where not counted.
    pub frames: Option<u64>,
    /// Part of what is handed on, 0 to 1.
    pub share: Option<f64>,
    /// Frames lost since the CPU's queue was full.
    pub drops: Option<u64>,
}

#[derive(Clone, Debug, Serialize)]
pub struct QueueRow {
    pub queue: u32,
    /// Frames; absent where not counted.
    pub packets: Option<u64>,
    /// Frames a second between the samples.
    pub per_second: Option<f64>,
    /// Part of the interface's frames, 0 to 1.
    pub share: Option<f64>,
    pub drops: Option<u64>,
}

/// A vector and the CPUs that served it.
#[derive(Clone, Debug, Serialize)]
pub struct VectorRow {
    pub interface: String,
    /// Vector (`128`).
    pub vector: String,
    /// Name (`eth0-rx-0`).
    pub action: String,
    /// Queue, where the name says.
    pub queue: Option<u32>,
    /// Interrupts by CPU; empty where the system does not count by CPU.
    pub per_cpu: BTreeMap<u32, u64>,
    pub total: u64,
    /// Interrupts a second between the samples.
    pub per_second: Option<f64>,
    /// Whether the counts are since start, not between two samples.
    pub since_start: bool,
    /// CPUs that the affinity allows, where known.
    pub affinity: Option<Vec<u32>>,
}

#[derive(Clone, Debug, Serialize)]
pub struct CpuRow {
    pub cpu: u32,
    pub net_rx: Option<u64>,
    /// Frames taken up (`softnet_stat`).
    pub processed: Option<u64>,
    pub dropped: Option<u64>,
    pub time_squeeze: Option<u64>,
    /// Wake-ups by RPS on other CPUs.
    pub received_rps: Option<u64>,
    /// Busy, per cent of the interval.
    pub busy: Option<f64>,
    /// In soft interrupts, per cent of the interval.
    pub softirq: Option<f64>,
}

#[derive(Clone, Debug, Serialize)]
pub struct TrafficRow {
    pub interface: String,
    pub frames: u64,
    pub bytes: u64,
    pub flows: u64,
    /// Encapsulation stacks, the most frequent first.
    pub stacks: Vec<StackRow>,
    pub problems: Vec<String>,
    /// Whether part of a capture could not be read.
    pub damaged: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct StackRow {
    pub stack: String,
    pub frames: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct RuleRow {
    pub id: &'static str,
    pub outcome: Outcome,
    /// Outputs that it would need, where it lacks data.
    pub lacks: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    Found,
    Clear,
    /// It could not decide.
    InsufficientData,
    /// There is nothing here that it is about.
    DoesNotApply,
}
