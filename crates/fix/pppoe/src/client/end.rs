//! Why an attempt or a session is over, and what else is worth telling a person while a client runs.

use crate::discovery::host::{Failure, Terminated};
use crate::discovery::offer::Offer;
use crate::session::{self, Closed};
use std::fmt;

/// Why. `Display` says what happened and, behind it, what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    NotFound(Failure),
    Session(Closed),
    /// The concentrator ended it by a PADT, and nobody had said why before.
    Terminated(Terminated),
    AddressChanged,
    /// It was closed before there was a session, or for the second time.
    Asked,
}

impl End {
    /// Of a session that a PADT ended. Where PPP had begun to end it (`ending`), that is the reason, and the PADT stands in for the
    /// Terminate-Ack: rp-pppoe's server loses that when its pppd is gone first.
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
            End::Terminated(_) | End::AddressChanged | End::Asked => false,
        }
    }

    /// Whether this end closed it because it was asked to.
    pub fn is_asked(&self) -> bool {
        matches!(self, End::Asked | End::Session(Closed::Asked))
    }

    /// What the PADT says about it.
    pub(super) fn for_peer(&self) -> Option<&'static str> {
        match self {
            End::Session(Closed::Asked) | End::Asked => Some("closed by the subscriber"),
            End::Session(Closed::PeerSilent { .. }) => Some("echo requests were not answered"),
            End::Session(_) => Some("PPP ended"),
            End::NotFound(_) | End::Terminated(_) | End::AddressChanged => None,
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::NotFound(failure) => failure.fmt(f),
            End::Session(closed) => closed.fmt(f),
            End::Terminated(Terminated { complaint }) => {
                f.write_str("the concentrator ended the session by a PADT")?;
                match complaint {
                    Some(complaint) => write!(f, " and says {complaint}"),
                    None => f.write_str(
                        " and gave no reason; operators do so at fixed times, for maintenance, and when the same user connects \
                         elsewhere: the next try is likely to succeed",
                    ),
                }
            }
            End::AddressChanged => f.write_str(
                "the interface has another MAC address, and the session belonged to the one before: another try makes one of its own",
            ),
            End::Asked => f.write_str("closed by this end"),
        }
    }
}

/// Something worth telling. `Display` is a whole sentence, with what peers said escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remark {
    Chosen {
        offer: Offer,
        others: Vec<Offer>,
    },
    /// The concentrator does not agree to the payload wanted (RFC 4638).
    Payload {
        offer: Offer,
        /// What was asked for, bytes.
        asked: u16,
        /// What holds instead, bytes.
        agreed: u16,
    },
    Session(session::Remark),
    LineDown,
    LineUp,
}

const NAMED: usize = 4;

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Remark::Chosen { offer, others } => {
                write!(f, "{} concentrators answered. {offer} was taken; the others: ", others.len() + 1)?;
                for (number, other) in others.iter().take(NAMED).enumerate() {
                    write!(f, "{}{other}", if number == 0 { "" } else { ", " })?;
                }
                if others.len() > NAMED {
                    write!(f, " and {} more", others.len() - NAMED)?;
                }
                f.write_str(". `--ac` names the one to be taken.")
            }
            Remark::Payload { offer, asked, agreed } => {
                write!(f, "The concentrator {offer} ")?;
                match offer.max_payload {
                    None => write!(f, "did not answer to PPP-Max-Payload {asked} (RFC 4638)")?,
                    Some(_) => write!(f, "did not agree to PPP-Max-Payload {asked} (RFC 4638)")?,
                }
                write!(f, ": packets of this session are no longer than {agreed} bytes.")
            }
            Remark::Session(remark) => remark.fmt(f),
            Remark::LineDown => f.write_str(
                "The line below went down; a session is kept until its echo requests stay without answers.",
            ),
            Remark::LineUp => f.write_str("The line below came up."),
        }
    }
}
