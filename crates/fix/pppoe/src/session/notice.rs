//! What is worth reporting to a person while a session runs.

use crate::control::ControlError;
use crate::session::{Demanded, Family, NetworkFailure};
use format::Quotable;
use std::net::Ipv4Addr;
use wire::ppp::PppProtocol;

/// Something worth reporting. `Display` is a whole sentence; what the peer said goes through [`Quotable`]. A session makes each
/// kind of notice once, so that no peer fills a log with them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Notice {
    /// LCP Identification (RFC 1570 section 2.1).
    #[error("The peer calls itself \"{}\".", Quotable(message))]
    Identification { message: Vec<u8> },
    /// LCP Time-Remaining (RFC 1570 section 2.2).
    #[error("The peer {} (it says \"{}\").", match seconds {
        &u32::MAX => "sets no limit to the session's time".to_owned(),
        seconds => format!("will end the session in {seconds} s"),
    }, Quotable(message))]
    TimeRemaining { seconds: u32, message: Vec<u8> },
    /// The other end's words with a successful authentication.
    #[error("The concentrator says \"{}\".", Quotable(message))]
    Welcome { message: Vec<u8> },
    /// Host: others were proposed.
    #[error("The concentrator demands {demanded}, which the configuration does not allow.")]
    MethodNotAllowed { demanded: Demanded },
    #[error("The peer sent back a challenge that this end had issued; it was not answered.")]
    OwnChallenge,
    #[error("The peer started LCP anew; everything is negotiated again.")]
    LcpRestarted,
    #[error("The peer sent a packet of protocol {protocol:?} that was dropped: {error}.")]
    Malformed { protocol: PppProtocol, error: ControlError },
    /// RFC 2516 section 7.
    #[error(
        "The peer sent a protocol field that begins with {first:#04x}; PPPoE allows no compressed ones, and it was dropped."
    )]
    BadProtocolField { first: u8 },
    #[error("The peer tried protocol {protocol:?}, which was rejected.")]
    UnknownProtocol { protocol: PppProtocol },
    #[error(
        "An answer of protocol {protocol:?} was not sent, since it is longer than what the peer receives."
    )]
    TooLong { protocol: PppProtocol },
    #[error("This end's own echo came back: the line may be looped.")]
    OwnEcho,
    #[error("The peer left an echo request without an answer.")]
    EchoLost,
    /// The peer wants to send, or be sent, no longer packets.
    #[error("The peer receives no more than {mru} bytes of PPP payload.")]
    PeerMru { mru: u16 },
    #[error("The peer named {address}, which is no address of a host; it was refused.")]
    BadAddress { address: Ipv4Addr },
    /// It ended or did not come up; the session goes on.
    #[error("{family} is not there: {failure}.")]
    NetworkFailed { family: Family, failure: NetworkFailure },
}

impl Notice {
    /// A number for each kind, below 32.
    pub(crate) const fn number(&self) -> u32 {
        match self {
            Notice::Identification { .. } => 0,
            Notice::TimeRemaining { .. } => 1,
            Notice::Welcome { .. } => 2,
            Notice::MethodNotAllowed { .. } => 3,
            Notice::OwnChallenge => 4,
            Notice::LcpRestarted => 5,
            Notice::Malformed { .. } => 6,
            Notice::BadProtocolField { .. } => 7,
            Notice::UnknownProtocol { .. } => 8,
            Notice::TooLong { .. } => 9,
            Notice::OwnEcho => 10,
            Notice::EchoLost => 11,
            Notice::PeerMru { .. } => 12,
            Notice::BadAddress { .. } => 13,
            Notice::NetworkFailed { family: Family::Ipv4, .. } => 14,
            Notice::NetworkFailed { family: Family::Ipv6, .. } => 15,
        }
    }
}
