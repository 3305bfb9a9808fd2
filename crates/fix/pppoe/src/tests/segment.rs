//! A client and access concentrators on an Ethernet segment that loses, doubles and reorders frames, all from one seed.

use crate::Random;
use crate::client::{self, Action, Client, End, Opened, Phase, Reconnect};
use crate::discovery::complaint::Kind;
use crate::discovery::concentrator::{self, Answer, Arrival, Concentrator, Request};
use crate::discovery::cookie::Cookie;
use crate::discovery::message::padt;
use crate::discovery::place::Place;
use crate::discovery::{Packet, host};
use crate::framing::{unwrapped, wrapped};
use crate::session::{self, Grant, Method, Role, Session, Timers, Verdict};
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use wire::ethernet::MacAddress;
use wire::pppoe::Stage;

pub const HOST: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
pub const SECRET: &[u8] = b"correct horse";

pub fn ac(number: u8) -> MacAddress {
    MacAddress([2, 0, 0, 0, 1, number])
}

/// What a frame is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub stage: Stage,
    pub source: MacAddress,
    pub destination: MacAddress,
    pub payload: Vec<u8>,
}

impl Frame {
    fn packet(&self) -> Packet<'_> {
        Packet { source: self.source, destination: self.destination, payload: &self.payload }
    }
}

/// What a concentrator makes of requests.
#[derive(Clone, Debug)]
pub enum Policy {
    Confirm,
    Refuse(Kind, &'static str),
    /// A PADS without a session and without a reason.
    Nothing,
}

/// A concentrator with its table of sessions.
pub struct Ac {
    pub own: MacAddress,
    pub policy: Policy,
    pub sessions: BTreeMap<u16, Entry>,
    pub discovery: Concentrator,
    config: Arc<session::Config>,
    random: Xoshiro256PlusPlus,
    number: u16,
}

pub struct Entry {
    host: MacAddress,
    cookie: Cookie,
    pub session: Session,
}

impl Ac {
    pub fn new(number: u8, change: impl FnOnce(&mut concentrator::Config)) -> Ac {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(number.into());
        let mut config = concentrator::Config::new(format!("ac{number}").as_bytes());
        change(&mut config);
        let discovery =
            Concentrator::new(config, Duration::ZERO, &mut |octets: &mut [u8]| random.fill_bytes(octets));
        let role =
            session::Concentrator { name: b"ac".to_vec(), methods: vec![Method::ChapMd5, Method::Pap] };
        let config = Arc::new(session::Config { role: Role::Concentrator(role), timers: Timers::DEFAULT });
        let (policy, sessions) = (Policy::Confirm, BTreeMap::new());
        Ac { own: ac(number), policy, sessions, discovery, config, random, number: u16::from(number) * 100 }
    }

    fn receive(&mut self, now: Duration, frame: &Frame, sent: &mut Vec<Frame>) {
        match frame.stage {
            Stage::Discovery => self.discover(now, frame, sent),
            Stage::Session => {
                let Ok((number, packet)) = unwrapped(&frame.payload) else { return };
                if frame.destination != self.own {
                    return;
                }
                let (mut actions, random) = (Vec::new(), &mut self.random);
                let random = &mut |octets: &mut [u8]| random.fill_bytes(octets);
                match self.sessions.get_mut(&number).filter(|entry| entry.host == frame.source) {
                    Some(entry) => entry.session.receive(now, packet, random, &mut actions),
                    None => return,
                }
                self.act(now, number, actions, sent);
            }
        }
    }

    fn discover(&mut self, now: Duration, frame: &Frame, sent: &mut Vec<Frame>) {
        let random = &mut self.random;
        let random = &mut |octets: &mut [u8]| random.fill_bytes(octets);
        let arrival =
            Arrival { place: Place::default(), own: self.own, room: u16::MAX, packet: frame.packet() };
        let payload = match self.discovery.receive(now, &arrival, random) {
            Answer::Ignored(_) => return,
            Answer::Offer(payload) => payload,
            Answer::Terminate { session } => {
                let is_its = self.sessions.get(&session).is_some_and(|entry| entry.host == frame.source);
                if is_its {
                    self.sessions.remove(&session);
                }
                return;
            }
            Answer::Request(request) => match &self.policy {
                Policy::Nothing => request.confirm(0).expect("it fits"),
                Policy::Refuse(kind, text) => request.refuse(*kind, text).expect("it fits"),
                Policy::Confirm => return self.confirm(now, &request, sent),
            },
        };
        sent.push(self.to(frame.source, Stage::Discovery, payload));
    }

    fn confirm(&mut self, now: Duration, request: &Request, sent: &mut Vec<Frame>) {
        let known = self.sessions.iter().find(|(_, entry)| entry.cookie == request.cookie);
        if let Some((number, _)) = known {
            let payload = request.confirm(*number).expect("it fits");
            return sent.push(self.to(request.host, Stage::Discovery, payload));
        }
        self.number += 1;
        let number = self.number;
        sent.push(self.to(request.host, Stage::Discovery, request.confirm(number).expect("it fits")));
        let random = &mut self.random;
        let random = &mut |octets: &mut [u8]| random.fill_bytes(octets);
        let mut session = Session::new(self.config.clone(), request.max_payload, random);
        let mut actions = Vec::new();
        session.start(now, random, &mut actions);
        self.sessions.insert(number, Entry { host: request.host, cookie: request.cookie, session });
        self.act(now, number, actions, sent);
    }

    fn act(&mut self, now: Duration, number: u16, actions: Vec<session::Action>, sent: &mut Vec<Frame>) {
        for action in actions {
            let Some(entry) = self.sessions.get_mut(&number) else { return };
            let host = entry.host;
            match action {
                session::Action::Send(packet) => {
                    sent.push(self.to(host, Stage::Session, wrapped(number, &packet)));
                }
                session::Action::Authenticate(claim) => {
                    let (dns, ipv6) = ([None; 2], Some((1, 2)));
                    let ipv4 = Some((Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(198, 51, 100, 7)));
                    let verdict = match claim.proof(SECRET) {
                        Some(proof) => {
                            Verdict::Accepted { grant: Grant { ipv4, dns, ipv6 }, proof, message: Vec::new() }
                        }
                        None => Verdict::Refused { message: b"unknown user".to_vec() },
                    };
                    let (mut more, random) = (Vec::new(), &mut self.random);
                    let random = &mut |octets: &mut [u8]| random.fill_bytes(octets);
                    entry.session.authenticated(now, verdict, random, &mut more);
                    self.act(now, number, more, sent);
                }
                session::Action::Closed(_) => {
                    self.sessions.remove(&number);
                    sent.push(self.to(host, Stage::Discovery, padt(number, None)));
                }
                _ => {}
            }
        }
    }

    fn to(&self, destination: MacAddress, stage: Stage, payload: Vec<u8>) -> Frame {
        Frame { stage, source: self.own, destination, payload }
    }

    fn deadline(&self) -> Option<Duration> {
        self.sessions.values().filter_map(|entry| entry.session.deadline()).min()
    }

    fn tick(&mut self, now: Duration, sent: &mut Vec<Frame>) {
        let numbers: Vec<u16> = self.sessions.keys().copied().collect();
        for number in numbers {
            let (mut actions, random) = (Vec::new(), &mut self.random);
            let random = &mut |octets: &mut [u8]| random.fill_bytes(octets);
            if let Some(entry) = self.sessions.get_mut(&number) {
                entry.session.tick(now, random, &mut actions);
            }
            self.act(now, number, actions, sent);
        }
    }
}

/// What a segment does to frames, in percent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trouble {
    pub loss: u32,
    pub doubled: u32,
    pub late: u32,
}

pub struct Segment {
    pub client: Client,
    pub acs: Vec<Ac>,
    pub now: Duration,
    pub trouble: Trouble,
    /// What the client did, but for what it sent.
    pub done: Vec<Action>,
    pub sent: Vec<(Duration, Frame)>,
    pub own: MacAddress,
    client_random: Xoshiro256PlusPlus,
    random: Xoshiro256PlusPlus,
    flying: BinaryHeap<std::cmp::Reverse<Flying>>,
    number: u64,
}

struct Flying {
    arrival: (Duration, u64),
    frame: Frame,
}

impl PartialEq for Flying {
    fn eq(&self, other: &Flying) -> bool {
        self.arrival == other.arrival
    }
}

impl Eq for Flying {}

impl PartialOrd for Flying {
    fn partial_cmp(&self, other: &Flying) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Flying {
    fn cmp(&self, other: &Flying) -> std::cmp::Ordering {
        self.arrival.cmp(&other.arrival)
    }
}

pub fn config(change: impl FnOnce(&mut client::Config)) -> client::Config {
    let role = Role::Host(session::Host {
        user: b"user@isp".to_vec(),
        secret: SECRET.to_vec(),
        methods: vec![Method::MsChapV2, Method::ChapMd5],
        ipv4: Some(Ipv4Addr::UNSPECIFIED),
        dns: true,
        ipv6: Some(0),
    });
    let session = Arc::new(session::Config { role, timers: Timers::DEFAULT });
    let mut config =
        client::Config { discovery: host::Config::default(), session, reconnect: Reconnect::DEFAULT };
    change(&mut config);
    config
}

impl Segment {
    pub fn new(seed: u64, acs: Vec<Ac>, change: impl FnOnce(&mut client::Config)) -> Segment {
        Segment {
            client: Client::new(Arc::new(config(change)), HOST),
            acs,
            now: Duration::from_secs(1),
            trouble: Trouble::default(),
            done: Vec::new(),
            sent: Vec::new(),
            own: HOST,
            client_random: Xoshiro256PlusPlus::seed_from_u64(seed * 2 + 1),
            random: Xoshiro256PlusPlus::seed_from_u64(seed * 2),
            flying: BinaryHeap::new(),
            number: 0,
        }
    }

    /// Calls the client, and takes what it did.
    pub fn call<T>(
        &mut self,
        call: impl FnOnce(&mut Client, Duration, &mut dyn Random, &mut Vec<Action>) -> T,
    ) -> T {
        let (mut actions, random) = (Vec::new(), &mut self.client_random);
        let random = &mut |octets: &mut [u8]| random.fill_bytes(octets);
        let result = call(&mut self.client, self.now, random, &mut actions);
        for action in actions {
            match action {
                Action::Send { stage, destination, payload } => {
                    let frame = Frame { stage, source: self.own, destination, payload };
                    self.sent.push((self.now, frame.clone()));
                    self.put(frame);
                }
                other => self.done.push(other),
            }
        }
        result
    }

    pub fn start(&mut self) {
        self.call(|client, now, random, actions| client.start(now, random, actions));
    }

    pub fn close(&mut self) {
        self.call(|client, now, random, actions| client.close(now, random, actions));
    }

    pub fn line(&mut self, is_up: bool) {
        self.call(|client, now, random, actions| client.line(now, is_up, random, actions));
    }

    /// A frame reaches the client, whoever sent it.
    pub fn come(&mut self, frame: &Frame) {
        self.call(|client, now, random, actions| {
            client.receive(now, frame.stage, frame.packet(), random, actions);
        });
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.random.next_u32() % 100 < percent
    }

    pub fn put(&mut self, frame: Frame) {
        let copies = if self.chance(self.trouble.doubled) { 2 } else { 1 };
        for _ in 0..copies {
            if self.chance(self.trouble.loss) {
                continue;
            }
            let late = if self.chance(self.trouble.late) { self.random.next_u32() % 1_500 } else { 0 };
            self.number += 1;
            let arrival = (self.now + Duration::from_millis(u64::from(2 + late)), self.number);
            self.flying.push(std::cmp::Reverse(Flying { arrival, frame: frame.clone() }));
        }
    }

    /// Runs until `done` holds, or for so long. Says whether `done` holds.
    pub fn run(&mut self, time: Duration, done: impl Fn(&Segment) -> bool) -> bool {
        let until = self.now + time;
        for _ in 0..1_000_000 {
            if done(self) {
                return true;
            }
            let arrival = self.flying.peek().map(|flying| flying.0.arrival.0);
            let deadlines = self.acs.iter().filter_map(Ac::deadline).chain(self.client.deadline());
            let next = deadlines.chain(arrival).min().filter(|next| *next <= until);
            let Some(next) = next else {
                self.now = until;
                return false;
            };
            self.now = self.now.max(next);
            let mut sent = Vec::new();
            if arrival.is_some_and(|arrival| arrival <= self.now) {
                let Some(std::cmp::Reverse(Flying { frame, .. })) = self.flying.pop() else { continue };
                // Everybody hears everybody.
                self.acs.iter_mut().for_each(|ac| ac.receive(self.now, &frame, &mut sent));
                if frame.source != self.own {
                    self.come(&frame);
                }
            } else {
                self.acs.iter_mut().for_each(|ac| ac.tick(self.now, &mut sent));
                self.call(|client, now, random, actions| client.tick(now, random, actions));
                let deadline = self.client.deadline();
                assert!(deadline.is_none_or(|deadline| deadline > self.now), "a busy loop: {deadline:?}");
            }
            sent.into_iter().for_each(|frame| self.put(frame));
        }
        panic!("no end of work");
    }

    pub fn is_open(&self) -> bool {
        let status = self.client.status(self.now);
        let both = |opened: &Opened| opened.ipv4.is_some() && opened.ipv6.is_some();
        status.phase == Phase::Open && status.session.as_ref().is_some_and(both)
    }

    pub fn has_ended(&self) -> bool {
        self.done.last() == Some(&Action::Ended)
    }

    /// Sessions that concentrators have.
    pub fn held(&self) -> usize {
        self.acs.iter().map(|ac| ac.sessions.len()).sum()
    }

    pub fn ends(&self) -> Vec<&End> {
        self.done
            .iter()
            .filter_map(|action| match action {
                Action::Closed { end, .. } => Some(end),
                _ => None,
            })
            .collect()
    }

    pub fn remarks(&self) -> Vec<String> {
        self.done
            .iter()
            .filter_map(|action| match action {
                Action::Remark(remark) => Some(remark.to_string()),
                _ => None,
            })
            .collect()
    }

    pub fn waits(&self) -> Vec<Duration> {
        self.done
            .iter()
            .filter_map(|action| match action {
                Action::Waits(wait) => Some(*wait),
                _ => None,
            })
            .collect()
    }

    pub fn opened(&self) -> Opened {
        self.client.status(self.now).session.expect("a session")
    }
}
