//! Nothing is allocated for a datagram, neither sent nor received.

use rxlane_bench::udp::{self, Receiving, Sending};
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;
use testkit::allocations::{self, Counting};
use testkit::netns::{Namespace, probe};
use testkit::require;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of a whole test with so many datagrams.
fn allocations(count: u64, segments: u16) -> u64 {
    let before = allocations::of_all_threads();
    let receiving = Receiving {
        address: SocketAddr::from(([127, 0, 0, 1], 9100)),
        buffer: Some(64 << 20),
        coalesce: segments > 1,
        length: Some(Duration::from_secs(30)),
        once: true,
        ..Receiving::default()
    };
    let sending = Sending {
        targets: vec![receiving.address],
        first_port: Some(9200),
        ports: 8,
        payload: 100,
        count: Some(count),
        segments,
        ..Sending::default()
    };
    let stop = AtomicBool::new(false);
    let go_on = || |_: &_| ControlFlow::Continue(());
    thread::scope(|scope| {
        let listening = receiving.listen().expect("sockets");
        let receive = || udp::receive(&receiving, listening, None, &stop, &mut go_on()).expect("received");
        let sink = scope.spawn(receive);
        udp::send(&sending, None, &stop, &mut go_on()).expect("sent");
        let received = sink.join().expect("a thread");
        assert_eq!(received.counts.packets, count, "{received:?}");
    });
    allocations::of_all_threads() - before
}

#[test]
fn more_datagrams_take_no_more_allocations() {
    let Some(()) = require("netns", probe()) else { return };
    let namespace = Namespace::new().expect("a namespace");
    namespace.inside(|| {
        for segments in [1, 16] {
            let few = allocations(1000, segments);
            let many = allocations(60_000, segments);
            // A line each second, on a machine that takes longer for them.
            assert!(many < few + 100, "{few} and {many}");
        }
    });
}
