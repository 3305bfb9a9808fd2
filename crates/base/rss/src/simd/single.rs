//! One hash at a time by carry-less multiplication.
//!
//! Bytes come from memory with the first in the lowest place, and within a byte the first bit is the
//! highest. With the bits of every byte reversed ("reflected"), input bit `i` has degree `i`. A key word
//! read as a big-endian number has its bit `m` at degree `63 - m`. Their product has
//! `Σ input[i] · key[i + j]` at degree `63 - j`, so the hash stands in bits 32 to 63 of the product, the
//! first bit highest, as a number should have it.
//!
//! Four bytes of input need 63 key bits, one multiplication. Eight bytes need 95: multiplied by key bits 0
//! to 31 they have their share of the hash in bits 32 to 63, by key bits 32 to 95 in bits 64 to 95
//! (`Keys::later_earlier`). The multiplications are as many either way; what differs is how many bytes one
//! load and one reflection serve.

use super::x86::Keys;
use std::arch::x86_64::*;

/// PCLMULQDQ and SSSE3.
pub(super) mod ssse3 {
    use super::*;
    use crate::HashKey;

    /// Reverses the bits of each byte by looking both halves up.
    #[inline]
    #[target_feature(enable = "ssse3")]
    fn reflect(bytes: __m128i) -> __m128i {
        let low_half = _mm_set1_epi8(0x0f);
        let to_high = _mm_setr_epi8(
            0x00, -0x80, 0x40, -0x40, 0x20, -0x60, 0x60, -0x20, 0x10, -0x70, 0x50, -0x30, 0x30, -0x50, 0x70,
            -0x10,
        );
        let to_low = _mm_setr_epi8(0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15);
        let low = _mm_and_si128(bytes, low_half);
        let high = _mm_and_si128(_mm_srli_epi16::<4>(bytes), low_half);
        _mm_or_si128(_mm_shuffle_epi8(to_high, low), _mm_shuffle_epi8(to_low, high))
    }

    /// Four bytes of input by the 64 key bits that start where they do: the hash in bits 32 to 63.
    #[inline]
    #[target_feature(enable = "pclmulqdq,ssse3")]
    fn product(bytes: [u8; 4], word: u64) -> __m128i {
        let input = reflect(_mm_cvtsi32_si128(i32::from_le_bytes(bytes)));
        _mm_clmulepi64_si128::<0x00>(input, _mm_cvtsi64_si128(word as i64))
    }

    /// Bits 32 to 63.
    #[inline]
    #[target_feature(enable = "pclmulqdq,ssse3")]
    fn value(product: __m128i) -> u32 {
        (_mm_cvtsi128_si64(product) as u64 >> 32) as u32
    }

    #[inline]
    #[target_feature(enable = "pclmulqdq,ssse3")]
    pub(in crate::simd) fn hash_8(keys: &Keys, input: &[u8; 8]) -> u32 {
        let [a, b, c, d, e, f, g, h] = *input;
        let first = product([a, b, c, d], keys.words[0]);
        value(_mm_xor_si128(first, product([e, f, g, h], keys.words[1])))
    }

    #[inline]
    #[target_feature(enable = "pclmulqdq,ssse3")]
    pub(in crate::simd) fn hash_12(keys: &Keys, input: &[u8; 12]) -> u32 {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = *input;
        let first = product([a, b, c, d], keys.words[0]);
        let second = product([e, f, g, h], keys.words[1]);
        let third = product([i, j, k, l], keys.words[2]);
        value(_mm_xor_si128(_mm_xor_si128(first, second), third))
    }

    /// Two byte groups of eight by the key: shares of the hash in bits 32 to 63 (first) and 64 to 95.
    #[inline]
    #[target_feature(enable = "pclmulqdq,ssse3")]
    fn products_16(bytes: &[u8; 16], earlier: [u64; 2], later: [u64; 2]) -> (__m128i, __m128i) {
        // SAFETY: the reference is to 16 bytes, and the load needs no alignment.
        let input = reflect(unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) });
        let earlier = _mm_set_epi64x(earlier[1] as i64, earlier[0] as i64);
        let later = _mm_set_epi64x(later[1] as i64, later[0] as i64);
        let low = _mm_xor_si128(
            _mm_clmulepi64_si128::<0x00>(input, earlier),
            _mm_clmulepi64_si128::<0x11>(input, earlier),
        );
        let high = _mm_xor_si128(
            _mm_clmulepi64_si128::<0x00>(input, later),
            _mm_clmulepi64_si128::<0x11>(input, later),
        );
        (low, high)
    }

    #[inline]
    #[target_feature(enable = "pclmulqdq,ssse3")]
    fn addresses_32(keys: &Keys, source: &[u8; 16], destination: &[u8; 16]) -> __m128i {
        let [l0, l1, l2, l3, e0, e1, e2, e3] = keys.later_earlier;
        let (low, high) = products_16(source, [e0, e1], [l0, l1]);
        let (low_2, high_2) = products_16(destination, [e2, e3], [l2, l3]);
        let high = _mm_xor_si128(high, high_2);
        _mm_xor_si128(_mm_xor_si128(low, low_2), _mm_slli_si128::<4>(_mm_srli_si128::<8>(high)))
    }

    #[inline]
    #[target_feature(enable = "pclmulqdq,ssse3")]
    pub(in crate::simd) fn hash_32(keys: &Keys, input: &[u8; 32]) -> u32 {
        match input.as_chunks().0 {
            [source, destination] => value(addresses_32(keys, source, destination)),
            _ => 0,
        }
    }

    #[inline]
    #[target_feature(enable = "pclmulqdq,ssse3")]
    pub(in crate::simd) fn hash_36(keys: &Keys, input: &[u8; 36]) -> u32 {
        match (input.as_chunks().0, input.last_chunk()) {
            ([source, destination], Some(ports)) => {
                let ports = product(*ports, keys.words[8]);
                value(_mm_xor_si128(addresses_32(keys, source, destination), ports))
            }
            _ => 0,
        }
    }

    #[target_feature(enable = "pclmulqdq,ssse3")]
    pub(in crate::simd) fn hash_batch_12(keys: &Keys, inputs: &[[u8; 12]], hashes: &mut [u32]) {
        for (hash, input) in hashes.iter_mut().zip(inputs) {
            *hash = hash_12(keys, input);
        }
    }

    #[target_feature(enable = "pclmulqdq,ssse3")]
    pub(in crate::simd) fn hash_batch_36(keys: &Keys, inputs: &[[u8; 36]], hashes: &mut [u32]) {
        for (hash, input) in hashes.iter_mut().zip(inputs) {
            *hash = hash_36(keys, input);
        }
    }

    /// Any length that the key covers, four bytes at a time; zeros behind the end add nothing.
    #[target_feature(enable = "pclmulqdq,ssse3")]
    pub(in crate::simd) fn hash(key: &HashKey, input: &[u8]) -> u32 {
        let mut sum = _mm_setzero_si128();
        for (at, bytes) in (0..).step_by(4).zip(input.chunks(4)) {
            let mut four = [0; 4];
            four.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
            sum = _mm_xor_si128(sum, product(four, key.word(at)));
        }
        value(sum)
    }
}

/// GFNI for the reflection, VPCLMULQDQ and AVX-512 for the addresses of IPv6.
///
/// A function with a `target_feature` is not inlined into one without, and a call costs about as much as half
/// a hash of twelve bytes. The two instructions that such a hash needs are therefore written as inline
/// assembly, which is inlined everywhere.
pub(super) mod gfni {
    use super::*;
    use std::arch::asm;

    /// The bit matrix that reverses the bits of a byte.
    const REVERSAL: i64 = 0x8040_2010_0804_0201_u64 as i64;

    /// Reverses the bits of each byte.
    ///
    /// # Safety
    ///
    /// The processor has GFNI and AVX.
    #[inline(always)]
    unsafe fn reflect(bytes: __m128i) -> __m128i {
        let reflected;
        // SAFETY: the caller vouches for the instruction; it reads and writes these registers alone.
        unsafe {
            asm!(
                "vgf2p8affineqb {reflected}, {bytes}, {matrix}, 0",
                reflected = lateout(xmm_reg) reflected,
                bytes = in(xmm_reg) bytes,
                matrix = in(xmm_reg) _mm_set1_epi64x(REVERSAL),
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        reflected
    }

    /// Four bytes of input by the 64 key bits that start where they do: the hash in bits 32 to 63.
    ///
    /// # Safety
    ///
    /// The processor has GFNI, PCLMULQDQ and AVX.
    #[inline(always)]
    unsafe fn product(bytes: [u8; 4], word: u64) -> __m128i {
        // SAFETY: the caller vouches for the features.
        let input = unsafe { reflect(_mm_cvtsi32_si128(i32::from_le_bytes(bytes))) };
        let product;
        // SAFETY: the caller vouches for the instruction; it reads and writes these registers alone.
        unsafe {
            asm!(
                "vpclmulqdq {product}, {input}, {word}, 0",
                product = lateout(xmm_reg) product,
                input = in(xmm_reg) input,
                word = in(xmm_reg) _mm_cvtsi64_si128(word as i64),
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        product
    }

    /// Bits 32 to 63.
    #[inline(always)]
    fn value(product: __m128i) -> u32 {
        // SAFETY: SSE2 belongs to every x86-64.
        (unsafe { _mm_cvtsi128_si64(product) } as u64 >> 32) as u32
    }

    #[inline(always)]
    fn xor(a: __m128i, b: __m128i) -> __m128i {
        // SAFETY: SSE2 belongs to every x86-64.
        unsafe { _mm_xor_si128(a, b) }
    }

    /// # Safety
    ///
    /// The processor has GFNI, PCLMULQDQ and AVX.
    #[inline(always)]
    pub(in crate::simd) unsafe fn hash_8(keys: &Keys, input: &[u8; 8]) -> u32 {
        let [a, b, c, d, e, f, g, h] = *input;
        // SAFETY: the caller vouches for the features.
        let (first, second) =
            unsafe { (product([a, b, c, d], keys.words[0]), product([e, f, g, h], keys.words[1])) };
        value(xor(first, second))
    }

    /// # Safety
    ///
    /// The processor has GFNI, PCLMULQDQ and AVX.
    #[inline(always)]
    pub(in crate::simd) unsafe fn hash_12(keys: &Keys, input: &[u8; 12]) -> u32 {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = *input;
        // SAFETY: the caller vouches for the features.
        let (first, second, third) = unsafe {
            (
                product([a, b, c, d], keys.words[0]),
                product([e, f, g, h], keys.words[1]),
                product([i, j, k, l], keys.words[2]),
            )
        };
        value(xor(xor(first, second), third))
    }

    /// Sums of the four groups of eight bytes; the hash in bits 32 to 63. The input stands twice in the
    /// vector, once for each half of the key bits that a group needs.
    #[inline]
    #[target_feature(enable = "vpclmulqdq,gfni,avx2,avx512f,avx512vl")]
    fn addresses_32(keys: &Keys, input: &[u8; 32]) -> __m128i {
        // SAFETY: the references are to 32 and 64 bytes, and the loads need no alignment.
        let (input, parts) = unsafe {
            (
                _mm256_loadu_si256(input.as_ptr().cast()),
                _mm512_loadu_si512(keys.later_earlier.as_ptr().cast()),
            )
        };
        let input =
            _mm512_gf2p8affine_epi64_epi8::<0>(_mm512_broadcast_i64x4(input), _mm512_set1_epi64(REVERSAL));
        let sum = _mm512_xor_si512(
            _mm512_clmulepi64_epi128::<0x00>(input, parts),
            _mm512_clmulepi64_epi128::<0x11>(input, parts),
        );
        // Later key bits have their share in bits 64 to 95 of each lane, earlier ones in 32 to 63.
        let later = _mm256_shuffle_epi32::<0b10_10_10_10>(_mm512_castsi512_si256(sum));
        let sum = _mm256_xor_si256(later, _mm512_extracti64x4_epi64::<1>(sum));
        _mm_xor_si128(_mm256_castsi256_si128(sum), _mm256_extracti128_si256::<1>(sum))
    }

    #[inline]
    #[target_feature(enable = "vpclmulqdq,gfni,avx2,avx512f,avx512vl")]
    pub(in crate::simd) fn hash_32(keys: &Keys, input: &[u8; 32]) -> u32 {
        value(addresses_32(keys, input))
    }

    #[inline]
    #[target_feature(enable = "pclmulqdq,vpclmulqdq,gfni,avx2,avx512f,avx512vl")]
    pub(in crate::simd) fn hash_36(keys: &Keys, input: &[u8; 36]) -> u32 {
        match (input.first_chunk(), input.last_chunk()) {
            (Some(addresses), Some(ports)) => {
                // SAFETY: this function has the features.
                let ports = unsafe { product(*ports, keys.words[8]) };
                value(_mm_xor_si128(addresses_32(keys, addresses), ports))
            }
            _ => 0,
        }
    }
}
