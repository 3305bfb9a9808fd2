//! Frames written and read as the specifications have them, octet by octet. Nothing here is of crate `pppoe` or `wire`, so that
//! what these have misunderstood does not cancel out.

pub mod discovery;
pub mod frame;
pub mod negotiation;
pub mod packet;
pub mod ppp;
