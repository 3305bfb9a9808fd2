//! The sum on any processor.

/// The sum of `bytes` as words of memory order, not folded.
///
/// 64-bit words are added without their carries, and their upper halves again by themselves: what the upper halves
/// make of the first sum is then known and taken off. Three operations a word, none of which waits for a carry, so
/// that compilers make vectors of it.
#[inline]
pub(crate) fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let (mut all, mut upper) = (0_u64, 0_u64);
    for word in words {
        let word = u64::from_ne_bytes(*word);
        all = all.wrapping_add(word);
        upper += word >> 32;
    }
    halves(all, upper) + last(rest)
}

/// From the sum of words modulo 2^64 and the sum of their upper halves to the sum of all halves. Below 2^63 for
/// fewer than 2^30 words.
#[inline(always)]
const fn halves(all: u64, upper: u64) -> u64 {
    all.wrapping_sub(upper << 32) + upper
}

/// The sum of fewer than eight bytes.
#[inline(always)]
fn last(bytes: &[u8]) -> u64 {
    let (fours, rest) = bytes.as_chunks::<4>();
    let (twos, rest) = rest.as_chunks::<2>();
    let mut sum = 0;
    if let [four] = fours {
        sum += u64::from(u32::from_ne_bytes(*four));
    }
    if let [two] = twos {
        sum += u64::from(u16::from_ne_bytes(*two));
    }
    if let [one] = rest {
        sum += u64::from(u16::from_ne_bytes([*one, 0]));
    }
    sum
}
