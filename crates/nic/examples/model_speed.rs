//! How many frames a second of processor time the model simulates: four queues, Poisson arrivals, every stage up to a reader on each CPU, in
//! one thread (Linux).
//!
//! `cargo run --release -p rxlane-nic --example model_speed [MILLISECONDS]`

#![allow(clippy::print_stdout, reason = "it prints")]

use rxlane_nic::model::plan::{
    Application, Arrivals, Cost, Costs, Driver, FlowPlan, Goal, Gro, Input, Moderation, Plan, Port, Queue,
    Source,
};
use rxlane_nic::model::{self, SECOND, Time};
use std::time::Duration;
use traffic::{Popularity, Sizes};

const NS: Time = 1000;
const QUEUES: usize = 4;

/// What becomes of packets behind the driver.
#[derive(Clone, Copy)]
enum Rest {
    Stack,
    Sockets,
    HandOverAndSockets,
}

/// Ten million frames a second on four queues, each CPU busy to about two thirds.
fn plan(rest: Rest, gro: bool, milliseconds: u64) -> Plan {
    let port = Port { name: "port".to_owned(), octet: 80, transmit_ring: 256 };
    let moderation = Moderation::Throttle { interval: 20_000 * NS };
    let queue = |cpu| Queue { port: 0, cpu, ring: 512, moderation };
    let hand_over = matches!(rest, Rest::HandOverAndSockets);
    let input = |cpu| Input { cpu, depth: 1000 };
    let application = |cpu: usize| Application {
        name: format!("reader {cpu}"),
        cpu: Some(cpu),
        socket: 4096,
        batch: 32,
        call: 500 * NS,
        system: Cost { frame: 20 * NS, octet: 0 },
        user_call: 0,
        user: Cost { frame: 20 * NS, octet: 0 },
        next: Goal::Stack,
    };
    let sockets = if matches!(rest, Rest::Stack) { 0 } else { QUEUES };
    // One line, and a source for each reader: a Poisson process in parts is one in all.
    let number = sockets.max(1);
    let source = |at: usize| Source {
        name: format!("source {at}"),
        port: 0,
        arrivals: Arrivals::Poisson { gap: 100 * NS * number as Time },
        sizes: Sizes::Fixed(64),
        overhead: 12,
        popularity: Popularity::Uniform,
        flows: (0..1000u32)
            .map(|flow| FlowPlan { queue: flow % QUEUES as u32, input: flow / 4 % QUEUES as u32 })
            .collect(),
        longest: 1526,
        stack: Cost { frame: 90 * NS, octet: 0 },
        coalesces: gro,
        payload: 0,
        goal: if sockets > 0 { Goal::Application(at) } else { Goal::Stack },
    };
    Plan {
        seed: 1,
        warm_up: 0,
        duration: milliseconds * SECOND / 1000,
        cpus: QUEUES,
        driver: Driver::Napi { budget: 64, round: 300, limit: 2_000_000 * NS },
        gro: gro.then_some(Gro { frames: 17 }),
        inputs: if hand_over { (0..QUEUES).map(input).collect() } else { Vec::new() },
        costs: Costs {
            interrupt: 500 * NS,
            poll: 300 * NS,
            wake: 300 * NS,
            switch: 500 * NS,
            ipi: 300 * NS,
            driver: Cost { frame: 60 * NS, octet: 0 },
            hand_over: 30 * NS,
            gro: 20 * NS,
            ..Costs::default()
        },
        ports: vec![port],
        queues: (0..QUEUES).map(queue).collect(),
        applications: (0..sockets).map(application).collect(),
        sources: (0..number).map(source).collect(),
    }
}

/// Time that the process has had a CPU, as other programs may want it, too; in hundredths of a second (proc_pid_stat(5), utime).
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(") ").next().unwrap_or_default();
    let ticks: u64 = fields.split(' ').nth(11).and_then(|field| field.parse().ok()).unwrap_or_default();
    Duration::from_millis(10 * ticks)
}

fn main() {
    let milliseconds = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(2000);
    let cases = [
        ("poll, stack", Rest::Stack, false),
        ("poll, GRO, stack", Rest::Stack, true),
        ("poll, stack, sockets with readers", Rest::Sockets, false),
        ("poll, GRO, hand-over, stack, sockets with readers", Rest::HandOverAndSockets, true),
    ];
    for (name, rest, gro) in cases {
        let plan = plan(rest, gro, milliseconds);
        let start = processor_time();
        let answer = model::run(plan);
        let took = (processor_time() - start).as_secs_f64();
        assert!(answer.conserves());
        let offered: u64 = answer.traffic.iter().map(|traffic| traffic.offered).sum();
        let delivered: u64 = answer.traffic.iter().map(|traffic| traffic.delivered).sum();
        let rate = offered as f64 / took / 1e6;
        let received = 100.0 * delivered as f64 / offered as f64;
        println!("{rate:6.1} million frames/s  {name} ({offered} frames, {received:.1} % delivered)");
    }
}
