//! Frames of somebody else on the line, while a link is in use.

use super::ends::{Ends, PARENT, Side};
use super::talk;
use std::collections::BTreeMap;
use wire::ipv4;

/// Frames of each kind.
const EACH: usize = 2000;

/// What the near end dropped, by the reason.
fn counted(ends: &Ends) -> BTreeMap<String, u64> {
    let status = ends.status(Side::Near);
    let rows = status["drops"].as_array().expect("a list").clone();
    let row = |row: &serde_json::Value| {
        (row["reason"].as_str().expect("a word").to_owned(), row["frames"].as_u64().expect("a number"))
    };
    rows.iter().map(row).collect()
}

#[test]
fn a_flood_of_malformed_frames_is_counted_and_stops_nobody() {
    for ends in Ends::of_each_data_path(1516) {
        let link = "ad:100,q:200,pppoe:7@PEER";
        let near = ends.up(Side::Near, link, &[]);
        let far = ends.up(Side::Far, link, &[]);
        let good = ends.frame(link, None, [10, 9, 0, 2]);
        // Where its PPPoE header is.
        let at = good.len() - ipv4::Header::LENGTH - 8;
        let with = |place: usize, bytes: &[u8]| {
            let mut frame = good.clone();
            frame[place..place + bytes.len()].copy_from_slice(bytes);
            frame
        };
        let kinds: [(&str, Vec<u8>); 12] = [
            ("pppoe-version", with(at, &[0x21])),
            ("pppoe-code", with(at + 1, &[0xa7])),
            ("other-peer", with(6, &[2, 0, 0x5e, 0, 0, 0x66])),
            ("pppoe-length", with(at + 4, &[0xff, 0xff])),
            ("ppp-compressed", with(at + 6, &[0x21])),
            ("ppp-control", with(at + 6, &[0xc0, 0x21])),
            ("ppp-protocol", with(at + 6, &[0x02, 0x81])),
            ("ip-version", with(at + 6, &[0x00, 0x57])),
            ("ip-length", with(at + 10, &[0xff, 0xff])),
            ("short", with(at + 4, &[0, 0])),
            // Of other links: the filter of the socket lets none of them in.
            ("", with(at + 2, &[0, 8])),
            ("", with(15, &[101])),
        ];
        let frames: Vec<&[u8]> = kinds.iter().flat_map(|(_, frame)| vec![&frame[..]; EACH]).collect();
        let named: BTreeMap<String, u64> = kinds
            .iter()
            .filter(|(word, _)| !word.is_empty())
            .map(|(word, _)| ((*word).to_owned(), EACH as u64))
            .collect();
        // In portions that the queue of the socket holds, and somebody who is served in between.
        for portion in frames.chunks(500) {
            ends.namespace(Side::Far).send(PARENT, portion).expect("sent");
            talk::echo(&ends, Side::Near, "10.9.0.1", &[64, 1400]);
        }
        assert_eq!(counted(&ends), named);
        // As fast as they can be sent: what the queue does not hold is counted there.
        ends.namespace(Side::Far).send(PARENT, &frames).expect("sent");
        talk::both_ways(&ends, 1492);
        let all: u64 = counted(&ends).values().sum();
        assert_eq!(all, 2 * named.values().sum::<u64>(), "{:?}", counted(&ends));
        near.interrupted();
        far.interrupted();
    }
}
