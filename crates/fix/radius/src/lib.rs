//! RADIUS, as an access concentrator speaks it: who a subscriber is, what they get, and what they used.
//!
//! # Contract
//!
//! * Nothing here has a socket or a clock: an [`Exchange`] takes requests and datagrams, and says what is to be sent and what is over.
//! * An answer counts only if the request waits for it and its authenticator fits; of an Access-Request also only with a Message-Authenticator
//!   that fits (RFC 3579 section 3.2), since without one anybody on the way can make an accept of a reject (Blast-RADIUS, CVE-2024-3596).
//! * A request goes to one server after the other, to each some times with the same bytes. A server that did not answer comes last for
//!   a while.
//! * Memory has a limit ([`exchange::MOST`]); no datagram panics.
//!
//! ```
//! use rxlane_radius::access::{self, Evidence, Nas, Session};
//! use rxlane_radius::exchange::{Exchange, Patience, Step};
//! use rxlane_radius::Secret;
//! use std::time::Duration;
//!
//! let nas = Nas { identifier: b"bras1".to_vec(), address: None };
//! let session =
//!     Session { user: b"nemo", id: "1", port: "eth1 7", tags: 1, station: [2, 0, 0, 0, 0, 1], line: None };
//! let request = access::request(&nas, &session, Evidence::Pap(b"arctangent"))?;
//!
//! let mut exchange = Exchange::new([Secret::new("xyzzy5461")], Patience::DEFAULT);
//! let (mut send, mut done) = (Vec::new(), Vec::new());
//! let random = &mut |bytes: &mut [u8]| bytes.fill(4);
//! let mut step = Step { now: Duration::ZERO, random, send: &mut send, done: &mut done };
//! exchange.request(&mut step, "whoever asks", request);
//! assert_eq!((send[0].server, send[0].lane), (0, 0));
//! # Ok::<(), rxlane_radius::packet::NoRoom>(())
//! ```
//!
//! # Deliberately not here
//!
//! RADIUS over TLS (RFC 6614).

#![forbid(unsafe_code)]

pub mod access;
pub mod accounting;
mod attribute;
pub mod dynamic_authorization;
pub mod exchange;
pub mod packet;
pub mod rates;
mod secret;
pub mod status_server;

pub use exchange::Exchange;
pub use packet::Packet;
pub use secret::{Forged, Secret};
