//! Connections over the kernel's PPPoE to programs on the router.

use crate::connections::Packets;
use crate::mode::{Mode, choices, selected, spreading};
use crate::{adapter, connections, vectors};
use anyhow::Result;
use rxlane_lab::Guest;
use rxlane_lab::built::program;

/// `client`, the router's, is wired to `server` in the namespace `far`, and both are up.
pub fn wire(guest: &Guest) -> Result<()> {
    guest.sh("ip netns add far; ip link set server netns far; ip netns exec far ip link set lo up")?;
    adapter(guest, "client", 8)?;
    guest.sh(
        "ip netns exec far ethtool -L server combined 4; ip netns exec far ethtool -G server rx 4096 tx 4096; \
         ip netns exec far ip link set server promisc on up",
    )?;
    vectors(guest, "server", 4)?;
    guest
        .sh("until [ \"$(ip netns exec far cat /sys/class/net/server/carrier)\" = 1 ]; do sleep 0.1; done")
        .map(drop)
}

/// A session of the kernel's PPPoE between `client` and `server`.
pub fn connect(guest: &Guest) -> Result<()> {
    wire(guest)?;
    let agent = program("rxlane-lab")?.display().to_string();
    let (near, far) = (guest.mac("client")?.to_string(), guest.mac("server")?.to_string());
    guest.start(&[agent.as_str(), "session", "client", "7", &far], "/tmp/near")?;
    guest.start(&["ip", "netns", "exec", "far", &agent, "session", "server", "7", &near], "/tmp/far")?;
    guest.sh("until [ -s /tmp/near ] && [ -s /tmp/far ]; do sleep 0.1; done; i=$(cat /tmp/near); \
         ip link set $i mtu 1492 up; ip addr add 10.7.0.1 peer 10.7.0.2 dev $i; \
         o=$(cat /tmp/far); ip netns exec far ip link set $o mtu 1492 up; \
         ip netns exec far ip addr add 10.7.0.2 peer 10.7.0.1 dev $o")?;
    Ok(())
}

/// 16 connections from the other end of the session, in every mode in turn.
pub fn measure(guest: &Guest, cpus: usize) -> Result<()> {
    guest.start(&["taskset", "-c", "4-7", "iperf3", "-s"], "/tmp/iperf3-server")?;
    println!(
        "delivered, 16 connections of iperf3; instructions per received packet on CPUs 0 to {}",
        cpus - 1
    );
    let client = "ip netns exec far taskset -c 4-7 iperf3 -c 10.7.0.1 -P 16";
    // Where the kernel coalesces in PPPoE, the choices without and with it; else all ways of spreading.
    let choices = Mode::combined(guest, &choices(cpus), &[false])?;
    let modes = match choices.first() {
        Some(Mode { pppoe_gro: Some(_), .. }) => choices,
        _ => spreading(cpus).into_iter().map(Mode::from).collect(),
    };
    connections::measure(guest, cpus, &selected(modes), client, Packets::OfTheLine)
}
