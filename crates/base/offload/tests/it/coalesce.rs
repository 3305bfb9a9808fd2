//! What is coalesced and segmented again is what was received, and no flow loses its order.

use crate::packets::received::{Received, coalesce};
use crate::packets::{CWR, ECE, Spec, any_encapsulation, any_spec, complete_header, frame};
use proptest::prelude::*;
use rxlane_offload::coalesce::{Coalescer, Delivery, Limits};
use wire::emit::{Encapsulation, Tcp};

/// A sender whose packets become a stream, with everything that can happen to them.
#[derive(Debug)]
struct Sender {
    spec: Spec,
    encapsulation: Encapsulation,
    size: usize,
    fixed_identification: bool,
    flow: usize,
}

impl Sender {
    /// What arrives when `event` happens to the next packet of `length` bytes of payload.
    fn next(&mut self, event: u8, length: usize) -> Received {
        let mut spec = self.spec.clone();
        let payload: Vec<u8> = (0..length).map(|place| (place as u8) ^ spec.sequence as u8).collect();
        let mut advances = true;
        match event {
            // Lost before it came here.
            1 => self.advance(length),
            // Will be sent again.
            2 => advances = false,
            3 => spec.flags |= Tcp::PSH,
            4 => spec.flags |= Tcp::FIN,
            5 => spec.flags |= CWR,
            6 => spec.flags ^= ECE,
            7 => self.spec.acknowledgment = spec.acknowledgment.wrapping_add(1),
            8 => self.spec.window ^= 1,
            9 => self.spec.identification = spec.identification.wrapping_add(7),
            10 => self.spec.ttl ^= 1,
            11 => self.spec.traffic_class ^= 1,
            12 => spec.flags |= Tcp::SYN,
            13 => spec.urgent ^= 1,
            14 => self.spec.flow_label ^= 1,
            15 if !spec.tcp_options.is_empty() => self.spec.tcp_options[0] ^= 1,
            _ => {}
        }
        if event == 1 {
            spec = self.spec.clone();
        }
        let mut packet = spec.packet(&payload);
        match event {
            16 => *packet.last_mut().expect("bytes") ^= 1,
            17 if !spec.version_6 => packet[10] ^= 1,
            // A fragment, header checksum right.
            18 if !spec.version_6 => {
                packet[6] |= 0x20;
                complete_header(&mut packet);
            }
            _ => {}
        }
        if advances {
            self.advance(length);
        }
        let is_fragment = event == 18 && !spec.version_6 && spec.ip_options.is_empty();
        let mut frame = frame(&self.encapsulation, &packet);
        if event == 19 && !self.encapsulation.tags().is_empty() {
            frame[14] |= 0x20;
        }
        let padded = frame.len().max(if event == 20 { frame.len() + 9 } else { 60 });
        frame.resize(padded, 0xee);
        Received { frame, packet, flow: self.flow, is_fragment }
    }

    fn advance(&mut self, length: usize) {
        self.spec.sequence = self.spec.sequence.wrapping_add(length as u32);
        if !self.fixed_identification {
            self.spec.identification = self.spec.identification.wrapping_add(1);
        }
    }
}

fn any_sender() -> impl Strategy<Value = Sender> {
    (any_spec(), any_encapsulation(), 1..1448_usize, any::<bool>(), any::<bool>()).prop_map(
        |(spec, encapsulation, size, fixed_identification, plain)| {
            let mut spec = spec;
            spec.flags = Tcp::ACK;
            // Flows that share addresses, and most of them such as can be coalesced.
            spec.ends = (spec.ends.0 % 2, 2);
            if plain {
                spec.ip_options.clear();
            }
            Sender { spec, encapsulation, size, fixed_identification, flow: 0 }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn what_is_coalesced_segments_into_what_came(
        mut senders in proptest::collection::vec(any_sender(), 1..5),
        arrivals in proptest::collection::vec(
            (any::<proptest::sample::Index>(), prop_oneof![6 => Just(0_u8), 1 => 0..=20_u8], 0..8_u8, 0..20_u8), 1..80),
        limits in (1..70_u32, any::<bool>()),
    ) {
        for (flow, sender) in senders.iter_mut().enumerate() {
            sender.flow = flow;
            sender.spec.ports.0 = 1000 + flow as u16;
        }
        let mut received: Vec<Received> = Vec::new();
        for (sender, event, length, swap) in arrivals {
            let sender = sender.get_mut(&mut senders);
            let length = match length {
                0 => 0,
                1 => sender.size / 2,
                2 => sender.size + 1,
                _ => sender.size,
            };
            received.push(sender.next(event, length));
            let count = received.len();
            if swap == 0 && count > 1 {
                received.swap(count - 2, count - 1);
            }
        }
        let mut coalescer = Coalescer::new(Limits { segments: limits.0, udp: limits.1 });
        let delivered = coalesce(&mut coalescer, &received);
        for numbers in &delivered {
            prop_assert!(numbers.len() <= limits.0.max(1) as usize);
        }
        // A second batch finds nothing of the first.
        prop_assert_eq!(coalesce(&mut coalescer, &received), delivered);
    }
}

#[test]
fn thousands_of_flows_come_out_in_order() {
    let mut received = Vec::new();
    for round in 0..3_u16 {
        for flow in 0..3000_u16 {
            let (sequence, identification) = (1 + u32::from(round) * 20, 1 + round);
            let spec = Spec { ports: (flow, 443), sequence, identification, ..Spec::default() };
            received.push(Received::new(&Encapsulation::NONE, spec.packet(&[round as u8; 20]), flow.into()));
        }
    }
    // The check of the order is quadratic, the table is not.
    let frames: Vec<_> = received.iter().map(|received| &received.frame).collect();
    let mut coalescer = Coalescer::new(Limits::default());
    let mut last = vec![None; 3000];
    let mut count = 0;
    for delivery in coalescer.coalesce(&frames) {
        let Delivery::Packet(packet) = delivery else { panic!("a packet") };
        for number in packet.frames() {
            let flow = received[number].flow;
            assert!(last[flow] < Some(number));
            last[flow] = Some(number);
            count += 1;
        }
    }
    assert_eq!(count, 9000);
}
