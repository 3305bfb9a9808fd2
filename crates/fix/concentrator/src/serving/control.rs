//! The machine and what its data path carries, shared by the thread that serves and by those that answer questions.

use super::carried::Carried;
use super::handover;
use super::status::{ConcentratorStatus, Disconnected, SCHEMA, XdpStatus, counters, subscriber};
use crate::event::Event;
use kernel::netlink;
use link::pppoe::Losses;
use link::pppoe::kernel::{Clock, random};
use pppoe::Time;
use pppoe::concentrator::{Action, Concentrator, Filter, Identity, Step};
use service::control::{ControlHandler, Refused};
use std::io::Write;
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wire::VlanPattern;

/// A concentrator and what its data path carries.
#[derive(Debug)]
pub(super) struct State {
    pub(super) machine: Concentrator,
    pub(super) carried: Carried,
    /// What came of the machine's steps, which the thread that serves does.
    pub(super) pending: Vec<Action>,
    /// The sessions are being given to another process, and must not change.
    pub(super) is_offered: bool,
    /// A connection to that process, until it is spoken to.
    pub(super) successor: Option<UnixStream>,
}

impl State {
    pub(super) fn new(machine: Concentrator, carried: Carried) -> State {
        State { machine, carried, pending: Vec::new(), is_offered: false, successor: None }
    }

    pub(super) fn step<R>(
        &mut self,
        now: Time,
        with: impl FnOnce(&mut Concentrator, &mut Step<'_>) -> R,
    ) -> R {
        let State { machine, carried, pending: actions, .. } = self;
        let traffic = &mut |id| carried.traffic(id);
        with(machine, &mut Step { now, random: &mut random, traffic, actions })
    }
}

/// Answers what comes by the control socket.
#[derive(Debug)]
pub(crate) struct Control {
    pub(super) state: Mutex<State>,
    pub(super) clock: Clock,
    /// The other end of what wakes the thread that serves.
    pub(super) wakeup: UnixStream,
    pub(super) losses: Losses,
    pub(super) records_lost: Arc<AtomicU64>,
    pub(crate) parent: String,
    pub(super) name: Mutex<String>,
    /// What other threads have to report.
    pub(super) events: Mutex<Vec<Event>>,
    pub(super) local: Option<Ipv4Addr>,
}

impl Control {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn step<R>(&self, with: impl FnOnce(&mut Concentrator, &mut Step<'_>) -> R) -> R {
        self.state().step(self.clock.now(), with)
    }

    /// The same, unless the sessions are being given to another process; whether it was done.
    pub(crate) fn step_unless_offered(&self, with: impl FnOnce(&mut Concentrator, &mut Step<'_>)) -> bool {
        let mut state = self.state();
        let may = !state.is_offered;
        if may {
            state.step(self.clock.now(), with);
        }
        may
    }

    /// Name of the interface of the subscribers.
    pub(super) fn name(&self) -> String {
        self.name.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_name(&self, name: &str) {
        name.clone_into(&mut self.name.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// What is written here wakes the thread that serves.
    pub(super) fn waker(&self) -> std::io::Result<UnixStream> {
        self.wakeup.try_clone()
    }

    /// Has the thread that serves do what is pending, and report.
    pub(crate) fn wake(&self) {
        // It wakes anyway when it is full.
        let _ = (&self.wakeup).write(&[0]);
    }

    /// Has the thread that serves report this.
    pub(crate) fn report(&self, event: Event) {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(event);
        self.wake();
    }

    pub(super) fn events(&self) -> Vec<Event> {
        std::mem::take(&mut *self.events.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn status(&self, has_sessions: bool) -> ConcentratorStatus {
        let (now, state) = (self.clock.now(), self.state());
        let State { machine, carried, .. } = &*state;
        let sessions = machine.sessions(now).filter(|_| has_sessions);
        let sessions = sessions.map(|listed| {
            let id = listed.identity.id;
            subscriber(&listed, carried.traffic(id), carried.dropped(id), self.local)
        });
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
            xdp: carried.forwarded().map(XdpStatus::from),
            sessions: sessions.collect(),
            pid: std::process::id(),
        }
    }

    /// `id ID`, `user NAME`, `address ADDRESS`, `mac MAC`, `vlan PATTERN`, `line ID`, `all`.
    fn disconnect(&self, which: &str) -> Disconnected {
        let (kind, what) = which.split_once(' ').unwrap_or((which, ""));
        let disconnect = |filter: Filter<'_>| {
            let sessions = self.step(|machine, step| machine.disconnect(step, &filter));
            self.wake();
            sessions
        };
        let such = |fits: &dyn Fn(&Identity) -> bool| {
            disconnect(Filter { identity: Some(fits), ..Filter::default() })
        };
        let sessions = match kind {
            "id" => {
                let id = what.parse().ok();
                id.map(|id| disconnect(Filter { id: Some(id), ..Filter::default() }))
            }
            "user" => Some(disconnect(Filter { user: Some(what.as_bytes()), ..Filter::default() })),
            "address" => {
                let address = what.parse().ok();
                address.map(|address| disconnect(Filter { addresses: &[address], ..Filter::default() }))
            }
            "mac" => what.parse().ok().map(|mac| such(&|identity: &Identity| identity.station == mac)),
            "vlan" => {
                let pattern = what.parse::<VlanPattern>().ok();
                pattern.map(|pattern| such(&|identity| pattern.has(identity.place.vlans)))
            }
            "line" => Some(such(&|identity| {
                let ids = identity.line.iter().flat_map(|line| [&line.circuit, &line.remote]);
                ids.into_iter().any(|id| !what.is_empty() && **id == *what.as_bytes())
            })),
            "all" => Some(disconnect(Filter::default())),
            _ => None,
        };
        Disconnected { sessions }
    }
}

impl ControlHandler for Control {
    fn answer(&self, question: &str) -> Option<String> {
        match question {
            "status" | "down" => serde_json::to_string(&self.status(false)).ok(),
            "sessions" => serde_json::to_string(&self.status(true)).ok(),
            // What follows changes sessions.
            _ if self.state().is_offered => Some(Refused::line(
                "another process takes its sessions over just now (`--takeover`): ask again",
            )),
            "drain" | "fill" => {
                self.step(|machine, step| machine.set_draining(step, question == "drain"));
                // It is written for the next process.
                self.wake();
                serde_json::to_string(&self.status(false)).ok()
            }
            _ => serde_json::to_string(&self.disconnect(question.strip_prefix("disconnect ")?)).ok(),
        }
    }

    /// The connection of a process that wants the sessions is for the thread that serves.
    fn adopt(&self, question: &str, stream: UnixStream) -> Option<UnixStream> {
        if question != handover::BEGINS {
            return Some(stream);
        }
        let mut state = self.state();
        if std::mem::replace(&mut state.is_offered, true) {
            drop(state);
            handover::refuse(&stream, "another process takes its sessions over already");
        } else {
            state.successor = Some(stream);
            self.wake();
        }
        None
    }
}
