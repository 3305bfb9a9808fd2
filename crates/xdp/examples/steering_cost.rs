//! What the steering program costs a frame, beside programs that do the least: `cargo run --release -p rxlane-xdp
//! --example steering_cost [ROUNDS]`, as root. Every program runs in each round, one after the other; a figure is the
//! median of the rounds with the least and the greatest, and a ratio is taken round by round.
#![allow(clippy::print_stdout)]

#[path = "../tests/programs/kernel.rs"]
mod kernel;
#[path = "../tests/programs/packet.rs"]
mod packet;

use kernel::{PASS, Program, REDIRECT, probe};
use packet::{Packet, TCP, eth};
use rxlane_xdp::layout::{Class, Settings};
use rxlane_xdp::object;

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

fn main() {
    if let Err(missing) = probe() {
        eprintln!("steering_cost: {missing}");
        std::process::exit(3);
    }
    let rounds = std::env::args().nth(1).map_or(51, |text| text.parse().expect("a number of rounds"));
    let settings = settings();
    let mut programs = [
        Program::load(EMPTY, "empty", None, 1),
        Program::load(MINIMAL, "minimal", None, 2),
        Program::load(MINIMAL_COUNTED, "minimal", None, 1),
        Program::load(object::STEER, "steer", &settings, 1),
        Program::load(object::STEER_NOFRAGS, "steer", &settings, 1),
        Program::load(object::STEER, "steer", &settings, 1),
    ];
    programs[5].receive_on(0);
    let tcp4 = |under: Packet| under.ipv4(TCP).tcp().payload(16).frame();
    let tcp6 = |under: Packet| under.ipv6(TCP).tcp().payload(16).frame();
    let (q, ad_q) = (|| eth().tag(0x8100, 35), || eth().tag(0x88a8, 100).tag(0x8100, 200));
    let known = tcp4(q().pppoe());
    let steered = |name, frame| Candidate { name, program: 3, frame, action: REDIRECT, costs: Vec::new() };
    let mut candidates = vec![
        Candidate { name: "minimal", program: 1, frame: known.clone(), action: REDIRECT, costs: Vec::new() },
        Candidate {
            name: "minimal, counted",
            program: 2,
            frame: known.clone(),
            action: REDIRECT,
            costs: Vec::new(),
        },
        Candidate { name: "empty", program: 0, frame: known.clone(), action: PASS, costs: Vec::new() },
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
        Candidate { program: 4, ..steered("without frags: tag, PPPoE, IPv4", known.clone()) },
        Candidate { program: 5, action: PASS, ..steered("on its CPU: tag, PPPoE, IPv4", known.clone()) },
        steered("rare: IPv4 options", q().pppoe().ipv4_options(TCP, 1).tcp().payload(16).frame()),
        steered("rare: hop-by-hop options", q().pppoe().ipv6(0).extension(TCP, 1).tcp().payload(16).frame()),
        Candidate { action: PASS, ..steered("left: LCP", eth().pppoe().ppp(0xc021).payload(8).frame()) },
        Candidate { action: PASS, ..steered("left: ARP", eth().ethertype(0x0806).payload(28).frame()) },
    ];
    for _ in 0..rounds {
        for Candidate { name, program, frame, action, costs } in &mut candidates {
            let (returned, cost) = programs[*program].cost(frame, REPEAT);
            assert_eq!(returned, *action, "{name}");
            costs.push(cost);
        }
    }
    println!(
        "ns a frame, median [least-most] of {rounds} rounds of {REPEAT} runs; times minimal, times minimal, counted"
    );
    for candidate in &candidates {
        let over = |other: usize| {
            let ratios =
                candidate.costs.iter().zip(&candidates[other].costs).map(|(cost, other)| cost / other);
            spread(ratios.collect())
        };
        let ([median, least, most], [minimal, ..], [counted, ..]) =
            (spread(candidate.costs.clone()), over(0), over(1));
        let name = candidate.name;
        println!("| {name} | {median:.1} [{least:.1}-{most:.1}] | {minimal:.2} | {counted:.2} |");
    }
}

/// Median, least and greatest.
fn spread(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [values[values.len() / 2], values[0], values[values.len() - 1]]
}
