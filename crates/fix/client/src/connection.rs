//! A PPPoE client from its start to its end: whatever becomes of a session, the next one follows, until somebody asks for the
//! end.
//!
//! The session is kept by one thread, which has sockets and timers; packets are moved by others ([`Network`]), so that a
//! terminal, a script or a loaded line does not keep an echo request waiting.

mod parent;
mod preparation;
mod session_status;

use super::name_servers::NameServers;
use super::network::{Network, Peer, Request};
use super::resolver::Place;
use super::script::Scripts;
use super::status::{SessionStatus, Shared};
use crate::error::Error;
use format::Quotable;
use kernel::netlink::{Events, Link};
use link::pppoe::kernel::{Clock, random};
use link::pppoe::{ControlSocket, Losses};
use link::running::{Ended, check_name, descriptors, find_parent};
use pppoe::Time;
use pppoe::client::{Action, Client, Config, Opened, Phase};
use pppoe::discovery::Packet;
use pppoe::session::{Family, Role};
use preparation::{expect_free, fit_parent, framed};
use service::Instances;
use service::control::Server;
use service::event_loop::ready;
use service::memory;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::emit::{Encapsulation, PppoeSession};
use wire::{VlanPattern, Vlans};

/// How long the goodbye may take: Terminate-Request, its answer, PADT.
const GOODBYE: Duration = Duration::from_secs(3);
/// How often it is looked whether a script has ended.
const REAP: Duration = Duration::from_secs(1);
/// How long the second network protocol has, from the first, until the session is reported as it is.
const BOTH: Duration = Duration::from_secs(3);
/// Threads besides those that move packets, at most: the one that answers, name servers, scripts, signals.
const THREADS: usize = 7;
/// The longest wait for anything.
const LONGEST: Duration = Duration::from_secs(3600);

/// What a client is started with.
#[derive(Clone, Debug)]
pub struct Start {
    pub request: Request,
    pub tags: Encapsulation,
    /// Whether the largest payload in `config` was requested; if not, it is lowered to what has room.
    pub has_mtu: bool,
    pub user: Option<String>,
    pub config: Config,
}

impl Start {
    fn wants_ipv4(&self) -> bool {
        matches!(&self.config.session.role, Role::Host(host) if host.ipv4.is_some())
    }
}

/// What is said while it runs.
#[derive(Clone, Debug)]
pub enum Event {
    /// A session is open: how it stands.
    Open(Box<SessionStatus>),
    /// A concentrator is looked for, for the first time.
    Looking {
        parent: String,
        /// How long at most.
        most: Duration,
    },
    /// A session, or a try, is over, and another try follows: why, and what to do about it.
    Closed(String),
    Notice(String),
}

/// Why a client ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Over {
    Requested,
    /// It was not to try again: why the session or the try ended.
    Closed(String),
    /// The interface with the line was removed, or went to another network namespace.
    ParentRemoved,
    /// Somebody deleted the interface of the session.
    InterfaceDeleted,
}

/// A client that runs. See the [module](self).
#[derive(Debug)]
pub struct Connection {
    // Dropped in this order: who asks is answered as long as there is an interface.
    server: Server,
    network: Option<Network>,
    client: Client,
    clock: Clock,
    socket: ControlSocket,
    losses: Losses,
    vlans: Vlans,
    start: Start,
    parent: Link,
    monitor: Events,
    scripts: Scripts,
    /// Where the concentrator's name servers are to be this machine's.
    name_servers: Option<NameServers>,
    shared: Arc<Shared>,
    stop: UnixStream,
    heard: u64,
    opened: u64,
    /// Whether the search for a concentrator was reported.
    has_looked: bool,
    after_kill: bool,
    over: Option<Over>,
    /// That packets are shorter than usual, and why.
    narrow: Option<String>,
    /// When an open session is reported at the latest.
    report_at: Option<Instant>,
    closing: Option<Instant>,
}

/// Where events go.
type Report<'a> = &'a mut dyn FnMut(&Event);

impl Connection {
    /// Begins in the network namespace of the calling thread. It ends when `stop` becomes readable; `ask` is the other end
    /// of it.
    pub fn begin(
        start: Start,
        sockets: &Instances,
        stop: UnixStream,
        ask: UnixStream,
    ) -> Result<Connection, Error> {
        let needed = descriptors(start.request.means);
        Connection::begin_with(start, sockets, stop, ask).map_err(|error| error.or_descriptors(needed))
    }

    fn begin_with(
        mut start: Start,
        sockets: &Instances,
        stop: UnixStream,
        ask: UnixStream,
    ) -> Result<Connection, Error> {
        let request = &start.request;
        check_name(&request.name)?;
        // Before the parent is looked at, so that no change of it is missed.
        let monitor = Events::of_links().map_err(Error::kernel("listen to changes of interfaces"))?;
        let parent = find_parent(&request.parent)?;
        let own = parent.mac.unwrap_or_default();
        let narrow = fit_parent(&mut start, &parent)?;
        memory::expect(THREADS * memory::THREAD + start.request.means.memory())?;
        let vlans = Vlans::of(start.tags.tags().iter().copied()).ok_or(Error::TooManyTags)?;
        start.config.discovery.interface.clone_from(&parent.name);
        start.config.discovery.vlans = vlans;
        let request = &start.request;
        let pattern = VlanPattern::from(vlans);
        let socket = ControlSocket::open(parent.index, own, pattern)
            .map_err(link::Error::packet_socket(&request.parent))?;
        let losses = socket.losses().map_err(Error::kernel("watch the packet socket"))?;
        let name_servers = request.dns.then(|| NameServers::new(&request.state)).transpose();
        let name_servers = name_servers.map_err(Error::kernel("start a thread"))?;
        let after_kill = sockets.is_killed(&request.name);
        let shared = Arc::new(Shared::new(SessionStatus::default()));
        let server = Server::new(sockets, &request.name, Arc::clone(&shared), ask)?;
        expect_free(&request.name, after_kill)?;
        // What a killed process could not.
        Place::of_machine(&request.state).recover()?;
        let client = Client::new(Arc::new(start.config.clone()), own);
        let mut connection = Connection {
            server,
            network: None,
            client,
            clock: Clock::default(),
            socket,
            losses,
            vlans,
            start,
            parent,
            monitor,
            scripts: Scripts::default(),
            name_servers,
            shared,
            stop,
            heard: 0,
            opened: 0,
            has_looked: false,
            after_kill,
            over: None,
            narrow,
            report_at: None,
            closing: None,
        };
        connection.note();
        Ok(connection)
    }

    /// Keeps a session until the end.
    pub fn run(mut self, report: Report<'_>) -> Result<Over, Error> {
        let result = self.keep(report);
        if result.is_err() {
            // The concentrator need not wait for echoes that never come. The first error is the one to report.
            let _ = self.act(report, |client, now, actions| {
                client.close(now, &mut random, actions);
                client.close(now, &mut random, actions);
            });
        }
        self.close(report);
        if let Some(name_servers) = self.name_servers.take() {
            name_servers.finish().into_iter().for_each(|text| report(&Event::Notice(text)));
        }
        self.scripts.finish().into_iter().for_each(|text| report(&Event::Notice(text)));
        let waiting = self.server.close();
        drop(self);
        // Who waits for the end may bring the same up again.
        drop(waiting);
        result
    }

    fn keep(&mut self, report: Report<'_>) -> Result<Over, Error> {
        if let Some(text) = self.narrow.take() {
            report(&Event::Notice(text));
        }
        if !self.parent.works() {
            let name = &self.start.request.parent;
            report(&Event::Notice(format!(
                "{name} is down, or its cable has no carrier: the first try is when it is up"
            )));
            self.act(report, |client, now, actions| client.line(now, false, &mut random, actions))?;
        }
        self.act(report, |client, now, actions| client.start(now, &mut random, actions))?;
        loop {
            if let Some(over) = self.over.take() {
                return Ok(over);
            }
            if self.closing.is_some_and(|until| Instant::now() >= until) {
                return Ok(Over::Requested);
            }
            let [received, changed, stopped, ended, named] = self.wait()?;
            if stopped && self.closing.is_none() {
                self.closing = Some(Instant::now() + GOODBYE);
                self.act(report, |client, now, actions| client.close(now, &mut random, actions))?;
            }
            if changed {
                self.changed(report)?;
            }
            if ended {
                self.ended(report)?;
            }
            if received {
                self.receive(report)?;
            }
            if named && let Some(name_servers) = &mut self.name_servers {
                name_servers.said().into_iter().for_each(|text| report(&Event::Notice(text)));
                self.note();
            }
            if let Err(error) = self.scripts.reap() {
                report(&Event::Notice(error.to_string()));
            }
            self.report_open(report);
            // Last, so that nothing stands between an Echo-Request and waiting for its reply.
            self.tick(report)?;
        }
    }

    /// Which of line, changes of interfaces, stop, data path and name servers have something.
    fn wait(&self) -> Result<[bool; 5], Error> {
        let mut wait = LONGEST;
        if let Some(deadline) = self.client.deadline() {
            wait = wait.min(deadline.saturating_sub(self.clock.now()));
        }
        if let Some(until) = self.closing.into_iter().chain(self.report_at).min() {
            wait = wait.min(until.saturating_duration_since(Instant::now()));
        }
        if self.scripts.is_running() {
            wait = wait.min(REAP);
        }
        let sources = [
            Some(self.socket.as_fd()),
            Some(self.monitor.as_fd()),
            self.closing.is_none().then(|| self.stop.as_fd()),
            self.network.as_ref().map(AsFd::as_fd),
            self.name_servers.as_ref().map(AsFd::as_fd),
        ];
        // At least a moment, so that a deadline has passed when the wait ends.
        let wait = wait.max(Duration::from_nanos(1));
        ready(sources, Some(wait)).map_err(Error::kernel("wait for frames of the line"))
    }

    /// Has the client do something, and does what comes of it.
    fn act(
        &mut self,
        report: Report<'_>,
        with: impl FnOnce(&mut Client, Time, &mut Vec<Action>),
    ) -> Result<(), Error> {
        let mut actions = Vec::new();
        with(&mut self.client, self.clock.now(), &mut actions);
        let is_news = !actions.is_empty();
        for action in actions {
            self.carry_out(action, report)?;
        }
        if is_news {
            self.note();
        }
        Ok(())
    }

    fn carry_out(&mut self, action: Action, report: Report<'_>) -> Result<(), Error> {
        match action {
            Action::Send { stage, destination, payload } => {
                // What the line does not take is sent again, as what gets lost on it.
                let _ = self.socket.send(destination, self.vlans, stage, &payload);
            }
            Action::Opened(opened) => self.open(&opened, report)?,
            Action::Changed(opened) => self.change(&opened, report)?,
            Action::Closed { end, .. } => {
                self.close(report);
                // Who has this end close it knows why, and says it.
                if end.is_requested() || self.closing.is_some() {
                    return Ok(());
                }
                // What is tried no more is reported by what comes of `run`.
                match self.start.config.reconnect.most {
                    Some(_) => self.over = Some(Over::Closed(end.to_string())),
                    None => report(&Event::Closed(end.to_string())),
                }
            }
            Action::Notice(notice) => report(&Event::Notice(notice.to_string())),
            Action::Ended => {
                self.over.get_or_insert(Over::Requested);
            }
            Action::Phase(Phase::Discovery) if !std::mem::replace(&mut self.has_looked, true) => {
                let most = self.start.config.discovery.timers.search();
                report(&Event::Looking { parent: self.parent.name.clone(), most });
            }
            Action::Phase(_) | Action::Waits(_) => {}
        }
        Ok(())
    }

    fn open(&mut self, opened: &Opened, report: Report<'_>) -> Result<(), Error> {
        let session = PppoeSession { session: Some(opened.session), peer: Some(opened.concentrator) };
        let encapsulation = framed(&self.start.tags, session);
        let peer = Peer {
            name: Quotable(&opened.ac_name).to_string(),
            mac: opened.concentrator.to_string(),
            user: self.start.user.clone().unwrap_or_default(),
        };
        let after_kill = std::mem::take(&mut self.after_kill);
        let network = Network::up(&self.start.request, encapsulation, opened.mtu.into(), peer, after_kill);
        let needed = descriptors(self.start.request.means);
        let network = network.map_err(|error| error.or_descriptors(needed))?;
        self.network = Some(network);
        self.heard = 0;
        self.opened += 1;
        self.report_at = Some(Instant::now() + BOTH);
        self.change(opened, report)
    }

    /// Reports an open session and runs the script, when all that may still come up is up, or has had its time.
    fn report_open(&mut self, report: Report<'_>) {
        let Some(at) = self.report_at else { return };
        if self.network.is_none() {
            return;
        }
        let is_named = self.name_servers.as_ref().is_none_or(NameServers::is_idle);
        let is_whole =
            is_named && [Family::Ipv4, Family::Ipv6].iter().all(|family| !self.client.awaits(*family));
        if !is_whole && Instant::now() < at {
            return;
        }
        self.report_at = None;
        self.note();
        report(&Event::Open(Box::new(self.shared.status())));
        // Behind it, since who goes to the background leaves the streams of its caller there, which are not for a script.
        let said = self.network.as_mut().and_then(|network| network.run_up_script(&mut self.scripts));
        if let Some(said) = said {
            report(&Event::Notice(said));
        }
    }

    /// Addresses came, changed or went.
    fn change(&mut self, opened: &Opened, report: Report<'_>) -> Result<(), Error> {
        let wants_ipv4 = self.start.wants_ipv4();
        let Some(network) = &mut self.network else { return Ok(()) };
        network
            .set(opened.ipv4, opened.ipv6, wants_ipv4, self.name_servers.as_mut())?
            .into_iter()
            .for_each(|said| report(&Event::Notice(said)));
        Ok(())
    }

    /// Takes away what the session had.
    fn close(&mut self, report: Report<'_>) {
        self.report_at = None;
        let Some(network) = self.network.take() else { return };
        if let Some(name_servers) = &mut self.name_servers {
            name_servers.take_back();
        }
        let said = network.down(&mut self.scripts);
        said.into_iter().for_each(|text| report(&Event::Notice(text)));
    }

    fn receive(&mut self, report: Report<'_>) -> Result<(), Error> {
        // What is left is taken in the next turn: a flood must not keep timers and the end waiting.
        for _ in 0..ControlSocket::BATCHES {
            let mut actions = Vec::new();
            let (client, clock) = (&mut self.client, self.clock);
            let taken = self.socket.receive(|frame| {
                // Behind the system call, into which a reply may have come.
                let now = clock.now();
                let packet =
                    Packet { source: frame.source, destination: frame.destination, payload: frame.payload };
                client.receive(now, frame.stage, packet, &mut random, &mut actions);
            });
            let taken = taken.map_err(Error::kernel("receive frames of the line"))?;
            self.act(report, |_, _, did| did.extend(actions))?;
            if taken < ControlSocket::BATCH {
                break;
            }
        }
        // The reply to an echo is news without anything to be done.
        self.note();
        Ok(())
    }

    fn tick(&mut self, report: Report<'_>) -> Result<(), Error> {
        if self.client.deadline().is_none_or(|deadline| deadline > self.clock.now()) {
            return Ok(());
        }
        if let Some(network) = &self.network {
            let heard = network.received();
            if heard != self.heard {
                self.heard = heard;
                self.client.heard(self.clock.now());
            }
        }
        self.act(report, |client, now, actions| client.tick(now, &mut random, actions))
    }

    /// The data path ended by itself.
    fn ended(&mut self, report: Report<'_>) -> Result<(), Error> {
        let Some(network) = &mut self.network else { return Ok(()) };
        let ended = network.ended()?;
        self.act(report, |client, now, actions| {
            client.close(now, &mut random, actions);
            client.close(now, &mut random, actions);
        })?;
        self.over = Some(match ended {
            Ended::Requested => Over::Requested,
            Ended::ParentRemoved => Over::ParentRemoved,
            Ended::InterfaceDeleted => Over::InterfaceDeleted,
        });
        Ok(())
    }
}
