//! CPUs: sets of them, which there are, and how they spend their time.

#[cfg(target_os = "linux")]
mod running;
mod set;
#[cfg(target_os = "linux")]
mod usage;

#[cfg(target_os = "linux")]
pub use running::{allowed, online, pin, possible};
pub use set::{CpuSet, ParseError};
#[cfg(target_os = "linux")]
pub use usage::{Ticks, usage, usage_in};
