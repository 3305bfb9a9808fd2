//! A connection that conntrack forgets, and rules that forbid it from now on.

use super::router::{PORT, Router, SERVER, at};
use super::sniffer::UDP;
use super::traffic::wait_for_packets;
use kernel::netlink::netfilter::conntrack::{Direction, remove};
use std::net::SocketAddr;
use testkit::wait_until;

/// As `conntrack -D`; whether there was one.
pub fn forget(router: &Router, protocol: u8, source: SocketAddr, destination: SocketAddr) -> bool {
    let ports = Some((source.port(), destination.port()));
    let original = Direction { source: source.ip(), destination: destination.ip(), ports };
    router.router.inside(|| remove(&original, protocol, 0)).expect("removed")
}

#[test]
fn nothing_of_a_forgotten_connection_is_fast() {
    for router in [Router::routed, Router::translating].into_iter().map_while(|make| make()) {
        let up = router.up();
        let mut datagrams = router.fast_datagrams(SERVER);
        let [_, mut outside] = router.sniffers();
        assert!(forget(&router, UDP, datagrams.client(), at(SERVER, PORT)));
        router.wait_for_flows(0);
        assert_eq!(router.removed("ended"), 1);
        // What the client sends now begins a connection anew, which nobody has answered.
        let before = router.fast();
        datagrams.ask(50);
        wait_for_packets(&mut outside, 50, |packet| packet.destination == at(SERVER, PORT));
        assert_eq!(router.fast(), before);
        assert_eq!(router.flows(), 0);
        datagrams.exchange();
        router.wait_for_flows(1);
        router.becomes_fast(&mut datagrams);
        router.assert_counters_add_up();
        up.interrupted();
    }
}

#[test]
fn a_rule_that_drops_and_a_forgotten_connection_are_an_end() {
    let Some(router) = Router::translating() else { return };
    let up = router.up();
    let mut datagrams = router.fast_datagrams(SERVER);
    // By itself the rule has no effect on it: `check` says so.
    router.nft(
        "table inet forbidden {
        counter dropped { }
        chain forward { type filter hook forward priority -1; ip daddr 10.2.0.2 counter name dropped drop; }
    }",
    );
    router.becomes_fast(&mut datagrams);
    assert!(forget(&router, UDP, datagrams.client(), at(SERVER, PORT)));
    router.wait_for_flows(0);
    let [_, mut outside] = router.sniffers();
    let before = router.fast();
    datagrams.ask(50);
    wait_until("the rule has dropped them", || {
        let listed =
            router.router.run("nft", &["list", "counter", "inet", "forbidden", "dropped"]).expect("nft");
        listed.contains("packets 50 ")
    });
    assert_eq!(outside.packets().len(), 0);
    assert_eq!((router.fast(), router.flows()), (before, 0));
    assert!(!datagrams.arrive());
    up.interrupted();
}
