//! Two ways of doing the same, measured in turns.

use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;

/// Turns, each of both ways.
const TURNS: usize = 31;
/// Nanoseconds that one way runs in a turn, about.
const TURN: f64 = 8e6;

/// CPU time of this thread in nanoseconds.
fn now() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

fn time(passes: usize, pass: &mut dyn FnMut()) -> f64 {
    let start = now();
    for _ in 0..passes {
        black_box(&mut *pass)();
    }
    now() - start
}

fn passes(pass: &mut dyn FnMut()) -> usize {
    let mut passes = 1;
    while time(passes, pass) < TURN / 2.0 {
        passes *= 2;
    }
    passes
}

/// Median, least and greatest.
struct Spread([f64; 3]);

impl Spread {
    fn of(mut values: Vec<f64>) -> Spread {
        values.sort_by(f64::total_cmp);
        Spread([values[values.len() / 2], values[0], values[values.len() - 1]])
    }

    fn print(&self, digits: usize) -> String {
        let [median, least, greatest] = self.0;
        format!("{median:.digits$} [{least:.digits$}-{greatest:.digits$}]")
    }
}

/// Measures both ways turn by turn and prints nanoseconds per hash of each and how many times faster the
/// second is, median and range over the turns, with the target.
pub fn compare(name: &str, hashes: usize, target: f64, peer: &mut dyn FnMut(), own: &mut dyn FnMut()) {
    let (peer_passes, own_passes) = (passes(peer), passes(own));
    let turns: Vec<(f64, f64)> = (0..TURNS)
        .map(|_| {
            let peer = time(peer_passes, peer) / (peer_passes * hashes) as f64;
            (peer, time(own_passes, own) / (own_passes * hashes) as f64)
        })
        .collect();
    let peer = Spread::of(turns.iter().map(|turn| turn.0).collect());
    let own = Spread::of(turns.iter().map(|turn| turn.1).collect());
    let ratio = Spread::of(turns.iter().map(|turn| turn.0 / turn.1).collect());
    let verdict = if ratio.0[0] >= target { "met" } else { "missed" };
    println!(
        "{name:<46} {:>22} {:>20} {:>22}x  {target}x {verdict}",
        peer.print(2),
        own.print(2),
        ratio.print(2)
    );
}
