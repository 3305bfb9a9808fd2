//! The ways in which packets spread over the router's CPUs, or cost it less.

use crate::{forwarded, routed, vectors};
use anyhow::{Context, Result};
use rxlane_lab::Guest;
use rxlane_lab::built::program;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const PINS: &str = "/sys/fs/bpf/work";

/// How packets spread over the router's CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spreading {
    Off,
    /// To the CPUs of this mask, by the kernel.
    Rps(u32),
    /// To all CPUs by the least program that can, this many of 256 buckets to CPU 0 and the others alike.
    Least(u32),
    /// By `rxlane steer up` to these CPUs; it samples the interface under load and chooses the shares.
    Steer(String),
    /// None: `rxlane fastpath up` on the line and the interface inside.
    Fastpath,
    /// None: frames leave by the other interface as they are, by the least program that can.
    Port,
}

/// A way of spreading, and what the kernel does besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mode {
    pub spreading: Spreading,
    /// Established flows bypass the stack (`nft` flowtable over the physical devices).
    pub flowtable: bool,
    /// The kernel can coalesce what is in PPPoE, and the interface's GRO is on. `None`: it cannot, and GRO stays as it was.
    pub pppoe_gro: Option<bool>,
}

impl From<Spreading> for Mode {
    fn from(spreading: Spreading) -> Mode {
        Mode { spreading, flowtable: false, pppoe_gro: None }
    }
}

impl Mode {
    pub fn name(&self) -> String {
        let spreading = match &self.spreading {
            Spreading::Off => None,
            Spreading::Rps(mask) => Some(format!("RPS, mask {mask:x}")),
            Spreading::Least(buckets) => Some(format!("least, {buckets}/256 to CPU 0")),
            Spreading::Steer(cpus) => Some(format!("rxlane, --cpus {cpus}")),
            Spreading::Fastpath => Some("fastpath".to_owned()),
            Spreading::Port => Some("least that forwards".to_owned()),
        };
        let flowtable = self.flowtable.then(|| "flowtable".to_owned());
        let gro = self.pppoe_gro.unwrap_or_default().then(|| "PPPoE GRO".to_owned());
        let parts: Vec<String> = [flowtable, gro, spreading].into_iter().flatten().collect();
        if parts.is_empty() { "none".to_owned() } else { parts.join(" + ") }
    }

    /// All of these spreadings without and with flowtables, each also with PPPoE GRO where the kernel has it.
    pub fn combined(guest: &Guest, spreadings: &[Spreading], flowtables: &[bool]) -> Result<Vec<Mode>> {
        let coalesces = guest.sh("grep -c pppoe_gro_receive /proc/kallsyms || true")?.trim() != "0";
        let gro: &[Option<bool>] = if coalesces { &[Some(false), Some(true)] } else { &[None] };
        let mut modes = Vec::new();
        for &flowtable in flowtables {
            for &pppoe_gro in gro {
                let mode =
                    |spreading: &Spreading| Mode { spreading: spreading.clone(), flowtable, pppoe_gro };
                modes.extend(spreadings.iter().map(mode));
            }
        }
        Ok(modes)
    }
}

/// What stays on the receiving CPU and what moves, for the weighted mode of the least program, which queues to its own
/// CPU as to any other.
const STAYS: f64 = 790.0;
const MOVES: f64 = 6150.0;

/// Those of the modes whose names contain one of the words that were given.
pub fn selected(modes: Vec<Mode>) -> Vec<Mode> {
    let words = std::env::args().nth(4).unwrap_or_default();
    let is_given = |mode: &Mode| words.split(';').any(|word| mode.name().contains(word));
    modes.into_iter().filter(is_given).collect()
}

/// All ways of spreading over `cpus` CPUs.
pub fn spreading(cpus: usize) -> Vec<Spreading> {
    let (all, count) = ((1 << cpus) - 1, cpus as f64);
    let weight = (MOVES - (count - 1.0) * STAYS) / (count * MOVES);
    vec![
        Spreading::Off,
        Spreading::Rps(all),
        Spreading::Rps(all - 1),
        Spreading::Least(256 / cpus as u32),
        Spreading::Least((weight.max(0.0) * 256.0).round() as u32),
        Spreading::Least(0),
        Spreading::Steer(format!("0-{}", cpus - 1)),
        Spreading::Steer(format!("1-{}", cpus - 1)),
        // Nothing moves: what a frame costs that is its own CPU's.
        Spreading::Steer("0".to_owned()),
    ]
}

/// What a person would choose from: nothing, RPS with and without the interrupt CPU, `rxlane steer` with it, without it, and with
/// nothing that moves.
pub fn choices(cpus: usize) -> Vec<Spreading> {
    let all = (1 << cpus) - 1;
    let steer = [format!("0-{}", cpus - 1), format!("1-{}", cpus - 1), "0".to_owned()];
    let spreading = [Spreading::Off, Spreading::Rps(all), Spreading::Rps(all - 1)];
    spreading.into_iter().chain(steer.map(Spreading::Steer)).collect()
}

/// `name` is where packets arrive that are spread, `inside` the other side of the router.
pub fn enter(guest: &Guest, [name, inside]: [&str; 2], mode: &Mode, cpus: usize) -> Result<()> {
    if let Some(is_on) = mode.pppoe_gro {
        gro(guest, name, is_on)?;
    }
    if mode.flowtable {
        routed::rules(guest, true)?;
    }
    match &mode.spreading {
        Spreading::Off => Ok(()),
        Spreading::Rps(mask) => rps(guest, name, *mask),
        Spreading::Least(buckets) => least(guest, name, *buckets, cpus),
        Spreading::Steer(cpus) => steer(guest, name, cpus),
        Spreading::Port => port(guest, name, inside),
        Spreading::Fastpath => {
            guest.sh(&format!(
                "{} fastpath up {name} {inside} --daemon --disable-rxvlan >/dev/null",
                program("rxlane")?.display()
            ))?;
            settled(guest, &[name, inside])
        }
    }
}

pub fn leave(guest: &Guest, [name, inside]: [&str; 2], mode: &Mode) -> Result<()> {
    match &mode.spreading {
        Spreading::Off => {}
        Spreading::Rps(_) => rps(guest, name, 0)?,
        Spreading::Least(_) | Spreading::Steer(_) => {
            let down = match mode.spreading {
                Spreading::Steer(_) => {
                    format!("{} steer down {name} >/dev/null", program("rxlane")?.display())
                }
                _ => format!("ip link set {name} xdpdrv off; rm -rf {PINS}"),
            };
            guest.sh(&down)?;
            settled(guest, &[name])?;
        }
        Spreading::Port => {
            guest.sh(&format!(
                "ip link set {name} xdpdrv off; ip link set {inside} xdpdrv off; rm -rf {PINS}"
            ))?;
            settled(guest, &[name, inside])?;
        }
        Spreading::Fastpath => {
            guest.sh(&format!("{} fastpath down >/dev/null", program("rxlane")?.display()))?;
            settled(guest, &[name, inside])?;
        }
    }
    if mode.flowtable {
        routed::rules(guest, false)?;
    }
    if mode.pppoe_gro.is_some() {
        gro(guest, name, true)?;
    }
    Ok(())
}

/// Adapters that were set up anew have a carrier after a while, and their vectors on other CPUs.
fn settled(guest: &Guest, names: &[&str]) -> Result<()> {
    for name in names {
        guest.await_carrier(name)?;
        vectors(guest, name, 0)?;
    }
    Ok(())
}

fn rps(guest: &Guest, name: &str, mask: u32) -> Result<()> {
    guest
        .sh(&format!("for file in /sys/class/net/{name}/queues/rx-*/rps_cpus; do echo {mask:x} >$file; done"))
        .map(drop)
}

fn least(guest: &Guest, name: &str, first: u32, cpus: usize) -> Result<()> {
    let mut script = format!("mkdir {PINS}; bpftool prog loadall /tmp/redirect.o {PINS} pinmaps {PINS}\n");
    for cpu in 0..cpus {
        // Queue of 2048 frames, no program behind it.
        script.push_str(&format!(
            "bpftool map update pinned {PINS}/CPUS key {cpu} 0 0 0 value 0 8 0 0 0 0 0 0\n"
        ));
    }
    let mut batch = String::new();
    for bucket in 0..256 {
        let cpu = if bucket < first { 0 } else { 1 + bucket % (cpus as u32 - 1) };
        batch.push_str(&format!("map update pinned {PINS}/BUCKETS key {bucket} 0 0 0 value {cpu} 0 0 0\n"));
    }
    guest.write("/tmp/buckets", batch.as_bytes())?;
    script.push_str(&format!(
        "bpftool batch file /tmp/buckets >/dev/null; bpftool net attach xdpdrv pinned {PINS}/steer dev {name}\n"
    ));
    guest.sh(&script)?;
    guest.await_carrier(name)?;
    vectors(guest, name, 0)
}

/// Frames from the one to the other; `igb` sends for XDP only where it has a program itself.
fn port(guest: &Guest, name: &str, inside: &str) -> Result<()> {
    let index = guest.sh(&format!("cat /sys/class/net/{inside}/ifindex"))?;
    guest.sh(&format!(
        "mkdir {PINS}; bpftool prog loadall /tmp/port.o {PINS} pinmaps {PINS}; \
         bpftool map update pinned {PINS}/PORT key 0 0 0 0 value {} 0 0 0; \
         for nic in {name} {inside}; do bpftool net attach xdpdrv pinned {PINS}/forward dev $nic; done",
        index.trim()
    ))?;
    settled(guest, &[name, inside])
}

/// Buckets by CPU, as `rxlane steer up` chooses them while the interface is in use.
fn steer(guest: &Guest, name: &str, cpus: &str) -> Result<()> {
    // The adapter takes the tag of a VLAN off where there is one.
    let tag = if guest.sh("ip link show type vlan")?.is_empty() { "" } else { "--disable-rxvlan" };
    let command = format!(
        "{} steer up {name} --cpus {cpus} --classes pppoe {tag} --seconds 3",
        program("rxlane")?.display()
    );
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        if let Ok(port) = guest.port(name) {
            let (frames, done) = (forwarded::pppoe(guest, 1400), &done);
            scope.spawn(move || -> Result<()> {
                let frames = frames?;
                while !done.load(Ordering::Relaxed) {
                    port.inject(&frames[..200], 1000)?;
                }
                Ok(())
            });
        }
        let said = guest.sh(&command);
        done.store(true, Ordering::Relaxed);
        said.map(drop)
    })?;
    guest.await_carrier(name)?;
    vectors(guest, name, 0)?;
    let shares = guest.sh(&format!("{} steer status {name} --json", program("rxlane")?.display()))?;
    let status: serde_json::Value = serde_json::from_str(&shares)?;
    let rows = status["cpus"].as_array().context("no CPUs")?;
    let buckets: Vec<String> = rows.iter().map(|row| format!("{}: {}", row["cpu"], row["buckets"])).collect();
    println!("  buckets of CPU {}", buckets.join(", "));
    Ok(())
}

fn gro(guest: &Guest, name: &str, is_on: bool) -> Result<()> {
    guest.sh(&format!("ethtool -K {name} gro {}", if is_on { "on" } else { "off" })).map(drop)
}
