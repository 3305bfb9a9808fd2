//! Sums with vector instructions. The only module of this crate with `unsafe` in it.
//!
//! Both do what `checksum::portable` does, in lanes of 64 bits: words are added modulo 2^64, their upper halves once
//! more by themselves.

#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod x86;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{avx2, avx512, has_avx2, has_avx512};

#[cfg(not(target_arch = "x86_64"))]
mod other;
#[cfg(not(target_arch = "x86_64"))]
pub(crate) use other::{avx2, avx512, has_avx2, has_avx512};
