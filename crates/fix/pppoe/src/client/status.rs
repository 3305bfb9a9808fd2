//! How a client stands.

use super::{Client, End, Ignored, Opened, State};
use crate::Time;
use crate::session::{self, Family, RoundTrip};
use std::time::Duration;

/// Where a client is. The words are those of `rxlane.pppoe/1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Discovery,
    Lcp,
    Auth,
    Network,
    /// At least one is up.
    Open,
    /// There is no session: until the next attempt, until the line is there, or for good.
    Closed,
}

impl Phase {
    pub(super) fn of(phase: session::Phase) -> Phase {
        match phase {
            session::Phase::Lcp => Phase::Lcp,
            session::Phase::Auth => Phase::Auth,
            session::Phase::Network => Phase::Network,
            session::Phase::Open => Phase::Open,
            session::Phase::Closed => Phase::Closed,
        }
    }

    /// The word of `rxlane.pppoe/1`.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Discovery => "discovery",
            Phase::Lcp => "lcp",
            Phase::Auth => "auth",
            Phase::Network => "network",
            Phase::Open => "open",
            Phase::Closed => "closed",
        }
    }
}

/// How it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub phase: Phase,
    pub(crate) has_line: bool,
    /// Service-Name that is asked for; empty for any.
    pub service: Vec<u8>,
    /// The session, also before packets may flow.
    pub session: Option<Opened>,
    /// How long packets have been able to flow.
    pub uptime: Option<Duration>,
    /// Attempts since it was made, this one among them.
    pub attempts: u32,
    pub failures: u32,
    /// Sessions that discovery found since it was made.
    pub sessions: u32,
    pub waits: Option<Duration>,
    /// How the last attempt or session ended that was not ended by this end, and how long ago.
    pub last_error: Option<(Duration, End)>,
    /// The last answer to an echo request.
    pub round_trip: Option<RoundTrip>,
    /// Packets of the session stage that did not count.
    pub ignored: Ignored,
}

impl Client {
    /// Whether there is a session in which the protocol of this family is being negotiated: it is not up, and neither end has
    /// given it up.
    pub fn awaits(&self, family: Family) -> bool {
        matches!(&self.state, State::Session(running) if running.session.awaits(family))
    }

    pub fn status(&self, now: Time) -> Status {
        let running = match &self.state {
            State::Session(running) => Some(running),
            _ => None,
        };
        let phase = match &self.state {
            State::Idle | State::Waiting { .. } | State::NoLine => Phase::Closed,
            State::Discovery => Phase::Discovery,
            State::Session(running) => Phase::of(running.session.phase()),
        };
        let waits = match self.state {
            State::Waiting { until } => Some(until.saturating_sub(now)),
            _ => None,
        };
        Status {
            phase,
            has_line: self.has_line,
            service: self.config.discovery.service.clone(),
            session: running.map(|running| running.opened()),
            uptime: running.and_then(|running| running.opened).map(|opened| now.saturating_sub(opened)),
            attempts: self.attempts,
            failures: self.failures,
            sessions: self.sessions,
            waits,
            last_error: self.last.as_ref().map(|(at, end)| (now.saturating_sub(*at), end.clone())),
            round_trip: running.and_then(|running| running.session.round_trip()),
            ignored: self.ignored,
        }
    }
}
