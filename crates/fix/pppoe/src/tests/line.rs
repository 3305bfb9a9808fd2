//! A session with what it did, and a host and a concentrator on a line without delay or loss.

use super::Seeded;
use crate::session::{
    Action, Claim, Closed, Concentrator, Config, Grant, Host, Method, Phase, Role, Session, Timers, Verdict,
};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

pub const SECRET: &[u8] = b"correct horse";
pub const OWN: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
pub const SUBSCRIBER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
pub const DNS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 53);
pub const ALL: [Method; 3] = [Method::MsChapV2, Method::ChapMd5, Method::Pap];

pub const LCP: u16 = 0xc021;
pub const PAP: u16 = 0xc023;
pub const CHAP: u16 = 0xc223;
pub const IPCP: u16 = 0x8021;
pub const IPV6CP: u16 = 0x8057;

pub fn host(methods: &[Method]) -> Host {
    Host {
        user: b"user@isp".to_vec(),
        secret: SECRET.to_vec(),
        methods: methods.to_vec(),
        ipv4: Some(Ipv4Addr::UNSPECIFIED),
        dns: true,
        ipv6: Some(0),
    }
}

pub fn of_host(host: Host) -> Arc<Config> {
    Arc::new(Config { role: Role::Host(host), timers: Timers::DEFAULT })
}

pub fn concentrator(methods: &[Method]) -> Arc<Config> {
    let role = Role::Concentrator(Concentrator { name: b"ac".to_vec(), methods: methods.to_vec() });
    Arc::new(Config { role, timers: Timers::DEFAULT })
}

pub fn grant() -> Grant {
    Grant { ipv4: Some((OWN, SUBSCRIBER)), dns: [Some(DNS), None], ipv6: Some((1, 2)) }
}

/// What a concentrator says to a claim when the secret is [`SECRET`].
pub fn verdict(claim: &Claim) -> Verdict {
    match claim.proof(SECRET) {
        Some(proof) => Verdict::Accepted { grant: grant(), proof, message: b"welcome".to_vec() },
        None => Verdict::Refused { message: b"who are you".to_vec() },
    }
}

/// A session with its own randomness, whose actions are kept.
pub struct End {
    pub session: Session,
    random: Seeded,
    pub now: Duration,
    /// All that was ever done, without what was taken.
    pub actions: Vec<Action>,
}

impl End {
    pub fn new(config: Arc<Config>, seed: u64) -> End {
        End::with_mru(config, 1492, seed)
    }

    pub fn with_mru(config: Arc<Config>, mru: u16, seed: u64) -> End {
        let (session, random) = (Session::new(config, mru), Seeded::new(seed));
        End { session, random, now: Duration::ZERO, actions: Vec::new() }
    }

    fn call(&mut self, call: impl FnOnce(&mut Session, Duration, &mut dyn crate::Random, &mut Vec<Action>)) {
        call(&mut self.session, self.now, &mut self.random, &mut self.actions);
    }

    pub fn start(&mut self) {
        self.call(Session::start);
    }

    pub fn receive(&mut self, packet: &[u8]) {
        self.call(|session, now, random, actions| session.receive(now, packet, random, actions));
    }

    pub fn tick(&mut self) {
        self.call(Session::tick);
        if let Some(deadline) = self.session.deadline() {
            assert!(deadline > self.now, "the deadline {deadline:?} is past at {:?}: a busy loop", self.now);
        }
    }

    pub fn close(&mut self) {
        self.call(Session::close);
    }

    pub fn authenticated(&mut self, verdict: Verdict) {
        self.call(|session, now, random, actions| session.authenticated(now, verdict, random, actions));
    }

    /// Lets time pass, tick by tick, until `until`.
    pub fn pass(&mut self, until: Duration) {
        while let Some(deadline) = self.session.deadline().filter(|deadline| *deadline <= until) {
            self.now = self.now.max(deadline);
            self.tick();
        }
        self.now = until;
    }

    /// Takes the actions in which `is_it` finds something.
    fn take<T>(&mut self, is_it: impl Fn(&Action) -> Option<T>) -> Vec<T> {
        let found = self.actions.iter().filter_map(&is_it).collect();
        self.actions.retain(|action| is_it(action).is_none());
        found
    }

    /// Takes the packets that were sent.
    pub fn sent(&mut self) -> Vec<Vec<u8>> {
        self.take(|action| if let Action::Send(packet) = action { Some(packet.clone()) } else { None })
    }

    pub fn claims(&mut self) -> Vec<Claim> {
        self.take(|action| if let Action::Authenticate(claim) = action { Some(claim.clone()) } else { None })
    }

    pub fn closed(&self) -> Option<&Closed> {
        self.actions.iter().find_map(|action| match action {
            Action::Closed(closed) => Some(closed),
            _ => None,
        })
    }

    pub fn notices(&self) -> Vec<String> {
        let notice = |action: &Action| match action {
            Action::Notice(notice) => Some(notice.to_string()),
            _ => None,
        };
        self.actions.iter().filter_map(notice).collect()
    }

    pub fn phase(&self) -> Phase {
        self.session.phase()
    }
}

/// Host (0) and concentrator (1) on a line.
pub struct Line {
    pub ends: [End; 2],
    /// Everything that crossed the line, and from which end.
    pub trace: Vec<(usize, Vec<u8>)>,
}

impl Line {
    pub fn new(host: Arc<Config>, concentrator: Arc<Config>) -> Line {
        Line { ends: [End::new(host, 1), End::new(concentrator, 2)], trace: Vec::new() }
    }

    /// One that is up, with what was done until then forgotten.
    pub fn up(methods: &[Method]) -> Line {
        let mut line = Line::new(of_host(host(&ALL)), concentrator(methods));
        line.start();
        assert!(line.is_up(), "{methods:?}: {:?}", line.ends[0].actions);
        line.pass(Duration::from_millis(1));
        line.ends.iter_mut().for_each(|end| end.actions.clear());
        line
    }

    pub fn start(&mut self) {
        self.ends.iter_mut().for_each(End::start);
        self.talk();
    }

    /// Carries packets, and answers claims, until nobody has any.
    pub fn talk(&mut self) {
        for _ in 0..10_000 {
            let before = self.trace.len();
            for from in 0..2 {
                for claim in self.ends[from].claims() {
                    self.ends[from].authenticated(verdict(&claim));
                }
                for packet in self.ends[from].sent() {
                    self.ends[1 - from].receive(&packet);
                    self.trace.push((from, packet));
                }
            }
            if self.trace.len() == before {
                return;
            }
        }
        panic!("no end of talk");
    }

    /// Lets time pass at both ends.
    pub fn pass(&mut self, time: Duration) {
        let until = self.ends[0].now + time;
        let next = |line: &Line| line.ends.iter().filter_map(|end| end.session.deadline()).min();
        while let Some(next) = next(self).filter(|next| *next <= until) {
            for end in &mut self.ends {
                end.now = end.now.max(next);
                end.tick();
            }
            self.talk();
        }
        self.ends.iter_mut().for_each(|end| end.now = until);
    }

    pub fn is_up(&self) -> bool {
        let is_up = |end: &End| {
            end.phase() == Phase::Open && end.session.ipv4().is_some() && end.session.ipv6().is_some()
        };
        self.ends.iter().all(is_up)
    }
}

/// A control packet behind its protocol field.
pub fn packet(protocol: u16, code: u8, identifier: u8, data: &[u8]) -> Vec<u8> {
    let length = (data.len() + 4) as u16;
    [&protocol.to_be_bytes()[..], &[code, identifier], &length.to_be_bytes(), data].concat()
}

/// Protocol, code, identifier and data of a packet that a session sent.
pub fn parts(packet: &[u8]) -> (u16, u8, u8, &[u8]) {
    let length = usize::from(u16::from_be_bytes([packet[4], packet[5]]));
    assert_eq!(length + 2, packet.len());
    (u16::from_be_bytes([packet[0], packet[1]]), packet[2], packet[3], &packet[6..])
}

pub type Answer = (u16, u8, u8, Vec<u8>);

/// What an end sent since the last time.
pub fn answers(end: &mut End) -> Vec<Answer> {
    let own = |(protocol, code, identifier, data): (u16, u8, u8, &[u8])| {
        (protocol, code, identifier, data.to_vec())
    };
    end.sent().iter().map(|sent| own(parts(sent))).collect()
}

/// Sends a packet, and gives all that it was answered by.
pub fn exchange(end: &mut End, protocol: u16, code: u8, identifier: u8, data: &[u8]) -> Vec<Answer> {
    end.receive(&packet(protocol, code, identifier, data));
    answers(end)
}

/// Identifier and options of the last Configure-Request of a protocol.
pub fn request(answers: &[Answer], protocol: u16) -> (u8, Vec<u8>) {
    let found = answers.iter().rfind(|answer| (answer.0, answer.1) == (protocol, 1));
    found.map(|answer| (answer.2, answer.3.clone())).expect("a request")
}

/// Agrees to the last Configure-Request of a protocol.
pub fn agree(end: &mut End, protocol: u16) {
    let (identifier, options) = request(&answers(end), protocol);
    end.receive(&packet(protocol, 2, identifier, &options));
}

/// The option of LCP that demands a method of authentication.
pub fn demand(method: Method) -> Vec<u8> {
    [&[3, method.option().len() as u8 + 2], method.option()].concat()
}

/// A session with identifier and options of its first Configure-Request.
pub fn started(config: Arc<Config>) -> (End, u8, Vec<u8>) {
    let mut end = End::new(config, 1);
    end.start();
    let (identifier, options) = request(&answers(&mut end), LCP);
    (end, identifier, options)
}

/// A session whose LCP a scripted peer has agreed to, with `options` in the peer's request.
pub fn after_lcp(config: Arc<Config>, options: &[u8]) -> End {
    let (mut end, identifier, own) = started(config);
    end.receive(&packet(LCP, 2, identifier, &own));
    end.receive(&packet(LCP, 1, 77, options));
    end
}
