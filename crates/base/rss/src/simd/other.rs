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

    pub(crate) fn hash(&self, _: &HashKey, _: &[u8]) -> u32 {
        match *self {}
    }

    pub(crate) fn hash_8(&self, _: &[u8; 8]) -> u32 {
        match *self {}
    }

    pub(crate) fn hash_12(&self, _: &[u8; 12]) -> u32 {
        match *self {}
    }

    pub(crate) fn hash_32(&self, _: &[u8; 32]) -> u32 {
        match *self {}
    }

    pub(crate) fn hash_36(&self, _: &[u8; 36]) -> u32 {
        match *self {}
    }

    pub(crate) fn hash_batch_12(&self, _: &[[u8; 12]], _: &mut [u32]) {
        match *self {}
    }

    pub(crate) fn hash_batch_36(&self, _: &[[u8; 36]], _: &mut [u32]) {
        match *self {}
    }
}
