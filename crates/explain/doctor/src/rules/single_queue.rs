//! `single-queue`: the device has one receive queue.

use super::one_flow;
use crate::report::{Finding, Severity};
use crate::rule::{Judge, Judgement, Page, Rule};
use crate::strain;
use crate::{Case, dealt, steering};
use host::{Interface, Quote, System};
use nic::schema;

/// The rule.
pub(super) static RULE: Rule = Rule {
    id: "single-queue",
    stage: "queue",
    page: Page {
        title: "The device has one receive queue",
        means: "There is nothing for RSS to spread over: all frames come by one interrupt to one CPU. For a link of \
                1 Gbit/s that is usually enough. It limits when that CPU is full while others idle: with small frames, \
                much filtering, or a slow CPU.",
        shows: "One interrupt vector for the interface in `/proc/interrupts` or `vmstat -i`, `ethtool -l` with one \
                queue at most, or a profile that says so.",
        fix: "If that CPU is the limit: RPS over the other CPUs, or steering in XDP (`rxlane steer`); on FreeBSD netisr. \
              If it is not: nothing.",
        costs: "RPS costs an interrupt between CPUs and cache misses; without need it makes the machine slower.",
    },
    judge: Judge::Device(judge),
};

/// How many receive queues the device can have.
pub(super) enum Queues {
    /// One, as these lines say.
    One(Vec<Quote>),
    /// Several, whether or not they are in use.
    Several,
    /// The text does not tell.
    Unknown,
}

/// How many receive queues the device can have: by its channels, its counters and its table, its profile, or its
/// vectors.
pub(super) fn queues(case: &Case<'_>, interface: &Interface) -> Queues {
    let channels = [&interface.channels.combined.most, &interface.channels.rx.most];
    let most = channels.into_iter().flatten().map(|fact| fact.value).fold(0, u32::saturating_add);
    let counted = interface.queues.values().filter(|queue| queue.packets.is_some()).count();
    let rings = interface.reta.as_ref().map_or(0, |reta| reta.get().rings);
    if most > 1 || counted > 1 || rings > 1 || interface.channel_count().is_some_and(|count| count > 1) {
        return Queues::Several;
    }
    if most == 1 {
        let said = channels.into_iter().flatten().filter(|fact| fact.value == 1);
        return Queues::One(said.map(|fact| fact.quote.clone()).collect());
    }
    let by_profile = case.agreed(interface, |profile| {
        let is_one =
            profile.text(schema::SELECTION) == Some("single") || profile.int(schema::RX_QUEUES) == Some(1);
        Some(is_one)
    });
    let vectors = case.receive_interrupts(interface);
    let quotes = vectors.iter().map(|vector| vector.quote.clone());
    match (by_profile, &vectors[..]) {
        (_, [_, _, ..]) => Queues::Several,
        (Some(true), _) => Queues::One(quotes.chain(super::unhashed::identity(interface)).collect()),
        // One vector that is named for a queue may be what a grep left of several.
        (_, [only]) if only.queue.is_none() => Queues::One(quotes.collect()),
        _ => Queues::Unknown,
    }
}

fn judge(case: &Case<'_>, interface: &Interface) -> Judgement {
    if case.snapshot().cpu_count() == Some(1) {
        return Judgement::DoesNotApply;
    }
    match queues(case, interface) {
        Queues::One(quotes) => found(case, interface, &quotes).into(),
        Queues::Several => Judgement::Clear,
        Queues::Unknown => Judgement::Lacks(match case.system() {
            Some(System::FreeBsd | System::NetBsd) => vec!["vmstat -i".to_owned()],
            _ => vec![format!("ethtool -l {}", steering::name(interface)), "cat /proc/interrupts".to_owned()],
        }),
    }
}

fn found(case: &Case<'_>, interface: &Interface, quotes: &[Quote]) -> Finding {
    let cpu = steering::cpu_of_queue(case, interface, 0);
    let strained = strain::of(case, cpu);
    let on = cpu.map_or(String::new(), |cpu| format!(", served by CPU {cpu}"));
    let dealt = dealt::of(case, interface, 0, None);
    let severity = strained.severity(Severity::Info);
    let severity = dealt.as_ref().map_or(severity, |dealt| dealt.severity(&strained, severity));
    let is_undivided = one_flow::is_undivided(case, interface);
    let undivided = if is_undivided { one_flow::UNDIVIDED } else { "" };
    let explanation = format!(
        "{} has one receive queue{on}: RSS has nothing to spread over, and only software can use other \
         CPUs.{}{undivided}",
        steering::name(interface),
        strained.sentence
    );
    let mut finding = RULE.finding(Some(&interface.name), severity, quotes, explanation).and(&strained.quote);
    if let Some(dealt) = dealt {
        return dealt.into_finding(finding);
    }
    if is_undivided || strained.is_no_limit() {
        return finding;
    }
    if matches!(case.system(), Some(System::Linux) | None) {
        let mut rps = steering::rps(case, interface, &[0]);
        if strained.strain != strain::Strain::Full {
            rps.what = format!("if its CPU is the limit, {}", rps.what);
        }
        finding = finding.with(rps);
        finding.remedies.extend(steering::xdp_of(case, interface, 0));
    }
    if matches!(case.system(), Some(System::FreeBsd) | None) {
        finding.remedies.extend(steering::netisr(case));
    }
    finding
}
