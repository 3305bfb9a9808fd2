//! The running PPPoE access concentrator: one interface for all subscribers, one thread for what they negotiate, others for
//! their packets.
//!
//! What is said to subscribers is decided by crate `pppoe`; packets move as in crate `link`. [`Prepared`] is a concentrator before
//! it serves, [`Serving`] one that does; [`subscribers`] is its data path:
//!
//! ```
//! use pppoe::concentrator::network::Network;
//! use rxlane_concentrator::subscribers::{Limits, Refusal, Registry, Session};
//! use wire::{Vlans, ethernet::MacAddress};
//!
//! let limits = Limits { sessions: 1000, prefixes: 3000 };
//! let mut registry = Registry::new(limits, MacAddress([2, 0, 0, 0, 0, 0xac]));
//! let peer = MacAddress([2, 0, 0, 0, 0, 1]);
//! let session = Session { vlans: Vlans::NONE, peer, id: 7, mtu: 1492, mss_clamp: true, identifier: 0, rates: Default::default() };
//! let number = registry.insert(&session)?;
//! let prefix: Network = "198.51.100.16/28".parse().expect("a network");
//! registry.add_prefix(number, prefix)?;
//! assert_eq!(registry.add_prefix(number, prefix), Err(Refusal::Taken(prefix)));
//! // What the session has transferred.
//! assert_eq!(registry.remove(number)?.received.frames, 0);
//! # Ok::<(), Refusal>(())
//! ```

#![allow(missing_docs, reason = "a name and its type say most; comments say the rest")]
#![deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic)]
#![cfg_attr(test, allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic))]

mod error;
mod event;
mod radius;
mod serving;
pub mod subscribers;

pub use error::Error;
pub use event::{Event, Takeover, Uncarried};
pub use radius::{Answer, Availabilities, Availability, Clients, NamedRates, RadiusEvent, Server, Servers};
pub use serving::{
    ConcentratorStatus, Disconnected, End, Over, Prepared, Serving, Start, SubscriberStatus, Unwritten,
    Withheld, XdpStatus, XdpWay, clear_leftover,
};
