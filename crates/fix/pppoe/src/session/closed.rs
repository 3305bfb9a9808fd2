//! Why a session ended, in words, and what to do about it.

use super::refusal::Subject;
use crate::ms_chap::Failure;
use crate::session::{Family, Method, Phase};
use format::Quotable;
use std::fmt;
use wire::ppp::PppProtocol;

/// Why a session ended. `Display` says what happened and, behind it, what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Closed {
    Asked,
    /// The peer answered none of this end's LCP Configure-Requests.
    NoAnswer {
        requests: u32,
        /// It sent LCP packets, which were no answers.
        heard: bool,
    },
    /// LCP came to no agreement: the peer refused every proposal, or time ran out.
    NoAgreement,
    /// What this end sends comes back to it.
    Looped,
    /// LCP was started anew again and again, and nothing came of it.
    Restarts {
        times: u32,
    },
    /// Network protocols were ended and begun anew again and again.
    NetworkRestarts {
        /// How often one came up within a minute.
        times: u32,
    },
    /// Host: the concentrator demands a method of authentication that the configuration does not allow.
    MethodNotAllowed {
        demanded: Demanded,
        /// What is allowed; empty: there is no name to give.
        allowed: Vec<Method>,
    },
    /// Concentrator: the subscriber agrees to no method that is demanded.
    MethodRefused,
    /// Host: the concentrator said no where name and password are asked for, which need not be why.
    AuthenticationFailed {
        message: Vec<u8>,
        /// MS-CHAPv2: what the code in them means.
        failure: Option<Failure>,
    },
    /// Concentrator: the verdict on the subscriber's claim was no.
    SubscriberRefused {
        user: Vec<u8>,
    },
    /// Host: the concentrator said yes by MS-CHAPv2, but could not show that it knows the password.
    Impostor,
    AuthenticationTimeout {
        waiting: Waiting,
    },
    PeerEnded {
        message: Vec<u8>,
        phase: Phase,
    },
    PeerSilent {
        /// Echo-Requests in a row that it did not answer.
        echoes: u32,
    },
    /// The peer does not understand what no session can be without.
    PeerRejected {
        protocol: PppProtocol,
        /// The code of the packet that it rejected; `None`: the protocol itself.
        code: Option<u8>,
    },
    NoNetwork {
        /// What became of IPv4; `None`: this end did not want it.
        ipv4: Option<NetworkFailure>,
        /// What became of IPv6; `None`: this end did not want it.
        ipv6: Option<NetworkFailure>,
    },
}

/// What authentication waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Host: the concentrator's challenge.
    Challenge,
    /// Host: the concentrator's answer to name and password.
    Answer,
    /// Concentrator: the subscriber's name and proof.
    Claim,
    /// Concentrator: the verdict of whoever knows the secrets.
    Verdict,
}

/// A method of authentication as a peer demands it: the data of LCP's Authentication-Protocol option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demanded {
    pub protocol: u16,
    /// CHAP: the algorithm.
    pub(crate) algorithm: Option<u8>,
}

impl fmt::Display for Demanded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.protocol, self.algorithm) {
            (0xc023, _) => f.write_str("PAP"),
            (0xc223, Some(0x05)) => f.write_str("CHAP-MD5"),
            (0xc223, Some(0x80)) => f.write_str("MS-CHAP (version 1)"),
            (0xc223, Some(0x81)) => f.write_str("MS-CHAPv2"),
            (0xc223, Some(algorithm)) => write!(f, "CHAP with algorithm {algorithm}"),
            (0xc227, _) => f.write_str("EAP"),
            (protocol, _) => write!(f, "authentication by protocol {protocol:#06x}"),
        }
    }
}

/// What became of a network protocol that is not up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkFailure {
    /// The peer did not answer, or no agreement was reached yet.
    NoAnswer,
    /// The peer does not speak it (Protocol-Reject).
    Rejected,
    /// The peer refused every proposal.
    NoAgreement,
    /// The peer gave no address, or one that no host can have.
    NoAddress,
    PeersAddress,
    PeerEnded,
    NotGranted,
}

impl fmt::Display for NetworkFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NetworkFailure::NoAnswer => "no answer",
            NetworkFailure::Rejected => "the peer does not speak it",
            NetworkFailure::NoAgreement => "no agreement",
            NetworkFailure::NoAddress => "no usable address was given",
            NetworkFailure::PeersAddress => {
                "the peer gave the address that is its own, so that no answer would find this end"
            }
            NetworkFailure::PeerEnded => "ended by the peer",
            NetworkFailure::NotGranted => "not granted",
        })
    }
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Closed::Asked => f.write_str("closed by this end"),
            Closed::NoAnswer { requests, heard: true } => write!(
                f,
                "the peer answered none of {requests} LCP requests, though it sends LCP packets: it does not take this end's, or not \
                 as they are; capture the session's first packets and show them to the operator of the other end"
            ),
            Closed::NoAnswer { requests, heard: false } => write!(
                f,
                "the peer answered none of {requests} LCP requests: the PPPoE session exists, but nobody speaks PPP in it; \
                 try again, and if it stays so, ask the operator of the other end"
            ),
            Closed::NoAgreement => f.write_str(
                "LCP came to no agreement: the peer kept refusing what was proposed; capture the session's first packets and \
                 show them to the operator of the other end",
            ),
            Closed::Looped => f.write_str(
                "the line is looped back: this end hears itself; look for a loop in cables, switches or the modem",
            ),
            Closed::Restarts { times } => write!(
                f,
                "the peer started LCP anew {times} times and never came further; the fault is at the other end, or frames are lost"
            ),
            Closed::NetworkRestarts { times } => write!(
                f,
                "the peer began network protocols anew so often that they came up {times} times within a minute; the fault is at the \
                 other end"
            ),
            Closed::MethodNotAllowed { demanded, allowed } if allowed.is_empty() => write!(
                f,
                "the concentrator demands to know who connects (by {demanded}), and there is no name to give: `--user` and \
                 `--password-file` have name and password"
            ),
            Closed::MethodNotAllowed { demanded, allowed } => {
                write!(f, "the concentrator demands {demanded}, which the configuration does not allow (allowed: ")?;
                methods(allowed, f)?;
                f.write_str("); if you trust the line with it, `--auth` allows it")
            }
            Closed::MethodRefused => f.write_str(
                "the subscriber agreed to no method of authentication that is demanded; allow it another one, or set one up there",
            ),
            Closed::AuthenticationFailed { message, failure } => {
                let subject = Subject::of(*failure, message);
                f.write_str("authentication failed")?;
                // The code that stands for everything must not contradict the words.
                let is_said = |failure: &&Failure| failure.code != 691 || subject == Subject::Credentials;
                if let Some(failure) = failure.as_ref().filter(is_said) {
                    write!(f, ": {failure}")?;
                }
                said(message, f)?;
                write!(f, "; {}", subject.advice())
            }
            Closed::SubscriberRefused { user } => {
                write!(f, "\"{}\" was refused: unknown name or wrong password", Quotable(user))
            }
            Closed::Impostor => f.write_str(
                "the concentrator does not know the password (its MS-CHAPv2 answer is wrong): it may not be your provider's; \
                 look with `rxlane pppoe discover` who else answers, and name the right one with --ac",
            ),
            Closed::AuthenticationTimeout { waiting } => match waiting {
                Waiting::Challenge => f.write_str("the concentrator agreed to CHAP and sent no challenge; try again"),
                Waiting::Answer => f.write_str(
                    "the concentrator did not answer name and password; its user database may be out of reach: try again later",
                ),
                Waiting::Claim => f.write_str("the subscriber did not say who it is in time"),
                Waiting::Verdict => f.write_str("there was no verdict on name and password in time"),
            },
            Closed::PeerEnded { message, phase } => {
                f.write_str("the peer ended the session")?;
                f.write_str(match phase {
                    Phase::Lcp => " while LCP was negotiated",
                    Phase::Auth => " during authentication",
                    Phase::Network => " while addresses were negotiated",
                    Phase::Discovery | Phase::Open | Phase::Closed => "",
                })?;
                said(message, f)?;
                match phase {
                    Phase::Auth => write!(f, "; {}", Subject::of(None, message).advice()),
                    _ => Ok(()),
                }
            }
            Closed::PeerSilent { echoes } => write!(
                f,
                "the peer is gone: nothing came from it and {echoes} echo requests in a row stayed without an answer; check line \
                 and modem if connecting again fails"
            ),
            Closed::PeerRejected { protocol, code: None } => {
                write!(f, "the peer rejects protocol {protocol:?}, without which there is no session")
            }
            Closed::PeerRejected { protocol, code: Some(code) } => {
                write!(f, "the peer rejects code {code} of protocol {protocol:?}, without which there is no session")
            }
            Closed::NoNetwork { ipv4, ipv6 } => {
                f.write_str("no network protocol came up (")?;
                let families = [(Family::Ipv4, ipv4), (Family::Ipv6, ipv6)];
                let wanted = families.iter().filter_map(|(family, failure)| failure.map(|failure| (family, failure)));
                for (number, (family, failure)) in wanted.enumerate() {
                    write!(f, "{}{family}: {failure}", if number == 0 { "" } else { "; " })?;
                }
                f.write_str("); ask the operator of the other end what it gives")
            }
        }
    }
}

impl std::error::Error for Closed {}

/// What the peer said, if anything.
fn said(message: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if message.is_empty() { Ok(()) } else { write!(f, " (it says \"{}\")", Quotable(message)) }
}

fn methods(methods: &[Method], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    methods
        .iter()
        .enumerate()
        .try_for_each(|(number, method)| write!(f, "{}{method}", if number == 0 { "" } else { ", " }))
}
