//! One PPP session over PPPoE, of either end: LCP, authentication, then IPCP and IPV6CP side by side.

mod action;
mod claim;
mod closed;
mod config;
mod remark;

pub use action::Action;
pub use claim::{Claim, Proof, Verdict};
pub use closed::{Closed, Demanded, NetworkFailure, Waiting};
pub use config::{
    Concentrator, Config, Family, Grant, Host, Ipv4, Ipv6, Method, Phase, Role, RoundTrip, Timers,
};
pub use remark::Remark;

use crate::{Random, Time};
use std::sync::Arc;

/// One session.
#[derive(Debug)]
pub struct Session {
    config: Arc<Config>,
    mru: u16,
    phase: Phase,
}

impl Session {
    /// A session that was agreed to by discovery. `mru`: the most octets of PPP payload that this end receives, 1492, or up
    /// to 1500 and more where discovery agreed to it by PPP-Max-Payload (RFC 4638).
    pub fn new(config: Arc<Config>, mru: u16, random: &mut dyn Random) -> Session {
        let _ = random;
        Session { config, mru, phase: Phase::Lcp }
    }

    /// Sends the first Configure-Request.
    pub fn start(&mut self, now: Time, random: &mut dyn Random, actions: &mut Vec<Action>) {
        let _ = (now, random, actions);
    }

    /// Takes a packet: the payload of a PPPoE session packet, cut to its length, which begins with the PPP protocol field. IP
    /// packets may come here and do no more than [`Session::heard`].
    pub fn receive(&mut self, now: Time, packet: &[u8], random: &mut dyn Random, actions: &mut Vec<Action>) {
        let _ = (now, packet, random, actions);
    }

    /// When [`Session::tick`] wants to be called next.
    pub fn deadline(&self) -> Option<Time> {
        None
    }

    /// Does what is due.
    pub fn tick(&mut self, now: Time, random: &mut dyn Random, actions: &mut Vec<Action>) {
        let _ = (now, random, actions);
    }

    /// Tells that data was received from the peer, so that no echo is needed.
    pub fn heard(&mut self, now: Time) {
        let _ = now;
    }

    /// Concentrator: answers [`Action::Authenticate`]. A verdict on a claim that is not pending any more does nothing.
    pub fn authenticated(
        &mut self,
        now: Time,
        verdict: Verdict,
        random: &mut dyn Random,
        actions: &mut Vec<Action>,
    ) {
        let _ = (now, verdict, random, actions);
    }

    /// Ends the session: Terminate-Request, and [`Action::Closed`] when it was answered or time ran out.
    pub fn close(&mut self, now: Time, random: &mut dyn Random, actions: &mut Vec<Action>) {
        let _ = (now, random, actions, &self.config);
    }

    /// Where it is.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Addresses, while IPv4 is up.
    pub fn ipv4(&self) -> Option<Ipv4> {
        None
    }

    /// Interface identifiers, while IPv6 is up.
    pub fn ipv6(&self) -> Option<Ipv6> {
        None
    }

    /// The most octets of PPP payload that may be sent to the peer: its MRU, and never more than this end's.
    pub fn peer_mru(&self) -> u16 {
        self.mru
    }

    /// The last round trip that was measured by an echo.
    pub fn round_trip(&self) -> Option<RoundTrip> {
        None
    }
}
