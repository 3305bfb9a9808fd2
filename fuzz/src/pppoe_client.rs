//! A sequence of frames, times and events to a PPPoE client: no panic; sessions open and close in turn, and what is over sends no
//! PPP any more; whatever happens it waits no longer than it should, and closed it has nothing left to do.
//!
//! Each step is a byte that says what, a byte that says which concentrator or how long, and what it needs: see `step`. The
//! concentrators want no authentication, so that sessions come up.

use rxlane_pppoe::client::{Action, Client, Config, Phase, Reconnect};
use rxlane_pppoe::discovery::message::{Builder, Message, padt};
use rxlane_pppoe::discovery::{Packet, host};
use rxlane_pppoe::framing::{unwrapped, wrapped};
use rxlane_pppoe::session::{self, Method, Role, Timers};
use rxlane_wire::ethernet::MacAddress;
use rxlane_wire::pppoe::{Code, Stage, TagType};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

pub fn run(bytes: &[u8]) {
    let mut world = World::new();
    let mut rest = bytes;
    while let [what, which, behind @ ..] = rest {
        rest = world.step(*what, *which, behind);
    }
    world.end();
}

struct World {
    client: Client,
    own: MacAddress,
    now: Duration,
    seed: u64,
    /// The last PADI or PADR, and to whom.
    request: Option<(MacAddress, Vec<u8>)>,
    /// The concentrator and number of the session, and the last Configure-Requests of this client, by protocol.
    session: (MacAddress, u16),
    requests: BTreeMap<[u8; 2], Vec<u8>>,
    is_open: bool,
    /// Whether anything of a session may be sent.
    may_speak: bool,
}

fn config() -> Config {
    let role = Role::Host(session::Host {
        user: b"u".to_vec(),
        secret: b"p".to_vec(),
        methods: vec![Method::ChapMd5, Method::Pap],
        ipv4: Some(Ipv4Addr::UNSPECIFIED),
        dns: true,
        ipv6: Some(0),
    });
    let session = Arc::new(session::Config { role, timers: Timers::DEFAULT });
    Config { discovery: host::Config::default(), session, reconnect: Reconnect::DEFAULT }
}

const fn concentrator(which: u8) -> MacAddress {
    MacAddress([2, 0, 0, 0, 1, which % 2])
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
        let own = MacAddress([2, 0, 0, 0, 0, 1]);
        let mut world = World {
            client: Client::new(Arc::new(config()), own),
            own,
            now: Duration::from_secs(1000),
            seed: 1,
            request: None,
            session: (concentrator(0), 0),
            requests: BTreeMap::new(),
            is_open: false,
            may_speak: false,
        };
        world.act(|client, now, random, out| client.start(now, random, out));
        world
    }

    /// Takes a step, and gives what is behind it.
    fn step<'a>(&mut self, what: u8, which: u8, behind: &'a [u8]) -> &'a [u8] {
        match what % 10 {
            0 => self.answer(which),
            1 => {
                let (packet, behind) = part(behind);
                self.speak(packet);
                return behind;
            }
            // An Ack to each of the last Configure-Requests.
            2 => {
                for mut packet in std::mem::take(&mut self.requests).into_values() {
                    packet[2] = 2;
                    self.speak(&packet);
                }
            }
            // Requests of the other end: LCP, IPCP, IPV6CP.
            3 => match which % 3 {
                0 => self.speak(&[0xc0, 0x21, 1, which, 0, 10, 5, 6, 9, 8, 7, 6]),
                1 => self.speak(&[0x80, 0x21, 1, which, 0, 10, 3, 6, 10, 0, 0, 1]),
                _ => self.speak(&[0x80, 0x57, 1, which, 0, 14, 1, 10, 0, 0, 0, 0, 0, 0, 0, which | 1]),
            },
            4 => self.receive(self.session.0, Stage::Discovery, &padt(self.session.1, None)),
            5 => self.pass(Duration::from_secs(which.into())),
            6 => self.act(|client, now, random, out| client.line(now, which % 2 == 1, random, out)),
            7 => {
                self.own = MacAddress([2, 0, 0, 0, 0, which]);
                let own = self.own;
                self.act(|client, now, random, out| client.set_own(now, own, random, out));
            }
            8 if which % 2 == 0 => self.act(|client, now, random, out| client.close(now, random, out)),
            8 => self.act(|client, now, random, out| client.start(now, random, out)),
            _ => {
                let (payload, behind) = part(behind);
                let stage = if which < 128 { Stage::Discovery } else { Stage::Session };
                self.receive(concentrator(which), stage, payload);
                return behind;
            }
        }
        behind
    }

    /// A concentrator answers what was requested last: a PADO, or a PADS with a number.
    fn answer(&mut self, which: u8) {
        let Some((destination, request)) = self.request.take() else { return };
        let Ok(message) = Message::parse(&request) else { return };
        let is_padi = message.code() == Code::PADI;
        if !is_padi && destination != concentrator(which) {
            return;
        }
        let number = u16::from(which) + 1;
        let answer = if is_padi { Builder::new(Code::PADO, 0) } else { Builder::new(Code::PADS, number) };
        let mut answer = answer.tag(TagType::SERVICE_NAME, b"");
        if is_padi {
            answer = answer.tag(TagType::AC_NAME, &[b'a' + which % 2]).tag(TagType::AC_COOKIE, &[which; 16]);
        } else {
            self.session = (concentrator(which), number);
        }
        if let Some(uniq) = message.host_uniq() {
            answer = answer.tag(TagType::HOST_UNIQ, uniq);
        }
        self.receive(concentrator(which), Stage::Discovery, &answer.finish().expect("it fits"));
    }

    /// A packet of the session.
    fn speak(&mut self, packet: &[u8]) {
        self.receive(self.session.0, Stage::Session, &wrapped(self.session.1, packet));
    }

    fn receive(&mut self, source: MacAddress, stage: Stage, payload: &[u8]) {
        let packet = Packet { source, destination: self.own, payload };
        self.act(|client, now, random, out| client.receive(now, stage, packet, random, out));
    }

    fn act(
        &mut self,
        act: impl FnOnce(&mut Client, Duration, &mut dyn rxlane_pppoe::Random, &mut Vec<Action>),
    ) {
        let mut out = Vec::new();
        act(&mut self.client, self.now, &mut random(&mut self.seed), &mut out);
        for action in out {
            match action {
                Action::Send { stage: Stage::Discovery, destination, payload } => {
                    let message = Message::parse(&payload).expect("a packet");
                    if matches!(message.code(), Code::PADI | Code::PADR) {
                        self.request = Some((destination, payload));
                    }
                }
                Action::Send { destination, payload, .. } => {
                    assert!(self.may_speak, "PPP where there is no session");
                    let (number, packet) = unwrapped(&payload).expect("a packet");
                    self.session = (destination, number);
                    if let [a, b, 1, ..] = *packet {
                        self.requests.insert([a, b], packet.to_vec());
                    }
                }
                Action::Phase(phase) => self.may_speak |= phase == Phase::Lcp,
                Action::Opened(opened) => {
                    assert!(!std::mem::replace(&mut self.is_open, true));
                    assert!(opened.ipv4.is_some() || opened.ipv6.is_some());
                }
                Action::Changed(_) => assert!(self.is_open),
                Action::Closed { was_open, end } => {
                    assert_eq!(std::mem::take(&mut self.is_open), was_open);
                    self.may_speak = false;
                    assert!(!end.to_string().chars().any(char::is_control));
                }
                Action::Waits(wait) => assert!(wait <= Reconnect::DEFAULT.longest),
                Action::Notice(notice) => assert!(!notice.to_string().chars().any(char::is_control)),
                Action::Ended => assert_eq!(self.client.deadline(), None),
            }
        }
    }

    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(next) = self.client.deadline().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.act(|client, now, random, out| client.tick(now, random, out));
            assert!(
                self.client.deadline().is_none_or(|next| next > self.now),
                "nothing is due behind a turn"
            );
        }
        self.now = end;
    }

    /// It is closed, and closed once more.
    fn end(&mut self) {
        for _ in 0..2 {
            self.act(|client, now, random, out| client.close(now, random, out));
        }
        assert!(!self.is_open && self.client.deadline().is_none());
        assert_eq!(self.client.status(self.now).phase, Phase::Closed);
    }
}

/// As many bytes as the first says.
fn part(bytes: &[u8]) -> (&[u8], &[u8]) {
    match bytes {
        [length, rest @ ..] => rest.split_at(rest.len().min(usize::from(*length))),
        [] => (&[], &[]),
    }
}
