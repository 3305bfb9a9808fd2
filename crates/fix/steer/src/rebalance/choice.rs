//! Which buckets to move so that the busiest CPU has less to do.
//!
//! Greedy: from the CPU with the most to the one with the least goes the bucket that comes closest to half of their
//! difference, until the first is near the mean. A bucket as heavy as the difference would only carry the load along,
//! so a heavy bucket stays and the light ones around it leave. A CPU that no move can relieve is set aside, and the
//! others are levelled among themselves.

use super::{Limits, Move, State, Why};
use xdp::layout::BUCKETS;

/// What one target has to do besides its buckets, in frames a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burden {
    pub cpu: u32,
    /// The work that it is saved because it receives, and other work.
    pub extra: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ease {
    Easy,
    /// It hardly ever pauses, unless its traffic comes in bursts.
    Hard,
    /// It waits, rests, or could not move lately.
    Not,
}

#[derive(Debug)]
pub(super) struct Choice {
    pub(super) moves: Vec<Move>,
    pub(super) state: State,
}

/// A move that brings less than this part of the mean is not worth it.
const GAIN: f64 = 0.002;

#[derive(Clone, Debug)]
struct Level {
    cpu: u32,
    extra: f64,
    load: f64,
    /// No move can relieve it.
    is_aside: bool,
}

/// Chooses moves among the online targets. `rates` are frames a second, `owners` the CPUs ordered so far.
pub(super) fn choose(
    burdens: &[Burden],
    rates: &[f64; BUCKETS],
    owners: &[u32; BUCKETS],
    ease: impl Fn(usize, u32) -> Ease,
    limits: &Limits,
    count: usize,
) -> Choice {
    let mut owners = *owners;
    let mut levels = levels(burdens, rates, &owners);
    let mut moves = Vec::new();
    let mut blocked = false;
    while moves.len() < count {
        let Some((busiest, idlest, mean)) = extremes(&levels) else { break };
        if levels[busiest].load <= limits.even * mean {
            break;
        }
        let gap = levels[busiest].load - levels[idlest].load;
        let improves = |rate: f64| rate >= GAIN * mean && rate <= gap - GAIN * mean;
        let on_busiest = |bucket: &usize| owners[*bucket] == levels[busiest].cpu && improves(rates[*bucket]);
        let candidates: Vec<usize> = (0..BUCKETS).filter(on_busiest).collect();
        let ease_to = |bucket: usize| ease(bucket, levels[idlest].cpu);
        match pick(&candidates, rates, &ease_to, gap) {
            Some(bucket) => {
                let (from, to) = (levels[busiest].cpu, levels[idlest].cpu);
                moves.push(Move { bucket, from, to, why: Why::Uneven });
                owners[bucket] = to;
                levels[busiest].load -= rates[bucket];
                levels[idlest].load += rates[bucket];
            }
            None => {
                blocked |= !candidates.is_empty();
                levels[busiest].is_aside = true;
            }
        }
    }
    let state =
        if moves.is_empty() { standing(&levels, rates, &owners, limits, blocked) } else { State::Moving };
    Choice { moves, state }
}

/// Moves of the buckets whose CPU is none of `burdens`, each to the one with the least to do.
pub(super) fn rescue(burdens: &[Burden], rates: &[f64; BUCKETS], owners: &[u32; BUCKETS]) -> Vec<Move> {
    let mut levels = levels(burdens, rates, owners);
    // Spreads also buckets without traffic.
    let least = rates.iter().sum::<f64>().max(1.0) / (BUCKETS * 100) as f64;
    let mut moves = Vec::new();
    let is_stray = |bucket: &usize| levels.iter().all(|level| level.cpu != owners[*bucket]);
    let mut stray: Vec<usize> = (0..BUCKETS).filter(is_stray).collect();
    stray.sort_by(|&a, &b| rates[b].total_cmp(&rates[a]));
    for bucket in stray {
        let Some(idlest) = levels.iter_mut().min_by(|a, b| a.load.total_cmp(&b.load)) else { break };
        idlest.load += rates[bucket].max(least);
        moves.push(Move { bucket, from: owners[bucket], to: idlest.cpu, why: Why::Unavailable });
    }
    moves
}

/// The busiest CPU's load over the mean.
pub(super) fn imbalance(burdens: &[Burden], rates: &[f64; BUCKETS], owners: &[u32; BUCKETS]) -> Option<f64> {
    let levels = levels(burdens, rates, owners);
    let sum: f64 = levels.iter().map(|level| level.load).sum();
    let most = levels.iter().map(|level| level.load).fold(0.0, f64::max);
    (sum > 0.0).then(|| most * levels.len() as f64 / sum)
}

/// The least that the busiest CPU can have over the mean, however buckets are divided: one has the heaviest bucket,
/// and one has two of the heaviest where they are more than CPUs. At least 1; none without CPUs or load.
pub fn divisible(burdens: &[Burden], rates: &[f64]) -> Option<f64> {
    let floor = burdens.iter().map(|burden| burden.extra).reduce(f64::min)?;
    let sum: f64 = rates.iter().sum::<f64>() + burdens.iter().map(|burden| burden.extra).sum::<f64>();
    let mut sorted = rates.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let one = sorted.first().copied().unwrap_or(0.0);
    let at = |index: usize| sorted.get(index).copied().unwrap_or(0.0);
    let two = at(burdens.len() - 1) + at(burdens.len());
    let most = burdens.iter().map(|burden| burden.extra).fold(floor + one.max(two), f64::max);
    (sum > 0.0).then(|| (most * burdens.len() as f64 / sum).max(1.0))
}

fn levels(burdens: &[Burden], rates: &[f64; BUCKETS], owners: &[u32; BUCKETS]) -> Vec<Level> {
    let frames = |cpu: u32| {
        rates.iter().zip(owners).filter(|(_, owner)| **owner == cpu).map(|(rate, _)| rate).sum::<f64>()
    };
    let level = |burden: &Burden| {
        let Burden { cpu, extra } = *burden;
        Level { cpu, extra, load: frames(cpu) + extra, is_aside: false }
    };
    burdens.iter().map(level).collect()
}

/// The CPUs with the most and the least to do of those that are not set aside, and the mean of these.
fn extremes(levels: &[Level]) -> Option<(usize, usize, f64)> {
    let open = || levels.iter().enumerate().filter(|(_, level)| !level.is_aside);
    let by_load = |a: &(usize, &Level), b: &(usize, &Level)| a.1.load.total_cmp(&b.1.load);
    let (busiest, idlest) = (open().max_by(by_load)?.0, open().min_by(by_load)?.0);
    let mean = open().map(|(_, level)| level.load).sum::<f64>() / open().count() as f64;
    (busiest != idlest).then_some((busiest, idlest, mean))
}

/// Of those that pause, the one next to half the gap; of those that hardly do, the lightest.
fn pick(
    candidates: &[usize],
    rates: &[f64; BUCKETS],
    ease: &impl Fn(usize) -> Ease,
    gap: f64,
) -> Option<usize> {
    let of = |required: Ease| candidates.iter().copied().filter(move |&bucket| ease(bucket) == required);
    let off_half = |bucket: usize| (rates[bucket] - gap / 2.0).abs();
    let easy = of(Ease::Easy).min_by(|&a, &b| off_half(a).total_cmp(&off_half(b)));
    easy.or_else(|| of(Ease::Hard).min_by(|&a, &b| rates[a].total_cmp(&rates[b])))
}

/// What makes the load even where one bucket is too much for one CPU by frames alone.
pub(super) fn even_with_heavy_bucket(
    cpus: usize,
    rates: &[f64; BUCKETS],
    owners: &[u32; BUCKETS],
    limits: &Limits,
) -> Option<State> {
    let sum: f64 = rates.iter().sum();
    let heaviest = (0..BUCKETS).max_by(|&a, &b| rates[a].total_cmp(&rates[b]))?;
    let share = rates[heaviest] / sum;
    let is_too_much = sum > 0.0 && share * cpus as f64 > limits.uneven;
    is_too_much.then(|| State::EvenWithHeavyBucket { bucket: heaviest, cpu: owners[heaviest], share })
}

fn standing(
    levels: &[Level],
    rates: &[f64; BUCKETS],
    owners: &[u32; BUCKETS],
    limits: &Limits,
    blocked: bool,
) -> State {
    let mean = levels.iter().map(|level| level.load).sum::<f64>() / levels.len().max(1) as f64;
    let Some(busiest) = levels.iter().max_by(|a, b| a.load.total_cmp(&b.load)) else { return State::Unknown };
    if busiest.load <= limits.uneven * mean {
        return State::Even;
    }
    if busiest.extra > limits.even * mean {
        return State::OtherWork { cpu: busiest.cpu };
    }
    let heaviest = (0..BUCKETS).max_by(|&a, &b| rates[a].total_cmp(&rates[b])).unwrap_or(0);
    let floor = levels.iter().map(|level| level.extra).fold(f64::INFINITY, f64::min);
    let least = (floor + rates[heaviest]) / mean;
    if least > limits.uneven {
        let share = rates[heaviest] / rates.iter().sum::<f64>();
        return State::OneBucket { bucket: heaviest, cpu: owners[heaviest], share, least };
    }
    if blocked { State::Waiting } else { State::Coarse }
}
