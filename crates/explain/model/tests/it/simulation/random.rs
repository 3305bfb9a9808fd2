//! What holds of every receive path.

use super::plans::{US, any_plan, digest, mean_us, near, single_server};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rxlane_model::plan::{Arrivals, Cost, Driver, Moderation};
use rxlane_model::{Answer, Lost, Plan, run};
use traffic::Sizes;

/// Plans that are tried.
const PLANS: u64 = 400;

fn plan(seed: u64) -> Plan {
    any_plan(&mut Xoshiro256PlusPlus::seed_from_u64(seed))
}

fn lost(answer: &Answer, place: Lost) -> u64 {
    answer.traffic.iter().map(|traffic| traffic.lost[place as usize]).sum()
}

/// Frames do not come from nowhere, nor go there: neither in all, nor at any stage.
fn conserves_at_every_stage(answer: &Answer) {
    assert!(answer.conserves());
    let offered: u64 = answer.traffic.iter().map(|traffic| traffic.offered).sum();
    let at_rings: u64 = answer.queues.iter().map(|queue| queue.frames).sum();
    assert_eq!(at_rings, offered - lost(answer, Lost::Admit), "what is let in comes to a ring");
    assert_eq!(answer.queues.iter().map(|queue| queue.lost).sum::<u64>(), lost(answer, Lost::Ring));
    assert_eq!(answer.inputs.iter().map(|input| input.lost).sum::<u64>(), lost(answer, Lost::Input));
    let at_sockets: u64 = answer.applications.iter().map(|application| application.lost).sum();
    assert_eq!(at_sockets, lost(answer, Lost::Socket));
    for traffic in &answer.traffic {
        assert_eq!(traffic.latencies.number(), traffic.delivered, "each that arrives has taken a time");
    }
}

#[test]
fn every_frame_is_accounted_for_and_the_same_seed_gives_the_same_answer() {
    let mut delivered = 0;
    let mut lost = [0; 5];
    for seed in 0..PLANS {
        let answer = run(plan(seed));
        conserves_at_every_stage(&answer);
        assert_eq!(digest(&answer), digest(&run(plan(seed))), "plan {seed}");
        for cpu in &answer.cpus {
            let sum = cpu.interrupt + cpu.softirq + cpu.system + cpu.user + cpu.idle;
            assert_eq!(sum, answer.duration, "plan {seed}: {cpu:?}");
        }
        for queue in &answer.queues {
            assert!(queue.lost <= queue.frames && queue.interrupts <= queue.frames + 1, "{queue:?}");
        }
        for traffic in &answer.traffic {
            delivered += traffic.delivered;
            traffic.lost.iter().zip(&mut lost).for_each(|(here, all)| *all += here);
        }
    }
    // The plans reach every place.
    assert!(delivered > 100_000 && lost.iter().all(|lost| *lost > 100), "{delivered} {lost:?}");
}

/// A plan in which CPUs may run ahead: no sender waits, no random costs, and vectors are quiet for a while.
fn plan_to_run_ahead(seed: u64) -> Plan {
    let mut plan = plan(seed);
    plan.costs.exponential = false;
    for source in &mut plan.sources {
        if let Arrivals::Window { frames, back, .. } = source.arrivals {
            source.arrivals = Arrivals::Trains { frames, gap: 10 * back };
        }
    }
    plan.queues.iter_mut().for_each(|queue| queue.moderation = Moderation::Throttle { interval: 50 * US });
    plan
}

/// The same with cheaper frames and deeper queues, in which CPUs go far ahead, with sizes that differ by source.
fn fast_plan(seed: u64) -> Plan {
    let mut plan = plan_to_run_ahead(seed);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(!seed);
    let mut below = |bound: u64| random.next_u64() % bound;
    if below(4) > 0 {
        let (budget, round) = (16 + below(64) as u32, 1 + below(300) as u32);
        plan.driver = Driver::Napi { budget, round, limit: below(2000) * US };
    }
    let by = 1 + below(12);
    let costs = &mut plan.costs;
    for cost in [
        &mut costs.interrupt,
        &mut costs.poll,
        &mut costs.ipi,
        &mut costs.wake,
        &mut costs.switch,
        &mut costs.driver.frame,
        &mut costs.driver.byte,
        &mut costs.hand_over,
        &mut costs.take_over,
        &mut costs.gro,
    ] {
        *cost /= by;
    }
    for source in &mut plan.sources {
        source.stack = Cost { frame: source.stack.frame / by, byte: source.stack.byte / by };
        if below(3) > 0 {
            source.sizes = Sizes::Fixed(64 + below(600) as u16);
        }
    }
    for application in &mut plan.applications {
        for cost in [&mut application.call, &mut application.system.frame, &mut application.user.frame] {
            *cost /= by;
        }
        application.socket *= 1 + below(20) as u32;
        application.batch *= 1 + below(8) as u32;
    }
    plan.inputs.iter_mut().for_each(|input| input.depth *= 1 + below(12) as u32);
    for queue in &mut plan.queues {
        queue.ring *= 1 + below(8) as u32;
        queue.moderation = match below(4) {
            0 => Moderation::Adaptive,
            1 => Moderation::Off,
            _ => Moderation::Throttle { interval: below(120) * US },
        };
    }
    plan
}

#[test]
fn cpus_that_run_ahead_change_nothing() {
    let mut events = (0, 0);
    let kinds: [fn(u64) -> Plan; 3] = [plan, plan_to_run_ahead, fast_plan];
    for (seed, of) in (0..PLANS / 2).flat_map(|seed| kinds.map(|of| (seed, of))) {
        let ahead = run(of(seed));
        let mut plan = of(seed);
        plan.ahead = false;
        let abreast = run(plan);
        assert_eq!(digest(&ahead), digest(&abreast), "plan {seed}");
        events = (events.0 + ahead.events, events.1 + abreast.events);
    }
    // Half of the machines have a driver that forbids it, and queues are short.
    assert!(events.0 < events.1 * 49 / 50, "{events:?}");
}

#[test]
fn another_seed_gives_another_answer_of_the_same_kind() {
    let of = |seed| {
        let mut plan = single_server(2 * US, US, false, 1000, 1000);
        plan.seed = seed;
        run(plan)
    };
    let (one, other) = (of(1), of(2));
    assert_ne!(digest(&one), digest(&other));
    near(mean_us(&one), mean_us(&other), 0.02, "mean");
}
