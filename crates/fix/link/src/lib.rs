//! Packet I/O on interfaces, and encapsulated links: VLAN, QinQ and PPPoE lines as network interfaces.
//!
//! # Contract
//!
//! * `kernel::socket::Transmit` sends frames through a packet socket, many a system call.
//! * [`running::Running`] is a link from its coming up to its end: an interface (`tun`) whose packets go out of a parent
//!   ([`parent`]) in an encapsulation, and back. Nothing of it outlives its process.
//! * [`framing`] says what stands between the frames of the parent and the packets of the link; [`mss`] lowers the segment
//!   size of TCP to what fits. Both are pure: no system call, no allocation, no panic on any input.
//! * A data path ([`datapath`]) moves the packets: [`batch`] many at once, `simple` one a system call.
//! * [`Counters`] count what went either way, and what did not, by its reason ([`Dropped`]). Nothing is dropped in silence.
//! * [`pppoe`] has the socket of a PPPoE line for what is no data of a session.
//! * What a running link is requested to do goes through [`service::control`].
//!
//! In the steady state nothing is allocated. By `simple` a link has 130 KiB of buffers, and at most 8 MiB in the kernel for
//! received frames that wait; by `batch` [`batch::Batch::MEMORY`] a worker.
//!
//! ```
//! use rxlane_link::frame_size::needed_mtu;
//!
//! // PPPoE under two tags takes 16 bytes of the parent's frames.
//! assert_eq!(needed_mtu(1500, &"ad:100,q:200,pppoe:7".parse()?), 1516);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Deliberately not here
//!
//! Making frames (crates `wire` and `traffic`), capture files (crate `capture`), samples of received frames for a
//! diagnosis (`host::sample`); what discovery and PPP say to each other (crate `pppoe`).
//!
//! There is no `unsafe`: system calls are crate `kernel`'s.

#![allow(missing_docs, reason = "a name and its type say most; comments say the rest")]
#![deny(unsafe_code)]
#![deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic)]
#![cfg_attr(test, allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic))]

pub mod batch;
mod counters;
pub mod datapath;
mod dropped;
pub mod error;
mod fragments;
pub mod frame_size;
pub mod framing;
mod inbound;
pub mod lines;
pub mod mss;
pub mod parent;
mod path_mtu;
pub mod pppoe;
pub mod privilege;
pub mod running;
mod simple;
pub mod status;
#[cfg(test)]
mod tests;

pub use counters::{Counted, Counters, Traffic};
pub use dropped::Dropped;
pub use error::Error;
