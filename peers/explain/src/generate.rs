//! Captures to measure with: 98, 594 and 1518 bytes at 7:4:1; of ten flows four are IPv4 and two IPv6 TCP behind
//! two tags and PPPoE, two UDP behind one tag, two untagged TCP.

use rxlane_capture::{LinkType, Resolution, Writer};
use rxlane_wire::emit::{Emit, Encapsulation, Ipv4, Ipv6, Tcp, Udp};
use rxlane_wire::ethernet::MacAddress;
use rxlane_wire::{IpProtocol, IpVersion};
use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// The mixing step of SplitMix64.
fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

struct Kinds([Encapsulation; 3]);

impl Kinds {
    fn new() -> Result<Kinds, Box<dyn Error>> {
        let parse = |text: &str| text.parse::<Encapsulation>().map_err(|error| error.to_string());
        Ok(Kinds([parse("ad:100,q:200,pppoe:7")?, parse("q:7")?, parse("none")?]))
    }

    /// A frame of `flow` with `length` bytes in `buffer`. No two flows have the same addresses and ports.
    fn frame(&self, flow: u64, length: usize, buffer: &mut [u8; 1518]) -> Result<(), Box<dyn Error>> {
        let random = mix(flow);
        let (kind, v6, udp) = match flow % 10 {
            0..4 => (0, false, false),
            4..6 => (0, true, false),
            6..8 => (1, false, true),
            _ => (2, false, false),
        };
        let version = if v6 { IpVersion::V6 } else { IpVersion::V4 };
        let packet = length - self.0[kind].length();
        let (to, from) = (MacAddress([2, 0, 0, 0, 0, 1]), MacAddress([2, 0, 0, 0, 0, 2]));
        let mut at = self.0[kind].emit(to, from, version, packet, buffer)?;
        let protocol = if udp { IpProtocol::UDP } else { IpProtocol::TCP };
        // 198.18.0.0/15 (RFC 2544) and 17 bits of the flow's number; the rest of it is the source port.
        let (low, high) = ((flow & 0x1_ffff) as u32, (flow >> 17) as u16);
        at += if v6 {
            let prefix = 0x2001_0db8_u128 << 96;
            Ipv6 {
                traffic_class: 0,
                flow_label: 0,
                payload_length: (packet - 40) as u16,
                next_header: protocol,
                hop_limit: 64,
                source: (prefix | u128::from(random)).into(),
                destination: (prefix | 1 << 64 | u128::from(low)).into(),
            }
            .emit(&mut buffer[at..])?
        } else {
            Ipv4::new(protocol, (random as u32).into(), (198 << 24 | 18 << 16 | low).into(), packet as u16)
                .emit(&mut buffer[at..])?
        };
        let (source_port, destination_port) = (1024 + high, 443);
        if udp {
            let length = (length - at) as u16;
            Udp { source_port, destination_port, length, checksum: 0 }.emit(&mut buffer[at..])?;
        } else {
            Tcp {
                source_port,
                destination_port,
                sequence: random as u32,
                acknowledgment: 1,
                flags: 0x10,
                window: 0xffff,
                checksum: 0,
                urgent: 0,
                options: &[],
            }
            .emit(&mut buffer[at..])?;
        }
        Ok(())
    }
}

/// Writes a capture of about `bytes` bytes and says how many frames it has. `flows` of 0: every frame is a flow
/// of its own. The same arguments give the same file.
pub fn generate(path: &Path, bytes: u64, flows: u64) -> Result<u64, Box<dyn Error>> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let kinds = Kinds::new()?;
    let mut writer = Writer::pcap(&mut out, LinkType::Ethernet, Resolution::Microseconds)?;
    let (mut written, mut frames, mut buffer) = (24, 0u64, [0; 1518]);
    while written < bytes {
        let random = mix(frames ^ 0x5eed << 40);
        let length = match random % 12 {
            0..7 => 98,
            7..11 => 594,
            _ => 1518,
        };
        let flow = if flows == 0 { frames } else { (random >> 32) % flows };
        kinds.frame(flow, length, &mut buffer)?;
        writer.write(1_700_000_000_000_000_000 + frames as i64 * 10_000, &buffer[..length], length as u32)?;
        written += 16 + length as u64;
        frames += 1;
    }
    writer.finish()?;
    out.flush()?;
    Ok(frames)
}
