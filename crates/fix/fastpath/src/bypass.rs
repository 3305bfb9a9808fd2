//! What a fast path sends past, as far as it is there on this machine.

use crate::topology::Topology;
use kernel::netlink::{self, Refusal};
use serde::Serialize;

/// Something that packets of the fast path do not pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Bypassed {
    /// A shaper.
    Shaper {
        /// Where it stands.
        interface: String,
        /// Its kind.
        qdisc: String,
    },
    /// Counters of an interface that has none of its own in hardware, and what tcpdump shows there.
    Counters {
        /// The interface.
        interface: String,
        /// `ppp`, `vlan`, `bridge`.
        of: String,
    },
}

/// Shapers and counters on these ports and on what stands on them.
///
/// # Errors
///
/// The kernel does not list queueing disciplines.
pub fn bypassed(topology: &Topology, ports: &[u32]) -> Result<Vec<Bypassed>, Refusal> {
    let above: Vec<u32> = topology
        .links
        .keys()
        .copied()
        .filter(|interface| topology.below(*interface).iter().any(|below| ports.contains(below)))
        .collect();
    let name =
        |interface: u32| topology.links.get(&interface).map(|link| link.name.clone()).unwrap_or_default();
    let is_shaper = |qdisc: &netlink::Qdisc| host::SHAPERS.contains(&qdisc.kind.as_str());
    let mut all: Vec<Bypassed> = netlink::qdiscs()?
        .into_iter()
        .filter(|qdisc| above.contains(&qdisc.interface) && is_shaper(qdisc))
        .map(|qdisc| Bypassed::Shaper { interface: name(qdisc.interface), qdisc: qdisc.kind })
        .collect();
    let mut counters: Vec<Bypassed> = above
        .iter()
        .filter(|interface| !ports.contains(interface))
        .filter_map(|interface| {
            let link = topology.links.get(interface)?;
            let of = link.kind.clone().unwrap_or_else(|| "ppp".to_owned());
            Some(Bypassed::Counters { interface: link.name.clone(), of })
        })
        .collect();
    all.append(&mut counters);
    all.dedup();
    Ok(all)
}
