//! A link from its coming up to its end.

mod watch;
mod workers;

use crate::batch::{self, Batch, Below, Io};
use crate::counters::Counters;
use crate::datapath::{DataPath, Line, PathError};
use crate::error::{Error, LEAST_IPV6};
use crate::frame_size::{longest_mtu, needed_mtu};
use crate::framing::{Form, Framing};
use crate::mss::Clamp;
use crate::parent::Parent;
use crate::simple::Simple;
use crate::status::{Identity, Shared, Status, form_word};
use kernel::netlink::{self, Address, Events};
use kernel::socket::Packet;
use kernel::tun::{Offloads, Tun};
use rustix::io::Errno;
use rustix::net::{SocketAddrUnix, bind};
use service::Instances;
use service::control::Server;
use service::event_loop::ready;
use service::memory;
use service::process::DYING;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::thread;
use std::time::{Duration, Instant};
pub use watch::{Seen, Watch};
use wire::emit::Encapsulation;
pub use workers::Workers;

/// ARPHRD type of Ethernet (linux/if_arp.h).
const ETHERNET: u16 = 1;
/// The usual MTU of Ethernet, and that of PPPoE without RFC 4638 (RFC 2516 section 7).
const USUAL: u32 = 1500;
const USUAL_PPPOE: u32 = 1492;
/// The least MTU of IPv4 (RFC 791).
const LEAST: u32 = 68;

/// A link that is requested.
#[derive(Clone, Debug)]
pub struct Request {
    pub name: String,
    pub parent: String,
    /// What stands around packets there.
    pub encapsulation: Encapsulation,
    /// Whether this process negotiates the session, so that the data path is given IP alone.
    pub is_managed: bool,
    pub addresses: Vec<Address>,
    /// MTU, bytes; `None`: 1500, 1492 with PPPoE, or less where the parent has no room for it.
    pub mtu: Option<u32>,
    /// Whether to lower the maximum segment size of TCP to what fits the MTU.
    pub mss_clamp: bool,
    pub means: Means,
}

/// A data path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// One packet a system call.
    Simple,
    /// [`Batch`].
    Batch {
        /// Threads that move packets, at least one.
        workers: usize,
        io: Io,
    },
}

impl Means {
    pub const fn word(self) -> &'static str {
        match self {
            Means::Simple => "simple",
            Means::Batch { .. } => "batch",
        }
    }

    const fn io(self) -> Io {
        match self {
            Means::Simple => Io::AfPacket,
            Means::Batch { io, .. } => io,
        }
    }

    /// Bytes that it takes of this process, by and large.
    pub const fn memory(self) -> usize {
        match self {
            Means::Simple => memory::THREAD + (1 << 20),
            Means::Batch { workers, .. } => workers * batch::WORKER,
        }
    }
}

/// A link that is up. It ends when this is dropped.
pub struct Running {
    // Dropped in this order: who asks is answered as long as there is an interface.
    server: Option<Server>,
    path: Box<dyn DataPath>,
    threads: Workers,
    /// Held as long as the link is up, so that no other has its frames.
    _claim: Claim,
    line: Line,
    shared: Arc<Shared>,
    watch: Watch,
    stop: UnixStream,
    waiting: Vec<UnixStream>,
}

/// Reports how a link stands, from any thread.
#[derive(Clone, Debug)]
pub struct Observer(Arc<Shared>);

impl Observer {
    /// How it stands.
    pub fn status(&self) -> Status {
        self.0.status()
    }

    pub fn interface(&self) -> u32 {
        self.0.index
    }

    /// Frames received so far.
    pub fn received(&self) -> u64 {
        self.0.workers.iter().map(|(counters, _)| counters.received.frames()).sum()
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Running({})", self.shared.identity.name)
    }
}

/// Something happened to the parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// It went down, or its line does not work any more.
    ParentDown,
    /// It is up again, and its line works.
    ParentUp,
    ParentMtu {
        now: u32,
        /// The MTU that it needs for the packets of the link.
        needed: u32,
    },
    /// Its MAC address changed; the link keeps the one that it came up with.
    ParentMac,
}

/// Why a link ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Requested,
    /// The parent was removed, or went to another network namespace.
    ParentRemoved,
    /// Somebody deleted the interface of the link.
    InterfaceDeleted,
}

impl Running {
    /// Brings a link up in the network namespace of the calling thread. It ends when `stop` becomes readable; `ask` is
    /// the other end of it.
    pub fn up(
        request: &Request,
        sockets: &Instances,
        stop: UnixStream,
        ask: UnixStream,
    ) -> Result<Running, Error> {
        // What a killed process had may still be on its way out, and then it is waited for.
        let until = sockets.is_killed(&request.name).then(|| Instant::now() + DYING);
        Running::up_until(request, until, &stop, Some((sockets, &ask)))
    }

    /// The same without a socket for questions: who brings it up answers for it. `after_kill`: what a killed process had may
    /// still be on its way out.
    pub fn up_without_socket(
        request: &Request,
        after_kill: bool,
        stop: UnixStream,
    ) -> Result<Running, Error> {
        Running::up_until(request, after_kill.then(|| Instant::now() + DYING), &stop, None)
    }

    fn up_until(
        request: &Request,
        until: Option<Instant>,
        stop: &UnixStream,
        control: Option<(&Instances, &UnixStream)>,
    ) -> Result<Running, Error> {
        loop {
            match Running::try_up(request, stop, control) {
                Err(error) if error.is_of_another() && until.is_some_and(|until| Instant::now() < until) => {
                    thread::sleep(Duration::from_millis(20));
                }
                result => return result.map_err(|error| error.or_descriptors(descriptors(request.means))),
            }
        }
    }

    fn try_up(
        request: &Request,
        stop: &UnixStream,
        control: Option<(&Instances, &UnixStream)>,
    ) -> Result<Running, Error> {
        check_name(&request.name)?;
        // The next try takes others.
        let own = |end: &UnixStream| end.try_clone().map_err(Error::kernel("wait for signals"));
        let (stop, ask) = (own(stop)?, control.map(|(_, ask)| own(ask)).transpose()?);
        // Before the parent is looked at, so that no change of it is missed.
        let monitor = Events::of_links().map_err(Error::kernel("listen to changes of interfaces"))?;
        let parent = find_parent(&request.parent)?;
        let framing = Framing::new(&request.encapsulation, parent.mac.unwrap_or_default())?;
        let framing = if request.is_managed { framing.managed() } else { framing };
        let mtu = mtu_of(request, &parent)?;
        let (tuns, offloads) = match request.means {
            Means::Simple => (vec![Tun::new(&request.name, framing.form())?], Offloads::default()),
            Means::Batch { workers, .. } => Tun::queues(&request.name, framing.form(), workers)?,
        };
        let claim = Claim::new(&parent.name)?;
        claim.lay(&parent, &request.encapsulation.to_string())?;
        let index = configure(&request.name, request, &framing, mtu)?;
        let paths = paths(request, tuns, offloads, &parent, &framing)?;
        let parent_mtu = Arc::new(AtomicU32::new(parent.mtu));
        let clamp = request.mss_clamp.then(|| Clamp::for_mtu(mtu));
        let line = |counters: &Arc<Counters>| Line {
            framing: framing.clone(),
            clamp,
            counters: Arc::clone(counters),
            parent_mtu: Arc::clone(&parent_mtu),
        };
        let (mut others, workers): (Vec<_>, Vec<_>) = paths
            .into_iter()
            .map(|(path, observer)| {
                let counters = Arc::new(Counters::default());
                ((path, line(&counters)), (counters, observer))
            })
            .unzip();
        let mut identity = identity(request, &framing, mtu);
        identity.workers = workers.len();
        identity.offloads = offloads.words();
        let shared = Arc::new(Shared {
            identity,
            workers,
            index,
            since: Instant::now(),
            parent_works: AtomicBool::new(parent.works()),
            parent_mtu,
        });
        // The first works in this thread.
        let (path, line) = others.remove(0);
        // A kernel before 5.0 has no carrier to turn off.
        let _ = path.set_carrier(parent.works());
        let needed = needed_mtu(mtu, &request.encapsulation);
        let watch = Watch::new(monitor, parent, index, needed);
        let serve = |((sockets, _), ask)| Server::new(sockets, &request.name, Arc::clone(&shared), ask);
        let server = control.zip(ask).map(serve).transpose()?;
        let threads = Workers::start(others).map_err(Error::kernel("start threads"))?;
        Ok(Running { _claim: claim, server, path, threads, line, shared, watch, stop, waiting: Vec::new() })
    }

    /// How it stands.
    pub fn status(&self) -> Status {
        self.shared.status()
    }

    /// What reports how it stands while another thread runs it.
    pub fn observer(&self) -> Observer {
        Observer(Arc::clone(&self.shared))
    }

    /// Moves packets until somebody asks for the end, or there is nothing left to move them between.
    pub fn run(&mut self, report: &mut dyn FnMut(&Event)) -> Result<Ended, Error> {
        self.path.begin();
        loop {
            let [from_interface, from_parent, changed, stopped, failed] = self.wait()?;
            if stopped {
                return Ok(Ended::Requested);
            }
            if changed && let Some(ended) = self.look(report)? {
                return Ok(ended);
            }
            let mut moved = if failed { self.threads.failure() } else { Ok(()) };
            if from_interface && moved.is_ok() {
                moved = self.path.send_some(&self.line);
            }
            if from_parent && moved.is_ok() {
                moved = self.path.receive_some(&self.line);
            }
            let name = &self.shared.identity.name;
            match moved {
                Ok(()) => {}
                Err(PathError::InterfaceRemoved) => return Ok(Ended::InterfaceDeleted),
                Err(PathError::Interface(source)) => {
                    return Err(Error::kernel(format!("read packets of {name}"))(source));
                }
                Err(PathError::Worker) => return Err(Error::worker(name)),
                Err(PathError::Parent(source)) => {
                    return Err(Error::kernel(format!("receive frames for {name}"))(source));
                }
            }
        }
    }

    /// Which of interface, parent, changes, stop and other workers have something.
    fn wait(&self) -> Result<[bool; 5], Error> {
        if let Some(pause) = self.path.pause() {
            std::thread::sleep(pause);
        }
        let (interface, parent) = (self.path.interface(), self.path.parent());
        let sources = [interface, parent, self.watch.as_fd(), self.stop.as_fd(), self.threads.as_fd()];
        ready(sources.map(Some), None).map_err(Error::kernel("wait for packets"))
    }

    fn look(&mut self, report: &mut dyn FnMut(&Event)) -> Result<Option<Ended>, Error> {
        let seen = self.watch.look().map_err(Error::kernel("read changes of interfaces"))?;
        for event in &seen.events {
            self.watch.note(&self.shared);
            if matches!(event, Event::ParentDown | Event::ParentUp) {
                let _ = self.path.set_carrier(*event == Event::ParentUp);
            }
            report(event);
        }
        Ok(seen.ended)
    }

    /// Ends the link: the interface is removed when this returns, and who requested it hears of it.
    pub fn down(self) -> Status {
        let status = self.status();
        let Running { server, path, threads, _claim: claim, mut waiting, .. } = self;
        waiting.extend(server.map(|mut server| server.close()).unwrap_or_default());
        drop(path);
        drop(threads);
        // Before who waits for the end hears of it, and may bring the same line up again.
        drop(claim);
        drop(waiting);
        status
    }
}

/// Files that a process with a link has open, at most: a queue of the interface, two sockets and a second descriptor of one
/// for each worker, and two by which it is ended and heard of; and those of the process itself.
pub fn descriptors(means: Means) -> u64 {
    const EACH: u64 = 6;
    const OTHERS: u64 = 40;
    let workers = if let Means::Batch { workers, .. } = means { workers as u64 } else { 1 };
    OTHERS + EACH * workers
}

/// `dev_valid_name()` of net/core/dev.c, without what no terminal should show.
pub fn check_name(name: &str) -> Result<(), Error> {
    let is_right = (1..libc::IFNAMSIZ).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'/' | b':' | b'%'))
        // The last two mean every interface below /proc/sys/net.
        && !matches!(name, "." | ".." | "all" | "default");
    if is_right {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "`{name}` is no name of an interface: 1 to 15 printable characters without `/`, `:` and spaces, and neither `all` nor \
         `default`"
    )))
}

/// An interface as the parent of a link.
pub fn find_parent(name: &str) -> Result<netlink::Link, Error> {
    let parent = netlink::link_by_name(name).map_err(|source| match source.raw_os_error() {
        Some(libc::ENODEV) => Error::Usage(format!(
            "there is no interface {name} in this network namespace (`ip -br link` lists those that there are)"
        )),
        _ => Error::Kernel { what: format!("look at {name}"), source },
    })?;
    if parent.hardware != ETHERNET || parent.mac.is_none() {
        let hardware = parent.hardware;
        return Err(Error::Usage(format!(
            "{name} has no Ethernet frames (ARPHRD type {hardware}): expected an Ethernet interface"
        )));
    }
    Ok(parent)
}

/// The MTU that a link gets over a parent of this MTU, if none is requested.
pub fn usual_mtu(parent_mtu: u32, encapsulation: &Encapsulation) -> u32 {
    let usual = if encapsulation.pppoe().is_some() { USUAL_PPPOE } else { USUAL };
    usual.min(longest_mtu(parent_mtu, encapsulation))
}

pub fn mtu_of(request: &Request, parent: &netlink::Link) -> Result<u32, Error> {
    let mtu = request.mtu.unwrap_or_else(|| usual_mtu(parent.mtu, &request.encapsulation));
    if mtu > longest_mtu(parent.mtu, &request.encapsulation) {
        return Err(Error::mtu_too_large(mtu, parent, &request.encapsulation));
    }
    let has_ipv6 = request.addresses.iter().any(|address| address.local.is_ipv6());
    let (least, version) = if has_ipv6 { (LEAST_IPV6, "IPv6") } else { (LEAST, "IPv4") };
    if mtu >= least {
        return Ok(mtu);
    }
    Err(Error::Usage(format!("an MTU of {mtu} bytes is too small: {least} is the least for {version}")))
}

/// Claims frames of a parent for this process, those of an encapsulation or of whatever the word says: two links with the same
/// would each get all that comes in. The claim is a socket in the abstract name space of the network namespace (unix(7)), so it
/// ends with the process, however that ends, and no file is left. It has its descriptor before it is laid.
#[derive(Debug)]
pub struct Claim(UnixDatagram);

impl Claim {
    /// On frames of this parent.
    pub fn new(parent: &str) -> Result<Claim, Error> {
        UnixDatagram::unbound().map(Claim).map_err(Error::kernel(format!("claim frames of {parent}")))
    }

    pub fn lay(&self, parent: &netlink::Link, encapsulation: &str) -> Result<(), Error> {
        // A name has room for 107 bytes, an encapsulation may take more.
        let mut hasher = DefaultHasher::new();
        encapsulation.hash(&mut hasher);
        let name = format!("rxlane-link-{}-{:016x}", parent.index, hasher.finish());
        let name = SocketAddrUnix::new_abstract_name(name.as_bytes());
        name.and_then(|name| bind(&self.0, &name)).map_err(|error| match error {
            Errno::ADDRINUSE => {
                Error::LineTaken { parent: parent.name.clone(), encapsulation: encapsulation.to_owned() }
            }
            _ => Error::Kernel { what: format!("claim the frames of {encapsulation}"), source: error.into() },
        })
    }
}

/// A data path, and another descriptor of its socket on the parent.
type Watched = (Box<dyn DataPath>, Packet);

/// What moves packets.
fn paths(
    request: &Request,
    mut tuns: Vec<Tun>,
    offloads: Offloads,
    parent: &netlink::Link,
    framing: &Framing,
) -> Result<Vec<Watched>, Error> {
    let io = request.means.io();
    let refused = |source: io::Error| match (source.kind(), io, source.raw_os_error()) {
        (io::ErrorKind::PermissionDenied, ..) | (_, Io::AfPacket, _) | (.., None) => {
            Error::packet_socket(&request.parent)(source)
        }
        _ => Error::Xdp { parent: request.parent.clone(), source },
    };
    let watched = Error::kernel("watch the packet socket");
    match request.means {
        Means::Simple => {
            let receiver = Parent::open(parent.index, framing).map_err(refused)?;
            let observer = receiver.observer().map_err(watched)?;
            Ok(vec![(Box::new(Simple::new(tuns.remove(0), receiver)), observer)])
        }
        Means::Batch { .. } => {
            let below = Below { index: parent.index, mtu: parent.mtu };
            let workers = Batch::workers(tuns, offloads, below, framing, io).map_err(refused)?;
            let with_observer = |worker: Batch| {
                let observer = worker.observer()?;
                Ok((Box::new(worker) as Box<dyn DataPath>, observer))
            };
            workers.into_iter().map(with_observer).collect::<io::Result<Vec<_>>>().map_err(watched)
        }
    }
}

/// Gives the interface all that it should have, and sets it up; its number.
fn configure(name: &str, request: &Request, framing: &Framing, mtu: u32) -> Result<u32, Error> {
    let index = netlink::link_by_name(name).map_err(Error::kernel(format!("look at {name}")))?.index;
    let refused = |what: &str| Error::refused(format!("{what} {name}"));
    let mac = (framing.form() == Form::Frames).then(|| framing.local());
    netlink::configure(index, mtu, mac).map_err(refused("set MTU and MAC address of"))?;
    if request.is_managed {
        // IPV6CP gives it one; a kernel without IPv6 makes none anyway.
        let _ = netlink::disable_own_ipv6(index);
    }
    // First, since the kernel adds the route to a peer when an address has been found to be nobody else's, and without
    // ARP that is at once: in vain, if the interface is down.
    netlink::set_up(index).map_err(refused("set up"))?;
    for address in &request.addresses {
        netlink::add_address(index, address)
            .map_err(|refusal| Error::address(index, name, *address, refusal))?;
    }
    Ok(index)
}

fn identity(request: &Request, framing: &Framing, mtu: u32) -> Identity {
    Identity {
        name: request.name.clone(),
        parent: request.parent.clone(),
        encapsulation: request.encapsulation.to_string(),
        interface: form_word(framing.form()).to_owned(),
        datapath: request.means.word().to_owned(),
        workers: 1,
        io: request.means.io().word().to_owned(),
        offloads: Vec::new(),
        mtu,
        needed_parent_mtu: needed_mtu(mtu, &request.encapsulation),
        addresses: request.addresses.iter().map(Address::to_string).collect(),
        mss_clamp: request.mss_clamp,
        pid: std::process::id(),
    }
}
