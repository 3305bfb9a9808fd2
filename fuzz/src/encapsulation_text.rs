//! Any text as an encapsulation: what is understood is printed and understood again, and a frame that is
//! written with it is dissected to that very encapsulation.

use rxlane_wire::emit::Encapsulation;
use rxlane_wire::ethernet::MacAddress;
use rxlane_wire::{IpVersion, Link, dissect};

pub fn run(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let encapsulation: Encapsulation = match text.parse() {
        Ok(encapsulation) => encapsulation,
        Err(error) => return assert!(!format!("{error}").is_empty()),
    };
    let printed = encapsulation.to_string();
    assert_eq!(printed.parse(), Ok(encapsulation), "{printed}");

    let mut frame = [0; 256];
    let (to, from) = (MacAddress([2, 0, 0, 0, 0, 1]), MacAddress([2, 0, 0, 0, 0, 2]));
    let length = encapsulation.emit(to, from, IpVersion::V4, 20, &mut frame).expect("256 bytes suffice");
    assert_eq!(length, encapsulation.length());
    frame[length] = 0x45;
    frame[length + 3] = 20;
    let frame = &frame[..length + 20];
    let seen = dissect(Link::Ethernet, frame, frame.len());
    assert_eq!(seen.error(), None, "{printed}");
    assert_eq!(seen.network_offset(), Some(length), "{printed}: {}", seen.stack());
    assert!(seen.tags(frame).eq(encapsulation.tags().iter().copied()), "{printed}");
    assert_eq!(seen.pppoe().is_some(), encapsulation.pppoe().is_some());
}
