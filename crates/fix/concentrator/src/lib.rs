//! The running PPPoE access concentrator: one interface for all subscribers, one thread for what they negotiate, others for
//! their packets.
//!
//! What is said to subscribers is decided by crate `pppoe`; packets move as in crate `link`. [`Prepared`] is a concentrator before
//! it serves, [`Serving`] one that does; [`subscribers`] is its data path.

#![allow(missing_docs, reason = "a name and its type say most; comments say the rest")]
#![deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic)]
#![cfg_attr(test, allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic))]

mod error;
mod event;
mod serving;
pub mod subscribers;

pub use error::Error;
pub use event::{Event, Takeover, Uncarried};
pub use serving::{
    ConcentratorStatus, Disconnected, Over, Prepared, SCHEMA, Serving, Start, SubscriberStatus, Withheld,
};
