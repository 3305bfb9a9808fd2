//! What people read: facts of the crates as sentences.

pub mod prose;
