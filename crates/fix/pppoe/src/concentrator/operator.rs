//! What an operator asks for: the list of sessions, a session's end, no more sessions, other secrets.

use super::accounting::{Ended, Traffic};
use super::authentication::rates;
use super::network::Network;
use super::rates::BitRates;
use super::secrets::{Address, Difference, Secrets};
use super::sessions::{Entry, Id, Identity, Lease};
use super::{Action, Concentrator, Installed, Step};
use crate::Time;
use crate::session::{Phase, RoundTrip};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// A session in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed<'a> {
    pub identity: &'a Identity,
    pub phase: Phase,
    pub lease: &'a Lease,
    /// Longest IP packet to the host, bytes.
    pub mtu: u16,
    /// Time since the first network protocol came up; `None`: none has.
    pub uptime: Option<Duration>,
    /// What it transferred before it was last installed; the data path has counted the rest.
    pub before: Traffic,
    /// The last round trip that was measured.
    pub round_trip: Option<RoundTrip>,
}

impl<'a> Listed<'a> {
    fn of(entry: &'a Entry, now: Time) -> Listed<'a> {
        Listed {
            identity: &entry.identity,
            phase: entry.session.phase(),
            lease: &entry.lease,
            mtu: entry.mtu(),
            uptime: entry.uptime(now),
            before: entry.before,
            round_trip: entry.session.round_trip(),
        }
    }
}

/// Which sessions are meant: those that fit all that is given, so that the default means all.
#[derive(Clone, Copy, Default)]
pub struct Filter<'a> {
    pub id: Option<Id>,
    pub user: Option<&'a [u8]>,
    /// Each is its own, or routed to it.
    pub addresses: &'a [IpAddr],
    /// This holds.
    pub identity: Option<&'a dyn Fn(&Identity) -> bool>,
}

impl Filter<'_> {
    fn has(&self, entry: &Entry) -> bool {
        let Entry { identity, lease, .. } = entry;
        let is_own = |address: &IpAddr| {
            lease.address.is_some_and(|own| own == *address)
                || lease
                    .routes
                    .iter()
                    .copied()
                    .chain(lease.prefixes.iter())
                    .any(|network| network.contains(*address))
        };
        self.id.is_none_or(|id| identity.id == id)
            && self.user.is_none_or(|user| identity.user.as_deref() == Some(user))
            && self.addresses.iter().all(is_own)
            && self.identity.is_none_or(|holds| holds(identity))
    }
}

/// What is granted to sessions instead of what was; `None` and empty: what was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// How long they may be open, since they opened.
    pub time: Option<Duration>,
    /// How long no packet may go through them.
    pub idle: Option<Duration>,
    /// Between interim records.
    pub interim: Option<Duration>,
    pub class: Vec<Vec<u8>>,
    pub rates: BitRates,
}

/// No session that was meant was granted anything by somebody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotGranted;

/// Why a session does not agree with new secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Why {
    #[error("its user is no subscriber any more")]
    Removed,
    #[error("its MAC address is blocked")]
    Blocked,
    #[error("its user has another password")]
    Password,
    /// It has an address or a prefix that is another subscriber's now, or its user another one.
    #[error("its address or prefix is not what the secrets say")]
    Address,
}

/// What came of new secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reloaded {
    pub difference: Difference,
    /// Sessions that do not agree with them, in the order of their slots. They go on until the caller disconnects them.
    pub disagreeing: Vec<(Id, Why)>,
}

impl Concentrator {
    /// All sessions, in the order of their slots.
    pub fn sessions(&self, now: Time) -> impl Iterator<Item = Listed<'_>> {
        self.table.entries().map(move |entry| Listed::of(entry, now))
    }

    pub fn session(&self, now: Time, id: Id) -> Option<Listed<'_>> {
        Some(Listed::of(self.table.get(self.table.of_id(id)?)?, now))
    }

    /// Gives up memory of tables that have become emptier; they take it again when sessions come.
    pub fn shrink(&mut self) {
        self.table.shrink();
    }

    /// Ends sessions: a Terminate-Request, and a PADT when it was answered or time ran out. How many there were.
    pub fn disconnect(&mut self, step: &mut Step<'_>, filter: &Filter<'_>) -> usize {
        let slots = self.slots_of(filter);
        for slot in &slots {
            if let Some(entry) = self.table.get_mut(*slot) {
                entry.closing = Some(Ended::Operator);
            }
            self.drive(step, *slot, |session, step, actions| session.close(step.now, step.random, actions));
        }
        slots.len()
    }

    /// Changes what somebody else granted to sessions. How many there were.
    ///
    /// # Errors
    ///
    /// There were some, and the secrets name the users of all of them.
    pub fn change(
        &mut self,
        step: &mut Step<'_>,
        filter: &Filter<'_>,
        change: &Change,
    ) -> Result<usize, NotGranted> {
        let slots = self.slots_of(filter);
        let (secrets, everybodys) = (self.secrets.clone(), self.config.rates);
        let mut changed = 0;
        for slot in &slots {
            let Some(entry) = self.table.get_mut(*slot) else { continue };
            let place = entry.identity.place;
            let Some(granted) = &mut entry.granted else { continue };
            let granted = Arc::make_mut(granted);
            granted.time = change.time.or(granted.time);
            granted.idle = change.idle.or(granted.idle);
            granted.interim = change.interim.or(granted.interim);
            if !change.class.is_empty() {
                granted.class.clone_from(&change.class);
            }
            granted.profile.rates = change.rates.or(granted.profile.rates);
            let rates = rates(&secrets, everybodys, &place, Some(&granted.profile));
            carry(step, entry, rates);
            if let Some(opened) = entry.opened {
                entry.limit_time(opened);
                if change.idle.is_some() {
                    entry.watch(step.now);
                }
                if change.interim.is_some() {
                    entry.interim = change.interim.map(|every| step.now + every);
                }
            }
            step.actions.push(Action::Changed(entry.identity.id));
            self.arm(*slot);
            changed += 1;
        }
        if changed == 0 && !slots.is_empty() { Err(NotGranted) } else { Ok(changed) }
    }

    fn slots_of(&self, filter: &Filter<'_>) -> Vec<u32> {
        let address = filter.addresses.iter().find_map(|address| match address {
            IpAddr::V4(address) => self.table.of_address(*address),
            IpAddr::V6(_) => None,
        });
        let candidates: Vec<u32> = match (filter.id, filter.user, address) {
            (Some(id), ..) => self.table.of_id(id).into_iter().collect(),
            (None, Some(user), _) => self.table.of_user(user).collect(),
            (None, None, Some(slot)) => vec![slot],
            (None, None, None) => self.table.slots().collect(),
        };
        let is_meant = |slot: &u32| self.table.get(*slot).is_some_and(|entry| filter.has(entry));
        candidates.into_iter().filter(is_meant).collect()
    }

    /// Takes no more sessions, or takes them again. Those that there are go on.
    pub fn set_draining(&mut self, step: &mut Step<'_>, is_draining: bool) {
        self.discovery.set_draining(is_draining);
        step.actions.push(Action::Draining(is_draining));
    }

    /// Whether no more sessions are taken.
    pub const fn is_draining(&self) -> bool {
        self.discovery.is_draining()
    }

    /// Ends all sessions at once, each with a Terminate-Request and a PADT, and takes no more.
    pub fn shut_down(&mut self, step: &mut Step<'_>) {
        // Which is not for the next process.
        self.discovery.set_draining(true);
        let slots: Vec<u32> = self.table.slots().collect();
        for slot in slots {
            self.cut(step, slot, Ended::ShutDown);
        }
    }

    /// Puts new secrets in the place of the old ones, all at once. Other rates hold from now on. Which sessions do not agree with them is
    /// reported, and no session is ended for it.
    pub fn reload(&mut self, step: &mut Step<'_>, secrets: Secrets) -> Reloaded {
        let secrets = Arc::new(secrets);
        let old = std::mem::replace(&mut self.secrets, secrets.clone());
        self.discovery.set_blocked(secrets.blocked());
        old.fixed().for_each(|address| self.addresses.keep_back(address, false));
        secrets.fixed().chain(self.config.local).for_each(|address| self.addresses.keep_back(address, true));
        old.fixed_prefixes().for_each(|prefixes| self.prefixes.keep_back(prefixes, false));
        secrets.fixed_prefixes().for_each(|prefixes| self.prefixes.keep_back(prefixes, true));
        for lease in self.table.entries().map(|entry| &entry.lease) {
            lease.address.into_iter().for_each(|address| self.addresses.hold(address));
            self.prefixes.hold(lease.prefixes);
        }
        let everybodys = self.config.rates;
        for entry in self.table.entries_mut() {
            let named =
                || secrets.find(entry.identity.user.as_deref()?).map(|subscriber| &subscriber.profile);
            let profile = entry.granted.as_ref().map(|granted| &granted.profile).or_else(named);
            let rates = rates(&secrets, everybodys, &entry.identity.place, profile);
            carry(step, entry, rates);
        }
        let difference = secrets.difference(&old);
        let owners = secrets.owners();
        let disagreeing = self.table.entries();
        let disagreeing =
            disagreeing.filter_map(|entry| Some((entry.identity.id, self.disagrees(entry, &old, &owners)?)));
        Reloaded { difference, disagreeing: disagreeing.collect() }
    }

    fn disagrees(&self, entry: &Entry, old: &Secrets, owners: &HashMap<Network, &[u8]>) -> Option<Why> {
        if self.secrets.blocked().has(&entry.identity.place, entry.identity.station) {
            return Some(Why::Blocked);
        }
        let user = entry.identity.user.as_deref()?;
        // Whoever authenticated it is not queried again.
        if self.config.methods.is_empty() || entry.granted.is_some() {
            return None;
        }
        let Some(now) = self.secrets.find(user) else { return Some(Why::Removed) };
        if old.find(user).is_some_and(|before| before.password != now.password) {
            return Some(Why::Password);
        }
        let fixed = match now.profile.address {
            Address::Fixed(address) => self.config.local.is_some() && entry.lease.address != Some(address),
            Address::Pool => false,
            Address::None => entry.lease.address.is_some(),
        };
        let address = entry.lease.address.map(|address| Network::host(address.into()));
        let is_anothers = |network| owners.get(&network).is_some_and(|owner| *owner != user);
        let is_taken = address.into_iter().chain(entry.lease.prefixes.iter()).any(is_anothers);
        (fixed || is_taken).then_some(Why::Address)
    }
}

/// Lets the data path carry a session at these rates from now on.
fn carry(step: &mut Step<'_>, entry: &mut Entry, rates: BitRates) {
    if std::mem::replace(&mut entry.lease.rates, rates) != rates && entry.is_installed {
        step.actions.push(Action::Installed(Box::new(Installed::of(entry))));
    }
}
