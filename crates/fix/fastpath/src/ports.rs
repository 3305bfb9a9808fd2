//! The ports of a fast path: interfaces with the program on them.

use crate::topology::Topology;
use kernel::netlink::{self, Gateway};
use wire::IpVersion;

/// A direction with a limit of its own: its place in the map of limits.
pub const UPLOAD: u8 = 1;
/// The other one.
pub const DOWNLOAD: u8 = 2;

/// A port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its name when the fast path came up.
    pub name: String,
    /// Number of the interface.
    pub interface: u32,
    /// Whether frames come from another network stack of this machine, which leaves checksums to a device that this is not (veth).
    pub is_verified: bool,
    /// Whether a default route leads out of it.
    pub is_line: bool,
}

/// All of them; the place of each is that in the map of the program.
#[derive(Clone, Debug, Default)]
pub struct Ports {
    ports: Vec<Port>,
    /// Whether directions have limits.
    upload: bool,
    download: bool,
}

impl Ports {
    /// Of these interfaces, with what is limited.
    pub fn new(ports: Vec<Port>, (upload, download): (bool, bool)) -> Ports {
        Ports { ports, upload, download }
    }

    /// All of them.
    pub fn all(&self) -> &[Port] {
        &self.ports
    }

    /// The place of a port.
    pub fn place(&self, interface: u32) -> Option<u32> {
        self.ports.iter().position(|port| port.interface == interface).map(|place| place as u32)
    }

    fn get(&self, interface: u32) -> Option<&Port> {
        self.ports.iter().find(|port| port.interface == interface)
    }

    /// Whether checksums of frames that arrive there are verified.
    pub fn is_verified(&self, interface: u32) -> bool {
        self.get(interface).is_some_and(|port| port.is_verified)
    }

    /// The limit for packets from one port to another; 0: none.
    pub fn limit(&self, from: u32, to: u32) -> u8 {
        let is_line = |interface| self.get(interface).is_some_and(|port| port.is_line);
        match (is_line(from), is_line(to)) {
            (false, true) if self.upload => UPLOAD,
            (true, false) if self.download => DOWNLOAD,
            _ => 0,
        }
    }

    /// Finds out by which ports default routes lead.
    pub(crate) fn find_lines(&mut self, topology: &Topology) {
        let default = |version| netlink::default_routes(version).unwrap_or_default();
        let gateways: Vec<Gateway> = [IpVersion::V4, IpVersion::V6].into_iter().flat_map(default).collect();
        let lines: Vec<u32> = gateways.iter().flat_map(|gateway| topology.below(gateway.interface)).collect();
        for port in &mut self.ports {
            port.is_line = lines.contains(&port.interface);
        }
    }
}
