//! How many frames a second of processor time the model simulates, in one thread (Linux): `docs/model/speed.toml`, with every stage
//! and with fewer.
//!
//! `cargo run --release -p rxlane-model --example model_speed [MILLISECONDS [CASE]]`, cases being numbered from 1.

#![allow(clippy::print_stdout, reason = "it prints")]

use rxlane_model::{FileError, Scenario};
use std::time::Duration;

const SPEED: &str = include_str!("../../../../docs/model/speed.toml");

/// Time that the process has had a CPU, as other programs may want it, too; in hundredths of a second (proc_pid_stat(5), utime).
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(") ").next().unwrap_or_default();
    let ticks: u64 = fields.split(' ').nth(11).and_then(|field| field.parse().ok()).unwrap_or_default();
    Duration::from_millis(10 * ticks)
}

fn without_gro(scenario: &mut Scenario) {
    scenario.gro_frames = None;
}

fn without_hand_over(scenario: &mut Scenario) {
    scenario.hand_over = None;
}

fn without_readers(scenario: &mut Scenario) {
    scenario.traffic.values_mut().for_each(|traffic| traffic.to = None);
    scenario.application.clear();
}

/// Of a thousand flows, no two frames of a poll are of one flow, and GRO joins nothing; of eight it makes packets, and all that comes
/// after it is done for a packet.
fn of_few_flows(scenario: &mut Scenario) {
    scenario.traffic.values_mut().for_each(|traffic| traffic.flows = 8);
}

type Change = fn(&mut Scenario);

fn main() -> Result<(), FileError> {
    let milliseconds = std::env::args().nth(1).and_then(|word| word.parse().ok());
    let only: Option<usize> = std::env::args().nth(2).and_then(|word| word.parse().ok());
    let cases: [(&str, &[Change]); 5] = [
        ("poll, stack", &[without_gro, without_hand_over, without_readers]),
        ("poll, GRO, stack", &[without_hand_over, without_readers]),
        ("poll, stack, sockets with readers", &[without_gro, without_hand_over]),
        ("poll, GRO, hand-over, stack, sockets with readers", &[]),
        ("the same with 8 flows a source instead of 1,000", &[of_few_flows]),
    ];
    for (number, (name, changes)) in (1..).zip(cases) {
        if only.is_some_and(|only| only != number) {
            continue;
        }
        let mut scenario = Scenario::parse("speed.toml", SPEED)?;
        changes.iter().for_each(|change| change(&mut scenario));
        scenario.duration_ms = milliseconds.unwrap_or(scenario.duration_ms);
        let plan = scenario.plan(&mut |_, _, _, _| Err("no captures".to_owned()))?;
        let start = processor_time();
        let answer = rxlane_model::run(plan);
        let took = (processor_time() - start).as_secs_f64();
        assert!(answer.conserves());
        let offered: u64 = answer.traffic.iter().map(|traffic| traffic.offered).sum();
        let delivered: u64 = answer.traffic.iter().map(|traffic| traffic.delivered).sum();
        let rate = offered as f64 / took / 1e6;
        let received = 100.0 * delivered as f64 / offered as f64;
        let events = answer.events as f64 / offered as f64;
        println!(
            "{rate:6.1} million frames/s  {name} ({offered} frames, {received:.1} % delivered, {events:.2} events a frame)"
        );
    }
    Ok(())
}
