//! How a device's frames spread over its receive queues: does one queue take nearly all of them?

use crate::case::enough;
use crate::report::Severity;
use crate::steering;
use crate::strain::{Strain, Strained};
use crate::{Case, Spread, loss};
use host::{Basis, Delta, Interface, Interrupt, Quote, Shares};

/// Share of the frames above which one queue counts as taking them all. Few flows make uneven queues: of ten equal
/// flows on two queues nine or more fall on one in two cases of a hundred, and four queues show a busiest share of
/// 0.4 to 0.6 every day. Nine tenths on one queue say that something else than chance chooses it.
pub(crate) const HOT: f64 = 0.9;

/// Largest share over mean up to which queues are even: what a queue of unhashed frames would add shows above.
const EVEN: f64 = 1.5;

/// The answer.
#[derive(Clone, Debug)]
pub(crate) enum Heat {
    /// One queue takes nearly all frames.
    Hot(Hot),
    /// Several queues take a part that counts; whether those are even, and frames were counted.
    Spread {
        /// The busiest took less than half as much again as the mean.
        is_even: bool,
    },
    /// Too few frames were counted to tell.
    TooFew,
    /// The text does not count frames by queue.
    Uncounted,
}

/// The queue that takes nearly all frames.
#[derive(Clone, Debug)]
pub(crate) struct Hot {
    /// Its number.
    pub queue: u32,
    /// Its share, 0 to 1.
    pub share: f64,
    /// Frames, or interrupts, of all queues.
    pub total: u64,
    /// Queues that were compared.
    pub queues: usize,
    /// What was counted.
    pub basis: Basis,
    /// Why so few frames are no load, in words; `None` where they are one, or may be.
    pub little: Option<String>,
    /// Whether only interrupts were counted, which say less: a busy queue interrupts less often.
    pub by_interrupts: bool,
    /// A line of each queue, the hot one's first.
    pub quotes: Vec<Quote>,
}

/// Whether one queue of the device takes nearly all frames.
pub(crate) fn of(case: &Case<'_>, interface: &Interface) -> Heat {
    match case.spread(interface).filter(|spread| spread.queues.len() >= 2) {
        Some(spread) if is_whole(interface, &spread) => by_frames(case, &spread),
        Some(_) => Heat::Uncounted,
        None => by_interrupts(case, interface),
    }
}

/// Part of an interface's frames that its queues must have counted to be all of its queues: the two counts may have
/// begun at different times.
const WHOLE: f64 = 0.8;

/// Whether the queues that the text shows are all that take frames: a paste may end behind the second of eight.
fn is_whole(interface: &Interface, spread: &Spread) -> bool {
    let total = interface.totals.packets.as_ref().and_then(|packets| match spread.shares.basis {
        Basis::SinceStart => Some(packets.value()),
        Basis::Between(_) => match packets.delta() {
            Delta::Counted(frames) => Some(frames),
            _ => None,
        },
    });
    total.is_none_or(|total| spread.shares.total() as f64 >= WHOLE * total as f64)
}

fn by_frames(case: &Case<'_>, spread: &Spread) -> Heat {
    if !spread.is_enough() {
        return Heat::TooFew;
    }
    match hot(&spread.queues, &spread.shares, &spread.quotes, false) {
        Heat::Hot(hot) => Heat::Hot(Hot { little: little(case, &spread.shares), ..hot }),
        heat => heat,
    }
}

/// Only vectors that serve reception alone say something: those with transmit also count its completions.
fn by_interrupts(case: &Case<'_>, interface: &Interface) -> Heat {
    let vectors: Vec<(u32, &Interrupt)> = case
        .receive_interrupts(interface)
        .into_iter()
        .filter(|vector| is_receive_only(vector))
        .filter_map(|vector| Some((vector.queue?, vector)))
        .collect();
    if vectors.len() < 2 {
        return Heat::Uncounted;
    }
    let mut counts = Vec::new();
    let mut basis = Basis::SinceStart;
    for (_, vector) in &vectors {
        let Some(shares) = Shares::of(vector.counts.values(), case.snapshot().interval) else {
            return Heat::Uncounted;
        };
        counts.push(shares.total());
        basis = shares.basis;
    }
    let shares = Shares { counts, basis, wrapped: false };
    if shares.total() < enough(basis) {
        return Heat::TooFew;
    }
    let queues: Vec<u32> = vectors.iter().map(|(queue, _)| *queue).collect();
    let quotes: Vec<Quote> = vectors.iter().map(|(_, vector)| vector.quote.clone()).collect();
    hot(&queues, &shares, &quotes, true)
}

fn is_receive_only(vector: &Interrupt) -> bool {
    let action = vector.action.to_ascii_lowercase();
    // FreeBSD's `rxq` vectors serve both directions (iflib).
    vector.receives == Some(true)
        && action.contains("rx")
        && !action.contains("tx")
        && !action.contains("rxq")
}

fn hot(queues: &[u32], shares: &Shares, quotes: &[Quote], by_interrupts: bool) -> Heat {
    let Some((place, share)) = shares.largest() else { return Heat::TooFew };
    let (Some(&queue), Some(quote)) = (queues.get(place), quotes.get(place)) else { return Heat::Uncounted };
    if share < HOT {
        let is_even = !by_interrupts && share * queues.len() as f64 <= EVEN;
        return Heat::Spread { is_even };
    }
    let others = quotes.iter().enumerate().filter(|(other, _)| *other != place).map(|(_, quote)| quote);
    Heat::Hot(Hot {
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

/// Lines of evidence: the hot queue and some of the others.
const MOST_QUOTES: usize = 4;

/// Frames a second that one queue and one CPU carry on any machine: full-size frames at 100 Mbit/s are 8,000.
const LITTLE_RATE: f64 = 10_000.0;

/// Frames since the counters were started that are a few minutes of such a line.
const LITTLE: u64 = 1_000_000;

/// Part of the busiest device's frames below which a device carries no load beside it.
const BESIDE: f64 = 0.001;

/// Why these frames are no load, in words.
fn little(case: &Case<'_>, shares: &Shares) -> Option<String> {
    let total = shares.total();
    if let Some(rate) = shares.per_second(total) {
        return (rate < LITTLE_RATE)
            .then(|| format!(" At {rate:.0} frames a second this limits nothing yet."));
    }
    let is_old = shares.basis == Basis::SinceStart;
    let busiest = case.machine().frames();
    if is_old && (total as f64) < BESIDE * busiest as f64 {
        return Some(" Beside the busiest interface of this machine that is nothing.".to_owned());
    }
    (is_old && total < LITTLE).then(|| " So few frames limit nothing.".to_owned())
}

impl Hot {
    /// How grave it is that all frames go to one queue, whose CPU is loaded like this.
    pub(crate) fn severity(&self, strained: &Strained) -> Severity {
        strained.severity(if self.little.is_some() { Severity::Info } else { Severity::Warning })
    }

    /// Whether these frames are no load.
    pub(crate) fn is_little(&self) -> bool {
        self.little.is_some()
    }

    /// Why it limits nothing yet, with a blank before it; empty where it may.
    pub(crate) fn remark(&self, strained: &Strained) -> &str {
        match strained.strain {
            Strain::Full => "",
            _ => self.little.as_deref().unwrap_or_default(),
        }
    }
}

impl Heat {
    /// How grave it is that a device cannot hash frames that come in, where the CPU of their queue is loaded like
    /// this. Where the queues are even, most frames are others, which do spread.
    pub(crate) fn unhashed(&self, strained: &Strained) -> Severity {
        match self {
            Heat::Hot(hot) => hot.severity(strained),
            Heat::Spread { is_even: true } => strained.severity(Severity::Info),
            Heat::Spread { is_even: false } | Heat::TooFew | Heat::Uncounted => {
                strained.severity(Severity::Warning)
            }
        }
    }

    /// The hot queue.
    pub(crate) fn hot(&self) -> Option<&Hot> {
        match self {
            Heat::Hot(hot) => Some(hot),
            _ => None,
        }
    }
}

/// What would show how frames spread: a sample under load where there was one without, the counters where there
/// was none.
pub(crate) fn wanted(case: &Case<'_>, interface: &Interface, heat: &Heat) -> Vec<String> {
    let name = steering::name(interface);
    let counters = match case.system() {
        Some(host::System::FreeBsd) => format!("sysctl {}", loss::freebsd_node(name)),
        Some(host::System::NetBsd) => "vmstat -i".to_owned(),
        _ => format!("ethtool -S {name}"),
    };
    match heat {
        Heat::TooFew => vec![format!("{counters}, twice under load")],
        _ => vec![counters],
    }
}
