//! A PPPoE session between two namespaces, or the bare pair.

use std::path::Path;
use veth::ends::{Ends, WAN};
use veth::load;

/// Of the IP packets of all ways, bytes.
pub const MTU: u32 = 1492;
/// Of the pair below a session: room for two tags.
const BELOW: u32 = 1508;
/// Of the client and the concentrator.
const ADDRESSES: [&str; 2] = ["10.64.0.2", "10.64.0.1"];

/// What packets go through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Batch,
    Simple,
    BareWithout,
    Bare,
}

impl Way {
    pub const ALL: [Way; 4] = [Way::Batch, Way::Simple, Way::BareWithout, Way::Bare];

    pub fn name(self) -> &'static str {
        match self {
            Way::Batch => "connect, batch",
            Way::Simple => "connect, simple",
            Way::BareWithout => "veth, no offloads",
            Way::Bare => "veth",
        }
    }

    /// The data path of `connect`; `None`: no session.
    fn path(self) -> Option<&'static str> {
        match self {
            Way::Batch => Some("batch"),
            Way::Simple => Some("simple"),
            Way::BareWithout | Way::Bare => None,
        }
    }
}

/// Both ends of a way; of a session the concentrator is started first.
pub struct Topology(Ends);

impl Topology {
    pub fn new(way: Way, rxlane: &Path, vlans: Option<&str>) -> anyhow::Result<Topology> {
        let mut ends = Ends::new(if way.path().is_some() { BELOW } else { MTU })?;
        let Some(path) = way.path() else {
            if way == Way::BareWithout {
                ends.without_offloads()?;
            }
            ends.give_addresses(ADDRESSES)?;
            return Ok(Topology(ends));
        };
        let vlans = vlans.map(|vlans| format!(" --vlan {vlans}")).unwrap_or_default();
        let serve = "serve wan0 --anybody --vlan any --local 10.64.0.1 --pool 10.64.0.2-10.64.0.2";
        for (end, words, ready) in
            [(1, serve, "serves"), (0, &format!("connect {WAN} --datapath {path}{vlans}"), ": open")]
        {
            let state = ends.state(end).display().to_string();
            let words = ["pppoe"].into_iter().chain(words.split(' '));
            let words: Vec<&str> = words.chain(["--ipv6", "false", "--state", &state]).collect();
            ends.start(end, rxlane, &words, ready)?;
        }
        Ok(Topology(ends))
    }

    /// Process ids of the client and of the concentrator.
    pub fn pids(&self) -> Option<[u32; 2]> {
        match self.0.pids()[..] {
            [serve, connect] => Some([connect, serve]),
            _ => None,
        }
    }

    /// Mean round trip, microseconds.
    pub fn round_trip(&self) -> anyhow::Result<f64> {
        load::round_trip(&self.0.namespaces[0], ADDRESSES[1])
    }

    /// Bit/s of payload that arrived over so many connections, and its bytes: from the client, or to it.
    pub fn tcp(&self, is_down: bool, flows: u32, seconds: u32) -> anyhow::Result<(f64, f64)> {
        let flows = flows.to_string();
        let more: &[&str] = if is_down { &["-P", &flows, "-R"] } else { &["-P", &flows] };
        load::arrived(&load::iperf(&self.0.namespaces, ADDRESSES[1], more, seconds)?)
    }
}
