//! An access concentrator from its start to its end: one interface for all subscribers, one thread for what they negotiate,
//! others for their packets.

mod carried;
mod desk;
mod record;

use super::control_socket::ControlSocket;
use super::kernel::{Clock, Kernel};
use super::network::link_local;
use super::vlan_pattern::VlanPattern;
use crate::address::Address;
use crate::control::{Server, Sockets};
use crate::error::Error;
use crate::frame_size::{longest_mtu, needed_mtu};
use crate::rtnetlink::{self, Route};
use crate::running::{Ended, Event as ParentEvent, check_name, find_parent};
use crate::subscribers::{self, Limits, Subscribers};
use crate::tun::TunError;
use carried::Carried;
use desk::{Desk, Inner};
use pppoe::concentrator::network::Network;
use pppoe::concentrator::secrets::Secrets;
use pppoe::concentrator::{Action, Concentrator, Config, Restored, Snapshot};
use pppoe::discovery::Packet;
use pppoe::discovery::concentrator::Arrival;
use pppoe::discovery::place::Place;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use wire::ethernet::EtherType;
use wire::vlan::{Tag, Tci};
use wire::{IpVersion, Vlans};

pub use desk::{ConcentratorStatus, Disconnected, SCHEMA, SubscriberStatus};

/// How often it is looked whose data came, so that who sends some is asked for no echo; half of the least interval of echoes.
const SWEEP: Duration = Duration::from_secs(5);
/// The number of the one port that there is.
const PORT: u32 = 0;

/// What a concentrator is started with.
#[derive(Debug)]
pub struct Start {
    /// Name of the interface with the lines.
    pub parent: String,
    /// Name of the interface of all subscribers.
    pub name: String,
    /// Which lines are served.
    pub vlans: VlanPattern,
    /// Threads that move packets.
    pub workers: usize,
    /// Whether the maximum segment size of TCP is lowered to what fits each subscriber.
    pub mss_clamp: bool,
    /// What subscribers are offered.
    pub config: Config,
    /// Who they are.
    pub secrets: Secrets,
    /// Sessions of an earlier process, and how long ago they were written down.
    pub snapshot: Option<(Snapshot, Duration)>,
}

/// What is said while it runs.
#[derive(Clone, Debug)]
pub enum Event {
    /// A line for the log.
    Remark(String),
    /// A record of a session, as JSON.
    Account(String),
}

/// Why a concentrator ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Somebody asked for it.
    Asked,
    /// Another process goes on with its sessions.
    HandedOver,
    /// The interface with the lines was removed, or went to another network namespace.
    ParentRemoved,
    /// Somebody deleted the interface of the subscribers.
    InterfaceDeleted,
}

/// Where events go.
type Tell<'a> = &'a mut dyn FnMut(&Event);
/// Where other secrets come from.
type Reread<'a> = &'a mut dyn FnMut() -> Option<Result<Secrets, String>>;

/// A concentrator that runs. See the [module](self).
#[derive(Debug)]
pub struct Serving {
    // Dropped in this order: who asks is answered as long as there is an interface.
    server: Server,
    path: Subscribers,
    desk: Arc<Desk>,
    socket: ControlSocket,
    stop: UnixStream,
    bell: UnixStream,
    clock: Clock,
    swept: Instant,
    parent: u32,
}

impl Serving {
    /// Sees, before the sessions of the process that serves the interface now are taken over, that this one could begin.
    ///
    /// # Errors
    ///
    /// Why it could not. Nothing was changed.
    pub fn check(start: &Start, sockets: &Sockets) -> Result<(), Error> {
        check_name(&start.name)?;
        let parent = find_parent(&start.parent)?;
        room(start, &parent)?;
        Concentrator::new(start.config.clone(), start.secrets.clone(), Duration::ZERO, &mut Kernel)
            .map_err(|error| Error::Concentrator(error.to_string()))?;
        let other: Option<ConcentratorStatus> = sockets.answer(&start.parent, "status").ok();
        let is_free = other.is_some_and(|other| other.interface == start.name)
            || rtnetlink::link_by_name(&start.name).is_err();
        if is_free { Ok(()) } else { Err(TunError::Taken { name: start.name.clone() }.into()) }
    }

    /// Begins in the network namespace of the calling thread. It ends when `stop` becomes readable; `ask` is the other end of it.
    /// With it comes what became of an earlier process's sessions.
    ///
    /// # Errors
    ///
    /// See [`Error`]; nothing is left behind then.
    pub fn begin(
        start: Start,
        sockets: &Sockets,
        stop: UnixStream,
        ask: UnixStream,
        tell: Tell<'_>,
    ) -> Result<(Serving, Restored), Error> {
        let parent = find_parent(&start.parent)?;
        let own = parent.mac.unwrap_or_default();
        let mtu = room(&start, &parent)?;
        shorter_behind_tags(&start, &parent).into_iter().for_each(|said| tell(&Event::Remark(said)));
        let sessions = start.config.caps.sessions as usize;
        let wish = subscribers::Wish {
            name: start.name.clone(),
            parent: start.parent.clone(),
            vlans: start.vlans.clone(),
            addresses: addresses(&start.config),
            mtu,
            workers: start.workers,
            // An address, a link-local one, a prefix and a route each, by and large.
            limits: Limits { sessions, prefixes: 3 * sessions + 1024 },
        };
        let (path, registry) = Subscribers::up(&wish)?;
        routes(&start, path.index())?;
        let covered = pools(&start.config);
        let socket = ControlSocket::open(parent.index, own, start.vlans.clone())
            .map_err(Error::kernel(format!("open a packet socket on {}", start.parent)))?;
        let (clock, local) = (Clock::new(), start.config.local);
        let machine = Concentrator::new(start.config, start.secrets, clock.now(), &mut Kernel)
            .map_err(|error| Error::Concentrator(error.to_string()))?;
        let carried = Carried::new(registry, path.index(), start.mss_clamp, covered);
        let (bell, ring) = UnixStream::pair().map_err(Error::kernel("listen to questions"))?;
        let desk = Arc::new(Desk::new(machine, carried, clock, ring, (&start.parent, &start.name), local));
        let server = Server::new(sockets, &start.parent, Arc::clone(&desk), ask)?;
        let mut serving = Serving {
            server,
            path,
            desk,
            socket,
            stop,
            bell,
            clock,
            swept: Instant::now(),
            parent: parent.index,
        };
        let restored = match start.snapshot {
            Some((snapshot, age)) => serving.restore(snapshot, age, tell)?,
            None => Restored::default(),
        };
        Ok((serving, restored))
    }

    fn restore(&mut self, snapshot: Snapshot, age: Duration, tell: Tell<'_>) -> Result<Restored, Error> {
        let mut restored = Ok(Restored::default());
        self.act(tell, |inner, turn, actions| restored = inner.restore(turn, snapshot, age, actions));
        restored.map_err(|error| Error::Concentrator(error.to_string()))
    }

    /// What is written here makes [`Serving::run`] ask for other secrets.
    ///
    /// # Errors
    ///
    /// There are no more descriptors.
    pub fn waker(&self) -> std::io::Result<UnixStream> {
        self.desk.waker()
    }

    /// Serves until the end. `reread` gives other secrets, or why there are none; `None`: nobody asked for any.
    ///
    /// # Errors
    ///
    /// The machine refuses what subscribers need.
    pub fn run(mut self, tell: Tell<'_>, reread: Reread<'_>) -> Result<Over, Error> {
        let result = self.serve(tell, reread);
        if !matches!(result, Ok(Over::HandedOver)) {
            self.act(tell, |machine, turn, actions| machine.shut_down(turn, actions));
        }
        let waiting = self.server.close();
        drop(self);
        // Who waits for the end may bring the same up again.
        drop(waiting);
        result
    }

    /// Other subscribers from now on; sentences about sessions that do not agree with them.
    fn reload(&self, secrets: Secrets) -> Vec<String> {
        let mut inner = self.inner();
        let now = self.clock.now();
        let reloaded = inner.machine.reload(secrets);
        let told = |(id, why)| {
            let session = inner.machine.session(now, id)?;
            let user = pppoe::text::Shown(session.user).to_string();
            let parent = self.desk.parent();
            Some(format!(
                "the session {id} of {user} goes on, but {why}: `rxlane pppoe disconnect --concentrator {parent} --id {id}` ends it"
            ))
        };
        reloaded.disagreeing.into_iter().filter_map(told).collect()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.desk.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&mut self, tell: Tell<'_>, reread: Reread<'_>) -> Result<Over, Error> {
        loop {
            let [received, changed, stopped, asked, failed] = self.wait()?;
            if asked {
                let mut rung = [0; 64];
                // What was asked stands at the desk.
                let _ = self.bell.read(&mut rung);
                match reread() {
                    Some(Ok(secrets)) => {
                        self.reload(secrets).into_iter().for_each(|said| tell(&Event::Remark(said)));
                    }
                    Some(Err(text)) => tell(&Event::Remark(text)),
                    None => {}
                }
            }
            if self.inner().is_handed_over {
                return Ok(Over::HandedOver);
            }
            if stopped {
                return Ok(Over::Asked);
            }
            if failed {
                let name = self.desk.name().to_owned();
                return match self.path.failure() {
                    crate::datapath::PathError::InterfaceGone => Ok(Over::InterfaceDeleted),
                    crate::datapath::PathError::Interface(source)
                    | crate::datapath::PathError::Parent(source) => {
                        Err(Error::Kernel { what: format!("move packets of {name}"), source })
                    }
                    crate::datapath::PathError::Worker => Err(Error::Worker { name }),
                };
            }
            if changed && let Some(over) = self.changed(tell)? {
                return Ok(over);
            }
            if received {
                self.receive(tell)?;
            }
            self.sweep(tell);
            self.act(tell, |machine, turn, actions| {
                if machine.deadline().is_some_and(|deadline| deadline <= turn.now) {
                    machine.tick(turn, actions);
                }
            });
        }
    }

    /// Which of lines, changes of interfaces, stop, desk and workers have something.
    fn wait(&self) -> Result<[bool; 5], Error> {
        let deadline = self.inner().machine.deadline();
        let until_swept = (self.swept + SWEEP).saturating_duration_since(Instant::now());
        let wait = deadline.map_or(until_swept, |at| at.saturating_sub(self.clock.now()).min(until_swept));
        let mut sources = [
            PollFd::from_borrowed_fd(self.socket.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.path.changes(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.stop.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.bell.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.path.failures(), PollFlags::IN),
        ];
        let timeout = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() };
        match poll(&mut sources, Some(&timeout)) {
            Ok(_) => Ok(sources.map(|source| !source.revents().is_empty())),
            Err(Errno::INTR) => Ok([false; 5]),
            Err(error) => Err(Error::kernel("wait for frames of the lines")(error.into())),
        }
    }

    /// Has the machine do something, and does what comes of it.
    fn act(
        &mut self,
        tell: Tell<'_>,
        with: impl FnOnce(&mut Concentrator, &mut pppoe::concentrator::Turn<'_>, &mut Vec<Action>),
    ) {
        let mut guard = self.desk.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let inner = &mut *guard;
        let mut actions = std::mem::take(&mut inner.pending);
        inner.turn(self.clock.now(), |machine, turn| with(machine, turn, &mut actions));
        for action in actions {
            match action {
                Action::Send { place, destination, stage, payload } => {
                    // What the line does not take is sent again, as what gets lost on it.
                    let _ = self.socket.put(destination, place.vlans, stage, &payload);
                }
                Action::Installed(installed) => {
                    inner.carried.install(&installed).into_iter().for_each(|said| tell(&Event::Remark(said)));
                }
                Action::Removed(id) => inner.carried.remove(id),
                Action::Account(record) => tell(&Event::Account(record::record(&record, SystemTime::now()))),
                Action::Ended(end) => {
                    let user = match pppoe::text::Shown(&end.user).to_string() {
                        user if user.is_empty() => user,
                        user => format!(" {user}"),
                    };
                    let text = format!(
                        "{} {} session {:#06x}{user}: {}",
                        end.station, end.place.vlans, end.number, end.cause
                    );
                    tell(&Event::Remark(text));
                }
                Action::Remark(remark) => tell(&Event::Remark(remark.to_string())),
            }
        }
        drop(guard);
        let _ = self.socket.flush();
    }

    fn receive(&mut self, tell: Tell<'_>) -> Result<(), Error> {
        loop {
            let (own, now, parent_mtu) = (self.socket.local(), self.clock.now(), self.path.parent_mtu());
            let mut guard = self.desk.inner.lock().unwrap_or_else(PoisonError::into_inner);
            let inner = &mut *guard;
            let mut actions = Vec::new();
            let taken = inner.turn(now, |machine, turn| {
                self.socket.receive(|frame| {
                    let packet = Packet {
                        source: frame.source,
                        destination: frame.destination,
                        payload: frame.payload,
                    };
                    let place = Place { port: PORT, vlans: frame.vlans };
                    let room = room_behind(frame.vlans, parent_mtu);
                    machine.receive(turn, frame.stage, &Arrival { place, own, room, packet }, &mut actions);
                })
            });
            inner.pending.extend(actions);
            drop(guard);
            let taken = taken.map_err(Error::kernel("receive frames of the lines"))?;
            self.act(tell, |_, _, _| ());
            if taken < ControlSocket::BATCH {
                return Ok(());
            }
        }
    }

    /// Tells the machine whose data came, and of data of sessions that there are not.
    fn sweep(&mut self, tell: Tell<'_>) {
        if self.swept.elapsed() < SWEEP {
            return;
        }
        self.swept = Instant::now();
        let mut guard = self.desk.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let inner = &mut *guard;
        let now = self.clock.now();
        for id in inner.carried.heard() {
            inner.machine.heard(now, id);
        }
        let mut actions = Vec::new();
        for stray in inner.carried.strays() {
            let place = Place { port: PORT, vlans: stray.vlans };
            inner.machine.stray(now, place, stray.source, stray.session, &mut actions);
        }
        inner.pending.extend(actions);
        drop(guard);
        self.act(tell, |_, _, _| ());
    }

    fn changed(&mut self, tell: Tell<'_>) -> Result<Option<Over>, Error> {
        let seen = self.path.look()?;
        for event in &seen.events {
            let name = self.desk.parent();
            let text = match event {
                ParentEvent::ParentDown => format!("{name} is down"),
                ParentEvent::ParentUp => format!("{name} is up again"),
                ParentEvent::ParentMtu { now, needed } => {
                    format!("the MTU of {name} is {now} now; the longest packets need {needed}")
                }
                ParentEvent::ParentMac => {
                    let own = rtnetlink::link_by_index(self.parent).ok().and_then(|link| link.mac);
                    if let Some(own) = own {
                        self.socket.set_local(own).map_err(Error::kernel("receive frames of the lines"))?;
                        self.path.set_local(own)?;
                        self.inner().carried.set_local(own);
                    }
                    format!(
                        "the MAC address of {name} changed: subscribers find out by their echoes, and connect again"
                    )
                }
            };
            tell(&Event::Remark(text));
        }
        Ok(seen.ended.map(|ended| match ended {
            Ended::Asked => Over::Asked,
            Ended::ParentRemoved => Over::ParentRemoved,
            Ended::InterfaceDeleted => Over::InterfaceDeleted,
        }))
    }
}

/// Addresses of the interface: the gateway of all subscribers.
fn addresses(config: &Config) -> Vec<Address> {
    let four = config.local.map(|local| Address { local: local.into(), prefix: 32, peer: None });
    let six = config.identifier.map(|id| Address { local: link_local(id).into(), prefix: 64, peer: None });
    four.into_iter().chain(six).collect()
}

/// All addresses that subscribers may get by chance.
fn pools(config: &Config) -> Vec<Network> {
    config.pool.iter().flat_map(|range| range.networks()).chain(config.prefixes).collect()
}

/// Routes to all of them.
fn routes(start: &Start, interface: u32) -> Result<(), Error> {
    for network in pools(&start.config) {
        let version = if network.address().is_ipv4() { IpVersion::V4 } else { IpVersion::V6 };
        let destination = Some((network.address(), network.length()));
        let added = rtnetlink::add_route(&Route { version, destination, interface, metric: 0 });
        added.map_err(|refusal| Error::Kernel {
            what: format!("route {network} to {}", start.name),
            source: std::io::Error::other(refusal),
        })?;
    }
    Ok(())
}

/// The longest packet behind the tags of a line.
fn room_behind(tags: Vlans, parent_mtu: u32) -> u16 {
    let most = longest_mtu(parent_mtu, &VlanPattern::from(tags).encapsulation());
    u16::try_from(most).unwrap_or(u16::MAX)
}

/// Where lines have any number of tags, some may have room for less than others: what to do about it, once for all of them.
fn shorter_behind_tags(start: &Start, parent: &rtnetlink::Link) -> Option<String> {
    let wanted = start.config.discovery.max_payload;
    let tag = |tpid| Tag { tpid, tci: Tci::new(0, false, 0) };
    let tags = Vlans::of([tag(EtherType::SERVICE_VLAN), tag(EtherType::VLAN)])?;
    let most = room_behind(tags, parent.mtu);
    if start.vlans != VlanPattern::Any || wanted <= most {
        return None;
    }
    let (name, mtu) = (&parent.name, parent.mtu);
    let needed = needed_mtu(wanted.into(), &VlanPattern::from(tags).encapsulation());
    Some(format!(
        "{name} has an MTU of {mtu}: packets of subscribers behind two tags are {most} octets at most, and shorter behind more; \
         `ip link set {name} mtu {needed}` makes room for {wanted}"
    ))
}

/// The MTU of the interface, if the parent has room for it inside of as many tags as are served. Where that is any number, it
/// has to be there without tags, and each session has what its own leave.
fn room(start: &Start, parent: &rtnetlink::Link) -> Result<u32, Error> {
    let wanted = u32::from(start.config.discovery.max_payload);
    let encapsulation = start.vlans.encapsulation();
    let most = longest_mtu(parent.mtu, &encapsulation);
    if wanted <= most {
        return Ok(wanted);
    }
    Err(Error::MtuTooLarge {
        mtu: wanted,
        parent: parent.name.clone(),
        parent_mtu: parent.mtu,
        most,
        needed: needed_mtu(wanted, &encapsulation),
    })
}
