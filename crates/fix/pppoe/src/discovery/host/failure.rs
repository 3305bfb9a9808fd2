//! Why an attempt failed, in words that say what to do.

use super::Config;
use crate::discovery::complaint::Complaint;
use crate::discovery::message::TooLong;
use crate::discovery::offer::Offer;
use format::{Quotable, plural, quoted};
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

/// Why there is no session, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    #[error(
        "nobody answered {sent} PADI in {} s{ignored}: {}look whether the cable is in and the modem has sync and is bridging, whether \
         {}, and whether the operator knows this MAC address",
        waited.as_secs(),
        silent(config),
        other_tags(config)
    )]
    NoOffer { config: Arc<Config>, sent: u32, waited: Duration, ignored: Ignored },
    #[error(
        "{} answered {sent} PADI in {} s, and none is what is requested: {}",
        plural(offers.len() as u64, "concentrator"),
        waited.as_secs(),
        none_fits(config, offers)
    )]
    NoneFits { config: Arc<Config>, sent: u32, waited: Duration, offers: Vec<Offer> },
    /// A concentrator offered and then kept silent.
    #[error(
        "the concentrator {offer} made an offer and answered none of {sent} PADR in {} s{ignored}: it may have no room, refuse this \
         line or MAC address without a word, or still count an earlier session of this line; a later try may succeed",
        waited.as_secs()
    )]
    NoConfirmation { offer: Box<Offer>, sent: u32, waited: Duration, ignored: Ignored },
    #[error("the concentrator {offer} refused the session: {complaint}{}", complaint.advice())]
    Refused { offer: Box<Offer>, complaint: Complaint },
    /// 0 or 0xffff.
    #[error(
        "the concentrator {offer} confirmed a session under the number {session}, which no session can have (RFC 2516 section 4), \
         and gave no reason: that is a fault of the concentrator or a refusal; ask the operator"
    )]
    NoSession { offer: Box<Offer>, session: u16 },
    #[error("{0}: the service name is too long, or the concentrator's cookie is")]
    TooLong(TooLong),
}

impl Failure {
    /// Whether another attempt of the same kind can do no better, so that there is no hurry with it.
    pub(crate) fn is_lasting(&self) -> bool {
        matches!(self, Failure::TooLong(_) | Failure::NoneFits { .. })
    }
}

/// RFC 2516 section 5.2: a concentrator must not answer then.
fn silent(config: &Config) -> String {
    if config.service.is_empty() {
        return String::new();
    }
    format!(
        "a concentrator that does not serve \"{}\" keeps silent (`rxlane pppoe discover {}` lists what is served); ",
        Quotable(&config.service),
        interface(config)
    )
}

/// The interface as an argument of a command.
fn interface(config: &Config) -> String {
    if config.interface.is_empty() { "IFACE".to_owned() } else { quoted(&config.interface) }
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
fn none_fits(config: &Config, offers: &[Offer]) -> String {
    let mut named: Vec<_> =
        offers.iter().take(NAMED).map(|offer| format!("{offer} {}", unfit(config, offer))).collect();
    if offers.len() > NAMED {
        named.push(format!("and {} more", offers.len() - NAMED));
    }
    let lacks_service = offers.iter().any(|offer| !offer.serves(&config.service));
    // Some are not the requested one.
    let is_other = config.pin.as_ref().is_some_and(|pin| offers.iter().any(|offer| !pin.is(offer)));
    let advice = match (is_other, lacks_service) {
        (true, true) => "Name what is there by `--ac` and `--service`, or leave them out",
        (true, false) if !config.service.is_empty() => {
            let service = Quotable(&config.service);
            let advice = "Name one that is there by `--ac`, or leave it out; or the requested one is there and silent, since it";
            return format!(
                "{}. {advice} does not serve \"{service}\": leave out `--service`",
                named.join("; ")
            );
        }
        (true, false) => "Name one that is there by `--ac`, or leave it out",
        (false, true) => "Ask for a service that is there by `--service`, or leave it out",
        (false, false) => "A later try may succeed; if none does, ask the operator and quote this text",
    };
    format!("{}. {advice}", named.join("; "))
}

fn unfit(config: &Config, offer: &Offer) -> String {
    let service = Quotable(&config.service);
    let reasons = [
        offer.complaint.as_ref().map(|complaint| format!("says {complaint}")),
        config.pin.as_ref().filter(|pin| !pin.is(offer)).map(|pin| format!("is not {pin}")),
        (!offer.serves(&config.service))
            .then(|| format!("does not serve \"{service}\" (its services: {})", offer.services_in_words())),
    ];
    reasons.into_iter().flatten().collect::<Vec<_>>().join(" and ")
}
