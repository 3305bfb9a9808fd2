//! The access concentrator.

pub mod network;
pub mod pool;
pub mod secrets;
mod sessions;
