//! What rate a limit lets through: UDP at twice that rate, for ten seconds in each direction.

use super::router::{CLIENT, Router, frame_of, left};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::thread;
use std::time::{Duration, Instant};
use testkit::wait_until;

/// UDP bytes of a datagram, without its header.
const PAYLOAD: usize = 1_400;
const LASTS: Duration = Duration::from_secs(10);
/// Between two looks at what is due: the rate is the subject.
const PAUSE: Duration = Duration::from_micros(200);

/// Prints the rates that arrive with this limit in both directions, bits a second.
pub fn measure(limit: u64) {
    let Some(mut router) = Router::new(100, Some(limit)) else { return };
    let client = SocketAddrV4::new(CLIENT, 10_000);
    let server = SocketAddrV4::new(Ipv4Addr::new(10, 98, 0, 1), 9);
    let frames = [frame_of("far0", client, server, PAYLOAD), frame_of("far1", server, client, PAYLOAD)];
    wait_until("the connection is installed", || {
        for (end, frame) in router.ends.iter_mut().zip(&frames) {
            end.send(frame).expect("sent");
        }
        router.status().flows > 0
    });
    for (from, name) in ["upload", "download"].iter().enumerate() {
        let rate = rate(&mut router, from, &frames[from], limit);
        let deviation = (rate / limit as f64 - 1.0) * 100.0;
        println!("{name}, limit {limit} bit/s: {rate:.0} bit/s of IP packets, {deviation:+.2} %");
    }
}

/// Bits a second of IP packets that the fast path forwards.
fn rate(router: &mut Router, from: usize, frame: &[u8], limit: u64) -> f64 {
    let (mut sent, mut arrived) = (0_u64, 0);
    // What is on its way.
    left(&mut router.ends[1 - from], |_| ());
    let start = Instant::now();
    while start.elapsed() < LASTS {
        let most = 2.0 * limit as f64 / 8.0 * start.elapsed().as_secs_f64();
        while (sent as f64) < most {
            router.ends[from].send_all(&[frame; 4]).expect("sent");
            sent += 4 * frame.len() as u64;
        }
        left(&mut router.ends[1 - from], |left| arrived += if left.is_fast { left.length } else { 0 });
        thread::sleep(PAUSE);
    }
    left(&mut router.ends[1 - from], |left| arrived += if left.is_fast { left.length } else { 0 });
    arrived as f64 * 8.0 / start.elapsed().as_secs_f64()
}
