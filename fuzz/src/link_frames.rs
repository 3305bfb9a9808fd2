//! Any bytes as a frame that a link receives, as what its interface hands over, and as a packet with TCP options: no
//! panic; what is refused is untouched; what is taken is a part of the frame that the other end would send so; lowering
//! the segment size keeps the sum of all bytes, and so a right checksum right.
//!
//! The first byte chooses the link, the others are the frame.

use rxlane_link::framing::{Form, Framing, Head};
use rxlane_link::mss::{Checksum, Clamp};
use rxlane_offload::checksum::Sum;
use rxlane_wire::ethernet::MacAddress;

const LOCAL: MacAddress = MacAddress([2, 0, 0x5e, 0, 0, 1]);
const PEER: MacAddress = MacAddress([2, 0, 0x5e, 0, 0, 2]);
const LINKS: [&str; 5] = ["q:35", "ad:100,q:200", "0x9100:5,q:6,q:7", "pppoe:7", "ad:100,q:200,pppoe:7"];

pub fn run(bytes: &[u8]) {
    let Some((choice, frame)) = bytes.split_first() else { return };
    let link = LINKS[usize::from(*choice) % LINKS.len()];
    received(&framing(link, LOCAL, PEER), &framing(link, PEER, LOCAL), frame);
    let mut head = Head::new();
    if let Ok(rest) = framing(link, LOCAL, PEER).encapsulate(frame, &mut head) {
        assert!(frame.ends_with(rest) && !head.bytes().is_empty());
    }
    lowered(frame);
}

fn framing(link: &str, local: MacAddress, peer: MacAddress) -> Framing {
    let text = if link.contains("pppoe") { format!("{link}@{peer}") } else { link.to_owned() };
    Framing::new(&text.parse().expect("an encapsulation"), local).expect("a link")
}

fn received(near: &Framing, far: &Framing, frame: &[u8]) {
    let mut bytes = frame.to_vec();
    let range = match near.decapsulate(&mut bytes) {
        Ok(range) => range,
        Err(_) => return assert_eq!(bytes, frame),
    };
    let taken = bytes.get(range).expect("a part of the frame").to_vec();
    let mut head = Head::new();
    let rest = far.encapsulate(&taken, &mut head).expect("the other end sends it");
    let mut again = [head.bytes(), rest].concat();
    assert!(again.len() <= frame.len());
    if near.form() == Form::Packets {
        assert!(frame.get(again.len() - taken.len()..again.len()) == Some(&taken[..]));
    }
    let range = near.decapsulate(&mut again).expect("taken again");
    assert_eq!(again.get(range), Some(&taken[..]));
}

fn lowered(packet: &[u8]) {
    let mut bytes = packet.to_vec();
    let is_lower = Clamp::for_mtu(1400).lower(&mut bytes, Checksum::Whole);
    assert_eq!(is_lower, bytes != packet);
    let sum = |bytes: &[u8]| Sum::of(bytes).folded() % 0xffff;
    assert_eq!(sum(packet), sum(&bytes));
    assert!(!Clamp::for_mtu(1400).lower(&mut bytes, Checksum::Whole), "once is enough");
}
