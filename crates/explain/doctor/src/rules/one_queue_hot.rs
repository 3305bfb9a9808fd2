//! `one-queue-hot`: one receive queue takes nearly all frames of a device that has several.

use super::{one_flow, pppoe_unhashed, qinq_unhashed, reta_uneven, udp_two_tuple, unhashed};
use crate::heat::{self, Heat, Hot};
use crate::report::{Remedy, Severity};
use crate::rule::{Judge, Judgement, Page, Rule};
use crate::strain;
use crate::{Case, dealt, loss, steering};
use format::thousands;
use host::{Basis, Interface, System};
use nic::schema;

/// The rule.
pub(super) static RULE: Rule = Rule {
    id: "one-queue-hot",
    stage: "queue",
    page: Page {
        title: "One receive queue takes nearly all frames",
        means: "The device has several receive queues, each with an interrupt of its own that another CPU could serve, \
                and nine frames in ten or more arrive on one of them. One CPU then does the work of all. This is a \
                symptom. Its causes are told apart like this:\n\n\
                * The device cannot hash the frames: PPPoE (`pppoe-unhashed`), two VLAN tags (`qinq-unhashed`), \
                anything that is not IP. They carry hash 0 and go to the default queue, whatever the indirection \
                table says.\n\
                * The indirection table names one queue (`reta-uneven`).\n\
                * There is one flow (`one-flow`), or UDP between one pair of addresses while the hash leaves ports \
                out (`udp-two-tuple`).\n\
                * Few flows, whose hashes happen to be neighbours in a table of contiguous blocks.\n\
                * RSS is off in the driver, or a filter rule sends the frames there (`ethtool -n IFACE`).",
        shows: "The counters of the receive queues (`ethtool -S IFACE`; the names differ by driver), best as a \
                difference of two samples under load. Queues that differ by a factor of two to five are usual with \
                few flows and no finding.",
        fix: "Remove the cause where it can be removed: hash UDP ports, repair the table. Frames that the device cannot \
              hash are spread in software: RPS, steering in XDP (`rxlane steer`), FreeBSD's netisr.",
        costs: "Spreading in software costs an interrupt between CPUs and cache misses a batch of frames; a machine \
                whose CPU still has time loses by it. One flow can never be spread without reordering it.",
    },
    judge: Judge::Device(judge),
};

fn judge(case: &Case<'_>, interface: &Interface) -> Judgement {
    if case.queue_count(interface) == Some(1) {
        return Judgement::DoesNotApply;
    }
    match heat::of(case, interface) {
        Heat::Hot(hot) => found(case, interface, &hot),
        Heat::Spread { .. } => Judgement::Clear,
        heat => Judgement::Lacks(heat::wanted(case, interface, &heat)),
    }
}

fn found(case: &Case<'_>, interface: &Interface, hot: &Hot) -> Judgement {
    let cpu = steering::cpu_of_queue(case, interface, hot.queue);
    let strained = strain::of(case, cpu);
    let dealt = dealt::of(case, interface, hot.queue, None);
    let severity = match &dealt {
        // There is no other CPU to spread to.
        _ if case.snapshot().cpu_count() == Some(1) => Severity::Info,
        Some(dealt) => dealt.severity(&strained, hot.severity(&strained)),
        None => hot.severity(&strained),
    };
    let proven = proven(case, interface, hot.queue);
    let why = match &proven[..] {
        [] => open_causes(case, interface),
        known => format!(" The cause is known: {}.", known.join(", ")),
    };
    let is_undivided = is_undivided(case, interface);
    let undivided = if is_undivided { one_flow::UNDIVIDED } else { "" };
    let explanation =
        format!("{}.{}{}{why}{undivided}", symptom(hot), hot.remark(&strained), strained.sentence);
    let mut finding =
        RULE.finding(Some(&interface.name), severity, &hot.quotes, explanation).and(&strained.quote);
    let is_wanted = !is_undivided && dealt.is_none() && !strained.is_no_limit();
    finding.remedies = remedies(case, interface, hot, &proven, is_wanted);
    if let Some(dealt) = dealt {
        finding = dealt.into_finding(finding);
    }
    match hot.by_interrupts {
        true => finding.possible().into(),
        false => finding.into(),
    }
}

fn symptom(hot: &Hot) -> String {
    let what = if hot.by_interrupts { "interrupts" } else { "frames" };
    let basis = match hot.basis {
        Basis::Between(_) => "between the samples",
        Basis::SinceStart => "since the counters were started",
    };
    format!(
        "Queue {} of {} took {:.1} % of {} {what} {basis}",
        hot.queue,
        hot.queues,
        hot.share * 100.0,
        thousands(hot.total)
    )
}

/// Ids of the rules that know why.
fn proven(case: &Case<'_>, interface: &Interface, hot: u32) -> Vec<&'static str> {
    [
        ("pppoe-unhashed", pppoe_unhashed::is_proven(case, interface)),
        ("qinq-unhashed", qinq_unhashed::is_proven(case, interface)),
        ("reta-uneven", reta_uneven::only_queue(interface) == Some(hot)),
        ("one-flow", one_flow::is_proven(case, interface)),
    ]
    .into_iter()
    .filter_map(|(id, is_proven)| is_proven.then_some(id))
    .collect()
}

/// Whether the sample is one flow's: not one without the PPPoE or the tags that the machine says to carry.
fn is_undivided(case: &Case<'_>, interface: &Interface) -> bool {
    let carried = [case.carries_pppoe(interface), case.carries_qinq(interface)];
    let is_elsewhere = carried.iter().flatten().any(unhashed::is_elsewhere);
    !is_elsewhere && one_flow::is_undivided(case, interface)
}

/// Causes that the text leaves possible, with what would tell them apart.
fn open_causes(case: &Case<'_>, interface: &Interface) -> String {
    let name = steering::name(interface);
    // What the device has not, its driver answers so.
    let lacks = |command: String| case.is_refused(&command);
    let (lacks_table, lacks_fields) =
        (lacks(format!("ethtool -x {name}")), lacks(format!("ethtool -n {name} rx-flow-hash udp4")));
    let is_bsd = matches!(case.system(), Some(System::FreeBsd | System::NetBsd));
    let mut causes = Vec::new();
    if case.agreed(interface, |profile| profile.tri(schema::PPPOE)) != Some(true) {
        causes.push(format!(
            "frames that the device cannot hash, as PPPoE or stacked tags (`tcpdump -c 100 -e -n -i {name}` shows \
             them)"
        ));
    }
    causes.push(match udp_two_tuple::is_by_addresses(interface) {
        Some(true) => {
            "one flow, or UDP between one pair of addresses, as ports are not hashed (`udp-two-tuple`)"
                .to_owned()
        }
        Some(false) => "one flow (a traffic sample shows it)".to_owned(),
        None if lacks_fields => "one flow (a traffic sample shows it)".to_owned(),
        None if is_bsd => {
            "one flow, or UDP between one pair of addresses where ports are not hashed (a traffic \
                           sample shows both)"
                .to_owned()
        }
        None => format!(
            "one flow, or UDP between one pair of addresses where ports are not hashed (`ethtool -n {name} \
             rx-flow-hash udp4`)"
        ),
    });
    match &interface.reta {
        None if is_bsd => causes.push("an indirection table that names this queue alone".to_owned()),
        None if lacks_table => {}
        None => causes.push(format!("an indirection table that names this queue alone (`ethtool -x {name}`)")),
        Some(_) if reta_uneven::is_blocks(interface) => causes.push(
            "few flows, whose hashes fall into one block of the table (a table in blocks is the driver's healthy \
             default)"
                .to_owned(),
        ),
        Some(reta) if reta.former().is_some() => causes.push(format!(
            "few flows in one block of the table as it was before (it has changed to queues in turn since, as \
             `ethtool -X {name} equal N` makes it, which may help with few flows)"
        )),
        Some(_) => {}
    }
    if lacks_table && lacks_fields {
        return format!(" The text does not prove why. Possible: {}.", causes.join("; "));
    }
    causes.push(match case.system() {
        Some(System::FreeBsd) => format!(
            "RSS switched off in the driver (`sysctl {}` shows what it tells of its queues)",
            loss::freebsd_node(name)
        ),
        Some(System::NetBsd) => "RSS switched off in the driver".to_owned(),
        _ => format!("RSS switched off, or a filter rule (`ethtool -n {name}`)"),
    });
    format!(" The text does not prove why. Possible: {}.", causes.join("; "))
}

fn remedies(
    case: &Case<'_>,
    interface: &Interface,
    hot: &Hot,
    proven: &[&str],
    is_wanted: bool,
) -> Vec<Remedy> {
    let mut remedies = Vec::new();
    let is_linux = matches!(case.system(), Some(System::Linux) | None);
    // A table that names one queue is repaired instead.
    let is_dealt = is_wanted && !proven.iter().any(|id| matches!(*id, "reta-uneven" | "one-flow"));
    if is_linux && is_dealt {
        remedies.push(steering::rps(case, interface, &[hot.queue]));
        remedies.extend(steering::xdp_of(case, interface, hot.queue));
    }
    if is_linux && proven.is_empty() && reta_uneven::is_blocks(interface) {
        remedies.extend(reta_uneven::restripe(case, interface));
    }
    if is_dealt && matches!(case.system(), Some(System::FreeBsd) | None) {
        remedies.extend(steering::netisr(case));
    }
    remedies
}
