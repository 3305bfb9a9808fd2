//! Counters of lost frames: whether they rise, how fast, and against how many frames that arrived.

use crate::Case;
use crate::facts::{DropCounter, Fact, Loss, When};
use crate::finding::{Finding, Severity, found};
use host::{Counter, Delta, Interface, Quote};

/// Part of the received frames whose loss between two samples costs throughput: TCP halves its window for each
/// burst of loss, and at one frame in ten thousand that happens every second or so at 100 Mbit/s.
const COSTLY: f64 = 1e-4;
/// Part of all frames since the counters were started that is more than a few bursts long ago.
const NOTABLE: f64 = 1e-3;

/// Frames lost, with the counter's line.
#[derive(Clone, Debug)]
pub(crate) struct Lost<'c> {
    pub loss: Loss,
    pub quote: &'c Quote,
}

/// What a counter lost; `None` where it is zero. `received` counts the frames that did arrive.
pub(crate) fn of<'c>(
    case: &Case<'_>,
    counter: DropCounter,
    drops: &'c Counter,
    received: Option<&Counter>,
) -> Option<Lost<'c>> {
    let (frames, when) = match drops.delta() {
        Delta::Counted(frames) | Delta::Wrapped(frames) if frames > 0 => (frames, When::Now),
        Delta::Counted(_) | Delta::Wrapped(_) => (drops.value(), When::Before),
        Delta::OneSample | Delta::Reset => (drops.value(), When::SinceStart),
    };
    let arrived = received.and_then(|all| if when == When::Now { all.counted() } else { Some(all.value()) });
    let interval = case.snapshot().interval.filter(|interval| when == When::Now && !interval.is_zero());
    let loss = Loss {
        counter,
        frames,
        when,
        per_second: interval.map(|interval| frames as f64 / interval.as_secs_f64()),
        share: arrived.map(|arrived| frames as f64 / arrived.saturating_add(frames) as f64),
    };
    (frames > 0).then(|| Lost { loss, quote: drops.quote() })
}

impl Lost<'_> {
    /// How grave it is.
    pub fn severity(&self) -> Severity {
        match (self.loss.when, self.loss.share) {
            (When::Now, None) => Severity::Critical,
            (When::Now, Some(share)) if share >= COSTLY => Severity::Critical,
            (When::Now, Some(_)) => Severity::Warning,
            (When::SinceStart, Some(share)) if share >= NOTABLE => Severity::Warning,
            (When::SinceStart | When::Before, _) => Severity::Info,
        }
    }

    /// A finding about this loss, the gravest of `all`.
    pub fn found(&self, severity: Severity, all: &[Lost<'_>], fact: impl FnOnce(Loss) -> Fact) -> Finding {
        found(severity, fact(self.loss.clone()))
            .quotes([self.quote])
            .quotes(all.iter().map(|lost| lost.quote))
    }

    /// That it was in the past, where it was.
    pub fn past(&self) -> Option<Fact> {
        (self.loss.when == When::Before).then_some(Fact::NoneSince)
    }
}

/// The gravest of several counters, which often count the same frames and are not added up.
pub(crate) fn gravest<'l, 'c>(all: &'l [Lost<'c>]) -> Option<&'l Lost<'c>> {
    all.iter().min_by_key(|lost| (lost.severity(), lost.loss.when != When::Now, u64::MAX - lost.loss.frames))
}

/// The counter of received frames: of the interface, or of its only queue.
pub(crate) fn received(interface: &Interface) -> Option<&Counter> {
    interface.totals.packets.as_ref().or_else(|| {
        let mut counted = interface.queues.values().filter_map(|queue| queue.packets.as_ref());
        counted.next().filter(|_| counted.next().is_none())
    })
}
