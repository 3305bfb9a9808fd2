//! What is worth telling a person while a session runs.

use crate::control::ControlError;
use crate::session::{Demanded, Family, NetworkFailure};
use format::Quotable;
use std::fmt;
use std::net::Ipv4Addr;
use wire::ppp::PppProtocol;

/// Something worth telling. `Display` is a whole sentence; what the peer said goes through [`Quotable`]. A session makes each
/// kind of remark once, so that no peer fills a log with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remark {
    /// LCP Identification (RFC 1570 section 2.1).
    Identification { message: Vec<u8> },
    /// LCP Time-Remaining (RFC 1570 section 2.2).
    TimeRemaining {
        /// Until the peer will end the session.
        seconds: u32,
        message: Vec<u8>,
    },
    /// The other end's words with a successful authentication.
    Welcome { message: Vec<u8> },
    /// Host: a method of authentication was demanded that the configuration does not allow; others were proposed.
    MethodNotAllowed { demanded: Demanded },
    /// Host: a challenge that this end itself issued was not answered.
    OwnChallenge,
    /// The peer started LCP anew in mid-session.
    LcpRestarted,
    /// A packet that breaks the rules was dropped.
    Malformed { protocol: PppProtocol, error: ControlError },
    /// A packet with a compressed or otherwise bad protocol field was dropped (RFC 2516 section 7).
    BadProtocolField { first: u8 },
    /// A packet of a protocol that this end does not speak was rejected.
    UnknownProtocol { protocol: PppProtocol },
    /// An answer was not sent, since the peer could not receive it whole.
    TooLong { protocol: PppProtocol },
    /// This end's own echo came back.
    OwnEcho,
    /// An Echo-Request stayed without an answer.
    EchoLost,
    /// The peer wants to send, or be sent, packets that are no longer than this.
    PeerMru {
        /// Bytes of PPP payload.
        mru: u16,
    },
    /// The peer named an address that no host can have.
    BadAddress { address: Ipv4Addr },
    /// A network protocol ended or did not come up; the session goes on.
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

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Remark::Identification { message } => {
                write!(f, "The peer calls itself \"{}\".", Quotable(message))
            }
            Remark::TimeRemaining { seconds: u32::MAX, message } => {
                write!(f, "The peer sets no limit to the session's time (it says \"{}\").", Quotable(message))
            }
            Remark::TimeRemaining { seconds, message } => {
                write!(f, "The peer will end the session in {seconds} s (it says \"{}\").", Quotable(message))
            }
            Remark::Welcome { message } => write!(f, "The concentrator says \"{}\".", Quotable(message)),
            Remark::MethodNotAllowed { demanded } => {
                write!(f, "The concentrator demands {demanded}, which the configuration does not allow.")
            }
            Remark::OwnChallenge => {
                f.write_str("The peer sent back a challenge that this end had issued; it was not answered.")
            }
            Remark::LcpRestarted => f.write_str("The peer started LCP anew; everything is negotiated again."),
            Remark::Malformed { protocol, error } => {
                write!(f, "The peer sent a packet of protocol {protocol:?} that was dropped: {error}.")
            }
            Remark::BadProtocolField { first } => write!(
                f,
                "The peer sent a protocol field that begins with {first:#04x}; PPPoE allows no compressed ones, and it was dropped."
            ),
            Remark::UnknownProtocol { protocol } => {
                write!(f, "The peer tried protocol {protocol:?}, which was rejected.")
            }
            Remark::TooLong { protocol } => write!(
                f,
                "An answer of protocol {protocol:?} was not sent, since it is longer than what the peer receives."
            ),
            Remark::OwnEcho => f.write_str("This end's own echo came back: the line may be looped."),
            Remark::EchoLost => f.write_str("The peer left an echo request without an answer."),
            Remark::PeerMru { mru } => {
                write!(f, "The peer receives no more than {mru} bytes of PPP payload.")
            }
            Remark::BadAddress { address } => {
                write!(f, "The peer named {address}, which is no address of a host; it was refused.")
            }
            Remark::NetworkFailed { family, failure } => write!(f, "{family} is not there: {failure}."),
        }
    }
}
