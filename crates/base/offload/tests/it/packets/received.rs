//! Received frames, coalesced with everything checked that always holds.

use super::segments;
use rxlane_offload::coalesce::{Coalescer, Delivery};
use rxlane_offload::{NetHeader, Prefix};

/// A frame, and the IP packet in it without padding.
#[derive(Clone, Debug)]
pub struct Received {
    pub frame: Vec<u8>,
    pub packet: Vec<u8>,
    /// Packets with the same number must not overtake one another.
    pub flow: usize,
    pub is_fragment: bool,
}

/// Coalesces and gives the frames of each delivery, having checked that all frames come out once, that none overtakes
/// another of its flow, and that every packet, segmented again, is what was received.
pub fn coalesce(coalescer: &mut Coalescer, received: &[Received]) -> Vec<Vec<usize>> {
    let frames: Vec<&[u8]> = received.iter().map(|received| &received.frame[..]).collect();
    let mut delivered = Vec::new();
    for delivery in coalescer.coalesce(&frames) {
        let Delivery::Packet(packet) = delivery else { panic!("a frame without a packet") };
        let octets = packet.pieces().collect::<Vec<_>>().concat();
        assert_eq!(octets.len(), packet.length());
        assert_eq!(packet.frame(), packet.frames().next().expect("a first"));
        let numbers: Vec<usize> = packet.frames().collect();
        assert_eq!(numbers.len(), packet.segments());
        let fixed = packet.has_fixed_identification();
        let again = segments(&Prefix::NONE, &packet.header(), &octets, fixed);
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
