//! Where lines end on the router: interfaces, or VLANs of one, their addresses and neighbours.

use super::super::program::Staying;
use super::super::{Error, Means};
use super::frame::frames;
use super::{Lines, Router, Tagger};
use crate::frames::Frames;
use crate::namespace::{Folder, Namespace};
use std::net::Ipv4Addr;
use wire::ethernet::MacAddress;

/// VIDs of the lines on a trunk, and the router's interfaces of them.
const VIDS: [u16; 2] = [10, 20];
const LEGS: [&str; 2] = ["leg1", "leg2"];
/// Of the IP packets behind a tag: far more than is sent, and fits whatever the adapter lets through.
const MTU: &str = "1400";
/// The router's addresses on the lines (RFC 6598, RFC 2544 appendix C.2.2), a station on each, and the first of those that send from there.
const ADDRESSES: [&str; 2] = ["100.64.0.1/10", "198.18.0.1/15"];
const STATIONS: [Ipv4Addr; 2] = [Ipv4Addr::new(100, 64, 0, 2), Ipv4Addr::new(198, 18, 0, 2)];
const SOURCES: [Ipv4Addr; 2] = [Ipv4Addr::new(100, 64, 16, 0), Ipv4Addr::new(198, 18, 16, 0)];
/// No station has it: what is forwarded is counted at the other end, and dropped.
const NOBODY: MacAddress = MacAddress([2, 0, 0, 0, 0, 0x99]);

impl Router {
    pub(super) fn make_legs(&mut self, lines: Lines, means: Option<&Means<'_>>) -> Result<(), Error> {
        match (lines, means) {
            (Lines::Two, _) => {
                self.legs.clone_from(&self.ports);
                return Ok(());
            }
            (Lines::Trunk(Tagger::Kernel), _) => self.tag_by_kernel()?,
            (Lines::Trunk(Tagger::Rxlane), Some(means)) => self.tag_by_rxlane(means)?,
            (Lines::Trunk(Tagger::Rxlane), None) => {
                return Err(Error::Failed("a trunk by rxlane link takes its program".to_owned()));
            }
        }
        self.legs = LEGS.map(str::to_owned);
        Ok(())
    }

    fn tag_by_kernel(&self) -> Result<(), Error> {
        for (leg, vid) in LEGS.iter().zip(VIDS) {
            let device = ["link", "add", "link", &self.ports[0], "name", leg, "type", "vlan", "id"];
            self.router.ip(&[&device[..], &[&vid.to_string()]].concat())?;
            self.router.ip(&["link", "set", "dev", leg, "mtu", MTU, "up"])?;
        }
        Ok(())
    }

    fn tag_by_rxlane(&mut self, means: &Means<'_>) -> Result<(), Error> {
        let folder = Folder::new()?;
        for (leg, vid) in LEGS.iter().zip(VIDS) {
            let mut command = self.router.command(&means.rxlane);
            command.args(["link", "up", "--parent", &self.ports[0], "--name", leg, "--mtu", MTU]);
            command.args(["--encap", &format!("q:{vid}"), "--state"]).arg(folder.path().join(leg));
            self.links.push(Staying::ready(&mut command, "is up over", means.stop)?);
        }
        self.folders.push(folder);
        Ok(())
    }

    pub(super) fn give_addresses(&self) -> Result<(), Error> {
        for (leg, address) in self.legs.iter().zip(ADDRESSES) {
            self.router.ip(&["addr", "add", address, "dev", leg])?;
        }
        self.know_neighbours()
    }

    /// So that nobody has to be asked where the stations are.
    pub(super) fn know_neighbours(&self) -> Result<(), Error> {
        for (leg, station) in self.legs.iter().zip(STATIONS) {
            let neighbour = ["lladdr", &NOBODY.to_string(), "dev", leg, "nud", "permanent"];
            self.router.ip(&[&["neigh", "replace", &station.to_string()][..], &neighbour].concat())?;
        }
        Ok(())
    }

    /// Frames there, and back.
    pub(super) fn make_frames(&self, lines: Lines, flows: u16) -> Result<[Frames; 2], Error> {
        let vid = |line: usize| (lines != Lines::Two).then_some(VIDS[line]);
        let of = |from: usize, to: usize| {
            frames(address(&self.router, &self.legs[from])?, SOURCES[from], STATIONS[to], flows, vid(from))
        };
        Ok([of(0, 1)?, of(1, 0)?])
    }
}

fn address(router: &Namespace, interface: &str) -> Result<MacAddress, Error> {
    let link = router.inside(|| kernel::netlink::link_by_name(interface))?;
    let address = link.ok().and_then(|link| link.mac);
    address.ok_or_else(|| Error::Failed(format!("{interface} has no MAC address")))
}
