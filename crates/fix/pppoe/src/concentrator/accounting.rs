//! What is written down of each session: when it began, what it transferred, why it ended.

use super::authentication::Refusal;
use super::authority::Granted;
use super::network::Prefixes;
use super::sessions::Identity;
use crate::discovery::place::Place;
use crate::session::Closed;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::net::Ipv4Addr;
use std::ops::Add;
use std::sync::Arc;
use std::time::Duration;
use wire::ethernet::MacAddress;

/// What went through a session, as its data path counts it: IP packets and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Bytes from the subscriber.
    pub received_octets: u64,
    pub received_packets: u64,
    /// Bytes to the subscriber.
    pub sent_octets: u64,
    pub sent_packets: u64,
}

impl Add for Traffic {
    type Output = Traffic;

    fn add(self, other: Traffic) -> Traffic {
        Traffic {
            received_octets: self.received_octets.saturating_add(other.received_octets),
            received_packets: self.received_packets.saturating_add(other.received_packets),
            sent_octets: self.sent_octets.saturating_add(other.sent_octets),
            sent_packets: self.sent_packets.saturating_add(other.sent_packets),
        }
    }
}

/// Why a session ended. `Display` says what happened and, where something can be done, what.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Ended {
    #[error("{0}")]
    Ppp(Closed),
    /// Who the subscriber is, or what they may have, was not enough.
    #[error("the subscriber was refused: {0}")]
    Refused(Refusal),
    /// Neither end was terminating it.
    #[error("the host ended the session (PADT)")]
    Host,
    /// They may not have more sessions.
    #[error("the same user set up another session from {by} {at}")]
    TakenOver { by: MacAddress, at: Place },
    #[error("disconnected by the operator")]
    Operator,
    /// Session-Timeout.
    #[error("the time that RADIUS granted is over")]
    TimeUsed,
    /// Idle-Timeout.
    #[error("no packet went through the session for as long as RADIUS allows")]
    Idle,
    #[error(
        "no network protocol came up in {} s: the host answers, but never agrees, or frames are lost",
        after.as_secs()
    )]
    Unfinished { after: Duration },
    #[error("the concentrator is being shut down")]
    ShutDown,
    /// The process that had it has ended, and this one cannot go on with it: why.
    #[error("the concentrator was restarted: {0}; the host connects again")]
    NotRestored(String),
}

impl Ended {
    /// A word for scripts.
    pub const fn name(&self) -> &'static str {
        match self {
            Ended::Ppp(_) => "ppp",
            Ended::Refused(_) => "refused",
            Ended::Host => "padt",
            Ended::TakenOver { .. } => "taken-over",
            Ended::Operator => "operator",
            Ended::TimeUsed => "session-timeout",
            Ended::Idle => "idle-timeout",
            Ended::Unfinished { .. } => "unfinished",
            Ended::ShutDown => "shut-down",
            Ended::NotRestored(_) => "not-restored",
        }
    }

    /// The text of the PADT to the host.
    pub(super) fn for_host(&self) -> Option<Cow<'static, str>> {
        Some(Cow::Borrowed(match self {
            Ended::Ppp(_) | Ended::Host => return None,
            Ended::Refused(refusal) => refusal.for_host(),
            Ended::TakenOver { .. } => "the same user has connected from elsewhere",
            Ended::Operator => "disconnected by the operator",
            Ended::TimeUsed => "the time of this session is over; connect again",
            Ended::Idle => "the session was not used; connect again",
            Ended::Unfinished { .. } => "the session did not come up in time",
            Ended::ShutDown => "the concentrator is being shut down",
            Ended::NotRestored(why) => {
                return Some(Cow::Owned(format!("the concentrator was restarted: {why}")));
            }
        }))
    }
}

/// When a record is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The first network protocol is up.
    Start,
    Interim,
    Stop(Ended),
}

/// A record: one at the start of a session, one at its end, and perhaps some in between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub event: Event,
    pub identity: Identity,
    /// IPv4 address of the host.
    pub address: Option<Ipv4Addr>,
    /// IPv6 prefixes.
    pub prefixes: Prefixes,
    /// What somebody else granted, where the secrets do not name the user.
    pub granted: Option<Arc<Granted>>,
    /// Time since the first network protocol came up.
    pub uptime: Duration,
    /// What it transferred since then, in this process and in those before.
    pub traffic: Traffic,
}
