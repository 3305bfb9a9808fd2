//! The phases of a session (RFC 1661 section 3.2): which packet goes to which protocol, and what follows when one of them is
//! up, down or finished.

use super::keepalive::{Due, Keepalive};
use super::network::{Layer3, Network};
use super::{Action, Claim, Closed, Config, Family, NetworkFailure, Notice, Phase, Role, Verdict};
use crate::Time;
use crate::authentication::{Authenticator, Outcome, Peer};
use crate::automaton::{Event, State};
use crate::control::{ControlError, Parsed, code};
use crate::ipcp::Ipcp;
use crate::ipv6cp::Ipv6cp;
use crate::lcp::Lcp;
use crate::negotiation::{Failure, Layer, Negotiation, Signal};
use crate::step::Step;
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
    /// By [`Family`]; `None`: not requested, or not yet.
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

    pub(crate) fn start(&mut self, step: &mut Step<'_>) {
        if self.lcp_negotiation.state() != State::Initial || self.over {
            return;
        }
        self.lcp.reset(step);
        self.until = lcp_limit(step);
        self.lcp_negotiation.event(&mut self.lcp, Event::Open, step);
        self.lcp_negotiation.event(&mut self.lcp, Event::Up, step);
    }

    pub(crate) fn tick(&mut self, step: &mut Step<'_>) {
        if self.over {
            return;
        }
        if self.until.is_some_and(|until| step.now >= until) {
            self.until = None;
            let reason = self.too_long(step);
            self.terminate(reason, step);
        }
        let signal = self.lcp_negotiation.tick(&mut self.lcp, step);
        self.lcp_signal(signal, step);
        self.tick_authentication(step);
        self.tick_networks(step);
        match self.keepalive.tick(step.now, step.timers()) {
            Due::Nothing => {}
            Due::Echo => {
                if self.keepalive.unanswered > 1 {
                    step.notice(Notice::EchoLost);
                }
                self.send_echo(step);
            }
            Due::Death => {
                self.reason = Some(Box::new(Closed::PeerSilent { echoes: self.keepalive.unanswered }));
                self.networks_down(step);
                self.finish(step);
            }
        }
    }

    fn tick_authentication(&mut self, step: &mut Step<'_>) {
        match (&mut self.authentication, &step.config.role) {
            (Some(Authentication::Peer(peer)), Role::Host(host)) => peer.tick(host, step),
            (Some(Authentication::Authenticator(authenticator)), Role::Concentrator(concentrator)) => {
                authenticator.tick(concentrator, step);
            }
            _ => {}
        }
    }

    /// Why the phase that lasted too long did.
    fn too_long(&self, step: &Step<'_>) -> Closed {
        match (self.phase, &self.authentication) {
            (Phase::Auth, Some(Authentication::Peer(peer))) => {
                Closed::AuthenticationTimeout { waiting: peer.waiting() }
            }
            (Phase::Auth, Some(Authentication::Authenticator(authenticator))) => {
                Closed::AuthenticationTimeout { waiting: authenticator.waiting() }
            }
            (Phase::Network, _) => self.no_network(),
            _ => self.no_lcp(step),
        }
    }

    fn no_lcp(&self, step: &Step<'_>) -> Closed {
        if let (Some(demanded), Role::Host(host)) = (self.lcp.not_allowed, &step.config.role) {
            let allowed = if host.user.is_empty() { Vec::new() } else { host.methods.clone() };
            return Closed::MethodNotAllowed { demanded, allowed };
        }
        if self.lcp_negotiation.any_answer {
            Closed::NoAgreement
        } else {
            Closed::NoAnswer { requests: step.timers().max_configure, heard: self.heard }
        }
    }

    pub(crate) fn receive(&mut self, packet: &[u8], step: &mut Step<'_>) {
        if self.over {
            return;
        }
        let (protocol, data) = match protocol(packet, Compression::Forbidden) {
            Ok((protocol, length)) => (protocol, packet.get(length..).unwrap_or_default()),
            Err(_) => {
                step.notice(Notice::BadProtocolField { first: packet.first().copied().unwrap_or(0) });
                return;
            }
        };
        if let Err(error) = self.dispatch(protocol, data, step) {
            step.notice(Notice::Malformed { protocol, error });
        }
    }

    fn dispatch(&mut self, protocol: PppProtocol, data: &[u8], step: &mut Step<'_>) -> Parsed<()> {
        match protocol {
            PppProtocol::LCP => {
                let packet = ControlPacket::parse(data)?;
                self.heard = true;
                self.lcp_packet(packet, step)?;
            }
            PppProtocol::PAP | PppProtocol::CHAP => {
                self.keepalive.heard(step.now);
                if matches!(self.phase, Phase::Auth | Phase::Network | Phase::Open) {
                    self.authentication_packet(protocol, ControlPacket::parse(data)?, step)?;
                }
            }
            _ => {
                self.keepalive.heard(step.now);
                // RFC 1661 section 3.5: "All other packets received during this phase MUST be silently discarded."
                if matches!(self.phase, Phase::Network | Phase::Open) {
                    self.network_packet(protocol, data, step)?;
                }
            }
        }
        Ok(())
    }

    fn lcp_packet(&mut self, packet: ControlPacket<'_>, step: &mut Step<'_>) -> Parsed<()> {
        match packet.code {
            code::PROTOCOL_REJECT => {
                self.keepalive.heard(step.now);
                self.protocol_rejected(packet, step)
            }
            code::ECHO_REQUEST..=code::TIME_REMAINING => self.maintain(packet, step),
            _ => {
                self.keepalive.heard(step.now);
                let unopened = !self.lcp_negotiation.is_open() && self.reason.is_none();
                let rejected = packet.data.first().copied().filter(|_| packet.code == code::CODE_REJECT);
                let signal = self.lcp_negotiation.receive(&mut self.lcp, packet, step)?;
                if packet.code == code::TERMINATE_REQUEST && self.reason.is_none() {
                    self.peer_ends(packet.data, unopened, step);
                }
                if let (Some(Signal::Down | Signal::Finished), Some(code)) = (signal, rejected) {
                    let rejected = Closed::PeerRejected { protocol: PppProtocol::LCP, code: Some(code) };
                    self.reason.get_or_insert_with(|| Box::new(rejected));
                }
                self.lcp_signal(signal, step);
                Ok(())
            }
        }
    }

    /// A Terminate-Request. One that comes before LCP is open ends the session at once: the automaton would go on asking a peer
    /// that has just said no.
    fn peer_ends(&mut self, message: &[u8], unopened: bool, step: &mut Step<'_>) {
        let reason = match self.no_lcp(step) {
            reason @ Closed::MethodNotAllowed { .. } if self.phase < Phase::Open => reason,
            _ => Closed::PeerEnded { message: message.to_vec(), phase: self.phase },
        };
        self.reason = Some(Box::new(reason));
        if unopened {
            self.finish(step);
        }
    }

    fn protocol_rejected(&mut self, packet: ControlPacket<'_>, step: &mut Step<'_>) -> Parsed<()> {
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
                self.terminate(Closed::PeerRejected { protocol, code: None }, step);
            }
            PppProtocol::IPCP | PppProtocol::IPV4 => {
                self.fail(Family::Ipv4, NetworkFailure::Rejected, Event::RejectFatal, step);
            }
            PppProtocol::IPV6CP | PppProtocol::IPV6 => {
                self.fail(Family::Ipv6, NetworkFailure::Rejected, Event::RejectFatal, step);
            }
            _ => {}
        }
        Ok(())
    }

    fn lcp_signal(&mut self, signal: Option<Signal>, step: &mut Step<'_>) {
        match signal {
            None => {}
            Some(Signal::Up) => self.lcp_up(step),
            Some(Signal::Down) => self.lcp_down(step),
            Some(Signal::Finished) => {
                if self.reason.is_none() {
                    self.reason = Some(Box::new(self.no_lcp(step)));
                }
                self.finish(step);
            }
            Some(Signal::Failed(failure)) => {
                let reason = match (failure, self.no_lcp(step)) {
                    (Failure::Looped, _) => Closed::Looped,
                    (Failure::MethodRefused, _) => Closed::MethodRefused,
                    (_, reason @ Closed::MethodNotAllowed { .. }) => reason,
                    _ => Closed::NoAgreement,
                };
                self.terminate(reason, step);
            }
        }
    }

    fn lcp_up(&mut self, step: &mut Step<'_>) {
        step.limit = self.lcp.peer_mru();
        self.keepalive.start(step.now);
        if self.lcp.peer.mru < self.lcp.own_mru() {
            step.notice(Notice::PeerMru { mru: self.lcp.peer.mru });
        }
        match (&step.config.role, self.lcp.peer.method) {
            (Role::Host(_), None) => self.begin_network(step),
            (Role::Host(host), Some(method)) => {
                self.begin_authentication(step);
                self.authentication = Some(Authentication::Peer(Peer::start(method, host, step)));
            }
            (Role::Concentrator(concentrator), _) => {
                let demand = self.lcp.demand;
                // Only who demands nothing lets a subscriber in without a name.
                if demand.is_none() && !concentrator.methods.is_empty() {
                    self.terminate(Closed::MethodRefused, step);
                    return;
                }
                self.begin_authentication(step);
                self.serial = self.serial.wrapping_add(1);
                let (authenticator, claim) = Authenticator::start(demand, concentrator, self.serial, step);
                self.authentication = Some(Authentication::Authenticator(authenticator));
                step.actions.extend(claim.map(Action::Authenticate));
            }
        }
    }

    fn begin_authentication(&mut self, step: &mut Step<'_>) {
        self.until = Some(step.now.saturating_add(step.timers().authentication));
        self.enter(Phase::Auth, step);
    }

    /// LCP is not open any more: everything above it is as if it had never been, and who the peer is has to be proved anew.
    fn lcp_down(&mut self, step: &mut Step<'_>) {
        self.networks_down(step);
        self.authentication = None;
        self.keepalive.stop();
        step.limit = self.lcp.own_mru();
        if matches!(self.lcp_negotiation.state(), State::Stopping | State::Closing) {
            self.until = None;
            self.enter(Phase::Closed, step);
            return;
        }
        self.restarts = self.restarts.saturating_add(1);
        step.notice(Notice::LcpRestarted);
        self.until = lcp_limit(step);
        self.enter(Phase::Lcp, step);
        if u32::from(self.restarts) > step.timers().max_configure {
            self.terminate(Closed::Restarts { times: self.restarts.into() }, step);
        }
    }

    fn authentication_packet(
        &mut self,
        protocol: PppProtocol,
        packet: ControlPacket<'_>,
        step: &mut Step<'_>,
    ) -> Parsed<()> {
        match (&mut self.authentication, &step.config.role) {
            (Some(Authentication::Peer(peer)), Role::Host(host)) => {
                match peer.receive(protocol, packet, host, step)? {
                    Outcome::Pending => {}
                    Outcome::Accepted(message) => {
                        if !message.is_empty() {
                            step.notice(Notice::Welcome { message });
                        }
                        if self.phase == Phase::Auth {
                            self.begin_network(step);
                        }
                    }
                    Outcome::Over(reason) => self.terminate(reason, step),
                }
            }
            (Some(Authentication::Authenticator(authenticator)), _) => {
                let claim = authenticator.receive(protocol, packet, step)?;
                step.actions.extend(claim.map(Action::Authenticate));
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether the verdict on this claim, or on any, is awaited.
    pub(crate) fn awaits_verdict(&self, claim: Option<&Claim>) -> bool {
        !self.over
            && self.phase == Phase::Auth
            && matches!(&self.authentication, Some(Authentication::Authenticator(one)) if one.awaits_verdict(claim))
    }

    pub(crate) fn authenticated(&mut self, verdict: Verdict, step: &mut Step<'_>) {
        let Some(Authentication::Authenticator(authenticator)) = &mut self.authentication else { return };
        if self.over || self.phase != Phase::Auth {
            return;
        }
        match verdict {
            Verdict::Accepted { grant, proof, message } => {
                if authenticator.accept(&proof, &message, step) {
                    let ipcp = Ipcp::concentrator(&grant).map(Layer3::Ipv4);
                    let ipv6cp = grant.ipv6.map(|(own, peer)| Layer3::Ipv6(Ipv6cp::new(own, peer)));
                    self.begin_networks([ipcp, ipv6cp], step);
                }
            }
            Verdict::Refused { message } => {
                if let Some(user) = authenticator.refuse(&message, step) {
                    self.terminate(Closed::SubscriberRefused { user }, step);
                }
            }
        }
    }

    /// Begins to end the session: what was up is down, and the peer is notified. The first reason counts.
    pub(super) fn terminate(&mut self, reason: Closed, step: &mut Step<'_>) {
        if self.over || self.phase == Phase::Closed {
            return;
        }
        self.reason.get_or_insert_with(|| Box::new(reason));
        self.networks_down(step);
        self.authentication = None;
        self.keepalive.stop();
        self.until = None;
        self.enter(Phase::Closed, step);
        let signal = self.lcp_negotiation.event(&mut self.lcp, Event::Close, step);
        // Not started, or nobody to report it to.
        if signal == Some(Signal::Finished) || !self.lcp_negotiation.state().has_timer() {
            self.finish(step);
        }
    }

    pub(super) fn finish(&mut self, step: &mut Step<'_>) {
        if std::mem::replace(&mut self.over, true) {
            return;
        }
        self.networks_down(step);
        self.authentication = None;
        self.enter(Phase::Closed, step);
        let reason = self.reason.take().map_or_else(|| self.no_lcp(step), |reason| *reason);
        step.actions.push(Action::Closed(reason));
    }

    pub(super) fn enter(&mut self, phase: Phase, step: &mut Step<'_>) {
        if self.phase != phase {
            self.phase = phase;
            step.actions.push(Action::Phase(phase));
        }
    }
}

/// LCP alone can take twice as long as its requests, with all its Naks; then it is over, whatever the peer still sends.
fn lcp_limit(step: &Step<'_>) -> Option<Time> {
    let timers = step.timers();
    let limit = timers.restart.saturating_mul(timers.max_configure.saturating_mul(2).max(1));
    Some(step.now.saturating_add(limit))
}
