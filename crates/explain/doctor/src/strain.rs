//! Whether a CPU is the limit: what a rule's severity hangs on where the load is known.

use crate::report::Severity;
use crate::{Case, ksoftirqd};
use host::{Load, Quote};

/// Idle time below which a CPU has nothing left, per cent: a sample of a few seconds smooths a CPU that is full
/// most of the time to about this.
const FULL: f64 = 10.0;

/// Idle time above which a CPU is not the limit, per cent.
const ROOM: f64 = 30.0;

/// Part of its time that a full CPU must spend on interrupts, soft ones included, for receive work to be what fills
/// it, per cent.
const RECEIVING: f64 = 50.0;

/// How near its limit a CPU is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strain {
    /// It has no time left, and receive work takes most of it.
    Full,
    /// It has no time left, and other work takes most of it.
    Elsewhere,
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
        Strain::Elsewhere => format!(
            " CPU {cpu} is idle {idle:.0} % of the time, but no more than {:.0} % of its time is receive work: other \
             work takes the CPU.",
            receiving(&fact.value).ceil()
        ),
        Strain::Room => {
            format!(" CPU {cpu} is still idle {idle:.0} % of the time: at this load it is not the limit.")
        }
        Strain::Between | Strain::Unknown => format!(" CPU {cpu} is idle {idle:.0} % of the time."),
    };
    Strained { strain, sentence, quote: Some(fact.quote.clone()) }
}

/// Time that may be receive work, per cent. Where soft interrupts are not told apart, as on the BSDs, it hides in
/// system and interrupt time; where they are, system time is the processes' own, and ksoftirqd's counts as softirq
/// (`irqtime_account_process_tick()` in kernel/sched/cputime.c).
fn receiving(load: &Load) -> f64 {
    load.interrupt + load.softirq.unwrap_or(load.system)
}

/// Time in interrupts, soft ones included, per cent; `None` where soft interrupts are not told apart.
pub(crate) fn receiving_in_softirq(load: &Load) -> Option<f64> {
    Some(load.interrupt + load.softirq?)
}

fn strain(load: &Load) -> Strain {
    match load.idle {
        idle if idle < FULL && receiving(load) >= RECEIVING => Strain::Full,
        idle if idle < FULL => Strain::Elsewhere,
        idle if idle >= ROOM => Strain::Room,
        _ => Strain::Between,
    }
}

impl Strained {
    /// Whether the load says that receive work is not the limit: spreading it would only cost.
    pub(crate) fn is_no_limit(&self) -> bool {
        matches!(self.strain, Strain::Room | Strain::Elsewhere)
    }

    /// How grave a bottleneck at this CPU is: `unless` where the load does not tell.
    pub(crate) fn severity(&self, unless: Severity) -> Severity {
        match self.strain {
            Strain::Full => Severity::Critical,
            Strain::Room | Strain::Elsewhere => Severity::Info,
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
        assert_eq!(strain(&load(97.0, 1.0, 2.0)), Strain::Elsewhere);
        assert_eq!(strain(&load(48.0, 49.0, 3.0)), Strain::Elsewhere);
        assert_eq!(strain(&load(25.0, 68.3, 6.7)), Strain::Full);
        assert_eq!(strain(&load(1.0, 60.0, 39.0)), Strain::Room);
        assert_eq!(strain(&load(1.0, 80.0, 19.0)), Strain::Between);
        let told_apart = Load { system: 90.0, softirq: Some(8.0), idle: 2.0, ..Load::default() };
        assert_eq!(strain(&told_apart), Strain::Elsewhere);
        let together = Load { system: 20.0, interrupt: 75.0, idle: 2.0, ..Load::default() };
        assert_eq!(strain(&together), Strain::Full);
    }
}
