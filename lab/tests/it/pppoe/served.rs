//! Debian's clients at `rxlane pppoe serve`: `pppd` with the kernel's PPPoE, and with rp-pppoe's program.

use super::concentrator::{Concentrator, FIRST, GATEWAY};
use super::provider::{PASSWORD, USER};
use super::subscriber::{Mode, Subscriber};
use super::tagged::Tagged;
use super::{guest, ping, ping_from};
use rxlane_lab::Guest;
use serde_json::Value;

/// IPv6 network of which sessions get prefixes, and an address behind the concentrator.
const PREFIXES: &str = "2001:db8:100::/48";
const WORLD: &str = "2001:db8::1";

/// Tags of the line, lines that are served, method of authentication, client.
type Case = (&'static str, &'static str, &'static str, Mode);

/// On every kind of line, whose tags the kernel's VLAN devices put on, and by every method of authentication.
#[test]
fn clients_of_debian_are_served_on_every_line() {
    are_served(&[
        ("", "none", "pap", Mode::User),
        ("q:35", "35", "chap", Mode::Kernel),
        ("ad:100,q:200", "100.*", "ms-chap-v2", Mode::Kernel),
    ]);
}

#[test]
#[ignore = "make nightly"]
fn the_other_clients_of_debian_are_served_on_every_line() {
    are_served(&[
        ("", "any", "chap", Mode::Kernel),
        ("q:35", "any", "pap", Mode::User),
        ("ad:100,q:200", "any", "chap", Mode::User),
    ]);
}

fn are_served(cases: &[Case]) {
    let Some(guest) = guest() else { return };
    let Some(rxlane) = crate::steer::rxlane() else { return };
    guest.sh(&format!("ip -n isp addr replace {WORLD}/128 dev lo nodad")).expect("an address");
    for &(tags, lines, method, mode) in cases {
        let words = format!("--vlan {lines} --auth {method} --prefix {PREFIXES}");
        let isp = Concentrator::serve(&guest, &rxlane, &words);
        let line = Tagged::over(&guest, "home", "wan0", tags).expect("VLAN devices");
        let subscriber = Subscriber::connect(&guest, mode, line.device(), PASSWORD, &[]);
        subscriber.await_addresses();
        let session = isp.session(USER);
        println!("`{tags}` at {lines}, {method}, {mode:?}: {session}");
        let reported = if tags.is_empty() { "none" } else { tags };
        assert_eq!((session["phase"].as_str(), session["tags"].as_str()), (Some("open"), Some(reported)));
        assert_eq!(session["mtu"], 1492);
        carries_both_protocols(&guest, &session);
        // More than a packet takes becomes fragments.
        ping(&guest, 4000, GATEWAY);
        subscriber.hang_up();
        isp.await_no_session();
        isp.end();
    }
}

/// Packets as long as the session takes pass both ways: IPv4, link-local IPv6, and the session's prefix.
fn carries_both_protocols(guest: &Guest, session: &Value) {
    let mtu = session["mtu"].as_u64().expect("a number") as u32;
    assert_eq!(session["peer"], FIRST);
    let prefix = session["prefix"].as_str().expect("a prefix");
    let own = prefix.replace("::/64", "::2");
    let link_local = guest
        .sh(&format!(
            "ip -n home addr replace {own}/128 dev ppp0 nodad; ip -n home route replace {WORLD} dev ppp0; \
             ip -n home -6 -o addr show dev ppp0 scope link | sed 's/.*inet6 \\([^ /]*\\).*/\\1/'"
        ))
        .expect("addresses");
    let link_local = link_local.trim();
    ping(guest, mtu - 28, GATEWAY);
    ping_from(guest, "isp", mtu - 28, FIRST);
    ping(guest, mtu - 48, "fe80::1%ppp0");
    ping_from(guest, "isp", mtu - 48, &format!("{link_local}%pppoe0"));
    ping(guest, mtu - 48, &format!("-I {own} {WORLD}"));
    ping_from(guest, "isp", mtu - 48, &own);
}

/// RFC 4638 with the kernel's PPPoE.
#[test]
#[ignore = "make nightly"]
fn clients_of_debian_get_packets_of_1500_octets_on_every_line() {
    let Some(guest) = guest() else { return };
    let Some(rxlane) = crate::steer::rxlane() else { return };
    guest.sh(&format!("ip -n isp addr replace {WORLD}/128 dev lo nodad")).expect("an address");
    let isp = Concentrator::serve(&guest, &rxlane, &format!("--mtu 1500 --vlan any --prefix {PREFIXES}"));
    for tags in ["", "q:35", "ad:100,q:200"] {
        let line = Tagged::over(&guest, "home", "wan0", tags).expect("VLAN devices");
        let lengths = ["mtu", "1500", "mru", "1500"];
        let subscriber = Subscriber::connect(&guest, Mode::Kernel, line.device(), PASSWORD, &lengths);
        subscriber.await_addresses();
        let session = isp.session(USER);
        assert_eq!(session["mtu"], 1500, "{}", subscriber.log());
        carries_both_protocols(&guest, &session);
        subscriber.hang_up();
        isp.await_no_session();
    }
    isp.end();
}

/// Debian's `pppoe-discovery` on lines that are served, and on one that is not.
#[test]
#[ignore = "make nightly"]
fn pppoe_discovery_finds_the_lines_that_are_served() {
    let Some(guest) = guest() else { return };
    let Some(rxlane) = crate::steer::rxlane() else { return };
    for (tags, lines) in [("", "none"), ("q:35", "35"), ("ad:100,q:200", "100.*")] {
        let words = format!("--vlan {lines} --service internet --service voice");
        let isp = Concentrator::serve(&guest, &rxlane, &words);
        let line = Tagged::over(&guest, "home", "wan0", tags).expect("VLAN devices");
        let look = |device: &str| {
            let words =
                ["ip", "netns", "exec", "home", "pppoe-discovery", "-I", device, "-a", "1", "-t", "1"];
            guest.run(&words).expect("it runs")
        };
        let found = look(line.device());
        println!("`{tags}` at {lines}: {}", found.text());
        for text in ["Access-Concentrator: rxlane", "Service-Name: internet", "Service-Name: voice", "cookie"]
        {
            assert!(found.status == 0 && found.text().contains(text), "{}{}", found.text(), found.errors());
        }
        if !tags.is_empty() {
            let elsewhere = look("wan0");
            assert!(elsewhere.status != 0 && elsewhere.text().is_empty(), "{}", elsewhere.text());
        }
        isp.end();
    }
}

#[test]
#[ignore = "make nightly"]
fn clients_of_debian_learn_what_is_wrong_and_come_back() {
    let Some(guest) = guest() else { return };
    let Some(rxlane) = crate::steer::rxlane() else { return };
    let isp = Concentrator::serve(&guest, &rxlane, "--vlan any --echo-interval 1 --echo-failures 5");
    let wrong = Subscriber::connect(&guest, Mode::Kernel, "wan0", "a wrong one", &[]);
    wrong.await_said("authentication failed");
    wrong.hang_up();
    // One that dies is found out, and its address is free again.
    let dying = Subscriber::connect(&guest, Mode::Kernel, "wan0", PASSWORD, &[]);
    dying.await_addresses();
    dying.kill();
    isp.await_no_session();
    println!("{}", isp.said());
    isp.end();
}
