//! What sessions cost the concentrator on this machine: `cargo run --release -p rxlane-pppoe --example concentrator_cost`.
//!
//! Set-ups a second of one core, from PADI to IPCP and IPV6CP open, with hosts that answer at once: the time within the
//! concentrator alone, a thousand set-ups at the same time. Memory of all there is for it (subscribers, pools, tables), as
//! the allocator counts it and as the kernel does, the hosts of finished waves removed.
//!
//! Arguments: numbers of sessions at which memory is printed (1000 10000 60000).

#![allow(clippy::print_stdout, reason = "it prints")]

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rxlane_pppoe::concentrator::accounting::Traffic;
use rxlane_pppoe::concentrator::secrets::Secrets;
use rxlane_pppoe::concentrator::{Action, Caps, Concentrator, Config, Filter, Step};
use rxlane_pppoe::discovery::concentrator::Arrival;
use rxlane_pppoe::discovery::limits::{Rate, Rates};
use rxlane_pppoe::discovery::message::{Builder, Message};
use rxlane_pppoe::discovery::place::Place;
use rxlane_pppoe::discovery::{PLAIN_PAYLOAD, Packet};
use rxlane_pppoe::framing::{unwrapped, wrapped};
use rxlane_pppoe::session::{self, Method, Phase, Role, Session, Timers};
use std::collections::VecDeque;
use std::error::Error;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use testkit::allocations::{Counting, bytes_in_use};
use wire::Vlans;
use wire::ethernet::{EtherType, MacAddress};
use wire::pppoe::{Code, Stage, TagType};
use wire::vlan::{Tag, Tci};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

type Done<T> = Result<T, Box<dyn Error>>;

const OWN: MacAddress = MacAddress([2, 0, 0, 0, 0, 0xac]);
const WAVE: usize = 1000;
const MOST: usize = 60_000;

fn main() -> Done<()> {
    let arguments = std::env::args().skip(1).map(|count| count.parse::<usize>());
    let mut counts: Vec<usize> = arguments.collect::<Result<_, _>>()?;
    if counts.is_empty() {
        counts = vec![1000, 10_000, MOST];
    }
    // The first, so that nothing but it is in memory.
    println!("memory, subscribers of {MOST} lines and tables among it");
    let (before, resident) = (bytes_in_use(), resident()?);
    let mut bench = Bench::new(Method::ChapMd5)?;
    let show = |bench: &Bench, sessions: usize| -> Done<()> {
        let (used, resident) =
            (bytes_in_use().saturating_sub(before), self::resident()?.saturating_sub(resident));
        let last = bench.last.as_secs_f64() * 1e6 / WAVE as f64;
        let mib = |bytes: usize| bytes as f64 / f64::from(1 << 20);
        println!(
            "  {sessions:>6} sessions {:>7.1} MiB requested, {:>7.1} MiB resident, last thousand {last:.1} us each",
            mib(used),
            mib(resident)
        );
        Ok(())
    };
    show(&bench, 0)?;
    for count in counts {
        bench.grow(count)?;
        show(&bench, count)?;
    }
    bench.idle();
    bench.restart()?;
    bench.end();
    show(&bench, 0)?;
    drop(bench);
    println!("set-ups, a thousand at the same time, one VLAN stack each");
    for (name, method) in
        [("PAP", Method::Pap), ("CHAP-MD5", Method::ChapMd5), ("MS-CHAPv2", Method::MsChapV2)]
    {
        let mut bench = Bench::new(method)?;
        bench.grow(10_000)?;
        let each = bench.spent / 10_000;
        println!(
            "  {name:<10} {:>9.0}/s {:>8.1} us each",
            1.0 / each.as_secs_f64(),
            each.as_secs_f64() * 1e6
        );
    }
    Ok(())
}

/// Bytes of this process in memory.
fn resident() -> Done<usize> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<usize>()? * 1024)
}

struct Bench {
    concentrator: Concentrator,
    host: Arc<dyn Fn(usize) -> Arc<session::Config>>,
    random: Xoshiro256PlusPlus,
    now: Duration,
    sessions: usize,
    /// Within the concentrator, and of that for the last wave.
    spent: Duration,
    last: Duration,
}

/// A host of a wave, which began as that number.
struct Host {
    number: usize,
    session: Option<(u16, Session)>,
}

type Todo = VecDeque<(usize, Stage, Vec<u8>)>;

impl Bench {
    fn new(method: Method) -> Done<Bench> {
        let unlimited = Rate { per_second: 1_000_000, burst: 1_000_000 };
        let rates = Rates { host: unlimited, vlan: unlimited, port: unlimited };
        let mut config = Config::new(b"ac");
        (config.discovery.offers, config.discovery.requests) = (rates, rates);
        config.methods = vec![method];
        config.local = Some(Ipv4Addr::new(100, 64, 0, 1));
        config.pool = vec!["100.64.0.2-100.65.255.255".parse()?];
        config.dns = [Some(Ipv4Addr::new(9, 9, 9, 9)), None];
        config.identifier = Some(1);
        config.prefixes = Some("2001:db8::/40".parse()?);
        config.caps = Caps { sessions: 100_000, ..Caps::DEFAULT };
        let secrets: String =
            (0..MOST).map(|user| format!("user-{user}@isp.example * secret-{user} *\n")).collect();
        let secrets = Secrets::parse(secrets.as_bytes(), b"ac", config.local)?;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let now = Duration::from_secs(1000);
        let concentrator =
            Concentrator::new(config, secrets, now, &mut |bytes: &mut [u8]| random.fill_bytes(bytes))?;
        let host = Arc::new(move |number| {
            let host = session::Host {
                user: format!("user-{number}@isp.example").into(),
                secret: format!("secret-{number}").into(),
                methods: vec![method],
                ipv4: Some(Ipv4Addr::UNSPECIFIED),
                dns: true,
                ipv6: Some(0),
            };
            Arc::new(session::Config { role: Role::Host(host), timers: Timers::DEFAULT })
        });
        let (spent, last) = (Duration::ZERO, Duration::ZERO);
        Ok(Bench { concentrator, host, random, now, sessions: 0, spent, last })
    }

    /// Sets up sessions until there are so many.
    fn grow(&mut self, count: usize) -> Done<()> {
        while self.sessions < count {
            let before = self.spent;
            let wave = WAVE.min(count - self.sessions);
            self.wave(wave)?;
            self.last = self.spent - before;
            self.sessions += wave;
            self.now += Duration::from_millis(100);
        }
        let open = self
            .concentrator
            .sessions(self.now)
            .filter(|session| session.phase == Phase::Open && session.lease.address.is_some());
        if open.count() == count { Ok(()) } else { Err("not all sessions came up".into()) }
    }

    fn wave(&mut self, count: usize) -> Done<()> {
        let mut hosts: Vec<Host> =
            (self.sessions..self.sessions + count).map(|number| Host { number, session: None }).collect();
        let padi =
            Builder::new(Code::PADI, 0).tag(TagType::SERVICE_NAME, b"").tag(TagType::HOST_UNIQ, b"host-uniq");
        let padi = padi.finish()?;
        let mut todo: Todo = (0..count).map(|host| (host, Stage::Discovery, padi.clone())).collect();
        while let Some((host, stage, payload)) = todo.pop_front() {
            let number = hosts.get(host).map_or(0, |host| host.number);
            for (destination, stage, payload) in self.receive(number, stage, &payload) {
                let [.., a, b, c] = destination.0;
                let to = u32::from_be_bytes([0, a, b, c]) as usize - self.sessions;
                if let Some(host) = hosts.get_mut(to) {
                    self.answer(to, host, stage, &payload, &mut todo)?;
                }
            }
        }
        Ok(())
    }

    /// The concentrator's step, by the clock.
    fn receive(&mut self, number: usize, stage: Stage, payload: &[u8]) -> Vec<(MacAddress, Stage, Vec<u8>)> {
        let [_, a, b, c] = (number as u32).to_be_bytes();
        let source = MacAddress([2, 0x10, 0, a, b, c]);
        let destination = if payload.get(1) == Some(&Code::PADI.0) { MacAddress::BROADCAST } else { OWN };
        let packet = Packet { source, destination, payload };
        let arrival = Arrival { place: place(number), own: OWN, max_payload: u16::MAX, packet };
        let mut out = Vec::with_capacity(8);
        let random = &mut self.random;
        let mut step = Step {
            now: self.now,
            random: &mut |bytes: &mut [u8]| random.fill_bytes(bytes),
            traffic: &mut |_| Traffic::default(),
            actions: &mut out,
        };
        let start = Instant::now();
        self.concentrator.receive(&mut step, stage, &arrival);
        self.spent += start.elapsed();
        let sent = out.into_iter().filter_map(|action| match action {
            Action::Send { destination, stage, payload, .. } => Some((destination, stage, payload)),
            _ => None,
        });
        sent.collect()
    }

    fn answer(
        &mut self,
        at: usize,
        host: &mut Host,
        stage: Stage,
        payload: &[u8],
        todo: &mut Todo,
    ) -> Done<()> {
        let mut actions = Vec::new();
        let generator = &mut self.random;
        let mut random = |bytes: &mut [u8]| generator.fill_bytes(bytes);
        if stage == Stage::Discovery {
            let message = Message::parse(payload).map_err(|error| error.to_string())?;
            if message.code() == Code::PADO {
                let padr = Builder::new(Code::PADR, 0)
                    .tag(TagType::SERVICE_NAME, b"")
                    .tag(TagType::HOST_UNIQ, b"host-uniq");
                let padr = padr.tag_if(TagType::AC_COOKIE, message.cookie()).finish()?;
                todo.push_back((at, Stage::Discovery, padr));
                return Ok(());
            }
            let mut session = Session::new((self.host)(host.number), PLAIN_PAYLOAD);
            session.start(self.now, &mut random, &mut actions);
            host.session = Some((message.session(), session));
        } else if let Some((_, session)) = &mut host.session {
            let (_, packet) = unwrapped(payload).map_err(|error| error.to_string())?;
            session.receive(self.now, packet, &mut random, &mut actions);
        }
        let number = host.session.as_ref().map_or(0, |(number, _)| *number);
        todo.extend(actions.into_iter().filter_map(|action| match action {
            session::Action::Send(packet) => Some((at, Stage::Session, wrapped(number, &packet))),
            _ => None,
        }));
        Ok(())
    }

    /// A minute in which every session has traffic every ten seconds.
    fn idle(&mut self) {
        let ids: Vec<_> = self.concentrator.sessions(self.now).map(|session| session.identity.id).collect();
        let (mut heard, mut ticks, mut steps) = (Duration::ZERO, Duration::ZERO, 0u64);
        let end = self.now + Duration::from_secs(60);
        let mut next = self.now;
        let mut sent = 0;
        while self.now < end {
            if self.now >= next {
                let start = Instant::now();
                ids.iter().for_each(|id| self.concentrator.heard(self.now, *id));
                heard += start.elapsed();
                next += Duration::from_secs(10);
            }
            let (random, mut out) = (&mut self.random, Vec::new());
            let mut step = Step {
                now: self.now,
                random: &mut |bytes: &mut [u8]| random.fill_bytes(bytes),
                traffic: &mut |_| Traffic::default(),
                actions: &mut out,
            };
            let start = Instant::now();
            self.concentrator.tick(&mut step);
            ticks += start.elapsed();
            steps += 1;
            sent += out.len();
            self.now = self.concentrator.deadline().map_or(end, |deadline| deadline.max(self.now)).min(next);
        }
        println!("a minute with {} busy sessions", ids.len());
        println!(
            "  {sent} frames sent, {steps} steps of {:.2} ms in all, {:.0} ns to report traffic",
            ticks.as_secs_f64() * 1e3,
            heard.as_secs_f64() * 1e9 / (6 * ids.len()) as f64
        );
    }
}

impl Bench {
    /// All sessions handed to another process.
    /// Ends all sessions, whose hosts do not answer any more, and waits until their numbers have rested.
    fn end(&mut self) {
        let random = &mut self.random;
        for second in 0..180 {
            self.now += Duration::from_secs(1);
            let mut step = Step {
                now: self.now,
                random: &mut |bytes: &mut [u8]| random.fill_bytes(bytes),
                traffic: &mut |_| Traffic::default(),
                actions: &mut Vec::new(),
            };
            if second == 0 {
                self.concentrator.disconnect(&mut step, &Filter::default());
            }
            self.concentrator.tick(&mut step);
        }
        self.concentrator.shrink();
    }

    fn restart(&mut self) -> Done<()> {
        let fresh = Bench::new(Method::ChapMd5)?;
        let old = std::mem::replace(&mut self.concentrator, fresh.concentrator);
        let random = &mut self.random;
        let mut step = Step {
            now: self.now,
            random: &mut |bytes: &mut [u8]| random.fill_bytes(bytes),
            traffic: &mut |_| Traffic::default(),
            actions: &mut Vec::new(),
        };
        let start = Instant::now();
        let text = serde_json::to_vec(&old.snapshot(&mut step))?;
        let written = start.elapsed();
        drop(old);
        let start = Instant::now();
        let snapshot = serde_json::from_slice(&text)?;
        let restored = self.concentrator.restore(&mut step, snapshot, Duration::ZERO)?;
        let (written, read) = (written.as_secs_f64(), start.elapsed().as_secs_f64());
        println!("restart with {} sessions", restored.sessions);
        let mib = text.len() as f64 / f64::from(1 << 20);
        println!("  {written:.2} s to write {mib:.1} MiB of JSON, {read:.2} s to go on");
        if restored.ended == 0 { Ok(()) } else { Err("not all sessions were restored".into()) }
    }
}

/// A stack of two tags of its own for each subscriber.
fn place(number: usize) -> Place {
    let tag = |tpid, vid| Tag { tpid: EtherType(tpid), tci: Tci::new(0, false, vid) };
    let (outer, inner) = (1 + (number / 4000) as u16, 1 + (number % 4000) as u16);
    Place { port: 2, vlans: Vlans::of([tag(0x88a8, outer), tag(0x8100, inner)]).unwrap_or_default() }
}
