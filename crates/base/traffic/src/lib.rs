//! Seeded traffic: the same seed gives the same bytes on every machine.
//!
//! A [`Scenario`] says what the traffic is: encapsulations with their weights, number of flows and how frames
//! spread over them, frame sizes, arrival times, shares of IPv6, UDP, fragments and control frames.
//! [`Scenario::generate`] turns it and a seed into a [`Generator`], which hands out frames one by one from its
//! own buffer, without allocating.
//!
//! ```
//! use rxlane_traffic::Scenario;
//!
//! let mut traffic = Scenario::named("pppoe")?.with_flows(2000).generate(1)?;
//! for _ in 0..3 {
//!     let frame = traffic.next_frame();
//!     let seen = wire::dissect(wire::Link::Ethernet, frame.bytes, frame.bytes.len());
//!     assert!(seen.error().is_none());
//!     println!("{} ns: {} {:?}", frame.timestamp_ns, seen.stack(), seen.flow());
//! }
//! # Ok::<(), rxlane_traffic::ScenarioError>(())
//! ```
//!
//! # Contract
//!
//! - Flow *i* of a seed has the same addresses, ports and protocol in every encapsulation, and the sequence of
//!   flows and sizes does not depend on the encapsulation either ([`Generator::flow`]). So one can compare
//!   what a device does with the same flows untagged and inside PPPoE. (Only a packet too large for what the
//!   encapsulation leaves of the MTU is shorter.)
//! - No two flows of a generator have the same 5-tuple.
//! - Every frame is valid: lengths, header checksum, transport checksum.
//! - Integer arithmetic only, so nothing depends on the platform; a test holds digests of the output.
//!
//! # Sources
//!
//! Addresses that belong to nobody: 198.18.0.0/15 (RFC 2544 appendix C.2.2), 100.64.0.0/10 (RFC 6598),
//! 2001:db8::/32 (RFC 3849), locally administered MAC addresses. Sizes: see [`Sizes::Imix`].
//!
//! # Deliberately not here
//!
//! Transport behaviour (handshakes, acknowledgment, congestion): frames of a flow are data segments in order.
//! Both directions of a flow: a receive path sees one, see [`Direction`].

#![forbid(unsafe_code)]

mod arrival;
mod control;
mod flow;
mod generator;
mod popularity;
mod scenario;
mod sizes;

pub use arrival::{Arrival, exponential};
pub use flow::Direction;
pub use generator::{Frame, Generator};
pub use popularity::{Popularity, Sampler};
pub use scenario::{Class, NAMED, Named, Scenario, ScenarioError};
pub use sizes::Sizes;

use rand_core::Rng;

/// A number below `bound`, each as likely as any other (up to 2^-32 for the bounds used here).
fn below(random: &mut impl Rng, bound: u64) -> u64 {
    ((u128::from(random.next_u64()) * u128::from(bound)) >> 64) as u64
}
