//! Floods and forged packets next to a connection that is fast.

use super::router::{CLIENT, FAR, PORT, Router, SERVER, at};
use super::sniffer::{Sniffer, TCP, UDP};
use super::traffic::{Crafted, Datagrams};
use crate::process::Process;
use std::fs;
use testkit::wait_until;

/// Connections of a flood.
const MANY: u16 = 20_000;
/// By how much the daemon may grow through them, KiB.
const GROWTH: u64 = 32 << 10;

/// Memory of its own, KiB.
fn memory(process: &Process) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", process.process())).expect("its status");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Connections that conntrack has.
fn tracked(router: &Router) -> u64 {
    let count = router.router.run("cat", &["/proc/sys/net/netfilter/nf_conntrack_count"]);
    count.expect("a counter").trim().parse().expect("a number")
}

#[test]
fn a_flood_takes_neither_memory_nor_the_connection() {
    let Some(router) = Router::translating() else { return };
    let up = router.up();
    let mut datagrams = router.fast_datagrams(SERVER);
    let before = memory(&up);
    let mut line = Sniffer::on(&router.client, FAR);
    for (protocol, tcp_flags) in [(UDP, 0), (TCP, 0x02)] {
        let first = Crafted::from_client(&router, protocol, at(CLIENT, 0), at(SERVER, 9));
        let frames: Vec<Vec<u8>> = (0..MANY)
            .map(|number| Crafted { source: at(CLIENT, 10_000 + number), tcp_flags, ..first.clone() }.frame())
            .collect();
        line.send_all(&frames);
        router.becomes_fast(&mut datagrams);
        wait_until("conntrack has them", || tracked(&router) > u64::from(MANY) / 2);
    }
    assert_eq!(router.flows(), 1, "{:#}", router.status());
    let after = memory(&up);
    assert!(after < before + GROWTH, "{before} KiB, then {after} KiB");
    assert_eq!(router.status()["waiting"], 0);
    up.interrupted();
}

#[test]
fn forged_packets_of_a_connection_are_the_kernels() {
    let Some(router) = Router::translating() else { return };
    let up = router.up();
    let mut datagrams = router.fast_datagrams(SERVER);
    let client = datagrams.client();
    let [mut inside, mut outside] = router.sniffers();
    let from_client = |source, destination| Crafted::from_client(&router, UDP, source, destination).frame();
    let from_server = |source, destination| Crafted::from_server(&router, UDP, source, destination).frame();
    let other_port = at(SERVER, PORT + 1);
    let fast = router.fast();
    let before = router.slow("no-entry");
    // Another port, another source, the other direction's addresses, the addresses behind the translation.
    inside.send(&from_client(client, other_port));
    inside.send(&from_client(at("10.1.0.77", client.port()), at(SERVER, PORT)));
    inside.send(&from_client(at(SERVER, PORT), client));
    outside.send(&from_server(other_port, at("10.2.0.1", client.port())));
    outside.send(&from_server(at(SERVER, PORT), client));
    outside.send(&from_server(client, at(SERVER, PORT)));
    wait_until("all are passed", || router.slow("no-entry") >= before + 6);
    assert_eq!(router.fast(), fast);
    router.becomes_fast(&mut datagrams);
    up.interrupted();
}

#[test]
fn connections_beyond_the_limit_are_the_kernels() {
    const FLOWS: u16 = 100;
    const TRIED: u16 = 150;
    let Some(router) = Router::routed() else { return };
    let up = router.up_on(&["lan0", "wan0"], &["--flows", "100"]);
    let [mut inside, mut outside] = router.sniffers();
    // Both stations are known.
    Datagrams::through(&router, SERVER, PORT).exchange();
    let (client, server) = (|number| at(CLIENT, 20_000 + number), at(SERVER, 9));
    let there: Vec<Vec<u8>> =
        (0..TRIED).map(|number| Crafted::from_client(&router, UDP, client(number), server).frame()).collect();
    let back: Vec<Vec<u8>> =
        (0..TRIED).map(|number| Crafted::from_server(&router, UDP, server, client(number)).frame()).collect();
    // The connection of the datagrams may have ended by then.
    wait_until("all are answered, and some are refused", || {
        inside.send_all(&there);
        outside.send_all(&back);
        router.status()["refusals"]["full"].as_u64() >= Some(u64::from(TRIED - FLOWS))
    });
    assert_eq!(router.flows(), u64::from(FLOWS), "{:#}", router.status());
    router.assert_counters_add_up();
    up.interrupted();
}
