//! Where a concentrator is asked, by other threads than the one that serves.

use super::carried::Carried;
use super::handover;
use super::record::shown;
use format::Quotable;
use kernel::netlink;
use link::pppoe::Losses;
use link::pppoe::kernel::{Clock, random};
use pppoe::Time;
use pppoe::concentrator::accounting::Traffic;
use pppoe::concentrator::{Action, Concentrator, Id, Listed, Target, Turn};
use pppoe::discovery::offer::Pin;
use pppoe::session::Phase;
use serde::{Deserialize, Serialize};
use service::control::{ControlHandler, Refused};
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

pub const SCHEMA: &str = "rxlane.pppoe/1";

/// A concentrator and what its data path carries.
#[derive(Debug)]
pub struct Inner {
    pub machine: Concentrator,
    pub carried: Carried,
    /// What somebody asked for, which the thread that serves does.
    pub pending: Vec<Action>,
    /// The sessions are being given to another process, and must not change.
    pub is_offered: bool,
    /// A connection to that process, until it is spoken to.
    pub successor: Option<UnixStream>,
}

impl Inner {
    /// Has the machine do something.
    pub fn turn<R>(&mut self, now: Time, with: impl FnOnce(&mut Concentrator, &mut Turn<'_>) -> R) -> R {
        let Inner { machine, carried, .. } = self;
        let mut traffic = |id| carried.traffic(id);
        with(machine, &mut Turn { now, random: &mut random, traffic: &mut traffic })
    }
}

/// See the [module](self).
#[derive(Debug)]
pub struct Desk {
    pub inner: Mutex<Inner>,
    clock: Clock,
    ring: UnixStream,
    losses: Losses,
    records_lost: Arc<AtomicU64>,
    parent: String,
    name: Mutex<String>,
    local: Option<Ipv4Addr>,
}

/// A concentrator at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConcentratorStatus {
    /// [`SCHEMA`].
    pub schema: String,
    /// `open`.
    pub phase: String,
    /// Name of the interface with the lines.
    pub parent: String,
    /// Name of the interface of all subscribers.
    pub interface: String,
    /// Seconds since it began.
    pub uptime: f64,
    /// Whether it takes no more sessions.
    pub draining: bool,
    pub half_open: u32,
    pub count: usize,
    /// Frames of discovery and negotiation that were lost since they came faster than they were read.
    #[serde(default)]
    pub frames_lost: u64,
    /// Records of accounting that no file took, on a full disk for example.
    #[serde(default)]
    pub records_lost: u64,
    /// Why the log takes nothing now.
    #[serde(default)]
    pub log_failure: Option<String>,
    /// Whether the interface with the lines is up and has a carrier; `None`: nobody knows.
    #[serde(default)]
    pub parent_works: Option<bool>,
    /// What was counted: discovery, sessions, refusals, by name.
    pub counters: std::collections::BTreeMap<String, u64>,
    pub sessions: Vec<SubscriberStatus>,
    pub pid: u32,
}

/// A session of a subscriber at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SubscriberStatus {
    pub id: String,
    /// `lcp`, `auth`, `network`, `open`, `closed`.
    pub phase: String,
    pub session_id: u16,
    /// Who, escaped; empty: nobody has said so yet.
    pub user: String,
    pub mac: String,
    /// VLAN tags, outermost first; `none`.
    pub tags: String,
    /// What the access node says of the line (TR-101), escaped: circuit and remote id.
    pub circuit: Option<String>,
    /// See `circuit`.
    pub remote: Option<String>,
    /// The own IPv4 address; `None`: the session has none.
    pub local: Option<IpAddr>,
    /// IPv4 address of the host.
    pub peer: Option<IpAddr>,
    /// IPv6 prefix of the link.
    pub prefix: Option<String>,
    pub routes: Vec<String>,
    /// Longest IP packet to the host, bytes.
    pub mtu: u16,
    /// Seconds since it is open.
    pub uptime: Option<f64>,
    /// Milliseconds between the last Echo-Request that was answered and its answer.
    pub round_trip_ms: Option<f64>,
    /// IP packets and bytes from and to the host, over restarts of the concentrator, too.
    pub received_packets: u64,
    /// See `received_packets`.
    pub received_octets: u64,
    /// See `received_packets`.
    pub sent_packets: u64,
    /// See `received_packets`.
    pub sent_octets: u64,
    /// Sessions of a concentrator have no error as long as they are there.
    pub last_error: Option<String>,
}

/// What came of a request to disconnect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disconnected {
    /// Sessions that were told to end; `None`: the request makes no sense.
    pub sessions: Option<usize>,
}

impl Desk {
    pub fn new(
        machine: Concentrator,
        carried: Carried,
        clock: Clock,
        (ring, losses, records_lost): (UnixStream, Losses, Arc<AtomicU64>),
        (parent, name): (&str, &str),
        local: Option<Ipv4Addr>,
    ) -> Desk {
        let pending = Vec::new();
        let inner = Inner { machine, carried, pending, is_offered: false, successor: None };
        Desk {
            inner: Mutex::new(inner),
            clock,
            ring,
            losses,
            records_lost,
            parent: parent.to_owned(),
            name: Mutex::new(name.to_owned()),
            local,
        }
    }

    pub fn parent(&self) -> &str {
        &self.parent
    }

    /// Name of the interface of the subscribers.
    pub fn name(&self) -> String {
        self.name.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The interface has another name than was wanted.
    pub fn set_name(&self, name: &str) {
        name.clone_into(&mut self.name.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn with<R>(&self, with: impl FnOnce(&mut Inner, Time) -> R) -> R {
        with(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner), self.clock.now())
    }

    /// What is written here wakes the thread that serves.
    pub fn waker(&self) -> std::io::Result<UnixStream> {
        self.ring.try_clone()
    }

    fn wake(&self) {
        // It wakes anyway when it is full.
        let _ = (&self.ring).write(&[0]);
    }

    fn status(&self, has_sessions: bool) -> ConcentratorStatus {
        self.with(|inner, now| {
            let machine = &inner.machine;
            let sessions = |listed: Listed<'_>| {
                let traffic = inner.carried.traffic(listed.id);
                subscriber(&listed, traffic, self.local)
            };
            ConcentratorStatus {
                schema: SCHEMA.to_owned(),
                phase: "open".to_owned(),
                parent: self.parent.clone(),
                interface: self.name(),
                uptime: now.as_secs_f64(),
                draining: machine.is_draining(),
                half_open: machine.half_open(),
                count: machine.len(),
                frames_lost: self.losses.count(),
                records_lost: self.records_lost.load(Ordering::Relaxed),
                log_failure: service::log::failure(),
                parent_works: netlink::link_by_name(&self.parent).ok().map(|parent| parent.works()),
                counters: counters(machine),
                sessions: if has_sessions {
                    machine.sessions(now).map(sessions).collect()
                } else {
                    Vec::new()
                },
                pid: std::process::id(),
            }
        })
    }

    /// `id ID`, `user NAME`, `address ADDRESS`, `mac MAC`, `all`.
    fn disconnect(&self, target: &str) -> Disconnected {
        let (kind, what) = target.split_once(' ').unwrap_or((target, ""));
        let target = match kind {
            "id" => what.parse::<Id>().ok().map(Target::Id),
            "user" => Some(Target::User(what.as_bytes())),
            "address" => what.parse().ok().map(Target::Address),
            "mac" => match what.parse() {
                Ok(Pin::Mac(station)) => Some(Target::Station(station)),
                _ => None,
            },
            "all" => Some(Target::All),
            _ => None,
        };
        let Some(target) = target else { return Disconnected { sessions: None } };
        let sessions = self.with(|inner, now| {
            let mut actions = Vec::new();
            let sessions = inner.turn(now, |machine, turn| machine.disconnect(turn, target, &mut actions));
            inner.pending.extend(actions);
            sessions
        });
        self.wake();
        Disconnected { sessions: Some(sessions) }
    }

    /// What changes sessions: `drain`, `fill`, `disconnect …`. Not while another process takes them over.
    fn change(&self, question: &str) -> Option<String> {
        if self.with(|inner, _| inner.is_offered) {
            return Some(Refused::line(
                "another process takes its sessions over just now (`--takeover`): ask again",
            ));
        }
        match question {
            "drain" | "fill" => {
                self.with(|inner, _| inner.machine.set_draining(question == "drain"));
                serde_json::to_string(&self.status(false)).ok()
            }
            _ => serde_json::to_string(&self.disconnect(question.strip_prefix("disconnect ")?)).ok(),
        }
    }
}

impl ControlHandler for Desk {
    fn answer(&self, question: &str) -> Option<String> {
        match question {
            "status" | "down" => serde_json::to_string(&self.status(false)).ok(),
            "sessions" => serde_json::to_string(&self.status(true)).ok(),
            _ => self.change(question),
        }
    }

    /// The connection of a process that wants the sessions is for the thread that serves.
    fn adopt(&self, question: &str, stream: UnixStream) -> Option<UnixStream> {
        if question != handover::BEGINS {
            return Some(stream);
        }
        let second = self.with(|inner, _| {
            if std::mem::replace(&mut inner.is_offered, true) {
                return Some(stream);
            }
            inner.successor = Some(stream);
            None
        });
        match second {
            Some(stream) => handover::refuse(&stream, "another process takes its sessions over already"),
            None => self.wake(),
        }
        None
    }
}

fn subscriber(listed: &Listed<'_>, traffic: Traffic, local: Option<Ipv4Addr>) -> SubscriberStatus {
    let traffic = listed.before + traffic;
    SubscriberStatus {
        id: listed.id.to_string(),
        phase: match listed.phase {
            Phase::Lcp => "lcp",
            Phase::Auth => "auth",
            Phase::Network => "network",
            Phase::Open => "open",
            Phase::Closed => "closed",
        }
        .to_owned(),
        session_id: listed.number,
        user: Quotable(listed.user).to_string(),
        mac: listed.station.to_string(),
        tags: listed.place.vlans.to_string(),
        circuit: listed.line.and_then(|line| shown(&line.circuit)),
        remote: listed.line.and_then(|line| shown(&line.remote)),
        local: listed.address.and(local).map(IpAddr::from),
        peer: listed.address.map(IpAddr::from),
        prefix: listed.prefix.map(|prefix| prefix.to_string()),
        routes: listed.routes.iter().map(ToString::to_string).collect(),
        mtu: listed.mtu,
        uptime: listed.uptime.map(|uptime| uptime.as_secs_f64()),
        round_trip_ms: listed.round_trip.map(|trip| trip.time.as_secs_f64() * 1000.0),
        received_packets: traffic.received_packets,
        received_octets: traffic.received_octets,
        sent_packets: traffic.sent_packets,
        sent_octets: traffic.sent_octets,
        last_error: None,
    }
}

fn counters(machine: &Concentrator) -> std::collections::BTreeMap<String, u64> {
    let (counters, discovery) = (machine.counters(), machine.discovery_counters());
    let ignored = discovery.ignored().map(|(reason, count)| {
        let reason = reason.name().replace('-', "_");
        (format!("ignored_{reason}"), count)
    });
    let all = [
        ("offers", discovery.offers),
        ("requests", discovery.requests),
        ("terminations", discovery.terminations),
        ("malformed", counters.malformed),
        ("other_station", counters.other_station),
        ("unknown_session", counters.unknown_session),
        ("padt_ignored", counters.padt_ignored),
        ("padr_used_up", counters.padr_used_up),
        ("padr_repeated", counters.padr_repeated),
        ("padr_refused", counters.padr_refused),
        ("confirmed", counters.confirmed),
        ("refused", counters.refused),
        ("held_off", counters.held_off),
        ("opened", counters.opened),
        ("ended", counters.ended),
    ];
    all.into_iter().map(|(name, count)| (name.to_owned(), count)).chain(ignored).collect()
}
