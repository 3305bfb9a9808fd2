//! A router at the end of a PPPoE line: frames of many flows in one session, `rxlane link` that takes them out of it, and a
//! second line by which the kernel forwards them.

use crate::frames::{Frames, Played, Playing, play};
use crate::namespace::{Folder, Namespace};
use crate::scenario::program::Staying;
use crate::scenario::router::let_forward;
use crate::scenario::{Error, Means};
use crate::scene::{LINE, ROUTER, Scene};
use std::ops::ControlFlow;
use traffic::{Popularity, Scenario, Sizes};
use wire::ethernet::MacAddress;

/// Octets of a frame without FCS: 18 of payload behind the headers of Ethernet, PPPoE, PPP, IPv4 and UDP.
const SIZE: u16 = 68;
const SESSION: u16 = 1;
/// Who sends on the line.
const CONCENTRATOR: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
/// Receive queues of the pairs' ends, and MTU of the line: a packet of 1492 octets with PPPoE.
const QUEUES: u16 = 4;
const MTU: u16 = 1500;
/// The end of the session, the second line, and where that ends.
const INNER: &str = "line-ppp";
const OUT: &str = "out0";
const FAR: &str = "far0";
/// No station has it: what is forwarded is counted on the router, and dropped at the other end.
const NOBODY: &str = "02:00:00:00:00:99";
/// The same traffic each time.
const SEED: u64 = 1;

/// The router, and what is sent to it.
pub struct Line {
    frames: Frames,
    /// Dropped before the folder with its socket, and both before the namespaces.
    _link: Staying,
    _folder: Folder,
    scene: Scene,
}

impl Line {
    /// Makes all of it, and a frame of each of so many flows.
    pub fn new(flows: u16, means: &Means<'_>) -> Result<Line, Error> {
        let scene = Scene::new(QUEUES, MTU)?;
        let router = scene.router();
        router.veth(OUT, (scene.line(), FAR), QUEUES, MTU)?;
        let folder = Folder::new()?;
        let link = link(router, &folder, means)?;
        // What the traffic is made of: from networks for benchmarks to subscribers (crate traffic).
        for words in [
            &["addr", "add", "192.0.2.1/24", "dev", OUT][..],
            &["neigh", "add", "192.0.2.2", "lladdr", NOBODY, "dev", OUT, "nud", "permanent"],
            &["route", "add", "100.64.0.0/10", "via", "192.0.2.2"],
            &["route", "add", "198.18.0.0/15", "dev", INNER],
        ] {
            router.ip(words)?;
        }
        let_forward(router)?;
        let frames = frames(router, flows)?;
        Ok(Line { frames, _link: link, _folder: folder, scene })
    }

    /// Where it is.
    pub fn namespace(&self) -> &Namespace {
        self.scene.router()
    }

    /// Packets that it has forwarded.
    pub fn forwarded(&self) -> Result<u64, Error> {
        Ok(self.scene.router().counter(OUT, "tx_packets")?)
    }

    /// Sends from one CPU, on which the router's end receives, as fast as it goes.
    pub fn play(&self, cpu: Option<u16>, means: &Means<'_>) -> Result<Played, Error> {
        let playing = Playing {
            interface: LINE,
            shares: vec![self.frames.clone()],
            cpus: cpu.into_iter().collect(),
            rate: None,
            length: Some(means.seconds),
            count: None,
            overhead: 0,
        };
        let played =
            self.scene.on_line(|| play(&playing, None, means.stop, &mut |_| ControlFlow::Continue(())))?;
        played.and_then(Played::whole).map_err(|error| Error::Failed(error.to_string()))
    }
}

fn encapsulation() -> String {
    format!("pppoe:{SESSION}@{CONCENTRATOR}")
}

/// The end of the session.
fn link(router: &Namespace, folder: &Folder, means: &Means<'_>) -> Result<Staying, Error> {
    let mut command = router.command(&means.rxlane);
    command.args(["link", "up", "--parent", ROUTER, "--name", INNER, "--encap", &encapsulation()]);
    command.args(["--mtu", "1492", "--address", "203.0.113.1/32", "--state"]).arg(folder.path());
    Staying::ready(&mut command, "is up over", means.stop)
}

fn frames(router: &Namespace, flows: u16) -> Result<Frames, Error> {
    let station = router.inside(|| kernel::netlink::link_by_name(ROUTER))?.ok().and_then(|link| link.mac);
    let station = station.ok_or_else(|| Error::Failed(format!("{ROUTER} has no MAC address")))?;
    let impossible = |error: &dyn std::error::Error| Error::Failed(format!("frames: {error}"));
    let encapsulation = encapsulation().parse().map_err(|error| impossible(&error))?;
    let mut scenario = Scenario::new(encapsulation).with_flows(flows.into()).data_only();
    scenario.popularity = Popularity::RoundRobin;
    scenario.sizes = Sizes::Fixed(SIZE);
    scenario.ipv6_percent = 0;
    scenario.udp_percent = 100;
    let mut generator = scenario.generate(SEED).map_err(|error| impossible(&error))?;
    let mut frames = Frames::new();
    for _ in 0..flows {
        let mut octets = generator.next_frame().octets.to_vec();
        octets.splice(..6, station.0);
        frames.push(&octets);
    }
    Ok(frames)
}
