//! What PPPoE needs beside the data path of a session: the socket for everything that is no data of one.

pub mod control_socket;
mod filter;
mod vlan_pattern;

pub use control_socket::{ControlFrame, ControlSocket};
pub(crate) use filter::{Wanted, program};
pub use vlan_pattern::{VlanPattern, VlanPatternError};
