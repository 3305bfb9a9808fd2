//! Skewed mixes become even where that is possible, in bounded time and with few moves, and stay so.

use crate::simulation::machine::{Flow, Machine, Rule, Shape, Time};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rxlane_steer::rebalance::{Balancer, Limits, Orders, Setup, State, divisible};
use rxlane_steer::weights;
use std::time::Duration;
use xdp::layout::BUCKETS;

const READ: u32 = 1;
const APPLY: u32 = 2;

const TARGETS: usize = 4;
const SECOND: Time = 1_000_000_000;

fn shape() -> Shape {
    Shape {
        receivers: 2,
        targets: TARGETS,
        queue_size: 512,
        stays: 1_000,
        moves: 20_000,
        hold: 1_000_000,
        held_up: 100_000,
        rule: Rule::Settled,
    }
}

/// Who sends how much.
struct Mix {
    /// Frames a second of all.
    rate: f64,
    /// Subscribers with one to four flows each, by a Zipf distribution.
    subscribers: usize,
    /// What part one more subscriber has, and in how many flows.
    heavy: (f64, usize),
}

impl Mix {
    fn flows(&self, seed: u64) -> Vec<Flow> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut flow = |rate: f64, train: f64| Flow {
            bucket: random.next_u64() as usize % BUCKETS,
            receiver: random.next_u64() as usize % 2,
            rate,
            train,
        };
        let harmonic: f64 = (1..=self.subscribers).map(|rank| (rank as f64 + 20.0).recip()).sum();
        let light = self.rate * (1.0 - self.heavy.0) / harmonic;
        let mut flows: Vec<Flow> = Vec::new();
        for rank in 1..=self.subscribers {
            let count = 1 + rank % 4;
            let rate = light / (rank as f64 + 20.0) / count as f64;
            (0..count).for_each(|_| flows.push(flow(rate, 4.0)));
        }
        let (part, count) = self.heavy;
        (0..count).for_each(|_| flows.push(flow(self.rate * part / count as f64, 8.0)));
        flows
    }
}

/// A balanced machine.
struct Run {
    machine: Machine,
    balancer: Balancer,
    last: Orders,
    moves: Vec<(Time, usize)>,
}

impl Run {
    fn new(flows: Vec<Flow>, seed: u64) -> Run {
        let shape = shape();
        let cpus: Vec<u32> = (0..TARGETS as u32).collect();
        let setup = Setup {
            weights: weights::even(&cpus),
            queue_size: shape.queue_size as u32,
            hold: Duration::from_nanos(shape.hold),
            may_move: true,
            limits: Limits::DEFAULT,
        };
        let buckets = std::array::from_fn(|bucket| (bucket % TARGETS) as u32);
        let mut machine = Machine::new(shape, flows, buckets, seed);
        machine.call(0, READ);
        let balancer = Balancer::new(setup);
        Run { machine, balancer, last: Orders::default(), moves: Vec::new() }
    }

    /// Runs for so many seconds, and gives the frames that each CPU worked on over their mean.
    fn seconds(&mut self, seconds: u64) -> Vec<f64> {
        let end = self.machine.now + seconds * SECOND;
        let before = self.machine.worked();
        while let Some(what) = self.machine.run(end) {
            if what == READ {
                self.machine.copy_arrivals(0..BUCKETS);
                self.machine.call(30_000, APPLY);
                continue;
            }
            self.last = self.balancer.observe(&self.machine.reading());
            for lost in &self.last.lost {
                assert!(lost.lost <= self.machine.truly_lost(lost.bucket), "{lost:?}");
                self.machine.buckets[lost.bucket].lost = lost.lost;
            }
            for moved in &self.last.moves {
                assert!(!self.machine.left_behind(moved.bucket).contains(&moved.to), "{moved:?}");
                self.moves.push((self.machine.now, moved.bucket));
                self.machine.buckets[moved.bucket].cpu = moved.to;
            }
            let next = self.last.next.as_nanos() as Time;
            self.machine.call(next.saturating_sub(self.machine.now), READ);
        }
        let worked: Vec<u64> =
            self.machine.worked().iter().zip(before).map(|(now, before)| now - before).collect();
        let mean = worked.iter().sum::<u64>() as f64 / TARGETS as f64;
        worked.iter().map(|worked| *worked as f64 / mean).collect()
    }

    /// What no division of the buckets could better, from the rates of the flows.
    fn least(&self) -> f64 {
        let mut rates = [0.0; BUCKETS];
        self.machine.flows.iter().for_each(|flow| rates[flow.bucket] += flow.rate);
        let burden = |cpu| rxlane_steer::rebalance::Burden { cpu, extra: 0.0 };
        let burdens: Vec<_> = (0..TARGETS as u32).map(burden).collect();
        divisible(&burdens, &rates).expect("some load")
    }
}

fn most(loads: &[f64]) -> f64 {
    loads.iter().copied().fold(0.0, f64::max)
}

#[test]
fn a_heavy_subscriber_among_thousands_is_spread_and_stays_so() {
    for seed in 0..2 {
        // Two fifths of all frames in ten flows, whose buckets all have the same CPU at first.
        let mix = Mix { rate: 40_000.0, subscribers: 1500, heavy: (0.4, 10) };
        let mut flows = mix.flows(seed);
        let heavy = flows.iter_mut().rev().take(10);
        heavy.for_each(|flow| flow.bucket = flow.bucket / TARGETS * TARGETS + seed as usize);
        let mut run = Run::new(flows, seed);
        let before = most(&run.seconds(3));
        run.seconds(20);
        let moves = run.moves.len();
        let after = most(&run.seconds(15));
        let (least, steady) = (run.least(), run.moves.len() - moves);
        eprintln!(
            "seed {seed}: {before:.2} -> {after:.2} ({least:.2} possible), {moves} moves, then {steady}"
        );
        assert!(before > 1.8 && least < 1.1, "seed {seed}: {before} and {least} is no test");
        assert!(after < 1.3, "seed {seed}: {after}");
        assert!(moves <= 64 && steady <= 4, "seed {seed}: {moves} moves, then {steady}");
        assert_eq!(run.machine.reordered, 0, "seed {seed}");
        let rested = run.moves.iter().enumerate().all(|(index, (at, bucket))| {
            let mut later = run.moves[index + 1..].iter();
            later.all(|(other, moved)| moved != bucket || other - at >= 30 * SECOND)
        });
        assert!(rested, "seed {seed}: a bucket moved twice in 30 s: {:?}", run.moves);
    }
}

#[test]
fn where_one_flow_is_too_much_light_buckets_leave_it_and_the_flow_is_named() {
    for seed in 0..2 {
        let mix = Mix { rate: 40_000.0, subscribers: 1500, heavy: (0.45, 1) };
        let flows = mix.flows(seed);
        let heavy = flows.last().expect("the heavy flow").bucket;
        let mut run = Run::new(flows, seed);
        let before = most(&run.seconds(3));
        run.seconds(30);
        let loads = run.seconds(5);
        let (after, least, state) = (most(&loads), run.least(), run.last.state);
        eprintln!(
            "seed {seed}: {before:.2} -> {after:.2} ({least:.2} possible), {} moves, {state:?}",
            run.moves.len()
        );
        let State::OneBucket { bucket, share, least: said, .. } = state else {
            panic!("seed {seed}: {state:?}")
        };
        assert_eq!(bucket, heavy);
        assert!((0.4..0.5).contains(&share) && said > 1.6, "seed {seed}: {state:?}");
        assert!(after < before && after < least * 1.1, "seed {seed}: {after} of {least}");
        assert!(run.moves.iter().all(|(_, bucket)| *bucket != heavy), "the heavy bucket stays");
        assert_eq!(run.machine.reordered, 0, "seed {seed}");
    }
}

#[test]
fn a_queue_that_overflows_loses_its_buckets_and_the_lost_frames_are_found() {
    // CPU 1 takes twice as long for a frame: 25,000 a second, and would get a third of 80,000.
    let mix = Mix { rate: 80_000.0, subscribers: 1500, heavy: (0.0, 0) };
    let mut flows = mix.flows(3);
    // Most of it in buckets of CPU 1.
    flows.iter_mut().step_by(5).for_each(|flow| flow.bucket = flow.bucket / TARGETS * TARGETS + 1);
    let mut run = Run::new(flows, 3);
    run.machine.slow_down(1, 2);
    let before = run.seconds(3);
    let dropped = run.machine.dropped;
    run.seconds(30);
    let later = run.machine.dropped;
    let after = run.seconds(5);
    eprintln!(
        "{before:.2?} -> {after:.2?}, dropped {dropped}, {later}, {}, {} moves",
        run.machine.dropped,
        run.moves.len()
    );
    assert!(dropped > 1000, "{dropped}");
    assert_eq!(run.machine.dropped, later, "nothing is dropped any more");
    assert!(most(&after) < 1.3, "{after:?}");
    assert_eq!(run.machine.reordered, 0);
}
