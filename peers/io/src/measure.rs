//! What a turn costs, and tables of turns.

use crate::sys::usage;
use rustix::system::sysinfo;
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// Binds the calling thread to a CPU.
pub fn pin(cpu: usize) -> anyhow::Result<()> {
    let mut cpus = CpuSet::new();
    cpus.set(cpu);
    Ok(sched_setaffinity(None, &cpus)?)
}

/// CPU time of this thread in nanoseconds.
pub fn cpu_now() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// What a turn of one way cost, nanoseconds in all.
#[derive(Clone, Copy, Default)]
pub struct Cost {
    pub frames: u64,
    pub lost: u64,
    pub wall: f64,
    pub cpu: f64,
    pub user: f64,
    pub system: f64,
}

impl Cost {
    /// CPU time a frame.
    pub fn cpu_each(&self) -> f64 {
        self.cpu / self.frames as f64
    }

    pub fn wall_each(&self) -> f64 {
        self.wall / self.frames as f64
    }

    pub fn add(&mut self, other: Cost) {
        self.frames += other.frames;
        self.lost += other.lost;
        self.wall += other.wall;
        self.cpu += other.cpu;
        self.user += other.user;
        self.system += other.system;
    }
}

/// Clocks of this thread at one moment.
pub struct Start {
    wall: Instant,
    cpu: f64,
    usage: (f64, f64),
}

impl Start {
    pub fn now() -> Start {
        Start { usage: usage(), cpu: cpu_now(), wall: Instant::now() }
    }

    pub fn elapsed(&self) -> Duration {
        self.wall.elapsed()
    }

    /// What it cost from then on.
    pub fn cost(&self, frames: u64, lost: u64) -> Cost {
        let wall = self.wall.elapsed().as_nanos() as f64;
        let cpu = cpu_now() - self.cpu;
        let (user, system) = usage();
        Cost { frames, lost, wall, cpu, user: user - self.usage.0, system: system - self.usage.1 }
    }
}

/// Median, least and greatest.
pub struct Spread(pub [f64; 3]);

impl Spread {
    pub fn of(values: impl IntoIterator<Item = f64>) -> Spread {
        let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        match values.as_slice() {
            [] => Spread([f64::NAN; 3]),
            [least, .., most] => Spread([values[values.len() / 2], *least, *most]),
            [only] => Spread([*only; 3]),
        }
    }

    pub fn print(&self, digits: usize) -> String {
        let [median, least, greatest] = self.0;
        format!("{median:.digits$} [{least:.digits$}-{greatest:.digits$}]")
    }
}

/// The load average of the last minute.
pub fn load() -> f64 {
    sysinfo().loads[0] as f64 / 65536.0
}
