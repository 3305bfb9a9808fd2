//! What the queues of CPUs dropped, as far as it is certain: the programs do not see that, and what is on its way looks alike.

use std::collections::BTreeMap;
use std::time::Duration;
use xdp::layout::Bucket;
use xdp::{Counters, Receiver, Target};

/// Frames that the thread of a CPU has taken out of its queue and not counted yet (`CPUMAP_BATCH` in
/// `kernel/bpf/cpumap.c`), twice.
const BATCH: u64 = 2 * 8;

/// Frames for a CPU that a receiving CPU keeps back until it queues them together (`CPU_MAP_BULK_SIZE`), and one that it
/// has counted a moment before.
const BULK: u64 = 8 + 1;

/// A CPU on which other work runs may leave its queue alone for so long. What was sent before that and has not arrived will
/// not arrive any more.
const STALL: Duration = Duration::from_millis(900);

#[derive(Clone, Copy, Debug)]
pub(super) struct Queued {
    cpu: u32,
    /// Frames that must have arrived by now.
    due: u64,
    sent: u64,
    /// Frames that came out of a queue there.
    arrived: u64,
}

/// Frames that have not arrived, by the CPU that they were sent to.
///
/// Where a CPU goes offline, the kernel moves the thread that empties its queue to another, and leaves it there. What came
/// out on a CPU beyond what was sent to it is therefore missing from others only in appearance.
fn missing(queued: &[Queued]) -> BTreeMap<u32, u64> {
    let mut missing: BTreeMap<u32, u64> =
        queued.iter().map(|it| (it.cpu, it.due.saturating_sub(it.arrived))).collect();
    let mut elsewhere: u64 =
        queued.iter().map(|it| it.arrived.saturating_sub(it.sent)).fold(0, u64::saturating_add);
    while let Some(most) = missing.values_mut().max().filter(|most| **most > 0 && elsewhere > 0) {
        let there = elsewhere.min(*most);
        *most -= there;
        elsewhere -= there;
    }
    missing
}

/// What was sent by one reading, and what of it had arrived by the next.
pub(super) fn queued(due: &Counters, now: &Counters) -> Vec<Queued> {
    let due = |cpu: u32| due.targets.iter().find(|then| then.cpu == cpu).map_or(0, |then| then.sent);
    let of = |target: &Target| {
        let Target { cpu, sent, .. } = *target;
        Queued { cpu, due: due(cpu), sent, arrived: target.arrivals() }
    };
    now.targets.iter().map(of).collect()
}

/// The fewest frames that had not arrived at a moment, by CPU. A reading reads arrivals first, so what it read as sent is
/// compared with the next one's arrivals: else frames that came meanwhile would seem to be missing.
pub(super) fn fewest_missing(readings: &[Counters]) -> BTreeMap<u32, u64> {
    let mut fewest: BTreeMap<u32, u64> = BTreeMap::new();
    for pair in readings.windows(2) {
        if let [due, now] = pair {
            for (cpu, missing) in missing(&queued(due, now)) {
                fewest.entry(cpu).and_modify(|fewest| *fewest = missing.min(*fewest)).or_insert(missing);
            }
        }
    }
    fewest
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Drops {
    pub(super) total: u64,
    /// Of these, between two moments.
    pub(super) grown: u64,
}

impl Drops {
    /// From what was missing at two moments, what of the first one's frames has still not arrived by the second, and how
    /// many frames can be on their way at once.
    fn of([before, now]: [u64; 2], settled: u64, on_the_way: u64) -> Drops {
        let certain = |missing: u64| missing.saturating_sub(on_the_way);
        Drops {
            total: settled.max(certain(before)).max(certain(now)),
            grown: certain(now).saturating_sub(certain(before)),
        }
    }
}

/// Adds what a process that rebalances has found lost beyond that, as far as it is missing. It counts by bucket: the CPU
/// is the one that the bucket has now, unless nothing is missing there.
fn add_proven(drops: &mut BTreeMap<u32, Drops>, missing: &BTreeMap<u32, u64>, buckets: &[Bucket]) {
    let all = buckets.iter().map(|bucket| bucket.lost).fold(0, u64::saturating_add);
    let known = drops.values().map(|drops| drops.total).fold(0, u64::saturating_add);
    let mut left = all.saturating_sub(known);
    for is_own in [true, false] {
        for (cpu, drops) in drops.iter_mut() {
            let own = buckets.iter().filter(|bucket| bucket.cpu == *cpu).map(|bucket| bucket.lost);
            let most = if is_own { own.fold(0, u64::saturating_add) } else { u64::MAX };
            let possible =
                missing.get(cpu).copied().unwrap_or_default().min(most).saturating_sub(drops.total);
            let more = possible.min(left);
            drops.total += more;
            left -= more;
        }
    }
}

/// What was dropped at the queue to each CPU until the second of two readings, from what was missing around both. `apart`
/// is the time between them.
pub(super) fn drops(
    [first, second]: [&Counters; 2],
    apart: Duration,
    queues: &[(u32, u32)],
    buckets: &[Bucket],
    [before, now]: [&BTreeMap<u32, u64>; 2],
) -> BTreeMap<u32, Drops> {
    let sends = |receiver: &&Receiver| receiver.sent.iter().any(|sent| *sent > 0);
    let senders = second.receivers.iter().filter(sends).count() as u64;
    let settled = if apart >= STALL { missing(&queued(first, second)) } else { BTreeMap::new() };
    let of = |missing: &BTreeMap<u32, u64>, cpu: u32| missing.get(&cpu).copied().unwrap_or_default();
    let drops = |(&cpu, &now): (&u32, &u64)| {
        let queue = queues.iter().find(|(target, _)| *target == cpu).map_or(0, |(_, size)| *size);
        let on_the_way = u64::from(queue) + BATCH + BULK * senders;
        (cpu, Drops::of([of(before, cpu), now], of(&settled, cpu), on_the_way))
    };
    let mut drops = now.iter().map(drops).collect();
    add_proven(&mut drops, now, buckets);
    drops
}

/// CPUs whose queue is emptied by another.
pub(super) fn displaced(queued: &[Queued]) -> Vec<u32> {
    let missing = missing(queued);
    let is_displaced = |it: &&Queued| {
        missing.get(&it.cpu).is_some_and(|missing| it.due.saturating_sub(it.arrived) > *missing)
    };
    queued.iter().filter(is_displaced).map(|it| it.cpu).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_cpu_delivered_is_not_missing() {
        let queued = |cpu, due, sent, arrived| Queued { cpu, due, sent, arrived };
        let of = |queued: &[Queued]| missing(queued).into_values().collect::<Vec<_>>();
        // On their way, or dropped: who was due and did not come.
        assert_eq!(of(&[queued(0, 100, 120, 110), queued(1, 100, 120, 90)]), [0, 10]);
        // CPU 3 is offline, and its thread is on CPU 0.
        assert_eq!(of(&[queued(0, 100, 100, 630), queued(3, 530, 530, 0)]), [0, 0]);
        assert_eq!(
            of(&[queued(0, 100, 100, 600), queued(1, 50, 50, 40), queued(3, 530, 530, 0)]),
            [0, 10, 30]
        );
    }

    #[test]
    fn drops_and_their_rate_agree_whatever_the_interval() {
        // Queues of 16 frames and two CPUs that receive.
        let on_the_way = 16 + BATCH + 2 * BULK;
        assert_eq!(on_the_way, 50);
        let drops = |missing, settled| {
            let Drops { total, grown } = Drops::of(missing, settled, on_the_way);
            (total, grown)
        };
        // 33,047 frames a second are dropped; what arrived in the second hides all of them from `settled`.
        assert_eq!(drops([20, 33_067], 0), (33_017, 33_017));
        // The next call, over five seconds, begins where that one ended.
        assert_eq!(drops([33_067, 198_302], 0), (198_252, 165_235));
        // Some are dropped while the rest arrives: 9,085 until the first reading, 6,374 until the second.
        assert_eq!(drops([9_085, 15_459], 40), (15_409, 6_374));
        // Nothing comes any more: all of them, and none a second.
        assert_eq!(drops([15_459, 15_459], 15_459), (15_459, 0));
        assert_eq!(drops([50, 50], 50), (50, 0));
        // What may all be on its way is not taken for lost, however it changes.
        assert_eq!(drops([0, 50], 0), (0, 0));
        // A queue that was full and has been emptied since.
        assert_eq!(drops([1_050, 1_010], 990), (1_000, 0));
    }

    #[test]
    fn what_was_found_lost_by_bucket_counts_as_far_as_it_is_missing() {
        let bucket = |cpu, lost| Bucket { cpu, spare: 0, lost };
        let of = |totals: [u64; 2], missing: [u64; 2], buckets: &[Bucket]| {
            let by_cpu = |cpu: u32, total: u64| (cpu, Drops { total, grown: 0 });
            let mut drops = BTreeMap::from([by_cpu(0, totals[0]), by_cpu(1, totals[1])]);
            add_proven(&mut drops, &BTreeMap::from([(0, missing[0]), (1, missing[1])]), buckets);
            drops.into_values().map(|drops| drops.total).collect::<Vec<_>>()
        };
        assert_eq!(of([0, 0], [30, 40], &[bucket(1, 12), bucket(1, 8), bucket(0, 0)]), [0, 20]);
        // More is known already.
        assert_eq!(of([0, 300], [30, 340], &[bucket(1, 200)]), [0, 300]);
        // Lost on the way to CPU 1, before the bucket moved to CPU 0.
        assert_eq!(of([0, 0], [5, 40], &[bucket(0, 20)]), [5, 15]);
        assert_eq!(of([0, 0], [0, 7], &[bucket(0, 20)]), [0, 7]);
    }
}
