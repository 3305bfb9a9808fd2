//! `rxlane fastpath` on a router between two network namespaces: connections of every kind, and what may change under them.

mod bridge;
mod changes;
mod commands;
mod daemon;
mod doctor;
mod ended;
mod hostile;
mod links;
mod policy;
mod reasons;
mod router;
mod sniffer;
mod survival;
mod traffic;
mod transfer;

use crate::run::Ended;
use crate::stream::Stream;
use router::{CLIENT, CLIENT_IPV6, OUTSIDE, PORT, Router, SERVER, SERVER_IPV6, at};
use sniffer::{Packet, TCP};
use std::net::SocketAddr;
use testkit::netns::Namespace;
use testkit::wait_until;
use traffic::Datagrams;

/// Bytes of a stream, each way.
const STREAM: usize = 2 << 20;

/// A kind of connection: where its server listens, where the client sends to, and what each end sees of the other.
struct Kind {
    name: &'static str,
    is_translated: bool,
    /// The server is behind the router's LAN.
    is_inwards: bool,
    listens: &'static str,
    sends_to: &'static str,
    /// The client, as the server sees it.
    client: &'static str,
}

const KINDS: [Kind; 4] = [
    Kind {
        name: "masquerade",
        is_translated: true,
        is_inwards: false,
        listens: SERVER,
        sends_to: SERVER,
        client: OUTSIDE,
    },
    Kind {
        name: "DNAT",
        is_translated: true,
        is_inwards: true,
        listens: CLIENT,
        sends_to: OUTSIDE,
        client: SERVER,
    },
    Kind {
        name: "IPv4",
        is_translated: false,
        is_inwards: false,
        listens: SERVER,
        sends_to: SERVER,
        client: CLIENT,
    },
    Kind {
        name: "IPv6",
        is_translated: false,
        is_inwards: false,
        listens: SERVER_IPV6,
        sends_to: SERVER_IPV6,
        client: CLIENT_IPV6,
    },
];

impl Kind {
    fn router(&self) -> Option<Router> {
        if self.is_translated { Router::translating() } else { Router::routed() }
    }

    /// The one that begins, and the other.
    fn ends<'r>(&self, router: &'r Router) -> (&'r Namespace, &'r Namespace) {
        let ends = (&router.client, &router.server);
        if self.is_inwards { (ends.1, ends.0) } else { ends }
    }

    /// The packets that have arrived at both ends, those without SYN, FIN and RST; all have the addresses that they should.
    #[track_caller]
    fn arrived(&self, sniffers: &mut [sniffer::Sniffer; 2], from: SocketAddr) -> u64 {
        let [inside, outside] = sniffers;
        let (asking, answering) = if self.is_inwards { (outside, inside) } else { (inside, outside) };
        let is_whole = |packet: &&Packet| packet.protocol != TCP || packet.payload[13] & 7 == 0;
        let mut count = 0;
        for packet in answering.packets().iter().filter(is_whole) {
            let expected = (at(self.client, 0).ip(), at(self.listens, PORT));
            assert_eq!((packet.source.ip(), packet.destination), expected, "{}: {packet:?}", self.name);
            count += 1;
        }
        for packet in asking.packets().iter().filter(is_whole) {
            let expected = (at(self.sends_to, PORT), from);
            assert_eq!((packet.source, packet.destination), expected, "{}: {packet:?}", self.name);
            count += 1;
        }
        count
    }
}

#[test]
fn streams_are_fast_and_intact() {
    for kind in KINDS {
        let Some(router) = kind.router() else { return };
        let up = router.up();
        let mut sniffers = router.sniffers();
        let (from, to) = kind.ends(&router);
        let mut stream = Stream::to(from, to, at(kind.listens, PORT), at(kind.sends_to, PORT));
        router.wait_for_flows(1);
        let before = router.status();
        stream.carry(STREAM);
        let after = router.status();
        let arrived = kind.arrived(&mut sniffers, stream.client());
        assert!(arrived > 2 * STREAM as u64 / 1500, "{}: {arrived}", kind.name);
        let number = |status: &serde_json::Value| status["packets"]["fast"].as_u64().expect("a number");
        let fast = number(&after) - number(&before);
        assert!(fast > arrived / 2, "{}: {fast} of {arrived}: {after:#}", kind.name);
        let bytes = after["bytes"].as_u64().expect("a number");
        assert!(bytes > STREAM as u64, "{}: {after:#}", kind.name);
        let rows = router.run(&["flows", "--json"]).json();
        let row = &rows["flows"][0];
        assert_eq!(row["translated"].is_null(), !kind.is_translated, "{}: {rows:#}", kind.name);
        // Both directions of it are all that there is.
        wait_until("no packet is on its way", || {
            let before = router.fast();
            let rows = router.run(&["flows", "--json"]).json();
            let both: Option<u64> = (0..2).map(|side| rows["flows"][0]["packets"][side].as_u64()).sum();
            both == Some(before)
        });
        drop(stream);
        router.wait_for_flows(0);
        assert_eq!(router.removed("ended"), 1, "{}: {:#}", kind.name, router.status());
        router.assert_counters_add_up();
        up.interrupted();
    }
}

/// Senders on this machine leave checksums to the device, which a veth is not: the program completes them.
#[test]
fn checksums_that_were_left_to_a_device_are_complete() {
    for kind in KINDS {
        let Some(router) = kind.router() else { return };
        for namespace in [&router.client, &router.server] {
            namespace.run("ethtool", &["-K", router::FAR, "tx", "on"]).expect("checksums are left");
        }
        let up = router.up();
        let mut sniffers = router.sniffers();
        let (from, to) = kind.ends(&router);
        let mut stream = Stream::to(from, to, at(kind.listens, PORT), at(kind.sends_to, PORT));
        router.wait_for_flows(1);
        let before = router.fast();
        stream.carry(STREAM / 8);
        let arrived = kind.arrived(&mut sniffers, stream.client());
        let fast = router.fast() - before;
        assert!(fast > arrived / 2, "{}: {fast} of {arrived}: {:#}", kind.name, router.status());
        up.interrupted();
    }
}

#[test]
fn datagrams_are_fast_once_they_are_answered() {
    for kind in KINDS {
        let Some(router) = kind.router() else { return };
        let up = router.up();
        let mut sniffers = router.sniffers();
        let (from, to) = kind.ends(&router);
        let mut datagrams = Datagrams::between(from, to, at(kind.listens, PORT), at(kind.sends_to, PORT));
        // A first packet that nobody has answered is the kernel's.
        datagrams.ask(1);
        wait_until("it arrives", || datagrams.arrive());
        assert_eq!(router.flows(), 0, "{}", kind.name);
        datagrams.exchange();
        router.wait_for_flows(1);
        for _ in 0..20 {
            datagrams.exchange();
        }
        router.becomes_fast(&mut datagrams);
        let client = datagrams.client();
        assert!(kind.arrived(&mut sniffers, client) > 40, "{}", kind.name);
        router.assert_counters_add_up();
        up.interrupted();
    }
}

#[test]
fn connections_of_before_are_taken_over_and_given_back() {
    let Some(router) = Router::translating() else { return };
    let mut stream = Stream::to(&router.client, &router.server, at(SERVER, PORT), at(SERVER, PORT));
    stream.carry(1000);
    for _ in 0..2 {
        let up = router.up();
        router.wait_for_flows(1);
        stream.carry(STREAM / 2);
        assert!(router.fast() > 100, "{:#}", router.status());
        up.interrupted();
        // The kernel takes packets whose windows it has not seen.
        let before = router.forwarded_by_kernel();
        stream.carry(STREAM / 2);
        assert!(router.forwarded_by_kernel() > before);
    }
}
