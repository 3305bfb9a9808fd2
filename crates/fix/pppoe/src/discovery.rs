//! The discovery stage of PPPoE (RFC 2516 section 5): who is there, and under which number a session runs.
//!
//! # Contract
//!
//! * Bytes that come in are the payload of an Ethernet frame of EtherType 0x8863, behind all VLAN tags: PPPoE header, tags,
//!   and perhaps padding. Bytes that go out are the same without padding, which a device adds.
//! * [`message`] reads and writes packets, [`host`] is the end that looks for a concentrator, [`concentrator`] the end that
//!   is found, [`probe`] only looks who is there.
//! * Every list that strangers can fill has a bound: offers, services, tables of rates. The concentrator keeps nothing at all
//!   for a PADI.
//!
//! # Deliberately not here
//!
//! Numbers of sessions and who has which: the concentrator's table is its caller's ([`concentrator::Answer::Request`]).
//! PADM and PADN (RFC 5578, credits of radio links) are ignored.

pub mod complaint;
pub mod concentrator;
pub(crate) mod cookie;
pub mod host;
pub mod limits;
pub mod message;
pub mod offer;
pub mod place;
pub mod probe;

use wire::ethernet::MacAddress;

/// A received packet of either stage: addresses of its frame, and what stands behind the EtherType, padding included.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    pub source: MacAddress,
    /// Whom it is for: an interface in promiscuous mode gets those of others.
    pub destination: MacAddress,
    pub payload: &'a [u8],
}

/// Most bytes of PPP payload without PPP-Max-Payload: RFC 2516 section 7, 1500 less PPPoE header and PPP protocol field.
pub const PLAIN_PAYLOAD: u16 = 1492;

/// Whether a session can have this number: 0 is that of the discovery stage (RFC 2516 section 5.4), 0xffff is reserved
/// (section 4).
pub const fn is_session(session: u16) -> bool {
    session != 0 && session != 0xffff
}
