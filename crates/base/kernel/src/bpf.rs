//! Objects of BPF (bpf(2)): maps, programs, links, pins.
//!
//! Only what crate `aya` does not offer or does another way: links (create, ask, detach), pins by path, the kernel's information
//! about objects, map elements as bytes, and loading without signals. The file system that holds pins is crate `xdp`'s.

mod shared;
mod sys;

pub use shared::SharedWords;
pub use sys::*;
