//! A subscriber: discovery, PPP, and another try when either has failed.

use crate::Time;
use crate::discovery::host::{Action as Found, Config, Host as Discovery};
use crate::discovery::place::Place;
use crate::discovery::{PLAIN_PAYLOAD, Packet};
use crate::session::{
    self, Action, Config as SessionConfig, Family, Ipv4, Ipv6, Method, Phase, Role, Session, Timers,
};
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use wire::emit::{Emit, Pppoe};
use wire::ethernet::MacAddress;
use wire::pppoe::{Code, Header, Stage};

/// A frame that a host sends.
pub struct Sent {
    pub destination: MacAddress,
    pub stage: Stage,
    pub payload: Vec<u8>,
}

pub struct Host {
    pub mac: MacAddress,
    pub place: Place,
    pub user: String,
    config: Arc<SessionConfig>,
    discovery: Discovery,
    session: Option<(u16, MacAddress, Session)>,
    again: Option<Time>,
    pub is_dead: bool,
    /// Whether it tries again after a failure.
    pub persists: bool,
    pub ipv4: Option<Ipv4>,
    pub ipv6: Option<Ipv6>,
    pub ends: Vec<String>,
    random: Xoshiro256PlusPlus,
}

impl Host {
    pub fn new(number: u32, place: Place, user: &str, password: &str, methods: &[Method]) -> Host {
        let [_, a, b, c] = number.to_be_bytes();
        let mac = MacAddress([2, 0x10, 0, a, b, c]);
        let host = session::Host {
            user: user.into(),
            secret: password.into(),
            methods: methods.to_vec(),
            ipv4: Some(Ipv4Addr::UNSPECIFIED),
            dns: true,
            ipv6: Some(0),
        };
        Host {
            mac,
            place,
            user: user.to_owned(),
            config: Arc::new(SessionConfig { role: Role::Host(host), timers: Timers::DEFAULT }),
            discovery: Discovery::new(Arc::new(Config::default()), mac),
            session: None,
            again: None,
            is_dead: false,
            persists: false,
            ipv4: None,
            ipv6: None,
            ends: Vec::new(),
            random: Xoshiro256PlusPlus::seed_from_u64(u64::from(number) + 7),
        }
    }

    pub fn is_up(&self) -> bool {
        self.session.as_ref().is_some_and(|(.., session)| session.phase() == Phase::Open)
    }

    /// Its session goes on without IPv4, which nobody negotiates any more.
    pub fn has_given_up_ipv4(&self) -> bool {
        self.ipv4.is_none()
            && self.session.as_ref().is_some_and(|(.., session)| !session.awaits(Family::Ipv4))
    }

    pub fn number(&self) -> Option<u16> {
        self.session.as_ref().map(|(number, ..)| *number)
    }

    /// The longest packet that it may send.
    pub fn mru(&self) -> Option<u16> {
        self.session.as_ref().map(|(.., session)| session.peer_mru())
    }

    pub fn connect(&mut self, now: Time, sent: &mut Vec<Sent>) {
        let mut actions = Vec::new();
        let mut random = self.random.clone();
        self.discovery.start(now, &mut |octets: &mut [u8]| random.fill_bytes(octets), &mut actions);
        self.random = random;
        self.discovered(now, actions, sent);
    }

    /// Forgets everything, as by a loss of power.
    pub fn reset(&mut self) {
        (self.session, self.again, self.ipv4, self.ipv6) = (None, None, None, None);
        self.discovery.stop();
    }

    pub fn close(&mut self, now: Time, sent: &mut Vec<Sent>) {
        self.drive(now, sent, |session, now, random, actions| session.close(now, random, actions));
    }

    pub fn send_raw(&self, packet: &[u8]) -> Sent {
        let (number, concentrator) = self.session.as_ref().map(|(number, mac, _)| (*number, *mac)).unwrap();
        Sent { destination: concentrator, stage: Stage::Session, payload: session_payload(number, packet) }
    }

    pub fn deadline(&self) -> Option<Time> {
        if self.is_dead {
            return None;
        }
        let session = self.session.as_ref().and_then(|(.., session)| session.deadline());
        [session, self.discovery.deadline(), self.again].into_iter().flatten().min()
    }

    pub fn tick(&mut self, now: Time, sent: &mut Vec<Sent>) {
        if self.is_dead {
            return;
        }
        if self.again.is_some_and(|again| again <= now) {
            self.again = None;
            self.connect(now, sent);
        }
        let mut actions = Vec::new();
        self.discovery.tick(now, &mut actions);
        self.discovered(now, actions, sent);
        self.drive(now, sent, |session, now, random, actions| session.tick(now, random, actions));
    }

    pub fn receive(
        &mut self,
        now: Time,
        source: MacAddress,
        stage: Stage,
        payload: &[u8],
        sent: &mut Vec<Sent>,
    ) {
        if self.is_dead {
            return;
        }
        if stage == Stage::Discovery {
            let mut actions = Vec::new();
            let packet = Packet { source, destination: self.mac, payload };
            if let Some(terminated) = self.discovery.receive(now, packet, &mut actions) {
                self.over(now, format!("PADT {terminated:?}"));
            }
            self.discovered(now, actions, sent);
            return;
        }
        let Ok(header) = Pppoe::parse(payload) else { return };
        let packet = payload[Header::LENGTH..][..usize::from(header.payload_length)].to_vec();
        if self.session.as_ref().is_some_and(|(number, ..)| *number == header.session) {
            self.drive(now, sent, |session, now, random, actions| {
                session.receive(now, &packet, random, actions)
            });
        }
    }

    fn discovered(&mut self, now: Time, actions: Vec<Found>, sent: &mut Vec<Sent>) {
        for action in actions {
            match action {
                Found::Send { destination, payload } => {
                    sent.push(Sent { destination, stage: Stage::Discovery, payload });
                }
                Found::Chosen { .. } => {}
                Found::Found(found) => {
                    let mut random = self.random.clone();
                    let mut random_of = |octets: &mut [u8]| random.fill_bytes(octets);
                    let session = Session::new(self.config.clone(), PLAIN_PAYLOAD, &mut random_of);
                    self.session = Some((found.session, found.offer.concentrator, session));
                    self.random = random;
                    self.drive(now, sent, |session, now, random, actions| {
                        session.start(now, random, actions)
                    });
                }
                Found::Failed(failure) => self.over(now, failure.to_string()),
            }
        }
    }

    fn over(&mut self, now: Time, why: String) {
        self.ends.push(why);
        self.reset();
        let wait = Duration::from_millis(2_000 + u64::from(self.random.next_u32() % 3_000));
        self.again = self.persists.then(|| now + wait);
    }

    fn drive(
        &mut self,
        now: Time,
        sent: &mut Vec<Sent>,
        act: impl FnOnce(&mut Session, Time, &mut dyn crate::Random, &mut Vec<Action>),
    ) {
        let Some((number, concentrator, session)) = &mut self.session else { return };
        let mut actions = Vec::new();
        let random = &mut self.random;
        act(session, now, &mut |octets: &mut [u8]| random.fill_bytes(octets), &mut actions);
        for action in actions {
            match action {
                Action::Send(packet) => sent.push(Sent {
                    destination: *concentrator,
                    stage: Stage::Session,
                    payload: session_payload(*number, &packet),
                }),
                Action::Up4(up) => self.ipv4 = Some(up),
                Action::Up6(up) => self.ipv6 = Some(up),
                Action::Down(Family::Ipv4) => self.ipv4 = None,
                Action::Down(Family::Ipv6) => self.ipv6 = None,
                Action::Closed(closed) => {
                    self.over(now, closed.to_string());
                    return;
                }
                Action::Authenticate(_) | Action::Phase(_) | Action::Remark(_) => {}
            }
        }
    }
}

pub fn session_payload(number: u16, packet: &[u8]) -> Vec<u8> {
    let mut payload = vec![0; Header::LENGTH];
    let header = Pppoe { code: Code::SESSION, session: number, payload_length: packet.len() as u16 };
    header.emit(&mut payload).unwrap();
    payload.extend(packet);
    payload
}
