//! Parsing a frame to its flow key: rxlane against etherparse, smoltcp and pnet.
//!
//! All run in one program, turn by turn over the same 1,024 frames of distinct flows, and are timed in CPU time
//! of the thread. Before anything is measured each of them has to read the same addresses and ports from every
//! frame.

mod parsers;

use parsers::Parser;
use rustix::time::{ClockId, clock_gettime};
use rxlane_traffic::{Popularity, Scenario, Sizes};
use std::hint::black_box;
use std::process::ExitCode;

/// Frames of each kind.
const FRAMES: u32 = 1024;
/// Turns of each parser.
const TURNS: usize = 41;
/// Nanoseconds of a turn, about.
const TURN: f64 = 4e6;

const OWN: usize = 0;
const PARSERS: [(&str, Parser); 5] = [
    ("rxlane", parsers::rxlane),
    ("rxlane, all of it", parsers::rxlane_dissect),
    ("etherparse", parsers::etherparse),
    ("smoltcp", parsers::smoltcp),
    ("pnet", parsers::pnet),
];

/// Name, encapsulation, percent of IPv6 and of UDP.
const KINDS: [(&str, &str, u8, u8); 6] = [
    ("IPv4 TCP", "none", 0, 0),
    ("VLAN, IPv4 UDP", "q:7", 0, 100),
    ("QinQ, IPv4 TCP", "ad:100,q:200", 0, 0),
    ("QinQ, PPPoE, IPv4 TCP", "ad:100,q:200,pppoe:7", 0, 0),
    ("QinQ, PPPoE, IPv6 TCP", "ad:100,q:200,pppoe:7", 100, 0),
    ("QinQ, PPPoE, mixed", "ad:100,q:200,pppoe:7", 50, 50),
];

fn frames(encapsulation: &str, ipv6: u8, udp: u8) -> Result<Vec<Vec<u8>>, String> {
    let encapsulation = encapsulation.parse().map_err(|error| format!("{error}"))?;
    let mut scenario = Scenario::new(encapsulation).with_flows(FRAMES).data_only();
    scenario.popularity = Popularity::RoundRobin;
    scenario.sizes = Sizes::Fixed(110);
    scenario.ipv6_percent = ipv6;
    scenario.udp_percent = udp;
    let mut traffic = scenario.generate(1).map_err(|error| error.to_string())?;
    Ok((0..FRAMES).map(|_| traffic.next_frame().bytes.to_vec()).collect())
}

fn check(kind: &str, frames: &[Vec<u8>]) -> Result<(), String> {
    for (i, frame) in frames.iter().enumerate() {
        let expected = parsers::rxlane(frame).ok_or(format!("{kind}: rxlane refuses frame {i}"))?;
        for (name, parser) in &PARSERS {
            if parser(frame) != Some(expected) {
                return Err(format!("{kind}: {name} reads other addresses or ports from frame {i}"));
            }
        }
    }
    Ok(())
}

/// CPU time of this thread in nanoseconds.
fn now() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Nanoseconds for `passes` passes over the frames. The parser is inlined into the loop, as it would be in a
/// program that uses it.
fn time<P: Fn(&[u8]) -> Option<u32>>(parser: P, passes: usize, frames: &[Vec<u8>]) -> f64 {
    let start = now();
    for _ in 0..passes {
        let mut sum = 0;
        for frame in frames {
            sum ^= parser(frame).unwrap_or(1);
        }
        black_box(sum);
    }
    now() - start
}

fn time_of(which: usize, passes: usize, frames: &[Vec<u8>]) -> f64 {
    let frames = black_box(frames);
    match which {
        0 => time(parsers::rxlane, passes, frames),
        1 => time(parsers::rxlane_dissect, passes, frames),
        2 => time(parsers::etherparse, passes, frames),
        3 => time(parsers::smoltcp, passes, frames),
        _ => time(parsers::pnet, passes, frames),
    }
}

/// Median and range, as text.
fn spread(values: impl Iterator<Item = f64>) -> (f64, String) {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let (median, least, most) = (values[values.len() / 2], values[0], values[values.len() - 1]);
    (median, format!("{median:.2} [{least:.2}-{most:.2}]"))
}

fn measure(kind: &str, frames: &[Vec<u8>]) {
    let each: Vec<usize> = (0..PARSERS.len())
        .map(|which| {
            let once = time_of(which, 8, frames) / 8.0;
            ((TURN / once) as usize).max(1)
        })
        .collect();
    let turns: Vec<Vec<f64>> = (0..TURNS)
        .map(|_| {
            let turn = |(which, passes): (usize, &usize)| {
                time_of(which, *passes, frames) / (*passes * frames.len()) as f64
            };
            each.iter().enumerate().map(turn).collect()
        })
        .collect();
    for (which, (name, _)) in PARSERS.iter().enumerate() {
        let (_, nanoseconds) = spread(turns.iter().map(|turn| turn[which]));
        let (_, ratio) = spread(turns.iter().map(|turn| turn[which] / turn[OWN]));
        println!("{kind:<24} {name:<18} {nanoseconds:>22} {ratio:>22}");
    }
}

fn main() -> ExitCode {
    println!(
        "{:<24} {:<18} {:>22} {:>22}\n{:<43} {:>22}",
        "", "", "ns a frame", "of rxlane's time", "median [least-most] of 41 turns", ""
    );
    for (kind, encapsulation, ipv6, udp) in KINDS {
        let frames = match frames(encapsulation, ipv6, udp).and_then(|f| check(kind, &f).map(|()| f)) {
            Ok(frames) => frames,
            Err(error) => {
                eprintln!("bench-parse: {error}");
                return ExitCode::FAILURE;
            }
        };
        measure(kind, &frames);
    }
    ExitCode::SUCCESS
}
