//! Any bytes as a super-packet with a virtio header, and as a batch of frames: no panic; segments hold all of the payload
//! and right checksums; every frame of a batch comes out once, none overtakes another of its flow, and what was
//! coalesced segments into what was received.
//!
//! The first byte says which. A super-packet: a second byte of choices, ten of virtio header, the packet. A batch: steps,
//! each a byte that says what follows: a frame with its length in the next byte, or one byte for a frame that
//! continues the one before, with that byte changed.

use rxlane_offload::checksum::{Verdict, verify, verify_ipv4_header};
use rxlane_offload::coalesce::{Coalescer, Delivery, Limits};
use rxlane_offload::{NetHeader, Prefix, Segments};
use rxlane_wire::emit::checksum::{Sum, fill, internet};
use rxlane_wire::ethernet::MacAddress;
use rxlane_wire::{Dissection, Fragment, IpProtocol, Link, dissect};
use std::collections::HashMap;

const MACS: [MacAddress; 2] = [MacAddress([2, 0, 0, 0, 0, 1]), MacAddress([2, 0, 0, 0, 0, 2])];

pub fn run(bytes: &[u8]) {
    match bytes.split_first() {
        Some((0..=127, rest)) => super_packet(rest),
        Some((_, rest)) => batch(rest),
        None => {}
    }
}

fn super_packet(bytes: &[u8]) {
    let Some((choices, rest)) = bytes.split_first() else { return };
    let Some((header, packet)) = rest.split_first_chunk() else { return };
    let mut header = NetHeader::parse(header);
    let mut packet = packet.to_vec();
    let seen = dissect(Link::Ip, &packet, packet.len());
    if choices & 1 != 0 && fix_partial(&seen, &mut packet, &mut header).is_none() {
        return;
    }
    let is_fixed = choices & 1 != 0;
    let text = ["none", "q:5", "ad:5,q:6,pppoe:7"][usize::from(choices >> 1) % 3];
    let Ok(encapsulation) = text.parse() else { return };
    let Ok(prefix) = Prefix::new(&encapsulation, MACS[0], MACS[1]) else { return };
    let before = packet.clone();
    let Ok(mut segments) = Segments::new(&prefix, &header, &mut packet) else {
        assert_eq!(before, packet);
        return;
    };
    let (left, length) = (segments.left(), segments.header_length());
    let (mut count, mut payload) = (0, Vec::new());
    let mut buffer = vec![0; length];
    while let Ok(Some(segment)) = segments.emit(&mut buffer) {
        count += 1;
        payload.extend_from_slice(segment.payload);
        let frame = [&buffer[..], segment.payload].concat();
        if header.is_super_packet() && before[0] >> 4 == 4 {
            let inner = &frame[prefix.length()..];
            assert!(verify_ipv4_header(&inner[..usize::from(inner[0] & 15) * 4]));
        }
        if is_fixed && header.is_super_packet() {
            assert_ne!(verify(&frame).transport, Verdict::Wrong, "{header:?}");
        }
    }
    assert_eq!(count, left);
    let kept = if header.is_super_packet() { length - prefix.length() } else { 0 };
    assert_eq!(payload.len(), packet.len() - kept);
    assert!(!header.is_super_packet() || payload == before[kept..]);
}

/// Makes the virtio header and the partial checksum what they should be for this packet, where it has no extension
/// headers.
fn fix_partial(seen: &Dissection, packet: &mut [u8], header: &mut NetHeader) -> Option<()> {
    let flow = seen.flow().filter(|flow| flow.has_ports() && seen.extensions().is_empty())?;
    let at = seen.transport_offset()?;
    let is_v4 = flow.source().is_ipv4();
    let (kind, offset) = match IpProtocol(flow.protocol()) {
        IpProtocol::TCP if is_v4 => (NetHeader::TCP_IPV4, 16),
        IpProtocol::TCP => (NetHeader::TCP_IPV6, 16),
        IpProtocol::UDP => (NetHeader::UDP, 6),
        _ => return None,
    };
    let length = packet.len() - at;
    let sum = Sum::pseudo_header(flow.source(), flow.destination(), IpProtocol(flow.protocol()), length)?;
    packet.get_mut(at + offset..)?.first_chunk_mut::<2>().map(|field| *field = sum.folded().to_be_bytes())?;
    *header = NetHeader {
        flags: NetHeader::NEEDS_CHECKSUM,
        gso_type: kind,
        header_length: header.header_length % (packet.len() as u16 + 1),
        gso_size: header.gso_size % 64,
        checksum_start: at as u16,
        checksum_offset: offset as u16,
    };
    Some(())
}

/// The frames that the steps describe, their checksums fixed unless a step says otherwise.
fn frames(mut steps: &[u8]) -> Vec<Vec<u8>> {
    let mut frames: Vec<Vec<u8>> = Vec::new();
    while let Some((step, rest)) = steps.split_first() {
        steps = rest;
        let mut frame = match (step % 4, frames.last()) {
            (0, _) | (_, None) => {
                let Some((length, rest)) = steps.split_first() else { break };
                let (frame, rest) = rest.split_at(usize::from(*length).min(rest.len()));
                steps = rest;
                frame.to_vec()
            }
            (kind, Some(last)) => {
                let mut frame = last.clone();
                go_on(&mut frame);
                if let (true, Some((at, rest))) = (kind == 3, steps.split_first()) {
                    let at = usize::from(*at) % frame.len().max(1);
                    if let Some(byte) = frame.get_mut(at) {
                        *byte ^= 1 << (step >> 2 & 7);
                    }
                    steps = rest;
                }
                frame
            }
        };
        if step & 0x80 == 0 {
            fill_checksums(&mut frame);
        }
        if step & 0x40 != 0 {
            frame.extend([0xee; 7]);
        }
        frames.push(frame);
        if frames.len() == 100 {
            break;
        }
    }
    frames
}

/// Makes a frame the next of its flow: sequence number and identification.
fn go_on(frame: &mut [u8]) {
    let seen = dissect(Link::Ethernet, frame, frame.len());
    let (Some(packet), Some(at), Some(network)) =
        (packet_of(frame), seen.transport_offset(), seen.network_offset())
    else {
        return;
    };
    let header = frame.get(at + 12).map_or(0, |byte| usize::from(byte >> 4) * 4);
    let payload = (network + packet.len()).saturating_sub(at + header) as u32;
    if seen.flow().is_some_and(|flow| flow.protocol() == IpProtocol::TCP.0)
        && let Some(place) = frame.get_mut(at + 4..).and_then(|rest| rest.first_chunk_mut::<4>())
    {
        *place = u32::from_be_bytes(*place).wrapping_add(payload).to_be_bytes();
    }
    if frame[network] >> 4 == 4
        && let Some(place) = frame.get_mut(network + 4..).and_then(|rest| rest.first_chunk_mut::<2>())
    {
        *place = u16::from_be_bytes(*place).wrapping_add(1).to_be_bytes();
    }
}

/// Fills in the checksums.
fn fill_checksums(frame: &mut [u8]) {
    let seen = dissect(Link::Ethernet, frame, frame.len());
    let (Some(flow), Some(network), None) = (seen.flow().copied(), seen.network_offset(), seen.error())
    else {
        return;
    };
    let Some(length) = packet_of(frame).map(<[u8]>::len) else { return };
    let packet = &mut frame[network..network + length];
    if packet[0] >> 4 == 4 {
        let header = &mut packet[..usize::from(flow_header(flow.source().is_ipv4(), network, &seen))];
        header[10..12].fill(0);
        let checksum = internet(header).to_be_bytes();
        header[10..12].copy_from_slice(&checksum);
    }
    if let Some(at) = seen.transport_offset().filter(|_| seen.fragment() == Fragment::None) {
        let _ =
            fill(flow.source(), flow.destination(), IpProtocol(flow.protocol()), &mut packet[at - network..]);
    }
}

/// Bytes of an IPv4 header: AH, which is an extension header here, counts to what is behind it.
fn flow_header(is_v4: bool, network: usize, seen: &Dissection) -> u16 {
    let at = seen.transport_offset().filter(|_| is_v4 && seen.extensions().is_empty());
    at.map_or(20, |at| (at - network).min(60) as u16)
}

/// The IP packet of a frame without padding, where its length is sound.
fn packet_of(frame: &[u8]) -> Option<&[u8]> {
    let seen = dissect(Link::Ethernet, frame, frame.len());
    let packet = frame.get(seen.network_offset()?..)?;
    let word = |at: usize| Some(usize::from(u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?])));
    let length = if packet.first()? >> 4 == 4 { word(2)? } else { 40 + word(4)? };
    packet.get(..length)
}

/// What identifies the link of a frame: stack, VLANs, labels, session.
fn link_of(seen: &Dissection, frame: &[u8]) -> impl Eq + std::hash::Hash + use<> {
    let vids: Vec<u16> = seen.tags(frame).map(|tag| tag.tci.vid()).collect();
    let type_at = 12 + 4 * vids.len();
    let network = seen.network_offset().unwrap_or_default();
    let rest = frame.get(type_at..network).unwrap_or_default();
    let labels: Vec<u32> = match rest {
        [0x88, 0x47 | 0x48, entries @ ..] => {
            entries.as_chunks::<4>().0.iter().map(|entry| u32::from_be_bytes(*entry) & 0xffff_f100).collect()
        }
        _ => Vec::new(),
    };
    let ethertype = rest.first_chunk::<2>().copied();
    (vids, seen.tpids(), ethertype, labels, seen.pppoe().map(|pppoe| pppoe.session))
}

fn batch(steps: &[u8]) {
    let frames = frames(steps);
    let mut coalescer = Coalescer::new(Limits::default());
    let (mut order, mut others) = (Vec::new(), Vec::new());
    for delivery in coalescer.coalesce(&frames) {
        let packet = match delivery {
            Delivery::Frame(number) => {
                others.push(number);
                continue;
            }
            Delivery::Packet(packet) => packet,
        };
        let mut bytes = packet.pieces().collect::<Vec<_>>().concat();
        assert_eq!(bytes.len(), packet.length());
        let numbers: Vec<usize> = packet.frames().collect();
        assert_eq!(numbers.len(), packet.segments());
        let segments = Segments::new(&Prefix::NONE, &packet.header(), &mut bytes);
        let mut segments = match segments {
            Ok(segments) if packet.has_fixed_identification() => segments.with_fixed_identification(),
            Ok(segments) => segments,
            Err(error) => panic!("{error}: {:?}", packet.header()),
        };
        let mut buffer = [0; 256];
        for number in &numbers {
            let Ok(Some(segment)) = segments.emit(&mut buffer) else { panic!("a segment is missing") };
            let again = [&buffer[..segment.header_length], segment.payload].concat();
            assert_eq!(Some(&again[..]), packet_of(&frames[*number]));
        }
        assert_eq!(segments.left(), 0);
        order.extend(numbers);
    }
    let mut last: HashMap<_, usize> = HashMap::new();
    for number in &order {
        let frame = &frames[*number];
        let seen = dissect(Link::Ethernet, frame, frame.len());
        if let Some(flow) = seen.flow().filter(|flow| flow.has_ports()) {
            let before = last.insert((*flow, link_of(&seen, frame)), *number);
            assert!(before < Some(*number), "{before:?} and {number}");
        }
    }
    order.extend(others);
    order.sort_unstable();
    assert_eq!(order, (0..frames.len()).collect::<Vec<_>>());
}
