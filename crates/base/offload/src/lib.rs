//! What a network card does for a stack, in software: the internet checksum, segmentation (GSO) and coalescing (GRO).
//!
//! # Contract
//!
//! - [`checksum`] sums bytes with the vector instructions of this processor; every way of computing
//!   ([`checksum::Path`]) gives one answer.
//! - [`segment`] makes frames of what a TUN device with `IFF_VNET_HDR` hands over: super-packets of TCP and UDP, and
//!   packets whose checksum is left to the card. Each frame is a piece of headers, written into a buffer of the caller,
//!   and a part of the packet, which is never copied. A [`Prefix`] (VLAN tags, MPLS, PPPoE) goes in front of each.
//! - [`coalesce`] puts the frames of a batch together, behind the same encapsulations, into super-packets for such a
//!   device: headers, then the payload of each frame where it lies, and a virtio header. Packets of a flow keep their
//!   order. Segmenting again gives back every byte.
//! - **No panic on any input**; what is wrong with a packet or its virtio header is an error with a name. Every access to
//!   bytes is checked (`clippy::indexing_slicing`, `unwrap_used` and `panic` are denied).
//! - Nothing is allocated, but by a [`Coalescer`] whose batch is larger than any before.
//! - Bytes are in network order, as in frames; numbers in host order.
//!
//! # Specifications
//!
//! RFC 1071 and 1624 (checksum and its update), 791, 9293, 768, 8200 section 8.1, 4443 (what is summed), 3168 section
//! 6.1.2 (CWR), 6864 (IPv4 identification), 2516 section 4 (PPPoE length); virtio 1.2 section 5.1.6, and the kernel's
//! `Documentation/networking/checksum-offloads.rst` and `segmentation-offloads.rst`. Where they leave a choice, it is
//! that of Linux, whose segments a test compares.
//!
//! # Deliberately not here
//!
//! System calls; CRC32c of SCTP (`wire::emit::checksum`); segmentation of tunnels and of UDP into IP fragments (UFO);
//! packets of more than 65,535 bytes (jumbograms, BIG TCP); pacing, and the size of segments, which the stack chose;
//! coalescing across batches, which would hold packets back.
//!
//! `unsafe` lives in the module `simd` alone.

#![deny(unsafe_code)]
#![deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic)]

pub mod checksum;
pub mod coalesce;
mod prefix;
pub mod segment;
mod simd;
mod virtio;

pub use coalesce::Coalescer;
pub use prefix::Prefix;
pub use segment::{Segment, Segments};
pub use virtio::NetHeader;
