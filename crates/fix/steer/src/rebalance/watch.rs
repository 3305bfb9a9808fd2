//! What is remembered from reading to reading.

use super::choice::{self, Burden, Ease};
use super::horizon::Horizons;
use super::{Limits, Move, Orders, Reading, Setup, State};
use crate::weights::Weight;
use std::collections::BTreeMap;
use std::time::Duration;
use xdp::layout::BUCKETS;
use xdp::{Receiver, Target};

/// Between readings while a bucket waits for its move.
const NEAR: Duration = Duration::from_millis(50);

/// Between readings while frames of such a bucket are missing: the sooner the next, the fewer newer frames hide how many.
const FAST: Duration = Duration::from_millis(5);

/// Readings in each interval that follow so fast, to find lost frames: a proof takes four.
const BURST: u32 = 6;

/// Part of the old rate in the new.
const MEMORY: f64 = 0.5;

/// Other work below this part of a CPU's time cannot be distinguished from noise.
const NOISE: f64 = 0.1;

/// Of a bucket that comes in singly and at random, pauses of length `d` are `r·exp(−r·d)` a second at the rate `r`. With
/// `r·d` above this, there is hardly one before the patience ends.
const EASY: f64 = 6.0;

/// With this many overdue, no more buckets without pauses are tried: each frame of a bucket that waits costs its
/// receiving CPU a look at the counters.
const STUBBORN: usize = 4;

#[derive(Debug)]
pub struct Balancer {
    setup: Setup,
    horizons: Horizons,
    judged: Option<Judged>,
    rates: [f64; BUCKETS],
    /// Those of the last interval alone.
    fresh_rates: [f64; BUCKETS],
    uneven_for: u32,
    /// Began to move, and is not even yet.
    is_levelling: bool,
    waiting: BTreeMap<usize, Waiting>,
    rests_until: [Duration; BUCKETS],
    state: State,
    imbalance: Option<f64>,
    /// Readings that may follow fast in this interval.
    burst: u32,
}

/// The reading from which rates are taken.
#[derive(Debug)]
struct Judged {
    at: Duration,
    /// Of each bucket.
    frames: Box<[u64; BUCKETS]>,
    /// That each CPU worked on.
    worked: BTreeMap<u32, u64>,
    /// Queued to and come out of the queue of each CPU.
    cpus: BTreeMap<u32, (u64, u64)>,
}

/// A move that not every receiving CPU has made.
#[derive(Debug)]
struct Waiting {
    from: u32,
    since: Duration,
    /// What each receiving CPU had received of it.
    sent: BTreeMap<u32, u64>,
    /// Frames were missing in the reading before.
    is_missing: bool,
    /// It waited longer than anybody expected. The order stands, and the bucket counts where it is.
    is_overdue: bool,
}

enum Fate {
    Waits,
    /// It waits for longer than anybody expected.
    Overdue,
    /// Every receiving CPU that has frames of it made it, or some did and the others hardly send any.
    Made,
}

impl Balancer {
    pub fn new(setup: Setup) -> Balancer {
        Balancer {
            horizons: Horizons::new(setup.queue_size),
            setup,
            judged: None,
            rates: [0.0; BUCKETS],
            fresh_rates: [0.0; BUCKETS],
            uneven_for: 0,
            is_levelling: false,
            waiting: BTreeMap::new(),
            rests_until: [Duration::ZERO; BUCKETS],
            state: State::Unknown,
            imbalance: None,
            burst: BURST,
        }
    }

    /// Frames found lost so far, by the CPU whose queue was full.
    pub fn dropped(&self) -> &BTreeMap<u32, u64> {
        self.horizons.dropped()
    }

    /// Frames a second of each bucket, as far as they are known.
    pub fn rates(&self) -> &[f64; BUCKETS] {
        &self.rates
    }

    /// Buckets that wait for their move, those that have waited for longer than anybody expected among them.
    pub fn waiting(&self) -> impl Iterator<Item = usize> + '_ {
        self.waiting.keys().copied()
    }

    /// Buckets that had no pause in which they could have moved.
    pub fn overdue(&self) -> impl Iterator<Item = usize> + '_ {
        self.waiting.iter().filter(|(_, waiting)| waiting.is_overdue).map(|(&bucket, _)| bucket)
    }

    /// Takes the next reading, whose time is not before that of the last.
    pub fn observe(&mut self, reading: &Reading) -> Orders {
        let lost = self.horizons.observe(reading);
        self.settle(reading);
        let mut moves = Vec::new();
        if self.rate(reading) {
            self.decide(reading, &mut moves);
        }
        let next = reading.at() + self.pause(reading);
        Orders { moves, lost, state: self.state, imbalance: self.imbalance, next }
    }

    /// Forgets moves that were made.
    fn settle(&mut self, reading: &Reading) {
        let Limits { patience, rest, interval, .. } = self.setup.limits;
        let rests_until = &mut self.rests_until;
        self.waiting.retain(|&bucket, waiting| match waiting.fate(reading, bucket, interval, patience) {
            Fate::Waits => true,
            Fate::Overdue => {
                waiting.is_overdue = true;
                true
            }
            Fate::Made => {
                rests_until[bucket] = reading.at() + rest;
                false
            }
        });
    }

    /// Takes rates once an interval; whether it did.
    fn rate(&mut self, reading: &Reading) -> bool {
        let now = Judged::of(reading);
        let Some(before) = &self.judged else {
            self.judged = Some(now);
            return false;
        };
        let passed = reading.at().saturating_sub(before.at);
        if passed < self.setup.limits.interval || passed.is_zero() {
            return false;
        }
        let is_first = self.state == State::Unknown;
        for (bucket, rate) in self.rates.iter_mut().enumerate() {
            let frames = now.frames[bucket].wrapping_sub(before.frames[bucket]);
            let fresh = frames as f64 / passed.as_secs_f64();
            self.fresh_rates[bucket] = fresh;
            *rate = if is_first { fresh } else { *rate * MEMORY + fresh * (1.0 - MEMORY) };
        }
        true
    }

    fn decide(&mut self, reading: &Reading, moves: &mut Vec<Move>) {
        let limits = self.setup.limits;
        let burdens = self.burdens(reading);
        let delays = self.delays(reading);
        self.judged = Some(Judged::of(reading));
        self.burst = BURST;

        let ordered: [u32; BUCKETS] = std::array::from_fn(|bucket| reading.buckets[bucket].cpu);
        let rescued = match self.setup.may_move {
            true => choice::rescue(&burdens, &self.rates, &ordered),
            false => Vec::new(),
        };
        self.order(reading, &rescued);
        let mut owners = ordered;
        rescued.iter().for_each(|moved| owners[moved.bucket] = moved.to);
        let overdue = self.waiting.iter().filter(|(_, waiting)| waiting.is_overdue);
        overdue.for_each(|(&bucket, waiting)| owners[bucket] = waiting.from);
        moves.extend(rescued);

        self.imbalance = choice::imbalance(&burdens, &self.rates, &owners);
        let lately = choice::imbalance(&burdens, &self.fresh_rates, &owners);
        let even_by = choice::even_with_heavy_bucket(burdens.len(), &self.rates, &owners, &limits);
        let qualified = |state: State| if state == State::Even { even_by.unwrap_or(state) } else { state };
        self.state = qualified(self.weigh_up(lately));
        if self.state != State::Moving {
            return;
        }
        let ease = |bucket: usize, to: u32| match is_left_behind(reading, bucket, to) {
            true => Ease::Not,
            false => self.ease(bucket, reading.at(), &delays, owners[bucket]),
        };
        let count = limits.moves.min(limits.waiting.saturating_sub(self.fresh()));
        let chosen = choice::choose(&burdens, &self.rates, &owners, ease, &limits, count);
        self.state = match chosen.state {
            _ if self.fresh() > 0 => State::Moving,
            State::Even => {
                (self.is_levelling, self.uneven_for) = (false, 0);
                qualified(State::Even)
            }
            state => state,
        };
        self.order(reading, &chosen.moves);
        moves.extend(chosen.moves);
    }

    /// Moves that wait, and are not overdue.
    fn fresh(&self) -> usize {
        self.waiting.values().filter(|waiting| !waiting.is_overdue).count()
    }

    /// Whether it is time to act: `Moving`, or how things stand.
    fn weigh_up(&mut self, lately: Option<f64>) -> State {
        let limits = &self.setup.limits;
        let Some(imbalance) = self.imbalance.filter(|_| self.rates.iter().sum::<f64>() >= limits.quiet)
        else {
            (self.uneven_for, self.is_levelling) = (0, false);
            return State::Quiet;
        };
        if imbalance <= limits.even || (imbalance <= limits.uneven && !self.is_levelling) {
            (self.uneven_for, self.is_levelling) = (0, false);
            return if self.fresh() == 0 { State::Even } else { State::Moving };
        }
        // Rates remember a single second for longer than it lasted.
        self.uneven_for = match lately.is_some_and(|lately| lately > limits.uneven) {
            true => self.uneven_for.saturating_add(1),
            false => self.uneven_for.saturating_sub(1),
        };
        self.is_levelling |= self.uneven_for >= limits.persistence;
        if self.is_levelling && self.setup.may_move { State::Moving } else { State::Uneven }
    }

    fn order(&mut self, reading: &Reading, moves: &[Move]) {
        for moved in moves {
            let of = |receiver: &Receiver| (receiver.cpu, receiver.frames(moved.bucket));
            let sent = reading.counters.receivers.iter().map(of).collect();
            let since = reading.at();
            let waiting = Waiting { from: moved.from, since, sent, is_missing: false, is_overdue: false };
            self.waiting.insert(moved.bucket, waiting);
            self.rests_until[moved.bucket] = reading.at() + self.setup.limits.rest;
        }
    }

    fn ease(&self, bucket: usize, at: Duration, delays: &BTreeMap<u32, Duration>, owner: u32) -> Ease {
        if self.waiting.contains_key(&bucket) || at < self.rests_until[bucket] {
            return Ease::Not;
        }
        let pause = self.setup.hold + delays.get(&owner).copied().unwrap_or_default();
        let is_easy = self.rates[bucket] * pause.as_secs_f64() <= EASY;
        match is_easy {
            true => Ease::Easy,
            false if self.waiting.len() - self.fresh() >= STUBBORN => Ease::Not,
            false => Ease::Hard,
        }
    }

    /// How long a frame waits in the queue of each CPU that has dropped some since the last decision: such a queue is
    /// full.
    fn delays(&self, reading: &Reading) -> BTreeMap<u32, Duration> {
        let Some(before) = &self.judged else { return BTreeMap::new() };
        let passed = reading.at().saturating_sub(before.at).as_secs_f64();
        let queue = f64::from(self.setup.queue_size);
        let delay = |(cpu, (sent, out)): (u32, (u64, u64))| {
            let (sent_before, out_before) = before.cpus.get(&cpu).copied()?;
            let (sent, out) = (sent.wrapping_sub(sent_before) as f64, out.wrapping_sub(out_before) as f64);
            let is_full = out > 0.0 && sent > out * 1.01;
            is_full.then(|| (cpu, Duration::from_secs_f64((queue * passed / out).min(60.0))))
        };
        Judged::of(reading).cpus.into_iter().filter_map(delay).collect()
    }

    /// What each online target has to do besides its buckets. The share that it is below the largest share says what
    /// receiving costs it; where the busy part of its time is known, what exceeds the cost of its frames is other work.
    fn burdens(&self, reading: &Reading) -> Vec<Burden> {
        let total: f64 = self.rates.iter().sum();
        let most = self.setup.weights.iter().map(|weight| weight.share).fold(0.0, f64::max);
        let condition = |cpu: u32| reading.conditions.get(&cpu);
        let is_online = |weight: &&Weight| condition(weight.cpu).is_none_or(|condition| condition.online);
        let burden = |weight: &Weight| Burden { cpu: weight.cpu, extra: (most - weight.share) * total };
        let mut burdens: Vec<Burden> = self.setup.weights.iter().filter(is_online).map(burden).collect();

        let worked = self.worked(reading);
        let work = |burden: &Burden| worked.get(&burden.cpu).copied().unwrap_or(0.0) + burden.extra;
        let busy = |burden: &Burden| condition(burden.cpu).and_then(|condition| condition.busy);
        // Time for a frame, of the CPU on which it is least: it has the least other work.
        let costs = burdens.iter().filter(|burden| work(burden) > 0.05 * total);
        let cost = costs.filter_map(|burden| Some(busy(burden)? / work(burden))).reduce(f64::min);
        let Some(cost) = cost.filter(|cost| *cost > 0.0) else { return burdens };
        let other = |burden: &Burden| busy(burden).map_or(0.0, |busy| busy - cost * work(burden));
        let others: Vec<f64> = burdens.iter().map(other).collect();
        for (burden, other) in burdens.iter_mut().zip(others) {
            burden.extra += if other > NOISE { other / cost } else { 0.0 };
        }
        burdens
    }

    /// Frames a second that each CPU worked on since the last decision.
    fn worked(&self, reading: &Reading) -> BTreeMap<u32, f64> {
        let Some(before) = &self.judged else { return BTreeMap::new() };
        let passed = reading.at().saturating_sub(before.at).as_secs_f64();
        let rate = |target: &Target| {
            let frames = before.worked.get(&target.cpu)?;
            Some((target.cpu, target.frames().wrapping_sub(*frames) as f64 / passed))
        };
        reading.counters.targets.iter().filter_map(rate).collect()
    }

    /// How long until the next reading.
    fn pause(&mut self, reading: &Reading) -> Duration {
        let since_judged =
            self.judged.as_ref().map_or(Duration::ZERO, |judged| reading.at().saturating_sub(judged.at));
        let mut pause = self.setup.limits.interval.saturating_sub(since_judged).max(FAST);
        if self.burst > 0 && (0..BUCKETS).any(|bucket| reading.missing(bucket) > 0) {
            self.burst -= 1;
            pause = FAST;
        }
        for (&bucket, waiting) in self.waiting.iter_mut().filter(|(_, waiting)| !waiting.is_overdue) {
            let is_missing = reading.missing(bucket) > 0;
            pause = pause.min(if is_missing && waiting.is_missing { FAST } else { NEAR });
            waiting.is_missing = is_missing;
        }
        pause
    }
}

/// Whether a receiving CPU still sends the bucket to `cpu` although it was ordered elsewhere. Ordered back, that CPU
/// would remember the first order as unfinished, and finish a later one too early.
fn is_left_behind(reading: &Reading, bucket: usize, cpu: u32) -> bool {
    let ordered = reading.buckets[bucket].cpu;
    let mut senders = reading.counters.receivers.iter().filter(|receiver| receiver.frames(bucket) > 0);
    senders.any(|receiver| receiver.current[bucket] != ordered && receiver.current[bucket] == cpu)
}

impl Waiting {
    fn fate(&self, reading: &Reading, bucket: usize, interval: Duration, patience: Duration) -> Fate {
        let ordered = reading.buckets[bucket].cpu;
        let waited = reading.at().saturating_sub(self.since);
        let sends = |receiver: &&Receiver| {
            receiver.frames(bucket) != self.sent.get(&receiver.cpu).copied().unwrap_or(0)
        };
        let active: Vec<_> = reading.counters.receivers.iter().filter(sends).collect();
        let made = active.iter().filter(|receiver| receiver.current[bucket] == ordered).count();
        if made == active.len() && (made > 0 || waited >= interval) {
            return Fate::Made;
        }
        match (waited >= patience, made) {
            (false, _) => Fate::Waits,
            (true, 0) => Fate::Overdue,
            (true, _) => Fate::Made,
        }
    }
}

impl Judged {
    fn of(reading: &Reading) -> Judged {
        let counted = |target: &Target| (target.cpu, (target.sent, target.arrivals()));
        Judged {
            at: reading.at(),
            frames: Box::new(std::array::from_fn(|bucket| reading.counters.frames(bucket))),
            worked: reading.counters.targets.iter().map(|target| (target.cpu, target.frames())).collect(),
            cpus: reading.counters.targets.iter().map(counted).collect(),
        }
    }
}
