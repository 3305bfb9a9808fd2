//! Arguments that several commands have, each once: the same name, syntax and errors everywhere.

#[cfg(target_os = "linux")]
mod address;
pub mod device;
pub mod numbers;
mod seconds;
mod stack;
#[cfg(target_os = "linux")]
mod state;

#[cfg(target_os = "linux")]
pub use address::address;
pub use seconds::seconds;
pub use stack::StackArguments;
#[cfg(target_os = "linux")]
pub use state::{StateArguments, responses};
