//! What the daemon counted.

use crate::obstacle::Obstacle;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Why a flow was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Removal {
    /// conntrack has forgotten the connection, or it is being closed.
    Ended,
    /// Its addresses or its mark are others.
    Changed,
    /// Routes, neighbours or interfaces changed, and its packets have no known way any more.
    Rerouted,
    /// Removal was requested.
    Flushed,
}

impl Removal {
    /// The word of reports.
    pub const fn name(self) -> &'static str {
        match self {
            Removal::Ended => "ended",
            Removal::Changed => "changed",
            Removal::Rerouted => "rerouted",
            Removal::Flushed => "flushed",
        }
    }
}

/// Counts since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// Connections that were installed.
    pub installs: u64,
    /// Those that were removed, by reason.
    pub removals: BTreeMap<Removal, u64>,
    /// Those that were left to the kernel, by reason.
    pub refusals: BTreeMap<Obstacle, u64>,
    /// Changes that conntrack refused.
    pub failed_updates: u64,
    /// How often events were lost, and everything was read anew.
    pub lost: u64,
}

impl Counted {
    pub(crate) fn refuse(&mut self, why: Obstacle) {
        *self.refusals.entry(why).or_default() += 1;
    }

    pub(crate) fn remove(&mut self, why: Removal) {
        *self.removals.entry(why).or_default() += 1;
    }
}
