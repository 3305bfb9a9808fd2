//! Integers out of a byte slice, in the byte order that the file declares.

/// The 32-bit value at `at`. `BIG` says whether it is big endian.
#[inline(always)]
pub(crate) fn u32_at<const BIG: bool>(buf: &[u8], at: usize) -> Option<u32> {
    let raw = *buf.get(at..)?.first_chunk::<4>()?;
    Some(if BIG { u32::from_be_bytes(raw) } else { u32::from_le_bytes(raw) })
}

/// The 16-bit value at `at`. `BIG` says whether it is big endian.
#[inline(always)]
pub(crate) fn u16_at<const BIG: bool>(buf: &[u8], at: usize) -> Option<u16> {
    let raw = *buf.get(at..)?.first_chunk::<2>()?;
    Some(if BIG { u16::from_be_bytes(raw) } else { u16::from_le_bytes(raw) })
}

/// A 64-bit value whose two 32-bit halves are each in the file's byte order, the upper half first: the
/// timestamp of pcapng (draft-ietf-opsawg-pcapng section 4.3) and, read as seconds and fraction, of pcap.
#[inline(always)]
pub(crate) fn halves_at(big: bool, buf: &[u8], at: usize) -> Option<u64> {
    let raw = *buf.get(at..)?.first_chunk::<8>()?;
    Some(if big { u64::from_be_bytes(raw) } else { u64::from_le_bytes(raw).rotate_left(32) })
}
