//! Requests on their way: sent again, given to another server, answered, or given up.

use crate::packet::{Draft, Malformed, NoRoom, Packet};
use crate::secret::{Forged, Secret};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::time::Duration;

/// Time since any fixed moment.
pub type Time = Duration;

/// Requests of one socket that can be on their way at once: identifiers have eight bits.
const IDENTIFIERS: usize = 256;
/// Sockets for each server. Answers differ by the socket and the identifier (RFC 2865 section 3).
pub const LANES: usize = 16;
/// Requests that are on their way to a server that answers; others wait. So many fit into what a socket of Linux receives by default
/// (`net.core.rmem_default`, 212,992 bytes, of which a short packet takes 1,280): one that does not fit is lost, and costs its subscriber
/// a timeout. With a round trip of 40 ms they are 3,200 requests a second.
pub const WINDOW: usize = 128;
/// Requests that are on their way or wait for it; more are refused, so that memory has a limit.
pub const MOST: usize = 65_536;

/// How long a server is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Until a request is sent again.
    pub timeout: Duration,
    /// How often it is sent to one server, at least once.
    pub tries: u32,
    /// For how long a server that did not answer comes after the others.
    pub dead: Duration,
}

impl Patience {
    /// Three times a second and a half, and a minute: a subscriber's LCP and PAP go on for some ten seconds (RFC 1661 section 4.6).
    pub const DEFAULT: Patience =
        Patience { timeout: Duration::from_millis(1500), tries: 3, dead: Duration::from_secs(60) };
}

/// What is to be sent, so that it can be made for each server's secret.
#[derive(Clone)]
pub struct Request {
    /// Its attributes, but for the password and the Message-Authenticator.
    pub draft: Draft,
    /// User-Password (RFC 2865 section 5.2), at most 128 bytes.
    pub password: Option<Vec<u8>>,
}

impl fmt::Debug for Request {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("draft", &self.draft).finish_non_exhaustive()
    }
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// None of the servers answered in time.
    #[error("no RADIUS server answers")]
    Silent,
    /// [`MOST`] others wait.
    #[error("{MOST} requests wait for RADIUS servers already")]
    Busy,
    /// It cannot be made.
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
}

/// Why a datagram came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// It is no packet.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// No request with its identifier waits: it came twice, or too late.
    #[error("no request waits for an answer with identifier {0}")]
    Unexpected(u8),
    /// It cannot be known to be of the server.
    #[error(transparent)]
    Forged(#[from] Forged),
}

/// A packet to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// To which server, by its place among them.
    pub server: usize,
    /// By which of the server's sockets, below [`LANES`].
    pub lane: usize,
    /// The packet.
    pub bytes: Vec<u8>,
}

/// A request that is over.
#[derive(Debug)]
pub struct Done<T> {
    /// What it was for.
    pub token: T,
    /// The request, for who has it sent again later.
    pub request: Request,
    /// The bytes of its answer, which [`Packet::parse`] takes.
    pub answer: Result<Vec<u8>, NoAnswer>,
}

/// What a step needs of the world, and where what comes of it goes. `T` says what an answer is for.
pub struct Step<'s, T> {
    /// The time.
    pub now: Time,
    /// Fills bytes in that nobody can guess.
    pub random: &'s mut dyn FnMut(&mut [u8]),
    /// Packets to send.
    pub send: &'s mut Vec<Datagram>,
    /// Requests that are over.
    pub done: &'s mut Vec<Done<T>>,
}

/// A socket of a server, and which request waits for an answer by it.
#[derive(Debug)]
struct Lane {
    /// Numbers of requests, by identifier.
    waiting: [Option<u64>; IDENTIFIERS],
    /// How many of them wait.
    used: usize,
    /// The identifier that is tried first for the next request: an answer that comes late finds its own unused for long.
    next: u8,
}

#[derive(Debug)]
struct Server {
    secret: Secret,
    lanes: Vec<Lane>,
    /// Until when it comes after the others.
    dead_until: Option<Time>,
}

/// Where a request is on its way.
#[derive(Clone, Debug)]
struct Sent {
    server: usize,
    lane: usize,
    identifier: u8,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct Pending<T> {
    token: T,
    request: Request,
    /// `None`: it waits, until fewer are on their way.
    sent: Option<Sent>,
    /// How often it went to this server.
    tries: u32,
    /// Servers that did not answer it, by their places.
    silent: Vec<usize>,
}

/// Everything that is on its way to some servers.
#[derive(Debug)]
pub struct Exchange<T> {
    servers: Vec<Server>,
    patience: Patience,
    /// Requests by number, which no two of them share.
    pending: HashMap<u64, Pending<T>>,
    last: u64,
    /// When which is sent again, the earliest first: all wait equally long.
    timers: VecDeque<(Time, u64)>,
    /// Requests that wait, until fewer are on their way.
    queue: VecDeque<u64>,
}

impl<T> Exchange<T> {
    /// With these servers, in order of preference.
    pub fn new(secrets: impl IntoIterator<Item = Secret>, patience: Patience) -> Exchange<T> {
        let server = |secret| Server { secret, lanes: Vec::new(), dead_until: None };
        Exchange {
            servers: secrets.into_iter().map(server).collect(),
            patience: Patience { tries: patience.tries.max(1), ..patience },
            pending: HashMap::new(),
            last: 0,
            timers: VecDeque::new(),
            queue: VecDeque::new(),
        }
    }

    /// Requests that are on their way or wait for it.
    pub fn len(&self) -> usize {
        self.pending.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// When [`Exchange::tick`] wants to be called next.
    pub fn deadline(&self) -> Option<Time> {
        self.timers.front().map(|(at, _)| *at)
    }

    /// Sends a request.
    pub fn request(&mut self, step: &mut Step<'_, T>, token: T, request: Request) {
        if self.len() >= MOST {
            step.done.push(Done { token, request, answer: Err(NoAnswer::Busy) });
            return;
        }
        self.last += 1;
        let pending = Pending { token, request, sent: None, tries: 0, silent: Vec::new() };
        self.pending.insert(self.last, pending);
        self.send_to_next(step, self.last);
    }

    /// Takes a datagram that came from a server by one of its sockets.
    ///
    /// # Errors
    ///
    /// It changes nothing: the answer is still awaited.
    pub fn receive(
        &mut self,
        step: &mut Step<'_, T>,
        server: usize,
        lane: usize,
        datagram: &[u8],
    ) -> Result<(), Unusable> {
        let packet = Packet::parse(datagram)?;
        let identifier = packet.identifier();
        let unexpected = Unusable::Unexpected(identifier);
        let from = self.servers.get_mut(server).ok_or(unexpected)?;
        let waiting = from.lanes.get(lane).and_then(|lane| lane.waiting[usize::from(identifier)]);
        let number = waiting.ok_or(unexpected)?;
        let sent = self.pending.get(&number).and_then(|pending| pending.sent.as_ref());
        from.secret.verify(&sent.ok_or(unexpected)?.bytes, &packet)?;
        from.dead_until = None;
        self.end(step, number, Ok(packet.bytes().to_vec()));
        self.send_queued(step);
        Ok(())
    }

    /// Does what is due.
    pub fn tick(&mut self, step: &mut Step<'_, T>) {
        while let Some((_, number)) = self.timers.pop_front_if(|(at, _)| *at <= step.now) {
            // One that has its answer is there no more.
            let Some(pending) = self.pending.get_mut(&number) else { continue };
            let Some(sent) = &pending.sent else { continue };
            let server = sent.server;
            // Another one has waited in vain for the same server: this one need not.
            let is_dead = self.servers[server].dead_until.is_some_and(|until| step.now < until);
            if pending.tries < self.patience.tries && !(is_dead && self.servers.len() > 1) {
                pending.tries += 1;
                step.send.push(Datagram { server, lane: sent.lane, bytes: sent.bytes.clone() });
                self.timers.push_back((step.now + self.patience.timeout, number));
                continue;
            }
            self.servers[server].dead_until = Some(step.now + self.patience.dead);
            pending.silent.push(server);
            self.release(number);
            self.send_to_next(step, number);
        }
        self.send_queued(step);
    }

    /// Gives a request to the best server that it was not given to; where there is none, it is over.
    fn send_to_next(&mut self, step: &mut Step<'_, T>, number: u64) {
        let Some(pending) = self.pending.get(&number) else { return };
        let untried = (0..self.servers.len()).filter(|server| !pending.silent.contains(server));
        // The first that is not dead; where all are, the one that has been for longest.
        let order = |server: &usize| {
            let dead_until = self.servers[*server].dead_until.filter(|until| step.now < *until);
            (dead_until.unwrap_or_default(), *server)
        };
        let Some(server) = untried.min_by_key(order) else {
            return self.end(step, number, Err(NoAnswer::Silent));
        };
        match self.servers[server].take_identifier(step.now, number) {
            None => self.queue.push_back(number),
            Some((lane, identifier)) => self.send(step, number, server, lane, identifier),
        }
    }

    fn send(&mut self, step: &mut Step<'_, T>, number: u64, server: usize, lane: usize, identifier: u8) {
        let Some(pending) = self.pending.get_mut(&number) else { return };
        let mut authenticator = [0; 16];
        (step.random)(&mut authenticator);
        let made = self.servers[server].secret.made(&pending.request, identifier, &authenticator);
        pending.tries = 1;
        pending.sent = Some(Sent { server, lane, identifier, bytes: made.clone().unwrap_or_default() });
        match made {
            Ok(bytes) => {
                self.timers.push_back((step.now + self.patience.timeout, number));
                step.send.push(Datagram { server, lane, bytes });
            }
            Err(no_room) => self.end(step, number, Err(no_room.into())),
        }
    }

    /// Sends what waits, until as many are on their way as may be.
    fn send_queued(&mut self, step: &mut Step<'_, T>) {
        let waiting = self.queue.len();
        for _ in 0..waiting {
            let Some(number) = self.queue.pop_front() else { return };
            let before = self.queue.len();
            self.send_to_next(step, number);
            if self.queue.len() > before {
                // It is still the next one.
                self.queue.rotate_right(1);
                return;
            }
        }
    }

    /// Gives the identifier back.
    fn release(&mut self, number: u64) {
        let sent = self.pending.get_mut(&number).and_then(|pending| pending.sent.take());
        if let Some(sent) = sent {
            let lane = &mut self.servers[sent.server].lanes[sent.lane];
            lane.waiting[usize::from(sent.identifier)] = None;
            lane.used -= 1;
        }
    }

    fn end(&mut self, step: &mut Step<'_, T>, number: u64, answer: Result<Vec<u8>, NoAnswer>) {
        self.release(number);
        if let Some(Pending { token, request, .. }) = self.pending.remove(&number) {
            step.done.push(Done { token, request, answer });
        }
    }
}

impl Server {
    /// An identifier of one of its sockets; `None`: as many are on their way as may be. A server that does not answer loses nothing by
    /// more of them, and each is given up as early as it can be.
    fn take_identifier(&mut self, now: Time, number: u64) -> Option<(usize, u8)> {
        let is_dead = self.dead_until.is_some_and(|until| now < until);
        if !is_dead && self.lanes.iter().map(|lane| lane.used).sum::<usize>() >= WINDOW {
            return None;
        }
        for at in 0..LANES {
            if at == self.lanes.len() {
                self.lanes.push(Lane { waiting: [None; IDENTIFIERS], used: 0, next: 0 });
            }
            let lane = &mut self.lanes[at];
            if lane.used == IDENTIFIERS {
                continue;
            }
            let mut all = (0..=u8::MAX).map(|more| lane.next.wrapping_add(more));
            if let Some(identifier) = all.find(|identifier| lane.waiting[usize::from(*identifier)].is_none())
            {
                lane.waiting[usize::from(identifier)] = Some(number);
                lane.used += 1;
                lane.next = identifier.wrapping_add(1);
                return Some((at, identifier));
            }
        }
        None
    }
}

impl Secret {
    /// The bytes of a request.
    fn made(&self, request: &Request, identifier: u8, authenticator: &[u8; 16]) -> Result<Vec<u8>, NoRoom> {
        let mut draft = request.draft.clone();
        if let Some(password) = &request.password {
            self.add_password(&mut draft, authenticator, password)?;
        }
        self.sign(draft, identifier, authenticator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Code;

    const SECOND: Duration = Duration::from_secs(1);
    const PATIENCE: Patience = Patience { timeout: SECOND, tries: 2, dead: Duration::from_secs(60) };

    /// An exchange with its clock; servers answer when a test says so.
    struct World {
        exchange: Exchange<u32>,
        now: Time,
        drawn: u8,
        sent: Vec<Datagram>,
        done: Vec<Done<u32>>,
    }

    impl World {
        fn new(servers: usize) -> World {
            let secrets = (0..servers).map(|number| Secret::new(format!("secret {number}")));
            let exchange = Exchange::new(secrets, PATIENCE);
            World { exchange, now: SECOND, drawn: 0, sent: Vec::new(), done: Vec::new() }
        }

        fn step<R>(&mut self, with: impl FnOnce(&mut Exchange<u32>, &mut Step<'_, u32>) -> R) -> R {
            let World { exchange, now, drawn, sent: send, done } = self;
            let random = &mut |bytes: &mut [u8]| {
                *drawn = drawn.wrapping_add(1);
                bytes.fill(*drawn);
            };
            with(exchange, &mut Step { now: *now, random, send, done })
        }

        /// An Accounting-Request, whose answers any secret can sign without a Message-Authenticator.
        fn request(&mut self, token: u32) {
            let mut draft = Draft::new(Code::ACCOUNTING_REQUEST);
            draft.add_number(44, token).expect("room");
            self.step(|exchange, step| exchange.request(step, token, Request { draft, password: None }));
        }

        /// Lets time pass to the next timer.
        fn wait(&mut self) {
            self.now = self.exchange.deadline().expect("something waits");
            self.step(|exchange, step| exchange.tick(step));
        }

        fn answer(&mut self, datagram: &Datagram, secret: usize) -> Result<(), Unusable> {
            let secret = Secret::new(format!("secret {secret}"));
            let bytes = secret.answer_of(&datagram.bytes, Code::ACCOUNTING_RESPONSE);
            self.step(|exchange, step| exchange.receive(step, datagram.server, datagram.lane, &bytes))
        }

        /// Which requests are over, and how.
        fn over(&self) -> Vec<(u32, Result<(), NoAnswer>)> {
            self.done
                .iter()
                .map(|done| (done.token, done.answer.as_ref().map(drop).map_err(|why| *why)))
                .collect()
        }

        /// Whether a server comes after the others.
        fn is_dead(&self, server: usize) -> bool {
            self.exchange.servers[server].dead_until.is_some_and(|until| self.now < until)
        }

        fn sent(&mut self) -> Vec<Datagram> {
            std::mem::take(&mut self.sent)
        }
    }

    #[test]
    fn an_answer_ends_its_request_and_comes_once() {
        let mut world = World::new(1);
        world.request(7);
        world.request(8);
        let sent = world.sent();
        assert_eq!(world.answer(&sent[1], 1), Err(Unusable::Forged(Forged::Authenticator)));
        assert_eq!(world.answer(&sent[1], 0), Ok(()));
        assert_eq!(world.answer(&sent[1], 0), Err(Unusable::Unexpected(1)));
        assert!(matches!(&world.over()[..], [(8, Ok(()))]));
        assert_eq!(world.exchange.len(), 1);
    }

    #[test]
    fn a_silent_server_gets_the_same_again_and_then_the_next_one_has_it() {
        let mut world = World::new(2);
        world.request(1);
        let first = world.sent();
        world.wait();
        assert_eq!(world.sent(), first, "the same bytes (RFC 5080 section 2.2.1)");
        world.wait();
        let second = world.sent();
        assert_eq!((first[0].server, second[0].server), (0, 1));
        assert!(world.is_dead(0) && !world.is_dead(1));
        // Whoever comes meanwhile goes to the living one at once.
        world.request(2);
        assert_eq!(world.sent()[0].server, 1);
        // An answer of the first that comes too late is no longer awaited.
        assert!(matches!(world.answer(&first[0], 0), Err(Unusable::Unexpected(_))));
        world.answer(&second[0], 1).expect("awaited");
        // After a minute it is the first again.
        world.now += PATIENCE.dead;
        world.request(3);
        assert_eq!(world.sent()[0].server, 0);
    }

    #[test]
    fn with_no_server_that_answers_a_request_is_given_up() {
        let mut world = World::new(3);
        world.request(1);
        for _ in 0..6 {
            world.wait();
        }
        assert_eq!(world.over(), [(1, Err(NoAnswer::Silent))]);
        assert!(world.exchange.is_empty() && world.exchange.deadline().is_none());
        // All are dead: the one that has been for longest gets it.
        world.sent();
        world.request(2);
        assert_eq!(world.sent()[0].server, 0);
    }

    #[test]
    fn what_waits_for_a_dead_server_goes_to_another_with_its_next_timer() {
        let mut world = World::new(2);
        world.request(1);
        world.now += SECOND / 2;
        world.request(2);
        world.wait();
        world.wait();
        world.sent();
        // The first is given up by the server; the second need not be sent there once more.
        world.wait();
        world.wait();
        assert!(world.sent().iter().all(|datagram| datagram.server == 1));
    }

    /// A server whose socket takes no more loses none: the others wait, in their order.
    #[test]
    fn so_many_are_on_their_way_to_a_server_that_answers() {
        let mut world = World::new(1);
        (0..1000).for_each(|token| world.request(token));
        let mut on_their_way: VecDeque<_> = world.sent().into();
        assert_eq!(on_their_way.len(), WINDOW);
        while let Some(datagram) = on_their_way.pop_front() {
            world.answer(&datagram, 0).expect("awaited");
            on_their_way.extend(world.sent());
            assert!(on_their_way.len() <= WINDOW);
        }
        assert!(world.over().into_iter().eq((0..1000).map(|token| (token, Ok(())))));
        assert!(world.exchange.is_empty());
    }

    /// What waited for one that does not answer waits for its own answer at once.
    #[test]
    fn more_than_all_identifiers_of_a_dead_server_wait_for_one_that_is_free() {
        let mut world = World::new(1);
        let most = LANES * IDENTIFIERS;
        (0..(WINDOW + most) as u32 + 2).for_each(|token| world.request(token));
        while !world.is_dead(0) {
            world.sent();
            world.wait();
        }
        let sent = world.sent();
        assert_eq!((world.done.len(), sent.len()), (WINDOW, most));
        let mut ways: Vec<_> = sent.iter().map(|datagram| (datagram.lane, datagram.bytes[1])).collect();
        ways.sort_unstable();
        ways.dedup();
        assert_eq!(ways.len(), most, "no two answers can be mistaken for each other");
        (0..most - WINDOW).for_each(|at| world.answer(&sent[at], 0).expect("awaited"));
        assert!(world.sent().is_empty(), "it lives again");
        world.answer(&sent[most - WINDOW], 0).expect("awaited");
        assert_eq!(world.sent().len(), 1);
    }

    #[test]
    fn memory_has_a_limit() {
        let mut world = World::new(1);
        (0..MOST as u32 + 1).for_each(|token| world.request(token));
        assert_eq!(world.over(), [(MOST as u32, Err(NoAnswer::Busy))]);
    }

    #[test]
    fn a_password_that_is_too_long_is_refused_and_its_identifier_is_free() {
        let mut world = World::new(1);
        let request = Request { draft: Draft::new(Code::ACCESS_REQUEST), password: Some(vec![0; 129]) };
        world.step(|exchange, step| exchange.request(step, 1, request));
        assert!(matches!(world.over()[..], [(1, Err(NoAnswer::NoRoom(_)))]));
        assert!(world.exchange.is_empty() && world.exchange.servers[0].lanes[0].waiting[0].is_none());
    }
}
