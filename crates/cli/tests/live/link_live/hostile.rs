//! Frames of somebody else on the line, while a link is in use.

use super::ends::{Ends, PARENT, Side};
use super::talk;
use std::collections::BTreeMap;
use wire::emit::Encapsulation;
use wire::ethernet::MacAddress;
use wire::{IpVersion, ipv4};

/// Frames of each kind.
const EACH: usize = 2000;

fn mac(text: &str) -> MacAddress {
    let mut octets = [0; 6];
    for (octet, part) in octets.iter_mut().zip(text.split(':')) {
        *octet = u8::from_str_radix(part, 16).expect("hexadecimal");
    }
    MacAddress(octets)
}

/// A frame of the link with an IPv4 packet of nothing but its header, and where its PPPoE header is.
fn good(ends: &Ends, link: &str) -> (Vec<u8>, usize) {
    let encapsulation: Encapsulation = ends.named(Side::Far, link).parse().expect("an encapsulation");
    let mut frame = vec![0; 100];
    let (near, far) = (mac(&ends.mac(Side::Near)), mac(&ends.mac(Side::Far)));
    let length =
        encapsulation.emit(near, far, IpVersion::V4, ipv4::Header::LENGTH, &mut frame).expect("room");
    frame.truncate(length);
    // To the link's address, from one that nobody answers; without a right checksum the kernel drops it.
    frame.extend([0x45, 0, 0, 20, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 9, 0, 2, 10, 9, 0, 1]);
    (frame, length.saturating_sub(8))
}

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
        let (good, at) = good(&ends, link);
        let with = |place: usize, octets: &[u8]| {
            let mut frame = good.clone();
            frame[place..place + octets.len()].copy_from_slice(octets);
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

#[test]
fn frames_of_any_octets_change_nothing() {
    for ends in Ends::of_each_data_path(1516) {
        for link in ["q:35", "q:35,pppoe:7@PEER"] {
            let near = ends.up(Side::Near, link, &[]);
            let far = ends.up(Side::Far, link, &[]);
            let (good, _) = good(&ends, link);
            let mut word = 1_u64;
            let frames: Vec<Vec<u8>> = (0..20_000)
                .map(|number| {
                    let mut frame = good.clone();
                    word =
                        word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    // Behind the first tag, so that the filter lets most of them in.
                    let place = 16 + (word >> 33) as usize % (frame.len() - 16);
                    frame[place] = (word >> 50) as u8;
                    frame.truncate(if number % 3 == 0 {
                        18 + (word >> 40) as usize % (frame.len() - 18)
                    } else {
                        frame.len()
                    });
                    frame
                })
                .collect();
            for portion in frames.chunks(500) {
                ends.namespace(Side::Far).send(PARENT, portion).expect("sent");
            }
            talk::both_ways(&ends, 1492);
            let (near, far) = (near.interrupted(), far.interrupted());
            assert_eq!((near.status.code(), far.status.code()), (Some(0), Some(0)));
        }
    }
}
