//! The work of a packet in `rxlane bench pps` and `forward`, by a clock of instructions: a guest of one CPU whose time is what it
//! has executed, so that packets a second are work for each. Two runs agree on it, however busy the machine is.
//!
//! It says nothing about scaling over CPUs, nor about caches and memory, which cost no instructions.

use crate::pool::Turn;
use anyhow::{Context, Result, ensure};
use rxlane_lab::{Clock, Guest, Lab, Series, Spec};
use serde_json::Value;
use std::time::Duration;

/// How far two runs may be apart.
const SAME: f64 = 0.05;
/// A scenario with such a clock, on a busy machine.
const LIMIT: Duration = Duration::from_secs(400);
/// Nanoseconds of an instruction.
const INSTRUCTION: f64 = 4.0;

const PPS: [&str; 11] = [
    "pps",
    "--seconds",
    "0.2",
    "--only",
    "senders=1",
    "--only",
    "receivers=1",
    "--only",
    "queues=1",
    "--only",
    "gro=off",
];
const FORWARD: [&str; 9] =
    ["forward", "--seconds", "0.2", "--only", "rps=off", "--only", "streams=one", "--only", "lines=two"];

/// Instructions of everything that a packet takes: sending, the stack, and receiving or forwarding it.
fn work(guest: &Guest, rxlane: &str, words: &[&str], metric: &str) -> Result<f64> {
    let argv = [&[rxlane, "bench"], words, &["--rounds", "3", "--json"]].concat();
    let output = guest.run_with(&argv, &[], LIMIT)?;
    ensure!(output.status == 0, "{words:?}: {}{}", output.text(), output.errors());
    let report: Value = serde_json::from_slice(&output.stdout)?;
    let rate = report["cells"][0]["figures"][metric]["median"].as_f64().context("a median")?;
    Ok(1e9 / INSTRUCTION / rate)
}

#[test]
#[ignore = "make nightly"]
fn two_runs_agree_on_the_work_of_a_packet() {
    let (Some(lab), Some(rxlane)) = (Lab::require(), crate::steer::rxlane()) else { return };
    let _turn = Turn::take();
    let runs = [(); 2].map(|()| {
        let spec = Spec { cpus: 1, clock: Clock::Instructions, ..Spec::new(Series::V6_12) };
        let guest = lab.boot(&spec).expect("a guest");
        guest.sh("modprobe -a tun veth").expect("modules");
        [("pps", &PPS[..], "received"), ("forward", &FORWARD, "forwarded")]
            .map(|(name, words, metric)| (name, work(&guest, &rxlane, words, metric).expect("measured")))
    });
    for ((name, one), (_, other)) in runs[0].into_iter().zip(runs[1]) {
        let apart = (one / other - 1.0).abs();
        println!("{name}: {one:.0} and {other:.0} instructions a packet, {:.1} % apart", 100.0 * apart);
        assert!(one > 500.0 && apart <= SAME, "{name}: {one} and {other}");
    }
}
