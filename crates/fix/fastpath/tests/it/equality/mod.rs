//! Two routers that differ in nothing but the fast path get the same frames, and what leaves them is compared byte by byte.
//!
//! The kernel alone (`A`) is the reference. Each router has ends of its own, with the same addresses as the other's, so that no byte
//! differs for want of being the same machine. A batch of frames goes to one port of both, then two frames that are numbered: one
//! that the kernel forwards, one that the program does. When both have arrived from both routers, whatever left until then has to
//! have left both.

mod background;
mod change;
mod ends;
mod exchange;
mod flow;
mod outcome;
mod packet;
mod random;
mod router;
mod safe;

use change::Hostile;
use exchange::Exchange;
use flow::{Flow, every_kind};
use random::Random;
use router::Pair;
use testkit::wait_until;

pub use outcome::{Outcome, Total};
pub use router::Kind;

/// Frames of a batch: what they become fits the queue of a veth (`VETH_RING_SIZE` of drivers/net/veth.c, 256), in which a frame
/// is lost without a trace.
const BATCH: u64 = 64;

/// A number of the environment.
pub fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable)
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{variable}={text}")))
}

/// Sends so many frames through both routers. `None` where they cannot be made.
pub fn compare(kind: Kind, frames: u64, seed: u64) -> Option<Outcome> {
    let pair = Pair::new(kind)?;
    let flows = every_kind(kind);
    let mut exchange = Exchange::new(&pair, kind);
    exchange.establish(&flows);
    let all = flows.len() as u64;
    let what = std::fmt::from_fn(|f| write!(f, "{all} flows, of {:#}", pair.status()));
    wait_until(what, || pair.status()["flows"].as_u64() == Some(all));
    let mut outcome = Outcome::new(kind);
    let mut hostile = Hostile::new(kind, Random::new(seed));
    let before = pair.fast();
    let mut left = frames;
    // What differs once differs often: it is not worth the time.
    while left > 0 && !outcome.is_full() {
        let count = left.min(BATCH);
        left -= count;
        let at = hostile.side();
        let mut batch = Vec::new();
        for _ in 0..count {
            let flow: &Flow = hostile.choose(&flows, at);
            outcome.count(flow, at);
            hostile.frames(flow, at, &mut batch);
        }
        exchange.send(at, &batch, &mut outcome);
    }
    outcome.fast = pair.fast() - before - exchange.fast_markers();
    outcome.slow = pair.status()["packets"]["slow"].clone();
    Some(outcome)
}
