//! A concentrator, its data path, hosts, and the wires between, in virtual time and from a seed.

use super::host::{Host, Sent};
use crate::Time;
use crate::concentrator::accounting::{Event, Record, Traffic};
use crate::concentrator::secrets::Secrets;
use crate::concentrator::{Action, Concentrator, Config, End, Id, Installed, Turn};
use crate::discovery::Packet;
use crate::discovery::concentrator::Arrival;
use crate::discovery::place::Place;
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wire::Vlans;
use wire::ethernet::{EtherType, MacAddress};
use wire::pppoe::Stage;
use wire::vlan::{Tag, Tci};

pub const OWN: MacAddress = MacAddress([2, 0, 0, 0, 0, 0xac]);

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

#[derive(Clone)]
struct Frame {
    /// `None`: to the concentrator.
    host: Option<usize>,
    place: Place,
    source: MacAddress,
    destination: MacAddress,
    stage: Stage,
    payload: Vec<u8>,
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
    pub concentrator: Concentrator,
    pub hosts: Vec<Host>,
    pub wires: Wires,
    /// What frames have room for on the concentrator's port, whatever their tags.
    pub room: u16,
    frames: BTreeMap<(Time, u64), Frame>,
    count: u64,
    chance: Xoshiro256PlusPlus,
    pub random: Xoshiro256PlusPlus,
    pub installed: BTreeMap<Id, Installed>,
    pub traffic: BTreeMap<Id, Traffic>,
    pub ends: Vec<End>,
    pub records: Vec<Record>,
    pub remarks: Vec<String>,
    pub sent: Vec<(Place, MacAddress, Stage, Vec<u8>)>,
}

impl World {
    pub fn new(config: Config, secrets: Secrets, seed: u64) -> World {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let now = Duration::from_secs(1000);
        let concentrator =
            Concentrator::new(config, secrets, now, &mut |octets: &mut [u8]| random.fill_bytes(octets))
                .unwrap();
        World {
            now,
            concentrator,
            hosts: Vec::new(),
            wires: Wires::default(),
            room: u16::MAX,
            frames: BTreeMap::new(),
            count: 0,
            chance: Xoshiro256PlusPlus::seed_from_u64(seed + 1),
            random,
            installed: BTreeMap::new(),
            traffic: BTreeMap::new(),
            ends: Vec::new(),
            records: Vec::new(),
            remarks: Vec::new(),
            sent: Vec::new(),
        }
    }

    pub fn add(&mut self, host: Host) -> usize {
        self.hosts.push(host);
        self.hosts.len() - 1
    }

    pub fn chance(&mut self, thousandths: u32) -> bool {
        self.chance.next_u32() % 1000 < thousandths
    }

    pub fn pick(&mut self, count: usize) -> usize {
        self.chance.next_u32() as usize % count
    }

    /// Lets the concentrator act, and does what comes of it.
    pub fn act<R>(&mut self, act: impl FnOnce(&mut Concentrator, &mut Turn<'_>, &mut Vec<Action>) -> R) -> R {
        let mut out = Vec::new();
        let World { concentrator, random, traffic, now, .. } = self;
        let mut turn = Turn {
            now: *now,
            random: &mut |octets: &mut [u8]| random.fill_bytes(octets),
            traffic: &mut |id| traffic.get(&id).copied().unwrap_or_default(),
        };
        let result = act(concentrator, &mut turn, &mut out);
        self.carry_out(out);
        result
    }

    pub fn carry_out(&mut self, out: Vec<Action>) {
        for action in out {
            match action {
                Action::Send { place, destination, stage, payload } => {
                    self.sent.push((place, destination, stage, payload.clone()));
                    let host =
                        self.hosts.iter().position(|host| host.mac == destination && host.place == place);
                    if host.is_some() {
                        self.put(Frame { host, place, source: OWN, destination, stage, payload });
                    }
                }
                Action::Installed(installed) => {
                    assert!(installed.ipv4.is_some() || installed.ipv6.is_some());
                    self.installed.insert(installed.id, *installed);
                }
                Action::Removed(id) => {
                    assert!(self.installed.remove(&id).is_some(), "{id} is removed and was not there");
                    self.traffic.remove(&id);
                }
                Action::Account(record) => self.records.push(*record),
                Action::Ended(end) => {
                    assert!(!self.installed.contains_key(&end.id), "{end:?} is over and still installed");
                    assert!(!end.cause.to_string().is_empty());
                    self.ends.push(*end);
                }
                Action::Remark(remark) => self.remarks.push(remark.to_string()),
            }
        }
    }

    fn put(&mut self, frame: Frame) {
        let Wires { loss, duplication, reordering } = self.wires;
        for copy in 0..2 {
            if copy == 1 && !self.chance(duplication) || self.chance(loss) {
                continue;
            }
            let late = if self.chance(reordering) { self.chance.next_u32() % 200 } else { 0 };
            let delay = Duration::from_millis(1 + u64::from(late));
            self.count += 1;
            self.frames.insert((self.now + delay, self.count), frame.clone());
        }
    }

    /// A frame of a host, perhaps from elsewhere than the host is.
    pub fn inject(&mut self, place: Place, source: MacAddress, sent: Sent) {
        let Sent { destination, stage, payload } = sent;
        self.put(Frame { host: None, place, source, destination, stage, payload });
    }

    pub fn of<R>(&mut self, host: usize, act: impl FnOnce(&mut Host, Time, &mut Vec<Sent>) -> R) -> R {
        let mut sent = Vec::new();
        let result = act(&mut self.hosts[host], self.now, &mut sent);
        let (place, mac) = (self.hosts[host].place, self.hosts[host].mac);
        for sent in sent {
            self.inject(place, mac, sent);
        }
        result
    }

    pub fn connect(&mut self, host: usize) {
        self.of(host, Host::connect);
    }

    fn deliver(&mut self, frame: Frame) {
        let Frame { host, place, source, destination, stage, payload } = frame;
        match host {
            Some(host) => self.of(host, |host, now, sent| host.receive(now, source, stage, &payload, sent)),
            None => {
                let packet = Packet { source, destination, payload: &payload };
                let arrival = Arrival { place, own: OWN, room: self.room, packet };
                self.act(|concentrator, turn, out| concentrator.receive(turn, stage, &arrival, out));
            }
        }
    }

    pub fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            let hosts =
                self.hosts.iter().enumerate().filter_map(|(number, host)| Some((host.deadline()?, number)));
            let host = hosts.min();
            let frame = self.frames.keys().next().map(|(time, _)| *time);
            let own = self.concentrator.deadline();
            let next = [host.map(|(time, _)| time), frame, own].into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            if own.is_some_and(|own| own <= self.now) {
                self.act(|concentrator, turn, out| concentrator.tick(turn, out));
                let later = self.concentrator.deadline();
                assert!(
                    later.is_none_or(|later| later > self.now),
                    "a turn leaves nothing due: {later:?} {:?}",
                    self.now
                );
            }
            if let Some((_, number)) = host.filter(|(time, _)| *time <= self.now) {
                self.of(number, Host::tick);
            }
            if let Some(entry) = self.frames.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let frame = entry.remove();
                self.deliver(frame);
            }
        }
        self.now = end;
    }

    /// Everything agrees with everything.
    pub fn check(&self) {
        self.concentrator.table.check();
        let mut addresses = BTreeSet::new();
        for installed in self.installed.values() {
            if let Some((_, address)) = installed.ipv4 {
                assert!(addresses.insert(address), "{address} twice");
            }
        }
        let listed: Vec<_> = self.concentrator.sessions(self.now).collect();
        assert_eq!(listed.len(), self.concentrator.len());
        assert!(self.installed.keys().all(|id| listed.iter().any(|session| session.id == *id)));
        let count =
            |wanted: fn(&Event) -> bool| self.records.iter().filter(|record| wanted(&record.event)).count();
        let open = listed.iter().filter(|session| session.uptime.is_some()).count();
        assert_eq!(
            count(|event| matches!(event, Event::Start)),
            open + count(|event| matches!(event, Event::Stop(_))),
            "every start has a stop, but for the sessions that go on"
        );
    }

    pub fn up(&self) -> usize {
        self.hosts.iter().filter(|host| host.is_up()).count()
    }
}
