//! A daemon that is stopped, killed, and one in the background.

use super::router::{LAN, PORT, Router, SERVER, WAN, at};
use crate::run::Ended;
use crate::stream::Stream;
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
