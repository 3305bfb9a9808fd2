//! Connections over the kernel's PPPoE to programs on the router.

use crate::count::{count, idle, print};
use crate::mode::{Mode, enter, leave, selected, spreading};
use crate::{adapter, vectors};
use anyhow::Result;
use rxlane_lab::Guest;
use rxlane_lab::built::program;
use std::thread;
use std::time::Duration;

/// How often every mode is measured with real connections, in turn.
pub const ROUNDS: usize = 2;

/// A session of the kernel's PPPoE between `client`, the router's, and `server` in the namespace `far`.
pub fn connect(guest: &Guest) -> Result<()> {
    guest.sh("ip netns add far; ip link set server netns far; ip netns exec far ip link set lo up")?;
    adapter(guest, "client", 8)?;
    guest.sh(
        "ip netns exec far ethtool -L server combined 4; ip netns exec far ethtool -G server rx 4096 tx 4096; \
         ip netns exec far ip link set server promisc on up",
    )?;
    vectors(guest, "server", 4)?;
    let agent = program("rxlane-lab")?.display().to_string();
    let (near, far) = (guest.mac("client")?.to_string(), guest.mac("server")?.to_string());
    thread::sleep(Duration::from_secs(4));
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
    let modes = selected(spreading(cpus));
    for mode in modes.iter().cycle().take(ROUNDS * modes.len()) {
        if let Mode::Steer(_) = mode {
            // What `up` looks at.
            let load = "ip netns exec far taskset -c 4-7 iperf3 -c 10.7.0.1 -P 16 -t 8";
            guest.start(&load.split(' ').collect::<Vec<_>>(), "/tmp/load")?;
        }
        enter(guest, "client", mode, cpus)?;
        if let Mode::Steer(_) = mode {
            guest.sh("until grep -q 'iperf Done' /tmp/load; do sleep 0.2; done")?;
        }
        let transfer = |seconds: u32| -> Result<String> {
            let script = format!(
                "ip netns exec far taskset -c 4-7 iperf3 -c 10.7.0.1 -P 16 -t {seconds} -f m | \
                 sed -n 's/.*SUM.* \\([0-9.]* Mbits.sec\\).*receiver.*/\\1/p'"
            );
            Ok(guest.sh(&script)?.trim().to_owned())
        };
        transfer(2)?;
        let idle = idle(guest)?;
        let work = count(guest, &idle, || {
            let before = guest.counter("client", "rx_packets")?;
            let sent = guest.counter("client", "tx_packets")?;
            let rate = transfer(8)?;
            let received = guest.counter("client", "rx_packets")? - before;
            let sent = guest.counter("client", "tx_packets")? - sent;
            Ok((
                received,
                format!("({rate}, {:.2} packets back for one received)", sent as f64 / received as f64),
            ))
        })?;
        print(&mode.name(), &work, cpus);
        leave(guest, "client", mode)?;
    }
    Ok(())
}
