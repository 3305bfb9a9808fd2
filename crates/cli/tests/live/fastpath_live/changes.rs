//! Neighbours, routes, rules, addresses and links that change under a connection.

use super::router::{BEHIND, FAR, LAN, PORT, Router, SERVER, WAN, at, ip, mac, show};
use super::sniffer::{Sniffer, UDP};
use super::traffic::{Crafted, Datagrams, wait_for_packets};
use testkit::{wait_for, wait_until};

/// The second line to the server.
pub const SECOND: &str = "wan1";
pub const SECOND_FAR: &str = "eth1";

/// A server with an address behind two lines; the first one is in use. The client's network is routed back by the same one.
pub fn two_lines() -> Option<Router> {
    let mut router = Router::routed()?;
    router.line_to_server(SECOND, SECOND_FAR, 1500);
    router.address(&router.router, SECOND, &["10.3.0.1/24"]);
    router.address(&router.server, SECOND_FAR, &["10.3.0.2/24"]);
    router.address(&router.server, "lo", &[&format!("{BEHIND}/32")]);
    move_to(&router, SERVER, "10.2.0.1");
    Some(router)
}

fn move_to(router: &Router, server: &str, back: &str) {
    ip(&router.server, &["route", "replace", "10.1.0.0/24", "via", back]);
    router.ip(&["route", "replace", BEHIND, "via", server]);
}

/// What of a connection arrives by a line from now on, while packets of it are fast; none by the other.
pub fn takes_only(router: &Router, datagrams: &mut Datagrams, interface: &str, other: &str) {
    router.becomes_fast(datagrams);
    let [mut taken, mut left] = [interface, other].map(|name| Sniffer::on(&router.server, name));
    router.becomes_fast(datagrams);
    wait_for_packets(&mut taken, 1, |packet| packet.destination.ip().to_string() == BEHIND);
    assert_eq!(left.packets().len(), 0, "{other}");
}

/// Frames of the server's next MAC address, by ARP, until the router has it. (The kernel takes none within a second of the
/// last one: `locktime` of arp(7).)
fn announce(router: &Router, own: [u8; 6]) {
    let router_mac = mac(&router.router, WAN);
    let mut frame = [&router_mac[..], &own, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1], &own].concat();
    frame.extend([10, 2, 0, 2, 0, 0, 0, 0, 0, 0, 10, 2, 0, 1]);
    frame.resize(60, 0);
    let text = own.map(|byte| format!("{byte:02x}")).join(":");
    let mut line = Sniffer::on(&router.server, FAR);
    wait_until(format!("the router knows {text}"), || {
        line.send(&frame);
        router.ip(&["neigh", "show", SERVER]).contains(&text)
    });
}

#[test]
fn packets_follow_a_neighbour_to_its_next_mac_address() {
    const NEXT: [u8; 6] = [2, 0, 0, 0, 0, 0x77];
    let Some(router) = Router::translating() else { return };
    let up = router.up();
    let mut datagrams = router.fast_datagrams(SERVER);
    ip(&router.server, &["link", "set", FAR, "address", "02:00:00:00:00:77"]);
    announce(&router, NEXT);
    router.becomes_fast(&mut datagrams);
    let [_, mut outside] = router.sniffers();
    router.becomes_fast(&mut datagrams);
    let packets = outside.packets();
    assert!(!packets.is_empty() && packets.iter().all(|packet| packet.to_mac == NEXT), "{packets:02x?}");
    assert_eq!(router.status()["installs"], 1, "it was rewritten");
    up.interrupted();
}

#[test]
fn without_a_neighbour_packets_are_the_kernels() {
    let Some(router) = Router::translating() else { return };
    let up = router.up();
    let mut datagrams = router.fast_datagrams(SERVER);
    // One that answers no ARP any more.
    ip(&router.server, &["link", "set", FAR, "arp", "off"]);
    router.ip(&["neigh", "del", SERVER, "dev", WAN]);
    router.wait_for_flows(0);
    assert_eq!(router.removed("rerouted"), 1);
    assert_eq!(router.status()["waiting"], 1);
    let (fast, kernel) = (router.fast(), router.forwarded_by_kernel());
    wait_until("the kernel gets packets", || {
        datagrams.ask(1);
        router.forwarded_by_kernel() >= kernel + 10
    });
    assert_eq!(router.fast(), fast);
    ip(&router.server, &["link", "set", FAR, "arp", "on"]);
    router.becomes_fast(&mut datagrams);
    router.assert_counters_add_up();
    up.interrupted();
}

/// The same address comes at once, so that the daemon may see both changes together.
#[test]
fn a_neighbour_that_comes_back_is_used_again() {
    let Some(router) = Router::translating() else { return };
    let up = router.up();
    let mut datagrams = router.fast_datagrams(SERVER);
    let address = mac(&router.server, FAR).map(|byte| format!("{byte:02x}")).join(":");
    for _ in 0..5 {
        let both = format!("neigh del {SERVER} dev {WAN}\nneigh add {SERVER} lladdr {address} dev {WAN}\n");
        let path = format!("{}.batch", router.state());
        std::fs::write(&path, both).expect("a file");
        router.ip(&["-batch", &path]);
        router.becomes_fast(&mut datagrams);
    }
    up.interrupted();
}

#[test]
fn packets_leave_by_the_line_of_the_route_and_of_the_rule() {
    let Some(router) = two_lines() else { return };
    let up = router.up_on(&[LAN, WAN, SECOND], &[]);
    let mut datagrams = router.fast_datagrams(BEHIND);
    takes_only(&router, &mut datagrams, FAR, SECOND_FAR);
    move_to(&router, "10.3.0.2", "10.3.0.1");
    takes_only(&router, &mut datagrams, SECOND_FAR, FAR);
    // A rule for this client, whose answers come back by the same line.
    router.ip(&["route", "add", BEHIND, "via", SERVER, "table", "100"]);
    ip(&router.server, &["route", "replace", "10.1.0.0/24", "via", "10.2.0.1"]);
    router.ip(&["rule", "add", "from", "10.1.0.2", "lookup", "100"]);
    takes_only(&router, &mut datagrams, FAR, SECOND_FAR);
    ip(&router.server, &["route", "replace", "10.1.0.0/24", "via", "10.3.0.1"]);
    router.ip(&["rule", "del", "from", "10.1.0.2", "lookup", "100"]);
    takes_only(&router, &mut datagrams, SECOND_FAR, FAR);
    router.assert_counters_add_up();
    up.interrupted();
}

/// Answers that arrive by another port than that by which requests leave are the kernel's, and go on.
#[test]
fn a_route_to_an_interface_without_the_program_is_the_kernels() {
    let Some(router) = two_lines() else { return };
    let up = router.up();
    let mut datagrams = router.fast_datagrams(BEHIND);
    move_to(&router, "10.3.0.2", "10.3.0.1");
    router.wait_for_flows(0);
    router.exchanges_slowly(&mut datagrams);
    move_to(&router, SERVER, "10.2.0.1");
    router.becomes_fast(&mut datagrams);
    up.interrupted();
}

#[test]
fn a_blackhole_takes_its_packets() {
    let Some(router) = two_lines() else { return };
    let up = router.up_on(&[LAN, WAN, SECOND], &[]);
    let mut datagrams = router.fast_datagrams(BEHIND);
    router.ip(&["route", "replace", "blackhole", BEHIND]);
    router.wait_for_flows(0);
    let before = router.fast();
    datagrams.ask(20);
    assert!(!datagrams.arrive());
    assert_eq!(router.fast(), before);
    router.ip(&["route", "del", "blackhole", BEHIND]);
    move_to(&router, SERVER, "10.2.0.1");
    router.becomes_fast(&mut datagrams);
    up.interrupted();
}

#[test]
fn an_address_that_is_removed_takes_its_routes_with_it() {
    let Some(router) = two_lines() else { return };
    let up = router.up_on(&[LAN, WAN, SECOND], &[]);
    let mut datagrams = router.fast_datagrams(BEHIND);
    router.ip(&["address", "del", "10.2.0.1/24", "dev", WAN]);
    router.wait_for_flows(0);
    let before = router.fast();
    datagrams.ask(20);
    assert!(!datagrams.arrive());
    assert_eq!(router.fast(), before);
    router.address(&router.router, WAN, &["10.2.0.1/24"]);
    move_to(&router, SERVER, "10.2.0.1");
    router.becomes_fast(&mut datagrams);
    router.assert_counters_add_up();
    up.interrupted();
}

/// An address of a connection becomes this router's own: its packets end here.
#[test]
fn an_address_of_its_own_is_not_forwarded_to() {
    let Some(router) = two_lines() else { return };
    let up = router.up_on(&[LAN, WAN, SECOND], &[]);
    let mut datagrams = router.fast_datagrams(BEHIND);
    router.address(&router.router, "lo", &[&format!("{BEHIND}/32")]);
    router.wait_for_flows(0);
    let before = router.fast();
    datagrams.ask(20);
    assert!(!datagrams.arrive());
    assert_eq!(router.fast(), before);
    router.ip(&["address", "del", &format!("{BEHIND}/32"), "dev", "lo"]);
    datagrams.exchange();
    up.interrupted();
}

#[test]
fn a_link_that_was_down_is_fast_again() {
    let Some(router) = Router::translating() else { return };
    let up = router.up();
    let mut datagrams = router.fast_datagrams(SERVER);
    for (namespace, interface) in
        [(&router.router, WAN), (&router.server, FAR), (&router.router, LAN), (&router.client, FAR)]
    {
        ip(namespace, &["link", "set", interface, "down"]);
        router.wait_for_flows(0);
        ip(namespace, &["link", "set", interface, "up"]);
        // The kernel takes the routes by a gateway away with their interface.
        let default = [(&router.client, "10.1.0.1"), (&router.server, "10.2.0.1")];
        for (namespace, via) in default {
            ip(namespace, &["route", "replace", "default", "via", via]);
        }
        wait_for("a carrier", || (show(namespace, interface)["operstate"] == "UP").then_some(()));
        router.becomes_fast(&mut datagrams);
    }
    router.assert_counters_add_up();
    up.interrupted();
}

#[test]
fn a_smaller_mtu_holds_for_packets_that_are_fast() {
    let Some(router) = Router::translating() else { return };
    let up = router.up();
    let mut datagrams = router.fast_datagrams(SERVER);
    // A veth takes no longer packets than it sends; the server has the same.
    ip(&router.server, &["link", "set", FAR, "mtu", "600"]);
    router.ip(&["link", "set", WAN, "mtu", "600"]);
    // Past the client's kernel, which sends fragments as soon as the router's has sent one ICMP error.
    let long = Crafted::from_client(&router, UDP, datagrams.client(), at(SERVER, PORT));
    let long = Crafted { payload: vec![0x5a; 600], ..long }.frame();
    let mut line = Sniffer::on(&router.client, FAR);
    wait_until("they are too long", || {
        line.send(&long);
        router.slow("too-long") > 0
    });
    datagrams.exchange();
    router.ip(&["link", "set", WAN, "mtu", "1500"]);
    ip(&router.server, &["link", "set", FAR, "mtu", "1500"]);
    ip(&router.client, &["route", "flush", "cache"]);
    router.becomes_fast(&mut datagrams);
    up.interrupted();
}
