//! What all workers of a concentrator look things up in.

use super::Limits;
use super::index::{Index, Seed};
use super::routes::{Routes, Whose};
use super::slots::{Key, Owner, Seen, Slots};
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use wire::Vlans;
use wire::ethernet::MacAddress;

pub const MOST_STRAYS: usize = 64;

/// Sessions, by their key and by their addresses.
#[derive(Debug)]
pub struct Table {
    seed: Seed,
    /// An entry: hash, and the session's number and one.
    sessions: Index,
    pub slots: Slots,
    pub routes: Routes,
    ids: Box<[AtomicU16]>,
    /// MAC address of this station, in the lower 48 bits.
    local: AtomicU64,
    strays: Mutex<VecDeque<Stray>>,
}

/// Who sends data of a session that there is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stray {
    pub source: MacAddress,
    pub vlans: Vlans,
    pub session: u16,
}

impl Table {
    pub fn new(limits: Limits, local: MacAddress) -> Table {
        let table = Table {
            seed: Seed::new(),
            sessions: Index::new(limits.sessions),
            slots: Slots::new(limits.sessions),
            routes: Routes::new(limits.prefixes),
            ids: (0..=u16::MAX).map(|_| AtomicU16::new(0)).collect(),
            local: AtomicU64::new(0),
            strays: Mutex::new(VecDeque::with_capacity(MOST_STRAYS)),
        };
        table.set_local(local);
        table
    }

    /// Bytes that it takes now.
    pub fn memory(&self) -> usize {
        self.sessions.memory()
            + self.slots.memory()
            + self.routes.memory()
            + self.ids.len() * size_of::<AtomicU16>()
    }

    #[inline]
    pub fn local(&self) -> MacAddress {
        let [_, _, a, b, c, d, e, f] = self.local.load(Ordering::Relaxed).to_be_bytes();
        MacAddress([a, b, c, d, e, f])
    }

    pub fn set_local(&self, local: MacAddress) {
        let [a, b, c, d, e, f] = local.0;
        self.local.store(u64::from_be_bytes([0, 0, a, b, c, d, e, f]), Ordering::Relaxed);
    }

    #[inline]
    fn hash(&self, key: Key) -> u32 {
        self.seed.hash(key.vlans.number(), key.station)
    }

    #[inline]
    pub fn session(&self, key: Key) -> Option<Seen> {
        let hash = self.hash(key);
        self.sessions.find(hash, |entry| {
            if (entry >> 32) as u32 != hash {
                return None;
            }
            let seen = self.slots.see((entry as u32).checked_sub(1)?)?;
            (seen.key == key).then_some(seen)
        })
    }

    /// The session that an address leads to.
    #[inline]
    pub fn session_of(&self, whose: Whose) -> Option<Seen> {
        self.slots.see(whose.slot()).filter(|seen| whose.is(seen.owner))
    }

    /// Makes a session known that has been written.
    pub fn publish(&self, key: Key, owner: Owner) {
        self.count_id(key, 1);
        let hash = self.hash(key);
        self.sessions.insert(hash, u64::from(hash) << 32 | u64::from(owner.slot + 1));
    }

    pub fn withdraw(&self, key: Key, number: u32) {
        self.count_id(key, u16::MAX);
        let hash = self.hash(key);
        let entry = u64::from(hash) << 32 | u64::from(number + 1);
        self.sessions.remove(hash, entry, |entry| (entry >> 32) as u32);
    }

    fn count_id(&self, key: Key, more: u16) {
        if let Some(count) = self.ids.get(usize::from(key.id())) {
            // Modulo 65536: wrong only where so many lines have a session of the same id at once.
            count.fetch_add(more, Ordering::Relaxed);
        }
    }

    /// Whether any session has this id.
    #[inline]
    pub fn has_id(&self, id: u16) -> bool {
        self.ids.get(usize::from(id)).is_some_and(|count| count.load(Ordering::Relaxed) > 0)
    }

    /// Remembers who sends data of no session, if there is room and nobody else is at it.
    pub fn note(&self, key: Key) {
        if let Ok(mut strays) = self.strays.try_lock()
            && strays.len() < MOST_STRAYS
        {
            strays.push_back(Stray { source: key.peer(), vlans: key.vlans, session: key.id() });
        }
    }

    /// The next who was remembered.
    pub fn stray(&self) -> Option<Stray> {
        self.strays.lock().unwrap_or_else(std::sync::PoisonError::into_inner).pop_front()
    }
}
