//! Scenes in network namespaces and load for them.
//!
//! [`Scene`] is a subscriber line and a router, each in a network namespace of its own, joined by a multi-queue veth
//! pair; [`send`] plays frames onto the line from one CPU, so that, as behind a network card that does not see past
//! PPPoE, one CPU of the router receives everything; [`softnet`] counts what each CPU took.
//!
//! # Contract
//!
//! Nothing outside the two namespaces is touched. They go with their [`Scene`], also in a panic; what a killed process
//! left is removed by the next scene that is made.
//!
//! # Deliberately not here
//!
//! Making frames (crate `traffic`), sending them (crate `link`), printing results (crate `cli`).

#![forbid(unsafe_code)]

mod load;
mod scene;
pub mod softnet;

pub use load::{Load, LoadError, Sent, send};
pub use scene::{LINE, ROUTER, Scene, SceneError};
