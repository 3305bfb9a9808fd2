//! Arguments that several commands have, each once: the same name, syntax and errors everywhere.

mod address;
pub mod device;
pub mod numbers;
mod seconds;
mod stack;
mod state;

pub use address::address;
pub use seconds::seconds;
pub use stack::StackArguments;
pub use state::{StateArguments, responses};
