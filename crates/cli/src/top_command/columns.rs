//! The tables: their columns, the most important first, since a narrow screen shows as many as fit.

use super::model::{ClassRow, CpuRow, Heat, QueueRow, StackRow, StageRow, VectorRow};
use super::steering::{ReasonRow, SteeredCpu};
use super::table::Column;
use super::table::Value::{self, Bar, Count, Number, Numbered, Part, Rate, Text, Word};
use format::UNKNOWN;

const LOST: fn(Option<f64>) -> Heat =
    |drops| if drops.is_some_and(|drops| drops > 0.0) { Heat::Critical } else { Heat::Calm };
const WARM: fn(Option<f64>) -> Heat =
    |rate| if rate.is_some_and(|rate| rate >= 1.0) { Heat::Warm } else { Heat::Calm };
/// Per cent of a CPU's time.
const PERCENT: fn(Option<f64>) -> Value = |percent| Part(percent.map(|percent| percent / 100.0));

fn list(cpus: Option<&Vec<u32>>, none: &str) -> String {
    match cpus {
        None => UNKNOWN.to_owned(),
        Some(cpus) if cpus.is_empty() => none.to_owned(),
        Some(cpus) => steer::facts::list(cpus),
    }
}

type Queue = Column<QueueRow>;
pub const QUEUES: &[Queue] = &[
    Queue::new("queue", 5, |row| Number(Some(row.queue))),
    Queue::new("frames/s", 8, |row| Rate(row.frames_per_second)).heat(|row| row.heat),
    Queue::new("share", 7, |row| Part(row.share)).heat(|row| row.heat),
    Queue::bar(9, |row| Bar(row.share)).heat(|row| row.heat),
    Queue::new("drops/s", 7, |row| Rate(row.drops_per_second)).heat(|row| LOST(row.drops_per_second)),
    Queue::new("bytes/s", 7, |row| Rate(row.bytes_per_second)),
    Queue::new("drops", 7, |row| Count(row.drops)),
    Queue::new("vector", 6, |row| {
        let vector = row.vector.clone().unwrap_or_else(|| UNKNOWN.to_owned());
        Numbered(vector, row.vector.as_ref().and_then(|vector| vector.parse().ok()))
    }),
    Queue::new("CPU", 4, |row| Number(row.cpu)),
    Queue::new("RPS", 8, |row| {
        Numbered(list(row.rps.as_ref(), "off"), row.rps.as_ref().map(|rps| rps.len() as f64))
    }),
];

type Vector = Column<VectorRow>;
pub const VECTORS: &[Vector] = &[
    Vector::new("vector", 6, |row| Numbered(row.vector.clone(), row.vector.parse().ok())),
    Vector::new("for", 20, |row| Text(row.action.clone())).left(),
    Vector::new("queue", 5, |row| Number(row.queue)),
    Vector::new("interrupts/s", 12, |row| Rate(row.interrupts_per_second)),
    Vector::new("CPU", 4, |row| Number(row.cpu)).heat(|row| row.heat),
    Vector::new("there", 7, |row| Part(row.cpu_share)),
    Vector::new("affinity", 9, |row| Text(list(row.affinity.as_ref(), "none"))),
    Vector::new("frames each", 11, |row| Rate(row.frames_per_interrupt)),
];

type Cpu = Column<CpuRow>;
pub const CPUS: &[Cpu] = &[
    Cpu::new("CPU", 4, |row| Number(Some(row.cpu))),
    Cpu::new("busy", 7, |row| PERCENT(row.busy)),
    Cpu::new("softirq", 7, |row| PERCENT(row.softirq)).heat(|row| row.heat),
    Cpu::bar(9, |row| Bar(row.softirq.map(|share| share / 100.0))).heat(|row| row.heat),
    Cpu::new("frames/s", 8, |row| Rate(row.processed_per_second)),
    Cpu::new("dropped/s", 9, |row| Rate(row.dropped_per_second)).heat(|row| LOST(row.dropped_per_second)),
    Cpu::new("squeezed/s", 10, |row| Rate(row.time_squeeze_per_second))
        .heat(|row| WARM(row.time_squeeze_per_second)),
    Cpu::new("irqs/s", 6, |row| Rate(row.interrupts_per_second)),
    Cpu::new("NET_RX/s", 8, |row| Rate(row.net_rx_per_second)),
    Cpu::new("RPS/s", 6, |row| Rate(row.received_rps_per_second)),
    Cpu::new("steered/s", 9, |row| Rate(row.steered_per_second)),
    Cpu::new("user", 6, |row| PERCENT(row.user)),
    Cpu::new("system", 6, |row| PERCENT(row.system)),
    Cpu::new("irq", 6, |row| PERCENT(row.interrupt)),
];

type Stage = Column<StageRow>;
pub const STAGES: &[Stage] = &[
    Stage::new("stage", 8, |row| Word(row.stage.to_owned())).left(),
    Stage::new("frames/s", 8, |row| Rate(row.frames_per_second)),
    Stage::new("drops/s", 7, |row| Rate(row.drops_per_second)).heat(|row| row.heat),
    Stage::new("drops", 7, |row| Count(row.drops)),
    Stage::new("counted from", 10, |row| Text(row.text.clone())).flexible(),
];

type Class = Column<ClassRow>;
pub const CLASSES: &[Class] = &[
    Class::new("class", 6, |row| Word(row.class.name().to_owned())).left(),
    Class::new("share", 7, |row| Part(row.share)),
    Class::bar(12, |row| Bar(row.share)),
    Class::new("~frames/s", 9, |row| Rate(row.estimated_frames_per_second)),
    Class::new("sampled", 7, |row| Count(Some(row.frames))),
    Class::new("what", 10, |row| Word(row.class.meaning().to_owned())).flexible(),
];

type Stack = Column<StackRow>;
pub const STACKS: &[Stack] = &[
    Stack::new("share", 7, |row| Part(row.share)),
    Stack::new("sampled", 7, |row| Count(Some(row.frames))),
    Stack::new("stack", 10, |row| Text(row.stack.clone())).flexible(),
];

type Steered = Column<SteeredCpu>;
pub const STEERED: &[Steered] = &[
    Steered::new("CPU", 4, |row| Number(Some(row.cpu))),
    Steered::new("frames/s", 8, |row| Rate(row.frames_per_second)),
    Steered::new("share", 7, |row| Part(row.share)),
    Steered::bar(12, |row| Bar(row.share)),
    Steered::new("drops/s", 7, |row| Rate(row.drops_per_second)).heat(|row| LOST(row.drops_per_second)),
    Steered::new("frames", 7, |row| Count(Some(row.frames))),
    Steered::new("drops", 6, |row| Count(Some(row.drops))),
    Steered::new("buckets", 7, |row| Count(row.buckets.map(|buckets| buckets as u64))),
];

type Reason = Column<ReasonRow>;
pub const REASONS: &[Reason] = &[
    Reason::new("frames/s", 8, |row| Rate(row.frames_per_second)),
    Reason::new("frames", 7, |row| Count(Some(row.frames))),
    Reason::new("reason", 10, |row| Text(row.reason.to_owned())).flexible(),
];
