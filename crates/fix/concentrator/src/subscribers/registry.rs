//! The sessions, from the side that makes and ends them.

use super::index::Index;
use super::routes::{MOST_SESSIONS, Prefix, Writer};
use super::slots::{Key, Owner};
use super::table::{MOST_STRAYS, Stray, Table};
use super::view::View;
use super::{Limits, Session, Usage};
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use thiserror::Error;
use wire::ethernet::MacAddress;

/// The least MTU (RFC 791).
const LEAST_MTU: u16 = 68;

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
    Gone,
    #[error("an MTU of {0} bytes: IPv4 has 68 at least")]
    Mtu(u16),
    /// Another session has it, or this one has it already.
    #[error("{0} is another session's")]
    Taken(Prefix),
    #[error("{0} is not the session's")]
    NotHeld(Prefix),
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
    count: usize,
}

/// What a session has.
#[derive(Debug, Default)]
struct Held {
    session: Option<Owner>,
    prefixes: Vec<Prefix>,
}

impl Registry {
    /// The most sessions that [`Limits`] may ask for.
    pub const MOST: usize = MOST_SESSIONS;
    /// The most strays that are remembered.
    pub const MOST_STRAYS: usize = MOST_STRAYS;

    /// Without any session, of a station of this MAC address. Limits beyond [`Registry::MOST`] are lowered to it.
    pub fn new(limits: Limits, local: MacAddress) -> Registry {
        let sessions = limits.sessions.clamp(1, Registry::MOST);
        let limits = Limits { sessions, ..limits };
        Registry {
            table: Arc::new(Table::new(limits, local)),
            limits,
            routes: Writer::new(limits.prefixes),
            free: VecDeque::new(),
            next: 0,
            held: Vec::new(),
            count: 0,
        }
    }

    /// Bytes that one takes without any session, by and large.
    pub fn least(limits: Limits) -> usize {
        let sessions = limits.sessions.clamp(1, Registry::MOST);
        let ids = (1 << 16) * size_of::<u16>();
        Index::octets(sessions) + 2 * Index::octets(limits.prefixes) + ids
    }

    /// What a worker looks things up in.
    pub fn view(&self) -> View {
        View::new(Arc::clone(&self.table))
    }

    /// Bytes that tables and registry take now.
    pub fn memory(&self) -> usize {
        let prefixes: usize =
            self.held.iter().map(|held| held.prefixes.capacity() * size_of::<Prefix>()).sum();
        self.table.memory()
            + self.held.capacity() * size_of::<Held>()
            + self.free.capacity() * size_of::<u32>()
            + prefixes
    }

    /// How many sessions there are.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Another MAC address of this station: frames are for it and from it from now on.
    pub fn set_local(&self, local: MacAddress) {
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
    /// [`Refusal::Gone`].
    pub fn remove(&mut self, number: Number) -> Result<Usage, Refusal> {
        self.owner(number)?;
        let held = self.held.get_mut(number.slot as usize).ok_or(Refusal::Gone)?;
        held.session = None;
        for prefix in std::mem::take(&mut held.prefixes) {
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
        self.add_prefix(number, Prefix::host(address))
    }

    /// Gives a session all addresses of a prefix, but for those of longer prefixes that others have.
    ///
    /// # Errors
    ///
    /// A session has this very prefix, there is no room, or the session is gone.
    pub fn add_prefix(&mut self, number: Number, prefix: Prefix) -> Result<(), Refusal> {
        let owner = self.owner(number)?;
        if self.routes.whose(&self.table.routes, prefix).is_some() {
            return Err(Refusal::Taken(prefix));
        }
        if !self.routes.has_room(prefix) {
            return Err(Refusal::Prefixes(self.limits.prefixes));
        }
        self.routes.add(&self.table.routes, prefix, owner);
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
    /// It does not have it, or is gone.
    pub fn remove_prefix(&mut self, number: Number, prefix: Prefix) -> Result<(), Refusal> {
        self.owner(number)?;
        let held = self.held.get_mut(number.slot as usize).ok_or(Refusal::Gone)?;
        let place = held.prefixes.iter().position(|own| *own == prefix);
        held.prefixes.swap_remove(place.ok_or(Refusal::NotHeld(prefix))?);
        self.routes.remove(&self.table.routes, prefix);
        Ok(())
    }

    /// Changes MTU, clamp and interface identifier of a session to those of `session`, whose other fields say nothing.
    ///
    /// # Errors
    ///
    /// It is gone, or the MTU is too small.
    pub fn change(&mut self, number: Number, session: &Session) -> Result<(), Refusal> {
        let owner = self.owner(number)?;
        if session.mtu < LEAST_MTU {
            return Err(Refusal::Mtu(session.mtu));
        }
        self.table.slots.change(owner.slot, session);
        if let Some(held) = self.held.get_mut(owner.slot as usize) {
            held.session = Some(Owner { mtu: session.mtu, has_clamp: session.mss_clamp, ..owner });
        }
        Ok(())
    }

    /// What a session has used so far.
    ///
    /// # Errors
    ///
    /// [`Refusal::Gone`].
    pub fn usage(&self, number: Number) -> Result<Usage, Refusal> {
        self.owner(number).map(|owner| self.table.slots.usage(owner.slot))
    }

    /// Frames of data that a session has sent: where they become more, it was heard. One load.
    ///
    /// # Errors
    ///
    /// [`Refusal::Gone`].
    pub fn heard(&self, number: Number) -> Result<u64, Refusal> {
        self.owner(number).map(|owner| self.table.slots.heard(owner.slot))
    }

    /// Hands over who sent data of sessions that there are not, since the last call, and forgets them. RFC 2516 does not ask for
    /// an answer; a PADT tells a subscriber at once what its own keepalive would find out later.
    pub fn strays(&self) -> impl Iterator<Item = Stray> + '_ {
        std::iter::from_fn(|| self.table.stray()).take(MOST_STRAYS)
    }

    fn owner(&self, number: Number) -> Result<Owner, Refusal> {
        let owner = self.held.get(number.slot as usize).and_then(|held| held.session);
        owner.filter(|owner| owner.generation == number.generation).ok_or(Refusal::Gone)
    }
}
