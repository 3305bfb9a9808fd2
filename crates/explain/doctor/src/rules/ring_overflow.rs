//! `ring-overflow`: frames are lost since the receive ring is full.

use crate::loss::{self, Loss, When, freebsd_node};
use crate::report::{Finding, Remedy, Severity};
use crate::rule::{Judge, Judgement, Page, Rule};
use crate::strain::{self, Strain};
use crate::{Case, steering};
use host::{Counter, Interface, Quote, System};

/// The rule.
pub(super) static RULE: Rule = Rule {
    id: "ring-overflow",
    stage: "queue",
    page: Page {
        title: "Frames are lost since the receive ring is full",
        means: "The device found no free entry in the receive ring, or no buffer from the host, and dropped the frame. \
                Either bursts are longer than the ring (interrupts held back for long, a CPU that was away for some \
                milliseconds), or the CPU that empties the ring is too slow for the load: then the longest ring only \
                fills later.",
        shows: "Counters of the driver that rise while traffic runs: `rx_missed_errors`, `rx_fifo_errors`, \
                `rx_no_dma_resources`, `rx_out_of_buffer`, `rx_queue_N_drops` and others (`ethtool -S`, `ip -s link`). \
                A count that stands still was a burst long ago. `rx_no_buffer_count` alone says that the ring ran dry \
                while the device's own memory still held the frame.",
        fix: "First see whether a CPU is full (`one-queue-hot`, `irq-one-cpu`, `softirq-one-cpu`, `time-squeeze`): then \
              spread the load. If none is, lengthen the ring: `ethtool -G IFACE rx N`; and see that interrupts are not \
              held back for longer than the ring lasts (`moderation-long`).",
        costs: "A longer ring takes memory and cache, and a frame may wait longer in it. Setting it takes the interface \
                down for a moment.",
    },
    judge: Judge::Device(judge),
};

/// Largest ring that is offered: beyond it frames wait for longer than TCP likes.
const LARGEST: u32 = 4096;
/// Smallest ring that is offered.
const SMALLEST: u32 = 1024;

fn judge(case: &Case<'_>, interface: &Interface) -> Judgement {
    let counters = counters(interface);
    if counters.is_empty() {
        return Judgement::lacks(match case.system() {
            Some(System::FreeBsd) => format!("sysctl {}", freebsd_node(steering::name(interface))),
            Some(System::NetBsd) => "netstat -i".to_owned(),
            Some(System::Linux) | None => format!("ethtool -S {}", steering::name(interface)),
        });
    }
    let losses: Vec<Loss> = counters
        .iter()
        .filter_map(|(name, counter, received)| loss::of(case, name, counter, *received))
        .collect();
    let Some(gravest) = loss::gravest(&losses) else { return Judgement::Clear };
    let severity = severity(interface, gravest);
    let quotes: Vec<&Quote> = std::iter::once(&gravest.quote)
        .chain(losses.iter().map(|loss| &loss.quote))
        .chain(loss::received(interface).map(Counter::quote))
        .collect();
    let cause = Cause::of(case, interface);
    let explanation = format!("{}. {}", gravest.sentence(), cause.sentence(gravest));
    let mut finding =
        RULE.finding(Some(&interface.name), severity, [], explanation).and(quotes).and(&cause.quotes);
    if severity != Severity::Info && !cause.cpu_is_full {
        finding = remedies(case, interface, finding);
    }
    finding.into()
}

/// Every counter of lost frames with its name and the counter of received frames it belongs to.
fn counters(interface: &Interface) -> Vec<(String, &Counter, Option<&Counter>)> {
    let received = loss::received(interface);
    let totals = interface.totals.overflow.iter().map(|(name, counter)| (name.clone(), counter, received));
    let queues = interface.queues.iter().filter_map(|(number, queue)| {
        let name = format!("the drop counter of receive queue {number}");
        Some((name, queue.drops.as_ref()?, queue.packets.as_ref().or(received)))
    });
    totals.chain(queues).collect()
}

/// A device whose ring ran dry keeps frames in its own memory first (82576 datasheet, RNBC and MPC): without a count
/// of missed frames nothing was lost yet.
fn severity(interface: &Interface, gravest: &Loss) -> Severity {
    let is_warning =
        is_no_buffer(&gravest.name) && interface.totals.overflow.keys().any(|name| !is_no_buffer(name));
    match gravest.severity() {
        Severity::Critical if is_warning => Severity::Warning,
        severity => severity,
    }
}

fn is_no_buffer(name: &str) -> bool {
    name.contains("no_buf") && !name.contains("missed")
}

/// Why the ring was full.
struct Cause {
    cpu_is_full: bool,
    seen: String,
    quotes: Vec<Quote>,
}

impl Cause {
    /// A CPU without time left, or a softirq budget that runs out, is a CPU that is too slow.
    fn of(case: &Case<'_>, interface: &Interface) -> Cause {
        let snapshot = case.snapshot();
        let vectors = snapshot.interrupts_of(&interface.name);
        let mut serving: Vec<u32> = vectors
            .flat_map(|vector| vector.counts.iter())
            .filter(|(_, counter)| counter.value() > counter.first() || counter.first() > 0)
            .filter_map(|(cpu, _)| *cpu)
            .collect();
        serving.sort_unstable();
        serving.dedup();
        let strained = serving.iter().map(|&cpu| strain::of(case, Some(cpu)));
        match strained.into_iter().find(|strained| strained.strain == Strain::Full) {
            Some(full) => {
                Cause { cpu_is_full: true, seen: full.sentence, quotes: full.quote.into_iter().collect() }
            }
            None => Cause { cpu_is_full: false, seen: String::new(), quotes: Vec::new() },
        }
    }

    fn sentence(&self, loss: &Loss) -> String {
        match (self.cpu_is_full, loss.when) {
            (true, _) => format!(
                "The ring is full since the CPU that empties it is:{} A longer ring would fill as well; spread the \
                 load instead.",
                self.seen
            ),
            (false, When::Before) => "That was a burst in the past; nothing is lost now.".to_owned(),
            (false, _) => {
                "The receive ring was full: bursts are longer than it is, or the CPU that empties it was \
                           away or too slow."
                    .to_owned()
            }
        }
    }
}

fn remedies(case: &Case<'_>, interface: &Interface, finding: Finding) -> Finding {
    let ring = &interface.rings.rx;
    let finding =
        match (ring.current.as_ref().map(|ring| *ring.get()), ring.most.as_ref().map(|most| most.value)) {
            (Some(now), Some(most)) if now < most && now < LARGEST && !is_bsd(case) => {
                let wanted = now.saturating_mul(2).clamp(SMALLEST, LARGEST).min(most);
                finding.with(Remedy {
                os: "linux",
                what: format!("a receive ring of {wanted} frames instead of {now}"),
                commands: vec![format!("ethtool -G {} rx {wanted}", steering::name(interface))],
                expected:
                    "Bursts of that length survive; the interface goes down for a moment. If frames are lost \
                           all the same, the CPU is too slow, and only spreading the load helps."
                        .to_owned(), modelled: None,
})
            }
            (Some(_), Some(_)) => finding,
            _ if is_bsd(case) => finding,
            _ => finding.with(Remedy {
                os: "linux",
                what: format!(
                    "a longer receive ring: how long it is and may be, the text does not say; paste `ethtool -g {}` \
                     for a command",
                    steering::name(interface)
                ),
                commands: Vec::new(),
                expected: "Longer bursts survive; a CPU that is too slow fills any ring.".to_owned(), modelled: None,
}),
        };
    match case.system() {
        Some(System::FreeBsd) => finding.with(Remedy {
            os: "freebsd",
            what: format!(
                "a longer receive ring: {}.iflib.override_nrxds=2048 in /boot/loader.conf, and a reboot (iflib(4); \
                 drivers outside iflib have their own tunable)",
                freebsd_node(steering::name(interface))
            ),
            commands: Vec::new(),
            expected: "Bursts of that length survive; it does not spread the load.".to_owned(), modelled: None,
}),
        _ => finding,
    }
}

fn is_bsd(case: &Case<'_>) -> bool {
    matches!(case.system(), Some(System::FreeBsd | System::NetBsd))
}
