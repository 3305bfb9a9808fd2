//! Processors without a vector path: the tables serve.

use crate::HashKey;

pub(crate) const fn has_pclmul() -> bool {
    false
}

pub(crate) const fn has_avx512() -> bool {
    false
}

/// There is no value of this type on this processor.
#[derive(Clone)]
pub(crate) enum Simd {}

/// What there is no value for.
macro_rules! none {
    ($($name:ident($($argument:ty),*) -> $result:ty;)*) => {$(
        pub(crate) fn $name(&self, $(_: $argument),*) -> $result {
            match *self {}
        }
    )*};
}

impl Simd {
    pub(crate) fn pclmul(_: &HashKey) -> Option<Simd> {
        None
    }

    pub(crate) fn vpclmul(_: &HashKey) -> Option<Simd> {
        None
    }

    pub(crate) fn gfni(_: &HashKey) -> Option<Simd> {
        None
    }

    none! {
        hash(&HashKey, &[u8]) -> u32;
        hash_8(&[u8; 8]) -> u32;
        hash_12(&[u8; 12]) -> u32;
        hash_32(&[u8; 32]) -> u32;
        hash_36(&[u8; 36]) -> u32;
        hash_batch_12(&[[u8; 12]], &mut [u32]) -> ();
        hash_batch_36(&[[u8; 36]], &mut [u32]) -> ();
    }
}
