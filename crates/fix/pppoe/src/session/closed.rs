//! Why a session ended, in words, and what to do about it.

use super::refusal::Subject;
use crate::ms_chap::Failure;
use crate::session::{Family, Method, Phase};
use format::Quotable;
use std::fmt;
use wire::ppp::PppProtocol;

/// Why a session ended. `Display` says what happened and, behind it, what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Closed {
    #[error("closed by this end")]
    Requested,
    /// The peer answered none of this end's LCP Configure-Requests.
    #[error("the peer answered none of {requests} LCP requests{}", match heard {
        true => ", though it sends LCP packets: it does not take this end's, or not as they are; capture the session's first packets \
                 and show them to the operator of the other end",
        false => ": the PPPoE session exists, but nobody speaks PPP in it; try again, and if it stays so, ask the operator of the \
                  other end",
    })]
    NoAnswer {
        requests: u32,
        /// It sent LCP packets, which were no answers.
        heard: bool,
    },
    /// The peer refused every proposal, or time ran out.
    #[error(
        "LCP came to no agreement: the peer kept refusing what was proposed; capture the session's first packets and show them to \
         the operator of the other end"
    )]
    NoAgreement,
    /// What this end sends comes back to it.
    #[error(
        "the line is looped back: this end hears itself; look for a loop in cables, switches or the modem"
    )]
    Looped,
    #[error(
        "the peer started LCP anew {times} times and never came further; the fault is at the other end, or frames are lost"
    )]
    Restarts { times: u32 },
    /// A network protocol came up so often within a minute.
    #[error(
        "the peer began network protocols anew so often that they came up {times} times within a minute; the fault is at the other \
         end"
    )]
    NetworkRestarts { times: u32 },
    /// Host: the concentrator demands a method of authentication that the configuration does not allow.
    #[error("the concentrator demands {}", not_allowed(*demanded, allowed))]
    MethodNotAllowed {
        demanded: Demanded,
        /// What is allowed; empty: there is no name to give.
        allowed: Vec<Method>,
    },
    /// Concentrator.
    #[error(
        "the subscriber agreed to no method of authentication that is demanded; allow it another one, or set one up there"
    )]
    MethodRefused,
    /// Host: the concentrator said no where name and password are requested, which need not be why.
    #[error("authentication failed{}", refused(*failure, message))]
    AuthenticationFailed {
        message: Vec<u8>,
        /// MS-CHAPv2: what the code in them means.
        failure: Option<Failure>,
    },
    /// Concentrator: the verdict on the subscriber's claim was no.
    #[error("\"{}\" was refused: unknown name or wrong password", Quotable(user))]
    SubscriberRefused { user: Vec<u8> },
    /// Host: the concentrator said yes by MS-CHAPv2, but could not show that it knows the password.
    #[error(
        "the concentrator does not know the password (its MS-CHAPv2 answer is wrong): it may not be your provider's; look with \
         `rxlane pppoe discover` who else answers, and name the right one with --ac"
    )]
    Impostor,
    #[error("{}", match waiting {
        Waiting::Challenge => "the concentrator agreed to CHAP and sent no challenge; try again",
        Waiting::Answer => {
            "the concentrator did not answer name and password; its user database may be out of reach: try again later"
        }
        Waiting::Claim => "the subscriber did not say who it is in time",
        Waiting::Verdict => "there was no verdict on name and password in time",
    })]
    AuthenticationTimeout { waiting: Waiting },
    #[error("the peer ended the session{}", ended(message, *phase))]
    PeerEnded { message: Vec<u8>, phase: Phase },
    /// It answered none of so many Echo-Requests in a row.
    #[error(
        "the peer is silent: it sent nothing and answered none of {echoes} echo requests in a row; check line and modem \
         if connecting again fails"
    )]
    PeerSilent { echoes: u32 },
    /// The peer does not understand what no session can be without.
    #[error(
        "the peer rejects {}protocol {protocol:?}, without which there is no session",
        code.map(|code| format!("code {code} of ")).unwrap_or_default()
    )]
    PeerRejected {
        protocol: PppProtocol,
        /// The code of the packet that it rejected; `None`: the protocol itself.
        code: Option<u8>,
    },
    /// What became of each; `None`: this end did not want it.
    #[error("no network protocol came up ({}); ask the operator of the other end what it gives", no_network([*ipv4, *ipv6]))]
    NoNetwork { ipv4: Option<NetworkFailure>, ipv6: Option<NetworkFailure> },
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkFailure {
    /// The peer did not answer, or no agreement was reached yet.
    #[error("no answer")]
    NoAnswer,
    /// By a Protocol-Reject.
    #[error("the peer does not speak it")]
    Rejected,
    /// The peer refused every proposal.
    #[error("no agreement")]
    NoAgreement,
    /// The peer gave none, or one that no host can have.
    #[error("no usable address was given")]
    NoAddress,
    #[error("the peer gave the address that is its own, so that no answer would find this end")]
    PeersAddress,
    #[error("ended by the peer")]
    PeerEnded,
    #[error("not granted")]
    NotGranted,
}

fn not_allowed(demanded: Demanded, allowed: &[Method]) -> String {
    if allowed.is_empty() {
        return format!(
            "to know who connects (by {demanded}), and there is no name to give: `--user` and `--password-file` have name and password"
        );
    }
    let allowed: Vec<_> = allowed.iter().map(Method::to_string).collect();
    let allowed = allowed.join(", ");
    format!(
        "{demanded}, which the configuration does not allow (allowed: {allowed}); if you trust the line with it, `--auth` allows it"
    )
}

fn refused(failure: Option<Failure>, message: &[u8]) -> String {
    let subject = Subject::of(failure, message);
    // The code that stands for everything must not contradict the words.
    let code = failure.filter(|failure| failure.code != 691 || subject == Subject::Credentials);
    let code = code.map(|failure| format!(": {failure}")).unwrap_or_default();
    format!("{code}{}; {}", said(message), subject.advice())
}

fn ended(message: &[u8], phase: Phase) -> String {
    let said = said(message);
    match phase {
        Phase::Lcp => format!(" while LCP was negotiated{said}"),
        Phase::Auth => format!(" during authentication{said}; {}", Subject::of(None, message).advice()),
        Phase::Network => format!(" while addresses were negotiated{said}"),
        Phase::Discovery | Phase::Open | Phase::Closed => said,
    }
}

/// What the peer said, if anything.
fn said(message: &[u8]) -> String {
    if message.is_empty() { String::new() } else { format!(" (it says \"{}\")", Quotable(message)) }
}

fn no_network(failures: [Option<NetworkFailure>; 2]) -> String {
    let families = [Family::Ipv4, Family::Ipv6].into_iter().zip(failures);
    let failed = families.filter_map(|(family, failure)| Some(format!("{family}: {}", failure?)));
    failed.collect::<Vec<_>>().join("; ")
}
