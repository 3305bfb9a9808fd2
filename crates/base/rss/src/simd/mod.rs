//! The Toeplitz hash with vector instructions. The only module of this crate with `unsafe` in it.
//!
//! A Toeplitz hash is a carry-less product: with the input as one polynomial over GF(2) and the key as
//! another, hash bit `j` is a coefficient of their product, since it sums `input[i] · key[i + j]` over all
//! `i`. Two kinds of instruction compute such sums: carry-less multiplication ([`single`], [`batch`]) and
//! products of 8×8 bit matrices ([`batch`]).
//!
//! Every function with a `target_feature` is called through [`Simd`], and a [`Simd`] exists only on a
//! processor where the features of its level were found: that is the reason why those calls are sound.

#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod batch;
#[cfg(target_arch = "x86_64")]
mod single;
#[cfg(target_arch = "x86_64")]
mod x86;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{Simd, has_avx512, has_pclmul};

#[cfg(not(target_arch = "x86_64"))]
mod other;
#[cfg(not(target_arch = "x86_64"))]
pub(crate) use other::{Simd, has_avx512, has_pclmul};
