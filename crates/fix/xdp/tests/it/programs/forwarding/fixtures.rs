//! Packets that are forwarded, and the bytes that leave.

use super::agreement::Agreement;
use super::changed::leave_checksum;
use super::flows::{
    Encapsulation, TCP, UDP, encapsulations, every_kind, flow, frame, key, next_hops, packet_at, v4,
};
use rxlane_xdp::forward::{Flow, Key};
use rxlane_xdp::forward_reference::Verdict;

const PLAIN: Encapsulation = Encapsulation { tags: [None; 2], session: None };

#[track_caller]
fn sent(verdict: Verdict) -> Vec<u8> {
    match verdict {
        Verdict::Sent { frame, .. } => frame,
        other => panic!("{other:?}"),
    }
}

/// Every encapsulation, translation, protocol and IP version; short, odd and full packets, with padding where Ethernet wants
/// it and more than that.
#[test]
fn every_kind_of_flow_leaves() {
    let flows = every_kind();
    let mut agreement = Agreement::new(&flows);
    for (key, flow) in &flows {
        let header = if key.is_ipv6() { 40 } else { 20 } + if key.protocol == TCP { 20 } else { 8 };
        for length in [header, header + 1, header + 2, 46.max(header), 47.max(header), 1280, 1499, 1500] {
            let payload: Vec<u8> = (0..length - header).map(|byte| (byte * 7) as u8).collect();
            let bare = frame(key, &payload);
            let mut padded = bare.clone();
            padded.resize(bare.len().max(60), 0xee);
            let more = [&bare[..], &[0xdd; 37]].concat();
            let outputs = [&bare, &padded, &more].map(|frame| sent(agreement.check_flow(key, frame)));
            assert!(outputs.iter().all(|output| *output == outputs[0]), "padding leaves nothing behind");
            expect(key, flow, &bare, &outputs[0]);
        }
    }
    agreement.finish();
}

/// The frame is what the next hop demands, with the packet of the flow's translation.
fn expect(key: &Key, flow: &Flow, arrived: &[u8], left: &[u8]) {
    let next = next_hops()[flow.next_hop as usize].expect("a next hop");
    let mut translated = *key;
    (translated.tags, translated.session) =
        (next.tags, next.session.map(|id| rxlane_xdp::forward::Session { id, peer: next.source }));
    if let Some((source, destination)) = flow.translated {
        (translated.source, translated.destination) = (source.into(), destination.into());
    }
    let at = packet_at(key);
    let behind = at + if key.is_ipv6() { 40 } else { 20 } + if key.protocol == TCP { 20 } else { 8 };
    // Written as if it had arrived so: the packet of the translated flow, one hop older.
    let mut expected = frame(&translated, &arrived[behind..]);
    let at = packet_at(&translated);
    expected[..6].copy_from_slice(&next.destination.0);
    expected[6..12].copy_from_slice(&next.source.0);
    for tag in 0..next.tags.iter().flatten().count() {
        expected[14 + 4 * tag] &= 0x0f;
    }
    if key.is_ipv6() {
        expected[at + 7] -= 1;
    } else {
        expected[at + 8] -= 1;
        expected[at + 10..at + 12].fill(0);
        let checksum = wire::emit::checksum::internet(&expected[at..at + 20]);
        expected[at + 10..at + 12].copy_from_slice(&checksum.to_be_bytes());
    }
    assert_eq!(expected, left, "{key:?} {flow:?}");
}

/// Checksum fields of every value that 16 bits have, of TCP and UDP, translated and not: right, wrong, 0 and 0xffff.
#[test]
fn every_checksum_field_is_corrected_alike() {
    let translated = Some((v4(200, 1), v4(9, 53)));
    let flows = [
        (key(PLAIN, TCP, v4(1, 1).into(), v4(2, 2).into()), Flow { translated, ..flow() }),
        (key(PLAIN, UDP, v4(1, 1).into(), v4(2, 2).into()), Flow { translated, ..flow() }),
        (key(PLAIN, UDP, v4(1, 3).into(), v4(2, 2).into()), flow()),
    ];
    let mut agreement = Agreement::new(&flows);
    for (key, _) in &flows {
        let at = 34 + if key.protocol == TCP { 16 } else { 6 };
        let mut frame = frame(key, b"a packet");
        for checksum in (0..=0xffff_u16).step_by(3).chain([0, 1, 0xfffe, 0xffff]) {
            frame[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
            let left = sent(agreement.check_flow(key, &frame));
            if key.protocol == UDP {
                assert_eq!(left[at..at + 2] == [0, 0], checksum == 0, "{checksum:#x}");
            }
        }
    }
    agreement.finish();
}

/// IPv4 headers whose checksum field is any of a row of values, both ways of writing zero among them.
/// Senders on this machine leave checksums to devices, of which a port of another network stack is none.
#[test]
fn a_checksum_that_was_left_to_a_device_is_completed() {
    let flows = every_kind();
    let mut agreement = Agreement::new(&flows);
    for (key, flow) in &flows {
        for length in [0, 1, 2, 3, 31, 32, 33, 1000] {
            let whole = frame(key, &vec![0xa5; length]);
            let mut left = whole.clone();
            leave_checksum(key, &mut left);
            let verdict = agreement.check_flow(key, &left);
            if flow.verified {
                assert_eq!(verdict, agreement.check_flow(key, &whole), "{key:?}, {length} bytes");
            }
        }
    }
    agreement.finish();
}

/// What is completed is never zero, of TCP either: the kernel writes 0xffff.
#[test]
fn a_completed_checksum_is_not_zero() {
    let flows = every_kind();
    let mut agreement = Agreement::new(&flows);
    for (key, flow) in &flows {
        let header = if key.is_ipv6() { 40 } else { 20 };
        let field = packet_at(key) + header + if key.protocol == TCP { 16 } else { 6 };
        let checksum: [u8; 2] = frame(key, &[0; 2])[field..field + 2].try_into().expect("two bytes");
        let mut left = frame(key, &checksum);
        leave_checksum(key, &mut left);
        let verdict = agreement.check_flow(key, &left);
        if flow.verified && flow.translated.is_none() {
            let field = sent(verdict).len() - 2 - if key.protocol == TCP { 4 } else { 2 };
            assert_eq!(sent(agreement.check_flow(key, &left))[field..field + 2], [0xff; 2], "{key:?}");
        }
    }
    agreement.finish();
}

#[test]
fn every_header_checksum_is_corrected_alike() {
    let translated = Some((v4(200, 1), v4(9, 53)));
    let flows = [
        (key(PLAIN, UDP, v4(1, 1).into(), v4(2, 2).into()), Flow { translated, ..flow() }),
        (key(PLAIN, UDP, v4(1, 3).into(), v4(2, 2).into()), flow()),
    ];
    let mut agreement = Agreement::new(&flows);
    for (key, _) in &flows {
        let original = frame(key, b"a packet");
        for identification in (0..=0xffff_u16).step_by(5) {
            let mut frame = original.clone();
            frame[18..20].copy_from_slice(&identification.to_be_bytes());
            frame[24..26].fill(0);
            let checksum = wire::emit::checksum::internet(&frame[14..34]);
            frame[24..26].copy_from_slice(&checksum.to_be_bytes());
            sent(agreement.check_flow(key, &frame));
            if checksum == 0 {
                frame[24..26].fill(0xff);
                sent(agreement.check_flow(key, &frame));
            }
        }
    }
    agreement.finish();
}

/// Priority and DEI select no flow, the VLAN ID does.
#[test]
fn a_tag_is_known_by_its_vlan_id() {
    let tagged = encapsulations()[1];
    let known = key(tagged, UDP, v4(1, 1).into(), v4(2, 2).into());
    let mut agreement = Agreement::new(&[(known, flow())]);
    for priority in 0..16 {
        let mut frame = frame(&known, b"1234");
        frame[14] = priority << 4;
        let left = sent(agreement.check_flow(&known, &frame));
        assert_eq!(left[12..14], [8, 0]);
    }
    agreement.finish();
}
