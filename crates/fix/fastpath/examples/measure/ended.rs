//! How long packets of a connection are still forwarded by the fast path once conntrack has forgotten it, or its route is another one.
//!
//! The time is that from before the request to the kernel until the last stale packet was seen at the far end of the line.

use super::router::{CLIENT, Left, Router, frame, left, mac, text};
use kernel::netlink::netfilter::conntrack::{Direction, remove};
use kernel::netlink::{Netlink, Route, link_by_name};
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::thread;
use std::time::{Duration, Instant};
use testkit::PATIENCE;
use testkit::frames::Frames;
use wire::IpVersion;

const UDP: u8 = 17;
/// Connections of a round, which end one after the other.
const EACH: usize = 20;
/// Between two of them.
const STEP: Duration = Duration::from_millis(15);
/// How long packets are sent and watched after the last one.
const WATCH: Duration = Duration::from_millis(400);
const LIMIT: Duration = Duration::from_millis(200);
/// Between two datagrams of a connection, without what sending takes.
const PAUSE: Duration = Duration::from_micros(200);

#[derive(Clone, Copy, Debug)]
enum Cause {
    Forgotten,
    Rerouted,
}

/// Fails where a stale packet is seen after 200 ms.
pub fn measure(tries: usize) {
    let Some(mut router) = Router::new(65_536, None) else { return };
    // A route for each server, so that it can be another one by itself.
    for place in 0..EACH {
        let server = server(place).ip().to_string();
        for (near, far) in [("wan0", "far1"), ("wan1", "far2")] {
            let neighbour = ["neighbour", "replace", &server, "lladdr", &text(mac(far)), "dev", near];
            router.router.run("ip", &neighbour).expect("ip");
        }
        router.router.run("ip", &["route", "add", &server, "dev", "wan0", "metric", "10"]).expect("ip");
    }
    let Router { router: namespace, ends, .. } = &mut router;
    // Requests to the kernel are made in the namespace.
    let late = namespace.inside(|| {
        [Cause::Forgotten, Cause::Rerouted].map(|cause| {
            let mut times = Vec::new();
            let (mut packets, start) = (0, Instant::now());
            for round in 0..tries.div_ceil(EACH) {
                times.extend(Round::new(round, ends).measure(cause, &mut packets));
            }
            print(cause, &mut times, packets, start.elapsed())
        })
    });
    assert_eq!(late, [0, 0], "forwarded after {} ms", LIMIT.as_millis());
}

fn server(place: usize) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 99, 0, place as u8 + 1), 9)
}

/// Connections that are fast.
struct Round<'e> {
    clients: Vec<SocketAddrV4>,
    /// One of each, from the client.
    requests: Vec<Vec<u8>>,
    ends: &'e mut [Frames; 3],
}

impl<'e> Round<'e> {
    fn new(round: usize, ends: &'e mut [Frames; 3]) -> Round<'e> {
        let port = |place| (10_000 + (round * EACH + place) % 50_000) as u16;
        let clients: Vec<_> = (0..EACH).map(|place| SocketAddrV4::new(CLIENT, port(place))).collect();
        let both = || clients.iter().enumerate().map(|(place, client)| (*client, server(place)));
        let requests = both().map(|(client, server)| frame("far0", client, server)).collect();
        let answers: Vec<_> = both().map(|(client, server)| frame("far1", server, client)).collect();
        let mut made = Round { clients, requests, ends };
        let (mut is_fast, start) = ([false; EACH], Instant::now());
        while is_fast.contains(&false) {
            assert!(start.elapsed() < PATIENCE, "not fast: {is_fast:?}");
            made.send_requests();
            // The kernel forwards the first ones meanwhile; all being fast ends the wait.
            thread::sleep(Duration::from_millis(2));
            made.stale(|place| is_fast[place] = true);
            send(&mut made.ends[1], &answers);
        }
        made
    }

    fn send_requests(&mut self) {
        send(&mut self.ends[0], &self.requests);
    }

    /// Places of connections of which packets were forwarded by the program to the first line.
    fn stale(&mut self, mut each: impl FnMut(usize)) {
        let clients = &self.clients;
        left(&mut self.ends[1], |Left { is_fast, source, .. }| {
            let place = clients.iter().position(|client| *client == source);
            place.filter(|_| is_fast).into_iter().for_each(&mut each);
        });
        // What leaves by the others is not kept.
        left(&mut self.ends[0], |_| ());
        left(&mut self.ends[2], |_| ());
    }

    fn measure(mut self, cause: Cause, packets: &mut u64) -> Vec<Duration> {
        let mut ended: Vec<Instant> = Vec::with_capacity(EACH);
        let mut last = [None; EACH];
        let mut due = Instant::now();
        while ended.len() < EACH || ended.last().is_some_and(|last| last.elapsed() < WATCH) {
            self.send_requests();
            *packets += EACH as u64;
            let is_due = ended.len() < EACH && Instant::now() >= due;
            self.stale(|place| last[place] = Some(Instant::now()));
            if is_due {
                ended.push(Instant::now());
                self.end(cause, ended.len() - 1);
                due = Instant::now() + STEP;
            }
            thread::sleep(PAUSE);
        }
        self.clean_up(cause);
        let since = |(ended, last): (Instant, Option<Instant>)| {
            last.map_or(Duration::ZERO, |last| last.saturating_duration_since(ended))
        };
        ended.into_iter().zip(last).map(since).collect()
    }

    fn end(&self, cause: Cause, place: usize) {
        match cause {
            Cause::Forgotten => assert!(self.forget(place), "it was there"),
            Cause::Rerouted => {
                Netlink::route().expect("a socket").add_route(&other_route(place)).expect("a route")
            }
        }
    }

    fn forget(&self, place: usize) -> bool {
        let (client, server) = (self.clients[place], server(place));
        let ports = Some((client.port(), server.port()));
        let original =
            Direction { source: IpAddr::V4(*client.ip()), destination: IpAddr::V4(*server.ip()), ports };
        remove(&original, UDP, 0).expect("removed")
    }

    fn clean_up(&self, cause: Cause) {
        for place in 0..EACH {
            if matches!(cause, Cause::Rerouted) {
                Netlink::route().expect("a socket").remove_route(&other_route(place)).expect("removed");
            }
            self.forget(place);
        }
    }
}

/// The route of a server by the second line, which counts more than that by the first.
fn other_route(place: usize) -> Route {
    Route {
        version: IpVersion::V4,
        destination: Some((IpAddr::V4(*server(place).ip()), 32)),
        interface: link_by_name("wan1").expect("an interface").index,
        metric: 5,
    }
}

fn send(end: &mut Frames, frames: &[Vec<u8>]) {
    let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    end.send_all(&frames).expect("sent");
}

/// Gives how many were too late.
fn print(cause: Cause, times: &mut [Duration], packets: u64, took: Duration) -> usize {
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_secs_f64() * 1e3;
    let late = times.iter().filter(|time| **time > LIMIT).count();
    let over = times.iter().filter(|time| **time > Duration::from_millis(100)).count();
    let name = match cause {
        Cause::Forgotten => "conntrack -D",
        Cause::Rerouted => "another route",
    };
    println!(
        "{name}: {} tries, {packets} packets sent, {:.0} s; last stale packet after: median {:.2} ms, 99 % {:.2} ms, most {:.2} ms; {over} after 100 ms, {late} after 200 ms",
        times.len(),
        took.as_secs_f64(),
        at(50),
        at(99),
        at(100),
    );
    late
}
