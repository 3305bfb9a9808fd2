//! A concentrator with its data path, clients, and the wires between, which lose, double and reorder frames: in virtual time,
//! from one seed.

use super::{Seeded, line};
use crate::client::{self, Client, Opened, Phase, Reconnect};
use crate::concentrator::accounting::{Event, Record, Traffic};
use crate::concentrator::secrets::Secrets;
use crate::concentrator::{Action, Concentrator, Config, End, Id, Installed, Question, Step};
use crate::discovery::concentrator::Arrival;
use crate::discovery::message::{Builder, Message};
use crate::discovery::place::Place;
use crate::discovery::{Packet, host};
use crate::framing::wrapped;
use crate::session::{self, Family, Ipv4, Ipv6, Method};
use crate::{Random, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use wire::Vlans;
use wire::ethernet::{EtherType, MacAddress};
use wire::pppoe::{Code, Stage, TagType};
use wire::vlan::{Tag, Tci};

pub const OWN: MacAddress = MacAddress([2, 0, 0, 0, 0, 0xac]);
pub const ALL: [Method; 3] = [Method::ChapMd5, Method::MsChapV2, Method::Pap];

pub const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

pub fn place(outer: u16, inner: u16) -> Place {
    let tag = |tpid, vid| Tag { tpid: EtherType(tpid), tci: Tci(vid) };
    Place { port: 3, vlans: Vlans::of([tag(0x88a8, outer), tag(0x8100, inner)]).unwrap() }
}

/// IPv4 with a pool of four, IPv6 with plenty.
pub fn config() -> Config {
    let mut config = Config::new(b"ac-1");
    config.local = Some([10, 0, 0, 1].into());
    config.pool = vec!["10.0.0.2-10.0.0.5".parse().unwrap()];
    config.dns = [Some([9, 9, 9, 9].into()), None];
    config.identifier = Some(1);
    config.prefixes = Some("2001:db8:f::/48".parse().unwrap());
    config
}

pub fn secrets(text: &str) -> Secrets {
    Secrets::parse(text.as_bytes(), b"ac-1", config().local).unwrap()
}

/// A frame that a host sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    pub destination: MacAddress,
    pub stage: Stage,
    pub payload: Vec<u8>,
}

impl Sent {
    /// A discovery packet to the concentrator.
    pub fn discovery(payload: Vec<u8>) -> Sent {
        Sent { destination: OWN, stage: Stage::Discovery, payload }
    }

    /// A PPP packet to the concentrator.
    pub fn session(number: u16, packet: &[u8]) -> Sent {
        Sent { destination: OWN, stage: Stage::Session, payload: wrapped(number, packet) }
    }
}

/// A PADI for any service.
pub fn padi() -> Sent {
    let payload = Builder::new(Code::PADI, 0).tag(TagType::SERVICE_NAME, b"").finish().unwrap();
    Sent { destination: MacAddress::BROADCAST, stage: Stage::Discovery, payload }
}

pub struct Host {
    pub client: Client,
    pub mac: MacAddress,
    pub place: Place,
    pub user: String,
    config: client::Config,
    pub is_dead: bool,
    /// What the client did, but for what it sent.
    pub done: Vec<client::Action>,
    pub sent: Vec<(Time, Sent)>,
    random: Seeded,
}

impl Host {
    /// One that tries once, until [`Host::persisting`].
    pub fn new(number: u32, place: Place, user: &str, password: &str, methods: &[Method]) -> Host {
        let [_, a, b, c] = number.to_be_bytes();
        let host = session::Host { user: user.into(), secret: password.into(), ..line::host(methods) };
        let session = line::of_host(host);
        let reconnect = Reconnect { most: Some(1), ..Reconnect::DEFAULT };
        let config = client::Config { discovery: host::Config::default(), session, reconnect };
        let mac = MacAddress([2, 0x10, 0, a, b, c]);
        Host {
            client: Client::new(Arc::new(config.clone()), mac),
            mac,
            place,
            user: user.to_owned(),
            config,
            is_dead: false,
            done: Vec::new(),
            sent: Vec::new(),
            random: Seeded::new(u64::from(number) + 7),
        }
    }

    pub fn configured(mut self, change: impl FnOnce(&mut client::Config)) -> Host {
        change(&mut self.config);
        self.reset();
        self
    }

    /// One that tries again and again, in a few seconds whatever happened.
    pub fn persisting(self) -> Host {
        let wait = seconds(5);
        let often = Reconnect { first: wait, longest: wait, lasting: wait, stable: seconds(30), most: None };
        self.configured(|config| config.reconnect = often)
    }

    /// Forgets everything, as by a loss of power.
    pub fn reset(&mut self) {
        self.client = Client::new(Arc::new(self.config.clone()), self.mac);
    }

    pub fn is_up(&self) -> bool {
        self.client.status(Time::ZERO).phase == Phase::Open
    }

    pub fn opened(&self) -> Option<Opened> {
        self.client.status(Time::ZERO).session
    }

    pub fn number(&self) -> Option<u16> {
        self.opened().map(|opened| opened.session)
    }

    pub fn ipv4(&self) -> Option<Ipv4> {
        self.opened()?.ipv4
    }

    pub fn ipv6(&self) -> Option<Ipv6> {
        self.opened()?.ipv6
    }

    /// Its session goes on without IPv4, which nobody negotiates any more.
    pub fn has_given_up_ipv4(&self) -> bool {
        self.ipv4().is_none() && !self.client.awaits(Family::Ipv4)
    }

    pub fn ends(&self) -> Vec<client::End> {
        let end = |action: &client::Action| match action {
            client::Action::Closed { end, .. } => Some(end.clone()),
            _ => None,
        };
        self.done.iter().filter_map(end).collect()
    }

    /// Whether the end of a session or an attempt was reported to it with these words.
    pub fn ended_with(&self, words: &str) -> bool {
        self.ends().iter().any(|end| end.to_string().contains(words))
    }

    pub fn notices(&self) -> Vec<String> {
        let notice = |action: &client::Action| match action {
            client::Action::Notice(notice) => Some(notice.to_string()),
            _ => None,
        };
        self.done.iter().filter_map(notice).collect()
    }

    pub fn waits(&self) -> Vec<Duration> {
        let wait = |action: &client::Action| match action {
            client::Action::Waits(wait) => Some(*wait),
            _ => None,
        };
        self.done.iter().filter_map(wait).collect()
    }

    /// A packet of its session, whatever its client thinks.
    pub fn send_raw(&self, packet: &[u8]) -> Sent {
        Sent::session(self.number().unwrap(), packet)
    }

    fn deadline(&self) -> Option<Time> {
        self.client.deadline().filter(|_| !self.is_dead)
    }
}

#[derive(Clone)]
struct Frame {
    /// `None`: to the concentrator.
    host: Option<usize>,
    place: Place,
    source: MacAddress,
    sent: Sent,
}

/// What the wires do to frames, in thousandths.
#[derive(Clone, Copy, Default)]
pub struct Wires {
    pub loss: u32,
    pub duplication: u32,
    pub reordering: u32,
}

pub struct World {
    pub now: Time,
    pub own: MacAddress,
    pub concentrator: Concentrator,
    pub hosts: Vec<Host>,
    pub wires: Wires,
    /// What frames have space for on the concentrator's port, whatever their tags.
    pub max_payload: u16,
    frames: BTreeMap<(Time, u64), Frame>,
    count: u64,
    chance: Seeded,
    random: Seeded,
    pub installed: BTreeMap<Id, Installed>,
    pub traffic: BTreeMap<Id, Traffic>,
    pub ends: Vec<End>,
    pub records: Vec<Record>,
    pub notices: Vec<String>,
    /// What somebody else is to answer.
    pub questions: Vec<Question>,
    /// Sessions of which something else changed that is saved.
    pub changed: Vec<Id>,
    pub sent: Vec<(Place, MacAddress, Stage, Vec<u8>)>,
}

impl World {
    pub fn new(config: Config, secrets: Secrets, seed: u64) -> World {
        let mut random = Seeded::new(seed);
        let now = seconds(1000);
        World {
            now,
            own: OWN,
            concentrator: Concentrator::new(config, secrets, now, &mut random).unwrap(),
            hosts: Vec::new(),
            wires: Wires::default(),
            max_payload: u16::MAX,
            frames: BTreeMap::new(),
            count: 0,
            chance: Seeded::new(seed + 1),
            random,
            installed: BTreeMap::new(),
            traffic: BTreeMap::new(),
            ends: Vec::new(),
            records: Vec::new(),
            notices: Vec::new(),
            questions: Vec::new(),
            changed: Vec::new(),
            sent: Vec::new(),
        }
    }

    /// Another process in the place of the concentrator, which has no sessions yet.
    pub fn replace(&mut self, config: Config, secrets: Secrets) {
        self.installed.clear();
        self.traffic.clear();
        self.concentrator = Concentrator::new(config, secrets, self.now, &mut self.random).unwrap();
    }

    pub fn add(&mut self, host: Host) -> usize {
        self.hosts.push(host);
        self.hosts.len() - 1
    }

    /// Adds a host that connects.
    pub fn join(&mut self, host: Host) -> usize {
        let host = self.add(host);
        self.connect(host);
        host
    }

    pub fn chance(&mut self, thousandths: u32) -> bool {
        self.chance.below(1000) < thousandths
    }

    pub fn pick(&mut self, count: usize) -> usize {
        self.chance.below(count as u32) as usize
    }

    /// Lets the concentrator act, and does what comes of it.
    pub fn act<R>(&mut self, act: impl FnOnce(&mut Concentrator, &mut Step<'_>) -> R) -> R {
        let mut actions = Vec::new();
        let World { concentrator, random, traffic, now, .. } = self;
        let mut step = Step {
            now: *now,
            random,
            traffic: &mut |id| traffic.get(&id).copied().unwrap_or_default(),
            actions: &mut actions,
        };
        let result = act(concentrator, &mut step);
        for action in actions {
            match action {
                Action::Send { place, destination, stage, payload } => {
                    self.sent.push((place, destination, stage, payload.clone()));
                    self.put_to_hosts(place, self.own, Sent { destination, stage, payload });
                }
                Action::Installed(installed) => {
                    assert!(installed.ipv4.is_some() || installed.ipv6.is_some());
                    self.installed.insert(installed.identity.id, *installed);
                }
                Action::Changed(id) => self.changed.push(id),
                Action::Draining(_) => {}
                Action::Removed(id) => {
                    assert!(self.installed.remove(&id).is_some(), "{id} is removed and was not there");
                    self.traffic.remove(&id);
                }
                Action::Account(record) => self.records.push(*record),
                Action::Ask(question) => self.questions.push(*question),
                Action::Ended(end) => {
                    let is_installed = self.installed.contains_key(&end.identity.id);
                    assert!(!is_installed, "{end:?} is over and still installed");
                    assert!(!end.cause.to_string().is_empty());
                    self.ends.push(*end);
                }
                Action::Notice(notice) => self.notices.push(notice.to_string()),
            }
        }
        result
    }

    fn put_to_hosts(&mut self, place: Place, source: MacAddress, sent: Sent) {
        let host = self.hosts.iter().position(|host| host.mac == sent.destination && host.place == place);
        if host.is_some() {
            self.put(Frame { host, place, source, sent });
        }
    }

    fn put(&mut self, frame: Frame) {
        let Wires { loss, duplication, reordering } = self.wires;
        for copy in 0..2 {
            if copy == 1 && !self.chance(duplication) || self.chance(loss) {
                continue;
            }
            let late = if self.chance(reordering) { self.chance.below(200) } else { 0 };
            let delay = Duration::from_millis(1 + u64::from(late));
            self.count += 1;
            self.frames.insert((self.now + delay, self.count), frame.clone());
        }
    }

    /// A frame of a host, perhaps from elsewhere than the host is.
    pub fn inject(&mut self, place: Place, source: MacAddress, sent: Sent) {
        self.put(Frame { host: None, place, source, sent });
    }

    /// A frame without delay, and what the concentrator sends back at once.
    pub fn ask(&mut self, place: Place, source: MacAddress, sent: &Sent) -> Vec<(Stage, Vec<u8>)> {
        self.sent.clear();
        self.arrive(place, source, sent);
        self.sent.drain(..).map(|(_, _, stage, payload)| (stage, payload)).collect()
    }

    /// A packet of a host's session, whatever its client thinks, and what the concentrator sends back at once.
    pub fn ask_as(&mut self, host: usize, packet: &[u8]) -> Vec<(Stage, Vec<u8>)> {
        let Host { place, mac, .. } = self.hosts[host];
        let sent = self.hosts[host].send_raw(packet);
        self.ask(place, mac, &sent)
    }

    /// A PADR for a fresh offer.
    pub fn padr(&mut self, place: Place, source: MacAddress) -> Builder {
        let offer = self.ask(place, source, &padi()).remove(0).1;
        let cookie = Message::parse(&offer).unwrap().cookie().unwrap().to_vec();
        Builder::new(Code::PADR, 0).tag(TagType::SERVICE_NAME, b"").tag(TagType::AC_COOKIE, &cookie)
    }

    /// Texts of the PADT that the concentrator has sent; an empty one where it says nothing.
    pub fn padts(&self) -> Vec<String> {
        let text = |payload: &[u8]| {
            let padt = Message::parse(payload).ok().filter(|message| message.code() == Code::PADT)?;
            let text = padt.first(TagType::GENERIC_ERROR).unwrap_or_default();
            Some(String::from_utf8(text.to_vec()).unwrap())
        };
        self.sent.iter().filter_map(|(.., payload)| text(payload)).collect()
    }

    /// The last records of sessions.
    pub fn stops(&self) -> Vec<&Record> {
        self.records.iter().filter(|record| matches!(record.event, Event::Stop(_))).collect()
    }

    fn arrive(&mut self, place: Place, source: MacAddress, sent: &Sent) {
        let packet = Packet { source, destination: sent.destination, payload: &sent.payload };
        let arrival = Arrival { place, own: self.own, max_payload: self.max_payload, packet };
        self.act(|concentrator, step| concentrator.receive(step, sent.stage, &arrival));
    }

    /// Lets a client act, and sends what comes of it.
    pub fn of<R>(
        &mut self,
        number: usize,
        act: impl FnOnce(&mut Client, Time, &mut dyn Random, &mut Vec<client::Action>) -> R,
    ) -> R {
        let (now, mut actions) = (self.now, Vec::new());
        let host = &mut self.hosts[number];
        let result = act(&mut host.client, now, &mut host.random, &mut actions);
        let (place, mac) = (host.place, host.mac);
        for action in actions {
            match action {
                client::Action::Send { stage, destination, payload } => {
                    let sent = Sent { destination, stage, payload };
                    self.hosts[number].sent.push((now, sent.clone()));
                    self.inject(place, mac, sent);
                }
                other => self.hosts[number].done.push(other),
            }
        }
        result
    }

    pub fn connect(&mut self, host: usize) {
        self.of(host, Client::start);
    }

    pub fn close(&mut self, host: usize) {
        self.of(host, Client::close);
    }

    /// A frame reaches a host, whoever sent it.
    pub fn come(&mut self, host: usize, source: MacAddress, sent: &Sent) {
        let packet = Packet { source, destination: sent.destination, payload: &sent.payload };
        self.of(host, |client, now, random, actions| {
            client.receive(now, sent.stage, packet, random, actions)
        });
    }

    pub fn run(&mut self, time: Duration) {
        self.run_until(time, |_| false);
    }

    /// Runs until `done` holds, or for so long. Whether `done` holds.
    pub fn run_until(&mut self, time: Duration, done: impl Fn(&World) -> bool) -> bool {
        let end = self.now + time;
        loop {
            if done(self) {
                return true;
            }
            let hosts =
                self.hosts.iter().zip(0..).filter_map(|(host, number)| Some((host.deadline()?, number)));
            let host = hosts.min();
            let frame = self.frames.keys().next().map(|(time, _)| *time);
            let own = self.concentrator.deadline();
            let next = [host.map(|(time, _)| time), frame, own].into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            if own.is_some_and(|own| own <= self.now) {
                self.act(|concentrator, step| concentrator.tick(step));
                let later = self.concentrator.deadline();
                assert!(later.is_none_or(|later| later > self.now), "a step leaves nothing due: {later:?}");
            }
            if let Some((_, number)) = host.filter(|(time, _)| *time <= self.now) {
                self.of(number, Client::tick);
                let later = self.hosts[number].client.deadline();
                assert!(later.is_none_or(|later| later > self.now), "a busy loop: {later:?}");
            }
            if let Some(entry) = self.frames.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let Frame { host, place, source, sent } = entry.remove();
                match host {
                    Some(host) if self.hosts[host].is_dead => {}
                    Some(host) => self.come(host, source, &sent),
                    None => self.arrive(place, source, &sent),
                }
            }
        }
        self.now = end;
        false
    }

    /// Everything agrees with everything.
    pub fn check(&self) {
        self.concentrator.check();
        let mut addresses = BTreeSet::new();
        for installed in self.installed.values() {
            if let Some((_, address)) = installed.ipv4 {
                assert!(addresses.insert(address), "{address} twice");
            }
        }
        let listed: Vec<_> = self.concentrator.sessions(self.now).collect();
        assert_eq!(listed.len(), self.concentrator.len());
        assert!(self.installed.keys().all(|id| listed.iter().any(|session| session.identity.id == *id)));
        let starts = self.records.iter().filter(|record| record.event == Event::Start).count();
        let open = listed.iter().filter(|session| session.uptime.is_some()).count();
        assert_eq!(starts, open + self.stops().len(), "every start has a stop, or its session goes on");
    }

    pub fn up(&self) -> usize {
        self.hosts.iter().filter(|host| host.is_up()).count()
    }

    /// What the data path has of a user's session.
    pub fn installed_of(&self, user: &str) -> Installed {
        let mut all = self.installed.values();
        all.find(|installed| *installed.identity.user() == *user.as_bytes()).expect("installed").clone()
    }
}
