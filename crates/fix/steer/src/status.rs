//! How an attachment stands: mode, counters and rates, drops, buckets, and the daemon.

mod drops;

use crate::classes;
use crate::down;
use crate::error::Error;
use crate::named::{self, Named};
use crate::record::{Keeper, Kept, Records, instance_of};
use drops::{Drops, displaced, fewest_missing, queued};
use format::quoted;
use serde::Serialize;
use service::Instance;
use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use xdp::layout::{Bucket, Reason};
use xdp::{Attachment, Counters, Family, Interface, Program};

/// The answer of `steer status`, schema `rxlane.steer/1`: fields are added, never renamed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Status {
    pub schema: &'static str,
    pub interface: String,
    /// `native`, `generic`, `off`: rxlane does not steer it; or `unknown` where this process may not know.
    pub mode: &'static str,
    /// Whether all could be read; where not, `remarks` says what not and why.
    pub complete: bool,
    pub remarks: Vec<String>,
    /// When it was attached, seconds since 1970-01-01 UTC.
    pub since: Option<u64>,
    pub classes: Vec<&'static str>,
    /// Whether both directions of a flow go to one CPU.
    pub symmetric: bool,
    /// Whether the program takes frames of several buffers.
    pub frags: Option<bool>,
    /// Frames that the queue to each CPU holds, the shortest where they differ, which then `remarks` says; `None` where it
    /// is off or not to be read.
    pub queue_size: Option<u32>,
    /// Seconds over which rates were taken; 0: none were.
    pub interval: f64,
    pub cpus: Vec<CpuRow>,
    pub receiving: Vec<ReceiverRow>,
    pub reasons: Vec<ReasonRow>,
    pub buckets: Vec<BucketRow>,
    pub moves: u64,
    pub keeper: Option<KeeperRow>,
    pub programs: Vec<ProgramRow>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CpuRow {
    pub cpu: u32,
    /// Frames that came out of its queue.
    pub frames: u64,
    /// Frames that were sent to it and did not arrive, since its queue was full: at least so many. While frames come, those
    /// that may be on their way are not among them; when none come, it is exact.
    pub drops: u64,
    pub per_second: Option<f64>,
    pub drops_per_second: Option<f64>,
    pub buckets: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ReceiverRow {
    pub cpu: u32,
    pub frames: u64,
    /// Of these, frames whose CPU was chosen by their flow: sent on, or its own.
    pub steered: u64,
    /// Frames a second; `None` without an interval.
    pub per_second: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ReasonRow {
    pub reason: &'static str,
    pub frames: u64,
    pub per_second: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BucketRow {
    pub bucket: usize,
    /// The CPU that it should have.
    pub cpu: u32,
    /// Frames that were sent.
    pub frames: u64,
    pub lost: u64,
    /// Whether a CPU that receives still sends it elsewhere.
    pub waiting: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeeperRow {
    pub pid: u32,
    /// Whether it lives. A dead one means: nothing is rebalanced and no metrics are served; steering goes on.
    pub alive: bool,
    /// Whether it is `up --foreground`.
    pub foreground: bool,
    pub rebalance: bool,
    pub metrics: Option<String>,
    pub state: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProgramRow {
    pub name: String,
    pub id: u32,
    /// The hash of its instructions, as `bpftool prog` prints it.
    pub tag: String,
}

impl Status {
    pub const SCHEMA: &str = "rxlane.steer/1";

    fn off(interface: &str) -> Status {
        Status {
            schema: Status::SCHEMA,
            interface: interface.to_owned(),
            mode: "off",
            complete: true,
            ..Status::default()
        }
    }
}

/// Between two readings without an interval: frames that were on their way have arrived by then.
const SETTLED: Duration = Duration::from_millis(50);

/// Readings of a moment, and the time between two of them: frames arrive bursts, and the fewest are on their way between.
const READINGS: usize = 4;
const BETWEEN_READINGS: Duration = Duration::from_millis(2);

/// How the interface stands, with rates over `interval`; without any where that is zero.
///
/// # Errors
///
/// [`Error::Usage`] without such an interface; [`Error::Programs`] where the pins are damaged, or of another version. Want of privilege is
/// no error: then [`Status::complete`] is false.
pub fn status(name: &str, interval: Duration, records: &Records) -> Result<Status, Error> {
    let found = look(name, interval, records);
    // What an `up` or `down` has half done looks like damage, or like something that a killed process left.
    let is_settled = match &found {
        Ok(status) => status.mode != "off" || status.remarks.is_empty(),
        Err(error) => !matches!(error, Error::Programs(xdp::Error::Damaged { .. })),
    };
    if is_settled || !records.wait_for_change() { found } else { look(name, interval, records) }
}

fn look(name: &str, interval: Duration, records: &Records) -> Result<Status, Error> {
    let Named { interface, renamed } = named::named(Family::Steer, name)?;
    let Some(interface) = interface else { return Err(named::nowhere(Family::Steer, name, records)) };
    match Attachment::open(&interface) {
        Ok(Some(attachment)) => attached(&attachment, interval, records),
        Ok(None) => {
            let mut status = Status::off(name);
            if down::is_left(name, records) {
                status.remarks.push(format!(
                    "an `up` works at this moment, or was killed and left something: `rxlane steer down {quoted_name}` takes it back", quoted_name = quoted(name)));
            }
            status.remarks.extend(renamed.iter().map(|other| named::rename_notice(name, other)));
            if let Some(program) = interface.program()? {
                status.remarks.push(format!("another XDP program is attached: {program}"));
            }
            Ok(status)
        }
        Err(xdp::Error::NotPermitted { .. }) => from_outside(&interface),
        Err(other) => Err(other.into()),
    }
}

/// The interfaces of this network namespace that rxlane steers, and pins that steer nothing.
pub fn all(interval: Duration, records: &Records) -> Result<Vec<Status>, Error> {
    let mut found = Vec::new();
    for name in crate::up::interfaces() {
        let Ok(interface) = Interface::find(&name) else { continue };
        let program = interface.program();
        if matches!(&program, Ok(Some(program)) if program.attached_name(Family::Steer).is_some() || program.name.is_none())
        {
            // A `down` may have ended since.
            let status = status(&name, interval, records)?;
            found.extend(Some(status).filter(|status| status.mode != "off" || !status.remarks.is_empty()));
        }
    }
    Ok(found)
}

/// What any process may know.
fn from_outside(interface: &Interface) -> Result<Status, Error> {
    let mut status = Status::off(&interface.name);
    let Some(program) = interface.program()? else { return Ok(status) };
    status.complete = false;
    let Program { mode, id, .. } = &program;
    let (mode, ours) = (mode.map_or("an unknown", xdp::Mode::name), program.attached_name(Family::Steer));
    status.remarks.push(match ours {
        Some(_) => "counters, classes and CPUs require root (sudo rxlane steer status)".to_owned(),
        None => format!(
            "XDP program {id} is attached in {mode} mode; whether it is rxlane's requires root (sudo rxlane steer \
             status)"
        ),
    });
    status.mode = ours.and(program.mode).map_or("unknown", xdp::Mode::name);
    Ok(status)
}

fn attached(attachment: &Attachment, interval: Duration, records: &Records) -> Result<Status, Error> {
    let before = moment(attachment)?;
    thread::sleep(if interval.is_zero() { SETTLED } else { interval });
    let now = moment(attachment)?;
    let ([.., first], [.., second]) = (&before, &now);
    let seconds = second.taken_ns.saturating_sub(first.taken_ns) as f64 / 1e9;
    let between = Between { first, second, seconds: (!interval.is_zero()).then_some(seconds) };
    let interface = attachment.interface();
    let queues = attachment.cpus()?;
    let buckets = attachment.buckets()?;
    let (keeper, unreadable) = keeper(&instance_of(attachment), records);
    let mut status = Status {
        mode: attachment.mode()?.name(),
        since: attachment.since().duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs()),
        classes: classes::of_bits(attachment.settings().classes),
        symmetric: attachment.settings().symmetric != 0,
        frags: Some(attachment.frags()),
        queue_size: queues.iter().map(|(_, size)| *size).min(),
        interval: between.seconds.unwrap_or(0.0),
        cpus: between.targets(&queues, &buckets[..], [&fewest_missing(&before), &fewest_missing(&now)]),
        receiving: between.receivers(),
        reasons: between.reasons(),
        buckets: between.buckets(&buckets[..]),
        moves: keeper.as_ref().map_or(0, |kept| kept.keeper.moves),
        keeper: keeper.map(row),
        programs: attachment.programs().into_iter().map(program).collect(),
        ..Status::off(&interface.name)
    };
    status.remarks.extend(unreadable);
    status.remarks.extend(uneven_queues(&queues));
    remarks(&mut status, attachment, &displaced(&queued(between.first, between.second)));
    Ok(status)
}

fn moment(attachment: &Attachment) -> Result<[Counters; READINGS], Error> {
    let next = || {
        thread::sleep(BETWEEN_READINGS);
        attachment.counts()
    };
    Ok([attachment.counts()?, next()?, next()?, next()?])
}

fn remarks(status: &mut Status, attachment: &Attachment, displaced: &[u32]) {
    if attachment.attached_as() != status.interface {
        status.remarks.push(format!("it was called {} when it was attached", attachment.attached_as()));
    }
    if let Some(keeper) = status.keeper.as_ref().filter(|keeper| !keeper.alive) {
        let what = match (keeper.rebalance, keeper.metrics.is_some()) {
            (true, true) => "nothing is rebalanced and no metrics are served",
            (true, false) => "nothing is rebalanced",
            (false, true) => "no metrics are served",
            (false, false) => "nothing takes steering away when the service stops",
        };
        let name = attachment.attached_as();
        status.remarks.push(format!(
            "process {} its daemon, is dead: {what}; steering goes on (`rxlane steer down {quoted_name}`, then `up` again)",
            keeper.pid, quoted_name = quoted(name)));
    }
    if status.frags == Some(false) {
        status.remarks.push(
            "the programs for kernels before 5.19 steer: a bucket keeps the CPU it has (no --rebalance), and frames in several \
             buffers, which large MTUs need, are not for XDP"
                .to_owned(),
        );
    }
    let online = crate::up::cpus("online");
    for row in
        status.cpus.iter().filter(|row| row.buckets > 0 && !online.is_empty() && !online.contains(&row.cpu))
    {
        status.remarks.push(format!(
            "CPU {} is offline: the kernel delivers on another what is steered to it (a process with --rebalance moves its \
             buckets away)",
            row.cpu
        ));
    }
    for cpu in displaced.iter().filter(|cpu| online.contains(cpu)) {
        let name = attachment.attached_as();
        status.remarks.push(format!(
            "CPU {cpu} was offline since `up`, and the kernel still delivers on another what is steered to it: \
             `rxlane steer down {quoted_name}` and `up` bind its queue to it again", quoted_name = quoted(name)));
    }
}

/// `up` makes all queues alike, so others are somebody else's work.
fn uneven_queues(queues: &[(u32, u32)]) -> Option<String> {
    let mut by_size: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for &(cpu, size) in queues {
        by_size.entry(size).or_default().push(cpu);
    }
    if by_size.len() < 2 {
        return None;
    }
    let one = |(size, cpus): (&u32, &Vec<u32>)| {
        let plural = if cpus.len() == 1 { "" } else { "s" };
        format!("{size} frames for CPU{plural} {}", crate::facts::list(cpus))
    };
    let sizes: Vec<String> = by_size.iter().map(one).collect();
    Some(format!("somebody changed the queues since `up`, which makes all alike: {}", sizes.join(", ")))
}

fn keeper(instance: &Instance, records: &Records) -> (Option<Kept>, Option<String>) {
    match records.kept(instance) {
        Ok(kept) => (kept, None),
        Err(error) if error.is_denied() => (None, Some("whether it has a daemon requires root".to_owned())),
        Err(other) => (None, Some(other.to_string())),
    }
}

fn row(Kept { keeper, alive }: Kept) -> KeeperRow {
    let Keeper { pid, foreground, rebalance, metrics, state, .. } = keeper;
    KeeperRow { pid, alive, foreground, rebalance, metrics, state }
}

fn program(loaded: &xdp::Loaded) -> ProgramRow {
    let tag = loaded.tag.iter().map(|byte| format!("{byte:02x}")).collect();
    ProgramRow { name: loaded.name.clone(), id: loaded.id, tag }
}

struct Between<'a> {
    first: &'a Counters,
    second: &'a Counters,
    /// Between them; `None`: rates are not requested.
    seconds: Option<f64>,
}

impl Between<'_> {
    fn rate(&self, first: u64, second: u64) -> Option<f64> {
        self.seconds
            .filter(|seconds| *seconds > 0.0)
            .map(|seconds| second.wrapping_sub(first) as f64 / seconds)
    }

    fn targets(
        &self,
        queues: &[(u32, u32)],
        buckets: &[Bucket],
        missing: [&BTreeMap<u32, u64>; 2],
    ) -> Vec<CpuRow> {
        let by_cpu = |counters: &'_ Counters| -> BTreeMap<u32, (u64, u64)> {
            counters.targets.iter().map(|target| (target.cpu, (target.sent, target.frames()))).collect()
        };
        let (first, second) = (by_cpu(self.first), by_cpu(self.second));
        let apart = Duration::from_secs_f64(self.seconds.unwrap_or(0.0));
        let drops = drops::drops([self.first, self.second], apart, queues, buckets, missing);
        let mut rows: BTreeMap<u32, CpuRow> = BTreeMap::new();
        for cpu in queues.iter().map(|(cpu, _)| *cpu).chain(second.keys().copied()) {
            let (_, frames_before) = first.get(&cpu).copied().unwrap_or_default();
            let (sent, frames) = second.get(&cpu).copied().unwrap_or_default();
            let is_target = queues.iter().any(|(target, _)| *target == cpu);
            if !is_target && sent == 0 && frames == 0 {
                continue;
            }
            let Drops { total, grown } = drops.get(&cpu).copied().unwrap_or_default();
            rows.insert(
                cpu,
                CpuRow {
                    cpu,
                    frames,
                    drops: total,
                    per_second: self.rate(frames_before, frames),
                    drops_per_second: self.rate(0, grown),
                    buckets: buckets.iter().filter(|bucket| bucket.cpu == cpu).count(),
                },
            );
        }
        rows.into_values().collect()
    }

    fn receivers(&self) -> Vec<ReceiverRow> {
        let rows = self.second.receivers.iter().filter_map(|receiver| {
            let sum = |reasons: &[u64]| reasons.iter().copied().fold(0, u64::wrapping_add);
            let frames = sum(&receiver.reasons);
            let before = self.first.receivers.iter().find(|before| before.cpu == receiver.cpu);
            (frames > 0).then(|| ReceiverRow {
                cpu: receiver.cpu,
                frames,
                steered: receiver.reasons.get(Reason::Steered as usize).copied().unwrap_or_default(),
                per_second: self.rate(before.map_or(0, |before| sum(&before.reasons)), frames),
            })
        });
        rows.collect()
    }

    fn reasons(&self) -> Vec<ReasonRow> {
        let row = |reason: Reason| ReasonRow {
            reason: reason.name(),
            frames: self.second.reason(reason),
            per_second: self.rate(self.first.reason(reason), self.second.reason(reason)),
        };
        Reason::ALL.into_iter().map(row).collect()
    }

    fn buckets(&self, buckets: &[Bucket]) -> Vec<BucketRow> {
        let row = |(number, bucket): (usize, &Bucket)| BucketRow {
            bucket: number,
            cpu: bucket.cpu,
            frames: self.second.frames(number),
            lost: bucket.lost,
            waiting: self.second.receivers.iter().any(|receiver| {
                receiver.frames(number) > 0
                    && receiver.current.get(number).is_some_and(|cpu| *cpu != bucket.cpu)
            }),
        };
        buckets.iter().enumerate().map(row).collect()
    }
}

/// How long ago, for a sentence: `5 s`, `3 min`, `2 h`, `4 d`.
pub fn age(since: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    match now.saturating_sub(since) {
        seconds @ 0..=119 => format!("{seconds} s"),
        seconds @ 120..=7199 => format!("{} min", seconds / 60),
        seconds @ 7200..=172_799 => format!("{} h", seconds / 3600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_that_somebody_changed_are_reported_with_their_cpus() {
        assert_eq!(uneven_queues(&[]), None);
        assert_eq!(uneven_queues(&[(0, 512), (1, 512)]), None);
        let text = uneven_queues(&[(0, 2048), (1, 512), (2, 2048), (3, 2048)]).expect("they differ");
        assert!(text.ends_with(": 512 frames for CPU 1, 2048 frames for CPUs 0,2-3"), "{text}");
    }
}
