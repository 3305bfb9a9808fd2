//! A sequence of frames, times and requests to an access concentrator: no panic; no more sessions than the caps allow; no
//! address twice, nothing taken from the data path that it has not got; every session ends with one reason; and once nobody
//! speaks any more all sessions end, and all addresses are free.
//!
//! Each step is a byte that says what, a byte that says which host, and what it needs: see `step`. Passwords are known, so
//! that sessions come up.

use rxlane_pppoe::concentrator::accounting::Traffic;
use rxlane_pppoe::concentrator::secrets::Secrets;
use rxlane_pppoe::concentrator::{Action, Caps, Concentrator, Config, Filter, Id, Snapshot, Step};
use rxlane_pppoe::discovery::concentrator::Arrival;
use rxlane_pppoe::discovery::message::{Builder, Message, padt};
use rxlane_pppoe::discovery::place::Place;
use rxlane_pppoe::discovery::{Packet, is_session};
use rxlane_pppoe::framing::{unwrapped, wrapped};
use rxlane_pppoe::session::Method;
use rxlane_wire::emit::{Emit, Ipv6, Udp, checksum};
use rxlane_wire::ethernet::{EtherType, MacAddress};
use rxlane_wire::pppoe::{Code, Stage, TagType};
use rxlane_wire::vlan::{Tag, Tci};
use rxlane_wire::{IpProtocol, Vlans};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

const OWN: MacAddress = MacAddress([2, 0, 0, 0, 0, 0xac]);
const HOSTS: usize = 8;
const CAPS: Caps = Caps { sessions: 6, half_open: 5, place: 5, place_half_open: 4, station: 3, line: 2 };
const ADDRESSES: u32 = 3;
const SECRETS: &str = "u0 * p *\nu1 * p 10.0.0.9\nu2 * p -\n* * p *\n";

pub fn run(bytes: &[u8]) {
    let mut world = World::new();
    let mut rest = bytes;
    while let [what, which, behind @ ..] = rest {
        rest = world.step(*what, usize::from(*which), behind);
        world.check();
    }
    world.silence();
}

struct World {
    concentrator: Concentrator,
    now: Duration,
    seed: u64,
    /// Number of each host's session, and the last Configure-Requests that came to it, by protocol.
    hosts: [(u16, BTreeMap<[u8; 2], Vec<u8>>); HOSTS],
    installed: BTreeMap<Id, Option<Ipv4Addr>>,
    confirmed: u64,
    ended: u64,
}

fn config() -> Config {
    let mut config = Config::new(b"ac");
    config.methods = vec![Method::Pap, Method::ChapMd5];
    config.local = Some(Ipv4Addr::new(10, 0, 0, 1));
    config.pool = vec!["10.0.0.2-10.0.0.4".parse().expect("a range")];
    config.identifier = Some(1);
    config.prefixes = Some("2001:db8::/62".parse().expect("a network"));
    config.delegated = Some(("2001:db8:4::/46".parse().expect("a network"), 48));
    config.caps = CAPS;
    config.interim = Some(Duration::from_secs(50));
    config
}

fn secrets() -> Secrets {
    Secrets::parse(SECRETS.as_bytes(), b"ac", config().local).expect("secrets")
}

/// Two hosts share a VLAN, and two VLANs a MAC address.
fn address(host: usize) -> (Place, MacAddress) {
    let tag = Tag { tpid: EtherType::VLAN, tci: Tci((host / 2) as u16) };
    let place = Place { port: 1, vlans: Vlans::of([tag]).expect("a tag") };
    (place, MacAddress([2, 0, 0, 0, 1, (host % 3) as u8]))
}

fn random(seed: &mut u64) -> impl FnMut(&mut [u8]) {
    |bytes: &mut [u8]| {
        for byte in bytes {
            *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *byte = (*seed >> 56) as u8;
        }
    }
}

impl World {
    fn new() -> World {
        let (now, mut seed) = (Duration::from_secs(1000), 1);
        let concentrator =
            Concentrator::new(config(), secrets(), now, &mut random(&mut seed)).expect("a configuration");
        let hosts = Default::default();
        World { concentrator, now, seed, hosts, installed: BTreeMap::new(), confirmed: 0, ended: 0 }
    }

    /// Takes a step, and gives what is behind it.
    fn step<'a>(&mut self, what: u8, which: usize, behind: &'a [u8]) -> &'a [u8] {
        let host = which % HOSTS;
        match what % 11 {
            0 => self.discover(host),
            1 => {
                let (packet, behind) = part(behind);
                self.receive(host, Stage::Session, &wrapped(self.hosts[host].0, packet));
                return behind;
            }
            // An Ack to each of the last Configure-Requests.
            2 => {
                for mut packet in std::mem::take(&mut self.hosts[host].1).into_values() {
                    packet[2] = 2;
                    self.receive(host, Stage::Session, &wrapped(self.hosts[host].0, &packet));
                }
            }
            3 => {
                let packet = [0xc0, 0x23, 1, 7, 0, 9, 2, b'u', b'0' + (host % 4) as u8, 1, b'p'];
                self.receive(host, Stage::Session, &wrapped(self.hosts[host].0, &packet));
            }
            4 => {
                self.receive(host, Stage::Discovery, &padt(self.hosts[host].0, None));
            }
            5 => self.pass(Duration::from_secs(which as u64)),
            6 => self.restart(),
            7 => {
                let user = (which % 2 == 1).then_some(&b"u0"[..]);
                self.act(|concentrator, step| {
                    concentrator.disconnect(step, &Filter { user, ..Filter::default() });
                });
            }
            8 => {
                let text = SECRETS.lines().skip(which % 4).collect::<Vec<_>>().join("\n");
                let secrets = Secrets::parse(text.as_bytes(), b"ac", config().local).expect("secrets");
                let mut reloaded = None;
                self.act(|concentrator, step| reloaded = Some(concentrator.reload(step, secrets)));
                let reloaded = reloaded.expect("done");
                for (id, _) in reloaded.disagreeing {
                    self.act(|concentrator, step| {
                        concentrator.disconnect(step, &Filter { id: Some(id), ..Filter::default() });
                    });
                }
            }
            // What a host requests of its router by IPv6, with a right checksum.
            9 => {
                let (payload, behind) = part(behind);
                let packet = of_ipv6(which < 128, payload);
                self.receive(host, Stage::Session, &wrapped(self.hosts[host].0, &packet));
                return behind;
            }
            _ => {
                let (payload, behind) = part(behind);
                let stage = if which < 128 { Stage::Discovery } else { Stage::Session };
                self.receive(host, stage, payload);
                return behind;
            }
        }
        behind
    }

    fn receive(&mut self, host: usize, stage: Stage, payload: &[u8]) -> Vec<Vec<u8>> {
        let (place, source) = address(host);
        let is_padi = stage == Stage::Discovery && payload.get(1) == Some(&Code::PADI.0);
        let destination = if is_padi { MacAddress::BROADCAST } else { OWN };
        let packet = Packet { source, destination, payload };
        let arrival = Arrival { place, own: OWN, max_payload: u16::MAX, packet };
        self.act(|concentrator, step| concentrator.receive(step, stage, &arrival))
    }

    fn discover(&mut self, host: usize) {
        let padi = Builder::new(Code::PADI, 0).tag(TagType::SERVICE_NAME, b"").finish().expect("it fits");
        let offers = self.receive(host, Stage::Discovery, &padi);
        let Some(offer) = offers.first().map(|offer| Message::parse(offer).expect("a PADO")) else { return };
        let cookie = offer.cookie().expect("a cookie");
        let padr =
            Builder::new(Code::PADR, 0).tag(TagType::SERVICE_NAME, b"").tag(TagType::AC_COOKIE, cookie);
        let answers = self.receive(host, Stage::Discovery, &padr.finish().expect("it fits"));
        let Some(answer) = answers.first().and_then(|answer| Message::parse(answer).ok()) else { return };
        if answer.session() != 0 {
            assert!(is_session(answer.session()));
            self.hosts[host].0 = answer.session();
        }
    }

    fn act(&mut self, act: impl FnOnce(&mut Concentrator, &mut Step<'_>)) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        let World { concentrator, now, seed, .. } = self;
        let mut random = random(seed);
        let traffic = &mut |_: Id| Traffic { sent_octets: u64::MAX, ..Traffic::default() };
        act(concentrator, &mut Step { now: *now, random: &mut random, traffic, actions: &mut out });
        drop(random);
        let mut discovery = Vec::new();
        for action in out {
            match action {
                Action::Send { stage: Stage::Discovery, payload, .. } => discovery.push(payload),
                Action::Send { destination, place, payload, .. } => {
                    let (number, packet) = unwrapped(&payload).expect("a packet");
                    let [a, b, 1, ..] = *packet else { continue };
                    for host in (0..HOSTS).filter(|host| address(*host) == (place, destination)) {
                        self.hosts[host].0 = number;
                        self.hosts[host].1.insert([a, b], packet.to_vec());
                    }
                }
                Action::Installed(installed) => {
                    let address = installed.ipv4.map(|(_, address)| address);
                    assert!(address.is_some() || installed.ipv6.is_some());
                    self.installed.insert(installed.identity.id, address);
                }
                Action::Removed(id) => assert!(self.installed.remove(&id).is_some()),
                Action::Ended(end) => {
                    assert!(
                        !self.installed.contains_key(&end.identity.id) && !end.cause.to_string().is_empty()
                    );
                    self.ended += 1;
                }
                Action::Notice(notice) => assert!(!notice.to_string().chars().any(char::is_control)),
                Action::Account(_) | Action::Changed(_) | Action::Draining(_) => {}
                Action::Ask(question) => unreachable!("the secrets have everybody: {question:?}"),
            }
        }
        discovery
    }

    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(next) = self.concentrator.deadline().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.act(|concentrator, step| concentrator.tick(step));
            assert!(
                self.concentrator.deadline().is_none_or(|next| next > self.now),
                "nothing is due behind a step"
            );
        }
        self.now = end;
    }

    /// Another process goes on with what there is.
    fn restart(&mut self) {
        let mut snapshot = None;
        self.act(|concentrator, step| snapshot = Some(concentrator.snapshot(step)));
        let text = serde_json::to_string(&snapshot).expect("JSON");
        let snapshot: Snapshot = serde_json::from_str(&text).expect("a snapshot");
        let open = snapshot.len();
        self.count();
        let all = self.concentrator.len() as u64;
        self.concentrator = Concentrator::new(config(), secrets(), self.now, &mut random(&mut self.seed))
            .expect("a configuration");
        self.installed.clear();
        (self.confirmed, self.ended) = (all, 0);
        self.act(|concentrator, step| {
            let restored = concentrator.restore(step, snapshot, Duration::ZERO).expect("this version");
            assert!(restored.sessions <= open && (restored.sessions + restored.ended) as u64 == all);
        });
        self.confirmed -= self.concentrator.counters().confirmed;
    }

    /// Every session is there, has ended, or gave way before anybody heard of it.
    fn count(&self) {
        let counters = self.concentrator.counters();
        let over = self.ended + counters.gave_way;
        assert_eq!(self.confirmed + counters.confirmed, over + self.concentrator.len() as u64);
    }

    fn check(&self) {
        self.count();
        let listed: Vec<_> = self.concentrator.sessions(self.now).collect();
        assert_eq!(listed.len(), self.concentrator.len());
        assert!(listed.len() <= CAPS.sessions as usize);
        assert!(self.installed.keys().all(|id| listed.iter().any(|session| session.identity.id == *id)));
        let addresses: BTreeSet<_> = self.installed.values().flatten().collect();
        assert_eq!(addresses.len(), self.installed.values().flatten().count());
    }

    /// Nobody speaks any more.
    fn silence(&mut self) {
        self.pass(Duration::from_secs(1000));
        self.check();
        assert!(
            self.concentrator.is_empty() && self.installed.is_empty() && self.concentrator.half_open() == 0
        );
        assert_eq!(
            (self.concentrator.free_addresses(), self.concentrator.free_prefixes()),
            (ADDRESSES, Some(4))
        );
        assert_eq!(self.concentrator.deadline(), None);
    }
}

/// A packet of PPP around one of IPv6: a message of DHCPv6, or of ICMPv6, which it begins with.
fn of_ipv6(is_dhcp: bool, payload: &[u8]) -> Vec<u8> {
    let (from, to) = (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2), Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 1, 2));
    let (protocol, mut inside) = match is_dhcp {
        true => {
            let mut bytes = vec![0; 8];
            let length = 8 + payload.len() as u16;
            let header = Udp { source_port: 546, destination_port: 547, length, checksum: 0 };
            header.emit(&mut bytes).expect("room");
            bytes.extend(payload);
            (IpProtocol::UDP, bytes)
        }
        false => (IpProtocol::ICMPV6, [&[133, 0, 0, 0], payload].concat()),
    };
    checksum::fill(from.into(), to.into(), protocol, &mut inside).expect("a checksum field");
    let header = Ipv6 { hop_limit: 255, ..Ipv6::new(protocol, from, to, inside.len() as u16) };
    let mut bytes = vec![0; 40];
    header.emit(&mut bytes).expect("room");
    [&[0, 0x57][..], &bytes, &inside].concat()
}

/// As many bytes as the first says.
fn part(bytes: &[u8]) -> (&[u8], &[u8]) {
    match bytes {
        [length, rest @ ..] => rest.split_at(rest.len().min(usize::from(*length))),
        [] => (&[], &[]),
    }
}
