//! One frame through the program, the native C text and the reference.

use super::flows::{GENERATION, PORT, next_hops};
use crate::programs::native::compiled;
use crate::programs::sys::Guarded;
use crate::programs::sys::forward::{Forwarder, KEY_OF_IPV4, Tables as NativeTables};
use offload::checksum::{Verdict as Checksum, verify};
use rustix::time::{ClockId, clock_gettime};
use rxlane_xdp::Error;
use rxlane_xdp::forward::{Counts, Flow, Forwarding, Key, Used};
use rxlane_xdp::forward_layout::{FlowKey, ForwardCounts, Limit, NextHopValue, Pass};
use rxlane_xdp::forward_reference::{Bucket, Tables, Verdict, forward};
use std::collections::HashMap;
use testkit::{Missing, require};

/// `enum xdp_action`.
const DROP: u32 = 1;
const PASS: u32 = 2;
const REDIRECT: u32 = 4;

/// Bytes in front of a frame of `BPF_PROG_TEST_RUN` (`XDP_PACKET_HEADROOM` less `struct xdp_frame`, at least).
const HEADROOM: usize = 200;
/// The least and the longest frame that the kernel runs a program on.
const LEAST: usize = 14;
pub const LONGEST: usize = 3400;

/// The three, with the same tables, and what they should have counted.
pub struct Agreement {
    pub kernel: Option<Forwarding>,
    native: Option<(Forwarder, Guarded)>,
    pub native_tables: NativeTables,
    native_counts: ForwardCounts,
    pub tables: Tables,
    /// Of all frames, and of those that the program ran on.
    pub expected: Counts,
    in_kernel: Counts,
    used: HashMap<Key, Used>,
}

/// Whether the program can be loaded here.
pub fn probe() -> Result<(), Missing> {
    match Forwarding::load(1, 1) {
        Ok(_) => Ok(()),
        Err(error @ (Error::NotPermitted { .. } | Error::Lacks(_))) => Err(Missing(error.to_string())),
        Err(error) => panic!("{error}"),
    }
}

impl Agreement {
    /// With what of it there is, and these flows.
    pub fn new(flows: &[(Key, Flow)]) -> Agreement {
        let kernel = require("bpf", probe()).map(|()| Forwarding::load(4096, 16).expect("loaded"));
        let native = require("cc", compiled("native_forward.c", Forwarder::open));
        let mut agreement = Agreement {
            kernel,
            native: native.map(|forwarder| (forwarder, Guarded::new(1 << 14).expect("memory"))),
            native_tables: NativeTables { ports: 1 << 3, ..NativeTables::default() },
            native_counts: ForwardCounts::default(),
            tables: Tables { headroom: HEADROOM, ports: [3].into(), ..Tables::default() },
            expected: Counts::default(),
            in_kernel: Counts::default(),
            used: HashMap::new(),
        };
        for next in next_hops() {
            let place = agreement.tables.next_hops.len() as u32;
            let value = next.map_or_else(NextHopValue::default, |next| next.value().expect("a next hop"));
            agreement.native_tables.next_hops.push(value);
            agreement.tables.next_hops.push(next);
            if let Some(kernel) = &mut agreement.kernel {
                kernel.set_next_hop(place, next.as_ref()).expect("a next hop");
            }
        }
        if let Some(kernel) = &mut agreement.kernel {
            kernel.set_port(3, Some(PORT)).expect("a port");
        }
        flows.iter().for_each(|(key, flow)| agreement.insert(key, flow));
        agreement.beat(GENERATION, now_ns() + 3_600_000_000_000);
        agreement
    }

    pub fn insert(&mut self, key: &Key, flow: &Flow) {
        let mut value = key.value().expect("a key");
        if !key.is_ipv6() {
            value.protocol |= KEY_OF_IPV4;
        }
        self.native_tables.keys.push(value);
        self.native_tables.flows.push(flow.value(key).expect("a flow"));
        assert_eq!(self.tables.insert(*key, *flow), None, "{key:?}");
        if let Some(kernel) = &mut self.kernel {
            kernel.insert(key, flow).expect("a flow");
        }
    }

    /// Installs a flow again that a packet has paused: the clock of the program is not the others', and a pause would end at other times.
    fn resume(&mut self, key: &Key) {
        let Some((key, flow)) = self.tables.flows.get(key).copied() else { return };
        self.tables.insert(key, flow);
        let value = key.value().expect("a key");
        let same = |other: &FlowKey| {
            let protocol = if key.is_ipv6() { value.protocol } else { value.protocol | KEY_OF_IPV4 };
            *other == FlowKey { protocol, ..value }
        };
        if let Some(place) = self.native_tables.keys.iter().position(same) {
            self.native_tables.flows[place].paused = 0;
        }
        if let Some(kernel) = &mut self.kernel {
            kernel.renew(&key, &flow).expect("a flow");
        }
    }

    pub fn beat(&mut self, generation: u32, heartbeat_ns: u64) {
        (self.tables.generation, self.tables.heartbeat_ns) = (generation, heartbeat_ns);
        let alive = &mut self.native_tables.alive;
        (alive.generation, alive.heartbeat_ns) = (generation, heartbeat_ns);
        if let Some(kernel) = &mut self.kernel {
            kernel.beat_at(generation, heartbeat_ns).expect("a heartbeat");
        }
    }

    pub fn limit(&mut self, place: u8, bits_per_second: u64, burst_bytes: u64) {
        let limit = Limit::new(bits_per_second, burst_bytes).expect("a limit");
        let ns_per_byte = 8_000_000_000 / bits_per_second;
        let bucket = Bucket { ns_per_byte, burst_ns: ns_per_byte * burst_bytes, full_ns: 0 };
        self.tables.limits.insert(place, bucket);
        self.native_tables.limits[usize::from(place)] = limit;
        if let Some(kernel) = &mut self.kernel {
            kernel.set_limit(place, bits_per_second, burst_bytes).expect("a limit");
        }
    }

    /// As [`check_pausing`](Agreement::check_pausing), after which no flow is paused.
    #[track_caller]
    pub fn check(&mut self, frame: &[u8]) -> Verdict {
        let verdict = self.check_pausing(frame);
        let paused: Vec<Key> = self.tables.paused.keys().copied().collect();
        paused.iter().for_each(|key| self.resume(key));
        verdict
    }

    /// The verdict on a frame, which is the same of all three, with the same bytes.
    #[track_caller]
    pub fn check_pausing(&mut self, frame: &[u8]) -> Verdict {
        let now = now_ns();
        let verdict = forward(frame, PORT, &mut self.tables, now);
        let (action, left) = match &verdict {
            Verdict::Sent { frame: sent, .. } => {
                checksums_stay(frame, sent);
                (REDIRECT, &sent[..])
            }
            Verdict::Limited => (DROP, frame),
            Verdict::Passed(_) => (PASS, frame),
        };
        count(&mut self.expected, &verdict);
        if let Some((native, memory)) = &mut self.native {
            memory.put(frame);
            let (tables, counts) = (&mut self.native_tables, &mut self.native_counts);
            let found = native.forward(memory, self.tables.headroom, PORT, tables, now, counts);
            assert_eq!((found.0, &found.1[..]), (action, left), "native: {verdict:?} of {frame:02x?}");
        }
        if let Some(kernel) = &self.kernel
            && (LEAST..=LONGEST).contains(&frame.len())
        {
            let found = kernel.run(frame, PORT).expect("a run");
            assert_eq!((found.0, &found.1[..]), (action, left), "program: {verdict:?} of {frame:02x?}");
            count(&mut self.in_kernel, &verdict);
        }
        verdict
    }

    /// As [`check`](Agreement::check), of a packet of a flow: what it used is compared at the end.
    #[track_caller]
    pub fn check_flow(&mut self, key: &Key, frame: &[u8]) -> Verdict {
        let verdict = self.check(frame);
        if let Verdict::Sent { packet, .. } = &verdict {
            let used = self.used.entry(*key).or_default();
            (used.packets, used.bytes) = (used.packets + 1, used.bytes + *packet as u64);
        }
        verdict
    }

    /// Compares what was counted.
    #[track_caller]
    pub fn finish(&self) {
        if self.native.is_some() {
            let counts = &self.native_counts;
            let mut passed = [0; Pass::ALL.len()];
            passed.copy_from_slice(&counts.passed[..Pass::ALL.len()]);
            let (fast, fast_bytes) = (counts.fast, counts.fast_bytes);
            assert_eq!(Counts { fast, fast_bytes, limited: counts.limited, passed }, self.expected, "native");
        }
        let Some(kernel) = &self.kernel else { return };
        assert_eq!(kernel.counts().expect("counts"), self.in_kernel, "program");
        for (key, expected) in &self.used {
            let found = kernel.used(key).expect("read").expect("a flow");
            assert_eq!((found.packets, found.bytes), (expected.packets, expected.bytes), "{key:?}");
            assert!(found.used_ns > 0 && found.used_ns <= now_ns(), "{key:?}");
        }
    }
}

fn count(counts: &mut Counts, verdict: &Verdict) {
    match verdict {
        Verdict::Sent { packet, .. } => {
            (counts.fast, counts.fast_bytes) = (counts.fast + 1, counts.fast_bytes + *packet as u64);
        }
        Verdict::Limited => counts.limited += 1,
        Verdict::Passed(pass) => counts.passed[*pass as usize] += 1,
    }
}

/// Right checksums stay right, wrong ones wrong, one that was left out is left out, and one that was left to a device becomes right;
/// judged by another implementation.
#[track_caller]
fn checksums_stay(before: &[u8], after: &[u8]) {
    let (arrived, left) = (verify(before), verify(after));
    let is_completed = (arrived.transport, left.transport) == (Checksum::Wrong, Checksum::Right);
    let expected = if is_completed { left.transport } else { arrived.transport };
    assert_eq!((arrived.header, expected), (left.header, left.transport), "{before:02x?}: {after:02x?}");
    assert_ne!(left.header, Checksum::Wrong, "{before:02x?}: {after:02x?}");
}

/// The clock that the program reads.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::MonotonicCoarse);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
