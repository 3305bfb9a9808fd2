//! What netfilter says of forwarded flows: nftables' flowtables, the rules that put flows there, conntrack's entries.

#![expect(missing_docs, reason = "what its name does not say has a comment")]

use crate::{Fact, Quote};
use std::collections::BTreeMap;

/// What is known of netfilter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Netfilter {
    /// Where all flowtables of the machine are listed, be it that there are none.
    pub listed: Option<Quote>,
    /// Where all rules are, too.
    pub ruleset: Option<Quote>,
    /// In the order of the text.
    pub flowtables: Vec<Flowtable>,
    /// Rules that put flows into a flowtable.
    pub flow_rules: Vec<FlowRule>,
    /// The highest priority of a chain at the hook `forward`: the chain that is last there (nft(8), "filter" is 0).
    pub last_forward: Option<i32>,
    /// Packets that passed a chain at the hook `forward`, by family, table and chain: where the counters of its rules miss none.
    pub forwarded: BTreeMap<String, Fact<u64>>,
    /// Interfaces that forward rules and NAT name, each with the first such rule.
    pub routed: BTreeMap<String, Quote>,
    /// Conntrack's entries as they were counted last.
    pub connections: Option<Connections>,
}

impl Netfilter {
    /// Flowtables and flow rules that are kept, of each.
    pub const MOST: usize = 256;
}

/// A flowtable of nftables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flowtable {
    /// Family and name of its table (`inet fw4`); empty where the text does not say.
    pub table: String,
    pub name: String,
    /// Interfaces whose packets are looked up in it.
    pub devices: Vec<String>,
    /// `flags offload`: flows go to the device's hardware where its driver can; `None` where the text ends before it.
    pub hardware: Option<bool>,
    /// As the text has it (`filter + 5`).
    pub priority: Option<String>,
    /// `counter`: conntrack goes on counting its packets.
    pub counter: bool,
    /// The line with its devices, or its first.
    pub quote: Quote,
}

/// A rule with `flow add`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowRule {
    /// Family and name of its table.
    pub table: String,
    pub chain: String,
    /// The flowtable's name, without `@`.
    pub flowtable: String,
    /// Transport protocols that it is for; empty: all.
    pub protocols: Vec<String>,
    /// Whether it is for packets or connections with a mark.
    pub needs_mark: bool,
    /// Whether it is for the first packet of a connection alone.
    pub only_new: bool,
    /// A rule before it in the chain that accepts all packets of established connections.
    pub accepted_before: Option<Quote>,
    pub quote: Quote,
}

/// Entries of conntrack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connections {
    pub entries: u64,
    /// By transport protocol (`tcp`).
    pub by_protocol: BTreeMap<String, ProtocolConnections>,
    /// Of those that are established and not in a flowtable: with a mark.
    pub bypassed_marked: u64,
    /// With a helper (`helper=sip`), which keeps a connection out of every flowtable.
    pub bypassed_helped: u64,
    /// Of those in a flowtable: with a mark.
    pub offloaded_marked: u64,
    /// The first of its lines, without addresses.
    pub quote: Quote,
}

/// Entries of one transport protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProtocolConnections {
    /// That have seen packets of both ends; of TCP, in the state ESTABLISHED. Without those of the machine itself, which no
    /// flowtable takes, as far as their addresses say so.
    pub established: u64,
    /// Of these, in a flowtable.
    pub offloaded: u64,
    /// Of these, in hardware.
    pub hardware: u64,
}

impl Connections {
    /// Transport protocols that flowtables take (`nft_flow_offload_eval()` in net/netfilter/nft_flow_offload.c).
    const TAKEN: [&str; 2] = ["tcp", "udp"];

    /// Entries of TCP and UDP together.
    pub fn of_flows(&self) -> ProtocolConnections {
        let mut all = ProtocolConnections::default();
        for one in Connections::TAKEN.iter().filter_map(|protocol| self.by_protocol.get(*protocol)) {
            all.established = all.established.saturating_add(one.established);
            all.offloaded = all.offloaded.saturating_add(one.offloaded);
            all.hardware = all.hardware.saturating_add(one.hardware);
        }
        all
    }
}
