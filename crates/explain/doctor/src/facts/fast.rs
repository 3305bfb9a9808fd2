//! Statements and remedies of the rules on `rxlane fastpath`.

#![expect(missing_docs, reason = "the sentence that the command makes of each is its documentation")]

use super::Since;
use serde::Serialize;

/// A statement about a fast path. Reasons are the words of `rxlane fastpath status`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FastFact {
    /// It forwarded so many of so many packets.
    Bypassed { fast: u64, all: u64, since: Since },
    /// This part of all was left to the kernel for the most frequent reason.
    Left { reason: String, share: f64 },
    /// So many connections of so many were left to the kernel.
    Refused { reason: String, connections: u64, of: u64 },
    /// No connection was left to the kernel, and packets have no entry all the same.
    NoneRefused,
    /// It forwards this part of what arrives at its ports, past other software.
    Forwards { share: f64, since: Since },
    /// It would send past a shaper.
    Shaped { interface: String, qdisc: String },
}

/// What a remedy of these rules brings about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FastEffect {
    /// A fast path; `measured`: with what the ports carry it was.
    Up {
        measured: bool,
    },
    /// The daemon that stopped starts anew.
    Restart,
    ShorterPackets,
    CompleteChecksums,
    /// `known`: the ports that it lacks are.
    MorePorts {
        known: bool,
    },
    MoreFlows {
        flows: Option<u64>,
    },
    NoHelper,
    NoFlowtable,
    SavedMark,
    NoVlanFiltering,
}
