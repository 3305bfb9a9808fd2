//! Connections of a host behind the router, over the kernel's PPPoE, with masquerade: what most home routers do.

use crate::mode::{Mode, choices, selected};
use crate::{adapter, connections, vectors};
use anyhow::Result;
use rxlane_lab::Guest;

/// Masquerade on the session's interface, and with it on request a flowtable of the two physical devices, which is where packets
/// arrive: `ppp0` and VLAN devices are found by the kernel from there.
pub fn rules(guest: &Guest, with_flowtable: bool) -> Result<()> {
    let (table, rule) = if with_flowtable {
        (
            "flowtable fast { hook ingress priority filter; devices = { client, inside }; }",
            "meta l4proto { tcp, udp } flow add @fast",
        )
    } else {
        ("", "")
    };
    let ruleset = format!(
        "flush ruleset; table inet router {{ {table}
         chain forward {{ type filter hook forward priority filter; policy accept; {rule}; }}
         chain nat {{ type nat hook postrouting priority srcnat; oifname \"ppp*\" masquerade; }}
         }}"
    );
    guest.write("/tmp/rules", ruleset.as_bytes())?;
    guest.sh("nft -f /tmp/rules").map(drop)
}

/// A download of 16 connections, in every mode in turn.
pub fn measure(guest: &Guest, cpus: usize) -> Result<()> {
    guest.sh("ip netns add house; ip link set home netns house; ip netns exec house ip link set lo up")?;
    adapter(guest, "inside", cpus)?;
    guest.sh(
        "ip netns exec house ethtool -L home combined 4; ip netns exec house ethtool -G home rx 4096 tx 4096; \
         ip netns exec house ip addr add 10.8.0.2/24 dev home; ip netns exec house ip link set home up; \
         ip netns exec house ip route add default via 10.8.0.1; ip addr add 10.8.0.1/24 dev inside",
    )?;
    vectors(guest, "home", 4)?;
    rules(guest, false)?;
    guest.start(
        &["ip", "netns", "exec", "far", "taskset", "-c", "4-7", "iperf3", "-s"],
        "/tmp/routed-server",
    )?;
    guest.sh("until ip netns exec house busybox ping -q -c 1 -W 5 10.7.0.2; do :; done")?;
    println!(
        "routed with masquerade, 16 connections of iperf3 downloading; instructions per received packet on CPUs 0 to {}",
        cpus - 1
    );
    let modes = selected(Mode::combined(guest, &choices(cpus), &[false, true])?);
    let client = "ip netns exec house taskset -c 4-7 iperf3 -c 10.7.0.2 -R -P 16";
    connections::measure(guest, cpus, &modes, client)
}
