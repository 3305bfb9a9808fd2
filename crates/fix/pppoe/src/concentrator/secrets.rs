//! The subscribers: who may connect, by which password, and what they get.
//!
//! Two forms are read, distinguished by their content.
//!
//! # The TOML form
//!
//! One table `[[subscriber]]` each, and before them whom nobody wants:
//!
//! ```toml
//! blocked = ["02:00:5e:00:00:01"]                    # MAC addresses of hosts that get no answer
//!
//! [[vlan]]                                           # what holds in VLANs for whom nothing else is said; the first that has them
//! vlans = "100-199.*"
//! pool = "gold"
//! download = "100M"
//! upload = "20M"
//! sessions = 8                                       # of each stack of tags at the same time
//! blocked = false                                    # whether hosts there get no answer
//!
//! [[subscriber]]
//! user = "alice"                                     # as the host says it, with the realm if there is one
//! password = "correct horse"
//!
//! [[subscriber]]
//! user = "bob@example.net"
//! password = "battery staple"
//! address = "192.0.2.7"                              # "pool" (as if it were left out), "none", or always this one
//! routes = ["198.51.100.16/28", "2001:db8:b0b::/48"] # networks behind this host
//! prefix = "2001:db8:1:7::/64"                       # IPv6 prefix of the link; left out: one of the pool
//! pool = "gold"                                      # the pool of which the address is; left out: that of everybody
//! download = "50M"                                   # bits of IP packets a second to this host; left out: what holds for everybody
//! upload = "10M"                                     # and from it
//! delegated = "2001:db8:b0c::/56"                    # IPv6 prefix for the networks behind this host, which learns of it by DHCPv6
//! sessions = 1                                       # at the same time; left out: what holds for everybody, or one
//! #                                                    where there is an address, a route or a prefix
//! ```
//!
//! # The form of `pap-secrets` and `chap-secrets`
//!
//! As pppd's manual has it (AUTHENTICATION): on each line client, server, password, then addresses, as words parted by white
//! space. Quotes `"` and `'` keep white space and `#` in a word, a backslash quotes the next character or names one (`\n`,
//! `\040`, `\x20`), `#` begins a comment, a backslash at the end of a line continues it. `*` as a client is everybody who is
//! not named, as a server every concentrator; lines for other servers are passed over. Of several lines for one client
//! the one with the fewest `*` holds, of those the first. The first single address is the client's fixed one, `*` is any of
//! the pool, `-` none. What follows `--` are options of pppd, and passed over.
//!
//! In one thing it differs. pppd gives a client without any address in its line none, because there the client chooses. Here
//! the concentrator chooses, so that such a client gets one of the pool.
//!
//! # Passwords
//!
//! No password appears in [`Debug`](std::fmt::Debug), in an error or in any other text.

mod pppd_form;
mod table_form;

use super::network::{Network, Prefixes};
use super::rates::BitRates;
use crate::discovery::concentrator::Blocked;
use crate::ipcp::is_usable;
use format::{Quotable, plural};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::net::Ipv4Addr;
use wire::{VlanPattern, Vlans};

/// A password, which is not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(Box<[u8]>);

impl Password {
    /// From its bytes.
    pub fn new(bytes: &[u8]) -> Password {
        Password(bytes.into())
    }

    /// Its bytes, for the authentication alone.
    pub const fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(…)")
    }
}

/// Which IPv4 address a subscriber gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Address {
    #[default]
    Pool,
    /// Always this one, for one session at a time.
    Fixed(Ipv4Addr),
    /// None: IPv4 is refused.
    None,
}

/// One subscriber.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscriber {
    pub password: Password,
    pub profile: Profile,
    /// The line that says so, from 1.
    pub line: usize,
}

/// What a subscriber gets, whoever says so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// The IPv4 address.
    pub address: Address,
    /// The name of the pool that it is of; `None`: that of everybody.
    #[serde(default)]
    pub pool: Option<Box<str>>,
    pub routes: Box<[Network]>,
    /// IPv6 prefixes; `None`: one of the pool, where there is one.
    #[serde(flatten)]
    pub prefixes: Prefixes,
    #[serde(default)]
    pub rates: BitRates,
    /// Most sessions at the same time; `None`: what holds for everybody, or one (`Profile::serves_one`).
    pub sessions: Option<u32>,
}

impl Profile {
    /// The address that it always gets.
    pub(crate) const fn fixed(&self) -> Option<Ipv4Addr> {
        match self.address {
            Address::Fixed(address) => Some(address),
            _ => None,
        }
    }

    /// What no other subscriber can have, routes apart: the fixed address, and the prefixes.
    pub(crate) fn fixed_networks(&self) -> impl Iterator<Item = Network> + use<> {
        self.fixed().map(|address| Network::host(address.into())).into_iter().chain(self.prefixes.iter())
    }

    /// Whether something of it can serve one session at a time alone: a fixed address, prefixes, networks behind the host.
    pub(crate) fn serves_one(&self) -> bool {
        self.fixed_networks().next().is_some() || !self.routes.is_empty()
    }
}

/// What holds in VLANs, where nothing else is said of a subscriber.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VlanProfile {
    pub vlans: VlanPattern,
    /// The name of the pool of which addresses are; `None`: that of everybody.
    pub pool: Option<Box<str>>,
    pub rates: BitRates,
    /// Most sessions of each stack of tags; `None`: what holds for every one.
    pub sessions: Option<u32>,
    /// Whether hosts get no answer.
    pub is_blocked: bool,
}

impl Subscriber {
    /// Whether the same holds, on whatever line.
    fn is_as(&self, other: &Subscriber) -> bool {
        (&self.password, &self.profile) == (&other.password, &other.profile)
    }
}

/// How secrets differ from those before. `Display` is a part of a sentence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    pub subscribers: usize,
    pub added: usize,
    /// Those of them with another password, address or anything else.
    pub changed: usize,
    pub removed: usize,
    /// What became of the line of pppd's form for everybody else (`*`): new, changed or removed.
    everybody: Option<&'static str>,
    /// MAC addresses that are blocked now, where they are others than before.
    blocked: Option<usize>,
    /// Tables `[[vlan]]`, where they are others than before.
    vlans: Option<usize>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { subscribers, added, changed, removed, everybody, blocked, vlans } = *self;
        f.write_str(&plural(subscribers as u64, "subscriber"))?;
        let counts = [(added, "new"), (changed, "changed"), (removed, "removed")];
        let mut parts: Vec<String> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        parts.extend(everybody.map(|what| format!("everybody else (*) {what}")));
        parts.extend(blocked.map(|count| format!("{count} blocked")));
        parts.extend(vlans.map(|count| format!("{} [[vlan]]", plural(count as u64, "table"))));
        if parts.is_empty() { f.write_str(", nothing changed") } else { write!(f, " ({})", parts.join(", ")) }
    }
}

/// All subscribers, found in constant time by their name.
#[derive(Clone, Debug, Default)]
pub struct Secrets {
    named: HashMap<Box<[u8]>, Subscriber>,
    anybody: Option<Box<Subscriber>>,
    blocked: Blocked,
    vlans: Vec<VlanProfile>,
    for_others: usize,
}

impl Secrets {
    /// Reads either form. `server` is the name of this concentrator, for the second column of pppd's form; `own` its IPv4
    /// address, which no subscriber can have.
    ///
    /// # Errors
    ///
    /// The line, and what was expected there. The caller puts the name of the file before it.
    pub fn parse(text: &[u8], server: &[u8], own: Option<Ipv4Addr>) -> Result<Secrets, Error> {
        if is_table_form(text) { table_form::read(text, own) } else { pppd_form::read(text, server, own) }
    }

    /// Bytes of memory that [`Secrets::parse`] takes for a text at most, measured: of the TOML form by what begins a value, of pppd's
    /// by lines, where the index of all names grows.
    pub fn memory(text: &[u8]) -> usize {
        let count = |those: &[u8]| text.iter().filter(|byte| those.contains(byte)).count();
        match is_table_form(text) {
            true => 4 * text.len() + 700 * count(b"=,["),
            false => 2 * text.len() + 440 * count(b"\n"),
        }
    }

    /// What holds for a user: their own entry, else the one for everybody.
    pub fn find(&self, user: &[u8]) -> Option<&Subscriber> {
        self.named.get(user).or(self.anybody.as_deref())
    }

    /// What holds for a user who is named.
    pub(crate) fn named(&self, user: &[u8]) -> Option<&Subscriber> {
        self.named.get(user)
    }

    /// Whose discovery gets no answer.
    pub(crate) const fn blocked(&self) -> &Blocked {
        &self.blocked
    }

    /// What holds in these VLANs.
    pub(crate) fn of_vlans(&self, vlans: Vlans) -> Option<&VlanProfile> {
        self.vlans.iter().find(|profile| profile.vlans.has(vlans))
    }

    /// The names of all pools that anything is to be of.
    pub fn pools(&self) -> BTreeSet<&str> {
        let subscribers = self.named.values().filter_map(|subscriber| subscriber.profile.pool.as_deref());
        subscribers.chain(self.vlans.iter().filter_map(|profile| profile.pool.as_deref())).collect()
    }

    /// Number of named subscribers.
    pub fn len(&self) -> usize {
        self.named.len()
    }

    /// Lines of pppd's form that were passed over, since they are for other servers.
    pub const fn for_others(&self) -> usize {
        self.for_others
    }

    /// What holds for everybody who is not named.
    pub fn everybody(&self) -> Option<&Subscriber> {
        self.anybody.as_deref()
    }

    /// Whether nobody may connect.
    pub fn is_empty(&self) -> bool {
        self.named.is_empty() && self.anybody.is_none()
    }

    /// Users and what holds for them, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &Subscriber)> {
        self.named.iter().map(|(user, subscriber)| (&**user, subscriber))
    }

    /// What is other than in `before`.
    pub(crate) fn difference(&self, before: &Secrets) -> Difference {
        let mut difference = Difference { subscribers: self.len(), ..Difference::default() };
        for (user, subscriber) in &self.named {
            match before.named.get(user) {
                None => difference.added += 1,
                Some(former) => difference.changed += usize::from(!subscriber.is_as(former)),
            }
        }
        difference.blocked =
            (self.blocked.stations != before.blocked.stations).then_some(self.blocked.stations.len());
        difference.vlans = (self.vlans != before.vlans).then_some(self.vlans.len());
        difference.removed = before.len() + difference.added - self.len();
        difference.everybody = match (&self.anybody, &before.anybody) {
            (None, None) => None,
            (Some(one), Some(other)) if one.is_as(other) => None,
            (Some(_), Some(_)) => Some("changed"),
            (Some(_), None) => Some("new"),
            (None, Some(_)) => Some("removed"),
        };
        difference
    }

    /// Whose the fixed addresses and prefixes are.
    pub(crate) fn owners(&self) -> HashMap<Network, &[u8]> {
        let networks = |(user, subscriber): (_, &Subscriber)| {
            subscriber.profile.fixed_networks().map(move |one| (one, user))
        };
        self.iter().flat_map(networks).collect()
    }

    /// Addresses that belong to one subscriber each, in no order. No pool gives them to anybody else.
    pub fn fixed(&self) -> impl Iterator<Item = Ipv4Addr> {
        self.named.values().chain(self.anybody.as_deref()).filter_map(|subscriber| subscriber.profile.fixed())
    }

    /// IPv6 prefixes that belong to one subscriber each, in no order.
    pub(crate) fn fixed_prefixes(&self) -> impl Iterator<Item = Prefixes> {
        self.named.values().chain(self.anybody.as_deref()).map(|subscriber| subscriber.profile.prefixes)
    }
}

/// A line of the file that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}{}: {mistake}", of(*line, subscriber.as_ref()))]
pub struct Error {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it, and what was expected. Nothing of it quotes a password.
    pub mistake: String,
    /// TOML: the table `[[subscriber]]` that it is in.
    pub subscriber: Option<Table>,
}

impl Error {
    fn new(line: usize, mistake: impl Into<String>) -> Error {
        Error { line, mistake: mistake.into(), subscriber: None }
    }
}

/// A table `[[subscriber]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its first line, from 1.
    pub line: usize,
    /// Whose it is, escaped; `None`: it does not say.
    pub user: Option<String>,
}

/// Which subscriber a line is about, as far as the line itself does not say.
fn of(line: usize, subscriber: Option<&Table>) -> String {
    match subscriber {
        Some(Table { line: first, user: Some(user) }) if *first == line => format!(" (user \"{user}\")"),
        Some(Table { line: first, user: Some(user) }) => {
            format!(" (user \"{user}\", [[subscriber]] in line {first})")
        }
        Some(Table { line: first, user: None }) if *first != line => {
            format!(" ([[subscriber]] in line {first})")
        }
        _ => String::new(),
    }
}

/// Whether the first line that says anything is one of TOML: a table's head, or a key with `=`.
fn is_table_form(text: &[u8]) -> bool {
    let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let Some(line) = lines.into_iter().find(|line| !line.is_empty() && !line.starts_with(b"#")) else {
        return false;
    };
    let key =
        line.iter().take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')).count();
    let (key, rest) = line.split_at_checked(key).unwrap_or_default();
    let rest = rest.trim_ascii_start();
    // The second word of pppd's form is a server, which `=` is not; without white space it is a client such as `user=x`.
    let is_pair =
        !key.is_empty() && ["= ", "=\"", "=["].iter().any(|start| rest.starts_with(start.as_bytes()));
    line.starts_with(b"[") || is_pair || rest == b"="
}

/// Sees that a subscriber's host can have an address; `own` is the concentrator's.
pub(super) fn station(address: Ipv4Addr, own: Option<Ipv4Addr>) -> Result<Ipv4Addr, String> {
    if own == Some(address) {
        return Err(not_own(address));
    }
    is_usable(address).then_some(address).ok_or_else(|| format!("{address} cannot be the address of a host"))
}

fn not_own(address: Ipv4Addr) -> String {
    format!("{address} is the concentrator's own address (--local): expected another one")
}

fn no_password(user: &[u8]) -> String {
    format!("the password of \"{}\" is empty: expected at least one character", Quotable(user))
}

const NO_USER: &str = "the user is empty: expected a name, or in the form of pppd * for everybody";

#[cfg(test)]
mod tests;
