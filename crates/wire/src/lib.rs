//! Headers of the receive path.
#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic)]
#![cfg_attr(test, allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic))]

#[cfg(test)]
extern crate std;

pub mod flow;

pub use flow::{FlowKey, IpVersion};
