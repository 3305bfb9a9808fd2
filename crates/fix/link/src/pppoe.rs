//! What the ends of PPPoE lines have in common: the socket for everything that is no data of a session, the VLANs that it looks at,
//! and what their state machines take from the kernel.

pub mod control_socket;
mod filter;
pub mod kernel;

pub use control_socket::{ControlFrame, ControlSocket, Losses};
pub use filter::{FrameSet, program};
