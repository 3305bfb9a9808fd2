//! A concentrator from nothing to the moment at which it serves.
//!
//! # Contract
//!
//! * What can fail is tried before anything is taken from a process that serves the interface now: the interface of the
//!   subscribers is made next to that of the other process, under a name of its own where both are to have the same, with all
//!   its addresses, routes, sockets, threads and descriptors, and all sessions are in it. A route counts as soon as the other
//!   process's interface is removed.
//! * What is left for then is setting filters, naming the interface, and moving a file. Only where no filter can be set are the
//!   sessions at an end, and subscribers informed; the rest is said, and the sessions go on.
//! * One process at a time begins to serve an interface.

use super::carried::{Carried, Routes};
use super::control::{Control, State};
use super::handover::Predecessor;
use super::kept::Kept;
use super::leftover::{Account, Leftover, clear_leftover};
use super::negotiator::{Negotiator, Trimming};
use super::{ConcentratorStatus, Report, Serving, Start, forward};
use crate::error::Error;
use crate::event::{Event, Takeover};
use crate::radius::{Radius, Servers};
use crate::subscribers::{self, Forwarding, Limits, Registry, Subscribers, Unforwarded};
use kernel::netlink::{self, Address, Link, link_local};
use kernel::tun::TunError;
use link::batch;
use link::frame_size::{longest_mtu, needed_mtu};
use link::pppoe::ControlSocket;
use link::pppoe::kernel::{Clock, random};
use link::running::{check_name, find_parent};
use pppoe::concentrator::network::Network;
use pppoe::concentrator::{Action, Concentrator, Config, Restored, Snapshot};
use service::Instances;
use service::control::{ControlError, Lock, Server};
use service::memory;
use service::process::wait_until_removed;
use service::record;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use wire::ethernet::{EtherType, MacAddress};
use wire::vlan::{Tag, Tci};
use wire::{VlanPattern, Vlans};

/// After how many sessions the former process hears that more follow.
const BUSY: usize = 1024;
/// Files that a concentrator has open, at most: those of each worker, and others.
const DESCRIPTORS: [u64; 2] = [6, 48];
const THREADS: usize = 4;

/// A concentrator that has everything, and serves nobody yet.
#[derive(Debug)]
pub struct Prepared {
    serving: Serving,
    /// The name that the interface is to have, where it has another one still.
    name: Option<String>,
    /// Whether another process serves the interface.
    has_former: bool,
    /// Sessions of one that was killed, and what else it has left.
    kept: Snapshot,
    leftover: Option<Leftover>,
    own: MacAddress,
    workers: usize,
    _lock: Lock,
}

impl Prepared {
    /// Makes everything in the network namespace of the calling thread. It ends when `stop` becomes readable; `ask` is the
    /// other end of it.
    pub fn new(
        start: Start,
        sockets: &Instances,
        stop: UnixStream,
        ask: UnixStream,
        report: Report<'_>,
    ) -> Result<Prepared, Error> {
        let workers = start.workers;
        Prepared::try_new(start, sockets, stop, ask, report)
            .map_err(|error| error.or_descriptors(descriptors(workers)))
    }

    fn try_new(
        start: Start,
        sockets: &Instances,
        stop: UnixStream,
        ask: UnixStream,
        report: Report<'_>,
    ) -> Result<Prepared, Error> {
        let (parent, mtu) = start.line()?;
        let lock = lock(sockets, &parent)?;
        shorter_behind_tags(&start, &parent).iter().for_each(&mut *report);
        let leftover = Leftover::by(&start.parent);
        let former = if start.is_takeover { former(sockets, &start, leftover.is_some())? } else { None };
        let kept = Kept::at(record::path(sockets.state(), &sockets.named(&start.parent), ".sessions"));
        let sessions = if former.is_none() { sessions_of(&kept, report) } else { Snapshot::default() };
        let former_link = former.as_ref().and_then(|former| netlink::link_by_name(&former.interface).ok());
        let former_link = former_link.or_else(|| leftover.as_ref()?.interface().cloned());
        let has_name = former_link.as_ref().is_some_and(|link| link.name == start.name);
        let config = data_path(&start, mtu, has_name);
        memory::expect(
            Registry::least(config.limits, !start.uplinks.is_empty())
                + start.workers * batch::WORKER
                + THREADS * memory::THREAD,
        )?;
        let (path, registry) =
            if former.is_some() { Subscribers::standby(&config)? } else { Subscribers::up(&config)? };
        let mut routes = Routes::new(path.index(), former_link.map(|link| link.index))
            .map_err(Error::kernel("add routes"))?;
        let refused =
            |(network, refusal)| link::Error::refused(format!("route {network} to {}", start.name))(refusal);
        let delegated = start.config.delegated.map(|(network, _)| network);
        let mut covered: Vec<Network> = start.config.prefixes.into_iter().chain(delegated).collect();
        covered
            .iter()
            .try_for_each(|network| routes.add(network).map_err(|refusal| refused((*network, refusal))))?;
        for range in start.config.pool.iter().chain(start.config.named_pools.values().flatten()) {
            covered.extend(routes.add_range(range, start.config.local).map_err(refused)?);
        }
        let own = parent.mac.unwrap_or_default();
        let open = if former.is_some() { ControlSocket::deaf } else { ControlSocket::open };
        let socket = open(parent.index, own, start.vlans)
            .map_err(Error::kernel(format!("open a packet socket on {}", start.parent)))?;
        let losses = socket.losses().map_err(Error::kernel("watch the packet socket"))?;
        let (clock, local, workers) = (Clock::default(), start.config.local, start.workers);
        let machine = Concentrator::new(start.config, start.secrets, clock.now(), &mut random)
            .map_err(|error| Error::Options(error.to_string()))?;
        let carried = Carried::new(registry, routes, start.mss_clamp, covered);
        let (wakeup, other) = UnixStream::pair().map_err(Error::kernel("listen to questions"))?;
        let control = Arc::new(Control {
            state: Mutex::new(State::new(machine, carried)),
            clock,
            wakeup: other,
            losses,
            records_lost: start.records_lost,
            parent: start.parent.clone(),
            name: Mutex::new(start.name.clone()),
            events: Mutex::default(),
            local,
        });
        let begin =
            |servers| Radius::start(servers, Arc::clone(&control), former.is_none() && sessions.is_empty());
        let radius = start.radius.map(begin).transpose().map_err(Error::kernel("begin with RADIUS"))?;
        let again = ask.try_clone().map_err(Error::kernel("listen to questions"))?;
        let server = match &former {
            Some(_) => Server::standby(sockets, &start.parent, Arc::clone(&control), again)?,
            None => Server::new(sockets, &start.parent, Arc::clone(&control), again)?,
        };
        let serving = Serving {
            server,
            path,
            negotiator: Negotiator { control, socket, radius, kept, trimming: Trimming::new() },
            stop,
            ask,
            wakeup,
            swept: Instant::now(),
            parent: parent.index,
            sockets: sockets.clone(),
        };
        Ok(Prepared {
            serving,
            name: has_name.then_some(start.name),
            has_former: former.is_some(),
            kept: sessions,
            leftover,
            own,
            workers,
            _lock: lock,
        })
    }

    /// What is written here makes [`Serving::run`] ask for other secrets.
    pub fn waker(&self) -> std::io::Result<UnixStream> {
        self.serving.negotiator.control.waker()
    }

    /// Whether another process serves the interface, which ends when this one begins.
    pub const fn has_former(&self) -> bool {
        self.has_former
    }

    /// Serves, with the sessions of the process that did so until now, and what became of them.
    ///
    /// # Errors
    ///
    /// See [`Error`]. The former process goes on with the sessions; where it cannot any more, subscribers were notified.
    pub fn begin(mut self, report: Report<'_>) -> Result<(Serving, Restored), Error> {
        let control = Arc::clone(&self.serving.negotiator.control);
        if !self.has_former {
            let sessions = std::mem::take(&mut self.kept);
            if let Some(leftover) = self.leftover.take() {
                return self.replace(leftover, sessions, report);
            }
            let started = self.serving.path.forward()?;
            started.map(Forwarding::Started).map(Event::Forwarding).iter().for_each(&mut *report);
            let restored = go_on(&mut self.serving, sessions, report)?;
            return Ok((self.serving, restored));
        }
        let sockets = self.serving.sockets.clone();
        let began = Instant::now();
        let former = match Predecessor::ask(&sockets, &control.parent) {
            Ok(former) => Some(former),
            // It has ended in the meantime.
            Err(ControlError::None { .. } | ControlError::Killed { .. }) => None,
            Err(error) => return Err(Error::from(error).or_descriptors(descriptors(self.workers))),
        };
        // What came before that the other process has answered.
        let listens = self.serving.negotiator.socket.set_local(self.own);
        listens.map_err(Error::kernel("receive frames of the lines"))?;
        let Some((mut predecessor, snapshot)) = former else {
            let sessions = sessions_of(&self.serving.negotiator.kept, report);
            // Which has kept its name.
            Leftover::by(&control.parent).iter().for_each(Leftover::remove_interface);
            let mut serving = self.take_place(report)?;
            let restored = go_on(&mut serving, sessions, report)?;
            clear_leftover(&control.parent);
            return Ok((serving, restored));
        };
        let (restored, mut pending) = self.restore(&predecessor, snapshot, began, report)?;
        // What follows takes one descriptor more.
        let probed = netlink::link_by_index(self.serving.path.index());
        let failed = Error::kernel("look at the interface of the subscribers");
        probed.map_err(|source| failed(source).or_descriptors(descriptors(self.workers)))?;
        let counted = predecessor.serves()?;
        // From here on nobody else has them.
        let mut state = control.state();
        state.machine.settle(&counted.unwrap_or_default(), &mut pending);
        state.pending.extend(pending);
        drop(state);
        let placed = self.take_place(report);
        // Also where they are at an end: subscribers were notified.
        predecessor.done();
        let mut serving = placed?;
        serving.negotiator.act(report, |_, _| ());
        Ok((serving, restored))
    }

    /// Puts all sessions in place; what else is to be done about them, once they are nobody else's.
    fn restore(
        &mut self,
        predecessor: &Predecessor<'_>,
        snapshot: Snapshot,
        began: Instant,
        report: Report<'_>,
    ) -> Result<(Restored, Vec<Action>), Error> {
        predecessor.is_waited_for();
        let control = &self.serving.negotiator.control;
        let restored = restore(&self.serving, snapshot, began.elapsed())?;
        let (mut state, mut pending) = (control.state(), Vec::new());
        for (number, action) in std::mem::take(&mut state.pending).into_iter().enumerate() {
            match action {
                Action::Installed(installed) => {
                    for lacking in state.carried.install(&installed) {
                        report(&Event::Uncarried(lacking));
                    }
                }
                other => pending.push(other),
            }
            if number % BUSY == 0 {
                predecessor.is_waited_for();
            }
        }
        Ok((restored, pending))
    }

    /// Goes on with the sessions of a process that was killed, and takes the place of what has forwarded their packets until now.
    fn replace(
        mut self,
        leftover: Leftover,
        sessions: Snapshot,
        report: Report<'_>,
    ) -> Result<(Serving, Restored), Error> {
        leftover.wait_for_this();
        let accounts: Vec<Account> = sessions.sessions().iter().filter_map(Account::of).collect();
        let restored = go_on(&mut self.serving, sessions, report)?;
        leftover.remove_interface();
        let name = self.name.take();
        name.into_iter().flat_map(|name| self.rename(&name)).for_each(|event| report(&event));
        forward(&self.serving.path, &mut *report);
        // Nothing is counted there any more.
        let counted = leftover.counted(&accounts);
        self.serving.negotiator.control.state().machine.settle(&counted, &mut []);
        self.serving.negotiator.keep(report);
        leftover.clear();
        Ok((self.serving, restored))
    }

    /// Takes frames, names and places of the former process, which has ended or is about to.
    fn take_place(mut self, report: Report<'_>) -> Result<Serving, Error> {
        let opened = self.serving.path.set_local(self.own);
        let name = self.name.take();
        let mut events = Vec::new();
        if opened.is_ok() {
            let unclaimed = self.serving.path.claim().err().map(Takeover::Unclaimed);
            events.extend(unclaimed.map(Event::Takeover));
            events.extend(name.into_iter().flat_map(|name| self.rename(&name)));
            let placed = self.serving.server.take_place();
            events.extend(placed.err().map(Takeover::Unreachable).map(Event::Takeover));
            // The former process has taken its programs off.
            forward(&self.serving.path, &mut |event| report(event));
        }
        events.iter().for_each(&mut *report);
        let serving = self.serving;
        match opened {
            Ok(()) => Ok(serving),
            Err(error) => {
                serving.end(report);
                Err(error.into())
            }
        }
    }

    /// Gives the interface the name that the other process's had; what is not as requested.
    fn rename(&mut self, name: &str) -> Vec<Event> {
        // That of a process which was killed may still be on its way out.
        wait_until_removed(name);
        let own = netlink::link_by_index(self.serving.path.index()).map(|link| link.name);
        let unnamed = match self.serving.path.rename(name) {
            Ok(false) => return Vec::new(),
            Ok(true) => None,
            Err(why) => {
                let own = own.unwrap_or_default();
                self.serving.negotiator.control.set_name(&own);
                Some(Event::Takeover(Takeover::Unnamed { own, requested: name.to_owned(), why }))
            }
        };
        let lacking = self.serving.negotiator.control.state().carried.route_again();
        unnamed.into_iter().chain(lacking.into_iter().map(Event::Uncarried)).collect()
    }
}

impl Start {
    /// Whether it could serve, as far as that can be seen without changing anything.
    ///
    /// # Errors
    ///
    /// A name is none, there is no such interface or one that is to be made, packets do not fit, or an uplink is the parent; the
    /// file of records or the address to which RADIUS requests come is not to be had.
    pub fn check(&self) -> Result<(), Error> {
        self.line()?;
        if !self.is_takeover
            && Leftover::by(&self.parent).is_none()
            && netlink::link_by_name(&self.name).is_ok()
        {
            return Err(Error::from(link::Error::from(TunError::Taken { name: self.name.clone() })));
        }
        for uplink in &self.uplinks {
            find_parent(uplink)?;
            if *uplink == self.parent {
                return Err(Unforwarded::Lines(uplink.clone()).into());
            }
        }
        self.radius.as_ref().map_or(Ok(()), Servers::check)
    }

    /// The interface with the lines, and the MTU of that of the subscribers.
    fn line(&self) -> Result<(Link, u32), Error> {
        check_name(&self.name)?;
        let parent = find_parent(&self.parent)?;
        let mtu = interface_mtu(self, &parent)?;
        Ok((parent, mtu))
    }
}

/// The sessions of a process that was killed; none where they cannot be read, which is reported.
fn sessions_of(kept: &Kept, report: Report<'_>) -> Snapshot {
    kept.read().unwrap_or_else(|error| {
        report(&Event::Forgotten(error));
        Snapshot::default()
    })
}

/// Goes on with the sessions of a process that was killed.
fn go_on(serving: &mut Serving, sessions: Snapshot, report: Report<'_>) -> Result<Restored, Error> {
    let restored = restore(serving, sessions, Duration::ZERO)?;
    serving.negotiator.act(report, |_, _| ());
    Ok(restored)
}

/// Has the machine go on with the sessions of another process. `elapsed`: time since then.
fn restore(serving: &Serving, mut snapshot: Snapshot, elapsed: Duration) -> Result<Restored, Error> {
    snapshot.end_unserved(|vlans| serving.path.config().vlans.has(vlans));
    let restored = serving.negotiator.control.step(|machine, step| machine.restore(step, snapshot, elapsed));
    restored.map_err(|error| Error::Options(error.to_string()))
}

const fn descriptors(workers: usize) -> u64 {
    let [each, others] = DESCRIPTORS;
    each * workers as u64 + others
}

/// Keeps others from beginning to serve the same interface, whatever it is called.
fn lock(sockets: &Instances, parent: &Link) -> Result<Lock, Error> {
    let lock = Lock::take(sockets, &parent.index.to_string())?;
    lock.ok_or_else(|| Error::Begun { parent: parent.name.clone() })
}

/// Whoever serves the interface now. A killed process with a leftover has kept its interface.
fn former(
    sockets: &Instances,
    start: &Start,
    has_leftover: bool,
) -> Result<Option<ConcentratorStatus>, Error> {
    match sockets.ask(&start.parent, "status") {
        Ok(former) => Ok(Some(former)),
        Err(ControlError::None { .. }) => Ok(None),
        Err(ControlError::Killed { .. }) => {
            if !has_leftover {
                wait_until_removed(&start.name);
            }
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// What the interface of a process is called next to that of another one.
pub(super) fn standby_name(pid: u32) -> String {
    format!("rxlane-{pid}")
}

fn data_path(start: &Start, mtu: u32, is_standby: bool) -> subscribers::Config {
    let sessions = start.config.caps.sessions as usize;
    subscribers::Config {
        name: if is_standby { standby_name(std::process::id()) } else { start.name.clone() },
        parent: start.parent.clone(),
        vlans: start.vlans,
        addresses: addresses(&start.config),
        mtu,
        workers: start.workers,
        // An address, a link-local one and two prefixes each, by and large.
        limits: Limits { sessions, prefixes: 4 * sessions + 1024 },
        uplinks: start.uplinks.clone(),
    }
}

/// Addresses of the interface: the gateway of all subscribers.
fn addresses(config: &Config) -> Vec<Address> {
    let four = config.local.map(|local| Address { local: local.into(), prefix: 32, peer: None });
    let six = config.identifier.map(|id| Address { local: link_local(id).into(), prefix: 64, peer: None });
    four.into_iter().chain(six).collect()
}

/// The longest packet behind the tags of a line.
pub(super) fn longest_behind(tags: Vlans, parent_mtu: u32) -> u16 {
    let most = longest_mtu(parent_mtu, &VlanPattern::from(tags).encapsulation());
    u16::try_from(most).unwrap_or(u16::MAX)
}

/// Where lines have any number of tags, some may have room for less than others: what to do about it, once for all of them.
fn shorter_behind_tags(start: &Start, parent: &Link) -> Option<Event> {
    let requested = start.config.discovery.max_payload;
    let tag = |tpid| Tag { tpid, tci: Tci::new(0, false, 0) };
    let tags = Vlans::of([tag(EtherType::SERVICE_VLAN), tag(EtherType::VLAN)])?;
    let most = longest_behind(tags, parent.mtu);
    if start.vlans != VlanPattern::Any || requested <= most {
        return None;
    }
    let needed = needed_mtu(requested.into(), &VlanPattern::from(tags).encapsulation());
    let (parent, parent_mtu) = (parent.name.clone(), parent.mtu);
    Some(Event::ShorterBehindTags { parent, parent_mtu, most, requested, needed })
}

/// The MTU of the interface, if the parent has room for it inside of as many tags as are served. Where that is any number, it
/// has to be there without tags, and each session has what its own leave.
fn interface_mtu(start: &Start, parent: &Link) -> Result<u32, link::Error> {
    let requested = u32::from(start.config.discovery.max_payload);
    let encapsulation = start.vlans.encapsulation();
    if requested <= longest_mtu(parent.mtu, &encapsulation) {
        return Ok(requested);
    }
    Err(link::Error::mtu_too_large(requested, parent, &encapsulation))
}
