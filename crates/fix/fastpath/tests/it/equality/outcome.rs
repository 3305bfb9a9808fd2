//! What a comparison has counted.

use super::ends::Sent;
use super::flow::Flow;
use super::router::{Kind, Side};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// Differences that are kept, with their frames.
const KEPT: usize = 12;

/// Of one pair of routers.
pub struct Outcome {
    kind: Kind,
    /// By NAT, IP version and direction.
    packets: BTreeMap<(&'static str, &'static str, &'static str), u64>,
    /// Packets that the program has forwarded, and those that it passed by reason.
    pub fast: u64,
    pub slow: Value,
    pub differing: u64,
    pub differences: Vec<String>,
}

impl Outcome {
    pub fn new(kind: Kind) -> Outcome {
        Outcome {
            kind,
            packets: BTreeMap::new(),
            fast: 0,
            slow: Value::Null,
            differing: 0,
            differences: Vec::new(),
        }
    }

    /// A packet made from one of a connection.
    pub fn count(&mut self, flow: &Flow, at: Side) {
        let version = if flow.is_ipv6() { "IPv6" } else { "IPv4" };
        let direction = if at == Side::Wan { "download" } else { "upload" };
        *self.packets.entry((flow.nat.name(), version, direction)).or_default() += 1;
    }

    /// Whether there are as many differences as are kept.
    pub fn is_full(&self) -> bool {
        self.differences.len() >= KEPT
    }

    /// Frames that left one router alone.
    pub fn differ(&mut self, batch: &[Sent], surplus: impl Iterator<Item = ((usize, Vec<u8>), i64)>) {
        let mut text = String::new();
        for ((place, frame), count) in surplus {
            self.differing += count.unsigned_abs();
            let who = if count > 0 { "the kernel alone" } else { "the fast path alone" };
            text += &format!("\n {who} at end {place}: {}", hex(&frame));
        }
        if let [only] = batch {
            text += &format!("\n of {:?} {}", only.partial, hex(&only.bytes));
        }
        eprintln!("{text}");
        if !self.is_full() {
            self.differences.push(text);
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().take(160).map(|byte| format!("{byte:02x}"));
    format!("{} ({} bytes)", digits.collect::<String>(), bytes.len())
}

/// Of all of them.
#[derive(Default)]
pub struct Total {
    packets: BTreeMap<[&'static str; 4], u64>,
    fast: BTreeMap<&'static str, u64>,
    slow: BTreeMap<String, u64>,
    differing: u64,
    differences: Vec<String>,
}

impl Total {
    pub fn add(&mut self, outcome: Outcome) {
        let kind = outcome.kind.name();
        for ((nat, version, direction), count) in outcome.packets {
            *self.packets.entry([kind, nat, version, direction]).or_default() += count;
        }
        *self.fast.entry(kind).or_default() += outcome.fast;
        for (reason, count) in outcome.slow.as_object().into_iter().flatten() {
            *self.slow.entry(reason.clone()).or_default() += count.as_u64().unwrap_or(0);
        }
        self.differing += outcome.differing;
        self.differences.extend(outcome.differences.into_iter().map(|text| format!("{kind}:{text}")));
    }

    pub fn frames(&self) -> u64 {
        self.packets.values().sum()
    }

    /// # Panics
    ///
    /// A frame left one router alone, or the program has forwarded too few to mean anything.
    pub fn check(&self) {
        assert!(
            self.differences.is_empty(),
            "{} frames differ:\n{}",
            self.differing,
            self.differences.join("\n")
        );
        let fast: u64 = self.fast.values().sum();
        assert!(fast > self.frames() / 10, "{fast} of {} were fast", self.frames());
    }
}

impl fmt::Display for Total {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ([kind, nat, version, direction], count) in &self.packets {
            writeln!(f, "{kind:12} {nat:11} {version} {direction:9} {count:>9}")?;
        }
        for (kind, count) in &self.fast {
            writeln!(f, "fast: {kind:12} {count:>9}")?;
        }
        for (reason, count) in &self.slow {
            writeln!(f, "passed to the kernel: {reason:20} {count:>9}")?;
        }
        let fast: u64 = self.fast.values().sum();
        write!(
            f,
            "{} frames sent, {fast} forwarded by the fast path, {} differ",
            self.frames(),
            self.differing
        )
    }
}
