//! Instructions that each CPU spent on packets.

use anyhow::Result;
use rxlane_lab::Guest;
use std::thread;
use std::time::{Duration, Instant};

/// What happened while packets came.
pub struct Work {
    pub packets: u64,
    /// Of each CPU, without what it does when nothing comes.
    instructions: Vec<f64>,
    note: String,
}

/// Counts while `packets` come, and takes off what every CPU does by itself.
pub fn count(guest: &Guest, idle: &[f64], packets: impl FnOnce() -> Result<(u64, String)>) -> Result<Work> {
    let (before, start) = (guest.instructions()?, Instant::now());
    let (packets, note) = packets()?;
    let (after, seconds) = (guest.instructions()?, start.elapsed().as_secs_f64());
    let own = before.iter().zip(&after).zip(idle);
    let instructions = own.map(|((before, after), idle)| (after - before) as f64 - idle * seconds).collect();
    Ok(Work { packets, instructions, note })
}

/// Instructions a second of each CPU when nothing comes: what time alone costs, three seconds of it after a second for what is
/// still under way.
pub fn idle(guest: &Guest) -> Result<Vec<f64>> {
    thread::sleep(Duration::from_secs(1));
    let (before, start) = (guest.instructions()?, Instant::now());
    thread::sleep(Duration::from_secs(3));
    let (after, seconds) = (guest.instructions()?, start.elapsed().as_secs_f64());
    Ok(before.iter().zip(after).map(|(before, after)| (after - before) as f64 / seconds).collect())
}

pub fn print(name: &str, work: &Work, router: usize) {
    let each = |cpu: usize| work.instructions[cpu] / work.packets as f64;
    let cpus: Vec<String> = (0..router).map(|cpu| format!("{:7.0}", each(cpu))).collect();
    let all: f64 = (0..router).map(each).sum();
    let busiest = (0..router).map(each).fold(0.0, f64::max);
    println!(
        "{name:22} {:6} packets | {} | busiest {busiest:7.0}, all {all:7.0} {}",
        work.packets,
        cpus.join(" "),
        work.note
    );
}
