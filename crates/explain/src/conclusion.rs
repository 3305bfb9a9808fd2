//! Two or three sentences that say what the figures mean.

use crate::report::{Report, StackRow};
use std::collections::BTreeMap;

/// Parts that carry less than this share of even work count as uneven.
const EVEN: f64 = 0.75;

/// The conclusion, a sentence an item.
pub(crate) fn conclude(report: &Report) -> Vec<String> {
    let frames = report.source.frames;
    if frames == 0 {
        return vec!["The capture holds no frame.".to_owned()];
    }
    let mut sentences = Vec::new();
    let nic = &report.nic;
    let queues = f64::from(nic.queues);
    let even = nic.queues > 1 && report.imbalance.effective_queues >= EVEN * queues;
    let placed: u64 = report.queues.iter().map(|queue| queue.frames).sum();
    if placed == 0 {
        sentences.push(unknown(report));
    } else if nic.queues == 1 {
        sentences.push(format!("The {} has one receive queue here, so one CPU takes every frame.", nic.name));
    } else if even {
        let which = if nic.unplaced > 0 { "the frames whose queue is known" } else { "this traffic" };
        sentences.push(format!(
            "The {} spreads {which} over its {} queues: the busiest takes {:.2} times the mean.",
            nic.name, nic.queues, report.imbalance.max_over_mean
        ));
    } else {
        sentences.push(uneven(report));
    }
    if placed > 0 && nic.unplaced > 0 {
        sentences.push(unknown(report));
    }
    sentences.push(steering(report, even && placed == frames));
    if let Some(sentence) = refused(report) {
        sentences.push(sentence);
    }
    sentences
}

/// `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `12 %`, but never 0 % of something and never 100 % of less than all.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    let share = 100.0 * part as f64 / whole.max(1) as f64;
    match (part, share) {
        (0, _) => "0 %".to_owned(),
        (_, share) if share < 1.0 => "under 1 %".to_owned(),
        (part, share) if part < whole && share > 99.0 => "over 99 %".to_owned(),
        (_, share) => format!("{share:.0} %"),
    }
}

/// The reason that keeps most frames from being hashed, how many there are with it, and their usual stack.
fn main_obstacle(report: &Report) -> Option<(&str, u64, &str)> {
    let mut reasons: BTreeMap<&str, (u64, &StackRow)> = BTreeMap::new();
    for row in report.stacks.iter().filter(|row| row.hash_type == "none") {
        // Rows come with the most frequent stack first.
        reasons.entry(&row.why).or_insert((0, row)).0 += row.frames;
    }
    let (why, (frames, row)) = reasons.into_iter().max_by_key(|(_, (frames, _))| *frames)?;
    Some((why, frames, &row.stack))
}

fn uneven(report: &Report) -> String {
    let frames = report.source.frames;
    let nic = &report.nic;
    let busiest = report.queues.iter().max_by_key(|queue| queue.frames);
    let (queue, share) = busiest.map_or((0, 0), |queue| (queue.queue, queue.frames));
    let shown = format!("queue {queue} of {} gets {} of the frames", nic.queues, percent(share, frames));
    let unhashed: u64 = report.stacks.iter().filter_map(|row| row.hash_types.get("none")).sum();
    match main_obstacle(report) {
        Some((why, without, stack)) if unhashed * 2 >= share => format!(
            "The {} does not hash {} of the frames (mostly {stack}), because {why}: {shown}.",
            nic.name,
            percent(without, frames)
        ),
        _ if report.flows.unidirectional <= 4 * u64::from(nic.queues) => format!(
            "There are only {} flows, and a flow stays on one queue of the {}: {shown}.",
            grouped(report.flows.unidirectional),
            nic.name
        ),
        _ => format!("The hash of the {} spreads these flows unevenly: {shown}.", nic.name),
    }
}

/// Frames whose queue the profile does not tell: those that are not hashed at least share a queue.
fn unknown(report: &Report) -> String {
    let nic = &report.nic;
    let share = percent(nic.unplaced, report.source.frames);
    let row = report.stacks.iter().filter(|row| row.hash_type == "unknown").max_by_key(|row| row.frames);
    match (row, main_obstacle(report)) {
        (Some(row), _) => {
            format!("On which queue of the {} {share} of the frames land is unknown: {}.", nic.name, row.why)
        }
        (None, Some((why, _, stack))) => format!(
            "The {} does not hash {share} of the frames (mostly {stack}), because {why}; they have nothing that \
             could spread them, and its profile does not say which queue takes them.",
            nic.name
        ),
        (None, None) => {
            format!("The {} chooses the queue of {share} of the frames by other means.", nic.name)
        }
    }
}

fn steering(report: &Report, even: bool) -> String {
    let steered = &report.steered;
    let cpus = f64::from(steered.cpus);
    let result = format!(
        "over {} CPUs the busiest would take {:.2} times the mean ({:.1} CPUs' worth)",
        steered.cpus, steered.max_over_mean, steered.effective_queues
    );
    let largest = report.top_flows.first();
    let elephant = largest.filter(|flow| flow.bytes * u64::from(steered.cpus) > report.source.wire_bytes);
    if even {
        return "Nothing to fix: steering by the inner header would not spread it better.".to_owned();
    }
    if steered.effective_queues < EVEN * cpus
        && let Some(flow) = elephant
    {
        return format!(
            "Steering by the inner header: {result}; one flow ({}) carries {} of the bytes, and no software \
             splits a flow over CPUs.",
            flow.flow,
            percent(flow.bytes, report.source.wire_bytes)
        );
    }
    if steered.effective_queues > 1.25 * report.imbalance.effective_queues.max(1.0) {
        format!("Steering by the inner header would help: {result}.")
    } else {
        format!("Steering by the inner header would hardly help: {result}.")
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
        "{} frames are longer than the {} accepts at its usual settings ({}: up to {} bytes, largest seen \
         {}){hint}.",
        grouped(dropped),
        report.nic.name,
        worst.stack,
        worst.limit,
        worst.largest
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        let shown: Vec<_> = [0, 12, 123, 1234, 123_456, 1_234_567].map(grouped).to_vec();
        assert_eq!(shown, ["0", "12", "123", "1,234", "123,456", "1,234,567"]);
    }

    #[test]
    fn shares_are_not_rounded_to_none_or_all() {
        let shown: Vec<_> =
            [(0, 10), (1, 1000), (5, 10), (9999, 10_000), (10, 10)].map(|(a, b)| percent(a, b)).into();
        assert_eq!(shown, ["0 %", "under 1 %", "50 %", "over 99 %", "100 %"]);
        assert_eq!(percent(0, 0), "0 %");
    }
}
