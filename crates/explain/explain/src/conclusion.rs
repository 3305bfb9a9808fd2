//! Two or three sentences that say what the figures mean.

use crate::report::{FlowRow, Report};
use format::{Share, plural, thousands};
use std::collections::BTreeMap;

/// Parts that carry less than this share of even work count as uneven.
const EVEN: f64 = 0.75;

/// Less than this factor is no help.
const WORTH: f64 = 1.25;
/// Reasons that are named; the rest of them concerns few frames.
const REASONS: usize = 2;
/// Fewer frames say little about a line.
const FEW: u64 = 100;

/// The conclusion, a sentence an item.
pub(crate) fn conclude(report: &Report) -> Vec<String> {
    let source = &report.source;
    if source.frames == 0 {
        return vec!["The capture holds no frame.".to_owned()];
    }
    if source.frames == source.unread {
        let links: Vec<&str> = source.link_types.keys().map(String::as_str).collect();
        return vec![format!("rxlane does not read frames of this kind ({}).", links.join(", "))];
    }
    if source.frames == source.above_link {
        return vec![
            "These frames were captured behind the encapsulation, where no network card ever sees them, so they \
             say nothing about receive queues."
                .to_owned(),
            "Capture on the Ethernet interface below: tcpdump -Q in -i IFACE -w - | rxlane explain -".to_owned(),
        ];
    }
    let mut sentences = Vec::new();
    let received = source.frames.saturating_sub(source.outgoing + source.above_link);
    let placed: u64 = report.queues.iter().map(|queue| queue.frames).sum();
    let even = report.nic.queues > 1
        && report.imbalance.effective_queues >= EVEN * f64::from(report.nic.queues)
        && 2 * placed > received;
    sentences.extend(unhashed(report, received));
    sentences.extend(queues(report, received, placed, even));
    sentences.push(steering(report, even && placed == received));
    sentences.extend(remedy(report, even));
    sentences.extend(refused(report));
    sentences.extend(direction(report));
    if received < FEW {
        sentences.push(format!("With {} this says little about a line.", plural(received, "frame")));
    }
    sentences
}

/// What is not hashed, and why.
fn unhashed(report: &Report, received: u64) -> Option<String> {
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    for row in report.stacks.iter().filter(|row| row.hash_type == "none") {
        *reasons.entry(&row.why).or_default() += row.frames;
    }
    let total: u64 = reasons.values().sum();
    // A few frames of ARP or discovery are no finding.
    if total * 100 < received {
        return None;
    }
    let mut reasons: Vec<(&str, u64)> =
        reasons.into_iter().filter(|(_, frames)| frames * 100 >= received).collect();
    reasons.sort_by_key(|(_, frames)| std::cmp::Reverse(*frames));
    let name = &report.nic.name;
    let how_many = if total * 1000 >= received * 999 {
        format!("The {name} hashes none of these frames")
    } else {
        format!("The {name} does not hash {} of the frames", Share::of(total, received).rounded())
    };
    Some(match reasons.as_slice() {
        [] => format!("{how_many}."),
        [(why, _)] => format!("{how_many}, because {why}."),
        several => {
            let named = several.iter().take(REASONS);
            let named: Vec<String> = named
                .map(|(why, frames)| format!("{} because {why}", Share::of(*frames, received).rounded()))
                .collect();
            format!("{how_many}: {}.", named.join(", "))
        }
    })
}

/// What that makes of the queues.
fn queues(report: &Report, received: u64, placed: u64, even: bool) -> Option<String> {
    let nic = &report.nic;
    if placed * 2 < received {
        return Some(unknown(report, received));
    }
    if nic.queues == 1 {
        return Some(format!("The {} has one receive queue here, so one CPU takes every frame.", nic.name));
    }
    let known = if placed < received { " of those whose queue is known" } else { "" };
    let busiest = report.queues.iter().max_by_key(|queue| queue.frames)?;
    let share = Share::of(busiest.frames, placed).rounded();
    let number = busiest.queue;
    let few = (1..=4 * u64::from(nic.queues)).contains(&report.flows.unidirectional);
    Some(if even {
        format!(
            "The {} spreads the frames{known} over its {} queues: the busiest takes {:.2} times the mean.",
            nic.name, nic.queues, report.imbalance.max_over_mean
        )
    } else if nic.table_queues < nic.queues {
        format!(
            "Queue {number} takes {share} of the frames{known}: the indirection table names only {} of {} queues.",
            nic.table_queues, nic.queues
        )
    } else if few && busiest.frames < placed {
        format!(
            "Queue {number} of {} takes {share} of the frames{known}; the capture holds only {}, and a \
             flow stays on one queue.",
            nic.queues,
            plural(report.flows.unidirectional, "flow")
        )
    } else {
        format!("Queue {number} of {} takes {share} of the frames{known}.", nic.queues)
    })
}

/// Frames whose queue the profile does not tell: those that are not hashed at least share a queue.
fn unknown(report: &Report, received: u64) -> String {
    let nic = &report.nic;
    let unplaced = nic.unplaced.saturating_sub(report.source.outgoing + report.source.above_link);
    let share = Share::of(unplaced, received).rounded();
    let row = report.stacks.iter().filter(|row| row.hash_type == "unknown").max_by_key(|row| row.frames);
    match row {
        Some(row) if row.frames * 2 >= unplaced => {
            format!("On which queues of the {} {share} of the frames land is unknown: {}.", nic.name, row.why)
        }
        _ => format!(
            "Frames without a hash have nothing that could spread them; which queue of the {} takes these {share} \
             its profile does not say.",
            nic.name
        ),
    }
}

/// What to do today.
fn remedy(report: &Report, even: bool) -> Option<String> {
    let steered = &report.steered;
    let few = report.source.frames < FEW || elephant(report).is_some();
    if even || few || steered.effective_queues <= WORTH * report.imbalance.effective_queues.max(1.0) {
        return None;
    }
    if !report.nic.better_modes.is_empty() {
        return Some(format!(
            "In mode {} the card sees further: --nic {} shows it, rxlane nics says how to turn it on.",
            report.nic.better_modes.join(" or "),
            report.nic.better_modes.first()?
        ));
    }
    let mask = (1u128 << u32::from(steered.cpus.min(64))) - 1;
    Some(format!(
        "Linux can spread them today: before the busy CPU has made packets of them (rxlane steer check IFACE says \
         whether that works and pays there), or, without a program, after that (RPS): for every receive queue N, \
         echo {mask:x} > /sys/class/net/IFACE/queues/rx-N/rps_cpus; without the bit of the CPU that serves the queue it is often better"
    ))
}

/// A capture of both directions shows frames that never passed a receive queue.
fn direction(report: &Report) -> Option<String> {
    let source = &report.source;
    if source.outgoing > 0 {
        return Some(format!(
            "{} were sent by the capturing machine and are left out of the queues.",
            plural(source.outgoing, "frame")
        ));
    }
    let mostly = report.flows.two_way * 2 > report.flows.bidirectional;
    mostly.then(|| {
        "Both directions are in this capture, and what a machine sends passes none of its receive queues: unless \
         this is from a mirror port, capture with tcpdump -Q in."
            .to_owned()
    })
}

/// A stack as a sentence can carry it: a frame can hold thousands of tags.
fn short(stack: &str) -> String {
    const LONGEST: usize = 60;
    if stack.len() <= LONGEST { stack.to_owned() } else { format!("{} …", &stack[..LONGEST]) }
}

/// A flow that alone keeps the CPUs from being evenly used.
fn elephant(report: &Report) -> Option<&FlowRow> {
    let steered = &report.steered;
    let uneven = steered.effective_queues < EVEN * f64::from(steered.cpus);
    let largest = report.top_flows.first()?;
    let more_than_a_cpu = largest.bytes * u64::from(steered.cpus) > report.source.wire_bytes;
    (uneven && more_than_a_cpu).then_some(largest)
}

fn steering(report: &Report, even: bool) -> String {
    let steered = &report.steered;
    let result = format!(
        "over {} CPUs the busiest would take {:.2} times the mean ({:.1} CPUs' worth)",
        steered.cpus, steered.max_over_mean, steered.effective_queues
    );
    if even {
        return "Nothing to fix: steering by the inner header would not spread it better.".to_owned();
    }
    if let Some(flow) = elephant(report) {
        return format!(
            "Steering by the inner header: {result}; one flow ({}) carries {} of the bytes, and no software \
             splits a flow over CPUs.",
            flow.flow,
            Share::of(flow.bytes, report.source.wire_bytes).rounded()
        );
    }
    if steered.effective_queues > WORTH * report.imbalance.effective_queues.max(1.0) {
        format!("Steering by the inner header would help: {result}.")
    } else {
        format!("Steering by the inner header would not help: {result}.")
    }
}

fn refused(report: &Report) -> Option<String> {
    let dropped: u64 = report.admission.dropped.iter().map(|dropped| dropped.frames).sum();
    let worst = report.admission.dropped.first()?;
    let hint = if worst.largest > 9_728 {
        "; frames of such a length are segments that the capturing host had already merged (GRO), so capture \
         with `ethtool -K IFACE gro off` to see what the line carries"
    } else {
        ""
    };
    Some(format!(
        "{} longer than the {} accepts at its usual settings ({}: up to {} bytes, largest seen {}){hint}.",
        if dropped == 1 { "1 frame is".to_owned() } else { format!("{} frames are", thousands(dropped)) },
        report.nic.name,
        short(&worst.stack),
        worst.limit,
        worst.largest
    ))
}
