//! Which vector instructions an x86-64 processor has, and the calls that depend on it.

use super::{batch, single};
use crate::HashKey;

/// Features of [`single::ssse3`].
pub(crate) fn has_pclmul() -> bool {
    is_x86_feature_detected!("pclmulqdq") && is_x86_feature_detected!("ssse3")
}

/// Features of [`single::gfni`] and [`batch`].
pub(crate) fn has_avx512() -> bool {
    has_pclmul()
        && is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("gfni")
        && is_x86_feature_detected!("vpclmulqdq")
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vbmi")
}

/// Key material of the vector paths.
#[derive(Clone)]
#[repr(C, align(64))]
pub(super) struct Keys {
    /// First key bits 32 to 95 from the start of each of four groups of 8 bytes of input; then for the same
    /// groups key bits 0 to 31 in the upper half and zeros in the lower.
    pub(super) later_earlier: [u64; 8],
    /// Key bits 0 to 63 from the start of each 4 bytes of input.
    pub(super) words: [u64; 9],
    /// What [`batch`] multiplies bytes with; built for that path alone.
    pub(super) matrices: Option<Box<batch::Matrices>>,
}

impl Keys {
    fn new(key: &HashKey) -> Keys {
        let later = |at: usize| key.word(at + 4);
        let earlier = |at: usize| key.word(at) & 0xffff_ffff_0000_0000;
        Keys {
            later_earlier: [
                later(0),
                later(8),
                later(16),
                later(24),
                earlier(0),
                earlier(8),
                earlier(16),
                earlier(24),
            ],
            words: [0, 4, 8, 12, 16, 20, 24, 28, 32].map(|at| key.word(at)),
            matrices: None,
        }
    }
}

/// Which features were found when the value was built.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    /// [`has_pclmul`].
    Pclmul,
    /// [`has_avx512`].
    Avx512,
}

/// A key prepared for the vector instructions of this processor.
#[derive(Clone)]
pub(crate) struct Simd {
    keys: Keys,
    level: Level,
}

/// The hashes of inputs of fixed length.
macro_rules! fixed {
    ($($name:ident: $length:literal;)*) => {$(
        #[inline(always)]
        pub(crate) fn $name(&self, input: &[u8; $length]) -> u32 {
            match self.level {
                // SAFETY: the level says that the features are there.
                Level::Avx512 => unsafe { single::gfni::$name(&self.keys, input) },
                // SAFETY: as above.
                Level::Pclmul => unsafe { single::ssse3::$name(&self.keys, input) },
            }
        }
    )*};
}

impl Simd {
    pub(crate) fn pclmul(key: &HashKey) -> Option<Simd> {
        has_pclmul().then(|| Simd { keys: Keys::new(key), level: Level::Pclmul })
    }

    pub(crate) fn vpclmul(key: &HashKey) -> Option<Simd> {
        has_avx512().then(|| Simd { keys: Keys::new(key), level: Level::Avx512 })
    }

    pub(crate) fn gfni(key: &HashKey) -> Option<Simd> {
        let mut simd = Simd::vpclmul(key)?;
        simd.keys.matrices = Some(Box::new(batch::Matrices::new(key)));
        Some(simd)
    }

    /// `input` is covered by `key`.
    pub(crate) fn hash(&self, key: &HashKey, input: &[u8]) -> u32 {
        // SAFETY: every level has PCLMULQDQ and SSSE3.
        unsafe { single::ssse3::hash(key, input) }
    }

    fixed! { hash_8: 8; hash_12: 12; hash_32: 32; hash_36: 36; }

    pub(crate) fn hash_batch_12(&self, inputs: &[[u8; 12]], hashes: &mut [u32]) {
        match (self.level, &self.keys.matrices) {
            // SAFETY: the level says that the features are there.
            (Level::Avx512, Some(matrices)) => unsafe { batch::matrices_12(matrices, inputs, hashes) },
            // SAFETY: as above.
            (Level::Avx512, None) => unsafe { batch::products_12(&self.keys, inputs, hashes) },
            // SAFETY: as above.
            (Level::Pclmul, _) => unsafe { single::ssse3::hash_batch_12(&self.keys, inputs, hashes) },
        }
    }

    pub(crate) fn hash_batch_36(&self, inputs: &[[u8; 36]], hashes: &mut [u32]) {
        match (self.level, &self.keys.matrices) {
            // SAFETY: the level says that the features are there.
            (Level::Avx512, Some(matrices)) => unsafe { batch::matrices_36(matrices, inputs, hashes) },
            // SAFETY: as above.
            (Level::Avx512, None) => unsafe { batch::products_36(&self.keys, inputs, hashes) },
            // SAFETY: as above.
            (Level::Pclmul, _) => unsafe { single::ssse3::hash_batch_36(&self.keys, inputs, hashes) },
        }
    }
}
