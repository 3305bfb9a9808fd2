//! What a packet of a subscriber costs with the data path `batch` and with `xdp`: `cargo run --release -p rxlane-concentrator --example
//! xdp_cost [SESSIONS [ROUNDS]]`, as root. With `rates [SESSIONS [BITS]]`: how exactly each of them is
//! held to a rate of its own.
//!
//! Two concentrators in namespaces of their own, with as many sessions each behind two tags, a line and an uplink of veth, which take
//! turns. Packets of an interface are received by a thread of the kernel (`threaded` of its NAPI), which runs the program and sends what
//! it forwards, or hands frames to the stack; the processor time is that of these threads and of the worker. Packets are of 100 bytes, of
//! all sessions in turn, so that nothing is put together.

#![allow(clippy::print_stdout, reason = "it prints")]

use kernel::netlink::link_by_name;
use kernel::socket::Transmit;
use pppoe::concentrator::BitRates;
use rxlane_concentrator::subscribers::{Config, Limits, Number, Registry, Session, Subscribers};
use std::collections::BTreeSet;
use std::error::Error;
use std::fs::{self, File};
use std::io::{Read, Seek};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};
use testkit::netns::{Namespace, Veth, probe};
use wire::emit::{Emit, Encapsulation, Ipv4, PppoeSession, Udp};
use wire::ethernet::{EtherType, MacAddress};
use wire::vlan::{Tag, Tci};
use wire::{IpProtocol, IpVersion, VlanPattern, Vlans};

type Outcome<T> = Result<T, Box<dyn Error>>;

const SERVER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);
/// Packets of a turn, and as many at once as a ring of veth has places for.
const PACKETS: u32 = 50_000;
const BURST: usize = 64;
/// After that they are taken for lost.
const LATE: Duration = Duration::from_millis(20);

fn session(number: u32, rates: BitRates) -> Outcome<Session> {
    let tag = |tpid, vid: u32| Tag { tpid, tci: Tci::new(0, false, vid as u16) };
    let outer = tag(EtherType::SERVICE_VLAN, 100 + number / 4000);
    let vlans = Vlans::of([outer, tag(EtherType::VLAN, 1 + number % 4000)]).ok_or("tags")?;
    let [_, a, b, c] = number.to_be_bytes();
    let peer = MacAddress([2, 0, 1, a, b, c]);
    let id = (number % 65_000) as u16 + 1;
    Ok(Session { vlans, peer, id, mtu: 1492, mss_clamp: true, identifier: u64::from(number) + 1, rates })
}

fn address(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(0x0a40_0000 + number)
}

fn datagram(source: Ipv4Addr, destination: Ipv4Addr, port: u16) -> Outcome<Vec<u8>> {
    let mut packet = vec![0x5a; 100];
    Ipv4::new(IpProtocol::UDP, source, destination, 100).emit(&mut packet)?;
    let udp = Udp { source_port: port, destination_port: 7000, length: 80, checksum: 0 };
    udp.emit(packet.get_mut(20..).ok_or("room")?)?;
    Ok(packet)
}

/// A concentrator, and what is sent to it from its lines and from its uplink.
struct Side {
    lines: Namespace,
    world: Namespace,
    /// Of the kernel and of the worker.
    threads: Vec<u32>,
    subscribers: Subscribers,
    registry: Registry,
    numbers: Vec<Number>,
    frames: [Vec<Vec<u8>>; 2],
    _near: Namespace,
}

impl Side {
    fn new(count: u32, is_xdp: bool, rates: BitRates) -> Outcome<Side> {
        let (near, lines, world) = (Namespace::new()?, Namespace::new()?, Namespace::new()?);
        near.veth(&Veth { mtu: 1600, peer: Some(&lines), ..Veth::pair("near0", "far0") })?;
        near.veth(&Veth { mtu: 1600, peer: Some(&world), ..Veth::pair("up0", "out0") })?;
        for (namespace, interface) in [(&near, "near0"), (&near, "up0"), (&lines, "far0"), (&world, "out0")] {
            namespace.run("ethtool", &["-K", interface, "gro", "on", "tso", "off", "rxvlan", "off"])?;
        }
        near.run("sysctl", &["-qw", "net.ipv4.ip_forward=1"])?;
        near.run("ip", &["address", "add", "198.51.100.1/24", "dev", "up0"])?;
        let router = world.inside(|| link_by_name("out0"))?.mac.ok_or("no address")?.to_string();
        near.run(
            "ip",
            &["neigh", "add", "198.51.100.2", "lladdr", &router, "dev", "up0", "nud", "permanent"],
        )?;
        let config = Config {
            name: "bras0".to_owned(),
            parent: "near0".to_owned(),
            vlans: VlanPattern::Any,
            addresses: vec!["10.0.0.1/32".parse().map_err(|_| "an address")?],
            mtu: 1492,
            workers: 1,
            limits: Limits { sessions: count as usize, prefixes: count as usize },
            uplinks: if is_xdp { vec!["up0".to_owned()] } else { Vec::new() },
        };
        let workers = threads_of("/proc/self/task", "worker");
        let (subscribers, mut registry, local, own) = near.inside(|| {
            let mac = |name: &str| link_by_name(name).ok().and_then(|link| link.mac).unwrap_or_default();
            let (subscribers, registry) = Subscribers::up(&config).map_err(|error| error.to_string())?;
            subscribers.forward().map_err(|error| error.to_string())?;
            Ok::<_, String>((subscribers, registry, mac("near0"), mac("up0")))
        })?;
        near.run("ip", &["route", "add", "10.64.0.0/15", "dev", "bras0"])?;
        let (mut frames, mut numbers) = ([Vec::new(), Vec::new()], Vec::new());
        for number in 0..count {
            let session = session(number, rates)?;
            let number_of = registry.insert(&session)?;
            numbers.push(number_of);
            registry.add_address(number_of, address(number).into())?;
            let [from, to] = &mut frames;
            from.push(session_frame(&session, local, &datagram(address(number), SERVER, 1)?)?);
            let packet = datagram(SERVER, address(number), 1)?;
            to.push([&own.0[..], &[2, 0, 0, 0, 0, 9, 8, 0], &packet].concat());
        }
        let mut threads: Vec<u32> =
            threads_of("/proc/self/task", "worker").difference(&workers).copied().collect();
        for interface in ["near0", "up0"] {
            threads.extend(threaded(&near, interface)?);
        }
        threaded(&lines, "far0")?;
        threaded(&world, "out0")?;
        Ok(Side { lines, world, threads, subscribers, registry, numbers, frames, _near: near })
    }

    /// Nanoseconds a packet from the lines, or to them, and how many came through.
    fn turn(&self, is_up: bool) -> Outcome<(f64, u64)> {
        let [up, down] = &self.frames;
        let (from, to, frames) =
            if is_up { (&self.lines, &self.world, up) } else { (&self.world, &self.lines, down) };
        let (interface, other) = if is_up { ("far0", "out0") } else { ("out0", "far0") };
        self.subscribers.tick();
        let mut counter = to.inside(|| File::open("/proc/thread-self/net/dev"))?;
        let mut received = || received(&mut counter, other);
        let before = (received(), time_of(&self.threads));
        let (mut sent, mut lost) = (0, 0);
        let mut all = frames.iter().map(Vec::as_slice).cycle().take(PACKETS as usize).peekable();
        let mut transmit = from.inside(|| Transmit::open(interface))?;
        while all.peek().is_some() {
            self.subscribers.tick();
            let some: Vec<&[u8]> = all.by_ref().take(BURST).collect();
            transmit.send(&some)?;
            sent += some.len() as u64;
            // The next ones when these are through, so that none is lost for want of a place in a queue.
            let begun = Instant::now();
            while received() - before.0 + lost < sent && begun.elapsed() < LATE {
                std::thread::sleep(Duration::from_micros(20));
            }
            lost = sent.saturating_sub(received() - before.0);
        }
        let packets = received() - before.0;
        Ok(((time_of(&self.threads) - before.1) as f64 / packets.max(1) as f64, packets))
    }
}

/// Bits of a bucket, and some more; until they are used up nothing is measured.
const BUCKET: u32 = 240_000;
const MEASURED: Duration = Duration::from_secs(10);

/// Sends twice the rate of each session, in bits a second, and prints which part of it passed.
fn rates(count: u32, rate: u32, is_xdp: bool) -> Outcome<()> {
    let side = Side::new(count, is_xdp, BitRates { upload: Some(rate.into()), download: None })?;
    let mut transmit = side.lines.inside(|| Transmit::open("far0"))?;
    let [frames, _] = &side.frames;
    let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    let filled = Duration::from_secs((BUCKET / rate).into());
    let interval = Duration::from_secs(100 * 8) / (2 * rate);
    let frames_of = |number: &Number| side.registry.usage(*number).map_or(0, |usage| usage.received.frames);
    let passed = || -> Vec<u64> { side.numbers.iter().map(frames_of).collect() };
    let begun = Instant::now();
    let mut before = None;
    for round in 0.. {
        for some in frames.chunks(BURST) {
            side.subscribers.tick();
            transmit.send(some)?;
        }
        let elapsed = begun.elapsed();
        if elapsed >= filled {
            let (since, first) = before.get_or_insert_with(|| (Instant::now(), passed()));
            let seconds = since.elapsed().as_secs_f64();
            if seconds >= MEASURED.as_secs_f64() {
                let now = passed();
                let parts = now
                    .iter()
                    .zip(first.iter())
                    .map(|(now, then)| (now - then) as f64 * 100.0 * 8.0 / seconds / f64::from(rate));
                let parts: Vec<f64> = parts.collect();
                let near = parts.iter().filter(|part| (**part - 1.0).abs() <= 0.03).count();
                let path = if is_xdp { "xdp" } else { "batch" };
                let sent = f64::from(round) / elapsed.as_secs_f64() * 800.0 / f64::from(rate);
                println!(
                    "{path}: {count} sessions, {sent:.2} times the rate sent; passed {}, {near} within 3 %",
                    spread(parts, 3)
                );
                return Ok(());
            }
        }
        // The rate that is sent is what is measured.
        std::thread::sleep((interval * (round + 1)).saturating_sub(elapsed));
    }
    Ok(())
}

fn session_frame(session: &Session, local: MacAddress, packet: &[u8]) -> Outcome<Vec<u8>> {
    let mut encapsulation = Encapsulation::NONE;
    for tag in session.vlans.tags() {
        encapsulation = encapsulation.with_tag(tag)?;
    }
    let encapsulation = encapsulation.with_pppoe(PppoeSession { session: Some(session.id), peer: None })?;
    let mut head = [0; 64];
    let length = encapsulation.emit(local, session.peer, IpVersion::V4, packet.len(), &mut head)?;
    Ok([head.get(..length).unwrap_or_default(), packet].concat())
}

/// Packets that an interface has received, by the counters of its namespace.
fn received(counter: &mut File, interface: &str) -> u64 {
    let mut text = String::new();
    let read = counter.rewind().and_then(|()| counter.read_to_string(&mut text));
    drop(read);
    let line = text.lines().find_map(|line| line.trim().strip_prefix(interface)?.strip_prefix(':'));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}

/// Threads or processes in a folder whose names begin so.
fn threads_of(folder: &str, name: &str) -> BTreeSet<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_such = |number: &u32| {
        let own = fs::read_to_string(format!("/proc/{number}/comm")).unwrap_or_default();
        own.starts_with(name)
    };
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_such).collect()
}

/// Has an interface receive by threads of its own, and gives these.
fn threaded(namespace: &Namespace, interface: &str) -> Outcome<Vec<u32>> {
    let name = format!("napi/{interface}");
    let before = threads_of("/proc", &name);
    namespace.run("sh", &["-c", &format!("echo 1 > /sys/class/net/{interface}/threaded")])?;
    Ok(threads_of("/proc", &name).difference(&before).copied().collect())
}

/// Nanoseconds (`/proc/PID/schedstat`, Documentation/scheduler/sched-stats.rst).
fn time_of(threads: &[u32]) -> u64 {
    let of = |thread: &u32| {
        let text = fs::read_to_string(format!("/proc/{thread}/schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    };
    threads.iter().filter_map(of).sum()
}

/// Median, least and most.
fn spread(mut values: Vec<f64>, digits: usize) -> String {
    values.sort_by(f64::total_cmp);
    let at = |place: usize| values.get(place).copied().unwrap_or_default();
    let last = values.len().saturating_sub(1);
    format!("{:.digits$} [{:.digits$}–{:.digits$}]", at(values.len() / 2), at(0), at(last))
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1).peekable();
    let has_rates = arguments.next_if(|word| word == "rates").is_some();
    let mut number = |usual: u32| arguments.next().map_or(Ok(usual), |text| text.parse());
    if has_rates {
        let (count, rate) = (number(10_000)?, number(8_000)?);
        return rates(count, rate, false).and_then(|()| rates(count, rate, true));
    }
    let (sessions, rounds) = (number(10_000)?, number(21)?);
    if probe().is_err() {
        println!("network namespaces require root");
        return Ok(());
    }
    let [batch, xdp] =
        [Side::new(sessions, false, BitRates::default())?, Side::new(sessions, true, BitRates::default())?];
    for (is_up, name) in [(true, "from subscribers"), (false, "to subscribers")] {
        let (mut one, mut other, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        let mut packets = [0, 0];
        for _ in 0..rounds {
            let (a, b) = (batch.turn(is_up)?, xdp.turn(is_up)?);
            one.push(a.0);
            other.push(b.0);
            ratios.push(b.0 / a.0);
            packets = [packets[0] + a.1, packets[1] + b.1];
        }
        let [a, b] = packets;
        println!(
            "{name}, {sessions} sessions: batch {} ns, xdp {} ns a packet, ratio {}; {a} and {b} of {} packets",
            spread(one, 0),
            spread(other, 0),
            spread(ratios, 2),
            u64::from(PACKETS) * u64::from(rounds),
        );
    }
    Ok(())
}
