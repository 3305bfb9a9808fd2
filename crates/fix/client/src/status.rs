//! How the session of a client stands: `rxlane.pppoe/1`.

use super::network::in_the_way;
use format::quoted;
use kernel::netlink;
use link::Counted;
use link::running::Observer;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Instant;
use wire::IpVersion;

pub const SCHEMA: &str = "rxlane.pppoe/1";

/// A session at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionStatus {
    /// [`SCHEMA`].
    pub schema: String,
    /// Name of the interface, which is there while the session is open.
    pub interface: String,
    pub parent: String,
    /// VLAN tags of the line, outermost first; `none`.
    pub vlans: String,
    /// `discovery`, `lcp`, `auth`, `network`, `open`, `closed`.
    pub phase: String,
    pub session_id: Option<u16>,
    /// IPv4 address of this end.
    pub local: Option<IpAddr>,
    /// IPv4 address of the other end.
    pub peer: Option<IpAddr>,
    /// Link-local IPv6 address of this end.
    pub local6: Option<IpAddr>,
    /// Link-local IPv6 address of the other end.
    pub peer6: Option<IpAddr>,
    /// Name servers that the concentrator named.
    pub dns: Vec<IpAddr>,
    /// Why they are not this machine's, where they were to be, and what to do about it; `None`: they are, or were not to be.
    #[serde(default)]
    pub dns_missing: Option<String>,
    /// MTU, bytes.
    pub mtu: Option<u32>,
    /// Name of the concentrator, escaped.
    pub ac_name: Option<String>,
    pub ac_mac: Option<String>,
    /// Service, escaped.
    pub service: String,
    pub user: Option<String>,
    /// Seconds since the session is open.
    pub uptime: Option<f64>,
    /// How often the session was open so far, this time included.
    pub sessions: u64,
    /// Tries to open one since the last that was open.
    pub attempts: u64,
    /// Seconds until the next try.
    pub next_try: Option<f64>,
    /// Milliseconds between the last Echo-Request that was answered and its answer.
    pub round_trip_ms: Option<f64>,
    /// Why the last session or try ended, and what to do about it.
    pub last_error: Option<String>,
    /// Seconds since then.
    #[serde(default)]
    pub last_error_ago: Option<f64>,
    /// Whether the interface below is up and has a carrier; `None`: the process is older than this field.
    #[serde(default)]
    pub parent_works: Option<bool>,
    /// Default routes that were requested, of each protocol that is up.
    #[serde(default)]
    pub default_routes: Vec<DefaultRoute>,
    pub pid: u32,
    /// Frames of discovery and negotiation that were lost since they came faster than they were read, since the process began.
    #[serde(default)]
    pub frames_lost: u64,
    /// What the data path counted since the session is open.
    pub counted: Option<Counted>,
}

/// A default route through a session, or why it is not there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DefaultRoute {
    /// `ipv4`, `ipv6`.
    pub family: String,
    pub metric: u32,
    /// Why it is not there, and what to do about it; `None`: it is.
    pub missing: Option<String>,
}

impl DefaultRoute {
    /// Looks whether it is there now: routes go when somebody sets the interface down, or deletes them, and no message reaches this
    /// process.
    fn refresh(&mut self, name: &str, interface: u32) {
        let (version, option) =
            if self.family == "ipv4" { (IpVersion::V4, "-4") } else { (IpVersion::V6, "-6") };
        let Ok(found) = netlink::default_route(version, self.metric) else { return };
        let add = format!(
            "`ip {option} route add default dev {quoted_name} metric {}`",
            self.metric,
            quoted_name = quoted(name)
        );
        let is_down = || netlink::link_by_index(interface).is_ok_and(|interface| !interface.is_up());
        self.missing = match found {
            Some(other) if other.interface == interface => None,
            Some(other) => Some(in_the_way(option, name, self.metric, Some(other))),
            None if is_down() => Some(format!(
                "{name} is down: `ip link set {quoted_name} up`, then {add}",
                quoted_name = quoted(name)
            )),
            None => Some(format!("it was removed: {add} adds it again")),
        };
    }
}

/// When something was, or will be.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moments {
    pub open_since: Option<Instant>,
    pub next_try: Option<Instant>,
    pub last_error: Option<Instant>,
}

/// What the thread that answers questions shares with the one that keeps the session.
#[derive(Debug)]
pub(crate) struct Shared(Mutex<Kept>);

/// The last status, and what has changed by itself since.
#[derive(Debug, Default)]
struct Kept {
    status: SessionStatus,
    moments: Moments,
    observer: Option<Observer>,
}

impl Shared {
    pub fn new(status: SessionStatus) -> Shared {
        Shared(Mutex::new(Kept { status, ..Kept::default() }))
    }

    /// Writes down how it stands.
    pub fn note(&self, status: SessionStatus, moments: Moments, observer: Option<Observer>) {
        if let Ok(mut kept) = self.0.lock() {
            *kept = Kept { status, moments, observer };
        }
    }

    pub fn status(&self) -> SessionStatus {
        let Ok(kept) = self.0.lock() else { return SessionStatus::default() };
        let Moments { open_since, next_try, last_error } = kept.moments;
        let elapsed = |since: Instant| since.elapsed().as_secs_f64();
        let mut status = SessionStatus {
            uptime: open_since.map(elapsed),
            next_try: next_try.map(|at| at.saturating_duration_since(Instant::now()).as_secs_f64()),
            last_error_ago: last_error.map(elapsed),
            counted: kept.observer.as_ref().map(|observer| observer.status().counted),
            ..kept.status.clone()
        };
        if let Some(observer) = &kept.observer {
            let name = &status.interface;
            status.default_routes.iter_mut().for_each(|route| route.refresh(name, observer.interface()));
        }
        status
    }
}

impl service::control::ControlHandler for Shared {
    fn answer(&self, question: &str) -> Option<String> {
        let is_known = matches!(question, "status" | "down");
        is_known.then(|| serde_json::to_string(&self.status()).unwrap_or_default())
    }
}
