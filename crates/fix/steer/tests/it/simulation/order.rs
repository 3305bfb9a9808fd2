//! Buckets are moved all the time, at random, by somebody who has no reason to: no flow may be reordered.

use crate::simulation::machine::{Flow, Machine, Rule, Shape};
use rxlane_steer::rebalance::{Balancer, Limits, Setup};
use std::thread;
use std::time::Duration;
use xdp::layout::BUCKETS;

/// Environment variable: how many seeds to try.
const SEEDS: &str = "RXLANE_SEEDS";

const READ: u32 = 1;
const READ_REST: u32 = 2;
const APPLY: u32 = 3;
const MOVE: u32 = 4;

/// What a run did.
#[derive(Clone, Copy, Debug, Default)]
struct Ran {
    delivered: u64,
    dropped: u64,
    reordered: u64,
    changes: u64,
    /// Frames that were counted as lost.
    lost: u64,
    /// Times that more were counted as lost than were.
    too_many: u64,
}

/// What is tried.
#[derive(Clone, Copy)]
struct Trial {
    seeds: u64,
    rule: Rule,
    hold: u64,
    /// The longest that a CPU is held up between counting and delivering.
    held_up: u64,
    flows: u64,
    /// Whether interrupts go from one receiving CPU to another.
    interrupts: bool,
}

/// A hold of 150 µs, longer than the 122 µs in which eight frames are delivered at most.
const TRIAL: Trial =
    Trial { seeds: 100, rule: Rule::Settled, hold: 150_000, held_up: 80_000, flows: 60, interrupts: false };

/// CPUs that are never held up and deliver eight frames in 42 µs at most, and a hold that is hardly longer: many
/// frames come in while the last of their flow is counted and not delivered.
const TIGHT: Trial =
    Trial { seeds: 150, rule: Rule::Settled, hold: 45_000, held_up: 0, flows: 16, interrupts: false };

fn shape(seed: u64, trial: &Trial) -> Shape {
    Shape {
        receivers: 1 + (seed % 3) as usize,
        targets: 2 + (seed % 4) as usize,
        queue_size: [16, 64, 256][(seed % 7) as usize % 3],
        stays: 300,
        moves: 1_500 + 1_000 * (seed % 3),
        hold: trial.hold,
        held_up: trial.held_up,
        rule: trial.rule,
    }
}

/// Flows in 16 buckets for 12 ms, at a load under which queues are filled and emptied; a bucket is ordered
/// elsewhere every 100 µs, and counters are read every 300 µs.
fn run(seed: u64, trial: &Trial) -> Ran {
    let shape = shape(seed, trial);
    let Trial { flows, hold, .. } = *trial;
    let (receivers, targets) = (shape.receivers as u64, shape.targets as u64);
    // Nine tenths of what the receiving or the working CPUs can do, whichever is less; the seed decides.
    let capacity =
        (targets as f64 * 1e9 / shape.moves as f64).min(receivers as f64 * 1e9 / shape.stays as f64);
    let load = capacity * (0.3 + 0.2 * (seed % 5) as f64);
    let flow = |number: u64| Flow {
        bucket: (number % 16) as usize,
        receiver: ((number / 16) % receivers) as usize,
        rate: load / flows as f64 * if number.is_multiple_of(5) { 2.0 } else { 0.75 },
        train: 1.0 + (number % 4) as f64 * 4.0,
    };
    let setup = Setup {
        weights: Vec::new(),
        queue_size: shape.queue_size as u32,
        hold: Duration::from_nanos(hold),
        may_move: true,
        limits: Limits::DEFAULT,
    };
    let mut balancer = Balancer::new(setup);
    let buckets = std::array::from_fn(|bucket| (bucket as u64 % targets) as u32);
    let mut machine = Machine::new(shape, (0..flows).map(flow).collect(), buckets, seed);
    let end = machine.now + 12_000_000;
    let (mut ran, mut orders) = (Ran::default(), Vec::new());
    machine.call(0, READ);
    machine.call(0, MOVE);
    while let Some(what) = machine.run(end) {
        match what {
            READ => {
                machine.copy_arrivals(0..7);
                machine.call(20_000, READ_REST);
            }
            READ_REST => {
                machine.copy_arrivals(7..BUCKETS);
                machine.call(5_000, APPLY);
                machine.call(300_000, READ);
            }
            APPLY => {
                orders.extend(balancer.observe(&machine.reading()).lost);
                for lost in orders.drain(..) {
                    machine.buckets[lost.bucket].lost = lost.lost;
                    ran.too_many += u64::from(lost.lost > machine.truly_lost(lost.bucket));
                }
            }
            _ => {
                let (bucket, cpu) = (machine.below(16) as usize, machine.below(targets) as u32);
                if !machine.left_behind(bucket).contains(&cpu) {
                    machine.buckets[bucket].cpu = cpu;
                }
                if trial.interrupts && machine.below(20) == 0 {
                    machine.move_interrupt();
                }
                machine.call(100_000, MOVE);
            }
        }
    }
    ran.lost = machine.buckets.iter().map(|bucket| bucket.lost).sum();
    Ran {
        delivered: machine.delivered,
        dropped: machine.dropped,
        reordered: machine.reordered,
        changes: machine.changes,
        ..ran
    }
}

/// All seeds, on as many threads as there are CPUs.
fn run_all(trial: Trial) -> Ran {
    let threads = thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let add = |a: Ran, b: Ran| Ran {
        delivered: a.delivered + b.delivered,
        dropped: a.dropped + b.dropped,
        reordered: a.reordered + b.reordered,
        changes: a.changes + b.changes,
        lost: a.lost + b.lost,
        too_many: a.too_many + b.too_many,
    };
    let part = |first: u64| {
        let seeds = (first..trial.seeds).step_by(threads as usize);
        seeds.map(|seed| run(seed, &trial)).fold(Ran::default(), add)
    };
    thread::scope(|scope| {
        let parts: Vec<_> = (0..threads).map(|first| scope.spawn(move || part(first))).collect();
        parts.into_iter().map(|part| part.join().expect("a part")).fold(Ran::default(), add)
    })
}

#[test]
fn no_flow_is_reordered_whatever_is_moved_and_dropped() {
    let seeds = std::env::var(SEEDS).ok().map_or(TRIAL.seeds, |seeds| seeds.parse().expect("a number"));
    let ran = run_all(Trial { seeds, ..TRIAL });
    eprintln!("{seeds} seeds: {ran:?}");
    assert_eq!((ran.reordered, ran.too_many), (0, 0), "{ran:?}");
    // That it could have been: much was moved, and much dropped and found again.
    assert!(ran.changes > 5 * seeds && ran.dropped > 500 * seeds && ran.lost > ran.dropped / 5, "{ran:?}");
}

/// Every part of the rule is needed. The last trial is what the rule does not cover: each receiving CPU remembers for itself
/// where it sends a bucket, and the one that gets the interrupt remembers something else.
#[test]
fn without_a_part_of_the_rule_flows_are_reordered() {
    let ran = run_all(TIGHT);
    eprintln!("{ran:?}");
    assert!(ran.reordered == 0 && ran.too_many == 0 && ran.changes > 1000, "{ran:?}");
    for (what, trial) in [
        ("a hold since the last sent frame", Trial { rule: Rule::HeldSinceSending, ..TIGHT }),
        ("no hold", Trial { seeds: 80, hold: 0, ..TRIAL }),
        ("moves at once", Trial { seeds: 20, rule: Rule::AtOnce, ..TRIAL }),
        ("interrupts that move", Trial { seeds: 100, interrupts: true, ..TRIAL }),
    ] {
        let ran = run_all(trial);
        eprintln!("{what}: {ran:?}");
        assert!(ran.reordered > 0, "{what}: {ran:?}");
        assert!(ran.too_many == 0 || trial.rule == Rule::AtOnce, "{what}: {ran:?}");
    }
}
