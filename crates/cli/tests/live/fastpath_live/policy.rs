//! What decides about a packet's way besides its addresses, ports and interface: TOS, marks, settings, nexthop objects.

use super::changes::{SECOND, SECOND_FAR, takes_only, two_lines};
use super::router::{BEHIND, FAR, LAN, PORT, Router, SERVER, SERVER_IPV6, WAN, ip};
use super::traffic::Datagrams;
use std::fs;
use testkit::wait_until;

/// How many connections were left out for a reason.
fn refused(router: &Router, reason: &str) -> u64 {
    router.status()["refusals"][reason].as_u64().unwrap_or(0)
}

fn set(router: &Router, setting: &str, value: &str) {
    router.router.inside(|| fs::write(format!("/proc/sys/net/{setting}"), value).expect("a setting"));
}

/// The server answers by its second line.
fn answer_by_second(router: &Router) {
    ip(&router.server, &["route", "replace", "10.1.0.0/24", "via", "10.3.0.1"]);
}

/// The client's packets get a mark, and their connection what is said.
fn mark_packets(router: &Router, connection: &str) {
    let hook = "type filter hook prerouting priority mangle";
    let rules = format!("iifname lan0 meta mark set 5\niifname lan0 {connection}");
    let table = format!("table inet marks {{\nchain pre {{\n{hook}\n{rules}\n}}\n}}");
    router.nft(&format!("table inet marks {{ }}\ndelete table inet marks\n{table}"));
}

#[test]
fn where_the_tos_decides_packets_are_the_kernels() {
    let Some(router) = two_lines() else { return };
    router.ip(&["route", "add", BEHIND, "via", "10.3.0.2", "table", "100"]);
    let up = router.up_on(&[LAN, WAN, SECOND], &[]);
    let mut datagrams = router.fast_datagrams(BEHIND);
    for of in [["rule", "tos", "0x10", "lookup", "100"], ["route", BEHIND, "tos", "0x10", "via 10.3.0.2"]] {
        let [what, rest @ ..] = of;
        let rest: Vec<&str> = rest.iter().flat_map(|words| words.split(' ')).collect();
        let before = refused(&router, "tos");
        router.ip(&[&[what, "add"], &rest[..]].concat());
        wait_until(format!("the {what} counts"), || refused(&router, "tos") > before);
        router.wait_for_flows(0);
        router.exchanges_slowly(&mut datagrams);
        router.ip(&[&[what, "del"], &rest[..]].concat());
        takes_only(&router, &mut datagrams, FAR, SECOND_FAR);
    }
    router.assert_counters_add_up();
    up.interrupted();
}

#[test]
fn a_mark_is_followed_where_the_connection_shows_it() {
    let Some(router) = two_lines() else { return };
    router.ip(&["route", "add", BEHIND, "via", "10.3.0.2", "table", "100"]);
    router.ip(&["rule", "add", "fwmark", "5", "lookup", "100"]);
    answer_by_second(&router);
    let up = router.up_on(&[LAN, WAN, SECOND], &[]);
    // One without a mark, and one of something else than routing.
    for (number, connection) in ["ct mark set 0", "ct mark set 7"].into_iter().enumerate() {
        mark_packets(&router, connection);
        let before = refused(&router, "mark");
        let mut datagrams = Datagrams::through(&router, BEHIND, PORT + number as u16);
        datagrams.exchange();
        wait_until(format!("{connection}: it is left out"), || refused(&router, "mark") > before);
        router.exchanges_slowly(&mut datagrams);
    }
    mark_packets(&router, "ct mark set meta mark");
    let mut datagrams = router.fast_datagrams(BEHIND);
    takes_only(&router, &mut datagrams, SECOND_FAR, FAR);
    up.interrupted();
}

/// The address of a masquerade is that of the line that the kernel took.
#[test]
fn a_translated_address_shows_the_line() {
    let Some(router) = two_lines() else { return };
    router.nft("table ip nat {\nchain post {\ntype nat hook postrouting priority srcnat\nip saddr 10.1.0.0/24 masquerade\n}\n}");
    router.ip(&["route", "add", BEHIND, "via", "10.3.0.2", "table", "100"]);
    router.ip(&["rule", "add", "fwmark", "5", "lookup", "100"]);
    let up = router.up_on(&[LAN, WAN, SECOND], &[]);
    let mut datagrams = router.fast_datagrams(BEHIND);
    takes_only(&router, &mut datagrams, FAR, SECOND_FAR);
    // Now packets have a mark that connections do not show.
    mark_packets(&router, "ct mark set 0");
    let mut other = Datagrams::through(&router, BEHIND, PORT + 1);
    other.exchange();
    wait_until("it is left out", || refused(&router, "mark") == 1);
    router.exchanges_slowly(&mut other);
    up.interrupted();
}

#[test]
fn what_is_forwarded_no_more_is_not_fast() {
    for (server, setting) in
        [(SERVER, "ipv4/conf/lan0/forwarding"), (SERVER_IPV6, "ipv6/conf/all/forwarding")]
    {
        let Some(router) = Router::translating() else { return };
        let up = router.up();
        let mut datagrams = router.fast_datagrams(server);
        set(&router, setting, "0");
        router.wait_for_flows(0);
        let before = router.fast();
        datagrams.ask(20);
        assert!(!datagrams.arrive(), "{setting}");
        assert_eq!(router.fast(), before, "{setting}");
        set(&router, setting, "1");
        router.becomes_fast(&mut datagrams);
        up.interrupted();
    }
}

#[test]
fn packets_follow_a_nexthop_object() {
    let Some(router) = two_lines() else { return };
    // Routes that name one are not reported when it changes.
    set(&router, "ipv4/nexthop_compat_mode", "0");
    router.ip(&["nexthop", "add", "id", "7", "via", SERVER, "dev", WAN]);
    router.ip(&["route", "replace", BEHIND, "nhid", "7"]);
    let up = router.up_on(&[LAN, WAN, SECOND], &[]);
    let mut datagrams = router.fast_datagrams(BEHIND);
    takes_only(&router, &mut datagrams, FAR, SECOND_FAR);
    answer_by_second(&router);
    router.ip(&["nexthop", "replace", "id", "7", "via", "10.3.0.2", "dev", SECOND]);
    takes_only(&router, &mut datagrams, SECOND_FAR, FAR);
    up.interrupted();
}
