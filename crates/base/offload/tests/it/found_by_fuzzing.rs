//! What fuzzing found; the inputs are in `fuzz/regressions`.

use rxlane_offload::{NetHeader, Prefix, Segments};

/// A virtio header may name any place for the checksum, that of the IP version among them: the packet was changed, and
/// then refused, since it was looked at again.
#[test]
fn a_checksum_over_the_ip_version_is_written_once() {
    let header = NetHeader { flags: NetHeader::NEEDS_CHECKSUM, ..NetHeader::default() };
    let mut packet = [0x64, 1, 0, 0, 0];
    let mut segments = Segments::new(&Prefix::NONE, &header, &mut packet).expect("one segment");
    let segment = segments.emit(&mut []).expect("no headers").expect("one");
    assert_eq!(segment.payload, [0x9b, 0xfe, 0, 0, 0]);
    assert_eq!(segments.left(), 0);
}
