//! The machine on which something was measured.

use crate::machine::{Machine, Watched};
use serde::{Deserialize, Serialize};
use std::fs;
use std::thread::sleep;
use std::time::Duration;

/// How long it is looked what the machine does besides.
const LOOK: Duration = Duration::from_millis(500);
/// Above this share of the CPUs' time the machine is not idle.
const IDLE: f64 = 0.1;

/// A machine and its state. What is not known is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Flat")]
pub struct Surroundings {
    /// Kernel and CPUs.
    #[serde(flatten)]
    pub machine: Machine,
    /// Version of rxlane.
    pub rxlane: String,
    /// Whether the CPUs say that a hypervisor runs them.
    pub virtualised: Option<bool>,
    /// Load average of the last minute at the begin.
    pub load_average: Option<f64>,
    /// Share of the CPUs' time that was spent in the half second before the begin.
    pub busy_before: Option<f64>,
}

/// As it is read. To read what is flattened takes all that stands there into memory, known or not.
#[derive(Deserialize)]
struct Flat {
    kernel: String,
    model: Option<String>,
    cpus: Option<u32>,
    rxlane: String,
    virtualised: Option<bool>,
    load_average: Option<f64>,
    busy_before: Option<f64>,
}

impl From<Flat> for Surroundings {
    fn from(read: Flat) -> Surroundings {
        let Flat { kernel, model, cpus, rxlane, virtualised, load_average, busy_before } = read;
        let machine = Machine { kernel, model, cpus };
        Surroundings { machine, rxlane, virtualised, load_average, busy_before }
    }
}

impl Surroundings {
    /// Looks at this machine for half a second, before the first round.
    pub fn look(rests: &mut Rests) -> Surroundings {
        let busy_before = rests.watched.as_mut().and_then(busy);
        let read = |path: &str| fs::read_to_string(path).ok();
        Surroundings {
            machine: rests.watched.as_ref().map(|watched| watched.describe().0).unwrap_or_default(),
            rxlane: env!("CARGO_PKG_VERSION").to_owned(),
            virtualised: read("/proc/cpuinfo").and_then(|text| is_virtualised(&text)),
            load_average: read("/proc/loadavg").and_then(|text| text.split(' ').next()?.parse().ok()),
            busy_before,
        }
    }

    /// What makes figures taken here worth less.
    pub fn warnings(&self) -> Vec<String> {
        let busy = self.busy_before.filter(|busy| *busy > IDLE).map(|busy| {
            format!(
                "this machine was not idle: its CPUs were {:.0} % busy in the half second before; end what else runs on it, or \
                 take the figures for less",
                100.0 * busy
            )
        });
        busy.into_iter().collect()
    }
}

/// What else the machine does while a scenario rests between rounds: it may have begun behind the first.
pub struct Rests {
    watched: Option<Watched>,
    /// Number of the round, from 1, and the share of the CPUs' time before it.
    busy: Vec<(u32, f64)>,
}

impl Rests {
    /// Before the first.
    pub fn new() -> Rests {
        Rests { watched: Watched::cpus_alone(), busy: Vec::new() }
    }

    /// Rests for half a second before a round, and looks.
    pub fn rest(&mut self, round: u32) {
        let busy = self.watched.as_mut().and_then(busy);
        self.busy.extend(busy.filter(|busy| *busy > IDLE).map(|busy| (round, busy)));
    }

    /// What makes figures of those rounds worth less.
    pub fn warning(&self) -> Option<String> {
        let most = self.busy.iter().map(|(_, busy)| *busy).reduce(f64::max)?;
        let rounds: Vec<String> = self.busy.iter().map(|(round, _)| round.to_string()).collect();
        let (rounds, most) = (rounds.join(", "), 100.0 * most);
        Some(match self.busy.len() {
            1 => format!("this machine was not idle before round {rounds}: its CPUs were {most:.0} % busy"),
            _ => format!(
                "this machine was not idle before rounds {rounds}: its CPUs were up to {most:.0} % busy"
            ),
        })
    }
}

/// The share of the CPUs' time in half a second that was not idle; `None`: the kernel does not tell.
fn busy(watched: &mut Watched) -> Option<f64> {
    // What was counted before is not asked for.
    watched.step().ok()?;
    sleep(LOOK);
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
    fn a_hypervisor_is_told_by_its_flag_alone() {
        assert_eq!(is_virtualised("model name\t: x\nflags\t\t: fpu hypervisor lm\n"), Some(true));
        assert_eq!(is_virtualised("flags\t\t: fpu lm\n"), Some(false));
        assert_eq!(is_virtualised("Features\t: fp asimd\n"), None);
    }

    #[test]
    fn this_machine_has_a_kernel_and_cpus() {
        let here = Surroundings::look(&mut Rests::new());
        assert!(!here.machine.kernel.is_empty() && here.machine.cpus.is_some(), "{here:?}");
        assert!(here.busy_before.is_some_and(|busy| (0.0..=1.0).contains(&busy)), "{here:?}");
        let idle = Surroundings { busy_before: Some(0.02), ..here.clone() };
        let busy = Surroundings { busy_before: Some(0.5), ..here };
        assert_eq!((idle.warnings().len(), busy.warnings().len()), (0, 1));
        assert!(busy.warnings()[0].contains("50 % busy"), "{busy:?}");
    }

    #[test]
    fn rounds_before_which_the_machine_was_busy_are_named() {
        let mut rests = Rests::new();
        rests.rest(2);
        rests.busy.clear();
        assert_eq!(rests.warning(), None);
        rests.busy.push((3, 0.25));
        let one = rests.warning();
        assert_eq!(one.as_deref(), Some("this machine was not idle before round 3: its CPUs were 25 % busy"));
        rests.busy.push((5, 0.75));
        let two = rests.warning();
        let expected = "this machine was not idle before rounds 3, 5: its CPUs were up to 75 % busy";
        assert_eq!(two.as_deref(), Some(expected));
    }
}
