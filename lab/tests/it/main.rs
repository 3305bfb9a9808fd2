//! What real drivers do with encapsulated traffic, seen in guests with Debian's stock kernels.
//!
//! Guests are booted when an experiment asks for one: of those that many experiments use there may be two, so that a test
//! thread seldom waits for a guest; a kind that few use is booted once.

// What was counted, for whoever asks with --nocapture.
#![allow(clippy::print_stdout)]

mod bench_pps;
mod bench_scenarios;
mod bench_work;
mod captures;
mod coalescing;
mod fastpath;
mod flowtable;
mod harness;
mod links;
mod offline;
mod oldest;
mod package;
mod pool;
mod pppoe;
mod receive;
mod sizes;
mod steer;
mod subscribers;
mod unit;

use anyhow::{Context, Result};
use pool::{Pool, Taken};
use rxlane_lab::{Guest, Lab, Model, Nic, Series, Spec};
use std::process::Command;
use std::time::Duration;
use testkit::{program, require};
use traffic::{Popularity, Scenario, Sizes};
use wire::emit::Encapsulation;

/// Flows of an experiment; one frame each.
const FLOWS: u32 = 2000;
/// Frames a second: a guest on a busy machine keeps up, and its ring holds all of them.
const RATE: u32 = 4000;
const SEED: u64 = 7;
/// How long is waited for what has to come. A guest that shares two CPUs with ten others takes half a minute to load a program.
const LONG: Duration = Duration::from_secs(290);

/// A shell command that gives a script, without single quotes, [`LONG`].
fn limited(script: &str) -> String {
    format!("timeout {} sh -c '{script}'", LONG.as_secs())
}

/// A shell command that waits until another succeeds, [`LONG`] at most. The pause is between two tries: it ends nothing.
fn until(command: &str) -> String {
    limited(&format!("until {command}; do sleep 0.1; done"))
}

static NEWER: Pool = Pool::of(1);
static OLDER: Pool = Pool::of(1);
static OLDEST: Pool = Pool::of(1);

/// A guest with the newer kernel, `wan` as it is after boot: four queues, rings of 4096, each vector on a CPU of
/// its own, no RPS, no program, up.
fn newer() -> Option<Taken> {
    of(&NEWER, Series::V6_12)
}

/// The same with the older kernel.
fn older() -> Option<Taken> {
    of(&OLDER, Series::V6_1)
}

/// The same with the oldest kernel.
fn oldest() -> Option<Taken> {
    of(&OLDEST, Series::V5_10)
}

fn of(pool: &'static Pool, kernel: Series) -> Option<Taken> {
    // Every test asks, so that every test says that it is skipped.
    let lab = Lab::require()?;
    let guest = pool.take(|| {
        let nics =
            vec![Nic::new("wan", Model::Igb), Nic::new("lan", Model::Igb), Nic::new("old", Model::E1000e)];
        lab.boot(&Spec { nics, ..Spec::new(kernel) }).expect("a guest")
    });
    fresh(&guest).expect("the adapter as after boot");
    Some(guest)
}

/// Loads the drivers again and gives the interfaces their names.
fn booted(guest: &Guest) -> Result<()> {
    guest.name_adapters()?;
    guest.sh("ethtool -G wan rx 4096").map(drop)
}

fn fresh(guest: &Guest) -> Result<()> {
    guest.sh(
        "ip link set wan down; rm -rf /sys/fs/bpf/*; ip link set wan xdpdrv off; \
         mountpoint -q /sys/fs/bpf || mount -t bpf bpf /sys/fs/bpf; \
         ethtool -K wan rxvlan on; ethtool -L wan combined 4 || [ $? = 80 ]; ethtool -G wan rx 4096 || [ $? = 80 ]; \
         for queue in /sys/class/net/wan/queues/rx-*; do echo 0 >$queue/rps_cpus; done; \
         ip link set wan promisc on up",
    )?;
    guest.await_carrier("wan")?;
    vectors(guest, "wan")
}

/// Each queue's vector to the CPU of the same number. They are new after whatever sets the adapter up. One moves with its next
/// interrupt (`irq_move_irq()`), of which the drivers' watchdogs cause one each two seconds; until then a burst would be
/// polled on its former CPU to its end.
fn vectors(guest: &Guest, nic: &str) -> Result<()> {
    guest
        .sh(&format!(
            "for file in /proc/irq/*/{nic} /proc/irq/*/{nic}-*; do queue=${{file##*-}}; \
             case $queue in [0-9]) ;; *) queue=0;; esac; echo $queue >${{file%/*}}/smp_affinity_list || continue; \
             case $file in *-rx-[0-9]|*-TxRx-[0-9]) ;; *) continue;; esac; left=600; \
             until [ \"$(cat ${{file%/*}}/effective_affinity_list)\" = $queue ]; do \
             left=$((left - 1)); [ $left -gt 0 ] || {{ echo $file does not move; exit 1; }}; sleep 0.1; done; done"
        ))
        .map(drop)
}

/// A frame of each of [`FLOWS`] TCP flows over IPv4 in the encapsulation, to the adapter.
fn frames(guest: &Guest, nic: &str, encapsulation: &str) -> Result<Vec<Vec<u8>>> {
    let encapsulation: Encapsulation = encapsulation.parse()?;
    let mut scenario = Scenario::new(encapsulation).with_flows(FLOWS).data_only();
    scenario.popularity = Popularity::RoundRobin;
    scenario.sizes = Sizes::Fixed(200);
    scenario.ipv6_percent = 0;
    scenario.udp_percent = 0;
    let mut generator = scenario.generate(SEED)?;
    let station = guest.mac(nic)?;
    let frame = |_| {
        let mut frame = generator.next_frame().bytes.to_vec();
        frame[..6].copy_from_slice(&station.0);
        frame
    };
    Ok((0..FLOWS).map(frame).collect())
}

/// What a frame of each flow did: frames by queue, and by the CPU on which the stack took them.
#[derive(Debug)]
struct Landed {
    queues: Vec<u64>,
    cpus: Vec<u64>,
}

/// Injects a frame of each flow into `wan`, and waits until all have been handed on by their queue.
fn land(guest: &Guest, encapsulation: &str) -> Result<Landed> {
    let frames = frames(guest, "wan", encapsulation)?;
    let (queues, cpus) = (guest.queue_frames("wan")?, guest.cpu_frames()?);
    let total: u64 = queues.iter().sum();
    guest.port("wan")?.inject(&frames, RATE)?;
    let start = std::time::Instant::now();
    let queues = loop {
        let now = guest.queue_frames("wan")?;
        if now.iter().sum::<u64>() >= total + frames.len() as u64 || start.elapsed() > LONG {
            break now.iter().zip(&queues).map(|(now, before)| now - before).collect();
        }
    };
    // What was handed to another CPU is taken there a moment later, which is long on a busy machine.
    let cpus = loop {
        let taken: Vec<u64> =
            guest.cpu_frames()?.iter().zip(&cpus).map(|(now, before)| now - before).collect();
        if taken.iter().sum::<u64>() >= frames.len() as u64 || start.elapsed() > LONG {
            break taken;
        }
    };
    Ok(Landed { queues, cpus })
}

/// Injects frames into the adapter and waits until it has received as many.
fn land_on(guest: &Guest, nic: &str, frames: &[Vec<u8>]) -> Result<()> {
    let before = guest.counter(nic, "rx_packets")?;
    guest.port(nic)?.inject(frames, RATE / 4)?;
    guest.await_counter(nic, "rx_packets", before + frames.len() as u64, LONG).map(drop)
}

/// Whether each of the four has its share of `total`, give or take a fifth. Of 2,000 flows a share of 500 has a
/// standard deviation of 19.
fn is_even(counts: &[u64], total: u64) -> bool {
    let share = total / 4;
    counts.len() == 4 && counts.iter().all(|count| count.abs_diff(share) <= share / 5)
}

/// Whether CPU 0 has practically all. A poll that began before a vector was moved ends where it began.
fn is_on_first(counts: &[u64], total: u64) -> bool {
    counts.first().is_some_and(|first| *first >= total - total / 20)
}

/// A program of `lab/bpf`, compiled and put into the guest as `/tmp/NAME.o`; `None` after a line that says what is
/// skipped where there is no clang.
fn compiled(guest: &Guest, name: &str) -> Option<()> {
    let clang = require("clang", program("clang"))?;
    let object = tempfile::NamedTempFile::new().expect("a file");
    let status = Command::new(clang)
        .args(["-O2", "-g", "-target", "bpf", "-I/usr/include/x86_64-linux-gnu", "-Wall", "-Werror", "-c"])
        .arg(format!("{}/bpf/{name}.bpf.c", env!("CARGO_MANIFEST_DIR")))
        .arg("-o")
        .arg(object.path())
        .status()
        .expect("clang");
    assert!(status.success(), "{name}.bpf.c does not compile");
    let bytes = std::fs::read(object.path()).expect("the object");
    guest.write(&format!("/tmp/{name}.o"), &bytes).context("the object").expect("in the guest");
    Some(())
}
