//! The Toeplitz hash, prepared for a key and computed in the fastest way this processor has.

use crate::simd::{self, Simd};
use crate::tables::Tables;
use crate::{HashKey, InputTooLong, KeyError, PathUnavailable, PrepareError};
use std::fmt;

named! {
    /// A way of computing the hash. All give the same value.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    Path[5] {
        /// Bit by bit, as Microsoft states the function: the reference.
        Scalar = "scalar",
        /// One table look-up per input byte, on any processor.
        Tables = "tables",
        /// Carry-less multiplication (x86-64: PCLMULQDQ, SSSE3); batches hash one input after the other.
        Pclmul = "pclmul",
        /// One hash as [`Path::Pclmul`] with GFNI, batches with 512-bit carry-less multiplication (x86-64:
        /// VPCLMULQDQ, GFNI, AVX-512 F, BW, VL, VBMI).
        Vpclmul = "vpclmul",
        /// One hash as [`Path::Vpclmul`], batches with 8×8 bit matrices (the same features).
        Gfni = "gfni",
    }
}

impl Path {
    /// All of them, slowest batches first.
    pub const ALL: [Path; 5] = Path::EVERY;

    /// Whether this processor can compute the hash in this way.
    pub fn is_available(self) -> bool {
        match self {
            Path::Scalar | Path::Tables => true,
            Path::Pclmul => simd::has_pclmul(),
            Path::Vpclmul | Path::Gfni => simd::has_avx512(),
        }
    }

    /// The way that [`Toeplitz::new`] takes on this processor.
    pub fn best() -> Path {
        let fastest = Path::ALL.into_iter().rev().find(|path| path.is_available());
        fastest.unwrap_or(Path::Tables)
    }

    /// What the processor needs, in words.
    pub const fn needs(self) -> &'static str {
        match self {
            Path::Scalar | Path::Tables => "nothing",
            Path::Pclmul => "PCLMULQDQ and SSSE3",
            Path::Vpclmul | Path::Gfni => "VPCLMULQDQ, GFNI and AVX-512 (F, BW, VL, VBMI)",
        }
    }
}

/// What a path has prepared from the key.
#[derive(Clone)]
#[allow(clippy::large_enum_variant, reason = "a box would cost every hash one more load")]
enum Prepared {
    Scalar,
    Tables(Tables),
    Simd(Simd),
}

/// The hashes of inputs of fixed length.
macro_rules! fixed {
    ($($(#[$about:meta])* $name:ident: $length:literal;)*) => {$(
        $(#[$about])*
        #[inline]
        pub fn $name(&self, input: &[u8; $length]) -> u32 {
            match &self.prepared {
                Prepared::Simd(simd) => simd.$name(input),
                Prepared::Tables(tables) => tables.hash_flow(input),
                Prepared::Scalar => self.reference(input),
            }
        }
    )*};
}

/// The Toeplitz hash under one key.
///
/// Inputs are bytes in the order in which they are hashed: source address, destination address, source
/// port, destination port, each in network byte order, as
/// [`FlowKey::addresses_and_ports`](wire::flow::FlowKey::addresses_and_ports) has them. The fast calls take
/// inputs of fixed length; the decision how to hash was made when the value was built.
///
/// ```
/// use rxlane_rss::{HashKey, Toeplitz};
/// let toeplitz = Toeplitz::new(&HashKey::MICROSOFT)?;
/// let input = [66, 9, 149, 187, 161, 142, 100, 80, 0x0a, 0xea, 0x06, 0xe6];
/// assert_eq!(toeplitz.hash_12(&input), 0x51cc_c178);
/// assert_eq!(toeplitz.hash(&input[..8])?, 0x323e_8fc2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Toeplitz {
    prepared: Prepared,
    path: Path,
    key: HashKey,
}

impl Toeplitz {
    /// Prepares a key for the fastest path of this processor. Errors: a key of fewer than 40 bytes, which
    /// does not cover addresses and ports of IPv6; [`HashKey::hash`] hashes shorter inputs with it.
    pub fn new(key: &HashKey) -> Result<Toeplitz, KeyError> {
        Toeplitz::prepare(key, Path::best())
    }

    /// The same with a path of one's own choice, for tests and comparisons. Errors: a key that is too short, a
    /// processor that lacks what the path needs.
    pub fn with_path(key: &HashKey, path: Path) -> Result<Toeplitz, PrepareError> {
        if !path.is_available() {
            return Err(PathUnavailable { path }.into());
        }
        Ok(Toeplitz::prepare(key, path)?)
    }

    /// Falls back to the tables where the path turns out to be unavailable, so no caller can be wrong.
    fn prepare(key: &HashKey, path: Path) -> Result<Toeplitz, KeyError> {
        if key.bytes().len() < HashKey::USUAL_LENGTH {
            return Err(KeyError::TooShort { bytes: key.bytes().len() });
        }
        let simd = match path {
            Path::Scalar | Path::Tables => None,
            Path::Pclmul => Simd::pclmul(key),
            Path::Vpclmul => Simd::vpclmul(key),
            Path::Gfni => Simd::gfni(key),
        };
        let (prepared, path) = match (simd, path) {
            (Some(simd), path) => (Prepared::Simd(simd), path),
            (None, Path::Scalar) => (Prepared::Scalar, path),
            (None, _) => (Prepared::Tables(Tables::new(key)), Path::Tables),
        };
        Ok(Toeplitz { prepared, path, key: key.clone() })
    }

    /// The path taken.
    pub const fn path(&self) -> Path {
        self.path
    }

    /// The key.
    pub const fn key(&self) -> &HashKey {
        &self.key
    }

    /// The hash of an input of any length that the key covers ([`HashKey::covered`]). Errors: a longer one.
    pub fn hash(&self, input: &[u8]) -> Result<u32, InputTooLong> {
        if input.len() > self.key.covered() {
            return Err(InputTooLong { input: input.len(), covered: self.key.covered() });
        }
        match &self.prepared {
            Prepared::Scalar => self.key.hash(input),
            Prepared::Tables(tables) => Ok(tables.hash(input)),
            Prepared::Simd(simd) => Ok(simd.hash(&self.key, input)),
        }
    }

    /// The bit-by-bit hash of an input of at most 36 bytes, which every prepared key covers.
    #[cold]
    fn reference(&self, input: &[u8]) -> u32 {
        self.key.hash(input).unwrap_or(0)
    }

    fixed! {
        /// Two IPv4 addresses.
        hash_8: 8;
        /// Two IPv4 addresses and two ports.
        hash_12: 12;
        /// Two IPv6 addresses.
        hash_32: 32;
        /// Two IPv6 addresses and two ports.
        hash_36: 36;
    }

    /// [`Toeplitz::hash_12`] of each input into the value at the same place; where one slice is longer, what
    /// it has more is left alone.
    pub fn hash_batch_12(&self, inputs: &[[u8; 12]], hashes: &mut [u32]) {
        match &self.prepared {
            Prepared::Simd(simd) => simd.hash_batch_12(inputs, hashes),
            _ => hashes.iter_mut().zip(inputs).for_each(|(hash, input)| *hash = self.hash_12(input)),
        }
    }

    /// [`Toeplitz::hash_36`] of each input, as [`Toeplitz::hash_batch_12`].
    pub fn hash_batch_36(&self, inputs: &[[u8; 36]], hashes: &mut [u32]) {
        match &self.prepared {
            Prepared::Simd(simd) => simd.hash_batch_36(inputs, hashes),
            _ => hashes.iter_mut().zip(inputs).for_each(|(hash, input)| *hash = self.hash_36(input)),
        }
    }
}

impl fmt::Debug for Toeplitz {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Toeplitz").field("path", &self.path).field("key", &self.key).finish()
    }
}
