//! Any bytes as a discovery packet, and as packets that come to a host and to a concentrator: no panic, no session without a
//! number, no request without a cookie that was given out, and whatever is sent can be read.
//!
//! Input: packets, each `how | from | length | bytes`. The lowest bits of `how` say what the bytes are framed as.

use rxlane_pppoe::discovery::concentrator::{self, Answer, Arrival, Concentrator};
use rxlane_pppoe::discovery::host::{self, Action, Host};
use rxlane_pppoe::discovery::message::{Builder, LONGEST, Message};
use rxlane_pppoe::discovery::place::Place;
use rxlane_pppoe::discovery::{Packet, is_session};
use rxlane_wire::emit::Emit;
use rxlane_wire::ethernet::MacAddress;
use rxlane_wire::pppoe::{Code, Tag, TagType};
use std::sync::Arc;
use std::time::Duration;

const HOST: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const OWN: MacAddress = MacAddress([2, 0, 0, 0, 0, 0xac]);
const CODES: [Code; 6] = [Code::PADO, Code::PADS, Code::PADT, Code::PADI, Code::PADR, Code::SESSION];

struct Machines {
    now: Duration,
    host: Host,
    concentrator: Concentrator,
    uniq: Vec<u8>,
    cookies: Vec<Vec<u8>>,
    drawn: u8,
}

pub fn run(bytes: &[u8]) {
    message(bytes);
    let mut drawn = 0;
    let mut random = |bytes: &mut [u8]| fill(&mut drawn, bytes);
    let mut requested = host::Config::default();
    requested.max_payload = 1500;
    let mut offered = concentrator::Config::new(b"ac");
    offered.max_payload = 1508;
    let concentrator = Concentrator::new(offered, Duration::ZERO, &mut random);
    let host = Host::new(Arc::new(requested), HOST);
    let mut machines =
        Machines { now: Duration::ZERO, host, concentrator, uniq: Vec::new(), cookies: Vec::new(), drawn };
    machines.start();
    let mut rest = bytes;
    while let Some((&[how, from, length], behind)) = rest.split_first_chunk() {
        let (packet, behind) = behind.split_at(behind.len().min(length.into()));
        rest = behind;
        machines.step(how, from, packet);
    }
}

fn fill(drawn: &mut u8, bytes: &mut [u8]) {
    for byte in bytes {
        *drawn = drawn.wrapping_mul(5).wrapping_add(17);
        *byte = *drawn;
    }
}

fn message(bytes: &[u8]) {
    let Ok(message) = Message::parse(bytes) else { return };
    let length: usize = message.tags().map(|tag| Tag::HEADER_LENGTH + tag.value.len()).sum();
    assert!(length + 6 <= bytes.len());
    let builder = Builder::new(message.code(), message.session());
    let written = message.tags().fold(builder, |packet, tag| packet.tag(tag.kind, tag.value)).finish();
    match written {
        Ok(written) => {
            let again = Message::parse(&written).expect("written");
            assert!(again.tags().eq(message.tags()));
        }
        Err(error) => assert!(error.needed > error.most && error.most <= LONGEST),
    }
    if let Some(line) = message.line() {
        assert!(line.circuit.len() <= 63 && line.remote.len() <= 63);
        assert!(!line.to_string().chars().any(char::is_control));
    }
}

impl Machines {
    fn start(&mut self) {
        let mut actions = Vec::new();
        let drawn = &mut self.drawn;
        self.host.start(self.now, &mut |bytes: &mut [u8]| fill(drawn, bytes), &mut actions);
        self.act(actions);
    }

    fn step(&mut self, how: u8, from: u8, bytes: &[u8]) {
        let mut framed = Vec::new();
        if let Some(code) = CODES.get(usize::from(how & 7)) {
            // With the Host-Uniq that the host waits for, and a cookie that was given out.
            let mut tags = bytes.to_vec();
            let mut add = |kind, value: &[u8]| {
                let tag = Tag { kind, value };
                let mut room = vec![0; tag.length()];
                tag.emit(&mut room).expect("there is room");
                tags.splice(0..0, room);
            };
            if how & 0x10 != 0 {
                add(TagType::HOST_UNIQ, &self.uniq);
            }
            if how & 0x20 != 0 {
                add(TagType::AC_COOKIE, self.cookies.last().map(Vec::as_slice).unwrap_or_default());
            }
            framed = vec![0x11, code.0, 0, from];
            framed.extend((tags.len() as u16).to_be_bytes());
            framed.extend(tags);
        }
        let payload = if framed.is_empty() { bytes } else { &framed };
        let source = MacAddress([2, 0, 0, 0, 1, from & 3]);
        self.to_host(Packet { source, destination: HOST, payload });
        self.to_concentrator(Packet { source: HOST, destination: OWN, payload });
        if how & 0x40 != 0 {
            self.now += Duration::from_millis(700);
            let mut actions = Vec::new();
            self.host.tick(self.now, &mut actions);
            self.act(actions);
        }
        if how & 0x80 != 0 && self.host.deadline().is_none() {
            self.start();
        }
    }

    fn to_host(&mut self, packet: Packet<'_>) {
        let mut actions = Vec::new();
        self.host.receive(self.now, packet, &mut actions);
        self.act(actions);
    }

    fn act(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Send { payload, .. } => {
                    let sent = Message::parse(&payload).expect("it can be read");
                    if let Some(uniq) = sent.host_uniq() {
                        self.uniq = uniq.to_vec();
                    }
                }
                Action::Found(found) => {
                    assert!(is_session(found.session) && (1492..=1500).contains(&found.max_payload));
                    assert_eq!(self.host.deadline(), None);
                }
                Action::Failed(failure) => {
                    assert!(!failure.to_string().chars().any(char::is_control));
                    assert_eq!(self.host.deadline(), None);
                }
                Action::Chosen { others, .. } => assert!(others.len() < host::MOST_OFFERS),
            }
        }
    }

    fn to_concentrator(&mut self, packet: Packet<'_>) {
        let arrival = Arrival { place: Place::default(), own: OWN, max_payload: u16::MAX, packet };
        let drawn = &mut self.drawn;
        match self.concentrator.receive(self.now, &arrival, &mut |bytes: &mut [u8]| fill(drawn, bytes)) {
            Answer::Ignored(_) => {}
            Answer::Offer(payload) => {
                let offer = Message::parse(&payload).expect("it can be read");
                let padi = Message::parse(packet.payload).expect("a PADI");
                assert_eq!(offer.host_uniq(), padi.host_uniq());
                assert_eq!(offer.relay_session_id(), padi.relay_session_id());
                self.cookies.push(offer.cookie().expect("a cookie").to_vec());
            }
            Answer::Request(request) => {
                assert!(self.cookies.iter().any(|cookie| cookie[..] == request.cookie));
                assert!((1492..=1508).contains(&request.max_payload));
                if let Ok(payload) = request.confirm(7) {
                    assert_eq!(Message::parse(&payload).expect("it can be read").session(), 7);
                }
            }
            Answer::Terminate { session } => assert!(is_session(session)),
        }
    }
}
