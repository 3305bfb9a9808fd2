//! Two or three sentences that say what a report on captures means.

use explain::Report;
use explain::conclusion::{self, Cause, Statement};
use explain::report::LiveSample;
use format::{Share, plural, printable, thousands};
use serde::Serialize;

/// Reasons that are named; the rest of them concerns few frames.
const REASONS: usize = 2;
/// Characters of a stack that a sentence can carry: a frame can hold thousands of tags.
const LONGEST: usize = 60;
/// Bytes of the longest jumbo frame that devices take; longer ones are merged segments.
const JUMBO: u32 = 9_728;

/// A report with its conclusion, as `--json` prints it.
#[derive(Serialize)]
pub struct Concluded<'r> {
    #[serde(flatten)]
    pub report: &'r Report,
    pub conclusion: Vec<String>,
}

/// What a sample holds and what it lacks, without a full stop.
pub fn sample(sample: &LiveSample) -> String {
    let mut text = format!(
        "Live sample of {}: frames received in {:.1} s, {} bytes of each",
        printable(&sample.interface),
        sample.seconds,
        sample.snap
    );
    text += match sample.end {
        "requested" => ", ended early by a signal",
        "frames" => ", as many as --frames allows",
        "bytes" => ", as many as memory allows",
        "down" => ", until the interface went down",
        _ => "",
    };
    if sample.tags > 0 {
        text += &format!(
            "; the NIC had stripped a VLAN tag from {}, put back here",
            plural(sample.tags, "frame")
        );
    }
    if sample.merged > 0 {
        let several = if sample.merged == 1 { "is" } else { "are" };
        text += &format!(
            "; {} {several} several TCP segments merged by GRO or LRO",
            plural(sample.merged, "frame")
        );
    }
    if sample.dropped > 0 {
        text += &format!("; {} came too fast and are missing", plural(sample.dropped, "frame"));
    }
    text
}

/// What the report means, a sentence an item.
pub fn conclusion(report: &Report) -> Vec<String> {
    let mut sentences = Vec::new();
    for statement in conclusion::conclusion(report) {
        sentences.push(sentence(report, &statement));
        if matches!(statement, Statement::AboveLink) {
            let next =
                "Capture on the Ethernet interface below: tcpdump -Q in -i IFACE -w - | rxlane explain -";
            sentences.push(next.to_owned());
        }
    }
    sentences
}

/// The most frequent reasons, each with its share of the frames.
fn shares(reasons: &[(&str, u64)], received: u64) -> String {
    let named = reasons.iter().take(REASONS);
    let named =
        named.map(|(why, frames)| format!("{} because {why}", Share::of(*frames, received).rounded()));
    named.collect::<Vec<_>>().join(", ")
}

fn sentence(report: &Report, statement: &Statement<'_>) -> String {
    let (nic, steered) = (&report.nic, &report.steered);
    let name = &nic.name;
    let known = |partly: bool| if partly { " of those whose queue is known" } else { "" };
    let spread = || {
        format!(
            "over {} CPUs the busiest would take {:.2} times the mean (equivalent to {:.1} evenly loaded CPUs)",
            steered.cpus, steered.max_over_mean, steered.effective_queues
        )
    };
    match statement {
        Statement::Empty => match &report.source.sample {
            Some(sample) => format!(
                "{} received no frame in {:.1} s.",
                printable(&sample.interface),
                sample.seconds
            ),
            None => "The capture holds no frame.".to_owned(),
        },
        Statement::Unread => {
            let links: Vec<&str> = report.source.link_types.keys().map(String::as_str).collect();
            format!("rxlane does not read frames of this kind ({}).", links.join(", "))
        }
        Statement::AboveLink => "These frames were captured behind the encapsulation, where no network card ever sees \
                                 them, so they say nothing about receive queues."
            .to_owned(),
        Statement::Unhashed { frames, received, reasons } => {
            let how_many = if frames * 1000 >= received * 999 {
                format!("The {name} hashes none of these frames")
            } else {
                format!("The {name} does not hash {} of the frames", Share::of(*frames, *received).rounded())
            };
            match reasons.as_slice() {
                [] => format!("{how_many}."),
                [(why, _)] => format!("{how_many}, because {why}."),
                several => format!("{how_many}: {}.", shares(several, *received)),
            }
        }
        Statement::Unplaced { frames, received, reasons } => {
            let share = Share::of(*frames, *received).rounded();
            let unknown = format!("On which queues of the {name} {share} of the frames land is unknown");
            match reasons.as_slice() {
                [] => format!("{unknown}."),
                [(why, _)] => format!("{unknown}: {why}."),
                several => format!("{unknown}: {}.", shares(several, *received)),
            }
        }
        Statement::UnknownQueue { frames, received } => format!(
            "Frames without a hash have nothing that could spread them; which queue of the {name} takes these {} its \
             profile does not say.",
            Share::of(*frames, *received).rounded()
        ),
        Statement::OneQueue => {
            format!("The {name} has one receive queue here, so one CPU takes every frame.")
        }
        Statement::Even { partly } => format!(
            "The {name} spreads the frames{} over its {} queues: the busiest takes {:.2} times the mean.",
            known(*partly),
            nic.queues,
            report.imbalance.max_over_mean
        ),
        Statement::Busiest { queue, placed, partly, cause } => {
            let of = if *cause == Some(Cause::Table) { String::new() } else { format!(" of {}", nic.queues) };
            let share = Share::of(queue.frames, *placed).rounded();
            let why = match cause {
                Some(Cause::Table) => {
                    format!(": the indirection table names only {} of {} queues", nic.table_queues, nic.queues)
                }
                Some(Cause::FewFlows) => format!(
                    "; the capture holds only {}, and a flow stays on one queue",
                    plural(report.flows.unidirectional, "flow")
                ),
                None => String::new(),
            };
            format!("Queue {}{of} takes {share} of the frames{}{why}.", queue.queue, known(*partly))
        }
        Statement::NothingToSteer => {
            "Nothing to fix: steering by the inner header would not spread it better.".to_owned()
        }
        Statement::OneFlow(flow) => format!(
            "Steering by the inner header: {}; one flow ({}) carries {} of the bytes, and no software splits a flow over \
             CPUs.",
            spread(),
            flow.flow,
            Share::of(flow.bytes, report.source.wire_bytes).rounded()
        ),
        Statement::Steering { helps: Some(helps), .. } => {
            let alone = Share::of(steered.left_alone, report.received());
            let rest = match steered.left_alone * 10 >= report.received() {
                true => format!("; {} of the frames have no IP header and stay on the CPU of their queue", alone.rounded()),
                false => String::new(),
            };
            format!("Steering by the inner header would {}: {}{rest}.", if *helps { "help" } else { "not help" }, spread())
        }
        Statement::Steering { helps: None, unknown, received } => format!(
            "Whether steering by the inner header would help is unknown, as the queue of {} of the frames is: {}. On the \
             machine itself rxlane doctor IFACE counts frames by queue.",
            Share::of(*unknown, *received).rounded(),
            spread()
        ),
        Statement::BetterMode => format!(
            "In mode {} the card sees further: --nic {} shows it, rxlane nics says how to turn it on.",
            nic.better_modes.join(" or "),
            nic.better_modes.first().map_or("", String::as_str)
        ),
        Statement::SpreadInSoftware => {
            let mask = (1u128 << u32::from(steered.cpus.min(64))) - 1;
            format!(
                "Linux can spread them today: before the skb is allocated (rxlane steer check IFACE says whether that works \
                 and pays there), or, without a program, after that (RPS): for every receive queue N, \
                 echo {mask:x} > /sys/class/net/IFACE/queues/rx-N/rps_cpus; without the bit of the CPU that serves the \
                 queue it is often better"
            )
        }
        Statement::Refused { frames, worst } => {
            let hint = if worst.largest > JUMBO {
                "; frames of such a length are segments that the capturing host had already merged (GRO), so capture with \
                 `ethtool -K IFACE gro off` to see what the line carries"
            } else {
                ""
            };
            let stack = match worst.stack.get(..LONGEST) {
                Some(start) if worst.stack.len() > LONGEST => format!("{start} …"),
                _ => worst.stack.clone(),
            };
            let frames = if *frames == 1 { "1 frame is".to_owned() } else { format!("{} frames are", thousands(*frames)) };
            format!(
                "{frames} longer than the {name} accepts at its usual settings ({stack}: up to {} bytes, largest seen \
                 {}){hint}.",
                worst.limit, worst.largest
            )
        }
        Statement::Outgoing => format!(
            "{} were sent by the capturing machine and are left out of the queues.",
            plural(report.source.outgoing, "frame")
        ),
        Statement::BothDirections => "Both directions are in this capture, and what a machine sends passes none of its \
                                      receive queues: unless this is from a mirror port, capture with tcpdump -Q in."
            .to_owned(),
        Statement::Few { received } => {
            format!("With {} this says little about a line.", plural(*received, "frame"))
        }
    }
}
