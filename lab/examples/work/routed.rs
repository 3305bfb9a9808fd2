//! Connections of a host behind the router, over the kernel's PPPoE, with masquerade: what most home routers do.

use crate::connections::Packets;
use crate::mode::{Mode, choices, selected};
use crate::{adapter, connections, vectors};
use anyhow::Result;
use rxlane_lab::Guest;

/// A chain that accepts what it sees.
pub const OPEN: &str = "policy accept;";
/// What a home router lets through: what it knows, and what begins inside.
pub const STATEFUL: &str =
    "policy drop; ct state invalid drop; ct state established,related accept; iifname != \"ppp*\" accept;";

/// Writes rulesets: masquerade on the session's interface behind a filter, and with it a flowtable of the two physical devices,
/// which is where packets arrive: `ppp0` and VLAN devices are found by the kernel from there. The first is in effect.
pub fn write_rules(guest: &Guest, [line, inside]: [&str; 2], filter: &str) -> Result<()> {
    let table =
        format!("flowtable fast {{ hook ingress priority filter; devices = {{ {line}, {inside} }}; }}");
    let add = "meta l4proto { tcp, udp } flow add @fast;";
    for (file, table, add) in [("/tmp/rules", "", ""), ("/tmp/rules-flowtable", table.as_str(), add)] {
        let ruleset = format!(
            "flush ruleset; table inet router {{ {table}
             chain forward {{ type filter hook forward priority filter; {add} {filter} }}
             chain nat {{ type nat hook postrouting priority srcnat; oifname \"ppp*\" masquerade; }}
             }}"
        );
        guest.write(file, ruleset.as_bytes())?;
    }
    rules(guest, false)
}

/// Puts one of the rulesets into effect.
pub fn rules(guest: &Guest, with_flowtable: bool) -> Result<()> {
    let file = if with_flowtable { "/tmp/rules-flowtable" } else { "/tmp/rules" };
    guest.sh(&format!("nft -f {file}")).map(drop)
}

/// A host behind the router, in a namespace of its own.
pub fn house(guest: &Guest, cpus: usize) -> Result<()> {
    guest.sh("ip netns add house; ip link set home netns house; ip netns exec house ip link set lo up")?;
    adapter(guest, "inside", cpus)?;
    guest.sh(
        "ip netns exec house ethtool -L home combined 4; ip netns exec house ethtool -G home rx 4096 tx 4096; \
         ip netns exec house ip addr add 10.8.0.2/24 dev home; ip netns exec house ip link set home up; \
         ip netns exec house ip route add default via 10.8.0.1; ip addr add 10.8.0.1/24 dev inside",
    )?;
    vectors(guest, "home", 4)
}

/// What the host talks to, when it answers.
pub fn serve(guest: &Guest) -> Result<()> {
    guest.start(
        &["ip", "netns", "exec", "far", "taskset", "-c", "4-7", "iperf3", "-s"],
        "/tmp/routed-server",
    )?;
    guest.sh("until ip netns exec house busybox ping -q -c 1 -W 5 10.7.0.2; do :; done").map(drop)
}

/// A download of 16 connections, in every mode in turn.
pub fn measure(guest: &Guest, cpus: usize) -> Result<()> {
    house(guest, cpus)?;
    write_rules(guest, ["client", "inside"], OPEN)?;
    serve(guest)?;
    println!(
        "routed with masquerade, 16 connections of iperf3 downloading; instructions per received packet on CPUs 0 to {}",
        cpus - 1
    );
    let modes = selected(Mode::combined(guest, &choices(cpus), &[false, true])?);
    let client = "ip netns exec house taskset -c 4-7 iperf3 -c 10.7.0.2 -R -P 16";
    connections::measure(guest, cpus, &modes, client, Packets::OfTheLine)
}
