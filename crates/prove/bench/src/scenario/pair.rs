//! Two hosts with a line between them, and what is set there.

use super::Error;
use crate::installed;
use crate::namespace::{Namespace, SceneError};
use kernel::cpu::CpuSet;
use std::net::Ipv4Addr;

/// The interface of either end.
pub const WAN: &str = "wan0";
/// Addresses of both ends (RFC 2544 appendix C.2.2: networks for benchmarks).
pub const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(198, 18, 0, 1), Ipv4Addr::new(198, 18, 0, 2)];

/// Two network namespaces with a veth pair between them; each end is [`WAN`].
#[derive(Debug)]
pub struct Pair {
    /// Where it is sent.
    pub near: Namespace,
    /// Where it arrives.
    pub far: Namespace,
}

impl Pair {
    /// Makes both, up and without addresses, with so many queues each and an MTU in octets.
    pub fn new(queues: u16, mtu: u16) -> Result<Pair, Error> {
        let pair = Pair { near: Namespace::new("near")?, far: Namespace::new("far")? };
        pair.near.veth(WAN, (&pair.far, WAN), queues, mtu)?;
        Ok(pair)
    }

    /// Both ends, with their addresses.
    pub fn ends(&self) -> [(&Namespace, Ipv4Addr); 2] {
        let [near, far] = ADDRESSES;
        [(&self.near, near), (&self.far, far)]
    }

    /// Gives an interface of either end its address.
    pub fn give_addresses(&self, interface: &str) -> Result<(), Error> {
        for (end, address) in self.ends() {
            end.ip(&["addr", "add", &format!("{address}/24"), "dev", interface])?;
        }
        Ok(())
    }

    /// TSO, GSO and GRO of both ends off.
    pub fn without_offloads(&self) -> Result<(), Error> {
        for (end, _) in self.ends() {
            end.run("ethtool", &["-K", WAN, "tso", "off", "gso", "off", "gro", "off"])?;
        }
        Ok(())
    }
}

/// Lets an interface spread what it receives over these CPUs (RPS).
///
/// # Errors
///
/// What the shell said.
pub fn spread_by_rps(namespace: &Namespace, interface: &str, cpus: &[u16]) -> Result<(), Error> {
    let cpus = CpuSet::new(cpus.iter().map(|cpu| u32::from(*cpu)))
        .map_err(|error| Error::Wrong(error.to_string()))?;
    let files = format!("/sys/class/net/{interface}/queues/rx-*/rps_cpus");
    let script = format!("set -e; for file in {files}; do echo {} > $file; done", cpus.mask());
    namespace.run("sh", &["-c", &script])?;
    Ok(())
}

/// Why the kernel makes no VLAN devices; `None`: it does.
///
/// # Errors
///
/// No pair can be made.
pub fn lacks_8021q() -> Result<Option<String>, Error> {
    let pair = Pair::new(1, 1500)?;
    match pair.near.ip(&["link", "add", "link", WAN, "name", "tag0", "type", "vlan", "id", "1"]) {
        Ok(()) => Ok(None),
        Err(SceneError::Failed { said, .. }) => {
            Ok(Some(format!("no 8021q here: the kernel makes no VLAN devices ({said})")))
        }
        Err(error) => Err(error.into()),
    }
}

/// Looks whether namespaces with a pair between them can be made here, and whether programs are there.
///
/// # Errors
///
/// What is missing, and how to get it.
pub fn is_possible(programs: &[&str]) -> Result<(), Error> {
    // Whoever is not root can do nothing about the rest.
    if !rustix::process::geteuid().is_root() {
        return Err(SceneError::NotRoot.into());
    }
    let missing = link::privilege::missing();
    if !missing.is_empty() {
        return Err(Error::Lacks(format!("scenarios take {}", missing.join(" and "))));
    }
    if let Some(why) = programs.iter().find_map(|program| installed::missing(program)) {
        return Err(Error::Lacks(why));
    }
    match Pair::new(1, 1500) {
        Ok(_) => Ok(()),
        Err(Error::Failed(why)) => Err(Error::Lacks(format!(
            "{why}; network namespaces and interfaces in them cannot be made here, which takes CAP_SYS_ADMIN and CAP_NET_ADMIN and a \
             /run that can be written to"
        ))),
        Err(error) => Err(error),
    }
}
