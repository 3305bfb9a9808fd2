//! Authentication, which begins when LCP is open: the end that shows who it is ([`peer`], a host) and the end that demands it
//! ([`authenticator`], a concentrator). In a session one end is the one and the other the other; a challenge to an
//! authenticator is never answered, so that nothing can be reflected.

mod authenticator;
mod peer;

pub(crate) use authenticator::Authenticator;
pub(crate) use peer::Peer;

use crate::session::Closed;

/// What came of a packet.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// Nothing yet, or nothing new.
    Going,
    /// This end was accepted, with these words.
    Accepted(Vec<u8>),
    Over(Closed),
}
