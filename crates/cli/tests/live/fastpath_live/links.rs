//! Links of rxlane as the line to the server: tags and PPPoE come off and on in the program.

use super::router::{FAR, LAN, Router, WAN, ip, mac};
use super::traffic::wait_for_packets;
use crate::process::Process;
use crate::run::{BINARY, Ended};
use testkit::netns::Namespace;
use testkit::require;

/// The server's address on the link.
const SERVER: &str = "10.9.0.2";
/// IP bytes of a datagram of these tests, behind the PPP protocol.
const PPP_LENGTH: [u8; 2] = [0x02, 0x76];

pub fn link(
    router: &Router,
    namespace: &Namespace,
    parent: &str,
    encapsulation: &str,
    address: &str,
) -> Process {
    let mut command = namespace.command(BINARY);
    command.args(["link", "up", "--parent", parent, "--name", "sub0", "--encap", encapsulation]);
    command.args(["--address", address, "--datapath", "simple", "--state", &router.state()]);
    let mut up = Process::start(&mut command);
    assert!(up.says_before_its_end("is up over"), "{}", up.said());
    up
}

#[test]
fn frames_of_a_link_are_made_and_read_by_the_program() {
    let tag = |tpid: [u8; 2], vid| [tpid[0], tpid[1], 0, vid];
    let pppoe = |session| [&[0x88, 0x64, 0x11, 0, 0, session][..], &PPP_LENGTH, &[0, 0x21]].concat();
    let (service, customer) = (tag([0x88, 0xa8], 100), tag([0x81, 0], 200));
    for (encapsulation, expected) in [
        ("q:200", [&customer[..], &[8, 0]].concat()),
        ("ad:100,q:200", [&service[..], &customer, &[8, 0]].concat()),
        ("pppoe:7@PEER", pppoe(7)),
        ("ad:100,q:200,pppoe:9@PEER", [&service[..], &customer, &pppoe(9)].concat()),
    ] {
        if require("tun", crate::machine::tun()).is_none() {
            return;
        }
        let Some(router) = Router::with_line(1516) else { return };
        let named = |namespace: &Namespace, interface| {
            let peer = mac(namespace, interface).map(|byte| format!("{byte:02x}")).join(":");
            encapsulation.replace("PEER", &peer)
        };
        let near = link(&router, &router.router, WAN, &named(&router.server, FAR), "10.9.0.1/24");
        let far = link(&router, &router.server, FAR, &named(&router.router, WAN), "10.9.0.2/24");
        let has_tags = encapsulation.contains("q:");
        if has_tags {
            router.refused(&["up", LAN, "sub0"]).is(&encapsulation, 1, "--disable-rxvlan");
        }
        let up = router.up_on(&[LAN, "sub0"], &["--disable-rxvlan"]);
        let mut datagrams = router.fast_datagrams(SERVER);
        let [mut inside, mut outside] = router.sniffers();
        router.becomes_fast(&mut datagrams);
        wait_for_packets(&mut inside, 1, |packet| packet.header == [8, 0]);
        let packets = outside.packets();
        assert!(!packets.is_empty());
        for packet in packets {
            assert_eq!(packet.header, expected, "{encapsulation}");
            assert_eq!(packet.source.ip().to_string(), "10.9.0.1", "{encapsulation}");
        }
        up.interrupted().ends(0);
        let features = router.router.run("ethtool", &["-k", WAN]).expect("features");
        assert!(features.contains("rx-vlan-offload: on"), "{encapsulation}");
        datagrams.exchange();
        near.interrupted();
        far.interrupted();
    }
}

/// Its setting is not what it was, and cannot be made so under the name that it had, or from here: that is said, and recorded until it is back.
#[test]
fn a_port_that_has_another_name_or_namespace_keeps_its_note() {
    if require("tun", crate::machine::tun()).is_none() {
        return;
    }
    for (change, sign) in [
        ("name", "is now called wan9; this restores it: ethtool -K wan9 rxvlan on"),
        ("netns", "is in another network namespace; this restores it there"),
    ] {
        let Some(router) = Router::with_line(1516) else { return };
        let away = Namespace::new().expect("a namespace");
        let to = if change == "name" { "wan9" } else { away.name() };
        let _line = link(&router, &router.router, WAN, "q:5", "10.9.0.1/24");
        let up = router.up_on(&[LAN, "sub0"], &["--disable-rxvlan"]);
        router.ip(&["link", "set", WAN, "down"]);
        router.ip(&["link", "set", WAN, change, to]);
        router.refused(&["down"]).is(&sign, 1, sign);
        up.ended().is(&sign, 1, sign);
        router.refused(&["down"]).is(&sign, 1, sign);
        match change {
            "name" => router.ip(&["link", "set", to, "name", WAN]),
            _ => ip(&away, &["link", "set", WAN, "netns", router.router.name()]),
        };
        router.refused(&["down"]).is(&sign, 1, "there is no fast path");
        let features = router.router.run("ethtool", &["-k", WAN]).expect("features");
        assert!(features.contains("rx-vlan-offload: on"), "{sign}");
    }
}
