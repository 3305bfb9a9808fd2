//! The machine on which something was measured.

use crate::machine::Watched;
use serde::{Deserialize, Serialize};
use std::fs;
use std::thread::sleep;
use std::time::Duration;

/// How long it is sampled what else the machine does.
const SAMPLE: Duration = Duration::from_millis(500);
/// Above this share of the CPUs' time the machine is not idle.
const IDLE: f64 = 0.1;

/// A machine and its state. What is not known is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    pub kernel: String,
    /// Model of the CPUs, where the kernel reports it.
    pub model: Option<String>,
    pub cpus: Option<u32>,
    pub rxlane: String,
    /// Whether the CPUs say that a hypervisor runs them.
    pub virtualised: Option<bool>,
    /// Load average of the last minute at the begin.
    pub load_average: Option<f64>,
    /// Share of the CPUs' time that was spent in the half second before the begin.
    pub busy_before: Option<f64>,
}

impl Environment {
    /// Of this machine, before the first round: samples it for half a second.
    pub fn now(idle: &mut IdleCheck) -> Environment {
        let busy_before = idle.watched.as_mut().and_then(busy);
        let read = |path: &str| fs::read_to_string(path).ok();
        let machine = idle.watched.as_ref().map(|watched| watched.describe().0).unwrap_or_default();
        Environment {
            kernel: machine.kernel,
            model: machine.model,
            cpus: machine.cpus,
            rxlane: env!("CARGO_PKG_VERSION").to_owned(),
            virtualised: read("/proc/cpuinfo").and_then(|text| is_virtualised(&text)),
            load_average: read("/proc/loadavg").and_then(|text| text.split(' ').next()?.parse().ok()),
            busy_before,
        }
    }

    /// The share of the CPUs' time in which the machine was busy before, where it was not idle.
    pub fn was_busy(&self) -> Option<f64> {
        self.busy_before.filter(|busy| *busy > IDLE)
    }
}

/// Whether the machine is idle between rounds: something else may have begun after the first.
pub struct IdleCheck {
    watched: Option<Watched>,
    /// Number of the round, from 1, and the share of the CPUs' time before it.
    busy: Vec<(u32, f64)>,
}

impl IdleCheck {
    pub fn new() -> IdleCheck {
        IdleCheck { watched: Watched::cpus_alone(), busy: Vec::new() }
    }

    /// Samples the machine for half a second before a round.
    pub fn rest(&mut self, round: u32) {
        let busy = self.watched.as_mut().and_then(busy);
        self.busy.extend(busy.filter(|busy| *busy > IDLE).map(|busy| (round, busy)));
    }

    /// Rounds before which it was not idle, and the greatest share of the CPUs' time.
    pub fn busy_rounds(&self) -> Option<(Vec<u32>, f64)> {
        let most = self.busy.iter().map(|(_, busy)| *busy).reduce(f64::max)?;
        Some((self.busy.iter().map(|(round, _)| *round).collect(), most))
    }
}

/// The share of the CPUs' time in half a second that was not idle; `None`: the kernel does not say.
fn busy(watched: &mut Watched) -> Option<f64> {
    // What was counted before does not matter.
    watched.step().ok()?;
    sleep(SAMPLE);
    let cpus = watched.step().ok()?.cpus();
    let busy = cpus.iter().map(|cpu| cpu.busy() / 100.0).sum::<f64>() / cpus.len() as f64;
    (!cpus.is_empty()).then_some(busy)
}

/// Flag `hypervisor` of `/proc/cpuinfo` (CPUID leaf 1, ECX bit 31), which CPUs other than x86 do not have.
fn is_virtualised(cpuinfo: &str) -> Option<bool> {
    let flags =
        cpuinfo.lines().find_map(|line| line.split_once(':').filter(|(key, _)| key.trim() == "flags"))?;
    Some(flags.1.split(' ').any(|flag| flag == "hypervisor"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hypervisor_is_known_by_its_flag_alone() {
        for (text, expected) in [
            ("model name\t: x\nflags\t\t: fpu hypervisor lm\n", Some(true)),
            ("flags\t\t: fpu lm\n", Some(false)),
            ("Features\t: fp asimd\n", None),
        ] {
            assert_eq!(is_virtualised(text), expected, "{text}");
        }
    }

    #[test]
    fn this_machine_has_a_kernel_and_cpus() {
        let mut idle = IdleCheck::new();
        let here = Environment::now(&mut idle);
        assert!(!here.kernel.is_empty() && here.cpus.is_some(), "{here:?}");
        assert!(here.busy_before.is_some_and(|busy| (0.0..=1.0).contains(&busy)), "{here:?}");
        for (before, busy) in [(0.02, None), (0.5, Some(0.5))] {
            assert_eq!(Environment { busy_before: Some(before), ..here.clone() }.was_busy(), busy);
        }
        assert_eq!(idle.busy_rounds(), None);
        idle.busy = vec![(3, 0.25), (5, 0.75)];
        assert_eq!(idle.busy_rounds(), Some((vec![3, 5], 0.75)));
    }
}
