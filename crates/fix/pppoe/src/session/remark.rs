//! What is worth telling a person while a session runs.

use crate::control::ControlError;
use crate::session::{Demanded, Family, NetworkFailure};
use format::Quotable;
use std::net::Ipv4Addr;
use wire::ppp::PppProtocol;

/// Something worth telling. `Display` is a whole sentence; what the peer said goes through [`Quotable`]. A session makes each
/// kind of remark once, so that no peer fills a log with them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Remark {
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

impl Remark {
    /// Tells the kinds apart, below 32.
    pub(crate) const fn number(&self) -> u32 {
        match self {
            Remark::Identification { .. } => 0,
            Remark::TimeRemaining { .. } => 1,
            Remark::Welcome { .. } => 2,
            Remark::MethodNotAllowed { .. } => 3,
            Remark::OwnChallenge => 4,
            Remark::LcpRestarted => 5,
            Remark::Malformed { .. } => 6,
            Remark::BadProtocolField { .. } => 7,
            Remark::UnknownProtocol { .. } => 8,
            Remark::TooLong { .. } => 9,
            Remark::OwnEcho => 10,
            Remark::EchoLost => 11,
            Remark::PeerMru { .. } => 12,
            Remark::BadAddress { .. } => 13,
            Remark::NetworkFailed { family: Family::Ipv4, .. } => 14,
            Remark::NetworkFailed { family: Family::Ipv6, .. } => 15,
        }
    }
}
