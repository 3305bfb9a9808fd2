//! The sentences of facts.

pub(super) mod insufficient;
pub(super) mod parts;

use super::coalescing::pppoe_gro;
use super::{cpus, name, named, numbers, percent};
use doctor::Report;
use doctor::facts::{CpuShared, Fact, Insufficient, LinkCause, Little, MoreQueues, Need, Since};
use doctor::finding::{Finding, Severity};
use format::{plural, quoted, thousands};
use insufficient::insufficient;
use parts::{
    allowance, cpu_load, in_sample, left_out, loss_clause, loss_sentence, over, steered, words_of_cause,
};

/// Part from which the rest is not mentioned.
const NEARLY_ONE: f64 = 0.999;

/// Devices, each with its part of the interrupts of a CPU.
fn with_shares(owners: &[String], shares: &[f64]) -> String {
    let both: Vec<String> =
        owners.iter().zip(shares).map(|(owner, share)| format!("{owner} ({})", percent(*share))).collect();
    named(&both)
}

/// What the fact states: a sentence, and on further lines what explains it.
pub fn sentence(report: &Report, finding: &Finding, fact: &Fact) -> String {
    let name = name(finding);
    match fact {
        Fact::Load(load) => cpu_load(load),
        Fact::LoadIsOneFlow => "The traffic sample's load is one flow: no software divides it.".into(),
        Fact::SameFor { names } => format!("The same holds for {}.", named(names)),
        Fact::InSample { what, share } => in_sample(*what, *share),
        Fact::QueueTook { queue, share } => format!("Queue {queue} took {:.1} % of all frames.", share * 100.0),
        Fact::NoneSince => "None since.".into(),
        Fact::SoFewInterrupts => "So few interrupts limit nothing.".into(),

        Fact::SteeredAlready(steering) => format!("Software spreads them already: {}.", steered(steering)),
        Fact::TargetTakes { cpu, share } => format!(
            "CPU {cpu} takes {:.0} % of those: one flow, or flows that one bucket or a few have together.",
            share * 100.0
        ),
        Fact::OneTarget => "That is one CPU for all of them.".into(),
        Fact::TargetLoses { cpu } => {
            format!("CPU {cpu} could not take all that it was given (`backlog-drop`).")
        }
        Fact::TargetBusy { cpu, idle } => {
            format!("CPU {cpu}, which takes most of them, is idle {idle:.0} % of the time.")
        }
        Fact::DriverAndTarget { cpu } => {
            format!("CPU {cpu} takes the interrupts and is a steering target, too.")
        }
        Fact::DriverWorkRemains { cpu } => format!(
            "What remains on CPU {cpu} is the driver's own work for each frame, which no software can move."
        ),
        Fact::RpsAgain { cpus } => format!(
            "RPS of queue 0 distributes them a second time, to CPUs {}, which only costs.",
            numbers(cpus)
        ),
        Fact::SteeringPasses { steering, share, reason } => {
            let reason = share.zip(reason.as_ref());
            let reason = reason.map_or(String::new(), |(share, reason)| {
                format!(" {} are counted as {reason}.", percent(share))
            });
            format!("Steering is on and leaves most frames where they arrive: {}.{reason}", steered(steering))
        }
        Fact::SteersOtherClasses { classes } => {
            let classes = if classes.is_empty() { "none".to_owned() } else { classes.join(", ") };
            format!("Steering is on, but for other classes of frames ({classes}).")
        }
        Fact::RpsSpreads { cpus } => format!(
            "RPS distributes the frames to CPUs {}, after this queue's CPU took them.",
            numbers(cpus)
        ),
        Fact::ProgramUnread { why } => format!(
            "An XDP program is attached, and whether it steers these frames to other CPUs could not be read ({why})."
        ),
        Fact::NetisrSpreads { threads } => {
            format!("netisr hands packets on to {threads} bound threads.")
        }

        Fact::HalfDuplex { mbps } => format!(
            "The link of {name} runs at {mbps} Mbit/s half duplex: both directions share it, and frames are lost to \
             collisions.\nUsually one end has a forced speed and the other negotiates."
        ),
        Fact::SlowLink { mbps, device } => {
            format!("The link of {name} runs at {mbps} Mbit/s; the device can do {device} Mbit/s.")
        }
        Fact::SlowLinkCause(cause) => format!(
            "Nothing after the wire can be faster. {}",
            match cause {
                LinkCause::Partner => "The other end offers no more.",
                LinkCause::CableOrSetting => {
                    "Both ends can do more, so the cable or a forced setting is the cause."
                }
                LinkCause::PartnerUnknown => "What the other end offers is not known.",
                LinkCause::Any => "The cable, a forced setting, or the other end is the cause.",
            }
        ),
        Fact::LinkWentDown { times } => {
            format!("It went down {times} times in the kernel log, as with a damaged cable or connector.")
        }

        Fact::TooLong(lost) => {
            format!("{}: frames longer than the device accepts were dropped.", loss_sentence(lost))
        }
        Fact::TooLongUnknown => "The text does not say which: full frames with one tag more than expected, \
                                 PPPoE with packets of 1500 bytes, or jumbo frames of others on the wire."
            .into(),
        Fact::FullFrame { chain, frame, tags, limit } => {
            let limit = limit.map_or(String::new(), |limit| {
                format!("; the device accepts {limit} ({} with FCS)", limit.saturating_add(4))
            });
            format!(
                "Full frames of {chain} have {frame} bytes with {tags} {} ({} with FCS){limit}.",
                if *tags == 1 { "tag" } else { "tags" },
                frame.saturating_add(4)
            )
        }
        Fact::NoneAmong { frames } => format!("None such arrived among {frames} frames so far."),
        Fact::BelowTooSmall { name, packet, below, mtu } => format!(
            "A full packet of {name} takes {packet} bytes below it, and {below} carries {mtu}: what is longer is lost or \
             refused there."
        ),

        Fact::ProgramWithoutTag { name } => format!(
            "An XDP program is attached and the device strips tags: the program sees frames of {name} without the outer \
             one.\nA program that distinguishes VLANs, or finds IP behind tags, goes wrong; one that asks the driver for \
             the tag does not."
        ),
        Fact::SteeringWithoutTag { name } => format!(
            "rxlane steers this device's frames, and the device strips tags: a frame of {name} that is handed to another \
             CPU arrives there without its outer tag, at the wrong interface."
        ),
        Fact::StrippedForSteering { name: stacked } => format!(
            "{stacked} carries encapsulated traffic in tagged frames, which the device does not spread. Steering with an XDP cpumap would spread it, and needs the tags that the device strips now: `rxlane steer up {quoted_name} \
             --disable-rxvlan` keeps them in. Nothing has to be changed until then.", quoted_name = quoted(name)),

        Fact::PppoeUnhashed { device } => format!(
            "PPPoE arrives on {name}, and {device} cannot hash it: its parser stops at the PPPoE header, so that every \
             frame of every session goes to one queue and one CPU."
        ),
        Fact::PppoeUnknown { queue, share } => {
            format!("PPPoE arrives on {name}, and queue {queue} takes {:.0} % of all frames.", share * 100.0)
        }
        Fact::PppoeDeviceUnknown { device } => {
            format!("Whether {device} can hash PPPoE is not known; most cannot.")
        }
        Fact::OthersSpread => "The queue counters show other traffic, too, which does spread.".into(),
        Fact::PppoeSomewhere { devices } => format!(
            "This machine carries PPP, over PPPoE as it seems, though the text does not say on which device it arrives. {} cannot hash PPPoE: what arrives there goes to one queue and one CPU.",
            devices.join(" or ")
        ),
        Fact::PppoeOnOneCpu { cpu, frames, packets, workers, of } => format!(
            "CPU {cpu} took {frames} frames from Ethernet that no other protocol accounts for, and {packets} PPPoE \
             packets were processed on {} of {of}: the device seems to deliver all PPPoE on one CPU, and software \
             spreads it from there. That it reaches no more CPUs may be a matter of few flows, or of the CPUs that it \
             is allowed.",
            cpus(workers)
        ),
        Fact::QinqUnhashed { device } => format!(
            "Frames with two VLAN tags arrive on {name}, and {device} cannot hash them: its parser stops before the IP \
             header, so that they all go to one queue."
        ),
        Fact::QinqUnknown { device } => format!(
            "Frames with two VLAN tags arrive on {name}, and whether {device} looks behind two tags is not known; many \
             devices do not."
        ),

        Fact::UdpByAddresses { flows } => format!(
            "{} is hashed by addresses alone, without ports: all UDP between two addresses shares one queue.",
            flows.join(" and ")
        ),
        Fact::UdpMayBe { queue, share } => format!(
            "Queue {queue} takes {:.0} % of the frames: if they are UDP between few pairs of addresses, this is why.",
            share * 100.0
        ),
        Fact::UdpUsual => {
            "That is the usual default; it matters only where UDP between few pairs of addresses is the load.".into()
        }
        Fact::UdpChanged { flow, former, now } => format!(
            "{flow} was hashed by addresses alone (`{former}`), so that all UDP between two addresses shared a queue, and \
             is hashed with ports now (`{now}`). Nothing remains to be done; counters from before the change still show the \
             former distribution."
        ),

        Fact::SingleQueue { cpu } => format!(
            "{name} has one receive queue{}: RSS has nothing to spread over, and only software can use other CPUs.",
            cpu.map_or(String::new(), |cpu| format!(", served by CPU {cpu}"))
        ),
        Fact::OneQueue { queue, of, share, total, interrupts, since } => format!(
            "Queue {queue} of {of} took {:.1} % of {} {} {}.",
            share * 100.0,
            thousands(*total),
            if *interrupts { "interrupts" } else { "frames" },
            over(*since, "since the counters were started")
        ),
        Fact::Little(Little::Rate(rate)) => {
            format!("At {rate:.0} frames a second this limits nothing yet.")
        }
        Fact::Little(Little::NextToBusiest) => {
            "Compared with the busiest interface of this machine that is nothing.".into()
        }
        Fact::Little(Little::Total) => "So few frames limit nothing.".into(),
        Fact::CausesKnown { ids } => format!("The cause is known: {}.", ids.join(", ")),
        Fact::CausesPossible(causes) => {
            let causes: Vec<String> = causes.iter().map(|cause| words_of_cause(report, name, *cause)).collect();
            format!("The text does not prove why. Possible: {}.", causes.join("; "))
        }
        Fact::OneFlow { flow, protocol, share } => format!(
            "One flow, {flow} ({protocol}), has {:.0} % of the traffic sample's frames. It stays on one queue and one CPU \
             however the others are spread.",
            share * 100.0
        ),

        Fact::RetaNamesOne { queue, entries, rings } => format!(
            "All {entries} entries of the indirection table name queue {queue}, and there are {rings} rings: every frame \
             that is hashed goes there."
        ),
        Fact::RetaPrefers { queue, most, entries, queues, mean } => format!(
            "Queue {queue} stands in {most} of the indirection table's {entries} entries, where an even share of {queues} \
             queues would be {mean:.0}."
        ),
        Fact::RetaSpreadsAllTheSame => "The queue counters show several queues in use all the same: by filter rules, or \
                                        from before the table was set."
            .into(),
        Fact::RetaLeavesOut { queues, rings, why } => left_out(queues, *rings, *why),
        Fact::FewQueues { used, device, cpus } => format!(
            "{} {} in use; the device has {device} and the machine {}.",
            plural((*used).into(), "receive queue"),
            if *used == 1 { "is" } else { "are" },
            plural((*cpus).into(), "CPU")
        ),
        Fact::MoreQueues(MoreQueues::Useless) => {
            "More queues would not help here: the device cannot hash most of the frames.".into()
        }
        Fact::MoreQueues(MoreQueues::Useful) => "More queues would share the work of that CPU.".into(),
        Fact::MoreQueues(MoreQueues::IfFull) => {
            "That matters only if a CPU that serves one of them is full.".into()
        }

        Fact::RingFull(lost) | Fact::BacklogFull(lost) | Fact::TargetFull(lost) => {
            format!("{}.", loss_sentence(lost))
        }
        Fact::RingFullCpu => "The ring is full since the CPU that empties it is:".into(),
        Fact::RingFullCause { past: true } => {
            "That was a burst in the past; nothing is lost now.".into()
        }
        Fact::RingFullCause { past: false } => "The receive ring was full: bursts are longer than it is, or the CPU that \
                                                empties it was away or too slow."
            .into(),
        Fact::LongerRingFills => {
            "A longer ring would fill as well; spread the load instead.".into()
        }
        Fact::SmallRing { entries, most } => format!(
            "The receive ring holds {entries} frames of {most} possible. That is the usual default and no fault; it \
             matters only if frames are lost at the ring."
        ),
        Fact::Hung { interface, reset, times } => format!(
            "{} {}, {} by the log.\nWhat was in its rings is lost each time.",
            interface.as_ref().map_or("A driver".to_owned(), |name| format!("The driver of {name}")),
            if *reset { "was reset after a hang" } else { "could not hand over a frame" },
            if *times == 1 { "once".to_owned() } else { format!("{times} times") }
        ),
        Fact::MbufsDenied { kind, count, since, limit } => format!(
            "The system refused {} requests for buffers of the network ({kind}), {}{}. Drivers then drop what arrives, and programs \
             get \"No buffer space available\".",
            thousands(*count),
            over(*since, "since boot"),
            limit.map_or(String::new(), |(used, most)| format!(
                "; {} of at most {} exist",
                thousands(used),
                thousands(most)
            ))
        ),
        Fact::Allowance { counter, count, share, since, of } => {
            allowance(counter, *count, *share, *since, *of, name)
        }
        Fact::TransmitStalled { queue } => format!(
            "The transmit ring {queue} of {name} is stalled: frames wait in it, and the driver does not send them. Programs then get \
             \"No buffer space available\". It is a fault of the driver or the device, unless the next look shows another state."
        ),
        Fact::TransmitHung { interface, times } => format!(
            "{} did not send what it was given and was reset, {} by the log: a fault of the driver or the device, not of receive queues.\n\
             What was in its rings is lost each time.",
            interface.as_ref().map_or("A device".to_owned(), |name| name.clone()),
            if *times == 1 { "once".to_owned() } else { format!("{times} times") }
        ),
        Fact::Stuck { counter, lost } => format!(
            "{name} received nothing between the samples while `{counter}` rose by {lost}: it is stuck, or its queue is \
             no longer served."
        ),
        Fact::Wrapped { counters, of } => format!(
            "{counters} of {of} counters of this interface fell from beyond 2³¹ between the samples. One wrap of 32 bits \
             is assumed; over a long pause it may have been more, and the rates too low."
        ),

        Fact::InterruptEach { interrupts, frames } => format!(
            "{interrupts:.0} interrupts a second for {frames:.0} frames a second: about one for each frame.\nModeration is off (rx-usecs \
             0), and each interrupt costs as much time as several frames."
        ),
        Fact::ModerationOff { idle } => format!(
            "rx-usecs 0 means an interrupt for every frame with this driver. {}.",
            match idle {
                true => "At the rate of this sample that costs little",
                false => "What it costs depends on the load, which this text does not show",
            }
        ),
        Fact::BgeInterrupts { rate } => format!(
            "{rate} interrupts a second at interrupt mitigation level 0: an interrupt for nearly every frame.\nEach level \
             about halves them and doubles the burst that reaches the IP input queue."
        ),
        Fact::Burst { usecs, mbps, full, small, entries } => format!(
            "In {usecs} us at {mbps} Mbit/s up to {full} full-size frames arrive, or {small} of the smallest; the ring \
             holds {entries}."
        ),
        Fact::BurstLost(lost) => format!("And frames are lost at the ring: {}.", loss_clause(lost)),
        Fact::BurstOfSmall => "Only bursts of small frames at line rate would overflow it.".into(),
        Fact::BgeBurst { level, burst, interfaces, together, depth, dropped } => format!(
            "At interrupt mitigation level {level} bursts of {burst} frames reach the IP input queue, from {interfaces} \
             interfaces {together} at once; it holds {depth}{}.",
            dropped.map_or(String::new(), |drops| format!(" and has dropped {drops}"))
        ),

        Fact::VectorsOnOneCpu { vectors, cpu, others, share, since } => {
            let (part, none) = match *share {
                share if share < NEARLY_ONE => (percent(share), "the rest"),
                _ => ("all".to_owned(), "none"),
            };
            format!(
                "{vectors} busy receive vectors of {name} share CPU {cpu}, which took {part} of their interrupts {}; the \
                 other {others} CPUs took {none}.\nFrames do spread over the queues: it is the affinity of the interrupts \
                 that brings them together again, not RSS.",
                over(*since, "since boot")
            )
        }
        Fact::MinorPart { cpu, owner, share } => format!(
            "These are a minor part of the work of CPU {cpu}: {} of the interrupts of devices there are those of {owner}, \
             which other affinities of {name} do not change.",
            percent(*share)
        ),
        Fact::SpreadingUseless => {
            "All CPUs are full (`cpus-full`): spreading the work over them would only add to it.".into()
        }
        Fact::CpusFull { cpus, idle, work } => format!(
            "All {}CPUs are full: {work:.0} % of their time goes to interrupts and the system, {idle:.0} % is idle. Spreading helps no \
             more; only less work for each packet does.",
            cpus.map_or(String::new(), |cpus| format!("{cpus} "))
        ),
        Fact::NapiThread { thread, share, if_cpus } => {
            let takes = match (share, if_cpus) {
                (Some(share), _) => format!("takes {share:.0} % of a CPU"),
                (None, Some(cpus)) => format!("takes a whole CPU, if this machine has {cpus}"),
                (None, None) => "takes a CPU".to_owned(),
            };
            format!(
                "The kernel's thread {thread} {takes}: with threaded NAPI it polls one queue and carries each of its packets \
                 through the stack, and no other CPU helps it."
            )
        }
        Fact::QueueThread { thread, share, full } => format!(
            "The kernel's thread {thread} takes {share:.0} % of a CPU{}: it carries each packet of its queue to its end, and no other \
             CPU helps it.",
            if *full > 1 { format!(", and {} more of its kind are full", full - 1) } else { String::new() }
        ),
        Fact::InterruptsFull { cpu, share, idle, others } => format!(
            "CPU {cpu} spends {share:.0} % of its time in interrupts and is idle {idle:.0} %, while {} time left: the thread that \
             runs there is the limit. Which one it is a listing without threads does not show.",
            others_have(*others)
        ),
        Fact::LockContention { share, functions, lock } => format!(
            "CPUs spend {:.0} % of their time at locks ({}){}. More queues or CPUs make it worse.",
            share * 100.0,
            functions.join(", "),
            lock.as_ref().map_or(String::new(), |(lock, caller)| format!(
                ": that of {}, by {caller}",
                super::locks::lock(*lock)
            ))
        ),
        Fact::CpuShared(CpuShared { cpu, owners, shares, free, by_free, since }) => format!(
            "CPU {cpu} served the interrupts of {} {}, while {}.",
            with_shares(owners, shares),
            over(*since, "since boot"),
            match *by_free {
                part if part >= 1.0 - NEARLY_ONE => format!("{} took {} of them", cpus(free), percent(part)),
                _ => format!(
                    "{} serve{} none of a busy device",
                    cpus(free),
                    if free.len() == 1 { "s" } else { "" }
                ),
            }
        ),
        Fact::MostlyOne { owner } => format!(
            "Nearly all of them are those of {}: other affinities of the rest change little, and one vector remains on one CPU.",
            owner
        ),
        Fact::MovedSince => "Some of these vectors were served by several CPUs: where affinities were changed since boot, only two \
                             samples under load show which CPU serves which now (cat /proc/interrupts)."
            .into(),
        Fact::LittleCpu { cpu, owners, of_1024, big, since } => format!(
            "CPU {cpu} served the interrupts of {} {}. It is one of the little CPUs{}; {} {} faster and serve{} none of a busy \
             device.",
            named(owners),
            over(*since, "since boot"),
            of_1024.map_or(String::new(), |capacity| format!(
                ", with {:.0} % of a big one's capacity",
                f64::from(capacity) / 10.24
            )),
            cpus(big),
            if big.len() == 1 { "is" } else { "are" },
            if big.len() == 1 { "s" } else { "" }
        ),
        Fact::VectorsShare { cpu, names, free } => format!(
            "CPU {cpu} serves {} busy receive vectors of {name} ({}), while {} serve{} none.",
            names.len(),
            names.join(", "),
            cpus(free),
            if free.len() == 1 { "s" } else { "" }
        ),
        Fact::VectorsMove { moved, of, since, first, cpus } => format!(
            "{moved} of {of} busy receive vectors of {name} moved between CPUs {}: {first} was served by CPUs {}. \
             irqbalance does that; by itself it is no fault.",
            over(*since, "since boot"),
            numbers(cpus)
        ),

        Fact::OneCpuReceives { cpu, share, others, since } => {
            let others =
                if *others == 1 { "the other CPU".to_owned() } else { format!("the other {others} CPUs") };
            format!(
                "CPU {cpu} did {:.0} % of the receive work {}, and {others} the rest.",
                share * 100.0,
                over(*since, "since boot")
            )
        }
        Fact::WorkIsLittle => "It is so little that one CPU carries it easily.".into(),
        Fact::WorkOverUnknownTime => {
            "The text does not say over what time: two samples under load would.".into()
        }
        Fact::WorkSteered { steering, uncounted } => format!(
            "Software spreads frames already: {}.{}",
            steered(steering),
            if *uncounted { " What their CPUs do is no softirq and not in these counts." } else { "" }
        ),
        Fact::Ksoftirqd { cpu, share } => format!(
            "ksoftirqd/{cpu} takes {share:.0} % of CPU {cpu}, and no other CPU's thread is as busy: more soft interrupts \
             reach that CPU than it can serve.\nOf a machine that forwards they are most likely NET_RX, which \
             `cat /proc/softirqs` shows."
        ),
        Fact::SoftirqFull { cpu, share, idle, others } => format!(
            "CPU {cpu} spends {share:.0} % of its time in soft interrupts and is idle {idle:.0} %, while {} time left.\nOf a machine \
             that forwards they are most likely NET_RX, which `cat /proc/softirqs` shows.",
            others_have(*others)
        ),
        Fact::Squeezed { cpu, times, frames, share, per_second } => format!(
            "On CPU {cpu} the receive softirq ran out of budget {} for {} between the samples{}: at 300 frames a run, {} of its \
             frames came in runs that ended with work left.",
            plural(*times, "time"),
            plural(*frames, "frame"),
            per_second.map_or(String::new(), |rate| format!(", {rate:.0} times a second")),
            percent(*share)
        ),
        Fact::SqueezedLittle { cpu, times, frames, now } => format!(
            "On CPU {cpu} the receive softirq ran out of budget {} for {} {}. That happens under bursts and costs little by \
             itself.",
            plural(*times, "time"),
            plural(*frames, "frame"),
            over(if *now { Since::Sample } else { Since::Start }, "since the counters were started")
        ),

        Fact::RpsOff { queue, why } => format!(
            "RPS is off for queue {queue} of {name}, and the device does not spread its frames, since {}.",
            match why {
                Need::SingleQueue => "it has one queue".to_owned(),
                Need::OneQueue { queue, share } => {
                    format!("queue {queue} takes {:.0} % of its frames", share * 100.0)
                }
                Need::Unhashed => "it cannot hash the frames that arrive".to_owned(),
            }
        ),
        Fact::RpsSameCpu { queue, cpu } => format!(
            "RPS of queue {queue} of {name} names CPU {cpu} alone, which also serves the queue's interrupt: it spreads \
             nothing and costs a detour."
        ),
        Fact::GenericXdp { native, since } => format!(
            "The XDP program runs in generic mode: the receiving CPU builds a socket buffer for every frame first.\n{}",
            match (native, since) {
                (Some(true), Some(since)) => format!("The driver can run it natively since Linux {since}."),
                (Some(true), None) => "The driver can run it natively.".to_owned(),
                (Some(false), _) =>
                    "The driver has no native mode, so this is all there is; another network card would do better."
                        .to_owned(),
                (None, _) => "Whether the driver can run it natively is not known.".to_owned(),
            }
        ),
        Fact::GenericSteering => {
            "It is rxlane's steering, which then saves that CPU no more than RPS would.".into()
        }
        Fact::BacklogIs => {
            "The queue through which other CPUs (RPS) and drivers without NAPI hand frames to this CPU was full.".into()
        }
        Fact::TargetShare { share } => format!(
            "It takes {:.0} % of what is steered while the other targets take the rest.",
            share * 100.0
        ),

        Fact::NetisrDirect { pppoe } => format!(
            "Packets are processed on the CPU that took them from the ring.\n{}",
            match pppoe {
                true =>
                    "This machine carries PPPoE, which most cards deliver to one queue: one CPU does all of it.",
                false =>
                    "That is right where the card spreads frames over its queues, and a limit where one queue takes all.",
            }
        ),
        Fact::NetisrOneThread => {
            "There is one netisr thread, so that deferred work stays on one CPU.".into()
        }
        Fact::NetisrUnbound => "netisr threads are not bound to CPUs.".into(),
        Fact::InputQueue { depth, drops, new } => format!(
            "The IP input queue{} dropped {drops} packets, {}: bursts from the interfaces are longer than it is.",
            depth.map_or(String::new(), |depth| format!(" of {depth} packets")),
            match new {
                Some(new) => format!("{new} of them between the samples"),
                None => "since the counters were started".to_owned(),
            }
        ),

        Fact::Flow(fact) => super::flow::sentence(fact),
        Fact::Fast(fact) => super::fast::sentence(fact),
        Fact::GroOff => {
            "GRO is off: every received TCP segment runs through VLAN, firewall, routing and socket by itself.".into()
        }
        Fact::GroPppoe => "Traffic outside PPPoE would gain.".into(),
        Fact::PppoeGro(kernel) => capitalised(pppoe_gro(*kernel)),
        Fact::VlanMtu { name, mtu } => format!(
            "{name} has an MTU of {mtu}. That shortens what is sent; what the other side sends stays as long as its own MTU \
             makes it."
        ),
        Fact::PppMtu { name, mtu: 1492 } => {
            format!("{name} has an MTU of 1492, the usual one of PPPoE: TCP needs a smaller segment size on its way.")
        }
        Fact::PppMtu { name, mtu: less @ ..1492 } => format!(
            "{name} has an MTU of {less}, less than the 1492 that PPPoE leaves; the provider, or a setting, asks for it."
        ),
        Fact::PppMtu { name, mtu } => format!("{name} has an MTU of {mtu}."),
        Fact::FullPppoe { below: None, .. } => {
            "For 1500 (RFC 4638) the interface below it, which the text does not name, needs an MTU of 1508.".into()
        }
        Fact::FullPppoe { below: Some((way, frame)), works } => format!(
            "1500 (RFC 4638) takes an MTU of 1508 of {way}, and frames of {frame} bytes ({} with FCS): {}",
            frame.saturating_add(4),
            match works {
                Some(true) =>
                    "this device accepts them. Whether the provider does, its answer to PPP-Max-Payload shows.",
                Some(false) => "this device, or its driver, does not accept them.",
                None => "whether this device accepts them is not known.",
            }
        ),
        Fact::UserSpacePppoe { process, cpu } => format!(
            "Every PPPoE frame passes the user process `{process}`, one at a time, on one CPU.\n{}",
            match cpu {
                Some(cpu) if finding.severity == Severity::Critical => {
                    format!("It takes {cpu:.0} % of a CPU: it is the limit.")
                }
                Some(cpu) if finding.severity == Severity::Warning => format!("It takes {cpu:.0} % of a CPU."),
                Some(cpu) => format!("It takes {cpu:.0} % of a CPU now; watch it under load."),
                None => "How much CPU it takes is not known; watch it under load.".to_owned(),
            }
        ),
        Fact::PartialChecksum { times } => format!(
            "The kernel logged {}that it could not place a checksum: the frame went out with a wrong one, and its \
             receiver drops it.",
            if *times > 1 { format!("{times} times ") } else { String::new() }
        ),
        Fact::TwoTags { chain } => {
            format!("{chain} sends frames with two tags, behind which old drivers find no IP.")
        }
        Fact::OldKernel { chain, others, kernel } => format!(
            "{chain} sends frames with two tags{}, and Linux {kernel} is older than 3.19, which looks behind any number of \
             tags: drivers with per-protocol checksums send them with a wrong one.\nThe kernel log would show `partial \
             checksum but proto=`. A distribution's kernel may carry the correction.",
            if *others > 0 { format!(", as do {others} others") } else { String::new() }
        ),
        Fact::OffloadsLost { name, lost, can, tags } => {
            let lost = lost.join(", ");
            let tags = match tags {
                Some(1) => "frames with one tag".to_owned(),
                Some(tags) => format!("frames with {tags} tags"),
                None => "its frames".to_owned(),
            };
            match can.is_empty() {
                true => format!(
                    "{name} lacks {lost}, which the device below has. Whether its driver can do it for {tags} is not known."
                ),
                false => format!(
                    "{name} lacks {lost}, which the device below has; its driver can do {} for {tags}.\nWhat this machine \
                     sends there the CPU cuts into segments and sums up itself.",
                    can.join(", ")
                ),
            }
        }

        Fact::Insufficient(Insufficient { ids, of, commands, more, unnamed }) => {
            let mut rules = insufficient(ids, *of);
            let more = if *more > 0 { format!(" ({more} more: --json)") } else { String::new() };
            if !commands.is_empty() {
                rules += &format!(" The output of these would help: {}{more}.", commands.join("; "));
            }
            if let Some(command) = unnamed {
                rules += &format!(
                    " An output names no interface: put the command above it, as in `$ {command}`, if it is that one's."
                );
            }
            rules
        }
    }
}

fn others_have(others: usize) -> String {
    if others == 1 { "the other CPU has".to_owned() } else { format!("the other {others} CPUs have") }
}

/// The clause as a sentence.
fn capitalised(clause: &str) -> String {
    let mut letters = clause.chars();
    letters.next().map_or(String::new(), |first| format!("{}{}.", first.to_uppercase(), letters.as_str()))
}
