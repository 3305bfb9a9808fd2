//! In the guest: hosts that set sessions up, some at a time, each with a MAC address of its own, from PADI to an address.

use crate::topology::LINE;
use anyhow::{Context, Result, ensure};
use kernel::netlink::link_by_name;
use kernel::socket::{Flag, Packet, Transmit};
use pppoe::discovery::message::{Builder, Message};
use pppoe::framing::{unwrapped, wrapped};
use pppoe::session::{self, Action, Host, Method, Role, Session, Timers};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::HashMap;
use std::fmt::Write;
use std::io::IoSliceMut;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};
use wire::pppoe::{Code, TagType};

const DISCOVERY: [u8; 2] = [0x88, 0x63];
const SESSION: [u8; 2] = [0x88, 0x64];
/// Until a PADI or PADR is sent again, as pppd has it.
const AGAIN: Duration = Duration::from_secs(5);
/// Of all.
const LIMIT: Duration = Duration::from_secs(240);

/// A host before it has an address.
struct Waiting {
    since: Instant,
    discovery: Vec<u8>,
    has_offer: bool,
    session: Option<(u16, Session)>,
    /// It waits for the first packet of the concentrator, which may not take any as soon as it has sent the PADS.
    is_started: bool,
}

struct Hosts {
    start: Instant,
    waiting: HashMap<u32, Waiting>,
    random: Xoshiro256PlusPlus,
    out: Vec<Vec<u8>>,
    /// A line each: host, session, address.
    lines: String,
    done: u32,
    repeated: u32,
}

pub fn set_up(count: u32, at_once: usize, lines: &str) -> Result<()> {
    let socket = Packet::open()?;
    socket.set_receive_buffer(16 << 20);
    socket.turn_on(Flag::IgnoreOutgoing)?;
    socket.bind(link_by_name("wan0")?.index)?;
    let mut transmit = Transmit::open("wan0")?;
    let mut buffer = vec![0; 2048];
    let mut hosts = Hosts {
        start: Instant::now(),
        waiting: HashMap::new(),
        random: Xoshiro256PlusPlus::seed_from_u64(1),
        out: Vec::new(),
        lines: String::new(),
        done: 0,
        repeated: 0,
    };
    let (mut next, mut checked) = (0, Instant::now());
    while hosts.done < count {
        while next < count && hosts.waiting.len() < at_once {
            hosts.begin(next)?;
            next += 1;
        }
        let mut is_idle = true;
        while let Ok((length, _)) = socket.receive(&mut [IoSliceMut::new(&mut buffer)]) {
            is_idle = false;
            hosts.receive(buffer.get(..length).unwrap_or_default())?;
        }
        if checked.elapsed() > Duration::from_millis(50) {
            checked = Instant::now();
            hosts.repeat();
        }
        if !hosts.out.is_empty() {
            transmit.send(&hosts.out.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
            hosts.out.clear();
        } else if is_idle {
            // A generator that polls all the time would take the CPU from the namespace that it sends from.
            sleep(Duration::from_micros(100));
        }
        ensure!(
            hosts.start.elapsed() < LIMIT,
            "{} of {count} hosts have an address after {LIMIT:?}",
            hosts.done
        );
    }
    std::fs::write(lines, &hosts.lines)?;
    println!("{} {}", hosts.start.elapsed().as_secs_f64(), hosts.repeated);
    Ok(())
}

impl Hosts {
    fn begin(&mut self, host: u32) -> Result<()> {
        let padi = Builder::new(Code::PADI, 0)
            .tag(TagType::SERVICE_NAME, b"")
            .tag(TagType::HOST_UNIQ, &host.to_be_bytes())
            .finish()?;
        let discovery = frame([0xff; 6], host, DISCOVERY, &padi);
        self.out.push(discovery.clone());
        let waiting =
            Waiting { since: Instant::now(), discovery, has_offer: false, session: None, is_started: false };
        self.waiting.insert(host, waiting);
        Ok(())
    }

    fn receive(&mut self, received: &[u8]) -> Result<()> {
        let (Some([2, 0x10, rest @ ..]), Some(kind), Some(payload)) =
            (received.first_chunk::<6>(), received.get(12..14), received.get(14..))
        else {
            return Ok(());
        };
        let host = u32::from_be_bytes(*rest);
        let Some(waiting) = self.waiting.get_mut(&host) else { return Ok(()) };
        if kind == DISCOVERY {
            let message = Message::parse(payload).map_err(|error| anyhow::anyhow!("{error}"))?;
            match message.code() {
                Code::PADO if !waiting.has_offer => {
                    waiting.has_offer = true;
                    let padr = Builder::new(Code::PADR, 0)
                        .tag(TagType::SERVICE_NAME, b"")
                        .tag(TagType::HOST_UNIQ, &host.to_be_bytes())
                        .tag_if(TagType::AC_COOKIE, message.cookie())
                        .finish()?;
                    waiting.discovery = frame(LINE, host, DISCOVERY, &padr);
                    waiting.since = Instant::now();
                    self.out.push(waiting.discovery.clone());
                }
                Code::PADS if waiting.session.is_none() => {
                    ensure!(message.session() != 0, "host {host}: no session");
                    waiting.session = Some((message.session(), Session::new(configuration(host), 1492)));
                }
                Code::PADT => anyhow::bail!("host {host}: the session is ended"),
                _ => {}
            }
            return Ok(());
        }
        let Some((number, session)) = waiting.session.as_mut().filter(|_| kind == SESSION) else {
            return Ok(());
        };
        let (received, packet) = unwrapped(payload).map_err(|error| anyhow::anyhow!("{error}"))?;
        if received != *number {
            return Ok(());
        }
        let (now, mut actions, random) = (self.start.elapsed(), Vec::new(), &mut self.random);
        let mut random = |bytes: &mut [u8]| random.fill_bytes(bytes);
        if !waiting.is_started {
            waiting.is_started = true;
            session.start(now, &mut random, &mut actions);
        }
        session.receive(now, packet, &mut random, &mut actions);
        self.act(host, actions)
    }

    fn act(&mut self, host: u32, actions: Vec<Action>) -> Result<()> {
        let number = self.waiting.get(&host).and_then(|waiting| Some(waiting.session.as_ref()?.0));
        let number = number.context("no session")?;
        for action in actions {
            match action {
                Action::Send(packet) => self.out.push(frame(LINE, host, SESSION, &wrapped(number, &packet))),
                Action::Up4(addresses) => {
                    writeln!(self.lines, "{host} {number} {}", addresses.local)?;
                    self.done += 1;
                    self.waiting.remove(&host);
                }
                Action::Closed(why) => anyhow::bail!("host {host}: {why:?}"),
                _ => {}
            }
        }
        Ok(())
    }

    fn repeat(&mut self) {
        let (now, random) = (self.start.elapsed(), &mut self.random);
        for (host, waiting) in &mut self.waiting {
            let Some((number, session)) = &mut waiting.session else {
                if waiting.since.elapsed() > AGAIN {
                    waiting.since = Instant::now();
                    self.out.push(waiting.discovery.clone());
                    self.repeated += 1;
                }
                continue;
            };
            if session.deadline().is_some_and(|deadline| deadline <= now) {
                let mut actions = Vec::new();
                session.tick(now, &mut |bytes: &mut [u8]| random.fill_bytes(bytes), &mut actions);
                for action in actions {
                    if let Action::Send(packet) = action {
                        self.out.push(frame(LINE, *host, SESSION, &wrapped(*number, &packet)));
                        self.repeated += 1;
                    }
                }
            }
        }
    }
}

fn configuration(host: u32) -> Arc<session::Config> {
    let role = Host {
        user: format!("user-{host}").into(),
        secret: format!("secret-{host}").into(),
        methods: vec![Method::ChapMd5],
        ipv4: Some(std::net::Ipv4Addr::UNSPECIFIED),
        dns: false,
        ipv6: None,
    };
    Arc::new(session::Config { role: Role::Host(role), timers: Timers::DEFAULT })
}

pub fn mac(host: u32) -> [u8; 6] {
    let [a, b, c, d] = host.to_be_bytes();
    [2, 0x10, a, b, c, d]
}

pub fn frame(destination: [u8; 6], host: u32, kind: [u8; 2], payload: &[u8]) -> Vec<u8> {
    [&destination[..], &mac(host), &kind, payload].concat()
}
