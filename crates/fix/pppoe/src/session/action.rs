//! What a session wants done.

use crate::session::{Claim, Closed, Family, Ipv4, Ipv6, Notice, Phase};

/// What is to be done, in the order given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send this payload of a PPPoE session packet: the protocol field (two bytes) and the packet.
    Send(Vec<u8>),
    /// Concentrator: say what comes of this claim, by [`Session::authenticated`](crate::session::Session::authenticated),
    /// now or later.
    Authenticate(Claim),
    /// IPv4 packets may flow.
    Up4(Ipv4),
    /// IPv6 packets may flow.
    Up6(Ipv6),
    /// Packets of this protocol may not flow any more.
    Down(Family),
    Phase(Phase),
    Notice(Notice),
    /// The session is over; nothing follows. The caller sends a PADT.
    Closed(Closed),
}
