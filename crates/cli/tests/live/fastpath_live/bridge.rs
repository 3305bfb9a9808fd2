//! A bridge as the LAN of a router, whose client moves from one of its ports to another.

use super::router::{CLIENT, FAR, LAN, PORT, Router, SERVER, WAN, ip, mac};
use super::sniffer::Sniffer;
use super::traffic::Datagrams;
use testkit::{Missing, require, wait_until};

const SECOND: &str = "lan1";
const SECOND_FAR: &str = "eth1";

/// Both lines to the client are ports of a bridge; the client is at the first.
fn bridged() -> Option<Router> {
    let mut router = Router::translating()?;
    router.line_to_client(SECOND, SECOND_FAR);
    router.ip(&["link", "add", "br0", "type", "bridge", "forward_delay", "0"]);
    router.ip(&["address", "flush", "dev", LAN]);
    for port in [LAN, SECOND] {
        router.ip(&["link", "set", port, "master", "br0"]);
    }
    router.ip(&["link", "set", "br0", "up"]);
    router.address(&router.router, "br0", &["10.1.0.1/24"]);
    Some(router)
}

/// The client's address goes from one interface to the other, and its MAC address with it.
fn move_client(router: &Router, from: &str, to: &str) {
    let text = |address: [u8; 6]| address.map(|byte| format!("{byte:02x}")).join(":");
    let [here, there] = [from, to].map(|name| text(mac(&router.client, name)));
    let client = &router.client;
    ip(client, &["address", "flush", "dev", from]);
    ip(client, &["link", "set", from, "address", &there]);
    ip(client, &["link", "set", to, "address", &here]);
    router.address(client, to, &[&format!("{CLIENT}/24")]);
    ip(client, &["route", "replace", "default", "via", "10.1.0.1", "dev", to]);
    ip(client, &["neigh", "replace", "10.1.0.1", "lladdr", &text(mac(&router.router, "br0")), "dev", to]);
}

#[test]
fn a_client_that_moves_within_a_bridge_is_fast_again() {
    let Some(router) = bridged() else { return };
    let up = router.up_on(&["br0", WAN], &[]);
    let mut datagrams = Datagrams::through(&router, SERVER, PORT);
    datagrams.exchange();
    router.wait_for_flows(1);
    for (from, to) in [(FAR, SECOND_FAR), (SECOND_FAR, FAR)] {
        router.becomes_fast(&mut datagrams);
        move_client(&router, from, to);
        router.becomes_fast(&mut datagrams);
        let [mut taken, mut left] = [to, from].map(|name| Sniffer::on(&router.client, name));
        router.becomes_fast(&mut datagrams);
        assert!(!taken.packets().is_empty());
        assert_eq!(left.packets().len(), 0);
    }
    router.assert_counters_add_up();
    up.interrupted();
}

/// A spanning tree has a port listen and learn for a while, and what arrives there meanwhile is dropped. An entry that somebody has given the
/// bridge stays.
#[test]
fn a_port_is_used_when_it_forwards() {
    const FORWARDING: &str = "3";
    let Some(router) = bridged() else { return };
    let client = mac(&router.client, FAR).map(|byte| format!("{byte:02x}")).join(":");
    router
        .router
        .run("bridge", &["fdb", "replace", &client, "dev", LAN, "master", "static"])
        .expect("an entry");
    router.ip(&["link", "set", "br0", "type", "bridge", "stp_state", "1", "forward_delay", "200"]);
    let up = router.up_on(&["br0", WAN], &[]);
    let mut datagrams = Datagrams::through(&router, SERVER, PORT);
    datagrams.exchange();
    router.becomes_fast(&mut datagrams);
    router.ip(&["link", "set", LAN, "down"]);
    router.wait_for_flows(0);
    router.ip(&["link", "set", LAN, "up"]);
    router.wait_for_flows(1);
    let state = router.router.run("cat", &[&format!("/sys/class/net/{LAN}/brport/state")]).expect("a state");
    assert_eq!(state.trim(), FORWARDING);
    router.becomes_fast(&mut datagrams);
    router.assert_counters_add_up();
    up.interrupted();
}

#[test]
fn a_bridge_that_filters_vlans_is_left_to_the_kernel() {
    let Some(router) = bridged() else { return };
    let filter = ["link", "set", "br0", "type", "bridge", "vlan_filtering", "1"];
    let set = router.router.run("ip", &filter).map_err(|error| Missing(error.to_string()));
    let Some(_) = require("bridge-vlan-filtering", set) else { return };
    let up = router.up_on(&["br0", WAN], &[]);
    let mut datagrams = Datagrams::through(&router, SERVER, PORT);
    datagrams.exchange();
    wait_until("it is refused", || router.status()["refusals"]["vlan-filtering"] == 1);
    assert_eq!((router.flows(), router.fast()), (0, 0));
    up.interrupted();
}
