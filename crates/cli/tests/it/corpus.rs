//! Captures against an independent dissector: `rxlane explain --json` counts the same frames, stacks,
//! tags, PPPoE codes and protocols, flows, fragments and extension headers as tshark's summary next to each
//! capture, or the difference is in [`EXPLAINED`], which names the frame and says who is right.
//!
//! The captures are the project's own and those below the folder that `RXLANE_CAPTURES` names (see crate `testkit`).

use crate::dissector::{explain, quantities, summary};
use serde_json::{Value, json};

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
        why: "frame 1 is cut inside its routing header. tshark counts it by its first bytes; we count whole \
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

/// Of two objects, what one has more of than the other; other values as they are.
fn surplus(one: &Value, other: &Value) -> Value {
    let (Some(one), Some(other)) = (one.as_object(), other.as_object()) else { return one.clone() };
    let more = |key: &str, frames: &Value| {
        let more = frames.as_u64()?.saturating_sub(other.get(key).and_then(Value::as_u64).unwrap_or(0));
        (more > 0).then(|| (key.to_owned(), json!(more)))
    };
    one.iter().filter_map(|(key, frames)| more(key, frames)).collect()
}

#[test]
fn captures_count_the_same_as_an_independent_dissector() {
    let samples = testkit::captures::corpus();
    let mut open: Vec<&Explained> = EXPLAINED.iter().collect();
    let mut unexplained = Vec::new();
    let mut compared = Vec::new();
    for sample in samples {
        let Some(expected) = &sample.expected else { continue };
        let theirs = summary(expected);
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
    assert!(!compared.is_empty(), "no capture has a summary next to it");
    assert!(unexplained.is_empty(), "of {} captures:\n{}", compared.len(), unexplained.join("\n"));
    let stale: Vec<_> = open.iter().filter(|known| compared.iter().any(|file| file == known.file)).collect();
    assert!(
        stale.is_empty(),
        "explained, but no longer so: {:?}",
        stale.iter().map(|e| e.file).collect::<Vec<_>>()
    );
}
