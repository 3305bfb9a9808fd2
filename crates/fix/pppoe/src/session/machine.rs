//! The phases of a session (RFC 1661 section 3.2): which packet goes to which protocol, and what follows when one of them is
//! up, down or finished.

use super::keepalive::{Due, Keepalive};
use super::network::{Layer3, Network};
use super::{Action, Closed, Config, Family, NetworkFailure, Phase, Remark, Role, Verdict};
use crate::Time;
use crate::authentication::{Authenticator, Outcome, Peer};
use crate::automaton::{Event, State};
use crate::control::{ControlError, code};
use crate::ipcp::Ipcp;
use crate::ipv6cp::Ipv6cp;
use crate::lcp::Lcp;
use crate::negotiation::{Failure, Layer, Negotiation, Signal};
use crate::turn::Turn;
use wire::emit::ControlPacket;
use wire::ppp::{Compression, PppProtocol, protocol};

pub(super) enum Authentication {
    Peer(Peer),
    Authenticator(Authenticator),
}

pub(super) struct Machine {
    pub(crate) phase: Phase,
    pub(crate) lcp: Lcp,
    pub(crate) lcp_negotiation: Negotiation,
    pub(crate) authentication: Option<Authentication>,
    /// By [`Family`]; `None`: not wanted, or not yet.
    pub(crate) networks: [Option<Network>; 2],
    pub(crate) keepalive: Keepalive,
    /// When the phase has lasted too long.
    pub(crate) until: Option<Time>,
    pub(crate) reason: Option<Box<Closed>>,
    pub(crate) over: bool,
    /// The peer sent an LCP packet.
    pub(crate) heard: bool,
    /// How often the peer started LCP anew since the session was open last.
    pub(crate) restarts: u16,
    /// How often a network protocol came up since `rises_since`, seconds.
    pub(crate) rises: u16,
    pub(crate) rises_since: u32,
    pub(crate) serial: u32,
    pub(crate) reject_identifier: u8,
}

impl Machine {
    pub(crate) fn new(mru: u16) -> Machine {
        Machine {
            phase: Phase::Lcp,
            lcp: Lcp::new(mru),
            lcp_negotiation: Negotiation::new(),
            authentication: None,
            networks: [None, None],
            keepalive: Keepalive::default(),
            until: None,
            reason: None,
            over: false,
            heard: false,
            restarts: 0,
            rises: 0,
            rises_since: 0,
            serial: 0,
            reject_identifier: 0,
        }
    }

    pub(crate) fn deadline(&self, config: &Config) -> Option<Time> {
        if self.over {
            return None;
        }
        let authentication = match &self.authentication {
            Some(Authentication::Peer(peer)) => peer.deadline,
            Some(Authentication::Authenticator(authenticator)) => authenticator.deadline,
            None => None,
        };
        let networks = self.networks.iter().flatten().map(|network| network.negotiation.deadline);
        let others = [
            self.lcp_negotiation.deadline,
            authentication,
            self.until,
            self.keepalive.deadline(&config.timers),
        ];
        networks.chain(others).flatten().min()
    }

    /// Bytes behind the protocol field that the peer receives. What negotiates LCP has to be received whatever was agreed
    /// to (RFC 1661 section 6.1), and PPPoE carries no more than discovery agreed to.
    pub(crate) fn limit(&self) -> u16 {
        if self.lcp_negotiation.is_open() { self.lcp.peer_mru() } else { self.lcp.own_mru() }
    }

    pub(crate) fn start(&mut self, turn: &mut Turn<'_>) {
        if self.lcp_negotiation.state() != State::Initial || self.over {
            return;
        }
        self.lcp.reset(turn);
        self.until = lcp_limit(turn);
        self.lcp_negotiation.event(&mut self.lcp, Event::Open, turn);
        self.lcp_negotiation.event(&mut self.lcp, Event::Up, turn);
    }

    pub(crate) fn tick(&mut self, turn: &mut Turn<'_>) {
        if self.over {
            return;
        }
        if self.until.is_some_and(|until| turn.now >= until) {
            self.until = None;
            let reason = self.too_long(turn);
            self.terminate(reason, turn);
        }
        let signal = self.lcp_negotiation.tick(&mut self.lcp, turn);
        self.lcp_signal(signal, turn);
        self.tick_authentication(turn);
        self.tick_networks(turn);
        match self.keepalive.tick(turn.now, turn.timers()) {
            Due::Nothing => {}
            Due::Echo => {
                if self.keepalive.unanswered > 1 {
                    turn.remark(Remark::EchoLost);
                }
                self.send_echo(turn);
            }
            Due::Death => {
                self.reason = Some(Box::new(Closed::PeerSilent { echoes: self.keepalive.unanswered }));
                self.networks_down(turn);
                self.finish(turn);
            }
        }
    }

    fn tick_authentication(&mut self, turn: &mut Turn<'_>) {
        match (&mut self.authentication, &turn.config.role) {
            (Some(Authentication::Peer(peer)), Role::Host(host)) => peer.tick(host, turn),
            (Some(Authentication::Authenticator(authenticator)), Role::Concentrator(concentrator)) => {
                authenticator.tick(concentrator, turn);
            }
            _ => {}
        }
    }

    /// Why the phase that lasted too long did.
    fn too_long(&self, turn: &Turn<'_>) -> Closed {
        match (self.phase, &self.authentication) {
            (Phase::Auth, Some(Authentication::Peer(peer))) => {
                Closed::AuthenticationTimeout { waiting: peer.waiting() }
            }
            (Phase::Auth, Some(Authentication::Authenticator(authenticator))) => {
                Closed::AuthenticationTimeout { waiting: authenticator.waiting() }
            }
            (Phase::Network, _) => self.no_network(),
            _ => self.no_lcp(turn),
        }
    }

    fn no_lcp(&self, turn: &Turn<'_>) -> Closed {
        if let (Some(demanded), Role::Host(host)) = (self.lcp.not_allowed, &turn.config.role) {
            let allowed = if host.user.is_empty() { Vec::new() } else { host.methods.clone() };
            return Closed::MethodNotAllowed { demanded, allowed };
        }
        if self.lcp_negotiation.any_answer {
            Closed::NoAgreement
        } else {
            Closed::NoAnswer { requests: turn.timers().max_configure, heard: self.heard }
        }
    }

    pub(crate) fn receive(&mut self, packet: &[u8], turn: &mut Turn<'_>) {
        if self.over {
            return;
        }
        let (protocol, data) = match protocol(packet, Compression::Forbidden) {
            Ok((protocol, length)) => (protocol, packet.get(length..).unwrap_or_default()),
            Err(_) => {
                turn.remark(Remark::BadProtocolField { first: packet.first().copied().unwrap_or(0) });
                return;
            }
        };
        if let Err(error) = self.dispatch(protocol, data, turn) {
            turn.remark(Remark::Malformed { protocol, error });
        }
    }

    fn dispatch(
        &mut self,
        protocol: PppProtocol,
        data: &[u8],
        turn: &mut Turn<'_>,
    ) -> Result<(), ControlError> {
        match protocol {
            PppProtocol::LCP => {
                let packet = ControlPacket::parse(data)?;
                self.heard = true;
                self.lcp_packet(packet, turn)?;
            }
            PppProtocol::PAP | PppProtocol::CHAP => {
                self.keepalive.heard(turn.now);
                if matches!(self.phase, Phase::Auth | Phase::Network | Phase::Open) {
                    self.authentication_packet(protocol, ControlPacket::parse(data)?, turn)?;
                }
            }
            _ => {
                self.keepalive.heard(turn.now);
                // RFC 1661 section 3.5: "All other packets received during this phase MUST be silently discarded."
                if matches!(self.phase, Phase::Network | Phase::Open) {
                    self.network_packet(protocol, data, turn)?;
                }
            }
        }
        Ok(())
    }

    fn lcp_packet(&mut self, packet: ControlPacket<'_>, turn: &mut Turn<'_>) -> Result<(), ControlError> {
        match packet.code {
            code::PROTOCOL_REJECT => {
                self.keepalive.heard(turn.now);
                self.protocol_rejected(packet, turn)
            }
            code::ECHO_REQUEST..=code::TIME_REMAINING => self.maintain(packet, turn),
            _ => {
                self.keepalive.heard(turn.now);
                let unopened = !self.lcp_negotiation.is_open() && self.reason.is_none();
                let rejected = packet.data.first().copied().filter(|_| packet.code == code::CODE_REJECT);
                let signal = self.lcp_negotiation.receive(&mut self.lcp, packet, turn)?;
                if packet.code == code::TERMINATE_REQUEST && self.reason.is_none() {
                    self.peer_ends(packet.data, unopened, turn);
                }
                if let (Some(Signal::Down | Signal::Finished), Some(code)) = (signal, rejected) {
                    let rejected = Closed::PeerRejected { protocol: PppProtocol::LCP, code: Some(code) };
                    self.reason.get_or_insert_with(|| Box::new(rejected));
                }
                self.lcp_signal(signal, turn);
                Ok(())
            }
        }
    }

    /// A Terminate-Request. One that comes before LCP is open ends the session at once: the automaton would go on asking a peer
    /// that has just said no.
    fn peer_ends(&mut self, message: &[u8], unopened: bool, turn: &mut Turn<'_>) {
        let reason = match self.no_lcp(turn) {
            reason @ Closed::MethodNotAllowed { .. } if self.phase < Phase::Open => reason,
            _ => Closed::PeerEnded { message: message.to_vec(), phase: self.phase },
        };
        self.reason = Some(Box::new(reason));
        if unopened {
            self.finish(turn);
        }
    }

    fn protocol_rejected(
        &mut self,
        packet: ControlPacket<'_>,
        turn: &mut Turn<'_>,
    ) -> Result<(), ControlError> {
        let Some(rejected) = packet.data.first_chunk::<2>() else {
            return Err(ControlError::Data { code: packet.code, found: packet.data.len(), least: 2 });
        };
        let protocol = PppProtocol(u16::from_be_bytes(*rejected));
        if !self.lcp_negotiation.is_open() {
            return Ok(());
        }
        match protocol {
            PppProtocol::LCP | PppProtocol::PAP | PppProtocol::CHAP
                if protocol == PppProtocol::LCP || self.phase == Phase::Auth =>
            {
                self.terminate(Closed::PeerRejected { protocol, code: None }, turn);
            }
            PppProtocol::IPCP | PppProtocol::IPV4 => {
                self.fail(Family::Ipv4, NetworkFailure::Rejected, Event::RejectFatal, turn);
            }
            PppProtocol::IPV6CP | PppProtocol::IPV6 => {
                self.fail(Family::Ipv6, NetworkFailure::Rejected, Event::RejectFatal, turn);
            }
            _ => {}
        }
        Ok(())
    }

    fn lcp_signal(&mut self, signal: Option<Signal>, turn: &mut Turn<'_>) {
        match signal {
            None => {}
            Some(Signal::Up) => self.lcp_up(turn),
            Some(Signal::Down) => self.lcp_down(turn),
            Some(Signal::Finished) => {
                if self.reason.is_none() {
                    self.reason = Some(Box::new(self.no_lcp(turn)));
                }
                self.finish(turn);
            }
            Some(Signal::Failed(failure)) => {
                let reason = match (failure, self.no_lcp(turn)) {
                    (Failure::Looped, _) => Closed::Looped,
                    (Failure::MethodRefused, _) => Closed::MethodRefused,
                    (_, reason @ Closed::MethodNotAllowed { .. }) => reason,
                    _ => Closed::NoAgreement,
                };
                self.terminate(reason, turn);
            }
        }
    }

    fn lcp_up(&mut self, turn: &mut Turn<'_>) {
        turn.limit = self.lcp.peer_mru();
        self.keepalive.start(turn.now);
        if self.lcp.peer.mru < self.lcp.own_mru() {
            turn.remark(Remark::PeerMru { mru: self.lcp.peer.mru });
        }
        match (&turn.config.role, self.lcp.peer.method) {
            (Role::Host(_), None) => self.begin_network(turn),
            (Role::Host(host), Some(method)) => {
                self.begin_authentication(turn);
                self.authentication = Some(Authentication::Peer(Peer::start(method, host, turn)));
            }
            (Role::Concentrator(concentrator), _) => {
                let demand = self.lcp.demand;
                // Only who demands nothing lets a subscriber in without a name.
                if demand.is_none() && !concentrator.methods.is_empty() {
                    self.terminate(Closed::MethodRefused, turn);
                    return;
                }
                self.begin_authentication(turn);
                self.serial = self.serial.wrapping_add(1);
                let (authenticator, claim) = Authenticator::start(demand, concentrator, self.serial, turn);
                self.authentication = Some(Authentication::Authenticator(authenticator));
                turn.actions.extend(claim.map(Action::Authenticate));
            }
        }
    }

    fn begin_authentication(&mut self, turn: &mut Turn<'_>) {
        self.until = Some(turn.now.saturating_add(turn.timers().authentication));
        self.enter(Phase::Auth, turn);
    }

    /// LCP is not open any more: everything above it is as if it had never been, and who the peer is has to be shown anew.
    fn lcp_down(&mut self, turn: &mut Turn<'_>) {
        self.networks_down(turn);
        self.authentication = None;
        self.keepalive.stop();
        turn.limit = self.lcp.own_mru();
        if matches!(self.lcp_negotiation.state(), State::Stopping | State::Closing) {
            self.until = None;
            self.enter(Phase::Closed, turn);
            return;
        }
        self.restarts = self.restarts.saturating_add(1);
        turn.remark(Remark::LcpRestarted);
        self.until = lcp_limit(turn);
        self.enter(Phase::Lcp, turn);
        if u32::from(self.restarts) > turn.timers().max_configure {
            self.terminate(Closed::Restarts { times: self.restarts.into() }, turn);
        }
    }

    fn authentication_packet(
        &mut self,
        protocol: PppProtocol,
        packet: ControlPacket<'_>,
        turn: &mut Turn<'_>,
    ) -> Result<(), ControlError> {
        match (&mut self.authentication, &turn.config.role) {
            (Some(Authentication::Peer(peer)), Role::Host(host)) => {
                match peer.receive(protocol, packet, host, turn)? {
                    Outcome::Pending => {}
                    Outcome::Accepted(message) => {
                        if !message.is_empty() {
                            turn.remark(Remark::Welcome { message });
                        }
                        if self.phase == Phase::Auth {
                            self.begin_network(turn);
                        }
                    }
                    Outcome::Over(reason) => self.terminate(reason, turn),
                }
            }
            (Some(Authentication::Authenticator(authenticator)), _) => {
                let claim = authenticator.receive(protocol, packet, self.serial, turn)?;
                turn.actions.extend(claim.map(Action::Authenticate));
            }
            _ => {}
        }
        Ok(())
    }

    pub(crate) fn authenticated(&mut self, verdict: Verdict, turn: &mut Turn<'_>) {
        let Some(Authentication::Authenticator(authenticator)) = &mut self.authentication else { return };
        if self.over || self.phase != Phase::Auth {
            return;
        }
        match verdict {
            Verdict::Accepted { grant, proof, message } => {
                if authenticator.accept(&proof, &message, turn) {
                    let ipcp = Ipcp::concentrator(&grant).map(Layer3::Ipv4);
                    let ipv6cp = grant.ipv6.map(|(own, peer)| Layer3::Ipv6(Ipv6cp::new(own, peer)));
                    self.begin_networks([ipcp, ipv6cp], turn);
                }
            }
            Verdict::Refused { message } => {
                if let Some(user) = authenticator.refuse(&message, turn) {
                    self.terminate(Closed::SubscriberRefused { user }, turn);
                }
            }
        }
    }

    /// Begins to end the session: what was up is down, and the peer is told. The first reason counts.
    pub(super) fn terminate(&mut self, reason: Closed, turn: &mut Turn<'_>) {
        if self.over || self.phase == Phase::Closed {
            return;
        }
        self.reason.get_or_insert_with(|| Box::new(reason));
        self.networks_down(turn);
        self.authentication = None;
        self.keepalive.stop();
        self.until = None;
        self.enter(Phase::Closed, turn);
        let signal = self.lcp_negotiation.event(&mut self.lcp, Event::Close, turn);
        // Not started, or nobody to tell it to.
        if signal == Some(Signal::Finished) || !self.lcp_negotiation.state().has_timer() {
            self.finish(turn);
        }
    }

    pub(super) fn finish(&mut self, turn: &mut Turn<'_>) {
        if std::mem::replace(&mut self.over, true) {
            return;
        }
        self.networks_down(turn);
        self.authentication = None;
        self.enter(Phase::Closed, turn);
        let reason = self.reason.take().map_or_else(|| self.no_lcp(turn), |reason| *reason);
        turn.actions.push(Action::Closed(reason));
    }

    pub(super) fn enter(&mut self, phase: Phase, turn: &mut Turn<'_>) {
        if self.phase != phase {
            self.phase = phase;
            turn.actions.push(Action::Phase(phase));
        }
    }
}

/// LCP alone can take twice as long as its requests, with all its Naks; then it is over, whatever the peer still sends.
fn lcp_limit(turn: &Turn<'_>) -> Option<Time> {
    let timers = turn.timers();
    let limit = timers.restart.saturating_mul(timers.max_configure.saturating_mul(2).max(1));
    Some(turn.now.saturating_add(limit))
}
