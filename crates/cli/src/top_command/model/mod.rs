//! What is displayed: two samples of a machine, a sample of its traffic and what steering counts become rows.
//!
//! Pure: the same material gives the same rows. A number that nobody reported is `None`, here and in the JSON, and never
//! zero. The names of the fields are those of schema `rxlane.top/1`.

mod remarks;
mod rows;
mod stages;

pub use remarks::{Heat, Remark, is_known};
pub use rows::{CpuRow, QueueRow, VectorRow, sum};
pub use stages::{IpCounts, StageRow};

use super::fastpath::FastpathRows;
use super::steering::{Readings, SteeringRows};
use super::traffic::{Class, Sampling, Tally};
use host::{Interface, Kind, Snapshot};
use rows::per_second;
use serde::Serialize;
use stages::largest;

/// Stacks that are displayed.
const STACKS: usize = 16;

/// What there is to show from: a machine sampled twice.
#[derive(Clone, Debug)]
pub struct Material {
    pub interface: String,
    pub snapshot: Snapshot,
    pub ip: [Option<IpCounts>; 2],
    pub fastpath: Option<FastpathRows>,
    pub steering: Readings,
    /// Interfaces on top of this one that are not looked at, since there are too many.
    pub left_out: usize,
}

#[derive(Clone, Debug, Serialize)]
pub struct Model {
    /// Always `rxlane.top/1`.
    pub schema: &'static str,
    pub interface: String,
    /// The device on which its frames arrive: what the queues and vectors are of.
    pub device: String,
    pub driver: Option<String>,
    /// Mbit/s.
    pub speed: Option<u32>,
    /// Whether the device is up and has carrier.
    pub up: Option<bool>,
    /// Of the interface, bytes.
    pub mtu: Option<u32>,
    /// How an XDP program is attached to the device.
    pub xdp: Option<&'static str>,
    /// Between the two samples.
    pub seconds: Option<f64>,
    pub totals: Totals,
    /// What is critical or worth a look, the worst first.
    pub remarks: Vec<Remark>,
    pub queues: Vec<QueueRow>,
    pub vectors: Vec<VectorRow>,
    pub cpus: Vec<CpuRow>,
    pub stages: Vec<StageRow>,
    pub traffic: TrafficRows,
    pub steering: SteeringRows,
    /// `None`: the device is no port of a fast path.
    pub fastpath: Option<FastpathRows>,
    /// What is not known, and what it would take.
    pub notes: Vec<String>,
}

/// Sums of the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Totals {
    pub frames_per_second: Option<f64>,
    pub bytes_per_second: Option<f64>,
    /// Frames lost at the ring, refused as too long, and lost on the way to the CPU that they were steered to.
    pub drops_per_second: Option<f64>,
    pub interrupts_per_second: Option<f64>,
}

/// Kinds of traffic.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TrafficRows {
    /// `None` where there is no sample.
    pub sampled_frames: Option<u64>,
    pub sampled_seconds: Option<f64>,
    /// Frames that are several TCP segments merged by GRO, over all.
    pub merged_share: Option<f64>,
    pub classes: Vec<ClassRow>,
    /// The most frequent first.
    pub stacks: Vec<StackRow>,
}

/// A class of traffic in a sample.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassRow {
    pub class: Class,
    pub frames: u64,
    pub share: Option<f64>,
    /// That share of the device's frames.
    pub estimated_frames_per_second: Option<f64>,
}

/// A stack of headers in a sample: `eth/vlan/ipv4/tcp`; `(more)` is all that are not counted one by one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StackRow {
    pub stack: String,
    pub frames: u64,
    pub share: Option<f64>,
}

impl Model {
    pub fn new(material: &Material, sampling: &Sampling) -> Model {
        let snapshot = &material.snapshot;
        let device = device(snapshot, &material.interface);
        let own = snapshot.interface(device);
        let requested = snapshot.interface(&material.interface).or(own);
        let interval = snapshot.interval;
        let vectors = rows::vectors(snapshot, device);
        let queues = rows::queues(snapshot, device, &vectors);
        let steering = material.steering.rows();
        let cpus = rows::cpus(snapshot, &vectors, &material.steering);
        let totals = Totals {
            frames_per_second: own.and_then(|own| per_second(own.totals.packets.as_ref(), interval)),
            bytes_per_second: own.and_then(|own| per_second(own.totals.bytes.as_ref(), interval)),
            drops_per_second: own.and_then(|own| {
                let of_device = [stages::lost(own, interval), largest(stages::too_long(own, interval))];
                sum(of_device.into_iter().chain([steering.drops_per_second]).filter(Option::is_some))
            }),
            interrupts_per_second: sum(vectors.iter().map(|row| row.interrupts_per_second)),
        };
        let traffic = TrafficRows::new(sampling, totals.frames_per_second);
        let stages = stages::rows(material, device, &totals, &traffic);
        let mut model = Model {
            schema: "rxlane.top/1",
            interface: material.interface.clone(),
            device: device.to_owned(),
            driver: own.and_then(|own| own.driver.as_ref()).map(|driver| driver.value.clone()),
            speed: own.and_then(|own| own.link.speed.as_ref()).map(|speed| *speed.get()),
            up: own.and_then(is_up),
            mtu: requested.and_then(|requested| requested.mtu.as_ref()).map(|mtu| *mtu.get()),
            xdp: own.and_then(|own| own.xdp.as_ref()).map(|xdp| stages::xdp_word(*xdp.get())),
            seconds: interval.map(|interval| interval.as_secs_f64()),
            totals,
            remarks: Vec::new(),
            queues,
            vectors,
            cpus,
            stages,
            traffic,
            steering,
            fastpath: material.fastpath.clone(),
            notes: Vec::new(),
        };
        model.remarks = remarks::remarks(&model);
        model.notes = notes(&model, material, sampling);
        model
    }
}

/// The device that an interface's frames arrive on. Of a PPP interface the kernel does not report which session is its
/// own: it is that below all sessions, where they have one.
pub fn device<'s>(snapshot: &'s Snapshot, interface: &'s str) -> &'s str {
    let own = snapshot.interface(interface);
    let is_ppp = own.is_some_and(|own| {
        own.parent.is_none() && matches!(own.kind.as_ref().map(|kind| &kind.value), Some(Kind::Ppp))
    });
    if !is_ppp {
        return snapshot.physical(interface);
    }
    let mut below = snapshot.sessions.iter().map(|session| snapshot.physical(&session.interface));
    match below.next() {
        Some(first) if below.all(|other| other == first) => first,
        _ => interface,
    }
}

fn is_up(own: &Interface) -> Option<bool> {
    let carrier = own.link.up.as_ref().map(|up| *up.get());
    let admin = own.up.as_ref().map(|up| *up.get());
    match (admin, carrier) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (None, None) => None,
        _ => Some(true),
    }
}

impl TrafficRows {
    fn new(sampling: &Sampling, frames_per_second: Option<f64>) -> TrafficRows {
        let Sampling::Taken(tally) = sampling else { return TrafficRows::default() };
        let of_all = |frames: u64| (tally.frames > 0).then(|| frames as f64 / tally.frames as f64);
        let class = |class: Class| {
            let share = tally.share(class);
            ClassRow {
                class,
                frames: tally.classes.get(&class).copied().unwrap_or(0),
                share,
                estimated_frames_per_second: share.zip(frames_per_second).map(|(share, rate)| share * rate),
            }
        };
        TrafficRows {
            sampled_frames: Some(tally.frames),
            sampled_seconds: Some(tally.looked.as_secs_f64()),
            merged_share: of_all(tally.merged),
            classes: Class::ALL.map(class).to_vec(),
            stacks: stacks(tally, of_all),
        }
    }
}

fn stacks(tally: &Tally, of_all: impl Fn(u64) -> Option<f64>) -> Vec<StackRow> {
    let mut stacks: Vec<_> = tally.stacks.iter().collect();
    stacks.sort_by_key(|&(stack, frames)| (std::cmp::Reverse(*frames), *stack));
    let row = |(stack, &frames): (&wire::Stack, &u64)| {
        let words = stack.to_string();
        let stack = if words.is_empty() { "(more)".to_owned() } else { words };
        StackRow { stack, frames, share: of_all(frames) }
    };
    stacks.into_iter().take(STACKS).map(row).collect()
}

/// What is not known, and what it would take: the most useful first.
fn notes(model: &Model, material: &Material, sampling: &Sampling) -> Vec<String> {
    let mut notes = Vec::new();
    if model.up == Some(false) {
        notes.push(format!("{} is down or has no carrier", model.device));
    }
    if let Sampling::Refused(why) = sampling {
        notes.push(format!("traffic classes: {why}"));
    }
    let of_steering = match &material.steering.latest {
        Ok(status) => status.remarks.clone(),
        Err(why) => vec![why.clone()],
    };
    notes.extend(of_steering.into_iter().map(|text| format!("steering: {text}")));
    let driver = model.driver.as_deref().unwrap_or("the driver");
    if model.queues.iter().all(|row| row.frames_per_second.is_none()) && model.seconds.is_some() {
        notes.push(format!("queues: {driver} counts no frames by queue"));
    }
    if model.vectors.is_empty() {
        notes.push(format!("vectors: no interrupt in /proc/interrupts is {}'s", model.device));
    }
    if material.left_out > 0 {
        notes.push(format!(
            "decap: {} more interfaces stand on this one and are not counted",
            material.left_out
        ));
    }
    for unread in &material.snapshot.unread {
        // A device without statistics is no news: the notes on queues say so.
        if !unread.why.contains("no stats available") && !unread.why.contains("not supported") {
            notes.push(format!("{}: {}", unread.what, unread.why));
        }
    }
    notes
}

#[cfg(test)]
mod tests;
