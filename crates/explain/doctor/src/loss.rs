//! Counters of lost frames: whether they rise, how fast, and against how many frames that came.

use crate::Case;
use crate::report::Severity;
use format::Share;
use host::{Basis, Counter, Delta, Interface, Quote, Shares};

/// Part of the received frames whose loss between two samples costs throughput: TCP halves its window for each
/// burst of loss, and at one frame in ten thousand that happens every second or so at 100 Mbit/s.
const COSTLY: f64 = 1e-4;
/// Part of all frames since the counters were started that is more than a few bursts long ago.
const NOTABLE: f64 = 1e-3;

/// When the frames were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// Between the two samples.
    Now,
    /// Before the first of two samples; none since.
    Before,
    /// Since the counters were started; there is one sample.
    SinceStart,
}

/// Frames lost, by one counter.
#[derive(Clone, Debug)]
pub(crate) struct Loss {
    /// The counter's name.
    pub name: String,
    /// Frames.
    pub frames: u64,
    /// When.
    pub when: When,
    /// Part of all frames, 0 to 1, where those received are known.
    pub share: Option<f64>,
    /// The counter's line.
    pub quote: Quote,
    per_second: Option<f64>,
}

/// What a counter lost; `None` where it is zero. `received` counts the frames that did come in.
pub(crate) fn of(case: &Case<'_>, name: &str, counter: &Counter, received: Option<&Counter>) -> Option<Loss> {
    let (frames, when) = match counter.delta() {
        Delta::Counted(frames) | Delta::Wrapped(frames) if frames > 0 => (frames, When::Now),
        Delta::Counted(_) | Delta::Wrapped(_) => (counter.value(), When::Before),
        Delta::OneSample | Delta::Reset => (counter.value(), When::SinceStart),
    };
    if frames == 0 {
        return None;
    }
    let came = received.and_then(|received| match (when, received.delta()) {
        (When::Now, Delta::Counted(frames) | Delta::Wrapped(frames)) => Some(frames),
        (When::Now, _) => None,
        _ => Some(received.value()),
    });
    let per_second =
        Shares { counts: Vec::new(), basis: Basis::Between(case.snapshot().interval), wrapped: false }
            .per_second(frames)
            .filter(|_| when == When::Now);
    Some(Loss {
        name: name.to_owned(),
        frames,
        when,
        share: came.map(|came| frames as f64 / (came.saturating_add(frames)) as f64),
        quote: counter.quote().clone(),
        per_second,
    })
}

impl Loss {
    /// How grave it is.
    pub fn severity(&self) -> Severity {
        match (self.when, self.share) {
            (When::Now, None) => Severity::Critical,
            (When::Now, Some(share)) if share >= COSTLY => Severity::Critical,
            (When::Now, Some(_)) => Severity::Warning,
            (When::SinceStart, Some(share)) if share >= NOTABLE => Severity::Warning,
            (When::SinceStart | When::Before, _) => Severity::Info,
        }
    }

    /// `rx_missed_errors rose by 1200 between the samples, 400 a second, 0.8 % of the frames`, to begin a sentence: a
    /// counter that is told in words has a capital.
    pub fn sentence(&self) -> String {
        let clause = self.clause();
        match clause.strip_prefix("the ") {
            Some(rest) => format!("The {rest}"),
            None => clause,
        }
    }

    /// The same within a sentence.
    pub fn clause(&self) -> String {
        let mut text = match self.when {
            When::Now => format!("{} rose by {} between the samples", self.name, self.frames),
            When::Before => {
                format!("{} stands at {} and did not move between the samples", self.name, self.frames)
            }
            When::SinceStart => {
                format!("{} counts {} since the counters were started", self.name, self.frames)
            }
        };
        if let Some(rate) = self.per_second {
            text.push_str(&format!(", {rate:.0} a second"));
        }
        if let Some(share) = self.share {
            text.push_str(&format!(", {} of the frames", Share::fraction(share).small()));
        }
        text
    }
}

/// The gravest of several counters, which often count the same frames and are not added up.
pub(crate) fn gravest(losses: &[Loss]) -> Option<&Loss> {
    losses.iter().min_by_key(|loss| (loss.severity(), loss.when != When::Now, u64::MAX - loss.frames))
}

/// The counter of received frames: of the interface, or of its only queue.
pub(crate) fn received(interface: &Interface) -> Option<&Counter> {
    interface.totals.packets.as_ref().or_else(|| {
        let mut counted = interface.queues.values().filter_map(|queue| queue.packets.as_ref());
        counted.next().filter(|_| counted.next().is_none())
    })
}

/// The sysctls under which FreeBSD's drivers count what they lost: `dev.igb.0` of `igb0`.
pub(crate) fn freebsd_node(name: &str) -> String {
    let driver = name.trim_end_matches(|c: char| c.is_ascii_digit());
    match name.strip_prefix(driver) {
        Some(unit) if !unit.is_empty() => format!("dev.{driver}.{unit}"),
        _ => format!("dev.{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_begins_with_a_capital_and_a_counter_keeps_its_name() {
        let loss = |name: &str| Loss {
            name: name.to_owned(),
            frames: 7,
            when: When::SinceStart,
            share: None,
            quote: Quote::new(&"paste".into(), 1, None, "7"),
            per_second: None,
        };
        let in_words = loss("the drop counter of receive queue 3");
        assert!(in_words.sentence().starts_with("The drop counter of receive queue 3 counts 7"));
        assert!(in_words.clause().starts_with("the drop counter"));
        assert!(loss("rx_missed_errors").sentence().starts_with("rx_missed_errors counts 7"));
    }
}
