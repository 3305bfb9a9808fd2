//! The path MTU of IPv6: nobody on the way fragments, so that a machine behind a link learns from ICMPv6 alone what passes.

use super::ends::{Ends, Side};
use super::talk;
use crate::run::Ended;
use testkit::netns::{Namespace, Veth};
use testkit::wait_until;

/// The network behind the near end, and the machine in it.
const ROUTER: &str = "fd77::1";
const GUEST: &str = "fd77::2";
const FAR: &str = "fd00::2";

fn set(namespace: &Namespace, values: &[(&str, &str)]) {
    namespace.inside(|| {
        for (setting, value) in values {
            std::fs::write(format!("/proc/sys/net/ipv6/conf/{setting}"), value).expect("a setting");
        }
    });
}

/// The kernel looks at new addresses a moment after it was given them, and they cannot be used before.
fn await_addresses(namespaces: &[&Namespace]) {
    let tentative = |namespace: &&&Namespace| {
        let shown = namespace.run("ip", &["-6", "-o", "addr", "show", "scope", "global", "tentative"]);
        !shown.expect("ip").is_empty()
    };
    wait_until("addresses that can be used", || !namespaces.iter().any(|namespace| tentative(&namespace)));
}

/// A machine with an MTU of 1500 behind the near end, which forwards.
fn guest_behind_a_router(ends: &Ends) -> Namespace {
    let guest = Namespace::new().expect("a namespace");
    set(&guest, &[("all/disable_ipv6", "0"), ("default/disable_ipv6", "0"), ("default/accept_dad", "0")]);
    let near = ends.namespace(Side::Near);
    near.veth(&Veth { peer: Some(&guest), ..Veth::pair("lan0", "eth0") }).expect("a pair");
    set(near, &[("all/forwarding", "1")]);
    ends.ip(Side::Near, &["addr", "add", &format!("{ROUTER}/64"), "dev", "lan0"]);
    for words in [
        &["addr", "add", &format!("{GUEST}/64"), "dev", "eth0"][..],
        &["-6", "route", "add", "default", "via", ROUTER],
    ] {
        guest.run("ip", words).expect("ip");
    }
    guest
}

#[test]
fn a_guest_behind_a_router_is_told_by_icmpv6_what_the_link_carries() {
    for ends in Ends::of_each_data_path(1516) {
        for link in ["ad:100,q:200", "ad:100,q:200,pppoe:7@PEER"] {
            let guest = guest_behind_a_router(&ends);
            let near = ends.up(Side::Near, link, &["--mtu", "1400"]);
            let far = ends.up(Side::Far, link, &["--mtu", "1400"]);
            ends.ip(Side::Far, &["-6", "route", "add", "fd77::/64", "via", "fd00::1"]);
            let far_side = ends.namespace(Side::Far);
            await_addresses(&[&guest, ends.namespace(Side::Near), far_side]);
            talk::echo_between(&guest, far_side, FAR, &[0, 1000, 1352]);
            talk::sent_until_the_path_is_known(&guest, FAR, 1452);
            let cached = guest.run("ip", &["route", "get", FAR]).expect("ip");
            assert!(cached.contains("mtu 1400"), "{link}: {cached}");
            // Now in fragments, which the sender makes.
            talk::echo_between(&guest, far_side, FAR, &[1353, 1452, 4000]);
            talk::stream_between(&guest, far_side, FAR);
            talk::stream_between(far_side, &guest, GUEST);
            ends.ip(Side::Near, &["link", "del", "lan0"]);
            for up in [near, far] {
                up.interrupted().ends(0);
            }
        }
        ends.assert_nothing_left();
    }
}
