//! Why an attempt failed, in words that say what to do.

use super::Config;
use crate::discovery::complaint::Complaint;
use crate::discovery::message::TooLong;
use crate::discovery::offer::Offer;
use format::{Quotable, plural};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use wire::Vlans;
use wire::error::Error;

/// Packets that came and did not count, by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ignored {
    /// To another station or to a group, or from a group.
    pub addresses: u32,
    /// Bytes that contradict themselves.
    pub malformed: u32,
    /// What was wrong with the last of these.
    pub error: Option<Error>,
    /// With another Host-Uniq, from another concentrator, of another session.
    pub foreign: u32,
    /// Of a kind that means nothing at that moment.
    pub unexpected: u32,
    /// Offers for which there was no room.
    pub surplus: u32,
}

impl Ignored {
    pub(in crate::discovery) fn malformed(&mut self, error: Error) {
        self.malformed += 1;
        self.error = Some(error);
    }
}

impl fmt::Display for Ignored {
    /// `; 3 packets to other stations, …`, or nothing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ignored { addresses, malformed, error, foreign, unexpected, surplus } = self;
        let reasons = [
            (*addresses, "for other stations"),
            (*foreign, "that answer somebody else (another Host-Uniq, sender or session)"),
            (*unexpected, "out of turn"),
            (*surplus, "more offers than are kept"),
            (*malformed, "that contradict themselves"),
        ];
        let mut lead = "; ignored: ";
        for (count, reason) in reasons.into_iter().filter(|(count, _)| *count > 0) {
            write!(f, "{lead}{count} {reason}")?;
            lead = ", ";
        }
        match error {
            Some(error) => write!(f, " ({error})"),
            None => Ok(()),
        }
    }
}

/// Why there is no session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Nobody answered.
    NoOffer {
        config: Arc<Config>,
        sent: u32,
        waited: Duration,
        ignored: Ignored,
    },
    /// Some answered, and none is what is wanted.
    NoneFits {
        config: Arc<Config>,
        sent: u32,
        waited: Duration,
        offers: Vec<Offer>,
    },
    /// A concentrator offered and then kept silent.
    NoConfirmation {
        offer: Box<Offer>,
        sent: u32,
        waited: Duration,
        ignored: Ignored,
    },
    Refused {
        offer: Box<Offer>,
        complaint: Complaint,
    },
    /// The concentrator gave a number that no session has.
    NoSession {
        offer: Box<Offer>,
        /// The number, 0 or 0xffff.
        session: u16,
    },
    TooLong(TooLong),
}

impl Failure {
    /// Whether another attempt of the same kind can do no better, so that there is no hurry with it.
    pub(crate) fn is_lasting(&self) -> bool {
        matches!(self, Failure::TooLong(_) | Failure::NoneFits { .. })
    }
}

impl fmt::Display for Failure {
    /// What happened, and what to do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::NoOffer { config, sent, waited, ignored } => {
                write!(f, "nobody answered {sent} PADI in {} s{ignored}: ", waited.as_secs())?;
                // RFC 2516 section 5.2: it must not answer then.
                if !config.service.is_empty() {
                    let service = Quotable(&config.service);
                    let interface = interface(config);
                    write!(
                        f,
                        "a concentrator that does not serve \"{service}\" keeps silent (`rxlane pppoe discover {interface}` lists \
                         what is served); "
                    )?;
                }
                write!(
                    f,
                    "look whether the cable is in and the modem has sync and is bridging, whether {}, and whether the operator \
                     knows this MAC address",
                    other_tags(config)
                )
            }
            Failure::NoneFits { config, sent, waited, offers } => {
                let (count, seconds) = (offers.len(), waited.as_secs());
                write!(
                    f,
                    "{} answered {sent} PADI in {seconds} s, and none is what is wanted: ",
                    plural(count as u64, "concentrator")
                )?;
                none_fits(f, config, offers)
            }
            Failure::NoConfirmation { offer, sent, waited, ignored } => write!(
                f,
                "the concentrator {offer} made an offer and answered none of {sent} PADR in {} s{ignored}: it may have no \
                 room, refuse this line or MAC address without a word, or still count an earlier session of this line; \
                 a later try may succeed",
                waited.as_secs()
            ),
            Failure::Refused { offer, complaint } => {
                write!(f, "the concentrator {offer} refused the session: {complaint}{}", complaint.advice())
            }
            Failure::NoSession { offer, session } => write!(
                f,
                "the concentrator {offer} confirmed a session under the number {session}, which no session can have (RFC \
                 2516 section 4), and gave no reason: that is a fault of the concentrator or a refusal; ask the operator"
            ),
            Failure::TooLong(error) => {
                write!(f, "{error}: the service name is too long, or the concentrator's cookie is")
            }
        }
    }
}

/// The interface as a command is to name it.
fn interface(config: &Config) -> &str {
    if config.interface.is_empty() { "IFACE" } else { &config.interface }
}

/// Which tags the line may want instead of those that it was tried with.
fn other_tags(config: &Config) -> String {
    let interface = interface(config);
    if config.vlans == Vlans::NONE {
        return format!("the line wants a VLAN tag (`rxlane pppoe discover {interface} --vlan 7`; many do)");
    }
    format!(
        "the line wants another VLAN tag than {}, or none (`rxlane pppoe discover {interface}`: the modem may put it on)",
        config.vlans
    )
}

/// So many of those who answered are named.
const NAMED: usize = 4;

/// Who answered, why that is not enough, and what to do.
fn none_fits(f: &mut fmt::Formatter<'_>, config: &Config, offers: &[Offer]) -> fmt::Result {
    for (number, offer) in offers.iter().take(NAMED).enumerate() {
        write!(f, "{}{offer} ", if number == 0 { "" } else { "; " })?;
        unfit(f, config, offer)?;
    }
    if offers.len() > NAMED {
        write!(f, "; and {} more", offers.len() - NAMED)?;
    }
    let lacks_service = offers.iter().any(|offer| !offer.serves(&config.service));
    let is_other = is_other(config, offers);
    if is_other && !lacks_service && !config.service.is_empty() {
        let service = Quotable(&config.service);
        return write!(
            f,
            ". Name one that is there by `--ac`, or leave it out; or the one that is wanted is there and silent, since it does \
             not serve \"{service}\": leave out `--service`"
        );
    }
    f.write_str(match (is_other, lacks_service) {
        (true, true) => ". Name what is there by `--ac` and `--service`, or leave them out",
        (true, false) => ". Name one that is there by `--ac`, or leave it out",
        (false, true) => ". Ask for a service that is there by `--service`, or leave it out",
        (false, false) => ". A later try may succeed; if none does, ask the operator and quote this text",
    })
}

/// Whether some are not the one that is wanted.
fn is_other(config: &Config, offers: &[Offer]) -> bool {
    config.pin.as_ref().is_some_and(|pin| offers.iter().any(|offer| !pin.is(offer)))
}

fn unfit(f: &mut fmt::Formatter<'_>, config: &Config, offer: &Offer) -> fmt::Result {
    let mut lead = "";
    if let Some(complaint) = &offer.complaint {
        write!(f, "says {complaint}")?;
        lead = " and ";
    }
    if let Some(pin) = config.pin.as_ref().filter(|pin| !pin.is(offer)) {
        write!(f, "{lead}is not {pin}")?;
        lead = " and ";
    }
    if !offer.serves(&config.service) {
        let service = Quotable(&config.service);
        write!(f, "{lead}does not serve \"{service}\" (its services: {})", offer.services_in_words())?;
    }
    Ok(())
}
