//! The decision of `bpf/envelope.h`, in Rust: tests hold the program to it.

use crate::envelope_layout::{Kind, TAGS_MOST};

const MAC_HEADER: usize = 14;
const TAG: usize = 4;
/// PPPoE (RFC 2516 section 4) and the PPP protocol.
const SESSION: usize = 8;

/// What a frame is, and how many of its bytes are headers. `readable` is its beginning: all of it, or the first buffer of
/// a frame in several.
pub fn headers(readable: &[u8]) -> (Kind, usize) {
    let ethertype = |at: usize| readable.get(at..at + 2).map(|field| [field[0], field[1]]);
    let (mut kind, mut length) = (Kind::Untagged, MAC_HEADER);
    let mut next = ethertype(MAC_HEADER - 2);
    for _ in 0..TAGS_MOST {
        let is_tag = matches!(next, Some([0x81, 0] | [0x88, 0xa8] | [0x91, 0] | [0x92, 0] | [0x93, 0]));
        if !is_tag || readable.len() < length + TAG {
            break;
        }
        (kind, length) = (Kind::Tagged, length + TAG);
        next = ethertype(length - 2);
    }
    let session = readable.get(length..length + SESSION);
    match (next, session) {
        (Some([0x88, 0x64]), Some([0x11, 0, _, _, _, _, protocol, _])) if protocol & 1 == 0 => {
            (Kind::Pppoe, length + SESSION)
        }
        _ => (kind, length),
    }
}

/// What a frame of `length` bytes without FCS is, and whether it is refused where payloads have at most `limit`.
pub fn decide(readable: &[u8], length: usize, limit: u32) -> (Kind, bool) {
    let (kind, headers) = headers(readable);
    (kind, length as u64 > headers as u64 + u64::from(limit))
}
