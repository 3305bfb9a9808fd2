//! What a session has to do and what comes of it: configuration of both ends, phases, addresses.

use std::fmt;
use std::net::Ipv4Addr;
use std::time::Duration;

use crate::Time;

/// Which end of the session this is.
#[derive(Clone, Debug)]
pub enum Role {
    /// The subscriber's: authenticates itself, takes addresses.
    Host(Host),
    /// The access concentrator's: demands authentication, gives addresses.
    Concentrator(Concentrator),
}

/// Methods of authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// PAP, RFC 1334: the password itself goes over the line.
    Pap,
    /// CHAP with MD5, RFC 1994.
    ChapMd5,
    /// MS-CHAPv2, RFC 2759.
    MsChapV2,
}

/// The subscriber's end. Its `Debug` leaves the password out.
#[derive(Clone)]
pub struct Host {
    /// Name to authenticate with; no authentication is agreed to where there is none.
    pub user: Vec<u8>,
    pub secret: Vec<u8>,
    /// What may be agreed to, in order of preference. A concentrator that demands another one gets a Nak, and what
    /// is not in here is never used: no silent downgrade to PAP.
    pub methods: Vec<Method>,
    /// Whether IPv4 is requested, and the address to ask for first (`UNSPECIFIED`: whatever is given).
    pub ipv4: Option<Ipv4Addr>,
    /// Whether to ask for name servers (RFC 1877).
    pub dns: bool,
    /// Whether IPv6 is requested, and the interface identifier to ask for first (zero: one drawn at random).
    pub ipv6: Option<u64>,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host")
            .field("user", &format::Quotable(&self.user).to_string())
            .field("methods", &self.methods)
            .field("ipv4", &self.ipv4)
            .field("dns", &self.dns)
            .field("ipv6", &self.ipv6)
            .finish_non_exhaustive()
    }
}

/// The concentrator's end.
#[derive(Clone, Debug)]
pub struct Concentrator {
    pub name: Vec<u8>,
    /// What is demanded, in order of preference; a subscriber may choose another one of them by a Nak. Empty: nobody has to
    /// say who they are.
    pub methods: Vec<Method>,
}

/// What this end wants of every session; shared by all of them.
#[derive(Clone, Debug)]
pub struct Config {
    pub role: Role,
    pub timers: Timers,
}

/// Timers and counters (RFC 1661 section 4.6), and the keepalive.
#[derive(Clone, Copy, Debug)]
pub struct Timers {
    /// Between two Configure-Requests or Terminate-Requests.
    pub(crate) restart: Duration,
    /// Configure-Requests without an answer after which it is given up.
    pub(crate) max_configure: u32,
    /// Terminate-Requests without an answer.
    pub(crate) max_terminate: u32,
    /// Naks sent without an agreement after which options are rejected, and rejections after which that protocol's
    /// negotiation has failed; Naks and Rejects received, twice as many.
    pub(crate) max_failure: u32,
    pub authentication: Duration,
    /// How long the network protocols may take until at least one is up.
    pub network: Duration,
    /// Between two Echo-Requests of a session in which nothing else was received.
    pub echo: Duration,
    /// Echo-Requests without an answer after which the peer is dead.
    pub echo_failures: u32,
}

impl Timers {
    /// RFC 1661 section 4.6 has 3 s, 10, 2 and 5.
    pub const DEFAULT: Timers = Timers {
        restart: Duration::from_secs(3),
        max_configure: 10,
        max_terminate: 2,
        max_failure: 5,
        authentication: Duration::from_secs(30),
        network: Duration::from_secs(30),
        echo: Duration::from_secs(20),
        echo_failures: 3,
    };
}

/// Where a session is, or a client. The words are those of `rxlane.pppoe/1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Of a client that looks for a concentrator.
    Discovery,
    Lcp,
    Auth,
    Network,
    /// At least one is up.
    Open,
    /// There is no session; of a client: until the next attempt, until the line is there, or for good.
    Closed,
}

/// What authentication gives a session of a concentrator.
#[derive(Clone, Debug, Default)]
pub struct Grant {
    /// Own and the subscriber's IPv4 address; `None`: IPv4 is rejected.
    pub ipv4: Option<(Ipv4Addr, Ipv4Addr)>,
    pub dns: [Option<Ipv4Addr>; 2],
    /// Own and the subscriber's interface identifier; `None`: IPv6 is rejected.
    pub ipv6: Option<(u64, u64)>,
}

/// What came of IPCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4 {
    pub local: Ipv4Addr,
    /// Address of the other end; `None`: it named none.
    pub peer: Option<Ipv4Addr>,
    /// Name servers that the peer named.
    pub dns: [Option<Ipv4Addr>; 2],
}

/// What came of IPV6CP: interface identifiers, of which both ends make link-local addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6 {
    pub local: u64,
    pub peer: u64,
}

/// A network protocol and what negotiates it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4, by IPCP.
    Ipv4,
    /// IPv6, by IPV6CP.
    Ipv6,
}

/// When a measured round trip ended, and how long it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    pub at: Time,
    /// Time between an Echo-Request and its answer.
    pub time: Duration,
}

impl Method {
    /// Data of LCP's Authentication-Protocol option (RFC 1661 section 6.2, RFC 1994 section 3, RFC 2759 section 3).
    pub const fn option(self) -> &'static [u8] {
        match self {
            Method::Pap => &[0xc0, 0x23],
            Method::ChapMd5 => &[0xc2, 0x23, 0x05],
            Method::MsChapV2 => &[0xc2, 0x23, 0x81],
        }
    }

    /// The method of such data; `None`: one that is not spoken here.
    pub(crate) fn of_option(data: &[u8]) -> Option<Method> {
        [Method::Pap, Method::ChapMd5, Method::MsChapV2].into_iter().find(|method| method.option() == data)
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Method::Pap => "PAP",
            Method::ChapMd5 => "CHAP-MD5",
            Method::MsChapV2 => "MS-CHAPv2",
        })
    }
}

impl Phase {
    /// The word of `rxlane.pppoe/1`.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Discovery => "discovery",
            Phase::Lcp => "lcp",
            Phase::Auth => "auth",
            Phase::Network => "network",
            Phase::Open => "open",
            Phase::Closed => "closed",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Family::Ipv4 => "IPv4",
            Family::Ipv6 => "IPv6",
        })
    }
}
