//! Many hashes at once with 512-bit vectors, 16 inputs a turn.
//!
//! # Packed inputs to columns
//!
//! Sixteen inputs of `n` words of 4 bytes (`n` = 3 or 9) fill `n` vectors exactly; word `c` of input `t` is
//! word `n·t + c` of that memory. What follows wants the words of one column together: a vector with word
//! `c` of every input. Since `n` is odd, `n·t + c` modulo 16 takes every value once as `t` runs: the
//! words of a column lie in the `n` vectors at sixteen different places of the vector. So a column is put
//! together by blending, without moving any word to another place: place `s` of column `c` comes from vector
//! `k` with `16·k + s = c` modulo `n`. For `n` = 3 that is a rotation of the three vectors by `s`; for `n` = 9,
//! with the vectors renamed, a rotation of nine by `s`, done in two steps of three. The words of a column
//! then stand in an order that depends on `c`, which the permutation that is needed anyway sets right.
//!
//! # Matrices
//!
//! Hash byte `o` is the sum over input bytes `b` of an 8×8 bit matrix times the byte, and the matrix
//! depends on `b + o` alone ("Toeplitz"): row `r` holds the 8 key bits from `8·(b + o) + r` on. The
//! permutation lays byte `b` of the sixteen inputs of a column side by side, and one GF2P8AFFINEQB
//! multiplies 64 bytes, four of each input.
//!
//! # Products
//!
//! The other way multiplies words by key bits as in [`super::single`], eight words of a vector one by one.

use super::x86::Keys;
use crate::HashKey;
use std::arch::x86_64::*;

const INPUTS: usize = 16;

/// Matrix for input byte `b` and hash byte `o` at `b + o`, laid out for GF2P8AFFINEQB: for the four bytes
/// of a column, each twice, since 16 bytes of each position stand side by side.
#[repr(C, align(64))]
#[derive(Clone)]
pub(super) struct Matrices([[u64; 8]; 36]);

/// The bit matrix, as GF2P8AFFINEQB takes it, that multiplies an input byte into a hash byte; `at` is the sum
/// of their positions. Row `r` holds the 8 key bits from `8·at + r` on and stands in byte `r`.
fn matrix(key: &HashKey, at: usize) -> u64 {
    let bits = key.word(at);
    (0..8).fold(0, |matrix, r| matrix | (bits << r >> 56) << (8 * r))
}

impl Matrices {
    pub(super) fn new(key: &HashKey) -> Matrices {
        let mut all = [[0; 8]; 36];
        for (at, row) in all.iter_mut().enumerate() {
            for (i, place) in row.iter_mut().enumerate() {
                *place = matrix(key, at + i / 2);
            }
        }
        Matrices(all)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn at(&self, at: usize) -> __m512i {
        // SAFETY: indexing has checked the bound; the row is 64 bytes, aligned by the type.
        unsafe { _mm512_load_si512(self.0[at].as_ptr().cast()) }
    }
}

/// 64 bytes for a permutation.
#[repr(C, align(64))]
struct Bytes([u8; 64]);

/// Sixteen words for a permutation.
#[repr(C, align(64))]
struct Words([u32; 16]);

impl Bytes {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load(&self) -> __m512i {
        // SAFETY: 64 bytes, aligned by the type.
        unsafe { _mm512_load_si512(self.0.as_ptr().cast()) }
    }
}

impl Words {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load(&self) -> __m512i {
        // SAFETY: 64 bytes, aligned by the type.
        unsafe { _mm512_load_si512(self.0.as_ptr().cast()) }
    }
}

/// Per column of `N`: byte `b` of input `t` to place `16·b + t`.
const fn byte_order<const N: usize>() -> [Bytes; N] {
    let mut orders = [const { Bytes([0; 64]) }; N];
    let mut c = 0;
    while c < N {
        let mut place = 0;
        while place < 64 {
            let (b, t) = (place / 16, place % 16);
            orders[c].0[place] = (4 * ((N * t + c) % 16) + b) as u8;
            place += 1;
        }
        c += 1;
    }
    orders
}

/// Per column of `N`: the word of input `t` to place `t`.
const fn word_order<const N: usize>() -> [Words; N] {
    let mut orders = [const { Words([0; 16]) }; N];
    let mut c = 0;
    while c < N {
        let mut t = 0;
        while t < 16 {
            orders[c].0[t] = ((N * t + c) % 16) as u32;
            t += 1;
        }
        c += 1;
    }
    orders
}

/// Byte `o` of hash `t` from place `16·o + t`, most significant byte last (little-endian number).
const fn hash_order() -> Bytes {
    let mut order = Bytes([0; 64]);
    let mut place = 0;
    while place < 64 {
        order.0[place] = (16 * (3 - place % 4) + place / 4) as u8;
        place += 1;
    }
    order
}

static BYTES_OF_3: [Bytes; 3] = byte_order();
static BYTES_OF_9: [Bytes; 9] = byte_order();
static WORDS_OF_3: [Words; 3] = word_order();
static WORDS_OF_9: [Words; 9] = word_order();
static HASH_ORDER: Bytes = hash_order();

/// Places `s` of 16 with `s mod modulus / divisor mod 3` equal to `remainder`.
const fn places(modulus: usize, divisor: usize, remainder: usize) -> __mmask16 {
    let mut mask = 0;
    let mut s = 0;
    while s < 16 {
        if s % modulus / divisor % 3 == remainder {
            mask |= 1 << s;
        }
        s += 1;
    }
    mask
}

/// The first `count` words of a vector (any number: 16 and more are all).
const fn first_words(count: usize) -> __mmask16 {
    if count >= 16 { !0 } else { (1 << count) - 1 }
}

/// `N` vectors from the first `words` words at `from`; zeros behind them.
///
/// # Safety
///
/// `from` points at `words` readable words.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load<const N: usize>(from: *const u8, words: usize) -> [__m512i; N] {
    let mut vectors = [_mm512_setzero_si512(); N];
    for (k, vector) in vectors.iter_mut().enumerate() {
        let mask = first_words(words.saturating_sub(16 * k));
        // SAFETY: the mask keeps the load within `words`; a word masked out is not read.
        *vector = unsafe { _mm512_maskz_loadu_epi32(mask, from.wrapping_add(64 * k).cast()) };
    }
    vectors
}

/// `N` vectors from `from`.
///
/// # Safety
///
/// `from` points at `64 * N` readable bytes.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load_whole<const N: usize>(from: *const u8) -> [__m512i; N] {
    let mut vectors = [_mm512_setzero_si512(); N];
    for (k, vector) in vectors.iter_mut().enumerate() {
        // SAFETY: the caller vouches for `N` times 64 bytes; the load needs no alignment.
        *vector = unsafe { _mm512_loadu_si512(from.add(64 * k).cast()) };
    }
    vectors
}

/// `vectors[j]` where neither mask is set, `vectors[j - step]` under the first, `vectors[j - 2·step]` under the
/// second, indices modulo their number.
#[inline]
#[target_feature(enable = "avx512f")]
fn rotate<const N: usize>(
    vectors: [__m512i; N],
    step: usize,
    once: __mmask16,
    twice: __mmask16,
) -> [__m512i; N] {
    let mut rotated = vectors;
    for (j, place) in rotated.iter_mut().enumerate() {
        let first = _mm512_mask_blend_epi32(once, vectors[j], vectors[(j + N - step) % N]);
        *place = _mm512_mask_blend_epi32(twice, first, vectors[(j + 2 * (N - step)) % N]);
    }
    rotated
}

#[inline]
#[target_feature(enable = "avx512f")]
fn columns_of_3(vectors: [__m512i; 3]) -> [__m512i; 3] {
    rotate(vectors, 1, const { places(3, 1, 1) }, const { places(3, 1, 2) })
}

#[inline]
#[target_feature(enable = "avx512f")]
fn columns_of_9(vectors: [__m512i; 9]) -> [__m512i; 9] {
    // 16·k = 7·k modulo 9, and 4·7 = 1: vector 4·j takes the name j.
    let [v0, v1, v2, v3, v4, v5, v6, v7, v8] = vectors;
    let renamed = [v0, v4, v8, v3, v7, v2, v6, v1, v5];
    let units = rotate(renamed, 1, const { places(9, 1, 1) }, const { places(9, 1, 2) });
    rotate(units, 3, const { places(9, 3, 1) }, const { places(9, 3, 2) })
}

#[inline]
#[target_feature(enable = "avx512f")]
fn sum(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
    _mm512_ternarylogic_epi64::<0x96>(a, b, c)
}

/// Each of `bytes` sums hash byte `o` in four lanes, one per byte of a word: adds the lanes up and puts the
/// bytes of each hash together.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn hashes_of_lanes(bytes: [__m512i; 4]) -> __m512i {
    let [a, b, c, d] = bytes;
    let ab = _mm512_xor_si512(_mm512_shuffle_i64x2::<0x44>(a, b), _mm512_shuffle_i64x2::<0xee>(a, b));
    let cd = _mm512_xor_si512(_mm512_shuffle_i64x2::<0x44>(c, d), _mm512_shuffle_i64x2::<0xee>(c, d));
    let all = _mm512_xor_si512(_mm512_shuffle_i64x2::<0x88>(ab, cd), _mm512_shuffle_i64x2::<0xdd>(ab, cd));
    _mm512_permutexvar_epi8(HASH_ORDER.load(), all)
}

/// Columns in byte order times their matrices, for hash byte `o`.
#[inline]
#[target_feature(enable = "avx512f,gfni")]
fn multiply<const N: usize>(matrices: &Matrices, columns: &[__m512i; N], o: usize) -> __m512i {
    let mut total = _mm512_setzero_si512();
    for three in 0..N / 3 {
        let term = |c: usize| _mm512_gf2p8affine_epi64_epi8::<0>(columns[c], matrices.at(4 * c + o));
        let (a, b, c) = (term(3 * three), term(3 * three + 1), term(3 * three + 2));
        total = if three == 0 { sum(a, b, c) } else { _mm512_xor_si512(total, sum(a, b, c)) };
    }
    total
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
fn by_matrices<const N: usize>(
    matrices: &Matrices,
    mut columns: [__m512i; N],
    orders: &[Bytes; N],
) -> __m512i {
    for (column, order) in columns.iter_mut().zip(orders) {
        *column = _mm512_permutexvar_epi8(order.load(), *column);
    }
    hashes_of_lanes([0, 1, 2, 3].map(|o| multiply(matrices, &columns, o)))
}

/// Hashes sixteen inputs of `$n` words at a time with `$hash`, and what is left over with masks.
macro_rules! turns {
    ($n:literal, $inputs:ident, $hashes:ident, $hash:expr) => {{
        let count = $inputs.len().min($hashes.len());
        let (inputs, hashes) = (&$inputs[..count], &mut $hashes[..count]);
        let (input_turns, inputs) = inputs.as_chunks::<INPUTS>();
        let (hash_turns, hashes) = hashes.as_chunks_mut::<INPUTS>();
        for (inputs, hashes) in input_turns.iter().zip(hash_turns) {
            // SAFETY: sixteen inputs of `$n` words are `$n` vectors.
            let vectors: [__m512i; $n] = unsafe { load_whole(inputs.as_ptr().cast()) };
            let values = $hash(vectors);
            // SAFETY: sixteen hashes are one vector; the store needs no alignment.
            unsafe { _mm512_storeu_si512(hashes.as_mut_ptr().cast(), values) };
        }
        if !hashes.is_empty() {
            // SAFETY: as many inputs are left as hashes, each of `$n` words.
            let vectors: [__m512i; $n] = unsafe { load(inputs.as_ptr().cast(), $n * hashes.len()) };
            let values = $hash(vectors);
            let mask = first_words(hashes.len());
            // SAFETY: the mask keeps the store within the hashes that are left.
            unsafe { _mm512_mask_storeu_epi32(hashes.as_mut_ptr().cast(), mask, values) };
        }
    }};
}

/// Batch of IPv4 addresses and ports by matrices.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
pub(super) fn matrices_12(matrices: &Matrices, inputs: &[[u8; 12]], hashes: &mut [u32]) {
    turns!(3, inputs, hashes, |vectors| by_matrices(matrices, columns_of_3(vectors), &BYTES_OF_3));
}

/// Batch of IPv6 addresses and ports by matrices.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
pub(super) fn matrices_36(matrices: &Matrices, inputs: &[[u8; 36]], hashes: &mut [u32]) {
    turns!(9, inputs, hashes, |vectors| by_matrices(matrices, columns_of_9(vectors), &BYTES_OF_9));
}

/// Columns in word order by carry-less multiplication.
#[inline]
#[target_feature(enable = "avx512f,vpclmulqdq,gfni")]
fn by_products<const N: usize>(words: &[u64; 9], columns: [__m512i; N], orders: &[Words; N]) -> __m512i {
    let reversal = _mm512_set1_epi64(0x8040_2010_0804_0201_u64 as i64);
    let low_half = _mm512_set1_epi64(0xffff_ffff);
    let mut sums = [_mm512_setzero_si512(); 4];
    for ((column, order), word) in columns.into_iter().zip(orders).zip(words) {
        let column = _mm512_permutexvar_epi32(order.load(), column);
        let column = _mm512_gf2p8affine_epi64_epi8::<0>(column, reversal);
        // One word to an operand of 64 bits: the even ones, the odd ones.
        let even = _mm512_and_si512(column, low_half);
        let odd = _mm512_srli_epi64::<32>(column);
        let word = _mm512_set1_epi64(*word as i64);
        let products = [
            _mm512_clmulepi64_epi128::<0x00>(even, word),
            _mm512_clmulepi64_epi128::<0x01>(even, word),
            _mm512_clmulepi64_epi128::<0x00>(odd, word),
            _mm512_clmulepi64_epi128::<0x01>(odd, word),
        ];
        for (sum, product) in sums.iter_mut().zip(products) {
            *sum = _mm512_xor_si512(*sum, product);
        }
    }
    // The hash stands in bits 32 to 63 of each lane.
    let [first, third, second, fourth] = sums;
    let even = _mm512_srli_epi64::<32>(_mm512_unpacklo_epi64(first, third));
    let odd = _mm512_unpacklo_epi64(second, fourth);
    _mm512_mask_blend_epi32(0xaaaa, even, odd)
}

/// Batch of IPv4 addresses and ports by products.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,vpclmulqdq,gfni")]
pub(super) fn products_12(keys: &Keys, inputs: &[[u8; 12]], hashes: &mut [u32]) {
    turns!(3, inputs, hashes, |vectors| by_products(&keys.words, columns_of_3(vectors), &WORDS_OF_3));
}

/// Batch of IPv6 addresses and ports by products.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,vpclmulqdq,gfni")]
pub(super) fn products_36(keys: &Keys, inputs: &[[u8; 36]], hashes: &mut [u32]) {
    turns!(9, inputs, hashes, |vectors| by_products(&keys.words, columns_of_9(vectors), &WORDS_OF_9));
}
