//! What a concentrator's packets cost with one session and with many, and what a session takes:
//! `cargo run --release -p rxlane-concentrator --example subscribers_cost`, as root for the second part.
//!
//! First the look-ups in the tables for each frame and packet, with nothing around it: nanoseconds, median and least of
//! several steps. Frames lie in 4 MiB, as in the ring, and are of sessions in random order. Then the whole way of a packet in
//! network namespaces: processor time of the worker for each, kernel included. Flows are as many whatever the number of
//! sessions, and no two packets in a row are of one, so that nothing is put together.

#![allow(clippy::print_stdout, reason = "it prints")]

use kernel::netlink::link_by_name;
use kernel::socket::Transmit;
use link::lines::Lines;
use offload::Prefix as Head;
use pppoe::concentrator::BitRates;
use pppoe::concentrator::network::Network;
use rxlane_concentrator::subscribers::{Config, Limits, Registry, Session, Subscribers};
use std::error::Error;
use std::fs;
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::time::{Duration, Instant};
use testkit::netns::{Namespace, Veth, probe};
use wire::VlanPattern;
use wire::emit::{Emit, Encapsulation, Ipv4, Udp};
use wire::ethernet::{EtherType, MacAddress};
use wire::vlan::{Tag, Tci};
use wire::{IpProtocol, IpVersion, Vlans};

type Outcome<T> = Result<T, Box<dyn Error>>;

const SESSIONS: [u32; 3] = [1, 10_000, 60_000];
const LIMITS: Limits = Limits { sessions: 60_000, prefixes: 65_536 };
/// Places of the ring, and bytes of each.
const PLACES: usize = 2048;
const PLACE: usize = 2048;
const TURNS: usize = 101;
const LOCAL: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// Flows of the second part, and packets of a step.
const FLOWS: u32 = 60_000;
const BURST: usize = 64;

/// A seeded sequence (xorshift64).
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, most: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (((self.0 >> 32) * u64::from(most)) >> 32) as u32
    }
}

fn session(number: u32) -> Outcome<Session> {
    let tag = |tpid, vid: u32| Tag { tpid, tci: Tci::new(0, false, vid as u16) };
    let outer = tag(EtherType::SERVICE_VLAN, 100 + number / 4000);
    let vlans = Vlans::of([outer, tag(EtherType::VLAN, 1 + number % 4000)]).ok_or("tags")?;
    let [_, a, b, c] = number.to_be_bytes();
    Ok(Session {
        vlans,
        peer: MacAddress([2, 0, 1, a, b, c]),
        id: (number % 65_000) as u16 + 1,
        mtu: 1492,
        mss_clamp: true,
        identifier: u64::from(number) + 1,
        rates: BitRates::default(),
    })
}

fn address(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(0x0a40_0000 + number)
}

fn fill(registry: &mut Registry, count: u32) -> Outcome<()> {
    for number in 0..count {
        let own = registry.insert(&session(number)?)?;
        registry.add_address(own, address(number).into())?;
        let prefix = Ipv6Addr::from(0x2001_0db8 << 96 | u128::from(number) << 64);
        registry.add_prefix(own, Network::of(IpAddr::V6(prefix), 64).ok_or("a prefix")?)?;
    }
    Ok(())
}

fn datagram(source: Ipv4Addr, destination: Ipv4Addr, port: u16) -> Outcome<Vec<u8>> {
    let mut packet = vec![0x5a; 100];
    let ip = Ipv4::new(IpProtocol::UDP, source, destination, 100);
    ip.emit(&mut packet)?;
    let udp = Udp { source_port: port, destination_port: 7000, length: 80, checksum: 0 };
    udp.emit(packet.get_mut(20..).ok_or("room")?)?;
    Ok(packet)
}

fn frame(session: &Session, local: MacAddress, packet: &[u8]) -> Outcome<Vec<u8>> {
    let mut encapsulation = Encapsulation::NONE;
    for tag in session.vlans.tags() {
        encapsulation = encapsulation.with_tag(tag)?;
    }
    let pppoe = wire::emit::PppoeSession { session: Some(session.id), peer: None };
    let encapsulation = encapsulation.with_pppoe(pppoe)?;
    let mut head = [0; 64];
    let length = encapsulation.emit(local, session.peer, IpVersion::V4, packet.len(), &mut head)?;
    Ok([head.get(..length).unwrap_or_default(), packet].concat())
}

/// Resident memory of this process, bytes.
fn resident() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
}

/// Median and least.
fn median_and_least(mut steps: Vec<f64>) -> String {
    steps.sort_by(f64::total_cmp);
    let (median, least) = (steps.get(steps.len() / 2), steps.first());
    format!("{:7.1} [{:.1}]", median.unwrap_or(&0.0), least.unwrap_or(&0.0))
}

/// Nanoseconds a frame in, and a packet out.
fn look_ups(registry: &Registry, count: u32) -> Outcome<[String; 2]> {
    let view = registry.view();
    let mut random = Seeded(0x5eed);
    let mut ring = vec![0_u8; PLACES * PLACE];
    let mut steps = [Vec::new(), Vec::new()];
    for _ in 0..TURNS {
        let mut lengths = Vec::new();
        for place in ring.chunks_exact_mut(PLACE) {
            let number = random.below(count);
            let bytes = frame(&session(number)?, LOCAL, &datagram(address(number), SERVER, 1)?)?;
            place.get_mut(..bytes.len()).ok_or("room")?.copy_from_slice(&bytes);
            lengths.push(bytes.len());
        }
        let start = Instant::now();
        let mut taken = 0;
        for (place, length) in ring.chunks_exact_mut(PLACE).zip(&lengths) {
            taken += usize::from(
                view.decapsulate(black_box(place.get_mut(..*length).unwrap_or_default())).is_ok(),
            );
        }
        push(&mut steps, 0, start.elapsed());
        for place in ring.chunks_exact_mut(PLACE) {
            let bytes = datagram(SERVER, address(random.below(count)), 1)?;
            place.get_mut(..bytes.len()).ok_or("room")?.copy_from_slice(&bytes);
        }
        let (mut space, mut room) = (Head::NONE, [0; 64]);
        let start = Instant::now();
        for place in ring.chunks_exact(PLACE) {
            let packet = black_box(place.get(..100).unwrap_or_default());
            if let Ok((head, _)) = view.outward(packet, &mut space)
                && let Some(room) = black_box(&mut room).get_mut(..head.length())
            {
                head.write(IpVersion::V4, packet.len(), room);
                taken += 1;
            }
        }
        push(&mut steps, 1, start.elapsed());
        if taken != 2 * PLACES {
            return Err(format!("{taken} of {}", 2 * PLACES).into());
        }
    }
    Ok(steps.map(median_and_least))
}

fn push(steps: &mut [Vec<f64>; 2], way: usize, time: Duration) {
    if let Some(steps) = steps.get_mut(way) {
        steps.push(time.as_nanos() as f64 / PLACES as f64);
    }
}

/// Processor time of the thread of this name, nanoseconds.
fn worker_time() -> u64 {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let times = threads.filter_map(|thread| {
        let name = fs::read_to_string(thread.path().join("comm")).ok()?;
        let time = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        name.starts_with("worker").then(|| time.split(' ').next()?.parse::<u64>().ok())?
    });
    times.sum()
}

/// Nanoseconds of the worker for a frame in and for a packet out, of several steps in which every number has its own.
fn whole(counts: &[u32]) -> Outcome<Vec<[String; 2]>> {
    let (near, far) = (Namespace::new()?, Namespace::new()?);
    near.veth(&Veth { mtu: 1600, peer: Some(&far), ..Veth::pair("near0", "far0") })?;
    let up = |_| -> Result<_, String> {
        let config = Config {
            name: "bras0".to_owned(),
            parent: "near0".to_owned(),
            vlans: VlanPattern::Any,
            addresses: vec!["10.0.0.1/32".parse().map_err(|_| "an address")?],
            mtu: 1492,
            workers: 1,
            limits: LIMITS,
            uplinks: Vec::new(),
        };
        let local = link_by_name("near0").map_err(|error| error.to_string())?.mac.ok_or("no address")?;
        Subscribers::up(&config).map(|up| (up, local)).map_err(|error| error.to_string())
    };
    let mut all: Vec<[Vec<f64>; 2]> = counts.iter().map(|_| [Vec::new(), Vec::new()]).collect();
    for _ in 0..9 {
        for (count, steps) in counts.iter().zip(&mut all) {
            let ((subscribers, mut registry), local) = near.inside(|| up(()))?;
            near.run("ip", &["route", "add", "10.64.0.0/15", "dev", "bras0"])?;
            fill(&mut registry, *count)?;
            let frames: Vec<Vec<u8>> = (0..FLOWS)
                .map(|flow| {
                    let packet = datagram(address(flow % count), SERVER, flow as u16)?;
                    frame(&session(flow % count)?, local, &packet)
                })
                .collect::<Outcome<_>>()?;
            // Somebody has the port, and takes nothing: what does not fit its queue is dropped.
            let _taker = near.inside(|| UdpSocket::bind((SERVER, 7000)))?;
            let moved = || {
                let counted = subscribers.counted();
                (counted.received.frames, counted.sent.frames, worker_time())
            };
            let before = moved();
            far.inside(|| -> Result<(), String> {
                let mut transmit = Transmit::open("far0").map_err(|error| error.to_string())?;
                for some in frames.chunks(BURST) {
                    let some: Vec<&[u8]> = some.iter().map(Vec::as_slice).collect();
                    transmit.send(&some).map_err(|error| error.to_string())?;
                    std::thread::sleep(Duration::from_micros(50));
                }
                Ok(())
            })?;
            std::thread::sleep(Duration::from_millis(50));
            let between = moved();
            near.inside(|| -> Result<(), String> {
                let socket = UdpSocket::bind((SERVER, 0)).map_err(|error| error.to_string())?;
                for flow in 0..FLOWS {
                    let to = (address(flow % count), 1024 + (flow % 60_000) as u16);
                    socket.send_to(&[0x5a; 72], to).map_err(|error| error.to_string())?;
                }
                Ok(())
            })?;
            std::thread::sleep(Duration::from_millis(50));
            let after = moved();
            let [one, other] = steps;
            one.push((between.2 - before.2) as f64 / (between.0 - before.0).max(1) as f64);
            other.push((after.2 - between.2) as f64 / (after.1 - between.1).max(1) as f64);
            subscribers.down();
        }
    }
    Ok(all.into_iter().map(|steps| steps.map(median_and_least)).collect())
}

fn main() -> Outcome<()> {
    println!("look-ups, ns a packet: median [least]");
    println!(
        "{:>9}  {:>18}  {:>18}  {:>20}  {:>16}",
        "sessions", "in", "out", "tables a session", "resident, MiB"
    );
    for count in SESSIONS {
        let before = resident();
        let mut registry = Registry::new(LIMITS, LOCAL);
        let start = Instant::now();
        fill(&mut registry, count)?;
        let made = start.elapsed().as_nanos() as f64 / f64::from(count);
        let taken = resident().saturating_sub(before) as f64 / f64::from(1 << 20);
        let each = registry.memory() as f64 / f64::from(count);
        let [way_in, way_out] = look_ups(&registry, count)?;
        println!("{count:>9}  {way_in:>18}  {way_out:>18}  {each:>20.0}  {taken:>16.1}  {made:>12.0}");
    }
    if probe().is_err() {
        println!("the whole way of a packet requires root");
        return Ok(());
    }
    println!("\nwhole way, ns of the worker a packet: median [least]");
    println!("{:>9}  {:>20}  {:>20}", "sessions", "in", "out");
    for (count, [way_in, way_out]) in SESSIONS.iter().zip(whole(&SESSIONS)?) {
        println!("{count:>9}  {way_in:>20}  {way_out:>20}");
    }
    Ok(())
}
