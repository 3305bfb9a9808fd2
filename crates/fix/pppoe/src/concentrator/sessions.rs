//! The table of sessions, and what may be in it.
//!
//! A session is found by port, VLAN tags and number, by user, by address and by its [`Id`]. Numbers belong to port and tags, so
//! that there can be more sessions than numbers. No operation takes longer than the logarithm of the number of sessions.

mod room;

use super::accounting::{Ended, Traffic};
use super::advertisement::Advertisements;
use super::authority::Granted;
use super::network::{Network, Prefixes};
use super::numbers::{self, Numbers};
use super::rates::BitRates;
use crate::discovery::concentrator::Request;
use crate::discovery::message::Line;
use crate::discovery::place::Place;
use crate::session::Session;
use crate::{Random, Time};
pub use room::{Caps, Full};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use wire::ethernet::MacAddress;

/// A session: no other one has the same, and a later one has a greater one, also where another process goes on with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Id(u64);

impl Id {
    const fn new(serial: u32, slot: u32) -> Id {
        Id((serial as u64) << 32 | slot as u64)
    }

    const fn serial(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Its place in the table, which another session may have after this one.
    pub(crate) const fn slot(self) -> u32 {
        self.0 as u32
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

impl std::str::FromStr for Id {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Id, Self::Err> {
        u64::from_str_radix(text, 16).map(Id)
    }
}

pub(super) fn sessions(count: u32) -> String {
    format::plural(count.into(), "session")
}

/// What a session was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lease {
    /// IPv4 address of the host.
    pub address: Option<Ipv4Addr>,
    /// IPv6 prefixes.
    pub prefixes: Prefixes,
    /// Interface identifiers, own and the subscriber's.
    pub(super) identifiers: Option<(u64, u64)>,
    /// Networks behind the host.
    pub routes: Box<[Network]>,
    pub rates: BitRates,
}

/// Which session it is, and of whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its name here; of one that was not restored, a name that no other has.
    pub id: Id,
    pub place: Place,
    /// MAC address of the host; frames from any other are not the session's.
    pub station: MacAddress,
    pub number: u16,
    /// `None`: nobody has said who they are.
    pub user: Option<Arc<[u8]>>,
    /// What an access node says of the line (TR-101 section 3.9).
    pub line: Option<Arc<Line>>,
    /// Names the session in accounting records, in the next process, too: drawn at random.
    pub accounting: u64,
}

impl Identity {
    /// Empty while nobody has said who they are.
    pub fn user(&self) -> &[u8] {
        self.user.as_deref().unwrap_or_default()
    }
}

/// How long no packet has passed a session.
#[derive(Clone, Copy, Debug)]
pub(super) struct Idle {
    /// How long that may be.
    most: Duration,
    /// What had passed it when it was last looked at.
    packets: u64,
    since: Time,
    /// When it is looked at next.
    pub(super) look: Time,
}

impl Idle {
    /// Takes what has passed it; whether it is over. It is looked at ten times, so that it ends a tenth too late at most.
    pub(super) fn has_passed(&mut self, now: Time, packets: u64) -> bool {
        if packets != self.packets {
            (self.packets, self.since) = (packets, now);
        }
        self.look = (now + self.most / 10).min(self.since + self.most);
        now >= self.since + self.most
    }
}

/// A session in the table.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) identity: Identity,
    pub(super) session: Session,
    pub(super) cookie: u64,
    /// Most bytes of PPP payload that discovery agreed to.
    pub(super) max_payload: u16,
    /// Nothing came up yet, or all of it is being negotiated again since the time that follows.
    pub(super) is_half_open: bool,
    pub(super) half_open_since: Time,
    /// When its host was last heard; `None`: it has sent no packet of PPP yet.
    pub(super) heard: Option<Time>,
    /// From when on it gives way, if ever.
    gives_way: Option<Time>,
    /// When the first network protocol came up.
    pub(super) opened: Option<Time>,
    /// When the next interim record is due.
    pub(super) interim: Option<Time>,
    timer: Option<Time>,
    pub(super) lease: Lease,
    /// What somebody else granted, where the secrets do not name the user.
    pub(super) granted: Option<Arc<Granted>>,
    /// When the time that they granted is over.
    pub(super) ends: Option<Time>,
    /// Whether packets go through it, where that matters.
    pub(super) idle: Option<Idle>,
    /// While IPv6 is up: when the host is notified of its prefix.
    pub(super) advertisements: Option<Advertisements>,
    pub(super) is_installed: bool,
    /// How long it was open in processes before this one.
    pub(super) earlier: Duration,
    /// What it transferred before it was last installed.
    pub(super) before: Traffic,
    pub(super) closing: Option<Ended>,
}

impl Entry {
    pub(super) fn new(session: Session, identity: Identity, max_payload: u16, now: Time) -> Entry {
        Entry {
            identity,
            session,
            cookie: 0,
            max_payload,
            is_half_open: true,
            half_open_since: now,
            heard: None,
            gives_way: None,
            opened: None,
            interim: None,
            timer: None,
            lease: Lease::default(),
            granted: None,
            ends: None,
            idle: None,
            advertisements: None,
            is_installed: false,
            earlier: Duration::ZERO,
            before: Traffic::default(),
            closing: None,
        }
    }

    /// Time since the first network protocol came up, in whichever process; `None`: none has.
    pub(super) fn uptime(&self, now: Time) -> Option<Duration> {
        self.opened.map(|opened| now.saturating_sub(opened).saturating_add(self.earlier))
    }

    /// Between its interim records: what was granted, else what holds for everybody.
    pub(super) fn interim_interval(&self, configured: Option<Duration>) -> Option<Duration> {
        self.granted.as_ref().and_then(|granted| granted.interim).or(configured)
    }

    /// Ends it when the time that was granted is over, counted from when it opened, in whichever process: `opened` in this one. None is no
    /// limit, as servers mean it.
    pub(super) fn limit_time(&mut self, opened: Time) {
        let granted = self.granted.as_ref().and_then(|granted| granted.time).filter(|time| !time.is_zero());
        self.ends = granted.map(|time| opened + time.saturating_sub(self.earlier));
    }

    /// Ends it when no packet has passed it for as long as was granted.
    pub(super) fn watch(&mut self, now: Time) {
        let granted = self.granted.as_ref().and_then(|granted| granted.idle).filter(|idle| !idle.is_zero());
        self.idle = granted.map(|most| Idle { most, packets: 0, since: now, look: now });
    }

    /// Longest IP packet to the host, bytes.
    pub(super) fn mtu(&self) -> u16 {
        let granted = self.granted.as_ref().and_then(|granted| granted.mtu).unwrap_or(u16::MAX);
        self.session.peer_mru().min(self.max_payload).min(granted)
    }
}

/// Sessions by a key that several may have.
#[derive(Debug)]
struct Index<K>(BTreeSet<(K, Id)>);

impl<K: Ord + Clone> Index<K> {
    /// The slots of a key, the latest session first.
    fn of(&self, key: &K) -> impl Iterator<Item = u32> + use<'_, K> {
        let ids = (key.clone(), Id(0))..=(key.clone(), Id(u64::MAX));
        self.0.range(ids).rev().map(|(_, id)| id.slot())
    }

    /// How many sessions a key has, counted up to `most`.
    fn count(&self, key: &K, most: u32) -> u32 {
        self.of(key).take(most as usize).count() as u32
    }
}

#[derive(Clone, Debug, Default)]
struct Count {
    sessions: u32,
    half_open: u32,
    /// Those that give way, by when they begin to.
    waiting: BTreeSet<(Time, u32)>,
}

/// All sessions.
#[derive(Debug)]
pub(super) struct Table {
    slots: Vec<Option<Box<Entry>>>,
    free: Vec<u32>,
    serial: u32,
    by_number: HashMap<(Place, u16), u32>,
    by_station: Index<(Place, MacAddress)>,
    by_line: Index<Arc<Line>>,
    by_user: Index<Arc<[u8]>>,
    by_address: HashMap<Ipv4Addr, u32>,
    places: HashMap<Place, Count>,
    /// Places with sessions that give way, by how many they have.
    waiting: BTreeSet<(usize, Place)>,
    half_open: u32,
    /// When each session wants to be called; those that wait cost nothing.
    timers: BTreeSet<(Time, u32)>,
    numbers: Numbers,
    caps: Caps,
}

impl Table {
    pub(super) fn new(caps: Caps) -> Table {
        Table {
            slots: Vec::new(),
            free: Vec::new(),
            serial: 0,
            by_number: HashMap::new(),
            by_station: Index(BTreeSet::new()),
            by_line: Index(BTreeSet::new()),
            by_user: Index(BTreeSet::new()),
            by_address: HashMap::new(),
            places: HashMap::new(),
            waiting: BTreeSet::new(),
            half_open: 0,
            timers: BTreeSet::new(),
            numbers: Numbers::default(),
            caps,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.by_number.len()
    }

    /// Gives up what the tables have for more sessions than there are: it is needed again when they come.
    pub(super) fn shrink(&mut self) {
        self.by_number.shrink_to_fit();
        self.by_address.shrink_to_fit();
        self.places.shrink_to_fit();
    }

    pub(super) const fn half_open(&self) -> u32 {
        self.half_open
    }

    /// Draws a number for another half-open session, if there is room for one. `most`: sessions of its place, where they are not as
    /// many as of every one.
    pub(super) fn number(
        &mut self,
        now: Time,
        request: &Request,
        most: Option<u32>,
        random: &mut dyn Random,
    ) -> Result<u16, Full> {
        self.room(request, most)?;
        let (Table { numbers, by_number, .. }, place) = (self, request.place);
        numbers
            .draw(now, &place, random, |number| by_number.contains_key(&(place, number)))
            .ok_or(Full::Place(numbers::ALL))
    }

    /// Whether a cookie opened a session that is over.
    pub(super) fn is_used_up(&self, cookie: u64) -> bool {
        self.numbers.is_used_up(cookie)
    }

    /// A name for a session that comes in: the one that it had in an earlier process, where its slot is free.
    fn name(&mut self, earlier: Option<Id>) -> Id {
        if let Some(id) = earlier
            && self.claim(id.slot())
        {
            self.serial = self.serial.max(id.serial());
            return id;
        }
        self.serial = self.serial.wrapping_add(1);
        Id::new(self.serial, self.free.pop().unwrap_or(self.slots.len() as u32))
    }

    /// Takes a slot, if it is free; those before it become free where there were none yet.
    fn claim(&mut self, slot: u32) -> bool {
        let fresh = self.slots.len() as u32..slot.saturating_add(1).min(self.caps.sessions);
        self.free.extend(fresh.clone());
        self.slots.extend(fresh.map(|_| None));
        // Sessions come in the order of their slots: it is the last one.
        let at = self.free.iter().rposition(|free| *free == slot);
        at.map(|at| self.free.swap_remove(at)).is_some()
    }

    /// Puts a session in, half-open; its number is free. `earlier`: its name in an earlier process.
    pub(super) fn put(&mut self, mut entry: Entry, earlier: Option<Id>) -> u32 {
        let name = self.name(earlier);
        let slot = name.slot();
        entry.identity.id = name;
        entry.is_half_open = true;
        let (place, station, number) = (entry.identity.place, entry.identity.station, entry.identity.number);
        let id = entry.identity.id;
        self.by_number.insert((place, number), slot);
        self.by_station.0.insert(((place, station), entry.identity.id));
        self.by_line.0.extend(entry.identity.line.clone().map(|line| (line, id)));
        let here = self.places.entry(place).or_default();
        here.sessions += 1;
        here.half_open += 1;
        self.half_open += 1;
        if self.slots.len() <= slot as usize {
            self.slots.push(None);
        }
        if let Some(place) = self.slots.get_mut(slot as usize) {
            *place = Some(Box::new(entry));
        }
        self.set_waiting(slot, true);
        slot
    }

    /// A name for a session that is in no slot.
    pub(super) const fn no_slot(&mut self) -> Id {
        self.serial = self.serial.wrapping_add(1);
        Id::new(self.serial, u32::MAX)
    }

    /// Takes a session out; its number rests for a while, its cookie is used up.
    pub(super) fn take(&mut self, now: Time, slot: u32) -> Option<Box<Entry>> {
        let entry = self.forget(slot)?;
        self.numbers.rest(now, entry.identity.place, entry.identity.number, entry.cookie);
        Some(entry)
    }

    /// Takes a session out as if it had never been: its host may ask for it again by the same PADR.
    pub(super) fn forget(&mut self, slot: u32) -> Option<Box<Entry>> {
        self.set_timer(slot, None);
        self.set_half_open(slot, false);
        let entry = self.slots.get_mut(slot as usize)?.take()?;
        self.free.push(slot);
        self.by_number.remove(&(entry.identity.place, entry.identity.number));
        self.by_station.0.remove(&((entry.identity.place, entry.identity.station), entry.identity.id));
        if let Some(line) = &entry.identity.line {
            self.by_line.0.remove(&(line.clone(), entry.identity.id));
        }
        if let Some(user) = &entry.identity.user {
            self.by_user.0.remove(&(user.clone(), entry.identity.id));
        }
        if let Some(address) = entry.lease.address {
            self.by_address.remove(&address);
        }
        if let Some(here) = self.places.get_mut(&entry.identity.place) {
            here.sessions -= 1;
            if here.sessions == 0 {
                self.places.remove(&entry.identity.place);
            }
        }
        Some(entry)
    }

    /// Says whose session it is; it was nobody's.
    pub(super) fn set_user(&mut self, slot: u32, user: Arc<[u8]>) {
        if let Some(Some(entry)) = self.slots.get_mut(slot as usize)
            && entry.identity.user.is_none()
        {
            entry.identity.user = Some(user.clone());
            self.by_user.0.insert((user, entry.identity.id));
        }
    }

    /// Gives a session its address; it had none.
    pub(super) fn set_address(&mut self, slot: u32, address: Ipv4Addr) {
        if let Some(Some(entry)) = self.slots.get_mut(slot as usize)
            && entry.lease.address.is_none()
        {
            entry.lease.address = Some(address);
            self.by_address.insert(address, slot);
        }
    }

    pub(super) fn get(&self, slot: u32) -> Option<&Entry> {
        self.slots.get(slot as usize)?.as_deref()
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut Entry> {
        self.slots.get_mut(slot as usize)?.as_deref_mut()
    }

    /// The slot of a session, if it is still there.
    pub(super) fn of_id(&self, id: Id) -> Option<u32> {
        self.get(id.slot()).filter(|entry| entry.identity.id == id).map(|_| id.slot())
    }

    pub(super) fn of_number(&self, place: &Place, number: u16) -> Option<u32> {
        self.by_number.get(&(*place, number)).copied()
    }

    pub(super) fn of_address(&self, address: Ipv4Addr) -> Option<u32> {
        self.by_address.get(&address).copied()
    }

    /// The sessions of a user, the latest first.
    pub(super) fn of_user(&self, user: &[u8]) -> impl Iterator<Item = u32> + use<'_> {
        self.by_user.of(&Arc::from(user))
    }

    /// The session that was opened by a cookie.
    pub(super) fn of_cookie(&self, place: &Place, station: MacAddress, cookie: u64) -> Option<u32> {
        let mut slots = self.by_station.of(&(*place, station));
        slots.find(|slot| self.get(*slot).is_some_and(|entry| entry.cookie == cookie))
    }

    /// All slots in use, in ascending order.
    pub(super) fn slots(&self) -> impl Iterator<Item = u32> + '_ {
        self.slots.iter().zip(0..).filter(|(entry, _)| entry.is_some()).map(|(_, slot)| slot)
    }

    /// All sessions, in the order of their slots.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.slots.iter().flatten().map(|entry| &**entry)
    }

    pub(super) fn entries_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.slots.iter_mut().flatten().map(|entry| &mut **entry)
    }

    /// When a session wants to be called first.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.timers.first().map(|(time, _)| *time)
    }

    pub(super) fn timer(&self, slot: u32) -> Option<Time> {
        self.get(slot)?.timer
    }

    pub(super) fn set_timer(&mut self, slot: u32, time: Option<Time>) {
        let Some(Some(entry)) = self.slots.get_mut(slot as usize) else { return };
        if let Some(before) = std::mem::replace(&mut entry.timer, time) {
            self.timers.remove(&(before, slot));
        }
        self.timers.extend(time.map(|time| (time, slot)));
    }

    /// The session whose timer is the first that has run out, which it has not any more.
    pub(super) fn expired(&mut self, now: Time) -> Option<u32> {
        let (time, slot) = *self.timers.first()?;
        if time > now {
            return None;
        }
        self.set_timer(slot, None);
        Some(slot)
    }

    /// Sees that every list has what the sessions say, and nothing else.
    #[cfg(test)]
    pub(super) fn check(&self) {
        let count = self.entries().count();
        let having = |has: fn(&Entry) -> bool| self.entries().filter(|entry| has(entry)).count();
        assert_eq!((self.by_number.len(), self.by_station.0.len()), (count, count));
        assert_eq!(self.slots.len(), count + self.free.len());
        assert_eq!(self.half_open as usize, having(|entry| entry.is_half_open));
        assert_eq!(self.by_address.len(), having(|entry| entry.lease.address.is_some()));
        assert_eq!(self.by_user.0.len(), having(|entry| entry.identity.user.is_some()));
        assert_eq!(self.by_line.0.len(), having(|entry| entry.identity.line.is_some()));
        assert_eq!(self.timers.len(), count, "every session has a timer, and nothing else");
        assert_eq!(self.places.values().map(|here| here.sessions as usize).sum::<usize>(), count);
        let waiting: BTreeSet<(usize, Place)> = self
            .places
            .iter()
            .map(|(place, here)| (here.waiting.len(), *place))
            .filter(|(waiting, _)| *waiting > 0)
            .collect();
        assert_eq!(self.waiting, waiting);
        for (from, slot) in self.places.values().flat_map(|here| &here.waiting) {
            assert_eq!(self.get(*slot).and_then(|entry| entry.gives_way), Some(*from));
        }
        assert_eq!(
            self.places.values().map(|here| here.waiting.len()).sum::<usize>(),
            having(|entry| entry.gives_way.is_some())
        );
        for slot in self.slots() {
            let entry = self.get(slot).unwrap();
            assert_eq!(self.of_id(entry.identity.id), Some(slot));
            assert_eq!(self.of_number(&entry.identity.place, entry.identity.number), Some(slot));
            assert!(entry.lease.address.is_none_or(|address| self.of_address(address) == Some(slot)));
            let user = entry.identity.user.as_deref();
            assert!(user.is_none_or(|user| self.of_user(user).any(|of_user| of_user == slot)));
        }
    }
}
