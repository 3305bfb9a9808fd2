//! The network protocols of a session: their negotiation, and what became of it. One's end is not the other's.

use super::machine::Machine;
use super::{Action, Closed, Family, NetworkFailure, Phase, Remark, Role};
use crate::automaton::{Event, State};
use crate::control::ControlError;
use crate::ipcp::Ipcp;
use crate::ipv6cp::Ipv6cp;
use crate::negotiation::{Failure, Layer, Negotiation, Signal};
use crate::turn::Turn;
use wire::emit::ControlPacket;
use wire::ppp::PppProtocol;

/// How long the network protocols' coming up is counted, seconds.
const RISES_WITHIN: u32 = 60;

pub struct Network<L> {
    pub negotiation: Negotiation,
    pub layer: L,
    pub failure: NetworkFailure,
    /// Whether it was said to be up.
    pub up: bool,
}

impl<L: Layer> Network<L> {
    /// Begins to negotiate.
    pub fn open(mut layer: L, turn: &mut Turn<'_>) -> Network<L> {
        layer.reset(turn);
        let mut negotiation = Negotiation::new();
        negotiation.event(&mut layer, Event::Open, turn);
        negotiation.event(&mut layer, Event::Up, turn);
        Network { negotiation, layer, failure: NetworkFailure::NoAnswer, up: false }
    }

    /// One of another process: up, or ended so that the peer may begin it anew.
    pub fn resumed(layer: L, up: bool, identifier: u8) -> Network<L> {
        let state = if up { State::Opened } else { State::Stopped };
        let negotiation = Negotiation::resumed(state, identifier);
        Network { negotiation, layer, failure: NetworkFailure::NoAnswer, up }
    }

    /// Whether it has ended and this end will not try again by itself.
    pub fn is_finished(&self) -> bool {
        matches!(self.negotiation.state(), State::Stopped | State::Closed | State::Closing)
    }

    /// Whether it may still come up without the peer beginning it anew.
    pub(crate) fn is_awaited(&self) -> bool {
        !self.up && !self.is_finished()
    }

    /// Ends it for `failure`.
    pub fn fail(&mut self, failure: NetworkFailure, event: Event, turn: &mut Turn<'_>) -> Option<Signal> {
        self.failure = failure;
        self.negotiation.event(&mut self.layer, event, turn)
    }
}

impl Machine {
    /// A host's network protocols.
    pub(super) fn begin_network(&mut self, turn: &mut Turn<'_>) {
        if let Role::Host(host) = &turn.config.role {
            self.ipcp = host.ipv4.map(|address| Network::open(Ipcp::host(address, host.dns), turn));
            self.ipv6cp = host.ipv6.map(|identifier| Network::open(Ipv6cp::new(identifier, 0), turn));
        }
        self.networks_begun(turn);
    }

    pub(super) fn networks_begun(&mut self, turn: &mut Turn<'_>) {
        self.until = Some(turn.now.saturating_add(turn.timers().network));
        self.enter(Phase::Network, turn);
        if self.ipcp.is_none() && self.ipv6cp.is_none() {
            self.terminate(self.no_network(), turn);
        }
    }

    pub(super) fn network_packet(
        &mut self,
        protocol: PppProtocol,
        data: &[u8],
        turn: &mut Turn<'_>,
    ) -> Result<(), ControlError> {
        match (protocol, &mut self.ipcp, &mut self.ipv6cp) {
            (PppProtocol::IPCP, Some(network), _) => {
                let packet = ControlPacket::parse(data)?;
                let signal = network.negotiation.receive(&mut network.layer, packet, turn)?;
                self.network_signal(Family::Ipv4, signal, turn);
            }
            (PppProtocol::IPV6CP, _, Some(network)) => {
                let packet = ControlPacket::parse(data)?;
                let signal = network.negotiation.receive(&mut network.layer, packet, turn)?;
                self.network_signal(Family::Ipv6, signal, turn);
            }
            (PppProtocol::IPV4 | PppProtocol::IPV6, ..) => {}
            _ => self.reject_protocol(protocol, data, turn),
        }
        Ok(())
    }

    pub(super) fn fail(
        &mut self,
        family: Family,
        failure: NetworkFailure,
        event: Event,
        turn: &mut Turn<'_>,
    ) {
        let signal = match family {
            Family::Ipv4 => self.ipcp.as_mut().and_then(|network| network.fail(failure, event, turn)),
            Family::Ipv6 => self.ipv6cp.as_mut().and_then(|network| network.fail(failure, event, turn)),
        };
        self.network_signal(family, signal, turn);
    }

    pub(super) fn network_signal(&mut self, family: Family, signal: Option<Signal>, turn: &mut Turn<'_>) {
        match signal {
            None => {}
            Some(Signal::Up) => self.network_up(family, turn),
            Some(Signal::Down) => self.network_down(family, turn),
            Some(Signal::Failed(failure)) => {
                let failure = match failure {
                    Failure::NoAddress => NetworkFailure::NoAddress,
                    Failure::PeersAddress => NetworkFailure::PeersAddress,
                    _ => NetworkFailure::NoAgreement,
                };
                self.fail(family, failure, Event::Close, turn);
                self.network_ended(family, turn);
            }
            Some(Signal::Finished) => self.network_ended(family, turn),
        }
    }

    /// Counts one more network protocol that came up; whether that is too often. Each time costs the machine addresses, routes
    /// and name servers, and RFC 1661 section 4.6 counts only what does not come up.
    fn rises_too_often(&mut self, turn: &Turn<'_>) -> bool {
        // Time counts from the start of the program.
        let now = u32::try_from(turn.now.as_secs()).unwrap_or(u32::MAX);
        if now.saturating_sub(self.rises_since) >= RISES_WITHIN || self.rises == 0 {
            (self.rises, self.rises_since) = (0, now);
        }
        self.rises = self.rises.saturating_add(1);
        u32::from(self.rises) > turn.timers().max_configure.saturating_mul(2).max(2)
    }

    pub(super) fn network_up(&mut self, family: Family, turn: &mut Turn<'_>) {
        if self.rises_too_often(turn) {
            self.terminate(Closed::NetworkRestarts { times: self.rises.into() }, turn);
            return;
        }
        match (family, &mut self.ipcp, &mut self.ipv6cp) {
            (Family::Ipv4, Some(network), _) => {
                (network.up, network.failure) = (true, NetworkFailure::NoAnswer);
                turn.actions.push(Action::Up4(network.layer.result()));
            }
            (Family::Ipv6, _, Some(network)) => {
                (network.up, network.failure) = (true, NetworkFailure::NoAnswer);
                turn.actions.push(Action::Up6(network.layer.result()));
            }
            _ => {}
        }
        self.until = None;
        self.restarts = 0;
        self.enter(Phase::Open, turn);
        // Later ones only when there is silence.
        self.keepalive.measure(turn.now);
    }

    pub(super) fn network_down(&mut self, family: Family, turn: &mut Turn<'_>) {
        let (up, failure, negotiation) = match (family, &mut self.ipcp, &mut self.ipv6cp) {
            (Family::Ipv4, Some(network), _) => (&mut network.up, &mut network.failure, &network.negotiation),
            (Family::Ipv6, _, Some(network)) => (&mut network.up, &mut network.failure, &network.negotiation),
            _ => return,
        };
        if negotiation.state() == State::Stopping && *failure == NetworkFailure::NoAnswer {
            *failure = NetworkFailure::PeerEnded;
        }
        if std::mem::replace(up, false) {
            turn.actions.push(Action::Down(family));
        }
        if !self.is_up() && self.phase == Phase::Open {
            self.until = Some(turn.now.saturating_add(turn.timers().network));
            self.enter(Phase::Network, turn);
        }
    }

    /// Whether the protocol of this family may still come up without the peer beginning it anew.
    pub(super) fn awaits(&self, family: Family) -> bool {
        match family {
            Family::Ipv4 => self.ipcp.as_ref().is_some_and(Network::is_awaited),
            Family::Ipv6 => self.ipv6cp.as_ref().is_some_and(Network::is_awaited),
        }
    }

    pub(super) fn is_up(&self) -> bool {
        self.ipcp.as_ref().is_some_and(|network| network.up)
            || self.ipv6cp.as_ref().is_some_and(|network| network.up)
    }

    /// One protocol has ended or failed. The session goes on with the other, and while the peer may begin this one anew.
    pub(super) fn network_ended(&mut self, family: Family, turn: &mut Turn<'_>) {
        let of = |failure: Option<NetworkFailure>, finished: Option<bool>| {
            let hopeless = matches!(
                failure,
                Some(
                    NetworkFailure::Rejected
                        | NetworkFailure::NoAgreement
                        | NetworkFailure::NoAddress
                        | NetworkFailure::PeersAddress
                )
            );
            (failure, finished.is_none_or(|finished| finished && hopeless))
        };
        let (failure4, hopeless4) = of(
            self.ipcp.as_ref().map(|network| network.failure),
            self.ipcp.as_ref().map(Network::is_finished),
        );
        let (failure6, hopeless6) = of(
            self.ipv6cp.as_ref().map(|network| network.failure),
            self.ipv6cp.as_ref().map(Network::is_finished),
        );
        if let Some(failure) = if family == Family::Ipv4 { failure4 } else { failure6 } {
            turn.remark(Remark::NetworkFailed { family, failure });
        }
        if !self.is_up() && hopeless4 && hopeless6 && self.phase != Phase::Closed {
            self.terminate(self.no_network(), turn);
        }
    }

    pub(super) fn tick_networks(&mut self, turn: &mut Turn<'_>) {
        if let Some(network) = &mut self.ipcp {
            let signal = network.negotiation.tick(&mut network.layer, turn);
            self.network_signal(Family::Ipv4, signal, turn);
        }
        if let Some(network) = &mut self.ipv6cp {
            let signal = network.negotiation.tick(&mut network.layer, turn);
            self.network_signal(Family::Ipv6, signal, turn);
        }
    }

    pub(super) fn networks_down(&mut self, turn: &mut Turn<'_>) {
        for (up, family) in [
            (self.ipcp.take().is_some_and(|network| network.up), Family::Ipv4),
            (self.ipv6cp.take().is_some_and(|network| network.up), Family::Ipv6),
        ] {
            if up {
                turn.actions.push(Action::Down(family));
            }
        }
    }

    pub(super) fn no_network(&self) -> Closed {
        Closed::NoNetwork {
            ipv4: self.ipcp.as_ref().map(|network| network.failure),
            ipv6: self.ipv6cp.as_ref().map(|network| network.failure),
        }
    }
}
