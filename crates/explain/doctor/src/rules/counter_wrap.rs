//! `counter-wrap`: a counter passed 2³² between the samples.

use crate::Case;
use crate::report::Severity;
use crate::rule::{Judge, Judgement, Page, Rule};
use crate::steering;
use host::{Counter, Delta, Interface, System};

/// The rule.
pub(super) static RULE: Rule = Rule {
    id: "counter-wrap",
    stage: "queue",
    page: Page {
        title: "A counter wrapped at 32 bits",
        means: "Many drivers count in registers of 32 bits. At 10 Gbit/s a counter of octets passes 2³² every three and \
                a half seconds, one of small frames every five minutes. rxlane takes a value that fell from the upper \
                half of that range for one wrap; after a longer pause it may have been several.",
        shows: "The second sample's value is smaller than the first.",
        fix: "Take the samples closer together (`--seconds`); use counters of 64 bits where there are others, such as \
              `ip -s link`.",
        costs: "Nothing.",
    },
    judge: Judge::Device(judge),
};

fn judge(case: &Case<'_>, interface: &Interface) -> Judgement {
    let queues = interface.queues.values().flat_map(|queue| [&queue.packets, &queue.bytes, &queue.drops]);
    let totals = [&interface.totals.packets, &interface.totals.bytes];
    let counters: Vec<&Counter> = queues
        .chain(totals)
        .flatten()
        .chain(interface.totals.overflow.values())
        .chain(interface.totals.too_long.values())
        .collect();
    if counters.iter().all(|counter| counter.delta() == Delta::OneSample) {
        return Judgement::lacks(match case.system() {
            Some(System::FreeBsd | System::NetBsd) => "netstat -i -b, twice".to_owned(),
            Some(System::Linux) | None => format!("ethtool -S {}, twice", steering::name(interface)),
        });
    }
    let wrapped: Vec<&&Counter> =
        counters.iter().filter(|counter| matches!(counter.delta(), Delta::Wrapped(_))).collect();
    if wrapped.is_empty() {
        return Judgement::Clear;
    }
    let explanation = format!(
        "{} of {} counters of this interface fell from beyond 2³¹ between the samples. One wrap of 32 bits is assumed; \
         over a long pause it may have been more, and the rates too low.",
        wrapped.len(),
        counters.len()
    );
    let quotes = wrapped.iter().map(|counter| counter.quote());
    RULE.finding(Some(&interface.name), Severity::Info, quotes, explanation).into()
}
