//! The peer: a capture read with pcap-parser, each frame parsed with etherparse, PPPoE stepped over by hand, the
//! addresses and ports summed up. It keeps no flow table, counts nothing, and answers nothing.

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{LegacyPcapReader, PcapBlockOwned, PcapError};
use std::fs::File;

fn fold(acc: u32, bytes: &[u8]) -> u32 {
    let (words, _) = bytes.as_chunks();
    words.iter().fold(acc, |acc, word| acc.rotate_left(5) ^ u32::from_be_bytes(*word))
}

/// The IP packet inside PPPoE, where there is one.
fn inside_pppoe(frame: &[u8]) -> Option<&[u8]> {
    let mut at = 12;
    loop {
        match u16::from_be_bytes(*frame.get(at..)?.first_chunk()?) {
            0x8100 | 0x88a8 => at += 4,
            0x8864 => return frame.get(at + 10..),
            _ => return None,
        }
    }
}

fn sum(frame: &[u8]) -> Option<u32> {
    let packet = match inside_pppoe(frame) {
        Some(ip) => SlicedPacket::from_ip(ip).ok()?,
        None => SlicedPacket::from_ethernet(frame).ok()?,
    };
    let addresses = match packet.net.as_ref()? {
        NetSlice::Ipv4(ip) => fold(fold(0, &ip.header().source()), &ip.header().destination()),
        NetSlice::Ipv6(ip) => fold(fold(0, &ip.header().source()), &ip.header().destination()),
        NetSlice::Arp(_) => return None,
    };
    let (source, destination) = match packet.transport.as_ref()? {
        TransportSlice::Tcp(tcp) => (tcp.source_port(), tcp.destination_port()),
        TransportSlice::Udp(udp) => (udp.source_port(), udp.destination_port()),
        _ => return None,
    };
    Some(addresses ^ (u32::from(source) << 16 | u32::from(destination)))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: parse-only CAPTURE")?;
    let mut reader =
        LegacyPcapReader::new(1 << 20, File::open(path)?).map_err(|error| format!("{error:?}"))?;
    let (mut frames, mut parsed, mut total) = (0u64, 0u64, 0u32);
    loop {
        match reader.next() {
            Ok((offset, block)) => {
                if let PcapBlockOwned::Legacy(packet) = block {
                    frames += 1;
                    if let Some(sum) = sum(packet.data) {
                        parsed += 1;
                        total ^= sum;
                    }
                }
                reader.consume(offset);
            }
            Err(PcapError::Eof) => break,
            Err(PcapError::Incomplete(_)) => reader.refill().map_err(|error| format!("{error:?}"))?,
            Err(error) => return Err(format!("{error:?}").into()),
        }
    }
    println!("{frames} frames, {parsed} parsed, sum {total:08x}");
    Ok(())
}
