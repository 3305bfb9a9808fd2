//! How CPUs spend their time (`/proc/stat`).

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

/// Time that a CPU has spent since boot, in the kernel's clock ticks (10 ms each: `USER_HZ` is 100 on every architecture).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticks {
    /// In programs, guests among them.
    pub user: u64,
    /// In the kernel, but for what follows.
    pub system: u64,
    /// In interrupts.
    pub interrupt: u64,
    /// In soft interrupts.
    pub softirq: u64,
    /// Taken away by the hypervisor.
    pub stolen: u64,
    /// In nothing, or waiting for a disk.
    pub idle: u64,
}

impl Ticks {
    /// Clock ticks of a second.
    pub const PER_SECOND: u64 = 100;

    /// All of it.
    pub fn whole(self) -> u64 {
        [self.user, self.system, self.interrupt, self.softirq, self.stolen, self.idle]
            .iter()
            .fold(0, |sum: u64, ticks| sum.saturating_add(*ticks))
    }

    /// What was spent since `earlier`. Waiting for a disk may go backwards (proc_stat(5)).
    #[must_use]
    pub fn since(self, earlier: Ticks) -> Ticks {
        Ticks {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
            interrupt: self.interrupt.saturating_sub(earlier.interrupt),
            softirq: self.softirq.saturating_sub(earlier.softirq),
            stolen: self.stolen.saturating_sub(earlier.stolen),
            idle: self.idle.saturating_sub(earlier.idle),
        }
    }

    /// The part of the time in which the CPU worked; `None`: no time has passed.
    pub fn busy(self) -> Option<f64> {
        let whole = self.whole();
        (whole > 0).then(|| 1.0 - self.idle as f64 / whole as f64)
    }

    /// `cpu3 user nice system idle iowait irq softirq steal guest guest_nice`. Guest time is in user time already.
    fn parse(line: &str) -> Option<(u32, Ticks)> {
        let mut words = line.split_ascii_whitespace();
        let cpu = words.next()?.strip_prefix("cpu")?.parse().ok()?;
        let times: Vec<u64> = words.take(8).map_while(|word| word.parse().ok()).collect();
        let at = |place: usize| times.get(place).copied().unwrap_or(0);
        times.get(3)?;
        let ticks = Ticks {
            user: at(0).saturating_add(at(1)),
            system: at(2),
            interrupt: at(5),
            softirq: at(6),
            stolen: at(7),
            idle: at(3).saturating_add(at(4)),
        };
        Some((cpu, ticks))
    }
}

/// What each CPU that is online has spent.
pub fn usage() -> io::Result<BTreeMap<u32, Ticks>> {
    usage_in(Path::new("/proc/stat"))
}

/// The same of a copy of `/proc/stat`.
pub fn usage_in(stat: &Path) -> io::Result<BTreeMap<u32, Ticks>> {
    Ok(fs::read_to_string(stat)?.lines().filter_map(Ticks::parse).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_is_what_is_neither_idle_nor_waiting_for_a_disk() {
        let ticks = |line: &str| Ticks::parse(line).expect("a CPU");
        let ((cpu, before), (_, after)) =
            (ticks("cpu7 10 0 10 100 0 0 0 0 0 0"), ticks("cpu7 20 0 20 140 20 0 20 0 9 9"));
        let spent = after.since(before);
        assert_eq!((cpu, spent.whole(), spent.user, spent.softirq), (7, 100, 10, 20));
        assert_eq!((spent.busy(), before.since(before).busy()), (Some(0.4), None));
        for line in ["cpu  1 2 3 4", "cpu0 1 2", "intr 5", ""] {
            assert_eq!(Ticks::parse(line), None, "{line}");
        }
        let own = usage().expect("procfs");
        assert!(!own.is_empty() && own.values().all(|ticks| ticks.whole() > 0));
    }
}
