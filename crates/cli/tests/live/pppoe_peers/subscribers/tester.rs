//! All subscribers on one packet socket: who a frame is for, what is due, what is on its way.

use super::plan::{Dice, Plan};
use super::session::{Session, Standing};
use super::subscriber::{Attempt, End, Phase, Step, Subscriber};
use super::traffic::Traffic;
use crate::pppoe_peers::by_hand::discovery::{self, PADO, PADS, PADT};
use crate::pppoe_peers::by_hand::frame::{self, Frame, Mac, Place, ethernet, pppoe};
use crate::pppoe_peers::by_hand::ppp;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use testkit::frames::Frames;

/// First octet of MAC addresses of strangers, which no subscriber has.
pub const STRANGER: u8 = 0x0a;
/// How long a subscriber may stay at one thing.
const STUCK: Duration = Duration::from_secs(60);
/// Frames that are sent before those that came are looked at.
const SEND: usize = 64;

/// What the tester did, as the concentrator has to have counted it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub sessions: u64,
    pub refused: u64,
    pub padr: u64,
    /// PADS that named an error.
    pub turned_away: u64,
    pub padt_of_strangers: u64,
    pub control_of_strangers: u64,
    pub malformed: u64,
    pub frames_sent: u64,
    pub frames_received: u64,
    pub forbidden: u64,
}

pub struct Tester {
    wire: Frames,
    outbox: Vec<Vec<u8>>,
    pub concentrator: Mac,
    pub subscribers: Vec<Subscriber>,
    pub sessions: Vec<Session>,
    by_place: HashMap<Place, usize>,
    by_number: HashMap<(Place, u16), usize>,
    /// Places in which frames were sent that are nobody's there.
    pub strange: HashSet<Place>,
    /// Who is between the first PADI and the first network protocol.
    pub setting_up: HashSet<usize>,
    timers: BinaryHeap<Reverse<(Instant, usize)>>,
    pub traffic: Traffic,
    pub counts: Counts,
    pub now: Instant,
    /// All have met.
    pub released: bool,
    looked: Instant,
}

impl Tester {
    /// `wire`: on the lines.
    pub fn new(wire: Frames, concentrator: Mac, traffic: Traffic, plans: Vec<(Plan, Dice)>) -> Tester {
        let now = Instant::now();
        let subscribers: Vec<Subscriber> =
            plans.into_iter().map(|(plan, dice)| Subscriber::new(plan, dice, now)).collect();
        let places = subscribers.iter().enumerate().map(|(number, one)| (one.place.clone(), number));
        let by_place: HashMap<Place, usize> = places.collect();
        assert_eq!(by_place.len(), subscribers.len(), "two subscribers in one place");
        let timers = (0..subscribers.len()).map(|number| Reverse((now, number))).collect();
        Tester {
            wire,
            outbox: Vec::new(),
            concentrator,
            subscribers,
            sessions: Vec::new(),
            by_place,
            by_number: HashMap::new(),
            strange: HashSet::new(),
            setting_up: HashSet::new(),
            timers,
            traffic,
            counts: Counts::default(),
            now,
            released: false,
            looked: now,
        }
    }

    /// Goes on until something is so.
    pub fn run(&mut self, what: &str, limit: Duration, is_so: impl Fn(&Tester) -> bool) {
        let until = Instant::now() + limit;
        while !is_so(self) {
            if Instant::now() > until {
                panic!("{what}: not in {limit:?}; {}", self.standing());
            }
            self.turn();
        }
    }

    /// Those that wait for all go on.
    pub fn release(&mut self) {
        self.now = Instant::now();
        self.released = true;
        for number in 0..self.subscribers.len() {
            self.advance(number);
            self.arm(number);
        }
    }

    /// All come again, as their second users, and stay.
    pub fn come_again(&mut self) {
        self.now = Instant::now();
        self.released = false;
        for number in 0..self.subscribers.len() {
            let one = &mut self.subscribers[number];
            (one.wave, one.lives, one.attempt) = (1, 1, Attempt::Open);
            one.begin_at(self.now, self.now);
            self.arm(number);
        }
    }

    /// One round: what came, what is due, what is to be sent.
    fn turn(&mut self) {
        let timeout = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
        {
            let mut sources = vec![PollFd::from_borrowed_fd(self.wire.as_fd(), PollFlags::IN)];
            sources.extend(self.traffic.sockets().map(|socket| PollFd::new(socket, PollFlags::IN)));
            poll(&mut sources, Some(&timeout)).expect("it waits");
        }
        self.now = Instant::now();
        let mut frames = Vec::new();
        self.wire.receive(&mut |frame| frames.push(frame.to_vec())).expect("frames");
        for frame in frames {
            self.frame(&frame);
            if self.outbox.len() >= SEND {
                self.flush();
            }
        }
        for (session, octets) in self.traffic.arrived() {
            let counted = &mut self.sessions[session].from_it;
            (counted.packets, counted.octets) = (counted.packets + 1, counted.octets + octets as u64);
            self.arrived(session);
        }
        self.timers();
        for upward in self.traffic.pump(&self.sessions, self.now) {
            self.send_data(upward.session, &upward.packet);
        }
        self.flush();
        if self.now.duration_since(self.looked) > Duration::from_secs(1) {
            self.looked = self.now;
            self.look();
        }
    }

    /// Whether anything takes too long.
    fn look(&self) {
        if let Some(lost) = self.traffic.lost(self.now) {
            let (session, lost) = lost;
            let session = &self.sessions[session];
            panic!("a packet was lost {lost}: {session:#?}\n{:#?}", self.subscribers[session.subscriber]);
        }
        for (number, one) in self.subscribers.iter().enumerate() {
            let is_waiting = match (one.phase, one.script.front()) {
                (Phase::Done | Phase::Idle, _) | (_, Some(Step::End(End::Stay))) => true,
                (_, Some(Step::Meet)) => one.has_met,
                _ => false,
            };
            if !is_waiting && self.now.duration_since(one.since) > STUCK {
                let session = match one.phase {
                    Phase::Session(session) => self.sessions.get(session),
                    _ => None,
                };
                panic!("subscriber {number} comes no further: {one:#?}\n{session:#?}");
            }
        }
    }

    /// How many are how far.
    pub fn standing(&self) -> String {
        let mut phases: HashMap<String, usize> = HashMap::new();
        for one in &self.subscribers {
            let name = match one.phase {
                Phase::Session(_) => format!("in a session, before {:?}", one.script.front()),
                phase => format!("{phase:?}"),
            };
            *phases.entry(name).or_default() += 1;
        }
        let alive = self.sessions.iter().filter(|session| session.standing != Standing::Over).count();
        format!("{phases:?}, {alive} sessions of {} not over, {:?}", self.sessions.len(), self.counts)
    }

    fn flush(&mut self) {
        let frames: Vec<&[u8]> = self.outbox.iter().map(Vec::as_slice).collect();
        self.wire.send_all(&frames).unwrap_or_else(|error| panic!("{error}"));
        self.counts.frames_sent += frames.len() as u64;
        self.outbox.clear();
    }

    /// Sends a frame of discovery, or of any other EtherType.
    pub fn put(&mut self, place: &Place, to: &Mac, priority: u8, ethertype: u16, rest: &[u8]) {
        self.outbox.push(ethernet(to, &place.mac, &place.tags, priority, ethertype, rest));
    }

    /// Sends packets of a session from its place.
    pub fn send(&mut self, session: usize, packets: Vec<Vec<u8>>) {
        let Session { place, priority, number, .. } = &self.sessions[session];
        for packet in packets {
            let payload = pppoe(0, *number, &packet);
            let (to, tags) = (&self.concentrator, &place.tags);
            self.outbox.push(ethernet(to, &place.mac, tags, *priority, frame::SESSION, &payload));
        }
    }

    /// Sends an IP packet in a session.
    pub fn send_data(&mut self, session: usize, packet: &[u8]) {
        let protocol = if packet[0] >> 4 == 4 { ppp::IPV4 } else { ppp::IPV6 };
        self.send(session, vec![[&protocol.to_be_bytes()[..], packet].concat()]);
    }

    pub fn send_padt(&mut self, session: usize, from: &Place) {
        let payload = pppoe(PADT, self.sessions[session].number, &[]);
        let concentrator = self.concentrator;
        self.put(from, &concentrator, 0, frame::DISCOVERY, &payload);
    }

    /// Another place for a subscriber.
    pub fn moves(&mut self, number: usize, place: Place) {
        assert!(self.by_place.insert(place.clone(), number).is_none(), "{place:?} is another's");
        self.subscribers[number].place = place;
    }

    /// A session that a PADS has named.
    pub fn opened(&mut self, session: Session) -> usize {
        let number = self.sessions.len();
        let key = (session.place.clone(), session.number);
        let before = self.by_number.insert(key, number);
        let is_over = |before: usize| self.sessions[before].standing == Standing::Over;
        assert!(
            before.is_none_or(is_over),
            "{:?} {:#06x} is a session already",
            session.place,
            session.number
        );
        self.counts.sessions += 1;
        self.sessions.push(session);
        number
    }

    fn frame(&mut self, octets: &[u8]) {
        let Some(read) = Frame::read(octets) else { return };
        let frame = read.unwrap_or_else(|what| panic!("the concentrator's frame: {what}"));
        self.counts.frames_received += 1;
        assert_eq!(frame.source, self.concentrator, "{frame:02x?}");
        let place = Place { mac: frame.destination, tags: frame.tags.clone() };
        let to_stranger = place.mac[0] == STRANGER || self.strange.contains(&place);
        let Some(number) = self.by_place.get(&place).copied() else {
            // A stranger may be told that it has no session, and nothing else.
            assert!(to_stranger && frame.code == PADT, "a frame to nobody: {frame:02x?}");
            return;
        };
        let said = match (frame.stage, frame.code) {
            (frame::DISCOVERY, PADO | PADS) => self.discovery(number, &place, &frame),
            (frame::DISCOVERY, PADT) => self.padt(&place, &frame),
            (frame::SESSION, 0) => self.session_packet(&place, &frame),
            _ => Err("nobody asked for it".to_owned()),
        };
        if let Err(what) = said {
            let session = self.by_number.get(&(place, frame.session)).map(|session| &self.sessions[*session]);
            panic!("{what}: {frame:02x?}\n{session:#?}\n{:#?}", self.subscribers[number]);
        }
    }

    fn discovery(&mut self, number: usize, place: &Place, frame: &Frame<'_>) -> Result<(), String> {
        let tags = discovery::read(frame.payload).ok_or("tags that do not fit")?;
        if self.subscribers[number].place != *place {
            // It has moved on.
            return Ok(());
        }
        match frame.code {
            PADO => self.offered(number, &tags),
            _ => self.confirmed(number, frame.session, &tags),
        }
    }

    fn padt(&mut self, place: &Place, frame: &Frame<'_>) -> Result<(), String> {
        let tags = discovery::read(frame.payload).ok_or("tags that do not fit")?;
        let Some(session) = self.by_number.get(&(place.clone(), frame.session)).copied() else {
            // Of a number that was nobody's.
            return Ok(());
        };
        let words = discovery::complaint(&tags);
        let one = &mut self.sessions[session];
        if one.standing == Standing::Over {
            return Ok(());
        }
        if one.causes.is_empty() && one.refusal.is_none() {
            return Err(format!("the concentrator ended a session: {words:?}"));
        }
        (one.standing, one.last_words) = (Standing::Over, words);
        self.ended(session);
        Ok(())
    }

    fn session_packet(&mut self, place: &Place, frame: &Frame<'_>) -> Result<(), String> {
        let session = self.by_number.get(&(place.clone(), frame.session)).copied();
        let session = session.ok_or("a packet of a session that there is not")?;
        let (protocol, rest) = ppp::protocol(frame.payload).ok_or("no protocol field")?;
        if matches!(protocol, ppp::IPV4 | ppp::IPV6) {
            if (protocol == ppp::IPV4) != (rest.first().is_some_and(|first| first >> 4 == 4)) {
                return Err("the protocol field is of the other version".to_owned());
            }
            let octets = self.traffic.came_down(session, rest)?;
            let one = &mut self.sessions[session];
            if one.standing != Standing::Alive {
                return Err("a packet of a session that is over".to_owned());
            }
            let counted = &mut one.to_it;
            (counted.packets, counted.octets) = (counted.packets + 1, counted.octets + octets as u64);
            self.arrived(session);
            return Ok(());
        }
        let answers = self.sessions[session].receive(protocol, rest, self.now)?;
        self.send(session, answers);
        self.heard(session);
        Ok(())
    }

    /// A packet came to its end.
    fn arrived(&mut self, session: usize) {
        let number = self.sessions[session].subscriber;
        let one = &mut self.subscribers[number];
        one.pending -= 1;
        if one.pending == 0 {
            self.heard(session);
        }
    }

    /// Something was said in a session.
    fn heard(&mut self, session: usize) {
        let number = self.sessions[session].subscriber;
        if self.subscribers[number].phase == Phase::Session(session) {
            self.advance(number);
        }
        self.arm(number);
    }

    /// Has [`Tester::timers`] come back to a subscriber in time.
    pub fn arm(&mut self, number: usize) {
        let one = &self.subscribers[number];
        let due = match one.phase {
            Phase::Done => None,
            Phase::Session(session) => match one.script.front() {
                Some(Step::Pause(_)) => Some(one.due),
                _ => self.sessions[session].deadline(),
            },
            _ => Some(one.due),
        };
        self.timers.extend(due.map(|due| Reverse((due, number))));
    }

    fn timers(&mut self) {
        let mut called = HashSet::new();
        while let Some(Reverse((due, number))) = self.timers.peek().copied()
            && due <= self.now
        {
            self.timers.pop();
            if !called.insert(number) {
                continue;
            }
            match self.subscribers[number].phase {
                Phase::Done => continue,
                Phase::Session(session) => {
                    if self.sessions[session].standing == Standing::Alive {
                        let packets = self.sessions[session].tick(self.now);
                        self.send(session, packets);
                    }
                    self.advance(number);
                }
                _ if self.subscribers[number].due <= self.now => self.search(number),
                _ => {}
            }
            self.arm(number);
            if self.outbox.len() >= SEND {
                self.flush();
            }
        }
    }
}
