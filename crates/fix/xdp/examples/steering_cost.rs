//! What the steering program costs a frame, compared with programs that do the least: `cargo run --release -p rxlane-xdp
//! --example steering_cost [ROUNDS [FOLDER]]`, as root. Every program runs in each round, one after the other; a figure
//! is the median of the rounds with the least and the greatest, and a ratio is taken round by round. FOLDER holds other
//! objects (`bpf/build FOLDER` of another revision), which run right behind those compiled in.
#![allow(clippy::print_stdout)]

#[path = "../tests/it/programs/kernel.rs"]
mod kernel;
#[path = "../tests/it/programs/packet.rs"]
mod packet;

use kernel::{PASS, Program, REDIRECT, probe};
use packet::{Packet, TCP, eth};
use rxlane_xdp::layout::{Class, Settings};
use rxlane_xdp::object;
use std::path::Path;

const EMPTY: &[u8] = include_bytes!("../bpf/baseline/empty.o");
const MINIMAL: &[u8] = include_bytes!("../bpf/baseline/minimal.o");
const MINIMAL_COUNTED: &[u8] = include_bytes!("../bpf/baseline/minimal_counted.o");

/// Runs of a program in a round.
const REPEAT: u32 = 100_000;

fn settings() -> Settings {
    let key = std::array::from_fn(|word| 0x9e37_79b1_u32.wrapping_mul(word as u32 + 1));
    let classes = Class::ALL.iter().fold(0, |bits, class| bits | class.bit());
    Settings { key, classes, symmetric: 0, cpus: 1, spare: 0, hold_ns: 100_000 }
}

struct Candidate {
    name: &'static str,
    program: usize,
    frame: Vec<u8>,
    action: u32,
    costs: Vec<f64>,
}

/// The steering program three times: with frags, without, and with frags where every frame is on its CPU.
fn steering(with_frags: &[u8], without_frags: &[u8]) -> [Program; 3] {
    let settings = settings();
    let mut programs =
        [with_frags, without_frags, with_frags].map(|object| Program::load(object, "steer", &settings, 1));
    programs[2].receive_on(0);
    programs
}

/// Those programs of another folder.
fn steering_of(folder: &str) -> [Program; 3] {
    let [with_frags, without_frags] = ["steer.o", "steer_nofrags.o"].map(|name| {
        let path = Path::new(folder).join(name);
        std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    });
    steering(&with_frags, &without_frags)
}

/// Programs by number.
const MINIMAL_ALONE: usize = 1;
const COUNTED: usize = 2;
const STEER: usize = 3;
const OTHER: usize = 6;

/// The first two are those that the others are compared with.
fn candidates() -> Vec<Candidate> {
    let tcp4 = |under: Packet| under.ipv4(TCP).tcp().payload(16).frame();
    let tcp6 = |under: Packet| under.ipv6(TCP).tcp().payload(16).frame();
    let (q, ad_q) = (|| eth().tag(0x8100, 35), || eth().tag(0x88a8, 100).tag(0x8100, 200));
    let known = tcp4(q().pppoe());
    let steered =
        |name, frame| Candidate { name, program: STEER, frame, action: REDIRECT, costs: Vec::new() };
    vec![
        Candidate { program: MINIMAL_ALONE, ..steered("minimal", known.clone()) },
        Candidate { program: COUNTED, ..steered("minimal, counted", known.clone()) },
        Candidate { program: 0, action: PASS, ..steered("empty", known.clone()) },
        steered("IPv4", tcp4(eth())),
        steered("IPv6", tcp6(eth())),
        steered("tag, IPv4", tcp4(q())),
        steered("tag, IPv6", tcp6(q())),
        steered("two tags, IPv4", tcp4(ad_q())),
        steered("two tags, IPv6", tcp6(ad_q())),
        steered("PPPoE, IPv4", tcp4(eth().pppoe())),
        steered("PPPoE, IPv6", tcp6(eth().pppoe())),
        steered("tag, PPPoE, IPv4", known.clone()),
        steered("tag, PPPoE, IPv6", tcp6(q().pppoe())),
        steered("two tags, PPPoE, IPv4", tcp4(ad_q().pppoe())),
        steered("two tags, PPPoE, IPv6", tcp6(ad_q().pppoe())),
        steered("MPLS, IPv4", tcp4(eth().mpls(16, true))),
        steered("MPLS, IPv6", tcp6(eth().mpls(16, true))),
        Candidate { program: STEER + 1, ..steered("without frags: tag, PPPoE, IPv4", known.clone()) },
        Candidate { program: STEER + 2, action: PASS, ..steered("on its CPU: tag, PPPoE, IPv4", known) },
        steered("rare: IPv4 options", q().pppoe().ipv4_options(TCP, 1).tcp().payload(16).frame()),
        steered("rare: hop-by-hop options", q().pppoe().ipv6(0).extension(TCP, 1).tcp().payload(16).frame()),
        Candidate { action: PASS, ..steered("left: LCP", eth().pppoe().ppp(0xc021).payload(8).frame()) },
        Candidate { action: PASS, ..steered("left: ARP", eth().ethertype(0x0806).payload(28).frame()) },
    ]
}

fn main() {
    if let Err(missing) = probe() {
        eprintln!("steering_cost: {missing}");
        std::process::exit(3);
    }
    let mut arguments = std::env::args().skip(1);
    let rounds = arguments.next().map_or(51, |text| text.parse().expect("a number of rounds"));
    let mut programs = vec![
        Program::load(EMPTY, "empty", None, 1),
        Program::load(MINIMAL, "minimal", None, 2),
        Program::load(MINIMAL_COUNTED, "minimal", None, 1),
    ];
    programs.extend(steering(object::steer(), object::steer_nofrags()));
    let other = arguments.next();
    programs.extend(other.iter().flat_map(|folder| steering_of(folder)));
    let mut candidates = candidates();
    let mut others: Vec<Vec<f64>> = candidates.iter().map(|_| Vec::new()).collect();
    for _ in 0..rounds {
        for (candidate, others) in candidates.iter_mut().zip(&mut others) {
            let mut cost = |program: usize| {
                let (returned, cost) = programs[program].cost(&candidate.frame, REPEAT);
                assert_eq!(returned, candidate.action, "{}", candidate.name);
                cost
            };
            candidate.costs.push(cost(candidate.program));
            if other.is_some() && candidate.program >= STEER {
                others.push(cost(candidate.program - STEER + OTHER));
            }
        }
    }
    println!(
        "ns a frame, median [least-most] of {rounds} rounds of {REPEAT} runs; times minimal, times minimal, counted"
    );
    if let Some(folder) = other {
        println!(
            "behind it the objects of {folder}: times minimal, times minimal, counted, times those compiled in"
        );
    }
    for (candidate, others) in candidates.iter().zip(&others) {
        let figures = |costs: &[f64]| {
            let [median, least, most] = spread(costs.to_vec());
            let (minimal, counted) = (ratio(costs, &candidates[0].costs), ratio(costs, &candidates[1].costs));
            format!("{median:.1} [{least:.1}-{most:.1}] | {minimal:.2} | {counted:.2} |")
        };
        print!("| {} | {}", candidate.name, figures(&candidate.costs));
        if !others.is_empty() {
            print!(" {} {:.2} |", figures(others), ratio(others, &candidate.costs));
        }
        println!();
    }
}

/// The median of the ratios of each round.
fn ratio(costs: &[f64], others: &[f64]) -> f64 {
    spread(costs.iter().zip(others).map(|(cost, other)| cost / other).collect())[0]
}

/// Median, least and greatest.
fn spread(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [values[values.len() / 2], values[0], values[values.len() - 1]]
}
