//! DPDK's checksum, safe to call.

use crate::Inputs;

mod sys {
    unsafe extern "C" {
        pub fn dpdk_raw_cksum(inputs: *const u8, stride: i64, bytes: i64, count: i64) -> u16;
    }
}

/// `rte_raw_cksum` of every input, their sums XORed, as they lie in memory.
pub fn raw_cksum(inputs: &Inputs) -> u16 {
    let (bytes, stride, length, count) = inputs.parts();
    assert!(stride * (count - 1) + length <= bytes.len());
    // SAFETY: every input lies within `bytes`, as just checked.
    unsafe { sys::dpdk_raw_cksum(bytes.as_ptr(), stride as i64, length as i64, count as i64) }
}
