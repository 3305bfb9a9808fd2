//! Which offer is taken.

use super::{Action, Failure, Host, MOST_OFFERS, State};
use crate::Time;
use crate::discovery::message::Message;
use crate::discovery::offer::Offer;
use wire::ethernet::MacAddress;

impl Host {
    /// An offer has come.
    pub(super) fn offered(
        &mut self,
        now: Time,
        source: MacAddress,
        message: &Message<'_>,
        actions: &mut Vec<Action>,
    ) {
        let State::Initiating { uniq, next, offers, others, .. } = &mut self.state else {
            self.ignored.unexpected += 1;
            return;
        };
        if message.host_uniq() != Some(uniq) {
            self.ignored.foreign += 1;
            return;
        }
        let offer = Offer::new(source, message);
        let config = &self.config;
        let is_pinned = config.pin.as_ref().is_none_or(|pin| pin.is(&offer));
        let fits = is_pinned && offer.complaint.is_none() && offer.serves(&config.service);
        if !fits {
            self.ignored.surplus += u32::from(!keep(others, offer));
            return;
        }
        if offers.is_empty() {
            *next = now.saturating_add(config.timers.collect);
        }
        self.ignored.surplus += u32::from(!keep(offers, offer));
        if self.config.pin.is_some() {
            self.choose(now, actions);
        }
    }

    /// Takes one of the offers and asks it for a session.
    pub(super) fn choose(&mut self, now: Time, actions: &mut Vec<Action>) {
        let State::Initiating { uniq, offers, .. } = &mut self.state else { return };
        let uniq = *uniq;
        let asked = self.config.asked_payload();
        let agrees = |offer: &Offer| asked.is_none_or(|asked| offer.max_payload >= Some(asked));
        let place = offers.iter().position(agrees).unwrap_or(0);
        let mut others = std::mem::take(offers);
        if place >= others.len() {
            return;
        }
        let offer = others.remove(place);
        if !others.is_empty() {
            actions.push(Action::Chosen { offer: offer.clone(), others });
        }
        let offer = Box::new(offer);
        self.state = State::Requesting { uniq, sent: 0, since: now, next: now, offer };
        self.request(now, actions);
    }
}

/// Keeps an offer, in the place of an earlier one of the same concentrator, whose cookie may be older. Says whether there
/// was room.
fn keep(offers: &mut Vec<Offer>, offer: Offer) -> bool {
    let is_full = offers.len() >= MOST_OFFERS;
    match offers.iter_mut().find(|known| known.concentrator == offer.concentrator) {
        Some(known) => *known = offer,
        None if is_full => return false,
        None => offers.push(offer),
    }
    true
}

impl Failure {
    /// Whether another attempt of the same kind can do no better, so that there is no hurry with it.
    pub(crate) fn is_lasting(&self) -> bool {
        matches!(self, Failure::TooLong(_) | Failure::NoneFits { .. })
    }
}
