//! The balancer, reading by reading: what it orders, what it calls things, and which frames it counts as lost.

use rxlane_steer::rebalance::{Balancer, Condition, Limits, Lost, Orders, Reading, Setup, State, Why};
use rxlane_steer::weights::{self, Weight};
use std::collections::BTreeMap;
use std::time::Duration;
use xdp::layout::{BUCKETS, Bucket};
use xdp::{Counters, Receiver, Target};

const QUEUE: u32 = 64;

/// Receiving CPU of everything.
const WIRE: u32 = 100;

/// Counters that a test sets.
struct Bench {
    reading: Reading,
    balancer: Balancer,
}

impl Bench {
    /// CPUs 0 to `cpus` − 1 with even shares, buckets distributed in turn.
    fn new(cpus: u32) -> Bench {
        let all: Vec<u32> = (0..cpus).collect();
        Bench::with(weights::even(&all), |bucket| bucket as u32 % cpus)
    }

    fn with(weights: Vec<Weight>, cpu_of: impl Fn(usize) -> u32) -> Bench {
        let target = |weight: &Weight| Target {
            cpu: weight.cpu,
            sent: 0,
            arrived: Box::new([0; BUCKETS]),
            strange: 0,
            kept: 0,
        };
        let current: Box<[u32; BUCKETS]> = Box::new(std::array::from_fn(&cpu_of));
        let counters = Counters {
            taken_ns: 1,
            reasons: Default::default(),
            sent: Box::new([0; BUCKETS]),
            arrived: Box::new([0; BUCKETS]),
            kept: Box::new([0; BUCKETS]),
            targets: weights.iter().map(target).collect(),
            receivers: vec![Receiver {
                cpu: WIRE,
                reasons: Default::default(),
                sent: Box::new([0; BUCKETS]),
                kept: Box::new([0; BUCKETS]),
                current: current.clone(),
            }],
        };
        let buckets = Box::new(current.map(|cpu| Bucket { cpu, ..Bucket::default() }));
        let hold = Duration::from_millis(4);
        let setup = Setup { weights, queue_size: QUEUE, hold, may_move: true, limits: Limits::DEFAULT };
        let reading = Reading { counters, buckets, conditions: BTreeMap::new() };
        Bench { reading, balancer: Balancer::new(setup) }
    }

    /// Frames that were sent, of which so many arrived; all where they stay on the CPU that receives them.
    fn send(&mut self, bucket: usize, sent: u64, arrived: u64) {
        let counters = &mut self.reading.counters;
        let cpu = counters.receivers[0].current[bucket];
        if cpu == counters.receivers[0].cpu {
            counters.kept[bucket] += sent;
            counters.receivers[0].kept[bucket] += sent;
            counters
                .targets
                .iter_mut()
                .filter(|target| target.cpu == cpu)
                .for_each(|target| target.kept += sent);
            return;
        }
        counters.sent[bucket] += sent;
        counters.receivers[0].sent[bucket] += sent;
        counters.arrived[bucket] += arrived;
        let target = counters.targets.iter_mut().find(|target| target.cpu == cpu).expect("a target");
        target.sent += sent;
        target.arrived[bucket] += arrived;
    }

    fn after(&mut self, time: Duration) -> Orders {
        self.reading.counters.taken_ns += time.as_nanos() as u64;
        self.balancer.observe(&self.reading)
    }

    /// Carries out orders at once, as receiving CPUs do whose buckets pause.
    fn carry_out(&mut self, orders: &Orders) {
        for moved in &orders.moves {
            self.reading.buckets[moved.bucket].cpu = moved.to;
            self.reading.counters.receivers[0].current[moved.bucket] = moved.to;
        }
        for lost in &orders.lost {
            self.reading.buckets[lost.bucket].lost = lost.lost;
        }
    }

    /// So many seconds in each of which the buckets get so many frames. Gives all moves, and the last orders.
    fn seconds(&mut self, count: u32, rate: impl Fn(usize) -> u64) -> (Vec<(usize, u32, Why)>, Orders) {
        let (mut moves, mut last) = (Vec::new(), Orders::default());
        for _ in 0..count {
            (0..BUCKETS).for_each(|bucket| self.send(bucket, rate(bucket), rate(bucket)));
            last = self.after(Duration::from_secs(1));
            moves.extend(last.moves.iter().map(|moved| (moved.bucket, moved.to, moved.why)));
            self.carry_out(&last);
        }
        (moves, last)
    }
}

const TICK: Duration = Duration::from_millis(5);

#[test]
fn shares_are_targets_and_what_follows_them_is_even() {
    let weights =
        vec![Weight { cpu: 0, share: 0.1 }, Weight { cpu: 1, share: 0.45 }, Weight { cpu: 2, share: 0.45 }];
    let cpu_of = |bucket: usize| if bucket.is_multiple_of(10) { 0 } else { 1 + bucket as u32 % 2 };
    let mut bench = Bench::with(weights.clone(), cpu_of);
    let (moves, last) = bench.seconds(20, |_| 50);
    assert_eq!((moves.len(), last.state), (0, State::Even));
    // Equal frames are too much for CPU 0 then.
    let mut bench = Bench::with(weights, |bucket| bucket as u32 % 3);
    let (moves, last) = bench.seconds(30, |_| 50);
    assert!(last.state == State::Even && moves.len() > 20, "{last:?}, {} moves", moves.len());
    let left = bench.reading.buckets.iter().filter(|bucket| bucket.cpu == 0).count();
    assert!((20..=60).contains(&left), "{left}");
}

#[test]
fn a_second_of_imbalance_moves_nothing_and_more_of_it_does() {
    let mut bench = Bench::new(4);
    let heavy = |bucket: usize| if bucket % 4 == 1 { 300 } else { 50 };
    bench.seconds(10, |_| 50);
    let (moves, last) = bench.seconds(1, heavy);
    assert!(moves.is_empty() && last.state == State::Uneven, "{last:?}");
    let (moves, _) = bench.seconds(10, |_| 50);
    assert!(moves.is_empty());
    let (moves, last) = bench.seconds(20, heavy);
    assert!(moves.len() > 10 && last.state == State::Even, "{last:?}");
    let most = Limits::DEFAULT.moves;
    let mut bench = Bench::new(4);
    for _ in 0..20 {
        let (moves, _) = bench.seconds(1, heavy);
        assert!(moves.len() <= most, "{} moves in a second", moves.len());
    }
}

#[test]
fn what_stays_on_the_cpu_that_receives_it_is_load_like_any_other() {
    for heavy in 0..4 {
        let mut bench = Bench::new(4);
        bench.reading.counters.receivers[0].cpu = 0;
        let (moves, last) = bench.seconds(30, |bucket| if bucket as u32 % 4 == heavy { 300 } else { 50 });
        assert!(moves.len() > 10 && last.state == State::Even, "{heavy}: {last:?}");
        let to_it = moves.iter().filter(|(_, to, _)| *to == 0).count();
        assert_eq!(to_it > 3, heavy != 0, "{heavy}: {moves:?}");
        assert!(last.lost.is_empty());
    }
}

#[test]
fn little_traffic_is_left_alone() {
    let mut bench = Bench::new(2);
    let (moves, last) = bench.seconds(20, |bucket| if bucket == 0 { 500 } else { 1 });
    assert_eq!((moves.len(), last.state), (0, State::Quiet));
}

#[test]
fn one_heavy_bucket_is_named_with_its_share() {
    let mut bench = Bench::new(4);
    let (moves, last) = bench.seconds(40, |bucket| if bucket == 10 { 12_750 } else { 50 });
    let State::OneBucket { bucket, cpu, share, least } = last.state else { panic!("{last:?}") };
    assert_eq!((bucket, cpu), (10, 2));
    assert!((share - 0.5).abs() < 0.01 && (least - 2.0).abs() < 0.02, "{share} {least}");
    assert!(
        moves.iter().all(|(bucket, ..)| *bucket != 10) && moves.len() == 63,
        "light ones leave: {}",
        moves.len()
    );
    let said = last.state.to_string();
    assert!(said.contains("bucket 10 has 50 %") && said.contains("2.00 times the mean"), "{said}");
}

#[test]
fn a_few_heavy_buckets_that_cannot_be_divided_are_called_so() {
    let mut bench = Bench::new(2);
    // Three of the same weight on two CPUs.
    let (_, last) = bench.seconds(20, |bucket| if bucket < 3 { 10_000 } else { 0 });
    assert_eq!(last.state, State::Coarse);
}

#[test]
fn other_work_counts_where_it_is_known() {
    let mut bench = Bench::new(4);
    let condition = |busy| Condition { online: true, busy: Some(busy) };
    // CPU 3 does something else in half of its time.
    bench.reading.conditions =
        BTreeMap::from([(0, condition(0.3)), (1, condition(0.3)), (2, condition(0.3)), (3, condition(0.8))]);
    let (moves, _) = bench.seconds(5, |_| 50);
    assert!(
        !moves.is_empty() && moves.iter().all(|(bucket, to, _)| bucket % 4 == 3 && *to != 3),
        "{moves:?}"
    );
}

#[test]
fn buckets_of_a_cpu_that_went_offline_go_elsewhere_at_once() {
    let mut bench = Bench::new(4);
    bench.seconds(3, |_| 50);
    bench.reading.conditions = BTreeMap::from([(2, Condition { online: false, busy: None })]);
    let (moves, _) = bench.seconds(1, |_| 50);
    assert_eq!(moves.len(), BUCKETS / 4);
    for cpu in [0, 1, 3] {
        let gained = moves.iter().filter(|(_, to, why)| *to == cpu && *why == Why::Unavailable).count();
        assert!((20..=23).contains(&gained), "{gained}");
    }
    let (moves, _) = bench.seconds(10, |_| 50);
    assert!(moves.is_empty(), "{moves:?}");
}

#[test]
fn a_bucket_that_waits_is_not_moved_again_and_counts_where_it_is_when_overdue() {
    let mut bench = Bench::new(2);
    let rate = |bucket: usize| if bucket.is_multiple_of(2) { 100 } else { 50 };
    let mut ordered = Vec::new();
    for _ in 0..40 {
        (0..BUCKETS).for_each(|bucket| bench.send(bucket, rate(bucket), rate(bucket)));
        let orders = bench.after(Duration::from_secs(1));
        // Nothing ever pauses: orders stand, and are not carried out.
        for moved in &orders.moves {
            bench.reading.buckets[moved.bucket].cpu = moved.to;
            ordered.push(moved.bucket);
        }
    }
    let mut once = ordered.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), ordered.len(), "{ordered:?}");
    assert!(bench.balancer.overdue().count() >= 16, "{ordered:?}");
}

/// 100 frames of bucket 0 of which ten were dropped, then so many frames of bucket 2 on the same CPU, in readings.
fn after_a_drop(mut follow: impl FnMut(&mut Bench) -> Option<Lost>) -> Option<Lost> {
    let mut bench = Bench::new(2);
    bench.send(0, 100, 90);
    assert!(bench.after(TICK).lost.is_empty());
    follow(&mut bench)
}

fn of_bucket_0(orders: Orders) -> Option<Lost> {
    orders.lost.into_iter().find(|lost| lost.bucket == 0)
}

#[test]
fn frames_are_lost_when_the_queue_has_handed_out_all_that_it_can_have_had() {
    let lost = after_a_drop(|bench| {
        (0..6).find_map(|_| {
            bench.send(2, 100, 100);
            of_bucket_0(bench.after(TICK))
        })
    });
    assert_eq!(lost, Some(Lost { bucket: 0, lost: 10, before: 0 }));
}

#[test]
fn nothing_is_lost_for_certain_once_a_thread_may_work_elsewhere() {
    // CPU 1 was offline for a moment, and CPU 0 has emptied its queue ever since.
    let offline = BTreeMap::from([(1, Condition { online: false, busy: None })]);
    let lost = after_a_drop(|bench| {
        bench.reading.conditions = offline.clone();
        assert_eq!(of_bucket_0(bench.after(TICK)), None);
        bench.reading.conditions.clear();
        (0..20).find_map(|_| {
            bench.send(2, 100, 100);
            of_bucket_0(bench.after(TICK))
        })
    });
    assert_eq!(lost, None);
    // Nobody saw that, but CPU 0 counts more than was sent to it.
    let lost = after_a_drop(|bench| {
        bench.reading.counters.targets[0].arrived[1] += 11;
        (0..20).find_map(|_| {
            bench.send(2, 100, 100);
            of_bucket_0(bench.after(TICK))
        })
    });
    assert_eq!(lost, None);
}

#[test]
fn frames_are_not_lost_while_the_queue_may_hold_them() {
    // Ten are missing, and nine come out behind them, but none of them in time to prove anything.
    let lost = after_a_drop(|bench| {
        bench.send(2, 30, 30);
        assert_eq!(of_bucket_0(bench.after(TICK)), None);
        assert_eq!(of_bucket_0(bench.after(TICK)), None);
        bench.send(2, 9, 9);
        (0..20).find_map(|_| of_bucket_0(bench.after(TICK)))
    });
    assert_eq!(lost, None);
}

#[test]
fn frames_are_not_lost_while_a_receiving_cpu_may_keep_them_back() {
    // Another CPU receives too, sent eight and then stopped: they may be in its hands however much others send.
    let mut bench = Bench::new(2);
    let mut other = bench.reading.counters.receivers[0].clone();
    other.cpu = WIRE + 1;
    other.sent[0] = 8;
    bench.reading.counters.receivers.push(other);
    bench.reading.counters.sent[0] = 8;
    bench.reading.counters.targets[0].sent = 8;
    let mut seen = 0;
    for _ in 0..150 {
        bench.send(2, 1000, 1000);
        seen += bench.after(TICK).lost.len();
    }
    assert_eq!(seen, 0);
    // A poll does not last for a second.
    let mut lost = None;
    for _ in 0..150 {
        bench.send(2, 1000, 1000);
        lost = lost.or(of_bucket_0(bench.after(TICK)));
    }
    assert_eq!(lost, Some(Lost { bucket: 0, lost: 8, before: 0 }));
}

#[test]
fn a_queue_that_is_still_for_three_seconds_is_empty_and_a_wrong_guess_is_corrected() {
    let lost = after_a_drop(|bench| {
        for _ in 0..2 {
            assert_eq!(of_bucket_0(bench.after(Duration::from_secs(1))), None);
        }
        let lost = (0..3).find_map(|_| of_bucket_0(bench.after(Duration::from_secs(1))));
        bench.reading.buckets[0].lost = lost.expect("lost").lost;
        // Three of them come out of the queue after all.
        bench.send(0, 0, 3);
        of_bucket_0(bench.after(TICK))
    });
    assert_eq!(lost, Some(Lost { bucket: 0, lost: 7, before: 10 }));
}

#[test]
fn one_heavy_flow_and_other_work_is_no_even_load() {
    let mut bench = Bench::new(2);
    // CPU 0 has a little of the traffic, and other work that weighs as much as the one flow on CPU 1.
    let busy = |busy| Condition { online: true, busy: Some(busy) };
    bench.reading.conditions = BTreeMap::from([(0, busy(0.5)), (1, busy(0.5))]);
    let (moves, last) = bench.seconds(20, |bucket| if bucket == 7 { 9_000 } else { 8 });
    let State::EvenWithHeavyBucket { bucket, cpu, share } = last.state else { panic!("{last:?}") };
    assert_eq!((bucket, cpu), (7, 1));
    assert!((share - 0.815).abs() < 0.01, "{share}");
    assert!(moves.iter().all(|(bucket, ..)| *bucket != 7), "{moves:?}");
    let said = last.state.to_string();
    assert!(
        said.contains("bucket 7 on CPU 1 has 82 %") && said.contains("other CPUs have as much to do"),
        "{said}"
    );
    // Many flows in its place are even, and no more is said.
    let mut bench = Bench::new(2);
    bench.reading.conditions = BTreeMap::from([(0, busy(0.5)), (1, busy(0.5))]);
    assert_eq!(bench.seconds(20, |_| 50).1.state.to_string(), "the load is even");
}
