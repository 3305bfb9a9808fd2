//! `cloud-allowance`: packets and connections beyond what a virtual machine may have.

use crate::device::Device;
use crate::facts::{Allowed, Effect, Fact, Since};
use crate::finding::{Remedy, Severity, found};
use crate::rule::Judgement;
use host::{Counter, Delta};

/// Part of the frames from which what an allowance cost is felt.
const FELT: f64 = 0.001;

/// Packets since the start from which it may have been felt at times: what bursts lost is little of all frames.
const MANY: u64 = 1_000_000;

/// Connections, or queries of link-local services, that failed since the start, from which it is more than one burst.
const SEVERAL: u64 = 100;

/// A counter of an allowance that was exceeded.
struct Exceeded<'c> {
    name: &'c str,
    counter: &'c Counter,
    count: u64,
    since: Since,
    of: Allowed,
}

impl<'c> Exceeded<'c> {
    fn of((name, counter): (&'c String, &'c Counter)) -> Option<Exceeded<'c>> {
        let (count, since) = match counter.delta() {
            Delta::OneSample => (counter.value(), Since::Start),
            _ => (counter.counted()?, Since::Sample),
        };
        (count > 0).then(|| Exceeded { name, counter, count, since, of: allowed(name) })
    }

    /// Part of the device's received frames.
    fn of_received(&self, device: &Device<'_>) -> Option<f64> {
        let frames = device.queues.values().filter_map(|queue| queue.packets.as_ref());
        let frames = frames.map(|packets| match self.since {
            Since::Sample => packets.counted().unwrap_or(0),
            Since::Start => packets.value(),
        });
        let frames = frames.fold(0, u64::saturating_add);
        (frames > 0).then(|| self.count as f64 / frames as f64)
    }

    fn severity(&self, device: &Device<'_>) -> Severity {
        let is_felt = match self.of {
            // Each is one that failed, however many packets others had.
            Allowed::Connections | Allowed::LinkLocal => self.since == Since::Sample || self.count >= SEVERAL,
            // Frames sent are not counted here: a machine sends about as many as it receives.
            Allowed::Received | Allowed::Sent | Allowed::Both => {
                self.of_received(device).is_none_or(|share| share >= FELT)
            }
        };
        if is_felt || self.is_possible(device) { Severity::Warning } else { Severity::Info }
    }

    /// Whether it may have been felt for a time, and nothing says when.
    fn is_possible(&self, device: &Device<'_>) -> bool {
        let is_of_packets = matches!(self.of, Allowed::Received | Allowed::Sent | Allowed::Both);
        is_of_packets
            && self.since == Since::Start
            && self.count >= MANY
            && self.of_received(device).is_some_and(|share| share < FELT)
    }

    fn fact(&self, device: &Device<'_>) -> Fact {
        let share = self.of_received(device).filter(|_| self.of == Allowed::Received);
        Fact::Allowance {
            counter: self.name.to_owned(),
            count: self.count,
            share,
            since: self.since,
            of: self.of,
        }
    }
}

/// What a counter counts: those of ena (ena_com_get_eni_stats()), and of virtio by its queue's direction.
fn allowed(name: &str) -> Allowed {
    match name {
        "conntrack_allowance_exceeded" => Allowed::Connections,
        "linklocal_allowance_exceeded" => Allowed::LinkLocal,
        "bw_in_allowance_exceeded" => Allowed::Received,
        "bw_out_allowance_exceeded" => Allowed::Sent,
        name if name.starts_with("rx") => Allowed::Received,
        name if name.starts_with("tx") => Allowed::Sent,
        _ => Allowed::Both,
    }
}

pub(super) fn exceeded(device: &Device<'_>) -> Judgement {
    let is_counted = !device.totals.allowances.is_empty();
    let mut all: Vec<Exceeded<'_>> = device.totals.allowances.iter().filter_map(Exceeded::of).collect();
    all.sort_by_key(|one| (one.severity(device), std::cmp::Reverse(one.count)));
    let Some((first, others)) = all.split_first() else {
        // Only a cloud's device counts them, and of virtio's not each.
        return match device.driver_name() {
            Some(driver) if driver != "ena" && !is_counted => Judgement::DoesNotApply,
            _ if is_counted || !device.queues.is_empty() => Judgement::Clear,
            _ => Judgement::lacks(format!("ethtool -S {}", device.word())),
        };
    };
    found(first.severity(device), first.fact(device))
        .says(others.iter().map(|one| one.fact(device)))
        .quotes(all.iter().map(|one| one.counter.quote()))
        .fix([Remedy::linux(Effect::LargerInstance, [""; 0])])
        .possible_if(first.is_possible(device))
        .into()
}
