//! The running PPPoE client: its event loop, and what a session has on this machine.
//!
//! What is said to the concentrator is decided by crate `pppoe`; here are sockets, interfaces, routes, files and scripts.

pub mod network;
pub mod resolver;
pub mod script;
