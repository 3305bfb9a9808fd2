//! What is due now and then: connections in use are kept alive in conntrack, stations verified, what waits tried again.

use super::{Engine, now_ns};
use crate::connection::{TCP, Tuple};
use crate::error::Error;
use kernel::netlink;
use kernel::netlink::netfilter::conntrack::{self, Update};
use kernel::sysctl;
use std::time::{Duration, Instant};
use xdp::forward::Key;

/// How long one waits.
const PATIENCE: Duration = Duration::from_secs(60);
/// Tries of those that wait, in a second.
const TRIES: usize = 4096;
/// Flows of which the use is read between two looks at what else happened.
const SLICE: usize = 4096;

/// After what time without a packet conntrack forgets a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeouts {
    tcp: u32,
    udp: u32,
    /// That of UDP until it was answered for two seconds, which the fast path never lets conntrack see.
    udp_first: u32,
    /// The least that connections had when they were established, TCP and UDP: a policy (`ct timeout`) gives others.
    least: (u32, u32),
}

impl Timeouts {
    /// Those of this network namespace.
    pub(super) fn read() -> Timeouts {
        let read =
            |name: &str, usual| sysctl::net(&format!("netfilter/nf_conntrack_{name}")).unwrap_or(usual);
        Timeouts {
            tcp: read("tcp_timeout_established", 432_000),
            udp: read("udp_timeout_stream", 120),
            udp_first: read("udp_timeout", 30),
            least: (u32::MAX, u32::MAX),
        }
    }

    /// They may have been set otherwise.
    fn read_again(&mut self) {
        *self = Timeouts { least: self.least, ..Timeouts::read() };
    }

    /// A connection that is now established had this timeout.
    pub(super) fn note(&mut self, tuple: &Tuple, seconds: u32) {
        let least = if tuple.protocol == TCP { &mut self.least.0 } else { &mut self.least.1 };
        *least = (*least).min(seconds);
    }

    fn of(&self, tuple: &Tuple) -> u32 {
        if tuple.protocol == TCP { self.tcp } else { self.udp }
    }

    /// How often a flow's use is read: so that one that is in use never comes near its timeout.
    fn interval(&self, tuple: &Tuple) -> Duration {
        let (tcp, udp) = self.least;
        let least =
            if tuple.protocol == TCP { self.tcp.min(tcp) } else { self.udp.min(self.udp_first).min(udp) };
        Duration::from_secs(u64::from((least / 4).clamp(1, 300)))
    }
}

impl Engine {
    /// What is due every second.
    ///
    /// # Errors
    ///
    /// The kernel refuses to read or write a map.
    pub fn tick(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        self.timeouts.read_again();
        self.waiting.retain(|_, (_, since)| now.duration_since(*since) < PATIENCE);
        let tries: Vec<Tuple> = self.waiting.keys().take(TRIES).copied().collect();
        self.again.extend(tries);
        if !self.hindered.is_empty() && self.topology.find_overlays(&self.overlays) {
            self.distrust()?;
        }
        // Without its port a packet is the kernel's.
        for (place, interface) in self.ports.changed_targets() {
            self.program.set_port(place, interface)?;
        }
        self.verify_neighbours();
        self.keep_alive(now)
    }

    /// The kernel sees no packets to these stations any more, and would never ask whether they are still there.
    pub(super) fn verify_neighbours(&mut self) {
        for (key, ..) in self.next_hops.iter() {
            if self.topology.is_stale(key.interface, key.next) {
                // What comes of it is an event.
                let _ = netlink::refresh(key.interface, key.next);
            }
        }
    }

    /// Renews the timeouts of connections whose flows are in use, some at a time.
    pub(super) fn keep_alive(&mut self, now: Instant) -> Result<(), Error> {
        let end = self.read_to.saturating_add(SLICE.max(self.flows.numbers() / 8));
        let due: Vec<(Tuple, [Key; 2], Duration)> = self
            .flows
            .slice(self.read_to..end.min(self.flows.numbers()))
            .map(|one| (one, now.duration_since(one.renewed)))
            .filter(|(one, since)| *since >= self.timeouts.interval(&one.connection.original))
            .map(|(one, since)| (one.connection.original, one.keys, since))
            .collect();
        self.read_to = if end >= self.flows.numbers() { 0 } else { end };
        for (tuple, keys, since) in due {
            let mut last = 0;
            for key in &keys {
                last = last.max(self.program.used(key)?.map_or(0, |used| used.used_ns));
            }
            let is_used = now_ns().saturating_sub(last) < since.as_nanos() as u64;
            if let Some(installed) = self.flows.get_mut(&tuple) {
                installed.renewed = now;
            }
            if is_used {
                self.updates.push(Update {
                    timeout: Some(self.timeouts.of(&tuple)),
                    liberal: false,
                    ..update(&tuple)
                });
            }
        }
        self.send_updates();
        Ok(())
    }

    /// Writes to conntrack what was decided.
    pub(super) fn send_updates(&mut self) {
        if !self.updates.is_empty() {
            // A connection that has ended meanwhile is none of these errors; for the others the kernel's own timeouts hold.
            if self.keep.update(&self.updates).is_err() {
                self.counted.failed_updates += 1;
            }
            self.updates.clear();
        }
    }
}

/// Of a connection in no zone, nothing.
pub(super) fn update(tuple: &Tuple) -> Update {
    let conntrack::Key { original, protocol, zone } = tuple.key();
    Update { original, protocol, zone, timeout: None, liberal: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::UDP;

    #[test]
    fn a_short_timeout_is_renewed_in_time() {
        let usual = Timeouts { tcp: 432_000, udp: 120, udp_first: 30, least: (u32::MAX, u32::MAX) };
        let address = ([192, 0, 2, 1], 1).into();
        let [tcp, udp] = [TCP, UDP].map(|protocol| Tuple { protocol, source: address, destination: address });
        let seconds = |timeouts: &Timeouts| [tcp, udp].map(|tuple| timeouts.interval(&tuple).as_secs());
        assert_eq!(seconds(&usual), [300, 7]);
        let mut policy = usual;
        policy.note(&udp, 5);
        policy.note(&udp, 30);
        assert_eq!(seconds(&policy), [300, 1]);
        policy.note(&tcp, 400);
        assert_eq!(seconds(&policy), [100, 1]);
    }
}
