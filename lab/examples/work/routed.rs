//! Connections of a host behind the router, over the kernel's PPPoE, with masquerade: what most home routers do.

use crate::count::{count, idle, print};
use crate::delivered::ROUNDS;
use crate::mode::{Mode, enter, leave, selected};
use crate::{adapter, vectors};
use anyhow::Result;
use rxlane_lab::Guest;

/// Masquerade on the session's interface, and where it is wanted a flowtable of the two physical devices, which is where packets
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
    let all = (1 << cpus) - 1;
    let modes = selected(vec![
        Mode::Off,
        Mode::Rps(all),
        Mode::Rps(all - 1),
        Mode::Steer(format!("0-{}", cpus - 1)),
        Mode::Flowtable,
        Mode::GroOff,
        Mode::FlowtableGroOff,
    ]);
    for mode in modes.iter().cycle().take(ROUNDS * modes.len()) {
        let download = |seconds: u32| {
            format!("ip netns exec house taskset -c 4-7 iperf3 -c 10.7.0.2 -R -P 16 -t {seconds} -f m")
        };
        if let Mode::Steer(_) = mode {
            // What `up` samples.
            guest.start(&download(8).split(' ').collect::<Vec<_>>(), "/tmp/routed-load")?;
        }
        enter(guest, "client", mode, cpus)?;
        if let Mode::Steer(_) = mode {
            guest.sh("until grep -q 'iperf Done' /tmp/routed-load; do sleep 0.2; done")?;
        }
        guest.sh(&download(2))?;
        let idle = idle(guest)?;
        let work = count(guest, &idle, || {
            let received = guest.counter("client", "rx_packets")?;
            let rate = guest.sh(&format!(
                "{} | sed -n 's/.*SUM.* \\([0-9.]* Mbits.sec\\).*receiver.*/\\1/p'",
                download(8)
            ))?;
            Ok((guest.counter("client", "rx_packets")? - received, format!("({})", rate.trim())))
        })?;
        print(&mode.name(), &work, cpus);
        leave(guest, "client", mode)?;
    }
    Ok(())
}
