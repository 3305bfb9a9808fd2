//! Where lines end on the router: interfaces, VLANs of one, or a PPPoE session; their addresses and neighbours.

use super::super::program::{Programs, Running};
use super::super::{Error, Tools};
use super::frame::{SENDER, frames};
use super::{Lines, Router};
use crate::frames::Frames;
use crate::namespace::{Folder, Namespace};
use std::net::Ipv4Addr;
use wire::ethernet::MacAddress;

/// VIDs of the lines on a trunk, and the router's interfaces of them; the session, and its interface.
const VIDS: [u16; 2] = [10, 20];
const LEGS: [&str; 2] = ["leg1", "leg2"];
const SESSION: u16 = 1;
const INNER: &str = "line-ppp";
/// Of the IP packets behind a tag: far more than is sent, and fits whatever the NIC lets through; of those in a session.
const MTU: &str = "1400";
const SESSION_MTU: &str = "1492";
/// The router's addresses on the lines (RFC 6598, RFC 2544 appendix C.2.2), a station on each, and the first of those that
/// send from there.
const ADDRESSES: [&str; 2] = ["100.64.0.1/10", "198.18.0.1/15"];
const STATIONS: [Ipv4Addr; 2] = [Ipv4Addr::new(100, 64, 0, 2), Ipv4Addr::new(198, 18, 0, 2)];
const SOURCES: [Ipv4Addr; 2] = [Ipv4Addr::new(100, 64, 16, 0), Ipv4Addr::new(198, 18, 16, 0)];
/// No station has it: what is forwarded is counted at the other end, and dropped.
const NOBODY: MacAddress = MacAddress([2, 0, 0, 0, 0, 0x99]);

impl Router {
    pub(super) fn make_legs(&mut self, lines: Lines, tools: &Tools<'_>) -> Result<(), Error> {
        self.legs = if lines.is_trunk() { LEGS.map(str::to_owned) } else { self.ports.clone() };
        match lines {
            Lines::Two => {}
            Lines::Session => {
                let session = format!("pppoe:{SESSION}@{SENDER}");
                self.legs[0] = INNER.to_owned();
                self.links = Some(self.link(&[(INNER, session)], SESSION_MTU, tools)?);
            }
            Lines::KernelTrunk => {
                for (leg, vid) in LEGS.iter().zip(VIDS) {
                    let device = ["link", "add", "link", &self.ports[0], "name", leg, "type", "vlan", "id"];
                    self.router.ip(&[&device[..], &[&vid.to_string()]].concat())?;
                    self.router.ip(&["link", "set", "dev", leg, "mtu", MTU, "up"])?;
                }
            }
            Lines::RxlaneTrunk => {
                let tags = VIDS.map(|vid| format!("q:{vid}"));
                let legs: Vec<(&str, String)> = LEGS.into_iter().zip(tags).collect();
                self.links = Some(self.link(&legs, MTU, tools)?);
            }
        }
        Ok(())
    }

    /// Makes interfaces by `rxlane link` on the first port.
    fn link(&self, legs: &[(&str, String)], mtu: &str, tools: &Tools<'_>) -> Result<Programs, Error> {
        let (folder, mut links) = (Folder::new()?, Vec::new());
        for (leg, encapsulation) in legs {
            let mut command = self.router.command(&tools.rxlane);
            command.args(["link", "up", "--parent", &self.ports[0], "--name", leg, "--mtu", mtu]);
            command.args(["--encap", encapsulation, "--state"]).arg(folder.path().join(leg));
            links.push(Running::ready(&mut command, "is up over", tools.stop)?);
        }
        Ok((links, folder))
    }

    pub(super) fn give_addresses(&self) -> Result<(), Error> {
        for (leg, address) in self.legs.iter().zip(ADDRESSES) {
            self.router.ip(&["addr", "add", address, "dev", leg])?;
        }
        self.set_neighbours()
    }

    /// So that no neighbour has to be resolved. A session has none.
    pub(super) fn set_neighbours(&self) -> Result<(), Error> {
        for (leg, station) in self.legs.iter().zip(STATIONS).filter(|(leg, _)| *leg != INNER) {
            let neighbour = ["lladdr", &NOBODY.to_string(), "dev", leg, "nud", "permanent"];
            self.router.ip(&[&["neigh", "replace", &station.to_string()][..], &neighbour].concat())?;
        }
        Ok(())
    }

    /// Frames there, and back. Those of a session go to the address of the port, since its interface has none.
    pub(super) fn make_frames(&self, lines: Lines, flows: u16) -> Result<[Frames; 2], Error> {
        let of = |from: usize, to: usize| {
            let encapsulation = match lines {
                Lines::Session if from == 0 => format!("pppoe:{SESSION}"),
                Lines::Two | Lines::Session => "none".to_owned(),
                Lines::KernelTrunk | Lines::RxlaneTrunk => format!("q:{}", VIDS[from]),
            };
            let station = if lines == Lines::Session { &self.ports[from] } else { &self.legs[from] };
            frames(address(&self.router, station)?, SOURCES[from], STATIONS[to], flows, &encapsulation)
        };
        Ok([of(0, 1)?, of(1, 0)?])
    }
}

fn address(router: &Namespace, interface: &str) -> Result<MacAddress, Error> {
    let link = router.inside(|| kernel::netlink::link_by_name(interface))?;
    let address = link.ok().and_then(|link| link.mac);
    address.ok_or_else(|| Error::Failed(format!("{interface} has no MAC address")))
}
