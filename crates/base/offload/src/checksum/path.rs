//! The ways of summing, and which of them this processor takes.

use super::portable;
use crate::simd;
use std::fmt;

/// A way of summing bytes. All give the same sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Path {
    /// 64-bit words, on any processor.
    Portable,
    /// Vectors of 256 bits (x86-64: AVX2).
    Avx2,
    /// Vectors of 512 bits, the last one masked (x86-64: AVX-512 F and BW).
    Avx512,
}

impl Path {
    /// All of them, slowest first.
    pub const ALL: [Path; 3] = [Path::Portable, Path::Avx2, Path::Avx512];

    /// Whether this processor can sum in this way.
    pub fn is_available(self) -> bool {
        match self {
            Path::Portable => true,
            Path::Avx2 => simd::has_avx2(),
            Path::Avx512 => simd::has_avx512(),
        }
    }

    /// What the processor needs, in words.
    pub const fn needs(self) -> &'static str {
        match self {
            Path::Portable => "nothing",
            Path::Avx2 => "AVX2",
            Path::Avx512 => "AVX-512 (F, BW)",
        }
    }

    pub(super) fn sum(self, bytes: &[u8]) -> Result<u64, PathUnavailable> {
        let sum = match self {
            Path::Portable => Some(portable::sum(bytes)),
            Path::Avx2 => simd::avx2(bytes),
            Path::Avx512 => simd::avx512(bytes),
        };
        sum.ok_or(PathUnavailable { path: self })
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Path::Portable => "portable",
            Path::Avx2 => "avx2",
            Path::Avx512 => "avx512",
        })
    }
}

/// This processor cannot sum in the way that was requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the {path} checksum needs {}, which this processor lacks", path.needs())]
pub struct PathUnavailable {
    /// The path that was requested.
    pub path: Path,
}

/// Bytes from which vectors pay for being gathered again.
const VECTORS_FROM: usize = 96;

/// The sum by the fastest path for this length.
#[inline]
pub(super) fn sum(bytes: &[u8]) -> u64 {
    if bytes.len() < VECTORS_FROM { portable::sum(bytes) } else { long(bytes) }
}

/// Not inlined: callers with short bytes should not carry it.
#[inline(never)]
fn long(bytes: &[u8]) -> u64 {
    simd::avx512(bytes).or_else(|| simd::avx2(bytes)).unwrap_or_else(|| portable::sum(bytes))
}
