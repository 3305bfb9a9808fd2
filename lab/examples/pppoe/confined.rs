//! The client within little memory: a control group's limit (cgroup v2), with the transfers that it has to carry there.

use crate::ends::{Client, Ends, Server, Way};
use crate::topology::Topology;
use crate::turn;
use anyhow::{Context, Result};

const GROUPS: &str = "/sys/fs/cgroup";

/// A transfer each way within 32, 16 and 8 MiB, of which what the kernel keeps of files counts, too.
pub fn run(topology: &Topology) -> Result<()> {
    let guest = &topology.guest;
    guest.sh(&format!(
        "mkdir -p {GROUPS}; mount -t cgroup2 none {GROUPS}; echo +memory >{GROUPS}/cgroup.subtree_control"
    ))?;
    for client in [Client::Batch, Client::Simple, Client::Kernel] {
        for limit in [32, 16, 8] {
            let way = Way { client, server: Server::Serve };
            match confined(topology, way, limit) {
                Ok(said) => println!("{}, {limit} MiB: {said}", way.name()),
                Err(error) => println!("{}, {limit} MiB: failed: {error:#}", way.name()),
            }
        }
    }
    Ok(())
}

fn confined(topology: &Topology, way: Way, limit: u32) -> Result<String> {
    let guest = &topology.guest;
    let group = format!("{GROUPS}/{:?}-{limit}", way.client);
    guest.sh(&format!(
        "mkdir {group}; echo {limit}M >{group}/memory.max; echo 0 >{group}/memory.swap.max || true"
    ))?;
    let ends = Ends::within(topology, way, Some(&group))?;
    let up = turn::transfer(topology, &ends, false, 3)?;
    let down = turn::transfer(topology, &ends, true, 3)?;
    let memory = turn::memory(guest)?;
    let said = guest.sh(&format!(
        "cat {group}/memory.current {group}/memory.peak; grep -w oom_kill {group}/memory.events"
    ))?;
    let [now, most, killed] = said.lines().collect::<Vec<_>>()[..] else {
        anyhow::bail!("of the group: {said}")
    };
    let kib = |text: &str| text.parse::<u64>().map(|bytes| bytes / 1024).context("bytes");
    Ok(format!(
        "up {:.0}, down {:.0} Mbit/s; Pss {:.0} KiB (rings {:.0}, anonymous {:.0}); the group has {} KiB, had {} at most, \
         {killed}",
        up.rate / 1e6,
        down.rate / 1e6,
        memory.pss,
        memory.rings,
        memory.anonymous,
        kib(now)?,
        kib(most)?,
    ))
}
