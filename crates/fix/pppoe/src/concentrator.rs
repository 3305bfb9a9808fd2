//! The access concentrator: every session of every subscriber, from the first PADI to the last record.
//!
//! # Contract
//!
//! * [`Concentrator::receive`] takes each packet of either stage with where it came from; [`Concentrator::tick`] is called when
//!   [`Concentrator::deadline`] has come. What is to be done comes out as [`Action`]s, to be done in their order.
//! * IP packets of a session that is installed ([`Action::Installed`]) are the data path's, but for Router Solicitations and DHCPv6, which
//!   are [received](Concentrator::receive) as what PPP negotiates. That some came is reported by
//!   [`Concentrator::heard`], so that the session needs no echo, and packets of sessions that there are not by
//!   [`Concentrator::stray`]; what it counted is requested through [`Step::traffic`].
//! * Nothing is kept for a PADI (attack 7 of the test names). A PADR costs a session only with a cookie that was made for its
//!   sender, at that place, not long ago, and not used for a session that is over. Half-open and all sessions have caps
//!   ([`Caps`]), in all, of a VLAN and of a station; one that does not come up in a minute ends.
//! * Frames of a session count only from its station, in its VLAN and at its port; a PADT as well.
//! * Who sends wrong passwords waits before the next one is looked at (module `login_throttle`).
//! * A user's sessions are counted once they are authenticated. Every address and prefix that is given out comes back
//!   with the end of its session, whatever ends it, and every end has a reason ([`Action::Ended`]).
//! * Work for one session does not grow with the number of the others; those that wait cost none.
//!
//! # Deliberately not here
//!
//! Sockets, interfaces, files, and packets of users: crate `link`. RADIUS: who authenticates in the place of the secrets ([`Action::Ask`]) is the caller's business.

pub mod accounting;
mod advertisement;
mod authentication;
mod authority;
mod config;
mod lifecycle;
mod login_throttle;
pub mod network;
mod notice;
mod numbers;
mod operator;
pub mod pool;
mod rates;
pub mod secrets;
mod sessions;
mod snapshot;

pub use authentication::Refusal;
pub use authority::{Granted, Question, Reply};
pub use config::{Config, MOST_SERVERS, SameUser};
pub use notice::Notice;
pub use operator::{Change, Filter, Listed, NotGranted, Reloaded, Why};
pub use rates::BitRates;
pub use sessions::{Caps, Full, Id, Identity, Lease};
pub use snapshot::{Restored, Saved, Snapshot};

use self::accounting::{Ended, Record, Traffic};
use self::login_throttle::LoginThrottle;
use self::network::{Network, Prefixes};
use self::pool::{AddressPools, PrefixPool, PrefixPools};
use self::secrets::Secrets;
use self::sessions::Table;
use crate::discovery::concentrator::{
    Answer, Arrival, Concentrator as Discovery, Counters as DiscoveryCounters,
};
use crate::discovery::is_session;
use crate::discovery::limits::Limits;
use crate::discovery::place::Place;
use crate::framing::unwrapped;
use crate::session;
use crate::{Invalid, Random, Time};
use lifecycle::terminate;
use std::net::Ipv4Addr;
use std::sync::Arc;
use wire::ethernet::MacAddress;
use wire::pppoe::Stage;

/// What the machine needs of the world for each of its steps.
pub struct Step<'a> {
    pub now: Time,
    pub random: &'a mut dyn Random,
    /// What the data path has counted of a session since it took it in: since the last [`Action::Installed`] of a session that
    /// it did not have.
    pub traffic: &'a mut dyn FnMut(Id) -> Traffic,
    /// Where what is to be done goes.
    pub actions: &'a mut Vec<Action>,
}

/// What is to be done, in the order given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    Send {
        /// Out of which port, with which tags.
        place: Place,
        destination: MacAddress,
        /// EtherType 0x8863 or 0x8864.
        stage: Stage,
        /// What stands behind the EtherType: PPPoE header and what follows, without padding.
        payload: Vec<u8>,
    },
    /// Somebody else says who this subscriber is; [`Concentrator::answer`] takes what they say.
    Ask(Box<Question>),
    /// The data path carries this session from now on; or this is what it carries of it from now on.
    Installed(Box<Installed>),
    /// What is saved of this open session has changed, for whoever keeps it for the next process.
    Changed(Id),
    /// Whether more sessions are taken was changed, for the same.
    Draining(bool),
    /// The data path drops this session.
    Removed(Id),
    Account(Box<Record>),
    /// A session is over, whether it ever was open or not. Its number and addresses are free again.
    Ended(Box<End>),
    Notice(Box<Notice>),
}

/// A session as a data path needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    pub identity: Identity,
    /// Longest IP packet that may be sent to the host, bytes.
    pub mtu: u16,
    /// While IPv4 is up: the own address and that of the host. Packets from any other that is not of `routes` are not the
    /// host's.
    pub ipv4: Option<(Ipv4Addr, Ipv4Addr)>,
    /// While IPv6 is up: interface identifiers, the own and that of the host, of their link-local addresses.
    pub ipv6: Option<(u64, u64)>,
    /// While IPv6 is up.
    pub prefixes: Prefixes,
    /// Networks behind the host, of the protocols that are up.
    pub routes: Vec<Network>,
    pub rates: BitRates,
}

/// A session that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    pub identity: Identity,
    pub cause: Ended,
}

/// Packets that came to nothing, and sessions so far. Those of discovery are counted apart
/// ([`Concentrator::discovery_counters`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Session packets that contradict themselves, or are for another station.
    pub malformed: u64,
    /// Session packets of another station than the session's.
    pub other_station: u64,
    /// Session packets of a number that is nobody's at that place.
    pub unknown_session: u64,
    /// PADT of another station than the session's, or of a number that is nobody's.
    pub padt_ignored: u64,
    /// PADR whose cookie opened a session that is over, or that is past LCP.
    pub padr_used_up: u64,
    /// PADR sent again, which got the same PADS.
    pub padr_repeated: u64,
    pub padr_refused: u64,
    pub confirmed: u64,
    pub refused: u64,
    /// PADR and claims that were refused unseen, because of wrong passwords before.
    pub held_off: u64,
    pub opened: u64,
    pub ended: u64,
    /// Router Advertisements that were sent, and answers by DHCPv6.
    pub advertisements: u64,
    /// See `advertisements`.
    pub dhcpv6_answers: u64,
    /// Packets of IPv6 for this router that are neither a Router Solicitation nor a message of DHCPv6 that has an answer, or were too many.
    pub configuration_ignored: u64,
    /// Ended sessions that waited for their hosts when others needed a place.
    pub gave_way: u64,
}

/// The machine. Its memory is that of its sessions and of the tables of limits and pools, whatever comes.
#[derive(Debug)]
pub struct Concentrator {
    config: Config,
    session_config: Arc<session::Config>,
    secrets: Arc<Secrets>,
    discovery: Discovery,
    /// How many PADT answer packets of unknown sessions.
    strays: Limits,
    table: Table,
    addresses: AddressPools,
    prefixes: PrefixPools,
    throttle: LoginThrottle,
    notices: notice::Throttle,
    counters: Counters,
}

impl Concentrator {
    /// Without sessions.
    ///
    /// # Errors
    ///
    /// The configuration contradicts itself.
    pub fn new(
        config: Config,
        secrets: Secrets,
        now: Time,
        random: &mut dyn Random,
    ) -> Result<Concentrator, Invalid> {
        let (mut addresses, mut prefixes) = config.pools()?;
        if let Some(local) = config.local {
            addresses.keep_back(local, true);
        }
        secrets.fixed().for_each(|address| addresses.keep_back(address, true));
        secrets.fixed_prefixes().for_each(|fixed| prefixes.keep_back(fixed, true));
        let mut discovery = Discovery::new(config.discovery.clone(), now, random);
        discovery.set_blocked(secrets.blocked());
        Ok(Concentrator {
            session_config: Arc::new(config.session()),
            secrets: Arc::new(secrets),
            discovery,
            strays: Limits::new(config.strays, random),
            table: Table::new(config.caps),
            addresses,
            prefixes,
            throttle: LoginThrottle::new(config.caps.sessions, random),
            notices: notice::Throttle::default(),
            counters: Counters::default(),
            config,
        })
    }

    /// Takes a packet of either stage.
    pub fn receive(&mut self, step: &mut Step<'_>, stage: Stage, arrival: &Arrival<'_>) {
        match stage {
            Stage::Discovery => self.discovery_packet(step, arrival),
            Stage::Session => self.session_packet(step, arrival),
        }
    }

    fn discovery_packet(&mut self, step: &mut Step<'_>, arrival: &Arrival<'_>) {
        let (place, station) = (arrival.place, arrival.packet.source);
        match self.discovery.receive(step.now, arrival, step.random) {
            Answer::Ignored(_) => {}
            Answer::Offer(payload) => {
                step.actions.push(Action::Send {
                    place,
                    destination: station,
                    stage: Stage::Discovery,
                    payload,
                });
            }
            Answer::Request(request) => self.open(step, &request),
            // RFC 2516 section 5.5: no more traffic is allowed, and none is sent back.
            Answer::Terminate { session } => match self.table.of_number(&place, session) {
                Some(slot) if self.is_of(slot, station) => self.end_by_host(step, slot),
                _ => self.counters.padt_ignored += 1,
            },
        }
    }

    fn is_of(&self, slot: u32, station: MacAddress) -> bool {
        self.table.get(slot).is_some_and(|entry| entry.identity.station == station)
    }

    fn session_packet(&mut self, step: &mut Step<'_>, arrival: &Arrival<'_>) {
        let (place, packet) = (arrival.place, arrival.packet);
        let read = unwrapped(packet.payload).ok().filter(|_| packet.destination == arrival.own);
        let Some((number, payload)) = read.filter(|_| !packet.source.is_multicast()) else {
            self.counters.malformed += 1;
            return;
        };
        match self.table.of_number(&place, number) {
            Some(slot) if self.is_of(slot, packet.source) => {
                self.table.heard(step.now, slot);
                if self.host_configuration(step, slot, arrival.own, payload) {
                    return;
                }
                self.drive(step, slot, |session, step, actions| {
                    session.receive(step.now, payload, step.random, actions);
                });
            }
            Some(_) => self.counters.other_station += 1,
            None => {
                self.counters.unknown_session += 1;
                self.stray(step, place, packet.source, number);
            }
        }
    }

    /// Reports that the data path received packets of a number that is nobody's at that place. A host whose session was removed so
    /// learns of it by its next packet, instead of after some lost echoes.
    pub fn stray(&mut self, step: &mut Step<'_>, place: Place, station: MacAddress, number: u16) {
        let is_there = self.table.of_number(&place, number).is_some();
        if is_there || station.is_multicast() || !is_session(number) {
            return;
        }
        if self.strays.take(step.now, station, &place).is_ok() {
            step.actions.push(terminate(place, station, number, Some("there is no such session")));
        }
    }

    /// When [`Concentrator::tick`] wants to be called next.
    pub fn deadline(&self) -> Option<Time> {
        self.table.deadline()
    }

    /// Does what is due. Called early, it does nothing.
    pub fn tick(&mut self, step: &mut Step<'_>) {
        // Each at most once, so that a session that always wants to be called does not stop the others.
        let due: Vec<u32> = std::iter::from_fn(|| self.table.expired(step.now)).collect();
        for slot in due {
            self.tick_one(step, slot);
        }
    }

    /// Reports that the data path received packets of a session.
    pub fn heard(&mut self, now: Time, id: Id) {
        if let Some(entry) = self.table.of_id(id).and_then(|slot| self.table.get_mut(slot)) {
            entry.session.heard(now);
        }
    }

    /// What came to nothing.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What became of discovery packets.
    pub fn discovery_counters(&self) -> &DiscoveryCounters {
        self.discovery.counters()
    }

    /// Number of sessions.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there is no session.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Addresses of the pool that anybody can get.
    pub const fn free_addresses(&self) -> u32 {
        self.addresses.everybodys.free()
    }

    /// Prefixes for links that anybody can get; `None`: there is no pool.
    pub fn free_prefixes(&self) -> Option<u32> {
        self.prefixes.link.as_ref().map(PrefixPool::free)
    }

    /// Sessions in which nothing came up yet.
    pub const fn half_open(&self) -> u32 {
        self.table.half_open()
    }

    #[cfg(test)]
    pub(crate) fn check(&self) {
        self.table.check();
    }
}
