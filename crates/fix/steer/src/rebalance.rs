//! When which bucket goes to which CPU while steering runs: an algorithm without a kernel, a clock or randomness.
//!
//! [`Balancer::observe`] takes one [`Reading`] of the counters after the other and gives [`Orders`]: buckets that
//! should change their CPU, and frames that are known to be lost. `docs/steering/rebalancing.md` has the arguments.
//!
//! The orders are requests. The programs change the CPU of a bucket when nothing of it is on its way
//! ([`xdp`]), so a wrong order costs evenness and never the sequence of a flow. What it does depend on is
//! [`Bucket::lost`]: too low, and a bucket never moves; too high, and it may move too early. `rebalance/horizon.rs` raises it
//! only by frames that a first-in-first-out queue must have handed out, if it had had them.

mod choice;
mod horizon;
mod watch;

pub use choice::{Burden, divisible};
pub use watch::Balancer;

use crate::weights::Weight;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;
use xdp::Counters;
use xdp::layout::{BUCKETS, Bucket};

#[derive(Clone, Debug)]
pub struct Reading {
    pub counters: Counters,
    /// What user space has ordered so far.
    pub buckets: Box<[Bucket; BUCKETS]>,
    /// The condition of CPUs. One that is missing here is online, and how busy it is is not known.
    pub conditions: BTreeMap<u32, Condition>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Condition {
    /// Whether it can work at all. Its buckets go elsewhere where it cannot.
    pub online: bool,
    /// The part of its time in which it was not idle since the last reading, 0 to 1. `None`: not known.
    pub busy: Option<f64>,
}

impl Reading {
    /// When it was taken, by the monotonic clock.
    pub fn at(&self) -> Duration {
        Duration::from_nanos(self.counters.taken_ns)
    }

    /// Frames of the bucket that neither arrived nor are known to be lost: on their way, lost, or sent while the
    /// counters were read.
    pub fn missing(&self, bucket: usize) -> u64 {
        let accounted = self.counters.arrived[bucket].wrapping_add(self.buckets[bucket].lost);
        ahead(self.counters.sent[bucket], accounted)
    }
}

/// How far the counter `a` is ahead of `b`; 0 where it is behind. Counters wrap.
fn ahead(a: u64, b: u64) -> u64 {
    let ahead = a.wrapping_sub(b);
    if ahead < 1 << 63 { ahead } else { 0 }
}

/// How eagerly buckets move. [`Limits::DEFAULT`] says why.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Time over which rates are taken, and between two decisions.
    pub interval: Duration,
    /// Intervals that the load has to be uneven for before anything moves.
    pub persistence: u32,
    /// Uneven is a CPU with more than this many times the mean load.
    pub uneven: f64,
    /// Even again is less than this; above 1 and below `uneven`.
    pub even: f64,
    /// Moves ordered in an interval, at most.
    pub moves: usize,
    /// Moves that may wait at the same time, at most.
    pub waiting: usize,
    /// How long a move may wait before the bucket counts where it is. The order stands: taken back and given
    /// again, it could find the programs in the midst of the first.
    pub patience: Duration,
    /// How long a bucket stays where it went, or where it could not leave.
    pub rest: Duration,
    /// Steered frames a second below which nothing moves.
    pub quiet: f64,
}

impl Limits {
    /// Three seconds of more than 1.2 times the mean begin it, 1.1 ends it: both lie under the 1.3 that is promised,
    /// and the gap between them keeps noise from beginning it again. Eight moves a second leave the caches of the
    /// CPUs alone; 32 reach a quarter of all buckets in eight seconds. A bucket without a pause for ten seconds will
    /// have none soon. Below 1,000 frames a second no CPU is busy with them.
    pub const DEFAULT: Limits = Limits {
        interval: Duration::from_secs(1),
        persistence: 3,
        uneven: 1.2,
        even: 1.1,
        moves: 8,
        waiting: 16,
        patience: Duration::from_secs(10),
        rest: Duration::from_secs(30),
        quiet: 1000.0,
    };
}

#[derive(Clone, Debug)]
pub struct Setup {
    pub weights: Vec<Weight>,
    /// Frames that the queue of each CPU holds.
    pub queue_size: u32,
    /// How long a bucket must be without a frame to move ([`xdp::layout::Settings::hold_ns`]).
    pub hold: Duration,
    /// Whether anything may move. Where not, only lost frames are ordered.
    pub may_move: bool,
    pub limits: Limits,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Orders {
    pub moves: Vec<Move>,
    pub lost: Vec<Lost>,
    pub state: State,
    /// The busiest CPU's load over the mean of all targets, by frames, base and other work; `None` before two
    /// readings and without traffic.
    pub imbalance: Option<f64>,
    pub next: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    pub bucket: usize,
    pub from: u32,
    pub to: u32,
    pub why: Why,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    Uneven,
    /// The CPU went offline, or is no target.
    Unavailable,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    pub bucket: usize,
    pub lost: u64,
    pub before: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum State {
    #[default]
    Unknown,
    Quiet,
    Even,
    /// Even, though one bucket is too much for one CPU: the others have as much to do besides.
    EvenWithHeavyBucket {
        bucket: usize,
        cpu: u32,
        /// Its part of all steered frames, 0 to 1.
        share: f64,
    },
    /// Uneven, and not for long enough to act.
    Uneven,
    Moving,
    /// Uneven, and no bucket may move at present: they rest, or had no pause when they should have moved.
    Waiting,
    /// No move can make it even: one bucket is too much for one CPU. Frames of one flow cannot be divided, nor are
    /// those of several flows that share a bucket.
    OneBucket {
        bucket: usize,
        cpu: u32,
        /// Its part of all steered frames, 0 to 1.
        share: f64,
        /// The least that the busiest CPU can have over the mean.
        least: f64,
    },
    /// No single move makes it more even: a few heavy buckets cannot be divided better.
    Coarse,
    /// A CPU has so much other work that it is above the mean without any bucket.
    OtherWork {
        cpu: u32,
    },
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            State::Unknown => f.write_str("there are not two readings yet"),
            State::Quiet => f.write_str("there is too little traffic to move anything"),
            State::Even => f.write_str("the load is even"),
            State::EvenWithHeavyBucket { bucket, cpu, share } => write!(
                f,
                "bucket {bucket} on CPU {cpu} has {:.0} % of all steered frames (one flow, or flows that share the \
                 bucket); the load is even all the same, since the other CPUs have as much to do besides (receiving, \
                 other work)",
                share * 100.0
            ),
            State::Uneven => f.write_str("the load is uneven"),
            State::Moving => f.write_str("buckets are moving to CPUs with less to do"),
            State::Waiting => f.write_str(
                "the load is uneven, and the buckets that could move have moved lately or never pause",
            ),
            State::OneBucket { bucket, cpu, share, least } => write!(
                f,
                "bucket {bucket} has {:.0} % of all steered frames (one flow, or flows that share the bucket): no move \
                 can bring its CPU {cpu} below {least:.2} times the mean",
                share * 100.0
            ),
            State::Coarse => f.write_str("a few heavy buckets cannot be divided more evenly"),
            State::OtherWork { cpu } => {
                write!(f, "CPU {cpu} has more other work than its part of the load would be")
            }
        }
    }
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Move { bucket, from, to, why } = self;
        let why = match why {
            Why::Uneven => "has more to do than the others",
            Why::Unavailable => "is offline or no target",
        };
        write!(f, "bucket {bucket} goes to CPU {to}: CPU {from} {why}")
    }
}
