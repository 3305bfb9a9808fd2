//! The concentrator's end of discovery (RFC 2516 section 5): makes offers, and gives requests that may be believed to who
//! has the sessions.
//!
//! # Contract
//!
//! * Nothing is kept of a PADI: what has to be known of it later goes out in the cookie and comes back.
//! * A PADR is handed on ([`Answer::Request`]) only with a cookie that was made for this host at this place, not long ago
//!   (AC-Cookie). Who has the table of sessions answers it by [`Request::confirm`] or an error tag; a request
//!   whose [`Request::cookie`] is that of a session which exists is the same one sent again, and gets the same PADS.
//! * Nobody is answered faster than [`Rates`] allow, nor at a group's address. What is not answered is counted by its
//!   reason ([`Reason`]).
//! * Host-Uniq and Relay-Session-Id go back as they came; PPP-Max-Payload as it came, or lowered to the own limit and to what
//!   has room behind the tags of the line.

use super::complaint::Kind;
use super::cookie::{Cookie, Cookies};
use super::limits::{Limits, Rates};
use super::message::{Builder, Line, Message, TooLong};
use super::place::Place;
use super::{PLAIN_PAYLOAD, Packet, is_session};
use crate::{Random, Time};
use std::collections::{BTreeMap, HashSet};
use wire::VlanPattern;
use wire::ethernet::MacAddress;
use wire::pppoe::{Code, TagType};

/// What is offered to whom.
#[derive(Clone, Debug)]
pub struct Config {
    pub name: Vec<u8>,
    /// Services with a name. A host that asks for none in particular is always served.
    pub services: Vec<Vec<u8>>,
    /// Whether a service with any other name is served, too.
    pub any_service: bool,
    /// Most bytes of PPP payload that can be received and sent; above 1492 they are agreed to where a host asks (RFC 4638).
    pub max_payload: u16,
    pub offers: Rates,
    pub requests: Rates,
}

impl Config {
    /// A concentrator of this name that serves any service.
    pub fn new(name: &[u8]) -> Config {
        Config {
            name: name.to_vec(),
            services: Vec::new(),
            any_service: true,
            max_payload: PLAIN_PAYLOAD,
            offers: Rates::DEFAULT,
            requests: Rates::DEFAULT,
        }
    }

    /// Sees that an offer has room for all names, besides a Host-Uniq of 64 bytes and a Relay-Session-Id of 12.
    ///
    /// # Errors
    ///
    /// The names are too long together.
    pub fn check(&self) -> Result<(), TooLong> {
        let echoes = [(TagType::HOST_UNIQ, &[0; 64][..]), (TagType::RELAY_SESSION_ID, &[0; 12])];
        let packet = self.offering(b"", &Cookie::default()).max_payload(Some(0));
        echoes.into_iter().fold(packet, |packet, (kind, value)| packet.tag(kind, value)).finish().map(drop)
    }

    /// The service requested, and then all others (RFC 2516 section 5.2).
    fn offering(&self, service: &[u8], cookie: &Cookie) -> Builder {
        let packet = Builder::new(Code::PADO, 0)
            .tag(TagType::AC_NAME, &self.name)
            .tag(TagType::SERVICE_NAME, service)
            .tag(TagType::AC_COOKIE, cookie);
        let others = self.services.iter().filter(|other| *other != service);
        others.fold(packet, |packet, other| packet.tag(TagType::SERVICE_NAME, other))
    }

    fn serves(&self, service: &[u8]) -> bool {
        service.is_empty() || self.any_service || self.services.iter().any(|name| name == service)
    }

    /// PPP-Max-Payload to be answered (RFC 4638 section 5) where frames have room for so many bytes.
    fn agreed(&self, message: &Message<'_>, line: u16) -> Option<u16> {
        let both = message.max_payload()?.min(self.max_payload).min(line);
        Some(both).filter(|bytes| *bytes > PLAIN_PAYLOAD)
    }
}

/// Why a packet was not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    Malformed,
    /// It comes from a group's address, or from the own.
    Source,
    /// It is for another station, or for a group where it must not be.
    Destination,
    /// It is a concentrator's: another one is on the segment, or somebody pretends.
    Concentrator,
    /// It asks for a service that is not served.
    Service,
    /// It looks for a concentrator while this one takes no more sessions.
    Draining,
    /// Nobody wants its host.
    Blocked,
    HostRate,
    VlanRate,
    PortRate,
    /// It has no cookie, or one that nobody made who has the key, for another place or host, or under a key that is forgotten.
    Forged,
    Expired,
    /// The tags that belong into the answer do not fit a frame.
    TooLong,
    /// It ends a session that cannot be.
    Session,
}

impl Reason {
    /// As it is written in scripted output.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::Malformed => "malformed",
            Reason::Source => "source-address",
            Reason::Destination => "destination-address",
            Reason::Concentrator => "other-concentrator",
            Reason::Service => "service-not-served",
            Reason::Draining => "draining",
            Reason::Blocked => "blocked",
            Reason::HostRate => "host-rate",
            Reason::VlanRate => "vlan-rate",
            Reason::PortRate => "port-rate",
            Reason::Forged => "cookie-forged",
            Reason::Expired => "cookie-expired",
            Reason::TooLong => "answer-too-long",
            Reason::Session => "no-session",
        }
    }
}

/// What was received and became of it, packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub offers: u64,
    pub requests: u64,
    pub terminations: u64,
    pub ignored: BTreeMap<Reason, u64>,
}

/// What is to be done with a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Ignored(Reason),
    /// This goes back to its sender: payload of a frame of EtherType 0x8863.
    Offer(Vec<u8>),
    /// A request for a session, to be confirmed or refused.
    Request(Box<Request>),
    /// The session of this number is over, if it is that of the sender, at that place.
    Terminate {
        session: u16,
    },
}

/// A PADR that may be believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub host: MacAddress,
    pub place: Place,
    /// Its cookie: the same one again is the same request again.
    pub cookie: Cookie,
    /// Service-Name; empty for any.
    pub service: Vec<u8>,
    /// Whether that service is served; a request for another one can only be refused.
    pub(crate) is_served: bool,
    /// Most bytes of PPP payload either way: 1492, or what both ends named, and no more than there is room for.
    pub max_payload: u16,
    /// What an access node says of the line.
    pub line: Option<Line>,
    echo: Echo,
}

/// What goes back.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Echo {
    host_uniq: Option<Vec<u8>>,
    relay: Option<Vec<u8>>,
    max_payload: Option<u16>,
}

impl Request {
    /// The PADS of a session (RFC 2516 section 5.4); `session` as [`is_session`] wants it. Payload of a frame of EtherType
    /// 0x8863.
    ///
    /// # Errors
    ///
    /// What the host wants echoed leaves no room.
    pub fn confirm(&self, session: u16) -> Result<Vec<u8>, TooLong> {
        let packet = Builder::new(Code::PADS, session).tag(TagType::SERVICE_NAME, &self.service);
        self.echoing(packet).max_payload(self.echo.max_payload).finish()
    }

    /// The PADS that refuses it: session 0, the error and a text for people, which must not be long.
    pub(crate) fn refuse(&self, why: Kind, text: &str) -> Result<Vec<u8>, TooLong> {
        let packet = Builder::new(Code::PADS, 0).tag(TagType::SERVICE_NAME, &self.service);
        self.echoing(packet).tag(why.tag(), text.as_bytes()).finish()
    }

    fn echoing(&self, packet: Builder) -> Builder {
        packet
            .tag_if(TagType::HOST_UNIQ, self.echo.host_uniq.as_deref())
            .tag_if(TagType::RELAY_SESSION_ID, self.echo.relay.as_deref())
    }
}

/// A received packet, and where.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    pub place: Place,
    pub own: MacAddress,
    /// Bytes of PPP payload for which frames with these tags have room on the port.
    pub max_payload: u16,
    pub packet: Packet<'a>,
}

/// Whose PADI and PADR get no answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Blocked {
    pub stations: HashSet<MacAddress>,
    /// VLANs, and whether they are blocked: the first that has those of a packet holds.
    pub vlans: Vec<(VlanPattern, bool)>,
}

impl Blocked {
    pub fn has(&self, place: &Place, station: MacAddress) -> bool {
        let mut vlans = self.vlans.iter();
        self.stations.contains(&station)
            || vlans.find(|(vlans, _)| vlans.has(place.vlans)).is_some_and(|(_, is_blocked)| *is_blocked)
    }
}

/// The machine. Its memory is that of its tables, 2.6 MB at most, whatever comes, and of the blocked addresses.
#[derive(Debug)]
pub struct Concentrator {
    config: Config,
    cookies: Cookies,
    offers: Limits,
    requests: Limits,
    is_draining: bool,
    blocked: Blocked,
    counters: Counters,
}

impl Concentrator {
    /// Draws its keys.
    pub fn new(config: Config, now: Time, random: &mut dyn Random) -> Concentrator {
        let cookies = Cookies::new(now, random);
        let (offers, requests) = (Limits::new(config.offers, random), Limits::new(config.requests, random));
        let (blocked, counters) = (Blocked::default(), Counters::default());
        Concentrator { config, cookies, offers, requests, is_draining: false, blocked, counters }
    }

    /// What was received and became of it.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Makes no more offers, or makes them again. Requests are handed on all the same.
    pub(crate) const fn set_draining(&mut self, is_draining: bool) {
        self.is_draining = is_draining;
    }

    /// Whether no more offers are made.
    pub(crate) const fn is_draining(&self) -> bool {
        self.is_draining
    }

    /// Gives hosts with these addresses no answer from now on.
    pub(crate) fn set_blocked(&mut self, blocked: &Blocked) {
        self.blocked.clone_from(blocked);
    }

    /// Takes a packet of EtherType 0x8863.
    pub fn receive(&mut self, now: Time, arrival: &Arrival<'_>, random: &mut dyn Random) -> Answer {
        let answer = self.answer(now, arrival, random);
        let counters = &mut self.counters;
        match &answer {
            Ok(Answer::Offer(_)) => counters.offers += 1,
            Ok(Answer::Request(_)) => counters.requests += 1,
            Ok(Answer::Terminate { .. }) => counters.terminations += 1,
            Ok(Answer::Ignored(reason)) | Err(reason) => {
                *counters.ignored.entry(*reason).or_default() += 1;
            }
        }
        answer.unwrap_or_else(Answer::Ignored)
    }

    fn answer(
        &mut self,
        now: Time,
        arrival: &Arrival<'_>,
        random: &mut dyn Random,
    ) -> Result<Answer, Reason> {
        let Arrival { own, packet, .. } = arrival;
        if packet.source.is_multicast() || packet.source == *own {
            return Err(Reason::Source);
        }
        let message = Message::parse(packet.payload).map_err(|_| Reason::Malformed)?;
        // RFC 2516 section 5: all but a PADI go to a single station.
        let is_to_all = packet.destination == MacAddress::BROADCAST && message.code() == Code::PADI;
        if packet.destination != *own && !is_to_all {
            return Err(Reason::Destination);
        }
        match message.code() {
            Code::PADI | Code::PADR if self.blocked.has(&arrival.place, packet.source) => {
                Err(Reason::Blocked)
            }
            Code::PADI => self.offer(now, arrival, &message, random),
            Code::PADR => self.request(now, arrival, &message),
            Code::PADT if is_session(message.session()) => {
                Ok(Answer::Terminate { session: message.session() })
            }
            Code::PADT => Err(Reason::Session),
            _ => Err(Reason::Concentrator),
        }
    }

    fn offer(
        &mut self,
        now: Time,
        arrival: &Arrival<'_>,
        message: &Message<'_>,
        random: &mut dyn Random,
    ) -> Result<Answer, Reason> {
        let (host, place) = (arrival.packet.source, &arrival.place);
        let service = message.service_name();
        if !self.config.serves(service) {
            return Err(Reason::Service);
        }
        if self.is_draining {
            return Err(Reason::Draining);
        }
        self.offers.take(now, host, place)?;
        let cookie = self.cookies.make(now, host, place, random);
        let packet = self
            .config
            .offering(service, &cookie)
            .tag_if(TagType::HOST_UNIQ, message.host_uniq())
            .tag_if(TagType::RELAY_SESSION_ID, message.relay_session_id())
            .max_payload(self.config.agreed(message, arrival.max_payload));
        packet.finish().map(Answer::Offer).map_err(|_| Reason::TooLong)
    }

    fn request(&mut self, now: Time, arrival: &Arrival<'_>, message: &Message<'_>) -> Result<Answer, Reason> {
        let (host, place) = (arrival.packet.source, &arrival.place);
        self.requests.take(now, host, place)?;
        let cookie = message.cookie().ok_or(Reason::Forged)?;
        let cookie = self.cookies.check(now, host, place, cookie)?;
        let service = message.service_name();
        let agreed = self.config.agreed(message, arrival.max_payload);
        Ok(Answer::Request(Box::new(Request {
            host,
            place: *place,
            cookie,
            service: service.to_vec(),
            is_served: self.config.serves(service),
            max_payload: agreed
                .unwrap_or(PLAIN_PAYLOAD)
                .min(self.config.max_payload)
                .min(arrival.max_payload),
            line: message.line(),
            echo: Echo {
                host_uniq: message.host_uniq().map(<[u8]>::to_vec),
                relay: message.relay_session_id().map(<[u8]>::to_vec),
                max_payload: agreed,
            },
        })))
    }
}

#[cfg(test)]
mod tests;
