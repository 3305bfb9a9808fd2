//! What a packet costs in instructions, counted by QEMU's translator: two guests agree, so that one run can be held against
//! another. It says nothing about time, nor about scaling over CPUs.
//!
//! The clock of instructions (`-icount`) is not used: with it, or else without a thread for each CPU, QEMU 10.0.2 and the plugin that
//! counts crash the guest (`rep stos` writes on behind its end).

use crate::vectors;
use anyhow::{Context, Result, ensure};
use rxlane_lab::{Guest, Lab, Model, Nic, Series, Spec};
use std::thread;
use std::time::{Duration, Instant};

/// Frames that are sent at once, and how often.
const BURST: usize = 64;
const BURSTS: usize = 150;
/// Between two of them, so that each is worked by itself.
const PAUSE: Duration = Duration::from_millis(40);
/// How far two runs may be apart.
const SAME: f64 = 0.05;

/// Instructions of all CPUs for a packet.
#[derive(Clone, Copy, Debug)]
struct Work {
    /// Received by `rxlane bench recv`, as in the scenario `pps`.
    pps: f64,
    /// Forwarded by the kernel to another adapter, as in the scenario `forward`.
    forward: f64,
}

fn work(lab: &Lab, rxlane: &str) -> Result<Work> {
    let nics = vec![Nic::new("wan", Model::Igb), Nic::new("lan", Model::Igb)];
    let spec = Spec { cpus: 2, nics, counting: true, ..Spec::new(Series::V6_12) };
    let guest = lab.boot(&spec)?;
    guest.sh(
        "sysctl -qw net.ipv4.ip_forward=1; ip addr add 198.18.0.1/24 dev wan; ip addr add 192.0.2.1/24 dev lan; \
         ethtool -G wan rx 4096; ip link set wan up; ip link set lan up; ip neigh add 192.0.2.2 lladdr 02:00:00:00:00:99 dev lan",
    )?;
    for nic in ["wan", "lan"] {
        guest.await_carrier(nic)?;
        vectors(&guest, nic)?;
    }
    let station = guest.mac("wan")?;
    let sink = guest.start(&[rxlane, "bench", "recv", "--interface", "wan"], "/tmp/recv")?;
    guest.sh("until grep -q ^Receiving /tmp/recv; do sleep 0.1; done")?;
    let received = || guest.counter("wan", "rx_packets");
    let pps = each(&guest, &crate::bench_pps::frames(station, crate::bench_pps::OWN)?, &received)?;
    guest.signal(sink, libc::SIGINT, true)?;
    let forwarded = || Ok(guest.port("lan")?.received());
    let forward = each(&guest, &crate::bench_pps::frames(station, [192, 0, 2, 2])?, &forwarded)?;
    Ok(Work { pps, forward })
}

/// Instructions for each frame, without what the CPUs do when nothing comes. `count` is asked before and after alone: asking is work,
/// too.
fn each(guest: &Guest, frames: &[Vec<u8>], count: &dyn Fn() -> Result<u64>) -> Result<f64> {
    let bursts = |number: usize| -> Result<()> {
        for burst in frames.chunks(BURST).cycle().take(number) {
            guest.port("wan")?.inject(burst, 0)?;
            thread::sleep(PAUSE);
        }
        Ok(())
    };
    let instructions = || -> Result<u64> { Ok(guest.instructions()?.iter().sum()) };
    // The first ones fill caches.
    bursts(8)?;
    thread::sleep(Duration::from_secs(1));
    let (before, start) = (instructions()?, Instant::now());
    thread::sleep(Duration::from_secs(4));
    let idle = (instructions()? - before) as f64 / start.elapsed().as_secs_f64();
    let counted = count()?;
    let (before, start) = (instructions()?, Instant::now());
    bursts(BURSTS)?;
    let spent = (instructions()? - before) as f64 - idle * start.elapsed().as_secs_f64();
    let all = (BURSTS * BURST) as u64;
    let came = count()? - counted;
    ensure!(came == all, "of {all} frames {came} came");
    println!("idle {idle:.0} instructions a second; {:.1} s", start.elapsed().as_secs_f64());
    Ok(spent / all as f64)
}

/// How frames fall into polls is decided by how fast the virtual CPUs run, so beside other work two runs can be farther apart.
#[test]
#[ignore = "takes a machine that does nothing else"]
fn two_runs_agree_on_the_work_of_a_packet() {
    let (Some(lab), Some(rxlane)) = (Lab::require(), crate::steer::rxlane()) else { return };
    let [first, second] = [(); 2].map(|()| work(&lab, &rxlane).context("a run").expect("counted"));
    for (name, one, other) in [("pps", first.pps, second.pps), ("forward", first.forward, second.forward)] {
        let apart = (one / other - 1.0).abs();
        println!("{name}: {one:.0} and {other:.0} instructions a packet, {:.1} % apart", 100.0 * apart);
        assert!(one > 500.0 && apart <= SAME, "{name}: {one} and {other}");
    }
}
