//! The tables: their columns, the most important first, since a narrow screen shows as many as fit.

use super::figures::{count, cpu_list, percent, share};
use super::model::{ClassRow, CpuRow, Heat, QueueRow, ReasonRow, StackRow, StageRow, SteeredCpu, VectorRow};
use super::table::{Column, Key};
use format::{UNKNOWN, compact};

const LOST: fn(Option<f64>) -> Heat =
    |drops| if drops.is_some_and(|drops| drops > 0.0) { Heat::Hot } else { Heat::Calm };
const WARM: fn(Option<f64>) -> Heat =
    |rate| if rate.is_some_and(|rate| rate >= 1.0) { Heat::Warm } else { Heat::Calm };

fn number(value: Option<u32>) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), |value| value.to_string())
}

fn list(cpus: Option<&Vec<u32>>, none: &str) -> String {
    match cpus {
        None => UNKNOWN.to_owned(),
        Some(cpus) if cpus.is_empty() => none.to_owned(),
        Some(cpus) => cpu_list(cpus),
    }
}

/// Receive queues.
pub const QUEUES: &[Column<QueueRow>] = &[
    Column::<QueueRow>::new("queue", 5, |row| row.queue.to_string(), |row| row.queue.into()),
    Column::<QueueRow>::new(
        "frames/s",
        8,
        |row| compact(row.frames_per_second),
        |row| row.frames_per_second.into(),
    )
    .heat(|row| row.heat),
    Column::<QueueRow>::new("share", 7, |row| share(row.share), |row| row.share.into()).heat(|row| row.heat),
    Column::<QueueRow>::bar(9, |row| row.share).heat(|row| row.heat),
    Column::<QueueRow>::new(
        "drops/s",
        7,
        |row| compact(row.drops_per_second),
        |row| row.drops_per_second.into(),
    )
    .heat(|row| LOST(row.drops_per_second)),
    Column::<QueueRow>::new(
        "bytes/s",
        7,
        |row| compact(row.bytes_per_second),
        |row| row.bytes_per_second.into(),
    ),
    Column::<QueueRow>::new("drops", 7, |row| count(row.drops), |row| row.drops.into()),
    Column::<QueueRow>::new(
        "vector",
        6,
        |row| row.vector.clone().unwrap_or_else(|| UNKNOWN.to_owned()),
        |row| Key::Number(row.vector.as_ref().and_then(|vector| vector.parse().ok())),
    ),
    Column::<QueueRow>::new("CPU", 4, |row| number(row.cpu), |row| row.cpu.into()),
    Column::<QueueRow>::new(
        "RPS",
        8,
        |row| list(row.rps.as_ref(), "off"),
        |row| Key::Number(row.rps.as_ref().map(|rps| rps.len() as f64)),
    ),
];

/// Interrupt vectors.
pub const VECTORS: &[Column<VectorRow>] = &[
    Column::<VectorRow>::new(
        "vector",
        6,
        |row| row.vector.clone(),
        |row| Key::Number(row.vector.parse().ok()),
    ),
    Column::<VectorRow>::new("for", 20, |row| row.action.clone(), |row| Key::Text(row.action.clone())).left(),
    Column::<VectorRow>::new("queue", 5, |row| number(row.queue), |row| row.queue.into()),
    Column::<VectorRow>::new(
        "interrupts/s",
        12,
        |row| compact(row.interrupts_per_second),
        |row| row.interrupts_per_second.into(),
    ),
    Column::<VectorRow>::new("CPU", 4, |row| number(row.cpu), |row| row.cpu.into()).heat(|row| row.heat),
    Column::<VectorRow>::new("there", 7, |row| share(row.cpu_share), |row| row.cpu_share.into()),
    Column::<VectorRow>::new(
        "affinity",
        9,
        |row| list(row.affinity.as_ref(), "none"),
        |row| Key::Text(list(row.affinity.as_ref(), "")),
    ),
    Column::<VectorRow>::new(
        "frames each",
        11,
        |row| compact(row.frames_per_interrupt),
        |row| row.frames_per_interrupt.into(),
    ),
];

/// CPUs.
pub const CPUS: &[Column<CpuRow>] = &[
    Column::<CpuRow>::new("CPU", 4, |row| row.cpu.to_string(), |row| row.cpu.into()),
    Column::<CpuRow>::new("busy", 7, |row| percent(row.busy), |row| row.busy.into()),
    Column::<CpuRow>::new("softirq", 7, |row| percent(row.softirq), |row| row.softirq.into())
        .heat(|row| row.heat),
    Column::<CpuRow>::bar(9, |row| row.softirq.map(|share| share / 100.0)).heat(|row| row.heat),
    Column::<CpuRow>::new(
        "frames/s",
        8,
        |row| compact(row.processed_per_second),
        |row| row.processed_per_second.into(),
    ),
    Column::<CpuRow>::new(
        "dropped/s",
        9,
        |row| compact(row.dropped_per_second),
        |row| row.dropped_per_second.into(),
    )
    .heat(|row| LOST(row.dropped_per_second)),
    Column::<CpuRow>::new(
        "squeezed/s",
        10,
        |row| compact(row.time_squeeze_per_second),
        |row| row.time_squeeze_per_second.into(),
    )
    .heat(|row| WARM(row.time_squeeze_per_second)),
    Column::<CpuRow>::new(
        "irqs/s",
        6,
        |row| compact(row.interrupts_per_second),
        |row| row.interrupts_per_second.into(),
    ),
    Column::<CpuRow>::new(
        "NET_RX/s",
        8,
        |row| compact(row.net_rx_per_second),
        |row| row.net_rx_per_second.into(),
    ),
    Column::<CpuRow>::new(
        "RPS/s",
        6,
        |row| compact(row.received_rps_per_second),
        |row| row.received_rps_per_second.into(),
    ),
    Column::<CpuRow>::new(
        "steered/s",
        9,
        |row| compact(row.steered_per_second),
        |row| row.steered_per_second.into(),
    ),
    Column::<CpuRow>::new("user", 6, |row| percent(row.user), |row| row.user.into()),
    Column::<CpuRow>::new("system", 6, |row| percent(row.system), |row| row.system.into()),
    Column::<CpuRow>::new("irq", 6, |row| percent(row.interrupt), |row| row.interrupt.into()),
];

/// Stages of the receive path.
pub const STAGES: &[Column<StageRow>] = &[
    Column::<StageRow>::new("stage", 8, |row| row.stage.to_owned(), |_| Key::Number(None)).left(),
    Column::<StageRow>::new(
        "frames/s",
        8,
        |row| compact(row.frames_per_second),
        |row| row.frames_per_second.into(),
    ),
    Column::<StageRow>::new(
        "drops/s",
        7,
        |row| compact(row.drops_per_second),
        |row| row.drops_per_second.into(),
    )
    .heat(|row| row.heat),
    Column::<StageRow>::new("drops", 7, |row| count(row.drops), |row| row.drops.into()),
    Column::<StageRow>::new("counted from", 10, |row| row.told.clone(), |row| Key::Text(row.told.clone()))
        .flexible(),
];

/// Traffic classes.
pub const CLASSES: &[Column<ClassRow>] = &[
    Column::<ClassRow>::new("class", 6, |row| row.class.name().to_owned(), |_| Key::Number(None)).left(),
    Column::<ClassRow>::new("share", 7, |row| share(row.share), |row| row.share.into()),
    Column::<ClassRow>::bar(12, |row| row.share),
    Column::<ClassRow>::new(
        "~frames/s",
        9,
        |row| compact(row.estimated_frames_per_second),
        |row| row.estimated_frames_per_second.into(),
    ),
    Column::<ClassRow>::new("sampled", 7, |row| count(Some(row.frames)), |row| Some(row.frames).into()),
    Column::<ClassRow>::new("what", 10, |row| row.class.meaning().to_owned(), |_| Key::Number(None))
        .flexible(),
];

/// Stacks of headers.
pub const STACKS: &[Column<StackRow>] = &[
    Column::<StackRow>::new("share", 7, |row| share(row.share), |row| row.share.into()),
    Column::<StackRow>::new("sampled", 7, |row| count(Some(row.frames)), |row| Some(row.frames).into()),
    Column::<StackRow>::new("stack", 10, |row| row.stack.clone(), |row| Key::Text(row.stack.clone()))
        .flexible(),
];

/// CPUs that frames are steered to.
pub const STEERED: &[Column<SteeredCpu>] = &[
    Column::<SteeredCpu>::new("CPU", 4, |row| row.cpu.to_string(), |row| row.cpu.into()),
    Column::<SteeredCpu>::new(
        "frames/s",
        8,
        |row| compact(row.frames_per_second),
        |row| row.frames_per_second.into(),
    ),
    Column::<SteeredCpu>::new("share", 7, |row| share(row.share), |row| row.share.into()),
    Column::<SteeredCpu>::bar(12, |row| row.share),
    Column::<SteeredCpu>::new(
        "drops/s",
        7,
        |row| compact(row.drops_per_second),
        |row| row.drops_per_second.into(),
    )
    .heat(|row| LOST(row.drops_per_second)),
    Column::<SteeredCpu>::new("frames", 7, |row| count(Some(row.frames)), |row| Some(row.frames).into()),
    Column::<SteeredCpu>::new("drops", 6, |row| count(Some(row.drops)), |row| Some(row.drops).into()),
    Column::<SteeredCpu>::new(
        "buckets",
        7,
        |row| number(row.buckets.and_then(|buckets| buckets.try_into().ok())),
        |row| Key::Number(row.buckets.map(|buckets| buckets as f64)),
    ),
];

/// What became of frames.
pub const REASONS: &[Column<ReasonRow>] = &[
    Column::<ReasonRow>::new(
        "frames/s",
        8,
        |row| compact(row.frames_per_second),
        |row| row.frames_per_second.into(),
    ),
    Column::<ReasonRow>::new("frames", 7, |row| count(Some(row.frames)), |row| Some(row.frames).into()),
    Column::<ReasonRow>::new("reason", 10, |row| row.reason.clone(), |row| Key::Text(row.reason.clone()))
        .flexible(),
];
