//! Packets of known flows that were changed at random, seeded.
//!
//! `RXLANE_FUZZ_FRAMES` says how many (200,000), `RXLANE_FUZZ_SEED` from which seed.

use super::agreement::{Agreement, LONGEST};
use super::flows::{TCP, every_kind, frame, packet_at};
use crate::programs::mutations::{Mutator, number};
use rxlane_xdp::forward::Key;
use rxlane_xdp::forward_layout::Pass;
use std::time::Instant;
use wire::IpProtocol;
use wire::emit::checksum::{Sum, internet};

#[test]
fn changed_packets_have_one_verdict() {
    let (count, seed) = (number("RXLANE_FUZZ_FRAMES", 200_000), number("RXLANE_FUZZ_SEED", 1));
    let start = Instant::now();
    let mut flows = every_kind();
    for (place, (_, flow)) in flows.iter_mut().enumerate() {
        flow.limit = u8::from(place % 50 == 1);
    }
    let mut agreement = Agreement::new(&flows);
    agreement.limit(1, 8, 20_000);
    let pool: Vec<Vec<u8>> = flows.iter().map(|(key, _)| frame(key, b"payload of a packet")).collect();
    let mut mutator = Mutator::new(seed);
    let mut changed = Vec::new();
    for _ in 0..count {
        let place = mutator.below(flows.len());
        let key = flows[place].0;
        changed.clear();
        changed.extend(frame(&key, &vec![0x5a; mutator.below(120)]));
        if mutator.below(8) != 0 {
            for _ in 0..=mutator.below(3) {
                change(&mut mutator, &pool, &key, &mut changed);
            }
        }
        if mutator.below(3) == 0 {
            fix_header(&key, &mut changed);
        }
        if mutator.below(6) == 0 {
            leave_checksum(&key, &mut changed);
        }
        changed.truncate(LONGEST);
        agreement.check(&changed);
    }
    agreement.finish();
    let counts = &agreement.expected;
    println!(
        "{count} frames of seed {seed}: {} sent, {} limited, {:.1} s",
        counts.fast,
        counts.limited,
        start.elapsed().as_secs_f64()
    );
    for (pass, frames) in Pass::ALL.into_iter().zip(counts.passed) {
        println!("  {}: {frames}", pass.name());
    }
    assert!(counts.fast > count / 10 && counts.fast < count / 2, "{}", counts.fast);
}

/// Fields that decide, or anything.
fn change(mutator: &mut Mutator, pool: &[Vec<u8>], key: &Key, frame: &mut Vec<u8>) {
    let ip = packet_at(key);
    let transport = ip + if key.is_ipv6() { 40 } else { 20 };
    let at = match mutator.below(8) {
        0 => ip + mutator.below(12),
        1 => transport + mutator.below(if key.protocol == TCP { 20 } else { 8 }),
        2 => 12 + mutator.below(ip - 12),
        3 => mutator.below(12),
        4 => return frame.extend(vec![0xee; mutator.below(40)]),
        _ => return mutator.change_once(pool, frame),
    };
    let value = match mutator.below(4) {
        0 => 0,
        1 => 0xff,
        2 => mutator.below(256) as u8,
        _ => frame.get(at).map_or(0, |byte| byte ^ 1 << mutator.below(8)),
    };
    if let Some(byte) = frame.get_mut(at) {
        *byte = value;
    }
}

/// Puts the sum of the pseudo header where the checksum of TCP or UDP is, as a sender does that leaves the rest to a device.
pub fn leave_checksum(key: &Key, frame: &mut [u8]) {
    let ip = packet_at(key);
    let transport = ip + if key.is_ipv6() { 40 } else { 20 };
    let Some(length) = frame.len().checked_sub(transport) else { return };
    let (source, destination) = (key.source.ip(), key.destination.ip());
    let pseudo = Sum::pseudo_header(source, destination, IpProtocol(key.protocol), length);
    let at = transport + if key.protocol == TCP { 16 } else { 6 };
    if let Some(place) = frame.get_mut(at..at + 2) {
        place.copy_from_slice(&pseudo.expect("one version").folded().to_be_bytes());
    }
}

/// Makes the checksum of an IPv4 header right, where it would still be.
fn fix_header(key: &Key, frame: &mut [u8]) {
    let ip = packet_at(key);
    if key.is_ipv6() || frame.len() < ip + 20 {
        return;
    }
    frame[ip + 10..ip + 12].fill(0);
    let checksum = internet(&frame[ip..ip + 20]);
    frame[ip + 10..ip + 12].copy_from_slice(&checksum.to_be_bytes());
}
