//! One PPP session over PPPoE, of either end: LCP, authentication, then IPCP and IPV6CP side by side.

mod action;
mod claim;
mod closed;
mod config;
mod handover;
mod keepalive;
mod machine;
mod network;
mod notice;
mod refusal;

pub use action::Action;
pub use claim::{Claim, Evidence, Proof, Verdict};
pub use closed::{Closed, Demanded, NetworkFailure, Waiting};
pub use config::{
    Concentrator, Config, Family, Grant, Host, Ipv4, Ipv6, Method, Phase, Role, RoundTrip, Timers,
};
pub use handover::Handover;
pub use notice::Notice;

use crate::step::{Budget, Step};
use crate::{Random, Time};
use machine::Machine;
use std::fmt;
use std::sync::Arc;

/// One session. It keeps less than a kilobyte besides the configuration, which is shared, and for the time of authentication
/// the subscriber's claim.
///
/// Every wait has an end: LCP takes at most twice as long as its requests, authentication and the network protocols as long as
/// [`Timers`] says, termination as long as its requests. An open session ends when the peer is silent.
pub struct Session {
    config: Arc<Config>,
    machine: Machine,
    budget: Budget,
}

impl Session {
    /// A session that was agreed to by discovery. `mru`: the most bytes of PPP payload that this end receives, 1492, or up
    /// to 1500 and more where discovery agreed to it by PPP-Max-Payload (RFC 4638); at least 128.
    pub fn new(config: Arc<Config>, mru: u16) -> Session {
        Session { config, machine: Machine::new(mru), budget: Budget::default() }
    }

    /// Sends the first Configure-Request.
    pub fn start(&mut self, now: Time, random: &mut dyn Random, actions: &mut Vec<Action>) {
        let (machine, mut step) = self.step(now, random, actions);
        machine.start(&mut step);
    }

    /// Takes a packet: the payload of a PPPoE session packet, cut to its length, which begins with the PPP protocol field. IP
    /// packets may come here and do no more than prove that the peer is there.
    pub fn receive(&mut self, now: Time, packet: &[u8], random: &mut dyn Random, actions: &mut Vec<Action>) {
        let (machine, mut step) = self.step(now, random, actions);
        machine.receive(packet, &mut step);
    }

    /// When [`Session::tick`] wants to be called next. `None`: not before something was received.
    pub fn deadline(&self) -> Option<Time> {
        self.machine.deadline(&self.config)
    }

    /// Does what is due. Behind it the deadline lies after `now`.
    pub fn tick(&mut self, now: Time, random: &mut dyn Random, actions: &mut Vec<Action>) {
        let (machine, mut step) = self.step(now, random, actions);
        machine.tick(&mut step);
    }

    /// Reports that data was received from the peer, so that no echo is needed. It only moves the deadline away.
    pub(crate) fn heard(&mut self, now: Time) {
        self.machine.keepalive.heard(now);
    }

    /// Concentrator: whether the verdict on this claim, or on any, is awaited.
    pub(crate) fn awaits_verdict(&self, claim: Option<&Claim>) -> bool {
        self.machine.awaits_verdict(claim)
    }

    /// Concentrator: answers [`Action::Authenticate`]. A verdict on a claim that is not pending any more does nothing.
    pub fn authenticated(
        &mut self,
        now: Time,
        verdict: Verdict,
        random: &mut dyn Random,
        actions: &mut Vec<Action>,
    ) {
        let (machine, mut step) = self.step(now, random, actions);
        machine.authenticated(verdict, &mut step);
    }

    /// Ends the session: Terminate-Request, and [`Action::Closed`] when it was answered or time ran out. Who cannot wait for
    /// that drops the session and sends a PADT.
    pub fn close(&mut self, now: Time, random: &mut dyn Random, actions: &mut Vec<Action>) {
        let (machine, mut step) = self.step(now, random, actions);
        machine.terminate(Closed::Requested, &mut step);
    }

    /// Why it is being terminated: this end's reason, or what the peer's Terminate-Request said. `None`: it is not, or it is over.
    pub(crate) fn ending(&self) -> Option<&Closed> {
        self.machine.reason.as_deref()
    }

    pub fn phase(&self) -> Phase {
        self.machine.phase
    }

    /// Addresses, while IPv4 is up.
    pub fn ipv4(&self) -> Option<Ipv4> {
        self.machine.ipv4()
    }

    /// Interface identifiers, while IPv6 is up.
    pub fn ipv6(&self) -> Option<Ipv6> {
        self.machine.ipv6()
    }

    /// The most bytes of PPP payload that may be sent to the peer: its MRU, and never more than this end's.
    pub fn peer_mru(&self) -> u16 {
        self.machine.lcp.peer_mru()
    }

    /// Whether the protocol of this family is being negotiated: it is not up, and neither end has given it up.
    pub(crate) fn awaits(&self, family: Family) -> bool {
        self.machine.awaits(family)
    }

    /// The last round trip that was measured by an echo.
    pub(crate) fn round_trip(&self) -> Option<RoundTrip> {
        self.machine.keepalive.round_trip
    }

    fn step<'a>(
        &'a mut self,
        now: Time,
        random: &'a mut dyn Random,
        actions: &'a mut Vec<Action>,
    ) -> (&'a mut Machine, Step<'a>) {
        let Session { config, machine, budget } = self;
        let limit = machine.limit();
        (machine, Step { now, random, actions, config, budget, limit })
    }
}

impl fmt::Debug for Session {
    /// Leaves out what a claim that waits for its verdict carries: with PAP, the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("phase", &self.phase())
            .field("ipv4", &self.ipv4())
            .field("ipv6", &self.ipv6())
            .field("deadline", &self.deadline())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 60,000 sessions have 256 MiB together with everything else about them.
    #[test]
    fn a_session_is_small() {
        let size = size_of::<Session>();
        assert!(size <= 512, "{size} bytes");
    }
}
