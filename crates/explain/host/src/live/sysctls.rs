//! Sysctls of the receive path.

use super::bundle::Output;
use super::files::{is_missing, text};
use std::path::PathBuf;

/// What they bound: packets and time of one softirq run, packets of one device in a turn, the backlog queue, flows
/// that RFS remembers, CPUs that drop a flow which takes more than its share; and whether this is a router.
const NAMES: [&str; 8] = [
    "net.core.netdev_budget",
    "net.core.netdev_budget_usecs",
    "net.core.dev_weight",
    "net.core.netdev_max_backlog",
    "net.core.rps_sock_flow_entries",
    "net.core.flow_limit_cpu_bitmap",
    "net.ipv4.ip_forward",
    "net.ipv6.conf.all.forwarding",
];

/// Those of modules that a kernel need not have: how long an idle flow stays in a flowtable, and whether bridged packets pass
/// conntrack and the rules for forwarded ones.
const OF_MODULES: [&str; 3] = [
    "net.netfilter.nf_flowtable_tcp_timeout",
    "net.netfilter.nf_flowtable_udp_timeout",
    "net.bridge.bridge-nf-call-iptables",
];

/// A command for each, with its output.
pub(super) fn read() -> Vec<(String, Output)> {
    let of_modules = OF_MODULES.into_iter().filter(|name| !is_missing(&path(name)));
    NAMES.into_iter().chain(of_modules).map(|name| (format!("sysctl {name}"), one(name))).collect()
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/sys/{}", name.replace('.', "/")))
}

fn one(name: &str) -> Output {
    let value = text(&path(name))?;
    Ok(format!("{name} = {}\n", value.trim()))
}
