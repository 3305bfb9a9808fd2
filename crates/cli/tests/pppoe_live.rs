//! `rxlane pppoe connect` and `serve` against each other, over a veth pair between two network namespaces.

#[path = "pppoe_live/ends.rs"]
mod ends;
#[path = "pppoe_live/line.rs"]
mod line;
#[path = "pppoe_live/operator.rs"]
mod operator;
#[path = "pppoe_live/process.rs"]
mod process;
#[path = "pppoe_live/refused.rs"]
mod refused;
#[path = "pppoe_live/stream.rs"]
mod stream;

use line::{GATEWAY, Line, WAN, code, said};
use serde_json::Value;
use stream::Stream;

#[test]
fn a_session_carries_packets_over_every_line_and_by_every_authentication() {
    const CASES: [(&str, &str, &str, &str); 5] = [
        // Method, tags of the host, lines of the concentrator, tags as they are shown.
        ("chap", "", "none", "none"),
        ("pap", "35", "35", "35"),
        ("ms-chap-v2", "100.200", "100.*", "100.200"),
        ("pap", "", "any", "none"),
        ("chap", "100.200", "any", "100.200"),
    ];
    for (method, tags, lines, shown) in CASES {
        let Some(line) = Line::new() else { return };
        let serving = line.serve(&["--vlan", lines, "--auth", method, "--dns", "10.64.0.53"]);
        let tags: &[&str] = if tags.is_empty() { &[] } else { &["--vlan", tags] };
        let client = line.connect("alice", &[&["--default-route", "--auth", method], tags].concat());
        assert_status(&line, shown);
        let own6 = line.status("ppp0")["local6"].as_str().expect("an address").to_owned();
        for octets in [60, 1492] {
            line.ping(&line.near, GATEWAY, octets);
            line.ping(&line.far, "10.64.0.2", octets);
            line.ping(&line.near, "fe80::1%ppp0", octets);
            line.ping(&line.far, &format!("{own6}%pppoe0"), octets);
        }
        Stream::between(&line.near, &line.far, GATEWAY).carry(2 << 20);
        Stream::between(&line.far, &line.near, "10.64.0.2").carry(2 << 20);
        assert!(line.sessions()[0]["received_octets"].as_u64() > Some(4 << 20));
        assert!(line.status("ppp0")["counted"]["received"]["octets"].as_u64() > Some(4 << 20));
        assert_eq!(line.status("ppp0")["counted"]["drops"], serde_json::json!({}), "{method} {lines}");
        let (code, said) = client.interrupted();
        assert!(code == 0 && said.ends_with("ppp0 is disconnected.\n"), "{said}");
        line.wait_for_sessions(0);
        assert_eq!(serving.interrupted().0, 0);
    }
}

/// What both ends tell of the session, and what the kernel has of it.
fn assert_status(line: &Line, tags: &str) {
    let status = line.status("ppp0");
    let is = |name: &str, value: Value| assert_eq!(status[name], value, "{name}: {status:#}");
    is("schema", "rxlane.pppoe/1".into());
    is("phase", "open".into());
    is("interface", "ppp0".into());
    is("parent", WAN.into());
    is("vlans", tags.into());
    is("local", "10.64.0.2".into());
    is("peer", GATEWAY.into());
    is("peer6", "fe80::1".into());
    is("dns", serde_json::json!(["10.64.0.53"]));
    is("mtu", 1492.into());
    is("ac_name", "rxlane".into());
    is("user", "alice".into());
    is("last_error", Value::Null);
    let concentrator = line.concentrator();
    assert_eq!(concentrator["count"], 1, "{concentrator:#}");
    let session = &concentrator["sessions"][0];
    let is = |name: &str, value: Value| assert_eq!(session[name], value, "{name}: {session:#}");
    is("phase", "open".into());
    is("user", "alice".into());
    is("tags", tags.into());
    is("peer", "10.64.0.2".into());
    is("session_id", status["session_id"].clone());
    let addresses = line.ip(&["-o", "addr", "show", "dev", "ppp0"]);
    assert!(addresses.contains("10.64.0.2 peer 10.64.0.1/32"), "{addresses}");
    for family in ["-4", "-6"] {
        let routes = line.ip(&[family, "route", "show", "default"]);
        assert!(routes.starts_with("default dev ppp0"), "{routes}");
    }
    // Those who read it see the same.
    let shown = line.near(&["status", "ppp0"]);
    assert!(
        code(&shown) == 0 && said(&shown).contains("10.64.0.2, the other end 10.64.0.1"),
        "{}",
        said(&shown)
    );
    let listed = said(&line.far(&["sessions", WAN]));
    assert!(listed.contains("1 session") && listed.contains("alice"), "{listed}");
    let filtered = said(&line.far(&["sessions", WAN, "--filter", "nobody"]));
    assert!(!filtered.contains("alice"), "{filtered}");
}
