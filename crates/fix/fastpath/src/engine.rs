//! What the daemon does with every event: the flows that are installed follow conntrack, and all that routes and frames depend
//! on.

mod change;
mod follow;
mod keep;
mod write;

use crate::connection::{Established, Found, Tuple};
use crate::counted::Counted;
use crate::error::Error;
use crate::flows::Flows;
use crate::next_hops::NextHops;
use crate::ports::Ports;
use crate::selectors::Selectors;
use crate::topology::{Overlay, Topology};
use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};
use keep::Timeouts;
use kernel::netlink::netfilter::conntrack::{Keep, Update};
use kernel::netlink::{self, Routes};
use kernel::sysctl;
use rustix::time::{ClockId, clock_gettime};
use std::time::Instant;
use xdp::forward::Forwarding;

/// Flows that are resolved anew between two looks at what else happened.
const PIECE: usize = 512;

/// What is below the interfaces of rxlane's own programs.
pub type Overlays = Box<dyn Fn(&str) -> Option<Overlay> + Send>;

/// The flows, and what they stand on.
pub struct Engine {
    program: Forwarding,
    ports: Ports,
    topology: Topology,
    routes: Routes,
    keep: Keep,
    /// Changes to report to conntrack.
    updates: Vec<Update>,
    selectors: Selectors,
    overlays: Overlays,
    flows: Flows,
    next_hops: NextHops,
    most: usize,
    /// Flows of another generation are passed to the kernel.
    generation: u32,
    /// Whether changes are known after which everything has to be resolved anew.
    is_outdated: bool,
    /// Connections to be resolved anew.
    again: Vec<Tuple>,
    /// Connections whose obstacle may go by itself, and since when they wait.
    waiting: HashMap<Tuple, (Established, Instant)>,
    /// Connections whose obstacle goes with a change of interfaces, routes or rules: a line that is down is up again.
    hindered: HashMap<Tuple, Established>,
    /// Connections that were listed and not looked at yet: without an event since then they are as they were listed.
    listed: HashMap<Tuple, Found>,
    /// Those that began before anybody listened, so that no event may come of them, not even of their end.
    earlier: HashSet<Tuple>,
    /// Those of them that are queried instead.
    silent: Vec<Tuple>,
    timeouts: Timeouts,
    /// Up to which number the use of flows was read in this turn.
    read_to: usize,
    counted: Counted,
}

impl Engine {
    /// With a program that is on no port yet.
    ///
    /// # Errors
    ///
    /// The kernel does not say what stands on what, or does not list connections.
    pub fn new(
        program: Forwarding,
        ports: Ports,
        most: usize,
        overlays: Overlays,
        keep: Keep,
    ) -> Result<Engine, Error> {
        let mut engine = Engine {
            program,
            ports,
            topology: Topology::default(),
            routes: Routes::open().map_err(|error| Error::asking("routes")(error.into()))?,
            keep,
            updates: Vec::new(),
            selectors: Selectors::default(),
            overlays,
            flows: Flows::default(),
            next_hops: NextHops::with_places(next_hop_places(most)),
            most,
            generation: 1,
            is_outdated: false,
            again: Vec::new(),
            waiting: HashMap::new(),
            hindered: HashMap::new(),
            listed: HashMap::new(),
            earlier: HashSet::new(),
            silent: Vec::new(),
            timeouts: Timeouts::read(),
            read_to: 0,
            counted: Counted::default(),
        };
        engine.read_route_tos()?;
        engine.read_machine()?;
        engine.beat()?;
        engine.list()?;
        if !notifies_of_all() {
            engine.earlier = engine.listed.keys().copied().collect();
        }
        Ok(engine)
    }

    /// With very many routes this takes seconds: at the start, and after changes were lost.
    fn read_route_tos(&mut self) -> Result<(), Error> {
        self.selectors.set_route_tos(netlink::route_tos().map_err(Error::asking("routes"))?);
        Ok(())
    }

    fn read_machine(&mut self) -> Result<(), Error> {
        self.topology = Topology::read(&self.overlays).map_err(Error::asking("interfaces"))?;
        let rules = netlink::rules().map_err(Error::asking("rules of routing"))?;
        self.selectors.set_rules(&rules);
        self.ports.find_lines(&self.topology);
        Ok(())
    }

    /// Says to the program that this process is alive.
    ///
    /// # Errors
    ///
    /// The kernel refuses to write the map.
    pub fn beat(&mut self) -> Result<(), Error> {
        Ok(self.program.beat(self.generation)?)
    }

    /// The program.
    pub fn program(&self) -> &Forwarding {
        &self.program
    }

    /// The flows that are installed.
    pub fn flows(&self) -> &Flows {
        &self.flows
    }

    /// What was counted.
    pub fn counted(&self) -> &Counted {
        &self.counted
    }

    /// The ports.
    pub fn ports(&self) -> &Ports {
        &self.ports
    }

    /// The name of an interface.
    pub fn name(&self, interface: u32) -> String {
        let link = self.topology.links.get(&interface);
        link.map_or_else(|| interface.to_string(), |link| link.name.clone())
    }

    /// How many connections wait for a neighbour or a place, and how many next hops there are.
    pub fn waiting(&self) -> (usize, usize) {
        (self.waiting.len(), self.next_hops.len())
    }
}

/// Whether events come of connections that began before anybody listened, too (`nf_ct_ecache_ext_add()` in
/// net/netfilter/nf_conntrack_ecache.c, Linux 5.19).
fn notifies_of_all() -> bool {
    sysctl::net("netfilter/nf_conntrack_events") == Some(1)
}

/// Places for next hops: stations are far fewer than flows.
pub fn next_hop_places(flows: usize) -> u32 {
    u32::try_from(flows / 4).unwrap_or(u32::MAX).clamp(1024, 65_536)
}

/// The monotonic clock, by which the program says when a flow was used: nanoseconds.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    (now.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(now.tv_nsec as u64)
}
