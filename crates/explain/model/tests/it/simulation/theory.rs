//! What queueing theory and common sense say of a receive path, the model says, too.

use super::plans::{NAPI, NS, US, mean_us, near, single_server, source};
use rxlane_model::plan::{Application, Arrivals, Cost, Driver, Goal, Gro, Input, Moderation, Plan, Source};
use rxlane_model::{Answer, Lost, SECOND, Time, run};
use traffic::Popularity;

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
        // One frame is being served besides those that wait.
        let places = ring as i32 + 1;
        let expected = (1.0 - load) * load.powi(places) / (1.0 - load.powi(places + 1));
        let traffic = &answer.traffic[0];
        near(traffic.lost[Lost::Ring as usize] as f64 / traffic.offered as f64, expected, 0.01, "loss");
        assert!(answer.conserves());
    }
}

#[track_caller]
fn assert_falls(values: &[f64]) {
    assert!(values.windows(2).all(|pair| pair[1] < pair[0]), "{values:?}");
}

#[track_caller]
fn assert_rises(values: &[f64]) {
    assert!(values.windows(2).all(|pair| pair[1] > pair[0]), "{values:?}");
}

/// Frames a second that reach their goal.
fn received(answer: &Answer) -> f64 {
    answer.traffic[0].delivered as f64 / answer.seconds()
}

/// A process on CPU 0 that reads what the source sends.
fn with_reader(mut plan: Plan, socket: u32, batch: u32, frame: Time) -> Plan {
    plan.applications.push(Application {
        name: "reader".to_owned(),
        cpu: Some(0),
        socket,
        batch,
        call: 2 * US,
        system: Cost { frame, byte: 0 },
        user_call: 0,
        user: Cost::default(),
        next: Goal::Stack,
    });
    plan.sources[0].goal = Goal::Application(0);
    plan
}

fn loss(answer: &Answer) -> f64 {
    answer.traffic[0].lost() as f64 / answer.traffic[0].offered as f64
}

#[test]
fn a_deeper_ring_loses_less_and_a_higher_load_waits_longer() {
    assert_falls(&[1, 2, 4, 8, 16, 64].map(|ring| loss(&run(single_server(US, US, false, ring, 500)))));
    let wait = |gap, service| mean_us(&run(single_server(gap, service, false, 1 << 16, 500)));
    assert_rises(&[10.0, 5.0, 2.5, 1.6, 1.3, 1.1].map(|gap| wait((gap * 1e6) as Time, US)));
    // Costlier frames wait longer.
    assert_rises(&[100, 300, 600, 900].map(|ns| wait(US, ns * NS)));
}

#[test]
fn a_longer_interval_means_fewer_interrupts_and_longer_waits() {
    let of = |us: u64| {
        let mut plan = single_server(5 * US, US, false, 1024, 500);
        plan.queues[0].moderation = Moderation::Throttle { interval: us * US };
        run(plan)
    };
    let answers = [0, 10, 50, 200, 1000].map(of);
    let rates = answers.each_ref().map(|answer| answer.queues[0].interrupts as f64 / answer.seconds());
    assert_falls(&rates);
    assert_rises(&answers.each_ref().map(mean_us));
    near(rates[4], 1000.0, 0.01, "interrupts a second at 1,000 µs");
}

/// Frames a second that a CPU delivers of those offered, where each costs 2 µs up to the IP input queue and 3 µs behind it.
fn delivered(driver: Driver, pps: u64) -> f64 {
    let mut plan = single_server(SECOND / pps, 0, false, 256, 400);
    plan.driver = driver;
    plan.costs.interrupt = US;
    plan.costs.driver = Cost { frame: 2 * US, byte: 0 };
    plan.sources[0].stack = Cost { frame: 3 * US, byte: 0 };
    if driver == Driver::Interrupt {
        plan.inputs.push(Input { cpu: 0, depth: 50 });
    }
    received(&run(plan))
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
    let answer = run(with_reader(single_server(US, 2 * US, false, 256, 1000), 8192, 1, 0));
    near(answer.cpus[0].softirq as f64, answer.duration as f64 / 2.0, 0.05, "soft interrupts");
    near(received(&answer), 250_000.0, 0.05, "received");
    assert!(answer.cpus[0].squeezes > 0);
}

#[test]
fn gro_makes_packets_of_trains_and_not_of_strangers() {
    let of = |arrivals, popularity| {
        let mut plan = single_server(US, 100 * NS, false, 1024, 200);
        plan.ports[0].byte = 80;
        plan.gro = Some(Gro { frames: 17 });
        plan.queues[0].moderation = Moderation::Throttle { interval: 50 * US };
        plan.sources[0] = Source {
            arrivals,
            popularity,
            coalesces: true,
            stack: Cost { frame: US, byte: 0 },
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
    plan.ports[0].byte = 8000; // 1 Gbit/s
    let answer = run(plan);
    near(
        answer.traffic[0].offered as f64 / answer.seconds(),
        1_488_095.0,
        0.001,
        "frames of 64 bytes a second",
    );
    let mut plan = single_server(US, 10 * US, false, 1024, 1000);
    plan.ports[0].byte = 8000;
    plan.sources[0].arrivals =
        Arrivals::Window { frames: 4, back: 90 * US, retry: SECOND, acknowledgment: 0 };
    let answer = run(plan);
    assert_eq!(answer.traffic[0].lost(), 0);
    let rate = received(&answer);
    assert!(rate > 30_000.0 && rate < 41_000.0, "{rate}: four frames in 100 µs at most");
}

/// Two queues on two CPUs hand their frames to others; a packet takes 4 µs of the stack.
fn handed_over(gap: u64, depth: u32, targets: u32) -> Answer {
    let mut plan = single_server(gap, 500 * NS, false, 512, 200);
    plan.cpus = 2 + targets as usize;
    plan.queues.push(plan.queues[0].clone());
    plan.queues[1].cpu = 1;
    plan.costs.hand_over = 100 * NS;
    plan.inputs = (0..targets).map(|target| Input { cpu: 2 + target as usize, depth }).collect();
    let flows = plan.sources[0].flows.iter_mut().enumerate();
    flows.for_each(|(at, flow)| (flow.queue, flow.input) = (at as u32 % 2, at as u32 % targets));
    plan.sources[0].stack = Cost { frame: 4 * US, byte: 0 };
    let answer = run(plan);
    assert!(answer.conserves());
    answer
}

#[test]
fn a_deeper_queue_behind_the_driver_loses_less_and_more_cpus_carry_more() {
    let losses: Vec<f64> = [1, 4, 16, 64, 1024].map(|depth| loss(&handed_over(1400 * NS, depth, 3))).into();
    assert!(losses.windows(2).all(|pair| pair[1] <= pair[0]) && losses[4] < losses[0] / 10.0, "{losses:?}");
    // A CPU carries 250,000 packets a second.
    for targets in 1..=4 {
        let rate = received(&handed_over(600 * NS, 256, targets));
        near(rate, 250_000.0 * f64::from(targets), 0.02, "received beyond saturation");
    }
}

#[test]
fn polls_carry_no_less_when_more_is_offered() {
    let rates = [50_000, 100_000, 180_000, 250_000, 500_000, 2_000_000].map(|pps| delivered(NAPI, pps));
    assert!(rates.windows(2).all(|pair| pair[1] > pair[0] * 0.995), "{rates:?}");
}

#[test]
fn a_deeper_socket_loses_less() {
    let losses = [1, 4, 16, 64]
        .map(|socket| loss(&run(with_reader(single_server(4 * US, US, false, 256, 500), socket, 4, US))));
    let falls = losses.windows(2).all(|pair| pair[1] < pair[0] || pair[0] == 0.0);
    assert!(falls && losses[0] > 0.01, "{losses:?}");
}
