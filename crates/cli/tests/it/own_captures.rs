//! The project's own captures (`captures/README.md`): each holds the exchange that it says, `rxlane explain` counts in
//! it what tshark counts, without exception, and finds nothing wrong.

use crate::dissector::{explain, quantities, summary};
use crate::run::{self, Ended};
use capture::Capture;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use testkit::captures::{self, Sample};

/// A capture above this is not small any more, bytes.
const LARGEST: u64 = 50 << 10;
/// The shortest and the longest frame without FCS: two tags, and a PPPoE session for packets of 1,500 bytes.
const SHORTEST: usize = 60;
const LONGEST: usize = 1522;

struct Exchange {
    name: &'static str,
    /// Headers around PPPoE or IP.
    around: &'static str,
    tags: &'static [&'static str],
    /// How often a session begins and ends.
    times: u64,
    /// How many can be told apart: a provider that was started anew counts from one again.
    sessions: u64,
    /// Stacks behind the tags, at least one frame each.
    stacks: &'static [&'static [&'static str]],
}

const NEGOTIATION: &[&str] = &["pppoe-discovery", "pppoe/lcp"];
const NETWORK: &[&str] = &["pppoe/ipcp", "pppoe/ipv6cp", "pppoe/ccp"];
const PAP: &[&str] = &["pppoe/pap"];
const CHAP: &[&str] = &["pppoe/chap"];
const EVERYDAY: &[&str] = &[
    "pppoe/ipv4/icmp",
    "pppoe/ipv6/icmpv6",
    "pppoe/ipv4/tcp",
    "pppoe/ipv6/tcp",
    "pppoe/ipv4/udp",
    "pppoe/ipv6/udp",
];
const BRIEF: &[&str] = &["pppoe/ipv4/icmp", "pppoe/ipv6/udp"];
const PIECES: &[&str] = &["pppoe/ipv4/icmp", "pppoe/ipv6/icmpv6", "pppoe/ipv4/udp", "pppoe/ipv6/udp"];
const EXTENSIONS: &[&str] =
    &["pppoe/ipv6/udp", "pppoe/ipv6/tcp", "pppoe/ipv6/ah/udp", "pppoe/ipv6/ah/icmpv6"];
const PLAIN: &[&str] = &["arp", "ipv6/icmpv6", "ipv4/tcp", "ipv6/tcp", "ipv4/udp", "ipv6/udp"];

const UNTAGGED: &[&str] = &["untagged"];

const fn untagged(name: &'static str, stacks: &'static [&'static [&'static str]]) -> Exchange {
    Exchange { name, around: "eth", tags: UNTAGGED, times: 1, sessions: 1, stacks }
}

const EXCHANGES: [Exchange; 13] = [
    untagged("pppoe_pap", &[NEGOTIATION, PAP, NETWORK, EVERYDAY]),
    untagged("pppoe_chap", &[NEGOTIATION, CHAP, NETWORK, EVERYDAY]),
    Exchange { times: 2, ..untagged("pppoe_refused", &[NEGOTIATION, PAP, CHAP]) },
    untagged("pppoe_max_payload", &[NEGOTIATION, PAP, NETWORK, EVERYDAY]),
    untagged("pppoe_fragments", &[NEGOTIATION, PAP, NETWORK, PIECES]),
    untagged("pppoe_ipv6_extensions", &[NEGOTIATION, PAP, NETWORK, EXTENSIONS]),
    Exchange {
        around: "eth/vlan",
        tags: &["0x8100/35"],
        ..untagged("vlan_pppoe", &[NEGOTIATION, PAP, NETWORK, EVERYDAY])
    },
    Exchange {
        around: "eth/vlan/vlan",
        tags: &["0x88a8/7 0x8100/100"],
        ..untagged("qinq_pppoe", &[NEGOTIATION, CHAP, NETWORK, EVERYDAY])
    },
    Exchange {
        around: "eth/vlan/vlan",
        tags: &["0x8100/8 0x8100/200"],
        ..untagged("qinq_8100_pppoe", &[NEGOTIATION, PAP, NETWORK, EVERYDAY])
    },
    Exchange {
        around: "eth/vlan/vlan",
        tags: &["0x88a8/7 0x8100/100", "0x88a8/7 0x8100/101"],
        times: 2,
        sessions: 2,
        ..untagged("qinq_pppoe_two_sessions", &[NEGOTIATION, CHAP, NETWORK, BRIEF])
    },
    Exchange {
        around: "eth/vlan",
        tags: &["0x8100/35"],
        times: 0,
        sessions: 0,
        ..untagged("vlan_ip", &[PLAIN])
    },
    Exchange {
        around: "eth/vlan/vlan",
        tags: &["0x88a8/7 0x8100/100"],
        times: 0,
        sessions: 0,
        ..untagged("qinq_ip", &[PLAIN])
    },
    Exchange {
        around: "eth/vlan/vlan",
        tags: &["0x8100/8 0x8100/200"],
        times: 0,
        sessions: 0,
        ..untagged("qinq_8100_ip", &[PLAIN])
    },
];

fn samples() -> Vec<Sample> {
    captures::below(&captures::own()).unwrap()
}

fn name(sample: &Sample) -> String {
    sample.capture.file_stem().unwrap().to_string_lossy().into_owned()
}

fn capture(name: &str) -> PathBuf {
    captures::own().join(format!("{name}.pcap"))
}

/// Names in a list of rows.
fn names<'a>(rows: &'a Value, key: &str) -> BTreeSet<&'a str> {
    rows.as_array().unwrap().iter().map(|row| row[key].as_str().unwrap()).collect()
}

#[test]
fn the_folder_has_what_it_says_and_every_capture_is_small() {
    let found: BTreeSet<String> = samples().iter().map(name).collect();
    let known: BTreeSet<String> = EXCHANGES.iter().map(|exchange| exchange.name.to_owned()).collect();
    assert_eq!(found, known);
    let described = std::fs::read_to_string(captures::own().join("README.md")).unwrap();
    for sample in samples() {
        let name = name(&sample);
        assert!(described.contains(&format!("| `{name}` |")), "README.md does not describe {name}");
        let octets = std::fs::metadata(&sample.capture).unwrap().len();
        assert!(octets <= LARGEST, "{name}: {octets} bytes");
    }
}

#[test]
fn explain_counts_what_tshark_counts_and_finds_nothing_wrong() {
    for sample in samples() {
        let (name, ours) = (name(&sample), explain(&sample.capture));
        let theirs = summary(&sample.expected.unwrap());
        assert_eq!(theirs["frames_malformed_by_tshark"], 0, "{name}");
        for (quantity, ours, theirs) in quantities(&ours, &theirs) {
            assert_eq!(ours, theirs, "{name}: {quantity}");
        }
        let bad = &ours["bad"];
        for kind in ["truncated", "malformed", "cut_by_capture"] {
            assert_eq!(bad[kind], 0, "{name}: {bad}");
        }
        assert_eq!(ours["source"]["problems"], Value::Array(Vec::new()), "{name}");
        assert_eq!(ours["admission"]["accepted"], ours["source"]["frames"], "{name}");
    }
}

#[test]
fn each_capture_holds_its_exchange() {
    for exchange in &EXCHANGES {
        let (name, report) = (exchange.name, explain(&capture(exchange.name)));
        assert_eq!(names(&report["tags"], "tags"), exchange.tags.iter().copied().collect(), "{name}");
        let stacks = names(&report["stacks"], "stack");
        for stack in exchange.stacks.iter().copied().flatten() {
            let stack = format!("{}/{stack}", exchange.around);
            assert!(stacks.contains(&*stack), "{name}: no {stack} among {stacks:?}");
        }
        let pppoe = &report["pppoe"];
        assert_eq!(pppoe["sessions"], exchange.sessions, "{name}");
        for code in ["padi", "pado", "padr", "pads", "padt"] {
            let frames = pppoe["codes"].get(code).and_then(Value::as_u64).unwrap_or(0);
            assert_eq!(frames, exchange.times, "{name}: {code}");
        }
        // Whoever asks is answered. On its way to the last segment of a routing header a packet has another destination
        // address than the source of what comes back: neither way of that connection knows the other.
        let alone = if name == "pppoe_ipv6_extensions" { 2 } else { 0 };
        let flows = |key: &str| report["flows"][key].as_u64().unwrap();
        assert_eq!(flows("unidirectional") + alone, 2 * flows("bidirectional"), "{name}");
        let refused = name == "pppoe_refused";
        assert_eq!(flows("bidirectional") == 0, refused, "{name}");
    }
}

#[test]
fn odd_packets_are_where_they_should_be() {
    let count = |report: &Value, group: &str, key: &str| report[group][key].as_u64().unwrap_or(0);
    let pieces = explain(&capture("pppoe_fragments"));
    for (first, later) in [("ipv4_first", "ipv4_later"), ("ipv6_first", "ipv6_later")] {
        let firsts = count(&pieces, "fragments", first);
        // Pings and datagrams of 3,000 bytes, three pieces each.
        assert_eq!((firsts, count(&pieces, "fragments", later)), (6, 12), "{first}");
    }
    let extensions = explain(&capture("pppoe_ipv6_extensions"));
    for header in ["hop-by-hop", "routing", "fragment", "destination-options", "authentication"] {
        assert!(count(&extensions, "extension_headers", header) > 0, "{header}");
    }
    let longest = |name: &str| {
        let mut capture = Capture::open(capture(name)).unwrap();
        let mut longest = 0;
        while let Some(frame) = capture.next_frame() {
            longest = longest.max(frame.data.len());
        }
        longest
    };
    // RFC 4638: eight bytes more behind the same Ethernet header.
    assert_eq!((longest("pppoe_pap"), longest("pppoe_max_payload")), (1514, 1522));
}

#[test]
fn frames_are_whole_with_their_padding() {
    let mut shortest = usize::MAX;
    for sample in samples() {
        let mut capture = Capture::open(&sample.capture).unwrap();
        while let Some(frame) = capture.next_frame() {
            let octets = frame.data.len();
            assert_eq!(octets, frame.wire_len as usize, "{}", sample.capture.display());
            assert!((SHORTEST..=LONGEST).contains(&octets), "{}: {octets}", sample.capture.display());
            shortest = shortest.min(octets);
        }
    }
    assert_eq!(shortest, SHORTEST);
}

#[test]
fn a_session_behind_two_tags_is_on_one_queue_of_an_i210_and_all_captures_add_up() {
    let report = explain(&capture("qinq_pppoe"));
    let frames = &report["source"]["frames"];
    let on_queues: Vec<&Value> =
        report["queues"].as_array().unwrap().iter().map(|row| &row["frames"]).collect();
    assert_eq!(on_queues, [frames, &Value::from(0), &Value::from(0), &Value::from(0)]);
    let paths: Vec<PathBuf> = samples().into_iter().map(|sample| sample.capture).collect();
    let sum: u64 = paths.iter().map(|path| explain(path)["source"]["frames"].as_u64().unwrap()).sum();
    let together = run::rxlane().arg("explain").args(&paths).arg("--json").output().json();
    assert_eq!(together["source"]["frames"], sum);
    assert_eq!(together["bad"]["malformed"], 0);
}
