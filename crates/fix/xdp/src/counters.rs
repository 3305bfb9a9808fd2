//! The counters of an attachment at one moment.

use std::io;
use std::mem::offset_of;

use rustix::time::{ClockId, clock_gettime};

use crate::layout::{Arrivals, BUCKETS, CPUS, Counts, HOLDING, Reason};
use crate::load::stride;
use crate::steering::Maps;
use kernel::bpf::Map;
use kernel::cpu;

/// All counters of an attachment, read in one go.
///
/// Nothing stops while they are read. Arrivals are read before what was sent, and a frame is counted as sent before it
/// can arrive, so `arrived <= sent` holds for every bucket and every CPU: the difference is what was on its way, or
/// lost in a full queue, or came while the counters were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters {
    /// Monotonic clock (`CLOCK_MONOTONIC`) before the first was read, nanoseconds.
    pub taken_ns: u64,
    /// Frames by [`Reason`], summed over the receiving CPUs; in the order of [`Reason::ALL`].
    pub reasons: [u64; Reason::ALL.len()],
    /// Frames queued by bucket, summed over the receiving CPUs.
    pub sent: Box<[u64; BUCKETS]>,
    /// Frames that came out of queues by bucket, summed over the working CPUs.
    pub arrived: Box<[u64; BUCKETS]>,
    /// Frames that their own CPU received, by bucket: in neither of the two.
    pub kept: Box<[u64; BUCKETS]>,
    /// One entry for each target CPU of the attachment, and for each other CPU that was ever given a frame.
    pub targets: Vec<Target>,
    /// One entry for each possible CPU of the machine, those that received nothing included.
    pub receivers: Vec<Receiver>,
}

/// A CPU that works on what others send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub cpu: u32,
    pub sent: u64,
    /// Frames that came out of its queue, by bucket.
    pub arrived: Box<[u64; BUCKETS]>,
    /// Frames that came out of its queue and whose bucket could not be found again (a defect, if there is one).
    pub strange: u64,
    /// Frames that it received itself and that stayed there.
    pub kept: u64,
}

impl Target {
    pub fn arrivals(&self) -> u64 {
        self.arrived.iter().copied().fold(self.strange, u64::wrapping_add)
    }

    /// All frames that it works on.
    pub fn frames(&self) -> u64 {
        self.arrivals().wrapping_add(self.kept)
    }
}

/// A CPU as one that receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receiver {
    pub cpu: u32,
    /// Frames by [`Reason`], in the order of [`Reason::ALL`].
    pub reasons: [u64; Reason::ALL.len()],
    /// Frames it queued, by bucket.
    pub sent: Box<[u64; BUCKETS]>,
    /// Frames it kept, by bucket.
    pub kept: Box<[u64; BUCKETS]>,
    /// Where it sends each bucket at this time.
    pub current: Box<[u32; BUCKETS]>,
}

impl Counters {
    pub fn reason(&self, reason: Reason) -> u64 {
        self.reasons.get(reason as usize).copied().unwrap_or_default()
    }

    /// Frames of a bucket that were given to a CPU, by a queue or not; 0 where there is no such bucket.
    pub fn frames(&self, bucket: usize) -> u64 {
        frames(&self.sent, &self.kept, bucket)
    }
}

impl Receiver {
    /// Frames of a bucket that it received; 0 where there is no such bucket.
    pub fn frames(&self, bucket: usize) -> u64 {
        frames(&self.sent, &self.kept, bucket)
    }
}

fn frames(sent: &[u64; BUCKETS], kept: &[u64; BUCKETS], bucket: usize) -> u64 {
    let of = |counts: &[u64; BUCKETS]| counts.get(bucket).copied().unwrap_or_default();
    of(sent).wrapping_add(of(kept))
}

/// Reads all counters. `targets` are the CPUs that get an entry in any case.
pub(crate) fn read(maps: &Maps, targets: &[u32]) -> io::Result<Counters> {
    let now = clock_gettime(ClockId::Monotonic);
    let taken_ns = (now.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(now.tv_nsec as u64);
    let cpus = cpu::possible()?;
    // In this order: see `Counters`.
    let arrivals = only_entry(&maps.arrivals)?;
    let counts = only_entry(&maps.counts)?;
    let receivers: Vec<(Receiver, Vec<u64>)> = cpus
        .iter()
        .zip(counts.chunks_exact(stride(&maps.counts)))
        .map(|(cpu, value)| (receiver(cpu, value), words(value, offset_of!(Counts, sent_to), CPUS)))
        .collect();
    let sent_to = |cpu: u32| {
        let sent =
            receivers.iter().map(|(_, sent_to)| sent_to.get(cpu as usize).copied().unwrap_or_default());
        sent.fold(0, u64::wrapping_add)
    };
    let targets: Vec<Target> = cpus
        .iter()
        .zip(arrivals.chunks_exact(stride(&maps.arrivals)))
        .zip(&receivers)
        .map(|((cpu, value), (receiver, _))| target(cpu, value, sent_to(cpu), receiver))
        .filter(|found| targets.contains(&found.cpu) || found.sent != 0 || found.frames() != 0)
        .collect();
    let receivers: Vec<Receiver> = receivers.into_iter().map(|(receiver, _)| receiver).collect();
    Ok(Counters {
        taken_ns,
        reasons: sum(receivers.iter().map(|receiver| &receiver.reasons)),
        sent: Box::new(sum(receivers.iter().map(|receiver| &*receiver.sent))),
        arrived: Box::new(sum(targets.iter().map(|target| &*target.arrived))),
        kept: Box::new(sum(receivers.iter().map(|receiver| &*receiver.kept))),
        targets,
        receivers,
    })
}

fn only_entry(map: &Map) -> io::Result<Vec<u8>> {
    map.lookup(0)?.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))
}

fn receiver(cpu: u32, value: &[u8]) -> Receiver {
    let current = value.get(offset_of!(Counts, current)..).unwrap_or_default();
    let current =
        current.chunks_exact(4).map(|word| word.try_into().map_or(0, u32::from_ne_bytes) & !HOLDING);
    Receiver {
        cpu,
        reasons: array(words(value, offset_of!(Counts, reasons), Reason::ALL.len())),
        sent: Box::new(array(words(value, offset_of!(Counts, sent), BUCKETS))),
        kept: Box::new(array(words(value, offset_of!(Counts, kept), BUCKETS))),
        current: Box::new(array(current)),
    }
}

/// `receiver` is the same CPU.
fn target(cpu: u32, value: &[u8], sent: u64, receiver: &Receiver) -> Target {
    let arrived = Box::new(array(words(value, offset_of!(Arrivals, arrived), BUCKETS)));
    let strange = words(value, offset_of!(Arrivals, strange), 1).first().copied().unwrap_or_default();
    let kept = receiver.kept.iter().copied().fold(0, u64::wrapping_add);
    Target { cpu, sent, arrived, strange, kept }
}

/// So many words of 64 bits from an offset on; fewer where the value ends.
fn words(value: &[u8], offset: usize, number: usize) -> Vec<u64> {
    let bytes = value.get(offset..).unwrap_or_default();
    bytes.chunks_exact(8).take(number).map(|word| word.try_into().map_or(0, u64::from_ne_bytes)).collect()
}

fn array<T: Copy + Default, const N: usize>(values: impl IntoIterator<Item = T>) -> [T; N] {
    let mut array = [T::default(); N];
    for (place, value) in array.iter_mut().zip(values) {
        *place = value;
    }
    array
}

fn sum<'a, const N: usize>(values: impl Iterator<Item = &'a [u64; N]>) -> [u64; N] {
    values.fold([0; N], |mut sum, values| {
        for (sum, value) in sum.iter_mut().zip(values) {
            *sum = sum.wrapping_add(*value);
        }
        sum
    })
}
