//! Whether a CPU is the limit: what a rule's severity hangs on where the load is known.

use crate::report::Severity;
use crate::{Case, ksoftirqd};
use host::{Load, Quote};

/// Idle time below which a CPU has nothing left, per cent: a sample of a few seconds smooths a CPU that is full
/// most of the time to about this.
const FULL: f64 = 10.0;

/// Idle time above which a CPU is not the limit, per cent.
const ROOM: f64 = 30.0;

/// Part of its time that a CPU must spend in the kernel for its load to be receive work, per cent.
const KERNEL: f64 = 40.0;

/// How near its limit a CPU is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strain {
    /// It has no time left, and the kernel takes it.
    Full,
    /// It has plenty of time left.
    Room,
    /// Neither.
    Between,
    /// Its load is not known, or which CPU it is.
    Unknown,
}

/// A CPU's load, as a finding uses it.
#[derive(Clone, Debug)]
pub(crate) struct Strained {
    /// The answer.
    pub strain: Strain,
    /// A sentence with a blank before it, empty where the load is not known.
    pub sentence: String,
    /// The line that shows the load.
    pub quote: Option<Quote>,
}

/// The load of a CPU.
pub(crate) fn of(case: &Case<'_>, cpu: Option<u32>) -> Strained {
    let known = cpu.and_then(|cpu| Some((cpu, case.snapshot().cpus.load.get(&cpu)?)));
    let Some((cpu, fact)) = known else {
        let thread = cpu.and_then(|cpu| Some((cpu, ksoftirqd::filling(case, cpu)?)));
        if let Some((cpu, (process, share))) = thread {
            return Strained {
                strain: Strain::Full,
                sentence: format!(" ksoftirqd/{cpu} takes {share:.0} % of CPU {cpu}: it is the limit now."),
                quote: Some(process.quote.clone()),
            };
        }
        return Strained { strain: Strain::Unknown, sentence: String::new(), quote: None };
    };
    let idle = fact.value.idle;
    let strain = strain(&fact.value);
    let sentence = match strain {
        Strain::Full => format!(" CPU {cpu} is idle {idle:.0} % of the time: it is the limit now."),
        Strain::Room => {
            format!(" CPU {cpu} is still idle {idle:.0} % of the time: at this load it is not the limit.")
        }
        Strain::Between | Strain::Unknown => format!(" CPU {cpu} is idle {idle:.0} % of the time."),
    };
    Strained { strain, sentence, quote: Some(fact.quote.clone()) }
}

fn strain(load: &Load) -> Strain {
    let kernel = load.system + load.interrupt + load.softirq.unwrap_or(0.0);
    match load.idle {
        idle if idle < FULL && kernel >= KERNEL => Strain::Full,
        idle if idle >= ROOM => Strain::Room,
        _ => Strain::Between,
    }
}

impl Strained {
    /// How grave a bottleneck at this CPU is: `unless` where the load does not tell.
    pub(crate) fn severity(&self, unless: Severity) -> Severity {
        match self.strain {
            Strain::Full => Severity::Critical,
            Strain::Room => Severity::Info,
            Strain::Between | Strain::Unknown => unless,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_that_a_user_process_fills_is_no_receive_limit() {
        let load = |user, softirq, idle| Load { user, softirq: Some(softirq), idle, ..Load::default() };
        assert_eq!(strain(&load(0.0, 98.0, 2.0)), Strain::Full);
        assert_eq!(strain(&load(97.0, 1.0, 2.0)), Strain::Between);
        assert_eq!(strain(&load(1.0, 60.0, 39.0)), Strain::Room);
        assert_eq!(strain(&load(1.0, 80.0, 19.0)), Strain::Between);
    }
}
