//! Machines to simulate: a server with a queue, and any.

use rand_core::Rng;
use rxlane_model::plan::{
    Application, Arrivals, Cost, Costs, Driver, FlowPlan, Goal, Gro, Input, Moderation, Plan, Port, Queue,
    Source,
};
use rxlane_model::{Answer, SECOND, Time};
use traffic::{Popularity, Sizes};

pub const NS: Time = 1000;
pub const US: Time = 1_000_000;
pub const NAPI: Driver = Driver::Napi { budget: 64, round: 300, limit: 2000 * US };

/// One queue, one CPU, nothing but the work on frames: a queueing system with one server.
pub fn single_server(gap: Time, service: Time, exponential: bool, ring: u32, milliseconds: u64) -> Plan {
    Plan {
        seed: 7,
        warm_up: SECOND / 20,
        duration: milliseconds * 1000 * US,
        cpus: 1,
        driver: NAPI,
        gro: None,
        inputs: Vec::new(),
        keeps_own: false,
        ahead: true,
        costs: Costs { driver: Cost { frame: service, byte: 0 }, exponential, ..Costs::default() },
        ports: vec![Port { name: "port".to_owned(), byte: 0, transmit_ring: 1 }],
        queues: vec![Queue { port: 0, cpu: 0, ring, moderation: Moderation::Off }],
        applications: Vec::new(),
        sources: vec![source(Arrivals::Poisson { gap }, 1, Goal::Stack)],
    }
}

pub fn source(arrivals: Arrivals, queues: u32, goal: Goal) -> Source {
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

pub fn mean_us(answer: &Answer) -> f64 {
    answer.traffic[0].latencies.mean().unwrap() / 1e6
}

pub fn near(found: f64, expected: f64, part: f64, what: &str) {
    assert!((found / expected - 1.0).abs() < part, "{what}: {found}, expected {expected}");
}

/// A machine of random parts.
pub fn any_plan(random: &mut impl Rng) -> Plan {
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
        .map(|number| Port { name: format!("port {number}"), byte: 800 + below(8000), transmit_ring: 8 })
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
        source.stack = Cost { frame: below(3000) * NS, byte: below(2) * NS };
        sources.push(source);
    }
    let application = |number: usize, below: &mut dyn FnMut(u64) -> u64| Application {
        name: format!("reader {number}"),
        cpu: (below(2) == 0).then(|| below(cpus as u64) as usize),
        socket: 1 + below(40) as u32,
        batch: 1 + below(8) as u32,
        call: below(3000) * NS,
        system: Cost { frame: below(2000) * NS, byte: 1 },
        user_call: below(2) * 500 * NS,
        user: Cost { frame: below(2) * 500 * NS, byte: 0 },
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
        keeps_own: driver != Driver::Interrupt && below(3) == 0,
        ahead: true,
        costs: Costs {
            interrupt: below(5000) * NS,
            poll: below(2000) * NS,
            tick: below(5000) * NS,
            ipi: below(2000) * NS,
            wake: below(2000) * NS,
            switch: below(2000) * NS,
            driver: Cost { frame: below(3000) * NS, byte: below(2) * NS },
            hand_over: below(500) * NS,
            take_over: below(2) * below(500) * NS,
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
pub fn digest(answer: &Answer) -> String {
    let traffic: Vec<_> = answer
        .traffic
        .iter()
        .map(|traffic| {
            let shares = [0.1, 0.5, 0.9, 0.99].map(|share| traffic.latencies.percentile(share));
            let mean = traffic.latencies.mean();
            let bytes = (traffic.offered_bytes, traffic.delivered_bytes);
            (
                traffic.offered,
                traffic.delivered,
                traffic.lost,
                bytes,
                mean,
                shares,
                traffic.latencies.longest(),
            )
        })
        .collect();
    format!("{traffic:?} {:?} {:?} {:?} {:?}", answer.queues, answer.inputs, answer.applications, answer.cpus)
}
