//! One session of the table.

use super::Id;
use crate::Time;
use crate::concentrator::accounting::{Ended, Traffic};
use crate::concentrator::network::Network;
use crate::discovery::message::Line;
use crate::discovery::place::Place;
use crate::session::Session;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use wire::ethernet::MacAddress;

/// What a session was given.
#[derive(Clone, Debug, Default)]
pub(in crate::concentrator) struct Lease {
    pub(in crate::concentrator) address: Option<Ipv4Addr>,
    pub(in crate::concentrator) prefix: Option<Network>,
    /// Interface identifiers, own and the subscriber's.
    pub(in crate::concentrator) identifiers: Option<(u64, u64)>,
    pub(in crate::concentrator) routes: Box<[Network]>,
}

/// One session.
#[derive(Debug)]
pub(in crate::concentrator) struct Entry {
    pub(in crate::concentrator) id: Id,
    pub(in crate::concentrator) session: Session,
    pub(in crate::concentrator) place: Place,
    pub(in crate::concentrator) station: MacAddress,
    pub(in crate::concentrator) number: u16,
    pub(in crate::concentrator) cookie: u64,
    /// What an access node says of the line.
    pub(in crate::concentrator) line: Option<Arc<Line>>,
    /// Most bytes of PPP payload that discovery agreed to.
    pub(in crate::concentrator) max_payload: u16,
    pub(in crate::concentrator) since: Time,
    /// Nothing came up yet, or all of it is being negotiated again since the time that follows.
    pub(in crate::concentrator) is_half_open: bool,
    pub(in crate::concentrator) half_open_since: Time,
    /// When the first network protocol came up.
    pub(in crate::concentrator) opened: Option<Time>,
    /// When the next interim record is due.
    pub(in crate::concentrator) interim: Option<Time>,
    pub(in crate::concentrator) user: Option<Arc<[u8]>>,
    pub(in crate::concentrator) lease: Lease,
    pub(in crate::concentrator) is_installed: bool,
    /// Names the session in accounting records, in the next process, too.
    pub(in crate::concentrator) accounting: u64,
    /// How long it was open in processes before this one.
    pub(in crate::concentrator) earlier: Duration,
    /// What it transferred before it was last installed.
    pub(in crate::concentrator) before: Traffic,
    pub(in crate::concentrator) closing: Option<Ended>,
}

impl Entry {
    pub(in crate::concentrator) fn new(
        session: Session,
        place: Place,
        station: MacAddress,
        number: u16,
        now: Time,
    ) -> Entry {
        Entry {
            id: Id::new(0, 0),
            session,
            place,
            station,
            number,
            cookie: 0,
            line: None,
            max_payload: crate::discovery::PLAIN_PAYLOAD,
            since: now,
            is_half_open: true,
            half_open_since: now,
            opened: None,
            interim: None,
            user: None,
            lease: Lease::default(),
            is_installed: false,
            accounting: 0,
            earlier: Duration::ZERO,
            before: Traffic::default(),
            closing: None,
        }
    }

    /// Time since the first network protocol came up, in whichever process; `None`: none has.
    pub(in crate::concentrator) fn uptime(&self, now: Time) -> Option<Duration> {
        self.opened.map(|opened| now.saturating_sub(opened).saturating_add(self.earlier))
    }

    /// The user; empty while nobody has said who they are.
    pub(in crate::concentrator) fn user(&self) -> &[u8] {
        self.user.as_deref().unwrap_or_default()
    }
}
