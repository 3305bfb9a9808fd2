//! What a network card does with a frame: profiles of devices as data, each claim with its source, and the
//! answer on which queue a frame lands and why.
//!
//! # Contract
//!
//! * A profile is one TOML file (`profiles/*.toml`, format in `profiles/SCHEMA.md`). What a file does not
//!   say is unknown, and an answer that would need it is "unknown" with the claim named, never a guess.
//! * Frame sizes are bytes without preamble and FCS, as a capture shows them.
//! * Nothing here panics on any profile text or any frame.
//!
//! # Deliberately not here
//!
//! Reading a machine's own settings; what the kernel does with a frame after the ring.

#![forbid(unsafe_code)]

pub mod catalogue;
pub mod claim;
mod load;
pub mod profile;
pub mod receiver;
pub mod schema;
pub mod sight;
pub mod spread;
pub mod tags;

pub use catalogue::{LookupError, builtin, lookup};
pub use claim::{Citation, Claim, Source, SourceKind, Value};
pub use load::ProfileError;
pub use profile::{Knob, KnobValue, Mode, ModeError, Profile};
pub use receiver::{Fate, Landing, Receiver, Setup, SetupError};
pub use schema::{Key, Stage};
pub use sight::{Class, Sight, Why};
