//! A turn of a concentrator: set-ups, memory, packets both ways.

use crate::table::Figures;
use crate::topology::{Concentrator, Topology};
use anyhow::{Context, Result, ensure};
use std::thread::sleep;
use std::time::Duration;

/// Set-ups at a time.
const AT_ONCE: &str = "16";
const LINES: &str = "/run/lines";
/// CPU of the concentrator.
const CPU: usize = 1;

pub fn turn(topology: &Topology, concentrator: Concentrator, sessions: u32, seconds: u32) -> Result<Figures> {
    let before = Memory::now(topology)?;
    let pid = topology.start(concentrator)?;
    let figures = measure(topology, &before, sessions, seconds);
    topology.end(pid)?;
    figures
}

fn measure(topology: &Topology, before: &Memory, sessions: u32, seconds: u32) -> Result<Figures> {
    // Nothing says that it has all its memory: time is what it gets.
    sleep(Duration::from_secs(1));
    let empty = Memory::now(topology)?;
    let mut figures = Figures::default();
    let work = Work::now(topology)?;
    let words = ["hosts", &sessions.to_string(), AT_ONCE, LINES];
    let output = topology.run("lines", &words, Duration::from_secs(300))?;
    let [instructions, time] = work.since(topology)?.map(|work| work / f64::from(sessions));
    let [taken, repeated] = numbers(&output)?;
    figures.add("set-ups a second", f64::from(sessions) / taken);
    figures.add("CPU ms a set-up", time * 1e3);
    figures.add("instructions a set-up, thousands", instructions / 1e3);
    figures.add("requests sent again", repeated);
    // The kernel frees what set-ups took for a moment later (RCU), and says nothing of it.
    sleep(Duration::from_secs(2));
    let full = Memory::now(topology)?;
    let each = |after: f64, before: f64| (after - before) / f64::from(sessions);
    figures.add("memory without sessions, Pss KiB", empty.pss);
    figures.add("of the machine without sessions, KiB", before.available - empty.available);
    figures.add("memory a session, Pss KiB", each(full.pss, empty.pss));
    figures.add("of the machine a session, KiB", each(empty.available, full.available));
    figures.add("slab and per-CPU a session, KiB", each(full.kernel, empty.kernel));
    for (way, namespace) in [("up", "lines"), ("down", "core")] {
        for size in ["100", "1400"].into_iter().filter(|_| seconds > 0) {
            let words = ["packets", way, size, &seconds.to_string(), LINES];
            // What is done once for a session is no work of a packet.
            topology.run(namespace, &["packets", way, size, "0.3", LINES], Duration::from_secs(60))?;
            let work = Work::now(topology)?;
            let output = topology.run(namespace, &words, Duration::from_secs(60))?;
            let [instructions, time] = work.since(topology)?;
            let [sent, arrived, taken] = numbers(&output)?;
            ensure!(arrived > 0.0, "{way}, {size} bytes: nothing arrives");
            figures.add(&format!("{way}, {size}: instructions a packet"), instructions / arrived);
            figures.add(&format!("{way}, {size}: CPU us a packet"), time * 1e6 / arrived);
            figures.add(&format!("{way}, {size}: packets a second"), arrived / taken);
            figures.add(&format!("{way}, {size}: lost, %"), 100.0 * (sent - arrived) / sent);
        }
    }
    Ok(figures)
}

fn numbers<const COUNT: usize>(output: &str) -> Result<[f64; COUNT]> {
    let numbers: Vec<f64> = output.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    numbers.try_into().map_err(|_| anyhow::anyhow!("{output}"))
}

/// Of the concentrator's CPU, since the boot: instructions, and seconds that processes and threads of the kernel ran.
struct Work([f64; 2]);

impl Work {
    fn now(topology: &Topology) -> Result<Work> {
        let instructions = topology.guest.instructions()?;
        // Its 7th number is the nanoseconds that processes ran (Documentation/scheduler/sched-stats.rst).
        let text = String::from_utf8(topology.guest.read("/proc/schedstat")?)?;
        let name = format!("cpu{CPU} ");
        let line = text.lines().find_map(|line| line.strip_prefix(&name)).context("/proc/schedstat")?;
        let busy: f64 = line.split_whitespace().nth(6).context("/proc/schedstat")?.parse()?;
        Ok(Work([*instructions.get(CPU).context("a count for each CPU")? as f64, busy / 1e9]))
    }

    fn since(&self, topology: &Topology) -> Result<[f64; 2]> {
        let now = Work::now(topology)?;
        Ok([0, 1].map(|place| now.0[place] - self.0[place]))
    }
}

/// KiB.
struct Memory {
    /// Proportional set size of the processes of the concentrator.
    pss: f64,
    /// What the machine has left (`MemAvailable`).
    available: f64,
    kernel: f64,
}

impl Memory {
    fn now(topology: &Topology) -> Result<Memory> {
        let sum = "for p in $(ip netns pids isp); do grep ^Pss: /proc/$p/smaps_rollup; done | awk '{ s += $2 } END { print s + 0 }'";
        let pss = topology.guest.sh(sum)?.trim().parse()?;
        let text = String::from_utf8(topology.guest.read("/proc/meminfo")?)?;
        let field = |name: &str| -> Result<f64> {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            Ok(line.and_then(|line| line.split_whitespace().next()).context("/proc/meminfo")?.parse()?)
        };
        Ok(Memory { pss, available: field("MemAvailable")?, kernel: field("Slab")? + field("Percpu")? })
    }
}
