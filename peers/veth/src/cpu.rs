//! CPU time from `/proc` (proc(5)).

use anyhow::Context;

/// Of `/proc/stat` and `/proc/PID/stat` (`USER_HZ`).
const TICKS: f64 = 100.0;

/// Seconds of CPU time so far.
#[derive(Clone, Copy, Debug)]
pub struct Busy {
    /// Of all CPUs: user, nice, system, interrupts, soft interrupts.
    pub all: f64,
    /// In soft interrupts.
    pub softirq: f64,
    /// Of certain processes.
    pub processes: f64,
}

impl Busy {
    /// Now.
    pub fn now(processes: &[u32]) -> anyhow::Result<Busy> {
        let stat = std::fs::read_to_string("/proc/stat")?;
        let line = stat.lines().next().context("/proc/stat is empty")?;
        let ticks: Vec<f64> = line.split_whitespace().skip(1).filter_map(|word| word.parse().ok()).collect();
        let tick = |place: usize| ticks.get(place).copied().unwrap_or_default();
        let mut own = 0.0;
        for process in processes {
            let path = format!("/proc/{process}/stat");
            let stat = std::fs::read_to_string(&path).with_context(|| path.clone())?;
            // Behind the name, which may have spaces: utime and stime are the 12th and 13th.
            let rest = stat.rsplit_once(") ").map(|(_, rest)| rest).context("a line of /proc/PID/stat")?;
            own += rest.split(' ').skip(11).take(2).filter_map(|word| word.parse::<f64>().ok()).sum::<f64>();
        }
        let all = [0, 1, 2, 5, 6].into_iter().map(tick).sum::<f64>();
        Ok(Busy { all: all / TICKS, softirq: tick(6) / TICKS, processes: own / TICKS })
    }

    /// What was spent since.
    pub fn since(&self, before: &Busy) -> Busy {
        Busy {
            all: self.all - before.all,
            softirq: self.softirq - before.softirq,
            processes: self.processes - before.processes,
        }
    }
}
