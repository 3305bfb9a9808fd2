//! The table of sessions, and what may be in it.
//!
//! A session is found in constant time by port, VLAN tags and number, by user, by address and by its [`Id`]. Numbers belong to
//! port and tags, so that there can be more sessions than numbers.

pub(super) mod chains;
pub(super) mod entry;
pub(super) mod numbers;
pub(super) mod timers;

use self::chains::Chains;
use self::entry::Entry;
use self::numbers::Numbers;
use self::timers::Timers;
use super::authentication::plural;
use crate::discovery::place::Place;
use crate::{Random, Time};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;
use std::net::Ipv4Addr;
use std::sync::Arc;
use wire::ethernet::MacAddress;

/// A session of this process: no other one ever has the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Id(u64);

impl Id {
    const fn new(serial: u32, slot: u32) -> Id {
        Id((serial as u64) << 32 | slot as u64)
    }

    /// A small number, which another session may have after this one: of a place in a table.
    pub const fn slot(self) -> u32 {
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

/// How many sessions there may be. Half-open is one in which nothing came up yet: it costs who asks for it nothing but an
/// answer to an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    pub sessions: u32,
    pub half_open: u32,
    /// Of one port and stack of VLAN tags, at most the numbers there are.
    pub place: u32,
    /// Half-open, of one port and stack of VLAN tags.
    pub place_half_open: u32,
    /// Of one MAC address at one place.
    pub station: u32,
}

impl Caps {
    /// Room for 65,536 subscribers, in one VLAN or each in its own.
    pub const DEFAULT: Caps =
        Caps { sessions: 1 << 16, half_open: 1 << 13, place: 65_000, place_half_open: 1 << 12, station: 8 };
}

/// Why there is no room for another session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    #[error("the concentrator is full: it has {0} session{s}", s = plural(*.0))]
    Sessions(u32),
    #[error("the concentrator is busy: {0} sessions are being set up; try again in a minute")]
    HalfOpen(u32),
    #[error("this VLAN is full: it has {0} session{s}", s = plural(*.0))]
    Place(u32),
    #[error("this VLAN is busy: {0} sessions are being set up in it; try again in a minute")]
    PlaceHalfOpen(u32),
    #[error("this station has {0} session{s} already; end one, or wait until a dead one is noticed", s = plural(*.0))]
    Station(u32),
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    sessions: u32,
    half_open: u32,
}

/// All sessions.
#[derive(Debug)]
pub(super) struct Table {
    slots: Vec<Option<Box<Entry>>>,
    free: Vec<u32>,
    serial: u32,
    by_number: HashMap<(Place, u16), u32>,
    by_station: Chains<(Place, MacAddress)>,
    by_user: Chains<Arc<[u8]>>,
    by_address: HashMap<Ipv4Addr, u32>,
    places: HashMap<Place, Count>,
    half_open: u32,
    pub(super) numbers: Numbers,
    pub(super) timers: Timers,
    pub(super) caps: Caps,
}

impl Table {
    pub(super) fn new(caps: Caps) -> Table {
        Table {
            slots: Vec::new(),
            free: Vec::new(),
            serial: 0,
            by_number: HashMap::new(),
            by_station: Chains::default(),
            by_user: Chains::default(),
            by_address: HashMap::new(),
            places: HashMap::new(),
            half_open: 0,
            numbers: Numbers::default(),
            timers: Timers::default(),
            caps,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.by_number.len()
    }

    pub(super) const fn half_open(&self) -> u32 {
        self.half_open
    }

    /// Whether there is room for another half-open session of a station.
    pub(super) fn room(&self, place: &Place, station: MacAddress) -> Result<(), Full> {
        let Caps { sessions, half_open, place: of_place, place_half_open, station: of_station } = self.caps;
        let here = self.places.get(place).copied().unwrap_or_default();
        let of_this = self.by_station.count(&(*place, station));
        let all = self.len() as u32;
        match () {
            () if of_this >= of_station => Err(Full::Station(of_this)),
            () if here.sessions >= of_place.min(numbers::ALL) => Err(Full::Place(here.sessions)),
            () if here.half_open >= place_half_open => Err(Full::PlaceHalfOpen(here.half_open)),
            () if all >= sessions => Err(Full::Sessions(all)),
            () if self.half_open >= half_open => Err(Full::HalfOpen(self.half_open)),
            () => Ok(()),
        }
    }

    /// Draws a number for a session at a place. `None`: all are in use.
    pub(super) fn number(&mut self, now: Time, place: &Place, random: &mut dyn Random) -> Option<u16> {
        let Table { numbers, by_number, .. } = self;
        numbers.draw(now, place, random, |number| by_number.contains_key(&(*place, number)))
    }

    /// Puts a session in, half-open; its number is free.
    pub(super) fn put(&mut self, mut entry: Entry) -> u32 {
        let slot = self.free.pop().unwrap_or(self.slots.len() as u32);
        self.serial = self.serial.wrapping_add(1);
        entry.id = Id::new(self.serial, slot);
        entry.is_half_open = true;
        let (place, station, number) = (entry.place, entry.station, entry.number);
        self.by_number.insert((place, number), slot);
        self.by_station.put((place, station), slot);
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
        slot
    }

    /// A name for a session that is in no slot.
    pub(super) const fn no_slot(&mut self) -> Id {
        self.serial = self.serial.wrapping_add(1);
        Id::new(self.serial, u32::MAX)
    }

    /// Takes a session out; its number rests for a while, its cookie is used up.
    pub(super) fn take(&mut self, now: Time, slot: u32) -> Option<Box<Entry>> {
        let entry = self.slots.get_mut(slot as usize)?.take()?;
        self.free.push(slot);
        self.timers.set(slot, None);
        self.by_number.remove(&(entry.place, entry.number));
        self.by_station.take(&(entry.place, entry.station), slot);
        if let Some(user) = &entry.user {
            self.by_user.take(&**user, slot);
        }
        if let Some(address) = entry.lease.address {
            self.by_address.remove(&address);
        }
        if let Some(here) = self.places.get_mut(&entry.place) {
            here.sessions -= 1;
            here.half_open -= u32::from(entry.is_half_open);
            if here.sessions == 0 {
                self.places.remove(&entry.place);
            }
        }
        self.half_open -= u32::from(entry.is_half_open);
        self.numbers.rest(now, entry.place, entry.number, entry.cookie);
        Some(entry)
    }

    /// Says whether a session is half-open.
    pub(super) fn set_half_open(&mut self, slot: u32, is_half_open: bool) {
        let Some(Some(entry)) = self.slots.get_mut(slot as usize) else { return };
        if entry.is_half_open == is_half_open {
            return;
        }
        entry.is_half_open = is_half_open;
        let here = self.places.entry(entry.place).or_default();
        if is_half_open {
            here.half_open += 1;
            self.half_open += 1;
        } else {
            here.half_open -= 1;
            self.half_open -= 1;
        }
    }

    /// Says whose session it is; it was nobody's.
    pub(super) fn set_user(&mut self, slot: u32, user: Arc<[u8]>) {
        if let Some(Some(entry)) = self.slots.get_mut(slot as usize)
            && entry.user.is_none()
        {
            entry.user = Some(user.clone());
            self.by_user.put(user, slot);
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
        self.get(id.slot()).filter(|entry| entry.id == id).map(|_| id.slot())
    }

    pub(super) fn of_number(&self, place: &Place, number: u16) -> Option<u32> {
        self.by_number.get(&(*place, number)).copied()
    }

    /// The slot of the session that has an address.
    pub(super) fn of_address(&self, address: Ipv4Addr) -> Option<u32> {
        self.by_address.get(&address).copied()
    }

    /// The sessions of a user, the latest first.
    pub(super) fn of_user(&self, user: &[u8]) -> impl Iterator<Item = u32> + '_ {
        self.by_user.of(user)
    }

    /// How many sessions a user has.
    pub(super) fn count_of_user(&self, user: &[u8]) -> u32 {
        self.by_user.count(user)
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

    /// Sees that every list has what the sessions say, and nothing else.
    #[cfg(test)]
    pub(super) fn check(&self) {
        let entries: Vec<_> = self.slots.iter().flatten().collect();
        let count = entries.len();
        assert_eq!(self.by_number.len(), count);
        assert_eq!(self.slots.len(), count + self.free.len());
        assert_eq!(self.half_open as usize, entries.iter().filter(|entry| entry.is_half_open).count());
        assert_eq!(
            self.by_address.len(),
            entries.iter().filter(|entry| entry.lease.address.is_some()).count()
        );
        assert_eq!(self.timers.len(), count, "every session has a timer, and nothing else");
        let users: std::collections::BTreeSet<_> =
            entries.iter().filter_map(|entry| entry.user.clone()).collect();
        assert_eq!(self.by_user.keys(), users.len());
        let stations: std::collections::BTreeSet<_> =
            entries.iter().map(|entry| (entry.place, entry.station)).collect();
        assert_eq!(self.by_station.keys(), stations.len());
        assert_eq!(self.places.values().map(|here| here.sessions as usize).sum::<usize>(), count);
        for slot in self.slots() {
            let entry = self.get(slot).unwrap();
            assert_eq!(self.of_id(entry.id), Some(slot));
            assert_eq!(self.of_number(&entry.place, entry.number), Some(slot));
            assert!(entry.lease.address.is_none_or(|address| self.of_address(address) == Some(slot)));
        }
    }
}
