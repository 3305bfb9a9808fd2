//! Which frames are lost for certain.
//!
//! The queue of a CPU drops what does not fit, and the programs do not see that. Until such frames are counted as lost,
//! their bucket looks as if they were on their way, and cannot move. What is still on its way must not be counted.
//!
//! The queue hands out first what came in first. So, for a CPU, after a *mark* (a reading of all that was sent):
//!
//! 1. Each receiving CPU has since sent more frames than it keeps back before it queues them: [`BULK`] to this CPU, or
//!    [`POLL_FRAMES`] to any, or a poll has long ended ([`POLL`]). What was sent before the mark is now queued, or
//!    dropped.
//! 2. From a later reading on, at least as many frames came out of the queue as it can have held then: its size and the
//!    batch that the thread had taken out without counting it yet, or fewer, where fewer were on their way. What was
//!    sent before the mark has come out, or never will.
//! 3. In a reading after that, of a bucket that stayed on that CPU, what was sent before the mark and has not been
//!    counted since is lost. Frames sent after the mark may have been counted too: then the number found is too low, never
//!    too high.
//!
//! The kernel copies counters while they count, so each step takes a reading that began after the one before ended.
//! While every queue is emptied on its own CPU, that is. Once a target was offline nothing is counted as lost any more, and
//! a bucket of which something was lost keeps its CPU.
//!
//! Where nothing was sent to a CPU and nothing came out for [`STILL`], its queue is taken for empty; that is the only
//! step that trusts a clock. If frames nevertheless come out later, more has arrived than was not lost, and the number
//! is corrected.

use super::{Lost, Reading, ahead};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;
use xdp::Receiver;
use xdp::layout::BUCKETS;

/// Frames for one CPU that a receiving CPU keeps until it queues them together (`CPU_MAP_BULK_SIZE` in
/// `kernel/bpf/cpumap.c`), and one that was counted a moment before.
const BULK: u64 = 8 + 1;

/// Frames that the thread takes out of the queue before it counts them (`CPUMAP_BATCH`), twice.
const BATCH: u64 = 2 * 8;

/// More than a poll of a receive queue can send (`NAPI_POLL_WEIGHT` is 64, and drivers that ask for more are refused
/// beyond it): a new poll began, and at the end of the one before it all was queued (`xdp_do_flush`).
const POLL_FRAMES: u64 = 512;

/// A poll has ended within this.
const POLL: Duration = Duration::from_secs(1);

/// A queue from which nothing comes for this long, and into which nothing goes, is empty.
const STILL: Duration = Duration::from_secs(3);

/// Everything that had been sent at one moment.
#[derive(Debug)]
struct Mark {
    at: Duration,
    sent: Box<[u64; BUCKETS]>,
    ordered: Box<[u32; BUCKETS]>,
    /// CPUs that had received any.
    receivers: Vec<Receiver>,
}

/// How far the proof has come for a mark.
#[derive(Debug)]
enum Step {
    /// Frames may be held back by receiving CPUs.
    Flushing,
    /// They are not; the next reading begins to count what comes out.
    Flushed,
    /// What had come out, and how much more has to.
    Draining { out: u64, needed: u64 },
}

/// The proof for one CPU.
#[derive(Debug)]
struct Proof {
    mark: Rc<Mark>,
    step: Step,
    /// Frames sent to it, frames out of it, and since when both are the same.
    still: (u64, u64, Duration),
    /// The last mark before which nothing is on its way.
    proven: Option<Rc<Mark>>,
    /// Frames that are known to have been lost on the way to it.
    lost: u64,
}

/// The proofs for all CPUs.
#[derive(Debug)]
pub(super) struct Horizons {
    queue_size: u32,
    proofs: BTreeMap<u32, Proof>,
    /// Frames found lost, by the CPU they were sent to.
    dropped: BTreeMap<u32, u64>,
    /// A queue may be emptied by another CPU than its own, so that what a CPU counts says nothing of its own queue.
    is_mixed: bool,
}

impl Horizons {
    pub(super) fn new(queue_size: u32) -> Horizons {
        Horizons { queue_size, proofs: BTreeMap::new(), dropped: BTreeMap::new(), is_mixed: false }
    }

    /// Frames found lost so far, by the CPU they were sent to; of a bucket that is moving, by the one it should have.
    pub(super) fn dropped(&self) -> &BTreeMap<u32, u64> {
        &self.dropped
    }

    /// The counts of lost frames that have to change.
    pub(super) fn observe(&mut self, reading: &Reading) -> Vec<Lost> {
        // With what was proven before this reading began: see step 3.
        let changed: Vec<Lost> = (0..BUCKETS).filter_map(|bucket| self.judge(reading, bucket)).collect();
        self.advance(reading);
        changed
    }

    fn judge(&mut self, reading: &Reading, bucket: usize) -> Option<Lost> {
        let before = reading.buckets[bucket].lost;
        let accounted = reading.counters.arrived[bucket].wrapping_add(before);
        // Arrivals were read before what was sent.
        let surplus = ahead(accounted, reading.counters.sent[bucket]);
        if surplus > 0 {
            // What was lost on the way to each CPU was overrated somewhere.
            self.proofs.values_mut().for_each(|proof| proof.lost = 0);
            return Some(Lost { bucket, lost: before.saturating_sub(surplus), before });
        }
        let (mark, cpu) = self.mark_of(reading, bucket)?;
        let missing = ahead(mark.sent[bucket], accounted);
        if missing == 0 {
            return None;
        }
        if let Some(proof) = cpu.and_then(|cpu| self.proofs.get_mut(&cpu)) {
            proof.lost += missing;
        }
        let at = cpu.unwrap_or(reading.buckets[bucket].cpu);
        *self.dropped.entry(at).or_default() += missing;
        Some(Lost { bucket, lost: before.wrapping_add(missing), before })
    }

    /// The latest mark before which nothing of the bucket is on its way, and the CPU if it is only one.
    fn mark_of(&self, reading: &Reading, bucket: usize) -> Option<(Rc<Mark>, Option<u32>)> {
        let senders = reading.counters.receivers.iter().filter(|receiver| receiver.sent[bucket] > 0);
        let mut cpus: Vec<u32> = senders.map(|receiver| receiver.current[bucket]).collect();
        cpus.sort_unstable();
        cpus.dedup();
        let proven = |cpu: &u32| self.proofs.get(cpu)?.proven.clone();
        let marks: Option<Vec<Rc<Mark>>> = cpus.iter().map(proven).collect();
        let mark = marks?.into_iter().min_by_key(|mark| mark.at)?;
        let only = if let [cpu] = cpus[..] { Some(cpu) } else { None };
        mark.stands(reading, bucket).then_some((mark, only))
    }

    fn advance(&mut self, reading: &Reading) {
        self.is_mixed |= is_mixed(reading);
        if self.is_mixed {
            self.proofs.clear();
            return;
        }
        let mark = Rc::new(Mark::of(reading));
        for target in &reading.counters.targets {
            let (out, sent) = (target.arrivals(), target.sent);
            let proof = self.proofs.entry(target.cpu).or_insert_with(|| Proof {
                mark: mark.clone(),
                step: Step::Flushing,
                still: (sent, out, reading.at()),
                proven: None,
                lost: 0,
            });
            if (proof.still.0, proof.still.1) != (sent, out) {
                proof.still = (sent, out, reading.at());
            }
            let is_still = reading.at().saturating_sub(proof.still.2) >= STILL;
            if is_still || proof.step_on(reading, target.cpu, out, sent, self.queue_size) {
                proof.proven = Some(if is_still { mark.clone() } else { proof.mark.clone() });
                proof.mark = mark.clone();
                proof.step = Step::Flushing;
            }
        }
    }
}

/// When a CPU goes offline, the kernel moves the thread of its queue to another one, where it remains. That one
/// then counts more than was sent to it, sooner or later.
fn is_mixed(reading: &Reading) -> bool {
    let is_offline = |cpu: u32| reading.conditions.get(&cpu).is_some_and(|condition| !condition.online);
    let targets = &reading.counters.targets;
    targets.iter().any(|target| is_offline(target.cpu) || target.arrivals() > target.sent)
}

impl Proof {
    /// True when nothing from before the mark is on its way any more.
    fn step_on(&mut self, reading: &Reading, cpu: u32, out: u64, sent: u64, queue_size: u32) -> bool {
        match self.step {
            Step::Flushing if self.mark.is_flushed(reading, cpu) => self.step = Step::Flushed,
            Step::Flushing => {}
            Step::Flushed => {
                let on_the_way = sent.wrapping_sub(out).saturating_sub(self.lost);
                let held = u64::from(queue_size) + BATCH;
                self.step = Step::Draining { out, needed: on_the_way.min(held) };
            }
            Step::Draining { out: before, needed } => return out.wrapping_sub(before) >= needed,
        }
        false
    }
}

impl Mark {
    fn of(reading: &Reading) -> Mark {
        let has_sent = |receiver: &&Receiver| receiver.sent.iter().any(|frames| *frames > 0);
        Mark {
            at: reading.at(),
            sent: reading.counters.sent.clone(),
            ordered: Box::new(std::array::from_fn(|bucket| reading.buckets[bucket].cpu)),
            receivers: reading.counters.receivers.iter().filter(has_sent).cloned().collect(),
        }
    }

    fn is_flushed(&self, reading: &Reading, cpu: u32) -> bool {
        let waited = reading.at().saturating_sub(self.at) >= POLL;
        waited || self.receivers.iter().all(|before| flushed(before, reading, cpu))
    }

    /// Whether the bucket has stayed where it was at the mark, on every receiving CPU that had sent it.
    fn stands(&self, reading: &Reading, bucket: usize) -> bool {
        self.ordered[bucket] == reading.buckets[bucket].cpu
            && self.receivers.iter().filter(|before| before.sent[bucket] > 0).all(|before| {
                now(before, reading).is_some_and(|now| now.current[bucket] == before.current[bucket])
            })
    }
}

/// The same receiving CPU in a later reading.
fn now<'a>(before: &Receiver, reading: &'a Reading) -> Option<&'a Receiver> {
    reading.counters.receivers.iter().find(|receiver| receiver.cpu == before.cpu)
}

/// Whether a receiving CPU has since sent so much that it keeps back nothing of before.
fn flushed(before: &Receiver, reading: &Reading, cpu: u32) -> bool {
    let Some(now) = now(before, reading) else { return false };
    let since = |bucket: usize| ahead(now.sent[bucket], before.sent[bucket]);
    let all: u64 = (0..BUCKETS).map(since).sum();
    // Where a bucket is sent to another CPU now, it is not known how much of it went to this one.
    let stayed = |bucket: &usize| before.current[*bucket] == cpu && now.current[*bucket] == cpu;
    let to_cpu: u64 = (0..BUCKETS).filter(stayed).map(since).sum();
    to_cpu >= BULK || all >= POLL_FRAMES
}
