//! The data path of a concentrator: one interface for all subscribers, however many there are.
//!
//! # Contract
//!
//! * A [`Registry`] has the sessions and the addresses of each; one thread changes it while packets move. What is inserted,
//!   changed or removed counts for packets that are looked at afterwards; packets that are on their way go on.
//! * In: a frame is a session's where VLANs, source address and session id are all those of it, and no other frame is ever taken
//!   for it. The source of the packet inside has to be an address of the session: one that the registry has for it, the
//!   link-local one of its interface identifier, or `::` where IPv6 asks neighbours about an address (RFC 4862 section 5.4.2).
//!   What is wrong with a frame has a reason of its own ([`link::Dropped`]), and is counted for the session, too, once that
//!   is known.
//! * Frames of sessions that there are not are told ([`Registry::strays`]), so that their senders may be: at most
//!   [`Registry::MOST_STRAYS`] until the next look.
//! * Out: the longest prefix that has the destination says whose a packet is. One that is longer than its subscriber takes
//!   becomes fragments or is told to its sender by ICMP, at most 1000 a second and worker.
//! * Packets are moved as by [`link::batch`], by one or more workers: a flow stays with one, in order. Super-packets are
//!   segmented behind the session's own headers, and frames of a flow put together whatever other sessions' lie between.
//! * A look-up takes as long with one session as with [`Registry::MOST`], but for the caches of the processor: a probe of a
//!   table and a line of memory for the session, a probe for the address. It takes no lock, nor does it wait: tables are
//!   words that are read one by one, and whoever finds a session being written finds none. (A lock for readers and writers
//!   would be held by workers while control inserts thousands of sessions a second, and a copy of the tables that is swapped
//!   would have to be made for each of them.)
//! * Nothing is allocated for a packet. Memory: see [`Registry::memory`]; about 220 bytes a session.
//!
//! # Deliberately not here
//!
//! Discovery and negotiation (`crate::pppoe` has their socket); routes of the kernel to the interface; what is sent to all
//! subscribers, such as router advertisements: the interface has no multicast, since no packet has more than one owner.
//!
//! RFC 2516, RFC 2827 (source addresses), RFC 791, RFC 1191, RFC 4443, RFC 8201.

mod index;
mod registry;
mod routes;
mod running;
mod slots;
mod table;
mod view;

pub use registry::{Number, Refusal, Registry};
pub use routes::Prefix;
pub use running::{Subscribers, Wish};
pub use slots::Usage;
pub use table::Stray;
pub use view::View;

use wire::Vlans;
use wire::ethernet::MacAddress;

/// A session of a subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    pub vlans: Vlans,
    pub peer: MacAddress,
    /// Session id, 1 to 65534.
    pub id: u16,
    /// The longest packet that the subscriber takes, bytes: the lesser of its MRU and what the parent has room for.
    pub mtu: u16,
    /// Whether the segment sizes that TCP names are lowered to fit it.
    pub mss_clamp: bool,
    /// The subscriber's interface identifier (RFC 5072), which its link-local address ends with; 0: it has none.
    pub identifier: u64,
}

/// How many of everything there may be. Their tables have room for so many from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub sessions: usize,
    /// Addresses and prefixes, of each IP version.
    pub prefixes: usize,
}

#[cfg(test)]
mod tests;
