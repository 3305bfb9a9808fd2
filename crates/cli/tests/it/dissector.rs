//! What `rxlane explain --json` says of a capture compared with what an independent dissector does (`NAME.expected.json`), in
//! the words of the former.

use crate::run::{self, Ended};
use serde_json::{Map, Value, json};
use std::path::Path;

/// tshark's name of a protocol as a stack word. `None` for what is no word of its own: PPP, and IPv6
/// extension headers but for AH.
fn word(name: &str) -> Option<&str> {
    Some(match name {
        "ppp" => return None,
        name if name.starts_with("ipv6.") => return None,
        "ieee8021ad" => "vlan",
        "pppoes" => "pppoe",
        "pppoed" => "pppoe-discovery",
        "ip" => "ipv4",
        "eth" | "vlan" | "mpls" | "llc" | "arp" | "ipv6" | "tcp" | "udp" | "sctp" | "icmp" | "icmpv6"
        | "igmp" | "gre" | "esp" | "ah" | "lcp" | "pap" | "chap" | "ipcp" | "ipv6cp" | "ccp" => name,
        _ => "other",
    })
}

fn stack(theirs: &str) -> String {
    let mut words: Vec<&str> = theirs.split(':').filter_map(word).collect();
    // What LLC carries is its own business: spanning tree, CDP.
    if words.ends_with(&["llc", "other"]) {
        words.pop();
    }
    words.join("/")
}

/// `key` of every item mapped to its `frames`.
fn frames_by(items: &Value, key: &str) -> Value {
    let rows = items.as_array().expect("a list");
    rows.iter().map(|row| (row[key].as_str().expect("a name").to_owned(), row["frames"].clone())).collect()
}

/// The object with its names translated; equal names are added up.
fn renamed(object: &Value, name: fn(&str) -> String) -> Value {
    let mut out = Map::new();
    for (key, frames) in object.as_object().expect("an object") {
        let sum = out.entry(name(key)).or_insert(json!(0));
        *sum = json!(sum.as_u64().unwrap_or(0) + frames.as_u64().expect("a count"));
    }
    Value::Object(out)
}

fn code(theirs: &str) -> String {
    match theirs {
        "0x00" => "session",
        "0x07" => "pado",
        "0x09" => "padi",
        "0x19" => "padr",
        "0x65" => "pads",
        "0xa7" => "padt",
        other => other,
    }
    .to_owned()
}

fn extension(theirs: &str) -> String {
    match theirs {
        "ipv6.hopopts" => "hop-by-hop",
        "ipv6.routing" => "routing",
        "ipv6.fraghdr" => "fragment",
        "ipv6.dstopts" => "destination-options",
        "ah" => "authentication",
        other => other,
    }
    .to_owned()
}

/// Quantity, ours, theirs.
pub fn quantities(ours: &Value, theirs: &Value) -> Vec<(&'static str, Value, Value)> {
    let sum = |object: &Value, keys: &[&str]| {
        json!(keys.iter().filter_map(|key| object[key].as_u64()).sum::<u64>())
    };
    let (pppoe, flows, fragments) = (&ours["pppoe"], &ours["flows"], &ours["fragments"]);
    let names = |key: &str, name: fn(&str) -> String| renamed(&theirs[key], name);
    let number = |key: &str| theirs[key].clone();
    vec![
        ("frames", ours["source"]["frames"].clone(), number("frames")),
        ("stacks", frames_by(&ours["stacks"], "stack"), names("stacks_to_l4", stack)),
        ("tags", frames_by(&ours["tags"], "tags"), number("vlan_tag_stacks")),
        ("PPPoE codes", pppoe["codes"].clone(), names("pppoe_codes", code)),
        ("PPPoE sessions", pppoe["sessions"].clone(), number("pppoe_distinct_sessions")),
        ("PPP protocols", pppoe["ppp"].clone(), number("ppp_protocols")),
        ("flows, unidirectional", flows["unidirectional"].clone(), number("distinct_5tuples_unidirectional")),
        ("flows, bidirectional", flows["bidirectional"].clone(), number("distinct_5tuples_bidirectional")),
        (
            "first fragments",
            sum(fragments, &["ipv4_first", "ipv6_first"]),
            sum(&theirs["fragments"], &["first"]),
        ),
        (
            "later fragments",
            sum(fragments, &["ipv4_later", "ipv6_later"]),
            sum(&theirs["fragments"], &["non_first"]),
        ),
        ("extension headers", ours["extension_headers"].clone(), names("ipv6_ext_headers", extension)),
    ]
}

/// What `rxlane explain --json` says of the capture.
pub fn explain(capture: &Path) -> Value {
    let output = run::rxlane().arg("explain").arg(capture).arg("--json").output();
    output.is(&capture, 0, "").json()
}

/// What the independent dissector says, from its file.
pub fn summary(expected: &Path) -> Value {
    let text = std::fs::read(expected).unwrap_or_else(|error| panic!("{}: {error}", expected.display()));
    serde_json::from_slice(&text).unwrap()
}
