//! A router that forwards UDP between two lines, and frames for it.

mod cable;
mod frame;
mod legs;

pub use cable::Cable;
pub use frame::PAYLOAD;

use super::program::Programs;
use super::{Error, Tools};
use crate::frames::{Frames, Played, Playing, play};
use crate::namespace::{BorrowedNic, Namespace};
use std::io::ErrorKind;
use std::ops::ControlFlow;

const LINE: &str = "line0";
pub const ROUTER: &str = "wan0";
/// The second line: this end on the router, the other where the first line is.
const OUT: &str = "out0";
const FAR: &str = "far0";
/// Receive queues of a veth pair's ends, and their MTU, which XDP takes.
const QUEUES: u16 = 4;
const MTU: u16 = 1500;

/// How both lines reach the router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// Each at an interface of its own.
    Two,
    /// The same, the first a PPPoE session that `rxlane link` terminates.
    Session,
    /// Both as VLANs at one interface, tagged by the kernel's 8021q.
    KernelTrunk,
    /// Both as VLANs at one interface, tagged by `rxlane link`.
    RxlaneTrunk,
}

impl Lines {
    fn is_trunk(self) -> bool {
        matches!(self, Lines::KernelTrunk | Lines::RxlaneTrunk)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// In on the first line, out on the second.
    There,
    Back,
}

impl Way {
    /// Places of the line on which it arrives and of the one on which it leaves.
    const fn lines(self) -> (usize, usize) {
        match self {
            Way::There => (0, 1),
            Way::Back => (1, 0),
        }
    }
}

/// Two lines, and a router that forwards what arrives on them.
pub struct Router {
    /// Where the lines end on the router, for IP: in the order of the lines.
    legs: [String; 2],
    /// The interfaces below, and those at the other ends; the same one twice on a trunk.
    ports: [String; 2],
    stations: [String; 2],
    frames: [Frames; 2],
    /// Dropped before the namespaces.
    links: Option<Programs>,
    borrowed: Vec<BorrowedNic>,
    line: Namespace,
    router: Namespace,
}

/// A counter of an interface that a frame passes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// Whether the interface is the router's, and not of those that send and receive.
    pub is_routers: bool,
    pub interface: String,
    pub counter: &'static str,
    pub frames: u64,
}

impl Router {
    /// With lines of this kind, over physical NICs that are joined by cables, where there are any, or over veth pairs, and
    /// frames of so many flows each way.
    pub fn new(lines: Lines, cables: &[Cable], flows: u16, tools: &Tools<'_>) -> Result<Router, Error> {
        let mut router = Router {
            legs: [ROUTER, OUT].map(str::to_owned),
            ports: [ROUTER, OUT].map(str::to_owned),
            stations: [LINE, FAR].map(str::to_owned),
            frames: [Frames::new(), Frames::new()],
            links: None,
            borrowed: Vec::new(),
            line: Namespace::new("line")?,
            router: Namespace::new("router")?,
        };
        router.join(lines, cables, tools)?;
        router.make_legs(lines, tools)?;
        router.give_addresses()?;
        forward(&router.router)?;
        router.frames = router.make_frames(lines, flows)?;
        Ok(router)
    }

    /// Joins the router's interfaces with those at the other end.
    fn join(&mut self, lines: Lines, cables: &[Cable], tools: &Tools<'_>) -> Result<(), Error> {
        for at in 0..if lines.is_trunk() { 1 } else { 2 } {
            if let Some(cable) = cables.get(at) {
                self.borrowed.extend(cable.plug(&self.line, &self.router, tools)?);
                (self.stations[at], self.ports[at]) = (cable.line.clone(), cable.router.clone());
            } else {
                self.router.veth(&self.ports[at], (&self.line, &self.stations[at]), QUEUES, MTU)?;
            }
        }
        if lines.is_trunk() {
            (self.ports[1], self.stations[1]) = (self.ports[0].clone(), self.stations[0].clone());
        }
        Ok(())
    }

    pub fn namespace(&self) -> &Namespace {
        &self.router
    }

    pub fn ports(&self) -> impl Iterator<Item = &str> {
        let count = if self.ports[0] == self.ports[1] { 1 } else { 2 };
        self.ports.iter().take(count).map(String::as_str)
    }

    /// Frames that it has forwarded this way, as it counts them itself.
    pub fn forwarded(&self, way: Way) -> Result<u64, Error> {
        let (_, out) = way.lines();
        Ok(self.router.counter(&self.legs[out], "tx_packets")?)
    }

    /// Frames that have arrived at the other ends of these ways: what RFC 2544 counts. On a trunk both ways end at one
    /// interface.
    pub fn arrived(&self, ways: &[Way]) -> Result<u64, Error> {
        let mut stations: Vec<&String> = ways.iter().map(|way| &self.stations[way.lines().1]).collect();
        stations.dedup();
        stations.into_iter().map(|station| Ok(self.line.counter(station, "rx_packets")?)).sum()
    }

    /// What each interface that a frame passes has counted, in the order of the way.
    pub fn passed(&self, way: Way) -> Result<Vec<Passed>, Error> {
        let (into, out) = way.lines();
        let mut all = vec![
            (false, &self.stations[into], "tx_packets"),
            (true, &self.ports[into], "rx_packets"),
            (true, &self.legs[into], "rx_packets"),
            (true, &self.legs[out], "tx_packets"),
            (true, &self.ports[out], "tx_packets"),
            (false, &self.stations[out], "rx_packets"),
        ];
        all.dedup();
        let read = |(is_routers, interface, counter): (bool, &String, &'static str)| {
            let namespace = if is_routers { &self.router } else { &self.line };
            let frames = namespace.counter(interface, counter)?;
            Ok(Passed { is_routers, interface: interface.clone(), counter, frames })
        };
        all.into_iter().map(read).collect()
    }

    /// Sets one of the interfaces down and up again, as whoever has a stalled NIC does.
    pub fn restart(&self, passed: &Passed, tools: &Tools<'_>) -> Result<(), Error> {
        let namespace = if passed.is_routers { &self.router } else { &self.line };
        for state in ["down", "up"] {
            namespace.ip(&["link", "set", "dev", &passed.interface, state])?;
        }
        cable::await_carrier(namespace, &passed.interface, tools)?;
        // What was permanent went when the interface did.
        self.set_neighbours()
    }

    /// Sends frames this way, as `playing` says. From one CPU, the router's end of a veth pair receives on that one.
    pub fn play(&self, way: Way, playing: Playing<'_>, tools: &Tools<'_>) -> Result<Played, Error> {
        let (into, _) = way.lines();
        let shares = vec![self.frames[into].clone()];
        let playing = Playing { interface: &self.stations[into], shares, ..playing };
        let played =
            self.line.inside(|| play(&playing, None, tools.stop, &mut |_| ControlFlow::Continue(())))?;
        played.and_then(Played::whole).map_err(|error| Error::Failed(error.to_string()))
    }
}

/// Lets the kernel of a namespace forward IPv4 packets. Where `/proc/sys` cannot be written, as in many containers, the
/// machine lacks that.
fn forward(namespace: &Namespace) -> Result<(), Error> {
    let forward = namespace.inside(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1"))?;
    forward.map_err(|error| match error.kind() {
        ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => Error::Lacks(format!(
            "net.ipv4.ip_forward: {error}; a router needs a /proc/sys that can be written, which a container has when it is privileged"
        )),
        _ => Error::Failed(format!("net.ipv4.ip_forward: {error}")),
    })
}
