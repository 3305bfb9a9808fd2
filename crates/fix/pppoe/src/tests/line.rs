//! A host and a concentrator on a line that loses, doubles and reorders packets, all from one seed.

use crate::session::{
    Action, Claim, Closed, Concentrator, Config, Grant, Host, Method, Phase, Role, Session, Timers, Verdict,
};
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BinaryHeap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

pub const SECRET: &[u8] = b"correct horse";
pub const OWN: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
pub const SUBSCRIBER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
pub const DNS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 53);

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

pub fn concentrator(methods: &[Method]) -> Concentrator {
    Concentrator { name: b"ac".to_vec(), methods: methods.to_vec() }
}

pub fn of_host(host: Host) -> Arc<Config> {
    Arc::new(Config { role: Role::Host(host), timers: Timers::DEFAULT })
}

pub fn of_concentrator(concentrator: Concentrator) -> Arc<Config> {
    Arc::new(Config { role: Role::Concentrator(concentrator), timers: Timers::DEFAULT })
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
    pub random: Xoshiro256PlusPlus,
    pub now: Duration,
    /// All that was ever done, without what was taken.
    pub actions: Vec<Action>,
}

impl End {
    pub fn new(config: Arc<Config>, seed: u64) -> End {
        End::with_mru(config, 1492, seed)
    }

    pub fn with_mru(config: Arc<Config>, mru: u16, seed: u64) -> End {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let session = Session::new(config, mru, &mut |octets: &mut [u8]| random.fill_bytes(octets));
        End { session, random, now: Duration::ZERO, actions: Vec::new() }
    }

    fn call(&mut self, call: impl FnOnce(&mut Session, Duration, &mut dyn crate::Random, &mut Vec<Action>)) {
        let random = &mut self.random;
        call(
            &mut self.session,
            self.now,
            &mut |octets: &mut [u8]| random.fill_bytes(octets),
            &mut self.actions,
        );
    }

    pub fn start(&mut self) {
        self.call(|session, now, random, actions| session.start(now, random, actions));
    }

    pub fn receive(&mut self, packet: &[u8]) {
        self.call(|session, now, random, actions| session.receive(now, packet, random, actions));
    }

    pub fn tick(&mut self) {
        self.call(|session, now, random, actions| session.tick(now, random, actions));
        if let Some(deadline) = self.session.deadline() {
            assert!(deadline > self.now, "the deadline {deadline:?} is past at {:?}: a busy loop", self.now);
        }
    }

    pub fn close(&mut self) {
        self.call(|session, now, random, actions| session.close(now, random, actions));
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

    /// Takes the packets that were sent.
    pub fn sent(&mut self) -> Vec<Vec<u8>> {
        let mut sent = Vec::new();
        self.actions.retain_mut(|action| match action {
            Action::Send(octets) => {
                sent.push(std::mem::take(octets));
                false
            }
            _ => true,
        });
        sent
    }

    pub fn claims(&mut self) -> Vec<Claim> {
        let mut claims = Vec::new();
        self.actions.retain(|action| match action {
            Action::Authenticate(claim) => {
                claims.push(claim.clone());
                false
            }
            _ => true,
        });
        claims
    }

    pub fn closed(&self) -> Option<&Closed> {
        self.actions.iter().find_map(|action| match action {
            Action::Closed(closed) => Some(closed),
            _ => None,
        })
    }

    pub fn remarks(&self) -> Vec<String> {
        self.actions
            .iter()
            .filter_map(|action| match action {
                Action::Remark(remark) => Some(remark.to_string()),
                _ => None,
            })
            .collect()
    }

    pub fn phase(&self) -> Phase {
        self.session.phase()
    }
}

/// What a line does to packets, in percent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trouble {
    pub loss: u32,
    pub doubled: u32,
    pub late: u32,
}

/// What is under way: when it arrives and its number, reversed so that the earliest is the greatest; where to; the packet.
type Flying = (std::cmp::Reverse<(Duration, u64)>, usize, Vec<u8>);

/// Host (0) and concentrator (1) on a line.
pub struct Line {
    pub ends: [End; 2],
    pub trouble: Trouble,
    pub now: Duration,
    random: Xoshiro256PlusPlus,
    flying: BinaryHeap<Flying>,
    number: u64,
    /// Everything that crossed the line or was lost on it, for comparison of runs.
    pub trace: Vec<(Duration, usize, Vec<u8>)>,
}

impl Line {
    pub fn new(host: Arc<Config>, concentrator: Arc<Config>, trouble: Trouble, seed: u64) -> Line {
        let ends = [End::new(host, seed * 2 + 1), End::new(concentrator, seed * 2 + 2)];
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (flying, trace) = (BinaryHeap::new(), Vec::new());
        Line { ends, trouble, now: Duration::ZERO, random, flying, number: 0, trace }
    }

    pub fn start(&mut self) {
        for end in &mut self.ends {
            end.start();
        }
        self.collect();
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.random.next_u32() % 100 < percent
    }

    /// Puts what the ends sent on the line, and answers claims.
    pub fn collect(&mut self) {
        for from in 0..2 {
            for claim in self.ends[from].claims() {
                let verdict = verdict(&claim);
                self.ends[from].authenticated(verdict);
            }
            for packet in self.ends[from].sent() {
                self.trace.push((self.now, from, packet.clone()));
                let copies = if self.chance(self.trouble.doubled) { 2 } else { 1 };
                for _ in 0..copies {
                    if self.chance(self.trouble.loss) {
                        continue;
                    }
                    let late =
                        if self.chance(self.trouble.late) { self.random.next_u32() % 2_000 } else { 0 };
                    let delay = u64::from(5 + late);
                    let arrival = self.now + Duration::from_millis(delay);
                    self.number += 1;
                    self.flying.push((std::cmp::Reverse((arrival, self.number)), 1 - from, packet.clone()));
                }
            }
        }
    }

    /// Runs until nothing is left to do, `done` holds, or `until`. Says whether `done` holds.
    pub fn run(&mut self, until: Duration, done: impl Fn(&Line) -> bool) -> bool {
        let mut steps = 0;
        loop {
            if done(self) {
                return true;
            }
            steps += 1;
            assert!(steps < 200_000, "no end of work");
            let arrival = self.flying.peek().map(|flying| flying.0.0.0);
            let deadlines = self.ends.iter().filter_map(|end| end.session.deadline());
            let Some(next) = deadlines.chain(arrival).min() else { return false };
            let next = next.max(self.now);
            if next > until {
                self.now = until;
                return false;
            }
            self.now = next;
            self.ends.iter_mut().for_each(|end| end.now = next);
            if arrival.is_some_and(|arrival| arrival <= next) {
                if let Some((_, to, packet)) = self.flying.pop() {
                    self.ends[to].receive(&packet);
                }
            } else {
                for end in &mut self.ends {
                    if end.session.deadline().is_some_and(|deadline| deadline <= next) {
                        end.tick();
                    }
                }
            }
            self.collect();
        }
    }

    pub fn is_up(&self) -> bool {
        self.ends.iter().all(|end| {
            end.phase() == Phase::Open && end.session.ipv4().is_some() && end.session.ipv6().is_some()
        })
    }

    pub fn is_over(&self) -> bool {
        self.ends.iter().all(|end| end.closed().is_some())
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
