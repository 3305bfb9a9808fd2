//! A router that forwards UDP between two lines, and frames for it.

use super::{Error, Means};
use crate::frames::{Frames, Played, Playing, play};
use crate::namespace::Namespace;
use crate::scene::{LINE, ROUTER, Scene};
use std::net::Ipv4Addr;
use std::ops::ControlFlow;
use wire::emit::{Emit, Ethernet, Ipv4, Udp, checksum};
use wire::ethernet::{EtherType, MacAddress};
use wire::ip::IpProtocol;

/// Octets of payload: so few that frames and not octets are the limit.
pub const PAYLOAD: usize = 18;
/// Receive queues of the router on either side, and MTU of its lines, which XDP takes.
const QUEUES: u16 = 4;
const MTU: u16 = 1500;
/// The second line: this end on the router, the other where the first line is.
pub const OUT: &str = "out0";
const FAR: &str = "far0";
/// No station has it: what is forwarded is counted on the router, and dropped at the other end.
const NOBODY: MacAddress = MacAddress([2, 0, 0, 0, 0, 0x99]);
/// A station on each line, and the first of those that send from there.
const STATIONS: [Ipv4Addr; 2] = [Ipv4Addr::new(100, 64, 0, 2), Ipv4Addr::new(198, 18, 0, 2)];
const SOURCES: [Ipv4Addr; 2] = [Ipv4Addr::new(100, 64, 16, 0), Ipv4Addr::new(198, 18, 16, 0)];

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
    scene: Scene,
    /// Frames there, and back.
    frames: [Frames; 2],
}

impl Way {
    /// Where it is sent, where it arrives on the router, and where it leaves.
    const fn interfaces(self) -> [&'static str; 3] {
        match self {
            Way::There => [LINE, ROUTER, OUT],
            Way::Back => [FAR, OUT, ROUTER],
        }
    }
}

impl Router {
    /// Makes all of it, and frames of so many flows each way.
    pub fn new(flows: u16) -> Result<Router, Error> {
        let scene = Scene::new(QUEUES, MTU)?;
        let router = scene.router();
        router.veth(OUT, (scene.line(), FAR), QUEUES, MTU)?;
        for (interface, address, station) in
            [(ROUTER, "100.64.0.1/10", STATIONS[0]), (OUT, "198.18.0.1/15", STATIONS[1])]
        {
            router.ip(&["addr", "add", address, "dev", interface])?;
            let neighbour = ["lladdr", &NOBODY.to_string(), "dev", interface, "nud", "permanent"];
            router.ip(&[&["neigh", "add", &station.to_string()][..], &neighbour].concat())?;
        }
        let forward = router.inside(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1"))?;
        forward.map_err(|error| Error::Failed(format!("net.ipv4.ip_forward: {error}")))?;
        let there = frames(address(router, ROUTER)?, SOURCES[0], STATIONS[1], flows)?;
        let back = frames(address(router, OUT)?, SOURCES[1], STATIONS[0], flows)?;
        Ok(Router { scene, frames: [there, back] })
    }

    /// Where it is.
    pub fn namespace(&self) -> &Namespace {
        self.scene.router()
    }

    /// Frames that it has forwarded this way.
    pub fn forwarded(&self, way: Way) -> Result<u64, Error> {
        let [_, _, out] = way.interfaces();
        Ok(self.scene.router().counter(out, "tx_packets")?)
    }

    /// Sends this way from one CPU, on which the router's end of a veth pair receives: frames a second, or as fast as it goes.
    pub fn play(
        &self,
        way: Way,
        rate: Option<f64>,
        cpu: Option<u16>,
        means: &Means<'_>,
    ) -> Result<Played, Error> {
        let [interface, ..] = way.interfaces();
        let [there, back] = &self.frames;
        let playing = Playing {
            interface,
            shares: vec![if way == Way::There { there.clone() } else { back.clone() }],
            cpus: cpu.into_iter().collect(),
            rate,
            length: Some(means.seconds),
            count: None,
            overhead: 0,
        };
        let played =
            self.scene.on_line(|| play(&playing, None, means.stop, &mut |_| ControlFlow::Continue(())))?;
        played.map_err(|error| Error::Failed(error.to_string()))
    }
}

fn address(router: &Namespace, interface: &str) -> Result<MacAddress, Error> {
    let link = router.inside(|| link::rtnetlink::link_by_name(interface))?;
    let address = link.ok().and_then(|link| link.mac);
    address.ok_or_else(|| Error::Failed(format!("{interface} has no MAC address")))
}

fn frames(router: MacAddress, first: Ipv4Addr, to: Ipv4Addr, flows: u16) -> Result<Frames, Error> {
    let mut frames = Frames::new();
    for flow in 0..flows {
        let source = Ipv4Addr::from(u32::from(first) + u32::from(flow));
        // Behind all ports that have a meaning.
        let port = 1024_u16.saturating_add(flow);
        let frame = frame(router, (source, port), to);
        frames.push(&frame.map_err(|error| Error::Failed(format!("a frame cannot be made: {error}")))?);
    }
    Ok(frames)
}

/// A frame with a UDP datagram for a router to forward.
fn frame(
    router: MacAddress,
    (source, source_port): (Ipv4Addr, u16),
    destination: Ipv4Addr,
) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let length = 20 + 8 + PAYLOAD;
    let mut octets = vec![0; 14 + length];
    let own = MacAddress([2, 0, 0, 0, 0, 1]);
    let ethernet = Ethernet { destination: router, source: own, ethertype: EtherType::IPV4 };
    let ip = Ipv4 {
        traffic_class: 0,
        total_length: u16::try_from(length)?,
        identification: 0,
        dont_fragment: true,
        more_fragments: false,
        fragment_offset: 0,
        ttl: 64,
        protocol: IpProtocol::UDP,
        source,
        destination,
        options: &[],
    };
    let length = u16::try_from(8 + PAYLOAD)?;
    // Discard (RFC 863).
    let udp = Udp { source_port, destination_port: 9, length, checksum: 0 };
    let headers: [&dyn Emit; 3] = [&ethernet, &ip, &udp];
    wire::emit::headers(&headers, &mut octets)?;
    let datagram = octets.get_mut(14 + 20..).unwrap_or_default();
    checksum::fill(source.into(), destination.into(), IpProtocol::UDP, datagram)?;
    Ok(octets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Link, dissect};

    #[test]
    fn frames_are_sound_and_each_is_a_flow() {
        let frames = frames(NOBODY, SOURCES[0], STATIONS[1], 500).expect("frames");
        let mut flows: Vec<_> = frames
            .iter()
            .map(|frame| {
                assert_eq!(frame.len(), 60);
                format!("{:?}", dissect(Link::Ethernet, frame, frame.len()).flow().expect("a flow"))
            })
            .collect();
        flows.sort();
        flows.dedup();
        assert_eq!(flows.len(), 500);
    }
}
