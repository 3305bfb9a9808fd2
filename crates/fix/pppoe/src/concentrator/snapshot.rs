//! The open sessions as data, so that another process goes on with them and subscribers do not notice a restart.
//!
//! Sessions that are still being set up are not taken over: their hosts get a PADT from the next process and begin again. So
//! do those with which it cannot go on ([`Ended::NotRestored`]), and each is accounted for by its last record. Keys of cookies are not
//! handed over: who has an offer of the earlier process asks again. Sessions can be [saved](Concentrator::saved) one by one, too, so
//! that they are there when a process is killed.
//!
//! The data path of the earlier process may go on until the next one has everything: what it has counted at its end
//! ([`Concentrator::counted`]) then takes the place of what the snapshot says ([`Concentrator::settle`]). Where the next one
//! ends before it serves, the earlier one goes on with a data path made anew ([`Concentrator::carried_anew`]).

use super::accounting::{Ended, Event, Record, Traffic};
use super::advertisement::Advertisements;
use super::authority::Granted;
use super::lifecycle::terminate;
use super::network::Prefixes;
use super::secrets::{Address, Profile};
use super::sessions::{Entry, Id, Identity, Lease};
use super::{Action, Concentrator, End, Installed, Step};
use crate::Invalid;
use crate::discovery::is_session;
use crate::discovery::message::Line;
use crate::discovery::place::Place;
use crate::session::{Grant, Handover, Session};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use wire::Vlans;
use wire::ethernet::{EtherType, MacAddress};
use wire::vlan::{Tag, Tci};

/// The sessions of a concentrator at one moment. It has users, addresses and magic numbers, but no passwords and no keys.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Snapshot {
    version: u32,
    sessions: Vec<Saved>,
    unfinished: Vec<SessionKey>,
    /// Whether no more sessions are taken.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    draining: bool,
}

impl Snapshot {
    /// Raised with every change of what is in a session that is saved.
    pub const FORM: u32 = 2;

    /// Of sessions that were saved one by one, in this form. `draining`: no more are taken.
    pub fn of(mut sessions: Vec<Saved>, draining: bool) -> Snapshot {
        sessions.sort_by_key(|saved| saved.id.map(Id::slot));
        Snapshot { version: Snapshot::FORM, sessions, unfinished: Vec::new(), draining }
    }

    /// Whether no more sessions are taken.
    pub const fn is_draining(&self) -> bool {
        self.draining
    }

    /// Those that can be continued.
    pub fn sessions(&self) -> &[Saved] {
        &self.sessions
    }

    /// Sessions that can be continued.
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// Sessions in whose VLANs nobody is served any more end instead of going on.
    pub fn end_unserved(&mut self, is_served: impl Fn(Vlans) -> bool) {
        for saved in &mut self.sessions {
            saved.is_unserved = saved.key.place().is_none_or(|place| !is_served(place.vlans));
        }
    }

    pub fn into_sessions(self) -> Vec<Saved> {
        self.sessions
    }
}

impl Default for Snapshot {
    fn default() -> Snapshot {
        Snapshot::of(Vec::new(), false)
    }
}

/// What came of a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    pub sessions: usize,
    pub ended: usize,
    /// Whether no more sessions are taken, as before.
    pub draining: bool,
}

/// The line, station and number of a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct SessionKey {
    port: u32,
    /// TPID and VID of each tag, outermost first.
    tags: Vec<(u16, u16)>,
    station: [u8; 6],
    number: u16,
}

/// An open session at one moment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Saved {
    #[serde(default)]
    id: Option<Id>,
    /// Whether its lines are not served any more.
    #[serde(skip)]
    is_unserved: bool,
    #[serde(rename = "whose")]
    key: SessionKey,
    line: Option<(Vec<u8>, Vec<u8>)>,
    user: Option<Vec<u8>>,
    max_payload: u16,
    uptime: Duration,
    local: Option<Ipv4Addr>,
    address: Option<Ipv4Addr>,
    #[serde(flatten)]
    prefixes: Prefixes,
    identifiers: Option<(u64, u64)>,
    accounting: u64,
    granted: Option<Granted>,
    traffic: Traffic,
    /// The part of it that earlier processes had counted.
    #[serde(default)]
    before: Traffic,
    ppp: Handover,
}

impl SessionKey {
    fn of(entry: &Entry) -> SessionKey {
        let Place { port, vlans } = entry.identity.place;
        let tags = vlans.tags().map(|tag| (tag.tpid.0, tag.tci.vid())).collect();
        SessionKey { port, tags, station: entry.identity.station.0, number: entry.identity.number }
    }

    fn identity(&self, id: Id, place: Place) -> Identity {
        let (station, number) = (MacAddress(self.station), self.number);
        Identity { id, place, station, number, user: None, line: None, accounting: 0 }
    }

    fn place(&self) -> Option<Place> {
        let tags =
            self.tags.iter().map(|(tpid, vid)| Tag { tpid: EtherType(*tpid), tci: Tci::new(0, false, *vid) });
        Some(Place { port: self.port, vlans: Vlans::of(tags)? })
    }
}

impl Saved {
    /// Its name in accounting.
    pub const fn accounting(&self) -> u64 {
        self.accounting
    }

    /// Its VLANs, station and session id; `None`: more tags than there can be.
    pub fn peer(&self) -> Option<(Vlans, MacAddress, u16)> {
        Some((self.key.place()?.vlans, MacAddress(self.key.station), self.key.number))
    }

    /// What it had transferred when the process began that has it.
    pub const fn before(&self) -> Traffic {
        self.before
    }

    /// So much time has passed since.
    pub fn elapse(&mut self, time: Duration) {
        self.uptime = self.uptime.saturating_add(time);
    }

    /// What it has transferred since it opened.
    pub fn set_traffic(&mut self, traffic: Traffic) {
        self.traffic = traffic;
    }

    fn identity(&self, id: Id, place: Place) -> Identity {
        Identity {
            user: self.user.as_deref().map(Arc::from),
            line: self.line.clone().map(|(circuit, remote)| Arc::new(Line { circuit, remote })),
            accounting: self.accounting,
            ..self.key.identity(id, place)
        }
    }
}

impl Concentrator {
    /// The sessions as they are. The process that has them goes on with them until it ends; it must not send anything for
    /// them once another one has them.
    pub fn snapshot(&self, step: &mut Step<'_>) -> Snapshot {
        let mut snapshot = Snapshot::of(Vec::new(), self.is_draining());
        for entry in self.table.entries() {
            match self.saved_entry(entry, step) {
                Some(saved) => snapshot.sessions.push(saved),
                None => snapshot.unfinished.push(SessionKey::of(entry)),
            }
        }
        snapshot
    }

    /// A session as it is; `None`: there is none, or it is not open.
    pub fn saved(&self, step: &mut Step<'_>, id: Id) -> Option<Saved> {
        self.saved_entry(self.table.get(self.table.of_id(id)?)?, step)
    }

    fn saved_entry(&self, entry: &Entry, step: &mut Step<'_>) -> Option<Saved> {
        let ppp = entry.session.handover().filter(|_| entry.closing.is_none())?;
        Some(Saved {
            id: Some(entry.identity.id),
            is_unserved: false,
            key: SessionKey::of(entry),
            line: entry.identity.line.as_deref().map(|line| (line.circuit.clone(), line.remote.clone())),
            user: entry.identity.user.as_deref().map(<[u8]>::to_vec),
            max_payload: entry.max_payload,
            uptime: entry.uptime(step.now).unwrap_or_default(),
            local: self.config.local,
            address: entry.lease.address,
            prefixes: entry.lease.prefixes,
            identifiers: entry.lease.identifiers,
            accounting: entry.identity.accounting,
            granted: entry.granted.as_deref().cloned(),
            traffic: entry.traffic(step),
            before: entry.before,
            ppp,
        })
    }

    /// What each session of a [snapshot](Concentrator::snapshot) has transferred now, by its name in accounting.
    pub fn counted(&self, step: &mut Step<'_>) -> Vec<(u64, Traffic)> {
        let open = self
            .table
            .entries()
            .filter(|entry| entry.session.handover().is_some() && entry.closing.is_none());
        open.map(|entry| (entry.identity.accounting, entry.traffic(step))).collect()
    }

    /// What a data path has to carry that takes the place of the one that there was. What that has counted (`step` says it for
    /// the last time) is kept.
    pub fn carried_anew(&mut self, step: &mut Step<'_>) -> Vec<Installed> {
        let installed = self.table.entries_mut().filter(|entry| entry.is_installed);
        let carried = installed.map(|entry| {
            entry.before = entry.before + (step.traffic)(entry.identity.id);
            Installed::of(entry)
        });
        carried.collect()
    }

    /// Takes what the earlier process has counted at its end: for sessions that were restored, and for the records of others in
    /// `pending`, which came of it and were not done yet. Nothing of them was counted here yet.
    pub fn settle(&mut self, counted: &[(u64, Traffic)], pending: &mut [Action]) {
        let counted: HashMap<u64, Traffic> = counted.iter().copied().collect();
        for entry in self.table.entries_mut() {
            entry.before = counted.get(&entry.identity.accounting).copied().unwrap_or(entry.before);
        }
        for action in pending {
            if let Action::Account(record) = action
                && let Some(traffic) = counted.get(&record.identity.accounting)
            {
                record.traffic = *traffic;
            }
        }
    }

    /// Goes on with the sessions of an earlier process. `elapsed`: time since the snapshot was made.
    ///
    /// # Errors
    ///
    /// The snapshot is of another version; nothing was done.
    pub fn restore(
        &mut self,
        step: &mut Step<'_>,
        snapshot: Snapshot,
        elapsed: Duration,
    ) -> Result<Restored, Invalid> {
        if snapshot.version != Snapshot::FORM {
            return Err(Invalid(format!(
                "the sessions were written by another version of the program (form {}, expected {}): their hosts \
                 connect again",
                snapshot.version,
                Snapshot::FORM
            )));
        }
        let mut restored = Restored { draining: snapshot.draining, ..Restored::default() };
        if snapshot.draining {
            self.set_draining(step, true);
        }
        for mut saved in snapshot.sessions {
            saved.uptime = saved.uptime.saturating_add(elapsed);
            let Some(place) = saved.key.place() else { continue };
            match self.resume(step, place, &saved) {
                Ok(slot) => {
                    restored.sessions += 1;
                    let installed = self.table.get(slot).map(|entry| Box::new(Installed::of(entry)));
                    step.actions.extend(installed.map(Action::Installed));
                    self.arm(slot);
                }
                Err(why) => {
                    restored.ended += 1;
                    self.lose(step, place, &saved.key, Some(&saved), why);
                }
            }
        }
        for key in &snapshot.unfinished {
            if let Some(place) = key.place() {
                restored.ended += 1;
                self.lose(step, place, key, None, "the session was still being set up".to_owned());
            }
        }
        Ok(restored)
    }

    fn resume(&mut self, step: &mut Step<'_>, place: Place, saved: &Saved) -> Result<u32, String> {
        let (number, station) = (saved.key.number, MacAddress(saved.key.station));
        if !is_session(number) || self.table.of_number(&place, number).is_some() || station.is_multicast() {
            return Err("the session number is not free".to_owned());
        }
        if saved.is_unserved {
            return Err("its VLANs are not served any more".to_owned());
        }
        if self.table.len() as u32 >= self.config.caps.sessions {
            return Err("there is no room for as many sessions as there were".to_owned());
        }
        let secrets = self.secrets.clone();
        let user = saved.user.as_deref().unwrap_or_default();
        let granted = saved.granted.clone().map(Arc::new);
        let own = secrets.find(user).map(|subscriber| &subscriber.profile);
        let profile = granted.as_ref().map(|granted| &granted.profile).or(own);
        if profile.is_none() && !self.config.methods.is_empty() {
            return Err("the user is no subscriber any more".to_owned());
        }
        self.is_same_end(saved)?;
        let grant = Grant {
            ipv4: self.config.local.zip(saved.address),
            dns: self.config.dns,
            ipv6: saved.identifiers,
        };
        let config = self.session_config.clone();
        let session = Session::resume(config, &saved.ppp, &grant, step.now, step.random);
        let session = session.ok_or("the PPP state that was handed over makes no sense")?;
        let lease = self.lease_again(&place, user, profile, saved)?;
        let identity = Identity { user: None, ..saved.identity(self.table.no_slot(), place) };
        let max_payload = saved.max_payload.min(self.config.discovery.max_payload);
        let mut entry = Entry::new(session, identity, max_payload, step.now);
        entry.opened = Some(step.now);
        entry.earlier = saved.uptime;
        entry.granted = granted;
        entry.limit_time(step.now);
        entry.watch(step.now);
        entry.interim = entry.interim_interval(self.config.interim).map(|every| step.now + every);
        entry.is_installed = true;
        entry.before = saved.traffic;
        entry.lease = Lease { address: None, ..lease };
        if entry.session.ipv6().is_some() && entry.has_networks() {
            entry.advertisements = Some(Advertisements::resumed(step.now, step.random));
        }
        let slot = self.table.put(entry, saved.id);
        self.table.set_half_open(slot, false);
        if saved.user.is_some() {
            self.table.set_user(slot, Arc::from(user));
            self.throttle.succeeded(place, station, user);
        }
        if let Some(address) = saved.address {
            self.table.set_address(slot, address);
        }
        Ok(slot)
    }

    /// Sees that this end has the addresses that the session knows.
    fn is_same_end(&self, saved: &Saved) -> Result<(), String> {
        let (was, is) = (saved.local, self.config.local);
        if saved.address.is_some() && was != is {
            let (was, is) = (or_none(was), or_none(is));
            return Err(format!("the address of the concentrator changed from {was} to {is}"));
        }
        match (saved.identifiers, self.config.identifier) {
            (Some((was, _)), Some(is)) if was != is => {
                Err("the link-local address of the concentrator changed".to_owned())
            }
            (Some(_), None) => Err("IPv6 was turned off".to_owned()),
            (None, Some(_)) => Err("IPv6 was turned on".to_owned()),
            _ => Ok(()),
        }
    }

    /// Takes what a session had out of the pools again.
    fn lease_again(
        &mut self,
        place: &Place,
        user: &[u8],
        profile: Option<&Profile>,
        saved: &Saved,
    ) -> Result<Lease, String> {
        let configured = profile.map(|profile| profile.address).unwrap_or_default();
        let is = match configured {
            Address::Fixed(fixed) => self.config.local.map(|_| fixed),
            Address::Pool => saved.address,
            Address::None => None,
        };
        if saved.address != is {
            let (was, is) = (or_none(saved.address), or_none(is));
            return Err(format!("the address of the user changed from {was} to {is}"));
        }
        if let Some(address) = saved.address {
            let is_free = self.table.of_address(address).is_none()
                && (configured != Address::Pool || self.addresses.take_again(user, address));
            if configured != Address::Pool {
                self.addresses.hold(address);
            }
            is_free.then_some(()).ok_or_else(|| format!("the address {address} is not free any more"))?;
        }
        let own = profile.filter(|_| saved.identifiers.is_some()).map(|profile| profile.prefixes);
        let had = self.prefixes.take_again(user, saved.prefixes, own.unwrap_or_default());
        if let (Err(_), Some(address)) = (&had, saved.address) {
            self.addresses.release(address);
        }
        had?;
        let Saved { address, prefixes, identifiers, .. } = *saved;
        let routes = profile.map(|profile| profile.routes.clone()).unwrap_or_default();
        Ok(Lease { address, prefixes, identifiers, routes, rates: self.rates_of(place, profile) })
    }

    /// Notifies the host of a session that is not continued, and writes its last record.
    fn lose(
        &mut self,
        step: &mut Step<'_>,
        place: Place,
        key: &SessionKey,
        saved: Option<&Saved>,
        why: String,
    ) {
        let earlier = saved.and_then(|saved| saved.id).filter(|id| self.table.of_id(*id).is_none());
        let id = earlier.unwrap_or_else(|| self.table.no_slot());
        let identity = saved.map_or_else(|| key.identity(id, place), |saved| saved.identity(id, place));
        let (station, number) = (identity.station, identity.number);
        let cause = Ended::NotRestored(why);
        // A number in use is the session of the same number; it is not to be ended.
        if self.table.of_number(&place, number).is_none() && !station.is_multicast() {
            step.actions.push(terminate(place, station, number, cause.for_host().as_deref()));
        }
        if let Some(saved) = saved {
            step.actions.push(Action::Account(Box::new(Record {
                event: Event::Stop(cause.clone()),
                identity: identity.clone(),
                address: saved.address,
                prefixes: saved.prefixes,
                granted: saved.granted.clone().map(Arc::new),
                uptime: saved.uptime,
                traffic: saved.traffic,
            })));
        }
        step.actions.push(Action::Ended(Box::new(End { identity, cause })));
    }
}

fn or_none(what: Option<impl std::fmt::Display>) -> String {
    what.map_or_else(|| "none".to_owned(), |what| what.to_string())
}
