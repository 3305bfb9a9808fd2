//! Inputs on which an assertion of a fuzz target once failed (`fuzz/regressions/`), with what was wrong.

use rxlane_wire::error::{Field, Layer, Rule};
use rxlane_wire::{Link, dissect};

/// A serial line's frame that consists of a compressed protocol field and of which nothing was captured: the
/// frame was said to end within the two bytes of the field, where one byte would have done.
#[test]
fn nothing_captured_of_a_frame_of_one_octet_is_the_captures_fault() {
    let input = include_bytes!("../../../../../fuzz/regressions/dissect/ppp-nothing-captured");
    let frame = &input[4..];
    assert_eq!(dissect(Link::Ppp, frame, 1).error(), None);
    let error = *dissect(Link::Ppp, &[], 1).error().expect("nothing is there");
    assert_eq!((error.layer, error.rule, error.found, error.limit), (Layer::Ppp, Rule::CaptureCut, 0, 1));
}

/// A PADI captured in part: the tag at the cut was said to exceed the packet.
#[test]
fn a_discovery_tag_cut_by_the_capture_is_the_captures_fault() {
    let input = include_bytes!("../../../../../fuzz/regressions/dissect/pppoe-tag-cut-by-capture");
    let frame = &input[4..];
    assert_eq!(dissect(Link::Ethernet, frame, frame.len()).error(), None);
    let error = *dissect(Link::Ethernet, &frame[..35], frame.len()).error().expect("seven bytes of twelve");
    assert_eq!((error.layer, error.field, error.rule), (Layer::PppoeTag, Field::Length, Rule::CaptureCut));
    assert_eq!((error.offset, error.found, error.limit), (24, 7, 12));
}

/// One whose tag is longer than its packet stays wrong, however little was captured, and is measured against
/// the packet.
#[test]
fn a_discovery_tag_longer_than_the_packet_exceeds_it_whatever_was_captured() {
    let mut frame =
        include_bytes!("../../../../../fuzz/regressions/dissect/pppoe-tag-cut-by-capture")[4..].to_vec();
    frame[27] = 17;
    for captured in [35, frame.len()] {
        let error = *dissect(Link::Ethernet, &frame[..captured], frame.len()).error().expect("17 of 16");
        assert_eq!((error.layer, error.rule), (Layer::PppoeTag, Rule::Exceeds), "{captured}: {error}");
        assert_eq!((error.offset, error.found, error.limit), (24, 17, 16), "{captured}: {error}");
    }
}
