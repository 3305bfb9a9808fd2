//! The running PPPoE client: what is said to a concentrator is decided by crate `pppoe`; here are its event loop, and what a
//! session has on this machine: an interface (crate `link`), routes, name servers, scripts.
//!
//! [`Connection`](connection::Connection) is a client from its start to its end. [`probe`] asks a line for concentrators without a
//! session.

#![allow(missing_docs, reason = "a name and its type say most; comments say the rest")]
#![deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic)]
#![cfg_attr(test, allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic))]

pub mod connection;
mod error;
mod name_servers;
pub mod network;
pub mod probe;
mod process_group;
pub mod resolver;
pub mod script;
pub mod status;

pub use error::Error;
