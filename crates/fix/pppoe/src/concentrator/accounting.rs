//! What is written down of each session: when it began, what it transferred, why it ended.

use super::authentication::Refusal;
use super::network::Network;
use super::sessions::Id;
use crate::discovery::message::Line;
use crate::discovery::place::Place;
use crate::session::Closed;
use serde::{Deserialize, Serialize};
use std::fmt;
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
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    Ppp(Closed),
    /// Who the subscriber is, or what they may have, was not enough.
    Refused(Refusal),
    /// The host ended it by a PADT, while nobody here was ending it.
    Host,
    /// The same user set up another session, and may not have more.
    TakenOver {
        by: MacAddress,
        at: Place,
    },
    Operator,
    /// Nothing came up in time.
    Unfinished {
        after: Duration,
    },
    ShutDown,
    /// The process that had it has ended, and this one cannot go on with it.
    NotRestored(NotRestored),
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
            Ended::Unfinished { .. } => "unfinished",
            Ended::ShutDown => "shut-down",
            Ended::NotRestored(_) => "not-restored",
        }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Ppp(closed) => closed.fmt(f),
            Ended::Refused(refusal) => write!(f, "the subscriber was refused: {refusal}"),
            Ended::Host => f.write_str("the host ended the session (PADT)"),
            Ended::TakenOver { by, at } => {
                write!(f, "the same user set up another session from {by} {at}")
            }
            Ended::Operator => f.write_str("disconnected by the operator"),
            Ended::Unfinished { after } => write!(
                f,
                "no network protocol came up in {} s: the host answers, but never agrees, or frames are lost",
                after.as_secs()
            ),
            Ended::ShutDown => f.write_str("the concentrator is being shut down"),
            Ended::NotRestored(why) => {
                write!(f, "the concentrator was restarted: {why}; the host connects again")
            }
        }
    }
}

/// Why a session was not taken over from an earlier process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRestored {
    #[error("the session was still being set up")]
    Unfinished,
    /// The user is gone from the secrets.
    #[error("the user is no subscriber any more")]
    User,
    /// This end has another IPv4 address, which a session cannot learn while it is open.
    #[error("the address of the concentrator changed from {was} to {}", or_none(*is))]
    Local {
        /// What subscribers know as their gateway.
        was: Ipv4Addr,
        is: Option<Ipv4Addr>,
    },
    /// This end speaks IPv6 and did not before, or the other way round.
    #[error("IPv6 was turned {}", if *is { "on" } else { "off" })]
    Ipv6 { is: bool },
    /// This end has another interface identifier.
    #[error("the link-local address of the concentrator changed")]
    Identifier,
    /// The user has another IPv4 address by the secrets.
    #[error("the address of the user changed from {} to {}", or_none(*was), or_none(*is))]
    UserAddress { was: Option<Ipv4Addr>, is: Option<Ipv4Addr> },
    #[error("the address {0} is not free any more")]
    Address(Ipv4Addr),
    /// The user has another IPv6 prefix, or there are none any more.
    #[error("the IPv6 prefix of the user changed from {} to {}", or_none(*was), or_none(*is))]
    UserPrefix { was: Option<Network>, is: Option<Network> },
    /// Its IPv6 prefix belongs to somebody else.
    #[error("the IPv6 prefix {0} is not free any more")]
    Prefix(Network),
    /// Two sessions of one number, or a number that is none.
    #[error("the session number is not free")]
    Number,
    #[error("there is no room for as many sessions as there were")]
    Full,
    #[error("the PPP state that was handed over makes no sense")]
    State,
}

fn or_none(what: Option<impl fmt::Display>) -> String {
    what.map_or_else(|| "none".to_owned(), |what| what.to_string())
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
    pub id: Id,
    /// The session, over restarts, too: drawn at random.
    pub accounting: u64,
    pub user: Arc<[u8]>,
    pub place: Place,
    pub station: MacAddress,
    /// What an access node says of the line (TR-101 section 3.9).
    pub line: Option<Arc<Line>>,
    pub number: u16,
    /// IPv4 address of the host.
    pub address: Option<Ipv4Addr>,
    /// IPv6 prefix of the link.
    pub prefix: Option<Network>,
    /// Time since the first network protocol came up.
    pub uptime: Duration,
    /// What it transferred since then, in this process and in those before.
    pub traffic: Traffic,
}
