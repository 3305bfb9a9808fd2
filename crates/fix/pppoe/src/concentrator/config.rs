//! What a concentrator has to do.

use super::network::Network;
use super::pool::{AddressPools, PrefixPool, PrefixPools, Range};
use super::rates::BitRates;
use super::sessions::Caps;
use crate::Invalid;
use crate::discovery::concentrator::Config as Discovery;
use crate::discovery::limits::{Rate, Rates};
use crate::session::{self, Method, Role, Timers};
use std::collections::{BTreeMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// What becomes of another session of a user who has as many as they may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SameUser {
    /// The oldest one ends: the host has lost it, and this end has not noticed yet.
    Replace,
    Refuse,
}

/// Most name servers that a host is notified of by IPv6.
pub const MOST_SERVERS: usize = 3;

/// What a concentrator has to do.
#[derive(Clone, Debug)]
pub struct Config {
    /// Name, services, largest payload, cookies, rates.
    pub discovery: Discovery,
    /// What subscribers have to authenticate by, in order of preference. Empty: nobody has to.
    pub methods: Vec<Method>,
    /// Whether somebody else authenticates subscribers that the secrets do not name ([`super::Action::Ask`]).
    pub asks: bool,
    pub timers: Timers,
    /// The own IPv4 address, on the link to every subscriber. `None`: no IPv4.
    pub local: Option<Ipv4Addr>,
    /// Addresses for subscribers without a fixed one.
    pub pool: Vec<Range>,
    /// Addresses for those for whom a pool is named, by its name.
    pub named_pools: BTreeMap<String, Vec<Range>>,
    pub dns: [Option<Ipv4Addr>; 2],
    /// Name servers that are reached by IPv6, [`MOST_SERVERS`] at most.
    pub dns6: Vec<Ipv6Addr>,
    /// The own interface identifier, on the link to every subscriber. `None`: no IPv6.
    pub identifier: Option<u64>,
    /// Where the prefixes for links come from. `None`: only from the secrets.
    pub prefixes: Option<Network>,
    /// Where the prefixes for the networks behind hosts come from, and how many bits each has, 64 at most. `None`: only from the secrets.
    pub delegated: Option<(Network, u8)>,
    /// Rates of subscribers for whom nothing else is said.
    pub rates: BitRates,
    pub caps: Caps,
    /// Sessions of a user for whom the secrets say nothing else.
    pub sessions_per_user: u32,
    pub same_user: SameUser,
    /// How long a session may be half-open.
    pub(crate) setup: Duration,
    /// Between interim records; `None`: there are none.
    pub interim: Option<Duration>,
    /// How many packets of unknown sessions are answered by a PADT.
    pub strays: Rates,
}

impl Config {
    /// A concentrator of this name, with CHAP-MD5, MS-CHAPv2 or PAP, and without addresses.
    pub fn new(name: &[u8]) -> Config {
        Config {
            discovery: Discovery::new(name),
            methods: vec![Method::ChapMd5, Method::MsChapV2, Method::Pap],
            asks: false,
            timers: Timers::DEFAULT,
            local: None,
            pool: Vec::new(),
            named_pools: BTreeMap::new(),
            dns: [None; 2],
            identifier: None,
            dns6: Vec::new(),
            prefixes: None,
            delegated: None,
            rates: BitRates::default(),
            caps: Caps::DEFAULT,
            sessions_per_user: 1,
            same_user: SameUser::Replace,
            setup: Duration::from_secs(60),
            interim: None,
            strays: Rates {
                host: Rate { per_second: 1, burst: 3 },
                vlan: Rate { per_second: 100, burst: 200 },
                port: Rate { per_second: 1_000, burst: 2_000 },
            },
        }
    }

    /// Sees that everything fits together.
    ///
    /// # Errors
    ///
    /// What does not.
    pub fn check(&self) -> Result<(), Invalid> {
        self.pools().map(drop)
    }

    pub(super) fn session(&self) -> session::Config {
        let concentrator =
            session::Concentrator { name: self.discovery.name.clone(), methods: self.methods.clone() };
        session::Config { role: Role::Concentrator(concentrator), timers: self.timers }
    }

    /// The pools, once everything is seen to fit together.
    pub(super) fn pools(&self) -> Result<(AddressPools, PrefixPools), Invalid> {
        self.discovery.check().map_err(|error| {
            Invalid(format!("the names of concentrator and services are too long for an offer: {error}"))
        })?;
        if self.local.is_none() && !(self.pool.is_empty() && self.named_pools.is_empty()) {
            return Err(Invalid::new(
                "there is a pool of IPv4 addresses, but no own address (--local), which subscribers need as their gateway",
            ));
        }
        if self.local.is_none() && self.identifier.is_none() {
            return Err(Invalid::new(
                "neither IPv4 (--local and --pool) nor IPv6 is configured: no session could come up",
            ));
        }
        let own = self.local.map(|local| (local.into(), "the own address (--local)"));
        let servers = self.dns.iter().flatten().map(|server| IpAddr::from(*server));
        let servers = servers.chain(self.dns6.iter().map(|server| IpAddr::from(*server)));
        let servers = servers.map(|server| (server, "a name server of subscribers (--dns)"));
        for (address, what) in own.into_iter().chain(servers) {
            if let Some(reserved) = Network::host(address).reserved() {
                return Err(Invalid(format!("{address} cannot be {what}: it is one of {reserved}")));
            }
        }
        if let (Some(link), Some((delegated, _))) = (self.prefixes, self.delegated)
            && (link.contains(delegated.address()) || delegated.contains(link.address()))
        {
            return Err(Invalid(format!(
                "the networks {link} (--prefix) and {delegated} (--delegate) overlap: each address may stand in one of them"
            )));
        }
        let link = self.prefixes.map(|network| PrefixPool::new(network, 64)).transpose()?;
        let delegated =
            self.delegated.map(|(network, length)| PrefixPool::new(network, length)).transpose()?;
        Ok((
            AddressPools::new(&self.pool, &self.named_pools)?,
            PrefixPools { link, delegated, own: HashSet::new() },
        ))
    }
}
