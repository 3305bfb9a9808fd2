//! How a device's frames spread over its receive queues: does one queue take nearly all of them?

use crate::case::enough;
use crate::device::Device;
use crate::facts::{Fact, Little};
use crate::finding::Severity;
use crate::load::Load;
use crate::{Case, Spread};
use host::{Basis, Interrupt, Quote, Shares};

/// Share of the frames above which one queue counts as taking them all. Few flows make uneven queues: of ten equal
/// flows on two queues nine or more fall on one in two cases of a hundred, and four queues show a busiest share of
/// 0.4 to 0.6 every day. Nine tenths on one queue say that something else than chance chooses it.
pub(crate) const NEARLY_ALL: f64 = 0.9;

/// Largest share over mean up to which queues are even: what a queue of unhashed frames would add shows above.
const EVEN: f64 = 1.5;

/// Part of an interface's frames that its queues must have counted to be all of its queues: the two counts may have
/// begun at different times.
const WHOLE: f64 = 0.8;

/// Lines of evidence: the busy queue and some of the others.
const MOST_QUOTES: usize = 4;

/// Frames a second that one queue and one CPU carry on any machine: full-size frames at 100 Mbit/s are 8,000.
const LITTLE_RATE: f64 = 10_000.0;

/// Frames since the counters were started that are a few minutes of such a line.
const LITTLE: u64 = 1_000_000;

/// Part of the busiest device's frames below which a device carries no load.
const NEGLIGIBLE: f64 = 0.001;

#[derive(Clone, Debug)]
pub(crate) enum Distribution {
    OneQueue(BusyQueue),
    /// Several queues take a part that counts; even where the busiest took less than half as much again as the mean,
    /// and frames were counted.
    Spread {
        even: bool,
    },
    /// Too few frames were counted to judge.
    TooFew,
    /// The text does not count frames by queue.
    Uncounted,
}

/// The queue that takes nearly all frames.
#[derive(Clone, Debug)]
pub(crate) struct BusyQueue {
    pub queue: u32,
    /// Its share, 0 to 1.
    pub share: f64,
    /// Frames, or interrupts, of all queues.
    pub total: u64,
    pub queues: usize,
    pub basis: Basis,
    /// Why so few frames are no load; `None` where they are one, or may be.
    pub little: Option<Little>,
    /// Whether only interrupts were counted, which say less: a busy queue interrupts less often.
    pub by_interrupts: bool,
    /// A line of each queue, the busy one's first.
    pub quotes: Vec<Quote>,
}

impl Device<'_> {
    /// Whether one queue of the device takes nearly all frames.
    pub fn distribution(&self) -> Distribution {
        match self.case.spread(self).filter(|spread| spread.queues.len() >= 2) {
            Some(spread) if is_whole(self, &spread) => by_frames(self.case, &spread),
            Some(_) => Distribution::Uncounted,
            None => by_interrupts(self),
        }
    }
}

/// Whether the queues that the text shows are all that take frames: a paste may end behind the second of eight. Where their number
/// is known, that decides: frames of all are counted at another moment, between which many may come.
fn is_whole(device: &Device<'_>, spread: &Spread) -> bool {
    if device.channel_count().is_some_and(|count| count as usize == spread.queues.len()) {
        return true;
    }
    let total = device.totals.packets.as_ref().and_then(|packets| match spread.shares.basis {
        Basis::SinceStart => Some(packets.value()),
        Basis::Between(_) => packets.counted(),
    });
    total.is_none_or(|total| spread.shares.total() as f64 >= WHOLE * total as f64)
}

fn by_frames(case: &Case<'_>, spread: &Spread) -> Distribution {
    if !spread.is_enough() {
        return Distribution::TooFew;
    }
    match compared(&spread.queues, &spread.shares, &spread.quotes, false) {
        Distribution::OneQueue(busy) => {
            Distribution::OneQueue(BusyQueue { little: little(case, &spread.shares), ..busy })
        }
        other => other,
    }
}

/// Vectors that serve reception alone say something: those with transmit also count its completions, so that of them only
/// those say something that never interrupted.
fn by_interrupts(device: &Device<'_>) -> Distribution {
    let receiving = device.case.receive_interrupts(device).into_iter();
    let all: Vec<(u32, &Interrupt)> = receiving
        .filter(|vector| vector.receives == Some(true))
        .filter_map(|vector| Some((vector.queue?, vector)))
        .collect();
    let alone: Vec<(u32, &Interrupt)> =
        all.iter().copied().filter(|(_, vector)| is_receive_only(vector)).collect();
    let are_alone = alone.len() >= 2;
    let vectors = if are_alone { alone } else { all };
    if vectors.len() < 2 {
        return Distribution::Uncounted;
    }
    let (mut counts, mut basis) = (Vec::new(), Basis::SinceStart);
    for (_, vector) in &vectors {
        let Some(shares) = device.case.shares(vector.counts.values()) else {
            return Distribution::Uncounted;
        };
        counts.push(shares.total());
        basis = shares.basis;
    }
    let used = counts.iter().filter(|count| **count > 0).count();
    if used > 1 && !are_alone {
        return Distribution::Uncounted;
    }
    let shares = Shares { counts, basis, wrapped: false };
    if shares.total() < enough(basis) {
        return Distribution::TooFew;
    }
    let queues: Vec<u32> = vectors.iter().map(|(queue, _)| *queue).collect();
    let quotes: Vec<Quote> = vectors.iter().map(|(_, vector)| vector.quote.clone()).collect();
    compared(&queues, &shares, &quotes, true)
}

fn is_receive_only(vector: &Interrupt) -> bool {
    let action = vector.action.to_ascii_lowercase();
    // FreeBSD's `rxq` vectors serve both directions (iflib).
    action.contains("rx") && !action.contains("tx") && !action.contains("rxq")
}

fn compared(queues: &[u32], shares: &Shares, quotes: &[Quote], by_interrupts: bool) -> Distribution {
    let Some((place, share)) = shares.largest() else { return Distribution::TooFew };
    let (Some(&queue), Some(quote)) = (queues.get(place), quotes.get(place)) else {
        return Distribution::Uncounted;
    };
    if share < NEARLY_ALL {
        let even = !by_interrupts && share * queues.len() as f64 <= EVEN;
        return Distribution::Spread { even };
    }
    let others = quotes.iter().enumerate().filter(|(other, _)| *other != place).map(|(_, quote)| quote);
    Distribution::OneQueue(BusyQueue {
        queue,
        share,
        total: shares.total(),
        queues: queues.len(),
        basis: shares.basis,
        little: None,
        by_interrupts,
        quotes: std::iter::once(quote).chain(others).take(MOST_QUOTES).cloned().collect(),
    })
}

fn little(case: &Case<'_>, shares: &Shares) -> Option<Little> {
    let total = shares.total();
    if let Some(rate) = shares.per_second(total) {
        return (rate < LITTLE_RATE).then_some(Little::Rate(rate));
    }
    if shares.basis != Basis::SinceStart {
        return None;
    }
    if (total as f64) < NEGLIGIBLE * case.machine().frames() as f64 {
        return Some(Little::NextToBusiest);
    }
    (total < LITTLE).then_some(Little::Total)
}

impl BusyQueue {
    /// How grave it is that all frames go to one queue, whose CPU is loaded like this.
    pub fn severity(&self, load: &Load) -> Severity {
        load.severity(if self.little.is_some() { Severity::Info } else { Severity::Warning })
    }

    /// Why it limits nothing yet, where its CPU is not full.
    pub fn remark(&self, load: &Load) -> Option<Fact> {
        self.little.filter(|_| !load.is_full()).map(Fact::Little)
    }

    /// The share that it took.
    pub fn took(&self) -> Fact {
        Fact::QueueTook { queue: self.queue, share: self.share }
    }
}

impl Distribution {
    /// How grave it is that a device cannot hash frames that arrive, where the CPU of their queue is loaded like this.
    /// Where the queues are even, most frames are others, which do spread.
    pub fn unhashed(&self, load: &Load) -> Severity {
        match self {
            Distribution::OneQueue(busy) => busy.severity(load),
            Distribution::Spread { even: true } => load.severity(Severity::Info),
            _ => load.severity(Severity::Warning),
        }
    }

    /// The queue that takes nearly all frames.
    pub fn one_queue(&self) -> Option<&BusyQueue> {
        match self {
            Distribution::OneQueue(busy) => Some(busy),
            _ => None,
        }
    }

    pub fn quotes(&self) -> &[Quote] {
        self.one_queue().map_or(&[], |busy| &busy.quotes)
    }

    /// What would show how frames spread: a sample under load where there was one without, the counters where there
    /// was none.
    pub fn lacks(&self, device: &Device<'_>) -> Vec<String> {
        let counters = device.counters();
        vec![match self {
            Distribution::TooFew => format!("{counters}, twice under load"),
            _ => counters,
        }]
    }
}
