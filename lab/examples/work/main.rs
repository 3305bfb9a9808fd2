//! How much work a packet is, and on which CPU, in instructions per packet and CPU: PPPoE TCP over `igb`, forwarded, delivered, and
//! routed with NAT, without steering, with RPS, steered, and with what the kernel offers besides. `download` and `upload` are routed
//! as by most home routers, and with the fast path, too: PPPoE of `pppd` in a VLAN, masquerade and a filter on states.
//!
//! ```console
//! $ cargo build -p rxlane -p rxlane-lab && cargo run -p rxlane-lab --example work -- 6.12 forwarded,delivered,routed 4
//! $ cargo run -p rxlane-lab --example work -- 6.12 download,upload 4
//! $ cargo run -p rxlane-lab --example work -- 6.12 saturated 4
//! ```
//!
//! The last number is how many CPUs are the router's, from CPU 0 on, which takes the interrupts of the queue with all
//! PPPoE; words behind it (`'none;fastpath'`) leave only the rows whose names contain one of them. Senders and receiving programs of real connections live on
//! CPUs 4 to 7.

#![allow(clippy::print_stdout)]

mod connections;
mod count;
mod delivered;
mod forwarded;
mod mode;
mod routed;
mod saturated;
mod tagged;

use anyhow::{Context, Result, ensure};
use rxlane_lab::{Guest, Lab, Model, Nic, Series, Spec};
use std::process::Command;
use tagged::Direction;

/// Programs of `lab/bpf`.
const PROGRAMS: [&str; 2] = ["redirect", "port"];

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let name = arguments.first().map_or("6.12", String::as_str);
    let kernel = Series::named(name).context("kernel: 5.10, 6.1, 6.12 or 7")?;
    let parts = arguments.get(1).map_or("forwarded,delivered,routed", String::as_str);
    let cpus: usize = arguments.get(2).map_or(Ok(4), |cpus| cpus.parse())?;
    ensure!((2..=8).contains(&cpus), "2 to 8 CPUs");
    let directions: Vec<Direction> =
        Direction::ALL.into_iter().filter(|direction| parts.contains(direction.name())).collect();
    let has = |part: &str| parts.contains(part);
    ensure!(
        directions.is_empty() || !has("delivered") && !has("routed"),
        "one session between client and server"
    );
    let lab = Lab::prepare().map_err(|missing| anyhow::anyhow!("{missing}"))?;
    let [client, server] = Nic::pair("client", "server", Model::Igb);
    let [inside, home] = Nic::pair("inside", "home", Model::Igb);
    let nics = vec![Nic::new("wan", Model::Igb), Nic::new("lan", Model::Igb), client, server, inside, home];
    let guest = lab.boot(&Spec { cpus: 8, nics, counting: true, ..Spec::new(kernel) })?;
    println!("{}", guest.sh("uname -rv")?.trim());
    println!("{}", rxlane_lab::emulator()?);
    for name in PROGRAMS {
        compile(&guest, name)?;
    }
    guest.sh(
        "mount -t bpf bpf /sys/fs/bpf; sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0 \
              net.ipv4.conf.default.rp_filter=0 net.core.netdev_max_backlog=8192",
    )?;
    adapter(&guest, "wan", cpus)?;
    adapter(&guest, "lan", cpus)?;
    if has("forwarded") {
        forwarded::measure(&guest, cpus)?;
    }
    if has("delivered") || has("routed") {
        delivered::connect(&guest)?;
    }
    if has("delivered") {
        delivered::measure(&guest, cpus)?;
    }
    if has("routed") {
        routed::measure(&guest, cpus)?;
    }
    if has("saturated") {
        ensure!(directions.is_empty() && !has("forwarded"), "one session");
        saturated::measure(&guest, cpus)?;
    }
    if !directions.is_empty() {
        tagged::measure(&guest, cpus, &directions)?;
    }
    Ok(())
}

/// A program of `lab/bpf`, in the guest as `/tmp/NAME.o`.
fn compile(guest: &Guest, name: &str) -> Result<()> {
    let object = tempfile::NamedTempFile::new()?;
    let built = Command::new("clang")
        .args(["-O2", "-g", "-target", "bpf", "-I/usr/include/x86_64-linux-gnu", "-c"])
        .arg(format!("{}/bpf/{name}.bpf.c", env!("CARGO_MANIFEST_DIR")))
        .arg("-o")
        .arg(object.path())
        .status()?;
    ensure!(built.success(), "clang");
    guest.write(&format!("/tmp/{name}.o"), &std::fs::read(object.path())?)
}

/// So many queues, long rings, each vector on its own CPU. PPPoE is on the first queue however many there are.
fn adapter(guest: &Guest, name: &str, queues: usize) -> Result<()> {
    guest.sh(&format!(
        "modprobe pppoe; ethtool -L {name} combined {queues} || [ $? = 80 ]; ethtool -G {name} rx 4096 tx 4096; \
         ip link set {name} promisc on up"
    ))?;
    guest.await_carrier(name)?;
    vectors(guest, name, 0)
}

/// Interrupts have new numbers whenever the driver sets the adapter up.
fn vectors(guest: &Guest, name: &str, first: usize) -> Result<()> {
    guest
        .sh(&format!(
            "for file in /proc/irq/*/{name} /proc/irq/*/{name}-*; do \
             queue=${{file##*-}}; case $queue in [0-9]) ;; *) queue=0;; esac; \
             echo $(({first} + queue)) >${{file%/*}}/smp_affinity_list; done; "
        ))
        .map(drop)
}
