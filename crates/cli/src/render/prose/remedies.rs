//! The words of remedies: what the commands do, and what to expect.

use super::{cpus, name};
use doctor::facts::{Effect, FlowEffect, Forecast};
use doctor::finding::{Finding, Remedy};
use format::quoted;
use host::System;

const NETISR: &str = "IP, firewall and forwarding leave the CPU of the queue, which still takes off the PPPoE header. What \
                      spreads by flow are packets that the device hashed. Packets that it did not hash, as all of PPPoE, \
                      go to the CPU of their interface: several sessions with an interface each can go to several CPUs, and one \
                      session stays on one CPU, another than the queue's, unless the kernel was built with \
                      `options RSS`. What the model expects of it is unknown: nobody has counted what the hand-over costs \
                      there.";
const GRO_IN_PPPOE: &str = "Less work for each received TCP segment, the more the larger the flows. Counted on Linux 7.3 for 16 \
                            connections over PPPoE: 1.8 times less on the busiest CPU for what is delivered, 1.5 times for what is routed \
                            (docs/measurements/kernel-paths.md).";
const AGAIN: &str = "Other options have to be given again.";
const IRQBALANCE: &str = "Where irqbalance runs it moves vectors again: stop it first, or let it do the spreading alone \
                          (systemctl status irqbalance).";
const FULL_PPPOE: &str = "After the next dial-in an MTU of 1500, if the provider answers with PPP-Max-Payload 1500 or more: \
                          no MSS clamping, no fragments. If it does not, the MTU stays at 1492 and nothing is lost.";

/// What spreading flows would come to.
pub fn forecast(forecast: &Forecast) -> String {
    match forecast {
        Forecast::NoSample => {
            "Unknown without a traffic sample (rxlane doctor --traffic CAPTURE): as many CPUs as \
                               there are busy flows can share the work; one flow stays on one CPU."
                .into()
        }
        Forecast::OtherSample => {
            "Unknown from a traffic sample without such frames: as many CPUs as there are busy \
                                  flows can share the work; one flow stays on one CPU."
                .into()
        }
        Forecast::Sample { cpus, after, before, effective } => format!(
            "In the traffic sample, spreading flows by the inner header over {cpus} CPUs leaves {:.0} % of the frames on the busiest{}: equivalent to {effective:.1} evenly loaded CPUs.",
            after * 100.0,
            before.map_or(String::new(), |before| {
                format!(" where the busiest queue takes {:.0} % now", before * 100.0)
            })
        ),
    }
}

/// What to know before the commands run.
pub fn caution(finding: &Finding, remedy: &Remedy) -> Option<String> {
    match &remedy.effect {
        Effect::Restart { .. } => {
            Some(format!("This drops the link: run it from the console, not over {}.", name(finding)))
        }
        Effect::Flow(FlowEffect::Nft { known: false }) => Some(
            "LAN and WAN are placeholders for the physical devices, or the ports of a switch; with `ip -d link` in the text the \
             commands have their names."
                .into(),
        ),
        _ => None,
    }
}

/// What the commands of a remedy do, in a few words, and what to expect of it.
pub fn words(finding: &Finding, remedy: &Remedy) -> (String, String) {
    let name = name(finding);
    let (what, expected) = match &remedy.effect {
        Effect::Rps { cpus, file, conditional, filter } => (rps(cpus, file, *conditional, *filter), ""),
        Effect::Steer { native } => {
            return (
                format!(
                    "or steer by the inner header in XDP, before the socket buffer (skb) is allocated: the CPU that takes the \
                     interrupt then does less than with RPS.{} The first command says what it would bring here, and \
                     changes nothing",
                    if *native { " The driver runs XDP programs itself." } else { "" }
                ),
                format!(
                    "Flows are distributed to CPUs as with RPS, and the first CPU does less for each frame. `rxlane steer down {quoted_name}` undoes it.", quoted_name = quoted(name)),
            );
        }
        Effect::Netisr => (
            "netisr: hand packets to the threads of other CPUs (net.isr.dispatch works at once; maxthreads and \
             bindthreads are loader tunables and need a restart)"
                .into(),
            NETISR,
        ),
        Effect::NetisrDispatch => ("hand packets to other CPUs, by flow or by interface".into(), NETISR),
        Effect::NetisrThreads => ("a netisr thread on every CPU, from the next start".into(), NETISR),
        Effect::SeeWhetherOneFlow => (
            "see whether it is one flow: buckets are moved to idle CPUs already, and one flow stays in one bucket".into(),
            "One flow stays on one CPU; several that share a bucket do, too.",
        ),
        Effect::Rebalance => {
            return again(
                "move flows from busy to idle CPUs; the first command shows whether one bucket has it all, which is one \
                 flow as a rule and cannot be divided",
                "Buckets of flows move to idle CPUs while they are drained; one flow stays on one CPU.",
            );
        }
        Effect::MoreTargets => {
            return again(
                "spread over more CPUs: detach steering and attach it again with a longer list",
                "As many CPUs as there are busy flows can share the work.",
            );
        }
        Effect::FreeDriverCpu { cpu } => {
            return again(
                &format!("leave CPU {cpu} to the driver alone"),
                "The CPU that takes the interrupts has only the driver's work to do.",
            );
        }
        Effect::SeeWhyPassed => (
            "see why steering passes the frames: the first command counts them by reason, the second says what this \
             device's frames would need"
                .into(),
            "Unknown before the reason is known. Tags that the device strips, classes that are not selected and frames \
             that are no IP stay where they arrive.",
        ),
        Effect::SteerThese => {
            return again(
                "steer these frames, too: detach steering and attach it again, which examines anew what the device does not spread",
                "Flows are distributed to CPUs by their inner header. `--classes` names classes where that finds others.",
            );
        }
        Effect::SeeProgram => (
            "see as root what the program does with the frames, before anything is changed".into(),
            "Where it steers them, nothing else is needed.",
        ),
        Effect::LongerRing { entries, now } => (
            format!("a receive ring of {entries} frames instead of {now}"),
            "Bursts of that length survive; the interface goes down for a moment. If frames are lost all the same, the CPU \
             is too slow, and only spreading the load helps.",
        ),
        Effect::RingUnknown => (
            format!(
                "a longer receive ring: how long it is and may be, the text does not say; paste `ethtool -g {quoted_name}` for a \
                 command", quoted_name = quoted(name)),
            "Longer bursts survive; a CPU that is too slow fills any ring.",
        ),
        Effect::FreeBsdRing { node } => (
            format!(
                "a longer receive ring: {node}.iflib.override_nrxds=2048 in /boot/loader.conf, and a reboot (iflib(4); \
                 drivers outside iflib have their own tunable)"
            ),
            "Bursts of that length survive; it does not spread the load.",
        ),
        Effect::RingIfLost => (
            "a longer receive ring, if frames are lost at it".into(),
            "Longer bursts survive; the interface goes down for a moment. It does not spread the load.",
        ),
        Effect::Restart { only_if_silent } => (
            match only_if_silent {
                true => "only if it stays silent after the driver's reset: take the interface down and up".into(),
                false => "take the interface down and up".into(),
            },
            "It works again, until it hangs the next time. This drops the link: run it from the console, not over that interface.",
        ),
        Effect::TransmitCause => (transmit_cause(remedy.os, name), "Unknown: reports have each of them with and without success."),
        Effect::NoSegmentation => (
            "segmentation offload off, and a newer driver or firmware".into(),
            "The hangs end in many reports on this driver, in some they do not. The CPU divides what local programs send; \
             forwarded packets cost the same unless GRO joined them.",
        ),
        Effect::RetaInTurn => (
            "queues in turn instead of in blocks, which may help with few flows".into(),
            "Unknown: flows whose hashes are neighbours go to different queues, which helps a few flows between \
             neighbouring addresses by chance and many flows not at all. Frames without a hash stay where they are.",
        ),
        Effect::RetaDefault => (
            "the driver's own table, which is even".into(),
            "Flows that are hashed spread evenly over all queues; PPPoE and other frames without a hash do not follow the \
             table.",
        ),
        Effect::RetaAll { queues } => (
            format!("all {queues} queues that RSS can reach, if none was excluded on purpose"),
            "Flows that are hashed spread over all of these queues.",
        ),
        Effect::Channels => (
            "a queue for each CPU, if a CPU that serves one is full".into(),
            "Hashed flows spread over more CPUs; how evenly depends on how many there are. One flow, and frames without a \
             hash, stay on one.",
        ),
        Effect::Negotiate => (
            "another cable and port, and negotiation on both ends".into(),
            "The link comes back at the fastest speed that both ends and the cable can do.",
        ),
        Effect::RaiseMtu { top, mtu, vlan_mtu, follows } => {
            return (
                format!("an MTU of {mtu} for {name}, so that full frames of {top} fit"),
                format!(
                    "Full frames of {top} get in. So do untagged ones of {} bytes, and IP on {name} itself would send \
                     packets of {mtu} unless its routes say `mtu 1500`.{} Without that side effect: MTU {vlan_mtu} for the \
                     VLAN at both ends; or an XDP program that drops longer untagged frames (a filter by length after it \
                     would take packets that GRO joined for such).",
                    mtu.saturating_add(14),
                    follows.as_ref().map_or(String::new(), |what| format!(" What sets the limit: {what}."))
                ),
            );
        }
        Effect::LowerMtu => (
            "an MTU that the interfaces below carry".into(),
            "Full packets fit the frames below. Until the other end uses that MTU as well, what it sends may stay longer.",
        ),
        Effect::KeepTags => (
            "tags kept in the frame".into(),
            "The program sees all tags; the kernel takes them off in software after it.",
        ),
        Effect::SteerWithTags => (
            "steering attached again with the tags kept in the frame".into(),
            "The program sees all tags; the kernel takes them off in software after it. `rxlane steer down` has the device \
             strip them again.",
        ),
        Effect::HashPorts { sample: Some((before, after)) } => {
            return (
                "hash UDP by ports, too".into(),
                format!(
                    "In the traffic sample the busiest queue's share of the frames falls from {:.0} % to {:.0} %.",
                    before * 100.0,
                    after * 100.0
                ),
            );
        }
        Effect::HashPorts { sample: None } => (
            "hash UDP by ports, too".into(),
            "Unknown without a traffic sample (rxlane doctor --traffic CAPTURE): UDP flows between the same addresses \
             that differ in ports go to different queues; TCP, PPPoE and single flows stay as they are.",
        ),
        Effect::Moderation => (
            "the driver's default moderation".into(),
            "Fewer interrupts, by ten times and more under load, and the CPU time they took; some microseconds more \
             latency. How much throughput that gives the text does not say.",
        ),
        Effect::ShorterModeration => (
            "the driver's default moderation".into(),
            "The ring no longer fills between two interrupts, at the price of more of them.",
        ),
        Effect::BgeLevel => (
            "interrupt mitigation level 4, with an IP input queue for the longer bursts".into(),
            "About a sixteenth of the receive interrupts. Bursts of 16 frames reach the IP input queue.",
        ),
        Effect::BgeQueue => (
            "an IP input queue for these bursts".into(),
            "Bursts of that length survive; the moderation stays as it is.",
        ),
        Effect::CpuEach { busiest } => {
            let expected = match busiest {
                Some(share) => format!(
                    "Each vector has a CPU of its own: by these counts the busiest would take {:.0} % of the interrupts \
                     instead of all.",
                    share * 100.0
                ),
                None => "The vectors are distributed to all CPUs in turn.".to_owned(),
            };
            return ("a CPU for each receive vector".into(), format!("{expected} {IRQBALANCE}"));
        }
        Effect::FreeCpuEach => {
            return (
                "a free CPU for each busy vector but the first".into(),
                format!("Their work moves to CPUs that serve no other busy queue. {IRQBALANCE}"),
            );
        }
        Effect::FreeCpus { before, after } => {
            return (
                "vectors distributed to the free CPUs, several to one".into(),
                format!(
                    "There are fewer free CPUs than vectors. By these counts the busiest CPU would take {:.0} % of the \
                     interrupts instead of {:.0} %. {IRQBALANCE}",
                    after * 100.0,
                    before * 100.0
                ),
            );
        }
        Effect::FindLock => (
            "a call graph, in which the callers of these functions show which lock it is (`rxlane doctor --trace` takes one itself, on the \
             machine)"
                .into(),
            "Unknown before the lock is known.",
        ),
        Effect::LessContention { lock } => (
            super::locks::less_contention(*lock).into(),
            "CPUs that wait less do more work; how much, the next profile shows.",
        ),
        Effect::MoreMbufs { sysctl } => (
            format!("a larger limit of these buffers, {sysctl}, at run time and from the next start"),
            "Receive rings are filled again, at the price of memory. A number that only grows is a leak, which it delays.",
        ),
        Effect::BigCpuEach => {
            return (
                "a big CPU for each vector of a network device".into(),
                format!("The same work takes less of a faster CPU's time. {IRQBALANCE}"),
            );
        }
        Effect::ThreadedNapi => (
            "or threaded NAPI (Linux 5.12): a thread of the kernel does the driver's work and the stack's, on any CPU; it can be \
             pinned with `taskset`, while the interrupt stays where it is"
                .into(),
            "The CPU that takes the interrupt only wakes the thread. One queue has one thread, which is never faster than one CPU.",
        ),
        Effect::PacketSteering { all } => (
            match all {
                true => "OpenWrt's packet steering to all CPUs (2; 1 is one other CPU for each device)".into(),
                false => "OpenWrt's packet steering (since release 24.10, 1 is one other CPU for each device, and 2 is all CPUs)"
                    .into(),
            },
            "RPS: the work of the stack moves to other CPUs by flow; what the driver does for each packet stays.",
        ),
        Effect::FindCause => (
            "find the cause at the busy interface: several vectors on one CPU need other affinities, one busy queue needs RPS or steering in XDP (`rxlane steer`)"
                .into(),
            "Unknown before the cause is known: `cat /proc/interrupts` and `ethtool -S IFACE` show it.",
        ),
        Effect::FindThread => (
            "see which thread takes that CPU: paste this".into(),
            "Unknown before the thread is known: a queue's, another device's, or netisr's.",
        ),
        Effect::LessWork => (
            "less work for each packet: longer interrupt moderation, GRO where packets end here or are forwarded, fewer firewall rules and \
             counters, no packet capture, a fast path of the system for forwarded flows"
                .into(),
            "More packets with the same CPUs; faster or more CPUs are the other way.",
        ),
        Effect::RpsAtEach => (
            "RPS at these interfaces, `echo MASK > /sys/class/net/IFACE/queues/rx-0/rps_cpus` (on OpenWrt `uci set \
             network.globals.packet_steering=1`): the kernel refuses another CPU for these interrupts"
                .into(),
            "The work of the stack moves to other CPUs; what the driver does for each packet stays.",
        ),
        Effect::SpreadPolled => (
            "RPS at the interface that this thread polls (on OpenWrt `uci set network.globals.packet_steering=1`), so that it keeps \
             the driver's work alone"
                .into(),
            "The work of the stack moves to other CPUs; what the driver does for each packet stays.",
        ),
        Effect::LargerInstance => (
            "a larger type of instance, or fewer packets: a larger MTU inside the cloud, fewer connections where `conntrack` is exceeded"
                .into(),
            "Queues, interrupts and steering have no part in it.",
        ),
        Effect::Budget { known } => (
            match known {
                true => "twice the budget of frames and time for a run".into(),
                false => "a larger budget: 600 for net.core.netdev_budget if it is at its default of 300, and twice \
                          net.core.netdev_budget_usecs"
                    .into(),
            },
            "Fewer, longer runs. It makes no CPU faster: if the CPU is full, only spreading the load helps.",
        ),
        Effect::RpsOff => {
            ("RPS off, as it spreads nothing".into(), "A little less work for each packet on that CPU.")
        }
        Effect::SteerNative => (
            "steering attached natively, which is what `rxlane steer up` does unless generic mode is requested".into(),
            "The receiving CPU no longer allocates a socket buffer for each frame. Where the driver refuses, the second command says why.",
        ),
        Effect::AttachNative => (
            format!(
                "the program attached natively: `ip link set dev {quoted_name} xdpgeneric off`, then its loader in native mode (a \
                 program can be attached in one of the two at a time)", quoted_name = quoted(name)),
            "The receiving CPU no longer allocates a socket buffer for each frame. How much that saves the text does not say.",
        ),
        Effect::Backlog { now } => (
            match now {
                Some(now) => format!("a deeper backlog than {now} frames"),
                None => "a backlog of twice what `sysctl net.core.netdev_max_backlog` shows (1000 unless somebody changed \
                         it)"
                .into(),
            },
            "Bursts of that length survive. Drops that go on mean that the CPU cannot keep up at any depth.",
        ),
        Effect::SteeredDrops { rebalance } => {
            return (
                "look at the frames and drops of each CPU; then attach it again with `--rebalance` where one CPU has too much \
                 and others have time, more `--cpus` where none has, or a larger `--queue-size` where the CPU that drops \
                 has time and only bursts overflow its queue"
                    .into(),
                format!(
                    "By what was read `{}` comes first. One flow that fills a CPU is not helped by any of them.",
                    if *rebalance { "--rebalance" } else { "--queue-size N" }
                ),
            );
        }
        Effect::Flow(effect) => return super::flow::words(effect),
        Effect::Fast(effect) => return super::fast::words(effect),
        Effect::Gro { pppoe: false } => (
            "segments of one TCP flow joined on receipt".into(),
            "Less work for each received TCP segment, the more the larger the flows. How much the text does not say. Segments inside PPPoE are unchanged.",
        ),
        Effect::Gro { pppoe: true } => (
            "segments of one TCP flow joined on receipt, those inside PPPoE included".into(),
            GRO_IN_PPPOE,
        ),
        Effect::Pppoe1500 { raised } => return full_pppoe(remedy.os, raised.as_ref()),
        Effect::KernelPppoe { limit } => (
            match remedy.os {
                System::Linux => "the kernel's PPPoE through pppd's plugin".into(),
                System::FreeBsd => "netgraph's PPPoE through mpd5".into(),
                System::NetBsd => "the kernel's pppoe(4)".into(),
            },
            match limit {
                true => "The process no longer limits; the next limit is the CPU that takes the interrupts.",
                false => "Less CPU for the same traffic; how much, only a measurement shows.",
            },
        ),
        Effect::InputQueue => (
            "a deeper IP input queue".into(),
            "Bursts up to that length survive. Drops that go on mean that the CPU is too slow, not the queue too short.",
        ),
        Effect::SoftwareChecksums { known } => (
            match known {
                true => {
                    "checksums in software for the inner VLAN device, until a kernel of 3.19 or later runs".into()
                }
                false => {
                    "a kernel of 3.19 or later; until then `ethtool -K` with `tx off` for the innermost VLAN device".into()
                }
            },
            "Frames go out with right checksums. Scatter-gather and segmentation offload of that device end with it, so that \
             sending costs more CPU time a byte; frames that are only forwarded are not affected.",
        ),
        Effect::Offloads { fixed } => (
            match fixed {
                true => {
                    "a newer kernel: these offloads are fixed here, and kernels before 4.x give a VLAN on a VLAN none".into()
                }
                false => "the offloads that the device below has".into(),
            },
            "Less work for what is sent there, TCP of this machine and packets that GRO joined before they were forwarded. How much the text does not say.",
        ),
        Effect::DeviceMode { title, enable, stack } => (
            match stack {
                Some(stack) => format!("or let the device look behind the tags {stack}: {title}: {enable}"),
                None => format!("or let the device hash PPPoE: {title}: {enable}"),
            },
            "",
        ),
    };
    (what, expected.to_owned())
}

/// What ends hangs of transmit queues, in the order in which to try it.
fn transmit_cause(os: System, name: &str) -> String {
    let name = quoted(name);
    match os {
        System::Linux => format!(
            "a newer driver or firmware; where that changes nothing, one at a time: segmentation offload off (`ethtool -K {name} tso off \
             gso off`), energy-efficient Ethernet off (`ethtool --set-eee {name} eee off`), power saving of the PCIe link off \
             (`pcie_aspm=off` on the kernel's command line)"
        ),
        System::FreeBsd | System::NetBsd => {
            "a newer driver or firmware; where that changes nothing, segmentation offload off, and power saving of the PCIe link off in the \
             firmware's setup"
                .into()
        }
    }
}

/// Steering that is detached and attached again.
fn again(what: &str, expected: &str) -> (String, String) {
    (what.to_owned(), format!("{expected} {AGAIN}"))
}

fn rps(targets: &[u32], file: &str, conditional: bool, filter: bool) -> String {
    let to = match targets {
        [] => format!("the other CPUs; the mask of CPUs goes into {file}"),
        targets => cpus(targets),
    };
    let condition = if conditional { "if its CPU is the limit, " } else { "" };
    let filter = match filter {
        true => "; an EtherType filter for 0x8864 would only move all PPPoE to another queue",
        false => "",
    };
    format!("{condition}RPS: hash the inner header in software and distribute flows to {to}{filter}")
}

fn full_pppoe(os: System, raised: Option<&doctor::facts::RaisedDevice>) -> (String, String) {
    let what = match os {
        System::Linux => {
            "1500-byte PPPoE (RFC 4638): MTU 1508 below, then pppd with `mtu 1500 mru 1500`, and a new dial-in"
        }
        System::FreeBsd => {
            "1500-byte PPPoE: MTU 1508 below, then for mpd5 `set pppoe max-payload 1500`, `set link mtu 1500`, \
             `set link mru 1500`; for ppp `set mtu max 1500` and `set mru max 1500`"
        }
        System::NetBsd => "1500-byte PPPoE: MTU 1508 below, then 1500 for the pppoe interface",
    };
    let Some(device) = raised else { return (what.into(), FULL_PPPOE.into()) };
    let (name, frame) = (&device.name, device.frame);
    let admitted = match device.already {
        true => format!(
            "{name} takes untagged frames of {frame} bytes at MTU 1500 already, so no longer ones get in than before."
        ),
        false => format!(
            "MTU 1508 on {name} also lets untagged frames of {frame} bytes in; there is no setting that admits only the \
             tagged ones (Linux refuses a VLAN device an MTU above its parent's). An XDP program can drop the others."
        ),
    };
    let follows =
        device.follows.as_ref().map_or(String::new(), |what| format!(" What sets its limit: {what}."));
    let routes = format!("IP on {name} itself keeps to 1500 if its routes say `mtu 1500`.");
    (what.into(), format!("{FULL_PPPOE} {admitted}{follows} {routes}"))
}
