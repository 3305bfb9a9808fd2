//! A fast path from its coming up to its end.

use crate::bypass::{Bypassed, bypassed};
use crate::connection::Found;
use crate::engine::{Engine, next_hop_places};
use crate::error::Error;
use crate::overlay::overlays;
use crate::ports::{DOWNLOAD, Port, Ports, UPLOAD};
use crate::status::{Identity, Status, flows};
use crate::topology::Topology;
use host::setting::{Setting, Tree};
use kernel::netlink::netfilter::conntrack::{ConnectionEvents, Keep};
use kernel::netlink::{Change, Events, Link, PolicyEvents, link_by_name};
use kernel::sysctl;
use serde_json::{Value, json};
use service::control::{ControlError, ControlHandler, Refused, Server, report_end};
use service::event_loop::ready;
use service::journal::{self, Entry, Journal, Moved};
use service::{Instances, Kind, StateDir};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use xdp::forward::Forwarding;
use xdp::forward_layout::PORTS_MOST;
use xdp::{Interface, Mode};

/// The name of the fast path of a network namespace.
pub const NAME: &str = "fastpath";
/// Under which changed settings stand in the journal.
const BY: &str = "fastpath";
/// How often the program hears that this process is alive; it waits for two seconds.
const BEAT: Duration = Duration::from_millis(250);
/// How often conntrack is queried for connections of whose end no event comes.
const POLL: Duration = Duration::from_millis(50);
const TICK: Duration = Duration::from_secs(1);
/// What the kernel keeps of events that were not read yet, bytes.
const CONNECTION_BUFFER: usize = 64 << 20;
const FORWARDING_BUFFER: usize = 8 << 20;
/// Flows that are listed.
const LISTED: usize = 1_000;

/// A fast path that is requested.
#[derive(Clone, Debug)]
pub struct Request {
    /// Names of the ports.
    pub ports: Vec<String>,
    /// Whether the kernel runs the program for each socket buffer, where a driver cannot.
    pub generic: bool,
    /// As many connections as there may be.
    pub flows: usize,
    /// Bits a second, towards the default route and from it.
    pub limits: (Option<u64>, Option<u64>),
    /// Whether shapers may be bypassed.
    pub bypass_qdisc: bool,
    /// Whether NICs may be set to leave tags in frames.
    pub disable_rxvlan: bool,
}

impl Request {
    /// Whether a direction is limited.
    pub const fn has_limit(&self) -> bool {
        self.limits.0.is_some() || self.limits.1.is_some()
    }
}

/// What was found before anything is changed.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The ports, with the driver's name where it has one.
    pub ports: Vec<(Port, Option<String>)>,
    /// What would be bypassed.
    pub bypassed: Vec<Bypassed>,
    /// Settings that hide tags from the program.
    pub hiding: Vec<Setting>,
    /// Whether a default route leads out of a port, which says what limits are about.
    pub has_line: bool,
    /// Whether a fast path is up here.
    pub is_up: bool,
    /// Whether the machine forwards IPv4 or IPv6.
    pub forwards: bool,
    /// Connections that conntrack follows now; `None`: it is not in the kernel.
    pub connections: Option<u32>,
}

impl Checked {
    /// Shapers among what is bypassed: interface, and kind.
    pub fn shapers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.bypassed.iter().filter_map(|one| match one {
            Bypassed::Shaper { interface, qdisc } => Some((interface.as_str(), qdisc.as_str())),
            Bypassed::Counters { .. } => None,
        })
    }
}

/// Finds the ports, and what stands in the way or would be bypassed.
///
/// # Errors
///
/// [`Error::NoPort`], [`Error::Ports`], or the kernel does not say.
pub fn check(request: &Request, state: &StateDir) -> Result<Checked, Error> {
    if request.ports.len() > PORTS_MOST as usize {
        return Err(Error::Ports(request.ports.len()));
    }
    let topology = Topology::read(overlays(state.clone())).map_err(Error::asking("interfaces"))?;
    let mut ports: Vec<(Port, Option<String>)> = Vec::new();
    for name in &request.ports {
        let port = port(name)?;
        if !ports.iter().any(|(known, _)| known.interface == port.interface) {
            let driver = Interface::find(name)?.driver();
            ports.push((port, driver));
        }
    }
    let interfaces: Vec<u32> = ports.iter().map(|(port, _)| port.interface).collect();
    if let [(only, _)] = ports.as_slice()
        && !topology.has_tags_on(only.interface)
    {
        return Err(Error::Alone(only.name.clone()));
    }
    let bypassed = bypassed(&topology, &interfaces).map_err(Error::asking("queueing disciplines"))?;
    let hiding = ports
        .iter()
        .filter(|(port, _)| topology.has_tags_on(port.interface))
        .filter_map(|(port, _)| Setting::that_keeps_tags(&port.name, &Tree::live()))
        .collect();
    let mut found = Ports::new(ports.iter().map(|(port, _)| port.clone()).collect(), (false, false));
    found.find_lines(&topology);
    let has_line = found.all().iter().any(|port| port.is_line);
    let is_up = Instances::new(Kind::Fastpath, state.clone()).is_ok_and(|all| answers(&all));
    let connections = sysctl::net("netfilter/nf_conntrack_count");
    let forwards = sysctl::forwards();
    Ok(Checked { ports, bypassed, hiding, has_line, is_up, forwards, connections })
}

/// Whether one is up: it answers, or lives and does not. One that was just killed still has its socket for a moment.
fn answers(instances: &Instances) -> bool {
    use ControlError::{Refused, Silent, Stopped};
    let answer: Result<Value, ControlError> = instances.ask(NAME, "status");
    matches!(answer, Ok(_) | Err(Refused { .. } | Silent { .. } | Stopped { .. }))
}

fn port(name: &str) -> Result<Port, Error> {
    const ETHERNET: u16 = 1;
    let interface = Interface::find(name)?;
    let link: Link =
        link_by_name(name).map_err(|source| Error::System { what: "find the interface", source })?;
    let is_veth = link.kind.as_deref() == Some("veth");
    if link.hardware != ETHERNET || link.kind.is_some() && !is_veth {
        let kind = link.kind.unwrap_or_else(|| "PPP or other".to_owned());
        return Err(Error::NoPort { interface: name.to_owned(), kind });
    }
    Ok(Port { name: name.to_owned(), interface: interface.index, is_verified: is_veth, is_line: false })
}

/// What the main thread and the one that answers share.
struct Shared {
    engine: Mutex<Engine>,
    identity: Identity,
}

impl Shared {
    fn list(&self) -> Result<Value, Error> {
        let engine = self.engine();
        let rows = flows(&engine, LISTED)?;
        Ok(json!({"flows": rows, "all": engine.flows().len()}))
    }

    fn engine(&self) -> MutexGuard<'_, Engine> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ControlHandler for Shared {
    fn answer(&self, question: &str) -> Option<String> {
        let answer = match question {
            "status" | "down" => Status::of(&self.engine(), &self.identity).map(|status| json!(status)),
            "flows" => self.list(),
            "flush" => self.engine().flush().map(|flows| json!({"flows": flows})),
            _ => return None,
        };
        Some(answer.map_or_else(|error| Refused::line(&error.to_string()), |answer| answer.to_string()))
    }
}

/// A fast path that was taken down.
#[derive(Debug)]
pub struct Down {
    /// How it stood.
    pub last: Status,
    /// Why settings are not restored, and what restores them.
    pub left: Vec<String>,
}

/// A fast path that is up. The program is off all ports when this is dropped.
pub struct Running {
    // Dropped in this order: requests are answered as long as packets are forwarded.
    server: Option<Server>,
    attached: Vec<xdp::forward::Port>,
    shared: Arc<Shared>,
    connections: ConnectionEvents,
    forwarding: Events,
    policies: Option<PolicyEvents>,
    stop: UnixStream,
    state: StateDir,
    changed: bool,
    waiting: Vec<UnixStream>,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Running({} ports)", self.attached.len())
    }
}

impl Running {
    /// Brings it up. `stop` becomes readable when its end is requested, `ask` is its other end.
    ///
    /// # Errors
    ///
    /// [`Error`]; nothing is left behind.
    pub fn up(
        request: &Request,
        checked: &Checked,
        instances: &Instances,
        stop: UnixStream,
        ask: UnixStream,
    ) -> Result<Running, Error> {
        let state = instances.state().clone();
        if answers(instances) {
            return Err(Error::Up);
        }
        recover(&state)?;
        if let Some((interface, qdisc)) = checked.shapers().next().filter(|_| !request.bypass_qdisc) {
            return Err(Error::Shaper { interface: interface.to_owned(), qdisc: qdisc.to_owned() });
        }
        if let Some(hiding) = checked.hiding.first().filter(|_| !request.disable_rxvlan) {
            let interface = hiding.interface().map(ToString::to_string).unwrap_or_default();
            return Err(Error::HiddenTags { interface });
        }
        if request.has_limit() && !checked.has_line {
            return Err(Error::NoLine);
        }
        // Events of what happens meanwhile wait for the first look.
        let (connections, forwarding, keep) = listen()?;
        let policies =
            PolicyEvents::open().map_err(|source| Error::Listening { what: "IPsec policies", source })?;
        // Each connection has two flows.
        let mut program = Forwarding::load(2 * request.flows as u32, next_hop_places(request.flows))?;
        let (upload, download) = request.limits;
        for (place, limit) in [(UPLOAD, upload), (DOWNLOAD, download)] {
            if let Some(bits) = limit {
                program.set_limit(place, bits, burst(bits))?;
            }
        }
        let ports: Vec<Port> = checked.ports.iter().map(|(port, _)| port.clone()).collect();
        for (place, port) in ports.iter().enumerate() {
            program.set_port(place as u32, Some(port.interface))?;
        }
        let changed = change(&checked.hiding, &state)?;
        let mode = if request.generic { Mode::Generic } else { Mode::Native };
        let names: Vec<String> = ports.iter().map(|port| port.name.clone()).collect();
        let ports = Ports::new(ports, (upload.is_some(), download.is_some()));
        let identity = Identity { mode: mode.name().to_owned(), most: request.flows, since: Instant::now() };
        let up = || -> Result<_, Error> {
            let attached = names.iter().map(|name| program.attach(&Interface::find(name)?, mode));
            let attached: Vec<xdp::forward::Port> = attached.collect::<Result<_, _>>()?;
            // Drivers say so with the program on all ports.
            if let Some(port) = ports.all().iter().find(|port| mode == Mode::Native && !port.is_target()) {
                return Err(Error::NoTarget { interface: port.name.clone(), is_veth: port.is_verified });
            }
            let below = Box::new(overlays(state.clone()));
            let ports = if mode == Mode::Native { ports.native() } else { ports };
            let mut engine = Engine::new(program, ports, request.flows, below, keep)?;
            engine.work()?;
            let shared = Arc::new(Shared { engine: Mutex::new(engine), identity });
            let server = Server::new(instances, NAME, Arc::clone(&shared), ask)?;
            Ok((attached, shared, server))
        };
        match up() {
            Ok((attached, shared, server)) => Ok(Running {
                server: Some(server),
                attached,
                shared,
                connections,
                forwarding,
                policies,
                stop,
                state,
                changed,
                waiting: Vec::new(),
            }),
            Err(error) => {
                // Of two errors the first explains more than that of cleaning up behind it.
                let _ = recover(&state);
                Err(error)
            }
        }
    }

    /// How it stands.
    ///
    /// # Errors
    ///
    /// The kernel refuses to read a map.
    pub fn status(&self) -> Result<Status, Error> {
        Status::of(&self.shared.engine(), &self.shared.identity)
    }

    /// Follows all events until its end is requested.
    ///
    /// # Errors
    ///
    /// The kernel refuses to write a map, or to answer a query.
    pub fn run(&mut self) -> Result<(), Error> {
        let shared = Arc::clone(&self.shared);
        let (mut beat, mut tick, mut poll) = (Instant::now(), Instant::now(), Instant::now());
        let mut more = false;
        loop {
            let timeout = match (more, shared.engine().has_silent()) {
                (true, _) => Duration::ZERO,
                (false, true) => POLL,
                (false, false) => BEAT,
            };
            let sources = [
                Some(self.stop.as_fd()),
                Some(self.forwarding.as_fd()),
                Some(self.connections.as_fd()),
                self.policies.as_ref().map(AsFd::as_fd),
            ];
            let [stop, forwarding, connections, policies] =
                ready(sources, Some(timeout)).map_err(|source| Error::System { what: "wait", source })?;
            if stop {
                return Ok(());
            }
            let mut engine = shared.engine();
            if beat.elapsed() >= BEAT {
                engine.beat()?;
                beat = Instant::now();
            }
            if policies {
                self.follow_policies(&mut engine)?;
            }
            if forwarding {
                self.follow_forwarding(&mut engine)?;
            }
            if connections {
                self.follow_connections(&mut engine)?;
            }
            if poll.elapsed() >= POLL && engine.has_silent() {
                engine.poll()?;
                poll = Instant::now();
            }
            if tick.elapsed() >= TICK {
                engine.tick()?;
                tick = Instant::now();
            }
            more = engine.work()?;
        }
    }

    fn follow_forwarding(&mut self, engine: &mut Engine) -> Result<(), Error> {
        let failed = |source| Error::Listening { what: "interfaces and routes", source };
        for change in self.forwarding.changes().map_err(failed)? {
            if change == Change::Lost {
                engine.note_lost();
            }
            engine.change(change)?;
        }
        engine.finish_changes()
    }

    fn follow_policies(&self, engine: &mut Engine) -> Result<(), Error> {
        let changed = self.policies.as_ref().map(PolicyEvents::take).transpose();
        let failed = |source| Error::Listening { what: "IPsec policies", source };
        if changed.map_err(failed)? == Some(true) { engine.distrust() } else { Ok(()) }
    }

    fn follow_connections(&mut self, engine: &mut Engine) -> Result<(), Error> {
        let mut changes = Vec::new();
        let take = |change, connection: kernel::netlink::netfilter::conntrack::Connection<'_>| {
            changes.extend(Found::of(&connection).map(|found| (change, found)));
        };
        let failed = |source| Error::Listening { what: "connections", source };
        let is_lost = self.connections.each(take).map_err(failed)?;
        engine.connections(&changes)?;
        if is_lost {
            engine.note_lost();
            engine.distrust()?;
            engine.list()?;
        }
        Ok(())
    }

    /// Takes it down, and reports to who waits for it what is not restored.
    ///
    /// # Errors
    ///
    /// The journal cannot be read or written; or the kernel refuses to read a map.
    pub fn down(&mut self) -> Result<Down, Error> {
        let last = self.status();
        if let Some(mut server) = self.server.take() {
            self.waiting = server.close();
        }
        let away: Vec<Away> = self.attached.iter().filter_map(Away::of).collect();
        self.attached.clear();
        let left = if std::mem::take(&mut self.changed) { restore(&self.state, &away)? } else { Vec::new() };
        report_end(std::mem::take(&mut self.waiting), &left);
        Ok(Down { last: last?, left })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.down();
        self.waiting.clear();
    }
}

fn listen() -> Result<(ConnectionEvents, Events, Keep), Error> {
    let failed = |what| move |source: io::Error| Error::Listening { what, source };
    let keep = Keep::open().map_err(failed("connections"))?;
    let mut connections = ConnectionEvents::open(CONNECTION_BUFFER).map_err(failed("connections"))?;
    connections.exclude(&keep).map_err(failed("connections"))?;
    let forwarding = Events::of_forwarding().map_err(failed("interfaces and routes"))?;
    forwarding.set_buffer(FORWARDING_BUFFER).map_err(failed("interfaces and routes"))?;
    Ok((connections, forwarding, keep))
}

/// What a limit lets through at once, bytes: 250 ms of it, more than the 200 ms for which TCP is silent when it has lost too much
/// (`TCP_RTO_MIN` of Linux), and no less than some packets.
const fn burst(bits: u64) -> u64 {
    let of_250_ms = bits / 8 / 4;
    if of_250_ms < 60_000 { 60_000 } else { of_250_ms }
}

/// Changes settings for as long as the fast path is up. Gives whether any was changed.
fn change(settings: &[Setting], state: &StateDir) -> Result<bool, Error> {
    if settings.is_empty() {
        return Ok(false);
    }
    let mut journal = Journal::open(state, &Tree::live())?;
    for setting in settings {
        journal.apply(setting, BY)?;
    }
    Ok(true)
}

/// Restores what a process has changed that was killed; why settings are not restored, and what restores them.
///
/// # Errors
///
/// The journal cannot be read or written.
pub fn recover(state: &StateDir) -> Result<Vec<String>, Error> {
    restore(state, &[])
}

/// A port that went to another network namespace: its index before and now.
struct Away {
    was: u32,
    is: u32,
}

impl Away {
    fn of(port: &xdp::forward::Port) -> Option<Away> {
        Some(Away { was: port.interface().index, is: port.away()? })
    }
}

fn restore(state: &StateDir, away: &[Away]) -> Result<Vec<String>, Error> {
    if !state.path().exists() {
        return Ok(Vec::new());
    }
    let mut journal = Journal::open(state, &Tree::live())?;
    for Away { was, is } in away {
        // The number may be another interface's in another namespace, where another process has changed it.
        let is_its =
            |entry: &&Entry| entry.by == BY && entry.pid == process::id() && entry.index == Some(*was);
        let numbers: Vec<u64> = journal.entries().iter().filter(is_its).map(|entry| entry.number).collect();
        for number in numbers {
            journal.note_moved(number, Moved { namespace: None, index: *is, name: None })?;
        }
    }
    match journal.undo_by(BY, false) {
        Ok(undone) => {
            Ok(undone.iter().filter(|one| one.outcome.is_kept()).map(ToString::to_string).collect())
        }
        // Of another network namespace, which has its own.
        Err(journal::Error::Namespace { .. }) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}
