//! x86-64: AVX2 and AVX-512.

use crate::checksum::portable;
use std::arch::x86_64::*;

#[inline(always)]
pub(crate) fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2")
}

#[inline(always)]
pub(crate) fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw")
}

/// The sum with AVX2; `None` where this processor lacks it.
#[inline(always)]
pub(crate) fn avx2(bytes: &[u8]) -> Option<u64> {
    // SAFETY: the feature was found.
    has_avx2().then(|| unsafe { sum_avx2(bytes) })
}

/// The sum with AVX-512; `None` where this processor lacks it.
#[inline(always)]
pub(crate) fn avx512(bytes: &[u8]) -> Option<u64> {
    // SAFETY: the features were found.
    has_avx512().then(|| unsafe { sum_avx512(bytes) })
}

/// Chains of additions side by side: one would wait for itself, more take longer to gather than they save.
const WIDE: usize = 2;

#[target_feature(enable = "avx2")]
fn sum_avx2(bytes: &[u8]) -> u64 {
    let mut all = [_mm256_setzero_si256(); WIDE];
    let mut upper = all;
    let (blocks, rest) = bytes.as_chunks::<{ 32 * WIDE }>();
    for block in blocks {
        for ((vector, all), upper) in block.as_chunks().0.iter().zip(&mut all).zip(&mut upper) {
            add_256(vector, all, upper);
        }
    }
    let [mut all, all_2] = all;
    let [mut upper, upper_2] = upper;
    let (vectors, rest) = rest.as_chunks();
    for vector in vectors {
        add_256(vector, &mut all, &mut upper);
    }
    let all = _mm256_add_epi64(all, all_2);
    let upper = _mm256_add_epi64(upper, upper_2);
    let lower = _mm256_sub_epi64(all, _mm256_slli_epi64::<32>(upper));
    let total = _mm256_add_epi64(lower, upper);
    let total = _mm_add_epi64(_mm256_castsi256_si128(total), _mm256_extracti128_si256::<1>(total));
    let total = _mm_add_epi64(total, _mm_unpackhi_epi64(total, total));
    _mm_cvtsi128_si64(total) as u64 + portable::sum(rest)
}

#[target_feature(enable = "avx2")]
fn add_256(bytes: &[u8; 32], all: &mut __m256i, upper: &mut __m256i) {
    // SAFETY: 32 bytes are read where 32 are, at any alignment.
    let vector = unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) };
    *all = _mm256_add_epi64(*all, vector);
    *upper = _mm256_add_epi64(*upper, _mm256_srli_epi64::<32>(vector));
}

#[target_feature(enable = "avx512f,avx512bw")]
fn sum_avx512(bytes: &[u8]) -> u64 {
    let mut all = [_mm512_setzero_si512(); WIDE];
    let mut upper = all;
    let (blocks, rest) = bytes.as_chunks::<{ 64 * WIDE }>();
    for block in blocks {
        for ((vector, all), upper) in block.as_chunks::<64>().0.iter().zip(&mut all).zip(&mut upper) {
            // SAFETY: 64 bytes are read where 64 are, at any alignment.
            add_512(unsafe { _mm512_loadu_si512(vector.as_ptr().cast()) }, all, upper);
        }
    }
    // What is masked out of the last vector is zero and adds nothing.
    for (vector, (all, upper)) in rest.chunks(64).zip(all.iter_mut().zip(&mut upper)) {
        let mask = u64::MAX >> (64 - vector.len());
        // SAFETY: the mask has one bit for each byte of `vector`, of which there are 1 to 64, and no other byte is
        // read.
        add_512(unsafe { _mm512_maskz_loadu_epi8(mask, vector.as_ptr().cast()) }, all, upper);
    }
    let [all, all_2] = all;
    let [upper, upper_2] = upper;
    let all = _mm512_add_epi64(all, all_2);
    let upper = _mm512_add_epi64(upper, upper_2);
    let lower = _mm512_sub_epi64(all, _mm512_slli_epi64::<32>(upper));
    _mm512_reduce_add_epi64(_mm512_add_epi64(lower, upper)) as u64
}

#[target_feature(enable = "avx512f,avx512bw")]
fn add_512(vector: __m512i, all: &mut __m512i, upper: &mut __m512i) {
    *all = _mm512_add_epi64(*all, vector);
    *upper = _mm512_add_epi64(*upper, _mm512_srli_epi64::<32>(vector));
}
