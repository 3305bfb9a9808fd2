//! What is worth telling a person while a client runs.

use crate::discovery::offer::Offer;
use crate::session;
use std::fmt;

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
