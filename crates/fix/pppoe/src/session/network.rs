//! The network protocols of a session: their negotiation, and what became of it. One's end is not the other's.

use super::machine::Machine;
use super::{Action, Closed, Family, Ipv4, Ipv6, NetworkFailure, Notice, Phase, Role};
use crate::automaton::{Event, State};
use crate::control::Parsed;
use crate::ipcp::Ipcp;
use crate::ipv6cp::Ipv6cp;
use crate::negotiation::{Failure, Layer, Negotiation, Signal};
use crate::step::Step;
use wire::emit::ControlPacket;
use wire::ppp::PppProtocol;

/// How long the network protocols' coming up is counted, seconds.
const RISES_WITHIN: u32 = 60;

pub(super) enum Layer3 {
    Ipv4(Ipcp),
    Ipv6(Ipv6cp),
}

impl Layer3 {
    fn as_layer(&mut self) -> &mut dyn Layer {
        match self {
            Layer3::Ipv4(ipcp) => ipcp,
            Layer3::Ipv6(ipv6cp) => ipv6cp,
        }
    }
}

pub(super) struct Network {
    pub(super) negotiation: Negotiation,
    layer: Layer3,
    failure: NetworkFailure,
    /// Whether it was reported to be up.
    pub(super) up: bool,
}

impl Network {
    /// Begins to negotiate.
    pub(super) fn open(layer: Layer3, step: &mut Step<'_>) -> Network {
        let negotiation = Negotiation::new();
        let mut network = Network { negotiation, layer, failure: NetworkFailure::NoAnswer, up: false };
        network.layer.as_layer().reset(step);
        network.event(Event::Open, step);
        network.event(Event::Up, step);
        network
    }

    /// One of another process: up, or ended so that the peer may begin it anew.
    pub(super) fn resumed(layer: Layer3, up: bool, identifier: u8) -> Network {
        let state = if up { State::Opened } else { State::Stopped };
        let negotiation = Negotiation::resumed(state, identifier);
        Network { negotiation, layer, failure: NetworkFailure::NoAnswer, up }
    }

    fn event(&mut self, event: Event, step: &mut Step<'_>) -> Option<Signal> {
        self.negotiation.event(self.layer.as_layer(), event, step)
    }

    /// What came of it, while it is up.
    fn result(&self) -> Option<Action> {
        self.up.then(|| match &self.layer {
            Layer3::Ipv4(ipcp) => Action::Up4(ipcp.result()),
            Layer3::Ipv6(ipv6cp) => Action::Up6(ipv6cp.result()),
        })
    }

    /// Whether it has ended and this end will not try again by itself.
    fn is_finished(&self) -> bool {
        matches!(self.negotiation.state(), State::Stopped | State::Closed | State::Closing)
    }

    /// Whether it has ended for something that the peer will hardly change.
    fn is_hopeless(&self) -> bool {
        use NetworkFailure::{NoAddress, NoAgreement, PeersAddress, Rejected};
        self.is_finished() && matches!(self.failure, Rejected | NoAgreement | NoAddress | PeersAddress)
    }
}

impl Machine {
    pub(super) fn network(&self, family: Family) -> Option<&Network> {
        self.networks.get(family as usize)?.as_ref()
    }

    fn network_mut(&mut self, family: Family) -> Option<&mut Network> {
        self.networks.get_mut(family as usize)?.as_mut()
    }

    pub(super) fn ipv4(&self) -> Option<Ipv4> {
        match self.network(Family::Ipv4)?.result()? {
            Action::Up4(ipv4) => Some(ipv4),
            _ => None,
        }
    }

    pub(super) fn ipv6(&self) -> Option<Ipv6> {
        match self.network(Family::Ipv6)?.result()? {
            Action::Up6(ipv6) => Some(ipv6),
            _ => None,
        }
    }

    /// A host's network protocols.
    pub(super) fn begin_network(&mut self, step: &mut Step<'_>) {
        if let Role::Host(host) = &step.config.role {
            let ipcp = host.ipv4.map(|address| Layer3::Ipv4(Ipcp::host(address, host.dns)));
            let ipv6cp = host.ipv6.map(|identifier| Layer3::Ipv6(Ipv6cp::new(identifier, 0)));
            self.begin_networks([ipcp, ipv6cp], step);
        }
    }

    pub(super) fn begin_networks(&mut self, layers: [Option<Layer3>; 2], step: &mut Step<'_>) {
        self.networks = layers.map(|layer| layer.map(|layer| Network::open(layer, step)));
        self.until = Some(step.now.saturating_add(step.timers().network));
        self.enter(Phase::Network, step);
        if self.networks.iter().all(Option::is_none) {
            self.terminate(self.no_network(), step);
        }
    }

    pub(super) fn network_packet(
        &mut self,
        protocol: PppProtocol,
        data: &[u8],
        step: &mut Step<'_>,
    ) -> Parsed<()> {
        let family = match protocol {
            PppProtocol::IPV4 | PppProtocol::IPV6 => return Ok(()),
            PppProtocol::IPCP => Some(Family::Ipv4),
            PppProtocol::IPV6CP => Some(Family::Ipv6),
            _ => None,
        };
        match family.and_then(|family| Some((family, self.network_mut(family)?))) {
            Some((family, Network { negotiation, layer, .. })) => {
                let packet = ControlPacket::parse(data)?;
                let signal = negotiation.receive(layer.as_layer(), packet, step)?;
                self.network_signal(family, signal, step);
            }
            None => self.reject_protocol(protocol, data, step),
        }
        Ok(())
    }

    pub(super) fn fail(
        &mut self,
        family: Family,
        failure: NetworkFailure,
        event: Event,
        step: &mut Step<'_>,
    ) {
        if let Some(network) = self.network_mut(family) {
            network.failure = failure;
            let signal = network.event(event, step);
            self.network_signal(family, signal, step);
        }
    }

    fn network_signal(&mut self, family: Family, signal: Option<Signal>, step: &mut Step<'_>) {
        match signal {
            None => {}
            Some(Signal::Up) => self.network_up(family, step),
            Some(Signal::Down) => self.network_down(family, step),
            Some(Signal::Failed(failure)) => {
                let failure = match failure {
                    Failure::NoAddress => NetworkFailure::NoAddress,
                    Failure::PeersAddress => NetworkFailure::PeersAddress,
                    _ => NetworkFailure::NoAgreement,
                };
                self.fail(family, failure, Event::Close, step);
                self.network_ended(family, step);
            }
            Some(Signal::Finished) => self.network_ended(family, step),
        }
    }

    /// Counts one more network protocol that came up; whether that is too often. Each time costs the machine addresses, routes
    /// and name servers, and RFC 1661 section 4.6 counts only what does not come up.
    fn rises_too_often(&mut self, step: &Step<'_>) -> bool {
        // Time counts from the start of the program.
        let now = u32::try_from(step.now.as_secs()).unwrap_or(u32::MAX);
        if now.saturating_sub(self.rises_since) >= RISES_WITHIN || self.rises == 0 {
            (self.rises, self.rises_since) = (0, now);
        }
        self.rises = self.rises.saturating_add(1);
        u32::from(self.rises) > step.timers().max_configure.saturating_mul(2).max(2)
    }

    fn network_up(&mut self, family: Family, step: &mut Step<'_>) {
        if self.rises_too_often(step) {
            self.terminate(Closed::NetworkRestarts { times: self.rises.into() }, step);
            return;
        }
        if let Some(network) = self.network_mut(family) {
            (network.up, network.failure) = (true, NetworkFailure::NoAnswer);
            step.actions.extend(network.result());
        }
        self.until = None;
        self.restarts = 0;
        self.enter(Phase::Open, step);
        // Later ones only when there is silence.
        self.keepalive.measure(step.now);
    }

    fn network_down(&mut self, family: Family, step: &mut Step<'_>) {
        let Some(network) = self.network_mut(family) else { return };
        if network.negotiation.state() == State::Stopping && network.failure == NetworkFailure::NoAnswer {
            network.failure = NetworkFailure::PeerEnded;
        }
        if std::mem::replace(&mut network.up, false) {
            step.actions.push(Action::Down(family));
        }
        if !self.is_up() && self.phase == Phase::Open {
            self.until = Some(step.now.saturating_add(step.timers().network));
            self.enter(Phase::Network, step);
        }
    }

    /// Whether the protocol of this family may still come up without the peer beginning it anew.
    pub(super) fn awaits(&self, family: Family) -> bool {
        self.network(family).is_some_and(|network| !network.up && !network.is_finished())
    }

    fn is_up(&self) -> bool {
        self.networks.iter().flatten().any(|network| network.up)
    }

    /// One protocol has ended or failed. The session goes on with the other, and while the peer may begin this one anew.
    fn network_ended(&mut self, family: Family, step: &mut Step<'_>) {
        if let Some(failure) = self.network(family).map(|network| network.failure) {
            step.notice(Notice::NetworkFailed { family, failure });
        }
        let is_hopeless = self.networks.iter().flatten().all(Network::is_hopeless);
        if is_hopeless && !self.is_up() && self.phase != Phase::Closed {
            self.terminate(self.no_network(), step);
        }
    }

    pub(super) fn tick_networks(&mut self, step: &mut Step<'_>) {
        for family in [Family::Ipv4, Family::Ipv6] {
            if let Some(Network { negotiation, layer, .. }) = self.network_mut(family) {
                let signal = negotiation.tick(layer.as_layer(), step);
                self.network_signal(family, signal, step);
            }
        }
    }

    pub(super) fn networks_down(&mut self, step: &mut Step<'_>) {
        for (network, family) in self.networks.iter_mut().zip([Family::Ipv4, Family::Ipv6]) {
            if network.take().is_some_and(|network| network.up) {
                step.actions.push(Action::Down(family));
            }
        }
    }

    pub(super) fn no_network(&self) -> Closed {
        let failure = |family| self.network(family).map(|network| network.failure);
        Closed::NoNetwork { ipv4: failure(Family::Ipv4), ipv6: failure(Family::Ipv6) }
    }
}
