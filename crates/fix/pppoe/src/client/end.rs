//! Why an attempt or a session is over, and what else is worth reporting to a person while a client runs.

use crate::discovery::host::{Failure, Terminated};
use crate::discovery::offer::Offer;
use crate::session::{self, Closed};

/// Why. `Display` says what happened and, behind it, what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum End {
    #[error("{0}")]
    NotFound(Failure),
    #[error("{0}")]
    Session(Closed),
    /// The concentrator ended it by a PADT, and nobody had said why before.
    #[error("the concentrator ended the session by a PADT and {}", reason(.0))]
    Terminated(Terminated),
    #[error(
        "the interface has another MAC address, and the session belonged to the one before: another try makes one of its own"
    )]
    AddressChanged,
    /// It was closed before there was a session, or for the second time.
    #[error("closed by this end")]
    Requested,
}

impl End {
    /// Of a session that a PADT ended. Where PPP had begun to end it (`ending`), that is the reason, and the PADT stands in for the
    /// Terminate-Ack: rp-pppoe's server loses that when its pppd has ended first.
    pub(super) fn of_padt(terminated: Terminated, ending: Option<&Closed>) -> End {
        match ending {
            // The Terminate-Request gave no reason, the PADT may.
            Some(Closed::PeerEnded { message, .. }) if message.is_empty() => End::Terminated(terminated),
            Some(closed) => End::Session(closed.clone()),
            None => End::Terminated(terminated),
        }
    }

    /// Whether trying again soon can hardly bring another result.
    pub(crate) fn is_lasting(&self) -> bool {
        match self {
            End::NotFound(failure) => failure.is_lasting(),
            End::Session(closed) => matches!(
                closed,
                Closed::MethodNotAllowed { .. } | Closed::AuthenticationFailed { .. } | Closed::Impostor
            ),
            End::Terminated(_) | End::AddressChanged | End::Requested => false,
        }
    }

    /// Whether this end closed it because of a request.
    pub fn is_requested(&self) -> bool {
        matches!(self, End::Requested | End::Session(Closed::Requested))
    }

    /// What the PADT says about it.
    pub(super) fn for_peer(&self) -> Option<&'static str> {
        match self {
            End::Session(Closed::Requested) | End::Requested => Some("closed by the subscriber"),
            End::Session(Closed::PeerSilent { .. }) => Some("echo requests were not answered"),
            End::Session(_) => Some("PPP ended"),
            End::NotFound(_) | End::Terminated(_) | End::AddressChanged => None,
        }
    }
}

fn reason(terminated: &Terminated) -> String {
    match &terminated.complaint {
        Some(complaint) => format!("says {complaint}"),
        None => "gave no reason; operators do so at fixed times, for maintenance, and when the same user connects elsewhere: the \
                 next try is likely to succeed"
            .to_owned(),
    }
}

/// Something worth reporting. `Display` is a whole sentence, with what peers said escaped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Notice {
    #[error(
        "{} concentrators answered. {offer} was taken; the others: {}. `--ac` names the one to be taken.",
        others.len() + 1,
        named(others)
    )]
    Chosen { offer: Offer, others: Vec<Offer> },
    /// The concentrator does not agree to the payload requested (RFC 4638): what was requested, and what holds instead, bytes.
    #[error(
        "The concentrator {offer} did not {} PPP-Max-Payload {requested} (RFC 4638): packets of this session are no longer than \
         {agreed} bytes.",
        if offer.max_payload.is_some() { "agree to" } else { "answer to" }
    )]
    Payload { offer: Offer, requested: u16, agreed: u16 },
    #[error("{0}")]
    Session(session::Notice),
    #[error("The line below went down; a session is kept until its echo requests stay without answers.")]
    LineDown,
    #[error("The line below came up.")]
    LineUp,
}

const NAMED: usize = 4;

fn named(offers: &[Offer]) -> String {
    let named: Vec<_> = offers.iter().take(NAMED).map(Offer::to_string).collect();
    let more = offers.len().saturating_sub(NAMED);
    named.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() }
}
