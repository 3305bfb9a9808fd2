//! Steering on a machine: what to steer where, attached, watched, balanced, and taken back.
//!
//! # Contract
//!
//! * [`check`] looks and changes nothing; what is not known is unknown. [`up`] resolves everything before it
//!   changes anything, notes each setting in the journal before it changes it, and takes all back where it fails.
//! * An attachment lives in the kernel and outlasts every process. [`keeper`] makes it better and is not needed.
//! * [`down`] takes everything back from what is pinned and recorded, whichever process was killed at whichever moment,
//!   and also where the interface was removed.
//! * What decides is free of the machine and tested without one: [`recommend`], [`plan`],
//!   [`weights`], [`rebalance`].
//!
//! ```no_run
//! use rxlane_steer::record::Records;
//! use std::time::Duration;
//!
//! let records = Records::new(Records::DIRECTORY);
//! for status in rxlane_steer::status::all(Duration::ZERO, &records)? {
//!     println!("{}: {}", status.interface, status.mode);
//! }
//! # Ok::<(), rxlane_steer::error::Error>(())
//! ```
//!
//! # Reading on
//!
//! `check.rs` puts the questions of `facts.rs`, `classes.rs` and `receiving.rs` together; `up.rs` is what follows from
//! them; `rebalance.rs` says when a bucket moves, `docs/steering/` why.
//!
//! # Deliberately not here
//!
//! The programs and how they are loaded: crate `xdp`. How anything looks: the command.

#![allow(missing_docs, reason = "a name and its type say most; comments say the rest")]
#![forbid(unsafe_code)]

pub mod background;
pub mod check;
pub mod classes;
pub mod down;
pub mod drivers;
pub mod error;
pub mod expected;
pub mod facts;
pub mod keeper;
pub mod metrics;
pub mod named;
pub mod observation;
pub mod plan;
pub mod rebalance;
pub mod receiving;
pub mod recommend;
pub mod record;
pub mod stale_namespaces;
pub mod status;
pub mod up;
pub mod ways;
pub mod weights;
