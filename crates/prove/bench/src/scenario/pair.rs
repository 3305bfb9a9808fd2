//! Two hosts with a line between them, and what is set there.

use super::Error;
use super::design::levels;
use super::report::LeftOut;
use crate::installed;
use crate::namespace::{Namespace, TopologyError};
use kernel::cpu::CpuSet;
use std::net::Ipv4Addr;

/// The interface of either end.
pub(crate) const WAN: &str = "wan0";
/// Addresses of both ends (RFC 2544 appendix C.2.2: networks for benchmarks).
pub(crate) const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(198, 18, 0, 1), Ipv4Addr::new(198, 18, 0, 2)];

/// Two network namespaces with a veth pair between them; removed when this is dropped.
#[derive(Debug)]
pub struct Pair {
    pub near: Namespace,
    pub far: Namespace,
}

impl Pair {
    /// Two namespaces for these roles, each with an interface of this name, up and without addresses, with so many queues and
    /// an MTU in bytes. IPv6 is off, so that nothing but the load sends frames. Error: not root, no `ip`, or what `ip` said;
    /// nothing is left behind.
    pub fn between(
        (near, near_interface): (&str, &str),
        (far, far_interface): (&str, &str),
        queues: u16,
        mtu: u16,
    ) -> Result<Pair, TopologyError> {
        let pair = Pair { near: Namespace::new(near)?, far: Namespace::new(far)? };
        pair.near.veth(near_interface, (&pair.far, far_interface), queues, mtu)?;
        Ok(pair)
    }

    /// Two hosts; each end is [`WAN`].
    pub(crate) fn new(queues: u16, mtu: u16) -> Result<Pair, Error> {
        Ok(Pair::between(("near", WAN), ("far", WAN), queues, mtu)?)
    }

    pub(crate) fn ends(&self) -> [(&Namespace, Ipv4Addr); 2] {
        let [near, far] = ADDRESSES;
        [(&self.near, near), (&self.far, far)]
    }

    pub(crate) fn give_addresses(&self, interface: &str) -> Result<(), Error> {
        for (end, address) in self.ends() {
            end.ip(&["addr", "add", &format!("{address}/24"), "dev", interface])?;
        }
        Ok(())
    }

    pub(crate) fn without_offloads(&self) -> Result<(), Error> {
        for (end, _) in self.ends() {
            end.run("ethtool", &["-K", WAN, "tso", "off", "gso", "off", "gro", "off"])?;
        }
        Ok(())
    }
}

/// Lets an interface spread what it receives over these CPUs (RPS).
pub(crate) fn spread_by_rps(namespace: &Namespace, interface: &str, cpus: &[u16]) -> Result<(), Error> {
    let cpus = CpuSet::new(cpus.iter().map(|cpu| u32::from(*cpu)))
        .map_err(|error| Error::Wrong(error.to_string()))?;
    let files = format!("/sys/class/net/{interface}/queues/rx-*/rps_cpus");
    let script = format!("set -e; for file in {files}; do echo {} > $file; done", cpus.mask());
    namespace.run("sh", &["-c", &script])?;
    Ok(())
}

/// The cells that need VLAN devices, where the kernel makes none.
pub(crate) fn without_8021q(needs: &str) -> Result<Vec<LeftOut>, Error> {
    let pair = Pair::new(1, 1500)?;
    match pair.near.ip(&["link", "add", "link", WAN, "name", "tag0", "type", "vlan", "id", "1"]) {
        Ok(()) => Ok(Vec::new()),
        Err(TopologyError::Failed { said, .. }) => {
            let why = format!("no 8021q here: the kernel makes no VLAN devices ({said})");
            Ok(vec![LeftOut { levels: levels(needs), why }])
        }
        Err(error) => Err(error.into()),
    }
}

/// Checks that namespaces with a pair between them can be made here, and that programs are there.
pub(crate) fn is_possible(programs: &[&str]) -> Result<(), Error> {
    // Whoever is not root can do nothing about the rest.
    if !rustix::process::geteuid().is_root() {
        return Err(TopologyError::NotRoot.into());
    }
    let missing = link::privilege::missing();
    if !missing.is_empty() {
        return Err(Error::Lacks(format!("scenarios require {}", missing.join(" and "))));
    }
    if let Some(why) = programs.iter().find_map(|program| installed::missing(program)) {
        return Err(Error::Lacks(why));
    }
    match Pair::new(1, 1500) {
        Ok(_) => Ok(()),
        Err(Error::Failed(why)) => Err(Error::Lacks(format!(
            "{why}; network namespaces and interfaces in them cannot be made here, which requires CAP_SYS_ADMIN and CAP_NET_ADMIN \
             and a /run that can be written to"
        ))),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use testkit::{netns, require};

    #[test]
    fn a_pair_has_both_ends_and_is_removed_with_its_guard() {
        let Some(()) = require("netns", netns::probe()) else { return };
        let names = {
            let pair = Pair::between(("line", "line0"), ("router", "wan0"), 4, 1500).expect("a pair");
            let listed = pair.far.run("ls", &["/sys/class/net/wan0/queues"]).expect("ls");
            assert_eq!(listed.lines().filter(|line| line.starts_with("rx-")).count(), 4, "{listed}");
            [&pair.near, &pair.far].map(|end| Path::new("/run/netns").join(end.name()))
        };
        assert!(names.iter().all(|name| !name.exists()), "{names:?}");
    }
}
