//! What the CPUs did while something was measured.

use crate::machine::{CpuShare, Usage, Watched};

/// From a time on; `None`: the kernel does not say.
pub struct CpuTime(Option<Watched>);

/// CPU time of all that ran on the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    pub all: f64,
    pub user: f64,
    /// Of that, in the kernel, but for interrupts.
    pub system: f64,
    /// Of that, in soft interrupts.
    pub softirq: f64,
    pub lasted: f64,
}

impl Spent {
    /// CPUs that worked, in the mean.
    pub fn busy(&self) -> f64 {
        self.all / self.lasted
    }

    pub fn busy_with_softirq(&self) -> f64 {
        self.softirq / self.lasted
    }

    /// Of what was seen of the machine; `None`: the kernel does not report it.
    pub fn of(usage: &Usage) -> Option<Spent> {
        let (cpus, lasted) = (usage.cpus(), usage.time.as_secs_f64());
        let seconds = |percent: fn(&CpuShare) -> f64| cpus.iter().map(percent).sum::<f64>() / 100.0 * lasted;
        let spent = Spent {
            all: seconds(CpuShare::busy),
            user: seconds(|cpu| cpu.user),
            system: seconds(|cpu| cpu.system),
            softirq: seconds(|cpu| cpu.softirq.unwrap_or(0.0)),
            lasted,
        };
        (!cpus.is_empty()).then_some(spent)
    }
}

impl CpuTime {
    pub fn start() -> CpuTime {
        CpuTime(Watched::cpus_alone())
    }

    /// Until now; `None`: the kernel does not say.
    pub fn spent(self) -> Option<Spent> {
        Spent::of(&self.0?.step().ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn work_takes_cpu_time() {
        let time = CpuTime::start();
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(200) {
            std::hint::spin_loop();
        }
        let spent = time.spent().expect("Linux reports it");
        // Ticks are of 10 ms, and this thread may have had to wait.
        assert!(
            spent.all > 0.03 && spent.user > 0.03 && spent.user + spent.softirq <= spent.all * 1.001,
            "{spent:?}"
        );
    }
}
