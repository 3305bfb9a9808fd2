//! CPU time of a forwarded packet: through the kernel's routing, filter and NAT, and through the fast path, in turn.
//!
//! Packets of an interface are received by a thread of the kernel (`threaded` of its NAPI), which forwards them up to the queue of the other
//! end of the next line: its CPU time is that of forwarding, and of nothing else. They come from a socket, so that they have a socket buffer
//! already, of which XDP needs a copy; the kernel needs none.

use super::router::{CLIENT, Router, frame, left};
use std::collections::BTreeSet;
use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Instant;
use testkit::netns::Namespace;
use testkit::{PATIENCE, wait_until};

/// Connections, all of which have their source translated.
const CONNECTIONS: usize = 1_000;
const ROUNDS: usize = 21;
/// Packets at a time. A ring of veth has 256 places.
const PIECE: usize = 64;
const SERVER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 97, 0, 1), 9);
/// The ends of the lines to the clients and to the servers, and the interfaces of the router at which their packets arrive.
const WAYS: [(usize, usize, &str); 2] = [(0, 1, "lan0"), (1, 0, "wan0")];

/// A router, and what its packets are.
struct Side {
    router: Router,
    /// Of the client, and of the servers.
    frames: [Vec<Vec<u8>>; 2],
    /// The threads of lan0, and of wan0.
    threads: [Vec<u32>; 2],
}

/// Prints what a packet takes of both, after so many packets a round.
pub fn measure(packets: usize) {
    let (Some(kernel), Some(fast)) = (Router::plain(), Router::new(CONNECTIONS, None)) else { return };
    // A veth without a program receives by NAPI what comes from one that joins no segments (`veth_xmit()` of drivers/net/veth.c).
    for (near, far) in [("lan0", "far0"), ("wan0", "far1")] {
        kernel.router.run("ethtool", &["-K", near, "gro", "on"]).expect("NAPI");
        kernel.outside.run("ethtool", &["-K", far, "tso", "off"]).expect("no segments");
    }
    let mut sides = [Side::of(kernel), Side::of(fast)];
    wait_until("all are installed", || sides[1].router.status().flows == CONNECTIONS as u64);
    for (place, (_, _, near)) in WAYS.iter().enumerate() {
        let mut rounds: [Vec<f64>; 2] = Default::default();
        for _ in 0..ROUNDS {
            for (side, taken) in sides.iter_mut().zip(&mut rounds) {
                taken.push(side.round(place, packets));
            }
        }
        let [kernel, fast] = &rounds;
        let ratios: Vec<f64> = kernel.iter().zip(fast).map(|(kernel, fast)| kernel / fast).collect();
        println!("from {near}: kernel {} ns, fast path {} ns, ratio {}", of(kernel), of(fast), of(&ratios));
    }
    let status = sides[1].router.status();
    println!("fast: {} of {} packets", status.packets.fast, 2 * ROUNDS * packets);
}

/// Median, and from the least to the most.
fn of(values: &[f64]) -> String {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let digits = if sorted[0] < 100.0 { 2 } else { 0 };
    let [median, least, most] = [sorted[sorted.len() / 2], sorted[0], sorted[sorted.len() - 1]];
    format!("{median:.digits$} ({least:.digits$} to {most:.digits$})")
}

impl Side {
    /// Has every connection begun and answered.
    fn of(mut router: Router) -> Side {
        let own = WAYS.map(|(_, _, near)| threads(&router.router, near));
        for far in ["far0", "far1"] {
            threads(&router.outside, far);
        }
        let client = |number: usize| SocketAddrV4::new(CLIENT, (10_000 + number) as u16);
        let requests: Vec<Vec<u8>> =
            (0..CONNECTIONS).map(|number| frame("far0", client(number), SERVER)).collect();
        let sources = exchange(&mut router, 0, 1, &slices(&requests));
        let answers: Vec<Vec<u8>> = sources.into_iter().map(|source| frame("far1", SERVER, source)).collect();
        exchange(&mut router, 1, 0, &slices(&answers));
        Side { router, frames: [requests, answers], threads: own }
    }

    /// Nanoseconds of CPU time a packet.
    fn round(&mut self, place: usize, packets: usize) -> f64 {
        let (from, to, _) = WAYS[place];
        let before = cpu_time(&self.threads[place]);
        let frames = self.frames[place].iter().cycle().take(packets);
        exchange(&mut self.router, from, to, &frames.map(Vec::as_slice).collect::<Vec<_>>());
        (cpu_time(&self.threads[place]) - before) as f64 / packets as f64
    }
}

/// Sends packets by one end, and gives the sources of those that leave the router at the other.
fn exchange(router: &mut Router, from: usize, to: usize, frames: &[&[u8]]) -> Vec<SocketAddrV4> {
    let (mut sources, mut sent, start) = (Vec::new(), 0, Instant::now());
    while sources.len() < frames.len() {
        assert!(start.elapsed() < PATIENCE, "{} of {} packets arrived", sources.len(), frames.len());
        if sent < frames.len() && sent - sources.len() <= PIECE {
            let piece = &frames[sent..frames.len().min(sent + PIECE)];
            router.ends[from].send_all(piece).expect("sent");
            sent += piece.len();
        }
        left(&mut router.ends[to], |left| sources.push(left.source));
    }
    sources
}

/// Has an interface receive by threads of its own, and gives these.
fn threads(namespace: &Namespace, interface: &str) -> Vec<u32> {
    let before = kernel_threads(interface);
    let command = format!("echo 1 > /sys/class/net/{interface}/threaded");
    namespace.run("sh", &["-c", &command]).expect("threaded NAPI");
    let new: Vec<u32> = kernel_threads(interface).difference(&before).copied().collect();
    assert!(!new.is_empty(), "no thread of {interface}");
    new
}

/// Threads that receive for interfaces of this name.
fn kernel_threads(interface: &str) -> BTreeSet<u32> {
    let is_such = |process: &u32| {
        let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
        name.starts_with(&format!("napi/{interface}"))
    };
    let all = fs::read_dir("/proc").expect("processes").flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_such).collect()
}

/// Nanoseconds (`/proc/PID/schedstat`, Documentation/scheduler/sched-stats.rst).
fn cpu_time(threads: &[u32]) -> u64 {
    let of = |thread: &u32| {
        let text = fs::read_to_string(format!("/proc/{thread}/schedstat")).expect("a thread");
        text.split(' ').next().and_then(|first| first.parse::<u64>().ok()).expect("a number")
    };
    threads.iter().map(of).sum()
}

fn slices(frames: &[Vec<u8>]) -> Vec<&[u8]> {
    frames.iter().map(Vec::as_slice).collect()
}
