//! `netisr-unbound`: FreeBSD has one netisr thread, or threads that no CPU is theirs.

use super::netisr;
use crate::report::{Remedy, Severity};
use crate::rule::{Judge, Judgement, Page, Rule};
use crate::{Case, steering};
use host::Quote;

/// The rule.
pub(super) static RULE: Rule = Rule {
    id: "netisr-unbound",
    stage: "steer",
    page: Page {
        title: "FreeBSD's netisr threads are too few, or not bound to CPUs",
        means: "Deferred dispatch can use as many CPUs as there are netisr threads, and FreeBSD starts one. Threads \
                that are not bound wander between CPUs and leave their caches behind, and two may share one CPU.",
        shows: "`netstat -Q` says `Thread count 1` on a machine with several CPUs, or `Threads bound to CPUs disabled`.",
        fix: "In /boot/loader.conf: `net.isr.maxthreads=\"-1\"` (a thread a CPU) and `net.isr.bindthreads=\"1\"`, then \
              restart. Both are tunables and cannot be set on a running system.",
        costs: "A restart. Threads that are bound compete with user processes for their CPU.",
    },
    judge: Judge::Machine(judge),
};

fn judge(case: &Case<'_>) -> Judgement {
    let snapshot = case.snapshot();
    let threads = netisr::threads(snapshot);
    let bound = netisr::bound(snapshot);
    if threads.is_none() && bound.is_none() {
        return if netisr::is_possible(case) {
            Judgement::lacks("netstat -Q")
        } else {
            Judgement::DoesNotApply
        };
    }
    let few = threads.as_ref().filter(|(count, _)| *count == 1 && snapshot.cpu_count() != Some(1));
    let loose = bound.as_ref().filter(|(bound, _)| !bound);
    let said = match (few, loose) {
        (None, None) => return Judgement::Clear,
        (Some(_), _) => "There is one netisr thread, so that deferred work stays on one CPU.",
        (None, Some(_)) => "netisr threads are not bound to CPUs.",
    };
    let quotes: Vec<&Quote> =
        few.iter().map(|(_, quote)| *quote).chain(loose.iter().map(|(_, quote)| *quote)).collect();
    let pppoe = netisr::pppoe(case);
    let limits = few.is_some() && !pppoe.is_empty();
    let severity = if limits { Severity::Warning } else { Severity::Info };
    let finding = RULE.finding(None, severity, quotes, said).and(&pppoe);
    if !limits {
        return finding.into();
    }
    finding
        .with(Remedy {
            os: "freebsd",
            what: "a netisr thread on every CPU, from the next start".to_owned(),
            commands: vec![
                "echo 'net.isr.maxthreads=\"-1\"' >> /boot/loader.conf".to_owned(),
                "echo 'net.isr.bindthreads=\"1\"' >> /boot/loader.conf".to_owned(),
            ],
            expected: steering::NETISR_SPREADS.to_owned(),
            modelled: None,
        })
        .into()
}
