//! Packet I/O on interfaces.
//!
//! So far one thing: [`Transmit`], which sends frames through a packet socket, many a system call.
//!
//! # Deliberately not here
//!
//! Making frames (crates `wire` and `traffic`), capture files (crate `capture`), samples of received frames for a
//! diagnosis (`host::sample`).
//!
//! `unsafe` lives in modules named `sys` alone.

#![deny(unsafe_code)]

mod transmit;

pub use transmit::{Transmit, TransmitError};
