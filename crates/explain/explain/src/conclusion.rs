//! What the figures of a report mean, as data; the command makes the sentences.

use crate::report::{Dropped, FlowRow, Imbalance, QueueRow, Report};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Parts that carry less than this share of even work count as uneven.
const EVEN: f64 = 0.75;
/// Less than this factor is no help.
const WORTH: f64 = 1.25;
/// Fewer frames say little about a line.
const FEW: u64 = 100;

/// A statement about a report. Frames are those that a receive queue could have had, where nothing else is said.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the comment of each says what its fields are")]
pub enum Statement<'r> {
    /// There is no frame.
    Empty,
    /// All frames are of link types that are not read.
    Unread,
    /// All frames were captured above the link layer.
    AboveLink,
    /// So many frames are not hashed, and so many of them for each reason that counts, the most frequent first.
    Unhashed { frames: u64, received: u64, reasons: Vec<(&'r str, u64)> },
    /// Where most frames land is unknown: so many, and so many of them for each reason that counts, the most frequent
    /// first.
    Unplaced { frames: u64, received: u64, reasons: Vec<(&'r str, u64)> },
    /// So many frames without a hash land on one queue, and the profile does not say on which.
    UnknownQueue { frames: u64, received: u64 },
    /// The device has one queue.
    OneQueue,
    /// Frames spread evenly; whether some frames' queue is not known.
    Even { partly: bool },
    /// The busiest queue, among `placed` frames; whether some frames' queue is not known; why, where that is known.
    Busiest { queue: &'r QueueRow, placed: u64, partly: bool, cause: Option<Cause> },
    /// Steering would not spread better what is even already.
    NothingToSteer,
    /// One flow has more bytes than a CPU's share.
    OneFlow(&'r FlowRow),
    /// Whether steering would help; `None`: that depends on the queues of so many frames, which are unknown.
    Steering { helps: Option<bool>, unknown: u64, received: u64 },
    /// Another mode of the device sees further.
    BetterMode,
    /// Software spreads the frames on Linux.
    SpreadInSoftware,
    /// So many frames are longer than the device lets in; the kind that has the most of them.
    Refused { frames: u64, worst: &'r Dropped },
    /// The capturing machine sent some of the frames.
    Outgoing,
    /// Both directions were captured, and which are sent is not known.
    BothDirections,
    /// So few frames say little.
    Few { received: u64 },
}

/// Why one queue has more frames than others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The indirection table leaves queues out.
    Table,
    /// There are few flows.
    FewFlows,
}

/// What a report says, in the order in which to say it.
pub fn conclusion(report: &Report) -> Vec<Statement<'_>> {
    let source = &report.source;
    match source.frames {
        0 => return vec![Statement::Empty],
        frames if frames == source.unread => return vec![Statement::Unread],
        frames if frames == source.above_link => return vec![Statement::AboveLink],
        _ => {}
    }
    let (received, placed) = (report.received(), report.placed());
    let even = report.nic.queues > 1
        && report.imbalance.effective_queues >= EVEN * f64::from(report.nic.queues)
        && 2 * placed > received;
    let few = (received < FEW).then_some(Statement::Few { received });
    let unhashed = unhashed(report, received);
    let queues = match report.is_mostly_placed() {
        true => queues(report, received, placed, even).into_iter().collect(),
        false => unplaced(report, received),
    };
    let rest = [
        Some(steering(report, even && placed == received)),
        remedy(report, even),
        refused(report),
        direction(report),
        few,
    ];
    unhashed.into_iter().chain(queues).chain(rest.into_iter().flatten()).collect()
}

fn unhashed(report: &Report, received: u64) -> Option<Statement<'_>> {
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    for row in report.stacks.iter().filter(|row| row.hash_type == "none") {
        *reasons.entry(&row.why).or_default() += row.frames;
    }
    let frames: u64 = reasons.values().sum();
    // A few frames of ARP or discovery are no finding.
    if frames * 100 < received {
        return None;
    }
    let mut reasons: Vec<(&str, u64)> =
        reasons.into_iter().filter(|(_, frames)| frames * 100 >= received).collect();
    reasons.sort_by_key(|(_, frames)| Reverse(*frames));
    Some(Statement::Unhashed { frames, received, reasons })
}

/// Frames of which it is unknown where they land, apart from those that are known to land together.
fn unplaced(report: &Report, received: u64) -> Vec<Statement<'_>> {
    let counts = |frames: u64| frames * 100 >= received;
    let frames = |one_queue| frames_unknown(report, one_queue);
    let rows = report.nic.unknown.iter().filter(|row| !row.one_queue && counts(row.frames));
    let reasons: Vec<(&str, u64)> = rows.map(|row| (row.why.as_str(), row.frames)).collect();
    let unknown = Statement::Unplaced { frames: frames(false), received, reasons };
    let together = Statement::UnknownQueue { frames: frames(true), received };
    [(unknown, false), (together, true)]
        .into_iter()
        .filter_map(|(statement, one_queue)| counts(frames(one_queue)).then_some(statement))
        .collect()
}

/// Frames whose queue is unknown: those that one queue takes, or the others.
fn frames_unknown(report: &Report, one_queue: bool) -> u64 {
    let rows = report.nic.unknown.iter().filter(|row| row.one_queue == one_queue);
    rows.map(|row| row.frames).sum()
}

fn queues(report: &Report, received: u64, placed: u64, even: bool) -> Option<Statement<'_>> {
    let nic = &report.nic;
    if nic.queues == 1 {
        return Some(Statement::OneQueue);
    }
    let partly = placed < received;
    let queue = report.queues.iter().max_by_key(|queue| queue.frames)?;
    if even {
        return Some(Statement::Even { partly });
    }
    let few = (1..=4 * u64::from(nic.queues)).contains(&report.flows.unidirectional);
    let cause = match few && queue.frames < placed {
        _ if nic.table_queues < nic.queues => Some(Cause::Table),
        few => few.then_some(Cause::FewFlows),
    };
    Some(Statement::Busiest { queue, placed, partly, cause })
}

/// Whether steering spreads better than the queues do, wherever the frames land whose queue is unknown; `None`: it depends
/// on them.
fn helps(report: &Report) -> Option<bool> {
    let (together, apart) = (frames_unknown(report, true), frames_unknown(report, false));
    let mut queues: Vec<u64> = vec![0; usize::from(report.nic.queues.max(1))];
    queues.iter_mut().zip(&report.queues).for_each(|(frames, row)| *frames = row.frames);
    let mut worst = queues.clone();
    if let Some(busiest) = worst.iter_mut().max() {
        *busiest += together + apart;
    }
    if let Some(idlest) = queues.iter_mut().min() {
        *idlest += together;
    }
    level(&mut queues, apart);
    let is_better = |than: &[u64]| {
        report.steered.effective_queues > WORTH * Imbalance::of(than).effective_queues.max(1.0)
    };
    match (is_better(&queues), is_better(&worst)) {
        (true, _) => Some(true),
        (_, false) => Some(false),
        (false, true) => None,
    }
}

/// Adds so many frames to those of the queues as evenly as can be.
fn level(queues: &mut [u64], frames: u64) {
    queues.sort_unstable();
    let mut remaining = frames;
    for filled in 1..=queues.len() {
        let Some((lower, higher)) = queues.split_at_mut_checked(filled) else { return };
        let Some(&height) = lower.first() else { return };
        let step = higher.first().map_or(u64::MAX, |next| next - height);
        let added = step.min(remaining.div_ceil(filled as u64));
        for queue in lower {
            let part = added.min(remaining);
            *queue += part;
            remaining -= part;
        }
    }
}

fn steering(report: &Report, even: bool) -> Statement<'_> {
    match elephant(report) {
        _ if even => Statement::NothingToSteer,
        Some(flow) => Statement::OneFlow(flow),
        None => {
            let unknown = report.nic.unknown.iter().map(|row| row.frames).sum();
            Statement::Steering { helps: helps(report), unknown, received: report.received() }
        }
    }
}

/// A flow that alone keeps the CPUs from being evenly used.
fn elephant(report: &Report) -> Option<&FlowRow> {
    let steered = &report.steered;
    let uneven = steered.effective_queues < EVEN * f64::from(steered.cpus);
    let largest = report.top_flows.first()?;
    let more_than_a_cpu = largest.bytes * u64::from(steered.cpus) > report.source.wire_bytes;
    (uneven && more_than_a_cpu).then_some(largest)
}

fn remedy(report: &Report, even: bool) -> Option<Statement<'_>> {
    let few = report.source.frames < FEW || elephant(report).is_some();
    let missing = !even && !few && helps(report) == Some(true);
    let has_mode = !report.nic.better_modes.is_empty();
    missing.then_some(if has_mode { Statement::BetterMode } else { Statement::SpreadInSoftware })
}

fn refused(report: &Report) -> Option<Statement<'_>> {
    let frames = report.admission.dropped.iter().map(|dropped| dropped.frames).sum();
    Some(Statement::Refused { frames, worst: report.admission.dropped.first()? })
}

/// A capture of both directions shows frames that never passed a receive queue.
fn direction(report: &Report) -> Option<Statement<'_>> {
    let is_mostly_two_way = report.flows.two_way * 2 > report.flows.bidirectional;
    match report.source.outgoing {
        0 => is_mostly_two_way.then_some(Statement::BothDirections),
        _ => Some(Statement::Outgoing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_fill_the_idlest_queues_first() {
        for (queues, frames, expected) in [
            ([0, 0, 0, 0], 8, [2, 2, 2, 2]),
            ([10, 0, 0, 0], 6, [2, 2, 2, 10]),
            ([1, 5, 9, 0], 4, [2, 3, 5, 9]),
            ([7, 7, 7, 7], 2, [8, 8, 7, 7]),
            ([0, 0, 0, 1], 100_000, [25_001, 25_000, 25_000, 25_000]),
            ([3, 1, 2, 0], 0, [0, 1, 2, 3]),
        ] {
            let mut filled = queues;
            level(&mut filled, frames);
            assert_eq!(filled.iter().sum::<u64>(), queues.iter().sum::<u64>() + frames);
            let (filled, expected) = (Imbalance::of(&filled), Imbalance::of(&expected));
            assert!(
                (filled.effective_queues - expected.effective_queues).abs() < 0.01,
                "{queues:?} {filled:?}"
            );
        }
    }
}
