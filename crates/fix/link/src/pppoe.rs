//! The running PPPoE client and access concentrator: their event loops, what a session has on this machine, and the socket for
//! everything of PPPoE that is no data of a session.
//!
//! What is said to the concentrator is decided by crate `pppoe`; here are sockets, interfaces, routes, files and scripts.

pub mod connection;
pub mod control_socket;
mod filter;
mod kernel;
mod name_servers;
pub mod network;
pub mod probe;
mod process_group;
pub mod resolver;
pub mod script;
pub mod serving;
pub mod status;
mod vlan_pattern;

pub use control_socket::{ControlFrame, ControlSocket, Losses};
pub(crate) use filter::{Wanted, program};
pub use vlan_pattern::{Level, VlanPattern, VlanPatternError};
