//! Connections of a host behind the router, over PPPoE in a VLAN with a filter on states: `pppd` with `rp-pppoe.so`, `8021q`,
//! masquerade.

use crate::connections;
use crate::connections::Packets;
use crate::delivered::wire;
use crate::mode::{Mode, Spreading, selected};
use crate::routed::{STATEFUL, house, serve, write_rules};
use anyhow::Result;
use rxlane_lab::Guest;

/// `pppd` at both ends. They agree beforehand on the session's number, since neither is an access concentrator.
pub fn connect(guest: &Guest) -> Result<()> {
    wire(guest)?;
    guest.sh(
        "modprobe -a 8021q pppoe; [ -c /dev/ppp ] || mknod /dev/ppp c 108 0; mkdir -p /etc/ppp /var/run/ppp; \
              ip link add link client name client35 type vlan id 35; ip link set client35 up; \
              ip netns exec far ip link add link server name server35 type vlan id 35; \
              ip netns exec far ip link set server35 up",
    )?;
    guest.write("/etc/ppp/options", b"")?;
    let (near, far) = (guest.mac("client")?, guest.mac("server")?);
    let pppd = |device: &str, peer: &dyn std::fmt::Display, addresses: &str| {
        format!(
            "pppd plugin rp-pppoe.so {device} rp_pppoe_sess 7:{peer} nodetach noauth nodefaultroute noaccomp nopcomp noccp \
             mtu 1492 mru 1492 {addresses}"
        )
    };
    let router = pppd("client35", &far, "10.7.0.1:10.7.0.2");
    let provider = format!("ip netns exec far {}", pppd("server35", &near, "10.7.0.2:10.7.0.1"));
    for (command, output) in [(provider, "/tmp/far"), (router, "/tmp/near")] {
        guest.start(&command.split_whitespace().collect::<Vec<_>>(), output)?;
    }
    guest
        .sh("timeout 50 sh -c 'until ip addr show ppp0 | grep -q 10.7.0.1; do sleep 0.2; done' || { cat /tmp/near /tmp/far; exit 1; }")
        .map(drop)
}

/// Which way most of the data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the provider.
    Download,
    /// To the provider.
    Upload,
}

impl Direction {
    /// All of them.
    pub const ALL: [Direction; 2] = [Direction::Download, Direction::Upload];

    pub const fn name(self) -> &'static str {
        match self {
            Direction::Download => "download",
            Direction::Upload => "upload",
        }
    }
}

/// 16 connections in each of the directions, in every mode in turn.
pub fn measure(guest: &Guest, cpus: usize, directions: &[Direction]) -> Result<()> {
    connect(guest)?;
    house(guest, cpus)?;
    write_rules(guest, ["client", "inside"], STATEFUL)?;
    serve(guest)?;
    let all = (1 << cpus) - 1;
    let steering = Spreading::Steer(format!("0-{}", cpus - 1));
    let spreading = [Spreading::Off, Spreading::Rps(all), Spreading::Rps(all - 1), steering];
    let mut modes = Mode::combined(guest, &spreading, &[false, true])?;
    modes.push(Mode::from(Spreading::Fastpath));
    let modes = selected(modes);
    for direction in directions {
        println!(
            "{}, PPPoE in a VLAN with masquerade and a filter on states, 16 connections of iperf3; instructions per forwarded \
             packet on CPUs 0 to {}",
            direction.name(),
            cpus - 1
        );
        let option = if *direction == Direction::Download { " -R" } else { "" };
        let client = format!("ip netns exec house taskset -c 4-7 iperf3 -c 10.7.0.2{option} -P 16");
        connections::measure(guest, cpus, &modes, &client, Packets::OfBothSides)?;
    }
    Ok(())
}
