//! Checksums that a stack left for its card to finish.

use super::Sum;

/// Bytes of UDP in front of its checksum.
pub(crate) const UDP_OFFSET: usize = 6;

/// Completes a partial checksum in place and gives it, host order: `packet` from byte `start` on is summed, and the
/// complement of the sum is written `offset` bytes behind `start`.
///
/// The field holds the sum of the pseudo header beforehand, not complemented. This is what `CHECKSUM_PARTIAL` means in
/// Linux and `VIRTIO_NET_HDR_F_NEEDS_CSUM` in a virtio header (`csum_start`, `csum_offset`; virtio 1.2 section 5.1.6.2).
/// Where `offset` is that of UDP, zero is written as all ones (RFC 768). Linux does so whatever the protocol
/// (`skb_checksum_help`); a receiver takes both for the same.
///
/// Errors: the packet ends before `start` or before the end of the field; the field does not start at an even place.
/// The packet is then as it was.
pub fn complete(packet: &mut [u8], start: usize, offset: usize) -> Result<u16, PartialError> {
    let available = packet.len();
    let Some(summed) = packet.get_mut(start..) else {
        return Err(PartialError::Start { start, available });
    };
    if !offset.is_multiple_of(2) {
        return Err(PartialError::Odd { offset });
    }
    let sum = Sum::of(summed);
    let Some(field) = summed.get_mut(offset..).and_then(|rest| rest.first_chunk_mut::<2>()) else {
        return Err(PartialError::Field { start, offset, available });
    };
    let checksum = if offset == UDP_OFFSET { sum.udp_checksum() } else { sum.checksum() };
    *field = checksum.to_be_bytes();
    Ok(checksum)
}

/// Why a partial checksum cannot be completed. Numbers are bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message says what its values are")]
pub enum PartialError {
    #[error("the checksum starts at byte {start} of a packet of {available}")]
    Start { start: usize, available: usize },
    #[error("the checksum is {offset} bytes behind byte {start}, and the packet has {available}")]
    Field { start: usize, offset: usize, available: usize },
    #[error("the checksum is {offset} bytes behind the start of its sum, which is no whole number of words")]
    Odd { offset: usize },
}
