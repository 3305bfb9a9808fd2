//! Several ways of doing the same, measured in turns. The first is rxlane, the next three its peers.

use crate::Inputs;
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;

/// Turns, each of all ways.
pub const TURNS: usize = 31;
/// Nanoseconds that one way runs in a turn, about.
const TURN: f64 = 4e6;
/// Peers, behind rxlane.
const PEERS: usize = 3;

/// A way of summing all inputs.
pub struct Way<'a> {
    pub name: &'a str,
    pub sums: &'a dyn Fn(&Inputs) -> u16,
}

impl<'a> Way<'a> {
    pub fn new(name: &'a str, sums: &'a dyn Fn(&Inputs) -> u16) -> Way<'a> {
        Way { name, sums }
    }

    fn time(&self, inputs: &Inputs, passes: usize) -> f64 {
        let start = now();
        for _ in 0..passes {
            black_box((self.sums)(black_box(inputs)));
        }
        now() - start
    }

    fn passes(&self, inputs: &Inputs) -> usize {
        let mut passes = 1;
        while self.time(inputs, passes) < TURN / 2.0 {
            passes *= 2;
        }
        passes
    }
}

/// CPU time of this thread in nanoseconds.
fn now() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Median, least and greatest.
struct Spread([f64; 3]);

impl Spread {
    fn of(mut values: Vec<f64>) -> Spread {
        values.sort_by(f64::total_cmp);
        Spread([values[values.len() / 2], values[0], values[values.len() - 1]])
    }

    fn print(&self) -> String {
        let [median, least, greatest] = self.0;
        format!("{median:.2} [{least:.2}-{greatest:.2}]")
    }
}

/// Measures all ways turn by turn and prints nanoseconds a sum of each, and how many times faster the first is than the
/// best peer of each turn, with the target.
pub fn compare(length: usize, inputs: &Inputs, ways: &[Way], sums: usize, target: Option<f64>) {
    let passes: Vec<usize> = ways.iter().map(|way| way.passes(inputs)).collect();
    let turns: Vec<Vec<f64>> = (0..TURNS)
        .map(|_| {
            let each = ways.iter().zip(&passes);
            each.map(|(way, passes)| way.time(inputs, *passes) / (passes * sums) as f64).collect()
        })
        .collect();
    println!("{length} bytes");
    for (place, way) in ways.iter().enumerate() {
        let spread = Spread::of(turns.iter().map(|turn| turn[place]).collect());
        let ratio = Spread::of(turns.iter().map(|turn| turn[place] / turn[0]).collect());
        println!("  {:<18} {:>26} {:>22}x", way.name, spread.print(), ratio.print());
    }
    let best = |turn: &Vec<f64>| turn[1..=PEERS].iter().copied().fold(f64::INFINITY, f64::min);
    let ratio = Spread::of(turns.iter().map(|turn| best(turn) / turn[0]).collect());
    let verdict = target.map_or(String::new(), |target| {
        format!("; required {target}x: {}", if ratio.0[0] >= target { "met" } else { "missed" })
    });
    println!("  rxlane against the best peer: {}x{verdict}", ratio.print());
}
