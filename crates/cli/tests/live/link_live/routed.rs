//! Machines behind a link: packets that are forwarded or bridged, and what becomes of those that are too long.

use super::ends::{Ends, LINK, Side};
use super::talk;
use crate::machine::speak_ipv6;
use crate::process::Process;
use crate::run::Ended;
use testkit::netns::{Namespace, Veth};
use testkit::wait_until;

/// A machine behind the near end, on a network of its own or on the link's.
fn guest(ends: &Ends, addresses: &[&str]) -> Namespace {
    let guest = Namespace::new().expect("a namespace");
    speak_ipv6(&guest);
    let veth = Veth { peer: Some(&guest), ..Veth::pair("lan0", "eth0") };
    ends.namespace(Side::Near).veth(&veth).expect("a pair");
    for address in addresses {
        guest.run("ip", &["addr", "add", address, "dev", "eth0"]).expect("ip");
    }
    guest
}

/// The kernel looks at new addresses of IPv6 a moment after it was given them, and they cannot be used before.
fn await_addresses(namespaces: &[&Namespace]) {
    let tentative = |namespace: &&Namespace| {
        let addresses = namespace.run("ip", &["-6", "-o", "addr", "show", "scope", "global", "tentative"]);
        !addresses.expect("ip").is_empty()
    };
    wait_until("addresses that can be used", || !namespaces.iter().any(tentative));
}

/// Both ends know that the link carries 1400 bytes; the guest has 1500, and learns by ICMP or ICMPv6 what passes.
#[test]
fn a_guest_behind_a_router_finds_the_path_mtu() {
    // Guest, router, the network behind it, its address on the link, the far end.
    const FAMILIES: [[&str; 5]; 2] = [
        ["10.77.0.2", "10.77.0.1", "10.77.0.0/24", "10.9.0.1", "10.9.0.2"],
        ["fd77::2", "fd77::1", "fd77::/64", "fd00::1", "fd00::2"],
    ];
    for ends in Ends::of_each_data_path(1516) {
        for link in ["ad:100,q:200", "ad:100,q:200,pppoe:7@PEER"] {
            let guest = guest(&ends, &["10.77.0.2/24", "fd77::2/64"]);
            let (near, far) = (ends.namespace(Side::Near), ends.namespace(Side::Far));
            let up = [Side::Near, Side::Far].map(|side| ends.up(side, link, &["--mtu", "1400"]));
            near.inside(|| {
                for setting in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
                    std::fs::write(format!("/proc/sys/net/{setting}"), "1").expect("a setting");
                }
            });
            for [_, router, network, via, _] in FAMILIES {
                let length = network.split_once('/').expect("a length").1;
                ends.ip(Side::Near, &["addr", "add", &format!("{router}/{length}"), "dev", "lan0"]);
                ends.ip(Side::Far, &["route", "add", network, "via", via]);
                guest.run("ip", &["route", "add", "default", "via", router]).expect("ip");
            }
            await_addresses(&[&guest, near, far]);
            for ([own, .., peer], headers) in FAMILIES.into_iter().zip([28, 48]) {
                talk::echo_between(&guest, far, peer, &[0, 1000, 1400 - headers]);
                // Longer than the link: refused by ICMP once or more, until the guest knows.
                talk::sent_until_the_path_is_known(&guest, peer, 1500 - headers);
                let cached = guest.run("ip", &["route", "get", peer]).expect("ip");
                assert!(cached.contains("mtu 1400"), "{link}: {cached}");
                // Now in fragments, which the sender makes.
                talk::echo_between(&guest, far, peer, &[1401 - headers, 1500 - headers, 4000]);
                talk::stream_between(&guest, far, peer);
                talk::stream_between(far, &guest, own);
            }
            ends.ip(Side::Near, &["link", "del", "lan0"]);
            for up in up {
                up.interrupted().ends(0);
            }
        }
        ends.assert_nothing_left();
    }
}

#[test]
fn a_guest_on_a_bridge_is_on_the_link() {
    for ends in Ends::of_each_data_path(1516) {
        let guest = guest(&ends, &["10.9.0.3/24"]);
        let near = ends.up(Side::Near, "ad:100,q:200", &[]);
        let far = ends.up(Side::Far, "ad:100,q:200", &[]);
        ends.ip(Side::Near, &["addr", "flush", "dev", LINK]);
        ends.ip(Side::Near, &["link", "add", "br0", "type", "bridge", "forward_delay", "0"]);
        for interface in [LINK, "lan0"] {
            ends.ip(Side::Near, &["link", "set", interface, "master", "br0"]);
        }
        ends.ip(Side::Near, &["link", "set", "br0", "up"]);
        let far_side = ends.namespace(Side::Far);
        talk::echo_between(&guest, far_side, "10.9.0.2", &[0, 1000, 1472, 4000]);
        talk::stream_between(&guest, far_side, "10.9.0.2");
        talk::stream_between(far_side, &guest, "10.9.0.3");
        near.interrupted();
        far.interrupted();
    }
}

#[test]
fn forty_links_of_one_parent_work_side_by_side() {
    const LINKS: usize = 40;
    let Some(ends) = Ends::new(1516) else { return };
    let mut up = Vec::new();
    for number in 1..=LINKS {
        for (side, address) in [(Side::Near, 1), (Side::Far, 2)] {
            let link = ends.named(side, &format!("ad:{number},q:200,pppoe:7@PEER"));
            let (name, address) = (format!("sub{number}"), format!("10.{number}.0.{address}/24"));
            let arguments = ["--name", &name, "--encap", &link, "--address", &address, "--workers", "1"];
            up.push(Process::start(ends.plain_up(side).args(arguments)));
        }
    }
    up.iter().for_each(|one| one.hear("is up over", 1));
    for number in [1, 17, LINKS] {
        let address = format!("10.{number}.0.2");
        talk::echo(&ends, Side::Far, &address, &[0, 1000, 4000]);
        talk::stream(&ends, Side::Far, &address);
    }
    let (near, far) = (&up[2 * LINKS - 2], &up[2 * LINKS - 1]);
    for one in [near, far] {
        // What is its own, in addition to 4 MiB of ring in the kernel.
        let status = std::fs::read_to_string(format!("/proc/{}/status", one.process())).expect("its status");
        let anonymous = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("a line");
        let kibibytes: u64 = anonymous.trim().trim_end_matches(" kB").parse().expect("a number");
        assert!(kibibytes < 4096, "{kibibytes} KiB");
    }
}
