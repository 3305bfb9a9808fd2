//! The host's end of discovery (RFC 2516 section 5): looks for a concentrator, takes one of the offers, gets a session.
//!
//! # Contract
//!
//! * [`Host::start`] begins an attempt: a PADI under a Host-Uniq drawn at random, again with doubled waiting time (section
//!   8) until an offer comes or the attempts are used up, sooner where all who answer do not fit; then a PADR in the same way. It
//!   ends in [`Action::Found`] or [`Action::Failed`], whatever comes in.
//! * Offers count when they carry that Host-Uniq, are addressed to this host alone, and come from a single station. The
//!   first one opens a short window in which others may come, unless it is the pinned one; of those that fit, the first that
//!   agrees to the payload requested is taken, else the first. At most [`MOST_OFFERS`] are kept.
//! * What belongs to the session comes from the concentrator's address or is ignored. Nothing that is ignored ends an attempt,
//!   and a failure says what was.
//! * PPP-Max-Payload (RFC 4638) is sent only where more than 1492 bytes are requested, and [`Found::max_payload`] is never more
//!   than what both ends named.

mod failure;
#[cfg(test)]
mod tests;

pub use failure::{Failure, Ignored};

use super::complaint::Complaint;
use super::message::{Builder, LONGEST_PADI, Message, TooLong, padt};
use super::offer::{Offer, Pin};
use super::{PLAIN_PAYLOAD, Packet, is_session};
use crate::{Invalid, Random, Time, backoff, draw};
use std::sync::Arc;
use std::time::Duration;
use wire::Vlans;
use wire::ethernet::MacAddress;
use wire::pppoe::{Code, TagType};

/// Most offers that are kept of those that fit, and of those that do not.
pub const MOST_OFFERS: usize = 16;

/// What is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Service-Name; empty for any.
    pub service: Vec<u8>,
    /// The only concentrator to be taken; `None`: any.
    pub pin: Option<Pin>,
    /// PPP payload requested, bytes; above 1492 it is requested by PPP-Max-Payload.
    pub max_payload: u16,
    pub timers: Timers,
    /// Name of the interface, for advice; empty: nobody has said it.
    pub interface: String,
    pub vlans: Vlans,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            service: Vec::new(),
            pin: None,
            max_payload: PLAIN_PAYLOAD,
            timers: Timers::DEFAULT,
            interface: String::new(),
            vlans: Vlans::NONE,
        }
    }
}

impl Config {
    /// What PPP-Max-Payload says (RFC 4638 section 5: only where more than 1492 bytes are requested).
    pub(crate) fn requested_payload(&self) -> Option<u16> {
        Some(self.max_payload).filter(|bytes| *bytes > PLAIN_PAYLOAD)
    }

    /// Sees that a PADI has room for the name of the service. Whether a PADR has, is known when there is an offer, whose
    /// cookie is in it, too.
    ///
    /// # Errors
    ///
    /// How long the name may be.
    pub fn check(&self) -> Result<(), Invalid> {
        let without = Config { service: Vec::new(), ..self.clone() }.padi(&[0; UNIQ]).length();
        let (length, most) = (self.service.len(), LONGEST_PADI.saturating_sub(without));
        if length <= most {
            return Ok(());
        }
        Err(Invalid(format!(
            "the name of the service has {length} bytes, and a PADI has room for {most} (RFC 2516 section 5.1)"
        )))
    }

    fn padi(&self, uniq: &[u8; UNIQ]) -> Builder {
        Builder::new(Code::PADI, 0)
            .tag(TagType::SERVICE_NAME, &self.service)
            .tag(TagType::HOST_UNIQ, uniq)
            .max_payload(self.requested_payload())
    }
}

/// Times and counts of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timers {
    /// How long the first PADI or PADR waits for an answer; each further one twice as long as the one before.
    pub first: Duration,
    /// The longest such wait.
    pub longest: Duration,
    /// PADI in an attempt that nobody answers.
    pub(crate) initiations: u32,
    /// PADI in an attempt that only concentrators answer which do not fit. The requested one has received them, too.
    pub(crate) unfit: u32,
    pub requests: u32,
    /// How long other offers are waited for when the first has come.
    pub collect: Duration,
}

impl Timers {
    /// Six PADI within 47 s, or three within 7 s where somebody answers; five PADR within 31 s, a quarter of a second for further offers.
    pub const DEFAULT: Timers = Timers {
        first: Duration::from_secs(1),
        longest: Duration::from_secs(16),
        initiations: 6,
        unfit: 3,
        requests: 5,
        collect: Duration::from_millis(250),
    };

    /// How long a search lasts that nobody answers.
    pub fn search(&self) -> Duration {
        (1..=self.initiations).map(|number| self.wait(number)).sum()
    }

    /// How long the attempt of this number, counted from 1, waits.
    fn wait(&self, number: u32) -> Duration {
        backoff(self.first, number, self.longest)
    }
}

/// A session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub session: u16,
    pub offer: Offer,
    /// Most bytes of PPP payload either way, by which the MRU is negotiated: 1492, or what both ends named.
    pub max_payload: u16,
    pub(crate) requested_payload: Option<u16>,
}

impl Found {
    /// Whether more than 1492 bytes were requested, and less came of it.
    pub(crate) fn fell_back(&self) -> bool {
        self.requested_payload.is_some_and(|requested| self.max_payload < requested)
    }
}

/// What is to be done, or was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    Send {
        destination: MacAddress,
        /// Payload of a frame of EtherType 0x8863.
        payload: Vec<u8>,
    },
    /// Several concentrators fit, and this one was chosen.
    Chosen {
        offer: Offer,
        others: Vec<Offer>,
    },
    Found(Box<Found>),
    /// The attempt failed, and the machine is idle.
    Failed(Failure),
}

/// The machine. It has at most 32 offers of one frame each.
#[derive(Debug)]
pub struct Host {
    config: Arc<Config>,
    own: MacAddress,
    state: State,
    ignored: Ignored,
}

/// Bytes of Host-Uniq: nobody who does not hear the PADI guesses it.
const UNIQ: usize = 16;

#[derive(Debug)]
enum State {
    Idle,
    Initiating {
        uniq: [u8; UNIQ],
        sent: u32,
        since: Time,
        /// When the next PADI goes out, or the choice is made.
        next: Time,
        offers: Vec<Offer>,
        /// Those that do not fit, to say so.
        others: Vec<Offer>,
    },
    Requesting {
        uniq: [u8; UNIQ],
        sent: u32,
        since: Time,
        next: Time,
        offer: Box<Offer>,
    },
    Found {
        uniq: [u8; UNIQ],
        session: u16,
        concentrator: MacAddress,
    },
}

impl Host {
    /// A machine that is idle. `own`: MAC address of the interface.
    pub fn new(config: Arc<Config>, own: MacAddress) -> Host {
        Host { config, own, state: State::Idle, ignored: Ignored::default() }
    }

    /// Begins an attempt, whatever was before.
    pub fn start(&mut self, now: Time, random: &mut dyn Random, actions: &mut Vec<Action>) {
        self.ignored = Ignored::default();
        let (uniq, offers, others) = (draw(random), Vec::new(), Vec::new());
        self.state = State::Initiating { uniq, sent: 0, since: now, next: now, offers, others };
        self.tick(now, actions);
    }

    /// Ends an attempt, or forgets the session, without a word to anybody.
    pub(crate) fn stop(&mut self) {
        self.state = State::Idle;
    }

    /// Ends a session with a PADT; an attempt ends in silence.
    pub(crate) fn terminate(&mut self, text: Option<&str>, actions: &mut Vec<Action>) {
        if let State::Found { session, concentrator, .. } = self.state {
            actions.push(Action::Send { destination: concentrator, payload: padt(session, text) });
        }
        self.state = State::Idle;
    }

    /// When [`Host::tick`] is to be called.
    pub fn deadline(&self) -> Option<Time> {
        match &self.state {
            State::Initiating { next, .. } | State::Requesting { next, .. } => Some(*next),
            State::Idle | State::Found { .. } => None,
        }
    }

    /// What was ignored since the attempt began.
    pub fn ignored(&self) -> &Ignored {
        &self.ignored
    }

    /// Takes a packet of EtherType 0x8863 and says whether it is a PADT that ends the session, with what the concentrator
    /// says about it: from its address, with the number of the session, to this host alone.
    pub fn receive(
        &mut self,
        now: Time,
        packet: Packet<'_>,
        actions: &mut Vec<Action>,
    ) -> Option<Terminated> {
        if packet.source.is_multicast() || packet.destination != self.own {
            self.ignored.addresses += 1;
            return None;
        }
        let message = match Message::parse(packet.payload) {
            Ok(message) => message,
            Err(error) => {
                self.ignored.malformed(error);
                return None;
            }
        };
        match message.code() {
            Code::PADO => self.offered(now, packet.source, &message, actions),
            Code::PADS => self.confirmed(packet.source, &message, actions),
            Code::PADT => return self.terminated(packet.source, &message),
            // A host's packets, to a host.
            _ => self.ignored.unexpected += 1,
        }
        None
    }

    /// To be called when the time of [`Host::deadline`] has come; nothing happens before.
    pub fn tick(&mut self, now: Time, actions: &mut Vec<Action>) {
        match &mut self.state {
            State::Initiating { next, .. } | State::Requesting { next, .. } if now < *next => {}
            State::Initiating { offers, .. } if !offers.is_empty() => self.choose(now, actions),
            State::Initiating { .. } => self.initiate(now, actions),
            State::Requesting { .. } => self.request(now, actions),
            State::Idle | State::Found { .. } => {}
        }
    }

    fn initiate(&mut self, now: Time, actions: &mut Vec<Action>) {
        let State::Initiating { uniq, sent, since, next, others, .. } = &mut self.state else { return };
        let timers = &self.config.timers;
        let most = if others.is_empty() { timers.initiations } else { timers.unfit };
        if *sent >= most {
            let (config, offers) = (self.config.clone(), std::mem::take(others));
            let (sent, waited) = (*sent, now.saturating_sub(*since));
            let failure = match offers.is_empty() {
                true => Failure::NoOffer { config, sent, waited, ignored: self.ignored.clone() },
                false => Failure::NoneFits { config, sent, waited, offers },
            };
            return self.fail(failure, actions);
        }
        *sent += 1;
        *next = now.saturating_add(timers.wait(*sent));
        let padi = self.config.padi(uniq);
        self.send(MacAddress::BROADCAST, padi.finish(), actions);
    }

    fn request(&mut self, now: Time, actions: &mut Vec<Action>) {
        let State::Requesting { uniq, sent, since, next, offer } = &mut self.state else { return };
        let timers = &self.config.timers;
        if *sent >= timers.requests {
            let (sent, waited) = (*sent, now.saturating_sub(*since));
            let failure =
                Failure::NoConfirmation { offer: offer.clone(), sent, waited, ignored: self.ignored.clone() };
            return self.fail(failure, actions);
        }
        *sent += 1;
        *next = now.saturating_add(timers.wait(*sent));
        // Cookie and relay id go back as they came (RFC 2516 appendix A).
        let padr = Builder::new(Code::PADR, 0)
            .tag(TagType::SERVICE_NAME, &self.config.service)
            .tag(TagType::HOST_UNIQ, uniq)
            .tag_if(TagType::AC_COOKIE, offer.cookie.as_deref())
            .tag_if(TagType::RELAY_SESSION_ID, offer.relay.as_deref())
            .max_payload(self.config.requested_payload());
        let destination = offer.concentrator;
        self.send(destination, padr.finish(), actions);
    }

    fn send(&mut self, destination: MacAddress, packet: Result<Vec<u8>, TooLong>, actions: &mut Vec<Action>) {
        match packet {
            Ok(payload) => actions.push(Action::Send { destination, payload }),
            Err(error) => self.fail(Failure::TooLong(error), actions),
        }
    }

    fn fail(&mut self, failure: Failure, actions: &mut Vec<Action>) {
        self.state = State::Idle;
        actions.push(Action::Failed(failure));
    }

    /// An offer has come.
    fn offered(&mut self, now: Time, source: MacAddress, message: &Message<'_>, actions: &mut Vec<Action>) {
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
    fn choose(&mut self, now: Time, actions: &mut Vec<Action>) {
        let State::Initiating { uniq, offers, .. } = &mut self.state else { return };
        let uniq = *uniq;
        let requested = self.config.requested_payload();
        let agrees = |offer: &Offer| requested.is_none_or(|requested| offer.max_payload >= Some(requested));
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

    fn confirmed(&mut self, source: MacAddress, message: &Message<'_>, actions: &mut Vec<Action>) {
        match &self.state {
            State::Requesting { uniq, offer, .. } => {
                if source != offer.concentrator || message.host_uniq() != Some(uniq) {
                    self.ignored.foreign += 1;
                    return;
                }
                let (uniq, offer) = (*uniq, offer.clone());
                match self.found(*offer, message) {
                    Ok(found) => {
                        let (session, concentrator) = (found.session, found.offer.concentrator);
                        self.state = State::Found { uniq, session, concentrator };
                        actions.push(Action::Found(Box::new(found)));
                    }
                    Err(failure) => self.fail(failure, actions),
                }
            }
            // The answer to an earlier PADR, by a concentrator that made a session for each: this one nobody uses.
            State::Found { uniq, session, concentrator } => {
                let is_answer = source == *concentrator && message.host_uniq() == Some(uniq);
                if is_answer && message.session() != *session && is_session(message.session()) {
                    let payload = padt(message.session(), Some("one session is enough"));
                    actions.push(Action::Send { destination: source, payload });
                }
                self.ignored.unexpected += 1;
            }
            State::Idle | State::Initiating { .. } => self.ignored.unexpected += 1,
        }
    }

    fn found(&self, offer: Offer, message: &Message<'_>) -> Result<Found, Failure> {
        if let Some(complaint) = Complaint::of(message) {
            return Err(Failure::Refused { offer: Box::new(offer), complaint });
        }
        let session = message.session();
        if !is_session(session) {
            return Err(Failure::NoSession { offer: Box::new(offer), session });
        }
        let requested_payload = self.config.requested_payload();
        // RFC 4638 section 6: only what was requested and confirmed, and never less than RFC 2516 has.
        let agreed = requested_payload.and_then(|requested| Some(requested.min(message.max_payload()?)));
        let max_payload = agreed.unwrap_or(PLAIN_PAYLOAD).max(PLAIN_PAYLOAD).min(self.config.max_payload);
        Ok(Found { session, offer, max_payload, requested_payload })
    }

    fn terminated(&mut self, source: MacAddress, message: &Message<'_>) -> Option<Terminated> {
        match self.state {
            State::Found { session, concentrator, .. }
                if source == concentrator && message.session() == session =>
            {
                self.state = State::Idle;
                Some(Terminated { complaint: Complaint::of(message) })
            }
            _ => {
                self.ignored.foreign += 1;
                None
            }
        }
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

/// The concentrator ended the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terminated {
    pub complaint: Option<Complaint>,
}
