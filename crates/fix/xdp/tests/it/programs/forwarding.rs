//! The fast path: the program, the C text as a library of this machine, and the Rust reference have one verdict.

mod agreement;
mod changed;
mod fixtures;
mod flows;
mod loaded;
mod reasons;
