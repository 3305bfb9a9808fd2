//! PPPoE and PPP as state machines without I/O: discovery, LCP, authentication, IPCP and IPV6CP, of both ends.
//!
//! # Contract
//!
//! * No machine reads a clock, draws a random number, opens a socket or sleeps. Time ([`Time`]), randomness ([`Random`]) and
//!   received bytes come in as arguments; what is to be done goes out as actions. The same arguments give the same actions,
//!   so that every run can be replayed from a seed.
//! * A machine says when it wants to be called next (`deadline`), and may be called at any time before and after.
//! * No input panics, loops without end, or makes a machine keep more than the bound that its documentation states.
//! * What a peer said and people or scripts will see goes through [`format::Quotable`] first.
//!
//! Nothing of it runs for every packet: bytes are allocated where that is simplest. IP packets of a session never come here, but for Router
//! Solicitations and DHCPv6; who has
//! the sockets leaves them to the data path of the link.
//!
//! ```
//! use rxlane_pppoe::discovery::{Packet, message::Message, probe::{Probe, Question}};
//! use std::time::Duration;
//! use wire::ethernet::MacAddress;
//!
//! let host = MacAddress([2, 0, 0, 0, 0, 1]);
//! let mut random = |bytes: &mut [u8]| bytes.fill(7);
//! let mut probe = Probe::new(Question::default(), host, &mut random);
//! let padi = probe.padi(Duration::from_secs(1))?;
//! assert!(Message::parse(&padi).is_ok_and(|padi| padi.host_uniq().is_some()));
//!
//! // A packet that contradicts itself is counted, and no answer.
//! let packet = Packet { source: MacAddress([2; 6]), destination: host, payload: b"\x11\x07" };
//! probe.receive(Duration::from_secs(2), packet);
//! assert_eq!((probe.answers().len(), probe.ignored().malformed), (0, 1));
//! # Ok::<(), rxlane_pppoe::discovery::message::TooLong>(())
//! ```
//!
//! # Specifications
//!
//! RFC 2516 (PPPoE), RFC 4638 (PPP-Max-Payload), Broadband Forum TR-101 (line identification), RFC 1661 (LCP, the automaton),
//! RFC 1334 (PAP), RFC 1994 (CHAP), RFC 2759 (MS-CHAPv2), RFC 1332 and RFC 1877 (IPCP), RFC 5072 (IPV6CP), RFC 4861 and RFC 8106
//! (Router Advertisements), RFC 8415 and RFC 3646 (DHCPv6).
//!
//! # Deliberately not here
//!
//! Compression of protocol and address fields and character maps (RFC 2516 section 7 wants none), multilink, CCP and ECP (any
//! such protocol is rejected), MPPE keys, EAP. Sockets, interfaces and files are those of crate `link`.

#![allow(missing_docs, reason = "a name and its type say most; comments say the rest")]
#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic)]
#![cfg_attr(test, allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic))]

mod authentication;
pub(crate) mod automaton;
pub mod chap;
pub mod client;
pub mod concentrator;
pub mod control;
mod dhcpv6;
pub mod discovery;
pub mod framing;
mod ipcp;
mod ipv6cp;
mod lcp;
pub mod ms_chap;
mod negotiation;
mod neighbor_discovery;
mod pages;
pub mod pap;
pub mod session;
mod step;

/// Time since a moment that the caller chooses once for all machines, and which never goes back: a monotonic clock.
pub type Time = core::time::Duration;

/// How long the attempt of this number, counted from 1, waits: `first`, and each time twice as long, up to `longest`.
pub(crate) fn backoff(first: Time, number: u32, longest: Time) -> Time {
    let factor = 1_u32.checked_shl(number.saturating_sub(1)).unwrap_or(u32::MAX);
    first.saturating_mul(factor).min(longest)
}

/// Where randomness comes from: the kernel in earnest, a seed in tests. Cookies, magic numbers, challenges and session ids
/// depend on nobody being able to guess it.
pub trait Random {
    /// Fills all of `bytes`.
    fn fill(&mut self, bytes: &mut [u8]);
}

impl<F: FnMut(&mut [u8])> Random for F {
    fn fill(&mut self, bytes: &mut [u8]) {
        self(bytes);
    }
}

/// What somebody wrote or configured makes no sense: why, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(pub(crate) String);

impl Invalid {
    pub(crate) fn new(why: impl Into<String>) -> Invalid {
        Invalid(why.into())
    }
}

pub(crate) fn draw<const N: usize>(random: &mut dyn Random) -> [u8; N] {
    let mut bytes = [0; N];
    random.fill(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests;
