//! Why packets of subscribers must not be forwarded in XDP, where the kernel would do more to them than the programs do; and what they
//! do not pass there.

use format::quoted;
use host::SHAPERS;
use host::setting::{Setting, Tree};
use kernel::netlink::netfilter::nftables::{self, Chain};
use kernel::netlink::{self, Qdisc, Refusal};
use kernel::sysctl;
use std::fs;

/// Why not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// A chain of nftables with rules.
    #[error(
        "packets that XDP forwards do not pass the chain {chain} of the table {table} (hook {hook}{}): remove it (`nft list chain {table} \
         {chain}` shows it), or leave --datapath xdp out; `rxlane fastpath` forwards established connections with such rules in force",
        if *.translates { ", NAT" } else { "" }
    )]
    Chain { table: String, chain: String, hook: &'static str, translates: bool },
    /// A table of xtables, whose rules are read by nobody here.
    #[error(
        "packets that XDP forwards do not pass the table {table} of {program}: remove it (`{program}-save` shows its rules), or leave \
         --datapath xdp out"
    )]
    Table { table: String, program: &'static str },
    #[error(
        "there are IPsec policies, which packets that XDP forwards do not pass (`ip xfrm policy`): remove them, or leave --datapath xdp out"
    )]
    Ipsec,
    #[error(
        "{interface} takes VLAN tags off before XDP sees them: `ethtool -K {} rxvlan off` has them stay in frames",
        quoted(.interface)
    )]
    HiddenTags { interface: String },
    #[error(
        "{interface} checks source addresses strictly, which XDP does not: `sysctl net.ipv4.conf.{interface}.rp_filter=2` has it check less, \
         or leave --datapath xdp out"
    )]
    ReversePath { interface: String },
    #[error("cannot ask the kernel for {what}: {why}")]
    Unknown { what: &'static str, why: String },
}

/// `NF_INET_*`, and those of the family netdev.
const HOOKS: [&str; 6] = ["prerouting", "input", "forward", "output", "postrouting", "ingress"];
const HOOKS_OF_DEVICES: [&str; 2] = ["ingress", "egress"];
/// `NFPROTO_*`.
const NETDEV: u8 = 5;
const ROUTED: [u8; 3] = [1, 2, 10];

/// What stands in the way now, which may change at any time. The names are those of the interface of all subscribers, of that with their
/// lines, and of the uplinks.
pub(super) fn present(names: &[&str]) -> Option<Obstacle> {
    let unknown =
        |what: &'static str| move |why: Refusal| Obstacle::Unknown { what, why: why.error.to_string() };
    // A kernel without nftables, or IPsec, has no rules of them.
    let has_it = |refusal: &Refusal| matches!(refusal.error.raw_os_error(), Some(libc::EPERM | libc::EACCES));
    let chains = match nftables::chains() {
        Ok(chains) => chains.iter().find_map(|chain| seen_by(chain, names)),
        Err(refusal) if has_it(&refusal) => Some(unknown("nftables")(refusal)),
        Err(_) => None,
    };
    let policies = || match netlink::policies() {
        Ok(policies) => (!policies.is_empty()).then_some(Obstacle::Ipsec),
        Err(refusal) => Some(unknown("IPsec policies")(refusal)),
    };
    let strict = |name: &&str| {
        let of = |name: &str| sysctl::net(&format!("ipv4/conf/{name}/rp_filter")).unwrap_or_default();
        of("all").max(of(name)) == 1
    };
    chains.or_else(tables).or_else(policies).or_else(|| {
        // What comes from subscribers is checked more strictly by their sessions.
        let name = names.get(2..)?.iter().find(|name| strict(name))?;
        Some(Obstacle::ReversePath { interface: (*name).to_owned() })
    })
}

/// Whether packets of these interfaces that the kernel forwards pass a chain.
fn seen_by(chain: &Chain, names: &[&str]) -> Option<Obstacle> {
    let (kind, hook, _) = chain.base.as_ref().filter(|_| chain.is_in_use)?;
    let is_ours = chain.devices.iter().any(|device| names.contains(&device.as_str()));
    let hook = usize::try_from(*hook).ok()?;
    let hook = match (chain.table.family, hook) {
        (NETDEV, hook) => HOOKS_OF_DEVICES.get(hook).filter(|_| is_ours)?,
        (family, 0 | 2 | 4) if ROUTED.contains(&family) => HOOKS.get(hook)?,
        (family, 5) if ROUTED.contains(&family) && is_ours => HOOKS.get(hook)?,
        _ => return None,
    };
    let table = format!("{} {}", chain.table.family_name(), chain.table.name);
    Some(Obstacle::Chain { table, chain: chain.name.clone(), hook, translates: kind == "nat" })
}

/// A table of xtables that is in use in this network namespace.
fn tables() -> Option<Obstacle> {
    [("ip_tables_names", "iptables-legacy"), ("ip6_tables_names", "ip6tables-legacy")].into_iter().find_map(
        |(file, program)| {
            let names = fs::read_to_string(format!("/proc/thread-self/net/{file}")).ok()?;
            let table = names.lines().next()?.to_owned();
            Some(Obstacle::Table { table, program })
        },
    )
}

/// An interface whose NIC takes tags off; looked at once, since nobody but a person changes it.
pub(super) fn hidden_tags(names: &[&str]) -> Option<Obstacle> {
    let interface = names.iter().find(|name| Setting::that_keeps_tags(name, &Tree::live()).is_some())?;
    Some(Obstacle::HiddenTags { interface: (*interface).to_owned() })
}

/// Shapers that packets do not pass: interface, and kind.
pub(super) fn shapers(interfaces: &[(u32, &str)]) -> Vec<(String, String)> {
    let of = |qdisc: Qdisc| {
        let (_, name) = interfaces.iter().find(|(index, _)| *index == qdisc.interface)?;
        SHAPERS.contains(&qdisc.kind.as_str()).then(|| ((*name).to_owned(), qdisc.kind))
    };
    let mut shapers: Vec<_> = netlink::qdiscs().unwrap_or_default().into_iter().filter_map(of).collect();
    shapers.dedup();
    shapers
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::netlink::netfilter::nftables::Table;

    fn chain(family: u8, kind: &str, hook: u32, devices: &[&str]) -> Chain {
        Chain {
            table: Table { family, name: "t".to_owned() },
            name: "c".to_owned(),
            base: Some((kind.to_owned(), hook, 0)),
            is_in_use: true,
            devices: devices.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn chains_that_forwarded_packets_pass_stand_in_the_way() {
        let names = ["pppoe0", "eth1", "eth0"];
        for (family, kind, hook, devices, expected) in [
            (1, "filter", 2, &[][..], Some(("inet t", "forward", false))),
            (2, "nat", 4, &[], Some(("ip t", "postrouting", true))),
            (10, "filter", 0, &[], Some(("ip6 t", "prerouting", false))),
            (1, "filter", 1, &[], None),
            (1, "filter", 3, &[], None),
            // arp, bridge
            (3, "filter", 2, &[], None),
            (7, "filter", 2, &[], None),
            (5, "filter", 0, &["eth0"], Some(("netdev t", "ingress", false))),
            (5, "filter", 1, &["eth9", "eth1"], Some(("netdev t", "egress", false))),
            (5, "filter", 0, &["eth9"], None),
            (1, "filter", 5, &["eth0"], Some(("inet t", "ingress", false))),
            (1, "filter", 5, &["eth9"], None),
        ] {
            let chain = chain(family, kind, hook, devices);
            let expected = expected.map(|(table, hook, translates)| Obstacle::Chain {
                table: table.to_owned(),
                chain: "c".to_owned(),
                hook,
                translates,
            });
            assert_eq!(seen_by(&chain, &names), expected, "{chain:?}");
            assert_eq!(seen_by(&Chain { is_in_use: false, ..chain.clone() }, &names), None);
            assert_eq!(seen_by(&Chain { base: None, ..chain }, &names), None);
        }
    }
}
