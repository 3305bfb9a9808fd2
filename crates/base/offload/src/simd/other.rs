//! Processors without a vector path of their own: compilers make vectors of the portable one.

pub(crate) const fn has_avx2() -> bool {
    false
}

pub(crate) const fn has_avx512() -> bool {
    false
}

pub(crate) const fn avx2(_: &[u8]) -> Option<u64> {
    None
}

pub(crate) const fn avx512(_: &[u8]) -> Option<u64> {
    None
}
