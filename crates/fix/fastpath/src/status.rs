//! How a fast path stands: `rxlane.fastpath/1`.

use crate::counted::{Counted, Removal};
use crate::engine::{Engine, now_ns};
use crate::error::Error;
use crate::obstacle::Obstacle;
use crate::running::NAME;
use serde::{Deserialize, Serialize};
use service::control::ControlError;
use service::{Instances, Kind, StateDir};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Instant;
use xdp::forward_layout::Pass;

/// Schema of the answer: fields are added, never renamed.
pub const SCHEMA: &str = "rxlane.fastpath/1";
/// Schema of the list of flows.
pub const FLOWS: &str = "rxlane.fastpath-flows/1";

/// A fast path at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// [`SCHEMA`].
    pub schema: String,
    /// Names of the ports.
    pub ports: Vec<String>,
    /// `native`, `generic`.
    pub mode: String,
    /// Packets since it is up.
    pub packets: Packets,
    /// IP bytes that were forwarded.
    pub bytes: u64,
    /// Packets that were dropped for the sake of a limit.
    pub limited: u64,
    /// Connections that are installed, each with both directions.
    pub flows: u64,
    /// As many as there may be.
    pub flows_most: u64,
    /// Connections that wait for the MAC address of a station, or for a place.
    pub waiting: u64,
    /// Stations to which packets are sent.
    pub next_hops: u64,
    /// Connections that were installed.
    pub installs: u64,
    /// Those that were removed, by reason.
    pub removals: BTreeMap<Removal, u64>,
    /// Connections that were left to the kernel, by reason.
    pub refusals: BTreeMap<Obstacle, u64>,
    /// How often events were lost, and everything was read anew.
    pub lost: u64,
    /// Seconds since it is up.
    pub seconds: f64,
    /// The process.
    pub pid: u32,
}

/// Packets by who has handled them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Packets {
    /// Forwarded by the program.
    pub fast: u64,
    /// Passed to the kernel, by reason; those that never came are left out.
    pub slow: BTreeMap<String, u64>,
    /// Part of all that was forwarded by the program; `None`: there were none.
    pub fast_share: Option<f64>,
}

/// A flow as `rxlane fastpath flows` lists it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowRow {
    /// `tcp`, `udp`.
    pub protocol: String,
    /// Of the direction of the first packet, as it arrives.
    pub source: SocketAddr,
    /// Where it goes.
    pub destination: SocketAddr,
    /// What leaves instead, where addresses are translated.
    pub translated: Option<(SocketAddr, SocketAddr)>,
    /// The ports by which that direction arrives and leaves.
    pub ports: (String, String),
    /// Packets of both directions.
    pub packets: (u64, u64),
    /// IP bytes of both directions.
    pub bytes: (u64, u64),
    /// Seconds since the last packet of either.
    pub idle: Option<f64>,
}

/// What does not change while it is up.
#[derive(Clone, Debug)]
pub struct Identity {
    /// `native`, `generic`.
    pub mode: String,
    /// As many flows as there may be.
    pub most: usize,
    /// Since when.
    pub since: Instant,
}

impl Status {
    /// That of the fast path of this network namespace, as its process reports it.
    ///
    /// # Errors
    ///
    /// There is none, its process was killed, or does not answer.
    pub fn read(state: &StateDir) -> Result<Status, ControlError> {
        Instances::new(Kind::Fastpath, state.clone())?.ask(NAME, "status")
    }

    /// That of an engine.
    ///
    /// # Errors
    ///
    /// The kernel refuses to read a map.
    pub fn of(engine: &Engine, identity: &Identity) -> Result<Status, Error> {
        let counts = engine.program().counts()?;
        let Counted { installs, removals, refusals, lost, .. } = engine.counted().clone();
        let (waiting, next_hops) = engine.waiting();
        let slow: BTreeMap<String, u64> = Pass::ALL
            .iter()
            .zip(counts.passed)
            .filter(|(_, packets)| *packets > 0)
            .map(|(pass, packets)| (pass.name().to_owned(), packets))
            .collect();
        let all = slow.values().fold(counts.fast, |sum, packets| sum.saturating_add(*packets));
        Ok(Status {
            schema: SCHEMA.to_owned(),
            ports: engine.ports().all().iter().map(|port| port.name.clone()).collect(),
            mode: identity.mode.clone(),
            packets: Packets {
                fast: counts.fast,
                fast_share: (all > 0).then(|| counts.fast as f64 / all as f64),
                slow,
            },
            bytes: counts.fast_bytes,
            limited: counts.limited,
            flows: engine.flows().len() as u64,
            flows_most: identity.most as u64,
            waiting: waiting as u64,
            next_hops: next_hops as u64,
            installs,
            removals,
            refusals,
            lost,
            seconds: identity.since.elapsed().as_secs_f64(),
            pid: std::process::id(),
        })
    }
}

/// Flows, at most so many.
///
/// # Errors
///
/// The kernel refuses to read a map.
pub fn flows(engine: &Engine, most: usize) -> Result<Vec<FlowRow>, Error> {
    engine
        .flows()
        .iter()
        .take(most)
        .map(|installed| {
            let original = &installed.connection.original;
            let reply = &installed.connection.reply;
            let used = |place: usize| -> Result<_, Error> {
                let key = installed.keys.get(place);
                Ok(key.map(|key| engine.program().used(key)).transpose()?.flatten().unwrap_or_default())
            };
            let (first, second) = (used(0)?, used(1)?);
            let last = first.used_ns.max(second.used_ns);
            let is_translated = original.source != reply.destination || original.destination != reply.source;
            let port = |place: usize| {
                installed.keys.get(place).map_or_else(String::new, |key| engine.name(key.port))
            };
            Ok(FlowRow {
                protocol: if original.protocol == crate::connection::TCP { "tcp" } else { "udp" }.to_owned(),
                source: original.source,
                destination: original.destination,
                translated: is_translated.then_some((reply.destination, reply.source)),
                ports: (port(0), port(1)),
                packets: (first.packets, second.packets),
                bytes: (first.bytes, second.bytes),
                idle: (last > 0).then(|| now_ns().saturating_sub(last) as f64 / 1e9),
            })
        })
        .collect()
}
