//! Sysctls of the receive path.

use super::bundle::Output;
use super::files::text;
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

/// A command for each, with its output.
pub(super) fn read() -> Vec<(String, Output)> {
    NAMES.map(|name| (format!("sysctl {name}"), one(name))).to_vec()
}

fn one(name: &str) -> Output {
    let value = text(&PathBuf::from(format!("/proc/sys/{}", name.replace('.', "/"))))?;
    Ok(format!("{name} = {}\n", value.trim()))
}
