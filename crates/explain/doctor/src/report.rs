//! The answer, as `rxlane doctor --json` prints it (schema `rxlane.doctor/1`: fields are added, never renamed), but for
//! the sentences of findings and conclusion, which the command adds.

use crate::finding::Finding;
use crate::stacked::StackedRow;
use serde::Serialize;
use std::collections::BTreeMap;

/// What is wrong with a machine's receive path.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Always [`Report::SCHEMA`].
    pub schema: &'static str,
    /// The answer in one word.
    pub verdict: Verdict,
    /// What the conclusion says besides the findings.
    #[serde(skip)]
    pub summary: Summary,
    /// Operating system, where known: `linux`, `freebsd`, `netbsd`.
    pub system: Option<&'static str>,
    /// CPUs online.
    pub cpus: Option<u32>,
    /// Their model, where known.
    pub cpu_model: Option<String>,
    /// Seconds between the samples; absent where there was one.
    pub seconds: Option<f64>,
    /// Interfaces that were judged, with their queues.
    pub interfaces: Vec<InterfaceRow>,
    /// Queues × CPUs.
    pub vectors: Vec<VectorRow>,
    /// Work by CPU.
    pub per_cpu: Vec<CpuRow>,
    /// VLAN, QinQ and PPP interfaces: frame sizes and offloads.
    pub stacked: Vec<StackedRow>,
    /// The traffic sample, by the interface that it counts for.
    pub traffic: Vec<TrafficRow>,
    /// Findings, the gravest first.
    #[serde(skip)]
    pub findings: Vec<Finding>,
    /// What became of every rule.
    pub rules: Vec<RuleRow>,
    /// What could not be read, and why.
    pub unread: Vec<UnreadRow>,
}

impl Report {
    /// Name and version of the schema.
    pub const SCHEMA: &str = "rxlane.doctor/1";
}

/// What a conclusion depends on besides verdict and findings.
#[derive(Clone, Copy, Debug, Default)]
pub struct Summary {
    /// Nothing in the text is the output of a tool that rxlane knows.
    pub nothing_read: bool,
    /// A device's frames are steered.
    pub steered: bool,
    /// Next to nothing arrived between the samples.
    pub idle: bool,
}

/// The answer in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// What was looked at is in order, and enough was looked at.
    Healthy,
    /// A stage of the receive path limits.
    Limited,
    /// The text does not tell.
    Unknown,
}

/// An interface.
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
    /// The bridge or bond that it belongs to.
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

/// Steering of an interface.
#[derive(Clone, Debug, Serialize)]
pub struct SteeringRow {
    /// `native`, `generic`, or `off`.
    pub mode: &'static str,
    /// Encapsulations that are handed on, where known.
    pub classes: Option<Vec<String>>,
    /// Part of the frames that is handed on, 0 to 1; absent where too few were counted.
    pub share: Option<f64>,
    /// CPUs that frames are handed to.
    pub cpus: Vec<SteeredCpuRow>,
    /// Whether counts and drops of `cpus` are since it was attached, not between two samples.
    pub since_start: bool,
    /// Whether a living process moves flows from busy to idle CPUs, where known.
    pub rebalances: Option<bool>,
}

/// A CPU that frames are handed to.
#[derive(Clone, Debug, Serialize)]
pub struct SteeredCpuRow {
    /// Number.
    pub cpu: u32,
    /// Frames; absent where not counted.
    pub frames: Option<u64>,
    /// Part of what is handed on, 0 to 1.
    pub share: Option<f64>,
    /// Frames lost since the CPU's queue was full.
    pub drops: Option<u64>,
}

/// A receive queue.
#[derive(Clone, Debug, Serialize)]
pub struct QueueRow {
    /// Number.
    pub queue: u32,
    /// Frames; absent where not counted.
    pub packets: Option<u64>,
    /// Frames a second between the samples.
    pub per_second: Option<f64>,
    /// Part of the interface's frames, 0 to 1.
    pub share: Option<f64>,
    /// Frames lost at the queue.
    pub drops: Option<u64>,
}

/// A vector and the CPUs that served it.
#[derive(Clone, Debug, Serialize)]
pub struct VectorRow {
    /// Interface.
    pub interface: String,
    /// Vector (`128`).
    pub vector: String,
    /// Name (`eth0-rx-0`).
    pub action: String,
    /// Queue, where the name says.
    pub queue: Option<u32>,
    /// Interrupts by CPU; empty where the system does not tell CPUs apart.
    pub per_cpu: BTreeMap<u32, u64>,
    /// Interrupts in all.
    pub total: u64,
    /// Interrupts a second between the samples.
    pub per_second: Option<f64>,
    /// Whether the counts are since start, not between two samples.
    pub since_start: bool,
    /// CPUs that the affinity allows, where known.
    pub affinity: Option<Vec<u32>>,
}

/// A CPU.
#[derive(Clone, Debug, Serialize)]
pub struct CpuRow {
    /// Number.
    pub cpu: u32,
    /// Receive softirqs.
    pub net_rx: Option<u64>,
    /// Frames taken up (`softnet_stat`).
    pub processed: Option<u64>,
    /// Frames dropped at the backlog.
    pub dropped: Option<u64>,
    /// Times that the budget ran out.
    pub time_squeeze: Option<u64>,
    /// Wake-ups by RPS on other CPUs.
    pub received_rps: Option<u64>,
    /// Busy, per cent of the interval.
    pub busy: Option<f64>,
    /// In soft interrupts, per cent of the interval.
    pub softirq: Option<f64>,
}

/// A traffic sample.
#[derive(Clone, Debug, Serialize)]
pub struct TrafficRow {
    /// Interface.
    pub interface: String,
    /// Frames.
    pub frames: u64,
    /// Bytes on the wire.
    pub bytes: u64,
    /// Flows, each direction counted.
    pub flows: u64,
    /// Encapsulation stacks, the most frequent first.
    pub stacks: Vec<StackRow>,
    /// What was wrong with the captures.
    pub problems: Vec<String>,
    /// Whether part of a capture could not be read.
    pub damaged: bool,
}

/// An encapsulation stack of a traffic sample.
#[derive(Clone, Debug, Serialize)]
pub struct StackRow {
    /// Words joined by slashes.
    pub stack: String,
    /// Frames.
    pub frames: u64,
}

/// What became of a rule.
#[derive(Clone, Debug, Serialize)]
pub struct RuleRow {
    /// Its id.
    pub id: &'static str,
    /// What it came to.
    pub outcome: Outcome,
    /// Outputs that it would need, where it lacks data.
    pub lacks: Vec<String>,
}

/// What a rule came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It found something.
    Found,
    /// It looked, and there is nothing.
    Clear,
    /// It could not tell.
    InsufficientData,
    /// There is nothing here that it is about.
    DoesNotApply,
}

/// Something that could not be read.
#[derive(Clone, Debug, Serialize)]
pub struct UnreadRow {
    /// Command or file.
    pub what: String,
    /// Why.
    pub why: String,
}
