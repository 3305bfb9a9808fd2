//! Public captures against an independent dissector: `rxlane explain --json` counts the same frames, stacks,
//! tags, PPPoE codes and protocols, flows, fragments and extension headers as tshark's summary beside each
//! capture, or the difference is in [`EXPLAINED`], which names the frame and says who is right.
//!
//! The captures are found through `RXLANE_CAPTURES` (see crate `testkit`); without it the test is skipped
//! visibly.

use assert_cmd::Command;
use serde_json::{Map, Value, json};
use std::path::Path;

/// A difference that stays: file, quantity, ours, theirs, and why.
struct Explained {
    file: &'static str,
    quantity: &'static str,
    ours: &'static str,
    theirs: &'static str,
    why: &'static str,
}

const EXPLAINED: &[Explained] = &[
    Explained {
        file: "arkime_synthetic_mixed.pcap",
        quantity: "stacks",
        ours: r#"{"eth/other":3}"#,
        theirs: r#"{"eth":1,"eth/other/ipv4/icmp":2}"#,
        why: "frame 304 (EtherType 0x88be, ERSPAN) has nothing that either side reads, which we call `other` and \
              tshark leaves out; frames 307 (0x894f, NSH) and 315 (0x8909, Cisco MetaData) carry IP inside \
              headers that no receive path described here looks into. Both are right in their own words.",
    },
    Explained {
        file: "ndpi_fuzz_28586.pcap",
        quantity: "stacks",
        ours: r#"{"eth/other":6}"#,
        theirs: r#"{"eth":6}"#,
        why: "frames 1, 5, 15, 34, 64 and 117 have EtherTypes that neither side knows: we say `other`, tshark \
              nothing.",
    },
    Explained {
        file: "tcpdump_bad_ip_version.pcap",
        quantity: "stacks",
        ours: r#"{"eth/ipv4":1}"#,
        theirs: r#"{"eth/ipv4/ipv6":1}"#,
        why: "frame 1 is announced as IPv4 and has version 6. tshark follows the version; a receiver that was \
              called for IPv4 drops it (RFC 1122 section 3.2.1.1), so we name it malformed IPv4.",
    },
    Explained {
        file: "tcpdump_rthdr_oobr.pcap",
        quantity: "extension headers",
        ours: r#"{}"#,
        theirs: r#"{"routing":1}"#,
        why: "frame 1 is cut inside its routing header. tshark counts it by its first octets; we count whole \
              headers, and the frame among the truncated ones.",
    },
    Explained {
        file: "pcpp_qinq_88a8.pcapng",
        quantity: "stacks",
        ours: r#"{"eth/vlan/vlan/ipv4/other":1}"#,
        theirs: r#"{"eth/vlan/vlan/ipv4":1}"#,
        why: "frame 1 has IP protocol 253, reserved for experiments (RFC 3692): a transport that neither side \
              knows, which we call `other`.",
    },
];

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
fn renamed(object: &Value, name: impl Fn(&str) -> String) -> Value {
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
fn quantities(ours: &Value, theirs: &Value) -> Vec<(&'static str, Value, Value)> {
    let count = |object: &Value, key: &str| object[key].as_u64().unwrap_or(0);
    let fragments = &ours["fragments"];
    vec![
        ("frames", ours["source"]["frames"].clone(), theirs["frames"].clone()),
        ("stacks", frames_by(&ours["stacks"], "stack"), renamed(&theirs["stacks_to_l4"], stack)),
        ("tags", frames_by(&ours["tags"], "tags"), theirs["vlan_tag_stacks"].clone()),
        ("PPPoE codes", ours["pppoe"]["codes"].clone(), renamed(&theirs["pppoe_codes"], code)),
        ("PPPoE sessions", ours["pppoe"]["sessions"].clone(), theirs["pppoe_distinct_sessions"].clone()),
        ("PPP protocols", ours["pppoe"]["ppp"].clone(), theirs["ppp_protocols"].clone()),
        (
            "flows, unidirectional",
            ours["flows"]["unidirectional"].clone(),
            theirs["distinct_5tuples_unidirectional"].clone(),
        ),
        (
            "flows, bidirectional",
            ours["flows"]["bidirectional"].clone(),
            theirs["distinct_5tuples_bidirectional"].clone(),
        ),
        (
            "first fragments",
            json!(count(fragments, "ipv4_first") + count(fragments, "ipv6_first")),
            json!(count(&theirs["fragments"], "first")),
        ),
        (
            "later fragments",
            json!(count(fragments, "ipv4_later") + count(fragments, "ipv6_later")),
            json!(count(&theirs["fragments"], "non_first")),
        ),
        (
            "extension headers",
            ours["extension_headers"].clone(),
            renamed(&theirs["ipv6_ext_headers"], extension),
        ),
    ]
}

/// Of two objects, what one has more of than the other; other values as they are.
fn surplus(one: &Value, other: &Value) -> Value {
    let (Some(one), Some(other)) = (one.as_object(), other.as_object()) else { return one.clone() };
    let more = |key: &str, frames: &Value| {
        let more = frames.as_u64()?.saturating_sub(other.get(key).and_then(Value::as_u64).unwrap_or(0));
        (more > 0).then(|| (key.to_owned(), json!(more)))
    };
    one.iter().filter_map(|(key, frames)| more(key, frames)).collect()
}

fn explain(capture: &Path) -> Value {
    let output =
        Command::cargo_bin("rxlane").unwrap().arg("explain").arg(capture).arg("--json").output().unwrap();
    assert!(output.status.success(), "{}: {}", capture.display(), String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn public_captures_count_the_same_as_an_independent_dissector() {
    let Some(folder) = testkit::require("captures", testkit::captures::folder()) else { return };
    let samples = testkit::captures::below(&folder).unwrap();
    let mut open: Vec<&Explained> = EXPLAINED.iter().collect();
    let mut unexplained = Vec::new();
    let mut compared = Vec::new();
    for sample in samples {
        let Some(expected) = &sample.expected else { continue };
        let theirs: Value = serde_json::from_slice(&std::fs::read(expected).unwrap()).unwrap();
        let ours = explain(&sample.capture);
        let file = sample.capture.file_name().unwrap().to_string_lossy().into_owned();
        compared.push(file.clone());
        for (quantity, ours, theirs) in quantities(&ours, &theirs) {
            if ours == theirs {
                continue;
            }
            let (ours, theirs) = (surplus(&ours, &theirs).to_string(), surplus(&theirs, &ours).to_string());
            let known = open.iter().position(|known| {
                (known.file, known.quantity, known.ours, known.theirs) == (&*file, quantity, &*ours, &*theirs)
            });
            match known {
                Some(at) => eprintln!("{file}: {quantity}: {}", open.remove(at).why),
                None => unexplained.push(format!("{file}: {quantity}: ours {ours}, theirs {theirs}")),
            }
        }
    }
    assert!(!compared.is_empty(), "no capture below {} has a summary beside it", folder.display());
    assert!(unexplained.is_empty(), "of {} captures:\n{}", compared.len(), unexplained.join("\n"));
    let stale: Vec<_> = open.iter().filter(|known| compared.iter().any(|file| file == known.file)).collect();
    assert!(
        stale.is_empty(),
        "explained, but no longer so: {:?}",
        stale.iter().map(|e| e.file).collect::<Vec<_>>()
    );
}
