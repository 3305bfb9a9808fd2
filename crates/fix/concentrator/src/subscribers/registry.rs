//! The sessions, from the side that makes and ends them, and the tables that all workers look things up in.

use super::forwarder::{Shared, Standing};
use super::index::{Index, Seed};
use super::memory::Memory;
use super::routes::{MOST_SESSIONS, Owned, Routes, Writer};
use super::slots::{Key, Observation, Owner, Slots};
use super::view::View;
use super::{Limits, Session, Usage};
use pppoe::concentrator::BitRates;
use pppoe::concentrator::network::Network;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use thiserror::Error;
use wire::Vlans;
use wire::ethernet::MacAddress;
use xdp::subscribers::Owners;
use xdp::subscribers_layout::SessionLine;

/// The least MTU (RFC 791).
const LEAST_MTU: u16 = 68;
/// The most strays that are remembered.
const MOST_STRAYS: usize = 64;

/// A session, as long as it is there. The number of another one is never the same, but after 65,536 others at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Number {
    slot: u32,
    generation: u16,
}

/// Why something was not done; nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// There is a session of this id from this station in these VLANs.
    #[error("session {0} of {1} is there already")]
    Session(u16, MacAddress),
    #[error("all {0} sessions are there")]
    Sessions(usize),
    /// There is no such session any more.
    #[error("the session has ended")]
    Removed,
    #[error("an MTU of {0} bytes: IPv4 has 68 at least")]
    Mtu(u16),
    /// Another session has it, or this one has it already.
    #[error("{0} is another session's")]
    Taken(Network),
    #[error("{0} is not the session's")]
    NotHeld(Network),
    #[error("all {0} addresses and prefixes are in use")]
    Prefixes(usize),
}

/// All sessions of a concentrator. See the [module](super).
#[derive(Debug)]
pub struct Registry {
    table: Arc<Table>,
    limits: Limits,
    routes: Writer,
    /// Numbers that were used and are free, and the first that was not.
    free: VecDeque<u32>,
    next: u32,
    held: Vec<Held>,
    pub(super) count: usize,
    /// Whose an address is, for programs in XDP, and they themselves, whose memory the sessions are in.
    pub(super) owners: Option<Owners>,
    forwarder: Option<Shared>,
}

/// What a session has.
#[derive(Debug, Default)]
struct Held {
    session: Option<Owner>,
    prefixes: Vec<Network>,
}

impl Registry {
    /// The most sessions that [`Limits`] may ask for.
    pub const MOST: usize = MOST_SESSIONS;

    /// Without any session, of a station of this MAC address. Limits beyond [`Registry::MOST`] are lowered to it.
    pub fn new(limits: Limits, local: MacAddress) -> Registry {
        Registry::with(Registry::limits(limits), local, None)
    }

    /// As many as there may be.
    pub(super) fn limits(limits: Limits) -> Limits {
        Limits { sessions: limits.sessions.clamp(1, Registry::MOST), ..limits }
    }

    /// The same, with the sessions in the memory of programs, where there are any.
    pub(super) fn with(limits: Limits, local: MacAddress, forwarder: Option<Shared>) -> Registry {
        let (memory, index4) = match &forwarder {
            Some(forwarder) => (Memory::Shared(forwarder.sessions()), Index::shared(forwarder.index())),
            None => (Memory::own(limits.sessions), Index::new(limits.prefixes)),
        };
        let routes = Routes::new(limits.prefixes, index4);
        forwarder.iter().for_each(|forwarder| forwarder.set_seed(routes.seed().words()));
        Registry {
            table: Arc::new(Table::new(limits, local, memory, routes)),
            limits,
            routes: Writer::new(limits.prefixes),
            free: VecDeque::new(),
            next: 0,
            held: Vec::new(),
            count: 0,
            owners: None,
            forwarder,
        }
    }

    /// How packets stand that programs in XDP forward; `None`: there are no programs.
    pub(crate) fn forwarded(&self) -> Option<Standing> {
        self.forwarder.as_ref().map(Shared::standing)
    }

    /// Bytes that one takes without any session, by and large; with the memory of programs in XDP, where it is theirs.
    pub(crate) fn least(limits: Limits, is_shared: bool) -> usize {
        let sessions = limits.sessions.clamp(1, Registry::MOST);
        let ids = (1 << 16) * size_of::<u16>();
        let shared = if is_shared { sessions * size_of::<SessionLine>() } else { 0 };
        Index::bytes(sessions) + 2 * Index::bytes(limits.prefixes) + ids + shared
    }

    /// What a worker looks things up in.
    pub fn view(&self) -> View {
        View::new(Arc::clone(&self.table))
    }

    /// Bytes that tables and registry take now.
    pub fn memory(&self) -> usize {
        let prefixes: usize =
            self.held.iter().map(|held| held.prefixes.capacity() * size_of::<Network>()).sum();
        self.table.memory()
            + self.held.capacity() * size_of::<Held>()
            + self.free.capacity() * size_of::<u32>()
            + prefixes
    }

    /// Another MAC address of this station: frames are for it and from it from now on.
    pub(crate) fn set_local(&self, local: MacAddress) {
        self.table.set_local(local);
    }

    /// Adds a session, which has no address yet.
    ///
    /// # Errors
    ///
    /// It is there already, there is no room, or its MTU is too small.
    pub fn insert(&mut self, session: &Session) -> Result<Number, Refusal> {
        if session.mtu < LEAST_MTU {
            return Err(Refusal::Mtu(session.mtu));
        }
        let key = Key::of(session.vlans, session.peer, session.id);
        if self.table.session(key).is_some() {
            return Err(Refusal::Session(session.id, session.peer));
        }
        let full = Refusal::Sessions(self.limits.sessions);
        if self.count >= self.limits.sessions {
            return Err(full);
        }
        // One that was not used before as long as there are such, so that numbers rest before they come again.
        let slot = if (self.next as usize) < self.limits.sessions && self.free.len() < 1024 {
            self.next += 1;
            self.next - 1
        } else {
            self.free.pop_front().ok_or(full)?
        };
        let owner = self.table.slots.fill(slot, session).ok_or(full)?;
        if self.held.len() <= slot as usize {
            self.held.resize_with(slot as usize + 1, Held::default);
        }
        if let Some(held) = self.held.get_mut(slot as usize) {
            held.session = Some(owner);
        }
        self.table.publish(key, owner);
        self.count += 1;
        Ok(Number { slot, generation: owner.generation })
    }

    /// Removes a session with all its prefixes; what it had used.
    ///
    /// # Errors
    ///
    /// [`Refusal::Removed`].
    pub fn remove(&mut self, number: Number) -> Result<Usage, Refusal> {
        self.owner(number)?;
        let held = self.held.get_mut(number.slot as usize).ok_or(Refusal::Removed)?;
        held.session = None;
        for prefix in std::mem::take(&mut held.prefixes) {
            disown(&mut self.owners, prefix);
            self.routes.remove(&self.table.routes, prefix);
        }
        if let Some(seen) = self.table.slots.see(number.slot) {
            self.table.withdraw(seen.key, number.slot);
        }
        let usage = self.table.slots.usage(number.slot);
        self.table.slots.empty(number.slot);
        self.free.push_back(number.slot);
        self.count -= 1;
        Ok(usage)
    }

    /// Gives a session an address.
    pub fn add_address(&mut self, number: Number, address: IpAddr) -> Result<(), Refusal> {
        self.add_prefix(number, Network::host(address))
    }

    /// Gives a session all addresses of a prefix, but for those of longer prefixes that others have.
    ///
    /// # Errors
    ///
    /// A session has this very prefix, there is no room, or the session is removed.
    pub fn add_prefix(&mut self, number: Number, prefix: Network) -> Result<(), Refusal> {
        let owner = self.owner(number)?;
        if self.routes.owner(&self.table.routes, prefix).is_some() {
            return Err(Refusal::Taken(prefix));
        }
        if !self.routes.has_room(prefix) {
            return Err(Refusal::Prefixes(self.limits.prefixes));
        }
        self.routes.add(&self.table.routes, prefix, owner);
        // Link-local addresses are no router's business.
        if let Some(owners) = self.owners.as_mut().filter(|_| !prefix.is_link_local()) {
            // Where it is not taken, the workers have its packets.
            let _ = owners.insert((prefix.address(), prefix.length()), owner.slot, owner.generation);
        }
        if let Some(held) = self.held.get_mut(number.slot as usize) {
            // Most sessions have one or two.
            held.prefixes.reserve_exact(1);
            held.prefixes.push(prefix);
        }
        Ok(())
    }

    /// Takes a prefix from a session.
    ///
    /// # Errors
    ///
    /// It does not have it, or has ended.
    pub(crate) fn remove_prefix(&mut self, number: Number, prefix: Network) -> Result<(), Refusal> {
        self.owner(number)?;
        let held = self.held.get_mut(number.slot as usize).ok_or(Refusal::Removed)?;
        let place = held.prefixes.iter().position(|own| *own == prefix);
        held.prefixes.swap_remove(place.ok_or(Refusal::NotHeld(prefix))?);
        disown(&mut self.owners, prefix);
        self.routes.remove(&self.table.routes, prefix);
        Ok(())
    }

    /// Changes MTU, clamp, interface identifier and rates of a session to those of `session`, whose other fields say nothing.
    ///
    /// # Errors
    ///
    /// It is removed, or the MTU is too small.
    pub(crate) fn change(&mut self, number: Number, session: &Session) -> Result<(), Refusal> {
        let owner = self.owner(number)?;
        if session.mtu < LEAST_MTU {
            return Err(Refusal::Mtu(session.mtu));
        }
        self.table.slots.change(owner.slot, session);
        if let Some(held) = self.held.get_mut(owner.slot as usize) {
            let is_limited = session.rates != BitRates::default();
            held.session =
                Some(Owner { mtu: session.mtu, has_clamp: session.mss_clamp, is_limited, ..owner });
        }
        Ok(())
    }

    /// What a session has used so far.
    ///
    /// # Errors
    ///
    /// [`Refusal::Removed`].
    pub fn usage(&self, number: Number) -> Result<Usage, Refusal> {
        self.owner(number).map(|owner| self.table.slots.usage(owner.slot))
    }

    /// Frames of data that a session has sent: where they become more, it was heard. One load.
    ///
    /// # Errors
    ///
    /// [`Refusal::Removed`].
    pub(crate) fn heard(&self, number: Number) -> Result<u64, Refusal> {
        self.owner(number).map(|owner| self.table.slots.heard(owner.slot))
    }

    /// Hands over who sent data of sessions that there are not, since the last call, and forgets them. RFC 2516 does not ask for
    /// an answer; a PADT informs a subscriber at once of what its own keepalive would find out later.
    pub(crate) fn strays(&self) -> impl Iterator<Item = Stray> + '_ {
        std::iter::from_fn(|| self.table.stray()).take(MOST_STRAYS)
    }

    fn owner(&self, number: Number) -> Result<Owner, Refusal> {
        let owner = self.held.get(number.slot as usize).and_then(|held| held.session);
        owner.filter(|owner| owner.generation == number.generation).ok_or(Refusal::Removed)
    }
}

/// Programs do not take a prefix for a session's any more.
fn disown(owners: &mut Option<Owners>, prefix: Network) {
    if let Some(owners) = owners.as_mut().filter(|_| !prefix.is_link_local()) {
        owners.remove((prefix.address(), prefix.length()));
    }
}

/// Sessions, by their key and by their addresses.
#[derive(Debug)]
pub(super) struct Table {
    seed: Seed,
    /// An entry: hash, and the session's number and one.
    sessions: Index,
    pub(super) slots: Slots,
    pub(super) routes: Routes,
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
    fn new(limits: Limits, local: MacAddress, memory: Memory, routes: Routes) -> Table {
        let table = Table {
            seed: Seed::new(),
            sessions: Index::new(limits.sessions),
            slots: Slots::new(memory),
            routes,
            ids: (0..=u16::MAX).map(|_| AtomicU16::new(0)).collect(),
            local: AtomicU64::new(0),
            strays: Mutex::new(VecDeque::with_capacity(MOST_STRAYS)),
        };
        table.set_local(local);
        table
    }

    /// Bytes that it takes now.
    pub(super) fn memory(&self) -> usize {
        self.sessions.memory()
            + self.slots.memory()
            + self.routes.memory()
            + self.ids.len() * size_of::<AtomicU16>()
    }

    #[inline]
    pub(super) fn local(&self) -> MacAddress {
        let [_, _, a, b, c, d, e, f] = self.local.load(Ordering::Relaxed).to_be_bytes();
        MacAddress([a, b, c, d, e, f])
    }

    pub(super) fn set_local(&self, local: MacAddress) {
        let [a, b, c, d, e, f] = local.0;
        self.local.store(u64::from_be_bytes([0, 0, a, b, c, d, e, f]), Ordering::Relaxed);
    }

    #[inline]
    fn hash(&self, key: Key) -> u32 {
        self.seed.hash(key.vlans.number(), key.station)
    }

    #[inline]
    pub(super) fn session(&self, key: Key) -> Option<Observation> {
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
    pub(super) fn session_of(&self, owned: Owned) -> Option<Observation> {
        self.slots.see(owned.slot()).filter(|seen| owned.is(seen.owner))
    }

    /// Makes a session known that has been written.
    pub(super) fn publish(&self, key: Key, owner: Owner) {
        self.count_id(key, 1);
        let hash = self.hash(key);
        self.sessions.insert(hash, u64::from(hash) << 32 | u64::from(owner.slot + 1));
    }

    pub(super) fn withdraw(&self, key: Key, number: u32) {
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
    pub(super) fn has_id(&self, id: u16) -> bool {
        self.ids.get(usize::from(id)).is_some_and(|count| count.load(Ordering::Relaxed) > 0)
    }

    /// Remembers who sends data of no session, if there is room and nobody else is at it.
    pub(super) fn note(&self, key: Key) {
        if let Ok(mut strays) = self.strays.try_lock()
            && strays.len() < MOST_STRAYS
        {
            strays.push_back(Stray { source: key.peer(), vlans: key.vlans, session: key.id() });
        }
    }

    /// The next who was remembered.
    pub(super) fn stray(&self) -> Option<Stray> {
        self.strays.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}
