//! What goes wrong on a line, with Debian's programs at one end: two concentrators, another MAC address, a clock that is set, a
//! line that is unplugged, no address left.

use super::concentrator::{Concentrator, FIRST, GATEWAY, NEIGHBOUR};
use super::provider::{Login, PASSWORD, Provider, USER};
use super::subscriber::{Mode, Subscriber};
use super::{Home, WIRE_MTU, guest, ping, ping_from};
use rxlane_lab::Guest;
use serde_json::Value;

/// Either end misses the other soon.
const ECHO: &str = "--vlan any --echo-interval 1 --echo-failures 5";
/// Nobody is missed for a while, on a machine that has other things to do either.
const PATIENT: &str = "--vlan any --echo-interval 1 --echo-failures 15";
/// A `pppd` that comes back, and takes a pause of some seconds for no end: a guest of a busy machine makes them of one.
const PERSISTENT: [&str; 9] =
    ["persist", "maxfail", "0", "holdoff", "1", "lcp-echo-interval", "1", "lcp-echo-failure", "8"];

fn persistent(guest: &Guest) -> Subscriber<'_> {
    Subscriber::connect(guest, Mode::Kernel, "wan0", PASSWORD, &PERSISTENT)
}

/// A second provider, in the namespace `isp2` with `line1`, and the bridge `br0` at the subscriber's end. They go with this.
struct Segment<'a>(&'a Guest);

impl<'a> Segment<'a> {
    fn with_two_providers(guest: &'a Guest) -> Segment<'a> {
        guest
            .sh(&format!(
                "modprobe bridge; ip netns add isp2; ip -n isp2 link set lo up; \
                 ip link add wan1 netns home type veth peer name line1 netns isp2; \
                 ip -n home link set wan1 mtu {WIRE_MTU} up; ip -n isp2 link set line1 mtu {WIRE_MTU} up; \
                 ip -n home link add br0 mtu {WIRE_MTU} type bridge; \
                 for port in wan0 wan1; do ip -n home link set $port master br0; done; ip -n home link set br0 up"
            ))
            .expect("a segment");
        Segment(guest)
    }
}

impl Drop for Segment<'_> {
    fn drop(&mut self) {
        let _ = self.0.sh("ip -n home link del br0; ip -n home link del wan1; ip netns del isp2");
    }
}

fn mac(guest: &Guest, namespace: &str, device: &str) -> String {
    let path = format!("/sys/class/net/{device}/address");
    let address = guest.sh(&format!("ip netns exec {namespace} cat {path}")).expect("an address");
    address.trim().to_owned()
}

#[test]
#[ignore = "make nightly"]
fn two_concentrators_on_one_segment_are_distinguished() {
    let Some(guest) = guest() else { return };
    let Some(rxlane) = crate::steer::rxlane() else { return };
    let _segment = Segment::with_two_providers(&guest);
    let provider = Provider::start(&guest, "", Login::Chap).expect("a provider");
    let isp = Concentrator::serve_on(&guest, &rxlane, ("isp2", "line1"), "--name other");
    let servers = [("concentrator", mac(&guest, "isp", "line0")), ("other", mac(&guest, "isp2", "line1"))];
    let words = ["pppoe", "discover", "br0", "--json", "--seconds", "1"];
    let output =
        guest.run(&[&["ip", "netns", "exec", "home", &rxlane][..], &words].concat()).expect("it runs");
    assert_eq!(output.status, 0, "{}{}", output.text(), output.errors());
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let mut found: Vec<_> = found["concentrators"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| (one["ac_name"].as_str().expect("a name"), one["mac"].as_str().expect("an address")))
        .collect();
    found.sort_unstable();
    assert_eq!(found, servers.each_ref().map(|(name, mac)| (*name, mac.as_str())));
    let as_user = ("br0", USER, PASSWORD);
    for (name, mac) in &servers {
        let home = Home::connect_on(&guest, &rxlane, as_user, &format!("--ac {name}"));
        home.await_said(": open");
        let status = home.status();
        assert_eq!((&status["ac_name"], &status["ac_mac"]), (&(*name).into(), &mac.as_str().into()));
        ping(&guest, 1464, GATEWAY);
        assert_eq!(home.end(), Some(0));
    }
    // Whoever names none takes one of them, and hears of the other.
    let home = Home::connect_on(&guest, &rxlane, as_user, "");
    home.await_said(": open");
    home.await_said("2 concentrators answered");
    println!("{}", home.said());
    assert!(servers.iter().all(|(name, _)| home.said().contains(name)), "{}", home.said());
    assert_eq!(home.end(), Some(0));
    let pinned = Subscriber::connect(&guest, Mode::Kernel, "br0", PASSWORD, &["rp_pppoe_ac", "other"]);
    pinned.await_addresses();
    assert_eq!(isp.session(USER)["phase"], "open");
    pinned.hang_up();
    isp.end();
    provider.stop().expect("stopped");
}

/// A concentrator whose adapter is exchanged: sessions belonged to the former address, and come back at the new one.
#[test]
#[ignore = "make nightly"]
fn a_concentrator_gets_another_mac_address() {
    let Some(guest) = guest() else { return };
    let Some(rxlane) = crate::steer::rxlane() else { return };
    let exchange = |mac: &str| {
        guest.sh(&format!("ip -n isp link set line0 address {mac}")).expect("another address");
    };
    let isp = Concentrator::serve(&guest, &rxlane, ECHO);
    let subscriber = persistent(&guest);
    subscriber.await_addresses();
    let former = isp.session(USER);
    exchange("02:00:5e:00:00:77");
    subscriber.await_times("local  IP address", 2);
    assert!(subscriber.log().contains("02:00:5E:00:00:77"), "{}", subscriber.log());
    let session = isp.session(USER);
    assert_ne!(session["id"], former["id"]);
    ping(&guest, 1464, GATEWAY);
    subscriber.hang_up();
    isp.end();
    let provider = Provider::start(&guest, "", Login::Chap).expect("a provider");
    let home = Home::connect(&guest, &rxlane, "--echo-interval 1 --echo-failures 5");
    home.await_said(": open");
    assert_eq!(home.status()["ac_mac"], "02:00:5e:00:00:77");
    // pppoe-server asks for its address once.
    provider.kill().expect("killed");
    exchange("02:00:5e:00:00:78");
    let provider = Provider::start(&guest, "", Login::Chap).expect("a provider");
    home.await_times(": open", 2);
    assert_eq!(home.status()["ac_mac"], "02:00:5e:00:00:78");
    ping(&guest, 1464, GATEWAY);
    assert_eq!(home.end(), Some(0));
    provider.stop().expect("stopped");
}

/// A day forward and two back: sessions go on, others come up, and nobody's time is wrong.
#[test]
#[ignore = "make nightly"]
fn the_clock_is_set_while_sessions_are_open() {
    let Some(guest) = guest() else { return };
    let Some(rxlane) = crate::steer::rxlane() else { return };
    let mut isp = Concentrator::serve(&guest, &rxlane, PATIENT);
    let patient = ["lcp-echo-interval", "1", "lcp-echo-failure", "15"];
    let subscriber = Subscriber::connect(&guest, Mode::Kernel, "wan0", PASSWORD, &patient);
    subscriber.await_addresses();
    let first = isp.session(USER);
    for change in ["+1 day", "-2 days", "+1 day"] {
        let before = isp.session(USER);
        guest.sh(&format!("date -s '{change}'")).expect("another day");
        // Another session, and some echoes of both.
        let who = ("wan0", NEIGHBOUR, PASSWORD);
        let home = Home::connect_on(&guest, &rxlane, who, "--ifname ppp9 --echo-interval 1");
        home.await_said(": open");
        let after = two_seconds_later(&before, || isp.session(USER));
        println!("{change}: {after}");
        assert_eq!((&after["id"], &after["session_id"]), (&first["id"], &first["session_id"]));
        assert_passed(2.0, &before, &after);
        assert!(uptime(&isp.session(NEIGHBOUR)) < 300.0, "{}", isp.session(NEIGHBOUR));
        drop(home);
        ping(&guest, 1464, GATEWAY);
    }
    let before = isp.session(USER);
    guest.sh("date -s '+1 day'").expect("another day");
    isp.hand_over(PATIENT);
    let after = isp.session(USER);
    assert_eq!(after["session_id"], first["session_id"]);
    assert_passed(0.0, &before, &after);
    assert!(uptime(&isp.status()) < 300.0, "{}", isp.status());
    ping(&guest, 1464, GATEWAY);
    subscriber.hang_up();
    isp.await_no_session();
    isp.end();
}

#[test]
#[ignore = "make nightly"]
fn the_clock_is_set_while_a_session_with_pppoe_server_is_open() {
    let Some(guest) = guest() else { return };
    let Some(rxlane) = crate::steer::rxlane() else { return };
    let provider = Provider::start(&guest, "", Login::Chap).expect("a provider");
    let home = Home::connect(&guest, &rxlane, "--echo-interval 1 --echo-failures 15");
    home.await_said(": open");
    for change in ["+1 day", "-2 days", "+1 day"] {
        let before = home.status();
        guest.sh(&format!("date -s '{change}'")).expect("another day");
        let after = two_seconds_later(&before, || home.status());
        println!("{change}: {after}");
        assert_eq!((&after["phase"], &after["sessions"]), (&"open".into(), &1.into()), "{after}");
        assert_passed(2.0, &before, &after);
        ping(&guest, 1464, GATEWAY);
    }
    assert_eq!(home.end(), Some(0));
    provider.stop().expect("stopped");
}

/// What a session says when it is two seconds older.
fn two_seconds_later(before: &Value, look: impl Fn() -> Value) -> Value {
    testkit::wait_for("two seconds of the session", || {
        Some(look()).filter(|now| uptime(now) >= uptime(before) + 2.0)
    })
}

/// Between two looks at an open session at least so many seconds passed, and no day.
fn assert_passed(least: f64, before: &Value, after: &Value) {
    let passed = uptime(after) - uptime(before);
    assert!((least..300.0).contains(&passed), "{passed} s: {before}, {after}");
}

fn uptime(status: &Value) -> f64 {
    status["uptime"].as_f64().unwrap_or_else(|| panic!("no time: {status}"))
}

/// Shorter than the echoes take it is nothing, longer it is another session.
#[test]
#[ignore = "make nightly"]
fn a_line_is_unplugged() {
    let Some(guest) = guest() else { return };
    let Some(rxlane) = crate::steer::rxlane() else { return };
    let plug = |state| guest.sh(&format!("ip -n isp link set line0 {state}")).expect("set");
    let isp = Concentrator::serve(&guest, &rxlane, "--vlan any --echo-interval 2 --echo-failures 5");
    let subscriber = persistent(&guest);
    subscriber.await_addresses();
    let former = isp.session(USER);
    guest
        .sh("ip -n isp link set line0 down; sleep 1; ip -n isp link set line0 up")
        .expect("unplugged for a second");
    ping(&guest, 1464, GATEWAY);
    ping_from(&guest, "isp", 1464, FIRST);
    assert_eq!(isp.session(USER)["id"], former["id"], "{}", subscriber.log());
    plug("down");
    subscriber.await_said("Serial link appears to be disconnected");
    isp.await_no_session();
    plug("up");
    subscriber.await_times("local  IP address", 2);
    assert_ne!(isp.session(USER)["id"], former["id"]);
    ping(&guest, 1464, GATEWAY);
    subscriber.hang_up();
    isp.await_no_session();
    isp.end();
}

#[test]
#[ignore = "make nightly"]
fn a_client_of_debian_waits_for_an_address() {
    let Some(guest) = guest() else { return };
    let Some(rxlane) = crate::steer::rxlane() else { return };
    for method in ["chap", "pap", "ms-chap-v2"] {
        let words = format!("{ECHO} --auth {method} --pool {FIRST}-{FIRST}");
        let isp = Concentrator::serve(&guest, &rxlane, &words);
        let home = Home::connect_on(&guest, &rxlane, ("wan0", NEIGHBOUR, PASSWORD), "--ifname ppp9");
        home.await_said(": open");
        let subscriber = persistent(&guest);
        subscriber.await_said("all addresses are in use");
        isp.await_said("a larger pool takes more subscribers");
        assert_eq!(isp.session(NEIGHBOUR)["peer"], FIRST);
        drop(home);
        subscriber.await_addresses();
        println!("{method}: {}", subscriber.log());
        assert_eq!(isp.session(USER)["peer"], FIRST);
        ping(&guest, 1464, GATEWAY);
        subscriber.hang_up();
        isp.await_no_session();
        isp.end();
    }
}
