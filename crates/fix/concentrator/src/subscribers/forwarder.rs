//! Packets of subscribers that programs in XDP forward, in front of the workers.
//!
//! # Contract
//!
//! * Programs and workers have the same sessions, in memory that they share ([`super::memory`]), and whose an address is the registry
//!   writes for both. What the programs do not forward, for whatever reason, takes the way of the workers.
//! * They forward while this process beats ([`Forwarder::tick`]), and as long as nothing stands in the way that the kernel would do
//!   to packets besides: [`Obstacle`].
//! * They are off the interfaces when this is detached. Where the process is killed, they forward on for ten seconds, in which the next
//!   one can take their place.

use super::index::Index;
use super::obstacles::{Obstacle, hidden_tags, present, shapers};
use crate::error::Error;
use kernel::netlink::{self, Link};
use link::running::find_parent;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use wire::ethernet::{self, MacAddress};
use wire::vlan::TAG_LENGTH;
use xdp::subscribers::{Attached, Owners, Place, Programs, WayCounts};
use xdp::subscribers_layout::UPLINKS_MOST;
use xdp::{Interface, Mode};

/// How often programs hear that this process lives; they wait for ten seconds.
pub(crate) const BEAT: Duration = Duration::from_millis(250);
/// How often interfaces are looked at, and rules.
const LOOK: Duration = Duration::from_secs(1);
/// Longer than a program runs for a packet.
const GRACE: Duration = Duration::from_millis(1);

/// Why nothing is forwarded in XDP.
#[derive(Debug, thiserror::Error)]
pub enum Unforwarded {
    #[error("--uplink {name}: {why}")]
    Uplink { name: String, why: Box<link::Error> },
    #[error(
        "--uplink {0}: that is the interface with the lines of the subscribers; an uplink is another one"
    )]
    Lines(String),
    #[error("--uplink: {0} are too many, {UPLINKS_MOST} the most")]
    Uplinks(usize),
    #[error(transparent)]
    Obstacle(#[from] Obstacle),
    #[error(transparent)]
    Program(Box<xdp::Error>),
}

impl From<xdp::Error> for Unforwarded {
    fn from(error: xdp::Error) -> Unforwarded {
        Unforwarded::Program(Box::new(error))
    }
}

/// What is to be known of forwarding from its start on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Started {
    /// Shapers that packets do not pass: interface, and kind.
    pub shapers: Vec<(String, String)>,
    /// Why the kernel runs the programs for socket buffers, where drivers could not.
    pub generic: Option<String>,
}

/// What happened to forwarding.
#[derive(Debug)]
pub enum Forwarding {
    Started(Started),
    /// Packets take the other way from now on.
    Paused(Unforwarded),
    Resumed,
}

/// How it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    /// `None`: the programs are on no interface.
    pub mode: Option<Mode>,
    pub uplinks: Vec<String>,
    /// Why nothing is forwarded.
    pub paused: Option<String>,
    /// From subscribers and to them.
    pub counts: [WayCounts; 2],
}

/// The programs and what they need. See the module.
#[derive(Debug)]
struct Forwarder {
    programs: Programs,
    /// The name of the interface of all subscribers.
    name: String,
    lines: Place,
    uplinks: Vec<Place>,
    attached: Option<(Attached, Mode)>,
    paused: Option<String>,
    beaten: Option<Instant>,
    looked: Option<Instant>,
}

/// It, by those who need it.
#[derive(Clone, Debug)]
pub(crate) struct Shared(Arc<Mutex<Forwarder>>);

impl Shared {
    /// Everything but on the interfaces: `parent` has the lines, and the uplinks have these names. Also gives who writes whose an
    /// address is.
    ///
    /// # Errors
    ///
    /// [`Unforwarded`].
    pub(crate) fn load(
        parent: &Link,
        uplinks: &[String],
        sessions: usize,
        prefixes: usize,
    ) -> Result<(Shared, Owners), Error> {
        let lines = place(&parent.name)?;
        let mut places: Vec<Place> = Vec::new();
        for name in uplinks {
            if *name == parent.name {
                return Err(Unforwarded::Lines(name.clone()).into());
            }
            let named = |why| Unforwarded::Uplink { name: name.clone(), why: Box::new(why) };
            find_parent(name).map_err(named)?;
            let place = place(name)?;
            if !places.contains(&place) {
                places.push(place);
            }
        }
        if places.len() > UPLINKS_MOST {
            return Err(Unforwarded::Uplinks(places.len()).into());
        }
        let names: Vec<&str> =
            std::iter::once(&lines).chain(&places).map(|place| &*place.interface.name).collect();
        hidden_tags(&names).map_or(Ok(()), |obstacle| Err(Unforwarded::from(obstacle)))?;
        let (programs, owners) =
            Programs::load(sessions as u32, prefixes as u32, Index::size(prefixes) as u32)
                .map_err(Unforwarded::from)?;
        let forwarder = Forwarder {
            programs,
            name: String::new(),
            lines,
            uplinks: places,
            attached: None,
            paused: None,
            beaten: None,
            looked: None,
        };
        forwarder.set_parent_mtu(parent.mtu);
        Ok((Shared(Arc::new(Mutex::new(forwarder))), owners))
    }

    fn forwarder(&self) -> MutexGuard<'_, Forwarder> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The memory of sessions.
    pub(crate) fn sessions(&self) -> Arc<kernel::bpf::SharedWords> {
        self.forwarder().programs.sessions()
    }

    /// The memory of the index of IPv4.
    pub(super) fn index(&self) -> Arc<kernel::bpf::SharedWords> {
        self.forwarder().programs.index()
    }

    /// What addresses of IPv4 are hashed by in it.
    pub(super) fn set_seed(&self, seed: [u64; 2]) {
        self.forwarder().programs.set_seed(seed);
    }

    /// The interface of all subscribers.
    ///
    /// # Errors
    ///
    /// [`Obstacle`]: nothing could be forwarded.
    pub(crate) fn set_interface(&self, name: &str, index: u32) -> Result<(), Unforwarded> {
        let mut forwarder = self.forwarder();
        name.clone_into(&mut forwarder.name);
        forwarder.programs.set_interface(index);
        forwarder.obstacle().map_or(Ok(()), |obstacle| Err(obstacle.into()))
    }

    /// The interface of all subscribers has got another name.
    pub(crate) fn rename(&self, name: &str) {
        name.clone_into(&mut self.forwarder().name);
    }

    pub(crate) fn set_parent_mtu(&self, mtu: u32) {
        self.forwarder().set_parent_mtu(mtu);
    }

    /// Frames to this MAC address are for this station from now on.
    pub(crate) fn set_local(&self, local: MacAddress) {
        let mut forwarder = self.forwarder();
        forwarder.lines.station = local;
        forwarder.programs.set_lines(&forwarder.lines);
    }

    /// Puts the programs on the interfaces, and has them begin.
    ///
    /// # Errors
    ///
    /// [`Unforwarded`]: packets take the other way until the next try of [`Shared::tick`].
    pub(crate) fn attach(&self) -> Result<Started, Unforwarded> {
        let mut forwarder = self.forwarder();
        let started = forwarder.attach();
        forwarder.looked = Some(Instant::now());
        match &started {
            Ok(_) => forwarder.beat(),
            Err(why) => forwarder.paused = Some(why.to_string()),
        }
        started
    }

    /// Takes them off: nothing is forwarded or counted any more when this returns.
    pub(crate) fn detach(&self) {
        let mut forwarder = self.forwarder();
        forwarder.programs.pause();
        if forwarder.attached.take().is_some() {
            // A packet may be on its way through a program still.
            thread::sleep(GRACE);
        }
    }

    pub(crate) fn is_attached(&self) -> bool {
        self.forwarder().attached.is_some()
    }

    /// To be called every [`BEAT`]: what happened.
    pub(crate) fn tick(&self) -> Option<Forwarding> {
        let mut forwarder = self.forwarder();
        let mut happened = None;
        if forwarder.looked.is_none_or(|looked| looked.elapsed() >= LOOK) {
            forwarder.looked = Some(Instant::now());
            happened = forwarder.look();
        }
        if forwarder.paused.is_none() && forwarder.beaten.is_none_or(|beaten| beaten.elapsed() >= BEAT) {
            forwarder.beat();
        }
        happened
    }

    /// Runs a program on a frame that arrives by an interface.
    #[cfg(test)]
    pub(super) fn run(&self, way: xdp::subscribers::Way, frame: &[u8], interface: u32) -> (u32, Vec<u8>) {
        let forwarder = self.forwarder();
        forwarder.programs.beat();
        forwarder.programs.run(way, frame, interface).expect("a run")
    }

    pub(crate) fn standing(&self) -> Standing {
        let forwarder = self.forwarder();
        Standing {
            mode: forwarder.attached.as_ref().map(|(_, mode)| *mode),
            uplinks: forwarder.uplinks.iter().map(|uplink| uplink.interface.name.clone()).collect(),
            paused: forwarder.paused.clone(),
            counts: forwarder.programs.counts().unwrap_or_default(),
        }
    }
}

impl Forwarder {
    fn set_parent_mtu(&self, mtu: u32) {
        // With a tag, which the first is where Linux lets it be (is_skb_forwardable() and xdp_ok_fwd_dev() of the kernel).
        self.programs.set_longest(mtu.saturating_add((ethernet::Header::LENGTH + TAG_LENGTH) as u32));
    }

    fn beat(&mut self) {
        self.programs.beat();
        self.beaten = Some(Instant::now());
    }

    fn obstacle(&self) -> Option<Obstacle> {
        let uplinks = self.uplinks.iter().map(|uplink| uplink.interface.name.as_str());
        let names: Vec<&str> =
            [&*self.name, &*self.lines.interface.name].into_iter().chain(uplinks).collect();
        present(&names)
    }

    fn attach(&mut self) -> Result<Started, Unforwarded> {
        self.obstacle().map_or(Ok(()), |obstacle| Err(Unforwarded::from(obstacle)))?;
        let generic = match self.attach_native() {
            Ok(()) => None,
            Err(xdp::Error::Lacks(why)) => {
                let attached = self.programs.attach(&self.lines, &self.uplinks, Mode::Generic)?;
                self.attached = Some((attached, Mode::Generic));
                Some(why)
            }
            Err(error) => return Err(error.into()),
        };
        let all = std::iter::once(&self.lines).chain(&self.uplinks).map(|place| &place.interface);
        let all: Vec<(u32, &str)> = all.map(|interface| (interface.index, &*interface.name)).collect();
        Ok(Started { shapers: shapers(&all), generic })
    }

    /// In the drivers, which have to send what is redirected to them, too.
    fn attach_native(&mut self) -> Result<(), xdp::Error> {
        let attached = self.programs.attach(&self.lines, &self.uplinks, Mode::Native)?;
        // Drivers say so with a program on them.
        if let Some(place) = self.lost() {
            return Err(xdp::Error::Lacks(no_target(place)));
        }
        self.attached = Some((attached, Mode::Native));
        Ok(())
    }

    /// An interface that does not send what XDP hands to it.
    fn lost(&self) -> Option<&Place> {
        std::iter::once(&self.lines)
            .chain(&self.uplinks)
            .find(|place| !xdp::is_redirect_target(&place.interface.name))
    }

    /// Looks at interfaces and rules, and forwards or not.
    fn look(&mut self) -> Option<Forwarding> {
        for uplink in &mut self.uplinks {
            let is_known = netlink::link_by_index(uplink.interface.index).is_ok();
            if let Ok(now) = place(&uplink.interface.name) {
                // One of this name was made anew, and has no program.
                if !is_known {
                    self.attached = None;
                    *uplink = now;
                } else if now.interface == uplink.interface {
                    uplink.station = now.station;
                }
            }
        }
        self.programs.set_uplinks(&self.uplinks);
        let obstacle = match &self.attached {
            Some((_, Mode::Native)) => self.lost().map(|place| xdp::Error::Lacks(no_target(place)).into()),
            _ => None,
        };
        let obstacle = obstacle.or_else(|| self.obstacle().map(Unforwarded::from));
        if let Some(why) = obstacle {
            self.programs.pause();
            let is_known = self.paused.replace(why.to_string()).is_some_and(|known| known == why.to_string());
            return (!is_known).then_some(Forwarding::Paused(why));
        }
        if self.attached.is_none()
            && let Err(why) = self.attach()
        {
            let is_known = self.paused.replace(why.to_string()).is_some_and(|known| known == why.to_string());
            return (!is_known).then_some(Forwarding::Paused(why));
        }
        self.paused.take().map(|_| Forwarding::Resumed)
    }
}

/// An interface as it is now.
fn place(name: &str) -> Result<Place, Error> {
    let link = find_parent(name)?;
    let interface = Interface::find(name).map_err(Unforwarded::from)?;
    let is_virtual = link.kind.as_deref() == Some("veth");
    Ok(Place { interface, station: link.mac.unwrap_or_default(), is_virtual })
}

fn no_target(place: &Place) -> String {
    xdp::no_redirect_target(&place.interface.name, place.is_virtual)
}
