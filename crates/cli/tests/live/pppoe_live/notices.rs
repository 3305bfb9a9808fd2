//! What `status` and `sessions` say of what is not as it should be.

use super::line::{Line, WAN};
use crate::run::{Ended, Report};
use serde_json::{Value, json};
use testkit::netns::Veth;
use testkit::wait_until;

#[test]
fn a_line_without_carrier_is_reported_by_both_ends() {
    let Some(line) = Line::new() else { return };
    let _serving = line.serve(&[]);
    assert_eq!(line.concentrator()["parent_works"], true);
    let set = |state| line.far.run("ip", &["link", "set", WAN, state]).expect("another state");
    set("down");
    let client = line.start_to_connect("alice", &[]);
    client.hear("wan0 is down, or its cable has no carrier: the first try is when it is up", 1);
    let status = line.near(&["status", "ppp0"]);
    assert!(status.text().starts_with("ppp0 over wan0: waiting for a carrier on wan0"), "{}", status.text());
    status.ends(1).says("no carrier; the next try is when it is up");
    assert_eq!(line.status("ppp0")["parent_works"], false);
    // Nobody is looked for yet.
    assert!(!client.said().contains("looking for a concentrator"), "{}", client.said());
    for command in [&["sessions", WAN][..], &["status"]] {
        line.far(command).says("wan0 is down, or its cable has no carrier");
    }
    assert_eq!(line.concentrator()["parent_works"], false);
    set("up");
    client.hear("looking for a concentrator on wan0 (47 s at most) …\n", 1);
    client.hear(": open", 1);
    line.near(&["status", "ppp0"]).omits("carrier").omits("last error");
    // A line that was down carries the session again.
    set("down");
    client.hear("The line below went down", 1);
    set("up");
    line.wait_until_it_answers();
    assert_eq!(line.status("ppp0")["phase"], "open");
}

#[test]
fn an_error_of_before_has_its_age() {
    let Some(line) = Line::new() else { return };
    let _serving = line.serve(&[]);
    let client = line.connect("alice", &[]);
    // Without the option no default route is missed.
    line.status("ppp0").has(json!({"last_error_ago": null, "default_routes": []}));
    line.near(&["status", "ppp0"]).omits("default route");
    line.far(&["disconnect", "--concentrator", WAN, "--user", "alice"]);
    client.hear(": open", 2);
    let status = line.status("ppp0");
    assert!(status["last_error_ago"].as_f64() >= status["uptime"].as_f64(), "{status:#}");
    line.near(&["status", "ppp0"]).says("s ago, before this session: the concentrator ended the session");
    // Its own words are the last.
    assert!(client.said().contains("\"disconnected by the operator\"\n"), "{}", client.said());
}

#[test]
fn a_default_route_that_is_not_there_is_reported_with_what_is_in_its_way() {
    let Some(line) = Line::new() else { return };
    let _serving = line.serve(&[]);
    line.near.veth(&Veth::pair("lan0", "lan1")).expect("a pair");
    line.ip(&["addr", "add", "192.0.2.2/24", "dev", "lan0"]);
    line.ip(&["route", "add", "default", "via", "192.0.2.1", "dev", "lan0"]);
    let client = line.connect("alice", &["--default-route"]);
    let why = "`default via 192.0.2.1 dev lan0` has the metric 0 already; `ip -4 route del default via 192.0.2.1 dev lan0 metric 0`";
    client.hear(&format!("no default route through ppp0: {why} and"), 1);
    assert!(!client.said().contains("--metric"), "{}", client.said());
    let routes = &line.status("ppp0")["default_routes"];
    assert_eq!((&routes[0]["family"], &routes[0]["metric"]), (&"ipv4".into(), &0.into()), "{routes:#}");
    assert!(routes[0]["missing"].as_str().is_some_and(|text| text.starts_with(why)), "{routes:#}");
    assert_eq!((&routes[1]["family"], &routes[1]["missing"]), (&"ipv6".into(), &().into()), "{routes:#}");
    line.near(&["status", "ppp0"])
        .says("default route IPv4: none (`default via")
        .says("default route IPv6, metric 1");
    // Whoever follows that has it, and status knows.
    let missing = || line.status("ppp0")["default_routes"][0]["missing"].clone();
    line.ip(&["-4", "route", "del", "default", "via", "192.0.2.1", "dev", "lan0", "metric", "0"]);
    let removed = "it was removed: `ip -4 route add default dev ppp0 metric 0` adds it again";
    assert_eq!(missing(), removed);
    line.ip(&["-4", "route", "add", "default", "dev", "ppp0", "metric", "0"]);
    assert_eq!(missing(), Value::Null);
    line.ip(&["-4", "route", "del", "default"]);
    assert_eq!(missing(), removed);
    // The next session has it by itself.
    line.far(&["disconnect", "--concentrator", WAN, "--user", "alice"]);
    client.hear(": open", 2);
    wait_until("a route", || line.status("ppp0")["default_routes"][0]["missing"].is_null());
    assert!(line.ip(&["-4", "route", "show", "default"]).starts_with("default dev ppp0"));
    // Routes of an interface that is set down go.
    line.ip(&["link", "set", "ppp0", "down"]);
    let down = "IPv4: none (ppp0 is down: `ip link set ppp0 up`, then `ip -4 route add default dev ppp0";
    line.near(&["status", "ppp0"]).says(down);
}
