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
    /// How many can be distinguished: a provider that was started anew counts from one again.
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

const fn session(
    name: &'static str,
    (around, tags): (&'static str, &'static [&'static str]),
    stacks: &'static [&'static [&'static str]],
) -> Exchange {
    Exchange { name, around, tags, times: 1, sessions: 1, stacks }
}

/// Without PPPoE.
const fn without(name: &'static str, line: (&'static str, &'static [&'static str])) -> Exchange {
    Exchange { times: 0, sessions: 0, ..session(name, line, &[PLAIN]) }
}

const UNTAGGED: (&str, &[&str]) = ("eth", &["untagged"]);
const VLAN: (&str, &[&str]) = ("eth/vlan", &["0x8100/35"]);
const QINQ: (&str, &[&str]) = ("eth/vlan/vlan", &["0x88a8/7 0x8100/100"]);
const QINQ_8100: (&str, &[&str]) = ("eth/vlan/vlan", &["0x8100/8 0x8100/200"]);
const TWO: (&str, &[&str]) = ("eth/vlan/vlan", &["0x88a8/7 0x8100/100", "0x88a8/7 0x8100/101"]);

const EXCHANGES: [Exchange; 13] = [
    session("pppoe_pap", UNTAGGED, &[NEGOTIATION, PAP, NETWORK, EVERYDAY]),
    session("pppoe_chap", UNTAGGED, &[NEGOTIATION, CHAP, NETWORK, EVERYDAY]),
    Exchange { times: 2, ..session("pppoe_refused", UNTAGGED, &[NEGOTIATION, PAP, CHAP]) },
    session("pppoe_max_payload", UNTAGGED, &[NEGOTIATION, PAP, NETWORK, EVERYDAY]),
    session("pppoe_fragments", UNTAGGED, &[NEGOTIATION, PAP, NETWORK, PIECES]),
    session("pppoe_ipv6_extensions", UNTAGGED, &[NEGOTIATION, PAP, NETWORK, EXTENSIONS]),
    session("vlan_pppoe", VLAN, &[NEGOTIATION, PAP, NETWORK, EVERYDAY]),
    session("qinq_pppoe", QINQ, &[NEGOTIATION, CHAP, NETWORK, EVERYDAY]),
    session("qinq_8100_pppoe", QINQ_8100, &[NEGOTIATION, PAP, NETWORK, EVERYDAY]),
    Exchange {
        times: 2,
        sessions: 2,
        ..session("qinq_pppoe_two_sessions", TWO, &[NEGOTIATION, CHAP, NETWORK, BRIEF])
    },
    without("vlan_ip", VLAN),
    without("qinq_ip", QINQ),
    without("qinq_8100_ip", QINQ_8100),
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
        let bytes = std::fs::metadata(&sample.capture).unwrap().len();
        assert!(bytes <= LARGEST, "{name}: {bytes} bytes");
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
    // Frames are whole, with their padding.
    let mut range = (usize::MAX, 0);
    for sample in samples() {
        let mut capture = Capture::open(&sample.capture).unwrap();
        let mut longest = 0;
        while let Some(frame) = capture.next_frame() {
            assert_eq!(frame.data.len(), frame.wire_len as usize, "{}", sample.capture.display());
            longest = longest.max(frame.data.len());
            range = (range.0.min(frame.data.len()), range.1.max(longest));
        }
        // RFC 4638: eight bytes more behind the same Ethernet header.
        match &*name(&sample) {
            "pppoe_pap" => assert_eq!(longest, 1514),
            "pppoe_max_payload" => assert_eq!(longest, 1522),
            _ => {}
        }
    }
    assert_eq!(range, (SHORTEST, LONGEST));
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
