//! `link check` where something on the parent, or the parent itself, has an opinion of its own about frames.

use super::ends::{Ends, LINK, PARENT, Side};
use super::talk;
use crate::machine::frags;
use crate::run::{BINARY, Ended};
use serde_json::Value;
use testkit::require;

/// The answer, and the fact about something.
fn check(ends: &Ends, parent: &str, link: &str, mtu: &str, about: &str) -> (String, Value) {
    let arguments = ["check", "--parent", parent, "--encap", link, "--mtu", mtu];
    let json = ends.rxlane(Side::Near, &[&arguments[..], &["--json"]].concat());
    let check = json.json();
    let text = ends.rxlane(Side::Near, &arguments);
    assert_eq!((text.code(), json.code()), if check["answer"] == "yes" { (0, 0) } else { (1, 1) });
    let code_points = text.text().lines().map(|line| line.chars().count()).max();
    assert!(code_points <= Some(80), "{}", text.text());
    let facts = check["facts"].as_array().expect("facts");
    let fact = facts.iter().find(|fact| fact["about"] == about).cloned().unwrap_or_default();
    (check["answer"].as_str().expect("an answer").to_owned(), fact)
}

fn envelope(ends: &Ends, side: Side, arguments: &[&str]) {
    let mut command = ends.namespace(side).command(BINARY);
    command.arg("envelope").args(arguments).args(["--state-dir", &ends.state()]);
    command.output().expect("it runs").ends(0);
}

#[test]
fn an_envelope_has_room_for_headers_and_for_no_more() {
    let Some(ends) = Ends::new(1500) else { return };
    let Some(()) = require("bpf", frags()) else { return };
    ends.ip(Side::Far, &["link", "set", PARENT, "mtu", "1600"]);
    envelope(&ends, Side::Near, &["up", PARENT, "--header", "8"]);
    let query = |link: &str, mtu: &str, about: &str| check(&ends, PARENT, link, mtu, about);
    let (answer, fact) = query("ad:100,q:200", "1500", "envelope");
    assert_eq!((answer.as_str(), fact["answer"].as_str()), ("yes", Some("yes")), "{fact:#}");
    // The parent's MTU of 1508 would do.
    let (answer, fact) = query("q:35", "1501", "envelope");
    assert_eq!((answer.as_str(), fact["answer"].as_str()), ("no", Some("no")), "{fact:#}");
    let text = fact["text"].as_str().expect("a text");
    assert!(text.contains("more than 1500 bytes") && text.contains("`--mtu 1500` fits"), "{text}");
    let up = ends.up(Side::Near, "q:35", &["--mtu", "1501"]);
    up.hear("note: the envelope on wan0 refuses payloads of more than 1500 bytes, and these have 1501", 1);
    up.interrupted();
    // What makes room is a larger envelope.
    let (answer, fact) = query("ad:100,q:200,q:300", "1500", "sending");
    let text = fact["text"].as_str().expect("a text");
    assert!(answer == "no" && text.contains("rxlane envelope up wan0 --header 12"), "{text}");
    // What it says is what happens.
    let near = ends.up(Side::Near, "ad:100,q:200", &["--mtu", "1500"]);
    let far = ends.up(Side::Far, "ad:100,q:200", &["--mtu", "1500"]);
    talk::both_ways(&ends, 1500);
    near.interrupted();
    far.interrupted();
    envelope(&ends, Side::Near, &["down", PARENT]);
    assert_eq!(query("q:35", "1500", "envelope").1, Value::Null);
}

#[test]
fn a_parent_that_is_a_link_takes_no_further_tags() {
    let Some(ends) = Ends::new(1516) else { return };
    let up = ends.up(Side::Near, "ad:100,q:200", &[]);
    let query = |parent: &str, link: &str| check(&ends, parent, link, "1400", "parent");
    let (answer, fact) = query(LINK, "q:35");
    assert_eq!((answer.as_str(), fact["answer"].as_str()), ("no", Some("no")), "{fact:#}");
    let text = fact["text"].as_str().expect("a text");
    assert!(text.contains("`--parent wan0 --encap ad:100,q:200,q:35`"), "{text}");
    let (answer, fact) = query(LINK, "pppoe:7@02:00:5e:00:00:01");
    assert_eq!((answer.as_str(), fact["answer"].as_str()), ("yes", Some("note")), "{fact:#}");
    let mut upper = ends.plain_up_over(Side::Near, LINK);
    upper
        .args(["--name", "upper0", "--encap", "q:35"])
        .output()
        .expect("it runs")
        .ends(1)
        .says("sub0 is itself a link (ad:100,q:200 over wan0)");
    // Nor an envelope: super-packets are no frames.
    let mut over = ends.namespace(Side::Near).command(BINARY);
    over.args(["envelope", "up", LINK, "--header", "8", "--state-dir", &ends.state()]);
    over.output().expect("it runs").ends(1).says("virtio headers");
    // By whatever name.
    ends.ip(Side::Near, &["link", "set", LINK, "down"]);
    ends.ip(Side::Near, &["link", "set", LINK, "name", "other0"]);
    assert_eq!(query("other0", "q:35").1["answer"], "no");
    up.interrupted();
    // A TAP device of somebody else.
    ends.ip(Side::Near, &["tuntap", "add", "dev", "tap0", "mode", "tap"]);
    assert_eq!(query("tap0", "q:35").1, Value::Null);
}
