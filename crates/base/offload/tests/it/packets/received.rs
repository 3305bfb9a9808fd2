//! Received frames, coalesced with everything checked that always holds.

use super::{CWR, ECE, Spec, URG, frame, segments};
use rxlane_offload::coalesce::{Coalescer, Delivery};
use rxlane_offload::{NetHeader, Prefix};
use wire::emit::{Encapsulation, Tcp};

/// A frame, and the IP packet in it without padding.
#[derive(Clone, Debug)]
pub struct Received {
    pub frame: Vec<u8>,
    pub packet: Vec<u8>,
    /// Packets with the same number must not overtake one another.
    pub flow: usize,
    pub is_fragment: bool,
}

impl Received {
    pub fn new(encapsulation: &Encapsulation, packet: Vec<u8>, flow: usize) -> Received {
        Received { frame: frame(encapsulation, &packet), packet, flow, is_fragment: false }
    }
}

/// Packets of one flow, each with its payload, behind one encapsulation.
pub fn stream(encapsulation: &str, specs: &[(Spec, Vec<u8>)]) -> Vec<Received> {
    let encapsulation = encapsulation.parse().expect("an encapsulation");
    specs.iter().map(|(spec, payload)| Received::new(&encapsulation, spec.packet(payload), 0)).collect()
}

/// `count` packets of so many bytes each in order, as a sender sends them.
pub fn in_order(spec: &Spec, count: u16, size: usize) -> Vec<(Spec, Vec<u8>)> {
    let each = (0..count).map(|number| {
        let mut spec = spec.clone();
        spec.sequence = spec.sequence.wrapping_add(u32::from(number) * size as u32);
        spec.identification = spec.identification.wrapping_add(number);
        (spec, vec![number as u8; size])
    });
    each.collect()
}

/// A change of the third of five TCP packets, by its name, and how many packets are then coalesced over IPv4 and over IPv6.
pub type Change = (&'static str, fn(&mut Spec, &mut Vec<u8>), &'static [usize], &'static [usize]);

/// The third packet stands alone.
const ALONE: &[usize] = &[2, 1, 2];
/// It is the last of one.
const LAST: &[usize] = &[3, 2];
/// It is no other than it was.
const ALL: &[usize] = &[5];

pub const CHANGES: [Change; 24] = [
    ("nothing", |_, _| {}, ALL, ALL),
    ("acknowledgment", |spec, _| spec.acknowledgment += 1, ALONE, ALONE),
    ("window", |spec, _| spec.window += 1, ALONE, ALONE),
    ("urgent pointer", |spec, _| spec.urgent += 1, ALONE, ALONE),
    ("option", |spec, _| spec.tcp_options = vec![1, 1, 0, 0], ALONE, ALONE),
    ("option length", |spec, _| spec.tcp_options = vec![1; 8], ALONE, ALONE),
    ("ECE", |spec, _| spec.flags |= ECE, ALONE, ALONE),
    ("CWR", |spec, _| spec.flags |= CWR, ALONE, ALONE),
    ("URG", |spec, _| spec.flags |= URG, ALONE, ALONE),
    ("SYN", |spec, _| spec.flags |= Tcp::SYN, ALONE, ALONE),
    ("RST", |spec, _| spec.flags |= Tcp::RST, ALONE, ALONE),
    ("FIN", |spec, _| spec.flags |= Tcp::FIN, LAST, LAST),
    ("PSH", |spec, _| spec.flags |= Tcp::PSH, LAST, LAST),
    ("gap", |spec, _| spec.sequence += 1, ALONE, ALONE),
    ("repetition", |spec, _| spec.sequence -= 100, ALONE, ALONE),
    ("TTL", |spec, _| spec.ttl -= 1, ALONE, ALONE),
    ("traffic class", |spec, _| spec.traffic_class = 4, ALONE, ALONE),
    ("DF", |spec, _| spec.dont_fragment = false, ALONE, ALL),
    ("identification", |spec, _| spec.identification += 1, &[2, 2, 1], ALL),
    ("shorter", |_, payload| payload.truncate(60), LAST, LAST),
    ("longer", |_, payload| payload.push(1), ALONE, ALONE),
    ("flow label", |spec, _| spec.flow_label = 5, ALL, ALONE),
    ("IP options", |spec, _| spec.ip_options = vec![1, 1, 1, 0], ALONE, ALL),
    ("extension header", |spec, _| spec.extensions.1 = Some(vec![1, 4, 0, 0, 0, 0]), ALL, ALONE),
];

/// Coalesces and gives the frames of each delivery, having checked that all frames come out once, that none overtakes
/// another of its flow, and that every packet, segmented again, is what was received.
pub fn coalesce(coalescer: &mut Coalescer, received: &[Received]) -> Vec<Vec<usize>> {
    let frames: Vec<&[u8]> = received.iter().map(|received| &received.frame[..]).collect();
    let mut delivered = Vec::new();
    for delivery in coalescer.coalesce(&frames) {
        let Delivery::Packet(packet) = delivery else { panic!("a frame without a packet") };
        let bytes = packet.pieces().collect::<Vec<_>>().concat();
        assert_eq!(bytes.len(), packet.length());
        assert_eq!(packet.frame(), packet.frames().next().expect("a first"));
        let numbers: Vec<usize> = packet.frames().collect();
        assert_eq!(numbers.len(), packet.segments());
        let fixed = packet.has_fixed_identification();
        let again = segments(&Prefix::NONE, &packet.header(), &bytes, fixed);
        let expected: Vec<_> = numbers.iter().map(|number| received[*number].packet.clone()).collect();
        assert_eq!(again, expected, "frames {numbers:?}");
        if numbers.len() == 1 {
            assert_eq!(packet.header(), NetHeader::default());
            assert_eq!(packet.pieces().len(), 1);
        } else {
            assert_eq!(packet.pieces().len(), numbers.len() + 1);
        }
        delivered.push(numbers);
    }
    let order: Vec<usize> = delivered.concat();
    let mut all = order.clone();
    all.sort_unstable();
    assert_eq!(all, (0..received.len()).collect::<Vec<_>>(), "every frame once");
    for (place, one) in order.iter().enumerate() {
        for other in &order[place + 1..] {
            let (first, second) = (&received[*one], &received[*other]);
            let is_bound = first.flow == second.flow
                || first.is_fragment && same_addresses(first, second)
                || second.is_fragment && same_addresses(first, second);
            assert!(!is_bound || one < other, "frame {one} came before frame {other}");
        }
    }
    delivered
}

fn same_addresses(one: &Received, other: &Received) -> bool {
    let addresses = |packet: &[u8]| packet[if packet[0] >> 4 == 4 { 12..20 } else { 8..40 }].to_vec();
    addresses(&one.packet) == addresses(&other.packet)
}
