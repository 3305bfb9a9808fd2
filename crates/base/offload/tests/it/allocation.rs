//! In steady state nothing is allocated.

use crate::packets::{MACS, Spec, frame};
use rxlane_offload::coalesce::{Coalescer, Delivery, Limits};
use rxlane_offload::{Prefix, Segments};
use testkit::allocations::{self, Counting};
use wire::emit::Encapsulation;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn nothing_is_allocated_once_a_batch_of_the_size_has_been_seen() {
    let encapsulation: Encapsulation = "ad:100,q:200,pppoe:5".parse().expect("an encapsulation");
    let frames: Vec<Vec<u8>> = (0..200_u16)
        .map(|number| {
            let (flow, turn) = (number % 7, number / 7);
            let spec = Spec {
                ports: (flow, 443),
                sequence: u32::from(turn) * 1000,
                identification: turn,
                ..Spec::default()
            };
            frame(&encapsulation, &spec.packet(&[1; 1000]))
        })
        .collect();
    let prefix = Prefix::new(&encapsulation, MACS[0], MACS[1]).expect("room");
    let (header, mut packet) = Spec::default().super_packet(&[1; 60000], 1440);
    let mut coalescer = Coalescer::new(Limits::default());
    let mut pass = || {
        let before = allocations::of_this_thread();
        let mut pieces = 0;
        for delivery in coalescer.coalesce(&frames) {
            let Delivery::Packet(packet) = delivery else { panic!("a packet") };
            pieces += packet.pieces().count();
        }
        let mut buffer = [0; 256];
        let mut segments = Segments::new(&prefix, &header, &mut packet).expect("good");
        while segments.emit(&mut buffer).expect("room").is_some() {}
        (allocations::of_this_thread() - before, pieces)
    };
    let (first, pieces) = pass();
    assert!(first > 0 && pieces == 200 + 7, "{first} allocations, {pieces} pieces");
    assert_eq!(pass(), (0, pieces));
}
