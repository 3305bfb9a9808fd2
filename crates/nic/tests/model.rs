//! What queueing theory and common sense say of a receive path, the model says, too.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rxlane_nic::model::plan::{
    Application, Arrivals, Cost, Costs, Driver, FlowPlan, Goal, Gro, Input, Moderation, Plan, Port, Queue,
    Source,
};
use rxlane_nic::model::{Answer, Lost, SECOND, Time, run};
use traffic::{Popularity, Sizes};

const NS: Time = 1000;
const US: Time = 1_000_000;
const NAPI: Driver = Driver::Napi { budget: 64, round: 300, limit: 2000 * US };

/// One queue, one CPU, nothing but the work on frames: a queueing system with one server.
fn single_server(gap: Time, service: Time, exponential: bool, ring: u32, milliseconds: u64) -> Plan {
    Plan {
        seed: 7,
        warm_up: SECOND / 20,
        duration: milliseconds * 1000 * US,
        cpus: 1,
        driver: NAPI,
        gro: None,
        inputs: Vec::new(),
        costs: Costs { driver: Cost { frame: service, octet: 0 }, exponential, ..Costs::default() },
        ports: vec![Port { name: "port".to_owned(), octet: 0, transmit_ring: 1 }],
        queues: vec![Queue { port: 0, cpu: 0, ring, moderation: Moderation::Off }],
        applications: Vec::new(),
        sources: vec![source(Arrivals::Poisson { gap }, 1, Goal::Stack)],
    }
}

fn source(arrivals: Arrivals, queues: u32, goal: Goal) -> Source {
    Source {
        name: "source".to_owned(),
        port: 0,
        arrivals,
        sizes: Sizes::Fixed(64),
        overhead: 0,
        popularity: Popularity::Uniform,
        flows: (0..64).map(|flow| FlowPlan { queue: flow % queues, input: 0 }).collect(),
        longest: 1518,
        stack: Cost::default(),
        coalesces: false,
        payload: 0,
        goal,
    }
}

fn mean_us(answer: &Answer) -> f64 {
    answer.traffic[0].latencies.mean().unwrap() / 1e6
}

fn near(found: f64, expected: f64, part: f64, what: &str) {
    assert!((found / expected - 1.0).abs() < part, "{what}: {found}, expected {expected}");
}

#[test]
fn constant_service_is_an_m_d_1_queue() {
    for (load, milliseconds) in [(0.3, 2000), (0.6, 4000), (0.8, 8000)] {
        let service = 1.0;
        let answer = run(single_server((1e6 / load) as Time, US, false, 1 << 16, milliseconds));
        // Pollaczek-Khinchine.
        let expected = service + load * service / (2.0 * (1.0 - load));
        near(mean_us(&answer), expected, 0.01, &format!("M/D/1 at {load}"));
        near(answer.cpus[0].softirq as f64 / answer.duration as f64, load, 0.01, "load");
    }
}

#[test]
fn exponential_service_is_an_m_m_1_queue() {
    for (load, milliseconds) in [(0.3, 3000), (0.6, 6000), (0.7, 8000)] {
        let answer = run(single_server((1e6 / load) as Time, US, true, 1 << 16, milliseconds));
        let expected = 1.0 / (1.0 - load);
        near(mean_us(&answer), expected, 0.01, &format!("M/M/1 at {load}"));
        // Times in the system are exponentially distributed.
        for share in [0.5, 0.9, 0.99] {
            let found = answer.traffic[0].latencies.percentile(share).unwrap() as f64 / 1e6;
            near(found, -expected * (1.0f64 - share).ln(), 0.03, &format!("percentile {share} at {load}"));
        }
    }
}

#[test]
fn a_short_ring_loses_as_m_m_1_k_does() {
    for (load, ring) in [(0.9f64, 4), (1.5, 8), (0.7, 2)] {
        let answer = run(single_server((1e6 / load) as Time, US, true, ring, 4000));
        // One frame is being served beside those that wait.
        let places = ring as i32 + 1;
        let expected = (1.0 - load) * load.powi(places) / (1.0 - load.powi(places + 1));
        let traffic = &answer.traffic[0];
        near(traffic.lost[Lost::Ring as usize] as f64 / traffic.offered as f64, expected, 0.01, "loss");
        assert!(answer.conserves());
    }
}

/// A machine of random parts.
fn any_plan(random: &mut impl RngCore) -> Plan {
    let mut below = |bound: u64| random.next_u64() % bound;
    let (cpus, queues) = (1 + below(3) as usize, 1 + below(4) as u32);
    let driver = match below(4) {
        0 => Driver::Interrupt,
        1 => Driver::Polling { period: 200 * US, burst: 1 + below(40) as u32, share: 150 * US },
        _ => Driver::Napi {
            budget: 1 + below(64) as u32,
            round: 1 + below(300) as u32,
            limit: below(300) * US,
        },
    };
    let inputs = if driver == Driver::Interrupt || below(2) == 0 { 1 + below(3) } else { 0 };
    let moderation = [
        Moderation::Off,
        Moderation::Throttle { interval: below(100) * US },
        Moderation::Adaptive,
        Moderation::Coalesce {
            after: below(100) * US,
            frames: 1 + below(20) as u32,
            segments: 9,
            segment: 256,
        },
    ];
    let ports: Vec<Port> = (0..2)
        .map(|number| Port { name: format!("port {number}"), octet: 800 + below(8000), transmit_ring: 8 })
        .collect();
    let readers = below(3) as usize;
    let mut sources = Vec::new();
    for number in 0..1 + below(3) {
        let gap = 200 * NS + below(20) * US;
        let arrivals = match below(6) {
            0 => Arrivals::Constant { gap },
            1 => Arrivals::Poisson { gap },
            2 => Arrivals::Bursts { frames: 1 + below(50) as u32, gap: 100 * NS, period: 20 * gap },
            3 => Arrivals::Trains { frames: 1 + below(50) as u32, gap: 20 * gap },
            _ => Arrivals::Window {
                frames: 1 + below(80) as u32,
                back: gap,
                retry: 2000 * US,
                acknowledgment: 40,
            },
        };
        let goal = match below(3) {
            0 => Goal::Stack,
            1 => Goal::Port(1),
            _ if readers > 0 => Goal::Application(below(readers as u64) as usize),
            _ => Goal::Stack,
        };
        let mut source = source(arrivals, queues, goal);
        source.port = number as usize % 2;
        source.flows.iter_mut().for_each(|flow| flow.input = below(inputs.max(1)) as u32);
        source.sizes = Sizes::Imix;
        source.longest = if below(3) == 0 { 1000 } else { 1518 };
        source.coalesces = below(2) == 0;
        source.stack = Cost { frame: below(3000) * NS, octet: below(2) * NS };
        sources.push(source);
    }
    let application = |number: usize, below: &mut dyn FnMut(u64) -> u64| Application {
        name: format!("reader {number}"),
        cpu: (below(2) == 0).then(|| below(cpus as u64) as usize),
        socket: 1 + below(40) as u32,
        batch: 1 + below(8) as u32,
        call: below(3000) * NS,
        system: Cost { frame: below(2000) * NS, octet: 1 },
        user_call: below(2) * 500 * NS,
        user: Cost { frame: below(2) * 500 * NS, octet: 0 },
        next: if number + 1 < readers && below(2) == 0 { Goal::Application(number + 1) } else { Goal::Stack },
    };
    Plan {
        seed: below(1000),
        warm_up: 3000 * US,
        duration: 20_000 * US,
        cpus,
        driver,
        gro: (below(2) == 0).then_some(Gro { frames: 1 + below(20) as u16 }),
        inputs: (0..inputs)
            .map(|_| Input { cpu: below(cpus as u64) as usize, depth: 1 + below(60) as u32 })
            .collect(),
        costs: Costs {
            interrupt: below(5000) * NS,
            poll: below(2000) * NS,
            tick: below(5000) * NS,
            ipi: below(2000) * NS,
            wake: below(2000) * NS,
            switch: below(2000) * NS,
            driver: Cost { frame: below(3000) * NS, octet: below(2) * NS },
            hand_over: below(500) * NS,
            gro: below(300) * NS,
            exponential: below(2) == 0,
        },
        ports,
        queues: (0..queues)
            .map(|number| Queue {
                port: number as usize % 2,
                cpu: number as usize % cpus,
                ring: 1 + below(64) as u32,
                moderation: moderation[below(4) as usize],
            })
            .collect(),
        applications: (0..readers).map(|number| application(number, &mut below)).collect(),
        sources,
    }
}

/// Everything that can be compared.
fn digest(answer: &Answer) -> String {
    let traffic: Vec<_> = answer
        .traffic
        .iter()
        .map(|traffic| (traffic.offered, traffic.delivered, traffic.lost, traffic.latencies.mean()))
        .collect();
    format!("{traffic:?} {:?} {:?} {:?} {:?}", answer.queues, answer.inputs, answer.applications, answer.cpus)
}

#[test]
fn every_frame_is_accounted_for_and_the_same_seed_gives_the_same_answer() {
    let mut delivered = 0;
    let mut lost = [0; 5];
    for seed in 0..400 {
        let random = || Xoshiro256PlusPlus::seed_from_u64(seed);
        let answer = run(any_plan(&mut random()));
        assert!(answer.conserves(), "plan {seed}: {}", digest(&answer));
        assert_eq!(digest(&answer), digest(&run(any_plan(&mut random()))), "plan {seed}");
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

fn loss(answer: &Answer) -> f64 {
    answer.traffic[0].lost() as f64 / answer.traffic[0].offered as f64
}

#[test]
fn a_deeper_ring_loses_less_and_a_higher_load_waits_longer() {
    let losses: Vec<f64> =
        [1, 2, 4, 8, 16, 64].map(|ring| loss(&run(single_server(US, US, false, ring, 500)))).into();
    assert!(losses.windows(2).all(|pair| pair[1] < pair[0]), "{losses:?}");
    let waits: Vec<f64> = [10.0, 5.0, 2.5, 1.6, 1.3, 1.1]
        .map(|gap| mean_us(&run(single_server((gap * 1e6) as Time, US, false, 1 << 16, 500))))
        .into();
    assert!(waits.windows(2).all(|pair| pair[1] > pair[0]), "{waits:?}");
}

#[test]
fn a_longer_interval_means_fewer_interrupts_and_longer_waits() {
    let of = |us: u64| {
        let mut plan = single_server(5 * US, US, false, 1024, 500);
        plan.queues[0].moderation = Moderation::Throttle { interval: us * US };
        run(plan)
    };
    let answers = [0, 10, 50, 200, 1000].map(of);
    let rates: Vec<f64> =
        answers.iter().map(|answer| answer.queues[0].interrupts as f64 / answer.seconds()).collect();
    let waits: Vec<f64> = answers.iter().map(mean_us).collect();
    assert!(rates.windows(2).all(|pair| pair[1] < pair[0]), "{rates:?}");
    assert!(waits.windows(2).all(|pair| pair[1] > pair[0]), "{waits:?}");
    near(rates[4], 1000.0, 0.01, "interrupts a second at 1,000 µs");
}

/// Frames a second that a CPU delivers of those offered, where each costs 2 µs up to the IP input queue and 3 µs behind it.
fn delivered(driver: Driver, pps: u64) -> f64 {
    let mut plan = single_server(SECOND / pps, 0, false, 256, 400);
    plan.driver = driver;
    plan.costs.interrupt = US;
    plan.costs.driver = Cost { frame: 2 * US, octet: 0 };
    plan.sources[0].stack = Cost { frame: 3 * US, octet: 0 };
    if driver == Driver::Interrupt {
        plan.inputs.push(Input { cpu: 0, depth: 50 });
    }
    let answer = run(plan);
    answer.traffic[0].delivered as f64 / answer.seconds()
}

#[test]
fn interrupts_can_take_all_the_time_and_polls_cannot() {
    // Mogul and Ramakrishnan's receive livelock: beyond saturation the handler takes what the stack needs.
    assert!(delivered(Driver::Interrupt, 1_000_000) < 1000.0);
    near(delivered(NAPI, 1_000_000), 200_000.0, 0.02, "NAPI beyond saturation");
    near(delivered(NAPI, 100_000), 100_000.0, 0.02, "NAPI below saturation");
    near(delivered(Driver::Interrupt, 100_000), 100_000.0, 0.02, "interrupts below saturation");
    // The clock leaves half of the time, and a tick's ring is what there is to do in the other.
    let polling = Driver::Polling { period: SECOND / 1000, burst: 150, share: SECOND / 2000 };
    near(delivered(polling, 1_000_000), 100_000.0, 0.02, "polling beyond saturation");
}

#[test]
fn a_reader_keeps_half_of_the_cpu_where_soft_interrupts_would_take_all() {
    let mut plan = single_server(US, 2 * US, false, 256, 1000);
    plan.applications.push(Application {
        name: "reader".to_owned(),
        cpu: Some(0),
        socket: 8192,
        batch: 1,
        call: 2 * US,
        system: Cost::default(),
        user_call: 0,
        user: Cost::default(),
        next: Goal::Stack,
    });
    plan.sources[0].goal = Goal::Application(0);
    let answer = run(plan);
    near(answer.cpus[0].softirq as f64, answer.duration as f64 / 2.0, 0.05, "soft interrupts");
    near(answer.traffic[0].delivered as f64 / answer.seconds(), 250_000.0, 0.05, "received");
    assert!(answer.cpus[0].squeezes > 0);
}

#[test]
fn gro_makes_packets_of_trains_and_not_of_strangers() {
    let of = |arrivals, popularity| {
        let mut plan = single_server(US, 100 * NS, false, 1024, 200);
        plan.ports[0].octet = 80;
        plan.gro = Some(Gro { frames: 17 });
        plan.queues[0].moderation = Moderation::Throttle { interval: 50 * US };
        plan.sources[0] = Source {
            arrivals,
            popularity,
            coalesces: true,
            stack: Cost { frame: US, octet: 0 },
            ..source(Arrivals::Constant { gap: US }, 1, Goal::Stack)
        };
        let answer = run(plan);
        assert!(answer.conserves());
        // What is not the driver's is the stack's, a microsecond a packet.
        let stack = answer.cpus[0].softirq as f64 / 1e6 - answer.traffic[0].offered as f64 / 10.0;
        answer.traffic[0].offered as f64 / stack
    };
    let trains = of(Arrivals::Trains { frames: 34, gap: 100 * US }, Popularity::Uniform);
    assert!(trains > 10.0, "{trains} frames a packet");
    let strangers = of(Arrivals::Constant { gap: 2 * US }, Popularity::RoundRobin);
    near(strangers, 1.0, 0.01, "frames a packet");
}

#[test]
fn the_line_and_the_window_are_limits() {
    let mut plan = single_server(100 * NS, 10 * NS, false, 1024, 100);
    plan.ports[0].octet = 8000; // 1 Gbit/s
    let answer = run(plan);
    near(
        answer.traffic[0].offered as f64 / answer.seconds(),
        1_488_095.0,
        0.001,
        "frames of 64 octets a second",
    );
    let mut plan = single_server(US, 10 * US, false, 1024, 1000);
    plan.ports[0].octet = 8000;
    plan.sources[0].arrivals =
        Arrivals::Window { frames: 4, back: 90 * US, retry: SECOND, acknowledgment: 0 };
    let answer = run(plan);
    assert_eq!(answer.traffic[0].lost(), 0);
    let rate = answer.traffic[0].delivered as f64 / answer.seconds();
    assert!(rate > 30_000.0 && rate < 41_000.0, "{rate}: four frames in 100 µs at most");
}
