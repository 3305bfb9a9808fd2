//! `queues-below-cpus`: fewer queues are in use than the device has and CPUs could serve.

use super::{pppoe_unhashed, qinq_unhashed};
use crate::report::{Remedy, Severity};
use crate::rule::{Judge, Judgement, Page, Rule};
use crate::strain::{self, Strain};
use crate::{Case, steering};
use host::{Interface, Limited, System};
use nic::schema;

/// The rule.
pub(super) static RULE: Rule = Rule {
    id: "queues-below-cpus",
    stage: "queue",
    page: Page {
        title: "Fewer receive queues are in use than the device and the CPUs allow",
        means: "Each queue has an interrupt that a CPU of its own can serve. With fewer queues than CPUs, some CPUs take \
                no part in receiving. Often nothing is lost by it: two queues carry a 1 Gbit/s line well.",
        shows: "`ethtool -l IFACE`: the current setting is below the pre-set maximum and below the number of CPUs.",
        fix: "`ethtool -L IFACE combined N`, N up to the number of CPUs, if the CPUs that serve the queues are full. It \
              does nothing for frames that the device cannot hash, and nothing for one flow.",
        costs: "The interface goes down for a moment; rings and vectors take memory; interrupts spread thinner, so that \
                batches become smaller.",
    },
    judge: Judge::Device(judge),
};

fn judge(case: &Case<'_>, interface: &Interface) -> Judgement {
    if matches!(case.system(), Some(System::FreeBsd | System::NetBsd)) {
        return Judgement::DoesNotApply;
    }
    let channels = &interface.channels;
    let is_combined = channels.combined.most.as_ref().is_some_and(|most| most.value > 0);
    let used: &Limited = if is_combined { &channels.combined } else { &channels.rx };
    let (Some(current), Some(most)) = (&used.current, &used.most) else {
        return match interface.channel_count() {
            Some(_) => Judgement::DoesNotApply,
            None => Judgement::lacks(format!("ethtool -l {}", steering::name(interface))),
        };
    };
    let Some(cpus) = &case.snapshot().cpus.online else { return Judgement::lacks("lscpu") };
    let by_profile = case.agreed(interface, |profile| profile.int(schema::RX_QUEUES));
    let by_profile = by_profile.and_then(|queues| u32::try_from(queues).ok()).unwrap_or(u32::MAX);
    let wanted = most.value.min(cpus.value).min(by_profile);
    if *current.get() >= wanted {
        return Judgement::Clear;
    }
    let serving = interface.queues.keys().filter_map(|queue| steering::cpu_of_queue(case, interface, *queue));
    let strained = serving
        .map(|cpu| strain::of(case, Some(cpu)))
        .find(|strained| strained.strain == Strain::Full)
        .unwrap_or_else(|| strain::of(case, None));
    let is_unhashed = pppoe_unhashed::is_proven(case, interface) || qinq_unhashed::is_proven(case, interface);
    let is_full = strained.strain == Strain::Full && !is_unhashed;
    let severity = if is_full { Severity::Warning } else { Severity::Info };
    let note = match (is_unhashed, is_full) {
        (true, _) => " More queues would not help here: the device cannot hash most of the frames.",
        (false, true) => " More queues would share the work of that CPU.",
        (false, false) => " That matters only if a CPU that serves one of them is full.",
    };
    let explanation = format!(
        "{} receive queues are in use; the device has {} and the machine {} CPUs.{}{note}",
        current.get(),
        most.value,
        cpus.value,
        strained.sentence
    );
    let quotes = [current.quote(), &most.quote, &cpus.quote];
    let finding = RULE.finding(Some(&interface.name), severity, quotes, explanation).and(&strained.quote);
    if is_unhashed || !is_combined {
        return finding.into();
    }
    let remedy = Remedy {
        os: "linux",
        what: "a queue for each CPU, if a CPU that serves one is full".to_owned(),
        commands: vec![format!("ethtool -L {} combined {wanted}", steering::name(interface))],
        expected: "Hashed flows spread over more CPUs; how evenly depends on how many there are. One flow, and frames \
                   without a hash, stay on one."
            .to_owned(), modelled: None,
};
    finding.with(remedy).into()
}
