//! A fast path: packets that an XDP program forwards past the kernel, as `rxlane fastpath status` counts them.

use crate::{Counter, Fact, Observed, Shares, Xdp};
use std::collections::BTreeMap;
use std::time::Duration;

/// What is known of it.
#[derive(Clone, Debug, PartialEq)]
pub struct FastPath {
    /// How the program is attached to its ports.
    pub mode: Fact<Xdp>,
    /// Interfaces with the program.
    pub ports: Fact<Vec<String>>,
    /// Packets that it forwarded.
    pub fast: Counter,
    /// Packets that it left to the kernel, by reason (`no-entry`).
    pub slow: BTreeMap<String, Counter>,
    /// Connections that were left to the kernel, by reason (`helper`).
    pub refusals: BTreeMap<String, Counter>,
    /// Connections that are in it.
    pub flows: Option<Observed<u64>>,
    /// As many as there may be.
    pub flows_most: Option<Fact<u64>>,
    /// Seconds since it is up.
    pub seconds: Option<Observed<f64>>,
    /// Its process.
    pub pid: Option<u32>,
}

impl FastPath {
    /// What was forwarded, and what was left to the kernel: in this order, the latter as `slow` has it. `None` where the
    /// counters were started anew between the samples.
    pub fn shares(&self, interval: Option<Duration>) -> Option<Shares> {
        Shares::of(std::iter::once(&self.fast).chain(self.slow.values()), interval)
    }
}
