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

impl Port {
    /// Whether frames that are redirected to it are sent, as far as the kernel says (Linux 6.3); with a program on it.
    pub fn is_target(&self) -> bool {
        xdp::is_redirect_target(&self.name)
    }
}

/// All of them; the place of each is that in the map of the program.
#[derive(Clone, Debug, Default)]
pub struct Ports {
    ports: Vec<Port>,
    /// Whether directions have limits.
    upload: bool,
    download: bool,
    /// Whether drivers run the program, which may cease to send what is redirected to them; the places of those that do not send now.
    is_native: bool,
    no_targets: Vec<u32>,
}

impl Ports {
    /// Of these interfaces, with what is limited.
    pub fn new(ports: Vec<Port>, (upload, download): (bool, bool)) -> Ports {
        Ports { ports, upload, download, ..Ports::default() }
    }

    /// The same, with the program run by the drivers.
    pub fn native(self) -> Ports {
        Ports { is_native: true, ..self }
    }

    /// Ports that have begun or ceased to send what is redirected to them: the place of each, and its interface where it sends.
    pub(crate) fn changed_targets(&mut self) -> Vec<(u32, Option<u32>)> {
        if !self.is_native {
            return Vec::new();
        }
        let mut changed = Vec::new();
        for (place, port) in (0..).zip(&self.ports) {
            let (is_target, was_target) = (port.is_target(), !self.no_targets.contains(&place));
            if is_target != was_target {
                changed.push((place, is_target.then_some(port.interface)));
            }
        }
        for (place, interface) in &changed {
            match interface {
                Some(_) => self.no_targets.retain(|other| other != place),
                None => self.no_targets.push(*place),
            }
        }
        changed
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
