//! What a network card does with a frame: profiles of devices as data, each claim with its source, and the
//! answer on which queue a frame lands and why.
//!
//! # What there is
//!
//! * [`Profile`], by name or path from [`lookup`], all of them from [`builtin`]: claims by stage of the
//!   receive path ([`schema`]), each with the place where it is written.
//! * [`Receiver`]: a profile set up as on one machine (queues, key, table, hash fields). Frames that differ
//!   in nothing but addresses, ports and payload have one [`wire::Shape`] and share a [`Disposition`]: how far the parser
//!   comes and why, the hash type, the longest frame let in. A disposition is computed once; of each further frame
//!   only the hash and the table lookup remain ([`Receiver::land`]).
//! * [`spread`]: would a device spread such traffic, by default or in one of its modes?
//! * [`stacked`]: which offloads are left to a stack of VLAN devices, and by which rule of the kernel or claim
//!   about the driver.
//! * [`admission`]: which frames are let in, by length, tags and MTU.
//!
//! ```
//! use rxlane_nic::{Receiver, Setup, lookup};
//! use wire::{Link, dissect};
//!
//! // PPPoE session 1, PPP protocol 0x0021 (RFC 2516, RFC 1332), IPv4, TCP.
//! let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0x64, 0x11, 0, 0, 1, 0, 42, 0, 0x21];
//! frame.extend([0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, 1, 198, 51, 100, 1]);
//! frame.extend([4, 0, 1, 187, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x10, 0, 0, 0, 0, 0, 0]);
//!
//! let i210 = Receiver::new(lookup("i210")?, &Setup::default())?;
//! let dissection = dissect(Link::Ethernet, &frame, frame.len());
//! let disposition = i210.disposition(&dissection);
//! assert_eq!(disposition.why.to_string(), "the parser stops at the PPPoE header");
//! assert_eq!(i210.land(&disposition, &frame, &dissection).queue, Some(0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Contract
//!
//! * A profile is one TOML file (`profiles/*.toml`, format in `profiles/SCHEMA.md`). What a file does not
//!   say is unknown, and an answer that would need it is "unknown" with the claim named, never a guess.
//! * Frame sizes are bytes without preamble and FCS, as a capture shows them.
//! * Nothing here panics on any profile text or any frame.
//!
//! # Specifications
//!
//! Datasheets, drivers and reports are cited in the profiles, claim by claim. Which hash type wins and how a
//! hash is computed is the crate `rss`'s; what a frame contains, the crate `wire`'s.
//!
//! # Deliberately not here
//!
//! Reading a machine's own settings; filters that bypass RSS (EtherType and n-tuple rules, Flow Director);
//! what the kernel does with a frame after the ring, but for the offloads of stacked devices.

#![forbid(unsafe_code)]

pub mod admission;
mod catalogue;
mod claim;
pub mod document;
mod load;
mod parser;
mod profile;
mod receiver;
pub mod schema;
pub mod spread;
pub mod stacked;
mod tags;

pub use catalogue::{LookupError, builtin, lookup};
pub use claim::{Citation, Claim, Source, SourceKind, Value};
pub use document::FileError;
pub use parser::{ParserDepth, Why, depth as parser_depth};
pub use profile::{DeviceOption, Mode, OptionValue, Profile};
pub use receiver::{Disposition, Landing, Receiver, Setup, USUAL_QUEUES};
pub use schema::{Key, Stage};

/// What a device refuses, or is no notation of a device, a stack or traffic: a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(String);

impl Refusal {
    fn of(error: impl std::fmt::Display) -> Refusal {
        Refusal(error.to_string())
    }
}
