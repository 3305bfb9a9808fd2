//! What segmenting and coalescing cost on this machine: `cargo run --release -p rxlane-offload --example cost`.
//!
//! Nanoseconds of wall clock, median and least of several turns; one core, everything in its caches.

#![allow(clippy::print_stdout, reason = "it prints")]

use rxlane_offload::coalesce::{Coalescer, Delivery, Limits};
use rxlane_offload::{NetHeader, Prefix, Segments};
use std::error::Error;
use std::hint::black_box;
use std::time::Instant;
use wire::emit::{Emit, Encapsulation, Ipv4, Tcp, checksum};
use wire::ethernet::MacAddress;
use wire::{IpProtocol, IpVersion};

const TURNS: usize = 41;
/// Payload bytes of a segment on a PPPoE line with TCP timestamps.
const SIZE: usize = 1440;
const SEGMENTS: usize = 44;
const NEAR: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const FAR: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);

/// A TCP packet over IPv4 with timestamps.
fn packet(flow: u16, sequence: u32, identification: u16, payload: usize) -> Result<Vec<u8>, Box<dyn Error>> {
    let (source, destination) = ([198, 18, 0, 1].into(), [198, 18, 0, 2].into());
    let mut packet = vec![0x5a; 52 + payload];
    let header = Ipv4 {
        identification,
        ..Ipv4::new(IpProtocol::TCP, source, destination, u16::try_from(packet.len())?)
    };
    header.emit(&mut packet)?;
    let segment = packet.get_mut(20..).ok_or("a header")?;
    let header = Tcp {
        source_port: flow,
        destination_port: 443,
        sequence,
        flags: Tcp::ACK,
        window: 500,
        options: &[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 1],
        ..Tcp::default()
    };
    header.emit(segment)?;
    checksum::fill(source.into(), destination.into(), IpProtocol::TCP, segment)?;
    Ok(packet)
}

/// Median and least nanoseconds of one of `count` things that `work` does.
fn time(count: usize, mut work: impl FnMut()) -> String {
    let mut turns: Vec<f64> = (0..TURNS)
        .map(|_| {
            let start = Instant::now();
            (0..20).for_each(|_| work());
            start.elapsed().as_nanos() as f64 / (20 * count) as f64
        })
        .collect();
    turns.sort_by(f64::total_cmp);
    let (median, least) = (turns.get(TURNS / 2), turns.first());
    format!("{:7.1} [{:.1}]", median.unwrap_or(&0.0), least.unwrap_or(&0.0))
}

fn segment(encapsulation: &Encapsulation) -> Result<String, Box<dyn Error>> {
    let prefix = Prefix::new(encapsulation, FAR, NEAR)?;
    let mut packet = packet(1, 1, 1, SIZE * SEGMENTS)?;
    let header = NetHeader {
        flags: NetHeader::NEEDS_CHECKSUM,
        gso_type: NetHeader::TCP_IPV4,
        header_length: 52,
        gso_size: SIZE as u16,
        checksum_start: 20,
        checksum_offset: 16,
    };
    let mut headers = vec![[0; 128]; SEGMENTS];
    Ok(time(SEGMENTS, || {
        if let Ok(mut segments) = Segments::new(&prefix, black_box(&header), &mut packet) {
            for buffer in &mut headers {
                let _ = black_box(segments.emit(buffer));
            }
        }
    }))
}

/// `flows` flows take turns; each has as many frames in order as fit 64 KiB, up to 256 frames in all.
fn coalesce(
    encapsulation: &Encapsulation,
    flows: usize,
    payload: usize,
) -> Result<(String, usize), Box<dyn Error>> {
    let mut frames = Vec::new();
    for number in 0..256_usize.max(flows) {
        let (flow, turn) = ((number % flows) as u16, (number / flows) as u16);
        let packet = packet(flow, u32::from(turn) * payload as u32, turn, payload)?;
        let mut frame = vec![0; encapsulation.length()];
        encapsulation.emit(FAR, NEAR, IpVersion::V4, packet.len(), &mut frame)?;
        frame.extend(packet);
        frames.push(frame);
    }
    let mut coalescer = Coalescer::new(Limits::default());
    let mut delivered = 0;
    let cost = time(frames.len(), || {
        delivered = 0;
        for delivery in coalescer.coalesce(black_box(&frames)) {
            if let Delivery::Packet(packet) = delivery {
                delivered += 1;
                packet.pieces().for_each(|piece| _ = black_box(piece));
            }
        }
    });
    Ok((cost, delivered))
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("nanoseconds, median [least] of {TURNS} turns");
    for text in ["none", "ad:100,q:200,pppoe:7"] {
        let encapsulation: Encapsulation = text.parse()?;
        println!("{text}");
        println!("  a segment of {SIZE} bytes of payload           {}", segment(&encapsulation)?);
        for (flows, payload) in [(1, SIZE), (8, SIZE), (256, SIZE), (4096, SIZE), (8, 64)] {
            let (cost, delivered) = coalesce(&encapsulation, flows, payload)?;
            println!(
                "  a frame of {payload:4} bytes of payload, {flows:4} flows  {cost}, {delivered} packets delivered"
            );
        }
    }
    Ok(())
}
