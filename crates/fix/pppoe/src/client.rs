//! The whole client without I/O: discovery, session, and again when it ends.
//!
//! # Contract
//!
//! * [`Client::start`] begins with discovery. What it finds becomes a session; what ends, by either end or by silence, is begun
//!   anew after a wait that doubles with each failure in a row, drawn at random from the upper half of it, so that not all of a
//!   street come back at once. A session that has stood for a while counts as success.
//! * A failure that waiting hardly fixes (a wrong password, a service that nobody has) waits longer, since operators lock
//!   accounts that are tried too often.
//! * A session ends with a PADT, unless the concentrator has sent one; after it no PPP goes out (RFC 2516 section 5.5).
//! * While the line is down nothing is sent for discovery. A session outlives a line that is down for a short time: its echoes
//!   decide.
//! * Packets of the session count from its concentrator, with its number, to this host. Everything else is counted.
//! * There is one session at a time, and no more kept than [`Host`] and [`Session`] keep.

mod config;
mod end;

pub use crate::session::Phase;
pub use config::{Config, Reconnect};
pub use end::{End, Notice};

use crate::discovery::Packet;
use crate::discovery::host::{self, Found, Host};
use crate::framing::{unwrapped, wrapped};
use crate::session::{self, Family, Ipv4, Ipv6, RoundTrip, Session};
use crate::{Random, Time};
use std::sync::Arc;
use std::time::Duration;
use wire::ethernet::MacAddress;
use wire::pppoe::Stage;

/// What is to be done, in the order given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    Send {
        /// Its EtherType: 0x8863 or 0x8864.
        stage: Stage,
        destination: MacAddress,
        payload: Vec<u8>,
    },
    Phase(Phase),
    /// A first network protocol is up: packets may flow.
    Opened(Opened),
    /// Another network protocol came up, or one went down, or an address changed.
    Changed(Opened),
    /// An attempt, or a session, is over. Packets may not flow any more.
    Closed {
        end: End,
        /// Whether [`Action::Opened`] had come.
        was_open: bool,
    },
    /// The next attempt is made after this time.
    Waits(Duration),
    Notice(Notice),
    /// It was closed as requested, or given up; nothing follows until it is started again.
    Ended,
}

/// A session that carries packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    pub session: u16,
    pub concentrator: MacAddress,
    pub ac_name: Vec<u8>,
    /// What came of IPCP; `None`: it is not up.
    pub ipv4: Option<Ipv4>,
    /// What came of IPV6CP; `None`: it is not up.
    pub ipv6: Option<Ipv6>,
    /// Longest IP packet that may be sent, bytes.
    pub mtu: u16,
    /// Longest IP packet that may come, bytes.
    pub mru: u16,
}

/// Packets that came and did not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ignored {
    /// Of the session stage: from another station, to another one, or of another session.
    pub foreign: u64,
    /// Of the session stage: they contradict themselves.
    pub malformed: u64,
}

/// How it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub phase: Phase,
    pub(crate) has_line: bool,
    /// Service-Name that is requested; empty for any.
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

/// The machine.
#[derive(Debug)]
pub struct Client {
    config: Arc<Config>,
    own: MacAddress,
    host: Host,
    state: State,
    phase: Phase,
    has_line: bool,
    is_closing: bool,
    attempts: u32,
    failures: u32,
    sessions: u32,
    last: Option<(Time, End)>,
    ignored: Ignored,
}

#[derive(Debug)]
enum State {
    Idle,
    Waiting { until: Time },
    NoLine,
    Discovery,
    Session(Box<Running>),
}

#[derive(Debug)]
struct Running {
    session: Session,
    found: Found,
    opened: Option<Time>,
    ipv4: Option<Ipv4>,
    ipv6: Option<Ipv6>,
}

impl Running {
    fn opened(&self) -> Opened {
        let mru = self.found.max_payload;
        Opened {
            session: self.found.session,
            concentrator: self.found.offer.concentrator,
            ac_name: self.found.offer.ac_name.clone(),
            ipv4: self.ipv4,
            ipv6: self.ipv6,
            mtu: mru.min(self.session.peer_mru()),
            mru,
        }
    }
}

/// Where actions go, with what they are made by.
struct Step<'a> {
    now: Time,
    random: &'a mut dyn Random,
    actions: &'a mut Vec<Action>,
}

impl Client {
    /// A client that is not started, on a line that is there. `own`: MAC address of the interface.
    pub fn new(config: Arc<Config>, own: MacAddress) -> Client {
        let host = Host::new(Arc::new(config.discovery.clone()), own);
        Client {
            config,
            own,
            host,
            state: State::Idle,
            phase: Phase::Closed,
            has_line: true,
            is_closing: false,
            attempts: 0,
            failures: 0,
            sessions: 0,
            last: None,
            ignored: Ignored::default(),
        }
    }

    /// Begins, unless it has begun.
    pub fn start(&mut self, now: Time, random: &mut dyn Random, actions: &mut Vec<Action>) {
        if !matches!(self.state, State::Idle) {
            return;
        }
        (self.is_closing, self.failures) = (false, 0);
        self.attempt(&mut Step { now, random, actions });
    }

    /// Ends the session in an orderly way: Terminate-Request, its answer, PADT, [`Action::Ended`]. Called a second time, or
    /// without a session, it ends at once.
    pub fn close(&mut self, now: Time, random: &mut dyn Random, actions: &mut Vec<Action>) {
        let step = &mut Step { now, random, actions };
        match &mut self.state {
            State::Idle => {}
            State::Session(running) if !self.is_closing => {
                self.is_closing = true;
                let mut did = Vec::new();
                running.session.close(now, step.random, &mut did);
                self.of_session(did, step);
            }
            _ => {
                self.is_closing = true;
                self.over(End::Requested, step);
            }
        }
    }

    /// Takes a packet of this line.
    pub fn receive(
        &mut self,
        now: Time,
        stage: Stage,
        packet: Packet<'_>,
        random: &mut dyn Random,
        actions: &mut Vec<Action>,
    ) {
        let step = &mut Step { now, random, actions };
        match stage {
            Stage::Discovery => {
                let mut did = Vec::new();
                let ended = self.host.receive(now, packet, &mut did);
                self.of_host(did, step);
                if let Some(terminated) = ended {
                    let ending = match &self.state {
                        State::Session(running) => running.session.ending(),
                        _ => None,
                    };
                    let end = End::of_padt(terminated, ending);
                    self.over(end, step);
                }
            }
            Stage::Session => self.negotiated(packet, step),
        }
    }

    fn negotiated(&mut self, packet: Packet<'_>, step: &mut Step<'_>) {
        let State::Session(running) = &mut self.state else {
            self.ignored.foreign += 1;
            return;
        };
        let Ok((session, bytes)) = unwrapped(packet.payload) else {
            self.ignored.malformed += 1;
            return;
        };
        let expected = (running.found.offer.concentrator, self.own, running.found.session);
        if (packet.source, packet.destination, session) != expected {
            self.ignored.foreign += 1;
            return;
        }
        let mut did = Vec::new();
        running.session.receive(step.now, bytes, step.random, &mut did);
        self.of_session(did, step);
    }

    /// Reports that data of the session was received, so that no echo is needed.
    pub fn heard(&mut self, now: Time) {
        if let State::Session(running) = &mut self.state {
            running.session.heard(now);
        }
    }

    /// Reports that the line below came or went.
    pub fn line(&mut self, now: Time, is_up: bool, random: &mut dyn Random, actions: &mut Vec<Action>) {
        if is_up == self.has_line {
            return;
        }
        self.has_line = is_up;
        let step = &mut Step { now, random, actions };
        // Before the first try there is no session that could be kept, and the caller says what it waits for.
        if is_up || !matches!(self.state, State::Idle) {
            step.actions.push(Action::Notice(if is_up { Notice::LineUp } else { Notice::LineDown }));
        }
        match self.state {
            State::NoLine if is_up => {
                self.failures = 0;
                self.wait(self.config.reconnect.first, step);
            }
            State::Discovery | State::Waiting { .. } if !is_up => {
                self.host.stop();
                self.state = State::NoLine;
                self.enter(Phase::Closed, step);
            }
            _ => {}
        }
    }

    /// Reports that the interface has another MAC address: the session belonged to the one before.
    pub fn set_own(
        &mut self,
        now: Time,
        own: MacAddress,
        random: &mut dyn Random,
        actions: &mut Vec<Action>,
    ) {
        if own == self.own {
            return;
        }
        self.own = own;
        self.host = Host::new(Arc::new(self.config.discovery.clone()), own);
        if matches!(self.state, State::Discovery | State::Session(_)) {
            self.over(End::AddressChanged, &mut Step { now, random, actions });
        }
    }

    /// When [`Client::tick`] is to be called.
    pub fn deadline(&self) -> Option<Time> {
        match &self.state {
            State::Idle | State::NoLine => None,
            State::Waiting { until } => Some(*until),
            State::Discovery => self.host.deadline(),
            State::Session(running) => running.session.deadline(),
        }
    }

    /// Does what is due.
    pub fn tick(&mut self, now: Time, random: &mut dyn Random, actions: &mut Vec<Action>) {
        let step = &mut Step { now, random, actions };
        match &mut self.state {
            State::Waiting { until } if *until <= now => self.attempt(step),
            State::Discovery => {
                let mut did = Vec::new();
                self.host.tick(now, &mut did);
                self.of_host(did, step);
            }
            State::Session(running) => {
                let mut did = Vec::new();
                running.session.tick(now, step.random, &mut did);
                self.of_session(did, step);
            }
            State::Idle | State::Waiting { .. } | State::NoLine => {}
        }
    }

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
            State::Session(running) => running.session.phase(),
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

    /// What came and did not count.
    pub fn ignored(&self) -> (&host::Ignored, &Ignored) {
        (self.host.ignored(), &self.ignored)
    }

    fn attempt(&mut self, step: &mut Step<'_>) {
        if !self.has_line {
            self.state = State::NoLine;
            return;
        }
        self.attempts += 1;
        self.state = State::Discovery;
        self.enter(Phase::Discovery, step);
        let mut did = Vec::new();
        self.host.start(step.now, step.random, &mut did);
        self.of_host(did, step);
    }

    fn enter(&mut self, phase: Phase, step: &mut Step<'_>) {
        if phase != self.phase {
            self.phase = phase;
            step.actions.push(Action::Phase(phase));
        }
    }

    fn of_host(&mut self, did: Vec<host::Action>, step: &mut Step<'_>) {
        for action in did {
            match action {
                host::Action::Send { destination, payload } => {
                    step.actions.push(Action::Send { stage: Stage::Discovery, destination, payload });
                }
                host::Action::Chosen { offer, others } => {
                    step.actions.push(Action::Notice(Notice::Chosen { offer, others }));
                }
                host::Action::Found(found) => self.begin(*found, step),
                host::Action::Failed(failure) => self.over(End::NotFound(failure), step),
            }
        }
    }

    fn begin(&mut self, found: Found, step: &mut Step<'_>) {
        if let Some(requested) = found.requested_payload.filter(|_| found.fell_back()) {
            let (offer, agreed) = (found.offer.clone(), found.max_payload);
            step.actions.push(Action::Notice(Notice::Payload { offer, requested, agreed }));
        }
        self.sessions += 1;
        self.enter(Phase::Lcp, step);
        let mut session = Session::new(self.config.session.clone(), found.max_payload);
        let mut did = Vec::new();
        session.start(step.now, step.random, &mut did);
        self.state =
            State::Session(Box::new(Running { session, found, opened: None, ipv4: None, ipv6: None }));
        self.of_session(did, step);
    }

    fn of_session(&mut self, did: Vec<session::Action>, step: &mut Step<'_>) {
        for action in did {
            let State::Session(running) = &mut self.state else { return };
            let is_change = match action {
                session::Action::Send(packet) => {
                    let Found { session, offer, .. } = &running.found;
                    let (destination, payload) = (offer.concentrator, wrapped(*session, &packet));
                    step.actions.push(Action::Send { stage: Stage::Session, destination, payload });
                    false
                }
                session::Action::Up4(ipv4) => running.ipv4.replace(ipv4) != Some(ipv4),
                session::Action::Up6(ipv6) => running.ipv6.replace(ipv6) != Some(ipv6),
                session::Action::Down(Family::Ipv4) => running.ipv4.take().is_some(),
                session::Action::Down(Family::Ipv6) => running.ipv6.take().is_some(),
                session::Action::Phase(phase) => {
                    self.enter(phase, step);
                    continue;
                }
                session::Action::Notice(notice) => {
                    step.actions.push(Action::Notice(Notice::Session(notice)));
                    false
                }
                session::Action::Closed(closed) => return self.over(End::Session(closed), step),
                // A host gives no verdict.
                session::Action::Authenticate(_) => false,
            };
            if is_change {
                let opened = running.opened();
                step.actions.push(match running.opened {
                    Some(_) => Action::Changed(opened),
                    None => Action::Opened(opened),
                });
                running.opened.get_or_insert(step.now);
            }
        }
    }

    /// An attempt or a session is over.
    fn over(&mut self, end: End, step: &mut Step<'_>) {
        let before = std::mem::replace(&mut self.state, State::Idle);
        // Nothing is sent where there is no session any more.
        let mut did = Vec::new();
        self.host.terminate(end.for_peer(), &mut did);
        self.of_host(did, step);
        let opened = match &before {
            State::Session(running) => running.opened,
            _ => None,
        };
        let reconnect = self.config.reconnect;
        let stood = opened.is_some_and(|opened| step.now.saturating_sub(opened) >= reconnect.stable);
        self.failures = if stood { 1 } else { self.failures.saturating_add(1) };
        let least = if end.is_lasting() { reconnect.lasting } else { Duration::ZERO };
        self.enter(Phase::Closed, step);
        step.actions.push(Action::Closed { end: end.clone(), was_open: opened.is_some() });
        if !end.is_requested() {
            self.last = Some((step.now, end));
        }
        if self.is_closing || reconnect.most.is_some_and(|most| self.failures >= most) {
            step.actions.push(Action::Ended);
        } else if !self.has_line {
            self.state = State::NoLine;
        } else {
            self.wait(reconnect.wait(self.failures).max(least), step);
        }
    }

    /// Waits between half of this time and all of it.
    fn wait(&mut self, most: Duration, step: &mut Step<'_>) {
        let share = u16::from_be_bytes(crate::draw(step.random));
        let wait = most / 2 + (most / 2) * u32::from(share) / u32::from(u16::MAX);
        self.state = State::Waiting { until: step.now.saturating_add(wait) };
        step.actions.push(Action::Waits(wait));
    }
}
