//! What a concentrator is told to do.

use super::network::{Network, Reserved};
use super::pool::{AddressPool, PoolError, PrefixPool, Range};
use super::sessions::Caps;
use crate::discovery::concentrator::Config as Discovery;
use crate::discovery::limits::{Rate, Rates};
use crate::discovery::message::TooLong;
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

/// What a concentrator is told to do.
#[derive(Clone, Debug)]
pub struct Config {
    /// Name, services, largest payload, cookies, rates.
    pub discovery: Discovery,
    /// What subscribers have to authenticate by, in order of preference. Empty: nobody has to.
    pub methods: Vec<Method>,
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
    pub setup: Duration,
    /// Between interim records; `None`: there are none.
    pub interim: Option<Duration>,
    /// How many packets of unknown sessions are answered by a PADT.
    pub strays: Rates,
}

/// The configuration contradicts itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// Names that do not fit an offer.
    #[error("the names of concentrator and services are too long for an offer: {0}")]
    Names(#[from] TooLong),
    /// Addresses for subscribers, and none for this end.
    #[error(
        "there is a pool of IPv4 addresses, but no own address (--local), which subscribers need as their gateway"
    )]
    NoLocal,
    /// An own address that no host can have.
    #[error("{address} cannot be the own address (--local): it is one of {reserved}")]
    Local { address: Ipv4Addr, reserved: Reserved },
    /// A name server's address that no host can have.
    #[error("{address} cannot be a name server of subscribers (--dns): it is one of {reserved}")]
    NameServer { address: Ipv4Addr, reserved: Reserved },
    #[error("neither IPv4 (--local and --pool) nor IPv6 is configured: no session could come up")]
    Nothing,
}

impl Config {
    /// A concentrator of this name, with CHAP-MD5, MS-CHAPv2 or PAP, and without addresses.
    pub fn new(name: &[u8]) -> Config {
        Config {
            discovery: Discovery::new(name),
            methods: vec![Method::ChapMd5, Method::MsChapV2, Method::Pap],
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
    pub fn check(&self) -> Result<(), ConfigError> {
        self.pools().map(drop)
    }

    pub(super) fn session(&self) -> session::Config {
        let concentrator =
            session::Concentrator { name: self.discovery.name.clone(), methods: self.methods.clone() };
        session::Config { role: Role::Concentrator(concentrator), timers: self.timers }
    }

    /// The pools, once everything is seen to fit together.
    pub(super) fn pools(&self) -> Result<(AddressPool, Option<PrefixPool>), ConfigError> {
        self.discovery.check()?;
        if self.local.is_none() && !self.pool.is_empty() {
            return Err(ConfigError::NoLocal);
        }
        if self.local.is_none() && self.identifier.is_none() {
            return Err(ConfigError::Nothing);
        }
        let reserved = |address: Ipv4Addr| Network::of(address.into(), 32)?.reserved();
        if let Some((address, reserved)) = self.local.and_then(|local| Some((local, reserved(local)?))) {
            return Err(ConfigError::Local { address, reserved });
        }
        let mut servers = self.dns.iter().flatten();
        if let Some((address, reserved)) = servers.find_map(|server| Some((*server, reserved(*server)?))) {
            return Err(ConfigError::NameServer { address, reserved });
        }
        Ok((AddressPool::new(&self.pool)?, self.prefixes.map(PrefixPool::new).transpose()?))
    }
}
