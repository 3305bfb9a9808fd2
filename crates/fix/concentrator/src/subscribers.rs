//! The data path of a concentrator: one interface for all subscribers, however many there are.
//!
//! # Contract
//!
//! * A [`Registry`] has the sessions and the addresses of each; one thread changes it while packets move. What is inserted,
//!   changed or removed counts for packets that are looked at afterwards; packets that are on their way go on.
//! * In: a frame is a session's where VLANs, source address and session id are all those of it, and no other frame is ever taken
//!   for it. The source of the packet inside has to be an address of the session: one that the registry has for it, the
//!   link-local one of its interface identifier, or `::` where IPv6 asks neighbours about an address (RFC 4862 section 5.4.2).
//!   What is wrong with a frame has a reason of its own ([`link::Dropped`]), and is counted for the session, too, once that
//!   is known.
//! * Frames of sessions that do not exist are kept for the control handler, so that their senders get a PADT: at most
//!   64 until the next look.
//! * Out: the longest prefix that has the destination says whose a packet is. One that is longer than its subscriber takes
//!   becomes fragments or is reported to its sender by ICMP, at most 1000 a second and worker.
//! * Packets are moved as by [`link::batch`], by one or more workers: a flow stays with one, in order. Super-packets are
//!   segmented behind the session's own headers, and frames of a flow put together whatever other sessions' lie between.
//! * A look-up takes as long with one session as with [`Registry::MOST`], but for the caches of the processor: a probe of a
//!   table and a line of memory for the session, a probe for the address. It takes no lock, nor does it wait: tables are
//!   words that are read one by one, and whoever finds a session being written finds none. (A lock for readers and writers
//!   would be held by workers while control inserts thousands of sessions a second, and a copy of the tables that is swapped
//!   would have to be made for each of them.)
//! * What exceeds the rate of a session, either way, is dropped ([`link::Dropped::OverRate`]), each packet for itself.
//! * Nothing is allocated for a packet. Memory: see [`Registry::memory`]; about 230 bytes a session.
//! * Programs in XDP may forward packets in front of all that, on the same tables (`forwarder.rs`).
//!
//! # Deliberately not here
//!
//! Discovery and negotiation (`crate::pppoe` has their socket); routes of the kernel to the interface; what is sent to all
//! subscribers, such as router advertisements: the interface has no multicast, since no packet has more than one owner.
//!
//! RFC 2516, RFC 2827 (source addresses), RFC 791, RFC 1191, RFC 4443, RFC 8201.

mod forwarder;
mod index;
mod memory;
mod obstacles;
mod rates;
mod registry;
mod routes;
mod slots;
mod view;

pub use forwarder::{Forwarding, Started, Unforwarded};
pub use obstacles::Obstacle;
pub use registry::{Number, Refusal, Registry, Stray};
pub use slots::Usage;
pub use view::View;

pub(crate) use forwarder::{BEAT, Standing};
pub(crate) use slots::Key;

use forwarder::Shared;
use kernel::netlink::{self, Address, Events, Link};
use kernel::socket::Packet;
use kernel::socket::filter::all_or_none;
use kernel::tun::Tun;
use link::batch::{Batch, Below};
use link::datapath::{DataPath, Line, PathError};
use link::frame_size::needed_mtu;
use link::framing::Form;
use link::parent::Admission;
use link::pppoe::{FrameSet, program};
use link::running::{Claim, Event, Seen, Watch, Workers, check_name, find_parent};
use link::{Counted, Counters, Dropped, Error};
use pppoe::concentrator::BitRates;
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use wire::ethernet::MacAddress;
use wire::{VlanPattern, Vlans};

/// A session of a subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    pub vlans: Vlans,
    pub peer: MacAddress,
    /// Session id, 1 to 65534.
    pub id: u16,
    /// The longest packet that the subscriber takes, bytes: the lesser of its MRU and what the parent has room for.
    pub mtu: u16,
    /// Whether the segment sizes that TCP names are lowered to fit it.
    pub mss_clamp: bool,
    /// The subscriber's interface identifier (RFC 5072), which its link-local address ends with; 0: it has none.
    pub identifier: u64,
    /// How much of its packets may pass, each way.
    pub rates: BitRates,
}

/// How many of everything there may be. Their tables have room for so many from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub sessions: usize,
    /// Addresses and prefixes, of each IP version.
    pub prefixes: usize,
}

/// What a concentrator's data path is to be.
#[derive(Clone, Debug)]
pub struct Config {
    pub name: String,
    pub parent: String,
    pub vlans: VlanPattern,
    pub addresses: Vec<Address>,
    /// MTU of the interface, bytes: the longest that any subscriber has.
    pub mtu: u32,
    /// Threads that move packets, at least one.
    pub workers: usize,
    /// How many of everything there may be.
    pub limits: Limits,
    /// Interfaces to the rest of the world between which and the parent programs in XDP forward packets; none: the workers move all.
    pub uplinks: Vec<String>,
}

/// The data path while it is up. The interface is removed when this is dropped.
pub struct Subscribers {
    // Programs go first. Dropped in this order: whoever has the last descriptor of a socket on the parent waits for the kernel, which takes tens of
    // milliseconds; these are the workers, all at the same time. The interface goes with the last that has it open.
    workers: Vec<(Arc<Counters>, Packet)>,
    crew: Workers,
    interface: Tun,
    /// Held as long as it is up, so that no other has its frames.
    claim: Claim,
    parent: Link,
    parent_mtu: Arc<AtomicU32>,
    watch: Watch,
    index: u32,
    config: Config,
    forwarder: Option<Shared>,
}

impl fmt::Debug for Subscribers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Subscribers({}, {} workers)", self.config.name, self.workers.len())
    }
}

impl Subscribers {
    /// Brings the interface up in the network namespace of the calling thread, and starts to move packets, each worker in a
    /// thread of its own. There are no sessions yet: the registry takes them.
    ///
    /// # Errors
    ///
    /// The machine refuses what it takes, or packets cannot be forwarded in XDP where that is requested.
    pub fn up(config: &Config) -> Result<(Subscribers, Registry), crate::Error> {
        let (up, registry) = Subscribers::standby(config)?;
        up.claim()?;
        up.set_local(up.parent.mac.unwrap_or_default())?;
        Ok((up, registry))
    }

    /// Puts programs on the interfaces that forward packets, where that is requested.
    ///
    /// # Errors
    ///
    /// [`Unforwarded`]: the workers move all of them until it can be done.
    pub fn forward(&self) -> Result<Option<Started>, Unforwarded> {
        let started = self.forwarder.as_ref().map(Shared::attach).transpose()?;
        self.outlive();
        Ok(started)
    }

    /// What happened to the programs. To be called four times a second where there are any: they wait for this process for ten seconds.
    pub fn tick(&self) -> Option<Forwarding> {
        let happened = self.forwarder.as_ref()?.tick()?;
        self.outlive();
        Some(happened)
    }

    /// Where programs forward, the interface is there when this process is killed: they ask for the routes that lead to it. Their pins say
    /// to the next process which it is.
    fn outlive(&self) {
        if self.forwarder.as_ref().is_some_and(Shared::is_attached) {
            // Without it, packets wait for the next process.
            let _ = self.interface.set_persistent(true);
        }
    }

    /// Whether programs forward packets, or are to.
    pub(crate) const fn has_programs(&self) -> bool {
        self.forwarder.is_some()
    }

    /// The same next to a process that has the frames: none comes until [`Subscribers::set_local`], and they are not claimed
    /// until [`Subscribers::claim`]. All that either takes is there.
    pub(crate) fn standby(config: &Config) -> Result<(Subscribers, Registry), crate::Error> {
        check_name(&config.name)?;
        let monitor = Events::of_links().map_err(Error::kernel("listen to changes of interfaces"))?;
        let parent = find_parent(&config.parent)?;
        let local = parent.mac.unwrap_or_default();
        let limits = Registry::limits(config.limits);
        let load = || Shared::load(&parent, &config.uplinks, limits.sessions, limits.prefixes);
        let (forwarder, owners) = (!config.uplinks.is_empty()).then(load).transpose()?.unzip();
        let made = Tun::queues(&config.name, Form::Packets, config.workers);
        let (tuns, offloads) = made.map_err(Error::from)?;
        let claim = Claim::new(&config.parent)?;
        let index = configure(config)?;
        forwarder.as_ref().map_or(Ok(()), |forwarder| forwarder.set_interface(&config.name, index))?;
        let interface = match tuns.first() {
            Some(tun) => tun.try_clone().map_err(Error::kernel(format!("keep {}", config.name)))?,
            None => return Err(Error::worker(&config.name).into()),
        };
        let admission = Admission {
            program: all_or_none(false).into(),
            has_tags: config.vlans.has_tags(),
            has_header: true,
        };
        let below = Below { index: parent.index, mtu: parent.mtu };
        let refused = Error::packet_socket(&config.parent);
        let mut registry = Registry::with(limits, local, forwarder.clone());
        registry.owners = owners;
        let parent_mtu = Arc::new(AtomicU32::new(parent.mtu));
        let mut workers = Vec::new();
        let mut paths = Vec::new();
        for path in Batch::<View>::of_sessions(tuns, offloads, below, &admission).map_err(refused)? {
            let counters = Arc::new(Counters::default());
            let observer = path.observer().map_err(Error::kernel("watch the packet socket"))?;
            workers.push((Arc::clone(&counters), observer));
            let line =
                Line { framing: registry.view(), clamp: None, counters, parent_mtu: Arc::clone(&parent_mtu) };
            paths.push((Box::new(path) as Box<dyn DataPath<Line<View>>>, line));
        }
        let crew = Workers::start(paths).map_err(Error::kernel("start threads"))?;
        // A kernel before 5.0 has no carrier to turn off.
        let _ = interface.set_carrier(parent.works());
        let needed = needed_mtu(config.mtu, &config.vlans.encapsulation());
        let watch = Watch::new(monitor, parent.clone(), index, needed);
        let config = config.clone();
        let up = Subscribers {
            crew,
            interface,
            claim,
            workers,
            parent,
            parent_mtu,
            watch,
            index,
            config,
            forwarder,
        };
        Ok((up, registry))
    }

    /// Claims the frames, so that no other process has them as long as this is up.
    ///
    /// # Errors
    ///
    /// [`Error::LineTaken`].
    pub(crate) fn claim(&self) -> Result<(), Error> {
        self.claim.lay(&self.parent, &format!("PPPoE, VLANs {}", self.config.vlans))
    }

    /// Gives the interface another name; whether it had to be set down for it, which takes its routes, as kernels before 6.2
    /// demand. It is up again, with its addresses, when this returns.
    ///
    /// # Errors
    ///
    /// Another interface has the name, or the kernel refuses; the interface is up under its former name where it can be.
    pub(crate) fn rename(&mut self, name: &str) -> Result<bool, Error> {
        let refused = |refusal| Error::refused(format!("name an interface {name}"))(refusal);
        let has_to_be_down = match netlink::rename(self.index, name) {
            Ok(()) => false,
            Err(refusal) if refusal.error.raw_os_error() == Some(libc::EBUSY) => true,
            Err(refusal) => return Err(refused(refusal)),
        };
        if has_to_be_down {
            self.rename_down(name).map_err(refused)?;
        }
        self.config.name = name.to_owned();
        self.forwarder.iter().for_each(|forwarder| forwarder.rename(name));
        Ok(has_to_be_down)
    }

    fn rename_down(&mut self, name: &str) -> Result<(), netlink::Refusal> {
        netlink::set_down(self.index)?;
        self.watch.pass_over_pause();
        let renamed = netlink::rename(self.index, name);
        netlink::set_up(self.index)?;
        self.address_again()?;
        renamed
    }

    /// Adds the addresses that an interface loses which is set down.
    fn address_again(&self) -> Result<(), netlink::Refusal> {
        for address in &self.config.addresses {
            match netlink::add_address(self.index, address) {
                // Those of IPv4 outlive it.
                Err(refusal) if refusal.error.raw_os_error() != Some(libc::EEXIST) => return Err(refusal),
                _ => {}
            }
        }
        Ok(())
    }

    /// What it was to be, under the name that it has now.
    pub(crate) const fn config(&self) -> &Config {
        &self.config
    }

    /// Number of the interface.
    pub(crate) const fn index(&self) -> u32 {
        self.index
    }

    /// MTU of the parent, as it was when it was looked at last.
    pub(crate) fn parent_mtu(&self) -> u32 {
        self.parent_mtu.load(Ordering::Relaxed)
    }

    pub fn counted(&self) -> Counted {
        let mut counted = Counted::default();
        for (counters, observer) in &self.workers {
            // What cannot be read is counted the next time.
            let lost = observer.drops().unwrap_or_default();
            counters.dropped(Dropped::SocketFull, lost.into());
            counted.add(counters.read());
        }
        counted
    }

    /// Readable when something happened to the parent or the interface: [`Subscribers::poll_changes`].
    pub(crate) fn changes(&self) -> BorrowedFd<'_> {
        self.watch.as_fd()
    }

    /// What happened to the parent and the interface since the last call. The interface has a carrier where the parent works, and its
    /// addresses where it is up again.
    /// Where the parent has got another MAC address, frames to it come once `Registry::set_local` and
    /// [`Subscribers::set_local`] know of it.
    pub(crate) fn poll_changes(&mut self) -> Result<Seen, Error> {
        let seen = self.watch.look().map_err(Error::kernel("read changes of interfaces"))?;
        for event in &seen.events {
            match event {
                Event::ParentUp | Event::ParentDown => {
                    let _ = self.interface.set_carrier(*event == Event::ParentUp);
                }
                Event::ParentMtu { now, .. } => {
                    self.parent_mtu.store(*now, Ordering::Relaxed);
                    self.forwarder.iter().for_each(|forwarder| forwarder.set_parent_mtu(*now));
                }
                Event::ParentMac => {}
            }
        }
        if seen.interface == Some(true) {
            self.address_again()
                .map_err(Error::refused(format!("add the addresses of {} again", self.config.name)))?;
        }
        Ok(seen)
    }

    /// Lets frames to this MAC address through, and none to another.
    ///
    /// # Errors
    ///
    /// The kernel takes no filter.
    pub(crate) fn set_local(&self, local: MacAddress) -> Result<(), Error> {
        let program = program(FrameSet::Data, local, &self.config.vlans);
        self.forwarder.iter().for_each(|forwarder| forwarder.set_local(local));
        for (_, socket) in &self.workers {
            socket.set_filter(&program).map_err(Error::kernel("filter frames of PPPoE"))?;
        }
        Ok(())
    }

    /// Readable when a worker cannot go on: [`Subscribers::failure`].
    pub(crate) fn failures(&self) -> BorrowedFd<'_> {
        self.crew.as_fd()
    }

    /// Why a worker cannot go on; waits for that.
    pub(crate) fn failure(&mut self) -> PathError {
        self.crew.failure().err().unwrap_or(PathError::Worker)
    }

    /// Ends it: interface and claim are removed when this returns. Its sockets on the parent, which nobody reads any more, are
    /// the caller's to be closed, since the kernel takes tens of milliseconds for that.
    pub(crate) fn down_but_sockets(self) -> Vec<Packet> {
        let mut this = self;
        this.detach();
        let workers = std::mem::take(&mut this.workers);
        drop(this);
        workers.into_iter().map(|(_, socket)| socket).collect()
    }

    /// Takes the programs off, where there are any.
    fn detach(&mut self) {
        if let Some(forwarder) = self.forwarder.take() {
            let _ = self.interface.set_persistent(false);
            forwarder.detach();
        }
    }

    /// Ends it: the interface is removed when this returns.
    pub fn down(self) -> Counted {
        let counted = self.counted();
        drop(self);
        counted
    }
}

impl Drop for Subscribers {
    fn drop(&mut self) {
        self.detach();
    }
}

/// Gives the interface what it should have, and sets it up; its number.
fn configure(config: &Config) -> Result<u32, Error> {
    let name = &config.name;
    let index = netlink::link_by_name(name).map_err(Error::kernel(format!("look at {name}")))?.index;
    let refused = |what: &str| Error::refused(format!("{what} {name}"));
    netlink::configure(index, config.mtu, None).map_err(refused("set the MTU of"))?;
    // Its link-local address is the one that subscribers get; a kernel without IPv6 makes none anyway.
    let _ = netlink::disable_own_ipv6(index);
    netlink::set_up(index).map_err(refused("set up"))?;
    for address in &config.addresses {
        netlink::add_address(index, address)
            .map_err(|refusal| Error::address(index, name, *address, refusal))?;
    }
    Ok(index)
}

#[cfg(test)]
mod tests;
