//! Machines behind a link: packets that are forwarded or bridged, and what becomes of those that are too long.

use super::ends::{Ends, LINK, Side};
use super::talk;
use crate::run::Ended;
use testkit::netns::{Namespace, Veth};

/// A machine behind the near end, on a network of its own or on the link's.
struct Guest {
    namespace: Namespace,
}

impl Guest {
    fn new(ends: &Ends) -> Guest {
        let namespace = Namespace::new().expect("a namespace");
        let veth = Veth { peer: Some(&namespace), ..Veth::pair("lan0", "eth0") };
        ends.namespace(Side::Near).veth(&veth).expect("a pair");
        Guest { namespace }
    }

    fn ip(&self, arguments: &[&str]) {
        self.namespace.run("ip", arguments).expect("ip");
    }
}

#[test]
fn a_guest_behind_a_router_finds_the_path_mtu() {
    for ends in Ends::of_each_data_path(1516) {
        for link in ["ad:100,q:200", "ad:100,q:200,pppoe:7@PEER"] {
            let guest = Guest::new(&ends);
            guest.ip(&["addr", "add", "10.77.0.2/24", "dev", "eth0"]);
            guest.ip(&["route", "add", "default", "via", "10.77.0.1"]);
            // Both ends know that the link carries 1400 bytes; the guest has 1500, and is told by ICMP.
            let near = ends.up(Side::Near, link, &["--mtu", "1400"]);
            let far = ends.up(Side::Far, link, &["--mtu", "1400"]);
            ends.ip(Side::Near, &["addr", "add", "10.77.0.1/24", "dev", "lan0"]);
            ends.ip(Side::Far, &["route", "add", "10.77.0.0/24", "via", "10.9.0.1"]);
            ends.namespace(Side::Near).inside(|| {
                std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").expect("a setting");
            });
            let far_side = ends.namespace(Side::Far);
            talk::echo_between(&guest.namespace, far_side, "10.9.0.2", &[0, 1000, 1372]);
            // Longer than the link: refused by ICMP once or more, until the guest knows.
            talk::sent_until_the_path_is_known(&guest.namespace, "10.9.0.2", 1472);
            let cached = guest.namespace.run("ip", &["route", "get", "10.9.0.2"]).expect("ip");
            assert!(cached.contains("mtu 1400"), "{link}: {cached}");
            talk::stream_between(&guest.namespace, far_side, "10.9.0.2");
            talk::stream_between(far_side, &guest.namespace, "10.77.0.2");
            ends.ip(Side::Near, &["link", "del", "lan0"]);
            for up in [near, far] {
                up.interrupted().ends(0);
            }
        }
    }
}

#[test]
fn a_guest_on_a_bridge_is_on_the_link() {
    for ends in Ends::of_each_data_path(1516) {
        let guest = Guest::new(&ends);
        guest.ip(&["addr", "add", "10.9.0.3/24", "dev", "eth0"]);
        let near = ends.up(Side::Near, "ad:100,q:200", &[]);
        let far = ends.up(Side::Far, "ad:100,q:200", &[]);
        ends.ip(Side::Near, &["addr", "flush", "dev", LINK]);
        ends.ip(Side::Near, &["link", "add", "br0", "type", "bridge", "forward_delay", "0"]);
        for interface in [LINK, "lan0"] {
            ends.ip(Side::Near, &["link", "set", interface, "master", "br0"]);
        }
        ends.ip(Side::Near, &["link", "set", "br0", "up"]);
        let far_side = ends.namespace(Side::Far);
        talk::echo_between(&guest.namespace, far_side, "10.9.0.2", &[0, 1000, 1472, 4000]);
        talk::stream_between(&guest.namespace, far_side, "10.9.0.2");
        talk::stream_between(far_side, &guest.namespace, "10.9.0.3");
        near.interrupted();
        far.interrupted();
    }
}

#[test]
fn a_hundred_links_of_one_parent_work_side_by_side() {
    const LINKS: usize = 100;
    let Some(ends) = Ends::new(1516) else { return };
    let mut up = Vec::new();
    for number in 1..=LINKS {
        for (side, address) in [(Side::Near, 1), (Side::Far, 2)] {
            let link = ends.named(side, &format!("ad:{number},q:200,pppoe:7@PEER"));
            let (name, address) = (format!("sub{number}"), format!("10.{number}.0.{address}/24"));
            let arguments = ["--name", &name, "--encap", &link, "--address", &address, "--workers", "1"];
            up.push(ends.spawn(ends.plain_up(side).args(arguments)));
        }
    }
    for one in &mut up {
        assert!(one.line().contains("is up over"));
    }
    for number in [1, 37, LINKS] {
        let address = format!("10.{number}.0.2");
        talk::echo(&ends, Side::Far, &address, &[0, 1000, 4000]);
        talk::stream(&ends, Side::Far, &address);
    }
    let (near, far) = (&up[2 * LINKS - 2], &up[2 * LINKS - 1]);
    for one in [near, far] {
        // What is its own, beside 4 MiB of ring in the kernel.
        let status = std::fs::read_to_string(format!("/proc/{}/status", one.process())).expect("its status");
        let anonymous = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("a line");
        let kibibytes: u64 = anonymous.trim().trim_end_matches(" kB").parse().expect("a number");
        assert!(kibibytes < 4096, "{kibibytes} KiB");
    }
}
