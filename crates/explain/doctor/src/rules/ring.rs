//! The receive ring: `ring-overflow`, `ring-small`.

use crate::device::{Device, freebsd_node};
use crate::facts::{DropCounter, Effect, Fact, When};
use crate::finding::{Remedy, Severity, found};
use crate::loss::{self, Lost};
use crate::rule::Judgement;
use host::{Counter, System};
use std::collections::BTreeSet;

/// Largest ring that is offered: beyond it frames wait for longer than TCP likes.
const LARGEST: u32 = 4096;
/// Smallest ring that is offered; the maximum is rarely the best.
const SMALLEST: u32 = 1024;
/// Entries below which a driver's default counts as small: what igb, e1000e and many others start with is 256.
const SMALL: u32 = 512;

/// `ring-overflow`: frames are lost since the receive ring is full.
pub(super) fn overflow(device: &Device<'_>) -> Judgement {
    let counters = counters(device);
    if counters.is_empty() {
        let name = device.word();
        let freebsd = format!("sysctl {}", freebsd_node(&name));
        let linux = format!("ethtool -S {name}");
        return Judgement::lacks(device.case.by_system(linux, freebsd, "netstat -i".to_owned()));
    }
    let losses = counters
        .into_iter()
        .filter_map(|(name, drops, received)| loss::of(device.case, name, drops, received));
    let losses: Vec<Lost<'_>> = losses.collect();
    let Some(gravest) = loss::gravest(&losses) else { return Judgement::Clear };
    let severity = severity(device, gravest);
    // A CPU without time left is a CPU that is too slow.
    let vectors = device.case.snapshot().interrupts_of(&device.name).flat_map(|vector| &vector.counts);
    let counted = vectors.filter(|(_, counter)| counter.value() > counter.first() || counter.first() > 0);
    let serving: BTreeSet<u32> = counted.filter_map(|(cpu, _)| *cpu).collect();
    let full = device.full_cpu(serving);
    let finding =
        gravest.found(severity, &losses, Fact::RingFull).quotes(loss::received(device).map(Counter::quote));
    match &full {
        Some(load) => finding.says([Fact::RingFullCpu]).load(load).says([Fact::LongerRingFills]),
        None => finding
            .says([Fact::RingFullCause { past: gravest.loss.when == When::Before }])
            .fix((severity != Severity::Info).then(|| longer(device)).flatten()),
    }
    .into()
}

/// Every counter of lost frames with the counter of received frames it belongs to.
fn counters<'d>(device: &'d Device<'_>) -> Vec<(DropCounter, &'d Counter, Option<&'d Counter>)> {
    let received = loss::received(device);
    let totals = device.totals.overflow.iter();
    let totals = totals.map(|(name, counter)| (DropCounter::Named(name.clone()), counter, received));
    let queues = device.queues.iter().filter_map(|(number, queue)| {
        Some((DropCounter::Queue(*number), queue.drops.as_ref()?, queue.packets.as_ref().or(received)))
    });
    totals.chain(queues).collect()
}

/// A device whose ring ran dry keeps frames in its own memory first (82576 datasheet, RNBC and MPC): without a count
/// of missed frames nothing was lost yet.
fn severity(device: &Device<'_>, gravest: &Lost<'_>) -> Severity {
    let is_no_buffer = |name: &String| name.contains("no_buf") && !name.contains("missed");
    match (gravest.severity(), &gravest.loss.counter) {
        (Severity::Critical, DropCounter::Named(name))
            if is_no_buffer(name) && device.totals.overflow.keys().any(|name| !is_no_buffer(name)) =>
        {
            Severity::Warning
        }
        (severity, _) => severity,
    }
}

/// A longer ring, where one is possible or how long it is is not known.
fn longer(device: &Device<'_>) -> Option<Remedy> {
    let ring = &device.rings.rx;
    let (now, most) =
        (ring.current.as_ref().map(|ring| *ring.get()), ring.most.as_ref().map(|most| most.value));
    match (device.case.system(), now, most) {
        (Some(System::FreeBsd), ..) => {
            let node = freebsd_node(&device.word());
            Some(Remedy::new(System::FreeBsd, Effect::FreeBsdRing { node }, [""; 0]))
        }
        (Some(System::NetBsd), ..) => None,
        (_, Some(now), Some(most)) if now < most && now < LARGEST => {
            let entries = now.saturating_mul(2).clamp(SMALLEST, LARGEST).min(most);
            let command = format!("ethtool -G {} rx {entries}", device.word());
            Some(Remedy::linux(Effect::LongerRing { entries, now }, [command]))
        }
        (_, Some(_), Some(_)) => None,
        _ => Some(Remedy::linux(Effect::RingUnknown, [""; 0])),
    }
}

/// `ring-small`: the receive ring holds fewer frames than the driver allows.
pub(super) fn small(device: &Device<'_>) -> Judgement {
    let ring = &device.rings.rx;
    let (Some(current), Some(most)) = (&ring.current, &ring.most) else {
        // FreeBSD and NetBSD size rings by loader tunables, which have no maximum to read.
        return match device.case.is_bsd() {
            true => Judgement::DoesNotApply,
            false => Judgement::lacks(format!("ethtool -g {}", device.word())),
        };
    };
    let entries = *current.get();
    if entries >= SMALL.min(most.value) {
        return Judgement::Clear;
    }
    let command = format!("ethtool -G {} rx {}", device.word(), SMALLEST.min(most.value));
    found(Severity::Info, Fact::SmallRing { entries, most: most.value })
        .quotes([current.quote(), &most.quote])
        .fix([Remedy::linux(Effect::RingIfLost, [command])])
        .into()
}
