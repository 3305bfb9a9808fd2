//! A router that forwards UDP between two lines, and frames for it.

mod cable;
mod frame;
mod legs;

pub use cable::Cable;
pub use frame::PAYLOAD;

use super::program::Staying;
use super::{Error, Means};
use crate::frames::{Frames, Played, Playing, play};
use crate::namespace::{Folder, Lent, Namespace};
use crate::scene::{LINE, ROUTER};
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::time::Duration;

/// The second line: this end on the router, the other where the first line is.
const OUT: &str = "out0";
const FAR: &str = "far0";
/// Receive queues of a veth pair's ends, and their MTU, which XDP takes.
const QUEUES: u16 = 4;
const MTU: u16 = 1500;

/// How both lines come to the router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// Each to an interface of its own.
    Two,
    /// Both as VLANs to one interface.
    Trunk(Tagger),
}

/// Who adds and removes the router's tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tagger {
    /// The kernel's 8021q.
    Kernel,
    /// `rxlane link`.
    Rxlane,
}

/// A way through the router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// In by the first line, out by the second.
    There,
    /// The other way.
    Back,
}

/// Two lines, and a router that forwards what comes from them.
pub struct Router {
    /// Where the lines end on the router, for IP: in the order of the lines.
    legs: [String; 2],
    /// The interfaces below, and those at the other ends; the same one twice on a trunk.
    ports: [String; 2],
    stations: [String; 2],
    /// Frames there, and back.
    frames: [Frames; 2],
    /// Dropped before the folder with their sockets, and all before the namespaces.
    links: Vec<Staying>,
    folders: Vec<Folder>,
    lent: Vec<Lent>,
    line: Namespace,
    router: Namespace,
}

/// A counter of an interface that a frame passes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// Whether the interface is the router's, and not of those that send and receive.
    pub is_routers: bool,
    /// The interface.
    pub interface: String,
    /// Name of the counter.
    pub counter: &'static str,
    /// Its value.
    pub frames: u64,
}

impl Way {
    /// Places of the line by which it comes in and of the one by which it leaves.
    const fn lines(self) -> (usize, usize) {
        match self {
            Way::There => (0, 1),
            Way::Back => (1, 0),
        }
    }
}

/// Lets the kernel of a namespace forward IPv4 packets.
///
/// # Errors
///
/// It does not; where `/proc/sys` cannot be written, as in many containers, the machine lacks that.
pub fn let_forward(namespace: &Namespace) -> Result<(), Error> {
    let forward = namespace.inside(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1"))?;
    forward.map_err(|error| match error.kind() {
        ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => Error::Lacks(format!(
            "net.ipv4.ip_forward: {error}; a router takes a /proc/sys that can be written, which a container has when it is privileged"
        )),
        _ => Error::Failed(format!("net.ipv4.ip_forward: {error}")),
    })
}

impl Router {
    /// Between two veth pairs, with frames of so many flows each way.
    pub fn new(flows: u16) -> Result<Router, Error> {
        Router::between(Lines::Two, &[], flows, None)
    }

    /// With lines of this kind, over adapters that are joined by cables, where there are any, or over veth pairs.
    pub fn with(lines: Lines, cables: &[Cable], flows: u16, means: &Means<'_>) -> Result<Router, Error> {
        Router::between(lines, cables, flows, Some(means))
    }

    fn between(
        lines: Lines,
        cables: &[Cable],
        flows: u16,
        means: Option<&Means<'_>>,
    ) -> Result<Router, Error> {
        let mut router = Router {
            legs: [ROUTER, OUT].map(str::to_owned),
            ports: [ROUTER, OUT].map(str::to_owned),
            stations: [LINE, FAR].map(str::to_owned),
            frames: [Frames::new(), Frames::new()],
            links: Vec::new(),
            folders: Vec::new(),
            lent: Vec::new(),
            line: Namespace::new("line")?,
            router: Namespace::new("router")?,
        };
        router.join(if lines == Lines::Two { 2 } else { 1 }, cables)?;
        router.make_legs(lines, means)?;
        router.give_addresses()?;
        let_forward(&router.router)?;
        router.frames = router.make_frames(lines, flows)?;
        Ok(router)
    }

    /// Joins so many interfaces of the router with as many at the other end.
    fn join(&mut self, count: usize, cables: &[Cable]) -> Result<(), Error> {
        for at in 0..count {
            if let Some(cable) = cables.get(at) {
                self.lent.extend(cable.plug(&self.line, &self.router)?);
                (self.stations[at], self.ports[at]) = (cable.line.clone(), cable.router.clone());
            } else {
                self.router.veth(&self.ports[at], (&self.line, &self.stations[at]), QUEUES, MTU)?;
            }
        }
        if count == 1 {
            (self.ports[1], self.stations[1]) = (self.ports[0].clone(), self.stations[0].clone());
        }
        Ok(())
    }

    /// Where it is.
    pub fn namespace(&self) -> &Namespace {
        &self.router
    }

    /// Its interfaces that frames come to, each once.
    pub fn ports(&self) -> impl Iterator<Item = &str> {
        let count = if self.ports[0] == self.ports[1] { 1 } else { 2 };
        self.ports.iter().take(count).map(String::as_str)
    }

    /// Frames that it has forwarded this way, as it counts them itself.
    pub fn forwarded(&self, way: Way) -> Result<u64, Error> {
        let (_, out) = way.lines();
        Ok(self.router.counter(&self.legs[out], "tx_packets")?)
    }

    /// Frames that have come to the other ends of these ways: what RFC 2544 counts. On a trunk both ways end at one interface.
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

    /// Sets one of the interfaces down and up again, as whoever has a wedged adapter does.
    pub fn restart(&self, passed: &Passed) -> Result<(), Error> {
        let namespace = if passed.is_routers { &self.router } else { &self.line };
        namespace.ip(&["link", "set", "dev", &passed.interface, "down"])?;
        namespace.ip(&["link", "set", "dev", &passed.interface, "up"])?;
        cable::await_carrier(namespace, &passed.interface)?;
        // What was permanent went when the interface did.
        self.know_neighbours()
    }

    /// Sends this way from one CPU, on which the router's end of a veth pair receives: frames a second, or as fast as it goes.
    pub fn play(
        &self,
        way: Way,
        rate: Option<f64>,
        cpu: Option<u16>,
        means: &Means<'_>,
    ) -> Result<Played, Error> {
        self.send(way, (rate, Some(means.seconds), None), cpu, means)
    }

    /// Sends so many frames this way at a rate.
    pub fn probe(&self, way: Way, count: u64, rate: f64, means: &Means<'_>) -> Result<Played, Error> {
        self.send(way, (Some(rate), None, Some(count)), None, means)
    }

    fn send(
        &self,
        way: Way,
        (rate, length, count): (Option<f64>, Option<Duration>, Option<u64>),
        cpu: Option<u16>,
        means: &Means<'_>,
    ) -> Result<Played, Error> {
        let (into, _) = way.lines();
        let playing = Playing {
            interface: &self.stations[into],
            shares: vec![self.frames[into].clone()],
            cpus: cpu.into_iter().collect(),
            rate,
            length,
            count,
            overhead: 0,
        };
        let played =
            self.line.inside(|| play(&playing, None, means.stop, &mut |_| ControlFlow::Continue(())))?;
        played.and_then(Played::whole).map_err(|error| Error::Failed(error.to_string()))
    }
}
