//! Parts of sentences that state one thing: a load, a loss, a cause.

use super::super::{cpus, numbers, percent};
use doctor::Report;
use doctor::facts::{Allowed, Carried, Cause, CpuLoad, DropCounter, LeftOut, Loss, Since, Steering, When};
use format::{quoted, thousands};

pub(in crate::render::prose) fn over(since: Since, start: &'static str) -> &'static str {
    match since {
        Since::Sample => "between the samples",
        Since::Start => start,
    }
}

pub(super) fn cpu_load(load: &CpuLoad) -> String {
    match load {
        CpuLoad::Ksoftirqd { cpu, share } => {
            format!("ksoftirqd/{cpu} takes {share:.0} % of CPU {cpu}: it is the limit now.")
        }
        CpuLoad::Full { cpu, idle } => {
            format!("CPU {cpu} is idle {idle:.0} % of the time: it is the limit now.")
        }
        CpuLoad::OtherWork { cpu, idle, receiving } => format!(
            "CPU {cpu} is idle {idle:.0} % of the time, but no more than {:.0} % of its time is receive work: other \
             work takes the CPU.",
            receiving.ceil()
        ),
        CpuLoad::Room { cpu, idle } => {
            format!("CPU {cpu} is still idle {idle:.0} % of the time: at this load it is not the limit.")
        }
        CpuLoad::Between { cpu, idle } => format!("CPU {cpu} is idle {idle:.0} % of the time."),
        CpuLoad::Unknown => String::new(),
    }
}

/// What the host of a virtual machine did not let through.
pub(super) fn allowance(
    counter: &str,
    count: u64,
    share: Option<f64>,
    since: Since,
    of: Allowed,
    name: &str,
) -> String {
    let (count, since) = (thousands(count), over(since, "since boot"));
    let packets = |which: &str| {
        let share = share.map_or(String::new(), |share| format!(", {} of those received", percent(share)));
        format!(
            "The host of this virtual machine dropped or held back {count} {which} {name} beyond what the instance is allowed \
             (`{counter}`), {since}{share}: no setting in the machine changes that."
        )
    };
    match of {
        Allowed::Received => packets("received packets of"),
        Allowed::Sent => packets("sent packets of"),
        Allowed::Both => packets("packets of"),
        Allowed::LinkLocal => {
            packets("packets to the cloud's own services (name server, clock, metadata) of")
        }
        Allowed::Connections => format!(
            "The host of this virtual machine tracks no more connections than the instance is allowed, and dropped {count} packets that \
             would have opened another (`{counter}`), {since}: each is a connection that failed. No setting in the machine changes that."
        ),
    }
}

pub(super) fn in_sample(what: Carried, share: f64) -> String {
    let percent = format!("In the traffic sample {:.0} % of the frames", share * 100.0);
    match (what, share > 0.0) {
        (Carried::Pppoe, true) => format!("{percent} are PPPoE."),
        (Carried::Qinq, true) => format!("{percent} have two tags or more."),
        (Carried::Pppoe, false) => {
            "The traffic sample holds no PPPoE: perhaps it was taken on another interface, or above PPPoE."
                .into()
        }
        (Carried::Qinq, false) => {
            "The traffic sample holds no frames with two tags: perhaps it was taken on another \
                                   interface, or above the tags."
                .into()
        }
    }
}

/// `rxlane steers 97.2 % of the frames to CPUs 1-3 (counted between the samples)`.
pub(super) fn steered(steering: &Steering) -> String {
    let to = if steering.cpus.is_empty() { "other CPUs".to_owned() } else { cpus(&steering.cpus) };
    let generic = if steering.generic { ", in generic mode (`xdp-generic-only`)" } else { "" };
    match steering.share {
        Some((share, since)) => format!(
            "rxlane steers {} of the frames to {to}{generic} (counted {})",
            percent(share),
            over(since, "since it was attached")
        ),
        None => format!("rxlane steers frames to {to}{generic}; too few were counted to say how many"),
    }
}

pub(super) fn words_of_cause(report: &Report, name: &str, cause: Cause) -> String {
    let is_bsd = matches!(report.system, Some("freebsd" | "netbsd"));
    match cause {
        Cause::Unhashed => format!(
            "frames that the device cannot hash, as PPPoE or stacked tags (`tcpdump -c 100 -e -n -i {name}` shows them)"
        ),
        Cause::FlowOrUdp => {
            "one flow, or UDP between one pair of addresses, as ports are not hashed (`udp-two-tuple`)".into()
        }
        Cause::Flow => "one flow (a traffic sample shows it)".into(),
        Cause::FlowOrUdpUnknown if is_bsd => {
            "one flow, or UDP between one pair of addresses where ports are not hashed (a \
                                              traffic sample shows both)"
                .into()
        }
        Cause::FlowOrUdpUnknown => format!(
            "one flow, or UDP between one pair of addresses where ports are not hashed (`ethtool -n {quoted_name} rx-flow-hash \
             udp4`)",
            quoted_name = quoted(name)
        ),
        Cause::Table if is_bsd => "an indirection table that names this queue alone".into(),
        Cause::Table => format!(
            "an indirection table that names this queue alone (`ethtool -x {quoted_name}`)",
            quoted_name = quoted(name)
        ),
        Cause::FewFlowsInBlocks => {
            "few flows, whose hashes fall into one block of the table (a table in blocks is the \
                                    driver's healthy default)"
                .into()
        }
        Cause::FormerTable => format!(
            "few flows in one block of the table as it was before (it has changed to queues in turn since, as `ethtool -X \
             {quoted_name} equal N` makes it, which may help with few flows)",
            quoted_name = quoted(name)
        ),
        Cause::RssOff => match report.system {
            Some("freebsd") => {
                let driver = name.trim_end_matches(|c: char| c.is_ascii_digit());
                let unit = name.strip_prefix(driver).unwrap_or_default();
                let node = if unit.is_empty() { driver.to_owned() } else { format!("{driver}.{unit}") };
                format!("RSS switched off in the driver (`sysctl dev.{node}` shows its queues)")
            }
            Some("netbsd") => "RSS switched off in the driver".into(),
            _ => format!(
                "RSS switched off, or a filter rule (`ethtool -n {quoted_name}`)",
                quoted_name = quoted(name)
            ),
        },
    }
}

pub(super) fn left_out(queues: &[u32], rings: usize, why: LeftOut) -> String {
    let left_out =
        format!("The indirection table names {} of {rings} rings (queues {})", queues.len(), numbers(queues));
    let others =
        "the other rings get frames by Flow Director or filter rules alone. Nothing is misconfigured";
    match why {
        LeftOut::NamesOne => format!("{left_out}: see `reta-uneven`."),
        LeftOut::Reach => {
            format!("{left_out}, which is all that this device's RSS can reach; {others}.")
        }
        LeftOut::FourBits => format!(
            "{left_out}. 16 is what 4-bit entries can name, as those of Intel's 82599 and X540: if it is one of these, RSS \
             reaches no more, and {others}."
        ),
        LeftOut::Chosen => format!(
            "{left_out}: the others get no frames by RSS. It may be meant so, for filter rules or XDP sockets."
        ),
    }
}

/// `rx_missed_errors rose by 1200 between the samples, 400 a second, 0.8 % of the frames`, to begin a sentence: a
/// counter that is named in words has a capital.
pub(super) fn loss_sentence(loss: &Loss) -> String {
    let clause = loss_clause(loss);
    match clause.strip_prefix("the ") {
        Some(rest) => format!("The {rest}"),
        None => clause,
    }
}

/// The same within a sentence.
pub(super) fn loss_clause(loss: &Loss) -> String {
    let counter = match &loss.counter {
        DropCounter::Named(name) => name.clone(),
        DropCounter::Queue(queue) => format!("the drop counter of receive queue {queue}"),
        DropCounter::Backlog(cpu) => format!("the drop counter of CPU {cpu}'s backlog"),
        DropCounter::Target { interface, cpu } => {
            format!("the drop counter of the cpumap queue from {interface} to CPU {cpu}")
        }
    };
    let frames = loss.frames;
    let mut text = match loss.when {
        When::Now => format!("{counter} rose by {frames} between the samples"),
        When::Before => format!("{counter} stands at {frames} and did not move between the samples"),
        When::SinceStart => format!("{counter} counts {frames} since the counters were started"),
    };
    if let Some(rate) = loss.per_second {
        text.push_str(&format!(", {rate:.0} a second"));
    }
    if let Some(share) = loss.share {
        text.push_str(&format!(", {} of the frames", percent(share)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_begins_with_a_capital_and_a_counter_keeps_its_name() {
        let loss =
            |counter| Loss { counter, frames: 7, when: When::SinceStart, share: None, per_second: None };
        let in_words = loss(DropCounter::Queue(3));
        assert!(loss_sentence(&in_words).starts_with("The drop counter of receive queue 3 counts 7"));
        assert!(loss_clause(&in_words).starts_with("the drop counter"));
        let named = loss(DropCounter::Named("rx_missed_errors".to_owned()));
        assert!(loss_sentence(&named).starts_with("rx_missed_errors counts 7"));
    }
}
