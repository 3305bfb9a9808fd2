//! Sockets: frames of an interface ([`Packet`]), many messages by one system call ([`Incoming`], [`Outgoing`]), what the kernel
//! attaches to a message ([`Control`]), and memory shared with the kernel ([`Mapping`]).
//!
//! Nothing is allocated after a socket and its room have been made: a call is a system call.

mod control;
pub mod filter;
mod packet;
mod sys;
mod transmit;
pub mod udp;

pub use control::Control;
pub use packet::{Flag, Packet, RingRequest};
pub(crate) use sys::set_filter;
pub use sys::{Incoming, Mapping, Message, Outgoing, Peer, peer, receive};
pub use transmit::{Transmit, TransmitError};

/// Messages that a call takes where nothing else is said; more gain nothing measurable, and the kernel's limit is 1024
/// (`UIO_MAXIOV`).
pub const BATCH: usize = 64;
