//! What a checksum becomes when a field changes (RFC 1624).

use super::Sum;

/// The checksum when `old` in what it covers becomes `new`: equation 3 of RFC 1624, HC' = ~(~HC + ~m + m'), where m is the
/// sum of a field of several words. Both have the same even length and start at an even place. Host order.
///
/// Where the sum comes out as zero, this gives 0x0000 or 0xffff as equation 3 does, and never what a receiver takes for
/// wrong, as equation 2 of RFC 1141 may.
#[inline]
pub fn update(checksum: u16, old: &[u8], new: &[u8]) -> u16 {
    debug_assert!(old.len() == new.len() && old.len().is_multiple_of(2), "a field keeps its even length");
    Sum::word(!checksum).plus(Sum::word(!Sum::of(old).folded())).plus(Sum::of(new)).checksum()
}
