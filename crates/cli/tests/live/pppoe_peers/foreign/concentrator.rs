//! A concentrator that takes everybody, with what such ones have in the field: no cookie, no authentication or PAP alone, tags in
//! an order of its own, options and protocols that PPPoE has no use for. It carries echoes to its own addresses.

use super::manner::{IDENTIFIER, Magic, Manner, OWN, SESSION_NUMBER};
use crate::pppoe_peers::by_hand::discovery::{self, PADI, PADO, PADR, PADS, PADT, Tags};
use crate::pppoe_peers::by_hand::frame::{self, Frame, Mac, Tag, ethernet, pppoe};
use crate::pppoe_peers::by_hand::negotiation::Negotiation;
use crate::pppoe_peers::by_hand::packet::echo_reply;
use crate::pppoe_peers::by_hand::ppp::{self, Control, Options};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use testkit::frames::Frames;
use testkit::netns::Namespace;

const MAC: Mac = [0x02, 0xac, 0, 0, 0, 1];

/// What a client did.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// What breaks a specification.
    pub complaints: Vec<String>,
    /// Service-Name of the PADR.
    pub service: Option<Vec<u8>>,
    /// User and password by PAP.
    pub pap: Option<(String, String)>,
    /// Options of LCP that it rejected, and of IPCP.
    pub lcp_rejected: Options,
    pub ipcp_rejected: Options,
    /// Its magic number, agreed to.
    pub magic: u32,
    /// Protocols that it rejected.
    pub protocols_rejected: Vec<u16>,
    /// Data of its answers to echoes.
    pub echoed: Vec<Vec<u8>>,
    pub sessions: u32,
    pub terminated: u32,
    pub padt: u32,
    /// Octets of the longest packet that it sent.
    pub longest: usize,
}

/// It answers as long as this lives.
pub struct Concentrator {
    stop: Arc<AtomicBool>,
    hang_up: Arc<AtomicBool>,
    seen: Arc<Mutex<Seen>>,
    thread: Option<JoinHandle<()>>,
}

impl Concentrator {
    pub fn begin(namespace: &Namespace, interface: &str, manner: Manner) -> Concentrator {
        let wire = namespace.inside(|| Frames::open(interface)).expect("a socket");
        let [stop, hang_up] = [false; 2].map(|is_so| Arc::new(AtomicBool::new(is_so)));
        let seen = Arc::<Mutex<Seen>>::default();
        let mut machine = Machine::new(manner, Arc::clone(&seen));
        let (ends, hangs_up) = (Arc::clone(&stop), Arc::clone(&hang_up));
        let thread = thread::spawn(move || {
            let mut wire = wire;
            while !ends.load(Ordering::Acquire) {
                let mut frames = Vec::new();
                wire.receive(&mut |frame| frames.push(frame.to_vec())).expect("frames");
                let is_idle = frames.is_empty();
                frames.iter().for_each(|frame| machine.frame(frame));
                if hangs_up.swap(false, Ordering::AcqRel) {
                    machine.hang_up();
                }
                machine.tick();
                for frame in machine.outbox.drain(..) {
                    wire.send(&frame).expect("sent");
                }
                if is_idle {
                    thread::sleep(Duration::from_millis(2));
                }
            }
        });
        Concentrator { stop, hang_up, seen, thread: Some(thread) }
    }

    pub fn seen(&self) -> Seen {
        self.seen.lock().expect("no panic").clone()
    }

    /// Ends the session by a PADT.
    pub fn hang_up(&self) {
        self.hang_up.store(true, Ordering::Release);
    }

    /// What it has seen by its end.
    pub fn end(mut self) -> Seen {
        self.stop.store(true, Ordering::Release);
        self.thread.take().expect("once").join().expect("no panic");
        self.seen()
    }
}

impl Drop for Concentrator {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
    }
}

struct Machine {
    manner: Manner,
    seen: Arc<Mutex<Seen>>,
    outbox: Vec<Vec<u8>>,
    /// The client, while there is a session.
    client: Option<(Mac, Vec<Tag>)>,
    lcp: Negotiation,
    ipcp: Negotiation,
    ipv6cp: Negotiation,
    magic: u32,
    is_authenticated: bool,
    was_odd: bool,
}

impl Machine {
    fn new(manner: Manner, seen: Arc<Mutex<Seen>>) -> Machine {
        Machine {
            magic: manner.magic.number(),
            manner,
            seen,
            outbox: Vec::new(),
            client: None,
            lcp: Negotiation::new(ppp::LCP),
            ipcp: Negotiation::new(ppp::IPCP),
            ipv6cp: Negotiation::new(ppp::IPV6CP),
            is_authenticated: false,
            was_odd: false,
        }
    }

    fn see(&self, note: impl FnOnce(&mut Seen)) {
        note(&mut self.seen.lock().expect("no panic"));
    }

    fn complain(&self, what: String) {
        self.see(|seen| seen.complaints.push(what));
    }

    fn frame(&mut self, octets: &[u8]) {
        let frame = match Frame::read(octets) {
            None => return,
            Some(Err(what)) => return self.complain(what),
            Some(Ok(frame)) => frame,
        };
        match (frame.stage, frame.code) {
            (frame::DISCOVERY, PADI | PADR) => {
                let Some(tags) = discovery::read(frame.payload) else {
                    return self.complain(format!("tags that do not fit: {frame:02x?}"));
                };
                self.discovery(&frame, &tags);
            }
            (frame::DISCOVERY, PADT) if frame.session == SESSION_NUMBER => {
                self.see(|seen| seen.padt += 1);
                self.client = None;
            }
            (frame::SESSION, 0) if frame.session == SESSION_NUMBER => {
                if self.client == Some((frame.source, frame.tags.clone())) && frame.destination == MAC {
                    self.packet(frame.payload);
                }
            }
            _ => self.complain(format!("nobody asked for {frame:02x?}")),
        }
    }

    fn discovery(&mut self, frame: &Frame<'_>, tags: &Tags) {
        let is_request = frame.code == PADR;
        if is_request {
            // RFC 2516 section 5.3: exactly one Service-Name, and no cookie where none was given.
            let names = tags.iter().filter(|(kind, _)| *kind == discovery::SERVICE_NAME).count();
            if names != 1 || discovery::find(tags, discovery::AC_COOKIE).is_some() || frame.destination != MAC
            {
                self.complain(format!("a PADR with {tags:02x?}"));
            }
            let service = discovery::find(tags, discovery::SERVICE_NAME).map(<[u8]>::to_vec);
            self.see(|seen| {
                seen.service = service;
                seen.sessions += 1;
            });
        }
        let (code, session) = if is_request { (PADS, SESSION_NUMBER) } else { (PADO, 0) };
        let answer = pppoe(code, session, &discovery::put(&self.manner.answer(tags, is_request)));
        self.put(&frame.source, &frame.tags, frame::DISCOVERY, &answer);
        if is_request {
            self.client = Some((frame.source, frame.tags.clone()));
            self.is_authenticated = false;
            for negotiation in [&mut self.lcp, &mut self.ipcp, &mut self.ipv6cp] {
                negotiation.forget();
            }
            let request = self.lcp.begin(self.manner.lcp_options(), Instant::now());
            self.send([request]);
        }
    }

    fn put(&mut self, to: &Mac, tags: &[Tag], ethertype: u16, payload: &[u8]) {
        let mut frame = ethernet(to, &MAC, tags, 0, ethertype, payload);
        // Trailing octets that are none of PPPoE's, as some switches leave them.
        if self.manner.has_trailers {
            frame.extend([0xee; 4]);
        }
        self.outbox.push(frame);
    }

    fn send(&mut self, packets: impl IntoIterator<Item = Vec<u8>>) {
        let Some((to, tags)) = self.client.clone() else { return };
        for packet in packets {
            self.put(&to, &tags, frame::SESSION, &pppoe(0, SESSION_NUMBER, &packet));
        }
    }

    fn tick(&mut self) {
        if self.client.is_some() {
            let now = Instant::now();
            let due = [&mut self.lcp, &mut self.ipcp, &mut self.ipv6cp].map(|one| one.tick(now));
            self.send(due.into_iter().flatten());
        }
    }

    fn hang_up(&mut self) {
        if let Some((to, tags)) = self.client.take() {
            let payload = pppoe(PADT, SESSION_NUMBER, &discovery::put(&self.manner.last_tags()));
            self.put(&to, &tags, frame::DISCOVERY, &payload);
        }
    }

    fn packet(&mut self, payload: &[u8]) {
        let Some((protocol, rest)) = ppp::protocol(payload) else {
            return self.complain("no protocol field".to_owned());
        };
        if matches!(protocol, ppp::IPV4 | ppp::IPV6) {
            return self.data(protocol, rest);
        }
        let Some(packet) = Control::read(rest) else {
            return self.complain(format!("a packet of {protocol:#06x} that does not fit: {rest:02x?}"));
        };
        match protocol {
            ppp::LCP => self.lcp_packet(&packet),
            ppp::PAP if self.lcp.is_up() && self.manner.demands_pap && packet.code == 1 => {
                let pap = ppp::read_pap(packet.data);
                self.see(|seen| seen.pap = pap);
                self.send([ppp::control(ppp::PAP, 2, packet.identifier, b"\x07welcome")]);
                self.begin_networks();
            }
            ppp::IPCP => self.ipcp_packet(&packet),
            ppp::IPV6CP if self.manner.has_ipv6 => self.ipv6cp_packet(&packet),
            ppp::IPV6CP => {
                let rejected = [&protocol.to_be_bytes()[..], rest].concat();
                self.send([ppp::control(ppp::LCP, ppp::PROTOCOL_REJECT, 1, &rejected)]);
            }
            other => self.complain(format!("protocol {other:#06x}, which nobody agreed to")),
        }
        self.be_odd();
    }

    fn data(&mut self, protocol: u16, packet: &[u8]) {
        self.see(|seen| seen.longest = seen.longest.max(packet.len()));
        let own = match protocol {
            ppp::IPV4 => IpAddr::V4(OWN),
            _ => Ipv6Addr::from(0xfe80_u128 << 112 | u128::from(IDENTIFIER)).into(),
        };
        if let Some(answer) = echo_reply(packet, own) {
            self.send([[&protocol.to_be_bytes()[..], &answer].concat()]);
        }
    }

    fn lcp_packet(&mut self, packet: &Control<'_>) {
        let was_up = self.lcp.is_up();
        match packet.code {
            ppp::CONFIGURE_REQUEST => self.judge_lcp(packet),
            ppp::CONFIGURE_ACK | ppp::CONFIGURE_NAK | ppp::CONFIGURE_REJECT => {
                match self.lcp.answered(packet) {
                    Ok(Some(options)) => self.other_lcp(packet.code, options),
                    Ok(None) => {}
                    Err(what) => self.complain(what),
                }
            }
            ppp::TERMINATE_REQUEST => {
                self.see(|seen| seen.terminated += 1);
                self.lcp.forget();
                self.send([ppp::control(ppp::LCP, ppp::TERMINATE_ACK, packet.identifier, &[])]);
            }
            ppp::PROTOCOL_REJECT => {
                let rejected = packet.data.first_chunk().map(|octets| u16::from_be_bytes(*octets));
                self.see(|seen| seen.protocols_rejected.extend(rejected));
            }
            ppp::ECHO_REQUEST => {
                let data = packet.data.get(4..).unwrap_or_default();
                let answer = [&self.magic.to_be_bytes()[..], data].concat();
                self.send([ppp::control(ppp::LCP, ppp::ECHO_REPLY, packet.identifier, &answer)]);
            }
            ppp::ECHO_REPLY => {
                let magic = packet.data.first_chunk().map_or(0, |octets| u32::from_be_bytes(*octets));
                let echoed = packet.data.get(4..).unwrap_or_default().to_vec();
                let agreed = self.seen.lock().expect("no panic").magic;
                if magic != agreed {
                    self.complain(format!("an echo reply with magic number {magic:#x}, not {agreed:#x}"));
                }
                self.see(|seen| seen.echoed.push(echoed));
            }
            other => self.complain(format!("LCP code {other}")),
        }
        if !was_up && self.lcp.is_up() && !self.manner.demands_pap {
            self.begin_networks();
        }
    }

    /// The client's LCP request: an MRU, which needs no agreement, and a magic number.
    fn judge_lcp(&mut self, packet: &Control<'_>) {
        let Some(options) = ppp::options(packet.data) else {
            return self.complain("options that do not fit".to_owned());
        };
        let rejected: Options = match self.manner.magic {
            Magic::Rejected => options.iter().filter(|(kind, _)| *kind == ppp::MAGIC).cloned().collect(),
            _ => Vec::new(),
        };
        for (kind, data) in &options {
            match (*kind, data.len()) {
                (ppp::MRU, 2) => {}
                (ppp::MAGIC, 4) => {
                    let magic = data.first_chunk().map_or(0, |octets| u32::from_be_bytes(*octets));
                    self.see(|seen| seen.magic = magic);
                }
                _ => self.complain(format!("LCP option {kind} with {data:02x?}")),
            }
        }
        if !rejected.is_empty() {
            self.see(|seen| seen.magic = 0);
            let data = ppp::put(&rejected);
            return self.send([ppp::control(ppp::LCP, ppp::CONFIGURE_REJECT, packet.identifier, &data)]);
        }
        self.lcp.agreed = true;
        self.send([ppp::control(ppp::LCP, ppp::CONFIGURE_ACK, packet.identifier, packet.data)]);
    }

    /// What the client wants otherwise of the own request.
    fn other_lcp(&mut self, code: u8, options: Options) {
        if code == ppp::CONFIGURE_NAK {
            for (kind, data) in &options {
                match (*kind, data.first_chunk().map(|octets| u32::from_be_bytes(*octets))) {
                    // RFC 1661 section 6.4: a magic number of zero is always nak'ed, with another one.
                    (ppp::MAGIC, Some(magic)) if magic != 0 && self.magic == 0 => self.magic = magic,
                    // Whoever wants another method than PAP does not get it.
                    (ppp::AUTHENTICATION, _) if self.manner.demands_pap => {}
                    _ => self.complain(format!("a Nak of LCP option {kind} with {data:02x?}")),
                }
            }
            let magic = self.magic.to_be_bytes().to_vec();
            let own = self.lcp.options.iter_mut().filter(|(kind, _)| *kind == ppp::MAGIC);
            own.for_each(|(_, data)| data.clone_from(&magic));
        } else {
            self.lcp.options.retain(|(kind, _)| options.iter().all(|(other, _)| other != kind));
            self.see(|seen| seen.lcp_rejected.extend(options));
        }
        let request = self.lcp.ask(Instant::now());
        self.send([request]);
    }

    fn begin_networks(&mut self) {
        if std::mem::replace(&mut self.is_authenticated, true) {
            return;
        }
        let now = Instant::now();
        let mut requests = vec![self.ipcp.begin(self.manner.ipcp_options(), now)];
        if self.manner.has_ipv6 {
            let identifier = vec![(ppp::INTERFACE_IDENTIFIER, IDENTIFIER.to_be_bytes().to_vec())];
            requests.push(self.ipv6cp.begin(identifier, now));
        }
        self.send(requests);
    }

    fn ipcp_packet(&mut self, packet: &Control<'_>) {
        match packet.code {
            ppp::CONFIGURE_REQUEST => {
                let Some(options) = ppp::options(packet.data) else {
                    return self.complain("options that do not fit".to_owned());
                };
                let (code, data) = self.manner.judge_ipcp(&options);
                self.ipcp.agreed = code == ppp::CONFIGURE_ACK;
                self.send([ppp::control(ppp::IPCP, code, packet.identifier, &ppp::put(&data))]);
            }
            ppp::CONFIGURE_ACK | ppp::CONFIGURE_NAK | ppp::CONFIGURE_REJECT => {
                match self.ipcp.answered(packet) {
                    Ok(Some(options)) => {
                        if packet.code == ppp::CONFIGURE_NAK {
                            self.complain(format!("a Nak of IPCP: {options:02x?}"));
                        }
                        self.ipcp.options.retain(|(kind, _)| options.iter().all(|(other, _)| other != kind));
                        self.see(|seen| seen.ipcp_rejected.extend(options));
                        let request = self.ipcp.ask(Instant::now());
                        self.send([request]);
                    }
                    Ok(None) => {}
                    Err(what) => self.complain(what),
                }
            }
            other => self.complain(format!("IPCP code {other}")),
        }
    }

    fn ipv6cp_packet(&mut self, packet: &Control<'_>) {
        match packet.code {
            ppp::CONFIGURE_REQUEST => {
                self.ipv6cp.agreed = true;
                self.send([ppp::control(ppp::IPV6CP, ppp::CONFIGURE_ACK, packet.identifier, packet.data)]);
            }
            ppp::CONFIGURE_ACK => {
                if let Err(what) = self.ipv6cp.answered(packet) {
                    self.complain(what);
                }
            }
            other => self.complain(format!("IPV6CP code {other}")),
        }
    }

    /// Once IPCP is up: what a client has to answer, reject, or leave alone.
    fn be_odd(&mut self) {
        if !self.manner.is_odd || !self.ipcp.is_up() || std::mem::replace(&mut self.was_odd, true) {
            return;
        }
        let magic = self.magic.to_be_bytes();
        let packets = self.manner.oddities(magic);
        self.send(packets);
    }
}
