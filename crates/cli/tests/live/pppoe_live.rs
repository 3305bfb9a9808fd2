//! `rxlane pppoe connect` and `serve` against each other, over a veth pair between two network namespaces.

mod below;
mod early;
mod ends;
mod killed;
pub mod line;
mod looked_for;
mod notices;
mod operator;
mod orphaned;
mod prefixes;
mod radius;
mod refused;
mod secrets;
mod takeover;
mod xdp;

use crate::process::Process;
use crate::run::{Ended, Report};
use crate::stream::Stream;
use line::{GATEWAY, Line, WAN};
use serde_json::{Value, json};
use testkit::netns::Namespace;

#[test]
fn a_session_carries_packets_over_every_line_and_by_every_authentication() {
    const CASES: [(&str, &str, &str, &str); 5] = [
        // Method, tags of the host, lines of the concentrator, tags as they are displayed.
        ("chap", "", "none", "none"),
        ("pap", "35", "35", "q:35"),
        ("ms-chap-v2", "100.200", "100.*", "ad:100,q:200"),
        ("pap", "", "any", "none"),
        ("chap", "100.200", "any", "ad:100,q:200"),
    ];
    for (method, tags, lines, displayed) in CASES {
        let Some(line) = Line::new() else { return };
        let serving = line.serve(&["--vlan", lines, "--auth", method, "--dns", "10.64.0.53"]);
        let tags: &[&str] = if tags.is_empty() { &[] } else { &["--vlan", tags] };
        let client = line.connect("alice", &[&["--default-route", "--auth", method], tags].concat());
        assert_status(&line, displayed);
        let own6 = line.status("ppp0")["local6"].as_str().expect("an address").to_owned();
        for bytes in [60, 1492] {
            line.ping(&line.near, GATEWAY, bytes);
            line.ping(&line.far, "10.64.0.2", bytes);
            line.ping(&line.near, "fe80::1%ppp0", bytes);
            line.ping(&line.far, &format!("{own6}%pppoe0"), bytes);
        }
        Stream::between(&line.near, &line.far, GATEWAY).carry(2 << 20);
        Stream::between(&line.far, &line.near, "10.64.0.2").carry(2 << 20);
        assert!(line.sessions()[0]["received_octets"].as_u64() > Some(4 << 20));
        assert!(line.status("ppp0")["counted"]["received"]["octets"].as_u64() > Some(4 << 20));
        assert_eq!(line.status("ppp0")["counted"]["drops"], json!({}), "{method} {lines}");
        let said = client.interrupted().ends(0).text();
        assert!(said.ends_with("ppp0 is disconnected.\n"), "{said}");
        line.wait_for_sessions(0);
        serving.interrupted().ends(0);
    }
}

/// What both ends report of the session, and what the kernel has of it.
fn assert_status(line: &Line, tags: &str) {
    let status = line.status("ppp0");
    status.has(json!({
        "schema": "rxlane.pppoe/1", "phase": "open", "interface": "ppp0", "parent": WAN, "vlans": tags,
        "local": "10.64.0.2", "peer": GATEWAY, "peer6": "fe80::1", "dns": ["10.64.0.53"], "mtu": 1492,
        "ac_name": "rxlane", "user": "alice", "last_error": null,
    }));
    let session = json!({
        "phase": "open", "user": "alice", "tags": tags, "peer": "10.64.0.2", "session_id": status["session_id"],
    });
    line.concentrator().has(json!({"count": 1, "sessions": [session]}));
    let addresses = line.ip(&["-o", "addr", "show", "dev", "ppp0"]);
    assert!(addresses.contains("10.64.0.2 peer 10.64.0.1/32"), "{addresses}");
    for family in ["-4", "-6"] {
        let routes = line.ip(&[family, "route", "show", "default"]);
        assert!(routes.starts_with("default dev ppp0"), "{routes}");
        // The least that there is: the kernel takes 0 for 1024 in IPv6.
        assert_eq!(routes.contains(" metric 1 "), family == "-6", "{routes}");
    }
    // Those who read it see the same.
    line.near(&["status", "ppp0"]).ends(0).says("10.64.0.2, the other end 10.64.0.1");
    line.far(&["sessions", WAN]).says("1 session").says("alice");
    let filtered = |text: &str| line.far(&["sessions", WAN, "--filter", text]).text();
    assert_eq!(filtered("nobody"), "wan0: 0 of 1 session\n");
    let vlans = if tags == "ad:100,q:200" { "100.200" } else { tags };
    let filtered = filtered(vlans);
    assert!(filtered.starts_with("wan0: 1 of 1 session\n") && filtered.contains("alice"), "{filtered}");
}

#[test]
fn packets_are_as_long_as_both_ends_and_the_line_allow() {
    let Some(line) = Line::new() else { return };
    let message = "IPv6 takes packets of 1280 bytes or more, and these are 1279 at most (`--mtu`)";
    line.serve_in_vain(&["--mtu", "1279"]).ends(2).says(message).says("`--ipv6 false`");
    let _serving = line.serve(&["--mtu", "1500"]);
    let client = line.connect("alice", &["--mtu", "1500"]);
    assert_eq!(line.status("ppp0")["mtu"], 1500);
    for (from, address) in [(&line.near, GATEWAY), (&line.far, "10.64.0.2")] {
        line.ping(from, address, 1500);
    }
    client.interrupted().ends(0);
    let client = line.connect("alice", &["--mtu", "1400"]);
    assert_eq!(line.status("ppp0")["mtu"], 1400);
    line.ping(&line.far, "10.64.0.2", 1400);
    client.interrupted().ends(0);
    line.connect_in_vain("alice", &["--mtu", "1501"]).says("ip link set wan0 mtu 1509");
    // Too short for IPv6.
    let client = line.connect("alice", &["--mtu", "1279"]);
    client.hear(message, 1);
    line.ping(&line.near, GATEWAY, 1279);
}

#[test]
fn what_the_lines_have_no_room_for_is_reported() {
    let Some(line) = Line::new() else { return };
    let mtu = |namespace: &Namespace, mtu| {
        namespace.run("ip", &["link", "set", WAN, "mtu", mtu]).expect("another MTU");
    };
    // Two tags take 4 bytes each, PPPoE takes 8.
    mtu(&line.far, "1507");
    line.serve_in_vain(&["--vlan", "100.*"]).ends(1).says("ip link set wan0 mtu 1508");
    mtu(&line.far, "1508");
    let serving = line.serve(&["--vlan", "100.*"]);
    // Nobody requested an MTU: what there is room for is taken.
    mtu(&line.near, "1500");
    let client = line.connect("alice", &["--vlan", "100.200"]);
    client.hear("wan0 has an MTU of 1500", 1);
    assert_eq!(line.status("ppp0")["mtu"], 1484);
    line.ping(&line.near, GATEWAY, 1484);
    line.ping(&line.far, "10.64.0.2", 1484);
    mtu(&line.near, "1499");
    client.hear("the MTU of wan0 is 1499 now; the longest packets need 1500", 1);
    mtu(&line.far, "1500");
    serving.hear("the MTU of wan0 is 1500 now; the longest packets need 1508", 1);
}

/// The client knows nothing of the room at the other end.
#[test]
fn each_line_has_packets_as_long_as_its_tags_leave_room_for() {
    let Some(line) = Line::new() else { return };
    line.near.run("ip", &["link", "set", WAN, "mtu", "1516"]).expect("another MTU");
    for (parent, requested, tags, mtu) in [
        ("1500", "1492", "100.200", 1484),
        ("1500", "1492", "35", 1492),
        ("1508", "1500", "100.200", 1492),
        ("1508", "1500", "", 1500),
        ("1512", "1500", "100.200", 1496),
    ] {
        line.far.run("ip", &["link", "set", WAN, "mtu", parent]).expect("another MTU");
        let serving = line.serve(&["--vlan", "any", "--mtu", requested]);
        serving.hear("packets of subscribers behind two tags are", 1);
        let tags: &[&str] = if tags.is_empty() { &[] } else { &["--vlan", tags] };
        let client = line.connect("alice", &[&["--mtu", "1500"], tags].concat());
        let (status, session) = (line.status("ppp0"), line.sessions().remove(0));
        assert_eq!((&status["mtu"], &session["mtu"]), (&mtu.into(), &mtu.into()), "{parent} {tags:?}");
        line.ping(&line.near, GATEWAY, mtu);
        line.ping(&line.far, "10.64.0.2", mtu);
        Stream::between(&line.far, &line.near, "10.64.0.2").carry(1 << 20);
        assert_eq!(line.status("ppp0")["counted"]["drops"], json!({}), "{parent} {tags:?}");
        client.interrupted().ends(0);
        serving.interrupted().ends(0);
    }
}

#[test]
fn one_of_both_protocols_is_enough() {
    let Some(line) = Line::new() else { return };
    let serving = line.serve(&[]);
    let client = line.connect("alice", &["--ipv6", "false"]);
    assert_eq!(line.status("ppp0")["local6"], Value::Null);
    line.ping(&line.near, GATEWAY, 1492);
    client.interrupted().ends(0);
    let client = line.connect("alice", &["--ipv4", "false"]);
    assert_eq!(line.status("ppp0")["local"], Value::Null);
    line.ping(&line.near, "fe80::1%ppp0", 1492);
    client.interrupted().ends(0);
    // A machine without IPv6 has IPv4.
    line.near.run("sysctl", &["-qw", "net.ipv6.conf.default.disable_ipv6=1"]).expect("a setting");
    let client = line.connect("alice", &["--default-route"]);
    client.hear("no IPv6: ppp0 does not take the address", 1);
    client.hear(": open", 1);
    let status = line.status("ppp0");
    assert_eq!((&status["local6"], &status["peer6"]), (&Value::Null, &Value::Null), "{status:#}");
    assert!(!client.said().contains("the other end fe80::"), "{}", client.said());
    line.ping(&line.near, GATEWAY, 1492);
    client.interrupted().ends(0);
    let refused = line.start_to_connect("alice", &["--ipv4", "false"]).ended();
    assert_ne!(refused.says("IPv6 is off here").code(), 0);
    // Nor has one that serves.
    serving.interrupted().ends(0);
    line.far.run("sysctl", &["-qw", "net.ipv6.conf.default.disable_ipv6=1"]).expect("a setting");
    line.serve_in_vain(&[]).ends(3).says("IPv6 is off here").says("`--ipv6 false`");
    let _serving = line.serve(&["--ipv6", "false"]);
    let _client = line.connect("alice", &[]);
    line.ping(&line.near, GATEWAY, 1492);
}

#[test]
fn a_file_has_the_options() {
    let Some(line) = Line::new() else { return };
    let _serving = line.serve(&["--vlan", "35"]);
    let text = "interface = 'wan0'\nuser = 'alice'\npassword-file = 'alice'\nvlan = '35'\nifname = 'dsl0'\n";
    line.write("wan.toml", text);
    let file = line.text("wan.toml");
    let client =
        Process::start(&mut line.command(&line.near, &["connect", "--config", &file, "--mtu", "1480"]));
    client.hear("dsl0 over wan0: open", 1);
    assert_eq!(line.status("dsl0")["mtu"], 1480);
    line.ping(&line.near, GATEWAY, 1480);
    client.interrupted().ends(0);
}
