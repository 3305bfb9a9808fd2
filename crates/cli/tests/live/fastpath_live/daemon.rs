//! A daemon that is stopped, killed, ended in the middle of a transfer, and one in the background.

use super::router::{LAN, PORT, Router, SERVER, WAN, at};
use crate::run::Ended;
use crate::stream::Stream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use testkit::wait_until;

#[test]
fn a_daemon_that_is_stopped_leaves_packets_to_the_kernel() {
    let Some(router) = Router::translating() else { return };
    let up = router.up();
    let mut datagrams = router.fast_datagrams(SERVER);
    assert_eq!(router.slow("daemon-silent"), 0);
    up.signal("STOP");
    let before = router.forwarded_by_kernel();
    wait_until("the kernel forwards them", || {
        datagrams.exchange();
        router.forwarded_by_kernel() >= before + 10
    });
    up.signal("CONT");
    assert!(router.slow("daemon-silent") >= 10, "{:#}", router.status());
    router.becomes_fast(&mut datagrams);
    assert_eq!(router.status()["installs"], 1);
    up.interrupted().ends(0).says("The fast path is off.");
}

#[test]
fn a_killed_daemon_takes_its_program_with_it() {
    let Some(router) = Router::translating() else { return };
    let mut stream = Stream::to(&router.client, &router.server, at(SERVER, PORT), at(SERVER, PORT));
    for command in ["status", "down"] {
        let up = router.up();
        router.wait_for_flows(1);
        stream.carry(1 << 18);
        assert!(router.has_program(LAN) && router.has_program(WAN));
        up.killed();
        wait_until("the program is off", || !router.has_program(LAN) && !router.has_program(WAN));
        stream.carry(1 << 18);
        // The first command says so, and removes what is left.
        router.run(&[command]).is(&command, 1, "killed");
        router.run(&[command]).is(&command, 1, "there is no fast path");
    }
    let up = router.up();
    router.wait_for_flows(1);
    stream.carry(1 << 18);
    assert!(router.fast() > 100);
    up.interrupted().ends(0);
    router.run(&["status"]).ends(1);
    stream.carry(1 << 18);
}

#[test]
fn a_transfer_goes_on_whatever_comes_and_goes() {
    let Some(router) = Router::translating() else { return };
    let mut stream = Stream::to(&router.client, &router.server, at(SERVER, PORT), at(SERVER, PORT));
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                stream.carry(1 << 18);
            }
        });
        // Whatever fails here, the thread ends.
        let work = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for _ in 0..3 {
                let up = router.up();
                wait_until("it is fast", || router.fast() > 200);
                router.run(&["flush"]).ends(0).says("1 connection removed");
                let before = router.fast();
                wait_until("it is fast again", || router.fast() > before + 200);
                assert_eq!(router.removed("flushed"), 1);
                router.run(&["down"]).ends(0).says("The fast path is off.");
                up.ended().ends(0);
                assert!(!router.has_program(LAN) && !router.has_program(WAN));
            }
        }));
        over.store(true, Ordering::Relaxed);
        work.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

#[test]
fn a_daemon_in_the_background_is_ended_by_down() {
    let Some(router) = Router::translating() else { return };
    let started = router.run(&["up", LAN, WAN, "--daemon"]);
    started.ends(0).says("The fast path is up on lan0, wan0.").says("daemon");
    let mut datagrams = router.fast_datagrams(SERVER);
    router.run(&["down"]).ends(0).says("The fast path is off.");
    assert!(!router.has_program(LAN) && !router.has_program(WAN));
    router.run(&["down"]).ends(1);
    datagrams.exchange();
}
