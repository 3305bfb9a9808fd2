//! What a concentrator has to do.

use super::network::Network;
use super::pool::{AddressPool, PrefixPool, Range};
use super::sessions::Caps;
use crate::Invalid;
use crate::discovery::concentrator::Config as Discovery;
use crate::discovery::limits::{Rate, Rates};
use crate::session::{self, Method, Role, Timers};
use std::net::Ipv4Addr;
use std::time::Duration;

/// What becomes of another session of a user who has as many as they may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SameUser {
    /// The oldest one ends: the host has lost it, and this end has not noticed yet.
    Replace,
    Refuse,
}

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
    pub dns: [Option<Ipv4Addr>; 2],
    /// The own interface identifier, on the link to every subscriber. `None`: no IPv6.
    pub identifier: Option<u64>,
    /// Where the prefixes for links come from. `None`: only from the secrets.
    pub prefixes: Option<Network>,
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
            dns: [None; 2],
            identifier: None,
            prefixes: None,
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
    pub(super) fn pools(&self) -> Result<(AddressPool, Option<PrefixPool>), Invalid> {
        self.discovery.check().map_err(|error| {
            Invalid(format!("the names of concentrator and services are too long for an offer: {error}"))
        })?;
        if self.local.is_none() && !self.pool.is_empty() {
            return Err(Invalid::new(
                "there is a pool of IPv4 addresses, but no own address (--local), which subscribers need as their gateway",
            ));
        }
        if self.local.is_none() && self.identifier.is_none() {
            return Err(Invalid::new(
                "neither IPv4 (--local and --pool) nor IPv6 is configured: no session could come up",
            ));
        }
        let own = self.local.map(|local| (local, "the own address (--local)"));
        let servers =
            self.dns.iter().flatten().map(|server| (*server, "a name server of subscribers (--dns)"));
        for (address, what) in own.into_iter().chain(servers) {
            if let Some(reserved) = Network::host(address.into()).reserved() {
                return Err(Invalid(format!("{address} cannot be {what}: it is one of {reserved}")));
            }
        }
        Ok((AddressPool::new(&self.pool)?, self.prefixes.map(PrefixPool::new).transpose()?))
    }
}
